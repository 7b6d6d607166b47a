//! The words of the command line, turned into what the calls take.

use std::ffi::CString;

use crate::attempt::Stop;

fn word(arguments: &[String], index: usize) -> Result<&str, Stop> {
    let missing = || Stop::Misuse(format!("argument {} is missing", index + 1));
    arguments.get(index).map(String::as_str).ok_or_else(missing)
}

/// The argument as a word.
pub(crate) fn text(arguments: &[String], index: usize) -> Result<String, Stop> {
    word(arguments, index).map(str::to_owned)
}

/// The argument as a C string.
pub(crate) fn path(arguments: &[String], index: usize) -> Result<CString, Stop> {
    let word = word(arguments, index)?;
    CString::new(word).map_err(|_| Stop::Misuse(format!("NUL byte in {word:?}")))
}

/// The argument as a number: decimal, `0x…` or, for modes, `0…`.
pub(crate) fn number(arguments: &[String], index: usize) -> Result<i64, Stop> {
    let word = word(arguments, index)?;
    let parsed = match (word.strip_prefix("0x"), word.strip_prefix('0')) {
        (Some(hex), _) => i64::from_str_radix(hex, 16),
        (None, Some(octal)) if !octal.is_empty() => i64::from_str_radix(octal, 8),
        _ => word.parse(),
    };
    parsed.map_err(|_| Stop::Misuse(format!("{word:?} is not a number")))
}

/// The argument as names joined by `|`, each of which has a bit in `known`.
pub(crate) fn flags(
    arguments: &[String],
    index: usize,
    known: &[(&str, i64)],
) -> Result<i64, Stop> {
    let word = word(arguments, index)?;
    word.split('|').filter(|name| !name.is_empty()).try_fold(0, |bits, name| {
        let bit = known.iter().find(|(known, _)| *known == name).map(|(_, bit)| bit);
        bit.map(|bit| bits | bit).ok_or_else(|| Stop::Misuse(format!("unknown flag {name:?}")))
    })
}
