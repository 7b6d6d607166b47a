//! `dsh-run`: runs a command confined to a sandbox mode and says how completely.
//!
//! Exit status: the command's own; 128+N when signal N ended it; 124 timed out; 125 dsh-run itself
//! failed, or its arguments were wrong, and the command did not run; 126 found but not executable;
//! 127 not found.

#![forbid(unsafe_code)]

mod arguments;
mod completions;
mod doctor;
mod error;
mod explain;
mod facts_output;
mod man;
mod output;
mod profiles;
mod run;
mod schema;
mod script;
mod summary;
mod supervise;
mod terminal;
mod units;

use std::process::ExitCode;

use arguments::{Action, Arguments};
use error::Error;

fn main() -> ExitCode {
    dsh_sandbox::dispatch();
    match act() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            error.print();
            ExitCode::from(error.status())
        }
    }
}

fn act() -> Result<u8, Error> {
    let arguments = Arguments::read()?;
    if nix::unistd::getuid() != nix::unistd::geteuid()
        || nix::unistd::getgid() != nix::unistd::getegid()
    {
        return Err(Error::SetUserId);
    }
    match arguments.action {
        None => run::run(&arguments.run),
        Some(Action::Doctor(options)) => doctor::doctor(options.json),
        Some(Action::Explain(options)) => explain::explain(&options),
        Some(Action::Profiles(options)) => profiles::profiles(&options),
        Some(Action::Schema) => schema::schema(),
        Some(Action::Completions(options)) => completions::completions(options.shell),
        Some(Action::Man) => man::man(),
    }
}
