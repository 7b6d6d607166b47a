//! `dsh-run man`: the manual page, made of the same definitions as `--help`.

use clap::CommandFactory;
use clap_mangen::Man;
use nix::errno::Errno;

use crate::arguments::Arguments;
use crate::error::{Error, system};
use crate::output::print;

/// Prints the manual page, in roff.
pub(crate) fn man() -> Result<u8, Error> {
    let mut text = Vec::new();
    Man::new(Arguments::command())
        .render(&mut text)
        .map_err(|_| system("make the manual page")(Errno::EIO))?;
    print(&text)
}
