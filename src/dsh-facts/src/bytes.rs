//! Names that need not be UTF-8, in a format that must be.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The name as text, with U+FFFD where it is not UTF-8.
#[must_use]
pub fn text(name: impl AsRef<OsStr>) -> String {
    name.as_ref().to_string_lossy().into_owned()
}

/// The exact bytes of a name in base64, when its text would lose some of them.
#[must_use]
pub fn base64_if_not_utf8(name: impl AsRef<OsStr>) -> Option<String> {
    let name = name.as_ref();
    match name.to_str() {
        Some(_) => None,
        None => Some(STANDARD.encode(name.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_utf8_keeps_its_bytes_beside_the_text() {
        let name = OsStr::from_bytes(b"a\xffb");
        assert_eq!(text(name), "a\u{fffd}b");
        assert_eq!(base64_if_not_utf8(name).as_deref(), Some("Yf9i"));
        assert_eq!(base64_if_not_utf8("plain"), None);
    }
}
