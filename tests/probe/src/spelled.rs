//! Bytes as words of a script: letters, digits and `/._-+` are themselves, all others `%` and two
//! hexadecimal digits.

/// The bytes that a word spells; none where it is misspelled.
pub(crate) fn spelled(word: &str) -> Option<Vec<u8>> {
    let mut parts = word.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(part.get(2..)?.as_bytes());
    }
    Some(bytes)
}

/// A word for these bytes.
pub(crate) fn spell(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|&byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' | b'+' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02x}"),
        })
        .collect()
}
