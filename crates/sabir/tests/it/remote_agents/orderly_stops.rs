//! SIGTERM of the front while a remote agent works for it: the remote task is left alone, and taken up at the next start.

use std::time::Duration;

use sabir_testkit::remote::{Operation, RemoteAgent, RemoteProtocol, RemoteState, TasksAfterDeath};

use super::fixture::{Front, LIMIT, for_each, id_of, only_task, sends};

#[test]
fn a_task_goes_on_at_the_next_start_and_is_not_canceled() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::start(*protocol);
            let mut front = Front::of(&agent);
            let id = front.begin("steps 3");
            let remote = only_task(&agent).id;
            agent.release(&remote);
            front.until(&id, |said| said.contains("chunk 1"));
            front.stop();
            assert_eq!(agent.task(&remote).unwrap().state, RemoteState::Working);
            agent.release(&remote);
            assert!(agent.wait_for_task(&remote, LIMIT, |task| task.text().lines().count() == 2));
            front.start();
            agent.release(&remote);
            assert_eq!(front.until_over(&id), "completed \"chunk 1\\nchunk 2\\nchunk 3\\n\"");
            assert_eq!((sends(&agent), agent.count(Operation::Cancel)), (1, 0));
        },
    );
}

/// What ended while the front was down is found.
#[test]
fn a_task_that_ended_meanwhile_is_found_ended() {
    for_each(
        &RemoteProtocol::ALL,
        |protocol| format!("{protocol:?}"),
        |protocol| {
            let agent = RemoteAgent::start(*protocol);
            let mut front = Front::of(&agent);
            let (first, second) = (front.begin("hold fail no luck"), front.begin("hold ask which?"));
            assert!(agent.tasks().wait_until(LIMIT, |tasks| tasks.len() == 2));
            for id in [&first, &second] {
                front.until(id, |said| said.starts_with("working"));
            }
            assert!(
                agent.tasks().wait_until(LIMIT, |tasks| tasks.iter().all(|task| task.state == RemoteState::Working))
            );
            front.stop();
            for task in agent.tasks().all() {
                agent.release(&task.id);
            }
            assert!(agent.tasks().wait_until(LIMIT, |tasks| tasks.iter().all(|task| task.state.is_settled())));
            front.start();
            assert_eq!(front.until_over(&first), "failed \"\" (no luck)");
            front.until(&second, |said| said == "input-required \"\" (which?)");
            front.answer(&second, "blue");
            assert_eq!(front.until_over(&second), "completed \"echo: blue\"");
        },
    );
}

#[test]
fn a_message_that_could_not_be_sent_yet_is_sent_at_the_next_start() {
    let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    let mut front = Front::of(&agent);
    let asking = id_of(&front.send("ask which?"));
    agent.die(TasksAfterDeath::Kept);
    let id = front.begin("hello");
    front.answer_at_once(&asking, "blue");
    std::thread::sleep(Duration::from_secs(1));
    front.stop();
    agent.come_back();
    front.start();
    assert_eq!(front.until_over(&id), "completed \"echo: hello\"");
    assert_eq!(front.until_over(&asking), "completed \"echo: blue\"");
    assert_eq!(agent.tasks().all().len(), 2);
}
