//! `dsh-run completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::error::Error;
use crate::output::print;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<u8, Error> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "dsh-run", &mut text);
    print(&text)
}
