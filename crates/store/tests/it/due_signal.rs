//! Who is woken by an append that makes something due.

use std::collections::HashSet;
use std::pin::pin;

use sabir_model::{Birth, PushConfigId, State};
use sabir_store::{Durability, Outbox, SqliteStore, Store, Webhook, WebhookEvents};
use sabir_testkit::store_contract::fixture::*;

#[tokio::test]
async fn a_receiver_without_room_wakes_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("sabir.db"), Durability::Process).unwrap();
    let signal = store.due_signal();
    for (id, ignored, is_woken) in [
        ("t1", vec![], true),
        ("t2", vec!["https://a"], false),
        ("t3", vec!["https://b"], true),
        ("t4", vec!["https://b", "https://a"], false),
        ("t5", vec![], true),
    ] {
        store.ignore(ignored.iter().map(|name| (*name).to_owned()).collect::<HashSet<_>>());
        let no = create(&store, ["ann", "echo", id, id], 1).await;
        let webhook = Webhook {
            id: PushConfigId::parse(id).unwrap(),
            url: "https://a/hook".to_owned(),
            receiver: "https://a".to_owned(),
            secrets: Vec::new(),
            dialect: Birth(1),
            events: WebhookEvents::Statuses,
        };
        store.set_webhook(no, webhook, at(2)).await.unwrap();
        push(&store, no, 1, &[status(State::Working, 5)]).await.unwrap();
        // Takes the wake-up, if there is one.
        assert_eq!(pin!(signal.notified()).as_mut().enable(), is_woken, "{id}");
    }
}
