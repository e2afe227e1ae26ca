//! Whatever a receiver does for a while, in the end every event has arrived, in order.

use std::sync::Arc;
use std::time::Duration;

use sabir_model::{State, Timestamp};
use sabir_outbound::guard::EgressPolicy;
use sabir_outbound::webhooks::DispatcherSettings;
use sabir_store::Failure;
use sabir_testkit::store_contract::fixture as rows;

use super::fixture::*;
use crate::support::{Names, Receiver, client, ok};

#[tokio::test]
async fn a_receiver_with_trouble_gets_everything_in_order() {
    type Row = (&'static str, fn(usize) -> Reaction);
    let table: &[Row] = &[
        ("healthy", |_| OK),
        ("500 for a while", |n| if n < 5 { Reaction::Answer("500 Internal Server Error\r\n") } else { OK }),
        ("404 for a while", |n| if n < 5 { Reaction::Answer("404 Not Found\r\n") } else { OK }),
        ("flapping", |n| if n % 2 == 0 { Reaction::Answer("503 Service Unavailable\r\n") } else { OK }),
        ("429", |n| if n < 3 { Reaction::Answer("429 Too Many Requests\r\nretry-after: 0\r\n") } else { OK }),
        ("drops the connection after the request", |n| if n % 3 == 0 { Reaction::Drop } else { OK }),
        ("slow", |n| if n < 3 { Reaction::Hold } else { OK }),
    ];
    for (name, reaction) in table {
        with_each_store(async |stored: Stored| {
            let receiver = reacting("127.0.0.1:0", reaction).await;
            let url = format!("http://{}/hook", receiver.address);
            let mut tasks = Vec::new();
            for task in ["t1", "t2", "t3"] {
                tasks.push(task_with(&stored, task, webhook("w", &url)).await);
            }
            let timeout = if *name == "slow" { Duration::from_millis(150) } else { settings().timeout };
            let _dispatcher = Running::start(&stored, DispatcherSettings { timeout, ..settings() });
            for task in tasks {
                run_task(&stored, task, 5).await;
            }
            until_all_is_noted(&stored).await;
            let seen = in_order(&arrivals(&receiver));
            for task in ["t1", "t2", "t3"] {
                assert_eq!(seen[task], all_of(5), "{name}: {task}");
            }
            assert_eq!(given_up(&stored).await, [], "{name}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_receiver_that_is_down_gets_everything_when_it_is_back() {
    with_each_store(async |stored: Stored| {
        let address = tokio::net::TcpListener::bind("127.0.0.3:0").await.unwrap().local_addr().unwrap();
        let task = task_with(&stored, "t1", webhook("w", &format!("http://{address}/hook"))).await;
        let dispatcher = Running::start(&stored, settings());
        run_task(&stored, task, 3).await;
        until("attempts fail", async || dispatcher.counts.failed() >= 3).await;
        let receiver = reacting(&address.to_string(), |_| OK).await;
        until_all_is_noted(&stored).await;
        assert_eq!(in_order(&arrivals(&receiver))["t1"], all_of(3));
        assert_eq!(dispatcher.counts.delivered(), 3);
    })
    .await;
}

#[tokio::test]
async fn gone_means_given_up_at_once() {
    with_each_store(async |stored: Stored| {
        let receiver = reacting("127.0.0.1:0", |_| Reaction::Answer("410 Gone\r\n")).await;
        let task = task_with(&stored, "t1", webhook("w", &format!("http://{}/hook", receiver.address))).await;
        let dispatcher = Running::start(&stored, settings());
        run_task(&stored, task, 2).await;
        until_all_is_noted(&stored).await;
        let reason = "the receiver answered 410 Gone".to_owned();
        assert_eq!(given_up(&stored).await, [(2, reason.clone()), (3, reason)]);
        assert_eq!((receiver.accepts(), dispatcher.counts.given_up()), (2, 2));
    })
    .await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let victim = Receiver::answering("127.0.0.2:0", ok("inside")).await;
    let location: &'static str =
        Box::leak(format!("307 Temporary Redirect\r\nlocation: http://{}/\r\n", victim.address).into_boxed_str());
    let stored = Stored::in_memory();
    let receiver = reacting("127.0.0.1:0", move |n| if n < 3 { Reaction::Answer(location) } else { OK }).await;
    let task = task_with(&stored, "t1", webhook("w", &format!("http://{}/hook", receiver.address))).await;
    let _dispatcher = Running::start(&stored, settings());
    run_task(&stored, task, 2).await;
    until_all_is_noted(&stored).await;
    assert_eq!(in_order(&arrivals(&receiver))["t1"], all_of(2));
    assert_eq!(victim.accepts(), 0);
}

/// The name was allowed when the webhook was set, leads inside when the delivery comes, and is allowed again later.
#[tokio::test]
async fn a_name_that_turns_inside_gets_no_connection_and_recovers() {
    let (allowed, victim) = Receiver::pair(("127.0.0.2", "allowed"), ("127.0.0.1", "inside")).await;
    let names = Names::new();
    names.set("rebinding.example", &["127.0.0.2", "127.0.0.1", "127.0.0.1", "127.0.0.2"]);
    let mut policy = EgressPolicy::default();
    policy.allow_range("127.0.0.2/32").unwrap();
    let client = client(policy, Arc::clone(&names) as _);
    let url = format!("http://rebinding.example:{}/hook", allowed.port());
    client.guard().check_url(&url).await.unwrap();
    let stored = Stored::in_memory();
    let task = task_with(&stored, "t1", webhook("w", &url)).await;
    let dispatcher = Running::with_client(&stored, client, settings());
    run_task(&stored, task, 2).await;
    until_all_is_noted(&stored).await;
    assert_eq!((allowed.accepts(), victim.accepts(), dispatcher.counts.failed()), (2, 0, 2));
}

/// After a success the receiver counts as healthy: one more failure must not have an old event given up.
#[tokio::test]
async fn a_success_begins_the_time_limit_anew() {
    with_each_store(async |stored: Stored| {
        let receiver = reacting("127.0.0.1:0", |n| if n == 1 { Reaction::Drop } else { OK }).await;
        let task = task_with(&stored, "t1", webhook("w", &format!("http://{}/hook", receiver.address))).await;
        let long_ago = Timestamp::from_millis(now().as_millis() - 30 * 3600 * 1000);
        // Both events, and the first failure, are older than the limit.
        let events = [rows::status_with_message(State::Working, 0, "1"), rows::status(State::Completed, 0)];
        rows::push(stored.store.as_ref(), task, 1, &events).await.unwrap();
        let due =
            stored.outbox.due(&webhook("w", &format!("http://{}/hook", receiver.address)).receiver, now(), 9).await;
        let failure = Failure { reason: "down".to_owned(), time: long_ago };
        stored.outbox.postpone(due.unwrap()[0].webhook, failure, long_ago).await.unwrap();
        let _dispatcher = Running::start(&stored, settings());
        until_all_is_noted(&stored).await;
        assert_eq!(in_order(&arrivals(&receiver))["t1"], all_of(2));
        assert_eq!(given_up(&stored).await, []);
    })
    .await;
}

#[tokio::test]
async fn what_fails_for_too_long_is_given_up() {
    with_each_store(async |stored: Stored| {
        let receiver = reacting("127.0.0.1:0", |_| Reaction::Answer("500 Internal Server Error\r\n")).await;
        let task = task_with(&stored, "t1", webhook("w", &format!("http://{}/hook", receiver.address))).await;
        let limit = Duration::from_millis(50);
        let limited = DispatcherSettings { give_up_after: limit, ..settings() };
        let _dispatcher = Running::start(&stored, limited);
        run_task(&stored, task, 2).await;
        until_all_is_noted(&stored).await;
        let events: Vec<u64> = given_up(&stored).await.into_iter().map(|(event, _)| event).collect();
        assert_eq!(events, [2, 3]);
    })
    .await;
}

/// A receiver may ask to be left alone for a day. Where events are given up earlier, the last attempt is made then.
#[tokio::test]
async fn a_long_retry_after_does_not_outlast_the_time_limit() {
    let stored = Stored::in_memory();
    let receiver =
        reacting("127.0.0.1:0", |_| Reaction::Answer("429 Too Many Requests\r\nretry-after: 86400\r\n")).await;
    let task = task_with(&stored, "t1", webhook("w", &format!("http://{}/hook", receiver.address))).await;
    let limit = Duration::from_millis(100);
    let limited = DispatcherSettings { give_up_after: limit, ..settings() };
    let _dispatcher = Running::start(&stored, limited);
    run_task(&stored, task, 1).await;
    until_all_is_noted(&stored).await;
    assert_eq!((given_up(&stored).await.len(), receiver.accepts()), (1, 2));
}
