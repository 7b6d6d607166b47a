//! One warden, many commands.

use std::fs::File;
use std::io::Write;

use dsh_facts::SandboxMode;
use dsh_sandbox::{Event, Run, WardenProgram};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::support::caller::Caller;
use crate::support::suite::{Outcome, tests};
use crate::world::{World, read_all, read_until, request};

tests![
    one_after_the_other,
    two_at_once,
    one_that_ends_spares_the_other,
    descriptors_are_passed,
    one_that_cannot_be_executed_does_not_end_the_world,
    the_world_is_shared,
    many_worlds_in_many_threads,
    a_single_run,
];

fn one_after_the_other(caller: &Caller) -> Outcome {
    for mode in SandboxMode::ALL {
        let mut world = World::make(caller, mode)?;
        for code in [0, 7, 255] {
            let started = world.start(caller, &format!("echo {mode}; exit {code}"))?;
            assert_eq!(world.next_end()?, (started.id, Event::Exited(code)), "{mode}");
            assert_eq!(read_all(started.output)?, format!("{mode}\n"));
        }
    }
    Ok(())
}

fn two_at_once(caller: &Caller) -> Outcome {
    for mode in SandboxMode::ALL {
        let mut world = World::make(caller, mode)?;
        let (reader_a, mut writer_a) = std::io::pipe()?;
        let (reader_b, mut writer_b) = std::io::pipe()?;
        let null = || File::options().write(true).open("/dev/null");
        let script = "echo ready; read line; echo got $line; exit ${#line}";
        let mut a = world.start_with(caller, script, reader_a.into(), null()?.into())?;
        let mut b = world.start_with(caller, script, reader_b.into(), null()?.into())?;
        assert_ne!(a.id, b.id);
        read_until(&mut a.output, "ready")?;
        read_until(&mut b.output, "ready")?;
        writer_b.write_all(b"second\n")?;
        assert_eq!(world.next_end()?, (b.id, Event::Exited(6)), "{mode}");
        writer_a.write_all(b"first\n")?;
        assert_eq!(world.next_end()?, (a.id, Event::Exited(5)), "{mode}");
        assert_eq!(read_all(a.output)?, "got first\n");
        assert_eq!(read_all(b.output)?, "got second\n");
    }
    Ok(())
}

fn one_that_ends_spares_the_other(caller: &Caller) -> Outcome {
    for mode in SandboxMode::ALL {
        let mut world = World::make(caller, mode)?;
        let (reader, mut writer) = std::io::pipe()?;
        let null = File::options().write(true).open("/dev/null")?;
        // A daemon of the one is not a leftover of the other.
        let script = "setsid sh -c 'echo ready; read line; echo daemon $line' <&0 & wait; exit 3";
        let mut lasting = world.start_with(caller, script, reader.into(), null.into())?;
        read_until(&mut lasting.output, "ready")?;
        for _ in 0..3 {
            let short = world.start(caller, "setsid sleep 300 & exit 4")?;
            assert_eq!(world.next_end()?, (short.id, Event::Exited(4)), "{mode}");
            assert_eq!(read_all(short.output)?, "", "{mode}: its daemon is gone with it");
        }
        writer.write_all(b"lives\n")?;
        assert_eq!(world.next_end()?, (lasting.id, Event::Exited(3)), "{mode}");
        assert_eq!(read_all(lasting.output)?, "daemon lives\n", "{mode}");
    }
    Ok(())
}

fn descriptors_are_passed(caller: &Caller) -> Outcome {
    for mode in SandboxMode::ALL {
        let mut world = World::make(caller, mode)?;
        let (input, mut writer) = std::io::pipe()?;
        let (errors, error) = std::io::pipe()?;
        let script = "cat; echo error >&2; for n in {0..300}; do \
                      [ -e /proc/$$/fd/$n ] && seen=\"$seen $n\"; done; echo \"only$seen\"";
        let started = world.start_with(caller, script, input.into(), error.into())?;
        writer.write_all(b"input\n")?;
        drop(writer);
        assert_eq!(world.next_end()?, (started.id, Event::Exited(0)), "{mode}");
        assert_eq!(read_all(started.output)?, "input\nonly 0 1 2\n", "{mode}");
        assert_eq!(read_all(errors)?, "error\n", "{mode}");
    }
    Ok(())
}

fn one_that_cannot_be_executed_does_not_end_the_world(caller: &Caller) -> Outcome {
    for mode in SandboxMode::ALL {
        let mut world = World::make(caller, mode)?;
        let before = caller.path("before");
        std::fs::rename(caller.workspace(), &before)?;
        caller.make_dir("workspace")?;
        let gone = world.start(caller, "exec /missing")?;
        assert_eq!(world.next_end()?, (gone.id, Event::Exited(127)), "{mode}");
        let after = world.start(caller, "exit 5")?;
        assert_eq!(world.next_end()?, (after.id, Event::Exited(5)), "{mode}");
        std::fs::remove_dir(caller.workspace())?;
        std::fs::rename(before, caller.workspace())?;
    }
    Ok(())
}

fn the_world_is_shared(caller: &Caller) -> Outcome {
    // A server in the background answers the next command.
    for mode in [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite] {
        let mut world = World::make(caller, mode)?;
        let mut first =
            world.start(caller, "readlink /proc/self/ns/net /proc/self/ns/pid; read; sleep 300")?;
        let (net, pid) = namespaces(&read_until(&mut first.output, "pid:")?)?;
        let mut second =
            world.start(caller, "readlink /proc/self/ns/net /proc/self/ns/pid; sleep 300")?;
        let (other_net, other_pid) = namespaces(&read_until(&mut second.output, "pid:")?)?;
        assert_eq!(net, other_net, "{mode}");
        assert_ne!(pid, other_pid, "{mode}: each sees its own processes alone");
    }
    Ok(())
}

fn namespaces(text: &str) -> Result<(String, String), crate::support::suite::Stop> {
    let mut lines = text.lines().map(str::to_owned);
    Ok(lines.next().zip(lines.next()).ok_or("two lines")?)
}

fn many_worlds_in_many_threads(caller: &Caller) -> Outcome {
    std::thread::scope(|scope| -> Outcome {
        let threads: Vec<_> = (0..8)
            .map(|number: i32| {
                scope.spawn(move || -> Result<(), String> {
                    let run = || -> Outcome {
                        let mut world = World::make(caller, SandboxMode::ReadOnly)?;
                        let started = world.start(caller, &format!("exit {number}"))?;
                        assert_eq!(world.next_end()?, (started.id, Event::Exited(number)));
                        Ok(())
                    };
                    run().map_err(|_| format!("world {number}"))
                })
            })
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}

fn a_single_run(caller: &Caller) -> Outcome {
    for mode in SandboxMode::ALL {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let (reader, writer) = std::io::pipe()?;
        let request = request(&caller.workspace(), mode, "echo ran; exit 9");
        let descriptors = [null.as_fd(), writer.as_fd(), null.as_fd()];
        let mut run = Run::start(&request, &WardenProgram::current(), descriptors, None)?;
        drop(writer);
        let end = loop {
            match run.next(Some(Duration::from_secs(20)))? {
                Some(Event::Prepared(_) | Event::Confined { .. }) => {}
                other => break other,
            }
        };
        assert_eq!(end, Some(Event::Exited(9)), "{mode}");
        assert_eq!(read_all(reader)?, "ran\n", "{mode}");
    }
    Ok(())
}
