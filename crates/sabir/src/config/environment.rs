//! The environment, handed in by `main`, with the `SABIR_` names in it; and the flags of the command line.
//!
//! A setting `a.b` is `SABIR_A_B`; a few have a shorter name too. An empty value counts as not set, since that
//! is how scripts and compose files spell "nothing". A `SABIR_` name that we do not know is worth a warning and
//! no more: it may belong to a newer version.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::CliOptions;

use super::raw::Raw;
use super::sections::Config;
use super::settings::{SETTINGS, Setting};
use super::upstream_credentials;
use super::values::nearest;

pub const FILE: &str = "SABIR_CONFIG";
pub const AGENT: &str = "SABIR_AGENT";
/// For commands that ask a server; `cli` reads it.
const TOKEN: &str = "SABIR_TOKEN";
/// The bearer token for the agent of `sabir proxy` and `sabir import-card`.
pub const UPSTREAM_TOKEN: &str = "SABIR_UPSTREAM_TOKEN";
const OWN_NAMES: [&str; 4] = [FILE, AGENT, TOKEN, UPSTREAM_TOKEN];
const PREFIX: &str = "SABIR_";

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
}

/// A setting that the environment names.
pub struct VariableSetting {
    pub setting: &'static Setting<Config>,
    pub variable: String,
    pub value: Result<Raw, String>,
}

/// All settings that `SABIR_` names set, and warnings on names that another one covers.
pub fn read_variables(environment: &Environment) -> (Vec<VariableSetting>, Vec<String>) {
    let mut set = Vec::new();
    let mut warnings = Vec::new();
    for setting in SETTINGS.iter() {
        let mut names = setting.variables().filter(|name| environment.0.contains_key(name));
        let Some(variable) = names.next() else { continue };
        warnings.extend(names.map(|ignored| format!("{ignored} is ignored, since {variable} is set")));
        let value = environment.text(&variable).expect("the name was just found").map(Raw::untyped);
        set.push(VariableSetting { setting, variable, value });
    }
    (set, warnings)
}

/// Warnings on names that set nothing. Agents may name some for their own secrets.
pub fn unknown_names(environment: &Environment, config: &Config) -> Vec<String> {
    // A Sabir that is started by a program of another one has that one's mark.
    let mut known: Vec<String> =
        OWN_NAMES.iter().copied().chain([sabir_agents::process::MARK]).map(str::to_owned).collect();
    known.extend(SETTINGS.iter().flat_map(Setting::variables));
    known.extend(config.all_agents().flat_map(upstream_credentials::variables).map(str::to_owned));
    let ours = environment.0.keys().filter(|name| name.starts_with(PREFIX));
    let unknown = ours.filter(|name| !known.contains(name) && !is_service_link(environment, name));
    let warning = |name: &String| {
        // All names share the prefix; with it everything looks near.
        let bare = known.iter().filter_map(|name| name.strip_prefix(PREFIX));
        match nearest(&name[PREFIX.len()..], bare) {
            Some(near) => format!("unknown environment name {name}; did you mean {PREFIX}{near}?"),
            None => format!("unknown environment name {name}; a setting a.b is {PREFIX}A_B"),
        }
    };
    unknown.map(warning).collect()
}

/// Kubernetes sets such names in every pod beside a service called `sabir`.
fn is_service_link(environment: &Environment, name: &str) -> bool {
    let is_address = matches!(environment.text(name), Some(Ok(value)) if value.starts_with("tcp://"));
    name.starts_with("SABIR_SERVICE_") || name.starts_with("SABIR_PORT_") || (name == "SABIR_PORT" && is_address)
}

/// Key, flag and value of the flags that set something. `--agent` is not among them: it replaces the list of agents.
pub fn read_flags(options: &CliOptions) -> Vec<(&'static str, &'static str, Raw)> {
    let mut given = Vec::new();
    let listen = options.listen.iter().map(Raw::untyped);
    let port = options.port.map(|port| Raw::Integer(port.into()));
    let flag = match (options.listen.is_empty(), options.port) {
        (true, None) => None,
        (true, Some(_)) => Some("--port"),
        (false, None) => Some("--listen"),
        (false, Some(_)) => Some("--listen, --port"),
    };
    given.extend(flag.map(|flag| ("server.listen", flag, Raw::List(listen.chain(port).collect()))));
    if options.dev_tls {
        given.push(("server.dev_tls", "--dev-tls", Raw::Boolean(true)));
    }
    if options.allow_open {
        given.push(("server.allow_open", "--allow-open", Raw::Boolean(true)));
    }
    for (key, flag, value) in [
        ("server.public_url", "--public-url", &options.public_url),
        ("store.url", "--store", &options.store),
        ("log.level", "--log-level", &options.log_level),
        ("log.format", "--log-format", &options.log_format),
    ] {
        given.extend(value.as_ref().map(|text| (key, flag, Raw::untyped(text))));
    }
    given
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::{Cli, CliCommand};
    use crate::config::agent_settings::AGENT_SETTINGS;
    use crate::config::{AgentConfig, AgentKind};

    #[test]
    fn names_that_set_nothing_are_warned_of() {
        let mut agent = AgentConfig::new("a", AgentKind::A2a);
        agent.remote.upstream.token.variable = Some("SABIR_OF_AN_AGENT".to_owned());
        let config = Config { agents: vec![agent], ..Config::default() };
        for (variables, expected) in [
            (vec![("SABIR_LISTN", "1")], "unknown environment name SABIR_LISTN; did you mean SABIR_LISTEN?"),
            (vec![("SABIR_BANANA", "1")], "unknown environment name SABIR_BANANA; a setting a.b is SABIR_A_B"),
            (
                vec![("SABIR_LISTEN", "1"), ("SABIR_SERVER_LISTEN", "2")],
                "SABIR_LISTEN is ignored, since SABIR_SERVER_LISTEN is set",
            ),
            (vec![("SABIR_LISTEN", "1"), ("SABIR_SERVER_LISTEN", "")], ""),
            (vec![("SABIR_PORT", "tcp://10.0.0.1:80"), ("SABIR_SERVICE_HOST", "10.0.0.1")], ""),
            (vec![("SABIR_CONFIG", "x"), ("SABIR_RUN", "1"), ("SABIR_AGENT", "demo"), ("SABIR_TOKEN", "t")], ""),
            (vec![("SABIR_UPSTREAM_TOKEN", "t"), ("SABIR_OF_AN_AGENT", "t")], ""),
        ] {
            let environment = Environment::new(variables.clone());
            let (_, mut warnings) = read_variables(&environment);
            warnings.extend(unknown_names(&environment, &config));
            assert_eq!(warnings.join("\n"), expected, "{variables:?}");
        }
    }

    #[test]
    fn no_two_settings_share_a_name() {
        let mut names = OWN_NAMES.map(str::to_owned).to_vec();
        names.extend(SETTINGS.iter().flat_map(Setting::variables));
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_flag_of_the_table_exists_and_sets_its_key() {
        let words =
            "sabir serve --listen :1 --public-url u --store s --allow-open --dev-tls --log-level l --log-format f";
        let CliCommand::Serve(options) = Cli::parse_from(words.split(' ')).command else {
            panic!("serve was asked for");
        };
        let mut given: Vec<_> = read_flags(&options).into_iter().map(|(key, flag, _)| (key, flag)).collect();
        let with_flag = SETTINGS.iter().filter_map(|setting| Some((setting.key, setting.flag?)));
        let mut expected: Vec<_> = with_flag.collect();
        given.sort();
        expected.sort();
        assert_eq!(given, expected);

        let command = Cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        let flags: Vec<String> =
            serve.get_arguments().filter_map(|flag| Some(format!("--{}", flag.get_long()?))).collect();
        for flag in AGENT_SETTINGS.iter().filter_map(|setting| setting.flag) {
            assert!(flags.iter().any(|known| known == flag), "{flag}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_port_is_an_address_on_loopback() {
        let options = CliOptions { listen: vec!["[::1]:1".to_owned()], port: Some(7870), ..CliOptions::default() };
        let list = Raw::List(vec![Raw::untyped("[::1]:1"), Raw::Integer(7870)]);
        assert_eq!(read_flags(&options), [("server.listen", "--listen, --port", list)]);
    }
}
