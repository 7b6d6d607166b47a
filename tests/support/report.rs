//! The plain table of a suite's results, for `DSH_TABLE=FILE`.

use std::fmt::Write as _;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Results, noted by tests that run side by side.
pub(crate) struct Report<const COLUMNS: usize> {
    columns: [&'static str; COLUMNS],
    rows: Mutex<Vec<[String; COLUMNS]>>,
}

impl<const COLUMNS: usize> Report<COLUMNS> {
    /// An empty table.
    pub(crate) fn new(columns: [&'static str; COLUMNS]) -> Self {
        Self { columns, rows: Mutex::default() }
    }

    /// Notes one result.
    pub(crate) fn add(&self, row: [String; COLUMNS]) {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    }

    /// Writes the table, sorted, where the environment asks for it.
    pub(crate) fn write(&self) -> io::Result<()> {
        let Some(file) = std::env::var_os("DSH_TABLE") else {
            return Ok(());
        };
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        rows.sort();
        rows.insert(0, self.columns.map(str::to_owned));
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
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
