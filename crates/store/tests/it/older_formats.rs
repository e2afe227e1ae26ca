//! Files that older versions of the server wrote: opening migrates them, and nothing is lost.
//!
//! Each file was made by the real program of its time, which got tasks of every kind and was then killed. Next to it is
//! what that program answered about its tasks over HTTP. The files are kept without their zeros: the total size, then
//! pieces of offset, length and bytes.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use sabir_model::{AgentId, Content, IdempotencyKey, Message, Owner, Part, Role, State, Task, Timestamp, Wanted};
use sabir_store::{Delivery, DeliveryKind, Durability, Outbox, Query, Retention, SqliteStore, Store};
use sabir_testkit::store_contract::fixture::{all_of, at, fold, ids, list, load, push, status, sweep_all};

const FORMATS: [(&str, &[u8], &str); 4] = [
    ("format 1", include_bytes!("older_formats/format1.sparse"), include_str!("older_formats/format1.txt")),
    ("format 2", include_bytes!("older_formats/format2.sparse"), include_str!("older_formats/format2.txt")),
    ("format 3", include_bytes!("older_formats/format3.sparse"), include_str!("older_formats/format3.txt")),
    ("format 4", include_bytes!("older_formats/format4.sparse"), include_str!("older_formats/format4.txt")),
];

/// Writes the file with its zeros.
fn unfold(sparse: &[u8], path: &Path) {
    let number = |at: usize| u32::from_be_bytes(sparse[at..at + 4].try_into().unwrap()) as usize;
    let mut file = vec![0; number(0)];
    let mut at = 4;
    while at < sparse.len() {
        let (offset, length) = (number(at), number(at + 4));
        file[offset..offset + length].copy_from_slice(&sparse[at + 8..at + 8 + length]);
        at += 8 + length;
    }
    fs::write(path, file).unwrap();
}

fn everything() -> Query {
    Query { owner: Owner::anonymous(), ..all_of("nobody") }
}

fn describe(task: &Task) -> String {
    let state = serde_json::to_value(task.status.state).unwrap();
    let (id, agent, context) = (&task.id, &task.agent, &task.context);
    let mut lines = vec![format!("{id} of {agent} in {context}: {}", state.as_str().unwrap())];
    lines.extend(task.status.message.as_ref().map(|message| format!("  status: {}", parts(&message.parts))));
    for message in &task.history {
        let role = if message.role == Role::User { "user" } else { "agent" };
        lines.push(format!("  {role}: {}", parts(&message.parts)));
    }
    lines.extend(task.artifacts.iter().map(|artifact| format!("  artifact: {}", parts(&artifact.parts))));
    lines.join("\n")
}

fn parts(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(data) => format!("data {}", data.as_str()),
        Content::Bytes(bytes) => format!("bytes {}", bytes.as_str()),
        Content::Url(url) => format!("url {url}"),
    });
    let text = texts.collect::<Vec<_>>().join(" | ").replace('\n', "/");
    if text.len() <= 80 { text } else { format!("{}...{}", &text[..40], text.len()) }
}

#[tokio::test]
async fn files_of_older_formats_are_read_and_brought_up() {
    for (name, sparse, told) in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sabir.db");
        unfold(sparse, &path);
        let expected: Vec<&str> = told.trim_end().split_inclusive('\n').collect();
        let tasks = expected.iter().filter(|line| !line.starts_with(' ')).count();

        // The first time it is migrated, the second time it is opened like any other.
        for round in 0..2 {
            let store = SqliteStore::open(&path, Durability::Process).unwrap();
            let page = list(&store, everything()).await;
            assert_eq!((page.tasks.len(), page.total), (tasks, tasks as u64), "{name}");
            let mut described: Vec<String> = page.tasks.iter().map(describe).collect();
            described.sort();
            assert_eq!(described.join("\n") + "\n", told, "{name} in round {round}");

            let light = list(&store, Query { artifacts: Wanted::No, ..everything() }).await.tasks;
            for (task, light) in page.tasks.iter().zip(&light) {
                let row = store.find(&task.owner, Some(&task.agent), &task.id).await.unwrap().unwrap();
                assert_eq!((row.state, row.time, row.seq), (task.status.state, task.status.time, task.seq));
                assert_eq!(&load(&store, row.no).await, task, "{name}");
                assert_eq!(&fold(&store, &row).await, task, "{name}");
                assert_eq!((&light.status, &light.history), (&task.status, &task.history), "{name}");
            }
        }
        let conn = Connection::open(&path).unwrap();
        let format: i64 = conn.query_row("PRAGMA user_version", (), |row| row.get(0)).unwrap();
        assert_eq!(format, 6, "{name}");
    }
}

#[tokio::test]
async fn tasks_of_older_formats_live_on() {
    // The later ones have other tasks too, which the numbers below leave out.
    for (name, sparse, _) in &FORMATS[..2] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sabir.db");
        unfold(sparse, &path);
        let store = SqliteStore::open(&path, Durability::Process).unwrap();

        let (owner, demo) = (Owner::anonymous(), AgentId::parse("demo").unwrap());
        let keyed = store.find_by_key(&owner, &demo, &IdempotencyKey::parse("key-1").unwrap()).await.unwrap().unwrap();
        assert_eq!(load(&store, keyed.no).await.history[0].text(), "hello there", "{name}");

        let pending = store.unfinished().await.unwrap();
        let waiting = pending.iter().filter(|pending| pending.row.state.is_waiting()).count();
        assert_eq!((pending.len(), waiting), (4, 3), "{name}");
        let inbox: Vec<String> = pending.iter().flat_map(|pending| &pending.inbox).map(Message::text).collect();
        assert_eq!(inbox, ["next turn please"], "{name}");
        assert!(pending.iter().all(|pending| pending.attempts == 0 && !pending.cancel_requested));

        for pending in pending {
            let end = status(State::Completed, i64::MAX / 2_000_000);
            push(&store, pending.row.no, pending.row.seq, &[end]).await.unwrap();
            let row = store.find(&owner, Some(&pending.row.agent), &pending.row.task).await.unwrap().unwrap();
            assert_eq!((row.state, row.seq), (State::Completed, pending.row.seq + 1), "{name}");
            assert_eq!(load(&store, row.no).await, fold(&store, &row).await, "{name}");
        }
        let completed = list(&store, Query { state: Some(State::Completed), ..everything() }).await;
        assert_eq!(completed.total, 14, "{name}: {}", ids(&completed.tasks));
        let gone = sweep_all(&store, Retention { settled_before: None, keep: Some(0), pending_after: None }).await;
        assert_eq!((gone, list(&store, everything()).await.total), (16, 0), "{name}");
    }
}

/// Format 4 was the first with webhooks: delivered ones, one of a task that waits, pending ones at two receivers, and two events that
/// were given up. The highest number, 9, is that of a webhook that was removed.
#[tokio::test]
async fn webhooks_of_format_4_live_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    unfold(FORMATS[3].1, &path);
    let later = Timestamp::from_millis(i64::MAX / 2);
    let tell = |deliveries: Vec<Delivery>| {
        let tell = |row: &Delivery| format!("{} {} after {} tried {}", row.number, row.url, row.event, row.attempts);
        deliveries.iter().map(tell).collect::<Vec<_>>()
    };
    for round in 0..2 {
        let store = SqliteStore::open(&path, Durability::Process).unwrap();
        let pending = tell(store.deliveries(DeliveryKind::Pending, 0, 100).await.unwrap());
        let expected = [
            "4 http://127.0.0.1:41399/busy after 0 tried 2",
            "5 http://127.0.0.1:41397/down after 0 tried 2",
            "8 http://127.0.0.1:41397/down after 3 tried 2",
        ];
        assert_eq!(pending, expected, "round {round}");
        let given_up = tell(store.deliveries(DeliveryKind::GivenUp, 0, 100).await.unwrap());
        let expected =
            ["1 http://127.0.0.1:41399/gone after 2 tried 1", "2 http://127.0.0.1:41399/gone after 4 tried 1"];
        assert_eq!(given_up, expected, "round {round}");
        let due = store.due("http://127.0.0.1:41397", later, 100).await.unwrap();
        assert_eq!(due.iter().map(|due| due.webhook.0).collect::<Vec<_>>(), [5, 8], "round {round}");
        assert_eq!(store.receivers().await.unwrap().len(), 2, "round {round}");
    }

    let store = SqliteStore::open(&path, Durability::Process).unwrap();
    // The task that waits goes on, and its webhook hears of it.
    let waiting = store.unfinished().await.unwrap().remove(0).row;
    push(&store, waiting.no, waiting.seq, &[status(State::Completed, 5)]).await.unwrap();
    let due = store.due("http://127.0.0.1:41399", later, 100).await.unwrap();
    let woken = due.iter().find(|due| due.task == waiting.no).unwrap();
    assert_eq!((woken.webhook.0, woken.sent), (2, waiting.seq));
    // Numbers go on behind the highest that was ever used.
    let again = store.webhooks(waiting.no).await.unwrap().remove(0);
    store.set_webhook(waiting.no, again, at(9)).await.unwrap();
    let due = store.due("http://127.0.0.1:41399", later, 100).await.unwrap();
    assert_eq!(due.iter().map(|due| due.webhook.0).max(), Some(10));
    assert!(store.retry(DeliveryKind::GivenUp, 2, at(9)).await.unwrap());
    let due = store.due("http://127.0.0.1:41399", at(9), 100).await.unwrap();
    assert_eq!(due.iter().filter_map(|due| due.retry).map(|(_, event)| event).collect::<Vec<_>>(), [4]);
}
