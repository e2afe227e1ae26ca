//! Masks the secrets of a program's environment in everything that is reported and logged about the program.
//!
//! A program that fails may print the key that it failed with. Only secrets that Sabir passed on are recognised, and only in
//! the same form: a program that prints a secret in base64 still shows it. Files and patches are not masked: a changed patch
//! could not be applied.

use std::ffi::{OsStr, OsString};
use std::ops::Range;

use sabir_model::{Content, Json, Part};

use crate::update::Update;

/// The text that replaces a secret.
const MASK: &str = "***";

/// Shorter values are not treated as secrets: they would be found in any text.
const SHORTEST: usize = 8;

/// Parts of names whose values are secrets.
const NAMES: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "HEADERS"];

#[derive(Debug, Clone, Default)]
pub(super) struct Secrets {
    values: Vec<String>,
}

impl Secrets {
    /// The secrets in a program's environment: values of variables with secret names, and passwords in URLs.
    pub fn of(environment: &[(OsString, OsString)]) -> Self {
        let mut values = Vec::new();
        for (name, value) in environment {
            // A value that is not UTF-8 cannot be found in text.
            let Some(value) = value.to_str() else { continue };
            if is_limit(name, value) {
                continue;
            }
            if is_secret(name) {
                // Programs print a key of several lines line by line.
                values.extend(value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST).map(str::to_owned));
            } else {
                values.extend(password(value).map(str::to_owned));
            }
        }
        // A short number would be found in any text.
        values.retain(|value| value.len() >= SHORTEST || !is_number(value));
        // In JSON some values are escaped.
        let escaped = values.iter().filter_map(|value| {
            let quoted = serde_json::to_string(value).ok()?;
            let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
            (inner != value).then(|| inner.to_owned())
        });
        values.extend(escaped.collect::<Vec<String>>());
        values.sort();
        values.dedup();
        Self { values }
    }

    /// Masks the secrets. `text` may be the end of a longer one, so it may begin with the rest of a secret.
    pub fn mask(&self, text: &str) -> String {
        let rest = self.rest_at_start(text);
        self.mask_places(text, rest.map(|length| 0..length))
    }

    /// Like `mask`, for a text that cannot begin with the rest of a secret.
    fn mask_whole(&self, text: &str) -> String {
        self.mask_places(text, None)
    }

    /// Secrets may overlap; then all of them are masked completely.
    fn mask_places(&self, text: &str, first: Option<Range<usize>>) -> String {
        let mut places: Vec<Range<usize>> = self.places(text).chain(first).collect();
        places.sort_by_key(|place| place.start);
        let (mut masked, mut done) = (String::new(), 0);
        for place in places {
            if place.start >= done {
                masked.push_str(&text[done..place.start]);
                masked.push_str(MASK);
            }
            done = done.max(place.end);
        }
        masked + &text[done..]
    }

    fn places(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        self.values
            .iter()
            .flat_map(move |value| text.match_indices(value.as_str()).map(|(at, found)| at..at + found.len()))
    }

    /// Masks the secrets in JSON.
    fn mask_json(&self, json: &Json) -> Json {
        let masked = self.mask(json.as_str());
        if masked == json.as_str() {
            return json.clone();
        }
        // A secret may hold quotes, so the masked text may be invalid JSON.
        let nothing = || Json::of(MASK).expect("a text is JSON");
        Json::parse(masked).unwrap_or_else(|_| nothing())
    }

    /// Masks the secrets in the parts of a question.
    pub fn mask_parts(&self, mut parts: Vec<Part>) -> Vec<Part> {
        for part in &mut parts {
            match &mut part.content {
                Content::Text(text) => *text = self.mask(text),
                Content::Data(data) => *data = self.mask_json(data),
                Content::Bytes(_) | Content::Url(_) => {}
            }
        }
        parts
    }

    /// How much of a text can be reported while more may follow: no secret, and no possible beginning of one, crosses this
    /// position.
    fn settled(&self, text: &str) -> usize {
        let begins = |value: &String| {
            let ends = value.char_indices().map(|(at, _)| at).skip(1);
            ends.filter(|end| text.ends_with(&value[..*end])).max()
        };
        let begun = self.values.iter().filter_map(begins).max().unwrap_or(0);
        let mut settled = text.len() - begun;
        if begun > 0 {
            let mut places: Vec<Range<usize>> = self.places(text).collect();
            places.sort_by_key(|place| std::cmp::Reverse(place.end));
            for place in places.iter().filter(|place| place.start < place.end) {
                if place.contains(&settled) {
                    settled = place.start;
                }
            }
        }
        settled
    }

    /// The length of the rest of a secret at the start of a text.
    fn rest_at_start(&self, text: &str) -> Option<usize> {
        let rests = self.values.iter().flat_map(|value| {
            let starts = value.char_indices().map(|(at, _)| at).skip(1);
            starts.map(|at| &value[at..]).take_while(|rest| rest.len() >= SHORTEST)
        });
        rests.filter(|rest| text.starts_with(rest)).map(str::len).max()
    }
}

/// Masks secrets in all updates of a turn, even if a secret comes in pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct Masking {
    pub secrets: Secrets,
    /// The end of the answer so far, unmasked: it may be the beginning of a secret.
    held: String,
}

impl Masking {
    pub fn new(secrets: Secrets) -> Self {
        Self { secrets, held: String::new() }
    }

    /// The masked updates, held text first.
    pub fn hide(&mut self, update: Update) -> Vec<Update> {
        let secrets = &self.secrets;
        let mask = |text: String| secrets.mask(&text);
        let update = match update {
            Update::Text(text) => {
                let mut text = std::mem::take(&mut self.held) + &text;
                self.held = text.split_off(secrets.settled(&text));
                return vec![Update::Text(secrets.mask_whole(&text))];
            }
            // These updates do not interrupt the text, so a secret may continue after them.
            update @ (Update::Thought(_) | Update::Init { .. } | Update::Usage(_)) => return vec![update],
            Update::ToolUse { id, name, input } => {
                Update::ToolUse { id, name: mask(name), input: input.map(|input| secrets.mask_json(&input)) }
            }
            Update::ToolResult { id, name, output, is_error } => {
                Update::ToolResult { id, name: name.map(mask), output: mask(output), is_error }
            }
            Update::Progress(text) => Update::Progress(mask(text)),
            Update::NotUnderstood(line) => Update::NotUnderstood(mask(line)),
            Update::Done { summary } => Update::Done { summary: summary.map(mask) },
            Update::Failed(reason) => Update::Failed(mask(reason)),
            update @ (Update::File(_) | Update::SessionGone | Update::Interrupted) => update,
        };
        self.rest().into_iter().chain([update]).collect()
    }

    /// The held text, when no more can follow.
    pub fn rest(&mut self) -> Option<Update> {
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then(|| Update::Text(self.secrets.mask_whole(&held)))
    }
}

fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// `MAX_OUTPUT_TOKENS=128000000` is no secret.
fn is_limit(name: &OsStr, value: &str) -> bool {
    is_number(value) && name.to_string_lossy().to_ascii_uppercase().contains("TOKENS")
}

fn is_number(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit())
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
            // Secrets that overlap, or contain each other.
            (&[("A_KEY", "abcdefgh"), ("B_KEY", "efghijkl")], "abcdefghijkl abcdefgh", "*** ***"),
            (&[("A_KEY", "cdefghij"), ("B_KEY", "abcdefghijkl")], "abcdefghijkl cdefghij", "*** ***"),
            (&[("DB_PASSWORD", "8451962734"), ("MAX_TOKENS", "128000000")], "8451962734 128000000", "*** 128000000"),
            (&[("A_KEY", "")], "nothing", "nothing"),
            (&[("HTTPS_PROXY", "http://proxy:80/")], "cannot reach http://proxy:80", "cannot reach http://proxy:80"),
        ] {
            check(environment, text, expected);
        }
    }

    /// Puts one secret into every kind of update. A new kind has to be added here.
    #[test]
    fn no_update_shows_a_secret() {
        let key = "sk-0123456789";
        let json = |text: &str| Json::parse(format!(r#"{{"a":"{text}"}}"#)).unwrap();
        let all = |text: &str| -> Vec<Update> {
            let text = || text.to_owned();
            vec![
                Update::Text(format!("{} ", text())),
                Update::ToolUse { id: "1".into(), name: text(), input: Some(json(&text())) },
                Update::ToolResult { id: "1".into(), name: Some(text()), output: text(), is_error: false },
                Update::ToolResult { id: "1".into(), name: None, output: text(), is_error: true },
                Update::Progress(text()),
                Update::NotUnderstood(text()),
                Update::Done { summary: Some(text()) },
                Update::Failed(text()),
            ]
        };
        let secrets = Secrets::of(&[("A_KEY".into(), key.into())]);
        let mut masking = Masking::new(secrets.clone());
        let reported: Vec<Update> = all(key).into_iter().flat_map(|update| masking.hide(update)).collect();
        assert_eq!(reported, all(MASK));
        let parts = |text: &str| vec![Part::text(text), Part::from(Content::Data(json(text)))];
        assert_eq!(secrets.mask_parts(parts(key)), parts(MASK));
    }

    /// What is reported for an answer in these pieces.
    fn masked(secrets: &[&str], pieces: &[&str]) -> String {
        let environment: Vec<(OsString, OsString)> =
            secrets.iter().enumerate().map(|(at, secret)| (format!("KEY_{at}").into(), secret.into())).collect();
        let mut masking = Masking::new(Secrets::of(&environment));
        let mut updates: Vec<Update> = Vec::new();
        for piece in pieces {
            updates.extend(masking.hide(Update::Text((*piece).to_owned())));
            // Thoughts are not reported.
            updates.extend(masking.hide(Update::Thought("hm".into())));
        }
        updates.extend(masking.rest());
        let text = |update: Update| match update {
            Update::Text(text) => Some(text),
            _ => None,
        };
        updates.into_iter().filter_map(text).collect()
    }

    #[test]
    fn secrets_that_come_in_pieces_are_hidden() {
        let key = &["sk-0123456789"][..];
        for (secrets, pieces, expected) in [
            (key, &["key sk-012", "3456789 is"][..], "key *** is"),
            (key, &["s", "k", "-", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "!"], "***!"),
            (key, &["sk-0", "12", "345678", "9"], "***"),
            (key, &["sk-0", "12 no"], "sk-012 no"),
            (key, &["ends with sk-0123"], "ends with sk-0123"),
            (key, &["s", "k-0123456789"], "***"),
            (key, &["this", " is", " sk", "ill"], "this is skill"),
            // A word at the end of a secret is no secret itself.
            (&["my-password"], &["the ", "password", " is"], "the password is"),
            // A secret that is the beginning of another one.
            (&["long-secret", "long-secret-2"], &["a long-secret", "-2 b"], "a *** b"),
            (&["long-secret", "long-secret-2"], &["a long-secret", "-3 b"], "a ***-3 b"),
            (&["long-secret", "long-secret-2"], &["a long-secret"], "a ***"),
            (&["abcdefgh", "ghijklmn"], &["abcdefgh", "ijklmn"], "***"),
            (&["abcdefgh", "ghijklmn"], &["abcdefgh", " no"], "*** no"),
            (&["süße-größe"], &["sü", "ße-grö", "ße sü"], "*** sü"),
        ] {
            assert_eq!(masked(secrets, pieces), expected, "{pieces:?}");
        }
    }

    /// The same text is reported however it is cut.
    #[test]
    fn where_a_text_is_cut_makes_no_difference() {
        let secrets = ["abcabcab", "cabxyzabc", "abcabcab-ä", "ä-ä-ä-ä"];
        let text = "ab abcabcab abcabcab-ä-ä-ä-ä cabxyzabcabcab-ab abcabcabxyzabc ä";
        let whole = masked(&secrets, &[text]);
        let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        for first in &cuts {
            for second in cuts.iter().filter(|second| *second >= first) {
                let pieces = [&text[..*first], &text[*first..*second], &text[*second..]];
                assert_eq!(masked(&secrets, &pieces), whole, "{pieces:?}");
            }
        }
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(masked(&secrets, &letters.iter().map(String::as_str).collect::<Vec<_>>()), whole);
    }

    #[test]
    fn json_stays_json() {
        for (secret, json, expected) in [
            ("pass\"word", Json::of(&["pass\"word"]).unwrap(), r#"["***"]"#),
            ("word\",\"b\":\"x", Json::parse(r#"{"a":"word","b":"x"}"#).unwrap(), r#"{"a":"***"}"#),
            ("\":\"long-one", Json::parse(r#"{"a":"long-one"}"#).unwrap(), r#""***""#),
            ("long-one", Json::parse(r#"{"n":1e3}"#).unwrap(), r#"{"n":1e3}"#),
        ] {
            let secrets = Secrets::of(&[("A_KEY".into(), secret.into())]);
            assert_eq!(secrets.mask_json(&json).as_str(), expected);
        }
    }

    #[test]
    fn the_rest_of_a_secret_that_was_cut_is_hidden_too() {
        check(&[("A_KEY", "sk-0123456789")], "-0123456789 is wrong", "*** is wrong");
        check(&[("A_KEY", "sk-0123456789")], "89 is wrong", "89 is wrong");
    }
}
