//! Remote agents that do everything wrong: callers lose nothing of what was made, and are told what is beyond repair.

use std::time::Duration;

use sabir_testkit::remote::{
    CardFault, Death, DeathWhen, Ending, Faults, HangUp, HangUpWhen, HttpError, HugeFrame, On, Operation, RemoteAgent,
    RemoteProtocol, TasksAfterDeath, Times, harmless_faults,
};
use serde_json::json;

use super::fixture::{Front, Reader, a2a, at_once, for_each, id_of, message, say, sends, task_in};

const SIX_CHUNKS: &str = "completed \"é 1\\né 2\\né 3\\né 4\\né 5\\né 6\\n\"";

/// A remote agent with a fault, and the name of its agent at the front.
struct Row {
    id: String,
    name: String,
    agent: RemoteAgent,
}

/// One front with an agent for each of them.
fn front_of(rows: &[Row], settings: &str) -> Front {
    let agents: Vec<String> = rows.iter().map(|row| a2a(&row.id, &row.agent.url(), settings)).collect();
    Front::configured(&agents.concat())
}

#[test]
fn callers_lose_nothing_whatever_the_remote_agent_does_wrong() {
    let mut rows = Vec::new();
    for protocol in RemoteProtocol::ALL {
        for (name, faults) in harmless_faults() {
            rows.push(Row {
                id: format!("a{}", rows.len()),
                name: format!("{} {}: {name}", protocol.version(), protocol.binding().name()),
                agent: RemoteAgent::builder(protocol).with_faults(faults).start(),
            });
        }
    }
    let front = front_of(&rows, "unreachable_timeout = \"6s\"");
    for_each(
        &rows,
        |row| row.name.clone(),
        |row| {
            let path = format!("/agents/{}/", row.id);
            let params = message("stream 6 20 é");
            let mut events = front.open(&path, &[], "SendStreamingMessage", params);
            let first = events.next_frame().unwrap().unwrap();
            let mut reader = Reader::default();
            reader.take(&first);
            let id = id_of(&first.payload()["task"]);
            assert_eq!(reader.finish(&mut events), SIX_CHUNKS, "{}", row.name);
            let task = front.ask(&path, &[], "GetTask", json!({"id": id}));
            assert_eq!(say(&task["result"]), SIX_CHUNKS, "{}", row.name);
            assert_eq!(row.agent.tasks().all().len(), 1, "{}", row.name);
        },
    );
}

struct BeyondRepair {
    name: &'static str,
    text: &'static str,
    faults: Faults,
    /// How the task ends, up to here.
    expected: &'static str,
}

fn beyond_repair() -> Vec<BeyondRepair> {
    let none = Faults::default;
    let row = |name, text, faults, expected| BeyondRepair { name, text, faults, expected };
    let hang_up = |when| Faults {
        hang_up: Some(HangUp { on: On::Only(Operation::Stream), when, how: Ending::Reset, times: Times::Always }),
        ..none()
    };
    let death = |tasks, back_after| Faults {
        death: Some(Death { when: DeathWhen::AfterFrames(3), back_after, tasks }),
        ..none()
    };
    let status = |status| Faults { http_error: Some(HttpError::status(status)), ..none() };
    let unknown = "failed \"\" (outcome unknown: the message was sent to the remote agent, and the connection broke";
    let refused = "failed \"\" (the remote agent does not accept the credential of this server)";
    let unusable = "failed \"\" (the card of the remote agent cannot be used)";
    vec![
        row("the answer is lost", "stream 3", hang_up(HangUpWhen::AfterProcessing), unknown),
        row("the message may be lost", "stream 3", hang_up(HangUpWhen::BeforeProcessing), unknown),
        row(
            "the tasks are lost",
            "stream 50 50",
            death(TasksAfterDeath::Lost, Some(Duration::from_millis(300))),
            "failed \"chunk 1\\n\" (the remote agent no longer knows the task; it may have been restarted)",
        ),
        row(
            "it never comes back",
            "stream 50 50",
            death(TasksAfterDeath::Kept, None),
            "failed \"chunk 1\\n\" (the remote agent could not be reached for 4 seconds)",
        ),
        row(
            "a huge frame",
            "stream 3",
            Faults { huge_frame: Some(HugeFrame { at: 3, bytes: 17 << 20 }), ..none() },
            "failed \"chunk 1\\n\" (the remote agent sent too much: an event of the stream is larger than",
        ),
        row("401", "stream 3", status(401), refused),
        row("403", "stream 3", status(403), refused),
        row("500", "stream 3", status(500), "failed \"\" (the remote agent refused the message: "),
        row("503 for good", "stream 3", status(503), "failed \"\" (the remote agent is not available now: "),
        row("no card", "stream 3", Faults { card: vec![CardFault::Missing], ..none() }, unusable),
        row("a card that is no JSON", "stream 3", Faults { card: vec![CardFault::NotJson], ..none() }, unusable),
        row(
            "a card that leads inside",
            "stream 3",
            Faults { card: vec![CardFault::Url("http://10.1.2.3/".into())], ..none() },
            "failed \"\" (the card of the remote agent names no address that can be used)",
        ),
        row(
            "a card that leads to metadata of a cloud",
            "stream 3",
            Faults { card: vec![CardFault::Url("http://169.254.169.254/latest".into())], ..none() },
            "failed \"\" (the card of the remote agent names no address that can be used)",
        ),
    ]
}

#[test]
fn what_is_beyond_repair_fails_with_a_reason_that_names_no_address() {
    let rows: Vec<(Row, BeyondRepair)> = beyond_repair()
        .into_iter()
        .enumerate()
        .map(|(number, case)| {
            let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_faults(case.faults.clone()).start();
            (Row { id: format!("a{number}"), name: case.name.to_owned(), agent }, case)
        })
        .collect();
    let agents = rows.iter().map(|(row, _)| a2a(&row.id, &row.agent.url(), "unreachable_timeout = \"4s\""));
    let front = Front::configured(&agents.collect::<String>());
    for_each(
        &rows,
        |(row, _)| row.name.clone(),
        |(row, case)| {
            let path = format!("/agents/{}/", row.id);
            let task = task_in(front.ask(&path, &[], "SendMessage", at_once(message(case.text))));
            let said = front.until_over(&id_of(&task));
            assert!(said.starts_with(case.expected), "{}: {said}", case.name);
            let port = row.agent.address().port().to_string();
            for secret in ["127.0.0.1", "http://", "10.1.2.3", "169.254", port.as_str()] {
                assert!(!said.contains(secret), "{}: {said}", case.name);
            }
            assert!(sends(&row.agent) <= 3 && row.agent.tasks().all().len() <= 1, "{}: sent again", case.name);
        },
    );
}

/// What cannot have arrived is sent when the remote agent is there: that is what a front is for.
#[test]
fn a_message_waits_for_a_remote_agent_that_is_down() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::start(*protocol);
            let front = Front::of(&agent);
            // Its card is known, and then it is not even up.
            front.send("hello");
            agent.die(TasksAfterDeath::Kept);
            // By now the front has noticed that its connections are gone.
            front.rpc("ListTasks", json!({}));
            let id = front.begin("hello again");
            std::thread::sleep(Duration::from_secs(2));
            let said = front.until(&id, |_| true);
            assert!(said.starts_with("working"), "{said}");
            agent.come_back();
            assert_eq!(front.until_over(&id), "completed \"echo: hello again\"");
            assert_eq!(agent.tasks().all().len(), 2);
        },
    );
}

/// A server that asks to be left alone for a while is left alone.
#[test]
fn a_busy_remote_agent_gets_the_message_later() {
    let rows: Vec<Row> = [429, 503]
        .into_iter()
        .map(|status| {
            let busy =
                HttpError { on: On::Only(Operation::Stream), ..HttpError::retry_after(status, 1, Times::First(4)) };
            let faults = Faults { http_error: Some(busy), ..Faults::default() };
            let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_faults(faults).start();
            Row { id: format!("a{status}"), name: status.to_string(), agent }
        })
        .collect();
    let front = front_of(&rows, "");
    for_each(
        &rows,
        |row| row.name.clone(),
        |row| {
            let task = task_in(front.ask(&format!("/agents/{}/", row.id), &[], "SendMessage", message("hello")));
            assert_eq!(say(&task), "completed \"echo: hello\"");
            assert_eq!((sends(&row.agent), row.agent.tasks().all().len()), (5, 1));
        },
    );
}
