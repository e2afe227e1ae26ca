//! The fixture of the cases: short ways to write and read, so that a case shows only what it is about.

use sabir_model::{
    AgentId, Artifact, ArtifactId, Birth, Chunk, ContextId, Created, Event, IdempotencyKey, Message, MessageId, Owner,
    Part, Role, State, Status, StatusChange, Task, TaskBirth, TaskId, Timestamp, Wanted, apply,
};
use sabir_store::{
    AfterAppend, Append, AppendResult, AppendTarget, Listing, NewTask, Others, Ownership, Query, Retention, SentKey,
    SideRow, Store, StoreError, StoreFuture, TaskNo, TaskRow,
};

/// Owner, agent, task and context.
pub type Name<'a> = [&'a str; 4];

/// Of the tenant acme, or of another one: `globex/dan`.
pub fn owner(name: &str) -> Owner {
    let (tenant, subject) = name.split_once('/').unwrap_or(("acme", name));
    Owner::new(tenant, subject)
}

pub fn agent(name: &str) -> AgentId {
    AgentId::parse(name).expect("an id")
}

pub fn task(name: &str) -> TaskId {
    TaskId::parse(name).expect("an id")
}

pub fn context(name: &str) -> ContextId {
    ContextId::parse(name).expect("an id")
}

pub fn key(name: &str) -> IdempotencyKey {
    IdempotencyKey::parse(name).expect("an id")
}

pub fn at(moment: i64) -> Timestamp {
    Timestamp::from_millis(1_770_000_000_000 + moment)
}

pub fn message(text: &str) -> Message {
    Message {
        id: MessageId::parse(format!("message of {} bytes", text.len())).expect("an id"),
        role: Role::User,
        parts: vec![Part::text(text)],
        task: None,
        context: None,
        references: Vec::new(),
        extensions: Vec::new(),
        metadata: None,
        request_metadata: None,
        request: None,
        answers: None,
    }
}

pub fn created(moment: i64) -> Event {
    Event::Created(Created { message: message("hello").into(), metadata: None, note: None, time: at(moment) })
}

/// A status that ends its turn if it is the last one or a question.
pub fn status(state: State, moment: i64) -> Event {
    Event::Status(StatusChange {
        status: Status { state, message: None, time: at(moment) },
        is_final: state.is_terminal() || state.is_waiting(),
        input: Vec::new(),
        begins_turn: false,
        usage: None,
        metadata: None,
    })
}

/// The same with a message from the agent.
pub fn status_with_message(state: State, moment: i64, text: &str) -> Event {
    let Event::Status(mut change) = status(state, moment) else { unreachable!("it is a status") };
    change.status.message = Some(message(text).into());
    Event::Status(change)
}

/// The same with a message that it takes into the history.
pub fn status_with_input(state: State, moment: i64, text: &str) -> Event {
    let Event::Status(mut change) = status(state, moment) else { unreachable!("it is a status") };
    change.input = vec![message(text).into()];
    Event::Status(change)
}

pub fn chunk(text: &str) -> Event {
    let artifact = Artifact::new(ArtifactId::parse("answer").expect("an id"), vec![Part::text(text)]);
    Event::Artifact(Chunk { index: 0, artifact: artifact.into(), append: true, last: false, metadata: None })
}

/// Begins a new task; the events come after its creation.
pub fn start(
    store: &dyn Store,
    [of, by, id, place]: Name<'_>,
    with: Option<&str>,
    moment: i64,
    events: &[Event],
) -> StoreFuture<'static, AppendResult> {
    let (of, by, id, place, with) = (owner(of), agent(by), task(id), context(place), with.map(key));
    let new = NewTask {
        owner: &of,
        agent: &by,
        task: &id,
        context: &place,
        born: Birth(3),
        key: with.as_ref(),
        send_digest: None,
    };
    let creation = created(moment);
    let events: Vec<&Event> = std::iter::once(&creation).chain(events).collect();
    store.append(Append {
        target: AppendTarget::New(new),
        events: &events,
        after: 0,
        snapshot: None,
        side_rows: &[],
        ownership: at_rest(),
    })
}

/// No node owns the task after the append, so any may append next: the cases have no runs.
pub fn at_rest() -> Ownership {
    Ownership { then: AfterAppend::Rest, ..Ownership::default() }
}

/// The key of a message that the owner of its task has sent.
pub fn sent_key(name: &str) -> SentKey {
    SentKey { key: key(name), sender: None }
}

/// A question for permission; with an approver, only callers with this scope may answer.
pub fn permission_question(approver: Option<&str>, moment: i64) -> Event {
    let data = match approver {
        Some(scope) => format!(r#"{{"kind":"question","type":"permission","approver":"{scope}"}}"#),
        None => r#"{"kind":"question","type":"permission"}"#.to_owned(),
    };
    let part = Part::from(sabir_model::Content::Data(sabir_model::Json::parse(&data).expect("JSON")));
    let mut event = status(State::InputRequired, moment);
    if let Event::Status(change) = &mut event {
        let id = sabir_model::MessageId::parse("q").expect("an id");
        change.status.message = Some(std::sync::Arc::new(Message::new(id, sabir_model::Role::Agent, vec![part])));
    }
    event
}

pub async fn create(store: &dyn Store, name: Name<'_>, moment: i64) -> TaskNo {
    start(store, name, None, moment, &[]).await.expect("a new task").task
}

/// A task that is in this state from the beginning.
pub async fn create_in(store: &dyn Store, name: Name<'_>, state: State, moment: i64) -> TaskNo {
    let events: &[Event] = if state == State::Submitted { &[] } else { &[status(state, moment)] };
    start(store, name, None, moment, events).await.expect("a new task").task
}

pub fn push(store: &dyn Store, no: TaskNo, after: u64, events: &[Event]) -> StoreFuture<'static, AppendResult> {
    push_with(store, no, after, events, None, &[])
}

pub fn push_with(
    store: &dyn Store,
    no: TaskNo,
    after: u64,
    events: &[Event],
    snapshot: Option<&Task>,
    side_rows: &[SideRow],
) -> StoreFuture<'static, AppendResult> {
    let events: Vec<&Event> = events.iter().collect();
    store.append(Append {
        target: AppendTarget::Known(no),
        events: &events,
        after,
        snapshot,
        side_rows,
        ownership: at_rest(),
    })
}

pub async fn find(store: &dyn Store, of: &str, by: Option<&str>, id: &str) -> Option<TaskRow> {
    store.find(&owner(of), by.map(agent).as_ref(), &task(id)).await.expect("a lookup")
}

/// The whole log of a task.
pub async fn events(store: &dyn Store, no: TaskNo) -> Vec<Event> {
    let mut all = Vec::new();
    loop {
        let page = store.events(no, all.len() as u64, 7).await.expect("events");
        if page.is_empty() {
            return all;
        }
        for recorded in page {
            all.push(recorded.event);
            assert_eq!(recorded.seq, all.len() as u64, "numbers have no gaps");
        }
    }
}

pub async fn load(store: &dyn Store, no: TaskNo) -> Task {
    store.load(no).await.expect("a load").expect("the task is there")
}

/// What `load` must give: all events, folded one by one.
pub async fn fold(store: &dyn Store, row: &TaskRow) -> Task {
    let birth =
        TaskBirth { context: row.context.clone(), agent: row.agent.clone(), owner: row.owner.clone(), born: row.born };
    let events = events(store, row.no).await;
    let Some((Event::Created(created), later)) = events.split_first() else { panic!("no creation in {events:?}") };
    let mut folded = Task::create(row.task.clone(), birth, created.clone());
    for event in later {
        apply(&mut folded, event);
    }
    folded
}

/// Sweeps until there is nothing left to sweep; says how many tasks went.
pub async fn sweep_all(store: &dyn Store, retention: Retention) -> u64 {
    let mut gone = 0;
    loop {
        let swept = store.sweep(retention).await.expect("a sweep");
        gone += swept.tasks;
        if !swept.more {
            return gone;
        }
    }
}

/// All tasks of an owner, whole, in one page.
pub fn all_of(of: &str) -> Query {
    Query {
        owner: owner(of),
        own_agents: None,
        others: Others::None,
        agent: None,
        context: None,
        state: None,
        since: None,
        from: None,
        limit: 1000,
        max_bytes: usize::MAX,
        artifacts: Wanted::Yes,
        history: None,
    }
}

pub async fn list(store: &dyn Store, query: Query) -> Listing {
    store.list(query).await.expect("a list")
}

pub fn ids<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> String {
    let ids: Vec<&str> = tasks.into_iter().map(|task| task.id.as_str()).collect();
    ids.join(" ")
}

pub fn row_ids<'a>(rows: impl IntoIterator<Item = &'a TaskRow>) -> String {
    let ids: Vec<&str> = rows.into_iter().map(|row| row.task.as_str()).collect();
    ids.join(" ")
}

/// An answer in a word or two.
pub fn say(answer: Result<AppendResult, StoreError>) -> String {
    match answer {
        Ok(appended) => format!("up to {}", appended.last),
        Err(StoreError::Conflict) => "conflict".into(),
        Err(StoreError::Exists(id)) => format!("exists: {id}"),
        Err(StoreError::OwnedElsewhere(node)) => format!("owned by {node}"),
        Err(StoreError::ContextBusy(_)) => "context busy".into(),
        Err(StoreError::Full) => "full".into(),
        Err(StoreError::Closed) => "closed".into(),
        Err(StoreError::Damaged { task, .. }) => format!("damaged: {task}"),
        Err(StoreError::Lost(_)) => "lost".into(),
        Err(StoreError::Failed(_)) => "failed".into(),
    }
}
