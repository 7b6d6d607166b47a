//! Operations by a script, each answered with the errno that the kernel gave, inside the sandbox as
//! outside: the oracle compares the two.

use std::fmt::Write;
use std::fs;

use libc::c_long;
use nix::errno::Errno;

use crate::args::text;
use crate::attempt::{Attempt, Outcome, Stop, Trail};
use crate::memory::Edge;
use crate::numbers::by_name;
use crate::spelled::{spell, spelled};
use crate::sys::{Arg, CWD, address, call};
use crate::whereabouts::{Start, whereabouts};

pub(crate) const ATTEMPTS: &[Attempt] = &[("oracle", oracle)];

/// Keeps the standard input that the probe came with.
const OWN_INPUT: i32 = 3;

/// `oracle SCRIPT`: each line of the script is an operation, of words `KEY=VALUE`:
///
/// - `cd=PATH`, where it is made; `gone=PATH`, a directory that is made and removed for it
/// - `fd=NUMBER,FLAGS,PATH`, a file that is open then, by flags of open(2)
/// - `name=DIRECTORY,PATH,FOLLOW`, a file that it names: the numbers of two of its arguments, or `-`
///   for none, and whether a symbolic link at the end is followed
/// - `times=NUMBER`
/// - `call=NAME`, and then its arguments: `i=NUMBER`; `p=STRING`; `e=STRING` with its end at the end
///   of the mapped memory; `u=STRING` without an end there; `b=BYTES`; `v=FLAGS,BYTES`, the
///   structure of setxattrat(2)
///
/// Strings are spelled as in [`spelled`]; `{pid}` in them stands for the number of the probe. The detail has a line for each: the results, joined by
/// commas, and where each named file was before, in the same spelling. A preparation that fails
/// is the result `cd:ERRNO` and the like.
fn oracle(trail: &mut Trail, arguments: &[String]) -> Outcome {
    let script = fs::read_to_string(text(arguments, 0)?)
        .map_err(|error| Stop::Misuse(format!("cannot read the script: {error}")))?;
    let mut edge = Edge::map().map_err(|errno| Stop::Misuse(format!("no memory: {errno}")))?;
    let _ = call(libc::SYS_dup3, vec![Arg::Int(0), Arg::Int(OWN_INPUT.into()), Arg::Int(0)]);
    let mut detail = String::new();
    for line in script.lines() {
        let operation = Operation::read(line)
            .ok_or_else(|| Stop::Misuse(format!("{line:?} is no operation")))?;
        let (results, places) = operation.perform(&mut edge);
        // Writing to a string does not fail.
        let _ = writeln!(detail, "{} {}", results.join(","), places.join(" "));
        put_back();
    }
    trail.detail(detail);
    Ok(())
}

/// Undoes the preparations, and closes what was opened.
fn put_back() {
    let first = Arg::Int(i64::from(OWN_INPUT) + 1);
    let _ = call(libc::SYS_close_range, vec![first, Arg::Int(u32::MAX.into()), Arg::Int(0)]);
    let _ = call(libc::SYS_dup3, vec![Arg::Int(OWN_INPUT.into()), Arg::Int(0), Arg::Int(0)]);
}

/// One line of the script.
#[derive(Default)]
struct Operation {
    preparations: Vec<Preparation>,
    names: Vec<Name>,
    times: usize,
    number: c_long,
    arguments: Vec<Argument>,
}

enum Preparation {
    Directory(Vec<u8>),
    Gone(Vec<u8>),
    Open { number: i64, flags: i64, path: Vec<u8> },
}

struct Name {
    directory: Option<usize>,
    path: Option<usize>,
    follow: bool,
}

enum Argument {
    Number(i64),
    Text(Vec<u8>),
    AtEdge(Vec<u8>),
    Unterminated(Vec<u8>),
    Bytes(Vec<u8>),
    Attribute { value: Vec<u8>, flags: u32 },
}

impl Operation {
    fn read(line: &str) -> Option<Self> {
        let mut operation = Self { times: 1, ..Self::default() };
        let line = line.replace(&spell(b"{pid}"), &std::process::id().to_string());
        for word in line.split(' ') {
            let (key, value) = word.split_once('=')?;
            let bytes = || spelled(value);
            match key {
                "cd" => operation.preparations.push(Preparation::Directory(bytes()?)),
                "gone" => operation.preparations.push(Preparation::Gone(bytes()?)),
                "fd" => {
                    let mut parts = value.splitn(3, ',');
                    let (number, flags) =
                        (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
                    let path = spelled(parts.next()?)?;
                    operation.preparations.push(Preparation::Open { number, flags, path });
                }
                "name" => {
                    let mut parts = value.splitn(3, ',');
                    let (directory, path) =
                        (parts.next()?.parse().ok(), parts.next()?.parse().ok());
                    let follow = parts.next()? == "1";
                    operation.names.push(Name { directory, path, follow });
                }
                "times" => operation.times = value.parse().ok()?,
                "call" => operation.number = by_name(value)?,
                "i" => operation.arguments.push(Argument::Number(value.parse().ok()?)),
                "p" => operation.arguments.push(Argument::Text(ended(bytes()?))),
                "e" => operation.arguments.push(Argument::AtEdge(ended(bytes()?))),
                "u" => operation.arguments.push(Argument::Unterminated(bytes()?)),
                "b" => operation.arguments.push(Argument::Bytes(bytes()?)),
                "v" => {
                    let (flags, value) = value.split_once(',')?;
                    let (flags, value) = (flags.parse().ok()?, spelled(value)?);
                    operation.arguments.push(Argument::Attribute { value, flags });
                }
                _ => return None,
            }
        }
        Some(operation)
    }

    /// The results, and where the named files were before.
    fn perform(&self, edge: &mut Edge) -> (Vec<String>, Vec<String>) {
        for preparation in &self.preparations {
            if let Err((what, errno)) = preparation.make() {
                return (vec![format!("{what}:{errno:?}")], Vec::new());
            }
        }
        let places = self.names.iter().map(|name| self.place(name)).collect();
        let results = (0..self.times).map(|_| match self.make(edge) {
            Ok(descriptor) => {
                // At most a file that was opened; nothing else answers more than 2.
                if descriptor > i64::from(OWN_INPUT) {
                    let _ = call(libc::SYS_close, vec![Arg::Int(descriptor)]);
                }
                "ok".to_owned()
            }
            Err(errno) => format!("{errno:?}"),
        });
        (results.collect(), places)
    }

    fn make(&self, edge: &mut Edge) -> Result<i64, Errno> {
        edge.clear();
        let mut structures = Vec::new();
        for argument in &self.arguments {
            if let Argument::Attribute { value, flags } = argument {
                // struct xattr_args: value, size, flags.
                let size = u32::try_from(value.len()).unwrap_or(u32::MAX);
                let mut bytes = address(value).to_ne_bytes().to_vec();
                bytes.extend(size.to_ne_bytes());
                bytes.extend(flags.to_ne_bytes());
                structures.push(bytes);
            }
        }
        let mut structures = structures.iter();
        let registers = self.arguments.iter().map(|argument| match argument {
            Argument::Number(number) => Arg::Int(*number),
            Argument::Text(bytes) | Argument::Bytes(bytes) => Arg::In(bytes),
            Argument::AtEdge(bytes) | Argument::Unterminated(bytes) => {
                Arg::Int(edge.put(bytes).cast_signed())
            }
            Argument::Attribute { .. } => {
                structures.next().map_or(Arg::Int(0), |structure| Arg::In(structure))
            }
        });
        call(self.number, registers.collect())
    }

    fn place(&self, name: &Name) -> String {
        let number = |argument: &Argument| match argument {
            Argument::Number(number) => i32::try_from(*number).ok(),
            _ => None,
        };
        let start = match name.directory.map(|index| self.arguments.get(index).and_then(number)) {
            None | Some(Some(libc::AT_FDCWD)) => Start::Current,
            Some(Some(descriptor)) => Start::Descriptor(descriptor),
            Some(None) => return "-".to_owned(),
        };
        let path = match name.path.map(|index| self.arguments.get(index)) {
            None | Some(Some(Argument::Number(0))) => Some(&b""[..]),
            Some(Some(Argument::Text(path) | Argument::AtEdge(path))) => path.strip_suffix(b"\0"),
            _ => None,
        };
        let place = path.and_then(|path| whereabouts(start, path, name.follow).ok());
        place.map_or_else(|| "-".to_owned(), |place| spell(&place))
    }
}

impl Preparation {
    fn make(&self) -> Result<(), (&'static str, Errno)> {
        match self {
            Self::Directory(path) => change_directory(path).map_err(|errno| ("cd", errno)),
            Self::Gone(path) => {
                let made = ended(path.clone());
                let steps = call(libc::SYS_mkdirat, vec![CWD, Arg::In(&made), Arg::Int(0o755)])
                    .and_then(|_| change_directory(path))
                    .and_then(|()| {
                        let remove = Arg::Int(libc::AT_REMOVEDIR.into());
                        let current = CWD;
                        call(libc::SYS_unlinkat, vec![current, Arg::In(&made), remove])
                    });
                steps.map(drop).map_err(|errno| ("gone", errno))
            }
            Self::Open { number, flags, path } => {
                let path = ended(path.clone());
                let current = CWD;
                let mode = Arg::Int(0o600);
                let opened =
                    call(libc::SYS_openat, vec![current, Arg::In(&path), Arg::Int(*flags), mode]);
                let moved = opened.and_then(|opened| {
                    if opened == *number {
                        return Ok(());
                    }
                    call(libc::SYS_dup3, vec![Arg::Int(opened), Arg::Int(*number), Arg::Int(0)])?;
                    call(libc::SYS_close, vec![Arg::Int(opened)]).map(drop)
                });
                moved.map_err(|errno| ("fd", errno))
            }
        }
    }
}

fn change_directory(path: &[u8]) -> Result<(), Errno> {
    call(libc::SYS_chdir, vec![Arg::In(&ended(path.to_vec()))]).map(drop)
}

/// The bytes as a C string.
fn ended(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(0);
    bytes
}
