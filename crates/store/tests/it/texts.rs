//! Texts as clients send them: with a NUL, which Postgres has in no text, and ordered by their bytes, whatever the language of a
//! database is.

use std::sync::Arc;

use sabir_model::{Birth, Cursor, Event, Message, PushConfigId, State, Task, apply};
use sabir_store::transfer::{ExportTasks, ImportTasks};
use sabir_store::{
    Durability, MemoryStore, Others, Outbox, PostgresExport, Query, SideRow, SqliteExport, SqliteImport, SqliteStore,
    Store, SummaryQuery, TaskNo, Webhook, WebhookEvents,
};
use sabir_testkit::store_contract::fixture::*;

use crate::postgres_contract::open_postgres;
use crate::postgres_server::{database_of, execute, new_database};

const WITH_NUL: &str = "before\0after";

/// The owner and all that an agent keeps may have one too.
const NAME: Name<'static> = ["ann\0nul", "echo", "t1", "c1"];

/// A task with a NUL in every text that may have one; a long one is not in its row.
async fn put_nul(store: &dyn Store, length: usize) -> TaskNo {
    let text = WITH_NUL.repeat(length);
    let first = [status_with_message(State::Working, 2, &text), status_with_input(State::Working, 3, &text)];
    let no = start(store, NAME, None, 1, &first).await.unwrap().task;
    let mut task: Task = load(store, no).await;
    let more = chunk(&text);
    apply(&mut task, &more);
    let side_rows = [
        SideRow::InboxAdd(Arc::new(message(&text))),
        SideRow::AgentState(Some(text.clone())),
        SideRow::TaskState(Some(text.as_str().into())),
    ];
    push_with(store, no, 3, &[more], Some(&task), &side_rows).await.unwrap();
    no
}

type Found = (Task, Vec<Event>, Vec<Message>, Option<String>);

async fn read_nul(store: &dyn Store) -> Found {
    let row = find(store, NAME[0], Some(NAME[1]), NAME[2]).await.expect("the task is there");
    let task = load(store, row.no).await;
    assert_eq!(task, fold(store, &row).await);
    let state = store.agent_state(&owner(NAME[0]), &agent(NAME[1]), &context(NAME[3])).await.unwrap();
    (task, events(store, row.no).await, store.inbox(row.no).await.unwrap(), state)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nul_in_a_text_stays_in_each_store_and_between_them() {
    let folder = tempfile::tempdir().unwrap();
    for length in [1, 2_000] {
        let memory = MemoryStore::new();
        put_nul(&memory, length).await;
        let expected = read_nul(&memory).await;
        assert_eq!(expected.3.as_deref(), Some(&*WITH_NUL.repeat(length)));
        assert!(format!("{:?}", expected.0).contains("before\\0after"));

        let path = folder.path().join(format!("{length}.db"));
        let sqlite = SqliteStore::open(&path, Durability::Process).unwrap();
        put_nul(&sqlite, length).await;
        drop(sqlite);
        let found = read_nul(&SqliteStore::open(&path, Durability::Process).unwrap()).await;
        assert!(found == expected, "SQLite, {length}");

        let Some(url) = new_database() else { continue };
        put_nul(&open_postgres(&url), length).await;
        assert!(read_nul(&open_postgres(&url)).await == expected, "Postgres, {length}");

        let copy = folder.path().join(format!("copy of {length}.db"));
        let mut exported = PostgresExport::open(&url).await.unwrap();
        let mut import = SqliteImport::open(&copy).unwrap();
        import.begin("copy").await.unwrap();
        import.put_tasks(exported.tasks(0, usize::MAX).await.unwrap()).await.unwrap();
        import.put_agent_states(exported.agent_states(None, 9).await.unwrap(), "a".to_owned()).await.unwrap();
        import.finish(exported.size().await.unwrap()).await.unwrap();
        drop(import);
        let task_state = SqliteExport::open(&copy).unwrap().tasks(0, usize::MAX).await.unwrap().remove(0).task_state;
        assert_eq!(task_state, expected.3);
        assert!(read_nul(&SqliteStore::open(&copy, Durability::Process).unwrap()).await == expected, "copy, {length}");
    }
}

/// Their order by bytes is not that of any language.
const WORDS: [&str; 10] = ["a", "B", "b", "A", "ä", "z", "a b", "a-b", "a_b", "ab"];

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_in_the_order_of_their_bytes_in_each_language() {
    let Some(url) = new_database() else { return };
    let english = format!("{}_english", database_of(&url));
    execute(&url, &format!("CREATE DATABASE {english} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"));
    let english = url.replace(database_of(&url), &english);
    assert_eq!(execute(&english, "SELECT 'a' < 'B'"), "t", "the database has no language");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sabir.db");
    let sqlite = SqliteStore::open(&path, Durability::Process).unwrap();
    let postgres = open_postgres(&english);
    for store in [&sqlite as &dyn WithWebhooks, &postgres] {
        fill(store).await;
    }
    let (expected, found) = (look(&sqlite).await, look(&postgres).await);
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found, expected);
    }
    drop(sqlite);
    let mut sqlite = SqliteExport::open(&path).unwrap();
    let mut postgres = PostgresExport::open(&english).await.unwrap();
    let (mut expected, mut after) = (Vec::new(), None);
    loop {
        let page = sqlite.agent_states(after.clone(), 3).await.unwrap();
        assert_eq!(postgres.agent_states(after, 3).await.unwrap(), page);
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        expected.extend(page);
    }
    assert_eq!(expected.len(), WORDS.len());
}

trait WithWebhooks: Store + Outbox {}

impl<T: Store + Outbox> WithWebhooks for T {}

/// Tasks of one moment, so that their order is that of their texts.
async fn fill(store: &dyn WithWebhooks) {
    for word in WORDS {
        let no = start(store, ["ann", "echo", word, word], Some(word), 1, &[]).await.unwrap().task;
        let state = [SideRow::AgentState(Some(word.to_owned()))];
        push_with(store, no, 1, &[status(State::Completed, 2)], None, &state).await.unwrap();
        create(store, ["ann", word, "the same", "c"], 1).await;
        create(store, [word, "echo", "the same", "c"], 1).await;
        let webhook = Webhook {
            id: PushConfigId::parse(word).unwrap(),
            url: "https://a/hook".to_owned(),
            receiver: format!("https://{word}"),
            secrets: Vec::new(),
            dialect: Birth(1),
            events: WebhookEvents::Statuses,
        };
        store.set_webhook(no, webhook, at(3)).await.unwrap();
    }
}

/// Everything that has an order, as texts.
async fn look(store: &dyn WithWebhooks) -> Vec<String> {
    let mut found = Vec::new();
    for others in [Others::None, Others::All] {
        let mut from: Option<Cursor> = None;
        loop {
            let query = Query { others: others.clone(), from: from.clone(), limit: 4, ..all_of("ann") };
            let page = list(store, query).await;
            let shown: Vec<_> = page.tasks.iter().map(|task| format!("{} of {}", task.id, task.agent)).collect();
            found.push(format!("{others:?}: {shown:?} of {}", page.total));
            let Some(last) = page.tasks.last().filter(|_| page.more) else { break };
            let (time, task, agent) = (last.status.time, last.id.clone(), last.agent.clone());
            from = Some(Cursor { time, task, agent, number: page.last.map(|no| no.0) });
        }
    }
    for word in WORDS {
        let rows = store.waiting(&owner("ann"), &agent("echo"), &context(word)).await.unwrap();
        let keyed = store.find_by_key(&owner("ann"), &agent("echo"), &key(word)).await.unwrap();
        found.push(format!("{word}: {} {}", row_ids(&rows), row_ids(&keyed)));
    }
    for id_prefix in ["a", "A", "ä"] {
        let query = SummaryQuery { id_prefix: Some(id_prefix.to_owned()), ..SummaryQuery::all() };
        let page = store.summaries(query).await.unwrap();
        found.push(format!("{id_prefix}: {:?}", page.tasks.iter().map(|task| &task.row.task).collect::<Vec<_>>()));
    }
    found.push(format!("{:?}", store.receivers().await.unwrap()));
    let webhooks = store.due("https://a", at(9), 9).await.unwrap();
    found.push(format!("{:?}", webhooks.iter().map(|due| &due.settings.id).collect::<Vec<_>>()));
    found
}
