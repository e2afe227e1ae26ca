//! The promises of coding-agent-a2a that need a program: script agents, as its users would write them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server_fixture::{ServerFixture, v03_message};

const CARD: &str = "/.well-known/agent-card.json";
const RPC: &str = "/a2a/jsonrpc";

const INIT: &str = r#"{"type":"system/init"}"#;
const RESULT: &str = r#"{"type":"result"}"#;

fn assistant(text: &str) -> String {
    json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}).to_string()
}

/// A program of the simple vocabulary, as a shell script.
struct ProgramFixture {
    folder: tempfile::TempDir,
}

impl ProgramFixture {
    /// Prints these lines and ends well.
    fn printing<L: AsRef<str>>(lines: &[L]) -> Self {
        let lines: String = lines.iter().map(|line| format!("{}\n", line.as_ref())).collect();
        Self::of(&format!("cat <<'END'\n{lines}END\n"))
    }

    fn of(body: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = Self { folder };
        script.put("agent", body);
        script
    }

    fn put(&self, name: &str, body: &str) {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{body}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A server that runs it as coding-agent-a2a would.
    fn served(self) -> Served {
        let fixture = self.served_with(&[]);
        Served { fixture, _script: self }
    }

    fn served_with(&self, variables: &[(&str, &str)]) -> ServerFixture {
        let binary = self.path("agent");
        ServerFixture::with(|options| {
            let options = options
                .local()
                .variable("AGENT_ADAPTER", "generic")
                .variable("AGENT_BINARY", binary.to_str().unwrap())
                .variable("AGENT_REPO_PATH", self.folder.path().to_str().unwrap());
            variables.iter().fold(options, |options, (name, value)| options.variable(name, value))
        })
    }
}

/// A server together with its program.
struct Served {
    fixture: ServerFixture,
    _script: ProgramFixture,
}

impl std::ops::Deref for Served {
    type Target = ServerFixture;

    fn deref(&self) -> &ServerFixture {
        &self.fixture
    }
}

fn stream(fixture: &ServerFixture) -> Vec<Value> {
    fixture.stream_rpc(RPC, "message/stream", v03_message("do it"))
}

fn of_kind<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["kind"] == kind).collect()
}

fn artifacts<'a>(frames: &'a [Value], name: &str) -> Vec<&'a Value> {
    let updates = of_kind(frames, "artifact-update");
    let id =
        updates.iter().find(|frame| frame["artifact"]["name"] == name).map(|frame| &frame["artifact"]["artifactId"]);
    updates.iter().copied().filter(|frame| Some(&frame["artifact"]["artifactId"]) == id).collect()
}

fn said(frame: &Value) -> &str {
    frame["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

fn state(value: &Value) -> &str {
    value["status"]["state"].as_str().unwrap_or_default()
}

fn is_alive(pid: &str) -> bool {
    // A zombie has ended, whoever still has to notice it.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn read_when_there(path: &Path) -> String {
    let start = Instant::now();
    loop {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(start.elapsed() < Duration::from_secs(10), "{} does not come", path.display()),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn gone_within(pid: &str, limit: Duration) {
    let start = Instant::now();
    while is_alive(pid) {
        assert!(start.elapsed() < limit, "process {pid} lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// `defaultInputModes` is text/plain alone, `defaultOutputModes` text/plain and application/json, for coding agents
#[test]
fn s0_04_modes_of_a_coding_agent() {
    let card = ProgramFixture::printing(&[RESULT]).served().get(CARD).json();
    assert_eq!(card["defaultInputModes"], json!(["text/plain"]));
    assert_eq!(card["defaultOutputModes"], json!(["text/plain", "application/json"]));
}

/// One skill `code-task` with tags, modes of its own and three examples
#[test]
fn s0_05_the_skill_of_a_coding_agent() {
    let card = ProgramFixture::printing(&[RESULT]).served().get(CARD).json();
    let skills = card["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 1, "{skills:?}");
    let skill = &skills[0];
    assert_eq!(skill["id"], "code-task");
    assert_eq!(skill["tags"], json!(["coding", "refactor", "edit", "test"]));
    assert!(skill["name"].as_str().is_some_and(|name| !name.is_empty()));
    assert!(skill["description"].as_str().is_some_and(|text| !text.is_empty()));
    assert!(skill["inputModes"].as_array().is_some_and(|modes| modes.contains(&json!("text/plain"))), "{skill}");
    assert_eq!(skill["outputModes"], json!(["text/plain", "application/json"]));
    assert_eq!(skill["examples"].as_array().map(Vec::len), Some(3));
}

/// The adapter's name appears in the card's name and description
#[test]
fn s0_06_the_adapter_is_named_on_the_card() {
    for (adapter, variable) in [("cursor", "CURSOR_AGENT_PATH"), ("claude-code", "CLAUDE_CODE_PATH")] {
        let script = ProgramFixture::printing(&[RESULT]);
        let fixture = ServerFixture::with(|options| {
            options.variable("AGENT_ADAPTER", adapter).variable(variable, script.path("agent").to_str().unwrap())
        });
        let card = fixture.get(CARD).json();
        assert!(card["name"].as_str().unwrap().contains(&format!("({adapter})")), "{}", card["name"]);
        assert!(card["description"].as_str().unwrap().contains(adapter), "{}", card["description"]);
    }
}

/// The agent's texts are appended to one artifact `assistant-response`
#[test]
fn s0_12_texts_are_pieces_of_one_artifact() {
    let fixture = ProgramFixture::printing(&[INIT, &assistant("Hello, "), &assistant("world."), RESULT]).served();
    let frames = stream(&fixture);
    let pieces = artifacts(&frames, "assistant-response");
    let texts: Vec<&Value> = pieces.iter().map(|frame| &frame["artifact"]["parts"][0]["text"]).collect();
    assert_eq!(texts[..2], [&json!("Hello, "), &json!("world.")], "{frames:#?}");
    assert!(pieces.iter().all(|frame| frame["artifact"]["name"] == "assistant-response"), "{frames:#?}");
    assert_ne!(pieces[0]["append"], true);
    assert_eq!(pieces[1]["append"], true);
}

/// A summary becomes a data artifact `result`
#[test]
fn s0_14_a_summary_becomes_a_result() {
    let fixture = ProgramFixture::printing(&[INIT, r#"{"type":"result","summary":"Refactored auth.ts."}"#]).served();
    let frames = stream(&fixture);
    let result = artifacts(&frames, "result");
    assert_eq!(result.len(), 1, "{frames:#?}");
    assert_eq!(result[0]["artifact"]["parts"][0]["data"]["summary"], "Refactored auth.ts.");
}

/// The `result` artifact comes before the final frame, which is the last one
#[test]
fn s0_16_the_result_comes_before_the_end() {
    let fixture = ProgramFixture::printing(&[INIT, r#"{"type":"result","summary":"Done."}"#]).served();
    let frames = stream(&fixture);
    let at = |is: &dyn Fn(&Value) -> bool| frames.iter().position(is).expect("it is there");
    let result = at(&|frame| frame["artifact"]["name"] == "result");
    let end = at(&|frame| frame["final"] == true);
    assert!(result < end, "{frames:#?}");
    assert_eq!(end, frames.len() - 1);
    assert_eq!(state(&frames[end]), "completed");
}

/// Cancel sends SIGTERM to the child process at once, the task is canceled, and the result is the task
#[test]
fn s0_19_cancel_ends_the_process() {
    let script = ProgramFixture::of(
        "trap 'echo term > term; exit 143' TERM\necho $$ > pid\necho '{\"type\":\"system/init\"}'\nwhile :; do sleep 0.05; done\n",
    );
    let fixture = script.served_with(&[]);
    let (id, mut events) = fixture.working("do it");
    let pid = read_when_there(&script.path("pid"));
    // A program that is still being started is killed; this one has said that it is there.
    events.next_frame().unwrap().expect("its first line is a status");
    let start = Instant::now();
    let task = fixture.rpc(RPC, "tasks/cancel", json!({"taskId": id}))["result"].take();
    assert_eq!(state(&task), "canceled", "{task}");
    gone_within(&pid, Duration::from_secs(2));
    assert_eq!(read_when_there(&script.path("term")), "term");
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

/// Init is a working status; with model and session it also is a data artifact
#[test]
fn s0_22_init_with_model_and_session_is_told() {
    for (line, expected) in [
        (INIT, None),
        (r#"{"type":"system/init","model":"m1","sessionId":"s1"}"#, Some(("m1", "s1"))),
        (r#"{"type":"system","subtype":"init","model":"m2","session_id":"s2"}"#, Some(("m2", "s2"))),
    ] {
        let frames = stream(&ProgramFixture::printing(&[line, RESULT]).served());
        assert!(of_kind(&frames, "status-update").iter().any(|frame| state(frame) == "working"));
        let data: Vec<&Value> =
            of_kind(&frames, "artifact-update").iter().map(|frame| &frame["artifact"]["parts"][0]["data"]).collect();
        match expected {
            None => assert!(data.is_empty(), "{frames:#?}"),
            Some((model, session)) => {
                assert_eq!((data[0]["model"].as_str(), data[0]["sessionId"].as_str()), (Some(model), Some(session)));
            }
        }
    }
}

/// Assistant chunks are pieces of one artifact, joined in tasks/get
#[test]
fn s0_23_chunks_are_joined() {
    let fixture =
        ProgramFixture::printing(&[INIT, &assistant("one "), &assistant("two "), &assistant("three"), RESULT]).served();
    let frames = stream(&fixture);
    let pieces = artifacts(&frames, "assistant-response");
    let words =
        pieces.iter().filter(|frame| frame["artifact"]["parts"][0]["text"].as_str().is_some_and(|t| !t.is_empty()));
    assert_eq!(words.count(), 3, "{frames:#?}");
    let task = fixture.task(frames[0]["id"].as_str().or(frames[1]["taskId"].as_str()).unwrap());
    let answers: Vec<&Value> =
        task["artifacts"].as_array().unwrap().iter().filter(|one| one["name"] == "assistant-response").collect();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0]["parts"], json!([{"kind": "text", "text": "one two three"}]));
}

/// A tool's output is cut to 200 characters
#[test]
fn s0_24_tool_output_is_cut() {
    let output = "x".repeat(1000);
    let result = json!({"type": "tool_result", "content": output}).to_string();
    let tool = r#"{"type":"tool_use","name":"read_file","input":{}}"#;
    let frames = stream(&ProgramFixture::printing(&[INIT, tool, &result, RESULT]).served());
    let shown = of_kind(&frames, "status-update").into_iter().map(said).find(|text| text.contains("xxx"));
    let shown = shown.expect("the output is told");
    let count = shown.chars().filter(|letter| *letter == 'x').count();
    assert!((1..=200).contains(&count) && shown.ends_with('…'), "{shown}");
    assert!(of_kind(&frames, "status-update").iter().any(|frame| said(frame) == "Using tool: read_file"));
}

/// Done is completed and final; a `result` artifact only where there is a summary or stats
#[test]
fn s0_25_a_result_only_where_there_is_one() {
    for (line, is_told) in [
        (RESULT, false),
        (r#"{"type":"result","summary":"S"}"#, true),
        (r#"{"type":"result","cost":{"input_tokens":7,"output_tokens":5}}"#, true),
    ] {
        let frames = stream(&ProgramFixture::printing(&[INIT, line]).served());
        let last = frames.last().unwrap();
        assert_eq!((state(last), &last["final"]), ("completed", &json!(true)), "{line}");
        assert_eq!(!artifacts(&frames, "result").is_empty(), is_told, "{line}: {frames:#?}");
    }
}

/// An error line fails the task with its message, and the stream closes
#[test]
fn s0_26_an_error_line_fails_the_task() {
    let script = ProgramFixture::of(
        "echo $$ > pid\necho '{\"type\":\"error\",\"error\":{\"message\":\"no such model\"}}'\nsleep 60\n",
    );
    let frames = stream(&script.served_with(&[]));
    let last = frames.last().unwrap();
    assert_eq!((state(last), &last["final"]), ("failed", &json!(true)));
    assert!(said(last).contains("no such model"), "{last}");
    gone_within(&read_when_there(&script.path("pid")), Duration::from_secs(5));
}

const ASKING: &str = "echo '{\"type\":\"system/init\"}'\necho 'Run rm -rf build? [Y/n]'\nread answer\necho \"$answer\" > answer\n\
    echo '{\"type\":\"result\",\"summary\":\"went on\"}'\n";

/// An approval question is input-required with `final` false, and the stream stays open
#[test]
fn s0_27_a_question_keeps_the_stream_open() {
    let script = ProgramFixture::of(ASKING);
    let fixture = script.served_with(&[("AGENT_FORCE", "false")]);
    let body = json!({"jsonrpc": "2.0", "id": "r", "method": "message/stream", "params": v03_message("do it")});
    let mut events = fixture.open(RPC, &[], &body);
    let asked = loop {
        let frame = events.next_frame().unwrap().expect("the stream goes on").payload();
        if state(&frame) == "input-required" {
            break frame;
        }
    };
    assert_eq!(asked["final"], false);
    assert!(said(&asked).contains("Run rm -rf build?"), "{asked}");
    let answer = json!({"message": {"kind": "message", "messageId": "a", "role": "user", "taskId": asked["taskId"], "parts": [{"kind": "text", "text": "y"}]}});
    assert_eq!(state(&fixture.rpc(RPC, "message/send", answer)["result"]), "completed");
    let rest: Vec<Value> = events.rest().unwrap().iter().map(sabir_testkit::sse::SseFrame::payload).collect();
    assert_eq!(state(rest.last().unwrap()), "completed", "{rest:#?}");
}

/// Exit 0 after a done line is completed
#[test]
fn s0_28_done_and_exit_0_is_completed() {
    let task = ProgramFixture::printing(&[INIT, RESULT]).served().send("do it");
    assert_eq!(state(&task), "completed", "{task}");
}

/// Exit 3 without a done line is failed, and the message names the code
#[test]
fn s0_29_an_exit_code_without_a_done_line_is_a_failure() {
    let task = ProgramFixture::of("echo '{\"type\":\"system/init\"}'\necho 'disk on fire' >&2\nexit 3\n")
        .served()
        .send("do it");
    assert_eq!(state(&task), "failed");
    assert!(said(&task).contains("exit code 3") && said(&task).contains("disk on fire"), "{task}");
    let task = ProgramFixture::printing(&[INIT]).served().send("do it");
    assert_eq!(state(&task), "failed", "exit 0 without an end is no success: {task}");
}

fn sleeping_until_stopped(variables: &[(&str, &str)]) -> (Value, Duration) {
    let script = ProgramFixture::of("echo $$ > pid\necho '{\"type\":\"system/init\"}'\nsleep 10\n");
    let fixture = script.served_with(variables);
    let start = Instant::now();
    let task = fixture.send("do it");
    let took = start.elapsed();
    gone_within(&read_when_there(&script.path("pid")), Duration::from_secs(2));
    (task, took)
}

/// The hard timeout fails the task and ends the process
#[test]
fn s0_30_the_hard_timeout_ends_the_process() {
    let (task, took) = sleeping_until_stopped(&[("AGENT_TIMEOUT_MS", "500")]);
    assert_eq!(state(&task), "failed", "{task}");
    assert!(took > Duration::from_millis(450) && took < Duration::from_secs(4), "{took:?}");
}

/// The idle timeout fails the task and ends the process
#[test]
fn s0_31_the_idle_timeout_ends_the_process() {
    let (task, took) = sleeping_until_stopped(&[("AGENT_IDLE_EXIT_MS", "300")]);
    assert_eq!(state(&task), "failed", "{task}");
    assert!(took > Duration::from_millis(250) && took < Duration::from_secs(4), "{took:?}");
}

/// An answer by contextId alone reaches the waiting process on stdin; no second task is made
#[test]
fn s0_33_an_answer_by_context_reaches_the_process() {
    let script = ProgramFixture::of(ASKING);
    let fixture = script.served_with(&[("AGENT_FORCE", "false")]);
    let parked = fixture.send("do it");
    assert_eq!(state(&parked), "input-required", "{parked}");
    let answer = json!({"message": {"kind": "message", "messageId": "a", "role": "user", "contextId": parked["contextId"],
        "parts": [{"kind": "text", "text": "y"}]}});
    let task = fixture.rpc(RPC, "message/send", answer)["result"].take();
    assert_eq!((&task["id"], state(&task)), (&parked["id"], "completed"), "{task}");
    assert_eq!(read_when_there(&script.path("answer")), "y");
    let list = fixture.ask(
        "POST",
        "/",
        &[("A2A-Version", "1.0")],
        &json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}),
    );
    assert_eq!(list.json()["result"]["totalSize"], 1, "{}", list.text());
}

/// AGENT_FORCE decides about the adapter's skip-approval flag
#[test]
fn s0_34_force_is_the_flag_that_skips_approvals() {
    for (force, is_given) in [(None, true), (Some("true"), true), (Some("false"), false)] {
        let script = ProgramFixture::of("printf '%s\\n' \"$@\" > argv\necho >> argv\necho '{\"type\":\"result\"}'\n");
        let fixture = ServerFixture::with(|options| {
            let options = options
                .variable("AGENT_ADAPTER", "cursor")
                .variable("AGENT_REPO_PATH", script.folder.path().to_str().unwrap())
                .variable("CURSOR_AGENT_PATH", script.path("agent").to_str().unwrap());
            force.iter().fold(options, |options, force| options.variable("AGENT_FORCE", force))
        });
        assert_eq!(state(&fixture.send("do it")), "completed");
        let argv = read_when_there(&script.path("argv"));
        let has_flag = argv.lines().any(|word| word == "-f" || word == "--force");
        assert_eq!(has_flag, is_given, "{force:?}: {argv}");
    }
}
