//! A webhook is replaced, deleted or dropped, or its task is swept, while a delivery is under way.

use std::sync::Arc;

use sabir_store::{DeliveryKind, Retention, TaskNo};
use sabir_testkit::store_contract::fixture::sweep_all;
use tokio::sync::Semaphore;

use super::fixture::*;
use crate::support::Receiver;

/// A task with five events to send, whose first delivery the receiver has read and not answered.
struct UnderWay {
    receiver: Receiver,
    gate: Arc<Semaphore>,
    task: TaskNo,
    dispatcher: Running,
}

async fn under_way(stored: &Stored) -> UnderWay {
    let gate = Arc::new(Semaphore::new(0));
    let behind_gate = Arc::clone(&gate);
    let receiver = Receiver::behaving("127.0.0.1:0", move |stream, _| {
        let gate = Arc::clone(&behind_gate);
        async move {
            drop(gate.acquire().await);
            OK.perform(stream).await;
        }
    })
    .await;
    let task = task_with(stored, "t1", webhook("w", &format!("http://{}/old", receiver.address))).await;
    run_task(stored, task, 5).await;
    let dispatcher = Running::start(stored, settings());
    until("a request is held", async || receiver.requests().len() == 1).await;
    UnderWay { receiver, gate, task, dispatcher }
}

/// Delivers something else, so that whatever the first worker still does has been done as well.
async fn deliver_another(stored: &Stored, counts: &sabir_outbound::webhooks::DeliveryCounts) {
    let other = reacting("127.0.0.1:0", |_| OK).await;
    let task = task_with(stored, "other", webhook("w", &format!("http://{}/other", other.address))).await;
    let before = counts.delivered();
    run_task(stored, task, 20).await;
    until("the other one arrives", async || other.requests().len() >= 20 && counts.delivered() >= before + 20).await;
}

#[tokio::test]
async fn a_webhook_that_is_deleted_gets_nothing_more() {
    with_each_store(async |stored: Stored| {
        let UnderWay { receiver, gate, task, dispatcher } = under_way(&stored).await;
        stored.store.remove_webhooks(task, Some(&config_id("w"))).await.unwrap();
        gate.add_permits(1);
        deliver_another(&stored, &dispatcher.counts).await;
        assert_eq!(receiver.requests().len(), 1);
        until_all_is_noted(&stored).await;
    })
    .await;
}

#[tokio::test]
async fn what_an_operator_drops_is_not_sent() {
    with_each_store(async |stored: Stored| {
        let UnderWay { receiver, gate, dispatcher, .. } = under_way(&stored).await;
        let pending = stored.outbox.deliveries(DeliveryKind::Pending, 0, 9).await.unwrap();
        assert!(stored.outbox.discard(DeliveryKind::Pending, pending[0].number, now()).await.unwrap());
        gate.add_permits(1);
        deliver_another(&stored, &dispatcher.counts).await;
        assert_eq!(receiver.requests().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_webhook_that_is_replaced_sends_the_rest_to_its_new_url() {
    with_each_store(async |stored: Stored| {
        let UnderWay { receiver, gate, task, dispatcher } = under_way(&stored).await;
        let new = reacting("127.0.0.1:0", |_| OK).await;
        set(&stored, task, webhook("w", &format!("http://{}/new", new.address))).await;
        gate.add_permits(1);
        until_all_is_noted(&stored).await;
        deliver_another(&stored, &dispatcher.counts).await;
        assert_eq!(in_order(&arrivals(&new))["t1"], all_of(5), "the first one had not been noted");
        assert_eq!(arrivals(&receiver).len(), 1);
        assert_eq!(arrivals(&receiver)[0].id, arrivals(&new)[0].id, "a duplicate has the same id");
    })
    .await;
}

#[tokio::test]
async fn a_task_that_is_swept_is_no_failure() {
    with_each_store(async |stored: Stored| {
        let UnderWay { receiver, gate, dispatcher, .. } = under_way(&stored).await;
        let retention = Retention { settled_before: None, keep: Some(0), pending_after: None };
        assert_eq!(sweep_all(stored.store.as_ref(), retention).await, 1);
        gate.add_permits(1);
        deliver_another(&stored, &dispatcher.counts).await;
        assert_eq!((receiver.requests().len(), dispatcher.counts.given_up()), (1, 0));
        assert!(!dispatcher.has_ended());
    })
    .await;
}
