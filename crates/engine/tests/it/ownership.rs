//! Who may do what: rights for agents, tasks of others, admins, and agents that are not listed.

use std::sync::Arc;

use sabir_engine::{
    AdmittedWebhook, AgentError, Answer, Builder, Engine, Limits, Outcome, Turn, WebhookPolicy, WebhookRefusal,
};
use sabir_model::{
    AgentId, Birth, Call, Caller, Cancel, ContextAlone, Delivery, Error, Get, IdempotencyKey, IncomingMessage, List,
    Message, MessageId, OnFinishedCancel, OnFinishedSubscribe, OnUnknown, Part, PushCall, PushConfig, PushConfigId,
    PushEvents, Required, Send, State, Subscribe, Task, TaskId, Wanted,
};
use sabir_store::MemoryStore;
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{at_once, hosted, stream_of, task_of, text, to, within};

/// Asks once, remembers the first message of a context, and completes with what it knows.
fn asking_agent() -> ScriptedAgent {
    ScriptedAgent::new(|turn: Turn| async move {
        let text = turn.message().text();
        let memory = turn.memory().await?.unwrap_or_default();
        turn.remember(Some(format!("{memory}[{text}]"))).await;
        if text == "done" {
            let references = turn.references().await?.len();
            let conversation = turn.conversation().await?.len();
            let sender = turn.caller().subject().unwrap_or("anonymous").to_owned();
            let told = format!("{memory}; {references} references, {conversation} earlier, from {sender}");
            return Ok(Outcome::Completed(vec![Part::text(told)]));
        }
        let answer = turn.ask(Required::Input, vec![Part::text("what?")]).await?;
        Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(format!("{text} {}", answer.text()))]))
    })
}

pub(crate) struct AdmitAll;

impl WebhookPolicy for AdmitAll {
    fn admit<'a>(
        &'a self,
        _config: &'a PushConfig,
    ) -> futures_util::future::BoxFuture<'a, Result<AdmittedWebhook, WebhookRefusal>> {
        Box::pin(async { Ok(AdmittedWebhook { receiver: "https://a.example:443".into(), secrets: Vec::new() }) })
    }
}

async fn engine() -> Engine {
    let store = Arc::new(MemoryStore::new());
    let mut secret = hosted("secret", asking_agent(), Limits::default());
    secret.is_listed = false;
    let builder = Builder::new(store.clone())
        .webhooks(Arc::new(AdmitAll), store)
        .agent(hosted("coder", asking_agent(), Limits::default()))
        .agent(hosted("demo", asking_agent(), Limits::default()))
        .agent(secret);
    builder.start().await.unwrap()
}

fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

fn id(name: &str) -> TaskId {
    TaskId::parse(name).unwrap()
}

fn caller(subject: &str, scopes: &[&str]) -> Caller {
    Caller::new("acme", subject).with_scopes(scopes.iter().copied())
}

/// A message for a task whose id the caller chooses.
fn named(task: &str, send: Send) -> Send {
    Send { on_unknown: OnUnknown::Create, ..to(&id(task), send) }
}

fn config(task: &str) -> PushConfig {
    let url = "https://a.example/hook".to_owned();
    PushConfig { id: None, task: Some(id(task)), url, token: None, authentication: None }
}

fn list() -> List {
    List {
        agent: None,
        context: None,
        state: None,
        since: None,
        page_size: 50,
        from: None,
        history: None,
        artifacts: Wanted::Yes,
    }
}

/// Every call, about this task where it names one, with the name of its row. The order is that of the rows.
fn calls(at: Option<&str>, task: &str) -> Vec<Call> {
    let (agent, task_id) = (at.map(agent), id(task));
    let push = [
        PushCall::Set { agent: agent.clone(), config: config(task), born: Birth(10), events: PushEvents::Statuses },
        PushCall::Get { agent: agent.clone(), task: task_id.clone(), config: None },
        PushCall::List { agent: agent.clone(), task: task_id.clone(), page_size: None, page_token: None },
        PushCall::Delete {
            agent: agent.clone(),
            task: task_id.clone(),
            config: Some(PushConfigId::parse("none").unwrap()),
        },
    ];
    let mut calls = vec![
        Call::Get(Get { agent: agent.clone(), task: task_id.clone(), history: None, earlier: Wanted::No }),
        Call::List(List { agent: agent.clone(), ..list() }),
        Call::Subscribe(Subscribe {
            agent: agent.clone(),
            task: task_id.clone(),
            after: None,
            on_finished: OnFinishedSubscribe::ShowEnd,
        }),
        Call::ExtendedCard { agent: agent.clone() },
    ];
    calls.extend(push.map(Call::Push));
    calls.push(Call::Send(Box::new(Send { agent: agent.clone(), ..at_once("new") })));
    calls.push(Call::Send(Box::new(Send { agent: agent.clone(), ..to(&task_id, at_once("answer")) })));
    let on_finished = OnFinishedCancel::Leave;
    calls.push(Call::Cancel(Cancel { agent, task: task_id, metadata: None, on_finished }));
    calls
}

/// The row of a call. There is no other way to name one, so a new call cannot be forgotten here.
fn row(call: &Call) -> &'static str {
    match call {
        Call::Get(_) => "get",
        Call::List(_) => "list",
        Call::Subscribe(_) => "subscribe",
        Call::ExtendedCard { .. } => "card",
        Call::Push(PushCall::Set { .. }) => "push set",
        Call::Push(PushCall::Get { .. }) => "push get",
        Call::Push(PushCall::List { .. }) => "push list",
        Call::Push(PushCall::Delete { .. }) => "push delete",
        Call::Send(send) if send.message.task.is_none() => "send",
        Call::Send(_) => "answer",
        Call::Cancel(_) => "cancel",
    }
}

const ROWS: [&str; 11] = [
    "get",
    "list",
    "subscribe",
    "card",
    "push set",
    "push get",
    "push list",
    "push delete",
    "send",
    "answer",
    "cancel",
];

fn outcome(answer: &Result<Answer, Error>) -> String {
    match answer {
        // There is no extended card yet; whoever hears so has passed the gate.
        Ok(_) | Err(Error::ExtendedCardNotOffered) => "ok".into(),
        Err(Error::Forbidden(text)) => text.replace("the credential lacks the scope ", "lacks "),
        Err(Error::TaskNotFound(_)) => "no task".into(),
        Err(Error::AgentNotFound { named, known }) => {
            let known: Vec<&str> = known.iter().map(AgentId::as_str).collect();
            format!("no agent {named}; {}", known.join(" "))
        }
        Err(other) => panic!("{other:?}"),
    }
}

/// What each caller gets for each call about alice's waiting task at `coder`, at the address of the agent and at the root.
#[tokio::test]
async fn every_call_needs_its_right() {
    let all = |outcome: &str| vec![outcome.to_owned(); ROWS.len()];
    let split = |watch: &str, run: &str| -> Vec<String> {
        let is_watching = |row: &&str| matches!(*row, "get" | "list" | "subscribe" | "card" | "push get" | "push list");
        ROWS.iter().map(|row| if is_watching(row) { watch } else { run }.to_owned()).collect()
    };
    let with = |mut rows: Vec<String>, changes: &[(&str, &str)]| {
        for (name, outcome) in changes {
            rows[ROWS.iter().position(|row| row == name).unwrap()] = (*outcome).to_owned();
        }
        rows
    };
    // A list is empty instead, and what names no task depends on the agent alone.
    let strangers = |send: &str| with(all("no task"), &[("list", "ok"), ("card", "ok"), ("send", send)]);
    let lacks_run = "lacks run for agent coder";
    let alice = |scopes: &[&str]| caller("alice", scopes);
    for (who, at, expected) in [
        (Caller::new("acme", "alice"), Some("coder"), all("ok")),
        (alice(&["run"]), Some("coder"), all("ok")),
        (alice(&["run:coder"]), Some("coder"), all("ok")),
        (alice(&["run"]), None, all("ok")),
        (alice(&["run:coder"]), None, all("ok")),
        (alice(&["read"]), Some("coder"), split("ok", lacks_run)),
        (alice(&["read:coder"]), None, split("ok", lacks_run)),
        // A right for another agent only: the agent is known, the task is not.
        (alice(&["run:demo"]), Some("coder"), split("lacks read for agent coder", lacks_run)),
        (alice(&["run:demo"]), None, strangers(lacks_run)),
        (alice(&[]), Some("coder"), split("lacks read for agent coder", lacks_run)),
        (alice(&[]), None, strangers(lacks_run)),
        // Somebody else, with every right for its own tasks.
        (caller("bob", &["run"]), Some("coder"), strangers("ok")),
        (caller("bob", &["run", "read", "approve", "admin:coder"]), None, strangers("ok")),
        (Caller::new("other", "alice"), None, strangers("ok")),
        (Caller::anonymous(), None, strangers("ok")),
        (caller("root", &["admin"]), Some("coder"), all("ok")),
        (caller("root", &["admin"]), None, all("ok")),
        // An agent that is not listed is one that does not exist, unless there is a right for it.
        (alice(&["run:coder"]), Some("secret"), all("no agent secret; coder demo")),
        (alice(&["run:coder"]), Some("never"), all("no agent never; coder demo")),
        (alice(&[]), Some("secret"), all("no agent secret; coder demo")),
        (alice(&["read:secret"]), Some("never"), all("no agent never; coder demo secret")),
        (alice(&["read:secret"]), Some("secret"), {
            with(split("no task", "lacks run for agent secret"), &[("list", "ok"), ("card", "ok")])
        }),
        (alice(&["run:secret"]), Some("secret"), strangers("ok")),
    ] {
        let engine = engine().await;
        let task = Call::Send(Box::new(Send { agent: Some(agent("coder")), ..named("t1", text("go")) }));
        let task = task_of(engine.call(&Caller::new("acme", "alice"), task).await.unwrap());
        assert_eq!(task.status.state, State::InputRequired);
        let calls = calls(at, "t1");
        assert_eq!(calls.iter().map(row).collect::<Vec<_>>(), ROWS, "every call has its row");
        for (call, expected) in calls.into_iter().zip(expected) {
            let row = row(&call);
            let got = outcome(&engine.call(&who, call).await);
            assert_eq!(got, expected, "{row} at {at:?} by {} {:?}", who.owner, who.scopes);
        }
    }
}

/// Nothing in a refusal tells a task of somebody else from one that never was.
#[tokio::test]
async fn a_foreign_task_is_refused_in_the_words_of_an_unknown_one() {
    let engine = engine().await;
    let alice = caller("alice", &["run"]);
    for (name, agent) in [("theirs", "coder"), ("hidden", "secret")] {
        let send = Send { agent: Some(self::agent(agent)), ..named(name, text("go")) };
        engine.call(&alice, Call::Send(Box::new(send))).await.unwrap();
    }
    for who in [caller("bob", &["run"]), caller("bob", &["run:coder"]), caller("alice", &["run:coder"])] {
        for at in [None, Some("coder")] {
            let foreign = if who.owner == alice.owner { "hidden" } else { "theirs" };
            for (known, unknown) in calls(at, foreign).into_iter().zip(calls(at, "nobodys")) {
                let row = row(&known);
                let (known, unknown) = (engine.call(&who, known).await, engine.call(&who, unknown).await);
                let words = |answer: &Result<Answer, Error>, id: &str| match answer {
                    Ok(Answer::Page(page)) => format!("{} of {}", page.tasks.len(), page.total),
                    Ok(_) => "ok".into(),
                    Err(error) => format!("{error:?} {error}").replace(id, "ID"),
                };
                assert_eq!(words(&known, foreign), words(&unknown, "nobodys"), "{row} at {at:?} by {who:?}");
            }
        }
    }
}

fn equal_send() -> Send {
    let message = Message::new(MessageId::parse("m").unwrap(), sabir_model::Role::User, vec![Part::text("go")]);
    let send = within("c1", Send { delivery: Delivery::Immediately, ..Send::new(message, Birth(10)) });
    Send { idempotency: Some(IdempotencyKey::parse("k").unwrap()), ..named("t1", send) }
}

/// Two owners use the same task id, context id, message id and key at the same agent at the same time.
#[tokio::test]
async fn equal_names_of_two_owners_never_meet() {
    let engine = engine().await;
    let owners = [caller("alice", &["run"]), caller("bob", &["run"]), Caller::anonymous()];
    let get = |task: &str| Call::Get(Get { agent: None, task: id(task), history: None, earlier: Wanted::Yes });
    let mut streams = Vec::new();
    for who in &owners {
        let send = Send { delivery: Delivery::Stream, ..equal_send() };
        streams.push(stream_of(engine.call(who, Call::Send(Box::new(send))).await.unwrap()));
    }
    // A repeated send joins the sender's own task, by key and by message.
    for who in &owners {
        for send in [equal_send(), Send { idempotency: None, ..equal_send() }] {
            let task = task_of(engine.call(who, Call::Send(Box::new(send))).await.unwrap());
            assert_eq!((task.owner, task.id), (who.owner.clone(), id("t1")));
        }
    }
    for who in &owners {
        loop {
            let Answer::Conversation(task, earlier) = engine.call(who, get("t1")).await.unwrap() else { panic!() };
            assert_eq!((&task.owner, task.history.len(), earlier.len()), (&who.owner, 1, 0), "one message, no others");
            if task.status.state == State::InputRequired {
                break;
            }
            tokio::task::yield_now().await;
        }
        let Answer::Page(page) = engine.call(who, Call::List(list())).await.unwrap() else { panic!() };
        assert_eq!((page.tasks.len(), page.total), (1, 1));
        assert_eq!(page.tasks[0].owner, who.owner);
    }
    // A webhook of one is none of the others'.
    let set = PushCall::Set { agent: None, config: config("t1"), born: Birth(10), events: PushEvents::Statuses };
    engine.call(&owners[0], Call::Push(set)).await.unwrap();
    for (who, expected) in owners.iter().zip([1, 0, 0]) {
        let hooks = PushCall::List { agent: None, task: id("t1"), page_size: None, page_token: None };
        let Answer::PushConfigs(configs) = engine.call(who, Call::Push(hooks)).await.unwrap() else { panic!() };
        assert_eq!(configs.len(), expected);
    }
    // A context alone answers the one task of it that waits: the sender's.
    let by_context = within("c1", Send { context_alone: ContextAlone::AnswersWaiting, ..text("by context") });
    let done = task_of(engine.call(&owners[1], Call::Send(Box::new(by_context))).await.unwrap());
    assert_eq!((&done.owner, done.status.state), (&owners[1].owner, State::Completed));
    let cancel = Cancel { agent: None, task: id("t1"), metadata: None, on_finished: OnFinishedCancel::Refuse };
    let canceled = task_of(engine.call(&owners[2], Call::Cancel(cancel)).await.unwrap());
    assert_eq!((&canceled.owner, canceled.status.state), (&owners[2].owner, State::Canceled));
    let mut ends = Vec::new();
    for (who, stream) in owners.iter().zip(&mut streams).skip(1) {
        let events = crate::fixture::drain(stream).await;
        ends.push(format!("{} {}", who.owner, events.last().unwrap().1));
    }
    assert_eq!(ends, ["bob@acme Completed go by context.", "anonymous Canceled."]);
    let Answer::Conversation(untouched, _) = engine.call(&owners[0], get("t1")).await.unwrap() else { panic!() };
    assert_eq!(untouched.status.state, State::InputRequired);
}

/// What an agent remembers, the conversation and the references are the owner's own.
#[tokio::test]
async fn an_agent_is_told_nothing_of_other_owners() {
    let engine = engine().await;
    let (alice, bob) = (caller("alice", &["run"]), caller("bob", &["run"]));
    for name in ["a1", "a2"] {
        engine.call(&alice, Call::Send(Box::new(named(name, within("c1", text("mine")))))).await.unwrap();
        let cancel = Cancel { agent: None, task: id(name), metadata: None, on_finished: OnFinishedCancel::Refuse };
        engine.call(&alice, Call::Cancel(cancel)).await.unwrap();
    }
    let done = |references: &[&str]| {
        let send = within("c1", text("done"));
        let references = references.iter().map(|name| id(name)).collect();
        Send { message: sabir_model::IncomingMessage { references, ..send.message }, ..send }
    };
    for (who, expected) in
        [(&alice, "[mine][mine]; 2 references, 2 earlier, from alice"), (&bob, "; 0 references, 0 earlier, from bob")]
    {
        let task = task_of(engine.call(who, Call::Send(Box::new(done(&["a1", "a2", "no"])))).await.unwrap());
        assert_eq!(task.status.message.unwrap().text(), expected);
    }
}

async fn make(engine: &Engine, who: &Caller, name: &str, words: &str) -> Task {
    task_of(engine.call(who, Call::Send(Box::new(named(name, text(words))))).await.unwrap())
}

#[tokio::test]
async fn an_admin_finds_its_own_task_first_and_then_the_newest_of_anybody() {
    let engine = engine().await;
    let (alice, bob, root) = (caller("alice", &["run"]), caller("bob", &["run"]), caller("root", &["admin"]));
    for (who, name) in [(&alice, "t1"), (&bob, "t1"), (&root, "t2"), (&alice, "t2"), (&bob, "t2")] {
        make(&engine, who, name, "go").await;
    }
    make(&engine, &Caller::anonymous(), "old", "go").await;
    let get = |name: &str| Call::Get(Get { agent: None, task: id(name), history: None, earlier: Wanted::No });
    for (name, expected) in [("t1", &bob.owner), ("t2", &root.owner), ("old", &Caller::anonymous().owner)] {
        assert_eq!(task_of(engine.call(&root, get(name)).await.unwrap()).owner, *expected, "{name}");
    }
    let Answer::Page(page) = engine.call(&root, Call::List(list())).await.unwrap() else { panic!() };
    assert_eq!((page.tasks.len(), page.total), (6, 6));
    // Page by page it is the same list.
    let (mut pages, mut from) = (Vec::new(), None);
    loop {
        let list = List { page_size: 1, from, ..list() };
        let Answer::Page(page) = engine.call(&root, Call::List(list)).await.unwrap() else { panic!() };
        pages.extend(page.tasks);
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(pages, page.tasks);
    // What an admin sends goes into the owner's task, and says who has sent it. Here the id is not enough to say whose.
    let order = |context| {
        let base = to(&id("t1"), text("an order"));
        Call::Send(Box::new(Send { message: IncomingMessage { context, ..base.message }, ..base }))
    };
    assert!(matches!(engine.call(&root, order(None)).await, Err(Error::Invalid(_))));
    let context = task_of(engine.call(&bob, get("t1")).await.unwrap()).context;
    let done = task_of(engine.call(&root, order(Some(context))).await.unwrap());
    assert_eq!((&done.owner, done.status.message.unwrap().text()), (&bob.owner, "go an order".into()));
    let sender = |task: &Task, at: usize| task.history[at].request.as_ref().and_then(|request| request.caller.clone());
    let seen = task_of(engine.call(&bob, get("t1")).await.unwrap());
    let last = seen.history.iter().position(|message| message.text() == "an order").unwrap();
    assert_eq!(sender(&seen, last).map(|caller| caller.owner), Some(root.owner.clone()));
}

/// A key belongs to its sender: an admin that repeats a message to somebody's task finds it, and the owner's own key is free.
#[tokio::test]
async fn a_key_that_an_admin_used_in_a_foreign_task_is_the_admins() {
    let engine = engine().await;
    let (alice, root) = (caller("alice", &["run"]), caller("root", &["admin"]));
    make(&engine, &alice, "t1", "go").await;
    let key = Some(IdempotencyKey::parse("k").unwrap());
    let answer = || Call::Send(Box::new(Send { idempotency: key.clone(), ..to(&id("t1"), text("an order")) }));
    for _ in 0..2 {
        let done = task_of(engine.call(&root, answer()).await.unwrap());
        assert_eq!((done.id, done.status.state, done.history.len()), (id("t1"), State::Completed, 3));
    }
    let own = Send { idempotency: key.clone(), ..text("done") };
    let own = task_of(engine.call(&alice, Call::Send(Box::new(own))).await.unwrap());
    assert_ne!(own.id, id("t1"), "the owner's key is a new one");
    // The same person with less rights does not get the task by the key.
    let demoted = caller("root", &["run"]);
    let new = Send { idempotency: key, ..text("done") };
    let refused = engine.call(&demoted, Call::Send(Box::new(new))).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{:?}", refused.err());
}

#[tokio::test]
async fn agents_that_are_not_listed_are_told_to_those_who_have_a_right() {
    let engine = engine().await;
    for (who, expected) in [
        (Caller::anonymous(), "coder demo secret"),
        (caller("alice", &[]), "coder demo"),
        (caller("alice", &["run:demo"]), "coder demo"),
        (caller("alice", &["read:secret"]), "coder demo secret"),
        (caller("alice", &["run"]), "coder demo secret"),
        (caller("alice", &["admin"]), "coder demo secret"),
    ] {
        let visible = engine.visible_agents(&who);
        let names: Vec<&str> = visible.iter().map(AgentId::as_str).collect();
        assert_eq!(names.join(" "), expected, "{:?}", who.scopes);
        assert_eq!(engine.agents_for(&who).count(), names.len());
    }
}

#[tokio::test]
async fn tasks_at_rest_are_given_to_another_owner() {
    let engine = engine().await;
    let (nobody, alice) = (Caller::anonymous(), caller("alice", &["run"]));
    let get = |name: &str| Call::Get(Get { agent: None, task: id(name), history: None, earlier: Wanted::No });
    make(&engine, &nobody, "t1", "done").await;
    make(&engine, &nobody, "same", "done").await;
    make(&engine, &alice, "same", "done").await;
    let parked = make(&engine, &nobody, "parked", "go").await;
    let done = engine.assign(&alice, &nobody.owner, &alice.owner).await.unwrap();
    assert_eq!((done.moved, done.left), (1, 2), "one has a run, and one has an id that is taken");
    assert_eq!(task_of(engine.call(&alice, get("t1")).await.unwrap()).owner, alice.owner);
    assert!(matches!(engine.call(&nobody, get("t1")).await, Err(Error::TaskNotFound(_))));
    // The one with a run goes on where it is, and is moved when it has ended.
    let answer = Call::Send(Box::new(to(&parked.id, text("now"))));
    assert_eq!(task_of(engine.call(&nobody, answer).await.unwrap()).status.state, State::Completed);
    let done = engine.assign(&alice, &nobody.owner, &alice.owner).await.unwrap();
    assert_eq!((done.moved, done.left), (1, 1));
    for (who, total) in [(&nobody, 1), (&alice, 3)] {
        let Answer::Page(page) = engine.call(who, Call::List(list())).await.unwrap() else { panic!() };
        assert_eq!((page.total, page.tasks.len() as u64), (total, total));
    }
    assert!(matches!(engine.assign(&alice, &alice.owner, &alice.owner).await, Err(Error::Invalid(_))));
}

/// A task that waits for its next message is in memory, and may be watched.
#[tokio::test]
async fn who_still_watches_a_task_that_was_given_away_hears_no_more() {
    let store = Arc::new(MemoryStore::new());
    let builder = Builder::new(store).agent(hosted("demo", crate::fixture::asking(), Limits::default()));
    let engine = builder.start().await.unwrap();
    let (nobody, alice) = (Caller::anonymous(), caller("alice", &["run"]));
    let task = make(&engine, &nobody, "t1", "ask what?").await;
    assert!(task.turn_over && task.status.state == State::InputRequired);
    let on_finished = OnFinishedSubscribe::Refuse;
    let subscribe = Subscribe { agent: None, task: id("t1"), after: None, on_finished };
    let mut stream = stream_of(engine.call(&nobody, Call::Subscribe(subscribe)).await.unwrap());
    engine.assign(&alice, &nobody.owner, &alice.owner).await.unwrap();
    let answer = || Call::Send(Box::new(to(&id("t1"), text("that"))));
    assert!(matches!(engine.call(&nobody, answer()).await, Err(Error::TaskNotFound(_))));
    let done = task_of(engine.call(&alice, answer()).await.unwrap());
    assert_eq!((done.owner, done.status.state), (alice.owner.clone(), State::Completed));
    let events: Vec<String> = crate::fixture::drain(&mut stream).await.into_iter().map(|(_, words)| words).collect();
    assert_eq!(events, ["snapshot InputRequired"]);
}
