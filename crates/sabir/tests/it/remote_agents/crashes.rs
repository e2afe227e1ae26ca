//! `kill -9` of the front while a remote agent works for it: the task goes on, and no message is sent twice.

use std::time::Duration;

use sabir_testkit::remote::{
    Delay, Ending, Faults, HangUp, HangUpWhen, HttpError, On, Operation, RemoteAgent, RemoteProtocol, RemoteState,
    TasksAfterDeath, Times,
};

use super::fixture::{Front, LIMIT, Reader, for_each, id_of, only_task, sends};

/// The remote agent takes the message, and its answer does not come.
fn silent_answers() -> Faults {
    let delay = Delay { on: On::Only(Operation::Stream), before_head: Duration::from_secs(600) };
    Faults { delay: Some(delay), ..Faults::default() }
}

#[test]
fn a_task_goes_on_where_it_was_when_the_front_was_killed() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::start(*protocol);
            let mut front = Front::of(&agent);
            let mut events = front.stream("steps 6");
            let mut reader = Reader::default();
            let first = events.next_frame().unwrap().unwrap();
            reader.take(&first);
            let id = id_of(&first.payload()["task"]);
            let remote = only_task(&agent).id;
            for _ in 0..3 {
                agent.release(&remote);
            }
            reader.read_lines(&mut events, 3);
            front.kill();
            // Made while nobody listens.
            agent.release(&remote);
            assert!(agent.wait_for_task(&remote, LIMIT, |task| task.text().lines().count() == 4));
            front.start();
            agent.release(&remote);
            agent.release(&remote);
            let mut rest = front.subscribe(&id, reader.last);
            let all = "completed \"chunk 1\\nchunk 2\\nchunk 3\\nchunk 4\\nchunk 5\\nchunk 6\\n\"";
            assert_eq!(reader.finish(&mut rest), all);
            assert_eq!(front.until_over(&id), all);
            assert_eq!(Reader::default().finish(&mut front.subscribe(&id, 0)), all);
            assert_eq!((sends(&agent), agent.tasks().all().len()), (1, 1));
        },
    );
}

/// A crash between the message and its first answer, by what the remote agent can say of it.
#[test]
fn a_message_whose_answer_was_lost_in_a_crash_is_sent_again_only_where_that_is_safe() {
    struct Row {
        name: &'static str,
        protocol: RemoteProtocol,
        knows_keys: bool,
        settings: &'static str,
        expected: &'static str,
        sends: usize,
        tasks: usize,
    }
    let requeue = "[recovery]\nrunning = \"requeue\"";
    let unknown = "failed \"\" (outcome unknown";
    let echo = "completed \"echo: hello\"";
    let row = |name, protocol, knows_keys, settings, expected, sends, tasks| Row {
        name,
        protocol,
        knows_keys,
        settings,
        expected,
        sends,
        tasks,
    };
    use RemoteProtocol::{V1HttpJson, V01JsonRpc, V1JsonRpc, V03JsonRpc};
    let rows = [
        row("1.0", V1JsonRpc, false, "", unknown, 1, 1),
        row("1.0 over HTTP+JSON", V1HttpJson, false, "", unknown, 1, 1),
        row("0.3", V03JsonRpc, false, "", unknown, 1, 1),
        row("with requeue", V1JsonRpc, false, requeue, echo, 2, 2),
        row("with keys", V1JsonRpc, true, "", echo, 2, 1),
        row("0.3 with keys", V03JsonRpc, true, "", echo, 2, 1),
        row("0.1 is asked for our id", V01JsonRpc, false, "", echo, 1, 1),
        row("0.1 with requeue too", V01JsonRpc, false, requeue, echo, 1, 1),
    ];
    for_each(
        &rows,
        |row| row.name.to_owned(),
        |row| {
            let agent = RemoteAgent::builder(row.protocol).with_faults(silent_answers());
            let agent = if row.knows_keys { agent.knowing_idempotency_keys() } else { agent }.start();
            let mut front = Front::with(&agent, row.settings);
            let id = front.begin("hello");
            only_task(&agent);
            front.kill();
            agent.set_faults(Faults::default());
            front.start();
            let said = front.until_over(&id);
            assert!(said.starts_with(row.expected), "{}: {said}", row.name);
            assert_eq!((sends(&agent), agent.tasks().all().len()), (row.sends, row.tasks), "{}", row.name);
            let requests = agent.requests_for(Operation::Stream);
            let keys: Vec<Option<&str>> = requests.iter().map(|request| request.header("idempotency-key")).collect();
            assert!(keys[0].is_some() && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        },
    );
}

/// The remote agent has refused the message for now, so nobody has it; that is remembered.
#[test]
fn a_message_that_never_left_is_sent_after_a_crash() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::start(*protocol);
            let mut front = Front::of(&agent);
            let asking = id_of(&front.send("ask which?"));
            let busy = HttpError::retry_after(503, 60, Times::Always);
            agent.set_faults(Faults { http_error: Some(busy), ..Faults::default() });
            let id = front.begin("hello");
            front.answer_at_once(&asking, "blue");
            for task in [&id, &asking] {
                front.until(task, |said| said.contains("cannot be reached now"));
            }
            front.kill();
            agent.set_faults(Faults::default());
            front.start();
            assert_eq!(front.until_over(&id), "completed \"echo: hello\"");
            assert_eq!(front.until_over(&asking), "completed \"echo: blue\"");
            assert_eq!(agent.tasks().all().len(), 2);
        },
    );
}

/// The same with a remote agent that is down.
#[test]
fn a_message_to_a_remote_agent_that_is_down_is_sent_after_a_crash() {
    let agent = RemoteAgent::start(RemoteProtocol::V01JsonRpc);
    let mut front = Front::of(&agent);
    front.send("hello");
    agent.die(TasksAfterDeath::Kept);
    let id = front.begin("hello again");
    front.until(&id, |said| said.contains("cannot be reached now"));
    front.kill();
    agent.come_back();
    front.start();
    assert_eq!(front.until_over(&id), "completed \"echo: hello again\"");
    assert_eq!(agent.tasks().all().len(), 2);
}

/// The same while the remote agent is still down at the next start.
#[test]
fn a_remote_agent_that_starts_after_the_front_is_waited_for() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let mut front = Front::of(&agent);
    let id = front.begin("steps 2");
    let remote = only_task(&agent).id;
    agent.release(&remote);
    front.until(&id, |said| said.contains("chunk 1"));
    front.kill();
    agent.die(TasksAfterDeath::Kept);
    front.start();
    std::thread::sleep(Duration::from_secs(1));
    agent.come_back();
    agent.release(&remote);
    assert_eq!(front.until_over(&id), "completed \"chunk 1\\nchunk 2\\n\"");
    assert_eq!((sends(&agent), agent.tasks().all().len()), (1, 1));
}

#[test]
fn a_task_that_waits_for_its_caller_still_waits_after_a_crash() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::start(*protocol);
            let mut front = Front::of(&agent);
            let id = id_of(&front.send("ask which?"));
            // Another task of the same agent, so that there is a wrong one.
            front.send("ask something else?");
            front.kill();
            front.start();
            assert!(front.until(&id, |_| true).starts_with("input-required \"\" (which?)"));
            front.answer(&id, "blue");
            assert_eq!(front.until_over(&id), "completed \"echo: blue\"");
            let tasks = agent.tasks().all();
            assert_eq!((tasks.len(), tasks[0].text()), (2, "echo: blue".to_owned()));
            assert_eq!(tasks[1].state, RemoteState::InputRequired);
        },
    );
}

/// The front is killed when the answer is stored and cannot have left: the remote agent is down.
#[test]
fn an_answer_that_was_acknowledged_is_sent_after_a_crash() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::start(*protocol);
            let mut front = Front::of(&agent);
            let id = id_of(&front.send("ask which?"));
            agent.die(TasksAfterDeath::Kept);
            front.answer_at_once(&id, "blue");
            front.kill();
            agent.come_back();
            front.start();
            assert_eq!(front.until_over(&id), "completed \"echo: blue\"");
            let said: Vec<String> = only_task(&agent).history.iter().map(|message| message.text()).collect();
            assert_eq!(said, ["ask which?", "which?", "blue"]);
        },
    );
}

/// The same for an answer that waits for a slot.
#[test]
fn an_answer_that_waited_for_a_slot_is_sent_after_a_crash() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let mut front = Front::with(&agent, "max_concurrent = 1");
    let asking = id_of(&front.send("ask which?"));
    let working = front.begin("steps 2");
    assert!(agent.tasks().wait_until(LIMIT, |tasks| tasks.len() == 2));
    let remote = agent.tasks().all()[1].id.clone();
    agent.release(&remote);
    front.until(&working, |said| said.contains("chunk 1"));
    front.answer_at_once(&asking, "blue");
    front.kill();
    front.start();
    agent.release(&remote);
    assert_eq!(front.until_over(&working), "completed \"chunk 1\\nchunk 2\\n\"");
    assert_eq!(front.until_over(&asking), "completed \"echo: blue\"");
    assert_eq!((sends(&agent), agent.tasks().all().len()), (3, 2));
}

/// The remote agent has the answer, and the front was killed before it knew.
#[test]
fn an_answer_that_arrived_is_not_sent_again_after_a_crash() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::start(*protocol);
            let mut front = Front::of(&agent);
            let id = id_of(&front.send("ask which?"));
            agent.set_faults(silent_answers());
            front.answer_at_once(&id, "slow 0.5 blue");
            let remote = only_task(&agent).id;
            assert!(agent.wait_for_task(&remote, LIMIT, |task| task.history.len() == 3));
            front.kill();
            agent.set_faults(Faults::default());
            front.start();
            let said = front.until_over(&id);
            // 0.1 has no ids of messages, so its history cannot tell; but a task that does not wait has got the answer.
            assert_eq!(said, "completed \"echo: blue\"");
            let history: Vec<String> = only_task(&agent).history.iter().map(|message| message.text()).collect();
            assert_eq!(history, ["ask which?", "which?", "slow 0.5 blue"]);
        },
    );
}

/// A cancel that was acknowledged by nobody yet is passed on by the next start.
#[test]
fn a_cancel_is_passed_on_after_a_crash() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let mut front = Front::of(&agent);
    let id = front.begin("steps 2");
    let remote = only_task(&agent).id;
    agent.release(&remote);
    front.until(&id, |said| said.contains("chunk 1"));
    let hang_up = HangUp {
        on: On::Only(Operation::Cancel),
        when: HangUpWhen::BeforeProcessing,
        how: Ending::Close,
        times: Times::Always,
    };
    agent.set_faults(Faults { hang_up: Some(hang_up), ..Faults::default() });
    let address = front.server().address;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"CancelTask","params":{{"id":"{id}"}}}}"#);
    let mut http = sabir_testkit::http::Http::connect(address).unwrap();
    http.send("POST", "/", &[("A2A-Version", "1.0")], body.as_bytes()).unwrap();
    // The first one is sent at once, before anything of the cancel is stored.
    assert!(agent.wait_for_requests(Operation::Cancel, 2, LIMIT));
    front.kill();
    agent.set_faults(Faults::default());
    front.start();
    let said = front.until_over(&id);
    assert!(said.starts_with("canceled"), "{said}");
    assert!(agent.wait_for_task(&remote, LIMIT, |task| task.state == RemoteState::Canceled));
}

/// Nobody can find the task of a message whose answer was lost, so nobody can say that it was stopped.
#[test]
fn a_cancel_of_what_nobody_can_find_says_so() {
    let slow = |operation, millis| Some(Delay { on: On::Only(operation), before_head: Duration::from_millis(millis) });
    let faults = Faults { delay: slow(Operation::Stream, 60_000), ..Faults::default() };
    let agent = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_faults(faults).start();
    let mut front = Front::of(&agent);
    let id = front.begin("slow 600");
    assert!(agent.wait_for_requests(Operation::Stream, 1, LIMIT));
    front.kill();
    // Long enough that the cancel comes while the next run still looks for the task.
    agent.set_faults(Faults { delay: slow(Operation::Get, 600), ..Faults::default() });
    front.start();
    assert!(agent.wait_for_requests(Operation::Get, 1, LIMIT));
    front.cancel(&id);
    assert_eq!(front.until_over(&id), "canceled \"\" (the remote agent did not confirm that it stopped)");
}
