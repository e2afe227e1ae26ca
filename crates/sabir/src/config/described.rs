//! A thing that is configured, and where each of its values came from.
//!
//! The whole configuration is one, and so is each table of a list. The values stand in the order of the table of
//! settings, which is the order of the documentation; `sabir config` shows them.

use serde_json::{Value, json};

use super::file::Table;
use super::origin::{Origin, Problem};
use super::raw::Raw;
use super::setting::{Need, Setting};

pub struct Described<T> {
    pub subject: T,
    pub values: Vec<Shown>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub key: String,
    pub value: Value,
    pub origin: Origin,
}

impl<T> Described<T> {
    /// Begins with the defaults of the table.
    pub fn new(subject: T, settings: &[Setting<T>]) -> Self {
        let mut described = Described { subject, values: Vec::new() };
        for setting in settings {
            let value = match setting.default {
                "" => json!(null),
                text => setting
                    .read(&mut described.subject, &Raw::Word(text.to_owned()))
                    .expect("the defaults in the table fit"),
            };
            described.values.push(Shown { key: setting.key.to_owned(), value, origin: Origin::Default });
        }
        described
    }

    /// What one table of a list in this file says.
    pub fn read(
        subject: T,
        settings: &[Setting<T>],
        file: &str,
        table: &Table<T>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut described = Described::new(subject, settings);
        for entry in &table.entries {
            let origin = Origin::File { name: file.to_owned(), line: entry.line };
            problems.extend(described.set(entry.setting, &entry.raw, origin).err());
        }
        let missing = settings.iter().filter(|setting| {
            let is_there = table.entries.iter().any(|entry| entry.setting.key == setting.key);
            setting.need == Need::Required && !is_there
        });
        for setting in missing {
            let words = format!("this {} has no {}", table.header, setting.key);
            problems.push(Problem::in_file(file, table.line, &words));
        }
        described
    }

    pub fn set(&mut self, setting: &Setting<T>, raw: &Raw, origin: Origin) -> Result<(), Problem> {
        let read = setting.read(&mut self.subject, raw);
        let value = read.map_err(|words| Problem::of(&origin, setting.key, &words))?;
        let shown = self.values.iter_mut().find(|shown| shown.key == setting.key);
        let shown = shown.expect("every setting has a value");
        (shown.value, shown.origin) = (value, origin);
        Ok(())
    }

    pub fn shown(&self, key: &str) -> &Shown {
        let found = self.values.iter().find(|shown| shown.key == key);
        found.expect("every setting has a value")
    }

    /// The line of the file that a value came from, if it fits and came from there.
    pub fn line(&self, key: &str) -> Option<usize> {
        match self.shown(key).origin {
            Origin::File { line, .. } => Some(line),
            _ => None,
        }
    }

    /// Takes in the values of a part, with its name before their keys, and hands out the part.
    pub fn absorb<P>(&mut self, name: &str, part: Described<P>) -> P {
        for Shown { key, value, origin } in part.values {
            self.values.push(Shown { key: format!("{name}.{key}"), value, origin });
        }
        part.subject
    }
}

/// A problem if the file gives two of a list the same `key`.
pub fn repeated<T>(file: &str, what: &str, key: &str, earlier: &[Described<T>], new: &Described<T>) -> Option<Problem> {
    // A value that did not fit is the one that everybody begins with.
    let line = new.line(key)?;
    let value = &new.shown(key).value;
    let is_same = |old: &Described<T>| old.line(key).is_some() && old.shown(key).value == *value;
    let words = format!("there are two {what} with the {key} {value}");
    earlier.iter().any(is_same).then(|| Problem::in_file(file, line, &words))
}

/// A name as a part of a key: in quotes where TOML would want them.
pub fn segment(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_bare) { name.to_owned() } else { json!(name).to_string() }
}
