//! Retention: settled tasks are deleted by age and by number.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{Builder, EngineSettings, Limits, RetentionPolicy};
use sabir_model::State;
use sabir_store::MemoryStore;
use sabir_testkit::clock::ManualClock;

use crate::fixture::{Fixture, asking, hosted, text};

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
