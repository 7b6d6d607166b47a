//! Who the caller is in the new user namespace: always the same ids as outside.

use std::ffi::c_int;
use std::fs;

use crate::sys;

pub(crate) struct Caller {
    uid: u32,
    gid: u32,
    pub(crate) is_root: bool,
}

impl Caller {
    /// To be asked before `unshare`, after which every id reads as the overflow id until it is
    /// mapped.
    pub(crate) fn new() -> Self {
        let (uid, gid) = sys::effective_ids();
        Self { uid, gid, is_root: uid == 0 }
    }

    /// Without privileges a process maps exactly its own ids, and only once it can no longer drop
    /// groups.
    pub(crate) fn map_itself(&self) {
        write("/proc/self/setgroups", "deny");
        write("/proc/self/uid_map", &format!("{0} {0} 1", self.uid));
        write("/proc/self/gid_map", &format!("{0} {0} 1", self.gid));
    }
}

pub(crate) struct Maps {
    uids: String,
    gids: String,
}

/// Root needs every id that it has outside, or files of other owners could not be written. The
/// kernel takes such a map only from a process that stayed outside.
pub(crate) fn identity_maps() -> Maps {
    Maps { uids: identity("/proc/self/uid_map"), gids: identity("/proc/self/gid_map") }
}

impl Maps {
    pub(crate) fn write_for(&self, process: c_int) {
        write(&format!("/proc/{process}/uid_map"), &self.uids);
        write(&format!("/proc/{process}/gid_map"), &self.gids);
    }
}

/// The extents of `own`, each mapped to itself: one extent over all of them would name ids that the
/// caller lacks.
fn identity(own: &str) -> String {
    let mut map = String::new();
    for extent in sys::ok(fs::read_to_string(own), own).lines() {
        let mut fields = extent.split_ascii_whitespace();
        if let (Some(first), Some(_), Some(count)) = (fields.next(), fields.next(), fields.next()) {
            map += &format!("{first} {first} {count}\n");
        }
    }
    map
}

fn write(path: &str, text: &str) {
    sys::ok(fs::write(path, text), path);
}
