//! The least under which something would have been allowed, in the words of the command line.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use dsh_facts::{Access, Layer, SandboxMode};
use nix::errno::Errno;
use nix::libc;

use crate::denied::Refused;
use crate::plan::ObserverPlan;

/// Places that no run makes writable, whatever is asked for.
const NEVER_WRITABLE: [&str; 4] = ["/proc", "/sys", "/dev", "/tmp"];
const WIDEST: &str = "--mode danger-full-access";

/// The remedy; none where nothing would help.
pub(super) fn of(plan: &ObserverPlan, refused: &Refused) -> Option<String> {
    let path = refused.path.as_deref().map(Path::new);
    match (refused.access, path) {
        (Some(Access::Connect), Some(path)) => Some(format!("--socket {}", quoted(path))),
        (Some(Access::Write), Some(path)) => Some(writable(plan, refused, path)),
        _ if refused.errno == libc::EAFNOSUPPORT && refused.is_internet() => {
            Some("--network host".to_owned())
        }
        _ => Some(WIDEST.to_owned()),
    }
}

impl Refused {
    fn is_internet(&self) -> bool {
        self.address.as_deref().is_some_and(|address| address.starts_with("inet"))
    }
}

fn writable(plan: &ObserverPlan, refused: &Refused, path: &Path) -> String {
    if refused.layer == Layer::Seccomp {
        return WIDEST.to_owned();
    }
    if refused.errno == Errno::EXDEV as i32 {
        return "one writable directory that holds both names".to_owned();
    }
    let below = |place: &OsStr| path.starts_with(Path::new(place));
    if let Some(place) = plan.protected.iter().find(|place| below(place)) {
        return format!("no --protect {}", quoted(Path::new(place)));
    }
    let never = NEVER_WRITABLE.iter().any(|place| below(OsStr::new(place)));
    let parent = path.parent().unwrap_or(path);
    // What Landlock alone refuses on a run with mounts is a device, a fifo or a socket.
    let by_kind = plan.own_mounts && refused.layer == Layer::Landlock;
    if never || by_kind || parent == Path::new("/") {
        return WIDEST.to_owned();
    }
    let mode = match plan.mode {
        SandboxMode::ReadOnly => "--mode workspace-write",
        _ => "",
    };
    if below(&plan.workspace) && plan.mode == SandboxMode::ReadOnly {
        return mode.to_owned();
    }
    let root = format!("--writable {}", quoted(parent));
    if mode.is_empty() { root } else { format!("{mode} {root}") }
}

/// A path that a shell takes as one word, and a terminal as text.
fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+@%,:".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    if path.to_str().is_some_and(|text| !text.contains(|c: char| c.is_control())) {
        return format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
    }
    let mut text = String::from("$'");
    for &byte in bytes {
        match byte {
            b'\'' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn plan(mode: SandboxMode) -> ObserverPlan {
        ObserverPlan {
            mode,
            level: dsh_facts::Observe::All,
            refused: Vec::new(),
            decides_sockets: true,
            sockets: Vec::new(),
            abstract_sockets: true,
            performs_metadata: false,
            own_mounts: true,
            pid_namespace: true,
            landlock: None,
            administrator: false,
            network: dsh_facts::Network::Loopback,
            protected: vec!["/w/.git/hooks".into()],
            workspace: "/w".into(),
        }
    }

    fn write(path: &str) -> Refused {
        Refused {
            operation: "open".to_owned(),
            access: Some(Access::Write),
            path: Some(path.into()),
            address: None,
            errno: Errno::EROFS as i32,
            layer: Layer::Mount,
        }
    }

    #[test]
    fn the_least_is_named() {
        let narrow = plan(SandboxMode::ReadOnly);
        let wide = plan(SandboxMode::WorkspaceWrite);
        for (plan, path, remedy) in [
            (&narrow, "/w/a/b", "--mode workspace-write"),
            (&narrow, "/etc/x", "--mode workspace-write --writable /etc"),
            (&wide, "/etc/x", "--writable /etc"),
            (&wide, "/it's here/x", r"--writable '/it'\''s here'"),
            (&wide, "/w/.git/hooks/x", "no --protect /w/.git/hooks"),
            (&wide, "/x", "--mode danger-full-access"),
            (&wide, "/proc/sys/vm/x", "--mode danger-full-access"),
        ] {
            assert_eq!(of(plan, &write(path)).as_deref(), Some(remedy), "{path}");
        }
        let socket = Refused { access: Some(Access::Connect), ..write("/run/a.sock") };
        assert_eq!(of(&wide, &socket).as_deref(), Some("--socket /run/a.sock"));
        let call = Refused { access: None, path: None, ..write("") };
        assert_eq!(of(&wide, &call).as_deref(), Some("--mode danger-full-access"));
    }

    #[test]
    fn a_strange_name_stays_one_word() {
        let path = std::ffi::OsString::from_vec(b"/a\n\xff".to_vec());
        assert_eq!(quoted(Path::new(&path)), r"$'/a\x0a\xff'");
    }
}
