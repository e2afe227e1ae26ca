//! Connections that end, answers that are late, and HTTP errors.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use sabir_testkit::http::Http;
use sabir_testkit::remote::{
    Death, DeathWhen, Delay, Drip, Ending, Faults, HangUp, HangUpWhen, HttpError, On, Operation, Redirect, RedirectTo,
    RemoteAgent, RemoteProtocol, RemoteState, TasksAfterDeath, Times,
};
use serde_json::json;

use crate::calls::{Caller, LIMIT, digest, task_id};

const V1: RemoteProtocol = RemoteProtocol::V1JsonRpc;

#[test]
fn a_connection_ends_in_place_of_an_answer() {
    // How many requests are read, and how many tasks there are.
    for (when, requests, tasks) in [
        (HangUpWhen::BeforeReading, 0, 0),
        (HangUpWhen::BeforeProcessing, 1, 0),
        (HangUpWhen::WhileProcessing, 1, 1),
        (HangUpWhen::AfterProcessing, 1, 1),
    ] {
        for (how, error) in [(Ending::Close, ErrorKind::UnexpectedEof), (Ending::Reset, ErrorKind::ConnectionReset)] {
            let agent = RemoteAgent::start(V1);
            let caller = Caller::of(&agent, V1);
            agent.change_faults(|faults| {
                faults.hang_up = Some(HangUp { on: On::Only(Operation::Send), when, how, times: Times::ONCE });
            });
            let failed = caller.try_call(Operation::Send, &caller.message("hi")).unwrap_err();
            assert_eq!(failed.kind(), error, "{when:?} {how:?}");
            assert_eq!(
                (agent.count(Operation::Send), agent.tasks().all().len()),
                (requests, tasks),
                "{when:?} {how:?}"
            );
            assert!(agent.tasks().wait_until(LIMIT, |all| all.iter().all(|task| task.state == RemoteState::Completed)));
            assert_eq!(caller.call(Operation::Send, &caller.message("hi")).status, 200, "it happens once");
        }
    }
}

#[test]
fn while_processing_nobody_waits_for_the_work() {
    let agent = RemoteAgent::start(V1);
    let caller = Caller::of(&agent, V1);
    agent.change_faults(|faults| {
        let when = HangUpWhen::WhileProcessing;
        faults.hang_up = Some(HangUp { on: On::Calls, when, how: Ending::Close, times: Times::ONCE });
    });
    assert!(caller.try_call(Operation::Send, &caller.message("hold")).is_err());
    assert!(!agent.tasks().all()[0].state.is_settled());
}

#[test]
fn http_errors_come_as_often_as_they_should() {
    let agent = RemoteAgent::start(V1);
    let caller = Caller::of(&agent, V1);
    for (error, statuses, retry_after) in [
        (HttpError::retry_after(429, 2, Times::First(2)), [429, 429, 200], Some("2")),
        (HttpError::retry_after(503, 1, Times::ONCE), [503, 200, 200], Some("1")),
        (HttpError::status(500), [500, 500, 500], None),
        (HttpError::status(401), [401, 401, 401], None),
        (HttpError { on: On::Only(Operation::Get), ..HttpError::status(403) }, [200, 200, 200], None),
    ] {
        agent.set_faults(Faults { http_error: Some(error.clone()), ..Faults::default() });
        let replies: Vec<_> = (0..3).map(|_| caller.call(Operation::Send, &caller.message("hi"))).collect();
        let seen: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
        assert_eq!(seen, statuses, "{error:?}");
        assert_eq!(replies[0].header("retry-after"), retry_after, "{error:?}");
        let card = Http::connect(agent.address()).unwrap().exchange("GET", "/.well-known/agent-card.json", &[], b"");
        assert_eq!(card.unwrap().status, 200, "the card is no call");
    }
}

#[test]
fn redirects_lead_to_the_same_place_or_elsewhere() {
    let agent = RemoteAgent::start(V1);
    let caller = Caller::of(&agent, V1);
    let itself = format!("http://{}/", agent.address());
    for (to, location) in [
        (RedirectTo::Itself, itself.as_str()),
        (RedirectTo::Origin("http://127.0.0.1:9".to_owned()), "http://127.0.0.1:9/"),
        (RedirectTo::Url("https://example.com/x".to_owned()), "https://example.com/x"),
    ] {
        let redirect = Redirect { on: On::Calls, times: Times::ONCE, status: 307, to };
        agent.set_faults(Faults { redirect: Some(redirect), ..Faults::default() });
        let reply = caller.call(Operation::Send, &caller.message("hi"));
        assert_eq!((reply.status, reply.header("location")), (307, Some(location)));
        assert_eq!(caller.call(Operation::Send, &caller.message("hi")).status, 200);
    }
}

#[test]
fn answers_are_late_and_arrive_in_drops() {
    let agent = RemoteAgent::start(V1);
    let caller = Caller::of(&agent, V1);
    let before_head = Duration::from_millis(60);
    let drip = Drip { bytes: 100, pause: Duration::from_millis(10) };
    for (faults, least) in [
        (Faults { delay: Some(Delay { on: On::Calls, before_head }), ..Faults::default() }, 60),
        (Faults { drip: Some(drip), ..Faults::default() }, 20),
    ] {
        agent.set_faults(faults);
        let start = Instant::now();
        let sent = caller.result(Operation::Send, &caller.message("hi"));
        assert!(start.elapsed() >= Duration::from_millis(least));
        assert_eq!(digest(&sent), "task completed echo: hi");
    }
}

#[test]
fn a_dead_server_refuses_connections_and_keeps_its_port() {
    let agent = RemoteAgent::start(V1);
    let caller = Caller::of(&agent, V1);
    let id = caller.begin("ask why?");
    let mut idle = Http::connect(agent.address()).unwrap();
    idle.give_up_after(LIMIT);
    // The server has accepted it when it answers another one.
    caller.call(Operation::Get, &json!({ "id": id }));
    agent.die(TasksAfterDeath::Kept);
    assert_eq!(idle.receive_head().unwrap_err().kind(), ErrorKind::ConnectionReset);
    let refused = caller.try_call(Operation::Get, &json!({ "id": id })).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert!(!agent.is_listening());
    agent.come_back();
    assert_eq!(digest(&caller.result(Operation::Get, &json!({ "id": id }))), "task input-required why?");
    agent.die_for(Duration::from_millis(10), TasksAfterDeath::Lost);
    let reply = caller.call_when_it_is_back(Operation::Get, &json!({ "id": id }));
    assert_eq!(reply.json()["error"]["code"], -32001);
}

#[test]
fn a_server_dies_before_it_answers() {
    let agent = RemoteAgent::start(V1);
    let caller = Caller::of(&agent, V1);
    let when = DeathWhen::AfterProcessing(On::Only(Operation::Send));
    agent.change_faults(|faults| faults.death = Some(Death { when, back_after: None, tasks: TasksAfterDeath::Kept }));
    let failed = caller.try_call(Operation::Send, &caller.message("hi")).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::ConnectionReset);
    assert!(!agent.is_listening());
    agent.come_back();
    assert_eq!(caller.result(Operation::List, &json!({}))["totalSize"], 1);
}

#[test]
fn a_blocking_send_is_answered_at_once_and_a_cancel_is_ignored() {
    let agent = RemoteAgent::start(V1);
    let caller = Caller::of(&agent, V1);
    agent.set_faults(Faults { submitted_first: true, ignore_cancel: true, ..Faults::default() });
    let sent = caller.result(Operation::Send, &caller.message("hold later"));
    assert_eq!(digest(&sent), "task submitted");
    let id = task_id(&sent).unwrap();
    let canceled = caller.call(Operation::Cancel, &json!({ "id": id }));
    assert!(!digest(&canceled.json()["result"]).contains("canceled"));
    agent.release(&id);
    assert!(agent.wait_for_task(&id, LIMIT, |task| task.text() == "echo: later"));
}

#[test]
fn two_servers_share_their_tasks() {
    let first = RemoteAgent::start(V1);
    let id = Caller::of(&first, V1).begin("hi");
    let second = RemoteAgent::builder(RemoteProtocol::V03JsonRpc).with_tasks(first.tasks()).start();
    drop(first);
    let caller = Caller::of(&second, RemoteProtocol::V03JsonRpc);
    assert_eq!(digest(&caller.result(Operation::Get, &json!({ "id": id }))), "task completed echo: hi");
}
