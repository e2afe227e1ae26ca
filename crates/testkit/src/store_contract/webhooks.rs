//! Webhooks: what becomes due, in which order, and what outcomes of deliveries do.

use sabir_model::{Birth, PushConfigId, State};
use sabir_store::{
    Append, AppendTarget, DeliveryCounts, DeliveryKind, Due, Failure, MAX_WEBHOOKS, NewTask, Outbox, Ownership, Query,
    Retention, SideRow, Store, TaskNo, Webhook, WebhookEvents, WebhookSet,
};

use super::fixture::*;

/// A store with both of its faces.
pub type Both<'a> = (&'a dyn Store, &'a dyn Outbox);

fn webhook(id: &str, receiver: &str, events: WebhookEvents) -> Webhook {
    Webhook {
        id: config_id(id),
        url: format!("{receiver}/hook/{id}"),
        receiver: receiver.to_owned(),
        secrets: format!("secret of {id}").into_bytes(),
        dialect: Birth(3),
        events,
    }
}

fn config_id(id: &str) -> PushConfigId {
    PushConfigId::parse(id).expect("an id")
}

async fn set(store: &dyn Store, no: TaskNo, id: &str, moment: i64) {
    let set = store.set_webhook(no, webhook(id, "https://a", WebhookEvents::Statuses), at(moment)).await;
    assert_eq!(set.expect("a webhook"), WebhookSet::Done);
}

/// What is due at a receiver: the webhook, the last event that is handled, and how often the next was tried.
async fn due(outbox: &dyn Outbox, receiver: &str, moment: i64) -> String {
    let due = due_rows(outbox, receiver, moment).await;
    let tell = |due: &Due| match due.retry {
        Some((_, event)) => format!("{} again {event}", due.settings.id),
        None => format!("{} after {} tried {}", due.settings.id, due.sent, due.attempts),
    };
    due.iter().map(tell).collect::<Vec<_>>().join(", ")
}

async fn due_rows(outbox: &dyn Outbox, receiver: &str, moment: i64) -> Vec<Due> {
    outbox.due(receiver, at(moment), 100).await.expect("what is due")
}

async fn only_due(outbox: &dyn Outbox) -> Due {
    let mut rows = due_rows(outbox, "https://a", 999).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

async fn receivers(outbox: &dyn Outbox) -> String {
    let receivers = outbox.receivers().await.expect("receivers");
    let tell = |(receiver, time): &(String, sabir_model::Timestamp)| {
        format!("{receiver} {}", time.as_millis() - at(0).as_millis())
    };
    receivers.iter().map(tell).collect::<Vec<_>>().join(", ")
}

fn failure(reason: &str, moment: i64) -> Failure {
    Failure { reason: reason.to_owned(), time: at(moment) }
}

async fn deliveries(outbox: &dyn Outbox, kind: DeliveryKind) -> String {
    let rows = outbox.deliveries(kind, 0, 100).await.expect("deliveries");
    let tell = |row: &sabir_store::Delivery| {
        let time = |time: Option<sabir_model::Timestamp>| {
            time.map_or("-".to_owned(), |time| (time.as_millis() - at(0).as_millis()).to_string())
        };
        let reason = row.reason.as_deref().unwrap_or("-");
        let (since, next) = (time(row.since), time(row.next));
        format!(
            "{} of {} at {} tried {} {reason} since {since} next {next}",
            row.webhook, row.task, row.event, row.attempts
        )
    };
    rows.iter().map(tell).collect::<Vec<_>>().join(", ")
}

pub async fn a_webhook_is_due_when_a_status_is_stored((store, outbox): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c"], 1).await;
    set(store, no, "w1", 2).await;
    assert_eq!((due(outbox, "https://a", 999).await, receivers(outbox).await), (String::new(), String::new()));
    push(store, no, 1, &[chunk("one")]).await.unwrap();
    push(store, no, 2, &[status(State::Submitted, 3)]).await.unwrap();
    assert_eq!(due(outbox, "https://a", 999).await, "", "neither artifacts nor `submitted` are sent");
    push(store, no, 3, &[status(State::Working, 5), chunk("two")]).await.unwrap();
    assert_eq!(due(outbox, "https://a", 4).await, "");
    assert_eq!(due(outbox, "https://a", 5).await, "w1 after 1 tried 0");
    assert_eq!(receivers(outbox).await, "https://a 5");
    let row = only_due(outbox).await;
    assert_eq!((row.task, row.settings), (no, webhook("w1", "https://a", WebhookEvents::Statuses)));
}

pub async fn a_webhook_for_all_events_is_due_with_an_artifact((store, outbox): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c"], 1).await;
    store.set_webhook(no, webhook("w1", "https://a", WebhookEvents::All), at(2)).await.unwrap();
    push(store, no, 1, &[chunk("one")]).await.unwrap();
    assert_eq!(due(outbox, "https://a", 999).await, "w1 after 1 tried 0");
}

pub async fn a_webhook_that_comes_with_its_task_gets_everything((store, outbox): Both<'_>) {
    let (of, by, id, place) = (owner("ann"), agent("echo"), task("t1"), context("c"));
    let new =
        NewTask { owner: &of, agent: &by, task: &id, context: &place, born: Birth(3), key: None, send_digest: None };
    let (creation, end) = (created(1), status(State::Completed, 2));
    let side_rows = [SideRow::Webhook(Box::new(webhook("w1", "https://a", WebhookEvents::Statuses)))];
    let events = [&creation, &end];
    let append = Append {
        target: AppendTarget::New(new),
        events: &events,
        after: 0,
        snapshot: None,
        side_rows: &side_rows,
        ownership: Ownership::default(),
    };
    let no = store.append(append).await.unwrap().task;
    assert_eq!(due(outbox, "https://a", 999).await, "w1 after 0 tried 0");
    assert_eq!(store.webhooks(no).await.unwrap().len(), 1);
}

pub async fn deliveries_follow_the_log((store, outbox): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c"], 1).await;
    set(store, no, "w1", 2).await;
    push(store, no, 1, &[status(State::Working, 5), status(State::Working, 6)]).await.unwrap();
    let first = only_due(outbox).await.webhook;
    // While the first is under way, more is stored.
    push(store, no, 3, &[status(State::Completed, 7)]).await.unwrap();
    assert!(outbox.delivered(first, 2, at(8)).await.unwrap());
    assert_eq!(due(outbox, "https://a", 999).await, "w1 after 2 tried 0");
    outbox.delivered(first, 3, at(8)).await.unwrap();
    assert_eq!(due(outbox, "https://a", 999).await, "w1 after 3 tried 0");
    // Everything is sent; whether this caller may go on with what comes next is the store's choice.
    outbox.delivered(first, 4, at(8)).await.unwrap();
    assert_eq!((due(outbox, "https://a", 999).await, receivers(outbox).await), (String::new(), String::new()));
    // An outcome that is told twice, or late, moves nothing back.
    assert!(!outbox.delivered(first, 2, at(9)).await.unwrap());
    assert_eq!(due(outbox, "https://a", 999).await, "");
}

pub async fn a_settled_task_sends_its_last_event((store, outbox): Both<'_>) {
    let no = create_in(store, ["ann", "echo", "t1", "c"], State::Completed, 5).await;
    set(store, no, "w1", 9).await;
    assert_eq!(due(outbox, "https://a", 9).await, "w1 after 1 tried 0");
    let first = only_due(outbox).await.webhook;
    outbox.delivered(first, 2, at(10)).await.unwrap();
    assert_eq!(due(outbox, "https://a", 999).await, "");
    // Whoever sets it again wants it again, and an outcome of the earlier one does not count.
    set(store, no, "w1", 11).await;
    outbox.delivered(first, 2, at(12)).await.unwrap();
    assert_eq!(due(outbox, "https://a", 999).await, "w1 after 1 tried 0");
}

pub async fn a_webhook_that_is_replaced_keeps_what_is_to_be_sent((store, outbox): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c"], 1).await;
    set(store, no, "w1", 2).await;
    push(store, no, 1, &[status(State::Working, 5)]).await.unwrap();
    let old = only_due(outbox).await.webhook;
    outbox.postpone(old, failure("down", 6), at(500)).await.unwrap();
    store.set_webhook(no, webhook("w1", "https://b", WebhookEvents::Statuses), at(7)).await.unwrap();
    assert_eq!(receivers(outbox).await, "https://b 7");
    assert_eq!(due(outbox, "https://b", 7).await, "w1 after 1 tried 0");
    assert!(!outbox.delivered(old, 2, at(8)).await.unwrap(), "it is another webhook now");
    outbox.give_up(old, 2, failure("late", 8)).await.unwrap();
    assert_eq!(deliveries(outbox, DeliveryKind::GivenUp).await, "");
    assert_eq!(store.webhooks(no).await.unwrap().len(), 1);
}

pub async fn a_failed_delivery_is_due_later((store, outbox): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c"], 1).await;
    set(store, no, "w1", 2).await;
    push(store, no, 1, &[status(State::Working, 5)]).await.unwrap();
    let number = only_due(outbox).await.webhook;
    outbox.postpone(number, failure("down", 6), at(20)).await.unwrap();
    outbox.postpone(number, failure("still down", 21), at(50)).await.unwrap();
    push(store, no, 2, &[status(State::Working, 25)]).await.unwrap();
    assert_eq!(due(outbox, "https://a", 49).await, "");
    assert_eq!(receivers(outbox).await, "https://a 50");
    assert_eq!(due(outbox, "https://a", 50).await, "w1 after 1 tried 2");
    assert_eq!(only_due(outbox).await.failing_since, Some(at(6)));
    assert_eq!(outbox.failing_since("https://a").await.unwrap(), Some(at(6)));
    assert_eq!(outbox.failing_since("https://b").await.unwrap(), None);
    let pending = "w1 of t1 at 1 tried 2 still down since 6 next 50";
    assert_eq!(deliveries(outbox, DeliveryKind::Pending).await, pending);
    assert!(outbox.retry(DeliveryKind::Pending, number.0, at(30)).await.unwrap());
    assert_eq!(due(outbox, "https://a", 30).await, "w1 after 1 tried 2");
    outbox.delivered(number, 3, at(31)).await.unwrap();
    assert_eq!(deliveries(outbox, DeliveryKind::Pending).await, "");
    assert!(!outbox.retry(DeliveryKind::Pending, number.0, at(30)).await.unwrap(), "there is nothing to be sent");
    push(store, no, 3, &[status(State::Working, 40), status(State::Working, 41)]).await.unwrap();
    assert!(outbox.discard(DeliveryKind::Pending, number.0, at(42)).await.unwrap());
    assert_eq!(due(outbox, "https://a", 999).await, "");
    push(store, no, 5, &[status(State::Completed, 50)]).await.unwrap();
    assert_eq!(due(outbox, "https://a", 999).await, "w1 after 5 tried 0", "what comes later is sent");
}

pub async fn what_is_given_up_can_be_retried_or_dropped((store, outbox): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c"], 1).await;
    set(store, no, "w1", 2).await;
    push(store, no, 1, &[status(State::Working, 5), status(State::Working, 6)]).await.unwrap();
    let number = only_due(outbox).await.webhook;
    outbox.postpone(number, failure("down", 7), at(8)).await.unwrap();
    outbox.give_up(number, 2, failure("gone", 9)).await.unwrap();
    assert_eq!(due(outbox, "https://a", 999).await, "w1 after 2 tried 0");
    assert_eq!(outbox.delivery_counts().await.unwrap(), DeliveryCounts { pending: 1, given_up: 1 });
    assert_eq!(only_due(outbox).await.failing_since, Some(at(7)), "nothing was delivered since");
    outbox.give_up(number, 3, failure("gone too", 10)).await.unwrap();
    assert_eq!(due(outbox, "https://a", 999).await, "");
    let both = "w1 of t1 at 2 tried 2 gone since 9 next -, w1 of t1 at 3 tried 1 gone too since 10 next -";
    assert_eq!(deliveries(outbox, DeliveryKind::GivenUp).await, both);
    assert_eq!(outbox.delivery_counts().await.unwrap(), DeliveryCounts { pending: 0, given_up: 2 });

    let rows = outbox.deliveries(DeliveryKind::GivenUp, 0, 100).await.unwrap();
    let after_first = outbox.deliveries(DeliveryKind::GivenUp, rows[0].number, 1).await.unwrap();
    assert_eq!(after_first, rows[1..]);
    for row in &rows {
        assert!(outbox.retry(DeliveryKind::GivenUp, row.number, at(20)).await.unwrap());
    }
    assert_eq!(receivers(outbox).await, "https://a 20");
    assert_eq!(due(outbox, "https://a", 20).await, "w1 again 2, w1 again 3");
    let retries: Vec<_> = due_rows(outbox, "https://a", 20).await.iter().filter_map(|due| due.retry).collect();
    outbox.retried(retries[0].0, None).await.unwrap();
    outbox.retried(retries[1].0, Some(failure("again", 21))).await.unwrap();
    assert_eq!(due(outbox, "https://a", 999).await, "");
    assert_eq!(deliveries(outbox, DeliveryKind::GivenUp).await, "w1 of t1 at 3 tried 2 again since 21 next -");
    assert!(outbox.discard(DeliveryKind::GivenUp, rows[1].number, at(30)).await.unwrap());
    assert!(!outbox.discard(DeliveryKind::GivenUp, rows[1].number, at(30)).await.unwrap());
    assert_eq!(deliveries(outbox, DeliveryKind::GivenUp).await, "");
}

pub async fn a_retry_waits_for_no_later_delivery((store, outbox): Both<'_>) {
    for (id, moment) in [("t1", 5), ("t2", 30), ("t3", 10)] {
        let no = create(store, ["ann", "echo", id, id], 1).await;
        set(store, no, id, 2).await;
        push(store, no, 1, &[status(State::Working, moment)]).await.unwrap();
    }
    let first = due_rows(outbox, "https://a", 5).await[0].webhook;
    outbox.give_up(first, 2, failure("gone", 6)).await.unwrap();
    let dead = outbox.deliveries(DeliveryKind::GivenUp, 0, 100).await.unwrap();
    assert!(outbox.retry(DeliveryKind::GivenUp, dead[0].number, at(20)).await.unwrap());
    let all = "t3 after 1 tried 0, t1 again 2, t2 after 1 tried 0";
    assert_eq!(due(outbox, "https://a", 999).await, all);
    let limited = outbox.due("https://a", at(999), 2).await.unwrap();
    assert_eq!(limited.iter().map(|due| due.due).collect::<Vec<_>>(), [at(10), at(20)]);
}

pub async fn a_clock_that_was_set_back_leaves_nothing_behind((store, outbox): Both<'_>) {
    for (id, moment) in [("stored", 500), ("postponed", 5), ("waits", 6), ("given-up", 7)] {
        let no = create(store, ["ann", "echo", id, id], 1).await;
        set(store, no, id, 2).await;
        push(store, no, 1, &[status(State::Working, moment)]).await.unwrap();
    }
    let rows = due_rows(outbox, "https://a", 10).await;
    outbox.postpone(rows[0].webhook, failure("down", 400), at(600)).await.unwrap();
    outbox.postpone(rows[1].webhook, failure("down", 8), at(50)).await.unwrap();
    outbox.give_up(rows[2].webhook, 2, failure("gone", 8)).await.unwrap();
    let dead = outbox.deliveries(DeliveryKind::GivenUp, 0, 100).await.unwrap();
    assert!(outbox.retry(DeliveryKind::GivenUp, dead[0].number, at(700)).await.unwrap());
    outbox.clock_was_set(at(20), at(100)).await.unwrap();
    let now = "stored after 1 tried 0, postponed after 1 tried 1, given-up again 2";
    assert_eq!(due(outbox, "https://a", 20).await, now);
    assert_eq!(due(outbox, "https://a", 50).await, format!("{now}, waits after 1 tried 1"));
}

pub async fn receivers_do_not_hide_each_other((store, outbox): Both<'_>) {
    for (id, receiver, moment) in
        [("t1", "https://b", 30), ("t2", "https://a", 20), ("t3", "https://b", 10), ("t4", "https://c", 40)]
    {
        let no = create(store, ["ann", "echo", id, id], 1).await;
        store.set_webhook(no, webhook(id, receiver, WebhookEvents::Statuses), at(2)).await.unwrap();
        push(store, no, 1, &[status(State::Working, moment)]).await.unwrap();
    }
    assert_eq!(receivers(outbox).await, "https://a 20, https://b 10, https://c 40");
    assert_eq!(due(outbox, "https://b", 999).await, "t3 after 1 tried 0, t1 after 1 tried 0", "the longest due first");
    assert_eq!(outbox.due("https://b", at(999), 1).await.unwrap().len(), 1);
}

pub async fn webhooks_are_listed_and_removed((store, outbox): Both<'_>) {
    let no = create_in(store, ["ann", "echo", "t1", "c"], State::Completed, 1).await;
    let other = create_in(store, ["ann", "echo", "t2", "c"], State::Completed, 1).await;
    for id in ["w2", "w1", "w3"] {
        set(store, no, id, 2).await;
    }
    set(store, other, "w1", 2).await;
    let listed = async || {
        let all = store.webhooks(no).await.unwrap();
        all.iter().map(|webhook| webhook.id.as_str().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listed().await, "w2 w1 w3");
    set(store, no, "w2", 3).await;
    assert_eq!(listed().await, "w1 w3 w2");
    store.remove_webhooks(no, Some(&config_id("w3"))).await.unwrap();
    store.remove_webhooks(no, Some(&config_id("unknown"))).await.unwrap();
    assert_eq!(listed().await, "w1 w2");
    let first = due_rows(outbox, "https://a", 999).await;
    let first = first.iter().find(|due| due.task == no && due.settings.id.as_str() == "w1").unwrap();
    outbox.give_up(first.webhook, 2, failure("gone", 4)).await.unwrap();
    store.remove_webhooks(no, None).await.unwrap();
    assert_eq!(listed().await, "");
    assert_eq!(deliveries(outbox, DeliveryKind::GivenUp).await, "");
    assert_eq!(due(outbox, "https://a", 999).await, "w1 after 1 tried 0", "the other task's is still there");
}

pub async fn a_task_has_so_many_webhooks_at_most((store, _): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c"], 1).await;
    for number in 0..MAX_WEBHOOKS {
        set(store, no, &format!("w{number}"), 2).await;
    }
    let one_more = |id: &str| store.set_webhook(no, webhook(id, "https://a", WebhookEvents::Statuses), at(3));
    assert_eq!(one_more("another").await.unwrap(), WebhookSet::TooMany);
    assert_eq!(one_more("w1").await.unwrap(), WebhookSet::Done, "one of them can be replaced");
    let unknown = store.set_webhook(TaskNo(77), webhook("w", "https://a", WebhookEvents::Statuses), at(3));
    assert_eq!(unknown.await.unwrap(), WebhookSet::NoTask);
}

pub async fn retention_spares_what_is_to_be_sent((store, outbox): Both<'_>) {
    let no = create_in(store, ["ann", "echo", "t1", "c"], State::Completed, 10).await;
    create_in(store, ["ann", "echo", "t2", "c"], State::Completed, 20).await;
    set(store, no, "w1", 21).await;
    let retention =
        |after: i64| Retention { settled_before: Some(at(100)), keep: None, pending_after: Some(at(after)) };
    assert_eq!(sweep_all(store, retention(5)).await, 1);
    let listed = async || ids(&list(store, Query { limit: 10, ..all_of("ann") }).await.tasks);
    assert_eq!(listed().await, "t1");
    assert_eq!(sweep_all(store, retention(10)).await, 1, "not for ever");
    assert_eq!(listed().await, "");
    assert_eq!(
        (receivers(outbox).await, deliveries(outbox, DeliveryKind::Pending).await),
        (String::new(), String::new())
    );
    assert_eq!(store.webhooks(no).await.unwrap(), []);
}

pub async fn a_task_can_be_loaded_as_of_any_event((store, _): Both<'_>) {
    let no = create(store, ["ann", "echo", "t1", "c"], 1).await;
    let long = "x".repeat(3000);
    let mut after = 1;
    for round in 0..30 {
        let events =
            [status(State::Working, round + 2), chunk(&long), status_with_message(State::Working, round + 2, "words")];
        let whole = load(store, no).await;
        // Some with a snapshot of the task, so that a later moment begins behind an earlier one.
        let appended = push(store, no, after, &events[..1 + (round as usize % 3)]).await.unwrap();
        assert_eq!(store.load_at(no, after).await.unwrap().unwrap(), whole);
        after = appended.last;
    }
    let row = find(store, "ann", None, "t1").await.unwrap();
    let last = load(store, no).await;
    push_with(store, no, after, &[status(State::Completed, 99)], None, &[]).await.unwrap();
    assert_eq!(store.load_at(no, row.seq).await.unwrap().unwrap(), last);
    assert_eq!(store.load_at(no, row.seq + 1).await.unwrap().unwrap(), load(store, no).await);
    for event in [0, row.seq + 2, u64::MAX] {
        assert_eq!(store.load_at(no, event).await.unwrap(), None, "event {event}");
    }
    assert_eq!(store.load_at(TaskNo(77), 1).await.unwrap(), None);
}

pub async fn who_waits_for_something_due_is_woken((store, outbox): Both<'_>) {
    let signal = outbox.due_signal();
    let no = create(store, ["ann", "echo", "t1", "c"], 1).await;
    set(store, no, "w1", 2).await;
    push(store, no, 1, &[status(State::Working, 5)]).await.unwrap();
    signal.notified().await;
    assert_eq!(due(outbox, "https://a", 999).await, "w1 after 1 tried 0");
}
