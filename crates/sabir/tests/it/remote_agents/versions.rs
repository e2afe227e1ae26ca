//! Every version of the remote agent behind the front, for callers of every version.

use std::sync::atomic::{AtomicU64, Ordering};

use sabir_testkit::remote::{
    Operation, RecordedRequest, RemoteAgent, RemotePart, RemoteProtocol, RemoteState, RemoteTask,
};
use serde_json::json;

use super::fixture::{Front, LIMIT, a2a, at_once, for_each, id_of, message, only_task, sends, task_in};
use crate::dialect_matrix::dialect_client::{DialectClient, JSON_DIALECTS, REFERENCE};
use crate::dialect_matrix::json_format::JsonFormat;
use crate::dialect_matrix::neutral_task::{Artifact, Content, Event, Message, Part, Status, Task};
use crate::server_fixture::ServerFixture;

/// The gateway of `DIALECTS` asks for an agent of this name.
fn front_of(agent: &RemoteAgent) -> ServerFixture {
    ServerFixture::configured(&a2a("demo", &agent.url(), ""))
}

fn until_at_rest(front: &ServerFixture, id: &str) {
    front.server.until("the task is at rest", |_| REFERENCE.get(front, id).status.is_at_rest().then_some(()));
}

fn words(text: &str) -> Message {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let id = format!("words {}", COUNT.fetch_add(1, Ordering::Relaxed));
    Message { id: Some(id), ..Message::new("user", vec![Part::text(text)]) }
}

fn caller_message(text: &str) -> Message {
    let parts = vec![
        Part::text(text),
        Part::of(Content::Data(r#"{"n":12345678901234567,"b":true}"#.to_owned())),
        Part {
            name: Some("a.txt".to_owned()),
            media_type: Some("text/plain".to_owned()),
            ..Part::of(Content::Bytes("SGVsbG8=".to_owned()))
        },
    ];
    Message { parts, ..words("") }
}

/// What a caller of 1.0 should see of this task of the remote agent.
fn as_shown(truth: &RemoteTask, protocol: RemoteProtocol) -> (Status, Vec<Artifact>) {
    let is_v01 = protocol == RemoteProtocol::V01JsonRpc;
    let state = match truth.state {
        RemoteState::Rejected if !is_v01 => "rejected",
        // 0.1 has no words for the others.
        RemoteState::Rejected | RemoteState::Failed => "failed",
        RemoteState::AuthRequired if !is_v01 => "auth-required",
        RemoteState::AuthRequired | RemoteState::InputRequired => "input-required",
        RemoteState::Completed => "completed",
        RemoteState::Canceled => "canceled",
        RemoteState::Working => "working",
        RemoteState::Submitted => "submitted",
    };
    let message = truth.status_message.as_ref().map(|message| Message::new("agent", parts(&message.parts)));
    let artifacts = truth.artifacts.iter().map(|artifact| Artifact {
        id: None,
        name: Some(artifact.name.clone()),
        description: None,
        parts: parts(&artifact.parts),
        extensions: Vec::new(),
        metadata: None,
    });
    (Status { state: state.to_owned(), message, time: None }, artifacts.collect())
}

/// Neighbouring texts of an artifact are one.
fn parts(parts: &[RemotePart]) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        let (content, name, media_type) = match part {
            RemotePart::Text(text) => match all.last_mut() {
                Some(Part { content: Content::Text(before), .. }) => {
                    before.push_str(text);
                    continue;
                }
                _ => (Content::Text(text.clone()), &None, &None),
            },
            RemotePart::Bytes { base64, name, media_type } => (Content::Bytes(base64.clone()), name, media_type),
            RemotePart::Url { url, name, media_type } => (Content::Url(url.clone()), name, media_type),
            RemotePart::Data(data) => (Content::Data(data.to_string()), &None, &None),
        };
        all.push(Part { content, name: name.clone(), media_type: media_type.clone(), metadata: None });
    }
    all
}

/// Without what the front makes itself: ids, times, and the data part that names a question.
fn bare(task: &Task) -> (Status, Vec<Artifact>) {
    let mut status = task.status.clone();
    status.time = None;
    if let Some(message) = &mut status.message {
        (message.id, message.task, message.context) = (None, None, None);
        message.parts.retain(|part| !matches!(&part.content, Content::Data(data) if data.contains("\"questionId\"")));
    }
    let artifacts = task.artifacts.iter().map(|artifact| Artifact { id: None, ..artifact.clone() });
    (status, artifacts.collect())
}

/// What everybody reads is what is true at the remote agent.
fn check(front: &ServerFixture, id: &str, truth: &RemoteTask, protocol: RemoteProtocol, caller: &DialectClient) {
    let whole = REFERENCE.get(front, id);
    let label = format!("{} to {} {}", caller.name, protocol.version(), protocol.binding().name());
    assert_eq!(bare(&whole), as_shown(truth, protocol), "{label}");
    // The gateway has text only, and shows nothing of artifacts that have none.
    let has_text = |artifact: &Artifact| artifact.parts.iter().any(|part| part.as_text().is_some());
    if caller.format != JsonFormat::Gateway || whole.artifacts.iter().all(has_text) {
        assert_eq!(caller.get(front, id), caller.format.reduce_task(&whole), "{label}");
    }
}

fn protocol_name(protocol: &RemoteProtocol) -> String {
    format!("{} {}", protocol.version(), protocol.binding().name())
}

#[test]
fn callers_of_every_version_get_what_a_remote_agent_of_any_version_made() {
    for_each(&RemoteProtocol::ALL, protocol_name, |protocol| {
        let agent = RemoteAgent::start(*protocol);
        let front = front_of(&agent);
        let mut count = 0;
        for caller in JSON_DIALECTS {
            for text in ["h\u{e9}llo", "stream 3 1", "file", "data", "fail no luck", "reject not mine", "auth log in"] {
                let sent = caller.send(&front, &caller_message(text), None, None);
                let id = sent.id;
                count += 1;
                let is_settled = |task: &RemoteTask| task.state.is_settled();
                assert!(agent.tasks().wait_until(LIMIT, |tasks| tasks.len() == count && tasks.iter().all(is_settled)));
                let all = agent.tasks().all();
                let truth = all.last().unwrap();
                until_at_rest(&front, &id);
                check(&front, &id, truth, *protocol, caller);
                if let Some(task) = sent.task {
                    assert_eq!(task, caller.get(&front, &id), "what was answered is what is read");
                }
            }
        }
        assert_eq!(sends(&agent), agent.tasks().all().len(), "each message was sent once");
    });
}

#[test]
fn chunks_arrive_while_the_remote_agent_still_works() {
    for_each(&RemoteProtocol::ALL, protocol_name, |protocol| {
        let agent = RemoteAgent::start(*protocol);
        let front = front_of(&agent);
        for (place, caller) in JSON_DIALECTS.iter().filter(|dialect| dialect.can_stream()).enumerate() {
            let mut stream = caller.stream(&front, &words("steps 3"), None);
            assert!(agent.tasks().wait_until(LIMIT, |tasks| tasks.len() == place + 1));
            let remote = agent.tasks().all().pop().unwrap();
            for number in 1..=3 {
                agent.release(&remote.id);
                let text = loop {
                    match stream.next().expect("there is more").1 {
                        Event::Artifact { artifact, .. } => break artifact.parts[0].as_text().unwrap().to_owned(),
                        Event::Task(_) | Event::Status { .. } => {}
                    }
                };
                assert_eq!(text, format!("chunk {number}\n"), "{}", caller.name);
                let truth = agent.task(&remote.id).unwrap();
                assert!(number == 3 || truth.state == RemoteState::Working, "{truth:?}");
            }
            let id = stream.rest().into_iter().rev().find_map(|(_, event)| match event {
                Event::Status { task, status, .. } if status.is_terminal() => Some(task),
                _ => None,
            });
            check(&front, &id.expect("it ends"), &agent.task(&remote.id).unwrap(), *protocol, caller);
        }
    });
}

#[test]
fn an_answer_reaches_the_task_that_asked() {
    for_each(&RemoteProtocol::ALL, protocol_name, |protocol| {
        let agent = RemoteAgent::start(*protocol);
        let front = front_of(&agent);
        for (place, caller) in JSON_DIALECTS.iter().enumerate() {
            let id = caller.send(&front, &words("ask which?"), None, None).id;
            until_at_rest(&front, &id);
            let asking = agent.tasks().all().pop().unwrap();
            check(&front, &id, &asking, *protocol, caller);

            caller.send(&front, &words("blue"), Some(&id), None);
            front.server.until("it ends", |_| REFERENCE.get(&front, &id).status.is_terminal().then_some(()));
            let all = agent.tasks().all();
            assert_eq!(all.len(), place + 1, "the answer makes no second task: {}", caller.name);
            let truth = all.last().unwrap();
            check(&front, &id, truth, *protocol, caller);
            assert_eq!(truth.text(), "echo: blue");
            let said: Vec<String> = truth.history.iter().map(|message| message.text()).collect();
            assert_eq!(said, ["ask which?", "which?", "blue"]);
            let sent = agent.requests_for(Operation::Stream).pop().unwrap();
            check_named(&sent, &truth.id, &truth.context_id);
        }
    });
}

/// The request names both ids, in whichever member.
fn check_named(request: &RecordedRequest, task: &str, context: &str) {
    let params = request.params();
    let named = |member: &str| params["message"][member].as_str().or(params["request"][member].as_str());
    let (task_member, context_member) = match request.protocol {
        Some(RemoteProtocol::V01JsonRpc) => (params["id"].as_str(), params["sessionId"].as_str()),
        _ => (named("taskId"), named("contextId")),
    };
    assert_eq!((task_member, context_member), (Some(task), Some(context)), "{params}");
}

#[test]
fn a_context_of_ours_is_one_context_of_the_remote_agent() {
    for_each(&RemoteProtocol::ALL, protocol_name, |protocol| {
        let agent = RemoteAgent::start(*protocol);
        let front = Front::of(&agent);
        let first = front.send("hello");
        let send = |text: &str, context: &serde_json::Value| {
            let mut params = message(text);
            params["message"]["contextId"] = context.clone();
            task_in(front.rpc("SendMessage", params))
        };
        send("again", &first["contextId"]);
        send("elsewhere", &json!("another"));
        let contexts: Vec<String> = agent.tasks().all().into_iter().map(|task| task.context_id).collect();
        assert_eq!(contexts[0], contexts[1]);
        assert_ne!(contexts[0], contexts[2]);
        // Each side has its own names.
        assert_ne!(first["contextId"], contexts[0]);
        assert_ne!(id_of(&first), agent.tasks().all()[0].id);
    });
}

#[test]
fn a_direct_message_completes_the_task() {
    for_each(&RemoteProtocol::ALL, protocol_name, |protocol| {
        let agent = RemoteAgent::start(*protocol);
        let front = front_of(&agent);
        for caller in JSON_DIALECTS {
            let id = caller.send(&front, &words("message hi"), None, None).id;
            front.server.until("it ends", |_| REFERENCE.get(&front, &id).status.is_terminal().then_some(()));
            let task = REFERENCE.get(&front, &id);
            assert_eq!(task.status.state, "completed");
            let made: Vec<&str> = task.artifacts.iter().filter_map(|artifact| artifact.parts[0].as_text()).collect();
            let words = task.status.message.as_ref().map(Message::text);
            // 0.1 has no direct messages: there it is the status of a task.
            let is_v01 = *protocol == RemoteProtocol::V01JsonRpc;
            let expected = if is_v01 { (vec![], Some("hi".to_owned())) } else { (vec!["hi"], None) };
            assert_eq!((made, words), expected);
            if caller.format != JsonFormat::Gateway {
                assert_eq!(caller.get(&front, &id), caller.format.reduce_task(&task));
            }
        }
    });
}

/// A context goes on also after a direct message, which has no task.
#[test]
fn the_context_of_a_direct_message_goes_on() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let front = Front::of(&agent);
    let first = front.send("message hi");
    let mut params = message("hello");
    params["message"]["contextId"] = first["contextId"].clone();
    task_in(front.rpc("SendMessage", params));
    let second = agent.requests_for(Operation::Stream).pop().unwrap();
    assert!(second.params()["message"]["contextId"].is_string(), "{}", second.params());
}

/// A server may take equal ids for one message; two callers must not get one task between them.
#[test]
fn callers_that_choose_the_same_message_id_have_different_ones_at_the_remote_agent() {
    let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).deduplicating().start();
    let front = Front::of(&agent);
    let ids = ["one", "two"].map(|context| {
        let mut params = message("hello");
        params["message"]["messageId"] = json!("m-1");
        params["message"]["contextId"] = json!(context);
        id_of(&task_in(front.rpc("SendMessage", params)))
    });
    assert_ne!(ids[0], ids[1]);
    let sent: Vec<String> = agent
        .requests_for(Operation::Stream)
        .iter()
        .map(|request| request.params()["message"]["messageId"].as_str().unwrap().to_owned())
        .collect();
    assert!(sent.len() == 2 && sent[0] != sent[1] && !sent.contains(&"m-1".to_owned()), "{sent:?}");
    assert_eq!(agent.tasks().all().len(), 2);
}

/// Messages have the same id over and over in some clients.
#[test]
fn an_answer_with_the_id_of_the_first_message_is_sent_too() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let front = Front::of(&agent);
    let mut first = message("ask which?");
    first["message"]["messageId"] = json!("always the same");
    let asking = task_in(front.rpc("SendMessage", at_once(first.clone())));
    let id = id_of(&asking);
    front.until(&id, |said| said.starts_with("input-required"));
    first["message"]["parts"] = json!([{"text": "blue"}]);
    first["message"]["taskId"] = json!(id);
    task_in(front.rpc("SendMessage", first));
    assert_eq!(front.until_over(&id), "completed \"echo: blue\"");
    assert_eq!(only_task(&agent).text(), "echo: blue");
}
