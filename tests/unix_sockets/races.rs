//! A second thread rewrites the address, or changes the socket, between the moment at which the
//! observer looks and the moment at which the kernel connects. No socket of the host is reached.

use crate::host::Host;
use crate::inside::SERVE;
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung};
use crate::support::observed::{Observed, script};
use crate::support::problems::Problems;
use crate::support::rounds::rounds;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("races::path", path);
    cases.extend(for_each_rung("races::family", family));
    cases.extend(for_each_rung("races::socket", socket));
    cases.extend(for_each_rung("races::link", link));
    cases
}

fn race(caller: &Caller, mode: &str, text: &str, ends: &[&str]) -> Verdict {
    let mut problems = Problems::default();
    let host = Host::of(caller)?;
    let text = format!("{SERVE}\n{text}\nkill $!").replace("{rounds}", &rounds().to_string());
    let ran = Observed::run_long(caller, &["--mode", mode], script(caller, &text))?;
    let answer = ran.answer()?;
    for end in ends {
        problems.check(answer.contains(end), || format!("no race: {answer}"));
    }
    host.check_unreached(&mut problems);
    problems.verdict(&answer)
}

/// Now one of its own, now one of the host's.
fn path(caller: &Caller, mode: &str) -> Verdict {
    let text = "there=$T/home/stream here=/tmp/own
        while [ ${#here} -lt ${#there} ]; do here=/$here; done
        $P race-address UNIX $here UNIX $there {rounds}";
    race(caller, mode, text, &[" ok", " EACCES"])
}

/// Now an address of the internet, about which nobody decides.
fn family(caller: &Caller, mode: &str) -> Verdict {
    let text = "$P race-address INET $T/home/stream UNIX $T/home/stream {rounds}";
    race(caller, mode, text, &[" EINVAL", " EACCES"])
}

/// Now a socket of the internet.
fn socket(caller: &Caller, mode: &str) -> Verdict {
    let text = "$P race-socket $T/home/stream {rounds}";
    race(caller, mode, text, &[" EAFNOSUPPORT", " EACCES"])
}

/// Now a link to one of its own, now one to one of the host's.
fn link(caller: &Caller, mode: &str) -> Verdict {
    let text = "cd /tmp; ln -s /tmp/own link; ln -s $T/home/stream other
        $P race-link link other {rounds}";
    race(caller, mode, text, &[" ok", " EACCES"])
}
