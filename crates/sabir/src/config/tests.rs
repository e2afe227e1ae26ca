//! The whole way from file, environment and flags to a `Config`, without touching a disk or a process.

use std::path::Path;
use std::time::Duration;

use sabir_agents::program::settings::SharedWorkspace;
use sabir_agents::protocol::Approve;

use super::agent_settings::{AGENT_SETTINGS, EXTENSION_SETTINGS, SKILL_SETTINGS};
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
--store is \"mysql:x\"; expected \"sqlite:PATH\" or \"memory:\"
--agent is \"a2a\", which comes in a later version";
    assert_eq!(outcome(&options, &variables, file, ""), expected);
}

#[test]
fn agents_come_from_the_file_from_one_word_or_by_default() {
    let list = "[[agent]]\nid = 'b'\nkind = 'demo'\ntimeout = '20m'\n[[agent]]\nid = 'a'\nkind = 'conformance'\n";
    let by_flag = CliOptions { agent: Some("conformance".to_owned()), ..CliOptions::default() };
    let none = CliOptions::default();
    for (options, variables, file, expected) in [
        (&none, &[][..], "", "demo Demo None"),
        (&none, &[], list, "b Demo Some(1200s), a Conformance None"),
        (&by_flag, &[("SABIR_AGENT", "demo")], list, "conformance Conformance None"),
        (&none, &[("SABIR_AGENT", "conformance")], list, "conformance Conformance None"),
        (&none, &[("AGENT_ADAPTER", "conformance")], "", "conformance Conformance None"),
        (&none, &[("AGENT_ADAPTER", "cursor"), ("AGENT_TIMEOUT_MS", "1500")], "", "cursor Program(Cursor) Some(1.5s)"),
        (&none, &[("SABIR_AGENT", "codex")], list, "codex Program(Codex) Some(1200s)"),
        (&none, &[("AGENT_ADAPTER", "codex"), ("AGENT_TIMEOUT_MS", "0")], "", "codex Program(Codex) None"),
        (&none, &[("AGENT_TIMEOUT_MS", "0")], "", "demo Demo None"),
        (
            &none,
            &[("AGENT_ADAPTER", "demo"), ("AGENT_TIMEOUT_MS", "9")],
            list,
            "b Demo Some(1200s), a Conformance None",
        ),
    ] {
        let agents = load_text(options, variables, file).unwrap().config.agents;
        let result = agents.iter().map(|agent| format!("{} {:?} {:?}", agent.id, agent.kind, agent.timeout));
        assert_eq!(result.collect::<Vec<_>>().join(", "), expected, "{variables:?} {file:?}");
    }
}

#[test]
fn wrong_agent_tables_are_refused() {
    for (file, expected) in [
        ("[[agent]]\nkind = 'demo'", "sabir.toml:1: this [[agent]] has no id"),
        ("\n[[agent]]\nid = 'x'", "sabir.toml:2: this [[agent]] has no kind"),
        (
            "[[agent]]\nid = 'x'\nkind = 'demo'\n[[agent]]\nid = 'x'\nkind = 'demo'",
            "sabir.toml:5: there are two agents with the id \"x\"",
        ),
        (
            "[[agent]]\nid = 'x'\nkind = 'demo'\ndefault = true\n[[agent]]\nid = 'y'\nkind = 'demo'\ndefault = true",
            "sabir.toml:8: there are two default agents; \"x\" is one",
        ),
        (
            "[[agent]]\nid = 'x'\nkind = 'demo'\nmax_concurrent = 0",
            "sabir.toml:4: max_concurrent is 0; expected a number from 1 to 1000000",
        ),
        (
            "[[agent]]\nid = 'x'\nkind = 'command'\ncommand = 'cat'\nstored_first = true",
            "sabir.toml:5: stored_first is for the demo agent; an agent of kind command has no use for it",
        ),
    ] {
        assert_eq!(outcome(&CliOptions::default(), &[], file, ""), expected, "{file:?}");
    }
}

#[test]
fn skills_belong_to_the_agent_above() {
    let agent = "[[agent]]\nid = 'a'\nkind = 'demo'\n";
    let skill = "[[agent.skill]]\nid = 'x'\nname = 'X'\ndescription = 'does x'\n";
    let other = agent.replace("'a'", "'b'");
    let file = format!("{agent}{skill}tags = ['one', 'two']\n{other}{}", skill.replace("'x'", "'y z'"));
    let agents = load_text(&CliOptions::default(), &[], &file).unwrap().config.agents;
    let result = agents.iter().map(|agent| {
        let skills = agent.skills.iter().map(|skill| format!("{} {} {:?}", skill.id, skill.name, skill.tags));
        format!("{}: {}", agent.id, skills.collect::<Vec<_>>().join(", "))
    });
    assert_eq!(result.collect::<Vec<_>>(), [r#"a: x X ["one", "two"]"#, "b: y z X []"]);

    for (key, expected) in [
        ("agent.a.skill.x.tags", r#"["one","two"] # sabir.toml:8"#),
        ("agent.b.skill.\"y z\".name", "\"X\" # sabir.toml:14"),
        ("agent.b.skill.\"y z\".examples", "null # default"),
    ] {
        assert_eq!(outcome(&CliOptions::default(), &[], &file, key), expected);
    }
}

#[test]
fn wrong_skill_tables_are_refused() {
    let skill = "[[agent.skill]]\nid = 'x'\nname = 'X'\ndescription = 'does x'\n";
    for (rest, expected) in [
        ("[[agent.skill]]\nid = 'x'\nname = 'X'", "sabir.toml:4: this [[agent.skill]] has no description"),
        (&format!("{skill}{skill}"), "sabir.toml:9: there are two skills with the id \"x\""),
        (&format!("{skill}[[agent]]\nid = 'b'\nkind = 'demo'\n{skill}"), "nothing"),
        (
            &format!("{skill}exampels = []"),
            "sabir.toml:8: unknown key \"exampels\" in [[agent.skill]]; did you mean \"examples\"?",
        ),
        (
            &format!("{skill}timeout = 3"),
            "sabir.toml:8: unknown key \"timeout\" in [[agent.skill]]; did you mean \"timeout\" in [[agent]]?",
        ),
        (&format!("{skill}tags = [1]"), "sabir.toml:8: tags holds 1; expected a text that is not empty"),
        (
            &format!("{skill}input_modes = ['text']"),
            "sabir.toml:8: input_modes holds \"text\"; \
             expected a media type such as \"text/plain\", \"image/*\" or \"*/*\"",
        ),
        ("[agent.skill]\nid = 'x'", "sabir.toml:4: skills are a list; write [[agent.skill]] for each"),
        ("skill = ['x']", "sabir.toml:4: skill holds \"x\"; expected [[agent.skill]] tables"),
        ("skills = ['x']", "sabir.toml:4: unknown key \"skills\" in [[agent]]; did you mean [[agent.skill]]?"),
        ("[[agent.skil]]", "sabir.toml:4: unknown section [[agent.skil]]; did you mean [[agent.skill]]?"),
    ] {
        let file = format!("[[agent]]\nid = 'a'\nkind = 'demo'\n{rest}");
        assert_eq!(outcome(&CliOptions::default(), &[], &file, ""), expected, "{rest:?}");
    }
}

#[test]
fn extensions_pass_their_params_on_as_json() {
    let file = "[[agent]]\nid = 'a'\nkind = 'demo'\n[[agent.extension]]\nuri = 'urn:x:1'\nrequired = true\n\
                params.limits = {size = 5, ratio = 0.5}\n[agent.extension.params.more]\nsince = 2024-05-01\n";
    let extension = &load_text(&CliOptions::default(), &[], file).unwrap().config.agents[0].extensions[0];
    let params = r#"{"limits":{"ratio":0.5,"size":5},"more":{"since":"2024-05-01"}}"#;
    assert_eq!((extension.uri.as_str(), extension.required), ("urn:x:1", true));
    assert_eq!(extension.params.as_ref().unwrap().as_str(), params);
    for (key, expected) in [
        ("agent.a.extension.\"urn:x:1\".params", format!("{params} # sabir.toml:7")),
        ("agent.a.extension.\"urn:x:1\".required", "true # sabir.toml:6".to_owned()),
        ("agent.a.extension.\"urn:x:1\".description", "null # default".to_owned()),
    ] {
        assert_eq!(outcome(&CliOptions::default(), &[], file, key), expected);
    }
}

#[test]
fn wrong_extension_tables_are_refused() {
    let extension = "[[agent.extension]]\nuri = 'urn:x'\n";
    for (rest, expected) in [
        ("[[agent.extension]]", "sabir.toml:4: this [[agent.extension]] has no uri"),
        (&format!("{extension}{extension}"), "sabir.toml:7: there are two extensions with the uri \"urn:x\""),
        (
            &format!("{extension}url = 'x'"),
            "sabir.toml:6: unknown key \"url\" in [[agent.extension]]; did you mean \"uri\"?",
        ),
        (
            &format!("{extension}[agent.extension.parms]\na = 1"),
            "sabir.toml:6: unknown key \"parms\" in [[agent.extension]]; did you mean \"params\"?",
        ),
        (&format!("{extension}params = 'x'"), "sabir.toml:6: params is \"x\"; expected a table"),
        (
            &format!("{extension}params.a = nan"),
            "sabir.toml:6: params holds the number NaN, which does not fit into JSON",
        ),
        (
            "[[agent.extension]]\nuri = 'x'",
            "sabir.toml:5: uri is \"x\"; expected a URI without commas, such as \"https://example.com/ext/v1\"",
        ),
        ("[agent.extension]", "sabir.toml:4: extensions are a list; write [[agent.extension]] for each"),
    ] {
        let file = format!("[[agent]]\nid = 'a'\nkind = 'demo'\n{rest}");
        assert_eq!(outcome(&CliOptions::default(), &[], &file, ""), expected, "{rest:?}");
    }
}

#[test]
fn names_of_other_servers_never_stop_the_start_unless_they_choose_what_runs() {
    let harmless = ENV_ALIASES.iter().filter(|row| !matches!(row.meaning, Meaning::Kind | Meaning::RouteAdapter(_)));
    for EnvAlias { name, .. } in harmless {
        for value in ["0.0.0.0", "999999999999999999999999", "banana", "-1", " "] {
            let loaded = load_text(&CliOptions::default(), &[(name, value)], "").unwrap();
            assert!(loaded.check_exposure().is_ok(), "{name}={value}");
        }
    }
}

#[test]
fn a_host_of_another_servers_name_stays_on_loopback_until_more_is_allowed() {
    let host = ("A2A_HOST", "0.0.0.0");
    for (variables, expected) in [
        (&[host][..], r#"["127.0.0.1:41242"] # A2A_HOST"#),
        (&[host, ("SABIR_ALLOW_OPEN", "1")], r#"["0.0.0.0:41242"] # A2A_HOST"#),
    ] {
        assert_eq!(outcome(&CliOptions::default(), variables, "", "server.listen"), expected);
    }
    assert!(warnings(&[host], "").ends_with("; listening on 127.0.0.1:41242 instead"));
}

#[test]
fn serving_other_machines_needs_allow_open() {
    for (variables, expected) in [
        (&[("SABIR_LISTEN", "127.0.0.1:1")][..], "ok"),
        (&[("SABIR_LISTEN", "0.0.0.0:1"), ("SABIR_ALLOW_OPEN", "true")], "ok"),
        (
            &[("SABIR_LISTEN", "0.0.0.0:1")],
            "SABIR_LISTEN: other machines can reach 0.0.0.0:1, and nothing asks callers for credentials; \
             listen on 127.0.0.1, or allow it with --allow-open or server.allow_open",
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

/// What failed programs write is for the operator, who is the only caller as long as nobody else can call.
#[test]
fn callers_see_stderr_by_default_where_only_this_machine_can_call() {
    let program = "[[agent]]\nid = 'x'\nkind = 'codex'\n";
    for (file, key_line, expected) in [
        ("", "", "true # default"),
        ("[server]\nlisten = ['127.0.0.1:1', '[::1]:1']\n", "", "true # default"),
        ("[server]\nlisten = ['127.0.0.1:1', '10.0.0.1:1']\n", "", "false # default"),
        ("[server]\nlisten = ['0.0.0.0:1']\nallow_open = true\n", "", "false # default"),
        ("[server]\npublic_url = 'https://a.example'\n", "", "false # default"),
        ("[server]\nallowed_hosts = ['agents.example.com']\n", "", "false # default"),
        ("[server]\ncors_origins = ['http://localhost:3000']\n", "", "true # default"),
        ("[server]\ncors_origins = ['*']\n", "", "false # default"),
        ("[server]\npublic_url = 'https://a.example'\n", "tell_stderr = true\n", "true # sabir.toml:6"),
        ("", "tell_stderr = false\n", "false # sabir.toml:4"),
    ] {
        let file = format!("{file}{program}{key_line}");
        assert_eq!(outcome(&CliOptions::default(), &[], &file, "agent.x.tell_stderr"), expected, "{file}");
    }
    let tells = load_text(&CliOptions::default(), &[], program).unwrap().config.agents[0].program.tell_stderr;
    assert_eq!(tells, Some(true));
}

#[test]
fn an_adapter_without_force_warns_that_nothing_will_be_asked() {
    let adapter = ("AGENT_ADAPTER", "codex");
    for (variables, is_warned) in [
        (&[adapter][..], true),
        (&[adapter, ("AGENT_FORCE", "true")], false),
        (&[adapter, ("AGENT_FORCE", "false")], false),
        (&[("AGENT_ADAPTER", "demo")], false),
        (&[("SABIR_AGENT", "codex"), adapter], false),
    ] {
        let result = warnings(variables, "");
        assert_eq!(
            result.contains("AGENT_ADAPTER alone means approve = \"all\""),
            is_warned,
            "{variables:?}: {result}"
        );
    }
}

/// A program whose questions nobody answers has its standard input closed.
#[test]
fn a_generic_program_asks_only_where_it_is_told_to() {
    let generic = "[[agent]]\nid = 'x'\nkind = 'generic'\ncommand = ['y']\n";
    let aliases = [("AGENT_ADAPTER", "generic"), ("AGENT_BINARY", "y"), ("AGENT_FORCE", "false")];
    for (variables, file, expected) in [
        (&[][..], generic.to_owned(), r#""none" # default"#),
        (&[], format!("{generic}approval_pattern = 'z'\n"), r#""ask" # default"#),
        (&[], format!("{generic}approve = 'ask'\n"), r#""ask" # sabir.toml:5"#),
        (&aliases, String::new(), r#""ask" # AGENT_FORCE"#),
    ] {
        let key = if file.is_empty() { "agent.generic.approve" } else { "agent.x.approve" };
        assert_eq!(outcome(&CliOptions::default(), variables, &file, key), expected, "{file}");
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
fn a_program_has_the_defaults_of_its_kind() {
    for (kind, mode, approve) in [
        ("claude-code", "duplex", "ask"),
        ("codex", "duplex", "ask"),
        ("gemini", "acp", "ask"),
        ("vibe", "acp", "ask"),
        ("cursor", "oneshot", "none"),
    ] {
        let options = CliOptions { agent: Some(kind.to_owned()), ..CliOptions::default() };
        let expected = format!("{kind}.mode = \"{mode}\" # default\n{kind}.approve = \"{approve}\" # default");
        assert_eq!(program_outcome(&options, &[], ""), expected);
        let agent = &load_text(&options, &[], "").unwrap().config.agents[0];
        assert_eq!((agent.id.as_str(), agent.max_concurrent, agent.queue), (kind, 4, 1000));
        assert_eq!((agent.timeout, agent.idle_timeout), (Some(Duration::from_secs(1200)), None));
    }
    let file = "[[agent]]\nid = 'x'\nkind = 'codex'\nmax_concurrent = 9\ntimeout = 'off'\nmode = 'oneshot'";
    let agent = &load_text(&CliOptions::default(), &[], file).unwrap().config.agents[0];
    assert_eq!((agent.max_concurrent, agent.timeout, agent.program.approve), (9, None, Approve::None));
}

#[test]
fn programs_that_write_take_turns_in_a_folder_unless_names_of_other_servers_describe_them() {
    let kind = |kind: &str| format!("[[agent]]\nid = 'x'\nkind = '{kind}'\ncommand = ['program']\n");
    for (variables, file, expected) in [
        (&[][..], kind("claude-code"), "\"queue\" # default"),
        (&[], kind("acp"), "\"queue\" # default"),
        (&[], kind("generic"), "\"parallel\" # default"),
        (&[], kind("command"), "\"parallel\" # default"),
        (&[], kind("command") + "shared_workspace = 'queue'", "\"queue\" # sabir.toml:5"),
        (
            &[],
            kind("codex") + "shared_workspace = 'both'",
            "sabir.toml:5: shared_workspace is \"both\"; expected queue or parallel",
        ),
        (&[("AGENT_ADAPTER", "codex")], String::new(), "\"parallel\" # AGENT_ADAPTER"),
    ] {
        let id = if variables.is_empty() { "x" } else { "codex" };
        let words = outcome(&CliOptions::default(), variables, &file, &format!("agent.{id}.shared_workspace"));
        assert_eq!(words, expected, "{variables:?} {file}");
    }
    let config = load_text(&CliOptions::default(), &[("ROUTING__MID__ADAPTER", "codex")], "").unwrap().config;
    assert_eq!(config.routed_agents[0].program.shared_workspace, SharedWorkspace::Parallel);
}

#[test]
fn contradicting_settings_of_an_agent_are_refused() {
    for (rest, expected) in [
        (
            "kind = 'claude-code'\nmode = 'acp'",
            "sabir.toml:4: mode is \"acp\"; claude-code has duplex and oneshot only",
        ),
        ("kind = 'cursor'\nmode = 'duplex'", "sabir.toml:4: mode is \"duplex\"; cursor has oneshot only"),
        (
            "kind = 'codex'\nmode = 'oneshot'\napprove = 'ask'",
            "sabir.toml:5: approve is \"ask\", but codex cannot ask in mode oneshot; \
             use mode = \"duplex\", or approve = \"all\" or approve = \"none\"",
        ),
        (
            "kind = 'command'\ncommand = ['x']\napprove = 'ask'",
            "sabir.toml:5: approve is \"ask\", but command cannot ask in mode oneshot; \
             use approve = \"all\" or approve = \"none\"",
        ),
        ("kind = 'generic'\ncommand = ['x']\napprove = 'ask'\napproval_pattern = 'ok'", "nothing"),
        (
            "kind = 'acp'",
            "sabir.toml:3: kind is \"acp\", which needs a command; add command = [\"program\", \"argument\"]",
        ),
        (
            "kind = 'gemini'\napproval_pattern = 'x'",
            "sabir.toml:4: approval_pattern is for kind generic; gemini does not ask in plain lines",
        ),
        ("kind = 'claude-code'\ntrust_prompts = true\ntrust_workspace = true", "nothing"),
        ("kind = 'codex'\ntrust_workspace = true", "nothing"),
        (
            "kind = 'codex'\ntrust_prompts = true",
            "sabir.toml:4: trust_prompts has no use: for codex every text is only text",
        ),
        (
            "kind = 'gemini'\ntrust_workspace = true",
            "sabir.toml:4: trust_workspace is for kinds claude-code and codex; gemini is started as it is",
        ),
        (
            "kind = 'demo'\nworkspace = '/x'",
            "sabir.toml:4: workspace is for programs; an agent of kind demo has no use for it",
        ),
        // A kind that does not exist is complaint enough.
        ("kind = 'a2a'\nworkspace = '/x'", "sabir.toml:3: kind is \"a2a\", which comes in a later version"),
        (
            "kind = 'codex'\napprove = 'al'",
            "sabir.toml:4: approve is \"al\"; expected ask or all or none; did you mean \"all\"?",
        ),
        ("kind = 'codex'\nisolation = 'git'", "sabir.toml:4: isolation is \"git\"; expected none or worktree"),
    ] {
        let file = format!("[[agent]]\nid = 'x'\n{rest}");
        assert_eq!(outcome(&CliOptions::default(), &[], &file, ""), expected, "{rest:?}");
    }
    let options = CliOptions { agent: Some("acp".to_owned()), ..CliOptions::default() };
    let expected = "--agent is \"acp\", which needs a command; \
                    describe it in sabir.toml, with command = [\"program\", \"argument\"] in its [[agent]]";
    assert_eq!(outcome(&options, &[], "", ""), expected);
}

#[test]
fn paths_of_a_file_in_another_folder_begin_there() {
    let text = "[store]\nurl = 'sqlite:tasks.db'\n[[agent]]\nid = 'x'\nkind = 'command'\ncommand = ['./run', './as-is']\n\
                workspace = '../repo'\nworkspace_roots = ['/srv', '~/work']\n[[agent]]\nid = 'y'\nkind = 'codex'\n";
    let environment = Environment::new([("HOME", "/h")]);
    let loaded = |options: &CliOptions| {
        let file = file::parse(Path::new("/etc/sabir/sabir.toml"), text.as_bytes());
        merge(options, &environment, file, DATABASE.as_ref()).unwrap()
    };
    let shown = |loaded: &LoadedConfig, key: &str| {
        loaded.values.iter().find(|setting| setting.key == key).unwrap().value.to_string()
    };
    let from_file = loaded(&CliOptions::default());
    for (key, expected) in [
        ("store.url", r#""sqlite:/etc/sabir/tasks.db""#),
        ("agent.x.command", r#"["/etc/sabir/./run","./as-is"]"#),
        ("agent.x.workspace", r#""/etc/sabir/../repo""#),
        ("agent.x.workspace_roots", r#"["/srv","/h/work"]"#),
        // Nobody wrote it into the file, so it is where sabir was started.
        ("agent.y.workspace", r#"".""#),
    ] {
        assert_eq!(shown(&from_file, key), expected, "{key}");
    }
    let program = &from_file.config.agents[0].program;
    assert_eq!(
        (program.command[0].as_str(), program.workspace.to_str()),
        ("/etc/sabir/./run", Some("/etc/sabir/../repo"))
    );
    let by_flag = loaded(&CliOptions { store: Some("sqlite:tasks.db".to_owned()), ..CliOptions::default() });
    assert_eq!(shown(&by_flag, "store.url"), r#""sqlite:tasks.db""#);

    let wrong = "[[agent]]\nid = 'x'\nkind = 'codex'\nworkspace = '~you/repo'\n[server]\nlisen = 1\n";
    let expected = "sabir.toml:4: workspace names ~you/repo; ~ is only understood as ~/, your own home; \
                    write the directory out\n\
                    sabir.toml:6: unknown key \"lisen\" in [server]; did you mean \"listen\"?";
    assert_eq!(outcome(&CliOptions::default(), &[], wrong, ""), expected);
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

#[test]
fn an_adapter_of_another_server_may_do_all_without_asking() {
    let adapter = ("AGENT_ADAPTER", "claude-code");
    let duplex = "claude-code.mode = \"duplex\" # default";
    for (variables, expected) in [
        (&[adapter][..], format!("{duplex}\nclaude-code.approve = \"all\" # AGENT_ADAPTER")),
        (&[adapter, ("AGENT_FORCE", "yes")], format!("{duplex}\nclaude-code.approve = \"all\" # AGENT_FORCE")),
        (&[adapter, ("AGENT_FORCE", "false")], format!("{duplex}\nclaude-code.approve = \"ask\" # default")),
        (&[("SABIR_AGENT", "claude-code"), adapter], format!("{duplex}\nclaude-code.approve = \"ask\" # default")),
        (
            &[("AGENT_ADAPTER", "cursor"), ("AGENT_FORCE", "0"), ("AGENT_MODEL", "m"), ("CURSOR_AGENT_PATH", "/a b")],
            "cursor.mode = \"oneshot\" # default\n\
             cursor.command = [\"/a b\"] # CURSOR_AGENT_PATH\n\
             cursor.model = \"m\" # AGENT_MODEL\n\
             cursor.approve = \"none\" # default"
                .to_owned(),
        ),
        (
            &[
                ("AGENT_ADAPTER", "generic"),
                ("AGENT_BINARY", "./agent"),
                ("AGENT_ARGS", "--say \"good day\""),
                ("AGENT_REPO_PATH", "/srv/repo"),
                ("AGENT_ALLOWED_REPO_ROOTS", "/srv:/home, /opt"),
                ("AGENT_APPROVAL_PATTERN", "ok\\?"),
            ],
            "generic.mode = \"oneshot\" # default\n\
             generic.command = [\"./agent\"] # AGENT_BINARY\n\
             generic.args = [\"--say\",\"good day\"] # AGENT_ARGS\n\
             generic.workspace = \"/srv/repo\" # AGENT_REPO_PATH\n\
             generic.workspace_roots = [\"/srv\",\"/home\",\"/opt\"] # AGENT_ALLOWED_REPO_ROOTS\n\
             generic.approve = \"all\" # AGENT_ADAPTER\n\
             generic.approval_pattern = \"ok\\\\?\" # AGENT_APPROVAL_PATTERN"
                .to_owned(),
        ),
        (
            &[("AGENT_ADAPTER", "vibe"), ("VIBE_BINARY_PATH", "/opt/vibe")],
            "vibe.mode = \"oneshot\" # VIBE_BINARY_PATH\n\
             vibe.command = [\"/opt/vibe\"] # VIBE_BINARY_PATH\n\
             vibe.approve = \"all\" # AGENT_ADAPTER"
                .to_owned(),
        ),
        (
            &[("AGENT_ADAPTER", "generic")],
            "AGENT_ADAPTER is \"generic\", which needs a command; set AGENT_BINARY".to_owned(),
        ),
        (
            &[("AGENT_ADAPTER", "generic"), ("AGENT_BINARY", "x"), ("AGENT_ARGS", "a \"b")],
            "AGENT_ARGS is \"a \\\"b\"; one of its quotes has no end".to_owned(),
        ),
        (
            &[("AGENT_ADAPTER", "cursr")],
            "AGENT_ADAPTER is \"cursr\", which is no kind of agent; there are demo, conformance, claude-code, codex, \
             gemini, opencode, goose, copilot, qwen, vibe, cursor, acp, generic, command; did you mean \"cursor\"?"
                .to_owned(),
        ),
    ] {
        assert_eq!(program_outcome(&CliOptions::default(), variables, ""), expected, "{variables:?}");
    }
}

#[test]
fn routes_lead_to_agents_that_exist() {
    let agents = "[[agent]]\nid = 'coder'\nkind = 'codex'\n[[agent]]\nid = 'demo'\nkind = 'demo'\n[routing]\n";
    for (rest, variables, expected) in [
        (
            "complex = { agent = 'coder', model = 'big' }",
            &[][..],
            "{\"agent\":\"coder\",\"model\":\"big\"} # sabir.toml:8",
        ),
        ("complex = 'demo'", &[], "{\"agent\":\"demo\"} # sabir.toml:8"),
        ("[routing.complex]\nagent = 'demo'", &[], "{\"agent\":\"demo\"} # sabir.toml:8"),
        (
            "",
            &[("SABIR_ROUTING_COMPLEX", "coder big")],
            "{\"agent\":\"coder\",\"model\":\"big\"} # SABIR_ROUTING_COMPLEX",
        ),
        (
            "complex = 'demo'",
            &[("ROUTING__COMPLEX__ADAPTER", "codex"), ("ROUTING__COMPLEX__MODEL", "m")],
            "{\"agent\":\"coder\",\"model\":\"m\"} # ROUTING__COMPLEX__ADAPTER, ROUTING__COMPLEX__MODEL",
        ),
        (
            "complex = 'codr'",
            &[],
            "sabir.toml:8: routing.complex names the agent \"codr\", which does not exist; there are coder, demo; \
             did you mean \"coder\"?",
        ),
        (
            "complex = { agent = 'demo', model = 'm' }",
            &[],
            "sabir.toml:8: routing.complex has a model, but the agent demo of kind demo has none",
        ),
        ("complx = 'demo'", &[], "sabir.toml:8: unknown key \"complx\" in [routing]; did you mean \"complex\"?"),
    ] {
        assert_eq!(
            outcome(&CliOptions::default(), variables, &format!("{agents}{rest}"), "routing.complex"),
            expected,
            "{rest}"
        );
    }
}

#[test]
fn routes_of_a_file_whose_agents_do_not_run_are_ignored() {
    let file = "[[agent]]\nid = 'coder'\nkind = 'codex'\n[routing]\ncomplex = 'coder'\n";
    let options = CliOptions { agent: Some("demo".to_owned()), ..CliOptions::default() };
    assert_eq!(outcome(&options, &[], file, "routing.complex"), "null # default");
    let loaded = load_text(&options, &[], file).unwrap();
    assert_eq!(loaded.config.routing, Routing::default());
    let expected = "sabir.toml:5: routing.complex is ignored, since other agents run than the file lists";
    assert_eq!(loaded.warnings, [expected]);
}

#[test]
fn adapters_of_routes_run_without_an_address() {
    let variables = [
        ("AGENT_ADAPTER", "claude-code"),
        ("AGENT_MODEL", "sonnet"),
        ("CODEX_BINARY_PATH", "/opt/codex"),
        ("ROUTING__COMPLEX__MODEL", "opus"),
        ("ROUTING__MID__ADAPTER", "claude-code"),
        ("ROUTING__ROUTINE__ADAPTER", "codex"),
    ];
    let config = load_text(&CliOptions::default(), &variables, "").unwrap().config;
    let ids = |agents: &[AgentConfig]| agents.iter().map(|agent| agent.id.clone()).collect::<Vec<_>>();
    assert_eq!(
        (ids(&config.agents), ids(&config.routed_agents)),
        (vec!["claude-code".to_owned()], vec!["codex".to_owned()])
    );
    let codex = &config.routed_agents[0].program;
    assert_eq!(
        (codex.approve, codex.model.as_deref(), codex.command.as_slice()),
        (Approve::All, None, &["/opt/codex".to_owned()][..])
    );
    let route = |agent: &str, model: Option<&str>| {
        Some(RouteConfig { agent: agent.to_owned(), model: model.map(str::to_owned) })
    };
    assert_eq!(config.routing.complex, route("claude-code", Some("opus")));
    assert_eq!(config.routing.mid, route("claude-code", None));
    assert_eq!(config.routing.routine, route("codex", None));

    let words = outcome(&CliOptions::default(), &[("ROUTING__MID__ADAPTER", "banana")], "", "");
    assert!(words.starts_with("ROUTING__MID__ADAPTER is \"banana\", which is no kind of agent; there are "), "{words}");
}

/// What is wrong with the file, by line.
fn problems(text: &[u8]) -> String {
    let environment = Environment::new::<&str, &str>([]);
    match merge(&CliOptions::default(), &environment, file::parse(Path::new("sabir.toml"), text), DATABASE.as_ref()) {
        Ok(_) => String::new(),
        Err(Problems(problems)) => problems.join("\n").replace("sabir.toml:", ""),
    }
}

#[test]
fn unknown_keys_are_named_with_their_line() {
    let server_keys =
        "listen, public_url, body_limit, memory, cors_origins, allowed_hosts, allow_open, grace, drain, keep_alive";
    for (text, expected) in [
        ("", ""),
        ("\u{feff}[server]\ngrace = 1\n", ""),
        ("[server]\n\nlisen = 1\n", "3: unknown key \"lisen\" in [server]; did you mean \"listen\"?"),
        ("server.lisen = 1\n", "1: unknown key \"lisen\" in [server]; did you mean \"listen\"?"),
        ("[server]\nbanana = 1", &format!("2: unknown key \"banana\" in [server]; known keys: {server_keys}")),
        ("listen = 1", "1: unknown key \"listen\" at the top level; did you mean \"listen\" in [server]?"),
        ("[store]\nlisten = 1", "2: unknown key \"listen\" in [store]; did you mean \"listen\" in [server]?"),
        (
            "[[agent]]\nid = 'a'\nkind = 'demo'\nkidn = 'x'",
            "4: unknown key \"kidn\" in [[agent]]; did you mean \"kind\"?",
        ),
        ("[[agents]]\nid = 'a'", "1: unknown section [[agents]]; did you mean [[agent]]?"),
        ("[sevrer]", "1: unknown section [sevrer]; did you mean [server]?"),
        ("[agent]\nid = 'a'", "1: agents are a list; write [[agent]] for each"),
        ("agent = 3", "1: agent is 3; expected [[agent]] tables"),
        ("agent = ['demo']", "1: agent holds \"demo\"; expected [[agent]] tables"),
        ("server = 3", "1: server is 3; expected a section [server]"),
        ("[server]\ngrace = \n", "2: string values must be quoted, expected literal string"),
        ("[log]\nlevel = 'a'\nlevel = 'b'\n", "3: duplicate key"),
    ] {
        assert_eq!(problems(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn several_problems_come_in_the_order_of_the_lines() {
    let text = b"[zebra]\n[[agent]]\nid = 'a'\nkind = 'demo'\nkidn = 1\n[server]\nlisen = 1\n[log]\nlevle = 1\n";
    let lines: Vec<String> = problems(text).lines().map(|line| line[..2].to_owned()).collect();
    assert_eq!(lines, ["1:", "5:", "7:", "9:"]);
}

#[test]
fn a_file_in_another_encoding_is_named_with_the_line() {
    assert_eq!(problems(b"[server]\n# gr\xfc\xdfe\n"), "2: the file is not UTF-8 text");
}

/// A missing row is printed as it should stand in the document.
#[test]
fn the_documentation_lists_every_setting_and_no_other() {
    let mut rows: Vec<(String, String)> = Vec::new();
    for setting in SETTINGS.iter() {
        rows.push((format!("[{}]", setting.section()), row(setting, &[setting.variable()])));
    }
    rows.extend(AGENT_SETTINGS.iter().map(|setting| ("[[agent]]".to_owned(), row(setting, &[]))));
    rows.extend(SKILL_SETTINGS.iter().map(|setting| ("[[agent.skill]]".to_owned(), short_row(setting))));
    rows.extend(EXTENSION_SETTINGS.iter().map(|setting| ("[[agent.extension]]".to_owned(), short_row(setting))));
    for (header, row) in &rows {
        assert!(chapter(header).contains(&row.as_str()), "docs/reference/settings.md lacks in {header}\n{row}");
    }
    for (header, _) in &rows {
        let expected = rows.iter().filter(|(known, _)| known == header).count();
        let found = chapter(header).into_iter().filter(|line| line.starts_with("| `")).count();
        assert_eq!(found, expected, "docs/reference/settings.md has a row too much in {header}");
    }
    for EnvAlias { name, .. } in ENV_ALIASES {
        assert!(DOCUMENT.contains(&format!("`{name}`")), "docs/reference/settings.md lacks {name}");
    }
}

/// The lines of the document below this header.
fn chapter(header: &str) -> Vec<&'static str> {
    let title = format!("## `{header}`");
    let below = DOCUMENT.lines().skip_while(|line| *line != title).skip(1);
    below.take_while(|line| !line.starts_with("## ")).collect()
}

fn row<T>(setting: &Setting<T>, variables: &[String]) -> String {
    let short = setting.short_variable.map(code);
    let variables = short
        .into_iter()
        .chain(variables.iter().filter(|name| setting.short_variable != Some(name)).map(|name| code(name)));
    let port = (setting.key == "server.listen").then_some("--port");
    let flags = setting.flag.into_iter().chain(port).map(code);
    cells(&[
        code(setting.key),
        default(setting),
        variables.collect::<Vec<_>>().join(", "),
        flags.collect::<Vec<_>>().join(", "),
        setting.help.to_owned(),
    ])
}

/// Of a table that nothing but the file can set.
fn short_row<T>(setting: &Setting<T>) -> String {
    cells(&[code(setting.key), default(setting), setting.help.to_owned()])
}

fn default<T>(setting: &Setting<T>) -> String {
    match (setting.is_required, setting.default) {
        (true, _) => "required".to_owned(),
        (false, "") => String::new(),
        (false, text) => code(text),
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn cells(cells: &[String]) -> String {
    let cells = cells.iter().map(|cell| if cell.is_empty() { " ".to_owned() } else { format!(" {cell} ") });
    format!("|{}|", cells.collect::<Vec<_>>().join("|"))
}

const DOCUMENT: &str = include_str!("../../../../docs/reference/settings.md");

#[test]
fn the_example_file_is_right_as_it_is_and_with_everything_switched_on() {
    let loaded = load_text(&CliOptions::default(), &[], EXAMPLE).unwrap();
    assert_eq!(loaded.config.agents.len(), 1);

    let everything = example_with_everything();
    let loaded = load_text(&CliOptions::default(), &[], &everything).unwrap();
    let [demo, _] = loaded.config.agents.as_slice() else { panic!("two agents") };
    assert_eq!((demo.skills.len(), demo.extensions.len()), (1, 1));
    // The same key in the table of another agent will do.
    let leaf =
        |key: &str| key.strip_prefix("agent.").and_then(|rest| rest.split_once('.')).map(|(_, leaf)| leaf.to_owned());
    let name = |key: &str| leaf(key).unwrap_or_else(|| key.to_owned());
    let set = loaded.values.iter().filter(|shown| shown.origin != ValueOrigin::Default).map(|shown| name(&shown.key));
    let set: Vec<String> = set.collect();
    for shown in &loaded.values {
        assert!(set.contains(&name(&shown.key)), "{} is not in the example", shown.key);
    }
}

/// `#key = value` is a setting to switch on, `# words` is a comment, `#:schema` is for editors.
pub fn example_with_everything() -> String {
    let lines = EXAMPLE.lines().map(|line| match line.strip_prefix('#') {
        Some(setting) if !setting.starts_with([' ', ':']) => setting,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

const EXAMPLE: &str = include_str!("../../../../sabir.example.toml");

proptest::proptest! {
    #[test]
    fn no_file_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        let file = file::parse(Path::new("sabir.toml"), &bytes);
        let _ = merge(&CliOptions::default(), &Environment::new::<&str, &str>([]), file, DATABASE.as_ref());
    }

    /// Random bytes seldom are TOML; these are near it.
    #[test]
    fn no_nearly_right_file_panics(
        words in proptest::collection::vec(proptest::sample::select(PIECES), 0..40),
    ) {
        let file = file::parse(Path::new("sabir.toml"), words.concat().as_bytes());
        let _ = merge(&CliOptions::default(), &Environment::new::<&str, &str>([]), file, DATABASE.as_ref());
    }
}

const PIECES: &[&str] = &[
    "[server]\n",
    "[[agent]]\n",
    "[[agent.skill]]\n",
    "[[agent.extension]]\n",
    "params",
    "[agent]\n",
    "[store]\n",
    "[routing]\n",
    "mode",
    "command",
    "'generic'",
    "env",
    "complex",
    "[x.y]\n",
    "listen",
    "id",
    "kind",
    "url",
    "grace",
    "=",
    " = ",
    "\"sqlite:x\"",
    "'demo'",
    "'é'",
    "[1, 'x']",
    "{a = 1}",
    "1979-05-27",
    "nan",
    "-0",
    "99999999999999999999",
    "\n",
    "\r\n",
    ".",
    "#",
    "\u{feff}",
    "\"\\u0000\"",
    "true",
];
