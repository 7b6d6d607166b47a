//! Abstract sockets belong to a network: those of the host are refused where the network is the
//! host's, and are not there where it is private.

use crate::host::Listener;
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung};
use crate::support::observed::{Observed, script, unconfined};
use crate::support::problems::Problems;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("abstract_names::of-the-host", of_the_host);
    cases.extend(for_each_rung("abstract_names::own", own));
    cases
}

fn of_the_host(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let unique = caller.path("").display().to_string().replace('/', "-");
    for kind in ["STREAM", "SEQPACKET"] {
        let listener = Listener::without_file(&format!("{unique}{kind}"), kind)?;
        let text = listener.attempt();
        problems.equal(&text, unconfined(caller, &text)?.as_str(), "connect ok");
        problems.equal("connected", listener.connected(), 1);
        for (network, errno) in
            [("host", "EPERM"), ("loopback", "ECONNREFUSED"), ("off", "ECONNREFUSED")]
        {
            for blocking in ["", "NONBLOCK"] {
                let options = ["--mode", mode, "--network", network];
                let text = format!("$P {text} {blocking}; exit 3");
                let ran = Observed::run(caller, &options, script(caller, &text))?;
                problems.equal(network, ran.answer()?, format!("connect {errno}"));
                let [denial] = &ran.facts.denials[..] else {
                    problems.equal(network, ran.facts.denials.len(), 0);
                    problems.check(network != "host", || "nothing was denied".to_owned());
                    continue;
                };
                problems.equal("network", network, "host");
                let address = denial.address.as_deref().unwrap_or_default();
                problems.contains("address", address, &listener.name[1..]);
                let told = (denial.operation.as_str(), denial.errno.as_str(), &denial.path);
                problems.equal("told", told, ("connect", "EPERM", &None));
                ran.check_shape(&mut problems, network);
            }
        }
        listener.check_unreached(&mut problems);
    }
    problems.verdict(&mode)
}

/// The command's own work, where its network is private.
fn own(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    for kind in ["STREAM", "SEQPACKET"] {
        for blocking in ["", "NONBLOCK"] {
            let text = format!("$P unix-own @own @own {kind} {blocking}");
            let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
            let answer = ran.answer()?;
            problems.check(answer.starts_with("getpeername ok"), || format!("{text}: {answer}"));
            ran.check_denials(&mut problems, &text, &[]);
        }
    }
    problems.verdict(&mode)
}
