//! Sessions of programs that speak the Agent Client Protocol, through the real server: who may resume which, what is left
//! of them after `kill -9`, which model is used, and when a program stays for the next message.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::{Value, json};

use crate::SABIR;

/// Writes down what it is told. Asks, fails or dies when a prompt says so. `CAN_LOAD` is what it announces; a session is
/// gone when there is a file of that name, and it dies of the next prompt when there is a file `dying`. With `SLOW_END` it takes
/// its time to end, and with `SERVER` it has a process of its own from the start.
const PROGRAM: &str = r#"#!/bin/sh
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
note() { echo "$1" >> log; }
member() { printf %s "$line" | sed -n "s/.*\"$1\":\"*\([^\",}]*\).*/\1/p"; }
option() { printf '{"id":"model","category":"model","type":"select","currentValue":"%s","options":[{"value":"small"},{"value":"big"}]}' "$1"; }
echo $$ >> starts
if test -n "$SLOW_END"; then trap '' TERM; fi
while read -r line; do
    id=$(member id)
    case $line in
    *'"initialize"'*)
        say "\"id\":$id,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":${CAN_LOAD:-true}}}" ;;
    *'"session/new"'*)
        note new
        if test -n "$SERVER"; then sleep 1000 > /dev/null 2>&1 & fi
        say "\"id\":$id,\"result\":{\"sessionId\":\"$NAME\",\"configOptions\":[$(option small)]}" ;;
    *'"session/load"'*)
        note "load $(member sessionId)"
        if test -e "gone"; then say "\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"no such session\"}"
        else say "\"id\":$id,\"result\":{\"configOptions\":[$(option small)]}"; fi ;;
    *'"session/set_config_option"'*)
        note "set $(member configId) $(member value)"
        say "\"id\":$id,\"result\":{\"configOptions\":[$(option "$(member value)")]}" ;;
    *'"session/prompt"'*)
        text=$(member text)
        note "prompt $text"
        if test -e dying; then rm dying; exit 3; fi
        case $(member text) in
        *fail*) say "\"id\":$id,\"error\":{\"code\":-32603,\"message\":\"no\"}" ;;
        *wait*) ;;
        *both*)
            turn=$id
            for asked in 98 99; do say "\"id\":$asked,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"$NAME\",\"toolCall\":{\"toolCallId\":\"t$asked\",\"title\":\"rm $asked\"},\"options\":[{\"optionId\":\"yes\",\"name\":\"Allow\",\"kind\":\"allow_once\"},{\"optionId\":\"no\",\"name\":\"No\",\"kind\":\"reject_once\"}]}"; done ;;
        *afterwards*)
            say "\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}"
            say '"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"late"}}}'
            echo 'no JSON at all'
            say '"id":77,"method":"session/request_permission","params":{"options":[{"optionId":"yes","kind":"allow_once"}]}' ;;
        *flood*)
            piece=$(printf '%1000s' x)
            each=0
            say "\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}"
            while [ $each -lt 400 ]; do
                each=$((each + 1))
                say "\"method\":\"session/update\",\"params\":{\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"text\":\"late $piece\"}}}"
            done
            note flooded ;;
        *alone*)
            say "\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}"
            say '"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"own","title":"make"}}' ;;
        *leave*)
            sleep "${text##* }" > /dev/null 2>&1 &
            echo $! > left
            say "\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}" ;;
        *ask*) say "\"id\":99,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"$NAME\",\"toolCall\":{\"toolCallId\":\"t\",\"title\":\"rm\"},\"options\":[{\"optionId\":\"yes\",\"name\":\"Allow\",\"kind\":\"allow_once\"},{\"optionId\":\"no\",\"name\":\"No\",\"kind\":\"reject_once\"}]}" ;;
        *) say "\"id\":$id,\"result\":{\"stopReason\":\"end_turn\"}" ;;
        esac ;;
    *'"outcome":"cancelled"'*) note "refused $id" ;;
    *'"outcome":"selected"'*)
        note "answered $id"
        if test "$id" = 99 && test -n "$turn"; then say "\"id\":$turn,\"result\":{\"stopReason\":\"end_turn\"}"; fi ;;
    esac
done
if test -n "$SLOW_END"; then note ending; sleep 0.7; note ended; fi
"#;

struct AcpFixture {
    folder: tempfile::TempDir,
}

impl AcpFixture {
    fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap() };
        let program = fixture.path("program");
        fs::write(&program, PROGRAM).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An agent with a folder of its own.
    fn agent(&self, id: &str, more: &str) -> String {
        let workspace = self.path(id);
        fs::create_dir_all(&workspace).unwrap();
        let program = self.path("program");
        format!("[[agent]]\nid = '{id}'\nkind = 'acp'\ncommand = [{program:?}]\nworkspace = {workspace:?}\n{more}\n")
    }

    fn configure(&self, file: &str) {
        fs::write(self.path("sabir.toml"), file).unwrap();
    }

    fn start(&self) -> SabirProcess {
        SabirOptions::new(SABIR, self.folder.path()).start()
    }

    /// The processes of an agent's program so far.
    fn starts(&self, id: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(id).join("starts")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// What the program of an agent was told.
    fn log(&self, id: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(id).join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn call(server: &SabirProcess, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    server.http().exchange("POST", "/a2a/v1", &[], body.as_bytes()).unwrap().json()["result"].take()
}

fn send(server: &SabirProcess, text: &str, place: Value) -> Value {
    let mut message = json!({"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]});
    message.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
    call(server, "SendMessage", json!({"message": message}))["task"].take()
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}

fn reason(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

fn wait_for_state(server: &SabirProcess, task: &Value, expected: &str) -> Value {
    let start = Instant::now();
    loop {
        let now = call(server, "GetTask", json!({"id": task["id"]}));
        if state(&now) == expected || start.elapsed() > Duration::from_secs(10) {
            return now;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_question_lost_in_a_crash_fails_its_task_and_not_the_context() {
    for (name, can_load, is_gone, expected_log) in [
        ("loads its session", "true", false, &["load s", "prompt next"][..]),
        ("loads no session", "false", false, &["new", "prompt next"]),
        ("lost its session", "true", true, &["load s", "new", "prompt next"]),
    ] {
        let program = AcpFixture::new();
        program.configure(
            &program.agent("prog", &format!("keep_warm = '0s'\nenv = {{ NAME = 's', CAN_LOAD = '{can_load}' }}")),
        );
        let server = program.start();
        let parked = send(&server, "ask me", json!({}));
        assert_eq!(state(&parked), "TASK_STATE_INPUT_REQUIRED", "{name}: {parked}");
        server.kill();

        if is_gone {
            fs::write(program.path("prog").join("gone"), "").unwrap();
        }
        let server = program.start();
        let task = wait_for_state(&server, &parked, "TASK_STATE_FAILED");
        assert_eq!(state(&task), "TASK_STATE_FAILED", "{name}: {task}");
        assert!(reason(&task).ends_with("send the request again"), "{name}: {task}");
        send(&server, "yes", json!({"taskId": parked["id"]}));
        assert_eq!(program.log("prog").len(), 2, "{name}: no answer is a prompt");

        // The context goes on, with a new session where the old one cannot be resumed.
        let next = send(&server, "next", json!({"contextId": parked["contextId"]}));
        assert_eq!(state(&next), "TASK_STATE_COMPLETED", "{name}: {next}");
        assert_eq!(program.log("prog")[2..], *expected_log, "{name}");
        server.kill();
    }
}

#[test]
fn two_agents_in_one_context_keep_their_sessions_apart() {
    let program = AcpFixture::new();
    let one = program.agent("one", "default = true\nkeep_warm = '0s'\nenv = { NAME = 's1' }");
    let two = program.agent("two", "keep_warm = '0s'\nenv = { NAME = 's2' }");
    program.configure(&format!("{one}{two}[routing]\ncomplex = {{ agent = 'two' }}\n"));
    let server = program.start();
    let first = send(&server, "hello", json!({}));
    for text in ["refactor this", "hello again", "refactor that"] {
        let task = send(&server, text, json!({"contextId": first["contextId"]}));
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    }
    assert_eq!(program.log("one"), ["new", "prompt hello", "load s1", "prompt hello again"]);
    assert_eq!(program.log("two"), ["new", "prompt refactor this", "load s2", "prompt refactor that"]);
    server.kill();
}

#[test]
fn the_model_is_set_before_the_prompt_or_the_task_fails() {
    for (model, end, why, expected_log) in [
        ("big", "COMPLETED", "The program ended without an answer", &["new", "set model big", "prompt hello"][..]),
        ("small", "COMPLETED", "The program ended without an answer", &["new", "prompt hello"]),
        ("huge", "FAILED", "the model huge cannot be used: the program does not have it; it has small, big", &["new"]),
    ] {
        let program = AcpFixture::new();
        program.configure(&program.agent("prog", &format!("model = '{model}'\nenv = {{ NAME = 's' }}")));
        let server = program.start();
        let task = send(&server, "hello", json!({}));
        assert_eq!(state(&task), format!("TASK_STATE_{end}"), "{model}: {task}");
        assert_eq!(reason(&task), why, "{model}: {task}");
        assert_eq!(program.log("prog"), *expected_log, "{model}");
        server.kill();
    }
}

fn is_alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(15), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A bench with one agent, and its server.
fn serve(more: &str) -> (AcpFixture, SabirProcess) {
    let program = AcpFixture::new();
    program.configure(&program.agent("prog", &format!("env = {{ NAME = 's' }}\n{more}")));
    let server = program.start();
    (program, server)
}

fn completed(server: &SabirProcess, text: &str, place: Value) -> Value {
    let task = send(server, text, place);
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{text}: {task}");
    task
}

#[test]
fn the_next_message_of_a_context_uses_the_warm_program() {
    let (program, server) = serve("");
    let first = completed(&server, "one", json!({}));
    for text in ["two", "three"] {
        completed(&server, text, json!({"contextId": first["contextId"]}));
    }
    assert_eq!(program.log("prog"), ["new", "prompt one", "prompt two", "prompt three"]);
    assert_eq!(program.starts("prog").len(), 1);
    completed(&server, "elsewhere", json!({}));
    assert_eq!(program.starts("prog").len(), 2, "a program belongs to its context");

    // It never outlives the server.
    let starts = program.starts("prog");
    assert!(starts.iter().all(|pid| is_alive(pid)));
    server.kill();
    wait_until("the programs end with the server", || !starts.iter().any(|pid| is_alive(pid)));
}

#[test]
fn an_answer_is_delivered_before_the_next_question() {
    let (program, server) = serve("");
    let task = send(&server, "both", json!({}));
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
    let task = send(&server, "yes", json!({"taskId": task["id"]}));
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
    wait_until("the first answer is there", || program.log("prog").contains(&"answered 98".to_owned()));
    completed(&server, "no", json!({"taskId": task["id"]}));
    assert_eq!(program.log("prog"), ["new", "prompt both", "answered 98", "answered 99"]);
    server.kill();
}

#[test]
fn shutdown_waits_until_warm_programs_are_gone() {
    let (program, mut server) = serve("");
    for number in 0..3 {
        completed(&server, &format!("{number}"), json!({}));
    }
    let starts = program.starts("prog");
    assert!(starts.len() == 3 && starts.iter().all(|pid| is_alive(pid)));
    server.terminate();
    server.wait(Duration::from_secs(15));
    assert!(!starts.iter().any(|pid| is_alive(pid)), "none outlives the server, not even for a moment");
}

#[test]
fn warm_programs_end_by_time_or_number() {
    let (program, server) = serve("keep_warm = '200ms'");
    let first = completed(&server, "one", json!({}));
    let starts = program.starts("prog");
    wait_until("it ends", || !is_alive(&starts[0]));
    completed(&server, "two", json!({"contextId": first["contextId"]}));
    assert_eq!(program.log("prog"), ["new", "prompt one", "load s", "prompt two"]);
    server.kill();

    let (program, server) = serve("keep_warm = '0s'");
    completed(&server, "one", json!({}));
    let starts = program.starts("prog");
    wait_until("it ends at once", || !is_alive(&starts[0]));
    server.kill();

    let (program, server) = serve("");
    for number in 0..10 {
        completed(&server, &format!("{number}"), json!({}));
    }
    let starts = program.starts("prog");
    wait_until("the oldest end", || !is_alive(&starts[0]) && !is_alive(&starts[1]));
    assert!(starts[2..].iter().all(|pid| is_alive(pid)), "the others wait");
    server.kill();
}

#[test]
fn a_warm_program_that_dies_is_started_again() {
    let (program, server) = serve("");
    let first = completed(&server, "one", json!({}));
    let pid = program.starts("prog").remove(0);
    std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
    wait_until("it dies", || !is_alive(&pid));
    completed(&server, "two", json!({"contextId": first["contextId"]}));
    // And one that dies of the prompt itself, before it has done anything.
    fs::write(program.path("prog").join("dying"), "").unwrap();
    let task = completed(&server, "three", json!({"contextId": first["contextId"]}));
    let expected_log = ["new", "prompt one", "load s", "prompt two", "prompt three", "load s", "prompt three"];
    assert_eq!(program.log("prog"), expected_log);
    let sessions = task["artifacts"].as_array().unwrap().iter().filter(|artifact| artifact["name"] == "session");
    assert_eq!(sessions.count(), 1, "{task}");

    // A program that was just started may not: somebody has to look into it.
    fs::write(program.path("prog").join("dying"), "").unwrap();
    let failed = send(&server, "four", json!({}));
    assert_eq!(state(&failed), "TASK_STATE_FAILED", "{failed}");
    server.kill();
}

#[test]
fn a_failed_or_canceled_turn_leaves_no_warm_program() {
    for how in ["fail", "wait"] {
        let (program, server) = serve("");
        let first = completed(&server, "one", json!({}));
        let place = json!({"contextId": first["contextId"]});
        if how == "fail" {
            assert_eq!(state(&send(&server, "fail", place.clone())), "TASK_STATE_FAILED");
        } else {
            let mut message = json!({"messageId": "w", "role": "ROLE_USER", "parts": [{"text": "wait"}]});
            message["contextId"] = first["contextId"].clone();
            let params = json!({"message": message, "configuration": {"returnImmediately": true}});
            let task = call(&server, "SendMessage", params)["task"].take();
            wait_until("it is told", || program.log("prog").len() == 3);
            call(&server, "CancelTask", json!({"id": task["id"]}));
        }
        let starts = program.starts("prog");
        wait_until("it ends", || !is_alive(&starts[0]));
        completed(&server, "three", place);
        assert_eq!(program.log("prog")[3..], ["load s", "prompt three"], "{how}");
        server.kill();
    }
}

#[test]
fn another_model_needs_another_process() {
    let program = AcpFixture::new();
    let agent = program.agent("prog", "model = 'small'\nenv = { NAME = 's' }");
    program.configure(&format!("{agent}[routing]\ncomplex = {{ agent = 'prog', model = 'big' }}\n"));
    let server = program.start();
    let first = completed(&server, "hello", json!({}));
    let starts = program.starts("prog");
    completed(&server, "refactor it", json!({"contextId": first["contextId"]}));
    assert!(!is_alive(&starts[0]), "it was gone before the other began");
    let expected_log = ["new", "prompt hello", "load s", "set model big", "prompt refactor it"];
    assert_eq!(program.log("prog"), expected_log);
    server.kill();
}

#[test]
fn output_between_turns_is_no_answer() {
    let (program, server) = serve("");
    let first = completed(&server, "afterwards", json!({}));
    wait_until("its question is refused", || program.log("prog").contains(&"refused 77".to_owned()));
    let next = completed(&server, "two", json!({"contextId": first["contextId"]}));
    assert!(!next.to_string().contains("late"), "{next}");
    assert_eq!(program.starts("prog").len(), 1);
    server.kill();
}

#[test]
fn a_warm_program_with_background_processes_is_ended_with_them() {
    for (name, env, text, stays) in [
        ("a command in the background", "", "leave 1000", false),
        ("a command that ends soon", "", "leave 0.1", true),
        ("a server of its own", ", SERVER = '1'", "leave 0", true),
    ] {
        let program = AcpFixture::new();
        program.configure(&program.agent("prog", &format!("env = {{ NAME = 's'{env} }}")));
        let server = program.start();
        let first = completed(&server, text, json!({}));
        let left = fs::read_to_string(program.path("prog").join("left")).unwrap();
        // The task is over, and so is the folder's turn: nobody works there any more.
        assert!(!is_alive(left.trim()), "{name}");
        assert_eq!(is_alive(&program.starts("prog")[0]), stays, "{name}");
        completed(&server, "two", json!({"contextId": first["contextId"]}));
        let next = if stays { &["prompt two"][..] } else { &["load s", "prompt two"] };
        assert_eq!(program.log("prog")[2..], *next, "{name}");
        server.kill();
    }
}

#[test]
fn a_warm_program_that_works_by_itself_is_ended() {
    let (program, server) = serve("");
    completed(&server, "alone", json!({}));
    let starts = program.starts("prog");
    wait_until("it ends", || !is_alive(&starts[0]));
    server.kill();
}

#[test]
fn the_next_turn_waits_until_the_last_program_is_gone() {
    for (name, keep_warm, others) in [("too many wait", "5m", 8), ("its time is over", "100ms", 0)] {
        let program = AcpFixture::new();
        let more = format!("keep_warm = '{keep_warm}'\nenv = {{ NAME = 's', SLOW_END = '1' }}");
        program.configure(&program.agent("prog", &more));
        let server = program.start();
        let first = completed(&server, "one", json!({}));
        for number in 0..others {
            completed(&server, &format!("other {number}"), json!({}));
        }
        wait_until(name, || program.log("prog").contains(&"ending".to_owned()));
        completed(&server, "two", json!({"contextId": first["contextId"]}));
        let log = program.log("prog");
        let place =
            |line: &str| log.iter().position(|noted| noted == line).unwrap_or_else(|| panic!("{line}: {log:?}"));
        assert!(place("ended") < place("load s"), "{name}: {log:?}");
        server.kill();
    }
}

#[test]
fn changed_settings_need_another_process() {
    let (program, server) = serve("");
    let first = completed(&server, "one", json!({}));
    let place = json!({"contextId": first["contextId"]});
    let mut expected = vec!["new".to_owned(), "prompt one".to_owned()];
    for (number, (file, text, is_other)) in [
        ("README.md", "hello", false),
        (".claude/settings.json", "{}", true),
        (".claude/settings.json", r#"{"permissions":{"deny":["Bash"]}}"#, true),
        (".gemini/settings.json", "{}", true),
    ]
    .into_iter()
    .enumerate()
    {
        let file = program.path("prog").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        completed(&server, &format!("then {number}"), place.clone());
        expected.extend(is_other.then(|| "load s".to_owned()));
        expected.push(format!("prompt then {number}"));
        assert_eq!(program.log("prog"), expected, "{}", file.display());
    }
    server.kill();
}

#[test]
fn output_of_a_warm_program_is_drained_within_its_limit() {
    for (more, stays) in [("", true), ("max_output = '100KiB'", false)] {
        let (program, server) = serve(more);
        // More than a pipe holds: it gets through only if somebody reads.
        let first = completed(&server, "flood", json!({}));
        let starts = program.starts("prog");
        match stays {
            true => wait_until("it gets through", || program.log("prog").contains(&"flooded".to_owned())),
            false => wait_until("it is ended", || !is_alive(&starts[0])),
        }
        let next = completed(&server, "two", json!({"contextId": first["contextId"]}));
        assert!(!next.to_string().contains("late"), "{next}");
        assert_eq!(program.starts("prog").len(), if stays { 1 } else { 2 });
        server.kill();
    }
}
