//! Who may run when, through the real program: limits of routed agents, questions that nobody answers, shared folders.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server_fixture::ServerFixture;

const RPC: &str = "/a2a/v1";
/// Says whether it was the only one in its folder all the time.
const ALONE: &str = "mkdir busy || { echo together; exit 0; }\nsleep 0.2\nrmdir busy\necho alone\n";
/// Ends only when two work in the folder at the same time.
const TOGETHER: &str = "touch here.$$\nwhile [ $(ls here.* | wc -l) -lt 2 ]; do sleep 0.02; done\necho together\n";
/// Asks when it is told to; the message is its last argument.
const ASKS: &str = "case \"$*\" in\n*ask*) echo 'Go on? [Y/n]'; read answer ;;\nesac\n\
                    echo \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"done $answer\\\"}\"\n";

/// Agents that run this script, each described by an id, a kind and more settings.
fn serve(script: &str, agents: &[(&str, &str, &str)], more: &str) -> (ServerFixture, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    fs::write(&program, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let workspace = folder.path().join("work");
    fs::create_dir(&workspace).unwrap();
    let agents = agents.iter().map(|(id, kind, settings)| {
        format!("[[agent]]\nid = \"{id}\"\nkind = \"{kind}\"\ncommand = [{program:?}]\nworkspace = {workspace:?}\n{settings}\n")
    });
    (ServerFixture::configured(&format!("{}{more}", agents.collect::<String>())), folder)
}

fn send(fixture: &ServerFixture, path: &str, text: &str, waits: bool) -> Value {
    let params = json!({
        "message": {"messageId": format!("{path} {text}"), "role": "ROLE_USER", "parts": [{"text": text}]},
        "configuration": {"returnImmediately": !waits},
    });
    let answer = fixture.rpc(path, "SendMessage", params);
    answer["result"]["task"].as_object().map(|task| Value::Object(task.clone())).unwrap_or_else(|| panic!("{answer}"))
}

fn get(fixture: &ServerFixture, task: &Value) -> Value {
    fixture.rpc(RPC, "GetTask", json!({"id": task["id"]}))["result"].take()
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}

fn note(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

/// The task when it is over.
fn end(fixture: &ServerFixture, task: &Value) -> Value {
    let start = Instant::now();
    loop {
        let task = get(fixture, task);
        if ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED"].contains(&state(&task)) {
            return task;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{task}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn answer(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default().trim_end()
}

#[test]
fn a_routed_agent_keeps_its_own_limits() {
    let more = "[[agent]]\nid = 'usual'\nkind = 'demo'\ndefault = true\n[routing]\ncomplex = { agent = 'shell' }\n";
    let (fixture, _folder) = serve(ALONE, &[("shell", "command", "max_concurrent = 1")], more);
    let tasks: Vec<Value> = (0..4).map(|i| send(&fixture, RPC, &format!("refactor {i}"), false)).collect();
    assert!(note(&get(&fixture, &tasks[3])).starts_with("waiting for the agent, which runs one task at a time"));
    for task in &tasks {
        assert_eq!(answer(&end(&fixture, task)), "alone");
    }

    let (fixture, _folder) = serve("sleep 60\n", &[("shell", "command", "timeout = '1s'")], more);
    let late = send(&fixture, RPC, "refactor", true);
    assert_eq!((state(&late), note(&late)), ("TASK_STATE_FAILED", "timed out: the turn took longer than 1s"));
}

#[test]
fn unanswered_questions_do_not_block_an_agent() {
    let settings = "max_concurrent = 1\nshared_workspace = 'queue'\napprove = 'ask'";
    let (fixture, _folder) = serve(ASKS, &[("asks", "generic", settings)], "");
    let parked: Vec<Value> = (0..4).map(|i| send(&fixture, RPC, &format!("ask {i}"), true)).collect();
    for task in &parked {
        assert_eq!(state(task), "TASK_STATE_INPUT_REQUIRED", "{task}");
    }
    let other = send(&fixture, RPC, "work", true);
    assert_eq!(state(&other), "TASK_STATE_COMPLETED", "{other}");
    for task in &parked {
        let message =
            json!({"messageId": task["id"], "taskId": task["id"], "role": "ROLE_USER", "parts": [{"text": "y"}]});
        let answered = fixture.rpc(RPC, "SendMessage", json!({"message": message}));
        assert_eq!(state(&answered["result"]["task"]), "TASK_STATE_COMPLETED", "{answered}");
    }
}

#[test]
fn programs_in_one_folder_take_turns_where_configured() {
    let two = |settings: &'static str| [("one", "command", settings), ("two", "command", settings)];
    let paths = ["/agents/one/a2a/v1", "/agents/two/a2a/v1"];
    let (fixture, _folder) = serve(ALONE, &two("shared_workspace = 'queue'"), "");
    let tasks: Vec<Value> = (0..6).map(|i| send(&fixture, paths[i % 2], &format!("work {i}"), false)).collect();
    let waiting = get(&fixture, &tasks[5]);
    let words = note(&waiting);
    assert!(words.starts_with("waiting for task ") && words.ends_with(", which works in the same folder"), "{waiting}");
    for task in &tasks {
        assert_eq!(answer(&end(&fixture, task)), "alone");
    }

    let (fixture, _folder) = serve(TOGETHER, &two(""), "");
    let tasks: Vec<Value> = (0..2).map(|i| send(&fixture, paths[i], "work", false)).collect();
    for task in &tasks {
        assert_eq!(answer(&end(&fixture, task)), "together", "any program may work beside others by default");
    }
}

/// Speaks Claude Code's control protocol. Resumed, it asks for what the file `again` says.
const SLEEPER: &str = r#"
echo $$ >> pids
echo '{"type":"system","subtype":"init","session_id":"s1","model":"m"}'
case "$*" in *--resume*) command=$(cat again); echo "$* $CLAUDE_CODE_RESUME_INTERRUPTED_TURN" > resumed ;; *) read -r prompt; command=build ;; esac
echo '{"type":"control_request","request_id":"r'$$'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"'$command'"}}}'
read -r answer || exit 1
echo "$answer" > answer
echo '{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s1"}'
"#;

#[test]
fn a_hibernated_program_is_resumed_with_the_answer_and_nothing_else() {
    for (again, expected) in [("build", "TASK_STATE_COMPLETED"), ("destroy", "TASK_STATE_INPUT_REQUIRED")] {
        let (fixture, folder) = serve(SLEEPER, &[("claude", "claude-code", "hibernate_after = '100ms'")], "");
        let work = folder.path().join("work");
        let read = |name: &str| fs::read_to_string(work.join(name)).unwrap_or_default();
        fs::write(work.join("again"), again).unwrap();
        let task = send(&fixture, RPC, "go", true);
        assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
        let pid = read("pids").trim().to_owned();
        let start = Instant::now();
        while std::path::Path::new(&format!("/proc/{pid}")).exists() {
            assert!(start.elapsed() < Duration::from_secs(30), "it is put to sleep");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(state(&get(&fixture, &task)), "TASK_STATE_INPUT_REQUIRED", "the question stays open");
        let message = json!({"messageId": "y", "taskId": task["id"], "role": "ROLE_USER", "parts": [{"text": "y"}]});
        let answered = fixture.rpc(RPC, "SendMessage", json!({"message": message}))["result"]["task"].take();
        assert_eq!(state(&answered), expected, "{answered}");
        assert!(
            read("resumed").contains("--resume s1") && read("resumed").trim_end().ends_with(" 1"),
            "its turn is resumed"
        );
        match again {
            // The first line that it reads is the answer to its question, and no prompt.
            "build" => assert!(read("answer").contains("\"behavior\":\"allow\""), "{}", read("answer")),
            // What was not asked is not allowed.
            _ => assert!(note(&answered).starts_with("Run \"destroy\"?") && read("answer").is_empty(), "{answered}"),
        }
    }
}

/// Asks, and says more behind its question. What it has used of its model before is in no result.
const TALKING_SLEEPER: &str = r#"
text() { echo '{"type":"assistant","message":{"content":[{"type":"text","text":"'"$1"'"}]}}'; }
echo $$ >> pids
echo '{"type":"system","subtype":"init","session_id":"s1","model":"m"}'
case "$*" in *--resume*) ;; *)
    read -r prompt
    echo '{"type":"stream_event","event":{"type":"message_start","message":{"usage":{"input_tokens":60,"cache_read_input_tokens":40,"output_tokens":1}}}}'
    echo '{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":5}}}'
    text before ;;
esac
echo '{"type":"control_request","request_id":"r'$$'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"build"}}}'
case "$*" in *--resume*) ;; *) text behind; echo said > said ;; esac
read -r answer || exit 1
text after
echo '{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s1","usage":{"input_tokens":10,"output_tokens":2}}'
"#;

#[test]
fn output_and_usage_before_hibernation_count() {
    let (fixture, folder) = serve(TALKING_SLEEPER, &[("claude", "claude-code", "hibernate_after = '300ms'")], "");
    let task = send(&fixture, RPC, "go", true);
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
    let pid = fs::read_to_string(folder.path().join("work/pids")).unwrap().trim().to_owned();
    let start = Instant::now();
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        assert!(start.elapsed() < Duration::from_secs(30), "it is put to sleep");
        std::thread::sleep(Duration::from_millis(20));
    }
    let message = json!({"messageId": "y", "taskId": task["id"], "role": "ROLE_USER", "parts": [{"text": "y"}]});
    let answered = fixture.rpc(RPC, "SendMessage", json!({"message": message}))["result"]["task"].take();
    assert_eq!(state(&answered), "TASK_STATE_COMPLETED", "{answered}");
    let named = |name: &str| {
        let artifacts = answered["artifacts"].as_array().unwrap();
        artifacts.iter().find(|artifact| artifact["name"] == name).unwrap_or_else(|| panic!("{name}: {answered}"))
    };
    let words = named("assistant-response")["parts"][0]["text"].as_str().unwrap();
    assert_eq!(words.split_whitespace().collect::<String>(), "beforebehindafter");
    let stats = &named("result")["parts"][0]["data"]["stats"];
    assert_eq!((&stats["inputTokens"], &stats["outputTokens"]), (&json!(110), &json!(7)), "{answered}");
}

/// Says eight megabytes behind its question, and counts how far it has come.
const FLOODS_BEHIND: &str = r#"
echo '{"type":"system","subtype":"init","session_id":"s1","model":"m"}'
read -r prompt
echo '{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"build"}}}'
line=$(printf '%80000s' x)
each=0
while [ $each -lt 100 ]; do
    echo '{"type":"assistant","message":{"content":[{"type":"text","text":"<'$each'>'"$line"'"}]}}'
    each=$((each + 1)); echo $each > count
done
read -r answer
echo '{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s1"}'
"#;

#[test]
fn output_after_a_question_waits_in_the_program() {
    let (fixture, folder) = serve(FLOODS_BEHIND, &[("claude", "claude-code", "")], "");
    let task = send(&fixture, RPC, "go", true);
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
    let count = || fs::read_to_string(folder.path().join("work/count")).unwrap_or_default().trim().parse().unwrap_or(0);
    let mut before = 0;
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now: usize = count();
        if now > 0 && now == before {
            break;
        }
        before = now;
    }
    assert!(before < 30, "{before} lines were read while the question was open");
    let message = json!({"messageId": "y", "taskId": task["id"], "role": "ROLE_USER", "parts": [{"text": "y"}]});
    let answered = fixture.rpc(RPC, "SendMessage", json!({"message": message}))["result"]["task"].take();
    assert_eq!(state(&answered), "TASK_STATE_COMPLETED", "{}", answered["status"]);
    let artifacts = answered["artifacts"].as_array().unwrap();
    let words = artifacts.iter().find(|artifact| artifact["name"] == "assistant-response").unwrap();
    let words = words["parts"][0]["text"].as_str().unwrap();
    let numbers: Vec<usize> =
        words.split('<').skip(1).map(|piece| piece.split('>').next().unwrap().parse().unwrap()).collect();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>(), "all of it is told in order after the answer");
}
