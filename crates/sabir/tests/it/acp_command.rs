//! `sabir acp`: an agent for editors on standard input and output, in front of a running server. The editor here speaks the protocol
//! as it is on the wire.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::{Value, json};

use crate::SABIR;
use crate::program_fixture::{ProgramFixture, message, send, state, wait_for};

/// For what happens at all, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

struct Editor {
    program: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// What came while an answer was waited for.
    updates: Vec<Value>,
}

impl Editor {
    fn start(folder: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(SABIR);
        command.arg("acp").args(words).current_dir(folder).env_clear().env("SABIR_STORE", "sqlite:sabir.db");
        command.env("SABIR_LISTEN", "127.0.0.1:1");
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (program.stdin.take(), BufReader::new(program.stdout.take().unwrap()));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({"not JSON": line}));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut editor = Self { program, input, lines, updates: Vec::new() };
        let params =
            json!({"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let answer = editor.ask("initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        editor
    }

    fn of(server: &SabirProcess, folder: &Path, words: &[&str]) -> Self {
        let url = format!("http://{}", server.address);
        Self::start(folder, &[&["--url", &url], words].concat())
    }

    fn line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn write(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    fn begin(&mut self, id: &str, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn read(&mut self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("the program says something")
    }

    /// The next message that `is_it`; updates before it are kept.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.read();
            if message["method"] == "session/update" {
                self.updates.push(message["params"]["update"].clone());
            }
            if is_it(&message) {
                return message;
            }
        }
    }

    fn answer_of(&mut self, id: &str) -> Value {
        self.until(|message| message["id"] == id && message["method"].is_null())
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.begin(method, method, params);
        self.answer_of(method)
    }

    /// A new session.
    fn session(&mut self) -> String {
        let answer = self.ask("session/new", json!({"cwd": "/work", "mcpServers": []}));
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn begin_prompt(&mut self, session: &str, text: &str) {
        self.begin("prompt", "session/prompt", prompt(session, text));
    }

    /// The whole answer to a prompt; what was shown is in `updates`.
    fn prompt(&mut self, session: &str, text: &str) -> Value {
        self.updates.clear();
        self.begin_prompt(session, text);
        self.answer_of("prompt")
    }

    /// A prompt that is answered well, and what the agent said.
    fn said(&mut self, session: &str, text: &str) -> String {
        let answer = self.prompt(session, text);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        self.texts("agent_message_chunk")
    }

    fn texts(&self, kind: &str) -> String {
        let of_kind = self.updates.iter().filter(|update| update["sessionUpdate"] == kind);
        of_kind.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    fn until_update(&mut self, is_it: impl Fn(&Value) -> bool) {
        self.until(|message| message["method"] == "session/update" && is_it(&message["params"]["update"]));
    }

    fn until_said(&mut self, text: &str) {
        self.until_update(|update| update["content"]["text"].as_str().is_some_and(|said| said.contains(text)));
    }

    /// Closes its input; how the program ends.
    fn end(mut self) -> i32 {
        self.input = None;
        self.program.wait().unwrap().code().unwrap()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

fn open(session: &str) -> Value {
    json!({"sessionId": session, "cwd": "/work", "mcpServers": []})
}

/// The tasks of a context, newest first.
fn tasks(server: &SabirProcess, context: &str) -> Vec<Value> {
    let page = server.rpc("ListTasks", json!({"contextId": context, "includeArtifacts": true, "historyLength": 100}));
    page["result"]["tasks"].as_array().cloned().unwrap_or_default()
}

/// The only task of a context, once it is in this state.
fn task_in(server: &SabirProcess, context: &str, wanted: &str) -> Value {
    server.until(wanted, |server| tasks(server, context).into_iter().next().filter(|task| state(task) == wanted))
}

#[test]
fn an_editor_works_with_the_agent_of_the_server_that_runs_here() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let mut editor = Editor::start(folder.path(), &[]);
    let session = editor.session();
    assert_eq!(editor.said(&session, "hello"), "echo: hello");
    let task = &tasks(&server, &session)[0];
    assert_eq!(task["contextId"], session.as_str(), "a session is a context");
    assert_eq!(editor.said(&session, "stream 3 1"), "chunk 1\nchunk 2\nchunk 3\n");
    assert_eq!(editor.said(&session, "tool read_file"), "echo: tool read_file");
    let tools: Vec<&Value> = editor.updates.iter().filter(|one| !one["toolCallId"].is_null()).collect();
    let [begun, ended] = tools[..] else { panic!("{:?}", editor.updates) };
    assert_eq!((&begun["sessionUpdate"], &begun["kind"]), (&json!("tool_call"), &json!("read")), "{begun}");
    assert_eq!((&begun["title"], &begun["status"]), (&json!("read_file"), &json!("in_progress")), "{begun}");
    assert_eq!(
        (&ended["sessionUpdate"], &ended["status"]),
        (&json!("tool_call_update"), &json!("completed")),
        "{ended}"
    );
    assert_eq!(ended["content"][0]["content"]["text"], "read_file is done", "{ended}");
    assert_eq!(begun["toolCallId"], ended["toolCallId"]);
    // Files and addresses.
    assert_eq!(editor.said(&session, "url"), "");
    assert!(editor.updates.iter().any(|one| one["content"]["type"] == "resource_link"), "{:?}", editor.updates);
    assert_eq!(editor.said(&session, "file"), "");
    assert!(editor.updates.iter().any(|one| one["content"]["type"] == "resource"), "{:?}", editor.updates);
    assert_eq!(editor.said(&session, "message hi there"), "hi there", "an answer without a task");
    // How turns end.
    let answer = editor.prompt(&session, "reject not mine");
    assert_eq!(answer["result"]["stopReason"], "refusal", "{answer}");
    assert!(editor.texts("agent_message_chunk").contains("not mine"));
    let answer = editor.prompt(&session, "fail out of paper");
    assert_eq!(answer["error"]["message"], "The task failed: out of paper", "{answer}");
    assert_eq!(answer["error"]["data"]["state"], "failed", "{answer}");
    // A question ends the turn; the next prompt is its answer.
    assert_eq!(editor.said(&session, "ask Which day?"), "Which day?");
    let asking = tasks(&server, &session)[0].clone();
    assert_eq!(state(&asking), "INPUT_REQUIRED");
    assert_eq!(editor.said(&session, "Monday"), "echo: Monday");
    let answered = &tasks(&server, &session)[0];
    assert_eq!((&answered["id"], state(answered)), (&asking["id"], "COMPLETED"));
    assert_eq!(editor.end(), 0);
}

#[test]
fn parts_of_a_prompt_reach_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let mut editor = Editor::of(&server, folder.path(), &[]);
    let session = editor.session();
    let blocks = json!([
        {"type": "text", "text": "look"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///work/a.txt", "text": "words"}},
        {"type": "resource_link", "uri": "file:///work/b.txt", "name": "b.txt"},
    ]);
    let answer = editor.ask("session/prompt", json!({"sessionId": session, "prompt": blocks}));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let sent = tasks(&server, &session)[0]["history"][0].clone();
    let parts = &sent["parts"];
    assert_eq!(parts[0]["text"], "look", "{sent}");
    assert_eq!((&parts[1]["raw"], &parts[1]["mediaType"]), (&json!("AAAA"), &json!("image/png")), "{sent}");
    assert_eq!((&parts[2]["raw"], &parts[2]["filename"]), (&json!("d29yZHM="), &json!("a.txt")), "{sent}");
    assert_eq!((&parts[3]["url"], &parts[3]["filename"]), (&json!("file:///work/b.txt"), &json!("b.txt")), "{sent}");
    assert_eq!(sent["metadata"]["urn:sabir:acp:cwd"], "/work", "{sent}");
    assert!(sent["metadata"]["workspace"].is_null(), "{sent}");
    // The same comes back as it was.
    let mut other = Editor::of(&server, folder.path(), &["--workspace"]);
    assert!(other.ask("session/load", open(&session))["result"].is_object());
    let shown: Vec<&Value> = other
        .updates
        .iter()
        .filter(|one| one["sessionUpdate"] == "user_message_chunk")
        .map(|one| &one["content"])
        .collect();
    assert_eq!(json!(shown), blocks);
    let session = other.session();
    other.said(&session, "hello");
    assert_eq!(tasks(&server, &session)[0]["history"][0]["metadata"]["workspace"], "/work");
}

#[test]
fn a_session_is_loaded_after_a_restart_of_both_and_told_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path());
    let server = options.start();
    let mut editor = Editor::of(&server, folder.path(), &[]);
    let session = editor.session();
    assert_eq!(editor.said(&session, "ask Which day?"), "Which day?");
    assert_eq!(editor.said(&session, "Monday"), "echo: Monday");
    editor.said(&session, "tool read_file");
    assert!(editor.prompt(&session, "fail out of paper")["error"].is_object());
    assert_eq!(editor.said(&session, "ask Where?"), "Where?");
    drop(editor);
    server.kill();
    let server = options.start();
    let mut editor = Editor::of(&server, folder.path(), &[]);
    let answer = editor.ask("session/load", open(&session));
    assert_eq!(answer["result"], json!({}), "{answer}");
    if !editor.texts("agent_message_chunk").ends_with("Where?") {
        editor.until_said("Where?");
    }
    let told: Vec<String> = editor.updates.iter().map(in_short).collect();
    assert_eq!(
        told,
        [
            "user: ask Which day?",
            "agent: Which day?",
            "user: Monday",
            "agent: echo: Monday",
            "user: tool read_file",
            "tool_call: in_progress",
            "tool_call_update: completed",
            "agent: echo: tool read_file",
            "user: fail out of paper",
            "agent: The task failed: out of paper",
            "user: ask Where?",
            "agent: Where?",
        ]
    );
    // What was open still is.
    assert_eq!(editor.said(&session, "Here"), "echo: Here");
    // Resuming tells nothing.
    let mut editor = Editor::of(&server, folder.path(), &[]);
    assert_eq!(editor.ask("session/resume", open(&session))["result"], json!({}));
    assert_eq!(editor.updates, Vec::<Value>::new());
    assert_eq!(editor.said(&session, "hello"), "echo: hello");
    let answer = editor.ask("session/list", json!({"cwd": "/work"}));
    let listed = &answer["result"]["sessions"];
    assert_eq!((&listed[0]["sessionId"], &listed[0]["cwd"]), (&json!(session), &json!("/work")), "{answer}");
    assert_eq!(listed[0]["title"], "ask Which day?", "{answer}");
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{answer}");
    assert_eq!(editor.ask("session/list", json!({"cwd": "/elsewhere"}))["result"]["sessions"], json!([]));
}

/// Who said what; pieces of one text in one line would be another test.
fn in_short(update: &Value) -> String {
    let text = update["content"]["text"].as_str().unwrap_or_default().trim();
    match update["sessionUpdate"].as_str().unwrap_or_default() {
        "user_message_chunk" => format!("user: {text}"),
        "agent_message_chunk" => format!("agent: {text}"),
        "agent_thought_chunk" => format!("thought: {text}"),
        kind => format!("{kind}: {}", update["status"].as_str().unwrap_or_default()),
    }
}

/// Leads connections to a server that may be another one later.
struct Forwarder {
    url: String,
    target: Arc<Mutex<SocketAddr>>,
}

impl Forwarder {
    fn to(server: &SabirProcess) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let target = Arc::new(Mutex::new(server.address));
        let now = target.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(*now.lock().unwrap()) else { continue };
                for (mut from, mut to) in [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
                {
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
            }
        });
        Forwarder { url, target }
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_of_a_prompt_is_waited_for() {
    // Works until there is a file, tells how far it is, and resumes after a restart.
    let program = ProgramFixture::new(
        "echo begun\nwhile [ ! -e ../go ]; do sleep 0.05; done\necho '{\"type\":\"result\",\"summary\":\"all done\"}'\n",
    );
    let options =
        program.options(&format!("{}[recovery]\nrunning = \"requeue\"\n", program.agent("prog", "generic", "")));
    let server = options.start();
    let forwarder = Forwarder::to(&server);
    let url = forwarder.url.as_str();
    let mut editor = Editor::start(program.folder.path(), &["--url", url, "--endpoint", url]);
    let session = editor.session();
    editor.begin_prompt(&session, "work");
    task_in(&server, &session, "WORKING");
    server.kill();
    let server = options.start();
    *forwarder.target.lock().unwrap() = server.address;
    fs::write(program.path("go"), "").unwrap();
    let answer = editor.answer_of("prompt");
    let task = &tasks(&server, &session)[0];
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer} {task}");
    assert_eq!(tasks(&server, &session).len(), 1, "the prompt was sent once");
}

/// Speaks the Agent Client Protocol, asks before it removes something, and says what it was answered.
const ASKING: &str = r#"say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
tool='"toolCallId":"call-1","title":"rm -rf build","kind":"execute","rawInput":{"command":"rm -rf build"}'
while read -r line; do
    case $line in
    *'"initialize"'*) say '"id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) say '"id":2,"result":{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
        say '"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","status":"pending",'"$tool"'}}'
        say '"id":99,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{'"$tool"'},"options":[{"optionId":"yes-1","name":"Allow","kind":"allow_once"},{"optionId":"no-1","name":"Reject","kind":"reject_once"}]}'
        ;;
    *'"id":99'*)
        case $line in *yes-1*) said=allowed ;; *) said=denied ;; esac
        say '"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"call-1","status":"completed"}}'
        say '"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'$said'"}}}'
        say '"id":3,"result":{"stopReason":"end_turn"}' ;;
    esac
done
"#;

/// Shows a harmless edit, and asks permission for another one, with a letter that nobody sees in the place of `@`.
const LYING: &str = r#"say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
call='"toolCallId":"call-1","title":"Edit","kind":"edit"'
input() { printf '{"file_path":"/work/%s","old_string":"a","new_string":"%s"}' "$1" "$2"; }
while read -r line; do
    case $line in
    *'"initialize"'*) say '"id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) say '"id":2,"result":{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
        say '"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","status":"pending",'"$call"',"rawInput":'"$(input notes.txt harmless)"'}}'
        say '"id":99,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{'"$call"',"rawInput":'"$(input .bashrc harm@ful)"'},"options":[{"optionId":"yes-1","name":"Allow@","kind":"allow_once"}]}'
        ;;
    *'"id":99'*) say '"id":3,"result":{"stopReason":"end_turn"}' ;;
    esac
done
"#;

fn is_permission(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

#[test]
fn permission_is_asked_in_a_dialog_of_the_editor() {
    let program = ProgramFixture::new(ASKING);
    let server = program.serve("acp", "keep_warm = \"0s\"\n");
    let mut editor = Editor::of(&server, program.folder.path(), &[]);
    for (response, expected) in [
        (json!({"result": {"outcome": {"outcome": "selected", "optionId": "yes-1"}}}), "allowed"),
        (json!({"result": {"outcome": {"outcome": "selected", "optionId": "no-1"}}}), "denied"),
        (json!({"result": {"outcome": {"outcome": "selected", "optionId": "another"}}}), "denied"),
        (json!({"result": {"outcome": {"outcome": "cancelled"}}}), "denied"),
        (json!({"result": 7}), "denied"),
    ] {
        let session = editor.session();
        editor.updates.clear();
        editor.begin_prompt(&session, "go");
        let asked = editor.until(is_permission);
        let tool = &asked["params"]["toolCall"];
        let shown =
            editor.updates.iter().find(|one| one["sessionUpdate"] == "tool_call").unwrap_or_else(|| panic!("{asked}"));
        assert_eq!(tool["toolCallId"], shown["toolCallId"], "the dialog is about the tool that is shown");
        assert_eq!((&shown["title"], &shown["kind"]), (&json!("rm -rf build"), &json!("execute")), "{shown}");
        assert_eq!(tool["rawInput"], json!({"command": "rm -rf build"}), "{asked}");
        let words = tool["content"][0]["content"]["text"].as_str().unwrap();
        assert!(words.starts_with("tool ") && words.contains("\"command\": \"rm -rf build\""), "{asked}");
        let options = json!([
            {"optionId": "yes-1", "name": "Allow", "kind": "allow_once"},
            {"optionId": "no-1", "name": "Reject", "kind": "reject_once"},
        ]);
        assert_eq!(asked["params"]["options"], options, "{asked}");
        let mut message = response.clone();
        (message["jsonrpc"], message["id"]) = (json!("2.0"), asked["id"].clone());
        editor.write(&message);
        let answer = editor.answer_of("prompt");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{response}: {answer}");
        assert_eq!(editor.texts("agent_message_chunk").trim(), expected, "{response}");
    }
    // An editor without such a dialog: the question is text, and the next prompt answers it.
    let session = editor.session();
    editor.updates.clear();
    editor.begin_prompt(&session, "go");
    let asked = editor.until(is_permission);
    editor.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}));
    assert_eq!(editor.answer_of("prompt")["result"]["stopReason"], "end_turn");
    assert!(editor.texts("agent_message_chunk").contains("rm -rf build"), "{:?}", editor.updates);
    assert_eq!(editor.said(&session, "yes").trim(), "allowed");
}

#[test]
fn a_permission_that_waits_is_asked_for_again_when_the_session_is_loaded_and_may_be_given_elsewhere() {
    let program = ProgramFixture::new(ASKING);
    let server = program.serve("acp", "");
    let mut editor = Editor::of(&server, program.folder.path(), &[]);
    let session = editor.session();
    editor.begin_prompt(&session, "go");
    editor.until(is_permission);
    assert_eq!(editor.end(), 0, "the editor goes away while it is asked");
    let task = task_in(&server, &session, "INPUT_REQUIRED");
    let mut editor = Editor::of(&server, program.folder.path(), &[]);
    assert_eq!(editor.ask("session/load", open(&session))["result"], json!({}));
    editor.until(is_permission);
    let mut yes = message("yes");
    yes["message"]["taskId"] = task["id"].clone();
    assert_eq!(state(&send(&server, yes)), "COMPLETED");
    // The task is followed on, and its end is shown without a prompt.
    editor.until_said("allowed");
}

#[test]
fn a_permission_that_somebody_else_must_give_is_waited_for() {
    let program = ProgramFixture::new(ASKING);
    let hash = |secret: &str| sabir_server::Digest::of(secret.as_bytes());
    let tokens = format!(
        "[[auth.token]]\nsubject = 'alice'\nscopes = ['run', 'read']\nhash = '{}'\n\n\
         [[auth.token]]\nsubject = 'boss'\nscopes = ['run', 'read', 'release']\nhash = '{}'\n",
        hash("token-of-alice"),
        hash("token-of-boss"),
    );
    let server =
        program.options(&format!("{}{tokens}", program.agent("prog", "acp", "approver = \"release\"\n"))).start();
    let mut alice = Editor::of(&server, program.folder.path(), &["--bearer", "token-of-alice"]);
    let session = alice.session();
    alice.begin_prompt(&session, "go");
    let asked = alice.until(is_permission);
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "yes-1"}});
    alice.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome}));
    alice.until_said("Waiting for somebody who may answer");
    let headers = [("A2A-Version", "1.0"), ("Authorization", "Bearer token-of-alice")];
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"contextId": session}});
    let page = server.http().exchange("POST", "/", &headers, list.to_string().as_bytes()).unwrap().json();
    let task = &page["result"]["tasks"][0];
    assert_eq!(state(task), "INPUT_REQUIRED", "{page}");
    let mut yes = message("yes");
    yes["message"]["taskId"] = task["id"].clone();
    let headers = [("A2A-Version", "1.0"), ("Authorization", "Bearer token-of-boss")];
    let send = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": yes});
    let answer = server.http().exchange("POST", "/", &headers, send.to_string().as_bytes()).unwrap().json();
    assert!(answer["error"].is_null(), "{answer}");
    assert_eq!(alice.answer_of("prompt")["result"]["stopReason"], "end_turn");
    assert_eq!(alice.texts("agent_message_chunk").trim(), "allowed");
}

#[test]
fn permission_is_asked_for_what_the_tool_gets_and_not_for_what_was_shown_before() {
    let program = ProgramFixture::new(&LYING.replace('@', "\u{e0041}"));
    let server = program.serve("acp", "keep_warm = \"0s\"\n");
    let mut editor = Editor::of(&server, program.folder.path(), &[]);
    let session = editor.session();
    editor.begin_prompt(&session, "go");
    let asked = editor.until(is_permission);
    let shown = &asked["params"]["toolCall"]["content"];
    let words = shown[0]["content"]["text"].as_str().unwrap();
    assert!(words.contains("/work/.bashrc") && words.contains("harm\u{fffd}ful"), "{asked}");
    assert_eq!((&shown[1]["type"], &shown[1]["path"]), (&json!("diff"), &json!("/work/.bashrc")), "{asked}");
    assert!(!asked.to_string().contains("harmless"), "{asked}");
    assert_eq!(asked["params"]["options"][0]["name"], "Allow\u{fffd}", "{asked}");
}

#[test]
fn a_cancel_stops_the_task_and_then_the_prompt_is_answered() {
    let program = ProgramFixture::new(ASKING);
    let agents =
        format!("[[agent]]\nid = \"demo\"\nkind = \"demo\"\ndefault = true\n\n{}", program.agent("asks", "acp", ""));
    let server = program.options(&agents).start();
    let mut editor = Editor::of(&server, program.folder.path(), &[]);
    let session = editor.session();
    editor.begin_prompt(&session, "slow 600 hello");
    task_in(&server, &session, "WORKING");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.answer_of("prompt")["result"]["stopReason"], "cancelled");
    assert_eq!(state(&tasks(&server, &session)[0]), "CANCELED");
    // The session goes on.
    assert_eq!(editor.said(&session, "hello"), "echo: hello");
    // At once, before the task is known here.
    let session = editor.session();
    editor.begin_prompt(&session, "slow 600 hello");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.answer_of("prompt")["result"]["stopReason"], "cancelled");
    assert!(tasks(&server, &session).iter().all(|task| state(task) == "CANCELED"));
    // While permission is asked for.
    let mut editor = Editor::of(&server, program.folder.path(), &["--agent", "asks"]);
    let session = editor.session();
    editor.begin_prompt(&session, "go");
    let asked = editor.until(is_permission);
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}}));
    let answer = editor.answer_of("prompt");
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert_eq!(state(&tasks(&server, &session)[0]), "CANCELED");
    // A cancel of nothing does nothing.
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.notify("session/cancel", json!({"sessionId": "nobody"}));
    assert!(editor.ask("session/list", json!({}))["result"].is_object());
}

#[test]
fn an_editor_that_goes_away_changes_nothing_and_sees_the_rest_when_it_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let mut editor = Editor::of(&server, folder.path(), &[]);
    let session = editor.session();
    editor.begin_prompt(&session, "stream 100000 5");
    editor.until_said("chunk 1");
    assert_eq!(editor.end(), 0);
    assert_eq!(state(&tasks(&server, &session)[0]), "WORKING");
    let mut editor = Editor::of(&server, folder.path(), &[]);
    assert_eq!(editor.ask("session/load", open(&session))["result"], json!({}));
    assert!(editor.texts("agent_message_chunk").starts_with("chunk 1\nchunk 2"));
    let seen = editor.updates.len();
    editor.until_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    assert!(editor.updates.len() > seen);
    // Every piece is shown once.
    let text = editor.texts("agent_message_chunk");
    for (number, line) in text.lines().enumerate() {
        assert_eq!(line, format!("chunk {}", number + 1));
    }
    // A prompt waits for it, and a cancel ends both.
    editor.begin_prompt(&session, "hello");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.answer_of("prompt")["result"]["stopReason"], "cancelled");
    task_in(&server, &session, "CANCELED");
}

#[test]
fn a_prompt_that_comes_again_with_its_id_joins_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let mut editor = Editor::of(&server, folder.path(), &[]);
    let session = editor.session();
    for _ in 0..2 {
        editor.updates.clear();
        let mut params = prompt(&session, "hello");
        params["messageId"] = json!("m-1");
        let answer = editor.ask("session/prompt", params);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        assert_eq!(editor.texts("agent_message_chunk"), "echo: hello");
    }
    assert_eq!(tasks(&server, &session).len(), 1);
}

#[test]
fn what_is_wrong_with_a_message_is_said_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let mut editor = Editor::of(&server, folder.path(), &[]);
    let session = editor.session();
    for (line, code, id) in [
        ("{", -32700, Value::Null),
        ("\u{1}", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        ("7", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":[],"method":"initialize"}"#, -32600, Value::Null),
        (r#"{"id":1,"method":"initialize"}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
    ] {
        editor.line(line);
        let answer = editor.read();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
    }
    for (method, params, code, word) in [
        ("session/set_mode", json!({"sessionId": session, "modeId": "x"}), -32601, "session/set_mode"),
        ("_zed/extension", json!({}), -32601, "_zed/extension"),
        ("initialize", json!({}), -32602, "protocolVersion"),
        ("initialize", json!({"protocolVersion": "1"}), -32602, "protocolVersion"),
        ("authenticate", json!({"methodId": "x"}), -32602, "methodId"),
        ("session/new", json!({"mcpServers": []}), -32602, "cwd"),
        ("session/new", json!({"cwd": "work", "mcpServers": []}), -32602, "cwd"),
        ("session/new", json!({"cwd": "/work", "mcpServers": 1}), -32602, "mcpServers"),
        ("session/new", json!([]), -32602, "params"),
        ("session/load", json!({"cwd": "/work", "mcpServers": []}), -32602, "sessionId"),
        ("session/load", open("nobody"), -32002, "nobody"),
        ("session/load", open(""), -32602, "sessionId"),
        ("session/prompt", json!({"sessionId": session}), -32602, "prompt"),
        ("session/prompt", json!({"sessionId": session, "prompt": []}), -32602, "prompt"),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": 1}]}),
            -32602,
            "prompt[0].text",
        ),
        ("session/prompt", json!({"sessionId": session, "prompt": [{"type": "video"}]}), -32602, "prompt[0].type"),
        ("session/prompt", json!({"sessionId": 1, "prompt": []}), -32602, "sessionId"),
        ("session/prompt", prompt("nobody", "x"), -32002, "nobody"),
    ] {
        let answer = editor.ask(method, params.clone());
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(word), "{method} {params}: {answer}");
    }
    // Notifications and answers that nobody waits for are passed over.
    editor.notify("_zed/extension", json!({}));
    editor.notify("session/prompt", prompt(&session, "x"));
    editor.write(&json!({"jsonrpc": "2.0", "id": 4711, "result": {}}));
    editor.line("");
    // An editor of another version is told which one is spoken.
    assert_eq!(editor.ask("initialize", json!({"protocolVersion": 7}))["result"]["protocolVersion"], 1);
    assert_eq!(tasks(&server, &session), Vec::<Value>::new());
    // One prompt at a time.
    editor.begin_prompt(&session, "slow 600 x");
    let answer = editor.ask("session/prompt", prompt(&session, "y"));
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(editor.ask("session/load", open(&session))["error"]["code"], -32600);
    task_in(&server, &session, "WORKING");
    assert_eq!(tasks(&server, &session).len(), 1);
}

#[test]
fn a_message_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let mut editor = Editor::of(&server, folder.path(), &[]);
    let session = editor.session();
    editor.line(&prompt(&session, &"x".repeat(65 << 20)).to_string());
    let answer = editor.read();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert_eq!(editor.said(&session, "hello"), "echo: hello");
}

#[test]
fn an_editor_is_told_what_to_do_without_a_server_or_a_credential() {
    let folder = tempfile::tempdir().unwrap();
    let new = json!({"cwd": "/work", "mcpServers": []});
    let mut editor = Editor::start(folder.path(), &[]);
    let answer = editor.ask("session/new", new.clone());
    assert!(answer["error"]["message"].as_str().unwrap().contains("sabir serve"), "{answer}");
    // A server that starts later is found.
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let session = editor.session();
    assert_eq!(editor.said(&session, "hello"), "echo: hello");
    drop(server);
    let folder = tempfile::tempdir().unwrap();
    let tokens = "alice:secret-of-alice,bob:secret-of-bob";
    let server = SabirOptions::new(SABIR, folder.path()).variable("SABIR_AUTH_TOKENS", tokens).start();
    let mut alice = Editor::of(&server, folder.path(), &["--bearer", "secret-of-alice"]);
    let session = alice.session();
    assert_eq!(alice.said(&session, "hello"), "echo: hello");
    let mut nobody = Editor::of(&server, folder.path(), &[]);
    let answer = nobody.ask("session/list", json!({}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("SABIR_TOKEN"), "{answer}");
    // Nobody sees the sessions of others.
    let mut bob = Editor::of(&server, folder.path(), &["--bearer", "secret-of-bob"]);
    assert_eq!(bob.ask("session/load", open(&session))["error"]["code"], -32002);
    assert_eq!(bob.ask("session/list", json!({}))["result"]["sessions"], json!([]));
}

#[test]
fn a_sabir_hosts_an_agent_of_another_one_through_it() {
    let folder = tempfile::tempdir().unwrap();
    let behind = SabirOptions::new(SABIR, folder.path()).start();
    let program = ProgramFixture::new("");
    let url = format!("http://{}", behind.address);
    let workspace = program.workspace();
    let front = program
        .options(&format!(
            "[[agent]]\nid = \"front\"\nkind = \"acp\"\ncommand = [{SABIR:?}, \"acp\", \"--url\", {url:?}]\nworkspace = {workspace:?}\n"
        ))
        .start();
    let task = send(&front, message("tool read_file"));
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let texts = task["artifacts"].to_string();
    assert!(texts.contains("echo: tool read_file"), "{texts}");
    // The next task of the context is in the same session.
    let mut next = message("hello");
    next["message"]["contextId"] = task["contextId"].clone();
    assert_eq!(state(&send(&front, next)), "COMPLETED");
    wait_for("both in one context", || {
        let page = behind.rpc("ListTasks", json!({}));
        let tasks = page["result"]["tasks"].as_array().cloned().unwrap_or_default();
        tasks.len() == 2 && tasks[0]["contextId"] == tasks[1]["contextId"]
    });
}
