//! What this server adds to any agent, on tasks of a remote one: webhooks, repeated sends, replay, many subscribers.

use sabir_testkit::remote::{RemoteAgent, RemoteProtocol};
use sabir_testkit::sse::SseFrame;
use serde_json::json;

use super::fixture::{Front, Reader, at_once, id_of, message, only_task, sends, task_in};
use crate::webhook_receiver::WebhookReceiver;

const TWO_CHUNKS: &str = "completed \"chunk 1\\nchunk 2\\n\"";

#[test]
fn webhooks_tell_of_a_remote_task() {
    let agent = RemoteAgent::start(RemoteProtocol::V03JsonRpc);
    let front = Front::of(&agent);
    let receiver = WebhookReceiver::start();
    let mut params = message("hold hello");
    params["configuration"] = json!({
        "returnImmediately": true,
        "taskPushNotificationConfig": {"url": receiver.url("/hook")},
    });
    let id = id_of(&task_in(front.rpc("SendMessage", params)));
    assert_eq!(receiver.next().json()["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
    agent.release(&only_task(&agent).id);
    let last = receiver.until(|request| request.json()["task"].is_object()).pop().unwrap().json();
    assert_eq!(last["task"]["id"], id);
    assert_eq!(last["task"]["artifacts"][0]["parts"][0]["text"], "echo: hello");
    // The remote agent knows nothing of it: its own notifications would lead elsewhere.
    assert!(agent.requests().iter().all(|request| !request.params().to_string().contains("/hook")));
}

#[test]
fn a_repeated_send_joins_the_task() {
    let agent = RemoteAgent::start(RemoteProtocol::V03JsonRpc);
    let front = Front::of(&agent);
    let key = [("Idempotency-Key", "once")];
    let ids: Vec<String> =
        (0..3).map(|_| id_of(&task_in(front.ask("/", &key, "SendMessage", at_once(message("hold hello")))))).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    agent.release(&only_task(&agent).id);
    assert_eq!(front.until_over(&ids[0]), "completed \"echo: hello\"");
    let again = task_in(front.ask("/", &key, "SendMessage", message("hold hello")));
    assert_eq!(id_of(&again), ids[0]);
    assert_eq!((sends(&agent), agent.tasks().all().len()), (1, 1));
}

#[test]
fn a_stream_is_replayed_from_any_event_on() {
    let agent = RemoteAgent::start(RemoteProtocol::V01JsonRpc);
    let front = Front::of(&agent);
    let id = id_of(&front.send("stream 2 1"));
    let all = front.subscribe(&id, 0).rest().unwrap();
    assert_eq!(fold(&all), TWO_CHUNKS);
    for after in 1..all.len() {
        assert_eq!(front.subscribe(&id, after as u64).rest().unwrap(), all[after..]);
    }
}

#[test]
fn many_subscribers_see_the_same() {
    let agent = RemoteAgent::start(RemoteProtocol::V1HttpJson);
    let front = Front::of(&agent);
    let id = front.begin("steps 2");
    let remote = only_task(&agent).id;
    let mut early: Vec<_> = (0..10).map(|_| front.subscribe(&id, 0)).collect();
    agent.release(&remote);
    front.until(&id, |said| said.contains("chunk 1"));
    let mut late: Vec<_> = (0..10).map(|_| front.subscribe(&id, 0)).collect();
    agent.release(&remote);
    let seen: Vec<Vec<SseFrame>> = early.iter_mut().chain(&mut late).map(|events| events.rest().unwrap()).collect();
    assert!(seen.iter().all(|frames| *frames == seen[0]));
    assert_eq!(fold(&seen[0]), TWO_CHUNKS);
    assert_eq!(sends(&agent), 1, "however many watch, the remote agent has one caller");
}

fn fold(frames: &[SseFrame]) -> String {
    let mut reader = Reader::default();
    frames.iter().for_each(|frame| reader.take(frame));
    format!("{} {:?}", reader.end.unwrap_or_default(), reader.text)
}
