//! Hosts on which something usual is missing or elsewhere: /proc, /sys, /dev, /tmp.

use nix::unistd::geteuid;

use crate::root_shell::shell_of_root;
use crate::support::caller::{Caller, finish};
use crate::support::cases::{Case, Verdict};
use crate::support::problems::Problems;
use crate::support::skip::skip;
use crate::{CONFINED, for_each_user};

pub(crate) fn cases() -> Vec<Case> {
    let cases = VIEWS.iter().flat_map(|view| {
        for_each_user(&format!("views::{}", view.name), move |caller| seen(caller, view))
    });
    cases.collect()
}

/// What a caller sees of its host.
struct View {
    name: &'static str,
    /// How root makes it.
    make: &'static str,
    /// What the one line says where dsh-run cannot work so; none where it can.
    refused: Option<&'static str>,
}

const VIEWS: &[View] = &[
    View { name: "no-proc", make: "umount -l /proc", refused: Some("/proc is not mounted") },
    View { name: "proc-hides-others", make: "mount -t proc -o hidepid=2 p /proc", refused: None },
    View { name: "proc-of-pids", make: "mount -t proc -o subset=pid p /proc", refused: None },
    View { name: "no-sys", make: "umount -l /sys", refused: None },
    View { name: "no-devices", make: "mount -t tmpfs d /dev", refused: Some("/dev/null") },
    View {
        name: "null-alone",
        make: "mount -t tmpfs d /dev; mknod -m 666 /dev/null c 1 3",
        refused: None,
    },
    View { name: "read-only-tmp", make: "mount -t tmpfs -o ro t /tmp", refused: None },
    View { name: "tmp-is-a-link", make: TMP_IS_A_LINK, refused: None },
    View { name: "read-only-root", make: "mount -o remount,ro,bind /", refused: None },
];

/// A root directory with the host's in it, but for /tmp.
const TMP_IS_A_LINK: &str = r#"
mount --make-rprivate /
mount -t tmpfs -o mode=755 root /mnt
for top in /*; do
    case $top in /mnt | /tmp) continue ;; esac
    if [ -L "$top" ]; then cp -P "$top" /mnt; continue; fi
    [ -d "$top" ] || continue
    mkdir "/mnt$top"
    mount --rbind "$top" "/mnt$top"
done
mkdir /mnt/old
mkdir -m 1777 /mnt/elsewhere
ln -s elsewhere /mnt/tmp
workspace=$PWD
cd /mnt
pivot_root . old
cd "$workspace"
"#;

/// A command has a scratch, and writes nothing of the host.
fn seen(caller: &Caller, view: &View) -> Verdict {
    const INSIDE: &str = "mktemp >/dev/null && echo ran; echo no >/etc/dsh-test; exit 7";
    if !geteuid().is_root() {
        return skip("only root can change what others see");
    }
    let mut problems = Problems::default();
    for mode in CONFINED {
        let mut command = shell_of_root(caller, &format!("{}\nexec \"$@\"", view.make));
        let ended = finish(command.args(["--mode", mode, "--", "sh", "-c", INSIDE]))?;
        let got = (ended.status.code(), ended.stdout.as_str());
        match view.refused {
            None => {
                problems.equal(mode, got, (Some(7), "ran\n"));
                problems.contains(mode, &ended.stderr, "/etc/dsh-test: Read-only file system");
            }
            Some(says) => {
                problems.equal(mode, got, (Some(125), ""));
                problems.equal(mode, ended.stderr.lines().count(), 1);
                problems.contains(mode, &ended.stderr, says);
            }
        }
    }
    problems.verdict(&view.make)
}
