//! Asking for the health of the engine, which anybody may do.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{Health, Limits, Settings};
use sabir_store::MemoryStore;
use sabir_testkit::faulty::FaultyStore;

use crate::desk::{Desk, echo};

async fn desk() -> (Desk, Arc<FaultyStore<MemoryStore>>) {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    (Desk::on(store.clone(), echo(), Limits::default(), Settings::default()).await, store)
}

#[tokio::test(start_paused = true)]
async fn one_check_of_the_store_answers_all_who_ask() {
    let (desk, store) = desk().await;
    for expected in 1..=3 {
        let asking: Vec<_> = (0..64)
            .map(|_| {
                let engine = desk.engine.clone();
                tokio::spawn(async move { engine.health().await })
            })
            .collect();
        for asked in asking {
            assert_eq!(asked.await.unwrap(), Health::Ready);
        }
        assert_eq!(desk.engine.health().await, Health::Ready);
        assert_eq!(store.checks(), expected);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_does_not_make_the_next_one_check_again() {
    let (desk, store) = desk().await;
    for _ in 0..64 {
        let engine = desk.engine.clone();
        let asking = tokio::spawn(async move { engine.health().await });
        tokio::task::yield_now().await;
        asking.abort();
    }
    assert_eq!(desk.engine.health().await, Health::Ready);
    assert_eq!(store.checks(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_soon_checked_again() {
    let (desk, store) = desk().await;
    assert_eq!(desk.engine.health().await, Health::Ready);
    store.fill();
    assert_eq!(desk.engine.health().await, Health::Ready, "as of a moment ago");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(matches!(desk.engine.health().await, Health::StoreDown(_)));
    desk.engine.stop(Duration::ZERO).await;
    assert_eq!(desk.engine.health().await, Health::Stopping, "which is known without a check");
}
