//! The system calls, one function each. Nothing here can be done with less, so whatever fails ends
//! the program.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint};
use std::fmt::Display;
use std::{io, ptr, slice};

use libc::{pid_t, sock_filter, sock_fprog};

/// Ends this process as one whose sandbox could not be made.
pub(crate) fn refuse(why: &str) -> ! {
    eprintln!("floor: {why}");
    exit(125)
}

/// The value of a step, or the end.
pub(crate) fn ok<T, E: Display>(result: Result<T, E>, step: &str) -> T {
    result.unwrap_or_else(|error| refuse(&format!("{step}: {error}")))
}

/// The same for a bare call, which says -1 and leaves an errno. What they return here always fits
/// an int.
fn done(result: impl Into<c_long>, step: &str) -> c_int {
    match c_int::try_from(result.into()) {
        Ok(value) if value >= 0 => value,
        _ => refuse(&format!("{step}: {}", io::Error::last_os_error())),
    }
}

/// `done` for a call about a path, whose text is made only when it failed.
fn done_at(result: impl Into<c_long>, call: &str, path: &CStr) -> c_int {
    let result = result.into();
    if result < 0 {
        done(result, &format!("{call} {}", path.to_string_lossy()))
    } else {
        done(result, call)
    }
}

// Processes

/// argv as a slice that ends with its null pointer.
pub(crate) fn argument_pointers(
    argc: c_int,
    argv: *const *const c_char,
) -> &'static [*const c_char] {
    let count = usize::try_from(argc).unwrap_or_default() + 1;
    // SAFETY: `main` passes what the C runtime gave it: argc pointers and one null, alive and
    // unchanged until exit.
    unsafe { slice::from_raw_parts(argv, count) }
}

pub(crate) fn fork() -> pid_t {
    // SAFETY: this program never starts a thread, so the child is a whole copy: no lock is held by
    // anyone who is gone.
    done(unsafe { libc::fork() }, "fork")
}

pub(crate) fn exit(code: c_int) -> ! {
    // SAFETY: ends the process at once, without the exit handlers, which belong to the first
    // process alone.
    unsafe { libc::_exit(code) }
}

/// Waits for a child, any with -1, and says which ended and how.
pub(crate) fn wait(child: pid_t) -> (pid_t, c_int) {
    let mut status = 0;
    // SAFETY: the kernel writes one int, and `status` is one.
    let ended = done(unsafe { libc::waitpid(child, &raw mut status, 0) }, "wait");
    (ended, status)
}

/// The exit code a shell would show for a wait status.
pub(crate) fn exit_code(status: c_int) -> c_int {
    if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) }
}

pub(crate) fn execute(command: &[*const c_char]) -> ! {
    let Some(&program) = command.first() else { refuse("no command") };
    // SAFETY: `command` is the tail of argv, so every pointer is a NUL-terminated string and a null
    // ends the list.
    unsafe { libc::execvp(program, command.as_ptr()) };
    let error = io::Error::last_os_error();
    eprintln!("floor: exec: {error}");
    exit(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

// Identities and namespaces

pub(crate) fn effective_ids() -> (u32, u32) {
    // SAFETY: takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    // SAFETY: likewise.
    let gid = unsafe { libc::getegid() };
    (uid, gid)
}

pub(crate) fn unshare(namespaces: c_int) {
    // SAFETY: changes what this process sees, none of its memory; it holds no state of another
    // namespace.
    done(unsafe { libc::unshare(namespaces) }, "unshare");
}

/// `struct ifreq` as SIOCSIFFLAGS reads it. Padded to the size that the kernel copies.
#[repr(C)]
pub(crate) struct InterfaceFlags {
    pub(crate) name: [u8; 16],
    pub(crate) flags: std::ffi::c_short,
    pub(crate) rest: [u8; 22],
}

pub(crate) fn set_interface_flags(request: &InterfaceFlags) {
    // SAFETY: takes three numbers.
    let socket = done(
        unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) },
        "socket",
    );
    // SAFETY: SIOCSIFFLAGS reads one ifreq, whose layout and size InterfaceFlags has, and writes
    // nothing.
    done(unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, ptr::from_ref(request)) }, "bring up lo");
    close(socket);
}

// Files and mounts

pub(crate) fn open_path(path: &CStr) -> c_int {
    // SAFETY: `path` is NUL-terminated, and without O_CREAT there is no third argument.
    done_at(unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) }, "open", path)
}

pub(crate) fn close(fd: c_int) {
    // SAFETY: callers pass a descriptor that they opened through this module and do not use again.
    done(unsafe { libc::close(fd) }, "close");
}

pub(crate) fn change_directory(path: &CStr) {
    // SAFETY: `path` is NUL-terminated.
    done_at(unsafe { libc::chdir(path.as_ptr()) }, "chdir", path);
}

/// An empty file for something to be mounted on: unlike open, mknod leaves no descriptor to close.
pub(crate) fn make_file(directory: c_int, name: &CStr) {
    // SAFETY: `name` is NUL-terminated; the rest are numbers.
    let result = unsafe { libc::mknodat(directory, name.as_ptr(), libc::S_IFREG | 0o444, 0) };
    done_at(result, "mknod", name);
}

pub(crate) fn mount(kind: &CStr, target: &CStr, flags: libc::c_ulong, data: &CStr) {
    // SAFETY: four NUL-terminated strings, which the kernel copies; file systems take their data as
    // text.
    let result = unsafe {
        libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast())
    };
    done_at(result, "mount", target);
}

/// A detached copy of the mount at `path`, with AT_RECURSIVE also of those below it.
pub(crate) fn clone_tree(directory: c_int, path: &CStr, recursive: c_int) -> c_int {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | recursive.cast_unsigned();
    // SAFETY: open_tree takes a descriptor, a NUL-terminated string and flags.
    let result = unsafe { libc::syscall(libc::SYS_open_tree, directory, path.as_ptr(), flags) };
    done_at(result, "open_tree", path)
}

/// Attaches the detached mount `tree`.
pub(crate) fn move_mount(tree: c_int, directory: c_int, target: &CStr) {
    let empty = c"".as_ptr();
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
    // SAFETY: move_mount takes two pairs of a descriptor and a NUL-terminated string, and flags.
    let result = unsafe {
        libc::syscall(libc::SYS_move_mount, tree, empty, directory, target.as_ptr(), flags)
    };
    done_at(result, "move_mount", target);
}

/// Adds attributes to a mount and cuts it off from the host's: private, for with slave propagation
/// a disk that the host mounts later would be writable.
pub(crate) fn set_mount(directory: c_int, path: &CStr, flags: c_int, attributes: u64) {
    let change = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    // SAFETY: mount_setattr takes a descriptor, a NUL-terminated string, flags, and a mount_attr
    // with its size, which it only reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory,
            path.as_ptr(),
            flags,
            &raw const change,
            size_of_val(&change),
        )
    };
    done_at(result, "mount_setattr", path);
}

// Rights

pub(crate) fn set_no_new_privileges() {
    // SAFETY: takes numbers.
    done(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, "no_new_privs");
}

/// Capabilities are numbered without gaps: the first that the kernel does not know ends the list.
pub(crate) fn drop_bounding_set() {
    for capability in 0.. {
        // SAFETY: takes numbers.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } < 0 {
            if capability == 0 {
                done(-1, "drop the bounding set");
            }
            break;
        }
    }
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;

pub(crate) fn drop_capabilities() {
    let header = CapabilityHeader { version: LINUX_CAPABILITY_VERSION_3, pid: 0 };
    // Effective, permitted and inheritable, twice 32 bits of each.
    let none = [0_u32; 6];
    // SAFETY: capset reads the header and, in this version, six words behind the second pointer;
    // the header's version is one that it knows, so that it does not write a better one back.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    done(result, "capset");
}

/// `struct landlock_ruleset_attr`. A kernel that knows fewer fields takes it all the same while
/// they are 0.
#[repr(C)]
pub(crate) struct Ruleset {
    pub(crate) handled_access_fs: u64,
    pub(crate) handled_access_net: u64,
    pub(crate) scoped: u64,
}

/// `struct landlock_path_beneath_attr`, which the kernel declares packed.
#[repr(C, packed)]
pub(crate) struct PathRule {
    pub(crate) allowed_access: u64,
    pub(crate) parent_fd: c_int,
}

pub(crate) fn landlock_abi() -> c_int {
    const VERSION: c_uint = 1;
    let (no_ruleset, size) = (ptr::null::<Ruleset>(), 0_usize);
    // SAFETY: with this flag the call reads no ruleset and answers the version.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, no_ruleset, size, VERSION) };
    done(result, "Landlock")
}

pub(crate) fn create_ruleset(ruleset: &Ruleset) -> c_int {
    let (attributes, size, flags) = (ptr::from_ref(ruleset), size_of_val(ruleset), 0_u32);
    // SAFETY: reads `size` bytes of a struct laid out as the kernel's.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, attributes, size, flags) };
    done(result, "Landlock ruleset")
}

pub(crate) fn add_rule(ruleset: c_int, rule: &PathRule) {
    const PATH_BENEATH: c_int = 1;
    let attributes = ptr::from_ref(rule);
    // SAFETY: for this kind of rule the kernel reads one path_beneath_attr, whose layout PathRule
    // has.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset, PATH_BENEATH, attributes, 0_u32)
    };
    done(result, "Landlock rule");
}

pub(crate) fn restrict_self(ruleset: c_int) {
    // SAFETY: takes numbers.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0_u32) };
    done(result, "Landlock restriction");
}

pub(crate) fn install_filter(program: &[sock_filter]) {
    let Ok(len) = u16::try_from(program.len()) else { refuse("the filter is too long") };
    let program = sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let (operation, flags) = (libc::SECCOMP_SET_MODE_FILTER, 0_u32);
    // SAFETY: the kernel copies `len` instructions from `filter`, which lie there until the call
    // returns, and writes none; the pointer is mutable only because C's declaration is.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, &raw const program) };
    done(result, "seccomp");
}

pub(crate) fn close_from(first: c_uint) {
    // SAFETY: the process is about to exec and uses no descriptor from `first` on any more.
    done(unsafe { libc::close_range(first, c_uint::MAX, 0) }, "close_range");
}
