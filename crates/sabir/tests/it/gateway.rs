//! The gateway, beyond what was promised of it: who may see what, what is refused and how, and the same tasks elsewhere.

use sabir_testkit::http::HttpReply;
use serde_json::{Value, json};

use crate::server_fixture::{ServerFixture, v1_message, v03_message};

const AGENTS: &str = "/v1/a2a/agents";
const SEND: &str = "/v1/a2a/agents/alpha/message:send";

/// Short words for the gateway.
impl ServerFixture {
    /// What a submission is answered with.
    pub fn submit(&self, agent: &str, body: Value) -> HttpReply {
        self.post(&format!("{AGENTS}/{agent}/message:send"), body)
    }

    /// The task of a submission.
    pub fn submitted(&self, agent: &str, body: Value) -> String {
        let reply = self.submit(agent, body);
        assert_eq!(reply.status, 202, "{}", reply.text());
        reply.json()["taskId"].as_str().expect("a submission has a task").to_owned()
    }

    /// A task as the gateway shows it.
    pub fn run(&self, agent: &str, task: &str) -> Value {
        let reply = self.get(&format!("{AGENTS}/{agent}/tasks/{task}"));
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// The same, as soon as it stands like this.
    pub fn run_when(&self, agent: &str, task: &str, status: &str) -> Value {
        let is_so = |_: &_| Some(self.run(agent, task)).filter(|run| run["status"] == status);
        self.server.until(status, is_so)
    }

    /// What becomes of a submission.
    pub fn finished(&self, agent: &str, body: Value) -> Value {
        self.run_when(agent, &self.submitted(agent, body), "done")
    }

    pub fn cancel_run(&self, agent: &str, task: &str) -> HttpReply {
        self.post(&format!("{AGENTS}/{agent}/tasks/{task}:cancel"), Value::Null)
    }
}

/// The text of an error, which is all that there is in it.
pub fn error_text(reply: &HttpReply) -> String {
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let body = reply.json();
    assert_eq!(body.as_object().map(|members| members.len()), Some(1), "{body}");
    body["error"].as_str().unwrap_or_else(|| panic!("no text: {body}")).to_owned()
}

fn contents(history: &Value) -> Vec<&str> {
    history.as_array().unwrap().iter().map(|line| line["content"].as_str().unwrap()).collect()
}

#[test]
fn a_task_is_reached_by_the_path_of_its_agent_alone() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let task = fixture.submitted("alpha", json!({"input": "ask May I?"}));
    let before = fixture.run_when("alpha", &task, "waiting");
    let decision = json!({"target_id": "t", "decision_id": "d", "action": "resume"});
    for reply in [
        fixture.get(&format!("{AGENTS}/beta/tasks/{task}")),
        fixture.cancel_run("beta", &task),
        fixture.submit("beta", json!({"taskId": task, "input": "yes"})),
        fixture.submit("beta", json!({"taskId": task, "decisions": [decision]})),
    ] {
        assert_eq!((reply.status, error_text(&reply)), (404, format!("run not found: {task}")));
    }
    assert_eq!(fixture.run("alpha", &task), before);
}

#[test]
fn contradicting_spellings_of_one_field_are_refused() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    for (body, status) in [
        (json!({"contextId": "a", "context_id": "b", "input": "x"}), 400),
        (json!({"taskId": "a", "task_id": "b", "input": "x"}), 400),
        (json!({"contextId": "a", "context_id": "a", "input": "x"}), 202),
        (json!({"contextId": " a ", "context_id": "a", "taskId": " ", "input": "x"}), 202),
        (json!({"contextId": "", "context_id": "a", "input": "x"}), 202),
    ] {
        let reply = fixture.submit("alpha", body.clone());
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
        if status == 202 {
            assert_eq!(reply.json()["contextId"], "a", "{body}");
        } else {
            assert!(error_text(&reply).contains("given twice, with different values"), "{}", reply.text());
        }
    }
    let done = fixture.finished("alpha", json!({"contextId": "c1", "input": "x"}));
    let reply = fixture.submit("alpha", json!({"taskId": done["taskId"], "contextId": "c2", "input": "x"}));
    assert_eq!(reply.status, 400, "a task is in one context");
    assert!(error_text(&reply).contains("contextId does not match the task"), "{}", reply.text());
}

#[test]
fn unreadable_submissions_are_refused_and_make_no_task() {
    let toml = "[server]\nbody_limit = 2000\n[[agent]]\nid = \"alpha\"\nkind = \"demo\"\n";
    let fixture = ServerFixture::configured(toml);
    let large = json!({"input": "x".repeat(3000)}).to_string();
    let deep = format!(r#"{{"input":"x","decisions":[{}{}]}}"#, "[".repeat(200), "]".repeat(200));
    for (body, headers, status, why) in [
        ("{not json", &[][..], 400, "bad request: the body is not JSON"),
        ("", &[], 400, "bad request: the body is not JSON"),
        ("[]", &[], 400, "bad request: the body must be a JSON object"),
        ("\"hello\"", &[], 400, "bad request: the body must be a JSON object"),
        (r#"{"input":5}"#, &[], 400, "bad request: input expected a string, found a number"),
        (r#"{"message":"hello"}"#, &[], 400, "bad request: message expected an object, found a string"),
        (r#"{"message":{"role":"user"}}"#, &[], 400, "bad request: message.content is required"),
        (
            r#"{"message":{"content":["x"]}}"#,
            &[],
            400,
            "bad request: message.content expected a string, found an array",
        ),
        (r#"{"contextId":7,"input":"x"}"#, &[], 400, "bad request: contextId expected a string, found a number"),
        (r#"{"input":"x","input":"y"}"#, &[], 400, "bad request: input is given twice"),
        (r#"{"taskId":"t","decisions":{}}"#, &[], 400, "bad request: decisions expected an array, found an object"),
        (
            r#"{"taskId":"t","decisions":[{"action":"resume"}]}"#,
            &[],
            400,
            "bad request: decisions[0].target_id is required",
        ),
        (&deep, &[], 400, "bad request: nested deeper than 128 levels"),
        (&large, &[], 413, "bad request: "),
        (
            r#"{"input":"x"}"#,
            &[("Content-Type", "text/plain")],
            415,
            "bad request: send application/json, not text/plain",
        ),
        (r#"{"input":"x"}"#, &[("Content-Encoding", "gzip")], 415, "bad request: "),
        (r#"{"input":"x"}"#, &[("A2A-Version", "1.0")], 400, "bad request: the gateway is no version of A2A"),
        (r#"{"input":"x"}"#, &[("Origin", "https://app.example")], 403, "forbidden: "),
    ] {
        let reply = fixture.server.http().exchange("POST", SEND, headers, body.as_bytes()).unwrap();
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
        assert!(error_text(&reply).starts_with(why), "{body}: {}", reply.text());
    }
    let tasks = fixture.server.rpc("ListTasks", json!({}));
    assert_eq!(tasks["result"]["totalSize"], 0, "{tasks}");
}

#[test]
fn a_task_of_the_gateway_is_known_in_every_dialect() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let task = fixture.submitted("beta", json!({"contextId": "c1", "input": "ask May I?"}));
    fixture.run_when("beta", &task, "waiting");
    let read = fixture.rpc("/a2a/jsonrpc", "tasks/get", json!({"id": task}));
    assert_eq!((&read["result"]["kind"], &read["result"]["contextId"]), (&json!("task"), &json!("c1")), "{read}");
    assert_eq!(read["result"]["status"]["state"], "input-required");
    assert_eq!(read["result"]["history"][0]["parts"], json!([{"kind": "text", "text": "ask May I?"}]));
    let read = fixture.rpc("/agents/beta/a2a", "GetTask", json!({"id": task}));
    assert_eq!(read["result"]["id"], task, "{read}");
    let read = fixture.server.rpc("GetTask", json!({"id": task}));
    assert_eq!(read["result"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{read}");
    assert_eq!(read["result"]["status"]["message"]["parts"][0]["text"], "May I?");

    let mut answer = v03_message("You may");
    answer["message"]["taskId"] = json!(task);
    let answered = fixture.rpc("/a2a/jsonrpc", "message/send", answer);
    assert_eq!(answered["result"]["status"]["state"], "completed", "{answered}");
    let run = fixture.run("beta", &task);
    assert_eq!((&run["status"], &run["message"]["content"]), (&json!("done"), &json!("echo: You may")));
    assert_eq!(contents(&run["history"]), ["ask May I?", "May I?", "You may", "echo: You may"]);
}

#[test]
fn a_task_of_any_dialect_is_known_to_the_gateway() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let old = fixture.rpc("/agents/beta/a2a", "message/send", v03_message("hello"))["result"].take();
    let run = fixture.run("beta", old["id"].as_str().unwrap());
    assert_eq!((&run["status"], &run["contextId"]), (&json!("done"), &old["contextId"]));
    assert_eq!((&run["origin"], &run["message"]["content"]), (&json!("a2a"), &json!("echo: hello")));

    let new = fixture.server.rpc("SendMessage", v1_message("ask May I?"))["result"]["task"].take();
    let task = new["id"].as_str().unwrap();
    assert_eq!(fixture.run("alpha", task)["status"], "waiting");
    let decision = json!({"target_id": "t", "decision_id": "d", "action": "cancel"});
    assert_eq!(fixture.submit("alpha", json!({"taskId": task, "decisions": [decision]})).status, 202);
    let run = fixture.run_when("alpha", task, "done");
    assert_eq!(contents(&run["history"])[..3], ["ask May I?", "May I?", "no"]);

    let new = fixture.server.rpc("SendMessage", v1_message("ask And now?"))["result"]["task"].take();
    let task = new["id"].as_str().unwrap();
    assert_eq!(fixture.cancel_run("alpha", task).status, 202);
    let read = fixture.server.rpc("GetTask", json!({"id": task}));
    assert_eq!(read["result"]["status"]["state"], "TASK_STATE_CANCELED");
}

#[test]
fn a_direct_reply_becomes_a_task_that_is_done() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let run = fixture.finished("alpha", json!({"input": "message hi"}));
    assert_eq!(run["message"], json!({"role": "assistant", "content": "hi"}));
    let read = fixture.rpc("/a2a", "tasks/get", json!({"id": run["taskId"]}));
    assert_eq!(read["result"]["status"]["state"], "completed", "{read}");
    assert_eq!(read["result"]["status"]["message"]["parts"][0]["text"], "hi");
}

#[test]
fn the_history_is_the_conversation_up_to_the_task() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let say = |agent: &str, words: &str| fixture.finished(agent, json!({"contextId": "c1", "input": words}));
    let one = say("alpha", "one");
    say("beta", "elsewhere");
    let two = say("alpha", "two");
    let ask = fixture.submitted("alpha", json!({"contextId": "c1", "input": "ask three?"}));
    fixture.run_when("alpha", &ask, "waiting");
    assert_eq!(contents(&one["history"]), ["one", "echo: one"]);
    assert_eq!(contents(&two["history"]), ["one", "echo: one", "two", "echo: two"]);
    assert_eq!(contents(&fixture.run("alpha", &ask)["history"])[4..], ["ask three?", "three?"]);
    let again = fixture.run("alpha", one["taskId"].as_str().unwrap());
    assert_eq!(again, one, "what came later is no part of it");
    assert_eq!(
        (&two["message"]["content"], &two["artifacts"]),
        (&json!("echo: two"), &json!([{"content": "echo: two"}]))
    );
}

#[test]
fn a_context_is_worked_on_in_order_and_a_question_does_not_hold_it() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let in_context = |words: &str| fixture.submitted("alpha", json!({"contextId": "c1", "input": words}));
    let ask = in_context("ask May I?");
    fixture.run_when("alpha", &ask, "waiting");
    let slow = in_context("slow 60");
    assert_ne!(slow, ask, "a context alone is no answer");
    fixture.run_when("alpha", &slow, "running");
    let next = in_context("history");
    let later = in_context("later");
    assert_eq!(fixture.run("alpha", &next)["status"], "queued");
    assert_eq!(contents(&fixture.run("alpha", &next)["history"]), ["ask May I?", "May I?", "slow 60", "history"]);
    fixture.cancel_run("alpha", &slow);
    let run = fixture.run_when("alpha", &next, "done");
    // What the agent is told of the context: the tasks before this one, and not the one that is queued behind it.
    assert_eq!(run["message"]["content"], "ask May I?\nslow 60");
    fixture.run_when("alpha", &later, "done");
    assert_eq!(fixture.run("alpha", &ask)["status"], "waiting");
}

#[test]
fn a_message_to_a_waiting_task_is_the_answer() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let task = fixture.submitted("alpha", json!({"input": "ask Which day?"}));
    fixture.run_when("alpha", &task, "waiting");
    let reply = fixture.submit("alpha", json!({"taskId": task, "input": "Monday"}));
    assert_eq!((reply.status, &reply.json()["taskId"]), (202, &json!(task)));
    assert_eq!(reply.json()["status"], "submitted");
    let run = fixture.run_when("alpha", &task, "done");
    assert_eq!(contents(&run["history"]), ["ask Which day?", "Which day?", "Monday", "echo: Monday"]);
}

#[test]
fn a_question_is_shown_also_where_there_is_an_answer_already() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let task = fixture.submitted("alpha", json!({"input": "slow 1 hello"}));
    assert_eq!(fixture.submitted("alpha", json!({"taskId": task, "input": "ask Is that all?"})), task);
    let run = fixture.run_when("alpha", &task, "waiting");
    assert_eq!(run["message"], json!({"role": "assistant", "content": "Is that all?"}));
    assert_eq!(run["artifacts"], json!([{"content": "Is that all?"}]));
    assert_eq!(contents(&run["history"])[2..], ["echo: slow 1 hello", "Is that all?"]);
}

#[test]
fn a_submission_with_a_key_is_made_once() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let send = |agent: &str, words: &str| {
        let path = format!("{AGENTS}/{agent}/message:send");
        let reply = fixture.ask("POST", &path, &[("Idempotency-Key", "k1")], &json!({"input": words}));
        assert_eq!(reply.status, 202, "{}", reply.text());
        reply.json()
    };
    let first = send("alpha", "one");
    assert_eq!(send("alpha", "two"), first);
    assert_ne!(send("beta", "three")["taskId"], first["taskId"], "every agent has keys of its own");
    assert_eq!(fixture.server.rpc("ListTasks", json!({}))["result"]["totalSize"], 2);
}

#[test]
fn a_full_queue_is_refused_with_retry_after() {
    let fixture =
        ServerFixture::configured("[[agent]]\nid = \"alpha\"\nkind = \"demo\"\nmax_concurrent = 1\nqueue = 1\n");
    let running = fixture.submitted("alpha", json!({"input": "slow 60"}));
    fixture.run_when("alpha", &running, "running");
    fixture.submitted("alpha", json!({"input": "slow 60"}));
    let reply = fixture.submit("alpha", json!({"input": "one too many"}));
    assert_eq!(reply.status, 503);
    assert!(error_text(&reply).starts_with("unavailable: "), "{}", reply.text());
    assert!(reply.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()));
}

#[test]
fn head_works_and_other_verbs_get_the_allowed_ones() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let task = fixture.finished("alpha", json!({"input": "hello"}))["taskId"].as_str().unwrap().to_owned();
    for path in [String::new(), "/alpha/agent-card".to_owned(), format!("/alpha/tasks/{task}")] {
        let path = format!("{AGENTS}{path}");
        let (got, head) = (fixture.get(&path), fixture.ask("HEAD", &path, &[], &Value::Null));
        assert_eq!((got.status, head.status), (200, 200), "{path}");
        for name in ["content-type", "content-length", "etag"] {
            assert_eq!(head.header(name), got.header(name), "{name} of {path}");
        }
        for verb in ["PUT", "DELETE", "PATCH"] {
            let reply = fixture.ask(verb, &path, &[], &Value::Null);
            assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")), "{verb} {path}");
            error_text(&reply);
        }
    }
    for (verb, path) in
        [("GET", SEND.to_owned()), ("PUT", SEND.to_owned()), ("DELETE", format!("{AGENTS}/alpha/tasks/{task}:cancel"))]
    {
        let reply = fixture.ask(verb, &path, &[], &Value::Null);
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{verb} {path}");
        error_text(&reply);
    }
    assert_eq!(fixture.ask("HEAD", &format!("{AGENTS}/alpha/tasks/ghost"), &[], &Value::Null).status, 404);
}

#[test]
fn the_list_and_the_cards_of_agents_are_cached_by_tag() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let mut tags = Vec::new();
    for path in ["", "/alpha/agent-card", "/beta/agent-card"] {
        let path = format!("{AGENTS}{path}");
        let reply = fixture.get(&path);
        assert_eq!(reply.header("cache-control"), Some("public, max-age=30, must-revalidate"));
        let tag = reply.header("etag").unwrap().to_owned();
        for (asked, status) in
            [(tag.as_str(), 304), ("*", 304), (&format!("\"other\", {tag}"), 304), ("\"other\"", 200)]
        {
            let reply = fixture.ask("GET", &path, &[("If-None-Match", asked)], &Value::Null);
            assert_eq!((reply.status, reply.body.is_empty()), (status, status == 304), "{path} {asked}");
            assert_eq!(reply.header("etag"), Some(tag.as_str()));
        }
        tags.push(tag);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "what differs has another tag");
}
