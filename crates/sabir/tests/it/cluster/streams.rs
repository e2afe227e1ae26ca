//! A client's stream through `kill -9` of the node that runs its task: it resumes on another node with no gap and nothing twice,
//! and a stream on another node does not even break.

use sabir_testkit::{grpc, sse};
use serde_json::{Value, json};

use super::fixture::{ClusterFixture, DEMO, LIMIT, message, numbered, request};

/// The task of the killed node runs a second time elsewhere, so the stream goes on for long.
fn requeueing() -> Option<ClusterFixture> {
    let toml = format!("[recovery]\nrunning = \"requeue\"\n{DEMO}");
    ClusterFixture::with(3, &toml)
}

/// It ends when it is canceled.
const WORDS: &str = "stream 10000 30";
/// How much of the stream arrives before the kill, and of the second run before the cancel.
const PART: usize = 10;

#[test]
fn an_sse_stream_resumes_after_the_kill_of_its_node() {
    let Some(mut cluster) = requeueing() else { return };
    let body = request("SendStreamingMessage", message(WORDS, Value::Null));
    let opened = sse::open(cluster.node(0).address, "POST", "/", &[("A2A-Version", "1.0")], body.as_bytes()).unwrap();
    let mut events = opened.unwrap_or_else(|reply| panic!("{}", reply.text()));
    events.give_up_after(LIMIT);
    let mut seen = Vec::new();
    while seen.len() < PART {
        seen.push(numbered(events.next_frame().unwrap().expect("it goes on")));
    }
    let id = task_of(&seen[0].1);
    let mut elsewhere = cluster.subscribe(2, &id, Some(0));
    cluster.kill(0);
    let broken = loop {
        match events.next_frame() {
            Ok(Some(frame)) => seen.push(numbered(frame)),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(broken, "a killed node does not end its streams properly");
    // At once: nobody has taken the task over yet.
    let mut resumed = cluster.subscribe(1, &id, Some(seen.last().unwrap().0));
    resumed.give_up_after(LIMIT);
    let (mut runs, mut of_second) = (1, 0);
    while of_second < PART {
        let frame = resumed.next_frame().unwrap().expect("it goes on");
        runs += usize::from(frame.data.contains("TASK_STATE_WORKING"));
        of_second += usize::from(runs == 2);
        seen.push(numbered(frame));
    }
    cluster.cancel(1, &id);
    seen.extend(resumed.rest().unwrap().into_iter().map(numbered));
    check_numbers(&seen.iter().map(|(number, _)| *number).collect::<Vec<_>>());
    assert_eq!(seen, cluster.events(1, &id, 0), "the same as the log, byte for byte");
    assert!(seen.last().unwrap().1.contains("TASK_STATE_CANCELED"), "{:?}", seen.last());
    let elsewhere: Vec<_> = elsewhere.rest().unwrap().into_iter().map(numbered).collect();
    assert_eq!(elsewhere, seen, "the stream on another node runs through");
}

#[test]
fn a_grpc_stream_resumes_after_the_kill_of_its_node() {
    let Some(mut cluster) = requeueing() else { return };
    let subscribe = format!("{}/SubscribeToTask", grpc::V1);
    let send = format!("{}/SendStreamingMessage", grpc::V1);
    let opened = grpc::open(cluster.node(0).address, &send, &[], &message(WORDS, Value::Null));
    let mut stream = opened.unwrap_or_else(|reply| panic!("{reply:?}"));
    assert_eq!(stream.first_event_id, 1);
    let mut seen: Vec<Value> = (0..PART).map(|_| stream.next_message().expect("it goes on")).collect();
    let task = seen[0]["task"]["id"].as_str().unwrap().to_owned();
    let id = json!({"id": task});
    let from_start = [("last-event-id", "0")];
    let opened = grpc::open(cluster.node(2).address, &subscribe, &from_start, &id);
    let mut elsewhere = opened.unwrap_or_else(|reply| panic!("{reply:?}"));
    cluster.kill(0);
    seen.extend(stream.rest_until_broken());
    let last = seen.len().to_string();
    let opened = grpc::open(cluster.node(1).address, &subscribe, &[("last-event-id", &last)], &id);
    let mut resumed = opened.unwrap_or_else(|reply| panic!("{reply:?}"));
    assert_eq!(resumed.first_event_id, seen.len() as u64 + 1);
    let (mut runs, mut of_second) = (1, 0);
    while of_second < PART {
        let message = resumed.next_message().expect("it goes on");
        runs += usize::from(message.to_string().contains("TASK_STATE_WORKING"));
        of_second += usize::from(runs == 2);
        seen.push(message);
    }
    cluster.cancel(1, &task);
    seen.extend(std::iter::from_fn(|| resumed.next_message()));
    let all = grpc::call(cluster.node(1).address, &subscribe, &from_start, &id);
    assert_eq!((all.first_event_id(), all.code()), (Some(1), Some(0)), "{all:?}");
    assert_eq!(seen, all.messages, "the same as the log");
    let last = seen.last().unwrap().to_string();
    assert!(last.contains("TASK_STATE_CANCELED"), "{last}");
    let followed: Vec<Value> = std::iter::from_fn(|| elsewhere.next_message()).collect();
    assert_eq!(followed, seen, "the stream on another node runs through");
}

fn task_of(frame: &str) -> String {
    let frame: Value = serde_json::from_str(frame).unwrap();
    frame["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{frame}")).to_owned()
}

fn check_numbers(numbers: &[u64]) {
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no gap and nothing twice");
}
