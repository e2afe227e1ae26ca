//! The health of the engine: concurrent callers share one check of the store.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{EngineSettings, Health, Limits};
use sabir_store::MemoryStore;
use sabir_testkit::faulty::FaultyStore;

use crate::fixture::{Fixture, echo};

async fn fixture() -> (Fixture, Arc<FaultyStore<MemoryStore>>) {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    (Fixture::on(store.clone(), echo(), Limits::default(), EngineSettings::default()).await, store)
}

#[tokio::test(start_paused = true)]
async fn one_check_of_the_store_answers_all_who_ask() {
    let (fixture, store) = fixture().await;
    for expected in 1..=3 {
        let asking: Vec<_> = (0..64)
            .map(|_| {
                let engine = fixture.engine.clone();
                tokio::spawn(async move { engine.health().await })
            })
            .collect();
        for asked in asking {
            assert_eq!(asked.await.unwrap(), Health::Ready);
        }
        assert_eq!(fixture.engine.health().await, Health::Ready);
        assert_eq!(store.checks(), expected);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_does_not_make_the_next_one_check_again() {
    let (fixture, store) = fixture().await;
    for _ in 0..64 {
        let engine = fixture.engine.clone();
        let asking = tokio::spawn(async move { engine.health().await });
        tokio::task::yield_now().await;
        asking.abort();
    }
    assert_eq!(fixture.engine.health().await, Health::Ready);
    assert_eq!(store.checks(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_soon_checked_again() {
    let (fixture, store) = fixture().await;
    assert_eq!(fixture.engine.health().await, Health::Ready);
    store.fill();
    assert_eq!(fixture.engine.health().await, Health::Ready, "as of a moment ago");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(matches!(fixture.engine.health().await, Health::StoreDown(_)));
    fixture.engine.stop(Duration::ZERO).await;
    assert_eq!(fixture.engine.health().await, Health::Stopping, "which is known without a check");
}
