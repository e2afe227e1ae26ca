//! Where each value came from, and how messages name that place.
//!
//! `Configured` is a thing under configuration together with the origin of each of its values: the whole
//! configuration, or one table of a list. The values stand in the order of the table of settings, which is the order of
//! the documentation; `sabir config` shows them.

use std::fmt;

use serde_json::{Value, json};

use super::file::TableKeys;
use super::raw::{Raw, RawEntry, RawTable};
use super::settings::Setting;

#[derive(Debug, Clone, PartialEq)]
pub enum ValueOrigin {
    Default,
    File {
        name: String,
        line: usize,
    },
    /// A `SABIR_` name.
    Variable(String),
    /// One or more environment names of other A2A servers.
    EnvAlias(String),
    Flag(&'static str),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueOrigin::Default => out.write_str("default"),
            ValueOrigin::File { name, line } => write!(out, "{name}:{line}"),
            ValueOrigin::Variable(name) | ValueOrigin::EnvAlias(name) => out.write_str(name),
            ValueOrigin::Flag(name) => out.write_str(name),
        }
    }
}

/// One line on something that is wrong, and the line of the file that it is in.
#[derive(Debug)]
pub struct Problem {
    /// What is not in the file comes after all that is.
    pub line: usize,
    pub text: String,
}

impl Problem {
    /// On a value that does not fit; `words` follow the name of the setting.
    pub fn of(origin: &ValueOrigin, key: &str, words: &str) -> Self {
        match origin {
            ValueOrigin::File { name, line } => Problem::in_file(name, *line, &format!("{key} {words}")),
            ValueOrigin::Default => Problem::outside(format!("{key} {words}")),
            ValueOrigin::Variable(_) | ValueOrigin::EnvAlias(_) | ValueOrigin::Flag(_) => {
                Problem::outside(format!("{origin} {words}"))
            }
        }
    }

    pub fn in_file(name: &str, line: usize, words: &str) -> Self {
        Problem { line, text: format!("{name}:{line}: {words}") }
    }

    pub fn outside(text: String) -> Self {
        Problem { line: usize::MAX, text }
    }

    /// For values that may be wrong without harm.
    pub fn as_warning(&self) -> String {
        format!("{}; it is ignored", self.text)
    }
}

/// Everything that is wrong with the configuration, one line each.
#[derive(Debug)]
pub struct Problems(pub Vec<String>);

impl Problems {
    /// In the order of the file. No problem is fine.
    pub fn check(mut problems: Vec<Problem>) -> Result<(), Problems> {
        problems.sort_by_key(|problem| problem.line);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Problems(problems.into_iter().map(|problem| problem.text).collect())),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Problems {}

/// A value in force.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingValue {
    pub key: String,
    pub value: Value,
    pub origin: ValueOrigin,
}

pub struct Configured<T> {
    pub subject: T,
    pub values: Vec<SettingValue>,
}

impl<T> Configured<T> {
    /// Begins with the defaults of the table.
    pub fn new(subject: T, settings: &[Setting<T>]) -> Self {
        let mut configured = Configured { subject, values: Vec::new() };
        for setting in settings {
            let value = match setting.default {
                "" => json!(null),
                text => {
                    let read = setting.read(&mut configured.subject, &Raw::untyped(text));
                    read.expect("the defaults in the table fit")
                }
            };
            configured.values.push(SettingValue { key: setting.key.to_owned(), value, origin: ValueOrigin::Default });
        }
        configured
    }

    pub fn set(&mut self, setting: &Setting<T>, raw: &Raw, origin: ValueOrigin) -> Result<(), Problem> {
        let read = setting.read(&mut self.subject, raw);
        let value = read.map_err(|words| Problem::of(&origin, setting.key, &words))?;
        let current = self.value_mut(setting.key);
        (current.value, current.origin) = (value, origin);
        Ok(())
    }

    /// Sets what one key of the file says. `prefix` stands before its name in the table of settings.
    pub fn set_entry(
        &mut self,
        settings: &[Setting<T>],
        prefix: &str,
        place: &TableKeys,
        file: &str,
        entry: &RawEntry,
    ) -> Result<(), Problem> {
        let key = format!("{prefix}{}", entry.key);
        match settings.iter().find(|setting| setting.key == key) {
            Some(setting) => {
                self.set(setting, &entry.value, ValueOrigin::File { name: file.to_owned(), line: entry.line })
            }
            None => Err(Problem::in_file(file, entry.line, &place.unknown(&entry.key, &entry.value))),
        }
    }

    /// What one table of a list says. Lists below it, whose keys are `below`, are left to the caller.
    pub fn read_table(
        subject: T,
        settings: &[Setting<T>],
        path: &str,
        below: &[&str],
        file: &str,
        table: &RawTable,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let place = TableKeys::list(path, settings, below);
        let mut configured = Configured::new(subject, settings);
        for entry in table.entries.iter().filter(|entry| !below.contains(&entry.key.as_str())) {
            problems.extend(configured.set_entry(settings, "", &place, file, entry).err());
        }
        for setting in settings.iter().filter(|setting| setting.is_required) {
            if !table.entries.iter().any(|entry| entry.key == setting.key) {
                let words = format!("this {} has no {}", place.header, setting.key);
                problems.push(Problem::in_file(file, table.line, &words));
            }
        }
        configured
    }

    pub fn value(&self, key: &str) -> &SettingValue {
        self.values.iter().find(|value| value.key == key).expect("every setting has a value")
    }

    pub fn value_mut(&mut self, key: &str) -> &mut SettingValue {
        self.values.iter_mut().find(|value| value.key == key).expect("every setting has a value")
    }

    pub fn is_default(&self, key: &str) -> bool {
        self.value(key).origin == ValueOrigin::Default
    }

    /// The line of the file that a value came from, if it fits and came from there.
    pub fn line(&self, key: &str) -> Option<usize> {
        match self.value(key).origin {
            ValueOrigin::File { line, .. } => Some(line),
            _ => None,
        }
    }

    /// Takes in the values of a part, with its name before their keys, and hands out the part.
    pub fn absorb<P>(&mut self, name: &str, part: Configured<P>) -> P {
        for SettingValue { key, value, origin } in part.values {
            self.values.push(SettingValue { key: format!("{name}.{key}"), value, origin });
        }
        part.subject
    }
}

/// A problem if the file gives two of a list the same `key`.
pub fn repeated<T>(
    file: &str,
    what: &str,
    key: &str,
    earlier: &[Configured<T>],
    new: &Configured<T>,
) -> Option<Problem> {
    // A value that did not fit is the one that everybody begins with.
    let line = new.line(key)?;
    let value = &new.value(key).value;
    let is_same = |old: &Configured<T>| old.line(key).is_some() && old.value(key).value == *value;
    let words = format!("there are two {what} with the {key} {value}");
    earlier.iter().any(is_same).then(|| Problem::in_file(file, line, &words))
}
