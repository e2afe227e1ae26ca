//! One row of the tables of settings.
//!
//! A row names the key, its default as a person would write it, where else it can be set, a sentence for the
//! documentation, and how it is read into its field.

use serde_json::Value;

use super::raw::Raw;
use super::sections::Config;

/// `T` is what it is a setting of: the whole `Config`, or one `Agent`.
pub struct Setting<T: 'static> {
    /// `section.key`, or the key alone in a table of a list.
    pub key: &'static str,
    /// As text; empty means that it is not set.
    pub default: &'static str,
    pub need: Need,
    #[allow(dead_code, reason = "the documentation is held against it by a test")]
    pub help: &'static str,
    /// A shorter environment name than the one made from the key.
    pub short: Option<&'static str>,
    #[allow(dead_code, reason = "the documentation is held against it by a test")]
    pub flag: Option<&'static str>,
    read: fn(&mut T, &Raw) -> Result<Value, String>,
}

/// Whether a table may leave a key out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Need {
    Optional,
    Required,
}

impl<T> Setting<T> {
    pub const fn new(
        key: &'static str,
        default: &'static str,
        help: &'static str,
        read: fn(&mut T, &Raw) -> Result<Value, String>,
    ) -> Self {
        Setting { key, default, need: Need::Optional, help, short: None, flag: None, read }
    }

    pub const fn required(self) -> Self {
        Setting { need: Need::Required, ..self }
    }

    /// The key without its section.
    pub fn leaf(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, leaf)| leaf)
    }

    /// Reads `raw` into its field. Answers with the value as `sabir config` shows it, or says what is wrong
    /// in words that follow the name of the setting: `is "soon"; expected a duration ...`.
    pub fn read(&self, target: &mut T, raw: &Raw) -> Result<Value, String> {
        (self.read)(target, raw)
    }

    pub const fn short(self, name: &'static str) -> Self {
        Setting { short: Some(name), ..self }
    }

    pub const fn flag(self, name: &'static str) -> Self {
        Setting { flag: Some(name), ..self }
    }
}

impl Setting<Config> {
    pub fn section(&self) -> &'static str {
        self.key.split_once('.').map_or("", |(section, _)| section)
    }

    /// `server.listen` is `SABIR_SERVER_LISTEN`.
    pub fn variable(&self) -> String {
        format!("SABIR_{}", self.key.replace('.', "_").to_uppercase())
    }
}

/// What the functions of the rows end with: the value into its field, and how it is shown.
pub fn put<V>(field: &mut V, (value, shown): (V, Value)) -> Result<Value, String> {
    *field = value;
    Ok(shown)
}
