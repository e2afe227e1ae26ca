//! Stopping the engine: what runs, queued tasks and readers get during the grace time and after it.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{AgentError, ArtifactUpdate, EngineSettings, Health, Limits, Outcome, Recovery, Turn};
use sabir_model::{Artifact, Error, Part, Required, State};
use sabir_store::MemoryStore;
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{Fixture, asking, at_once, drain, endless, text, to};

fn slow(seconds: u64) -> ScriptedAgent {
    ScriptedAgent::new(move |turn: Turn| async move {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(seconds)) => Ok::<_, AgentError>(Outcome::Completed(Vec::new())),
            () = turn.cancelled() => Ok(Outcome::Canceled(Vec::new())),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn runs_may_finish_and_the_rest_is_settled() {
    for (seconds, expected) in [(5, State::Completed), (60, State::Failed)] {
        let fixture = Fixture::with(slow(seconds)).await;
        let task = fixture.task(at_once("go")).await;
        let mut stream = fixture.subscribe(&task.id, Some(0)).await.unwrap();
        fixture.engine.stop(Duration::from_secs(10)).await;
        let frames = drain(&mut stream).await;
        assert_eq!(fixture.get(&task.id).await.status.state, expected, "{frames:?}");
        assert!(matches!(fixture.send(text("late")).await, Err(Error::Stopping)));
        assert_eq!(fixture.engine.health().await, Health::Stopping);
    }
}

/// Makes an artifact with this many chunks and works until it must stop.
fn talkative(pieces: usize, bytes: usize) -> ScriptedAgent {
    ScriptedAgent::new(move |turn: Turn| async move {
        let id = turn.new_artifact_id();
        for number in 0..pieces {
            let artifact = Artifact::new(id.clone(), vec![Part::text("x".repeat(bytes))]);
            turn.artifact_update(ArtifactUpdate::new(artifact).append(number > 0)).await;
        }
        turn.progress("all is said").await;
        turn.cancelled().await;
        Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
    })
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_copies_no_large_tasks() {
    for (bytes, expected) in [(1000, 1), (100_000, 0)] {
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        let fixture =
            Fixture::on(store.clone(), talkative(40, bytes), Limits::default(), EngineSettings::default()).await;
        let task = fixture.task(at_once("go")).await;
        while fixture.get(&task.id).await.status.message.is_none_or(|message| message.text() != "all is said") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let before = store.snapshots();
        fixture.engine.stop(Duration::from_secs(10)).await;
        assert_eq!(store.snapshots() - before, expected, "{bytes}");
        let settled = fixture.get(&task.id).await;
        assert_eq!(settled.status.state, State::Failed);
        assert_eq!(settled.artifacts[0].parts[0].as_text().map(str::len), Some(40 * bytes), "nothing is lost");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_knows_until_when_it_must_have_stopped() {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let sender = sender.clone();
        async move {
            assert_eq!(turn.stop_deadline(), None);
            turn.cancelled().await;
            let _ = sender.send(turn.stop_deadline().map(|at| at - tokio::time::Instant::now()));
            Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
        }
    });
    let fixture = Fixture::with(agent).await;
    let canceled = fixture.task(at_once("go")).await;
    fixture.cancel(&canceled.id).await.unwrap();
    assert_eq!(receiver.recv().await.unwrap(), Some(Duration::from_secs(5)));
    fixture.task(at_once("go on")).await;
    fixture.engine.stop(Duration::from_secs(10)).await;
    assert_eq!(receiver.recv().await.unwrap(), Some(Duration::from_secs(2)));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_waiting_tasks_or_queued_ones() {
    let store = Arc::new(MemoryStore::new());
    let limits = Limits::default().concurrent(1);
    let fixture = Fixture::on(store.clone(), endless(), limits, EngineSettings::default()).await;
    fixture.task(at_once("running")).await;
    let queued = fixture.task(at_once("queued")).await;
    fixture.engine.stop(Duration::from_millis(1)).await;
    assert_eq!(fixture.get(&queued.id).await.status.state, State::Submitted, "it runs after the next start");

    let fixture = Fixture::with(asking()).await;
    let waiting = fixture.task(text("ask which?")).await;
    let mut stream = fixture.subscribe(&waiting.id, None).await.unwrap();
    let start = tokio::time::Instant::now();
    fixture.engine.stop(Duration::from_secs(10)).await;
    assert_eq!(drain(&mut stream).await.len(), 1, "the snapshot, and then the end");
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(fixture.get(&waiting.id).await.status.state, State::InputRequired);
}

#[tokio::test(start_paused = true)]
async fn a_run_parked_in_mid_turn_waits_on_if_its_agent_can_resume() {
    let approving = |resumes: bool| {
        let agent = ScriptedAgent::new(|turn: Turn| async move {
            if turn.message().text() == "go" {
                turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
            }
            Ok(Outcome::Completed(vec![Part::text(turn.message().text())]))
        });
        if resumes { agent.resuming() } else { agent }
    };
    for (resumes, expected) in [(true, State::InputRequired), (false, State::Failed)] {
        let store = Arc::new(MemoryStore::new());
        let fixture =
            Fixture::on(store.clone(), approving(resumes), Limits::default(), EngineSettings::default()).await;
        let parked = fixture.task(text("go")).await;
        let start = tokio::time::Instant::now();
        fixture.engine.stop(Duration::from_secs(10)).await;
        assert!(start.elapsed() < Duration::from_secs(1), "nobody waits for an answer");
        assert_eq!(fixture.get(&parked.id).await.status.state, expected);
        let fixture = Fixture::on(store, approving(resumes), Limits::default(), EngineSettings::default()).await;
        assert_eq!(fixture.get(&parked.id).await.status.state, expected);
        if resumes {
            let done = fixture.task(to(&parked.id, text("yes"))).await;
            assert_eq!((done.status.state, done.status.message.unwrap().text()), (State::Completed, "yes".into()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_come_while_others_still_work() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        if turn.message().text() == "ask" {
            turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
        } else {
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    });
    let fixture = Fixture::with(agent).await;
    let working = fixture.task(at_once("work")).await;
    let parked = fixture.task(text("ask")).await;
    let engine = fixture.engine.clone();
    let start = tokio::time::Instant::now();
    let stopping = tokio::spawn(async move { engine.stop(Duration::from_secs(60)).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(matches!(fixture.send(text("new")).await, Err(Error::Stopping)));
    let answered = fixture.task(to(&parked.id, text("yes"))).await;
    assert_eq!(answered.status.state, State::Completed);
    stopping.await.unwrap();
    assert_eq!(fixture.get(&working.id).await.status.state, State::Completed);
    assert!(start.elapsed() < Duration::from_secs(6), "it stops when the last one is through");
}

#[tokio::test(start_paused = true)]
async fn the_grace_is_kept_to_whatever_agents_do() {
    for recovery in [Recovery::Fail, Recovery::Requeue] {
        for grace in [3, 10, 60].map(Duration::from_secs) {
            // It ignores the order to stop.
            let deaf = ScriptedAgent::new(|_: Turn| async move {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
            });
            let settings = EngineSettings { recovery, ..EngineSettings::default() };
            let fixture = Fixture::on(Arc::new(MemoryStore::new()), deaf, Limits::default(), settings).await;
            fixture.task(at_once("go")).await;
            let start = tokio::time::Instant::now();
            fixture.engine.stop(grace).await;
            assert!(start.elapsed() <= grace + Duration::from_millis(50), "{:?} of {grace:?}", start.elapsed());
        }
    }
}
