//! The environment, handed in by `main`, and the `SABIR_` names in it.
//!
//! A setting `a.b` is `SABIR_A_B`; a few have a shorter name too. An empty value counts as not set, since that
//! is how scripts and compose files spell "nothing". A `SABIR_` name that we do not know is worth a warning and
//! no more: it may belong to a newer version.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use super::nearest::nearest;
use super::raw::Raw;
use super::sections::Config;
use super::setting::Setting;
use super::settings::SETTINGS;

pub const FILE: &str = "SABIR_CONFIG";
pub const AGENT: &str = "SABIR_AGENT";

/// Every variable that is set to something.
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    pub fn new<N: Into<OsString>, V: Into<OsString>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut known = BTreeMap::new();
        for (name, value) in variables {
            let value = value.into();
            // No name of ours is anything but ASCII.
            if let Ok(name) = name.into().into_string()
                && !value.is_empty()
            {
                known.insert(name, value);
            }
        }
        Environment(known)
    }

    /// `Err` says that the value is no text.
    pub fn text(&self, name: &str) -> Option<Result<&str, String>> {
        let value = self.0.get(name)?;
        Some(value.to_str().ok_or_else(|| "is not UTF-8 text".to_owned()))
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.get(name).map(PathBuf::from)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// A setting that the environment names.
pub struct Named {
    pub setting: &'static Setting<Config>,
    pub variable: String,
    pub value: Result<Raw, String>,
}

/// All settings that `SABIR_` names set, and warnings on names that set nothing.
pub fn read(environment: &Environment) -> (Vec<Named>, Vec<String>) {
    let mut named = Vec::new();
    let mut warnings = Vec::new();
    for setting in SETTINGS {
        let mut names = vec![setting.variable()];
        names.extend(setting.short.map(str::to_owned));
        names.retain(|name| environment.0.contains_key(name));
        let Some(variable) = names.first().cloned() else {
            continue;
        };
        for ignored in &names[1..] {
            warnings.push(format!("{ignored} is ignored, since {variable} is set"));
        }
        let value = environment.text(&variable).expect("the name was just found");
        let value = value.map(|text| Raw::Word(text.to_owned()));
        named.push(Named { setting, variable, value });
    }
    warnings.extend(unknown(environment));
    (named, warnings)
}

fn unknown(environment: &Environment) -> Vec<String> {
    // A Sabir that is started by a program of another one has that one's mark.
    let mut known = vec![FILE.to_owned(), AGENT.to_owned(), sabir_agents::process::MARK.to_owned()];
    for setting in SETTINGS {
        known.push(setting.variable());
        known.extend(setting.short.map(str::to_owned));
    }
    let ours = environment.names().filter(|name| name.starts_with(PREFIX));
    let strange = ours.filter(|name| !known.iter().any(|known| known == name) && !is_service_link(environment, name));
    strange.map(|name| unknown_name(name, &known)).collect()
}

fn unknown_name(name: &str, known: &[String]) -> String {
    // All names share the prefix; with it everything looks near.
    let bare = |name: &'_ str| name.strip_prefix(PREFIX).map(str::to_owned).unwrap_or_default();
    let known: Vec<String> = known.iter().map(|name| bare(name)).collect();
    match nearest(&bare(name), known.iter().map(String::as_str)) {
        Some(near) => format!("unknown environment name {name}; did you mean {PREFIX}{near}?"),
        None => format!("unknown environment name {name}; a setting a.b is {PREFIX}A_B"),
    }
}

const PREFIX: &str = "SABIR_";

/// Kubernetes sets such names in every pod beside a service called `sabir`.
fn is_service_link(environment: &Environment, name: &str) -> bool {
    let address = matches!(environment.text(name), Some(Ok(value)) if value.starts_with("tcp://"));
    name.starts_with("SABIR_SERVICE_") || name.starts_with("SABIR_PORT_") || (name == "SABIR_PORT" && address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_set_nothing_are_warned_of() {
        for (variables, expected) in [
            (vec![("SABIR_LISTN", "1")], "unknown environment name SABIR_LISTN; did you mean SABIR_LISTEN?"),
            (vec![("SABIR_BANANA", "1")], "unknown environment name SABIR_BANANA; a setting a.b is SABIR_A_B"),
            (
                vec![("SABIR_LISTEN", "1"), ("SABIR_SERVER_LISTEN", "2")],
                "SABIR_LISTEN is ignored, since SABIR_SERVER_LISTEN is set",
            ),
            (vec![("SABIR_LISTEN", "1"), ("SABIR_SERVER_LISTEN", "")], ""),
            (vec![("SABIR_PORT", "tcp://10.0.0.1:80"), ("SABIR_SERVICE_HOST", "10.0.0.1")], ""),
            (vec![("SABIR_CONFIG", "x"), ("SABIR_RUN", "1"), ("SABIR_AGENT", "demo"), ("PATH", "/bin")], ""),
        ] {
            let (_, warnings) = read(&Environment::new(variables.clone()));
            assert_eq!(warnings.join("\n"), expected, "{variables:?}");
        }
    }

    #[test]
    fn no_two_settings_share_a_name() {
        let mut names = vec![FILE.to_owned(), AGENT.to_owned()];
        for setting in SETTINGS {
            names.push(setting.variable());
            names.extend(setting.short.map(str::to_owned));
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
