//! Names and numbers of system calls, per architecture.

#[cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]
mod aarch64;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64::TABLE;
#[cfg(target_arch = "x86_64")]
use x86_64::TABLE;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("dsh has system call tables for x86_64 and aarch64 only");

/// The newest number that the table knows. Later ones are answered with ENOSYS.
pub(crate) const NEWEST: u32 = 469;

/// The architecture's audit number, which seccomp hands to a filter (linux/audit.h).
#[cfg(target_arch = "x86_64")]
pub(crate) const AUDIT_ARCHITECTURE: u32 = 0xc000_003e;
/// The architecture's audit number, which seccomp hands to a filter (linux/audit.h).
#[cfg(target_arch = "aarch64")]
pub(crate) const AUDIT_ARCHITECTURE: u32 = 0xc000_00b7;

/// What a name means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// A call of this architecture.
    Number(u32),
    /// A call that only another architecture has, such as `open` on aarch64.
    Elsewhere,
    /// No call at all: a misspelt name.
    Unknown,
}

/// Looks a system call up by its kernel name.
pub(crate) fn lookup(name: &str) -> Lookup {
    match find(TABLE, name) {
        Some(number) => Lookup::Number(number),
        None if [x86_64::TABLE, aarch64::TABLE].iter().any(|table| find(table, name).is_some()) => {
            Lookup::Elsewhere
        }
        None => Lookup::Unknown,
    }
}

/// The names by number; empty where a number means nothing.
pub(crate) fn names() -> Vec<&'static str> {
    let mut names = vec![""; NEWEST as usize + 1];
    for (name, number) in TABLE {
        if let Some(entry) = names.get_mut(*number as usize) {
            *entry = name;
        }
    }
    names
}

fn find(table: &[(&str, u32)], name: &str) -> Option<u32> {
    table.binary_search_by_key(&name, |entry| entry.0).ok().map(|index| table[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_end_at_the_newest_number() {
        for table in [x86_64::TABLE, aarch64::TABLE] {
            assert!(table.is_sorted_by_key(|entry| entry.0));
            assert_eq!(table.iter().map(|entry| entry.1).max(), Some(NEWEST));
        }
    }

    #[test]
    fn numbers_are_those_of_libc() {
        for (name, number) in [
            ("mount", libc::SYS_mount),
            ("seccomp", libc::SYS_seccomp),
            ("openat2", libc::SYS_openat2),
            ("clone3", libc::SYS_clone3),
            ("landlock_restrict_self", libc::SYS_landlock_restrict_self),
            ("mount_setattr", libc::SYS_mount_setattr),
            ("prlimit64", libc::SYS_prlimit64),
        ] {
            let number = u32::try_from(number).expect("a small number");
            assert_eq!(lookup(name), Lookup::Number(number), "{name}");
        }
    }

    #[test]
    fn a_misspelt_name_is_told_from_one_of_another_architecture() {
        assert_eq!(lookup("mout"), Lookup::Unknown);
        #[cfg(target_arch = "aarch64")]
        assert_eq!(lookup("open"), Lookup::Elsewhere);
    }
}
