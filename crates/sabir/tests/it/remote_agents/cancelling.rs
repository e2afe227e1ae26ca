//! A cancel reaches the remote task, and a remote agent that does not obey holds up nobody.

use std::time::{Duration, Instant};

use sabir_testkit::remote::{
    Delay, Faults, On, Operation, RemoteAgent, RemoteProtocol, RemoteState, Silence, TasksAfterDeath, Times,
};

use super::fixture::{Front, LIMIT, for_each, id_of, only_task, say, sends};

#[test]
fn a_cancel_ends_the_remote_task() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::start(*protocol);
            let front = Front::of(&agent);
            let id = front.begin("steps 2");
            let remote = only_task(&agent).id;
            agent.release(&remote);
            front.until(&id, |said| said.contains("chunk 1"));
            assert_eq!(say(&front.cancel(&id)["result"]), "canceled \"chunk 1\\n\"");
            assert_eq!(agent.task(&remote).unwrap().state, RemoteState::Canceled);
        },
    );
}

#[test]
fn a_cancel_of_a_task_that_waits_for_its_caller_ends_the_remote_task() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::start(*protocol);
            let front = Front::of(&agent);
            let id = id_of(&front.send("ask which?"));
            let remote = only_task(&agent).id;
            assert!(say(&front.cancel(&id)["result"]).starts_with("canceled"));
            assert!(agent.wait_for_task(&remote, LIMIT, |task| task.state == RemoteState::Canceled));
        },
    );
}

/// The remote agent has the message, and the front does not know its task yet.
#[test]
fn a_cancel_while_the_message_is_on_its_way_ends_the_remote_task() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let delay = Delay { on: On::Only(Operation::Stream), before_head: Duration::from_secs(1) };
            let faults = Faults { delay: Some(delay), ..Faults::default() };
            let agent = RemoteAgent::builder(*protocol).with_faults(faults).start();
            let front = Front::of(&agent);
            let id = front.begin("hold hello");
            let remote = only_task(&agent).id;
            assert_eq!(say(&front.cancel(&id)["result"]), "canceled \"\"");
            assert_eq!(agent.task(&remote).unwrap().state, RemoteState::Canceled);
            assert_eq!((sends(&agent), agent.tasks().all().len()), (1, 1));
        },
    );
}

#[test]
fn a_remote_agent_that_does_not_stop_holds_up_nobody() {
    struct Row {
        name: &'static str,
        faults: Faults,
        is_dead: bool,
        expected: &'static str,
    }
    let on_cancel = |seconds| Delay { on: On::Only(Operation::Cancel), before_head: Duration::from_secs(seconds) };
    let unconfirmed = "canceled \"chunk 1\\n\" (the remote agent did not confirm that it stopped)";
    let rows = [
        Row {
            name: "it ignores the cancel",
            faults: Faults { ignore_cancel: true, ..Faults::default() },
            is_dead: false,
            expected: unconfirmed,
        },
        Row {
            name: "it does not answer the cancel",
            faults: Faults { ignore_cancel: true, delay: Some(on_cancel(600)), ..Faults::default() },
            is_dead: false,
            expected: unconfirmed,
        },
        Row { name: "it is dead", faults: Faults::default(), is_dead: true, expected: unconfirmed },
        Row {
            name: "it is slow",
            faults: Faults { delay: Some(on_cancel(1)), ..Faults::default() },
            is_dead: false,
            expected: "canceled \"chunk 1\\n\"",
        },
    ];
    for_each(
        &rows,
        |row| row.name.to_owned(),
        |row| {
            let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_faults(row.faults.clone()).start();
            let front = Front::of(&agent);
            let id = front.begin("steps 2");
            agent.release(&only_task(&agent).id);
            // A front that has not read anything of the remote task cannot tell whether its message arrived.
            front.until(&id, |said| said.contains("chunk 1"));
            if row.is_dead {
                agent.die(TasksAfterDeath::Kept);
            }
            let start = Instant::now();
            let answer = front.cancel(&id);
            assert_eq!(say(&answer["result"]), row.expected, "{}: {answer}", row.name);
            assert!(start.elapsed() < LIMIT, "{}: {:?}", row.name, start.elapsed());
        },
    );
}

/// The message could not be sent yet: there is nothing to cancel elsewhere, and it is not sent later.
#[test]
fn a_message_that_was_not_sent_is_not_sent_after_a_cancel() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let front = Front::of(&agent);
    front.send("hello");
    agent.die(TasksAfterDeath::Kept);
    let id = front.begin("hello again");
    std::thread::sleep(Duration::from_millis(1500));
    let start = Instant::now();
    assert_eq!(say(&front.cancel(&id)["result"]), "canceled \"\"");
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    agent.come_back();
    assert_eq!(say(&front.send("third")), "completed \"echo: third\"");
    assert_eq!(agent.tasks().all().len(), 2);
}

/// The stream has gone silent, and the remote task has ended meanwhile.
#[test]
fn a_cancel_that_comes_too_late_finds_what_was_made() {
    let silence = Silence { after: 2, times: Times::ONCE };
    let faults = Faults { silence: Some(silence), ..Faults::default() };
    let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_faults(faults).start();
    let front = Front::of(&agent);
    let id = front.begin("hold hello");
    let remote = only_task(&agent).id;
    front.until(&id, |said| said.starts_with("working"));
    assert!(agent.wait_for_task(&remote, LIMIT, |task| task.state == RemoteState::Working));
    agent.release(&remote);
    assert!(agent.wait_for_task(&remote, LIMIT, |task| task.state == RemoteState::Completed));
    let answer = front.cancel(&id);
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    assert_eq!(front.until_over(&id), "completed \"echo: hello\"");
}

#[test]
fn a_turn_that_takes_too_long_ends_the_remote_task() {
    for_each(
        &[("timeout = \"1s\"", "the turn took longer"), ("idle_timeout = \"1s\"", "nothing was heard of the agent")],
        |(settings, _)| (*settings).to_owned(),
        |(settings, reason)| {
            let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
            let front = Front::with(&agent, settings);
            let id = front.begin("hold hello");
            let remote = only_task(&agent).id;
            let said = front.until_over(&id);
            assert!(said.starts_with("failed \"\" (timed out: ") && said.contains(reason), "{said}");
            assert!(agent.wait_for_task(&remote, LIMIT, |task| task.state == RemoteState::Canceled));
        },
    );
}
