//! What was denied, on standard error, for the person who wonders why a command failed.

use std::io::{IsTerminal, Write};

use dsh_facts::{Denial, Facts};

use crate::arguments::RunOptions;
use crate::error::one_line;

/// As many denials as fit a glance.
const MOST: usize = 10;

/// Prints the summary, where the command failed, something was denied, and somebody looks.
pub(crate) fn print(facts: &Facts, options: &RunOptions) {
    let looked_at = options.summary || (!options.quiet && std::io::stderr().is_terminal());
    if looked_at && facts.denied == Some(true) {
        let _ = std::io::stderr().write_all(text(facts).as_bytes());
    }
}

fn text(facts: &Facts) -> String {
    let mut lines = vec!["dsh-run: the sandbox denied:".to_owned()];
    lines.extend(facts.denials.iter().take(MOST).map(|denial| format!("  {}", line(denial))));
    let more = facts.denials.len().saturating_sub(MOST);
    let more = u64::try_from(more).unwrap_or(u64::MAX).saturating_add(facts.denials_dropped);
    if more > 0 {
        lines.push(format!("  and {more} more: --facts FILE has the list"));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn line(denial: &Denial) -> String {
    let object = denial.path.as_deref().or(denial.address.as_deref()).unwrap_or_default();
    let space = if object.is_empty() { "" } else { " " };
    let times = if denial.count > 1 { format!(", {} times", denial.count) } else { String::new() };
    let remedy = denial.remedy.as_deref().map(|remedy| format!("; allowed by {remedy}"));
    one_line(&format!(
        "{}{space}{object}: {} by {}, for {}{times}{}",
        denial.operation,
        denial.errno,
        denial.layer,
        denial.program,
        remedy.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_facts::{Access, Layer};

    #[test]
    fn a_line_has_what_a_person_needs_and_stays_one() {
        let denial = Denial {
            operation: "open".to_owned(),
            access: Some(Access::Write),
            path: Some("/etc/a\nb".to_owned()),
            path_base64: None,
            address: None,
            errno: "EROFS".to_owned(),
            layer: Layer::Mount,
            program: "touch".to_owned(),
            pid: 3,
            count: 2,
            remedy: Some("--writable /etc".to_owned()),
        };
        assert_eq!(
            line(&denial),
            "open /etc/a\u{fffd}b: EROFS by mount, for touch, 2 times; allowed by --writable /etc"
        );
    }
}
