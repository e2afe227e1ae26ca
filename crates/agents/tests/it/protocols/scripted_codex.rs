//! Codex's protocol on scripted lines, for what no recording shows.

use sabir_agents::adapter::{Adapter, Step};
use sabir_agents::prompt::{Approve, ProjectRules, Prompt, Workspace};
use sabir_agents::protocols::CodexServer;
use sabir_agents::update::Update;
use serde_json::Value;

use super::script::*;

/// Codex after a completed turn.
pub fn idle_codex() -> CodexServer {
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
fn what_codex_says_of_an_earlier_turn_is_not_reported_in_the_next() {
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
    let mut codex = idle_codex();
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
fn codex_gets_its_permissions_when_a_thread_opens() {
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
fn codex_gets_the_instructions_of_an_untrusted_workspace_once() {
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
    assert_eq!(run_lines(CodexServer::new(resuming_prompt(), Vec::new()), &lines), expected);
}
