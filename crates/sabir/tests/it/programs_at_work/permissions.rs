//! Permission to use tools: who is asked, what a policy answers, and how long an answer holds.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use super::{ProgramFixture, artifact, message, reason, send, state, wait_for};

#[test]
fn an_unanswered_question_is_denied_after_its_timeout() {
    let program = ProgramFixture::new(
        "echo 'Go on? [Y/n]'\nread answer\necho \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"$answer\\\"}\"\n",
    );
    let fixture = program.serve_apart("generic", "approve = \"ask\"\napproval_timeout = \"300ms\"\n");
    let task = send(&fixture, message("x"));
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    let question = task["status"]["message"]["parts"][1]["data"].clone();
    assert_eq!(question["choices"].as_array().map(Vec::len), Some(2), "{task}");
    let id = task["id"].as_str().unwrap();
    wait_for("the end", Duration::from_secs(10), || fixture.task(id)["status"]["state"] == "completed");
    let task = fixture.task(id);
    let result = task["artifacts"].as_array().unwrap().iter().find(|one| one["name"] == "result").unwrap();
    assert_eq!(result["parts"][0]["data"]["summary"], "n", "{task}");
}

#[test]
fn approval_policies_answer_for_the_caller() {
    for (approve, expected) in [("all", "y"), ("none", "n")] {
        let program = ProgramFixture::new(
            "echo 'Go on? [Y/n]'\nread answer || answer=closed\necho \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"$answer\\\"}\"\n",
        );
        let task = send(&program.serve_apart("generic", &format!("approve = \"{approve}\"\n")), message("x"));
        assert_eq!(state(&task), "COMPLETED", "{task}");
        let summary = artifact(&task, "result")["parts"][0]["data"]["summary"].as_str().unwrap_or_default();
        assert!([expected, "closed"].contains(&summary), "{approve}: {task}");
    }
}

/// Speaks the Agent Client Protocol, asks, and ends its turn without waiting for the answer.
const IMPATIENT: &str = r#"say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
while read -r line; do
    case $line in
    *'"initialize"'*) say '"id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) say '"id":2,"result":{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
        say '"id":99,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"rm"},
            "options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}' | tr -d '\n'
        echo
        say '"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"never mind"}}}'
        say '"id":3,"result":{"stopReason":"end_turn"}' ;;
    esac
done
"#;

#[test]
fn a_program_that_does_not_wait_for_the_answer_is_not_waited_for() {
    let program = ProgramFixture::new(IMPATIENT);
    let fixture = program.serve_apart("acp", "");
    let task = send(&fixture, message("x"));
    let id = task["id"].as_str().unwrap();
    wait_for("the end", Duration::from_secs(10), || fixture.task(id)["status"]["state"] == "completed");
    let task = fixture.task(id);
    assert_eq!(task["artifacts"][0]["parts"][0]["data"]["sessionId"], "s", "{task}");
    assert_eq!(task["artifacts"][1]["parts"][0]["text"], "never mind", "{task}");
}

#[test]
fn a_question_without_a_line_end_is_a_question() {
    let program = ProgramFixture::new(
        "printf 'Delete build? [y/N] '\nread answer\nprintf 'Sure? (y/n) '\nread again\n\
         echo \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"$answer $again\\\"}\"\n",
    );
    let fixture = program.serve_apart("generic", "approve = \"ask\"\n");
    let mut task = send(&fixture, message("x"));
    for (question, words) in [("Delete build? [y/N]", "yes"), ("Sure? (y/n)", "no")] {
        assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
        assert!(reason(&task).starts_with(question), "{task}");
        let mut answer = message(words);
        answer["message"]["taskId"] = task["id"].clone();
        task = send(&fixture, answer);
    }
    assert_eq!(state(&task), "COMPLETED", "{task}");
    assert_eq!(artifact(&task, "result")["parts"][0]["data"]["summary"], "y n", "{task}");
}

/// Asks for this tool with these suggestions, and notes the answer.
fn asking(tool: &str, input: &str) -> String {
    let suggestion =
        r#"{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"localSettings"}"#;
    let request = format!(
        r#"{{"type":"control_request","request_id":"r","request":{{"subtype":"can_use_tool","tool_name":"{tool}","input":{input},"permission_suggestions":[{suggestion}]}}}}"#
    );
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
    format!("read -r prompt\necho '{request}'\nread -r answer\nprintf '%s' \"$answer\" > ../answer\necho '{done}'\n")
}

fn noted_answer(program: &ProgramFixture) -> Value {
    serde_json::from_str(&fs::read_to_string(program.path("answer")).unwrap()).unwrap()
}

#[test]
fn an_always_allow_ends_with_the_session() {
    let program = ProgramFixture::new(&asking("Bash", r#"{"command":"ls"}"#));
    let fixture = program.serve_apart("claude-code", "");
    let task = send(&fixture, message("go"));
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    let mut always = message("always");
    always["message"]["taskId"] = task["id"].clone();
    assert_eq!(state(&send(&fixture, always)), "COMPLETED");
    let answer = noted_answer(&program);
    let permissions = &answer["response"]["response"]["updatedPermissions"];
    assert_eq!(permissions[0]["destination"], "session", "{answer}");
    assert!(!answer.to_string().contains("localSettings"), "{answer}");
}

#[test]
fn an_agent_with_all_permissions_never_asks() {
    let question = r#"{"questions":[{"question":"Colour?","options":[{"label":"red"}]}]}"#;
    let program = ProgramFixture::new(&asking("AskUserQuestion", question));
    let task = send(&program.serve_apart("claude-code", "approve = \"all\"\n"), message("go"));
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let answer = noted_answer(&program);
    assert_eq!(answer["response"]["response"]["behavior"], "deny", "{answer}");
    let words = answer["response"]["response"]["message"].as_str().unwrap();
    assert!(words.starts_with("Nobody can answer"), "{answer}");
}
