//! Parked runs: they release their slots while they wait for an answer, and get them back before they continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sabir_engine::{AgentError, Limits, Outcome, Turn};
use sabir_model::{Part, Required, State, Task, TaskId};
use sabir_testkit::scripted::ScriptedAgent;
use tokio::time::sleep;

use crate::fixture::{Fixture, at_once, drain, text, to, within};

/// Counts how many runs work at once. `ask` asks first; `slow` works for ten seconds.
fn working(now: &Arc<AtomicUsize>, most: &Arc<AtomicUsize>) -> ScriptedAgent {
    let (now, most) = (now.clone(), most.clone());
    ScriptedAgent::new(move |turn: Turn| {
        let (now, most) = (now.clone(), most.clone());
        async move {
            let words = turn.message().text();
            if words.starts_with("ask") {
                turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
            }
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::select! {
                () = sleep(Duration::from_secs(if words == "slow" { 10 } else { 1 })) => {}
                () = turn.cancelled() => {}
            }
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, AgentError>(Outcome::Completed(vec![Part::text("done")]))
        }
    })
}

fn limits(concurrent: usize, max_parked: usize) -> Limits {
    Limits::default().concurrent(concurrent).max_parked(max_parked).timeout(Duration::from_secs(5))
}

fn note(task: &Task) -> String {
    task.status.message.as_ref().map(|message| message.text()).unwrap_or_default()
}

async fn until(fixture: &Fixture, task: &TaskId, state: State) -> Task {
    loop {
        let found = fixture.get(task).await;
        if found.status.state == state {
            return found;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn forgotten_questions_do_not_close_an_agent() {
    let (now, most) = (Arc::default(), Arc::default());
    let fixture = Fixture::limited(working(&now, &most), limits(2, 100)).await;
    let mut parked = Vec::new();
    for i in 0..10 {
        parked.push(fixture.task(text(&format!("ask {i}"))).await);
    }
    assert_eq!(fixture.task(text("other work")).await.status.state, State::Completed);
    // All of them are answered at once, and wait for their slots longer than a turn may take.
    for task in &parked {
        fixture.send(to(&task.id, at_once("yes"))).await.unwrap();
    }
    for task in &parked {
        until(&fixture, &task.id, State::Completed).await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 2, "never more than the limit work");
}

#[tokio::test(start_paused = true)]
async fn an_answered_run_waits_for_its_slot_and_goes_before_new_tasks() {
    let (now, most) = (Arc::default(), Arc::default());
    let agent = working(&now, &most);
    let seen = agent.seen();
    let limits = limits(1, 100).timeout(Duration::from_secs(20)).idle_timeout(Duration::from_secs(15));
    let fixture = Fixture::limited(agent, limits).await;
    let parked = fixture.task(text("ask")).await;
    let slow = fixture.task(at_once("slow")).await;
    let later = fixture.task(at_once("later")).await;
    let behind = fixture.task(within(parked.context.as_str(), at_once("behind"))).await;
    fixture.send(to(&parked.id, at_once("yes"))).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    let waiting = fixture.get(&parked.id).await;
    assert_eq!(waiting.status.state, State::InputRequired, "its place is taken, and a crash must not lose the answer");
    assert_eq!(fixture.get(&slow.id).await.status.state, State::Working);
    assert_eq!(note(&fixture.get(&later.id).await), "waiting for the agent, which runs one task at a time");
    until(&fixture, &later.id, State::Completed).await;
    assert_eq!(fixture.get(&parked.id).await.status.state, State::Completed);
    until(&fixture, &behind.id, State::Completed).await;
    assert_eq!(*seen.lock().unwrap(), ["ask", "slow", "later", "behind"]);
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_queued_task_says_what_it_waits_for_as_that_changes() {
    let (now, most) = (Arc::default(), Arc::default());
    let fixture = Fixture::limited(working(&now, &most), limits(1, 100)).await;
    let parked = fixture.task(within("c", text("ask"))).await;
    let behind = fixture.task(within("c", at_once("behind"))).await;
    fixture.task(to(&parked.id, text("yes"))).await;
    let frames =
        drain(&mut fixture.subscribe(&behind.id, Some(0)).await.unwrap_or_else(|_| panic!("it is there"))).await;
    let frames: Vec<String> = frames.into_iter().map(|(_, words)| words).collect();
    let id = &parked.id;
    assert_eq!(note(&behind), format!("waiting for task {id} of this context, which needs an answer"));
    assert_eq!(
        frames,
        [
            "created".to_owned(),
            format!("Submitted waiting for task {id} of this context"),
            "Working".into(),
            "Completed done.".into()
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn beyond_max_parked_runs_keep_their_slots_and_their_questions() {
    let (now, most) = (Arc::default(), Arc::default());
    let fixture = Fixture::limited(working(&now, &most), limits(2, 1)).await;
    let first = fixture.task(text("ask 1")).await;
    let second = fixture.task(text("ask 2")).await;
    assert_eq!((first.status.state, second.status.state), (State::InputRequired, State::InputRequired));
    // The first is parked, the second keeps its slot: one is left.
    assert_eq!(fixture.task(text("work")).await.status.state, State::Completed);
    assert_eq!(fixture.task(to(&second.id, text("yes"))).await.status.state, State::Completed);
    assert_eq!(fixture.task(to(&first.id, text("yes"))).await.status.state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_question_expires_but_not_after_it_was_answered() {
    let agent = |limit: u64| {
        ScriptedAgent::new(move |turn: Turn| async move {
            if turn.message().text() == "slow" {
                sleep(Duration::from_secs(3600)).await;
                return Ok(Outcome::Completed(Vec::new()));
            }
            let limit = Some(Duration::from_secs(limit));
            let answer = turn.ask_within(limit, Required::Input, vec![Part::text("may I?")]).await?;
            let said = answer.map_or("nobody answered".to_owned(), |message| message.text());
            Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(said)]))
        })
    };
    let limits = Limits::default().concurrent(1);
    let fixture = Fixture::limited(agent(60), limits).await;
    let task = fixture.task(text("ask")).await;
    sleep(Duration::from_secs(61)).await;
    assert_eq!(note(&fixture.get(&task.id).await), "nobody answered");

    // Answered in time, and admitted long after.
    let task = fixture.task(text("ask")).await;
    fixture.task(at_once("slow")).await;
    fixture.send(to(&task.id, at_once("yes"))).await.unwrap();
    sleep(Duration::from_secs(1800)).await;
    assert_eq!(fixture.get(&task.id).await.status.state, State::InputRequired);
    assert_eq!(note(&until(&fixture, &task.id, State::Completed).await), "yes");
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_that_waits_for_its_slot_can_be_cancelled() {
    let (now, most) = (Arc::default(), Arc::default());
    let fixture = Fixture::limited(working(&now, &most), limits(1, 100).timeout(None)).await;
    let parked = fixture.task(text("ask")).await;
    fixture.task(at_once("slow")).await;
    fixture.send(to(&parked.id, at_once("yes"))).await.unwrap();
    assert_eq!(fixture.cancel(&parked.id).await.unwrap().status.state, State::Canceled);
    assert_eq!(fixture.task(text("work")).await.status.state, State::Completed);
    assert_eq!(most.load(Ordering::SeqCst), 1);
}
