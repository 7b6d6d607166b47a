//! dsh-run inside dsh-run: a process has one listener at most, so the inner one sees nothing and says
//! so; the outer one sees what both commands are denied.

use dsh_facts::{DenialSource, Facts, Layer, State};

use crate::outside::{HostSocket, Outside};
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung};
use crate::support::kernel;
use crate::support::observed::{CONFINED, Observed, script};
use crate::support::problems::Problems;
use crate::support::skip::skip;

pub(crate) fn cases() -> Vec<Case> {
    for_each_rung("nested::both-run", both_run)
}

fn both_run(caller: &Caller, outer: &str) -> Verdict {
    if kernel::landlock().is_err() {
        return skip("the kernel has no Landlock to nest in");
    }
    let mut problems = Problems::default();
    let outside = Outside::of(caller)?;
    let socket = HostSocket::of(caller)?;
    for inner in CONFINED {
        let program = caller.program().display();
        let text = format!(
            "{program} --mode {inner} --facts /tmp/facts.json -- sh -c '
                $0 mkdir $1/outside/new 0755; $0 unix-connect $1/home/socket STREAM; exit 9' $P $T
            echo \"status $?\"; cat /tmp/facts.json; exit 8"
        );
        let ran = Observed::run(caller, &["--mode", outer], script(caller, &text))?;
        problems.equal("outer status", ran.status, 8);
        problems.contains("inner status", &ran.stdout, "status 9\n");
        let line = "mkdir write @/outside/new EROFS mount dsh-probe 1".to_owned();
        problems.check(ran.denials().contains(&line), || format!("no {line}: {:?}", ran.denials()));
        ran.check_shape(&mut problems, "outer");
        let facts = ran.stdout.split_once("status 9\n").map_or("", |(_, facts)| facts);
        let facts: Facts = serde_json::from_str(facts)?;
        problems.equal("source", facts.denial_source, DenialSource::Unavailable);
        problems.equal("denied", facts.denied, None);
        problems.equal("observe", facts.observe, None);
        problems.equal("denials", facts.denials.len(), 0);
        let layers = facts.enforcement.into_iter().flat_map(|enforcement| enforcement.layers);
        let observer = layers.into_iter().find(|fact| fact.layer == Layer::Observer);
        let observer = observer.map(|fact| (fact.state, fact.errno));
        let busy = Some((State::Absent, Some("EBUSY".to_owned())));
        problems.equal("the inner observer", observer, busy);
        let refused = ran.answers()?.iter().any(|answer| answer.ends_with("EACCES"));
        problems.check(refused, || format!("the socket: {}", ran.stdout));
    }
    socket.check_unreached(&mut problems);
    outside.check(&mut problems)?;
    problems.verdict(&outer)
}
