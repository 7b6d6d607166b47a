//! Relative paths.

/// The way from one absolute path to another, by `..` and names.
pub(crate) fn relative(from: &[u8], to: &[u8]) -> Vec<u8> {
    let names = |path: &'_ [u8]| -> Vec<Vec<u8>> {
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        names.map(<[u8]>::to_vec).collect()
    };
    let (from, to) = (names(from), names(to));
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n(b"..".to_vec(), from.len() - common);
    let way: Vec<_> = up.chain(to[common..].iter().cloned()).collect();
    if way.is_empty() { b".".to_vec() } else { way.join(&b'/') }
}
