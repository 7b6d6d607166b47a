//! The command's environment: the caller's, without credentials and without what makes a shell run
//! code of its own.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::unistd::{AccessFlags, access};

use crate::request::EnvironmentRequest;

/// A name with one of these in it is taken for a credential.
const CREDENTIAL_PARTS: [&str; 7] =
    ["KEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];

/// A name with one of these words in it, between underscores, is one too.
const CREDENTIAL_WORDS: [&str; 12] = [
    "AUTH",
    "COOKIE",
    "COOKIES",
    "CRED",
    "CREDS",
    "DSN",
    "JWT",
    "PASS",
    "PASSCOMMAND",
    "PAT",
    "PWD",
    "WEBHOOK",
];

/// Whole names that give access to something without saying so.
const CREDENTIAL_NAMES: [&str; 12] = [
    "SSHPASS",
    "XAUTHORITY",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DATABASE_URL",
    "REDIS_URL",
    "MONGODB_URI",
    "AMQP_URL",
    "DBUS_SESSION_BUS_ADDRESS",
    "KUBECONFIG",
    "PGPASSFILE",
];

/// Names of a shell's own that only look like credentials.
const HARMLESS_NAMES: [&str; 2] = ["PWD", "OLDPWD"];

/// Parts that only look like credentials: they are taken out before a name is judged.
const HARMLESS_PARTS: [&str; 4] = ["KEYBOARD", "KEYMAP", "TOKENIZERS", "TOKENIZER"];

/// The environment of a command, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    /// What the command gets.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Names withheld, sorted.
    pub(crate) dropped: Vec<OsString>,
}

/// The environment of a confined command.
///
/// `has_scratch` makes /tmp the place for temporary files, unless TMPDIR already names one below a
/// writable root.
pub(crate) fn confined(
    request: &EnvironmentRequest,
    has_scratch: bool,
    writable: &[&Path],
) -> Environment {
    let mut result = Environment::default();
    for (name, value) in &request.inherited {
        let passed = request.pass.contains(name);
        if runs_code(name)
            || request.drop.contains(name)
            || ((is_credential(name) || holds_password(value)) && !passed)
        {
            result.dropped.push(name.clone());
        } else if passed || !request.clear {
            result.variables.push((name.clone(), value.clone()));
        }
    }
    if has_scratch {
        let mut places = result.variables.iter().filter(|(name, _)| name == "TMPDIR");
        let kept = places.any(|(_, place)| takes_files(Path::new(place), writable));
        if !kept {
            set(&mut result.variables, "TMPDIR".into(), "/tmp".into());
        }
    }
    for (name, value) in &request.set {
        set(&mut result.variables, name.clone(), value.clone());
    }
    result.dropped.sort();
    result
}

/// Whether the caller may make files in a place, and its command too.
fn takes_files(place: &Path, writable: &[&Path]) -> bool {
    let Ok(place) = place.canonicalize() else { return false };
    let may_write = AccessFlags::W_OK | AccessFlags::X_OK;
    writable.iter().any(|root| place.starts_with(root))
        && place.is_dir()
        && access(&place, may_write).is_ok()
}

/// The environment of an unconfined command: the caller's, untouched but for what is asked.
pub(crate) fn unconfined(request: &EnvironmentRequest) -> Environment {
    let (dropped, kept): (Vec<_>, Vec<_>) =
        request.inherited.iter().cloned().partition(|(name, _)| request.drop.contains(name));
    let mut variables: Vec<_> = kept
        .into_iter()
        .filter(|(name, _)| !request.clear || request.pass.contains(name))
        .collect();
    for (name, value) in &request.set {
        set(&mut variables, name.clone(), value.clone());
    }
    Environment { variables, dropped: dropped.into_iter().map(|(name, _)| name).collect() }
}

fn set(variables: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    variables.retain(|(existing, _)| *existing != name);
    variables.push((name, value));
}

/// Whether a shell would run the value: `BASH_ENV` and `ENV` name files to source, exported
/// functions are code.
fn runs_code(name: &OsStr) -> bool {
    name == "BASH_ENV" || name == "ENV" || name.as_bytes().starts_with(b"BASH_FUNC_")
}

/// Whether the name, whatever its case, is that of a credential.
fn is_credential(name: &OsStr) -> bool {
    let mut name = name.to_string_lossy().to_uppercase();
    if CREDENTIAL_NAMES.contains(&name.as_str()) {
        return true;
    }
    if HARMLESS_NAMES.contains(&name.as_str()) {
        return false;
    }
    if name.split('_').any(|word| CREDENTIAL_WORDS.contains(&word)) {
        return true;
    }
    for harmless in HARMLESS_PARTS {
        name = name.replace(harmless, "");
    }
    CREDENTIAL_PARTS.iter().any(|part| name.contains(part))
}

/// Whether the value is an address with a password in it, as a proxy's may be:
/// `scheme://user:password@host`.
fn holds_password(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(inherited: &[(&str, &str)]) -> EnvironmentRequest {
        EnvironmentRequest {
            inherited: inherited.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect(),
            ..EnvironmentRequest::default()
        }
    }

    #[test]
    fn credentials_are_told_by_name_in_any_case() {
        for name in [
            "MY_KEY",
            "aws_secret_access_key",
            "GithubToken",
            "PGPASSWORD",
            "DATABASE_URL",
            "MYSQL_PWD",
            "SSHPASS",
            "GH_PAT",
            "NPM_CONFIG__AUTH",
            "DOCKER_AUTH_CONFIG",
            "SENTRY_DSN",
            "SLACK_WEBHOOK_URL",
            "BORG_PASSCOMMAND",
        ] {
            assert!(is_credential(OsStr::new(name)), "{name}");
        }
        for name in [
            "PATH",
            "KEYBOARD_LAYOUT",
            "KEYMAP",
            "TOKENIZERS_PARALLELISM",
            "HOME",
            "PWD",
            "OLDPWD",
            "GIT_AUTHOR_NAME",
            "COMPASS",
        ] {
            assert!(!is_credential(OsStr::new(name)), "{name}");
        }
        assert!(is_credential(OsStr::new("KEYBOARD_SECRET")), "a harmless word hides no other");
    }

    #[test]
    fn an_address_with_a_password_is_withheld_whatever_its_name() {
        let request = request(&[
            ("http_proxy", "http://u:p@proxy:3128/"),
            ("HOMEPAGE", "https://example.org/a:b@c"),
            ("REPO", "ssh://git@example.org/x"),
        ]);
        assert_eq!(confined(&request, false, &[]).dropped, ["http_proxy"]);
    }

    #[test]
    fn a_passed_name_stays_and_code_never_does() {
        let mut request =
            request(&[("API_TOKEN", "t"), ("BASH_ENV", "/x"), ("BASH_FUNC_f%%", "() { :; }")]);
        request.pass = vec!["API_TOKEN".into(), "BASH_ENV".into()];
        let environment = confined(&request, false, &[]);
        assert_eq!(environment.variables, [("API_TOKEN".into(), "t".into())]);
        assert_eq!(environment.dropped, ["BASH_ENV", "BASH_FUNC_f%%"]);
    }

    #[test]
    fn temporary_files_go_to_the_scratch_unless_tmpdir_is_writable() {
        let directory = std::env::temp_dir();
        let directory = directory.canonicalize().expect("a temporary directory");
        let request = request(&[("TMPDIR", directory.to_str().expect("utf-8"))]);
        let inside = confined(&request, true, &[&directory]);
        assert_eq!(inside.variables, request.inherited);
        let outside = confined(&request, true, &[]);
        assert_eq!(outside.variables, [("TMPDIR".into(), "/tmp".into())]);
    }

    #[test]
    fn what_is_set_wins_over_everything() {
        let mut request = request(&[("A", "1")]);
        request.clear = true;
        request.set = vec![("MY_TOKEN".into(), "x".into())];
        assert_eq!(confined(&request, false, &[]).variables, [("MY_TOKEN".into(), "x".into())]);
    }
}
