//! Questions for permission that somebody else than the owner of the task answers.

use std::sync::Arc;

use sabir_engine::{AgentError, Answer, Batch, Builder, Engine, Limits, Outcome, Subscription, Turn};
use sabir_model::{
    AgentId, Call, Caller, Cancel, Content, Delivery, Error, Get, Json, List, OnFinishedCancel, OnFinishedSubscribe,
    Part, PushCall, PushConfig, QuestionType, Required, Send, Seq, State, Subscribe, Task, TaskId, Wanted,
};
use sabir_store::{MemoryStore, Store};
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{drain, hosted, stream_of, task_of, text, to};

fn data(json: &str) -> Part {
    Part::from(Content::Data(Json::parse(json).unwrap()))
}

fn permission(question: &str) -> Vec<Part> {
    vec![Part::text(question), data(r#"{"kind":"question","type":"permission","question":"may I?"}"#)]
}

/// `run` asks for permission; `name` asks for input and then for permission; `end` ends its turn by asking for permission.
/// Everything else completes.
fn worker() -> ScriptedAgent {
    let work = |turn: Turn| async move {
        let done = |text: String| Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(text)]));
        if let Some(question) = turn.interrupted_question() {
            return done(format!("resumed {:?} {}", question.question_type(), turn.message().text()));
        }
        match turn.message().text().as_str() {
            "run" => {
                let answer = turn.ask(Required::Input, permission("may I?")).await?;
                turn.progress("secret work").await;
                done(format!("ran: {}", answer.text()))
            }
            "name" => {
                let name = turn.ask(Required::Input, vec![Part::text("which?")]).await?.text();
                let answer = turn.ask(Required::Input, permission("may I?")).await?.text();
                done(format!("{name}: {answer}"))
            }
            "talk" => {
                let ask = turn.ask(Required::Input, permission("may I?"));
                let talk = async {
                    turn.progress("still here").await;
                    std::future::pending::<()>().await;
                };
                tokio::select! { answer = ask => done(answer?.text()), () = talk => unreachable!("it talks for ever") }
            }
            "end" => Ok(Outcome::InputRequired(permission("may I?"))),
            other => done(format!("did {other}")),
        }
    };
    ScriptedAgent::new(work).resuming()
}

async fn engine_on(store: Arc<dyn Store>) -> Engine {
    let mut coder = hosted("coder", worker(), Limits::default());
    coder.approver = Some("ops".into());
    let mut secret = hosted("secret", worker(), Limits::default());
    (secret.approver, secret.is_listed) = (Some("law".into()), false);
    let demo = hosted("demo", worker(), Limits::default());
    Builder::new(store).agent(coder).agent(demo).agent(secret).start().await.unwrap()
}

async fn engine() -> Engine {
    engine_on(Arc::new(MemoryStore::new())).await
}

fn caller(subject: &str, scopes: &[&str]) -> Caller {
    Caller::new("acme", subject).with_scopes(scopes.iter().copied())
}

fn alice() -> Caller {
    caller("alice", &["run"])
}

fn ops() -> Caller {
    caller("olga", &["ops"])
}

async fn start(engine: &Engine, agent: &str, words: &str) -> Task {
    let send = Send { agent: Some(AgentId::parse(agent).unwrap()), ..text(words) };
    task_of(engine.call(&alice(), Call::Send(Box::new(send))).await.unwrap())
}

async fn get(engine: &Engine, who: &Caller, task: &TaskId) -> Result<Task, Error> {
    let get = Get { agent: None, task: task.clone(), history: None, earlier: Wanted::No };
    engine.call(who, Call::Get(get)).await.map(task_of)
}

async fn send(engine: &Engine, who: &Caller, task: &TaskId, send: Send) -> Result<Task, Error> {
    engine.call(who, Call::Send(Box::new(to(task, send)))).await.map(task_of)
}

async fn watch(engine: &Engine, who: &Caller, task: &TaskId, after: Option<Seq>) -> Result<Subscription, Error> {
    let on_finished = OnFinishedSubscribe::Refuse;
    let subscribe = Subscribe { agent: None, task: task.clone(), after, on_finished };
    engine.call(who, Call::Subscribe(subscribe)).await.map(stream_of)
}

async fn cancel(engine: &Engine, who: &Caller, task: &TaskId) -> Result<Task, Error> {
    let on_finished = OnFinishedCancel::Refuse;
    engine
        .call(who, Call::Cancel(Cancel { agent: None, task: task.clone(), metadata: None, on_finished }))
        .await
        .map(task_of)
}

async fn listed(engine: &Engine, who: &Caller, state: Option<State>) -> String {
    let list = List {
        agent: None,
        context: None,
        state,
        since: None,
        page_size: 50,
        from: None,
        history: None,
        artifacts: Wanted::No,
    };
    let Answer::Page(page) = engine.call(who, Call::List(list)).await.unwrap() else { panic!("expected a page") };
    assert_eq!(page.total, page.tasks.len() as u64);
    let ids: Vec<&str> = page.tasks.iter().map(|task| task.id.as_str()).collect();
    ids.join(" ")
}

async fn settled(engine: &Engine, task: &TaskId) -> Task {
    loop {
        let task = get(engine, &alice(), task).await.unwrap();
        if task.status.state.is_terminal() {
            return task;
        }
        tokio::task::yield_now().await;
    }
}

fn is_gone<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::TaskNotFound(_)))
}

fn last_words(task: &Task) -> String {
    task.status.message.as_ref().map(|message| message.text()).unwrap_or_default()
}

#[tokio::test]
async fn a_holder_of_the_scope_finds_sees_and_answers() {
    let engine = engine().await;
    let task = start(&engine, "coder", "run").await;
    assert_eq!(task.status.state, State::InputRequired);
    let question = task.status.message.clone().unwrap();
    assert_eq!((question.question_type(), question.approver().as_deref()), (QuestionType::Permission, Some("ops")));
    assert!(question.text().contains("only callers with the scope ops may answer"), "{}", question.text());
    for state in [None, Some(State::InputRequired)] {
        assert_eq!(listed(&engine, &ops(), state).await, task.id.as_str());
    }
    assert_eq!(listed(&engine, &ops(), Some(State::Working)).await, "");
    assert_eq!(get(&engine, &ops(), &task.id).await.unwrap(), get(&engine, &alice(), &task.id).await.unwrap());
    let shown = send(&engine, &ops(), &task.id, text("yes")).await.unwrap();
    assert!(!last_words(&shown).contains("secret work") && !shown.status.state.is_terminal(), "{shown:?}");
    let done = settled(&engine, &task.id).await;
    assert_eq!(last_words(&done), "ran: yes");
    let answer = done.history.iter().find(|message| message.text() == "yes").unwrap();
    let sender = answer.request.as_ref().and_then(|request| request.caller.clone()).unwrap();
    assert_eq!(sender.owner, ops().owner, "the log says who has approved");
    // The task does not exist for the approver any more.
    assert!(is_gone(&get(&engine, &ops(), &task.id).await));
    assert!(is_gone(&send(&engine, &ops(), &task.id, text("yes")).await));
    assert!(is_gone(&watch(&engine, &ops(), &task.id, None).await));
    assert_eq!(listed(&engine, &ops(), None).await, "");
}

#[tokio::test]
async fn the_owner_cannot_approve_but_cancels() {
    let engine = engine().await;
    for words in ["run", "end", "talk"] {
        let task = start(&engine, "coder", words).await;
        let named = format!(r#"{{"questionId":"{}","approved":true}}"#, task.open_question().unwrap());
        for (words, metadata) in
            [("yes", None), ("and then clean up", None), ("yes", Some(Json::parse(&named).unwrap()))]
        {
            let base = text(words);
            let send = Send { message: sabir_model::IncomingMessage { metadata, ..base.message }, ..base };
            let refused = self::send(&engine, &alice(), &task.id, send).await;
            let Err(Error::Forbidden(words)) = refused else { panic!("{refused:?}") };
            assert!(words.contains("only callers with the scope ops may answer"), "{words}");
        }
        let seen = get(&engine, &alice(), &task.id).await.unwrap();
        assert_eq!((seen.status.state, seen.history.len()), (State::InputRequired, 1), "nothing was taken or queued");
        assert_eq!(cancel(&engine, &alice(), &task.id).await.unwrap().status.state, State::Canceled);
    }
}

/// Who may answer the question of a task of alice's at `coder`.
#[tokio::test]
async fn only_the_named_scope_counts() {
    for (who, may) in [
        (caller("olga", &["ops"]), true),
        (caller("olga", &["ops:coder"]), true),
        (caller("olga", &["ops:demo"]), false),
        (caller("olga", &["approve"]), false),
        (caller("olga", &["law"]), false),
        (caller("olga", &["run", "read"]), false),
        (caller("root", &["admin"]), true),
        (caller("alice", &["run", "ops"]), true),
        (caller("alice", &["read", "ops"]), true),
        (caller("alice", &["ops"]), true),
        // The scope counts within its holder's tenant; an admin has none above it.
        (Caller::new("globex", "olga").with_scopes(["ops"]), false),
        (Caller::new("globex", "alice").with_scopes(["run", "ops"]), false),
        (Caller::new("", "olga").with_scopes(["ops"]), false),
        (Caller::new("globex", "root").with_scopes(["admin"]), true),
        (Caller::new("acme", "olga"), false),
        (Caller::anonymous(), false),
    ] {
        let engine = engine().await;
        let task = start(&engine, "coder", "run").await;
        if !may {
            assert!(is_gone(&get(&engine, &who, &task.id).await), "{who:?}");
            assert!(is_gone(&watch(&engine, &who, &task.id, None).await), "{who:?}");
            assert_eq!(listed(&engine, &who, None).await, "", "{who:?}");
        }
        let answered = send(&engine, &who, &task.id, Send { delivery: Delivery::Immediately, ..text("yes") }).await;
        assert_eq!(answered.is_ok(), may, "{who:?}: {answered:?}");
        match may {
            true => assert_eq!(last_words(&settled(&engine, &task.id).await), "ran: yes"),
            false => assert!(is_gone(&answered), "{who:?}: {answered:?}"),
        }
    }
}

#[tokio::test]
async fn a_holder_does_nothing_but_answer() {
    let engine = engine().await;
    let task = start(&engine, "coder", "run").await;
    // Neither an approval nor an answer that names the question.
    for words in ["and then clean up", "run"] {
        let refused = send(&engine, &ops(), &task.id, text(words)).await;
        assert!(
            matches!(&refused, Err(Error::Invalid(violations)) if violations[0].field == "message.parts"),
            "{refused:?}"
        );
    }
    assert!(is_gone(&cancel(&engine, &ops(), &task.id).await));
    let refused = engine.call(&ops(), Call::Send(Box::new(text("a task of my own")))).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))));
    let url = "https://a.example/".to_owned();
    let config = PushConfig { id: None, task: Some(task.id.clone()), url, token: None, authentication: None };
    let set = PushCall::Set { agent: None, config, born: sabir_model::Birth(10), events: sabir_model::PushEvents::All };
    assert!(matches!(
        engine.call(&ops(), Call::Push(set)).await,
        Err(Error::TaskNotFound(_) | Error::PushNotSupported)
    ));
    // What came before in the conversation is the owner's.
    let earlier = Get { agent: None, task: task.id.clone(), history: None, earlier: Wanted::Yes };
    let Answer::Conversation(_, earlier) = engine.call(&ops(), Call::Get(earlier)).await.unwrap() else { panic!() };
    assert!(earlier.is_empty());
    // Tasks that ask for something else, or ask nobody, are not there.
    let input = start(&engine, "coder", "name").await;
    let unguarded = start(&engine, "demo", "run").await;
    let finished = start(&engine, "coder", "work").await;
    let of_law = start(&engine, "secret", "run").await;
    for other in [&input, &unguarded, &finished, &of_law] {
        assert!(is_gone(&get(&engine, &ops(), &other.id).await), "{other:?}");
        assert!(is_gone(&send(&engine, &ops(), &other.id, text("yes")).await), "{other:?}");
        assert!(is_gone(&watch(&engine, &ops(), &other.id, None).await), "{other:?}");
    }
    assert_eq!(listed(&engine, &ops(), None).await, task.id.as_str());
    assert_eq!(listed(&engine, &caller("lea", &["law"]), None).await, of_law.id.as_str());
    // An approver sees the agent that it approves for, although that is not listed.
    assert_eq!(engine.visible_agents(&caller("lea", &["law:secret"])).len(), 3);
    assert_eq!(engine.visible_agents(&ops()).len(), 3, "a scope for all agents is one for this one, too");
    assert_eq!(engine.visible_agents(&caller("olga", &["ops:coder"])).len(), 2);
}

#[tokio::test]
async fn the_owner_answers_what_is_no_permission() {
    let engine = engine().await;
    let task = start(&engine, "coder", "name").await;
    assert_eq!(task.approver(), None);
    let task = send(&engine, &alice(), &task.id, text("this one")).await.unwrap();
    assert_eq!((task.status.state, task.approver().as_deref()), (State::InputRequired, Some("ops")));
    assert!(matches!(send(&engine, &alice(), &task.id, text("yes")).await, Err(Error::Forbidden(_))));
    send(&engine, &ops(), &task.id, text("no")).await.unwrap();
    assert_eq!(last_words(&settled(&engine, &task.id).await), "this one: no");
    // Without an approver the owner answers everything.
    let task = start(&engine, "demo", "run").await;
    assert_eq!(task.approver(), None);
    assert_eq!(last_words(&send(&engine, &alice(), &task.id, text("yes")).await.unwrap()), "ran: yes");
}

#[tokio::test]
async fn a_turn_that_ended_by_asking_for_permission_waits_for_the_approver() {
    let engine = engine().await;
    let task = start(&engine, "coder", "end").await;
    assert!(task.turn_over);
    assert_eq!(listed(&engine, &ops(), None).await, task.id.as_str());
    send(&engine, &ops(), &task.id, text("yes")).await.unwrap();
    assert_eq!(last_words(&settled(&engine, &task.id).await), "did yes");
}

#[tokio::test]
async fn a_stream_of_an_approver_ends_with_the_answer() {
    let engine = engine().await;
    for words in ["run", "talk"] {
        let task = start(&engine, "coder", words).await;
        let mut live = watch(&engine, &ops(), &task.id, None).await.unwrap();
        let mut replay = watch(&engine, &ops(), &task.id, Some(0)).await.unwrap();
        let Some(Ok(Batch::Snapshot(snapshot))) = live.next().await else { panic!("a stream begins with a snapshot") };
        assert_eq!(snapshot.status.state, State::InputRequired);
        let answer = Send { delivery: Delivery::Stream, ..to(&task.id, text("yes")) };
        let mut own = stream_of(engine.call(&ops(), Call::Send(Box::new(answer))).await.unwrap());
        settled(&engine, &task.id).await;
        for (stream, name) in [(&mut live, "live"), (&mut replay, "replay"), (&mut own, "own")] {
            let events: Vec<String> = drain(stream).await.into_iter().map(|(_, words)| words).collect();
            assert_eq!(events.last().map(String::as_str), Some("Working"), "{name} {words}: {events:?}");
            assert!(!events.iter().any(|event| event.contains("secret work")), "{name} {words}: {events:?}");
            assert!(stream.next().await.is_none());
        }
    }
    // The owner's answer to nothing, a cancel, ends it too.
    let task = start(&engine, "coder", "run").await;
    let mut live = watch(&engine, &ops(), &task.id, None).await.unwrap();
    cancel(&engine, &alice(), &task.id).await.unwrap();
    let events = drain(&mut live).await;
    assert_eq!(events.last().unwrap().1, "Canceled.");
}

/// The type and the approver are in the log, so another process knows them.
#[tokio::test]
async fn a_pending_approval_outlives_its_server() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let first = engine_on(store.clone()).await;
    let task = start(&first, "coder", "run").await;
    first.stop(std::time::Duration::ZERO).await;
    let engine = engine_on(store).await;
    let seen = get(&engine, &alice(), &task.id).await.unwrap();
    assert_eq!((seen.status.state, seen.approver().as_deref()), (State::InputRequired, Some("ops")));
    assert!(matches!(send(&engine, &alice(), &task.id, text("yes")).await, Err(Error::Forbidden(_))));
    assert_eq!(listed(&engine, &ops(), None).await, task.id.as_str());
    send(&engine, &ops(), &task.id, text("yes")).await.unwrap();
    assert_eq!(last_words(&settled(&engine, &task.id).await), "resumed Permission yes");
}

/// Several owners have a waiting task of the same id, and questions with the same id: whoever saw the question of one must
/// not answer that of the other. The newest of those that wait is shown.
#[tokio::test]
async fn an_id_at_several_owners_is_answered_only_with_the_context() {
    let engine = engine().await;
    let coder = Some(AgentId::parse("coder").unwrap());
    let id = TaskId::parse("same").unwrap();
    let make = |words: &str| {
        let on_unknown = sabir_model::OnUnknown::Create;
        Call::Send(Box::new(Send { agent: coder.clone(), on_unknown, ..to(&id, text(words)) }))
    };
    let owner = |name: &str| caller(name, &["run"]);
    let ann = task_of(engine.call(&owner("ann"), make("run")).await.unwrap());
    // The approver has read the question of ann's task when bob makes one of the same id.
    let seen = get(&engine, &ops(), &id).await.unwrap();
    let bob = task_of(engine.call(&owner("bob"), make("run")).await.unwrap());
    for (who, words) in [("cy", "name"), ("di", "work")] {
        engine.call(&owner(who), make(words)).await.unwrap();
    }
    assert_eq!(listed(&engine, &ops(), None).await, "same same");
    assert_eq!(seen.open_question(), bob.open_question());
    let named = format!(r#"{{"questionId":"{}","approved":true}}"#, seen.open_question().unwrap());
    let named = || {
        let base = text("yes");
        let metadata = Some(Json::parse(&named).unwrap());
        Send { message: sabir_model::IncomingMessage { metadata, ..base.message }, ..base }
    };
    let several = || Send { further: vec![vec![Part::text("yes")]], ..named() };
    for who in [ops(), caller("root", &["admin"])] {
        for answer in [text("yes"), named(), several()] {
            let refused = send(&engine, &who, &id, answer).await;
            assert!(
                matches!(&refused, Err(Error::Invalid(violations)) if violations[0].field == "message.contextId"),
                "{refused:?}"
            );
        }
    }
    let in_context = |task: &Task, answer: Send| {
        let context = Some(task.context.clone());
        Send { message: sabir_model::IncomingMessage { context, ..answer.message }, ..answer }
    };
    let is_waiting =
        async |name: &str| get(&engine, &owner(name), &id).await.unwrap().status.state == State::InputRequired;
    let answer = to(&id, in_context(&seen, several()));
    match engine.call(&ops(), Call::Send(Box::new(answer))).await {
        Ok(Answer::Answered(_, results)) => assert!(results[0].is_ok(), "{results:?}"),
        Ok(_) => panic!("no results"),
        Err(error) => panic!("{error:?}"),
    }
    while is_waiting("ann").await {
        tokio::task::yield_now().await;
    }
    assert!(is_waiting("bob").await, "only the task in the context is answered");
    // A late answer to ann's question does not become one to bob's.
    let late = send(&engine, &ops(), &id, in_context(&ann, named())).await;
    assert!(late.is_err() && is_waiting("bob").await, "{late:?}");
    assert_eq!(get(&engine, &ops(), &id).await.unwrap().owner, owner("bob").owner);
    send(&engine, &ops(), &id, text("yes")).await.unwrap();
    while is_waiting("bob").await {
        tokio::task::yield_now().await;
    }
    assert!(is_gone(&get(&engine, &ops(), &id).await));
}
