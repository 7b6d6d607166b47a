//! Durations and sizes as people write them.

use std::time::Duration;

/// Parses a number with `ms`, `s`, `m` or `h`, such as `1.5s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("use a number with ms, s, m or h, such as 30s".to_owned()),
    };
    let number: f64 = plain_number(number)?;
    let duration = Duration::try_from_secs_f64(number * seconds)
        .map_err(|_| format!("'{text}' is too long"))?;
    if duration.is_zero() { Err("use more than 0".to_owned()) } else { Ok(duration) }
}

/// Parses a number of bytes, with K, M, G or T for powers of 1024, such as `2G`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.chars().last() {
        Some('K' | 'k') => (&text[..text.len() - 1], 10),
        Some('M' | 'm') => (&text[..text.len() - 1], 20),
        Some('G' | 'g') => (&text[..text.len() - 1], 30),
        Some('T' | 't') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let bytes = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "use a number of bytes with K, M, G or T, such as 2G".to_owned())?;
    if bytes == 0 { Err("use more than 0".to_owned()) } else { Ok(bytes) }
}

/// A number of digits and at most one point: no sign, no exponent, no `inf`.
fn plain_number(text: &str) -> Result<f64, String> {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse()
        .ok()
        .filter(|_| plain)
        .ok_or_else(|| "use a number with ms, s, m or h, such as 30s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "5", "s", "-1s", "1e3s", "infs", "5d", "0s", "1.2.3s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert!(duration("99999999999999999999h").is_err());
    }

    #[test]
    fn sizes() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("2G"), Ok(2 << 30));
        for bad in ["", "G", "-1", "1.5G", "0", "99999999999T", "2GB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
