//! Questions whose program is gone when the answer comes: the answer reaches the same question, or the task fails. It is
//! never a prompt.

use std::fs;
use std::path::Path;
use std::time::Duration;

use sabir_agents::ProgramAgent;
use sabir_agents::program::{Kind, Mode, Settings};
use sabir_model::{Delivery, State};
use sabir_testkit::process::SabirProcess;
use serde_json::{Value, json};

use crate::program_fixture::{ProgramFixture, message, reason, state, wait_for};
use crate::{SABIR, in_process};

/// Speaks Claude Code's control protocol. Asked to end, or at the end of its input, it closes its turn. Resumed in the
/// middle of a turn it asks for what the file `again` says, but not in a turn that it has closed.
const CLAUDE: &str = r#"
trap 'echo SIGTERM >> closed; exit 143' TERM
echo $$ >> pids
case "$*" in
*--resume*)
    echo "$*" >> resumed
    if test -z "$CLAUDE_CODE_RESUME_INTERRUPTED_TURN" || test -e closed; then read -r prompt; echo "$prompt" >> prompts; fi
    command=$(cat again) ;;
*)
    read -r prompt
    echo "$prompt" >> prompts
    command=build ;;
esac
echo '{"type":"system","subtype":"init","session_id":"s1","model":"m"}'
echo '{"type":"control_request","request_id":"r'$$'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"'$command'"}}}'
read -r answer || { echo EOF >> closed; exit 1; }
echo "$answer" >> answers
case $answer in *'"allow"'*) echo ran >> ran ;; esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s1"}'
"#;

fn read(script: &ProgramFixture, name: &str) -> Vec<String> {
    let text = fs::read_to_string(script.workspace().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn send(server: &SabirProcess, text: &str, place: Value) -> Value {
    let mut params = message(text);
    params["message"].as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
    server.rpc("SendMessage", params)["result"]["task"].take()
}

fn get(server: &SabirProcess, task: &Value) -> Value {
    server.rpc("GetTask", json!({"id": task["id"]}))["result"].take()
}

/// How the server ends while the question is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    Stopped,
}

/// Ends the server, waits for its programs to be gone, and starts it again.
fn restart(mut server: SabirProcess, script: &ProgramFixture, how: End) -> SabirProcess {
    match how {
        End::Killed => server.kill(),
        End::Stopped => {
            server.terminate();
            server.wait(Duration::from_secs(20));
        }
    }
    let pids = read(script, "pids");
    wait_for("the end of the programs", || !pids.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()));
    sabir_testkit::process::SabirOptions::new(SABIR, script.folder.path()).start()
}

#[test]
fn a_question_survives_a_restart_of_the_server() {
    for how in [End::Killed, End::Stopped] {
        for (answer, response, runs) in [("yes", "\"behavior\":\"allow\"", 1), ("no", "\"behavior\":\"deny\"", 0)] {
            let script = ProgramFixture::new(CLAUDE);
            fs::write(script.workspace().join("again"), "build").unwrap();
            let server = script.serve("claude-code", "");
            let task = send(&server, "go", json!({}));
            assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
            let server = restart(server, &script, how);
            assert_eq!(read(&script, "closed"), [""; 0], "{how:?}: it was killed before it noticed anything");
            let waiting = get(&server, &task);
            assert_eq!((state(&waiting), reason(&waiting)), ("INPUT_REQUIRED", reason(&task)), "{how:?}");

            let done = send(&server, answer, json!({"taskId": task["id"]}));
            assert_eq!(state(&done), "COMPLETED", "{how:?} {answer}: {done}");
            assert_eq!(read(&script, "prompts").len(), 1, "{how:?} {answer}: the answer is no prompt");
            let answers = read(&script, "answers");
            assert!(answers.len() == 1 && answers[0].contains(response), "{how:?} {answer}: {answers:?}");
            assert_eq!(read(&script, "ran").len(), runs, "{how:?} {answer}");
            server.kill();
        }
    }
}

/// Takes prompt after prompt and says when it begins with one. Notes who else of its session runs when it starts.
const STAYING_CLAUDE: &str = r#"
for pid in $(cat pids); do kill -0 $pid && echo $pid >> together; done
echo $$ >> pids
ask() { echo '{"type":"control_request","request_id":"r'$$'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"build"}}}'; }
echo '{"type":"system","subtype":"init","session_id":"s1","model":"m"}'
test -z "$CLAUDE_CODE_RESUME_INTERRUPTED_TURN" || ask
while read -r line; do
    uuid=${line##*uuid\":\"}
    case $line in *uuid*) echo '{"type":"command_lifecycle","state":"started","command_uuid":"'${uuid%%\"*}'"}' ;; esac
    case $line in
    *'"go"'*) ask ;;
    *) echo '{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s1"}' ;;
    esac
done
"#;

#[test]
fn a_question_is_lost_when_another_task_resumes_its_session() {
    let script = ProgramFixture::new(STAYING_CLAUDE);
    let server = script.serve("claude-code", "keep_warm = '5m'");
    let task = send(&server, "go", json!({}));
    let server = restart(server, &script, End::Killed);
    let other = send(&server, "hello", json!({"contextId": task["contextId"]}));
    assert_eq!(state(&other), "COMPLETED", "{other}");
    let waits = read(&script, "pids").pop().unwrap();
    assert!(Path::new(&format!("/proc/{waits}")).exists(), "it waits for the next message of its context");
    let lost = send(&server, "yes", json!({"taskId": task["id"]}));
    assert_eq!(state(&lost), "FAILED", "{lost}");
    assert!(reason(&lost).contains("the question was lost"), "{lost}");
    assert_eq!((read(&script, "pids").len(), read(&script, "together")), (2, Vec::new()));

    // Each of them asks for the same.
    let again = json!({"contextId": task["contextId"]});
    let first = send(&server, "go", again.clone());
    let server = restart(server, &script, End::Killed);
    let second = send(&server, "go", again);
    let server = restart(server, &script, End::Killed);
    wait_for("the end of the first", || state(&get(&server, &first)) == "FAILED");
    let done = send(&server, "yes", json!({"taskId": second["id"]}));
    assert_eq!((state(&done), read(&script, "together")), ("COMPLETED", Vec::new()), "{done}");
    server.kill();
}

#[test]
fn an_earlier_answer_does_not_answer_a_new_question() {
    let script = ProgramFixture::new(CLAUDE);
    fs::write(script.workspace().join("again"), "destroy").unwrap();
    let server = script.serve("claude-code", "");
    let task = send(&server, "go", json!({}));
    let server = restart(server, &script, End::Killed);
    let asked = send(&server, "always", json!({"taskId": task["id"]}));
    assert_eq!(state(&asked), "INPUT_REQUIRED", "{asked}");
    assert!(reason(&asked).starts_with("Run \"destroy\"?"), "{asked}");
    assert!(read(&script, "answers").is_empty());
    let done = send(&server, "no", json!({"taskId": task["id"]}));
    assert_eq!((state(&done), read(&script, "ran").len()), ("COMPLETED", 0), "{done}");
    server.kill();
}

#[test]
fn a_question_that_cannot_be_asked_again_fails_its_task_at_the_next_start() {
    let asks_something = CLAUDE.replace(
        r#""tool_name":"Bash","input":{"command":"'$command'"}"#,
        r#""tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which colour?","options":[{"label":"red"}]}]}"#,
    );
    for (what, body, kind, later) in [
        ("asks for no permission", asks_something.as_str(), "claude-code", ""),
        ("is never asked now", CLAUDE, "claude-code", "approve = 'all'"),
        (
            "has no session",
            "echo $$ >> pids\necho 'Go on? [Y/n]'\nread -r answer\necho $answer >> answers\n",
            "generic",
            "",
        ),
    ] {
        let script = ProgramFixture::new(body);
        fs::write(script.workspace().join("again"), "build").unwrap();
        let server = script.serve(kind, "approve = 'ask'");
        let task = send(&server, "go", json!({}));
        assert_eq!(state(&task), "INPUT_REQUIRED", "{what}: {task}");
        let later = if later.is_empty() { "approve = 'ask'" } else { later };
        fs::write(script.folder.path().join("sabir.toml"), script.agent("prog", kind, later)).unwrap();
        let server = restart(server, &script, End::Killed);
        wait_for("the end of the task", || state(&get(&server, &task)) == "FAILED");
        let failed = get(&server, &task);
        assert!(reason(&failed).contains("the question was lost"), "{what}: {failed}");
        assert!(reason(&failed).ends_with("send the request again"), "{what}: {failed}");
        let late = server.rpc(
            "SendMessage",
            json!({"message": {"messageId": "late", "role": "ROLE_USER",
            "taskId": task["id"], "parts": [{"text": "yes"}]}}),
        );
        assert_eq!(late["error"]["code"], -32004, "{what}: {late}");
        assert_eq!(read(&script, "pids").len(), 1, "{what}: nobody was started");
        server.kill();
    }
}

/// A server that is started again at once finds the programs of the one that was killed still ending.
#[test]
fn a_program_starts_after_those_of_a_killed_server_are_gone() {
    let script = ProgramFixture::new(
        // A shell tells of signals on its standard error, where nobody listens any more.
        "exec 2> /dev/null
         for pid in $(cat pids); do kill -0 $pid && echo $pid >> together; done
         trap 'sleep 1; exit' TERM
         read -r prompt
         echo $$ >> pids
         if test \"$prompt\" = long; then while true; do sleep 0.1; done; fi
         echo done",
    );
    let server = script.serve("command", "");
    let mut long = message("long");
    long["configuration"] = json!({"returnImmediately": true});
    server.rpc("SendMessage", long);
    wait_for("the start of the program", || read(&script, "pids").len() == 1);
    server.kill();
    let server = sabir_testkit::process::SabirOptions::new(SABIR, script.folder.path()).start();
    let done = send(&server, "short", json!({}));
    assert_eq!(state(&done), "COMPLETED", "{done}");
    assert_eq!(read(&script, "together"), [""; 0]);
    server.kill();
}

/// Resumed, it waits for a prompt that does not come.
#[tokio::test]
async fn a_resumed_program_that_does_not_ask_again_times_out() {
    let script = ProgramFixture::new(CLAUDE);
    let settings = Settings {
        hibernate_after: Some(Duration::from_millis(50)),
        asks_again_within: Duration::from_millis(500),
        ..in_process::settings(Kind::ClaudeCode, Mode::Duplex, &script.program(), &script.workspace())
    };
    let about = sabir_agents::about(Kind::ClaudeCode, &[]);
    let host = in_process::host(script.path("trees"));
    let engine = in_process::engine(ProgramAgent::new("prog", settings, about, host)).await;
    let asked = in_process::send(&engine, "go", None, Delivery::WhenSettled).await;
    assert_eq!(asked.status.state, State::InputRequired);
    let pid = read(&script, "pids").remove(0);
    while Path::new(&format!("/proc/{pid}")).exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fs::write(script.workspace().join("closed"), "").unwrap();
    let failed = in_process::send(&engine, "yes", Some(&asked), Delivery::WhenSettled).await;
    assert_eq!(failed.status.state, State::Failed);
    let words = failed.status.message.as_ref().unwrap().text();
    assert!(words.contains("has said nothing for 500ms, so the answer was not used"), "{words}");
    assert_eq!(read(&script, "resumed").len(), 1);
    assert!(read(&script, "prompts").len() == 1 && read(&script, "answers").is_empty());
}
