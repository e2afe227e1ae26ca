//! Claude Code's control protocol on scripted lines, for what no recording shows.

use sabir_agents::adapter::{Adapter, Step};
use sabir_agents::prompt::{Approve, ProjectRules, Prompt, Workspace};
use sabir_agents::protocols::ClaudeControl;
use sabir_agents::update::{Reply, Update};
use serde_json::Value;

use super::script::*;

pub const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;

pub fn prompt_with_id(id: &str) -> Prompt {
    Prompt { id: Some(id.into()), ..prompt() }
}

/// How the program reports the state of a prompt.
pub fn lifecycle(id: &str, state: &str) -> String {
    format!(r#"{{"type":"command_lifecycle","command_uuid":"{id}","state":"{state}"}}"#)
}

/// Claude Code after a completed turn.
pub fn idle_claude() -> ClaudeControl {
    let mut claude = ClaudeControl::new(prompt_with_id("first"), Vec::new());
    claude.begin();
    claude.on_line(&lifecycle("first", "started"));
    claude.on_line(DONE);
    claude
}

#[test]
fn claude_code_that_works_by_itself_between_turns_gets_no_next_turn() {
    for (line, is_ready) in [
        (r#"{"type":"rate_limit_event"}"#, true),
        (r#"{"type":"system","subtype":"status"}"#, true),
        (r#"{"type":"system","subtype":"init","session_id":"s"}"#, false),
        (r#"{"type":"assistant","message":{"content":[{"type":"text","text":"the command has ended"}]}}"#, false),
        (r#"{"type":"stream_event","event":{"type":"message_start"}}"#, false),
        (DONE, false),
    ] {
        let mut claude = idle_claude();
        assert!(claude.awaits_next_turn());
        claude.on_line_between_turns(line);
        assert_eq!(claude.next_turn(&prompt_with_id("second"), &[]).is_some(), is_ready, "{line}");
    }
}

#[test]
fn claude_code_gets_a_next_turn_only_if_it_says_when_it_begins_with_a_prompt() {
    for (life, is_ready) in
        [(Some(lifecycle("first", "started")), true), (Some(lifecycle("other", "started")), false), (None, false)]
    {
        let mut claude = ClaudeControl::new(prompt_with_id("first"), Vec::new());
        claude.begin();
        life.iter().for_each(|life| drop(claude.on_line(life)));
        assert_eq!(claude.on_line(DONE).len(), 2, "the first turn ends as ever");
        assert_eq!(claude.awaits_next_turn(), is_ready, "{life:?}");
    }
}

#[test]
fn claude_code_may_begin_a_turn_of_its_own_before_the_first() {
    // The program does this when it resumes a session in which a background command has not ended.
    let mut claude = ClaudeControl::new(prompt_with_id("first"), Vec::new());
    claude.begin();
    for line in [&lifecycle("first", "queued"), DONE, &lifecycle("first", "started")] {
        assert_eq!(claude.on_line(line), [], "{line}");
    }
    assert!(matches!(claude.on_line(DONE)[..], [Step::Report(Update::Done { .. }), Step::CloseInput]));
}

#[test]
fn claude_code_that_works_in_the_background_gets_no_next_turn() {
    let tasks = |tasks: &str| format!(r#"{{"type":"system","subtype":"background_tasks_changed","tasks":{tasks}}}"#);
    for (lines, is_ready) in [
        (vec![], true),
        (vec![tasks(r#"[{"task_id":"b"}]"#)], false),
        (vec![tasks(r#"[{"task_id":"b"}]"#), tasks("[]")], true),
    ] {
        let mut claude = ClaudeControl::new(prompt_with_id("first"), Vec::new());
        claude.begin();
        claude.on_line(&lifecycle("first", "started"));
        for line in &lines {
            assert_eq!(claude.on_line(line), []);
        }
        claude.on_line(DONE);
        assert_eq!(claude.awaits_next_turn(), is_ready, "{lines:?}");
    }
}

#[test]
fn what_claude_code_says_before_it_begins_with_the_prompt_is_not_of_its_turn() {
    let mut claude = idle_claude();
    let begun = claude.next_turn(&prompt_with_id("second"), &[]).unwrap();
    let [Step::Write(line)] = &begun[..] else { panic!("{begun:?}") };
    assert_eq!(serde_json::from_str::<Value>(line).unwrap()["uuid"], "second");
    let request = r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}"#;
    let text = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"late"}]}}"#;
    for line in [text, DONE, &lifecycle("first", "completed"), &lifecycle("second", "queued"), text, DONE] {
        assert_eq!(claude.on_line(line), [], "{line}");
    }
    let [Step::Write(refusal)] = &claude.on_line(request)[..] else { panic!("the caller is not asked") };
    assert!(refusal.contains("nobody can be asked now"), "{refusal}");
    let init = claude.on_line(r#"{"type":"system","subtype":"init","session_id":"s"}"#);
    assert!(matches!(init[..], [Step::Report(Update::Init { .. })]), "{init:?}");

    assert_eq!(claude.on_line(&lifecycle("second", "started")), []);
    assert!(matches!(claude.on_line(text)[..], [Step::Report(Update::Text(_))]));
    assert!(matches!(claude.on_line(request)[..], [Step::Ask(_)]));
    assert!(matches!(claude.on_line(DONE)[..], [Step::Report(Update::Done { .. }), Step::CloseInput]));
    assert!(claude.awaits_next_turn());
}

#[test]
fn claude_code_that_is_interrupted_before_it_begins_with_the_prompt_is_heard() {
    let mut claude = idle_claude();
    claude.next_turn(&prompt_with_id("second"), &[]).unwrap();
    claude.interrupt();
    let aborted = r#"{"type":"result","subtype":"error_during_execution","terminal_reason":"aborted_streaming"}"#;
    assert!(matches!(claude.on_line(aborted)[..], [Step::Report(Update::Interrupted), Step::CloseInput]));
}

#[test]
fn claude_is_started_with_what_the_settings_of_its_prompt() {
    let prompt = Prompt { model: Some("m".into()), instructions: Some("be kind".into()), ..resuming_prompt() };
    let arguments = ClaudeControl::arguments(&prompt).join(" ");
    let expected = "-p --input-format stream-json --output-format stream-json --verbose --include-partial-messages \
                    --permission-prompt-tool stdio --model m --append-system-prompt be kind --resume old --setting-sources=user \
                    --strict-mcp-config --add-dir=/w";
    assert_eq!(arguments, expected);
    let rules = ProjectRules { deny: vec!["Read(./.env)".into()], ask: vec![] };
    let restricted = Prompt { workspace: Workspace::Untrusted { rules, instructions: None }, ..prompt.clone() };
    let settings = r#"--settings={"permissions":{"ask":[],"deny":["Read(./.env)"]}}"#;
    assert_eq!(ClaudeControl::arguments(&restricted).last().unwrap(), settings);
    let trusted = ClaudeControl::arguments(&Prompt { workspace: Workspace::Trusted, ..prompt });
    assert_eq!(trusted.last().unwrap(), "old");
}

#[test]
fn claude_is_answered_by_policy_and_by_the_caller() {
    let request = |tool: &str, input: &str| {
        format!(
            r#"{{"type":"control_request","request_id":"r","request":{{"subtype":"can_use_tool","tool_name":"{tool}","input":{input},"permission_suggestions":[{{"type":"addRules","behavior":"allow","rules":[{{"toolName":"Bash"}}],"destination":"localSettings"}},{{"type":"replaceRules","destination":"userSettings"}}]}}}}"#
        )
    };
    let chosen =
        |choice: &str, said: Option<&str>| Reply::Chosen { choice: choice.into(), comment: said.map(str::to_owned) };
    let bash = request("Bash", r#"{"command":"ls"}"#);
    let allowed = r#"{"behavior":"allow","updatedInput":{"command":"ls"}}"#;
    let ask = r#"{"questions":[{"question":"Colour?","options":[{"label":"red"}]},{"question":"Size?"}]}"#;
    let ask = request("AskUserQuestion", ask);
    for (approve, line, replies, expected) in [
        (Approve::All, &bash, vec![], allowed),
        (
            Approve::None,
            &bash,
            vec![],
            r#"{"behavior":"deny","message":"tools that need permission are not allowed here"}"#,
        ),
        (Approve::Ask, &bash, vec![chosen("allow", None)], allowed),
        (
            Approve::Ask,
            &bash,
            vec![chosen("allow_always", None)],
            r#"{"behavior":"allow","updatedInput":{"command":"ls"},"updatedPermissions":[{"behavior":"allow","destination":"session","rules":[{"toolName":"Bash"}],"type":"addRules"}]}"#,
        ),
        (Approve::Ask, &bash, vec![chosen("reject", Some("not now"))], r#"{"behavior":"deny","message":"not now"}"#),
        (Approve::Ask, &bash, vec![Reply::Unanswered], r#"{"behavior":"deny","message":"nobody answered"}"#),
        (
            Approve::All,
            &ask,
            vec![],
            r#"{"behavior":"deny","message":"Nobody can answer questions here. Decide by yourself, and say in your answer what you assumed."}"#,
        ),
        (
            Approve::Ask,
            &ask,
            vec![chosen("red", None), Reply::Text("large".into())],
            r#"{"behavior":"allow","updatedInput":{"answers":{"Colour?":"red","Size?":"large"},"questions":[{"options":[{"label":"red"}],"question":"Colour?"},{"question":"Size?"}]}}"#,
        ),
    ] {
        let mut machine = ClaudeControl::new(Prompt { approve, ..prompt() }, Vec::new());
        let mut steps = machine.on_line(line);
        for reply in &replies {
            let [Step::Ask(question)] = &steps[..] else { panic!("{steps:?}") };
            steps = machine.answer(&question.clone(), reply);
        }
        let [Step::Write(line)] = &steps[..] else { panic!("{steps:?}") };
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["response"]["response"].to_string(), expected);
        assert_eq!(line["response"]["request_id"], "r");
    }
}

#[test]
fn claude_may_not_use_a_tool_whose_input_cannot_be_shown() {
    let nested = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let line = format!(
        r#"{{"type":"control_request","request_id":"r","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{{"command":"ls","x":{nested}}}}}}}"#
    );
    for approve in [Approve::Ask, Approve::All, Approve::None] {
        let mut machine = ClaudeControl::new(Prompt { approve, ..prompt() }, Vec::new());
        let steps = machine.on_line(&line);
        let [Step::Write(line)] = &steps[..] else { panic!("{steps:?}") };
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["response"]["subtype"], "error", "{approve:?}");
    }
}

#[test]
fn claude_says_why_it_failed() {
    for (line, expected) in [
        (r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 400"}"#, "failed API Error: 400"),
        (r#"{"type":"result","subtype":"error_max_turns"}"#, "failed the program took as many steps as it may"),
        (
            r#"{"type":"result","subtype":"error_during_execution","errors":["No conversation found"]}"#,
            "failed No conversation found",
        ),
        (r#"{"type":"result","subtype":"error_during_execution","terminal_reason":"aborted_tools"}"#, "interrupted"),
    ] {
        assert_eq!(run_lines(ClaudeControl::new(prompt(), Vec::new()), &[line]), format!("prompt, {expected}, close"));
    }
}
