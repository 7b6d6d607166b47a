//! Whose connections they are: the caller's, with the caller's rights, whoever makes them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::unistd::geteuid;

use crate::host::Listener;
use crate::inside::SERVE;
use crate::support::caller::Caller;
use crate::support::cases::{Case, Verdict, for_each_rung, for_user};
use crate::support::observed::{CONFINED, Observed, script};
use crate::support::persona::Persona;
use crate::support::problems::Problems;
use crate::support::skip::skip;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = for_each_rung("identity::peer", peer);
    for mode in CONFINED {
        for persona in [Persona::ROOT, Persona::ordinary()] {
            let name = format!("identity::roots-socket::{mode}");
            cases.push(for_user(&name, persona, move |caller| roots_socket(caller, mode)));
        }
        let name = format!("identity::peer-of-another::{mode}");
        cases.push(for_user(&name, Persona::ROOT, move |caller| peer_of_another(caller, mode)));
    }
    cases
}

/// The listener sees the ids of who connects (unix(7), SO_PEERCRED).
fn peer(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let id = caller.persona().id();
    for kind in ["STREAM", "SEQPACKET"] {
        for blocking in ["", "NONBLOCK"] {
            let text = format!("$P unix-own /tmp/own /tmp/own {kind} {blocking}");
            let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
            let expected = format!("getpeername ok: uid {id} gid {id}, connected to /tmp/own");
            problems.equal(&text, ran.answer()?, expected);
        }
    }
    problems.verdict(&mode)
}

/// Root has become somebody else.
fn peer_of_another(caller: &Caller, mode: &str) -> Verdict {
    let mut problems = Problems::default();
    let text = "umask 0; setpriv --reuid=1000 --regid=1001 --clear-groups \
                $P unix-own /tmp/own /tmp/own STREAM";
    let ran = Observed::run(caller, &["--mode", mode], script(caller, text))?;
    let expected = "getpeername ok: uid 1000 gid 1001, connected to /tmp/own".to_owned();
    problems.equal("answer", ran.answer()?, expected);
    // Root's own socket in the scratch, closed to the other.
    let text = "chmod 600 /tmp/own; $P unix-connect /tmp/own STREAM
        setpriv --reuid=1000 --regid=1000 --clear-groups $P unix-connect /tmp/own STREAM
        chmod 666 /tmp/own
        setpriv --reuid=1000 --regid=1000 --clear-groups $P unix-connect /tmp/own STREAM; kill $!";
    let text = format!("{SERVE}\n{text}");
    let ran = Observed::run(caller, &["--mode", mode], script(caller, &text))?;
    let answers = ["connect ok", "connect EACCES", "connect ok"].map(str::to_owned).to_vec();
    problems.equal("answers", ran.answers()?, answers);
    ran.check_denials(&mut problems, "denials", &[]);
    problems.verdict(&ran)
}

/// A socket of root's that is closed to others stays so, where its path is allowed too: for an
/// ordinary user, and for root that has become one. That is no denial.
fn roots_socket(caller: &Caller, mode: &str) -> Verdict {
    if !geteuid().is_root() {
        return skip("only root has a socket of root's");
    }
    let mut problems = Problems::default();
    let directory = tempfile::Builder::new().prefix("dsh-test-").tempdir_in("/run")?;
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
    let path = directory.path().join("socket");
    let listener = Listener::at(&path, "STREAM")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    let become_other = if caller.persona().is_root() {
        "setpriv --reuid=1000 --regid=1000 --clear-groups"
    } else {
        ""
    };
    for blocking in ["", "NONBLOCK"] {
        let text = format!("{become_other} $P {} {blocking}; exit 3", listener.attempt());
        for options in [&["--mode", mode][..], &["--mode", mode, "--socket", &listener.name]] {
            let ran = Observed::run(caller, options, script(caller, &text))?;
            problems.equal(&text, ran.answer()?.as_str(), "connect EACCES");
            ran.check_denials(&mut problems, &text, &[]);
        }
    }
    listener.check_unreached(&mut problems);
    if caller.persona().is_root() {
        // Root itself may, where it is allowed.
        let text = format!("$P {}", listener.attempt());
        let options = ["--mode", mode, "--socket", &listener.name];
        let ran = Observed::run(caller, &options, script(caller, &text))?;
        problems.equal("root", ran.answer()?.as_str(), "connect ok");
        problems.equal("connected", listener.connected(), 1);
    }
    problems.verdict(&mode)
}
