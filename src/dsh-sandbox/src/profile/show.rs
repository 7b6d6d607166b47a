//! A profile with all that it extends, written out.

use std::fmt::{self, Display, Formatter, Write};

use super::{Profile, ProfilePath};
use crate::rung::Rung;

/// As TOML; what no profile states is the rung's default, and says so.
impl Display for Profile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(description) = &self.description {
            writeln!(f, "description = {}", Quoted(description))?;
        }
        for (depth, base) in self.extends.iter().enumerate() {
            writeln!(f, "# {}extends {}", "  ".repeat(depth), Quoted(base))?;
        }
        writeln!(f, "mode = \"{}\"", self.mode)?;
        let rung = Rung::of(self.mode).map_err(|_| fmt::Error)?;
        setting(f, "network", self.network, Some(rung.network))?;
        if self.mode.confines() {
            setting(f, "scratch_size", self.scratch_size, rung.scratch_size)?;
            let number = |value: u32| Number(value);
            setting(f, "pids", self.pids.map(number), rung.pids.map(number))?;
        }
        paths(f, "writable", &self.writable)?;
        paths(f, "sockets", &self.sockets)?;
        paths(f, "hidden", &self.hidden)?;
        paths(f, "protected", &self.protected)?;
        let states_environment = self.clear_environment
            || !(self.pass.is_empty() && self.drop.is_empty() && self.set.is_empty());
        if states_environment {
            writeln!(f, "\n[environment]\nclear = {}", self.clear_environment)?;
            writeln!(f, "pass = {}\ndrop = {}", List(&self.pass), List(&self.drop))?;
            for (name, value) in &self.set {
                writeln!(f, "set.{} = {}", Quoted(name), Quoted(value))?;
            }
        }
        for rule in &self.rules {
            writeln!(f, "\n[[rule]]\nwhy = {}", Quoted(&rule.why))?;
            writeln!(f, "calls = {}\nerrno = \"{}\"", List(&rule.names()), rule.errno.name())?;
            if !rule.when.is_empty() {
                writeln!(f, "# for some arguments only: {} alternatives", rule.when.len())?;
            }
        }
        Ok(())
    }
}

/// A number, which TOML writes without quotes.
struct Number(u32);

/// How a value is written.
trait Written {
    fn written(&self) -> String;
}

impl Written for Number {
    fn written(&self) -> String {
        self.0.to_string()
    }
}

impl<T: Display> Written for T {
    fn written(&self) -> String {
        format!("\"{self}\"")
    }
}

fn setting<T: Written>(
    f: &mut Formatter<'_>,
    key: &str,
    stated: Option<T>,
    default: Option<T>,
) -> fmt::Result {
    match (stated, default) {
        (Some(value), _) => writeln!(f, "{key} = {}", value.written()),
        (None, Some(value)) => writeln!(f, "{key} = {} # the rung's default", value.written()),
        (None, None) => Ok(()),
    }
}

fn paths(f: &mut Formatter<'_>, key: &str, paths: &[ProfilePath]) -> fmt::Result {
    if paths.is_empty() {
        return Ok(());
    }
    let paths: Vec<_> = paths.iter().map(ProfilePath::as_str).collect();
    writeln!(f, "{key} = {}", List(&paths))
}

/// Strings as a TOML array.
struct List<'a, T>(&'a T);

impl<T> Display for List<'_, T>
where
    for<'b> &'b T: IntoIterator<Item: AsRef<str>>,
{
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quoted: Vec<_> =
            self.0.into_iter().map(|text| Quoted(text.as_ref()).to_string()).collect();
        write!(f, "[{}]", quoted.join(", "))
    }
}

/// A basic string of TOML, whose control characters no terminal sees.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
