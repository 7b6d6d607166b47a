//! The size of the scratch, as people and profiles write it.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// A number of bytes, or a share of the machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum ScratchSize {
    /// Bytes.
    Bytes(u64),
    /// Percent of the memory, 1 to 100.
    Share(u8),
}

impl ScratchSize {
    /// The size in bytes, on this machine.
    fn bytes(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(percent) => {
                let memory = nix::sys::sysinfo::sysinfo().map_or(0, |info| info.ram_total());
                memory / 100 * u64::from(percent)
            }
        }
    }
}

impl PartialOrd for ScratchSize {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.bytes().cmp(&other.bytes()))
    }
}

/// As tmpfs(5) takes it for `size`.
impl fmt::Display for ScratchSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Share(percent) => write!(f, "{percent}%"),
        }
    }
}

/// Text that is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "use more than 0 bytes, with K, M, G or T, such as 2G, or a share of the memory such as 25%"
)]
pub struct NoSize;

impl FromStr for ScratchSize {
    type Err = NoSize;

    /// Reads a number above 0 with K, M, G or T for powers of 1024, or with %.
    fn from_str(text: &str) -> Result<Self, NoSize> {
        if let Some(number) = text.strip_suffix('%') {
            let share = number.parse().ok().filter(|percent| (1..=100).contains(percent));
            return share.map(Self::Share).ok_or(NoSize);
        }
        let (number, shift) = match text.chars().last() {
            Some('K' | 'k') => (&text[..text.len() - 1], 10),
            Some('M' | 'm') => (&text[..text.len() - 1], 20),
            Some('G' | 'g') => (&text[..text.len() - 1], 30),
            Some('T' | 't') => (&text[..text.len() - 1], 40),
            _ => (text, 0),
        };
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse::<u64>().ok().filter(|_| digits);
        let bytes = number.and_then(|number| number.checked_mul(1 << shift));
        bytes.filter(|bytes| *bytes > 0).map(Self::Bytes).ok_or(NoSize)
    }
}

impl TryFrom<String> for ScratchSize {
    type Error = NoSize;

    fn try_from(text: String) -> Result<Self, NoSize> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!("4096".parse(), Ok(ScratchSize::Bytes(4096)));
        assert_eq!("2G".parse(), Ok(ScratchSize::Bytes(2 << 30)));
        assert_eq!("25%".parse(), Ok(ScratchSize::Share(25)));
        for bad in ["", "G", "-1", "+1", "1.5G", "0", "99999999999T", "2GB", "0%", "101%", "%"] {
            assert_eq!(bad.parse::<ScratchSize>(), Err(NoSize), "{bad}");
        }
    }

    #[test]
    fn bytes_and_shares_compare() {
        assert!(ScratchSize::Share(1) < ScratchSize::Share(100));
        assert!(ScratchSize::Bytes(1) < ScratchSize::Share(1));
    }
}
