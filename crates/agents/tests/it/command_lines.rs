//! The arguments and the standard input of each program.

use std::path::PathBuf;
use std::time::Duration;

use sabir_agents::kinds::PROGRAMS;
use sabir_agents::output_formats::{configured, environment, one_shot};
use sabir_agents::program::settings::{Isolation, Kind, Mode, PromptBy, Settings, SharedWorkspace};
use sabir_agents::prompt::{AgentsDoor, Approve, Prompt, Workspace};

use sabir_agents::protocols::{ClaudeControl, CodexServer};

use crate::step_rows::rows;

/// A first turn with nothing set. Its text looks like a flag.
fn bare() -> Prompt {
    Prompt { text: "-rf x".to_owned(), folder: "/w".into(), ..Prompt::default() }
}

/// A later turn with everything set.
fn full() -> Prompt {
    Prompt {
        text: "go on".to_owned(),
        session: Some("s1".to_owned()),
        model: Some("m1".to_owned()),
        instructions: Some("be \"brief\"".to_owned()),
        approve: Approve::All,
        folder: "/w".into(),
        trusts_prompts: true,
        workspace: Workspace::Trusted,
        ..Prompt::default()
    }
}

#[test]
fn the_door_to_other_agents_is_named_and_its_credential_is_not() {
    let agents_door = Some(AgentsDoor {
        url: "http://127.0.0.1:1/mcp".into(),
        bridge: "/bin/sabir".into(),
        credential: "sabir_d_secret".into(),
    });
    assert!(!format!("{agents_door:?}").contains("secret"));
    let prompt = Prompt { agents_door, ..bare() };
    let claude = "--mcp-config={\"mcpServers\":{\"sabir\":{\"headers\":{\"Authorization\":\"Bearer ${SABIR_DELEGATION_TOKEN}\"},\
                  \"type\":\"http\",\"url\":\"http://127.0.0.1:1/mcp\"}}}\n--allowedTools=mcp__sabir";
    let codex = "-c\nmcp_servers.sabir.url=\"http://127.0.0.1:1/mcp\"\n\
                 -c\nmcp_servers.sabir.bearer_token_env_var=\"SABIR_DELEGATION_TOKEN\"";
    for (arguments, expected) in [
        (one_shot(Kind::ClaudeCode, &prompt).0, claude),
        (ClaudeControl::arguments(&prompt), claude),
        (one_shot(Kind::Codex, &prompt).0, codex),
        (CodexServer::arguments(&prompt), codex),
    ] {
        let arguments = arguments.join("\n");
        assert!(arguments.contains(expected), "{arguments}");
        assert!(!arguments.contains("secret"), "{arguments}");
    }
}

const BARE_INPUT: &str = "write \"-rf x\"\nclose input";
const FULL_INPUT: &str = "write \"go on\"\nclose input";
const NO_INPUT: &str = "close input";

fn check(kind: Kind, prompt: &Prompt, arguments: &[&str], input: &str) {
    let (said, mut adapter) = one_shot(kind, prompt);
    assert_eq!(said, arguments, "{kind:?}");
    assert_eq!(rows(&adapter.begin()).trim_end(), input, "{kind:?}");
}

#[test]
fn claude() {
    let usual = ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"];
    let confined = ["--setting-sources=user", "--strict-mcp-config", "--add-dir=/w"];
    let expected = [&usual[..], &["--permission-mode=default"], &confined].concat();
    check(Kind::ClaudeCode, &bare(), &expected, BARE_INPUT);
    let set = ["--model=m1", "--append-system-prompt=be \"brief\"", "--resume=s1", "--dangerously-skip-permissions"];
    check(Kind::ClaudeCode, &full(), &[&usual[..], &set].concat(), FULL_INPUT);
}

#[test]
fn codex() {
    let trust = [r#"projects={"/w"={trust_level="untrusted"}}"#, r#"projects={"/w"={trust_level="trusted"}}"#];
    check(
        Kind::Codex,
        &bare(),
        &["exec", "--json", "--skip-git-repo-check", "-c", trust[0], "--sandbox=read-only", "-"],
        BARE_INPUT,
    );
    check(
        Kind::Codex,
        &full(),
        &[
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--model=m1",
            "-c",
            r#"developer_instructions="be \"brief\"""#,
            "-c",
            trust[1],
            "--dangerously-bypass-approvals-and-sandbox",
            "resume",
            "s1",
            "-",
        ],
        FULL_INPUT,
    );
}

#[test]
fn gemini() {
    check(Kind::Gemini, &bare(), &["--output-format=stream-json", "--approval-mode=default"], BARE_INPUT);
    let set = ["--output-format=stream-json", "--model=m1", "--resume=s1", "--approval-mode=yolo"];
    check(Kind::Gemini, &full(), &set, FULL_INPUT);
}

#[test]
fn opencode() {
    check(Kind::Opencode, &bare(), &["run", "--format=json", "--thinking"], BARE_INPUT);
    let set = ["run", "--format=json", "--thinking", "--model=m1", "--session=s1", "--auto"];
    check(Kind::Opencode, &full(), &set, FULL_INPUT);
}

#[test]
fn goose() {
    check(Kind::Goose, &bare(), &["run", "--output-format=stream-json", "--instructions=-"], BARE_INPUT);
    let set = [
        "run",
        "--output-format=stream-json",
        "--resume",
        "--session-id=s1",
        "--system=be \"brief\"",
        "--instructions=-",
    ];
    check(Kind::Goose, &full(), &set, FULL_INPUT);
}

#[test]
fn copilot() {
    check(Kind::Copilot, &bare(), &["--output-format=json", "--prompt=-rf x"], NO_INPUT);
    let set = ["--output-format=json", "--model=m1", "--resume=s1", "--allow-all-tools", "--prompt=go on"];
    check(Kind::Copilot, &full(), &set, NO_INPUT);
}

#[test]
fn qwen() {
    let usual = ["--output-format", "stream-json", "--include-partial-messages"];
    check(Kind::Qwen, &bare(), &[&usual[..], &["--approval-mode=default"]].concat(), BARE_INPUT);
    let set = ["--model=m1", "--append-system-prompt=be \"brief\"", "--resume=s1", "--approval-mode=yolo"];
    check(Kind::Qwen, &full(), &[&usual[..], &set].concat(), FULL_INPUT);
}

#[test]
fn vibe() {
    check(Kind::Vibe, &bare(), &["--trust", "--output=streaming", "--agent=ask", "--prompt=-rf x"], NO_INPUT);
    let set = ["--trust", "--output=streaming", "--resume=s1", "--auto-approve", "--prompt=go on"];
    check(Kind::Vibe, &full(), &set, NO_INPUT);
}

#[test]
fn cursor() {
    let usual = ["--print", "--output-format", "stream-json"];
    check(Kind::Cursor, &bare(), &[&usual[..], &["--", "-rf x"]].concat(), NO_INPUT);
    check(Kind::Cursor, &full(), &[&usual[..], &["-f", "--model=m1", "--resume=s1", "go on"]].concat(), NO_INPUT);
}

#[test]
fn generic_and_any() {
    // It may ask, so its input stays open.
    check(Kind::Generic, &bare(), &["--", "-rf x"], "");
    check(Kind::Generic, &full(), &["go on"], NO_INPUT);
    check(Kind::Generic, &Prompt { approve: Approve::None, ..bare() }, &["--", "-rf x"], NO_INPUT);
    check(Kind::Command, &bare(), &[], BARE_INPUT);
    check(Kind::Command, &full(), &[], FULL_INPUT);
}

#[test]
fn asking_where_nobody_answers_is_no() {
    for kind in [Kind::ClaudeCode, Kind::Codex, Kind::Gemini, Kind::Copilot, Kind::Qwen, Kind::Vibe, Kind::Cursor] {
        let none = Prompt { approve: Approve::None, ..bare() };
        assert_eq!(one_shot(kind, &bare()).0, one_shot(kind, &none).0, "{kind:?}");
    }
}

#[test]
fn instructions_come_first_where_there_is_no_flag_for_them() {
    let first = Prompt { session: None, ..full() };
    for kind in [Kind::Gemini, Kind::Opencode, Kind::Command] {
        let (_, mut adapter) = one_shot(kind, &first);
        assert_eq!(rows(&adapter.begin()), "write \"be \\\"brief\\\"\\n\\ngo on\"\nclose input\n", "{kind:?}");
    }
    for (kind, start) in
        [(Kind::Copilot, "--prompt="), (Kind::Vibe, "--prompt="), (Kind::Cursor, ""), (Kind::Generic, "")]
    {
        let (arguments, _) = one_shot(kind, &first);
        assert_eq!(arguments.last().unwrap(), &format!("{start}be \"brief\"\n\ngo on"), "{kind:?}");
    }
}

/// All users of the machine can read arguments. A program that reads its prompt on standard input gets it there.
#[test]
fn prompts_stand_in_arguments_only_where_the_documentation_says_so() {
    let document = include_str!("../../../../docs/guides/coding-agents.md");
    for known in &PROGRAMS {
        let (arguments, _) = one_shot(known.kind, &bare());
        let is_argument = arguments.iter().any(|argument| argument.contains("-rf x"));
        assert_eq!(is_argument, matches!(known.name, "generic" | "copilot" | "cursor" | "vibe"), "{}", known.name);
        let paragraph = document.split("- Prompts go to").nth(1).unwrap().split("Instructions").next().unwrap();
        assert_eq!(is_argument, paragraph.contains(&format!("`{}`", known.name)), "{}", known.name);
    }
}

#[test]
fn arguments_have_no_zero_bytes() {
    for kind in [Kind::Copilot, Kind::Vibe, Kind::Cursor, Kind::Generic] {
        let (arguments, _) = one_shot(kind, &Prompt { text: "\0-a\0b".to_owned(), ..Prompt::default() });
        assert!(arguments.iter().all(|argument| !argument.contains('\0')), "{kind:?}");
        assert!(arguments.last().unwrap().ends_with("-ab"), "{kind:?}");
    }
}

#[test]
fn instructions_for_codex_are_toml() {
    let prompt = Prompt { instructions: Some("a\n\"b\" \\ \u{7f}".to_owned()), ..bare() };
    assert!(one_shot(Kind::Codex, &prompt).0.contains(&r#"developer_instructions="a\n\"b\" \\ \u007F""#.to_owned()));
}

#[test]
fn the_environment_says_what_no_flag_can() {
    let said = |kind, prompt: &Prompt| {
        let variables = environment(kind, prompt);
        variables.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    for (kind, approve, expected) in [
        (Kind::ClaudeCode, Approve::All, ""),
        (Kind::Gemini, Approve::None, "GEMINI_CLI_NO_RELAUNCH=true"),
        (Kind::Goose, Approve::All, "GOOSE_MODE=auto GOOSE_MODEL=m1"),
        (Kind::Goose, Approve::Ask, "GOOSE_MODE=chat GOOSE_MODEL=m1"),
        (Kind::Opencode, Approve::All, ""),
        (Kind::Opencode, Approve::Ask, r#"OPENCODE_PERMISSION={"bash":"ask","edit":"ask"}"#),
        (Kind::Opencode, Approve::None, r#"OPENCODE_PERMISSION={"bash":"deny","edit":"deny"}"#),
        (Kind::Vibe, Approve::None, "VIBE_ACTIVE_MODEL=m1"),
    ] {
        assert_eq!(said(kind, &Prompt { approve, ..full() }), expected, "{kind:?} {approve:?}");
    }
    let untrusted = "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1 CLAUDE_CODE_DISABLE_FILE_MENTIONS=1";
    assert_eq!(said(Kind::ClaudeCode, &bare()), untrusted);
}

#[test]
fn further_arguments_stand_before_the_task() {
    for (kind, prompt, expected) in [
        (Kind::Generic, bare(), &["--extra", "--", "-rf x"][..]),
        (Kind::Cursor, full(), &["--resume=s1", "--extra", "go on"]),
        (Kind::Codex, full(), &["--extra", "resume", "s1", "-"]),
        (Kind::Codex, bare(), &["--extra", "-"]),
        (Kind::Gemini, bare(), &["--approval-mode=default", "--extra"]),
        (Kind::Command, bare(), &["--extra"]),
    ] {
        let (arguments, _) = configured(&settings(kind, None), &prompt);
        assert!(
            arguments.ends_with(&expected.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_generic_program_asks_as_it_is_configured_to() {
    let (_, mut adapter) = configured(&settings(Kind::Generic, Some("^May I")), &bare());
    assert_eq!(rows(&adapter.on_line("Continue?")), "not understood \"Continue?\"\n");
    assert!(rows(&adapter.on_line("May I go")).starts_with("ask question-1 \"May I go\""));
}

/// Its input is closed at once unless it reads answers there; a policy answers only questions whose form is known.
#[test]
fn what_a_generic_program_reads() {
    for (approve, pattern, prompt_by, begins, answer) in [
        (Approve::None, None, PromptBy::Argument, "close input", "not understood \"May I\""),
        (Approve::All, None, PromptBy::Argument, "close input", "not understood \"May I\""),
        (Approve::None, Some("May I"), PromptBy::Argument, "", "write \"n\""),
        (Approve::All, Some("May I"), PromptBy::Argument, "", "write \"y\""),
        (
            Approve::Ask,
            Some("May I"),
            PromptBy::Argument,
            "",
            "ask question-1 \"May I\" [yes AllowOnce, no RejectOnce]",
        ),
        (Approve::None, None, PromptBy::Stdin, BARE_INPUT, "not understood \"May I\""),
        (Approve::All, Some("May I"), PromptBy::Stdin, "write \"-rf x\"", "write \"y\""),
    ] {
        let settings = Settings { approve, prompt_by, ..settings(Kind::Generic, pattern) };
        let (arguments, mut adapter) = configured(&settings, &Prompt { approve, ..bare() });
        let said = format!("{approve:?} {pattern:?} {prompt_by:?}");
        assert_eq!(
            arguments.join(" "),
            if prompt_by == PromptBy::Stdin { "--extra" } else { "--extra -- -rf x" },
            "{said}"
        );
        assert_eq!(rows(&adapter.begin()).trim_end(), begins, "{said}");
        assert_eq!(rows(&adapter.on_line("May I")).trim_end(), answer, "{said}");
    }
}

fn settings(kind: Kind, pattern: Option<&str>) -> Settings {
    Settings {
        kind,
        mode: Mode::OneShot,
        command: None,
        arguments: vec!["--extra".to_owned()],
        model: None,
        instructions: None,
        workspace: PathBuf::new(),
        roots: vec![],
        isolation: Isolation::Shared,
        shared_workspace: SharedWorkspace::Queue,
        approve: Approve::Ask,
        approval_timeout: None,
        hibernate_after: None,
        asks_again_within: Duration::ZERO,
        environment: vec![],
        pass: vec![],
        approval_pattern: pattern.map(str::to_owned),
        tell_stderr: false,
        keep_files: false,
        prompt_by: PromptBy::default(),
        approval_response: "y".to_owned(),
        trusts_prompts: false,
        trusts_workspace: false,
        max_line: 1 << 20,
        max_output: 1 << 30,
        stop_grace: Duration::from_secs(2),
        keep_warm: None,
        portable: false,
        delegate: None,
    }
}
