//! Ending commands: by number, and all of them with their warden.

use std::time::{Duration, Instant};

use dsh_facts::SandboxMode;
use dsh_sandbox::Event;
use nix::sys::signal::Signal;

use crate::support::caller::Caller;
use crate::support::suite::{Outcome, tests};
use crate::world::{World, read_all, read_until};

tests![
    a_signal_goes_to_one_command,
    a_kill_ends_one_command_and_its_daemons,
    a_dropped_warden_takes_everything_along,
    the_thread_that_started_a_warden_may_end,
    orders_for_what_has_ended_are_no_error,
];

/// Leaves a daemon that nothing but the end of its world's command finds.
const DAEMON: &str = "(setsid sleep 300 &); ";

fn a_signal_goes_to_one_command(caller: &Caller) -> Outcome {
    for mode in SandboxMode::ALL {
        let mut world = World::make(caller, mode)?;
        let script = "trap 'echo heard; exit 3' USR1; echo ready; while :; do sleep 0.02; done";
        let mut a = world.start(caller, script)?;
        let mut b = world.start(caller, script)?;
        read_until(&mut a.output, "ready")?;
        read_until(&mut b.output, "ready")?;
        world.warden.signal(a.id, Signal::SIGUSR1)?;
        assert_eq!(world.next_end()?, (a.id, Event::Exited(3)), "{mode}");
        assert_eq!(read_all(a.output)?, "heard\n", "{mode}");
        world.warden.signal(b.id, Signal::SIGTERM)?;
        assert_eq!(world.next_end()?, (b.id, Event::Killed(15)), "{mode}");
        assert_eq!(read_all(b.output)?, "", "{mode}: it heard nothing of the other's signal");
    }
    Ok(())
}

fn a_kill_ends_one_command_and_its_daemons(caller: &Caller) -> Outcome {
    for mode in SandboxMode::ALL {
        let mut world = World::make(caller, mode)?;
        let script = format!("{DAEMON} trap '' TERM HUP INT; echo ready; sleep 300");
        let mut a = world.start(caller, &script)?;
        let mut b = world.start(caller, &script)?;
        read_until(&mut a.output, "ready")?;
        read_until(&mut b.output, "ready")?;
        world.warden.kill(b.id)?;
        assert_eq!(world.next_end()?, (b.id, Event::Killed(9)), "{mode}");
        assert_eq!(read_all(b.output)?, "", "{mode}");
        world.warden.kill(a.id)?;
        assert_eq!(world.next_end()?, (a.id, Event::Killed(9)), "{mode}");
        assert_eq!(read_all(a.output)?, "", "{mode}");
    }
    Ok(())
}

fn a_dropped_warden_takes_everything_along(caller: &Caller) -> Outcome {
    for mode in SandboxMode::ALL {
        let mut world = World::make(caller, mode)?;
        let script = format!("{DAEMON} trap '' TERM HUP INT; echo ready; sleep 300");
        let mut a = world.start(caller, &script)?;
        let mut b = world.start(caller, &script)?;
        read_until(&mut a.output, "ready")?;
        read_until(&mut b.output, "ready")?;
        let begin = Instant::now();
        drop(world);
        assert!(begin.elapsed() < Duration::from_secs(10), "{mode}");
        for output in [a.output, b.output] {
            assert_eq!(read_all(output)?, "", "{mode}");
        }
    }
    Ok(())
}

fn the_thread_that_started_a_warden_may_end(caller: &Caller) -> Outcome {
    for mode in SandboxMode::ALL {
        let make = || World::make(caller, mode).map_err(|_| "cannot make a world");
        let made = std::thread::scope(|scope| scope.spawn(make).join());
        let mut world = made.map_err(|_| "the thread panicked")??;
        let started = world.start(caller, "sleep 0.1; exit 6")?;
        assert_eq!(world.next_end()?, (started.id, Event::Exited(6)), "{mode}");
    }
    Ok(())
}

fn orders_for_what_has_ended_are_no_error(caller: &Caller) -> Outcome {
    let mut world = World::make(caller, SandboxMode::ReadOnly)?;
    let ended = world.start(caller, "exit 2")?;
    assert_eq!(world.next_end()?, (ended.id, Event::Exited(2)));
    world.warden.signal(ended.id, Signal::SIGTERM)?;
    world.warden.kill(ended.id)?;
    world.warden.kill(ended.id + 1000)?;
    let next = world.start(caller, "exit 3")?;
    assert_eq!(world.next_end()?, (next.id, Event::Exited(3)));
    Ok(())
}
