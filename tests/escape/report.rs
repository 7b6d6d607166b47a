//! The plain table of all results, for `DSH_TABLE=FILE`.

use std::fmt::Write as _;
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::attempt::Case;

#[derive(Default)]
pub(crate) struct Report {
    rows: Mutex<Vec<[String; 6]>>,
}

impl Report {
    /// Notes one result.
    pub(crate) fn add(&self, case: &Case, errno: &str, result: &str) {
        let row = [
            case.attack.name.clone(),
            case.rung.as_str().to_owned(),
            case.persona.label(),
            errno.to_owned(),
            format!("{:?}", case.expectation.layer),
            result.to_owned(),
        ];
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    }

    /// Writes the table, sorted, where the environment asks for it.
    pub(crate) fn write(self) -> io::Result<()> {
        let Some(file) = std::env::var_os("DSH_TABLE") else {
            return Ok(());
        };
        let mut rows = self.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        rows.sort();
        rows.insert(0, ["attack", "rung", "uid", "errno", "layer", "result"].map(str::to_owned));
        let widths: [usize; 6] = std::array::from_fn(|column| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
        });
        let mut table = String::new();
        for row in &rows {
            let cells: Vec<String> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            let _infallible = writeln!(table, "{}", cells.join(" | ").trim_end());
        }
        std::fs::write(file, table)
    }
}
