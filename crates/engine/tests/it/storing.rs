//! What happens when the store is full for a while.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::Builder;
use sabir_engine::{AgentError, ArtifactUpdate, EngineSettings, Health, Limits, Outcome, RetentionPolicy, Turn};
use sabir_model::{Artifact, Error, Part, State};
use sabir_store::MemoryStore;
use sabir_testkit::clock::ManualClock;
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{Fixture, asking, at_once, drain, echo, endless, hosted, text, to};

#[tokio::test(start_paused = true)]
async fn a_send_that_cannot_be_stored_is_refused_and_makes_no_task() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let fixture = Fixture::on(store.clone(), echo(), Limits::default(), EngineSettings::default()).await;
    store.fill();
    assert!(matches!(fixture.send(text("x")).await, Err(Error::StoreFull)));
    assert!(matches!(fixture.send(at_once("x")).await, Err(Error::StoreFull)));
    assert!(matches!(fixture.engine.health().await, Health::StoreDown(_)));
    store.make_room();
    assert_eq!(fixture.task(text("x")).await.status.state, State::Completed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fixture.engine.health().await, Health::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_room_and_loses_nothing() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let id = turn.new_artifact_id();
        for i in 0..3000u32 {
            let artifact = Artifact::new(id.clone(), vec![Part::text(format!("{i} "))]);
            turn.artifact_update(ArtifactUpdate { artifact, append: i > 0, last: i == 2999, metadata: None }).await;
            if i % 500 == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    });
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let fixture = Fixture::on(store.clone(), agent, Limits::default(), EngineSettings::default()).await;
    let mut stream = fixture.stream(text("go")).await;
    tokio::time::sleep(Duration::from_millis(25)).await;
    store.fill();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(fixture.get(stream.task()).await.status.state, State::Working);
    store.make_room();
    let frames = drain(&mut stream).await;
    assert_eq!(frames.len(), 3003);
    assert_eq!(frames.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), (1..=3003).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_message_that_cannot_be_stored_is_not_acknowledged() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let fixture = Fixture::on(store.clone(), endless(), Limits::default(), EngineSettings::default()).await;
    let task = fixture.task(at_once("go")).await;
    store.fill();
    assert!(matches!(fixture.send(to(&task.id, at_once("more"))).await, Err(Error::StoreFull)));
    store.make_room();
    fixture.task(to(&task.id, at_once("once more"))).await;
    let canceled = fixture.cancel(&task.id).await.unwrap();
    let history: Vec<String> = canceled.history.iter().map(|message| message.text()).collect();
    assert_eq!(history, ["go", "once more"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_of_an_end_that_is_not_stored() {
    let agent = || {
        ScriptedAgent::new(|_: Turn| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
        })
    };
    for caller in ["cancels", "sends"] {
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        let fixture = Fixture::on(store.clone(), agent(), Limits::default(), EngineSettings::default()).await;
        let task = fixture.task(at_once("go")).await;
        store.slow_down(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(fixture.get(&task.id).await.status.state, State::Working, "its end is on the way to the store");
        match caller {
            "cancels" => assert!(matches!(fixture.cancel(&task.id).await, Err(Error::NotCancelable(_)))),
            _ => assert!(matches!(fixture.send(to(&task.id, at_once("more"))).await, Err(Error::TaskFinished(_)))),
        }
        assert_eq!(fixture.get(&task.id).await.status.state, State::Completed, "whoever {caller} is told of the end");
    }
}

#[tokio::test]
async fn retention_deletes_settled_tasks_by_age_and_by_number() {
    let clock = Arc::new(ManualClock::at(1_000_000));
    let store = Arc::new(MemoryStore::new());
    let retention = RetentionPolicy { max_age: Some(Duration::from_secs(60)), max_tasks: Some(3), waiting: None };
    let settings = EngineSettings { retention, ..EngineSettings::default() };
    let builder = Builder::new(store.clone()).clock(clock.clone()).settings(settings);
    let fixture =
        Fixture { engine: builder.agent(hosted("demo", asking(), Limits::default())).start().await.unwrap(), store };
    let waiting = fixture.task(text("ask which?")).await;
    for i in 0..5 {
        fixture.task(text(&format!("{i}"))).await;
    }
    assert_eq!(fixture.engine.sweep().await, 2, "three are kept");
    clock.advance(Duration::from_secs(61));
    let young = fixture.task(text("young")).await;
    assert_eq!(fixture.engine.sweep().await, 3, "the old ones go");
    assert_eq!(fixture.get(&young.id).await.status.state, State::Completed);
    assert_eq!(fixture.get(&waiting.id).await.status.state, State::InputRequired, "unfinished tasks stay");
}
