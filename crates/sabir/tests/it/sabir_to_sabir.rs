//! A front before another Sabir, in every version and binding: callers get what the demo agent gives to its own callers.

use serde_json::{Value, json};

use crate::server_fixture::{ServerFixture, v1_message};

/// Version, transport, and the id of the agent that speaks so to the other server.
const SPOKEN: [(&str, &str, &str); 8] = [
    ("1.0", "jsonrpc", "v1-rpc"),
    ("1.0", "http+json", "v1-rest"),
    ("1.0", "grpc", "v1-grpc"),
    ("0.3", "jsonrpc", "v03-rpc"),
    ("0.3", "http+json", "v03-rest"),
    ("0.3", "grpc", "v03-grpc"),
    ("0.2", "jsonrpc", "v02-rpc"),
    ("0.1", "jsonrpc", "v01-rpc"),
];

struct Pair {
    demo: ServerFixture,
    front: ServerFixture,
}

impl Pair {
    fn start() -> Self {
        let demo = ServerFixture::new();
        let url = format!("http://{}", demo.server.address);
        let agents = SPOKEN.map(|(version, transport, id)| {
            format!(
                "[[agent]]\nid = \"{id}\"\nkind = \"a2a\"\nurl = \"{url}\"\na2a_version = \"{version}\"\n\
                 transports = [\"{transport}\"]\n"
            )
        });
        let front = ServerFixture::configured(&agents.concat());
        Self { demo, front }
    }

    fn send(&self, id: &str, body: Value) -> Value {
        let reply = self.front.ask("POST", &format!("/agents/{id}/message:send"), &[("A2A-Version", "1.0")], &body);
        assert_eq!(reply.status, 200, "{id}: {}", reply.text());
        reply.json()["task"].take()
    }
}

/// What matters of a task: its state, what was said of it, and what it made.
fn outcome(task: &Value) -> Value {
    let parts = |list: &Value| -> Value {
        let Some(list) = list.as_array() else { return Value::Null };
        let kept = list.iter().filter(|part| part["data"]["questionId"].is_null()).map(|part| {
            let mut part = part.clone();
            part.as_object_mut().unwrap().remove("metadata");
            part
        });
        kept.collect()
    };
    let artifacts: Vec<Value> = task["artifacts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|artifact| json!([artifact["name"], parts(&artifact["parts"])]))
        .collect();
    json!([task["status"]["state"], parts(&task["status"]["message"]["parts"]), artifacts])
}

#[test]
fn callers_of_a_front_get_what_callers_of_the_agent_get() {
    let pair = Pair::start();
    for text in ["hello", "stream 4 5", "fail no luck", "ask which?", "file", "url", "data", "tool hammer"] {
        let direct = pair.demo.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &v1_message(text));
        let direct = outcome(&direct.json()["task"]);
        for (_, _, id) in SPOKEN {
            assert_eq!(outcome(&pair.send(id, v1_message(text))), direct, "{id}: {text}");
        }
    }
}

/// 0.1 has no name for a rejection and for missing credentials; a reply without a task becomes one.
#[test]
fn what_a_version_has_no_words_for_comes_as_the_nearest() {
    let pair = Pair::start();
    for (_, _, id) in SPOKEN {
        let is_0_1 = id == "v01-rpc";
        for (text, state, old_state) in [
            ("reject not mine", "TASK_STATE_REJECTED", "TASK_STATE_FAILED"),
            ("auth who?", "TASK_STATE_AUTH_REQUIRED", "TASK_STATE_INPUT_REQUIRED"),
            ("message hi", "TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED"),
        ] {
            let task = pair.send(id, v1_message(text));
            assert_eq!(task["status"]["state"], if is_0_1 { old_state } else { state }, "{id}: {text}: {task}");
        }
    }
}

#[test]
fn an_answer_continues_the_task_and_a_context_stays_one() {
    let pair = Pair::start();
    for (_, _, id) in SPOKEN {
        let asked = pair.send(id, v1_message("ask which?"));
        let answer = json!({"message": {"messageId": "answer", "role": "ROLE_USER", "taskId": asked["id"],
            "contextId": asked["contextId"], "parts": [{"text": "blue"}]}});
        let answered = pair.send(id, answer);
        assert_eq!(answered["id"], asked["id"], "{id}");
        assert_eq!(answered["artifacts"][0]["parts"][0]["text"], "echo: blue", "{id}: {answered}");
        // The remote agent sees one conversation.
        let next = json!({"message": {"messageId": "next", "role": "ROLE_USER", "contextId": asked["contextId"],
            "parts": [{"text": "history"}]}});
        let told = pair.send(id, next)["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
        assert!(told.contains("blue"), "{id}: {told}");
    }
}

#[test]
fn a_cancel_reaches_the_task_of_the_other_server() {
    let pair = Pair::start();
    for (_, _, id) in SPOKEN {
        let path = format!("/agents/{id}/message:send");
        let mut body = v1_message("slow 30");
        body["configuration"] = json!({"returnImmediately": true});
        let task = pair.front.ask("POST", &path, &[("A2A-Version", "1.0")], &body).json()["task"].take();
        let running = wait_for(&pair.demo, "TASK_STATE_WORKING");
        let cancel = format!("/agents/{id}/tasks/{}:cancel", task["id"].as_str().unwrap());
        let reply = pair.front.ask("POST", &cancel, &[("A2A-Version", "1.0")], &json!({}));
        assert_eq!(reply.json()["status"]["state"], "TASK_STATE_CANCELED", "{id}: {}", reply.text());
        let there = pair.demo.ask("GET", &format!("/tasks/{running}"), &[("A2A-Version", "1.0")], &Value::Null).json();
        assert_eq!(there["status"]["state"], "TASK_STATE_CANCELED", "{id}");
    }
}

/// The id of the one task that is in this state.
fn wait_for(server: &ServerFixture, state: &str) -> String {
    for _ in 0..500 {
        let page = server.ask("GET", &format!("/tasks?status={state}"), &[("A2A-Version", "1.0")], &Value::Null).json();
        if let Some(task) = page["tasks"].as_array().and_then(|tasks| tasks.first()) {
            return task["id"].as_str().unwrap().to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("no task is {state}");
}
