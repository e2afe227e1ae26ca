//! Secrets that a program was given in its environment, hidden in what is told and logged about the program.
//!
//! A program that fails may print the key that it failed with. Only what we passed on ourselves can be recognised, and
//! only as it was passed on: a program that prints a secret in another form, such as base64, still shows it.

use std::ffi::{OsStr, OsString};

/// What stands in the place of a secret.
const MASK: &str = "***";

/// Shorter values are no secrets, and would be found in any text.
const SHORTEST: usize = 8;

/// Parts of names whose values are secrets.
const NAMES: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "HEADERS"];

#[derive(Debug, Clone, Default)]
pub(super) struct Secrets {
    /// The longest first: a secret may contain another.
    values: Vec<String>,
}

impl Secrets {
    /// The secrets in a program's environment: values whose names say so, and passwords in addresses.
    pub fn of(environment: &[(OsString, OsString)]) -> Self {
        let mut values = Vec::new();
        for (name, value) in environment {
            // What is no text cannot be found in text.
            let Some(value) = value.to_str() else { continue };
            if is_secret(name) {
                // Programs print a key of several lines line by line.
                values.extend(value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST).map(str::to_owned));
            } else {
                values.extend(password(value).map(str::to_owned));
            }
        }
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self { values }
    }

    /// The text without the secrets. `text` may be the end of a longer one, so it may begin with the rest of a secret.
    pub fn mask(&self, text: &str) -> String {
        let mut masked = self.mask_start(text);
        for value in &self.values {
            if masked.contains(value.as_str()) {
                masked = masked.replace(value.as_str(), MASK);
            }
        }
        masked
    }

    fn mask_start(&self, text: &str) -> String {
        let rests = self.values.iter().flat_map(|value| {
            let starts = value.char_indices().map(|(at, _)| at).skip(1);
            starts.map(|at| &value[at..]).take_while(|rest| rest.len() >= SHORTEST)
        });
        let longest = rests.filter(|rest| text.starts_with(rest)).map(str::len).max();
        longest.map_or_else(|| text.to_owned(), |length| format!("{MASK}{}", &text[length..]))
    }
}

fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// `https://user:password@proxy` has one.
fn password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (password.len() >= 4).then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(environment: &[(&str, &str)], text: &str, expected: &str) {
        let environment: Vec<(OsString, OsString)> =
            environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(Secrets::of(&environment).mask(text), expected, "{environment:?}");
    }

    #[test]
    fn values_of_secret_names_are_hidden() {
        let key = ("OPENAI_API_KEY", "sk-0123456789");
        for (environment, text, expected) in [
            (&[key][..], "401: the key sk-0123456789 is wrong (sk-0123456789)", "401: the key *** is wrong (***)"),
            (&[key], "nothing here", "nothing here"),
            (&[("my_token", "abcdefgh")], "abcdefgh", "***"),
            // Too short to be one, and no secret's name.
            (
                &[("A_KEY", "true"), ("OPENAI_MODEL", "gpt-large-9")],
                "true: no model gpt-large-9",
                "true: no model gpt-large-9",
            ),
            (&[("A_KEY", "long-secret"), ("B_KEY", "long-secret-2")], "long-secret-2 long-secret", "*** ***"),
            (&[("SSH_KEY", "-----BEGIN-----\nabcdefghijk\nab\n")], "read abcdefghijk, ab", "read ***, ab"),
            (
                &[("HTTPS_PROXY", "http://me:hunter2@proxy:80/")],
                "cannot reach http://me:hunter2@proxy",
                "cannot reach http://me:***@proxy",
            ),
            (&[("HTTPS_PROXY", "http://proxy:80/")], "cannot reach http://proxy:80", "cannot reach http://proxy:80"),
        ] {
            check(environment, text, expected);
        }
    }

    #[test]
    fn the_rest_of_a_secret_that_was_cut_is_hidden_too() {
        check(&[("A_KEY", "sk-0123456789")], "-0123456789 is wrong", "*** is wrong");
        check(&[("A_KEY", "sk-0123456789")], "89 is wrong", "89 is wrong");
    }
}
