//! What an honest remote agent does, the same in all protocols.

use std::time::Duration;

use sabir_testkit::http::Http;
use sabir_testkit::remote::{Operation, RemoteAgent, RemoteProtocol, RemoteState};
use serde_json::json;

use crate::calls::{Caller, LIMIT, code, content, digest, task_id};

/// What a blocking send and a stream of each word show. 0.1 has no direct messages.
const WORDS: &[(&str, &str, &[&str])] = &[
    (
        "hi there",
        "task completed echo: hi there",
        &["task submitted", "status working", "artifact echo: hi there", "status completed"],
    ),
    (
        "stream 2 0",
        "task completed chunk 1 chunk 2",
        &["task submitted", "status working", "artifact chunk 1", "artifact chunk 2", "status completed"],
    ),
    ("slow 0.01 fail badly", "task failed badly", &["task submitted", "status working", "status failed badly"]),
    ("ask why?", "task input-required why?", &["task submitted", "status working", "status input-required why?"]),
    ("file", "task completed (file)", &["task submitted", "status working", "artifact (file)", "status completed"]),
    ("data", "task completed (data)", &["task submitted", "status working", "artifact (data)", "status completed"]),
    ("message hello", "message hello", &["message hello"]),
];

#[test]
fn every_word_is_understood_in_every_protocol() {
    for protocol in RemoteProtocol::ALL {
        let agent = RemoteAgent::start(protocol);
        let caller = Caller::of(&agent, protocol);
        for (number, (text, answer, frames)) in WORDS.iter().enumerate() {
            let in_v01 = protocol == RemoteProtocol::V01JsonRpc;
            if in_v01 && text.starts_with("message") {
                continue;
            }
            // In 0.1 the client makes the ids.
            let ids = [format!("send-{number}"), format!("stream-{number}")];
            let params = |id: &str| caller.message_to(text, in_v01.then_some(id));
            let sent = caller.result(Operation::Send, &params(&ids[0]));
            assert_eq!(digest(&sent), *answer, "{protocol:?} {text}");
            let shown = caller.frames(Operation::Stream, &params(&ids[1]));
            // 0.1 has no frames that are tasks; a status stands for them.
            let expected: Vec<String> = frames
                .iter()
                .map(|frame| if in_v01 { frame.replace("task ", "status ") } else { (*frame).to_owned() })
                .collect();
            assert_eq!(shown, expected, "{protocol:?} {text}");
        }
    }
}

#[test]
fn tasks_are_continued_read_canceled_and_subscribed_to() {
    for protocol in RemoteProtocol::ALL {
        let agent = RemoteAgent::start(protocol);
        let caller = Caller::of(&agent, protocol);
        let asked = caller.begin("ask why?");
        let answered = caller.result(Operation::Send, &caller.message_to("because", Some(&asked)));
        assert_eq!(digest(&answered), "task completed echo: because", "{protocol:?}");
        assert_eq!(agent.task(&asked).unwrap().history.len(), 3, "{protocol:?}: two messages and the question");

        let read = caller.result(Operation::Get, &json!({"id": asked, "historyLength": 1}));
        assert_eq!(digest(&read), "task completed echo: because", "{protocol:?}");
        assert_eq!(read["history"].as_array().map(Vec::len), Some(1), "{protocol:?}");

        let held = caller.message_to("hold", (protocol == RemoteProtocol::V01JsonRpc).then_some("held"));
        let mut events = caller.stream(Operation::Stream, &held);
        let first = events.next_frame().unwrap().unwrap().payload();
        let id = task_id(&first).unwrap_or_else(|| "held".to_owned());
        let mut watching = caller.stream(Operation::Subscribe, &json!({ "id": id }));
        watching.next_frame().unwrap().expect("the task as it is");
        let canceled = caller.result(Operation::Cancel, &json!({ "id": id }));
        assert_eq!(digest(&canceled), "task canceled", "{protocol:?}");
        for stream in [&mut events, &mut watching] {
            let last = stream.rest().unwrap().pop().unwrap().payload();
            assert_eq!(digest(&last), "status canceled", "{protocol:?}");
        }
        assert_eq!(agent.task(&id).unwrap().state, RemoteState::Canceled);
    }
}

#[test]
fn refusals_have_the_codes_of_the_protocol() {
    use RemoteProtocol::*;
    // Unknown task, canceled after its end, continued after its end, and without parts: JSON-RPC codes or HTTP statuses.
    for (protocol, expected) in [
        (V1JsonRpc, [-32001, -32002, -32004, -32602]),
        (V1HttpJson, [404, 400, 400, 400]),
        (V03JsonRpc, [-32001, -32002, -32004, -32602]),
        (V03HttpJson, [404, 409, 400, 400]),
        (V02JsonRpc, [-32001, -32002, -32004, -32602]),
        (V01JsonRpc, [-32001, -32002, -32004, -32602]),
    ] {
        let agent = RemoteAgent::start(protocol);
        let caller = Caller::of(&agent, protocol);
        let done = caller.begin("hi");
        let mut empty = caller.message("hi");
        for name in ["parts", "content"] {
            empty["message"][name] = json!([]);
        }
        let codes = [
            code(&caller.call(Operation::Get, &json!({"id": "nothing"}))),
            code(&caller.call(Operation::Cancel, &json!({ "id": done }))),
            code(&caller.call(Operation::Send, &caller.message_to("again", Some(&done)))),
            code(&caller.call(Operation::Send, &empty)),
        ];
        assert_eq!(codes, expected, "{protocol:?}");
    }
}

#[test]
fn a_send_that_does_not_wait_is_answered_before_the_work_is_done() {
    for protocol in [
        RemoteProtocol::V1JsonRpc,
        RemoteProtocol::V1HttpJson,
        RemoteProtocol::V03JsonRpc,
        RemoteProtocol::V03HttpJson,
        RemoteProtocol::V02JsonRpc,
    ] {
        let agent = RemoteAgent::start(protocol);
        let caller = Caller::of(&agent, protocol);
        let sent = caller.result(Operation::Send, &caller.message_without_waiting("hold later"));
        assert_eq!(digest(&sent), "task submitted", "{protocol:?}");
        let id = task_id(&sent).unwrap();
        agent.release(&id);
        assert!(agent.wait_for_task(&id, LIMIT, |task| task.text() == "echo: later"), "{protocol:?}");
    }
}

#[test]
fn version_0_2_insists_on_output_modes() {
    let agent = RemoteAgent::start(RemoteProtocol::V02JsonRpc);
    let caller = Caller::of(&agent, RemoteProtocol::V02JsonRpc);
    let mut params = caller.message("hi");
    params["configuration"] = json!({"blocking": true});
    assert_eq!(code(&caller.call(Operation::Send, &params)), -32602);
    params["configuration"]["acceptedOutputModes"] = json!(["text/plain"]);
    assert_eq!(digest(&caller.result(Operation::Send, &params)), "task completed echo: hi");
}

#[test]
fn requests_are_recorded() {
    let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_bearer("secret").start();
    let mut http = Http::connect(agent.address()).unwrap();
    let caller = Caller::of(&agent, RemoteProtocol::V1JsonRpc);
    let (method, path, body) = caller.request(Operation::Send, &caller.message("hi"));
    let mut send = |token: &str| {
        let headers = [("A2A-Version", "1.0"), ("Authorization", token)];
        http.exchange(&method, &path, &headers, body.as_bytes()).unwrap()
    };
    assert_eq!(send("Bearer wrong").status, 401);
    assert_eq!(digest(&content(&send("Bearer secret"))), "task completed echo: hi");
    assert!(agent.wait_for_requests(Operation::Send, 2, LIMIT));
    assert!(!agent.wait_for_requests(Operation::Get, 1, Duration::from_millis(1)));
    let requests = agent.requests_for(Operation::Send);
    assert_eq!(requests[1].header("authorization"), Some("Bearer secret"));
    assert_eq!(requests[1].rpc_method(), Some("SendMessage"));
    assert_eq!(requests[1].params()["message"]["messageId"], "m-1");
    assert_eq!((requests[0].connection, requests[1].connection), (1, 1), "both came over one connection");
    assert_eq!(agent.tasks().all().len(), 1, "the refused request had no effect");
}

#[test]
fn several_protocols_mounts_and_tenants() {
    let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc)
        .speaking(RemoteProtocol::V1HttpJson)
        .speaking(RemoteProtocol::V03JsonRpc)
        .mounted_at("/agents/one")
        .with_tenant("acme")
        .start();
    let root = agent.url();
    assert_eq!(agent.interface_url(RemoteProtocol::V1JsonRpc).unwrap(), root);
    assert_eq!(agent.interface_url(RemoteProtocol::V1HttpJson).unwrap(), format!("{root}/1.0/rest"));
    assert_eq!(agent.interface_url(RemoteProtocol::V03JsonRpc).unwrap(), format!("{root}/0.3/jsonrpc"));
    let headers = [("A2A-Version", "1.0")];
    let exchange = |method: &str, path: &str, body: &str| {
        Http::connect(agent.address()).unwrap().exchange(method, path, &headers, body.as_bytes()).unwrap()
    };
    let v1 = Caller::of(&agent, RemoteProtocol::V1JsonRpc);
    let mut params = v1.message("hi");
    let (_, _, without) = v1.request(Operation::Send, &params);
    assert_eq!(code(&exchange("POST", "/agents/one", &without)), -32602, "the tenant is missing");
    params["tenant"] = json!("acme");
    let (_, _, with) = v1.request(Operation::Send, &params);
    let sent = content(&exchange("POST", "/agents/one", &with));
    assert_eq!(digest(&sent), "task completed echo: hi");
    let id = task_id(&sent).unwrap();
    let read = exchange("GET", &format!("/agents/one/1.0/rest/acme/tasks/{id}"), "");
    assert_eq!(digest(&read.json()), "task completed echo: hi");
    let old = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": { "id": id }}).to_string();
    assert_eq!(digest(&content(&exchange("POST", "/agents/one/0.3/jsonrpc", &old))), "task completed echo: hi");
    let card = exchange("GET", "/agents/one/.well-known/agent-card.json", "").json();
    assert_eq!(card["supportedInterfaces"].as_array().map(Vec::len), Some(3));
    assert_eq!(card["url"], format!("{root}/0.3/jsonrpc"));
}

#[test]
fn a_repeated_message_begins_a_second_task_unless_messages_are_deduplicated() {
    for (agent, tasks) in [
        (RemoteAgent::builder(RemoteProtocol::V1JsonRpc), 2),
        (RemoteAgent::builder(RemoteProtocol::V1JsonRpc).deduplicating(), 1),
    ] {
        let agent = agent.start();
        let caller = Caller::of(&agent, RemoteProtocol::V1JsonRpc);
        for _ in 0..2 {
            assert_eq!(digest(&caller.result(Operation::Send, &caller.message("hi"))), "task completed echo: hi");
        }
        assert_eq!(agent.tasks().all().len(), tasks);
        assert_eq!(agent.tasks().events(&agent.tasks().all()[0].id).len(), 4);
    }
}

#[test]
fn a_request_with_a_known_idempotency_key_joins_its_task_where_the_card_says_so() {
    for protocol in RemoteProtocol::ALL {
        for (agent, tasks) in
            [(RemoteAgent::builder(protocol), 2), (RemoteAgent::builder(protocol).knowing_idempotency_keys(), 1)]
        {
            let agent = agent.start();
            let caller = Caller::of(&agent, protocol);
            let headers = [caller.headers(), vec![("Idempotency-Key", "k")]].concat();
            for number in 0..2 {
                let mut params = caller.message("hi");
                if protocol == RemoteProtocol::V01JsonRpc {
                    params["id"] = json!(format!("task {number}"));
                }
                let (method, path, body) = caller.request(Operation::Send, &params);
                let mut http = Http::connect(caller.address).unwrap();
                let reply = http.exchange(&method, &path, &headers, body.as_bytes()).unwrap();
                assert_eq!(digest(&content(&reply)), "task completed echo: hi", "{protocol:?}");
            }
            assert_eq!(agent.tasks().all().len(), tasks, "{protocol:?}");
        }
    }
}
