//! Files of messages: where they lie while a task is worked on, who sees them, and when they go.

use std::fs;

use serde_json::{Value, json};

use crate::program_fixture::{ProgramFixture, answer, message, message_with_file, names, send, state, wait_for};

/// Where the files of messages lie in the workspace, in a folder for each turn.
const INBOX: &str = ".sabir";

/// Says where the file of the message is and what is in it.
const READING: &str = "prompt=$(cat)\npath=$(printf '%s\\n' \"$prompt\" | sed -n 's/^- //p')\n\
    printf '%s\\n' \"$path\"\ncat \"$path\"\n";

/// The same, and then waits until `go` is there.
fn reading_and_waiting() -> String {
    format!("{READING}while ! [ -e ../go ]; do sleep 0.02; done\n")
}

#[test]
fn files_are_removed_when_their_task_ends() {
    for (more, end) in [("", "exit 0\n"), ("", "exit 1\n"), ("keep_files = true", "exit 0\n")] {
        let script = ProgramFixture::new(&format!("{READING}{end}"));
        let server = script.serve("command", more);
        let task = send(&server, message_with_file("read it", "notes.txt", "forty-two"));
        let told: Vec<&str> = answer(&task).lines().collect();
        assert_eq!(told.get(1), Some(&"forty-two"), "{task}");
        if more.is_empty() {
            script.wait_until_empty();
        } else {
            assert_eq!(fs::read_to_string(script.workspace().join(told[0])).unwrap(), "forty-two");
        }
        server.kill();
    }
}

#[test]
fn files_are_removed_when_their_task_is_canceled() {
    let script = ProgramFixture::new(&reading_and_waiting());
    let server = script.serve("command", "");
    let id = started(&server, message_with_file("read it", "notes.txt", "x"));
    wait_for("the upload", || uploaded(&script) == ["x"]);
    server.rpc("CancelTask", json!({"id": id}));
    script.wait_until_empty();
    server.kill();
}

/// A message that comes while the task is worked on is its next turn, which may need what came before.
#[test]
fn files_stay_while_the_task_has_further_turns() {
    let script = ProgramFixture::new(
        "prompt=$(cat)\ncase $prompt in\n\
         first*) while ! [ -e ../go ]; do sleep 0.02; done; echo waited ;;\n\
         *) cat .sabir/*/notes.txt ;;\nesac\n",
    );
    let server = script.serve("command", "");
    let id = started(&server, message_with_file("first", "notes.txt", "forty-two"));
    let mut second = message("second");
    second["message"]["taskId"] = json!(id);
    second["configuration"] = json!({"returnImmediately": true});
    send(&server, second);
    fs::write(script.folder.path().join("go"), "").unwrap();
    let task = until_over(&server, &id);
    let artifacts = task["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.last().unwrap()["parts"][0]["text"], "forty-two", "{task}");
    script.wait_until_empty();
    server.kill();
}

#[test]
fn files_left_by_a_killed_server_are_removed_with_the_next_turn() {
    for store in ["", "memory:"] {
        let script = ProgramFixture::new(&reading_and_waiting());
        let mut options = script.options(&script.agent("prog", "command", ""));
        if !store.is_empty() {
            options.store = store.to_owned();
        }
        let server = options.start();
        started(&server, message_with_file("read it", "notes.txt", "x"));
        wait_for("the upload", || uploaded(&script) == ["x"]);
        server.kill();
        assert_eq!(names(&script.workspace()), [INBOX]);
        fs::write(script.folder.path().join("go"), "").unwrap();
        let server = options.start();
        let task = send(&server, message_with_file("read it", "other.txt", "y"));
        assert_eq!(state(&task), "COMPLETED", "{task}");
        script.wait_until_empty();
        server.kill();
    }
}

/// A question outlives the server, and the program that its answer resumes may still need the files.
#[test]
fn files_of_a_task_that_waits_for_an_answer_survive_a_crash() {
    let script = ProgramFixture::new(
        r#"case "$*" in *--resume*) ;; *) read -r prompt ;; esac
echo '{"type":"system","subtype":"init","session_id":"s1"}'
case $prompt in
*other*) echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'; exit ;;
esac
echo '{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}'
read -r answer
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$(cat .sabir/*/notes.txt)\"}"
"#,
    );
    let options = script.options(&script.agent("prog", "claude-code", ""));
    let server = options.start();
    let parked = send(&server, message_with_file("go", "notes.txt", "forty-two"));
    assert_eq!(state(&parked), "INPUT_REQUIRED", "{parked}");
    server.kill();
    let server = options.start();
    assert_eq!(state(&send(&server, message("other"))), "COMPLETED");
    assert_eq!(names(&script.workspace()), [INBOX], "the task still waits");
    let mut yes = message("yes");
    yes["message"]["taskId"] = parked["id"].clone();
    let task = send(&server, yes);
    assert_eq!(state(&task), "COMPLETED", "{task}");
    assert!(task.to_string().contains("forty-two"), "{task}");
    script.wait_until_empty();
    server.kill();
}

/// A task can end without a turn of its agent, and nobody may ever work in that folder again.
#[test]
fn files_of_a_task_that_ends_without_a_turn_are_removed() {
    let asking = r#"read -r prompt
echo '{"type":"system","subtype":"init","session_id":"s1"}'
echo '{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}'
read -r answer
"#;
    for (kind, body, is_waiting) in
        [("claude-code", asking.to_owned(), true), ("command", reading_and_waiting(), false)]
    {
        let script = ProgramFixture::new(&body);
        let options = script.options(&script.agent("prog", kind, ""));
        let server = options.start();
        let id = started(&server, message_with_file("go", "notes.txt", "forty-two"));
        wait_for("the upload", || uploaded(&script) == ["forty-two"]);
        if is_waiting {
            server.until("the question", |server| {
                let task = server.rpc("GetTask", json!({"id": id}))["result"].take();
                (state(&task) == "INPUT_REQUIRED").then_some(())
            });
        }
        server.kill();
        let server = options.start();
        if is_waiting {
            assert_eq!(names(&script.workspace()), [INBOX], "the task still waits");
            let canceled = server.rpc("CancelTask", json!({"id": id}));
            assert_eq!(state(&canceled["result"]), "CANCELED", "{canceled}");
        }
        script.wait_until_empty();
        server.kill();
    }
}

/// Callers of 0.1 choose ids, which are unique for each agent only; two agents may share a workspace.
#[test]
fn tasks_of_one_id_do_not_share_their_files() {
    let script = ProgramFixture::new(&reading_and_waiting());
    let agents = ["a", "b"].map(|id| script.agent(id, "command", "")).concat();
    let server = script.options(&agents).start();
    for agent in ["a", "b"] {
        let file = json!({"name": "notes.txt", "bytes": sabir_model::Base64::encode(agent.as_bytes()).as_str()});
        let parts = json!([{"type": "text", "text": "read it"}, {"type": "file", "file": file}]);
        let params = json!({"id": "same", "message": {"role": "user", "parts": parts}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/sendSubscribe", "params": params}).to_string();
        let path = format!("/agents/{agent}/a2a/v0.1");
        let opened = sabir_testkit::sse::open(server.address, "POST", &path, &[], body.as_bytes()).unwrap();
        drop(opened.unwrap_or_else(|reply| panic!("{}", reply.text())));
    }
    wait_for("both uploads", || uploaded(&script) == ["a", "b"]);
    let folders = names(&script.workspace().join(INBOX));
    assert!(folders.iter().all(|name| !name.contains("same")), "{folders:?}");
    fs::write(script.folder.path().join("go"), "").unwrap();
    script.wait_until_empty();
    server.kill();
}

/// The contents of the files of messages that are in the workspace, sorted. A folder is there before its file is written.
fn uploaded(script: &ProgramFixture) -> Vec<String> {
    let inbox = script.workspace().join(INBOX);
    let files = names(&inbox).into_iter().map(|folder| inbox.join(folder).join("notes.txt"));
    let mut contents: Vec<String> = files.filter_map(|file| fs::read_to_string(file).ok()).collect();
    contents.sort();
    contents
}

/// Sends without waiting; the id of the task.
fn started(server: &sabir_testkit::process::SabirProcess, mut params: Value) -> String {
    params["configuration"] = json!({"returnImmediately": true});
    send(server, params)["id"].as_str().unwrap().to_owned()
}

fn until_over(server: &sabir_testkit::process::SabirProcess, id: &str) -> Value {
    server.until("the end of the task", |server| {
        let task = server.rpc("GetTask", json!({"id": id}))["result"].take();
        (state(&task) == "COMPLETED").then_some(task)
    })
}
