//! What all protocols have in common, on scripted lines.

use sabir_agents::adapter::{Adapter, Exit, Step};
use sabir_agents::prompt::Prompt;
use sabir_agents::protocols::{Acp, Attachment, ClaudeControl, CodexServer};
use sabir_agents::update::{Reply, Update};

use super::script::*;
use super::scripted_acp::{idle_acp, updated};
use super::scripted_codex::idle_codex;

#[test]
fn programs_that_work_by_themselves_between_turns_get_no_next_turn() {
    for (line, is_ready) in [
        (r#"{"method":"thread/status/changed","params":{"threadId":"t"}}"#, true),
        (r#"{"method":"turn/started","params":{"threadId":"t","turn":{"id":"own"}}}"#, false),
    ] {
        let mut codex = idle_codex();
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
        let mut acp = idle_acp();
        acp.on_line_between_turns(&updated(update));
        assert_eq!(acp.next_turn(&prompt(), &[]).is_some(), is_ready, "{update}");
    }
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
        assert_eq!(run_lines(ClaudeControl::new(prompt(), Vec::new()), &lines), expected);
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
