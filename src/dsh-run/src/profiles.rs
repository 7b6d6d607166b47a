//! `dsh-run profiles`: which there are, and what one amounts to.

use std::fmt::Write as _;

use dsh_sandbox::{Profile, profile_directory, profile_names};

use crate::arguments::{ProfilesAction, ProfilesOptions};
use crate::error::{Error, one_line};
use crate::output::print;

/// Lists the profiles, or shows one.
pub(crate) fn profiles(options: &ProfilesOptions) -> Result<u8, Error> {
    let text = match &options.action {
        None => list(),
        Some(ProfilesAction::Show { profile }) => Profile::load(profile)?.to_string(),
    };
    print(text.as_bytes())
}

/// One line a profile; one that cannot be used says why.
fn list() -> String {
    let mut text = String::new();
    for (name, file) in profile_names() {
        let place = file.map_or_else(|| "built in".to_owned(), |path| path.display().to_string());
        let about = match Profile::load(&name) {
            Ok(profile) => profile.description().unwrap_or_default().to_owned(),
            Err(error) => format!("cannot be used: {error}"),
        };
        let (name, place, about) = (one_line(&name), one_line(&place), one_line(&about));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", format!("{name:<20} {place}  {about}").trim_end());
    }
    if let Some(own) = profile_directory() {
        let _ = writeln!(text, "\nYour own go to {}", one_line(&own.display().to_string()));
    }
    text
}
