//! The Agent Client Protocol on scripted lines, for what no recording shows.

use sabir_agents::adapter::{Adapter, Step};
use sabir_agents::prompt::{AgentsDoor, Approve, Prompt};
use sabir_agents::protocols::Acp;

use super::script::*;

pub fn updated(update: &str) -> String {
    format!(r#"{{"method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#)
}

#[test]
fn the_door_to_other_agents_is_handed_over_in_the_form_that_the_program_knows() {
    let http = r#"[{"headers":[{"name":"Authorization","value":"Bearer sabir_d_1"}],"name":"sabir","type":"http","url":"http://127.0.0.1:1/mcp"}]"#;
    let bridge = r#"[{"args":["mcp","--url","http://127.0.0.1:1"],"command":"/bin/sabir","env":[{"name":"SABIR_TOKEN","value":"sabir_d_1"}],"name":"sabir"}]"#;
    let door = || AgentsDoor {
        url: "http://127.0.0.1:1/mcp".into(),
        bridge: "/bin/sabir".into(),
        credential: "sabir_d_1".into(),
    };
    for (agents_door, session, capabilities, expected) in [
        (Some(door()), None, r#"{"mcpCapabilities":{"http":true}}"#, http),
        (Some(door()), None, r#"{"mcpCapabilities":{"http":false,"sse":true}}"#, bridge),
        (Some(door()), None, "{}", bridge),
        (Some(door()), Some("s0"), r#"{"loadSession":true,"mcpCapabilities":{"http":true}}"#, http),
        (None, None, r#"{"mcpCapabilities":{"http":true}}"#, "[]"),
    ] {
        let session = session.map(str::to_owned);
        let mut acp = Acp::new(Prompt { agents_door, session, ..prompt() }, Vec::new());
        acp.begin();
        let greeting = format!(r#"{{"id":1,"result":{{"protocolVersion":1,"agentCapabilities":{capabilities}}}}}"#);
        let steps = acp.on_line(&greeting);
        let Some(Step::Write(line)) = steps.first() else { panic!("a session is opened: {steps:?}") };
        let request: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(request["params"]["mcpServers"].to_string(), expected, "{capabilities}");
    }
}

/// A program that speaks the Agent Client Protocol, after a completed turn that used a tool.
pub fn idle_acp() -> Acp {
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
fn a_tool_that_ends_in_the_next_turn_is_not_reported_there() {
    let mut acp = idle_acp();
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
            resuming_prompt(),
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
            resuming_prompt(),
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
        assert_eq!(run_lines(Acp::new(prompt, Vec::new()), &lines), expected, "{name}");
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
        assert_eq!(run_lines(Acp::new(prompt(), Vec::new()), &[GREETED, OPENED, &end]), expected);
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
    assert_eq!(run_lines(Acp::new(resuming_prompt(), Vec::new()), &lines), format!("{begun}, text a, done, close"));
    // A program that ends its replay in time, and says nothing about it.
    let lines = [&greeted, r#"{"id":2,"result":{}}"#, piece, end];
    assert_eq!(run_lines(Acp::new(resuming_prompt(), Vec::new()), &lines), format!("{begun}, text a, done, close"));
}
