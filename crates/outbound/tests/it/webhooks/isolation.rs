//! Receivers do not delay each other, and a dead one is left alone. These tests count; they measure no time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sabir_model::Timestamp;
use sabir_outbound::webhooks::DispatcherSettings;
use sabir_store::Failure;
use sabir_testkit::store_contract::fixture as rows;
use tokio::sync::Semaphore;

use super::fixture::*;
use crate::support::{LONG, Receiver};

/// A receiver that answers nothing before the gate opens.
async fn gated(gate: &Arc<Semaphore>) -> Receiver {
    let gate = Arc::clone(gate);
    Receiver::behaving("127.0.0.1:0", move |stream, _| {
        let gate = Arc::clone(&gate);
        async move {
            drop(gate.acquire().await);
            OK.perform(stream).await;
        }
    })
    .await
}

/// The slow receivers answer when the fast one has got everything: if it had to wait for them, nothing would end.
async fn check_that_slow_receivers_delay_nobody(stored: Stored, slow: usize, total: usize, fast_tasks: usize) {
    let gate = Arc::new(Semaphore::new(0));
    let mut slow_receivers = Vec::new();
    let mut slow_tasks = Vec::new();
    for number in 0..slow {
        let receiver = gated(&gate).await;
        for task in 0..20 {
            let hook = webhook("w", &format!("http://{}/slow", receiver.address));
            slow_tasks.push(task_with(&stored, &format!("slow-{number}-{task}"), hook).await);
        }
        slow_receivers.push(receiver);
    }
    let _dispatcher = Running::start(&stored, DispatcherSettings { total, ..settings() });
    for task in slow_tasks {
        run_task(&stored, task, 1).await;
    }
    until("slow requests are held", async || slow_receivers.iter().all(|slow| slow.accepts() > 0)).await;

    let fast = reacting("127.0.0.1:0", |_| OK).await;
    for number in 0..fast_tasks {
        let hook = webhook("w", &format!("http://{}/fast", fast.address));
        let task = task_with(&stored, &format!("fast-{number}"), hook).await;
        run_task(&stored, task, 1).await;
    }
    until("the fast receiver has everything", async || fast.accepts() >= fast_tasks).await;
    gate.add_permits(1);
    until_all_is_noted(&stored).await;
    assert_eq!(in_order(&arrivals(&fast)).len(), fast_tasks);
    for receiver in &slow_receivers {
        assert_eq!(in_order(&arrivals(receiver)).len(), 20);
    }
}

#[tokio::test]
async fn one_slow_receiver_does_not_delay_a_thousand_fast_deliveries() {
    with_each_store(|stored| check_that_slow_receivers_delay_nobody(stored, 1, 512, 1000)).await;
}

#[tokio::test]
async fn slow_receivers_do_not_use_up_all_slots() {
    with_each_store(|stored| check_that_slow_receivers_delay_nobody(stored, 6, 32, 50)).await;
}

/// One task after the other waits for a dead receiver; connects are counted until the circuit is open.
#[tokio::test]
async fn a_dead_receiver_gets_few_connects() {
    with_each_store(async |stored: Stored| {
        let dead = reacting("127.0.0.1:0", |_| Reaction::Drop).await;
        let mut tasks = Vec::new();
        for number in 0..200 {
            let hook = webhook("w", &format!("http://{}/dead", dead.address));
            tasks.push(task_with(&stored, &format!("dead-{number}"), hook).await);
        }
        let healthy = reacting("127.0.0.1:0", |_| OK).await;
        let _dispatcher = Running::start(&stored, settings());
        for task in tasks {
            run_task(&stored, task, 1).await;
        }
        // Each of these is a chance to try the dead one too, in vain or not.
        for number in 0..100 {
            let hook = webhook("w", &format!("http://{}/healthy", healthy.address));
            let task = task_with(&stored, &format!("healthy-{number}"), hook).await;
            run_task(&stored, task, 1).await;
            until("it arrives", async || healthy.accepts() > number).await;
        }
        // Five failures open the circuit; the others were under way. A slow machine may see a few probes as well.
        assert!(dead.accepts() < 30, "{} connects", dead.accepts());
    })
    .await;
}

/// Only a probe now and then goes to a receiver that has been dead for a day. What has waited as long is given up all the same.
#[tokio::test]
async fn the_backlog_of_a_dead_receiver_is_given_up_in_time() {
    with_each_store(async |stored: Stored| {
        let dead = reacting("127.0.0.1:0", |_| Reaction::Drop).await;
        let hours = |ago: i64| Timestamp::from_millis(now().as_millis() - ago * 3600 * 1000);
        let hook = webhook("w", &format!("http://{}/dead", dead.address));
        for number in 0..200 {
            let task = task_with(&stored, &format!("old-{number}"), hook.clone()).await;
            let events = [working_at("1", hours(30)), working_at("2", hours(29)), working_at("3", hours(1))];
            for (after, event) in (1..).zip(events) {
                rows::push(stored.store.as_ref(), task, after, &[event]).await.unwrap();
            }
        }
        let first = stored.outbox.due(&hook.receiver, now(), 1).await.unwrap().remove(0);
        let failure = Failure { reason: "down".to_owned(), time: hours(30) };
        stored.outbox.postpone(first.webhook, failure, hours(29)).await.unwrap();
        let _dispatcher = Running::start(&stored, DispatcherSettings { longest_delay: LONG, ..settings() });

        // The few that were tried before the circuit opened have failed once.
        until("what is old is given up", async || given_up(&stored).await.len() >= 2 * 180).await;
        assert!(dead.accepts() < 30, "{} connects", dead.accepts());
        assert!(given_up(&stored).await.iter().all(|(event, _)| [2, 3].contains(event)), "the third is not old");
        assert_eq!(pending(&stored).await, 200, "it waits still");
    })
    .await;
}

/// A second task becomes due while the only delivery of its receiver is held.
#[tokio::test]
async fn a_delivery_under_way_hides_no_later_one() {
    with_each_store(async |stored: Stored| {
        let held = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&held);
        let receiver = Receiver::behaving("127.0.0.1:0", move |stream, request| {
            let is_first_of_later = request.contains("/later") && counter.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                let reaction = match (request.contains("/held"), is_first_of_later) {
                    (true, _) => Reaction::Hold,
                    (_, true) => Reaction::Answer("503 Service Unavailable\r\nretry-after: 1\r\n"),
                    _ => OK,
                };
                reaction.perform(stream).await;
            }
        })
        .await;
        let url = |path: &str| format!("http://{}/{path}", receiver.address);
        let _dispatcher = Running::start(&stored, settings());
        let first = task_with(&stored, "held", webhook("w", &url("held"))).await;
        run_task(&stored, first, 1).await;
        until("it is held", async || receiver.requests().len() == 1).await;
        let second = task_with(&stored, "later", webhook("w", &url("later"))).await;
        run_task(&stored, second, 1).await;
        // The first one is still held, and nothing else wakes the dispatcher.
        until("the second attempt", async || receiver.requests().len() == 3).await;
    })
    .await;
}
