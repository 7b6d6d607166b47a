//! Connections of the internet go through the same filter: they come to the same end as outside.

use std::net::TcpListener;

use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung};
use crate::support::observed::{Observed, attempt, unconfined};
use crate::support::problems::Problems;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("internet::own-network", own_network);
    cases.extend(for_each_rung("internet::no-network", no_network));
    cases.extend(for_each_rung("internet::network-of-the-host", network_of_the_host));
    cases
}

const ATTEMPTS: [(&str, &str); 14] = [
    ("tcp 4 blocking", "recv ok"),
    ("tcp 4 nonblocking", "recv ok: error 0"),
    ("tcp 4 refused", "connect ECONNREFUSED"),
    ("tcp 4 disconnect", "disconnect ok: then ENOTCONN"),
    ("tcp 4 alarm", "connect EINTR: signals: true"),
    ("udp 4 connected", "recv ok"),
    ("udp 4 disconnect", "disconnect ok: then ENOTCONN"),
    ("tcp 6 blocking", "recv ok"),
    ("tcp 6 nonblocking", "recv ok: error 0"),
    ("tcp 6 refused", "connect ECONNREFUSED"),
    ("tcp 6 disconnect", "disconnect ok: then ENOTCONN"),
    ("tcp 6 alarm", "connect EINTR: signals: true"),
    ("udp 6 connected", "recv ok"),
    ("udp 6 disconnect", "disconnect ok: then ENOTCONN"),
];

fn has_version_6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

fn own_network(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    for (text, end) in ATTEMPTS {
        if text.contains(" 6 ") && !has_version_6() {
            continue;
        }
        problems.equal(&format!("{text} outside"), unconfined(caller, text)?.as_str(), end);
        let ran = Observed::run(caller, &["--mode", mode], attempt(caller, text))?;
        problems.equal(text, ran.answer()?.as_str(), end);
        ran.check_denials(&mut problems, text, &[]);
    }
    problems.verdict(&mode)
}

/// The host's servers are not there. Nothing is denied: there is another network.
fn no_network(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let server = TcpListener::bind("127.0.0.1:0")?;
    server.set_nonblocking(true)?;
    let port = server.local_addr()?.port();
    for (network, errno) in [("off", "ENETUNREACH"), ("loopback", "ECONNREFUSED")] {
        for (text, end) in [
            (format!("connect-tcp {port}"), format!("connect {errno}")),
            ("socket UNIX STREAM 0".to_owned(), "socket ok".to_owned()),
            ("unix-own /tmp/own /tmp/own STREAM".to_owned(), "getpeername ok".to_owned()),
        ] {
            let options = ["--mode", mode, "--network", network];
            let ran = Observed::run(caller, &options, attempt(caller, &text))?;
            let answer = ran.answer()?;
            problems.check(answer.starts_with(&end), || format!("{network} {text}: {answer}"));
            ran.check_denials(&mut problems, &text, &[]);
        }
    }
    problems.check(server.accept().is_err(), || "the host's server was reached".to_owned());
    problems.verdict(&mode)
}

fn network_of_the_host(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let server = TcpListener::bind("127.0.0.1:0")?;
    server.set_nonblocking(true)?;
    let text = format!("connect-tcp {}", server.local_addr()?.port());
    let options = ["--mode", mode, "--network", "host"];
    let ran = Observed::run(caller, &options, attempt(caller, &text))?;
    problems.equal("answer", ran.answer()?.as_str(), "connect ok");
    ran.check_denials(&mut problems, "denials", &[]);
    problems.check(server.accept().is_ok(), || "the host's server was not reached".to_owned());
    problems.verdict(&mode)
}
