//! Settings of agents that are programs: defaults by kind, contradictions, paths.

use super::*;

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
        (
            "kind = 'a2a'\nworkspace = '/x'",
            "sabir.toml:3: kind is \"a2a\", which needs the address of the remote agent; add url = \"https://...\", \
             or use `sabir proxy URL`\n\
             sabir.toml:4: workspace is for programs; an agent of kind a2a has no use for it",
        ),
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
