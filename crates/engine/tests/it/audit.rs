//! The audit log: one entry for each change and for each refusal by rights, stored with what it is about.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{
    About, Admission, Agent, AgentError, AgentFuture, Answer, AuditKeep, AuditQuery, AuditRecord, Builder, Engine,
    Limits, Outcome, Turn,
};
use sabir_model::{
    Call, Caller, Cancel, Error, Get, IdempotencyKey, IncomingMessage, Json, List, Message, OnFinishedCancel, Owner,
    Part, PushConfig, PushConfigId, QuestionId, Required, Send, State, TaskId, Wanted,
};
use sabir_store::{AuditLog, MemoryStore, Store, StoreError};
use sabir_testkit::clock::ManualClock;
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{at_once, endless, hosted, task_of, text, to};

struct Audited {
    engine: Engine,
    store: Arc<MemoryStore>,
}

impl Audited {
    async fn with(agent: impl Agent) -> Self {
        let store = Arc::new(MemoryStore::new());
        let builder = Builder::new(store.clone()).audit(store.clone(), AuditKeep::default());
        Self { engine: builder.agent(hosted("demo", agent, Limits::default())).start().await.unwrap(), store }
    }

    async fn send(&self, send: Send) -> Result<Answer, Error> {
        self.engine.call(&alice(), Call::Send(Box::new(send))).await
    }

    async fn cancel(&self, task: &TaskId, on_finished: OnFinishedCancel) -> Result<Answer, Error> {
        let cancel = Cancel { agent: None, task: task.clone(), metadata: None, on_finished };
        self.engine.call(&alice(), Call::Cancel(cancel)).await
    }

    async fn records(&self) -> Vec<AuditRecord> {
        self.engine.audit_entries(AuditQuery::oldest(1_000)).await.unwrap().unwrap().records
    }

    /// Each entry in a line: the action, the refusal, the detail.
    async fn told(&self) -> Vec<String> {
        let records = self.records().await;
        let tell = |AuditRecord { entry, .. }: &AuditRecord| {
            let refusal = entry.refusal.as_ref().map(|kind| format!(" refused: {kind}")).unwrap_or_default();
            let detail = if entry.detail.is_empty() { String::new() } else { format!(" ({})", entry.detail) };
            format!("{}{refusal}{detail}", entry.action.name())
        };
        records.iter().map(tell).collect()
    }

    /// The same as soon as there are so many: nobody waits for the entry of a refused call.
    async fn told_of(&self, count: usize) -> Vec<String> {
        loop {
            let told = self.told().await;
            if told.len() >= count {
                return told;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn alice() -> Caller {
    Caller::new("acme", "token:alice").with_scopes(["run"]).from_peer("192.0.2.7".parse().ok())
}

/// Asks whether it may go on, as programs do, and completes with the answer.
fn permission() -> ScriptedAgent {
    ScriptedAgent::new(|turn: Turn| async move {
        let question = r#"{"kind":"question","type":"permission","id":"x","question":"may I?","choices":[
            {"id":"proceed","name":"Go ahead","kind":"allow_once"},{"id":"stop","name":"Stop","kind":"reject_once"}]}"#;
        let question = vec![Part::text("may I?"), Part::data(Json::parse(question).unwrap())];
        let answer = turn.ask(Required::Input, question).await?;
        Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(answer.text())]))
    })
}

#[tokio::test]
async fn each_message_has_one_entry_with_its_task() {
    let audited = Audited::with(permission()).await;
    let asked = task_of(audited.send(text("secret words")).await.unwrap());
    audited.send(to(&asked.id, text("yes"))).await.unwrap();
    let question = asked.open_question().unwrap();
    assert_eq!(audited.told().await, ["create".to_owned(), format!("answer (question {question}, yes)")]);

    let records = audited.records().await;
    let row = audited.store.find(&alice().owner, None, &asked.id).await.unwrap().unwrap();
    for record in &records {
        let entry = &record.entry;
        assert_eq!((&entry.caller, entry.peer, entry.no), (&alice().owner, alice().peer, Some(row.no)));
        assert_eq!((&entry.task, &entry.owner), (&Some(asked.id.clone()), &Some(alice().owner)));
        assert_eq!(entry.agent.as_ref().unwrap().as_str(), "demo");
    }
    assert!(!format!("{records:?}").contains("secret words"));
}

#[tokio::test]
async fn an_answer_is_recorded_as_the_agent_reads_it() {
    for (answer, expected) in [
        ("yes", ", yes"),
        ("no", ", no"),
        ("Go ahead", ", yes"),
        ("stop", ", no"),
        ("1", ", yes"),
        ("2", ", no"),
        ("whatever you like", ", no clear yes"),
    ] {
        let audited = Audited::with(permission()).await;
        let asked = task_of(audited.send(text("go")).await.unwrap());
        audited.send(to(&asked.id, text(answer))).await.unwrap();
        let told = audited.told().await;
        assert_eq!(told[1], format!("answer (question {}{expected})", asked.open_question().unwrap()), "{answer}");
    }
    // A question for information has no yes or no.
    let audited = Audited::with(crate::fixture::asking()).await;
    let asked = task_of(audited.send(text("ask which?")).await.unwrap());
    audited.send(to(&asked.id, text("yes"))).await.unwrap();
    let question = asked.open_question().unwrap();
    assert_eq!(audited.told().await, ["create".to_owned(), format!("answer (question {question})")]);
}

#[tokio::test]
async fn messages_and_cancels_of_a_running_task_have_one_entry_each() {
    let audited = Audited::with(endless()).await;
    let task = task_of(audited.send(at_once("go")).await.unwrap());
    audited.send(to(&task.id, at_once("more"))).await.unwrap();
    let (one, other) = tokio::join!(
        audited.cancel(&task.id, OnFinishedCancel::Refuse),
        audited.cancel(&task.id, OnFinishedCancel::Refuse)
    );
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(audited.told().await, ["create", "message", "cancel", "cancel"]);
    // The task has ended: what follows changes nothing.
    assert!(matches!(audited.cancel(&task.id, OnFinishedCancel::Refuse).await, Err(Error::NotCancelable(_))));
    assert!(audited.cancel(&task.id, OnFinishedCancel::Leave).await.is_ok());
    assert!(matches!(audited.send(to(&task.id, text("again"))).await, Err(Error::TaskFinished(_))));
    assert_eq!(audited.told().await.len(), 4);
}

#[tokio::test]
async fn a_task_at_rest_is_canceled_with_one_entry() {
    let audited = Audited::with(crate::fixture::asking()).await;
    let waiting = task_of(audited.send(text("ask which?")).await.unwrap());
    audited.cancel(&waiting.id, OnFinishedCancel::Refuse).await.unwrap();
    assert_eq!(audited.told().await, ["create", "cancel"]);
}

#[tokio::test]
async fn a_refusal_by_rights_is_recorded_with_what_was_named() {
    let audited = Audited::with(crate::fixture::echo()).await;
    let task = TaskId::parse("of-somebody").unwrap();
    audited.send(to(&task, text("x"))).await.err().unwrap();
    audited.cancel(&task, OnFinishedCancel::Refuse).await.err().unwrap();
    let agent = Some(sabir_model::AgentId::parse("hidden").unwrap());
    audited.send(Send { agent, ..text("x") }).await.err().unwrap();
    assert_eq!(
        audited.told_of(3).await,
        ["message refused: task not found", "cancel refused: task not found", "create refused: agent not found"]
    );
    let records = audited.records().await;
    assert_eq!((&records[0].entry.task, &records[0].entry.owner), (&Some(task.clone()), &None));
    assert_eq!(records[2].entry.agent.as_ref().unwrap().as_str(), "hidden");
    // Looks at what does not exist are no changes, nor are calls that are wrong.
    let get = Get { agent: None, task, history: None, earlier: Wanted::No };
    audited.engine.call(&alice(), Call::Get(get)).await.err().unwrap();
    let other_context = Message { context: sabir_model::ContextId::parse("c").ok(), ..text("x").message };
    let done = task_of(audited.send(text("y")).await.unwrap());
    audited.send(to(&done.id, Send { message: other_context, ..text("x") })).await.err().unwrap();
    assert_eq!(audited.told_of(4).await.len(), 4);
}

#[tokio::test]
async fn looks_at_tasks_of_others_are_recorded_and_at_own_ones_not() {
    let audited = Audited::with(crate::fixture::echo()).await;
    let admin = Caller::new("acme", "token:ops").with_scopes(["admin"]);
    let done = task_of(audited.send(text("x")).await.unwrap());
    let get = || Call::Get(Get { agent: None, task: done.id.clone(), history: None, earlier: Wanted::No });
    let list = || {
        Call::List(List {
            agent: None,
            context: None,
            state: None,
            since: None,
            from: None,
            page_size: 10,
            history: None,
            artifacts: Wanted::No,
        })
    };
    for call in [get(), list()] {
        audited.engine.call(&alice(), call).await.unwrap();
    }
    assert_eq!(audited.told().await, ["create"]);
    for call in [get(), list()] {
        audited.engine.call(&admin, call).await.unwrap();
    }
    assert_eq!(audited.told().await, ["create", "read", "list (1 tasks of other owners)"]);
    let read = &audited.records().await[1].entry;
    let row = audited.store.find(&alice().owner, None, &done.id).await.unwrap().unwrap();
    assert_eq!((&read.caller, &read.owner, read.no), (&admin.owner, &Some(alice().owner), Some(row.no)));

    // A caller without the right is refused by the gate, and that is recorded.
    let reader = Caller::new("acme", "token:alice").with_scopes(["read"]);
    let refused = audited.engine.call(&reader, Call::Send(Box::new(text("x")))).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))));
    assert_eq!(audited.told_of(4).await[3], "create refused: forbidden");
    // An admin acts on a task of somebody else, and gives it away.
    audited.engine.assign(&admin, &alice().owner, &Owner::new("acme", "token:bob")).await.unwrap();
    assert_eq!(audited.told().await[4], "assign (1 tasks to token:bob@acme)");
}

#[tokio::test]
async fn a_repeated_send_has_no_entry() {
    let audited = Audited::with(crate::fixture::echo()).await;
    let send = Send { idempotency: IdempotencyKey::parse("k").ok(), ..text("x") };
    audited.send(send.clone()).await.unwrap();
    audited.send(send).await.unwrap();
    assert_eq!(audited.told().await, ["create"]);
}

/// A webhook is set before its message is delivered, and stays when that is refused.
#[tokio::test]
async fn a_webhook_of_a_message_has_an_entry_even_if_the_message_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let builder = Builder::new(store.clone()).audit(store.clone(), AuditKeep::default());
    let builder = builder.webhooks(Arc::new(crate::ownership::AdmitAll), store.clone());
    let engine = builder.agent(hosted("demo", permission(), Limits::default())).start().await.unwrap();
    let audited = Audited { engine, store };
    let task = task_of(audited.send(text("x")).await.unwrap());
    let push = |id: &str| PushConfig {
        id: PushConfigId::parse(id).ok(),
        task: None,
        url: "https://a.example/".into(),
        token: None,
        authentication: None,
    };
    let named = |event| {
        let id = QuestionId::issue(&task.id, event);
        Json::parse(format!(r#"{{"questionId":"{id}"}}"#)).ok()
    };
    let open = task.open_question().unwrap().event;
    for (config, event) in [("late", open - 1), ("right", open)] {
        let base = to(&task.id, text("yes"));
        let message = IncomingMessage { metadata: named(event), ..base.message };
        let sent = audited.send(Send { message, push: Some(push(config)), ..base }).await;
        assert_eq!(sent.is_ok(), event == open, "{:?}", sent.err());
    }
    let told = audited.told().await;
    assert_eq!(
        told[..3],
        ["create", "webhook-set (config late, with a message)", "webhook-set (config right, with a message)"]
    );
    assert!(told.len() == 4 && told[3].starts_with("answer (") && told[3].ends_with("with a webhook)"), "{told:?}");
}

/// Answers without a task.
struct Direct;

impl Agent for Direct {
    fn about(&self) -> About {
        About::new("direct", "answers without a task")
    }

    fn run(&self, _: Turn) -> AgentFuture<'_> {
        unreachable!("it has no tasks")
    }

    fn admit(&self, _: &Message) -> Admission {
        Admission::Reply(vec![Part::text("hello")])
    }
}

#[tokio::test]
async fn a_direct_answer_is_recorded_too() {
    let audited = Audited::with(Direct).await;
    assert!(matches!(audited.send(text("hi")).await.unwrap(), Answer::Message(_)));
    assert_eq!(audited.told().await, ["message (answered without a task)"]);
}

#[tokio::test]
async fn what_was_not_stored_has_no_entry() {
    let faulty = Arc::new(FaultyStore::new(MemoryStore::new()));
    let log: Arc<dyn AuditLog> = Arc::new(MemoryStore::new());
    let builder = Builder::new(faulty.clone()).audit(log, AuditKeep::default());
    let engine = builder.agent(hosted("demo", endless(), Limits::default())).start().await.unwrap();
    let send = async |send: Send| engine.call(&alice(), Call::Send(Box::new(send))).await;
    let task = task_of(send(at_once("go")).await.unwrap());
    faulty.fail_with(|| StoreError::Failed("broken".into()));
    send(at_once("lost")).await.err().unwrap();
    send(to(&task.id, at_once("lost too"))).await.err().unwrap();
    faulty.work_again();
    send(to(&task.id, at_once("kept"))).await.unwrap_or_else(|_| panic!("the store works again"));
    let stored = faulty.inner().entries(AuditQuery::oldest(10)).await.unwrap().records;
    let actions: Vec<&str> = stored.iter().map(|record| record.entry.action.name()).collect();
    assert_eq!(actions, ["create", "message"]);
}

#[tokio::test]
async fn a_flood_of_refusals_is_bounded() {
    /// Never stores anything.
    struct Stuck;
    impl AuditLog for Stuck {
        fn record(&self, _: sabir_engine::AuditEntry) -> sabir_store::StoreFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
        fn entries(&self, _: AuditQuery) -> sabir_store::StoreFuture<'_, sabir_engine::AuditPage> {
            Box::pin(std::future::pending())
        }
        fn trim(&self, _: sabir_store::AuditRetention) -> sabir_store::StoreFuture<'static, sabir_store::AuditTrimmed> {
            Box::pin(std::future::pending())
        }
    }
    let builder = Builder::new(Arc::new(MemoryStore::new())).audit(Arc::new(Stuck), AuditKeep::default());
    let agent = hosted("demo", crate::fixture::echo(), Limits::default());
    let engine = builder.agent(agent).start().await.unwrap();
    let task = TaskId::parse("of-somebody").unwrap();
    for _ in 0..1_500 {
        let refused = engine.call(&alice(), Call::Send(Box::new(to(&task, text("x"))))).await;
        assert!(matches!(refused, Err(Error::TaskNotFound(_))));
    }
    assert_eq!(engine.lost_audit_entries(), 500);
}

#[tokio::test]
async fn retention_bounds_the_log() {
    let clock = Arc::new(ManualClock::at(1_000_000));
    for (keep, left) in [
        (AuditKeep { max_age: Some(Duration::from_secs(100)), max_entries: None }, "3 4"),
        (AuditKeep { max_age: None, max_entries: Some(1) }, "4"),
        (AuditKeep::default(), "1 2 3 4"),
    ] {
        let store = Arc::new(MemoryStore::new());
        let builder = Builder::new(store.clone()).clock(clock.clone()).audit(store.clone(), keep);
        let agent = hosted("demo", crate::fixture::echo(), Limits::default());
        let engine = builder.agent(agent).start().await.unwrap();
        for step in 0..4 {
            let sent = engine.call(&alice(), Call::Send(Box::new(text("x")))).await.unwrap();
            assert_eq!(task_of(sent).status.state, State::Completed);
            clock.advance(Duration::from_secs(if step == 1 { 200 } else { 1 }));
        }
        engine.sweep().await;
        let page = engine.audit_entries(AuditQuery::oldest(10)).await.unwrap().unwrap();
        let numbers: Vec<String> = page.records.iter().map(|record| record.number.to_string()).collect();
        assert_eq!(numbers.join(" "), left, "{keep:?}");
    }
}

#[tokio::test]
async fn without_an_audit_log_nothing_is_recorded() {
    let store = Arc::new(MemoryStore::new());
    let agent = hosted("demo", crate::fixture::echo(), Limits::default());
    let engine = Builder::new(store.clone()).agent(agent).start().await.unwrap();
    engine.call(&alice(), Call::Send(Box::new(text("x")))).await.unwrap();
    assert!(engine.audit_entries(AuditQuery::oldest(10)).await.unwrap().is_none());
    assert!(store.entries(AuditQuery::oldest(10)).await.unwrap().records.is_empty());
}
