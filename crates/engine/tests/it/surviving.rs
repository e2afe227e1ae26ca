//! What survives a restart: runs of agents that can find again what they have begun elsewhere.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{EngineSettings, Limits, Outcome, StopCause, Survives, Turn};
use sabir_model::{Part, State, TaskId};
use sabir_store::{MemoryStore, Store};
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{Fixture, at_once, drain, text, to};
use crate::recovering::crash;

/// Begins something elsewhere, and remembers it in the task. A run that is resumed finds it again: `end` is how it ends,
/// and without it the agent goes on until it is stopped.
fn attaching(end: Option<&'static str>) -> ScriptedAgent {
    let agent = ScriptedAgent::new(move |turn: Turn| async move {
        let memory = turn.task_memory().await?;
        match (turn.is_resumed(), memory, end) {
            (true, Some(place), Some(end)) => Ok(Outcome::Completed(vec![Part::text(format!("{end} of {place}"))])),
            (false, Some(place), _) => Ok(Outcome::Completed(vec![Part::text(format!("again at {place}"))])),
            (_, None, _) if turn.message().text() == "forget" => {
                turn.progress("begun").await;
                turn.cancelled().await;
                Ok(Outcome::Canceled(Vec::new()))
            }
            (_, memory, _) => {
                if memory.is_none() {
                    turn.remember_in_task(Some(format!("place of {}", turn.message().text()))).await;
                }
                turn.progress("begun").await;
                turn.cancelled().await;
                assert_ne!(turn.stop_cause(), Some(StopCause::Canceled), "nobody cancels");
                Ok(Outcome::Canceled(Vec::new()))
            }
        }
    });
    agent.surviving(|run| if run.task_memory.is_some() { Survives::Runs } else { Survives::Questions })
}

async fn until_begun(fixture: &Fixture, task: &TaskId) {
    let mut stream = fixture.subscribe(task, Some(0)).await.unwrap();
    loop {
        let task = fixture.get(task).await;
        if task.status.message.is_some_and(|message| message.text() == "begun") {
            return;
        }
        stream.next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_run_resumes_where_its_agent_has_remembered_what_it_began() {
    for is_killed in [true, false] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let leave = async move |fixture: Fixture| {
            let mut left = Vec::new();
            for words in ["one", "forget"] {
                let task = fixture.task(at_once(words)).await.id;
                until_begun(&fixture, &task).await;
                left.push(task);
            }
            if !is_killed {
                fixture.engine.stop(Duration::ZERO).await;
            }
            left
        };
        let left = crash(store.clone(), attaching(None), leave);
        let fixture = Fixture::on(store, attaching(Some("end")), Limits::default(), EngineSettings::default()).await;
        let mut ends = Vec::new();
        for task in &left {
            drain(&mut fixture.subscribe(task, Some(0)).await.unwrap()).await;
            let task = fixture.get(task).await;
            ends.push((task.status.state, task.status.message.unwrap().text()));
        }
        assert_eq!(ends[0], (State::Completed, "end of place of one".into()), "killed: {is_killed}");
        let (state, reason) = &ends[1];
        assert!(*state == State::Failed && reason.contains("interrupted"), "killed: {is_killed}, {reason}");
    }
}

/// Whatever kills the server each time must not do so for ever; but a deployment is no crash.
#[tokio::test]
async fn only_crashes_count_as_attempts() {
    for (is_killed, expected) in [(true, State::Failed), (false, State::Completed)] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let task = crash(store.clone(), attaching(None), async |fixture: Fixture| {
            let task = fixture.task(at_once("one")).await.id;
            until_begun(&fixture, &task).await;
            task
        });
        for _ in 0..4 {
            let (task, agent) = (task.clone(), attaching(None));
            let runs = agent.seen();
            crash(store.clone(), agent, async move |fixture: Fixture| {
                while runs.lock().unwrap().is_empty() && !fixture.get(&task).await.status.state.is_terminal() {
                    tokio::task::yield_now().await;
                }
                if !is_killed {
                    fixture.engine.stop(Duration::ZERO).await;
                }
            });
        }
        let fixture = Fixture::on(store, attaching(Some("end")), Limits::default(), EngineSettings::default()).await;
        drain(&mut fixture.subscribe(&task, Some(0)).await.unwrap()).await;
        assert_eq!(fixture.get(&task).await.status.state, expected, "killed: {is_killed}");
    }
}

#[tokio::test]
async fn a_task_has_a_memory_of_its_own() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let seen = turn.task_memory().await?.unwrap_or_else(|| "nothing".into());
        turn.remember_in_task(Some(turn.message().text()).filter(|text| text != "forget")).await;
        Ok(Outcome::InputRequired(vec![Part::text(seen)]))
    });
    let fixture = Fixture::with(agent).await;
    let first = fixture.task(text("one")).await;
    let in_context = |words: &str| crate::fixture::within(first.context.as_str(), text(words));
    let second = fixture.task(in_context("two")).await;
    for (task, words, expected) in [
        (&first, "three", "one"),
        (&second, "four", "two"),
        (&first, "forget", "three"),
        (&first, "five", "nothing"),
        (&second, "six", "four"),
    ] {
        let answer = fixture.task(to(&task.id, text(words))).await;
        assert_eq!(answer.status.message.unwrap().text(), expected, "{words}");
    }
    assert_eq!(second.status.message.unwrap().text(), "nothing", "the context does not share it");
}

#[tokio::test]
async fn an_agent_can_wait_until_its_memory_is_stored() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        // Nothing to store is stored at once.
        assert!(turn.stored().await);
        for round in 0..3 {
            turn.remember_in_task(Some(format!("round {round}"))).await;
            assert!(turn.stored().await);
            assert_eq!(turn.task_memory().await?, Some(format!("round {round}")));
        }
        Ok(Outcome::Completed(Vec::new()))
    });
    let fixture = Fixture::with(agent).await;
    assert_eq!(fixture.task(text("one")).await.status.state, State::Completed);
}
