//! The command line as typed. Nothing is looked up here.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueEnum};
use dsh_facts::{Network, Observe, SandboxMode};
use dsh_sandbox::{EnvironmentRequest, Profile, Request, ScratchSize};

use crate::error::Error;
use crate::units;

/// Run a command confined to a sandbox mode.
#[derive(Debug, Parser)]
#[command(
    name = "dsh-run",
    version,
    args_conflicts_with_subcommands = true,
    override_usage = "dsh-run [OPTIONS] -- CMD [ARG]...\n       dsh-run [OPTIONS] -c TEXT [-- ARG...]\n       dsh-run [OPTIONS] --script FILE|- [-- ARG...]\n       dsh-run doctor | explain | profiles | schema | completions | man"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// What to do instead of running a command.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Say what this host can enforce
    Doctor(DoctorOptions),
    /// Say what a run with these options would be confined to, without running it
    Explain(Box<ExplainOptions>),
    /// List the profiles, or show one
    Profiles(ProfilesOptions),
    /// Print the JSON Schema of the facts and of the doctor's report
    Schema,
    /// Print the completions of a shell, for its own directory of them
    Completions(CompletionsOptions),
    /// Print the manual page
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// Print JSON alone
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProfilesOptions {
    #[command(subcommand)]
    pub(crate) action: Option<ProfilesAction>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfilesAction {
    /// Show a profile with all that it extends
    Show {
        /// A profile by name, or by the path of its file
        #[arg(value_name = "NAME|FILE")]
        profile: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// Which shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// Print JSON alone
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// The options of a run.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// read-only, workspace-write or danger-full-access [default: the profile's, or read-only]
    #[arg(long, value_name = "MODE")]
    mode: Option<SandboxMode>,
    /// A profile by name, or by the path of its file; no option goes beyond the values that it states
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// The workspace [default: the current directory]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// One more directory that workspace-write may write; repeatable
    #[arg(long, value_name = "DIR")]
    writable: Vec<PathBuf>,
    /// A file or directory that the command cannot read; repeatable
    #[arg(long, value_name = "PATH")]
    hide: Vec<PathBuf>,
    /// A file or directory that stays read-only within what is writable; repeatable
    #[arg(long, value_name = "PATH")]
    protect: Vec<PathBuf>,
    /// Let a writable directory be or hold the home directory
    #[arg(long)]
    allow_home: bool,
    /// off, loopback or host [default: the mode's]
    #[arg(long, value_name = "NETWORK")]
    network: Option<Network>,
    /// A unix socket of the host's that the command may connect to; repeatable
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
    /// What is watched for denials: all, paths, sockets or off [default: the mode's]
    #[arg(long, value_name = "LEVEL")]
    observe: Option<Observe>,
    /// Where the command starts, by its name inside [default: the current directory]
    #[arg(long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// End the command after this time: a number with ms, s, m or h
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) timeout: Option<Duration>,
    /// How long a command may take to end on a signal before it is killed
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "3s")]
    pub(crate) kill_after: Duration,
    /// The most processes and threads of the command [default: 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pids: Option<u32>,
    /// The size of the private /tmp and /dev/shm together [default: a quarter of the memory]
    #[arg(long, value_name = "SIZE")]
    scratch_size: Option<ScratchSize>,
    /// Write the facts of the run to this file, at its end
    #[arg(long, value_name = "FILE", conflicts_with = "facts_fd")]
    pub(crate) facts: Option<PathBuf>,
    /// Stream the facts of the run to this descriptor, one JSON object a line
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(3..))]
    pub(crate) facts_fd: Option<i32>,
    /// Refuse to run unless the enforcement is at least this complete
    #[arg(long, value_name = "LEVEL", default_value = "partial")]
    require: Require,
    /// Set a variable; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<OsString>,
    /// Keep a variable that looks like a credential; repeatable
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<OsString>,
    /// Start from an empty environment
    #[arg(long)]
    clear_env: bool,
    /// Say what was denied to a command that failed, even where standard error is no terminal
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) summary: bool,
    /// Say nothing of our own once the command runs
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Run this text with bash; what follows -- are its arguments
    #[arg(short = 'c', value_name = "TEXT", conflicts_with = "script")]
    text: Option<OsString>,
    /// Run this file, or standard input with -, with bash; what follows -- are its arguments
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Require {
    /// No gaps
    Full,
    /// Whatever the host allows
    Partial,
}

impl Arguments {
    pub(crate) fn read() -> Result<Self, Error> {
        Self::try_parse().map_err(|error| explain_misuse(&error))
    }
}

impl RunOptions {
    /// The request that the options make, with the caller's environment.
    pub(crate) fn request(&self) -> Result<Request, Error> {
        let mut request = self.request_without_profile();
        request.profile = self.profile.as_deref().map(Profile::load).transpose()?;
        request.environment.set = self.env.iter().map(assignment).collect::<Result<_, _>>()?;
        Ok(request)
    }

    /// The part of the request that cannot be wrong yet.
    pub(crate) fn request_without_profile(&self) -> Request {
        Request {
            mode: self.mode,
            profile: None,
            hidden: self.hide.clone(),
            protected: self.protect.clone(),
            workspace: self.workspace.clone(),
            writable: self.writable.clone(),
            allow_home: self.allow_home,
            network: self.network,
            sockets: self.socket.clone(),
            observe: self.observe,
            workdir: self.workdir.clone(),
            pids: self.pids,
            scratch_size: self.scratch_size,
            environment: EnvironmentRequest {
                inherited: std::env::vars_os().collect(),
                clear: self.clear_env,
                pass: self.pass_env.clone(),
                drop: Vec::new(),
                set: Vec::new(),
            },
            command: self.command_line(),
            foreground: false,
            require_full: self.require == Require::Full,
        }
    }

    /// The program and its arguments; for a script, what comes before its own arguments is put in
    /// by [`crate::script`].
    fn command_line(&self) -> Vec<OsString> {
        match &self.text {
            Some(text) => ["bash".into(), "-c".into(), text.clone(), "bash".into()]
                .into_iter()
                .chain(self.command.iter().cloned())
                .collect(),
            None => self.command.clone(),
        }
    }
}

fn assignment(text: &OsString) -> Result<(OsString, OsString), Error> {
    let bytes = text.as_bytes();
    match bytes.iter().position(|&byte| byte == b'=') {
        Some(at) if at > 0 => Ok((
            OsString::from_vec(bytes[..at].to_vec()),
            OsString::from_vec(bytes[at + 1..].to_vec()),
        )),
        _ => Err(Error::Usage(format!("--env {}: use NAME=VALUE", text.to_string_lossy()))),
    }
}

/// One line out of what clap has to say; help and version as they are.
fn explain_misuse(error: &clap::Error) -> Error {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return Error::Help(error.render().to_string());
        }
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            let context = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
            let word = context.into_iter().find_map(|kind| match error.get(kind) {
                Some(ContextValue::String(word)) => Some(word.clone()),
                _ => None,
            });
            if let Some(word) = word.filter(|word| !word.starts_with('-')) {
                return Error::Usage(format!(
                    "unexpected argument '{word}': a command goes behind --, as in dsh-run -- {word}"
                ));
            }
        }
        _ => {}
    }
    let mut choices = String::new();
    if let Some(ContextValue::Strings(values)) = error.get(ContextKind::ValidValue)
        && !values.is_empty()
    {
        choices = format!(": use {}", values.join(", "));
    }
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or("unusable arguments");
    let first = first.trim_start_matches("error: ");
    Error::Usage(format!("{first}{choices} (see dsh-run --help)"))
}
