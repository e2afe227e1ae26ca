//! The store fails, panics, or has a damaged log, and what reading a long log costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sabir_model::State;
use sabir_outbound::webhooks::DispatcherSettings;
use sabir_store::{MemoryStore, WebhookEvents};
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::store_contract::fixture::{chunk, push, status};

use super::fixture::*;
use crate::support::Receiver;

struct Faulty {
    store: Arc<FaultyStore<MemoryStore>>,
    stored: Stored,
    receiver: Receiver,
}

async fn faulty() -> Faulty {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let stored = Stored { store: store.clone(), outbox: store.clone() };
    Faulty { store, stored, receiver: reacting("127.0.0.1:0", |_| OK).await }
}

#[tokio::test]
async fn a_store_with_trouble_costs_duplicates_and_no_event() {
    type Row = (&'static str, fn(&FaultyStore<MemoryStore>), usize);
    let table: &[Row] = &[
        ("outcomes cannot be noted", |store| store.fail_outcomes(1), 1),
        ("what is due cannot be read", |store| store.fail_looks(1), 0),
        ("reading panics", |store| store.panic_on_reads(2), 0),
    ];
    for (name, fail, duplicates) in table {
        let Faulty { store, stored, receiver } = faulty().await;
        let task = task_with(&stored, "t1", webhook("w", &format!("http://{}/hook", receiver.address))).await;
        run_task(&stored, task, 3).await;
        fail(&store);
        let dispatcher = Running::start(&stored, settings());
        until_all_is_noted(&stored).await;
        let arrivals = arrivals(&receiver);
        assert_eq!(in_order(&arrivals)["t1"], all_of(3), "{name}");
        assert_eq!(arrivals.len(), 3 + duplicates, "{name}");
        assert!(!dispatcher.has_ended(), "{name}");
    }
}

/// As a node that is stopped with SIGSTOP while another one takes over its deliveries.
#[tokio::test]
async fn what_was_due_before_a_freeze_is_looked_at_again() {
    let Faulty { store, stored, receiver } = faulty().await;
    let task = task_with(&stored, "t1", webhook("w", &format!("http://{}/hook", receiver.address))).await;
    run_task(&stored, task, 2).await;
    store.freeze_after_look(Duration::from_secs(4));
    let dispatcher = Running::start(&stored, settings());
    until_all_is_noted(&stored).await;
    // Whatever is sent after this one would have come before it.
    let other = task_with(&stored, "t2", webhook("v", &format!("http://{}/hook", receiver.address))).await;
    run_task(&stored, other, 1).await;
    until("the second task is delivered", async || dispatcher.counts.delivered() > 0).await;
    assert_eq!(in_order(&arrivals(&receiver)).keys().collect::<Vec<_>>(), ["t2"]);
}

/// A read that panics for one task must not keep a processor busy.
#[tokio::test]
async fn a_fault_of_ours_is_postponed_like_a_failure() {
    let Faulty { store, stored, receiver } = faulty().await;
    let task = task_with(&stored, "t1", webhook("w", &format!("http://{}/hook", receiver.address))).await;
    run_task(&stored, task, 1).await;
    store.panic_on_reads(1);
    let dispatcher = Running::start(&stored, settings());
    until_all_is_noted(&stored).await;
    assert_eq!((dispatcher.counts.failed(), dispatcher.counts.delivered()), (1, 1));
}

/// What comes before the damage is delivered; the rest is given up, and other tasks do not notice.
#[tokio::test]
async fn a_damaged_log_is_given_up_once() {
    let store = Arc::new(MemoryStore::new());
    let stored = Stored { store: store.clone(), outbox: store.clone() };
    let receiver = reacting("127.0.0.1:0", |_| OK).await;
    let hook = webhook("w", &format!("http://{}/hook", receiver.address));
    let damaged = task_with(&stored, "damaged", hook.clone()).await;
    run_task(&stored, damaged, 6).await;
    store.corrupt_event(damaged, 4);
    let whole = task_with(&stored, "whole", hook).await;
    run_task(&stored, whole, 2).await;
    let _dispatcher = Running::start(&stored, settings());
    until_all_is_noted(&stored).await;
    let seen = in_order(&arrivals(&receiver));
    assert_eq!((&seen["damaged"], &seen["whole"]), (&vec!["1".to_owned(), "2".to_owned()], &all_of(2)));
    assert_eq!(given_up(&stored).await.len(), 1);
}

/// Folding the task for every delivery would cost the square of its events.
#[tokio::test]
async fn a_long_log_is_folded_once_for_each_turn() {
    let Faulty { store, stored, receiver } = faulty().await;
    let task = task_with(&stored, "t1", webhook("w", &format!("http://{}/hook", receiver.address))).await;
    run_task(&stored, task, 1000).await;
    let _dispatcher = Running::start(&stored, settings());
    until_all_is_noted(&stored).await;
    assert_eq!(in_order(&arrivals(&receiver))["t1"], all_of(1000));
    // A turn has 128 deliveries; on a slow machine it has fewer.
    assert!(store.loads_at() < 100, "{} folds", store.loads_at());
}

/// With room for one large task at a time, there is never more than one request under way, and all arrive.
#[tokio::test]
async fn large_tasks_wait_for_memory() {
    with_each_store(async |stored: Stored| {
        let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counter, highest) = (Arc::clone(&under_way), Arc::clone(&most));
        let receiver = Receiver::behaving("127.0.0.1:0", move |stream, _| {
            let (under_way, most) = (Arc::clone(&counter), Arc::clone(&highest));
            async move {
                most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Long enough for others to arrive meanwhile, if they could.
                tokio::time::sleep(Duration::from_millis(10)).await;
                under_way.fetch_sub(1, Ordering::SeqCst);
                OK.perform(stream).await;
            }
        })
        .await;
        let mut tasks = Vec::new();
        for number in 0..12 {
            let hook = webhook("w", &format!("http://{}/hook", receiver.address));
            let task = task_with(&stored, &format!("t{number}"), hook).await;
            let events = [chunk(&"x".repeat(100_000)), working("1"), chunk(&"y".repeat(1000)), completed()];
            push(stored.store.as_ref(), task, 1, &events).await.unwrap();
            tasks.push(format!("t{number}"));
        }
        let _dispatcher = Running::start(&stored, DispatcherSettings { bytes: 300_000, ..settings() });
        until_all_is_noted(&stored).await;
        let seen = in_order(&arrivals(&receiver));
        for task in tasks {
            assert_eq!(seen[&task], all_of(2));
        }
        assert_eq!(most.load(Ordering::SeqCst), 1);
    })
    .await;
}

/// Events that nobody wants are skipped, however many there are, and the log is not read again and again.
#[tokio::test]
async fn events_that_are_not_wanted_are_skipped() {
    for (events, expected) in [(WebhookEvents::Statuses, 1), (WebhookEvents::All, 102)] {
        let Faulty { stored, receiver, .. } = faulty().await;
        let hook = webhook("w", &format!("http://{}/hook", receiver.address));
        let task = task_with(&stored, "t1", sabir_store::Webhook { events, ..hook }).await;
        let mut log = vec![status(State::Submitted, 2)];
        log.extend((0..100).map(|_| chunk("x")));
        log.push(completed());
        push(stored.store.as_ref(), task, 1, &log).await.unwrap();
        let dispatcher = Running::start(&stored, settings());
        until_all_is_noted(&stored).await;
        assert_eq!(dispatcher.counts.delivered(), expected, "{events:?}");
    }
}
