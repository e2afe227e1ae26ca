//! Environment names of other servers.

use super::*;

#[test]
fn names_of_other_servers_never_stop_the_start_unless_they_choose_what_runs() {
    let harmless = ENV_ALIASES
        .iter()
        .filter(|row| !matches!(row.meaning, Meaning::Kind | Meaning::RouteAdapter(_) | Meaning::CheckedSetting(..)))
        .filter(|row| !matches!(row.meaning, Meaning::Issuer(..)));
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
            "AGENT_ADAPTER is \"cursr\", which is no kind of agent; there are demo, conformance, a2a, openai, claude-code, codex, \
             gemini, opencode, goose, copilot, qwen, vibe, cursor, acp, generic, command; did you mean \"cursor\"?"
                .to_owned(),
        ),
    ] {
        assert_eq!(program_outcome(&CliOptions::default(), variables, ""), expected, "{variables:?}");
    }
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
