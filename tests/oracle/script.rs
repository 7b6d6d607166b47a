//! Operations as lines of the script that the probe reads.

use std::fmt;

use nix::libc;

use crate::spelled::spell;

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    Number(i64),
    Text(Vec<u8>),
    /// A string that ends where the mapped memory does.
    AtEdge(Vec<u8>),
    /// A string that does not end there.
    Unterminated(Vec<u8>),
    Bytes(Vec<u8>),
    /// What setxattrat(2) takes in memory.
    Attribute {
        flags: u32,
        value: Vec<u8>,
    },
}

/// A file that a call names: by which of its arguments, and whether links at the end are followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameOf {
    pub(crate) directory: Option<usize>,
    pub(crate) path: Option<usize>,
    pub(crate) follow: bool,
}

/// A call of the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// What the facts call it.
    pub(crate) operation: &'static str,
    pub(crate) name: &'static str,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) names: Vec<NameOf>,
    /// Whether it can be made again, and finds all as before.
    pub(crate) repeatable: bool,
}

/// A line of the script.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// None for a directory that is gone.
    pub(crate) current: Option<Vec<u8>>,
    /// Number, flags and path of what is open.
    pub(crate) open: Vec<(i32, i32, Vec<u8>)>,
    pub(crate) times: usize,
    pub(crate) call: Call,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.current {
            Some(current) => write!(f, "cd={}", spell(current))?,
            None => write!(f, "gone={}", spell(b"/tmp/gone-{pid}"))?,
        }
        for (number, flags, path) in &self.open {
            write!(f, " fd={number},{flags},{}", spell(path))?;
        }
        for NameOf { directory, path, follow } in &self.call.names {
            let index = |index: &Option<usize>| index.map_or("-".to_owned(), |one| one.to_string());
            write!(f, " name={},{},{}", index(directory), index(path), u8::from(*follow))?;
        }
        if self.times != 1 {
            write!(f, " times={}", self.times)?;
        }
        write!(f, " call={}", self.call.name)?;
        for argument in &self.call.arguments {
            match argument {
                Argument::Number(number) => write!(f, " i={number}")?,
                Argument::Text(text) => write!(f, " p={}", spell(text))?,
                Argument::AtEdge(text) => write!(f, " e={}", spell(text))?,
                Argument::Unterminated(text) => write!(f, " u={}", spell(text))?,
                Argument::Bytes(bytes) => write!(f, " b={}", spell(bytes))?,
                Argument::Attribute { flags, value } => write!(f, " v={flags},{}", spell(value))?,
            }
        }
        Ok(())
    }
}

/// The argument that means the current directory.
pub(crate) const CURRENT: Argument = Argument::Number(libc::AT_FDCWD as i64);
