//! Whoever calls: threads, processes that end in the middle, with other ids, or that nobody may look
//! into.

use crate::outside::Outside;
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung, for_each_user, for_user};
use crate::support::observed::{CONFINED, Observed, attempt, script, unreadable_probe};
use crate::support::persona::Persona;
use crate::support::problems::Problems;
use crate::support::skip::skip;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("callers::threads", threads);
    cases.extend(for_each_rung("callers::killed", killed));
    cases.extend(for_each_rung("callers::killed-in-the-middle", killed_in_the_middle));
    cases.extend(for_each_user("callers::timed-out", timed_out));
    for mode in CONFINED {
        cases.push(for_user(
            &format!("callers::other-ids::{mode}"),
            Persona::ROOT,
            move |caller| other_ids(caller, mode),
        ));
        let name = format!("callers::unreadable-program::{mode}");
        cases.push(for_user(&name, Persona::ordinary(), move |caller| {
            unreadable_program(caller, mode)
        }));
    }
    cases
}

fn threads(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let ran =
        Observed::run(caller, &["--mode", mode], attempt(caller, "threads 8 200 @/outside/new"))?;
    problems.equal("answer", ran.answer()?, "ok: 1600 EROFS".to_owned());
    let line = "open write @/outside/new EROFS mount dsh-probe 1600";
    ran.check_denials(&mut problems, "threads", &[line]);
    let alone = attempt(caller, "leader-gone @/outside/new /nonexistent");
    let ran = Observed::run(caller, &["--mode", mode], alone)?;
    problems.equal("answer", ran.answer()?, "ok: 1 EROFS, Err(ENOENT)".to_owned());
    let line = "open write @/outside/new EROFS mount dsh-probe 1";
    ran.check_denials(&mut problems, "without its first thread", &[line]);
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}

/// What was denied is known, however the command ends.
fn killed(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    for signal in ["KILL", "TERM", "SEGV"] {
        let text = format!("touch $T/outside/new; kill -{signal} $$");
        let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
        let line = "open write @/outside/new EROFS mount touch 1";
        ran.check_denials(&mut problems, signal, &[line]);
        problems.check(ran.status > 128, || format!("{signal}: {}", ran.status));
        problems.equal("denied", ran.facts.denied, Some(true));
    }
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}

/// A caller that is gone before it is answered harms nobody.
fn killed_in_the_middle(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let text = "for i in $(seq 40); do
            $P create-all $T/outside/n 5 100000 & one=$!
            $P unix-backlog /tmp/s$i /tmp/s$i STREAM for-ever & two=$!
            sleep 0.0$((i % 4)); kill -KILL $one $two; wait
        done >/dev/null 2>&1
        touch $T/outside/new; touch /tmp/new && $P unix-own /tmp/own /tmp/own STREAM; exit 3";
    let words =
        script(caller, text).map(|word| if word == "sh" { "bash".to_owned() } else { word });
    let ran = Observed::run(caller, &["--mode", mode], words)?;
    problems.equal("status", ran.status, 3);
    let last = "open write @/outside/new EROFS mount touch 1".to_owned();
    problems.check(ran.denials().contains(&last), || format!("no {last}"));
    let answer = ran.answer()?;
    problems.check(answer.starts_with("getpeername ok"), || answer.clone());
    ran.check_shape(&mut problems, "killed");
    outside.check(&mut problems)?;
    problems.verdict(&ran)
}

fn timed_out(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    Outside::of(caller)?;
    let options = ["--timeout", "500ms", "--kill-after", "100ms"];
    let text = "trap '' TERM; touch $T/outside/new; while :; do sleep 1; done";
    let ran = Observed::run(caller, &options, script(caller, text))?;
    problems.equal("status", ran.status, 124);
    let line = "open write @/outside/new EROFS mount touch 1";
    ran.check_denials(&mut problems, "timed out", &[line]);
    problems.verdict(&ran)
}

/// root becomes somebody else, whose own rights count then.
fn other_ids(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let theirs = caller.make_dir("outside/theirs")?;
    Persona::of(1000).own(&theirs)?;
    let outside = outside.again()?;
    let text = "as() { setpriv --reuid=1000 --regid=1000 --clear-groups \"$@\"; }
        as touch $T/outside/new; as mkdir $T/outside/theirs/new; as rm -f $T/outside/file
        as touch $T/workspace/new; touch $T/outside/theirs/roots; exit 2";
    let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
    let denials = [
        "mkdir write @/outside/theirs/new EROFS mount mkdir 1",
        "open write @/outside/theirs/roots EROFS mount touch 1",
    ];
    ran.check_denials(&mut problems, "denials", &denials);
    outside.check(&mut problems)?;
    problems.verdict(&ran)
}

/// A program that its user may execute and not read: nobody with that user's rights can look into
/// its memory. It changes nothing outside, whatever is known of it.
fn unreadable_program(caller: &Caller, mode: &str) -> Verdict {
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can make a program that its user cannot read");
    }
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    unreadable_probe(caller)?;
    for (text, answer) in [
        ("openat $T/outside/new WRONLY\\|CREAT 0644", "openat EROFS"),
        ("mkdir $T/outside/new 0755", "mkdirat EROFS"),
        ("mkdir /tmp/new 0755", "mkdirat ok"),
    ] {
        let text = format!("$T/unreadable {text}");
        let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
        problems.equal(&text, ran.answer()?.as_str(), answer);
        ran.check_shape(&mut problems, &text);
    }
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}
