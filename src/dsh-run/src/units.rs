//! Durations as people write them.

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
}
