//! Many denials: the first thousand of different ones are listed, all are counted.

use dsh_facts::DENIALS_MAX;

use crate::outside::Outside;
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung, for_each_user};
use crate::support::observed::{Observed, attempt, script};
use crate::support::problems::Problems;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("amounts::dropped", dropped);
    cases.extend(for_each_user("amounts::dropped-by-a-shell", dropped_by_a_shell));
    cases.extend(for_each_rung("amounts::flood", flood));
    cases
}

const NAMES: u64 = 1200;

fn check_dropped(problems: &mut Problems, ran: &Observed, count: u64) {
    let most = u64::try_from(DENIALS_MAX).unwrap_or(u64::MAX);
    problems.equal("listed", ran.facts.denials.len(), DENIALS_MAX);
    let wrong = ran.facts.denials.iter().find(|denial| denial.count != count);
    problems.check(wrong.is_none(), || format!("another count: {wrong:?}"));
    // The first are listed, in their order.
    for (number, denial) in ran.facts.denials.iter().enumerate() {
        let name = format!("/outside/n{number}");
        problems.check(denial.path.as_ref().is_some_and(|path| path.ends_with(&name)), || {
            format!("{denial:?} is not {name}")
        });
    }
    problems.equal("dropped", ran.facts.denials_dropped, (NAMES - most) * count);
    ran.check_shape(problems, "many");
}

fn dropped(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    for times in [1, 3] {
        let text = format!("create-all @/outside/n {NAMES} {times}");
        let ran = Observed::run(caller, &["--mode", mode], attempt(caller, &text))?;
        problems.equal("answer", ran.answer()?, format!("ok: {} EROFS", NAMES * times));
        check_dropped(&mut problems, &ran, times);
    }
    outside.check(&mut problems)?;
    problems.verdict(&mode)
}

fn dropped_by_a_shell(caller: &Caller) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let text =
        format!("for ((i = 0; i < {NAMES}; i++)); do echo 2>/dev/null >../outside/n$i; done");
    let ran = Observed::run(caller, &[], ["bash", "-c", &text])?;
    check_dropped(&mut problems, &ran, 1);
    outside.check(&mut problems)?;
    problems.verdict(&ran.status)
}

/// Fifty processes at once; each denial is counted, and another run is served meanwhile.
fn flood(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let neighbour = Caller::new(caller.persona(), caller.program().to_owned())?;
    let beside = Outside::of(&neighbour)?;
    let text = "for i in $(seq 50); do $P create-all $T/outside/n 20 10 & done >/dev/null; wait";
    let (flooder, ran) = std::thread::scope(|scope| {
        let flooder =
            scope.spawn(|| Observed::run(caller, &["--mode", mode], script(caller, text)));
        let text = "touch $T/outside/new; touch /tmp/new";
        let ran = Observed::run(&neighbour, &["--mode", mode], script(&neighbour, text));
        (flooder.join(), ran)
    });
    let flooder = flooder.map_err(|_| "the flooder panicked")??;
    let lines: Vec<String> =
        (0..20).map(|n| format!("open write @/outside/n{n} EROFS mount dsh-probe 500")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    flooder.check_denials(&mut problems, "flood", &lines);
    problems.equal("dropped", flooder.facts.denials_dropped, 0);
    let line = "open write @/outside/new EROFS mount touch 1";
    ran?.check_denials(&mut problems, "neighbour", &[line]);
    outside.check(&mut problems)?;
    beside.check(&mut problems)?;
    problems.verdict(&mode)
}
