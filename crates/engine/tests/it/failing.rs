//! Defects and damage: whatever goes wrong inside, a task gets an end, and no caller waits for ever.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_engine::{AgentError, ArtifactUpdate, EngineSettings, Limits, Outcome, Recovery, Turn};
use sabir_model::{Artifact, Error, IdempotencyKey, Part, Send, State, Usage};
use sabir_store::{MemoryStore, Store, StoreError};
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::time::{sleep, timeout};

use crate::fixture::{Fixture, PanickingClock, at_once, echo, endless, hosted, text, to};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_driver_that_panics_settles_its_task_by_policy() {
    for (recovery, expected, runs) in [(Recovery::Fail, State::Failed, 1), (Recovery::Requeue, State::Completed, 2)] {
        let (clock, count) = (Arc::new(PanickingClock::default()), Arc::new(AtomicUsize::new(0)));
        let (panicking, counter) = (clock.clone(), count.clone());
        let agent = ScriptedAgent::new(move |turn: Turn| {
            let (panicking, run) = (panicking.clone(), counter.fetch_add(1, Ordering::SeqCst));
            async move {
                if run == 0 {
                    panicking.is_armed.store(true, Ordering::SeqCst);
                    turn.progress("the driver reads the clock for this").await;
                    turn.cancelled().await;
                }
                Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
            }
        });
        let store = Arc::new(MemoryStore::new());
        let settings = EngineSettings { recovery, ..EngineSettings::default() };
        let builder = sabir_engine::Builder::new(store.clone()).settings(settings).clock(clock);
        let builder = builder.agent(hosted("demo", agent, Limits::default()));
        let fixture = Fixture { engine: builder.start().await.unwrap(), store };
        let task = timeout(HOUR, fixture.task(text("go"))).await.expect("the sender is answered");
        assert_eq!((task.status.state, count.load(Ordering::SeqCst)), (expected, runs), "{:?}", task.status);
        let next = timeout(HOUR, fixture.task(text("next"))).await.expect("the place was given back");
        assert_eq!(next.status.state, State::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_run_three_times_in_all() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let settings = || EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() };
    let count = Arc::new(AtomicUsize::new(0));
    let mut task = None;
    for life in 1..=5 {
        let (store, counter, known) = (store.clone(), count.clone(), task.clone());
        // Each process ends with everything in it but the store.
        let id = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let id = runtime.block_on(async {
                let agent = ScriptedAgent::new(move |turn: Turn| {
                    counter.fetch_add(1, Ordering::SeqCst);
                    async move {
                        turn.cancelled().await;
                        Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
                    }
                });
                let fixture = Fixture::on(store, agent, Limits::default(), settings()).await;
                let id = match known {
                    Some(id) => id,
                    None => fixture.task(at_once("poison")).await.id,
                };
                sleep(Duration::from_millis(30)).await;
                id
            });
            runtime.shutdown_background();
            id
        });
        task = Some(id.join().unwrap());
        assert_eq!(count.load(Ordering::SeqCst), life.min(3), "in life {life}");
    }
    let fixture = Fixture::on(store, echo(), Limits::default(), settings()).await;
    let task = fixture.get(&task.unwrap()).await;
    let reason = task.status.message.unwrap().text();
    assert!(task.status.state == State::Failed && reason.contains("3 times"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_good_frees_the_slot_and_callers_get_the_cause() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let limits = Limits::default().concurrent(1);
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        match turn.message().text().as_str() {
            "quick" => Ok::<_, AgentError>(Outcome::Completed(Vec::new())),
            _ => loop {
                turn.progress("x").await;
                tokio::select! {
                    () = sleep(Duration::from_secs(1)) => {}
                    () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
                }
            },
        }
    });
    let fixture = Arc::new(Fixture::on(store.clone(), agent, limits, EngineSettings::default()).await);
    let task = fixture.task(at_once("go")).await;
    let mut stream = fixture.subscribe(&task.id, Some(0)).await.unwrap();
    let (waiter, id) = (fixture.clone(), task.id.clone());
    let waiting = tokio::spawn(async move { waiter.send(to(&id, text("then this"))).await });
    sleep(Duration::from_millis(10)).await;
    store.fail_with(|| StoreError::Failed("the file is gone".into()));
    let answer = timeout(HOUR, waiting).await.expect("a blocking sender is told").unwrap();
    assert!(matches!(&answer, Err(Error::Internal(cause)) if cause.to_string().contains("the file is gone")));
    let broken = loop {
        match timeout(HOUR, stream.next()).await.expect("a stream is told") {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("a stream that broke off must not look complete"),
        }
    };
    assert!(matches!(&broken, Error::Internal(cause) if cause.to_string().contains("the file is gone")));
    store.work_again();
    let quick = timeout(Duration::from_secs(60), fixture.task(text("quick"))).await.expect("the place is free");
    assert_eq!(quick.status.state, State::Completed);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(fixture.get(&task.id).await.status.state, State::Failed);
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_has_finished_survives_a_stop_a_limit_and_a_cancel() {
    let agent = || {
        ScriptedAgent::new(|turn: Turn| async move {
            let artifact = Artifact::new(turn.new_artifact_id(), vec![Part::text("work")]);
            turn.artifact(artifact).await;
            turn.last_word(Outcome::Completed(vec![Part::text("finished")])).await;
            // It cleans up and ignores the order to stop.
            std::future::pending::<()>().await;
            Ok::<_, AgentError>(Outcome::Failed(Vec::new()))
        })
    };
    for recovery in [Recovery::Fail, Recovery::Requeue] {
        let settings = EngineSettings { recovery, ..EngineSettings::default() };
        let fixture = Fixture::on(Arc::new(MemoryStore::new()), agent(), Limits::default(), settings).await;
        let task = fixture.task(at_once("go")).await;
        sleep(Duration::from_millis(10)).await;
        fixture.engine.stop(Duration::from_secs(1)).await;
        let done = fixture.get(&task.id).await;
        assert_eq!((done.status.state, done.artifacts.len()), (State::Completed, 1), "{recovery:?}");
    }
    let fixture = Fixture::with(agent()).await;
    let task = fixture.task(at_once("go")).await;
    sleep(Duration::from_millis(10)).await;
    assert!(matches!(fixture.cancel(&task.id).await, Err(Error::NotCancelable(_))), "the work was finished before");
    assert_eq!(fixture.get(&task.id).await.status.state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn usage_is_that_of_the_turn() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        if turn.message().text() == "first" {
            turn.usage(Usage { input_tokens: 7, output_tokens: 9 }).await;
            return Ok::<_, AgentError>(Outcome::InputRequired(vec![Part::text("more?")]));
        }
        Ok(Outcome::Failed(vec![Part::text("no")]))
    });
    let fixture = Fixture::with(agent).await;
    let task = fixture.task(text("first")).await;
    assert_eq!(task.usage, Some(Usage { input_tokens: 7, output_tokens: 9 }));
    let failed = fixture.task(to(&task.id, text("second"))).await;
    assert_eq!(failed.status.message.unwrap().metadata, None, "the second turn has used nothing");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_by_key_does_not_wait_for_a_deleted_task() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let mut settings = EngineSettings::default();
    settings.retention.max_tasks = Some(0);
    let fixture = Arc::new(Fixture::on(store.clone(), echo(), Limits::default(), settings).await);
    let keyed = |words: &str| Send { idempotency: Some(IdempotencyKey::parse("k").unwrap()), ..text(words) };
    let first = fixture.task(keyed("one")).await;
    // The sweep runs between the lookup of the key and the lookup of its task.
    let sweeper = fixture.clone();
    store.after_next_key(move || {
        let swept = futures_util::FutureExt::now_or_never(sweeper.engine.sweep());
        assert_eq!(swept, Some(1));
    });
    let second = timeout(HOUR, fixture.task(keyed("two"))).await.expect("it does not hang");
    assert_ne!(first.id, second.id);
    assert_eq!(second.status.state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_full_disk_is_bounded_by_bytes() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let handed_over = Arc::new(AtomicUsize::new(0));
    let counter = handed_over.clone();
    const PIECE: usize = 256 * 1024;
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let counter = counter.clone();
        async move {
            let id = turn.new_artifact_id();
            for _ in 0..1000 {
                let artifact = Artifact::new(id.clone(), vec![Part::text("x".repeat(PIECE))]);
                turn.artifact_update(ArtifactUpdate::new(artifact).append(true)).await;
                counter.fetch_add(PIECE, Ordering::SeqCst);
            }
            Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
        }
    });
    let fixture = Fixture::on(store.clone(), agent, Limits::default(), EngineSettings::default()).await;
    store.fill_after(1);
    fixture.task(at_once("go")).await;
    sleep(Duration::from_secs(600)).await;
    let held = handed_over.load(Ordering::SeqCst);
    assert!((PIECE..=4 << 20).contains(&held), "{held} bytes are held");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_is_found_beside_another_message_with_the_same_id() {
    let fixture = Fixture::with(endless()).await;
    let named = |words: &str| {
        let mut send = at_once(words);
        send.message.id = Some(sabir_model::MessageId::parse("same").unwrap());
        send
    };
    let a = fixture.task(named("a")).await.id;
    let b = fixture.task(named("b")).await.id;
    assert_ne!(a, b);
    assert_eq!(fixture.task(named("b")).await.id, b, "the repeated one joins");
    assert_eq!(fixture.task(named("a")).await.id, a);
}

#[tokio::test(start_paused = true)]
async fn metadata_of_requests_reaches_the_agent_and_that_of_events_their_readers() {
    let seen: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let sight = seen.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        sight.lock().unwrap().push(turn.metadata().map(|json| json.as_str().to_owned()));
        async move {
            let metadata = sabir_model::Json::parse(r#"{"step":1e0}"#).unwrap();
            turn.progress_with(vec![Part::text("p")], Some(metadata.clone())).await;
            let artifact = Artifact::new(turn.new_artifact_id(), vec![Part::text("a")]);
            turn.artifact_update(ArtifactUpdate::new(artifact).last(true).metadata(metadata)).await;
            Ok::<_, AgentError>(Outcome::InputRequired(vec![Part::text("more?")]))
        }
    });
    let fixture = Fixture::with(agent).await;
    let json = |text: &str| sabir_model::Json::parse(text).ok();
    let first = fixture.task(Send { metadata: json(r#"{"a":1}"#), ..text("one") }).await;
    fixture.task(Send { metadata: json(r#"{"b":2.0}"#), ..to(&first.id, text("two")) }).await;
    fixture.task(to(&first.id, text("three"))).await;
    let expected = [Some(r#"{"a":1}"#), Some(r#"{"b":2.0}"#), Some(r#"{"a":1}"#)].map(|text| text.map(String::from));
    assert_eq!(*seen.lock().unwrap(), expected);
    let row = fixture.store.unfinished().await.unwrap().remove(0).row;
    let events = fixture.store.events(row.no, 0, 100).await.unwrap();
    let with_metadata = events.iter().filter(|recorded| match &recorded.event {
        sabir_model::Event::Status(change) => change.metadata.is_some(),
        sabir_model::Event::Artifact(chunk) => chunk.metadata.is_some(),
        sabir_model::Event::Created(_) => false,
    });
    assert_eq!(with_metadata.count(), 6);
    let kept = fixture.get(&first.id).await;
    assert_eq!(kept.metadata, json(r#"{"a":1}"#), "the task keeps the metadata that it was made with");
    assert!(kept.history.iter().any(|message| message.request_metadata == json(r#"{"b":2.0}"#)));
}

#[tokio::test(start_paused = true)]
async fn a_turn_costs_the_store_the_same_after_hundreds_of_others() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let agent =
        ScriptedAgent::new(|_: Turn| async { Ok::<_, AgentError>(Outcome::InputRequired(vec![Part::text("?")])) });
    let fixture = Fixture::on(store.clone(), agent, Limits::default(), EngineSettings::default()).await;
    let task = fixture.task(text("go")).await;
    let mut costs = Vec::new();
    for _ in 0..4 {
        let (reads, snapshots) = (store.reads(), store.snapshot_messages());
        for _ in 0..200 {
            fixture.task(Send { history: Some(0), ..to(&task.id, text("on")) }).await;
        }
        costs.push((store.reads() - reads, store.snapshot_messages() - snapshots));
    }
    assert!(costs.iter().all(|(reads, _)| *reads <= costs[0].0), "no turn reads the task again: {costs:?}");
    // A snapshot is written when the log has outgrown the last one, so snapshots cost no more than the log itself.
    let written: usize = costs.iter().map(|(_, messages)| messages).sum();
    assert!(written <= 4 * 2 * 800, "{written} messages in snapshots of 800 turns: {costs:?}");
}
