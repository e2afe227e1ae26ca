//! Protocols on scripted lines, for what no recording shows: each row is a prompt, the lines of a program, and the expected
//! steps.

use sabir_agents::adapter::{Adapter, Exit, Step};
use sabir_agents::prompt::{Approve, ProjectRules, Prompt, Workspace};
use sabir_agents::protocols::{Acp, Attachment, ClaudeControl, CodexServer};
use sabir_agents::update::{Question, Reply, Update};
use serde_json::Value;

const GREETED: &str = r#"{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#;
const OPENED: &str = r#"{"id":2,"result":{"sessionId":"s"}}"#;

fn prompt() -> Prompt {
    Prompt { text: "go".into(), folder: "/w".into(), ..Prompt::default() }
}

fn going_on() -> Prompt {
    Prompt { session: Some("old".into()), ..prompt() }
}

const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;

fn named(id: &str) -> Prompt {
    Prompt { id: Some(id.into()), ..prompt() }
}

/// How the program reports the state of a prompt.
fn life(id: &str, state: &str) -> String {
    format!(r#"{{"type":"command_lifecycle","command_uuid":"{id}","state":"{state}"}}"#)
}

/// Claude Code after a completed turn.
fn rested() -> ClaudeControl {
    let mut claude = ClaudeControl::new(named("first"), Vec::new());
    claude.begin();
    claude.on_line(&life("first", "started"));
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
        let mut claude = rested();
        assert!(claude.awaits_next_turn());
        claude.on_line_between_turns(line);
        assert_eq!(claude.next_turn(&named("second"), &[]).is_some(), is_ready, "{line}");
    }
}

#[test]
fn claude_code_gets_a_next_turn_only_if_it_says_when_it_begins_with_a_prompt() {
    for (life, is_ready) in
        [(Some(life("first", "started")), true), (Some(life("other", "started")), false), (None, false)]
    {
        let mut claude = ClaudeControl::new(named("first"), Vec::new());
        claude.begin();
        life.iter().for_each(|life| drop(claude.on_line(life)));
        assert_eq!(claude.on_line(DONE).len(), 2, "the first turn ends as ever");
        assert_eq!(claude.awaits_next_turn(), is_ready, "{life:?}");
    }
}

#[test]
fn claude_code_may_begin_a_turn_of_its_own_before_the_first() {
    // The program does this when it resumes a session in which a background command has not ended.
    let mut claude = ClaudeControl::new(named("first"), Vec::new());
    claude.begin();
    for line in [&life("first", "queued"), DONE, &life("first", "started")] {
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
        let mut claude = ClaudeControl::new(named("first"), Vec::new());
        claude.begin();
        claude.on_line(&life("first", "started"));
        for line in &lines {
            assert_eq!(claude.on_line(line), []);
        }
        claude.on_line(DONE);
        assert_eq!(claude.awaits_next_turn(), is_ready, "{lines:?}");
    }
}

#[test]
fn what_claude_code_says_before_it_begins_with_the_prompt_is_not_of_its_turn() {
    let mut claude = rested();
    let begun = claude.next_turn(&named("second"), &[]).unwrap();
    let [Step::Write(line)] = &begun[..] else { panic!("{begun:?}") };
    assert_eq!(serde_json::from_str::<Value>(line).unwrap()["uuid"], "second");
    let request = r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}"#;
    let text = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"late"}]}}"#;
    for line in [text, DONE, &life("first", "completed"), &life("second", "queued"), text, DONE] {
        assert_eq!(claude.on_line(line), [], "{line}");
    }
    let [Step::Write(refusal)] = &claude.on_line(request)[..] else { panic!("the caller is not asked") };
    assert!(refusal.contains("nobody can be asked now"), "{refusal}");
    let init = claude.on_line(r#"{"type":"system","subtype":"init","session_id":"s"}"#);
    assert!(matches!(init[..], [Step::Report(Update::Init { .. })]), "{init:?}");

    assert_eq!(claude.on_line(&life("second", "started")), []);
    assert!(matches!(claude.on_line(text)[..], [Step::Report(Update::Text(_))]));
    assert!(matches!(claude.on_line(request)[..], [Step::Ask(_)]));
    assert!(matches!(claude.on_line(DONE)[..], [Step::Report(Update::Done { .. }), Step::CloseInput]));
    assert!(claude.awaits_next_turn());
}

#[test]
fn claude_code_that_is_interrupted_before_it_begins_with_the_prompt_is_heard() {
    let mut claude = rested();
    claude.next_turn(&named("second"), &[]).unwrap();
    claude.interrupt();
    let aborted = r#"{"type":"result","subtype":"error_during_execution","terminal_reason":"aborted_streaming"}"#;
    assert!(matches!(claude.on_line(aborted)[..], [Step::Report(Update::Interrupted), Step::CloseInput]));
}

/// Codex after a completed turn.
fn codex_at_rest() -> CodexServer {
    let mut codex = CodexServer::new(prompt(), Vec::new());
    codex.begin();
    for line in [
        r#"{"id":1,"result":{}}"#,
        r#"{"id":2,"result":{"thread":{"id":"t"}}}"#,
        r#"{"id":3,"result":{"turn":{"id":"first"}}}"#,
        r#"{"method":"turn/started","params":{"threadId":"t","turn":{"id":"first"}}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"first","status":"completed"}}}"#,
    ] {
        codex.on_line(line);
    }
    assert!(codex.awaits_next_turn());
    codex
}

#[test]
fn what_codex_says_of_an_earlier_turn_is_not_told_in_the_next() {
    let delta = |turn: &str| {
        format!(
            r#"{{"method":"item/agentMessage/delta","params":{{"threadId":"t","turnId":"{turn}","itemId":"i","delta":"x"}}}}"#
        )
    };
    let started =
        |turn: &str| format!(r#"{{"method":"turn/started","params":{{"threadId":"t","turn":{{"id":"{turn}"}}}}}}"#);
    let completed = |turn: &str| {
        format!(
            r#"{{"method":"turn/completed","params":{{"threadId":"t","turn":{{"id":"{turn}","status":"completed"}}}}}}"#
        )
    };
    let ask = |turn: &str| {
        format!(
            r#"{{"id":9,"method":"item/commandExecution/requestApproval","params":{{"threadId":"t","turnId":"{turn}","command":"ls"}}}}"#
        )
    };
    let mut codex = codex_at_rest();
    codex.next_turn(&prompt(), &[]).unwrap();
    let answer = r#"{"id":4,"result":{"turn":{"id":"second"}}}"#;
    for is_answered in [false, true] {
        if is_answered {
            codex.on_line(answer);
        }
        for line in [delta("first"), started("first"), completed("first")] {
            assert_eq!(codex.on_line(&line), [], "{line}");
        }
        assert!(matches!(codex.on_line(&ask("first"))[..], [Step::Write(_)]), "the caller is not asked");
    }
    assert_eq!(codex.on_line(&started("second")), []);
    assert!(matches!(codex.on_line(&delta("second"))[..], [Step::Report(Update::Text(_))]));
    assert!(matches!(codex.on_line(&ask("second"))[..], [Step::Ask(_)]));
    // A subagent's thread has its own turns, and its questions are for the caller, too.
    assert!(matches!(codex.on_line(&ask("third").replace(r#""t""#, r#""helper""#))[..], [Step::Ask(_)]));
    assert!(matches!(codex.on_line(&completed("second"))[..], [Step::Report(Update::Done { .. }), Step::CloseInput]));
}

#[test]
fn programs_that_work_by_themselves_between_turns_get_no_next_turn() {
    for (line, is_ready) in [
        (r#"{"method":"thread/status/changed","params":{"threadId":"t"}}"#, true),
        (r#"{"method":"turn/started","params":{"threadId":"t","turn":{"id":"own"}}}"#, false),
    ] {
        let mut codex = codex_at_rest();
        codex.on_line_between_turns(line);
        assert_eq!(codex.next_turn(&prompt(), &[]).is_some(), is_ready, "{line}");
    }
    for (update, is_ready) in [
        (r#"{"sessionUpdate":"agent_message_chunk","content":{"text":"late"}}"#, true),
        (r#"{"sessionUpdate":"tool_call_update","toolCallId":"known","status":"completed"}"#, true),
        (r#"{"sessionUpdate":"tool_call","toolCallId":"known"}"#, true),
        (r#"{"sessionUpdate":"tool_call","toolCallId":"quick","status":"completed"}"#, true),
        (r#"{"sessionUpdate":"tool_call","toolCallId":"new"}"#, false),
    ] {
        let mut acp = acp_at_rest();
        acp.on_line_between_turns(&updated(update));
        assert_eq!(acp.next_turn(&prompt(), &[]).is_some(), is_ready, "{update}");
    }
}

fn updated(update: &str) -> String {
    format!(r#"{{"method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#)
}

/// A program that speaks the Agent Client Protocol, after a completed turn that used a tool.
fn acp_at_rest() -> Acp {
    let mut acp = Acp::new(prompt(), Vec::new());
    acp.begin();
    let tool = updated(r#"{"sessionUpdate":"tool_call","toolCallId":"known","title":"make"}"#);
    for line in [GREETED, OPENED, &tool, r#"{"id":3,"result":{"stopReason":"end_turn"}}"#] {
        acp.on_line(line);
    }
    assert!(acp.awaits_next_turn());
    acp
}

#[test]
fn a_tool_that_ends_in_the_next_turn_is_not_told_there() {
    let mut acp = acp_at_rest();
    acp.next_turn(&prompt(), &[]).unwrap();
    let ended = updated(r#"{"sessionUpdate":"tool_call_update","toolCallId":"known","status":"completed"}"#);
    assert_eq!(acp.on_line(&ended), []);
    // A program may restart its tool ids in each turn.
    acp.on_line(&updated(r#"{"sessionUpdate":"tool_call","toolCallId":"known","title":"make"}"#));
    assert_eq!(acp.on_line(&ended).len(), 2);
}

#[test]
fn an_acp_session_is_opened_as_the_program_can() {
    let prepared = Prompt { model: Some("m".into()), approve: Approve::All, ..prompt() };
    let options = r#"{"id":2,"result":{"sessionId":"s","configOptions":[{"id":"model","category":"model","currentValue":"old","options":[{"value":"old"},{"value":"m"}]}]}}"#;
    let modes = r#"{"id":2,"result":{"sessionId":"s","models":{},"modes":{"availableModes":[{"id":"yolo"}]}}}"#;
    for (name, prompt, lines, expected) in [
        (
            "a session that is not known any more",
            going_on(),
            vec![
                GREETED,
                r#"{"id":2,"error":{"code":-32602,"message":"unknown"}}"#,
                r#"{"id":3,"result":{"sessionId":"s"}}"#,
            ],
            "initialize, session/load, progress The earlier session cannot be resumed, a new one begins: unknown, \
             session/new, init s, session/prompt",
        ),
        (
            "a program that keeps no sessions",
            going_on(),
            vec![r#"{"id":1,"result":{"protocolVersion":1}}"#, OPENED],
            "initialize, progress The earlier session cannot be resumed, a new one begins: the program keeps no \
             sessions, session/new, init s, session/prompt",
        ),
        (
            "model and mode",
            prepared.clone(),
            vec![GREETED, modes, r#"{"id":3,"result":{}}"#, r#"{"id":4,"error":{"message":"no"}}"#],
            "initialize, session/new, session/set_model, session/set_mode, init s, session/prompt",
        ),
        (
            "a model that the program refuses",
            prepared.clone(),
            vec![GREETED, modes, r#"{"id":3,"error":{"message":"unknown"}}"#],
            "initialize, session/new, session/set_model, failed the model m cannot be used: unknown, close",
        ),
        (
            "a model that cannot be chosen",
            prepared.clone(),
            vec![GREETED, OPENED],
            "initialize, session/new, failed the model m cannot be used: the program does not let its model be chosen, \
             close",
        ),
        (
            "a model among the options of the session",
            prepared.clone(),
            vec![GREETED, options, r#"{"id":3,"result":{"configOptions":[{"id":"model","currentValue":"m"}]}}"#],
            "initialize, session/new, session/set_config_option, init s, session/prompt",
        ),
        (
            "an option that the program refuses",
            prepared.clone(),
            vec![GREETED, options, r#"{"id":3,"error":{"code":-32602,"message":"no such value"}}"#],
            "initialize, session/new, session/set_config_option, failed the model m cannot be used: no such value, close",
        ),
        (
            "an option that the program does not change",
            prepared.clone(),
            vec![GREETED, options, r#"{"id":3,"result":{"configOptions":[{"id":"model","currentValue":"old"}]}}"#],
            "initialize, session/new, session/set_config_option, failed the model m cannot be used: the program uses old \
             instead, close",
        ),
        (
            "a model that is not among the options",
            Prompt { model: Some("x".into()), ..prepared.clone() },
            vec![GREETED, options],
            "initialize, session/new, failed the model x cannot be used: the program does not have it; it has old, m, \
             close",
        ),
        (
            "a session that is resumed gets the model too",
            Prompt { session: Some("old".into()), ..prepared },
            vec![GREETED, options, r#"{"id":3,"result":{}}"#],
            "initialize, session/load, session/set_config_option, init s, session/prompt",
        ),
        (
            "a program that is not logged in",
            prompt(),
            vec![
                r#"{"id":1,"result":{"authMethods":[{"name":"Log in with Google"}]}}"#,
                r#"{"id":2,"error":{"code":-32000,"message":"Authentication required"}}"#,
            ],
            "initialize, session/new, failed the program is not logged in: log in with its own command first (it offers: \
             Log in with Google). It said: Authentication required, close",
        ),
        (
            "another version",
            prompt(),
            vec![r#"{"id":1,"result":{"protocolVersion":2}}"#],
            "initialize, failed the program speaks version 2 of the Agent Client Protocol, not 1, close",
        ),
        (
            "no session",
            prompt(),
            vec![GREETED, r#"{"id":2,"result":{}}"#],
            "initialize, session/new, failed the program opens no session, close",
        ),
    ] {
        assert_eq!(led(Acp::new(prompt, Vec::new()), &lines), expected, "{name}");
    }
}

#[test]
fn an_acp_turn_ends_with_its_reason() {
    for (end, expected) in [
        (r#""result":{"stopReason":"end_turn"}"#, "done"),
        (r#""result":{"stopReason":"max_tokens"}"#, "failed the answer is longer than its model may write"),
        (r#""result":{"stopReason":"refusal"}"#, "failed the model refuses to answer"),
        (r#""result":{"stopReason":"new"}"#, "failed the program stopped: new"),
        (r#""result":null"#, "failed the program stopped and gave no reason"),
        (r#""error":{"code":-32603,"message":"no"}"#, "failed no"),
        (
            r#""error":{"code":-32000,"message":"Authentication required"}"#,
            "failed the program is not logged in: log in with its own command first. It said: Authentication required",
        ),
    ] {
        let end = format!(r#"{{"id":3,{end}}}"#);
        let expected = format!("initialize, session/new, init s, session/prompt, {expected}, close");
        assert_eq!(led(Acp::new(prompt(), Vec::new()), &[GREETED, OPENED, &end]), expected);
    }
}

#[test]
fn a_late_replay_is_swallowed_and_nothing_else() {
    let greeted = GREETED.replace("\"protocolVersion\"", r#""agentInfo":{"name":"gemini-cli"},"protocolVersion""#);
    let piece = r#"{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"a"}}}}"#;
    let commands = r#"{"method":"session/update","params":{"update":{"sessionUpdate":"available_commands_update"}}}"#;
    let end = r#"{"id":3,"result":{"stopReason":"end_turn"}}"#;
    let begun = "initialize, session/load, init old, session/prompt";
    let lines = [&greeted, r#"{"id":2,"result":{}}"#, piece, commands, piece, end];
    assert_eq!(led(Acp::new(going_on(), Vec::new()), &lines), format!("{begun}, text a, done, close"));
    // A program that ends its replay in time, and says nothing about it.
    let lines = [&greeted, r#"{"id":2,"result":{}}"#, piece, end];
    assert_eq!(led(Acp::new(going_on(), Vec::new()), &lines), format!("{begun}, text a, done, close"));
}

#[test]
fn files_go_with_the_prompt() {
    let image = Attachment {
        media_type: Some("image/png".into()),
        bytes: Some(b"foo".to_vec()),
        ..Attachment::named("a.png".into())
    };
    let prompt =
        || Prompt { files: vec!["a.png".into(), "b c.txt".into()], instructions: Some("be kind".into()), ..prompt() };
    let can_see = r#"{"id":1,"result":{"agentCapabilities":{"promptCapabilities":{"image":true}}}}"#;
    let link = r#"{"name":"b c.txt","type":"resource_link","uri":"file:///w/b%20c.txt"}"#;
    let text = r#"{"text":"be kind\n\ngo","type":"text"}"#;
    for (greeted, expected) in [
        (can_see, format!(r#"[{text},{{"data":"Zm9v","mimeType":"image/png","type":"image"}},{link}]"#)),
        (
            GREETED,
            format!(
                r#"[{text},{{"mimeType":"image/png","name":"a.png","type":"resource_link","uri":"file:///w/a.png"}},{link}]"#
            ),
        ),
    ] {
        let written = written(Acp::new(prompt(), vec![image.clone()]), &[greeted, OPENED]);
        assert_eq!(written.last().unwrap()["params"]["prompt"].to_string(), expected);
    }
    let named = "go\\n\\nAttached files:\\n- /w/b c.txt";
    let written_by_claude = written(ClaudeControl::new(prompt(), vec![image.clone()]), &[]);
    assert_eq!(
        written_by_claude[0]["message"]["content"].to_string(),
        format!(
            r#"[{{"text":"{named}","type":"text"}},{{"source":{{"data":"Zm9v","media_type":"image/png","type":"base64"}},"type":"image"}}]"#
        )
    );
    let codex = CodexServer::new(prompt(), vec![image]);
    let written = written(codex, &[r#"{"id":1,"result":{}}"#, r#"{"id":2,"result":{"thread":{"id":"t"}}}"#]);
    assert_eq!(
        written.last().unwrap()["params"]["input"].to_string(),
        format!(r#"[{{"text":"{named}","type":"text"}},{{"path":"/w/a.png","type":"localImage"}}]"#)
    );
}

#[test]
fn claude_is_started_with_what_it_is_told() {
    let prompt = Prompt { model: Some("m".into()), instructions: Some("be kind".into()), ..going_on() };
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
        assert_eq!(led(ClaudeControl::new(prompt(), Vec::new()), &[line]), format!("prompt, {expected}, close"));
    }
}

#[test]
fn codex_is_told_what_it_may_do() {
    for (approve, expected) in [
        (Approve::Ask, r#""approvalPolicy":"untrusted","config":UNTRUSTED,"cwd":"/w","sandbox":"workspace-write""#),
        (Approve::All, r#""approvalPolicy":"never","config":UNTRUSTED,"cwd":"/w","sandbox":"danger-full-access""#),
        (Approve::None, r#""approvalPolicy":"never","config":UNTRUSTED,"cwd":"/w","sandbox":"read-only""#),
    ] {
        let untrusted = r#"{"projects":{"/w":{"trust_level":"untrusted"}}}"#;
        let expected = format!("{{{}}}", expected.replace("UNTRUSTED", untrusted));
        for session in [None, Some("old".to_owned())] {
            let machine = CodexServer::new(Prompt { approve, session: session.clone(), ..prompt() }, Vec::new());
            let mut written = written(machine, &[r#"{"id":1,"result":{}}"#]);
            let params = written.last_mut().unwrap()["params"].as_object_mut().unwrap();
            assert_eq!(params.remove("threadId").is_some(), session.is_some());
            assert_eq!(Value::Object(params.clone()).to_string(), expected);
        }
    }
    let machine = CodexServer::new(Prompt { workspace: Workspace::Trusted, ..prompt() }, Vec::new());
    let written = written(machine, &[r#"{"id":1,"result":{}}"#]);
    assert_eq!(written.last().unwrap()["params"]["config"]["projects"]["/w"]["trust_level"], "trusted");
}

#[test]
fn codex_hears_once_what_an_untrusted_workspace_says() {
    let lines = [r#"{"id":1,"result":{}}"#, r#"{"id":2,"result":{"thread":{"id":"t"}}}"#];
    for (session, expected) in [
        (None, r#"[{"text":"AGENTS.md of this folder says:\n\nbe kind","type":"text"},{"text":"go","type":"text"}]"#),
        (Some("t".to_owned()), r#"[{"text":"go","type":"text"}]"#),
    ] {
        let workspace = Workspace::Untrusted { rules: ProjectRules::default(), instructions: Some("be kind".into()) };
        let written = written(CodexServer::new(Prompt { session, workspace, ..prompt() }, Vec::new()), &lines);
        assert_eq!(written.last().unwrap()["params"]["input"].to_string(), expected);
    }
}

#[test]
fn codex_begins_anew_when_a_thread_is_gone() {
    let lines = [
        r#"{"id":1,"result":{}}"#,
        r#"{"id":2,"error":{"code":-32600,"message":"no rollout found"}}"#,
        r#"{"id":3,"result":{"thread":{"id":"t"}}}"#,
        r#"{"id":7,"method":"attestation/generate","params":{}}"#,
        r#"{"id":4,"error":{"code":-32600,"message":"no turn"}}"#,
    ];
    let expected = "initialize, initialized, thread/resume, progress The earlier session cannot be resumed, a new one \
                    begins: no rollout found, thread/start, init t, turn/start, answer -32601, failed no turn, close";
    assert_eq!(led(CodexServer::new(going_on(), Vec::new()), &lines), expected);
}

#[test]
fn what_can_be_resumed_is_what_the_program_says() {
    for (capabilities, expected) in [
        ("{}", false),
        (r#"{"loadSession":false}"#, false),
        (r#"{"loadSession":true}"#, true),
        (r#"{"loadSession":false,"sessionCapabilities":{"resume":{}}}"#, true),
        (r#"{"sessionCapabilities":{"resume":null,"list":{}}}"#, false),
    ] {
        let mut machine = Acp::new(prompt(), Vec::new());
        machine.begin();
        assert!(!machine.is_resumable(), "it has not said so yet");
        machine.on_line(&format!(r#"{{"id":1,"result":{{"protocolVersion":1,"agentCapabilities":{capabilities}}}}}"#));
        assert_eq!(machine.is_resumable(), expected, "{capabilities}");
    }
    assert!(ClaudeControl::new(prompt(), Vec::new()).is_resumable());
    assert!(CodexServer::new(prompt(), Vec::new()).is_resumable());
}

#[test]
fn a_program_takes_its_question_back() {
    let claude = |id: &str| {
        format!(
            r#"{{"type":"control_request","request_id":"{id}","request":{{"subtype":"can_use_tool","tool_name":"Bash"}}}}"#
        )
    };
    let ask = r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Size?"}]}}}"#;
    let cancel = r#"{"type":"control_cancel_request","request_id":"r"}"#;
    for (lines, expected) in [
        ([&claude("r"), cancel], "prompt, ask Allow Bash?, withdraw r"),
        ([&claude("other"), cancel], "prompt, ask Allow Bash?"),
        ([ask, cancel], "prompt, ask Size?, withdraw r"),
    ] {
        assert_eq!(led(ClaudeControl::new(prompt(), Vec::new()), &lines), expected);
    }

    let request = r#"{"id":9,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"t","title":"rm"},"options":[{"optionId":"y","kind":"allow_once"}]}}"#;
    let update = |call: &str, status: &str| {
        format!(
            r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"tool_call_update","toolCallId":"{call}","status":"{status}"}}}}}}"#
        )
    };
    for (line, is_withdrawn) in [
        (r#"{"method":"$/cancel_request","params":{"requestId":9}}"#.to_owned(), true),
        (r#"{"method":"$/cancel_request","params":{"requestId":"9"}}"#.to_owned(), false),
        (update("t", "completed"), true),
        (update("t", "failed"), true),
        (update("t", "in_progress"), false),
        (update("other", "completed"), false),
    ] {
        let mut machine = Acp::new(prompt(), Vec::new());
        machine.begin();
        for line in [GREETED, OPENED, request] {
            machine.on_line(line);
        }
        assert_eq!(machine.on_line(&line).first() == Some(&Step::Withdraw("9".into())), is_withdrawn, "{line}");
    }

    let resolved = r#"{"method":"serverRequest/resolved","params":{"requestId":5}}"#;
    let request = r#"{"id":5,"method":"item/commandExecution/requestApproval","params":{"command":"ls"}}"#;
    let mut machine = CodexServer::new(prompt(), Vec::new());
    machine.begin();
    for line in [r#"{"id":1,"result":{}}"#, r#"{"id":2,"result":{"thread":{"id":"t"}}}"#, r#"{"id":3,"result":{}}"#] {
        machine.on_line(line);
    }
    machine.on_line(request);
    assert_eq!(machine.on_line(resolved), [Step::Withdraw("5".into())]);
    // Answered requests are resolved, too.
    let [Step::Ask(question)] = &machine.on_line(request)[..] else { panic!() };
    assert_eq!(machine.answer(question, &Reply::Unanswered).len(), 1);
    assert_eq!(machine.on_line(resolved), []);
}

#[test]
fn a_program_that_ends_when_it_is_interrupted_was_interrupted() {
    let machines: [Box<dyn Adapter>; 3] = [
        Box::new(Acp::new(prompt(), Vec::new())),
        Box::new(ClaudeControl::new(prompt(), Vec::new())),
        Box::new(CodexServer::new(prompt(), Vec::new())),
    ];
    for mut machine in machines {
        machine.begin();
        assert_eq!(machine.on_exit(&Exit::Code(0)), None);
        machine.interrupt();
        assert_eq!(machine.on_exit(&Exit::Signal(15)), Some(Update::Interrupted));
    }
}

/// All steps, as text.
fn led(mut machine: impl Adapter, lines: &[&str]) -> String {
    let mut steps = machine.begin();
    steps.extend(lines.iter().flat_map(|line| machine.on_line(line)));
    steps.into_iter().map(said).collect::<Vec<_>>().join(", ")
}

fn written(mut machine: impl Adapter, lines: &[&str]) -> Vec<Value> {
    let mut steps = machine.begin();
    steps.extend(lines.iter().flat_map(|line| machine.on_line(line)));
    let line = |step| match step {
        Step::Write(line) => Some(serde_json::from_str(&line).unwrap()),
        _ => None,
    };
    steps.into_iter().filter_map(line).collect()
}

fn said(step: Step) -> String {
    match step {
        Step::Write(line) => {
            let line: Value = serde_json::from_str(&line).unwrap();
            match (line["method"].as_str(), line["error"]["code"].as_i64()) {
                (Some(method), _) => method.to_owned(),
                (None, Some(code)) => format!("answer {code}"),
                (None, None) => "prompt".into(),
            }
        }
        Step::Ask(Question { text, .. }) => format!("ask {text}"),
        Step::Withdraw(id) => format!("withdraw {id}"),
        Step::CloseInput => "close".into(),
        Step::Report(Update::Init { session, .. }) => format!("init {}", session.unwrap()),
        Step::Report(Update::Text(text)) => format!("text {text}"),
        Step::Report(Update::Progress(words)) => format!("progress {words}"),
        Step::Report(Update::Failed(words)) => format!("failed {words}"),
        Step::Report(Update::Done { .. }) => "done".into(),
        Step::Report(Update::Usage(_)) => "spent".into(),
        Step::Report(Update::Interrupted) => "interrupted".into(),
        Step::Report(other) => format!("{other:?}"),
    }
}
