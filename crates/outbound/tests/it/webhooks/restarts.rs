//! The dispatcher is aborted at any moment and started again on the same store.

use std::sync::Arc;

use sabir_model::Timestamp;
use sabir_outbound::webhooks::Dispatcher;
use sabir_store::{DeliveryKind, Failure};
use tokio::sync::Semaphore;

use super::fixture::*;
use crate::support::Receiver;

#[tokio::test]
async fn after_a_restart_everything_arrives_and_duplicates_have_their_id() {
    with_each_store(async |stored: Stored| {
        let gate = Arc::new(Semaphore::new(0));
        let behind_gate = Arc::clone(&gate);
        let receiver = Receiver::behaving("127.0.0.1:0", move |stream, _| {
            let gate = Arc::clone(&behind_gate);
            async move {
                gate.acquire().await.unwrap().forget();
                OK.perform(stream).await;
            }
        })
        .await;
        let task = task_with(&stored, "t1", webhook("w", &format!("http://{}/hook", receiver.address))).await;
        run_task(&stored, task, 6).await;
        for round in 0..6 {
            let dispatcher = Running::start(&stored, settings());
            let before = receiver.requests().len();
            until("a request is read", async || receiver.requests().len() > before).await;
            if round % 2 == 0 {
                // It is acknowledged, and may or may not have been noted.
                gate.add_permits(1);
            }
            dispatcher.abort().await;
            // Whatever was held is let go: an aborted dispatcher sends nothing more.
            let read = receiver.requests().len();
            gate.add_permits(2);
            for _ in 0..50 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            assert_eq!(receiver.requests().len(), read, "after the end of the dispatcher");
            while let Ok(permit) = gate.try_acquire() {
                permit.forget();
            }
        }
        gate.add_permits(1000);
        let _dispatcher = Running::start(&stored, settings());
        until_all_is_noted(&stored).await;
        assert_eq!(in_order(&arrivals(&receiver))["t1"], all_of(6));
    })
    .await;
}

/// Whoever stops the server need not wait for the next start: what is due and can be delivered is.
#[tokio::test]
async fn what_is_due_is_delivered_before_the_end() {
    with_each_store(async |stored: Stored| {
        let receiver = reacting("127.0.0.1:0", |_| OK).await;
        let url = format!("http://{}/hook", receiver.address);
        for name in ["t1", "t2", "t3", "t4", "t5"] {
            let task = task_with(&stored, name, webhook("w", &url)).await;
            run_task(&stored, task, 3).await;
        }
        let (store, outbox) = (stored.store.clone(), stored.outbox.clone());
        let dispatcher = Dispatcher::new(store, outbox, loopback_client(), settings());
        dispatcher.run(std::future::ready(())).await;
        assert_eq!(pending(&stored).await, 0);
        let seen = in_order(&arrivals(&receiver));
        assert!(seen.len() == 5 && seen.values().all(|labels| *labels == all_of(3)), "{seen:?}");
    })
    .await;
}

/// The clock was wrong when a delivery was postponed, or when an event was stored, and has been set back since.
#[tokio::test]
async fn a_clock_that_was_set_back_delays_nothing() {
    with_each_store(async |stored: Stored| {
        let receiver = reacting("127.0.0.1:0", |_| OK).await;
        let hook = webhook("w", &format!("http://{}/hook", receiver.address));
        let far = Timestamp::from_millis(now().as_millis() + 400 * 24 * 3600 * 1000);
        for name in ["postponed", "stored"] {
            let task = task_with(&stored, name, hook.clone()).await;
            run_task(&stored, task, 1).await;
            let due = stored.outbox.due(&hook.receiver, far, 99).await.unwrap();
            let number = due.iter().find(|due| due.task == task).unwrap().webhook;
            match name {
                "postponed" => {
                    let failure = Failure { reason: "down".to_owned(), time: far };
                    stored.outbox.postpone(number, failure, far).await.unwrap();
                }
                _ => assert!(stored.outbox.retry(DeliveryKind::Pending, number.0, far).await.unwrap()),
            }
        }
        let dispatcher = Running::start(&stored, settings());
        until("both arrive", async || dispatcher.counts.delivered() == 2).await;
    })
    .await;
}

/// A time that no calendar has must not end the dispatcher.
#[tokio::test]
async fn a_time_at_the_end_of_the_calendar_is_no_trap() {
    with_each_store(async |stored: Stored| {
        let receiver = reacting("127.0.0.1:0", |_| OK).await;
        let url = format!("http://{}/hook", receiver.address);
        let task = task_with(&stored, "t1", webhook("w", &url)).await;
        let dispatcher = Running::start(&stored, settings());
        run_task(&stored, task, 2).await;
        until_all_is_noted(&stored).await;
        let end = Timestamp::from_millis(i64::MAX);
        stored.store.set_webhook(task, webhook("w", &url), end).await.unwrap();
        let other = task_with(&stored, "t2", webhook("w", &url)).await;
        run_task(&stored, other, 1).await;
        until("the other one arrives", async || dispatcher.counts.delivered() >= 3).await;
        assert!(!dispatcher.has_ended());
    })
    .await;
}
