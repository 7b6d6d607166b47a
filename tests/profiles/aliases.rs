//! Places with more than one name by bind mounts: all of them are hidden, protected or pinned.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::caller::{Caller, finish};
use crate::support::suite::{Outcome, skip, tests};

tests![
    a_hidden_file_and_directory,
    what_shows_only_a_part,
    what_is_mounted_below,
    what_a_mount_covers,
    what_a_link_covers,
    a_protected_directory,
    a_writable_root_that_shows_a_protected_one,
    a_link_beside_the_workspace,
    a_profile_that_the_workspace_shows,
];

/// Runs a script in a mount namespace of its own; it makes mounts and then runs `dsh` with its
/// arguments. What it prints is compared.
fn mounting(caller: &Caller, script: &str, expected: &str) -> Outcome {
    if !finish(&mut caller.mounting_shell("mount -t tmpfs none ."))?.status.success() {
        return skip("cannot mount a file system");
    }
    let dsh = "dsh() { \"$DSH_RUN\" --mode workspace-write \"$@\"; }; set +e; ";
    let ended = finish(&mut caller.mounting_shell(&format!("{dsh}{script}")))?;
    assert_eq!(ended.stdout, expected, "{script}\n{}", ended.stderr);
    Ok(())
}

/// A vault beside the workspace, and places for mounts.
fn places(caller: &Caller) -> Outcome {
    for name in ["vault", "vault/deep", "workspace/a", "workspace/b", "beside"] {
        caller.make_dir(name)?;
    }
    for (name, text) in [("vault/secret", "secret\n"), ("vault/deep/secret", "deep secret\n")] {
        caller.make_file(name, text)?;
    }
    caller.make_file("vault/open", "open\n")?;
    Ok(())
}

fn a_hidden_file_and_directory(caller: &Caller) -> Outcome {
    places(caller)?;
    for hidden in ["../vault/secret", "a/secret", "../beside/secret"] {
        let script = format!(
            "mount --bind ../vault a; mount --bind ../vault ../beside; \
             dsh --hide {hidden} -- bash -c 'cat a/secret ../vault/secret ../beside/secret; cat a/open'"
        );
        mounting(caller, &script, "open\n")?;
    }
    for hidden in ["../vault", "a", "../beside"] {
        let script = format!(
            "mount --bind ../vault a; mount --rbind ../vault ../beside; \
             dsh --hide {hidden} -- bash -c 'find a ../vault ../beside -mindepth 1; mv a b; rm -rf a'; ls ../vault"
        );
        mounting(caller, &script, "deep\nopen\nsecret\n")?;
    }
    Ok(())
}

fn what_shows_only_a_part(caller: &Caller) -> Outcome {
    places(caller)?;
    caller.make_file("workspace/file", "")?;
    let script = "mount --bind ../vault/deep a; mount --bind ../vault/secret file; \
                  dsh --hide ../vault -- bash -c 'cat a/secret file; cat ../vault/open'; echo end";
    mounting(caller, script, "end\n")
}

fn what_is_mounted_below(caller: &Caller) -> Outcome {
    places(caller)?;
    let script = "mount -t tmpfs none ../vault/deep; echo secret >../vault/deep/inner; \
                  mount --bind ../vault/deep a; mount --bind ../vault b; \
                  dsh --hide ../vault -- bash -c 'cat a/inner b/secret b/deep/secret'; \
                  dsh --protect ../vault -- bash -c 'echo x >a/inner; echo x >b/new'; \
                  cat ../vault/deep/inner; ls ../vault";
    mounting(caller, script, "secret\ndeep\nopen\nsecret\n")
}

/// A mount on a parent covers what is mounted below it: its names lead elsewhere.
fn what_a_mount_covers(caller: &Caller) -> Outcome {
    places(caller)?;
    caller.make_dir("workspace/a/x")?;
    let script = "mount --bind ../vault a/x; mount -t tmpfs none a; mkdir a/x; \
                  echo fine >a/x/secret; mount --bind a b; \
                  dsh --hide ../vault/secret -- cat a/x/secret; \
                  dsh --hide ../vault -- cat a/x/secret; \
                  dsh --hide a/x/secret -- bash -c 'cat b/x/secret; cat ../vault/secret'";
    mounting(caller, script, "fine\nfine\nsecret\n")
}

/// What stands in the way of a covered name can be a link that leads nowhere.
fn what_a_link_covers(caller: &Caller) -> Outcome {
    places(caller)?;
    caller.make_dir("workspace/a/x")?;
    let script = "mount --bind ../vault a/x; mount -t tmpfs none a; ln -s x a/x; \
                  dsh --hide ../vault/secret -- mv a/x a/y; ls a";
    mounting(caller, script, "y\n")
}

fn a_protected_directory(caller: &Caller) -> Outcome {
    places(caller)?;
    let attack = "for d in a b/a; do echo x >$d/open; : >$d/new; mv $d/deep $d/moved; done; mv a c";
    for protected in ["../vault", "a", "b/a"] {
        let script = format!(
            "mount --bind ../vault a; mount --rbind . b; \
             dsh --protect {protected} -- bash -c '{attack}' 2>&1 | grep -c Read-only; ls ../vault"
        );
        mounting(caller, &script, "6\ndeep\nopen\nsecret\n")?;
    }
    Ok(())
}

fn a_writable_root_that_shows_a_protected_one(caller: &Caller) -> Outcome {
    places(caller)?;
    let script = "mount --bind ../vault ../beside; \
                  dsh --protect ../vault --writable ../beside/deep -- bash -c ': >../beside/deep/new'; \
                  dsh --protect ../vault/deep --writable ../beside -- bash -c ': >../beside/deep/new'; \
                  dsh --protect ../vault --writable ../beside -- bash -c ': >../beside/new'; \
                  ls ../vault ../vault/deep";
    mounting(caller, script, "../vault:\ndeep\nopen\nsecret\n\n../vault/deep:\nsecret\n")
}

/// The link on the way lies beside the workspace, and in it by another name.
fn a_link_beside_the_workspace(caller: &Caller) -> Outcome {
    places(caller)?;
    caller.make_dir("links")?;
    symlink("../vault", caller.path("links/link"))?;
    let script = "mount --bind ../links a; \
                  dsh --hide ../links/link/secret -- bash -c 'ln -sfn /tmp a/link; mv a/link a/l2'; \
                  dsh --hide ../links/link/secret -- cat ../vault/secret; readlink ../links/link";
    mounting(caller, script, "../vault\n")?;
    assert_eq!(fs::read_link(caller.path("links/link"))?, std::path::Path::new("../vault"));
    Ok(())
}

fn a_profile_that_the_workspace_shows(caller: &Caller) -> Outcome {
    places(caller)?;
    caller.make_dir("workspace/sub")?;
    caller.make_file("workspace/sub/p.toml", "extends = 'workspace-write'\n")?;
    let says = "where the command could replace it: put it elsewhere\n";
    let script = "mount --bind sub ../beside; \
                  dsh --profile ../beside/p.toml -- echo ran 2>&1 | grep -o 'where the .*'; \
                  dsh --facts ../beside/facts.json -- echo ran 2>&1 | grep -o 'where the .*'; \
                  mount --bind ../vault a; \
                  dsh --writable ../vault -- echo ran; \
                  dsh --writable ../beside/link -- echo ran";
    symlink("../../home", caller.path("workspace/sub/link"))?;
    mounting(caller, script, &format!("{says}{says}ran\n"))
}
