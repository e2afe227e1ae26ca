//! Questions of programs and their answers, in every dialect: a no is a no, and an answer belongs to one question.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::{Value, json};

use crate::SABIR;
use crate::program_fixture::ProgramFixture;
use crate::server_fixture::ServerFixture;

/// The setting with which programs ask the caller.
const ASK: &str = "approve = \"ask\"\n";

/// Lets a script continue that waits for this file.
fn touch(program: &ProgramFixture, name: &str) {
    fs::write(program.workspace().join(name), "").unwrap();
}

/// Shell functions that the scripts use.
const SHELL: &str = r#"until_file() { while [ ! -e "$1" ]; do sleep 0.02; done; }
done_with() { echo "{\"type\":\"result\",\"summary\":\"$1\"}"; }
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    V1,
    V03,
    V01,
    HttpJson,
    Gateway,
}

const DIALECTS: [Dialect; 5] = [Dialect::V1, Dialect::V03, Dialect::V01, Dialect::HttpJson, Dialect::Gateway];

/// One part of an answer, before it is spelled.
#[derive(Debug, Clone)]
enum Said {
    Text(&'static str),
    Data(Value),
}

impl Dialect {
    fn part(self, said: &Said) -> Value {
        match (self, said) {
            (Dialect::V1 | Dialect::HttpJson, Said::Text(text)) => json!({"text": text}),
            (Dialect::V1 | Dialect::HttpJson, Said::Data(data)) => json!({"data": data}),
            (Dialect::V03, Said::Text(text)) => json!({"kind": "text", "text": text}),
            (Dialect::V03, Said::Data(data)) => json!({"kind": "data", "data": data}),
            (Dialect::V01, Said::Text(text)) => json!({"type": "text", "text": text}),
            (Dialect::V01, Said::Data(data)) => json!({"type": "data", "data": data}),
            (Dialect::Gateway, _) => unreachable!("the gateway has decisions"),
        }
    }

    /// Sends an answer to a task. `Err`: how it was refused, the code or the status.
    fn answer(self, server: &SabirProcess, task: &str, said: &[Said]) -> Result<(), i64> {
        static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let id = format!("answer-{}", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let call = |path: &str, headers: &[(&str, &str)], body: Value| {
            server.http().exchange("POST", path, headers, body.to_string().as_bytes()).expect("it answers")
        };
        let rpc = |path: &str, method: &str, params: Value| {
            let body = json!({"jsonrpc": "2.0", "id": "r", "method": method, "params": params});
            let answer = call(path, &[], body).json();
            answer["error"]["code"].as_i64().map_or(Ok(()), Err)
        };
        if self == Dialect::Gateway {
            let decisions: Vec<&Value> = said
                .iter()
                .filter_map(|said| match said {
                    Said::Data(data) => Some(data),
                    Said::Text(_) => None,
                })
                .collect();
            let input = said.iter().find_map(|said| match said {
                Said::Text(text) => Some(*text),
                Said::Data(_) => None,
            });
            let mut body = json!({"taskId": task, "decisions": decisions});
            if let Some(input) = input {
                body["input"] = json!(input);
            }
            let status = call("/v1/a2a/agents/prog/message:send", &[], body).status;
            return if status == 202 { Ok(()) } else { Err(i64::from(status)) };
        }
        let parts: Vec<Value> = said.iter().map(|said| self.part(said)).collect();
        match self {
            Dialect::V1 => {
                let message = json!({"messageId": id, "role": "ROLE_USER", "taskId": task, "parts": parts});
                rpc("/a2a/v1", "SendMessage", json!({"message": message}))
            }
            Dialect::V03 => {
                let message =
                    json!({"kind": "message", "messageId": id, "role": "user", "taskId": task, "parts": parts});
                rpc("/a2a/v0.3", "message/send", json!({"message": message, "configuration": {"blocking": true}}))
            }
            Dialect::V01 => {
                rpc("/a2a/v0.1", "tasks/send", json!({"id": task, "message": {"role": "user", "parts": parts}}))
            }
            Dialect::HttpJson => {
                let message = json!({"messageId": id, "role": "ROLE_USER", "taskId": task, "parts": parts});
                let reply = call("/message:send", &[("A2A-Version", "1.0")], json!({"message": message}));
                if reply.status == 200 { Ok(()) } else { Err(i64::from(reply.status)) }
            }
            Dialect::Gateway => unreachable!("handled above"),
        }
    }

    /// How this dialect says that the named question is not open.
    fn closed(self) -> i64 {
        match self {
            Dialect::V1 | Dialect::V03 | Dialect::V01 => -32602,
            Dialect::HttpJson => 400,
            Dialect::Gateway => 409,
        }
    }

    /// A yes that names this question.
    fn yes_to(self, question: &str) -> Vec<Said> {
        let data = match self {
            Dialect::Gateway => json!({"target_id": question, "decision_id": "d", "action": "resume"}),
            _ => json!({"questionId": question, "approved": true}),
        };
        vec![Said::Data(data)]
    }
}

/// A task that waits for its answer, as 0.3 shows it.
fn waiting_task(server: &SabirProcess) -> Value {
    // The same message again would join the task before it, which is in flight for a moment after its end was told.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let id = format!("go-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let message =
        json!({"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": "go"}]});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}});
    let reply = server.http().exchange("POST", "/a2a/v0.3", &[], body.to_string().as_bytes()).unwrap();
    let task = reply.json()["result"].take();
    assert_eq!(task["status"]["state"], "input-required", "{task}");
    task
}

fn task(server: &SabirProcess, id: &str) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": id}});
    server.http().exchange("POST", "/a2a/v0.3", &[], body.to_string().as_bytes()).unwrap().json()["result"].take()
}

fn until(what: &str, server: &SabirProcess, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let task = task(server, id);
        if is_so(&task) {
            return task;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{what}: {task}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}

fn question(task: &Value) -> &Value {
    let parts = task["status"]["message"]["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().map(|part| &part["data"]).find(|data| data["kind"] == "question").unwrap_or(&Value::Null)
}

fn question_id(task: &Value) -> String {
    question(task)["questionId"].as_str().unwrap_or_else(|| panic!("no question in {task}")).to_owned()
}

/// What the script was answered in the end.
fn summary(server: &SabirProcess, id: &str) -> String {
    let done = until("the end", server, id, |task| state(task) == "completed");
    let artifacts = done["artifacts"].as_array().unwrap();
    let result = artifacts.iter().find(|artifact| artifact["name"] == "result").unwrap_or_else(|| panic!("{done}"));
    result["parts"][0]["data"]["summary"].as_str().unwrap().to_owned()
}

#[test]
fn a_no_in_any_dialect_reaches_the_program_as_no() {
    let program =
        ProgramFixture::new(&format!("{SHELL}echo 'Run rm -rf build? [Y/n]'\nread -r answer\ndone_with \"$answer\"\n"));
    let fixture = program.serve_apart("generic", ASK);
    let yes = || json!({"approved": true});
    let no = || json!({"approved": false});
    let resume = |result: Value| json!({"target_id": "fc_perm_1", "decision_id": "d1", "action": "resume", "result": result, "updated_at": 1});
    let cancel = || json!({"target_id": "fc_perm_1", "decision_id": "d1", "action": "cancel"});
    let a2a = [
        (vec![Said::Text("yes")], "y"),
        (vec![Said::Data(yes())], "y"),
        (vec![Said::Data(json!({"optionId": "yes"}))], "y"),
        (vec![Said::Text("no")], "n"),
        (vec![Said::Data(no())], "n"),
        (vec![Said::Text("no"), Said::Data(yes())], "n"),
        (vec![Said::Data(no()), Said::Text("yes")], "n"),
        (vec![Said::Data(yes()), Said::Data(json!({"deep": {"approved": false}}))], "n"),
        (vec![Said::Data(resume(no()))], "n"),
    ];
    let decisions = [
        (vec![Said::Data(resume(yes()))], "y"),
        (vec![Said::Data(resume(json!(true)))], "y"),
        // As it was reported: a refusal that was written as yes.
        (vec![Said::Data(resume(no()))], "n"),
        (vec![Said::Data(resume(json!(false)))], "n"),
        (vec![Said::Data(resume(json!("no")))], "n"),
        (vec![Said::Data(resume(json!({"decision": "reject"})))], "n"),
        (vec![Said::Data(cancel())], "n"),
        (vec![Said::Data(resume(yes())), Said::Data(cancel())], "n"),
        (vec![Said::Text("no"), Said::Data(resume(yes()))], "n"),
    ];
    for dialect in DIALECTS {
        let rows = if dialect == Dialect::Gateway { &decisions } else { &a2a };
        for (said, expected) in rows {
            let waiting = waiting_task(&fixture.server);
            let id = waiting["id"].as_str().unwrap();
            assert_eq!(dialect.answer(&fixture.server, id, said), Ok(()), "{dialect:?} {said:?}");
            assert_eq!(summary(&fixture.server, id), *expected, "{dialect:?} {said:?}");
        }
    }
}

#[test]
fn every_dialect_shows_the_same_question() {
    let program = ProgramFixture::new(&format!("{SHELL}echo 'Go on? [Y/n]'\nread -r answer\ndone_with \"$answer\"\n"));
    let fixture = program.serve_apart("generic", ASK);
    let waiting = waiting_task(&fixture.server);
    let id = waiting["id"].as_str().unwrap();
    let data = question(&waiting);
    assert_eq!((&data["type"], &data["question"]), (&json!("permission"), &json!("Go on? [Y/n]")), "{waiting}");
    let of_v1 = fixture.rpc("/a2a/v1", "GetTask", json!({"id": id}));
    assert_eq!(of_v1["result"]["status"]["message"]["parts"][1]["data"], *data, "{of_v1}");
    let of_v01 = fixture.rpc("/a2a/v0.1", "tasks/get", json!({"id": id}));
    assert_eq!(of_v01["result"]["status"]["message"]["parts"][1]["data"], *data, "{of_v01}");
    let of_http = fixture.ask("GET", &format!("/tasks/{id}"), &[("A2A-Version", "1.0")], &Value::Null).json();
    assert_eq!(of_http["status"]["message"]["parts"][1]["data"], *data, "{of_http}");
    let of_gateway = fixture.run("prog", id);
    let pending = json!([{"target_id": data["questionId"], "question": "Go on? [Y/n]"}]);
    assert_eq!(of_gateway["pending"], pending, "{of_gateway}");
    assert_eq!(Dialect::Gateway.answer(&fixture.server, id, &Dialect::Gateway.yes_to(&question_id(&waiting))), Ok(()));
    assert_eq!(summary(&fixture.server, id), "y");
    assert_eq!(fixture.run("prog", id).get("pending"), None);
}

/// Asks, goes on without the answer when it is told to, and asks again.
fn asks_twice() -> String {
    format!(
        "{SHELL}echo 'Delete the cache? [Y/n]'\nuntil_file go\necho 'no answer, going on'\nuntil_file again\n\
         echo 'Delete the production database? [Y/n]'\nread -r answer\nrm go again\ndone_with \"$answer\"\n"
    )
}

#[test]
fn a_question_that_the_program_gives_up_is_withdrawn_at_once() {
    let program = ProgramFixture::new(&asks_twice());
    let fixture = program.serve_apart("generic", ASK);
    for dialect in DIALECTS {
        let waiting = waiting_task(&fixture.server);
        let (id, first) = (waiting["id"].as_str().unwrap(), question_id(&waiting));
        touch(&program, "go");
        until("work again", &fixture.server, id, |task| state(task) == "working");
        // Between the questions: neither the name nor a lone yes is for anything.
        let late = dialect.answer(&fixture.server, id, &dialect.yes_to(&first));
        assert_eq!(late, Err(dialect.closed()), "{dialect:?}");
        if dialect != Dialect::Gateway {
            assert!(dialect.answer(&fixture.server, id, &[Said::Text("yes")]).is_err(), "{dialect:?}");
        }
        touch(&program, "again");
        let asked = until("the second question", &fixture.server, id, |task| state(task) == "input-required");
        let second = question_id(&asked);
        assert_ne!(first, second);
        let late = dialect.answer(&fixture.server, id, &dialect.yes_to(&first));
        assert_eq!(late, Err(dialect.closed()), "{dialect:?}");
        let still = task(&fixture.server, id);
        assert_eq!((state(&still), question_id(&still)), ("input-required", second), "{dialect:?}: {still}");
        assert_eq!(Dialect::V1.answer(&fixture.server, id, &[Said::Text("no")]), Ok(()));
        assert_eq!(summary(&fixture.server, id), "n", "{dialect:?}");
    }
}

/// Asks three hundred questions at once, and ends when enough of them are answered.
const CURIOUS: &str = r#"echo '{"type":"system","subtype":"init","session_id":"s1"}'
read -r prompt
count=0
while [ $count -lt 300 ]; do
    count=$((count+1))
    echo '{"type":"control_request","request_id":"r'$count'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"'$count'"}}}'
done
count=0
while [ $count -lt 199 ]; do read -r answer; echo "$answer" >> answers; count=$((count+1)); done
until_file go
echo '{"type":"result","subtype":"success","is_error":false,"result":"ok"}'
"#;

#[test]
fn a_program_that_asks_without_end_is_refused() {
    let program = ProgramFixture::new(&format!("{SHELL}{CURIOUS}"));
    let fixture = program.serve_apart("claude-code", ASK);
    let waiting = waiting_task(&fixture.server);
    let id = waiting["id"].as_str().unwrap();
    let answers = || fs::read_to_string(program.workspace().join("answers")).unwrap_or_default();
    until("the refusals", &fixture.server, id, |_| answers().lines().count() == 199);
    for (at, answer) in answers().lines().enumerate() {
        let expected = format!("\"request_id\":\"r{}\"", at + 102);
        assert!(answer.contains("too many questions wait already") && answer.contains(&expected), "{answer}");
    }
    assert_eq!(question_id(&task(&fixture.server, id)), question_id(&waiting), "the first is still open");
    touch(&program, "go");
    let done = until("the end", &fixture.server, id, |task| state(task) == "completed");
    assert!(!done.to_string().contains("Run \\\"2\\\"?"), "nobody is asked after the end: {done}");
}

#[test]
fn an_answer_that_names_the_question_of_another_task_is_refused() {
    let program = ProgramFixture::new(&format!("{SHELL}echo 'Go on? [Y/n]'\nread -r answer\ndone_with \"$answer\"\n"));
    let fixture = program.serve_apart("generic", ASK);
    let (other, task_here) = (waiting_task(&fixture.server), waiting_task(&fixture.server));
    let (id, foreign) = (task_here["id"].as_str().unwrap(), question_id(&other));
    for dialect in DIALECTS {
        for name in [&foreign, "q1-0000000000000000"] {
            let refused = dialect.answer(&fixture.server, id, &dialect.yes_to(name));
            assert_eq!(refused, Err(dialect.closed()), "{dialect:?} {name}");
        }
        for task in [&other, &task_here] {
            let still = self::task(&fixture.server, task["id"].as_str().unwrap());
            assert_eq!((state(&still), question_id(&still)), ("input-required", question_id(task)), "{dialect:?}");
        }
    }
    // A name beside the answer counts as well.
    let metadata = json!({"about": {"question": foreign}});
    let message = json!({"messageId": "m", "role": "ROLE_USER", "taskId": id, "parts": [{"text": "yes"}]});
    let mut of_message = json!({"message": message});
    of_message["message"]["metadata"] = metadata.clone();
    for params in [of_message, json!({"message": message, "metadata": metadata})] {
        let refused = fixture.rpc("/a2a/v1", "SendMessage", params);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert_eq!(Dialect::V1.answer(&fixture.server, id, &Dialect::V1.yes_to(&question_id(&task_here))), Ok(()));
    assert_eq!(summary(&fixture.server, id), "y");
}

/// Without line ends, as programs ask on a terminal.
#[test]
fn an_answer_that_comes_too_late_is_not_left_for_the_next_question() {
    let program =
        "printf 'One? [y/N] '\nuntil_file go\nprintf 'Two? [y/N] '\nread -r answer\nrm go\ndone_with \"$answer\"\n";
    let program = ProgramFixture::new(&format!("{SHELL}{program}"));
    let fixture = program.serve_apart("generic", ASK);
    let waiting = waiting_task(&fixture.server);
    let (id, first) = (waiting["id"].as_str().unwrap(), question_id(&waiting));
    touch(&program, "go");
    // Without a name, the answer is for whichever question is open; the program has gone on from the first.
    let second = until("the second question", &fixture.server, id, |task| {
        state(task) == "input-required" && question_id(task) != first
    });
    assert_eq!(question(&second)["question"], "Two? [y/N]", "{second}");
    assert_eq!(Dialect::V1.answer(&fixture.server, id, &Dialect::V1.yes_to(&first)), Err(-32602));
    assert_eq!(Dialect::V1.answer(&fixture.server, id, &[Said::Text("no")]), Ok(()));
    assert_eq!(summary(&fixture.server, id), "n");
}

#[test]
fn names_that_do_not_look_like_ids_count_as_none() {
    let program = ProgramFixture::new(&format!("{SHELL}echo 'Go on? [Y/n]'\nread -r answer\ndone_with \"$answer\"\n"));
    let fixture = program.serve_apart("generic", ASK);
    for name in ["fc_perm_1", "q1", "question-1", ""] {
        let waiting = waiting_task(&fixture.server);
        let id = waiting["id"].as_str().unwrap();
        let said = [Said::Data(json!({"questionId": name, "approved": true}))];
        assert_eq!(Dialect::V1.answer(&fixture.server, id, &said), Ok(()), "{name}");
        assert_eq!(summary(&fixture.server, id), "y", "{name}");
    }
}

#[test]
fn decisions_about_two_targets_are_two_decisions() {
    let program = ProgramFixture::new(&asks_twice());
    let fixture = program.serve_apart("generic", ASK);
    let waiting = waiting_task(&fixture.server);
    let (id, first) = (waiting["id"].as_str().unwrap(), question_id(&waiting));
    touch(&program, "go");
    touch(&program, "again");
    let asked = until("the second question", &fixture.server, id, |task| {
        state(task) == "input-required" && question_id(task) != first
    });
    let second = question_id(&asked);
    let decision = |target: &str, action: &str| json!({"target_id": target, "decision_id": target, "action": action});
    let closed = fixture.submit("prog", json!({"taskId": id, "decisions": [decision(&first, "resume")]}));
    assert_eq!(closed.status, 409, "{}", closed.text());
    let both = json!([decision(&first, "cancel"), decision(&second, "resume"), decision("fc_perm_1", "cancel")]);
    let body = json!({"taskId": id, "decisions": both});
    let reply = fixture.submit("prog", body.clone());
    assert_eq!(reply.status, 202, "{}", reply.text());
    let told = reply.json();
    assert_eq!(told["status"], "decision_forwarded");
    let results: Vec<(&Value, &Value)> =
        told["decisions"].as_array().unwrap().iter().map(|one| (&one["target_id"], &one["status"])).collect();
    let expected = [
        (&json!(first), &json!("refused")),
        (&json!(second), &json!("decision_forwarded")),
        (&json!("fc_perm_1"), &json!("refused")),
    ];
    assert_eq!(results, expected, "{told}");
    assert!(told["decisions"][0]["error"].as_str().unwrap().starts_with("conflict: "), "{told}");
    assert_eq!(summary(&fixture.server, id), "y", "only the decision about the open question counts");
    assert_eq!(fixture.submit("prog", body).status, 202, "the same decisions again are the same");
}

#[test]
fn decisions_about_unknown_targets_are_one_answer_in_which_a_no_wins() {
    let program = ProgramFixture::new(&format!("{SHELL}echo 'Go on? [Y/n]'\nread -r answer\ndone_with \"$answer\"\n"));
    let fixture = program.serve_apart("generic", ASK);
    for (actions, expected) in [(["resume", "resume"], "y"), (["resume", "cancel"], "n"), (["cancel", "resume"], "n")] {
        let waiting = waiting_task(&fixture.server);
        let id = waiting["id"].as_str().unwrap();
        let decision = |at: usize| json!({"target_id": format!("fc_{at}"), "action": actions[at]});
        let reply = fixture.submit("prog", json!({"taskId": id, "decisions": [decision(0), decision(1)]}));
        assert_eq!(reply.status, 202, "{}", reply.text());
        assert_eq!(summary(&fixture.server, id), expected, "{actions:?}");
    }
}

/// Like Claude Code: takes its first question back, asks another, and asks that one again when its turn is resumed.
const CLAUDE: &str = r#"echo '{"type":"system","subtype":"init","session_id":"s1"}'
ask() { echo "{\"type\":\"control_request\",\"request_id\":\"$1\",\"request\":{\"subtype\":\"can_use_tool\",\"tool_name\":\"$1\",\"input\":{}}}"; }
case "$*" in *--resume*)
    ask two
    read -r answer
    echo '{"type":"result","subtype":"success","is_error":false,"result":"resumed"}'
    exit ;;
esac
read -r prompt
ask one
until_file go
echo '{"type":"control_cancel_request","request_id":"one"}'
until_file again
ask two
read -r answer
"#;

#[test]
fn an_answer_to_an_earlier_question_is_refused_after_a_crash_too() {
    let program = ProgramFixture::new(&format!("{SHELL}{CLAUDE}"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), program.agent("prog", "claude-code", ASK)).unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let waiting = waiting_task(&server);
    let (id, first) = (waiting["id"].as_str().unwrap(), question_id(&waiting));
    touch(&program, "go");
    until("work again", &server, id, |task| state(task) == "working");
    touch(&program, "again");
    let asked = until("the second question", &server, id, |task| state(task) == "input-required");
    let second = question_id(&asked);
    server.kill();

    let server = SabirOptions::new(SABIR, folder.path()).start();
    for dialect in DIALECTS {
        assert_eq!(dialect.answer(&server, id, &dialect.yes_to(&first)), Err(dialect.closed()), "{dialect:?}");
        let still = task(&server, id);
        assert_eq!((state(&still), question_id(&still)), ("input-required", second.clone()), "{dialect:?}");
    }
    assert_eq!(Dialect::V1.answer(&server, id, &Dialect::V1.yes_to(&second)), Ok(()));
    until("the end", &server, id, |task| state(task) == "completed");
    server.kill();
}

/// Its questions are words alone, as its page says; the ids are shown by the gateway and count in every dialect.
#[test]
fn the_demo_agents_questions_have_ids_too() {
    let fixture = ServerFixture::with_agents(&["prog"]);
    let first = fixture.send("ask Which day?");
    let id = first["id"].as_str().unwrap();
    assert_eq!(first["status"]["message"]["parts"], json!([{"kind": "text", "text": "Which day?"}]));
    let target = || {
        let pending = fixture.run("prog", id)["pending"].take();
        assert_eq!(pending.as_array().map(Vec::len), Some(1), "{pending}");
        (pending[0]["target_id"].as_str().unwrap().to_owned(), pending[0]["question"].clone())
    };
    let answer = |question: &str, words: &'static str| [Said::Text(words), Said::Data(json!({"questionId": question}))];
    let (first, words) = target();
    assert_eq!(words, "Which day?");
    // The answer asks the next question.
    assert_eq!(Dialect::V03.answer(&fixture.server, id, &answer(&first, "ask And the hour?")), Ok(()));
    let (second, words) = target();
    assert_eq!(words, "And the hour?");
    for dialect in DIALECTS {
        assert_eq!(dialect.answer(&fixture.server, id, &dialect.yes_to(&first)), Err(dialect.closed()), "{dialect:?}");
        assert_eq!(target().0, second);
    }
    assert_eq!(Dialect::V03.answer(&fixture.server, id, &answer(&second, "nine")), Ok(()));
    assert_eq!(state(&task(&fixture.server, id)), "completed");
}
