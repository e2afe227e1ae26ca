//! The whole way from file, environment and flags to a `Config`, without touching a disk or a process. Layers and the
//! helpers are here, the rest is below by topic.

mod agents;
mod auth_issuers;
mod credentials;
pub mod documents;
mod environment_aliases;
mod file_text;
mod programs;
mod proxy;
mod push;
mod routes;
mod upstream_credentials;

use std::path::Path;
use std::time::Duration;

use sabir_agents::program::settings::SharedWorkspace;
use sabir_agents::prompt::Approve;

use super::agent_settings::{AGENT_SETTINGS, EXTENSION_SETTINGS, SKILL_SETTINGS};
use super::auth;
use super::auth_issuers::ISSUER_SETTINGS;
use super::env_aliases::{ENV_ALIASES, EnvAlias, Meaning};
use super::environment::Environment;
use super::layers::{LoadedConfig, merge};
use super::origin::{Problems, ValueOrigin};
use super::sections::{AgentConfig, RouteConfig, Routing};
use super::settings::{SETTINGS, Setting};
use super::{Audience, file, show};
use crate::cli::CliOptions;

/// The default, which depends on the machine.
const DATABASE: &str = "/data/sabir.db";

/// What is in force for `key`, or all problems.
fn outcome(options: &CliOptions, variables: &[(&str, &str)], file: &str, key: &str) -> String {
    match load_text(options, variables, file) {
        Err(problems) => problems.to_string(),
        Ok(loaded) => {
            let shown = loaded.values.iter().find(|shown| shown.key == key);
            shown.map_or("nothing".to_owned(), |shown| format!("{} # {}", shown.value, shown.origin))
        }
    }
}

fn load_text(options: &CliOptions, variables: &[(&str, &str)], file: &str) -> Result<LoadedConfig, Problems> {
    let environment = Environment::new(variables.iter().copied());
    merge(options, &environment, file::parse(Path::new("sabir.toml"), file.as_bytes()), DATABASE.as_ref())
}

fn warnings(variables: &[(&str, &str)], file: &str) -> String {
    load_text(&CliOptions::default(), variables, file).unwrap().warnings.join("\n")
}

/// Every program setting that is set to something else than the table's default, with its origin.
fn program_outcome(options: &CliOptions, variables: &[(&str, &str)], file: &str) -> String {
    match load_text(options, variables, file) {
        Err(problems) => problems.to_string(),
        Ok(loaded) => {
            let keys =
                ["mode", "command", "args", "model", "workspace", "workspace_roots", "approve", "approval_pattern"];
            let shown = loaded.values.iter().filter(|shown| shown.key.starts_with("agent."));
            let shown = shown.filter(|shown| keys.contains(&shown.key.rsplit('.').next().unwrap()));
            let shown = shown.filter(|shown| !shown.value.is_null() && shown.value != ".");
            let rows = shown.map(|shown| format!("{} = {} # {}", &shown.key[6..], shown.value, shown.origin));
            rows.collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn each_layer_overrides_the_one_before() {
    let flag = CliOptions { listen: vec![":5".to_owned()], ..CliOptions::default() };
    let none = CliOptions::default();
    let file = "[server]\nlisten = \":2\"\n";
    let alias = ("PORT", "3");
    let variable = ("SABIR_LISTEN", ":4");
    for (options, variables, file, expected) in [
        (&none, &[][..], "", r#"["127.0.0.1:41242"] # default"#),
        (&none, &[], file, r#"["127.0.0.1:2"] # sabir.toml:2"#),
        (&none, &[alias], file, r#"["127.0.0.1:3"] # PORT"#),
        (&none, &[alias, variable], file, r#"["127.0.0.1:4"] # SABIR_LISTEN"#),
        (&flag, &[alias, variable], file, r#"["127.0.0.1:5"] # --listen"#),
    ] {
        assert_eq!(outcome(options, variables, file, "server.listen"), expected);
    }
}

#[test]
fn without_any_configuration_the_demo_agent_runs_and_nothing_is_warned_of() {
    let loaded = load_text(&CliOptions::default(), &[], "").unwrap();
    let ids: Vec<&str> = loaded.config.all_agents().map(|agent| agent.id.as_str()).collect();
    assert_eq!((ids.as_slice(), loaded.warnings.len()), (&["demo"][..], 0));
    assert!(loaded.values.iter().all(|setting| setting.origin == ValueOrigin::Default));
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_file() {
    let options =
        CliOptions { store: Some("mysql:x".to_owned()), agent: Some("a2a".to_owned()), ..CliOptions::default() };
    let variables = [("SABIR_SERVER_GRACE", "soon"), ("SABIR_COMPAT_STRICT", "maybe")];
    let file = "[[agent]]\nid = 'a2a'\nkind = 'demo'\n[server]\nlisen = 1\nbody_limit = 0\n[log]\nformat = 'xml'\n";
    let expected = "\
sabir.toml:2: id is \"a2a\", which is a path of the server; not allowed are a2a, v1, agents, console, tasks, message, metrics, healthz, readyz, openapi.json, agent, .well-known, mcp, admin, health
sabir.toml:5: unknown key \"lisen\" in [server]; did you mean \"listen\"?
sabir.toml:6: server.body_limit is 0; expected a size from 1 byte, such as \"16MiB\", \"500kB\" or 65536 (bytes)
sabir.toml:8: log.format is \"xml\"; expected text or json
SABIR_SERVER_GRACE is \"soon\"; expected a duration such as \"20m\", \"1h30m\", \"500ms\" or 30 (seconds), at most 36500d
SABIR_COMPAT_STRICT is \"maybe\"; expected true or false
--store is \"mysql:x\"; expected \"sqlite:PATH\", \"postgres://USER@HOST/DATABASE\" or \"memory:\"
--agent is \"a2a\", which needs the address of the remote agent; use `sabir proxy URL`";
    assert_eq!(outcome(&options, &variables, file, ""), expected);
}

#[test]
fn serving_other_machines_needs_allow_open() {
    for (variables, expected) in [
        (&[("SABIR_LISTEN", "127.0.0.1:1")][..], "ok"),
        (&[("SABIR_LISTEN", "0.0.0.0:1"), ("SABIR_ALLOW_OPEN", "true")], "ok"),
        (
            &[("SABIR_LISTEN", "0.0.0.0:1")],
            "SABIR_LISTEN: other machines can reach 0.0.0.0:1, and nothing asks callers for credentials; \
             make a token with `sabir token new`, listen on 127.0.0.1, or allow it with --allow-open or server.allow_open",
        ),
    ] {
        let loaded = load_text(&CliOptions::default(), variables, "").unwrap();
        let result = loaded.check_exposure().map_or_else(|problems| problems.to_string(), |()| "ok".to_owned());
        assert_eq!(result, expected);
    }
}

#[test]
fn names_that_are_not_used_are_warned_of() {
    let list = "[[agent]]\nid = 'b'\nkind = 'demo'\n";
    for (variables, file, expected) in [
        (("AGENT_TIMEOUT_MS", "9"), list, "AGENT_TIMEOUT_MS is ignored, since sabir.toml lists the agents"),
        (("AGENT_MODEL", "m"), list, "AGENT_MODEL is ignored, since sabir.toml lists the agents"),
        (("AGENT_MODEL", "m"), "", "AGENT_MODEL is ignored, since the agent is of kind demo, which is no program"),
        (("AGENT_FORCE", "1"), "", "AGENT_FORCE is ignored, since the agent is of kind demo, which is no program"),
        (
            ("CLAUDE_CODE_PATH", "/c"),
            "",
            "CLAUDE_CODE_PATH is ignored, since the agent is of kind demo, not claude-code",
        ),
        (
            ("ROUTING__MID__ADAPTER", "codex"),
            list,
            "ROUTING__MID__ADAPTER is ignored, since the file has no agent codex",
        ),
        (("ROUTING__MID__MODEL", "m"), "", "ROUTING__MID__MODEL is ignored, since the agent demo has no models"),
        (("LOG_LEVEL", "WARNING"), "", ""),
        (("DATABASE_URL", "postgres://user:secret@db/app"), "", "DATABASE_URL has no effect yet in this version"),
        (("LOG_FORMAT", "pretty"), "", "LOG_FORMAT is \"pretty\"; expected text or json; it is ignored"),
        (
            ("SABIR_LISTEN", "0.0.0.0:80"),
            "",
            "0.0.0.0:80 has no host that clients could use, so the card repeats the Host of each request; \
             server.public_url says what it should be",
        ),
    ] {
        assert_eq!(warnings(&[variables], file), expected, "{variables:?}");
    }
}

#[test]
fn config_prints_lines_for_people_and_json_for_programs() {
    let variables = [("SABIR_LOG_FORMAT", "json")];
    let loaded = load_text(&CliOptions::default(), &variables, "[server]\ngrace = 5\n").unwrap();
    let table = show(&loaded, Audience::Person);
    for (key, value, source) in [
        ("server.grace", "\"5s\"", "sabir.toml:2"),
        ("log.format", "\"json\"", "SABIR_LOG_FORMAT"),
        ("card.name", "(not set)", "default"),
        ("agent.demo.kind", "\"demo\"", "default"),
    ] {
        let line = table.lines().find(|line| line.starts_with(&format!("{key} = ")));
        let (row, comment) = line.unwrap().split_once("   # ").unwrap();
        assert_eq!((row.trim_end(), comment), (&*format!("{key} = {value}"), source));
    }
    let array: serde_json::Value = serde_json::from_str(&show(&loaded, Audience::Program)).unwrap();
    let expected = serde_json::json!({"key": "server.grace", "value": "5s", "source": "sabir.toml:2"});
    assert!(array.as_array().unwrap().contains(&expected));
    assert_eq!(array.as_array().unwrap().len(), table.lines().count());
}

#[test]
fn values_of_variables_stay_secret() {
    let file = "[[agent]]\nid = 'x'\nkind = 'codex'\n[agent.env]\nOPENAI_API_KEY = 'secret'\n";
    let loaded = load_text(&CliOptions::default(), &[], file).unwrap();
    let environment = &loaded.config.agents[0].program.environment;
    assert_eq!(environment, &[("OPENAI_API_KEY".to_owned(), "secret".to_owned())]);
    assert_eq!(
        outcome(&CliOptions::default(), &[], file, "agent.x.env"),
        "{\"OPENAI_API_KEY\":\"(not shown)\"} # sabir.toml:4"
    );
}
