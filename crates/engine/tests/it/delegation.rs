//! Programs that ask other agents in the name of the task that they work on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use sabir_engine::{
    AgentError, Answer, AuditKeep, AuditQuery, Builder, DelegationLimits, Engine, EngineSettings, Hosted, Limits,
    Outcome, RetentionPolicy, Turn,
};
use sabir_model::{
    AgentId, Call, Caller, Cancel, Content, Delivery, Error, Get, IdempotencyKey, Json, List, OnFinishedCancel,
    OnFinishedSubscribe, OnUnknown, Part, PushCall, Required, Send, State, Subscribe, Task, TaskId, Wanted,
};
use sabir_store::{MemoryStore, Store};
use sabir_testkit::clock::ManualClock;
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::sync::{Barrier, mpsc, watch};
use tokio::time::timeout;

use crate::fixture::{asking, at_once, echo, endless, hosted, task_of, text, to, within};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

/// The programs of a test: each turn tells who it is as a caller, and works until it hears how it ends.
struct Programs {
    callers: mpsc::UnboundedReceiver<Caller>,
    sender: mpsc::UnboundedSender<Caller>,
    end: watch::Sender<&'static str>,
}

impl Programs {
    fn new() -> Self {
        let (sender, callers) = mpsc::unbounded_channel();
        Self { callers, sender, end: watch::channel("").0 }
    }

    /// An agent with such a program, which may ask these agents; `None`: all.
    fn agent(&self, may_ask: Option<&[&str]>) -> ScriptedAgent {
        let (sender, end) = (self.sender.clone(), self.end.subscribe());
        let may_ask: Option<Vec<AgentId>> = may_ask.map(|ids| ids.iter().map(|id| agent_id(id)).collect());
        ScriptedAgent::new(move |turn: Turn| {
            let (sender, mut end, may_ask) = (sender.clone(), end.clone(), may_ask.clone());
            async move {
                let grant = turn.delegate(may_ask);
                let _ = sender.send(grant.caller().clone());
                let ended = async { end.wait_for(|end| !end.is_empty()).await.map_or("", |end| *end) };
                tokio::select! {
                    () = turn.cancelled() => Ok(Outcome::Canceled(Vec::new())),
                    how = ended => match how {
                        "fail" => Err(AgentError::for_caller("it failed")),
                        "reject" => Ok(Outcome::Rejected(Vec::new())),
                        _ => Ok(Outcome::Completed(Vec::new())),
                    },
                }
            }
        })
    }

    /// The program of the turn that begins next.
    async fn next(&mut self) -> Caller {
        timeout(LONG, self.callers.recv()).await.unwrap().unwrap()
    }
}

fn agent_id(id: &str) -> AgentId {
    AgentId::parse(id).unwrap()
}

fn alice() -> Caller {
    Caller::new("acme", "alice").with_scopes(["run", "approve"])
}

fn send_to(agent: &str, send: Send) -> Send {
    Send { agent: Some(agent_id(agent)), ..send }
}

async fn send(engine: &Engine, who: &Caller, send: Send) -> Result<Task, Error> {
    engine.call(who, Call::Send(Box::new(send))).await.map(task_of)
}

async fn get(engine: &Engine, who: &Caller, task: &TaskId) -> Result<Task, Error> {
    let get = Get { agent: None, task: task.clone(), history: None, earlier: Wanted::No };
    engine.call(who, Call::Get(get)).await.map(task_of)
}

async fn cancel(engine: &Engine, who: &Caller, task: &TaskId) -> Result<Task, Error> {
    let on_finished = OnFinishedCancel::Refuse;
    engine
        .call(who, Call::Cancel(Cancel { agent: None, task: task.clone(), metadata: None, on_finished }))
        .await
        .map(task_of)
}

async fn ended(engine: &Engine, task: &TaskId) -> Task {
    let ended = async {
        loop {
            let task = get(engine, &alice(), task).await.unwrap();
            if task.status.state.is_terminal() {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, ended).await.expect("the task ends")
}

fn status(task: &Task) -> String {
    task.status.message.as_ref().map_or(String::new(), |message| message.text())
}

async fn engine(agents: impl IntoIterator<Item = Hosted>) -> Engine {
    let builder = Builder::new(Arc::new(MemoryStore::new()));
    agents.into_iter().fold(builder, Builder::agent).start().await.unwrap()
}

/// `coder` has a program, `reviewer` answers at once, `asker` may ask back, `slow` never ends.
async fn usual(programs: &Programs) -> Engine {
    let limits = Limits::default();
    engine([
        hosted("coder", programs.agent(None), limits),
        hosted("reviewer", echo(), limits),
        hosted("asker", asking(), limits),
        hosted("slow", endless(), limits),
    ])
    .await
}

#[tokio::test]
async fn a_child_belongs_to_its_parent_and_to_the_owner_of_that() {
    let mut programs = Programs::new();
    let engine = usual(&programs).await;
    let parent = send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap();
    let program = programs.next().await;
    let child = send(&engine, &program, send_to("reviewer", text("review"))).await.unwrap();
    assert_eq!((child.status.state, status(&child)), (State::Completed, "review".into()));
    assert_eq!((&child.owner, &child.history[0].references), (&alice().owner, &vec![parent.id.clone()]));
    let delegated = child.delegated().unwrap();
    assert_eq!((&delegated.parent.task, delegated.depth()), (&parent.id, 1));
    assert_eq!(get(&engine, &alice(), &child.id).await.unwrap(), child);
    assert_eq!(get(&engine, &program, &child.id).await.unwrap(), child);
    assert!(parent.delegated().is_none());
}

#[tokio::test]
async fn what_a_program_may_not_ask_is_refused_with_the_reason() {
    let mut programs = Programs::new();
    let limits = DelegationLimits { max_depth: 2, max_children: 3 };
    let settings = EngineSettings { delegation: limits, ..EngineSettings::default() };
    let engine = Builder::new(Arc::new(MemoryStore::new()))
        .settings(settings)
        .agent(hosted("coder", programs.agent(None), Limits::default()))
        .agent(hosted("planner", programs.agent(None), Limits::default()))
        .agent(hosted("writer", programs.agent(None), Limits::default()))
        .agent(hosted("strict", programs.agent(Some(&["writer"])), Limits::default()))
        .agent(hosted("reviewer", echo(), Limits::default()))
        .start()
        .await
        .unwrap();
    let refusal = async |who: &Caller, request: Send| send(&engine, who, request).await.unwrap_err().to_string();

    send(&engine, &alice(), within("top", send_to("coder", at_once("build")))).await.unwrap();
    let coder = programs.next().await;
    let cycle = refusal(&coder, send_to("coder", text("again"))).await;
    assert!(cycle.starts_with("cycle: coder -> coder;"), "{cycle}");
    send(&engine, &coder, send_to("planner", at_once("plan"))).await.unwrap();
    let planner = programs.next().await;
    let cycle = refusal(&planner, send_to("coder", text("again"))).await;
    assert!(cycle.starts_with("cycle: coder -> planner -> coder;"), "{cycle}");
    let own_context = refusal(&planner, within("top", send_to("writer", text("x")))).await;
    assert!(own_context.starts_with("context top is that of a task which waits"), "{own_context}");
    send(&engine, &planner, send_to("writer", at_once("write"))).await.unwrap();
    let writer = programs.next().await;
    let deep = refusal(&writer, send_to("reviewer", text("x"))).await;
    assert!(deep.contains("2 deep (delegation.max_depth)"), "{deep}");

    for _ in 0..2 {
        send(&engine, &coder, send_to("reviewer", text("one more"))).await.unwrap();
    }
    let many = refusal(&coder, send_to("reviewer", text("too many"))).await;
    assert!(many.contains("3 tasks in one turn (delegation.max_children)"), "{many}");

    send(&engine, &alice(), send_to("strict", at_once("build"))).await.unwrap();
    let strict = programs.next().await;
    let unlisted = refusal(&strict, send_to("reviewer", text("x"))).await;
    assert_eq!(unlisted, "there is no agent reviewer; known: writer");
    assert_eq!(engine.visible_agents(&strict), [agent_id("writer")]);
    assert_eq!(engine.visible_agents(&planner), [agent_id("reviewer"), agent_id("strict"), agent_id("writer")]);

    let list = List {
        agent: None,
        context: None,
        state: None,
        since: None,
        page_size: 10,
        from: None,
        history: None,
        artifacts: Wanted::No,
    };
    assert!(matches!(engine.call(&coder, Call::List(list)).await, Err(Error::Forbidden(_))));
    let webhooks = PushCall::List { agent: None, task: TaskId::parse("t").unwrap(), page_size: None, page_token: None };
    assert!(matches!(engine.call(&coder, Call::Push(webhooks)).await, Err(Error::Forbidden(_))));
}

#[tokio::test]
async fn a_refused_or_repeated_message_takes_no_place_of_a_child() {
    let mut programs = Programs::new();
    let settings =
        EngineSettings { delegation: DelegationLimits { max_depth: 1, max_children: 1 }, ..EngineSettings::default() };
    let engine = Builder::new(Arc::new(MemoryStore::new()))
        .settings(settings)
        .agent(hosted("coder", programs.agent(None), Limits::default()))
        .agent(hosted("reviewer", echo(), Limits::default().message_bytes(5)))
        .start()
        .await
        .unwrap();
    send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap();
    let program = programs.next().await;
    assert!(send(&engine, &program, send_to("reviewer", text("far too long"))).await.is_err());
    let key = || Some(IdempotencyKey::parse("k").unwrap());
    let first =
        send(&engine, &program, Send { idempotency: key(), ..send_to("reviewer", text("short")) }).await.unwrap();
    let again =
        send(&engine, &program, Send { idempotency: key(), ..send_to("reviewer", text("short")) }).await.unwrap();
    assert_eq!(first.id, again.id);
    assert!(send(&engine, &program, send_to("reviewer", text("more"))).await.is_err());
}

#[tokio::test]
async fn the_right_ends_with_the_turn() {
    let mut programs = Programs::new();
    let engine = usual(&programs).await;
    let parent = send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap();
    let program = programs.next().await;
    let child = send(&engine, &program, send_to("asker", text("ask which?"))).await.unwrap();
    programs.end.send_replace("done");
    ended(&engine, &parent.id).await;
    for refused in [
        send(&engine, &program, send_to("reviewer", text("x"))).await,
        send(&engine, &program, to(&child.id, text("friday"))).await,
        get(&engine, &program, &child.id).await,
        cancel(&engine, &program, &child.id).await,
    ] {
        assert!(refused.unwrap_err().to_string().contains("the turn that this credential belongs to is over"));
    }
    assert_eq!(get(&engine, &alice(), &child.id).await.unwrap().status.state, State::InputRequired);
}

#[tokio::test]
async fn other_tasks_of_the_owner_do_not_exist_for_a_program() {
    let mut programs = Programs::new();
    let engine = usual(&programs).await;
    send(&engine, &alice(), send_to("coder", at_once("one"))).await.unwrap();
    let one = programs.next().await;
    send(&engine, &alice(), send_to("coder", at_once("two"))).await.unwrap();
    let two = programs.next().await;
    let siblings = send(&engine, &two, send_to("asker", text("ask which?"))).await.unwrap();
    let own = send(&engine, &alice(), send_to("slow", at_once("work"))).await.unwrap();
    let done = send(&engine, &alice(), send_to("reviewer", text("done"))).await.unwrap();
    let named = Send { on_unknown: OnUnknown::Create, ..send_to("reviewer", to(&done.id, text("x"))) };
    assert!(matches!(send(&engine, &one, named).await, Err(Error::TaskNotFound(_))), "it cannot take the id either");
    for task in [&siblings.id, &own.id, &done.id, &one.delegation.as_ref().unwrap().delegated.parent.task] {
        let subscribe =
            Subscribe { agent: None, task: task.clone(), after: None, on_finished: OnFinishedSubscribe::ShowEnd };
        let watched = engine.call(&one, Call::Subscribe(subscribe)).await;
        assert!(matches!(watched, Err(Error::TaskNotFound(_))));
        for found in [
            get(&engine, &one, task).await,
            cancel(&engine, &one, task).await,
            send(&engine, &one, to(task, text("friday"))).await,
        ] {
            assert!(matches!(found, Err(Error::TaskNotFound(_))), "{found:?}");
        }
    }
    assert_eq!(get(&engine, &alice(), &own.id).await.unwrap().status.state, State::Working);
    cancel(&engine, &two, &siblings.id).await.unwrap();
}

#[tokio::test]
async fn a_program_answers_questions_but_never_gives_permission() {
    let mut programs = Programs::new();
    let permission = || {
        let data = Json::parse(r#"{"kind":"question","type":"permission","question":"may I?"}"#).unwrap();
        vec![Part::text("may I?"), Part::from(Content::Data(data))]
    };
    let careful = ScriptedAgent::new(move |turn: Turn| async move {
        let name = turn.ask(Required::Input, vec![Part::text("which?")]).await?.text();
        let may = turn.ask(Required::Input, permission()).await?.text();
        Ok(match turn.message().text().as_str() {
            "end" => Outcome::InputRequired(permission()),
            _ => Outcome::Completed(vec![Part::text(format!("{name} {may}"))]),
        })
    });
    let engine = engine([
        hosted("coder", programs.agent(None), Limits::default()),
        hosted("careful", careful, Limits::default()),
    ])
    .await;
    for words in ["run", "end"] {
        send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap();
        let program = programs.next().await;
        let child = send(&engine, &program, send_to("careful", text(words))).await.unwrap();
        assert_eq!(child.status.state, State::InputRequired);
        let asks = send(&engine, &program, to(&child.id, text("main.rs"))).await.unwrap();
        assert_eq!(asks.status.state, State::InputRequired);
        let refused = send(&engine, &program, to(&child.id, text("yes"))).await.unwrap_err().to_string();
        assert!(refused.contains("waits for a permission, which only a person gives"), "{refused}");
        let answered = send(&engine, &alice(), to(&child.id, text("yes"))).await.unwrap();
        if words == "run" {
            assert_eq!((answered.status.state, status(&answered)), (State::Completed, "main.rs yes".into()));
            continue;
        }
        // The turn is over, and asks for permission all the same.
        let refused = send(&engine, &program, to(&child.id, text("yes"))).await;
        assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn repeats_count_for_one_parent() {
    let mut programs = Programs::new();
    let engine = usual(&programs).await;
    let mut children = Vec::new();
    let repeated = text("work");
    let key = || Some(IdempotencyKey::parse("k").unwrap());
    for _ in 0..2 {
        send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap();
        let program = programs.next().await;
        let keyed = || Send { idempotency: key(), delivery: Delivery::Immediately, ..send_to("slow", text("x")) };
        let first = send(&engine, &program, keyed()).await.unwrap().id;
        assert_eq!(send(&engine, &program, keyed()).await.unwrap().id, first);
        let same_id = Send { delivery: Delivery::Immediately, ..send_to("slow", repeated.clone()) };
        let by_message = send(&engine, &program, same_id.clone()).await.unwrap().id;
        assert_eq!(send(&engine, &program, same_id).await.unwrap().id, by_message);
        children.extend([first, by_message]);
    }
    let owners_own = Send { idempotency: key(), ..send_to("slow", at_once("x")) };
    children.push(send(&engine, &alice(), owners_own).await.unwrap().id);
    let total = children.len();
    children.sort();
    children.dedup();
    assert_eq!(children.len(), total);
}

#[tokio::test]
async fn rights_of_the_caller_go_to_the_program_and_no_others() {
    let mut programs = Programs::new();
    let engine = usual(&programs).await;
    let caller = |scopes: &[&str]| Caller::new("acme", "alice").with_scopes(scopes.iter().copied());
    for (scopes, expected) in [
        (vec!["run", "approve", "read"], vec!["run"]),
        (vec!["admin"], vec!["run"]),
        (vec!["run:coder", "run:reviewer", "read", "approve"], vec!["run:coder", "run:reviewer"]),
    ] {
        send(&engine, &caller(&scopes), send_to("coder", at_once("build"))).await.unwrap();
        let program = programs.next().await;
        assert_eq!(program.scopes.as_deref().unwrap(), expected.as_slice(), "{scopes:?}");
        let is_limited = expected != ["run"];
        assert_eq!(send(&engine, &program, send_to("asker", text("x"))).await.is_err(), is_limited);
        send(&engine, &program, send_to("reviewer", text("x"))).await.unwrap();
    }
}

#[tokio::test]
async fn agents_that_ask_each_other_do_not_wait_for_each_other() {
    // Each agent runs one task at a time, and both do: the children need the slots that their parents hold.
    let engine: Arc<Mutex<Option<Engine>>> = Arc::default();
    let both = Arc::new(Barrier::new(2));
    let agent = |other: &'static str| {
        let (engine, both) = (engine.clone(), both.clone());
        ScriptedAgent::new(move |turn: Turn| {
            let (engine, both) = (engine.clone(), both.clone());
            async move {
                if turn.message().text() != "ask" {
                    return Ok(Outcome::Completed(vec![Part::text("answered")]));
                }
                both.wait().await;
                let grant = turn.delegate(None);
                let engine = engine.lock().unwrap().clone().unwrap();
                let child = send(&engine, grant.caller(), send_to(other, text("help"))).await.unwrap();
                Ok(Outcome::Completed(vec![Part::text(status(&child))]))
            }
        })
    };
    let limits = Limits::default().concurrent(1);
    let started = self::engine([hosted("one", agent("two"), limits), hosted("two", agent("one"), limits)]).await;
    *engine.lock().unwrap() = Some(started.clone());
    let (caller_one, caller_two) = (alice(), alice());
    let (one, two) = tokio::join!(
        timeout(LONG, send(&started, &caller_one, send_to("one", text("ask")))),
        timeout(LONG, send(&started, &caller_two, send_to("two", text("ask")))),
    );
    for parent in [one, two] {
        let parent = parent.expect("nobody waits for ever").unwrap();
        assert_eq!((parent.status.state, status(&parent)), (State::Completed, "answered".into()));
    }
    *engine.lock().unwrap() = None;
}

#[tokio::test]
async fn a_child_waits_for_the_context_that_it_names_and_needs_no_slot_then() {
    let mut programs = Programs::new();
    let limits = Limits::default().concurrent(1);
    let engine = engine([hosted("coder", programs.agent(None), limits), hosted("slow", endless(), limits)]).await;
    send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap();
    let program = programs.next().await;
    let busy = send(&engine, &alice(), send_to("slow", at_once("busy"))).await.unwrap();
    let first = send(&engine, &program, within("c", send_to("slow", at_once("first")))).await.unwrap();
    let second = send(&engine, &program, within("c", send_to("slow", at_once("second")))).await.unwrap();
    let working = async |task: &TaskId| {
        while get(&engine, &alice(), task).await.unwrap().status.state != State::Working {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, working(&first.id)).await.expect("the slot is taken, and it runs");
    assert_eq!(get(&engine, &alice(), &second.id).await.unwrap().status.state, State::Submitted);
    cancel(&engine, &program, &first.id).await.unwrap();
    timeout(LONG, working(&second.id)).await.expect("its turn in the context has come");
    cancel(&engine, &program, &second.id).await.unwrap();
    // The slot was never given to others.
    let waits = send(&engine, &alice(), send_to("slow", at_once("waits"))).await.unwrap();
    assert_eq!(waits.status.state, State::Submitted);
    cancel(&engine, &alice(), &busy.id).await.unwrap();
    timeout(LONG, working(&waits.id)).await.expect("the slot is free");
}

#[tokio::test]
async fn a_child_ends_with_a_parent_that_has_no_result() {
    for (how, expected) in [
        ("cancel", Some("is canceled")),
        ("fail", Some("is failed")),
        ("reject", Some("is rejected")),
        ("complete", None),
    ] {
        let mut programs = Programs::new();
        let store = Arc::new(MemoryStore::new());
        let engine = Builder::new(store.clone())
            .audit(store.clone(), AuditKeep::default())
            .agent(hosted("coder", programs.agent(None), Limits::default()))
            .agent(hosted("asker", asking(), Limits::default()))
            .agent(hosted("slow", endless(), Limits::default()))
            .start()
            .await
            .unwrap();
        let parent = send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap();
        let program = programs.next().await;
        let works = send(&engine, &program, send_to("slow", at_once("work"))).await.unwrap();
        let waits = send(&engine, &program, send_to("asker", text("ask which?"))).await.unwrap();
        match how {
            "cancel" => drop(cancel(&engine, &alice(), &parent.id).await.unwrap()),
            how => drop(programs.end.send_replace(how)),
        }
        ended(&engine, &parent.id).await;
        let Some(expected) = expected else {
            let answered = send(&engine, &alice(), to(&waits.id, text("friday"))).await.unwrap();
            assert_eq!(answered.status.state, State::Completed, "children go on");
            assert_eq!(get(&engine, &alice(), &works.id).await.unwrap().status.state, State::Working);
            continue;
        };
        for child in [works, waits] {
            let child = ended(&engine, &child.id).await;
            assert_eq!(child.status.state, State::Canceled);
            let reason = status(&child);
            let named =
                format!("canceled: task {} of agent coder, which has delegated this one, {expected}", parent.id);
            assert_eq!(reason, named);
            let audit = engine.audit_entries(AuditQuery::oldest(100)).await.unwrap().unwrap();
            let is_recorded = audit.records.iter().any(|record| {
                record.entry.task.as_ref() == Some(&child.id)
                    && record.entry.detail.contains("which has delegated this one")
            });
            assert!(is_recorded, "{how}");
        }
    }
}

#[tokio::test]
async fn a_program_that_hangs_up_while_it_asks_has_made_a_child_like_any_other() {
    let mut programs = Programs::new();
    let settings =
        EngineSettings { delegation: DelegationLimits { max_depth: 1, max_children: 1 }, ..EngineSettings::default() };
    let engine = Builder::new(Arc::new(MemoryStore::new()))
        .settings(settings)
        .agent(hosted("coder", programs.agent(None), Limits::default()))
        .agent(hosted("slow", endless(), Limits::default()))
        .start()
        .await
        .unwrap();
    let parent = send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap();
    let program = programs.next().await;
    let mut asking = Box::pin(send(&engine, &program, send_to("slow", at_once("work"))));
    assert!(asking.as_mut().now_or_never().is_none());
    drop(asking);
    let refused = send(&engine, &program, send_to("slow", at_once("more"))).await.unwrap_err().to_string();
    assert!(refused.contains("delegation.max_children"), "the first one counts: {refused}");
    cancel(&engine, &alice(), &parent.id).await.unwrap();
    let list = || List {
        agent: Some(agent_id("slow")),
        context: None,
        state: None,
        since: None,
        page_size: 10,
        from: None,
        history: None,
        artifacts: Wanted::No,
    };
    let Answer::Page(page) = engine.call(&alice(), Call::List(list())).await.unwrap() else {
        panic!("a page is expected")
    };
    assert_eq!(page.tasks.len(), 1);
    assert_eq!(ended(&engine, &page.tasks[0].id).await.status.state, State::Canceled);
}

#[tokio::test]
async fn a_child_that_waits_is_canceled_after_a_restart_that_its_parent_did_not_survive() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let of_first_process = store.clone();
    // A process that dies with everything in it but the store.
    let (parent, child) = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ids = runtime.block_on(async {
            let mut programs = Programs::new();
            let engine = Builder::new(of_first_process)
                .agent(hosted("coder", programs.agent(None), Limits::default()))
                .agent(hosted("asker", asking(), Limits::default()))
                .start()
                .await
                .unwrap();
            let parent = send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap();
            let program = programs.next().await;
            (parent.id, send(&engine, &program, send_to("asker", text("ask which?"))).await.unwrap().id)
        });
        runtime.shutdown_background();
        ids
    })
    .join()
    .unwrap();
    let programs = Programs::new();
    let engine = Builder::new(store)
        .agent(hosted("coder", programs.agent(None), Limits::default()))
        .agent(hosted("asker", asking(), Limits::default()))
        .start()
        .await
        .unwrap();
    assert_eq!(ended(&engine, &parent).await.status.state, State::Failed);
    let child = ended(&engine, &child).await;
    assert_eq!(child.status.state, State::Canceled);
    assert!(status(&child).ends_with("is failed"), "{}", status(&child));
}

/// `coder` has a program, and `asker` asks back. Retention deletes what has settled a minute ago.
async fn with_retention(
    store: &Arc<FaultyStore<MemoryStore>>,
    clock: &Arc<ManualClock>,
    programs: &Programs,
) -> Engine {
    let retention = RetentionPolicy { max_age: Some(Duration::from_secs(60)), ..RetentionPolicy::default() };
    Builder::new(store.clone())
        .clock(clock.clone())
        .settings(EngineSettings { retention, ..EngineSettings::default() })
        .agent(hosted("coder", programs.agent(None), Limits::default()))
        .agent(hosted("asker", asking(), Limits::default()))
        .start()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_child_goes_on_after_a_restart_when_its_completed_parent_is_no_longer_kept() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let clock = Arc::new(ManualClock::at(1_000_000));
    let mut programs = Programs::new();
    let engine = with_retention(&store, &clock, &programs).await;
    let parent = send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap().id;
    let program = programs.next().await;
    let child = send(&engine, &program, send_to("asker", text("ask which?"))).await.unwrap().id;
    programs.end.send_replace("complete");
    assert_eq!(ended(&engine, &parent).await.status.state, State::Completed);
    clock.advance(Duration::from_secs(61));
    assert_eq!(engine.sweep().await, 1);
    engine.stop(LONG).await;

    let engine = with_retention(&store, &clock, &programs).await;
    // The clock of the test moves when nothing is left to be done.
    tokio::time::sleep(LONG).await;
    assert!(get(&engine, &alice(), &parent).await.is_err());
    let child = get(&engine, &alice(), &child).await.unwrap();
    assert_eq!(child.status.state, State::InputRequired, "{}", status(&child));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_is_watched_also_if_the_store_cannot_be_read_after_the_start() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let clock = Arc::new(ManualClock::at(1_000_000));
    let asking_program = |programs: &Programs| {
        let sender = programs.sender.clone();
        let mut end = programs.end.subscribe();
        end.mark_unchanged();
        ScriptedAgent::new(move |turn: Turn| {
            let (sender, mut end) = (sender.clone(), end.clone());
            async move {
                let grant = turn.delegate(None);
                let _ = sender.send(grant.caller().clone());
                let _ = end.wait_for(|end| !end.is_empty()).await;
                Ok::<_, AgentError>(Outcome::InputRequired(vec![Part::text("and now?")]))
            }
        })
    };
    let mut programs = Programs::new();
    let start = async |programs: &Programs| {
        let builder = Builder::new(store.clone()).clock(clock.clone());
        let builder = builder.agent(hosted("coder", asking_program(programs), Limits::default()));
        builder.agent(hosted("asker", asking(), Limits::default())).start().await.unwrap()
    };
    let engine = start(&programs).await;
    let parent = send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap().id;
    let program = programs.next().await;
    let child = send(&engine, &program, send_to("asker", text("ask which?"))).await.unwrap().id;
    programs.end.send_replace("ask");
    while get(&engine, &alice(), &parent).await.unwrap().status.state != State::InputRequired {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    engine.stop(LONG).await;
    drop(engine);

    let engine = start(&programs).await;
    store.fail_loads(3);
    tokio::time::sleep(LONG).await;
    cancel(&engine, &alice(), &parent).await.unwrap();
    let child = ended(&engine, &child).await;
    assert_eq!(child.status.state, State::Canceled, "{}", status(&child));
}

#[tokio::test]
async fn a_key_that_is_equal_to_that_of_another_task_shows_nothing_of_it() {
    let mut programs = Programs::new();
    let engine = usual(&programs).await;
    let keyed = |key: &str| Send {
        idempotency: Some(IdempotencyKey::parse(key).unwrap()),
        ..send_to("reviewer", text("secret"))
    };
    let begin = |task: &str| Send {
        on_unknown: OnUnknown::Create,
        ..send_to("coder", to(&TaskId::parse(task).unwrap(), at_once("build")))
    };
    send(&engine, &alice(), begin("t/x")).await.unwrap();
    let one = programs.next().await;
    send(&engine, &alice(), begin("t")).await.unwrap();
    let other = programs.next().await;
    send(&engine, &one, keyed("y")).await.unwrap();
    let joined = send(&engine, &other, keyed("x/y")).await;
    assert!(matches!(joined, Err(Error::Invalid(_))), "{joined:?}");
}

#[tokio::test]
async fn an_engine_that_is_dropped_is_not_kept_by_children_that_wait() {
    let store = Arc::new(MemoryStore::new());
    let mut programs = Programs::new();
    let engine = Builder::new(store.clone())
        .agent(hosted("coder", programs.agent(None), Limits::default()))
        .agent(hosted("asker", asking(), Limits::default()))
        .start()
        .await
        .unwrap();
    let parent = send(&engine, &alice(), send_to("coder", at_once("build"))).await.unwrap();
    let program = programs.next().await;
    send(&engine, &program, send_to("asker", text("ask which?"))).await.unwrap();
    programs.end.send_replace("done");
    ended(&engine, &parent.id).await;
    engine.stop(Duration::from_secs(1)).await;
    drop(engine);
    let let_go = async {
        while Arc::strong_count(&store) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, let_go).await.expect("nothing holds the store");
}

#[tokio::test]
async fn a_credential_is_worth_something_while_a_grant_is_lent_to_it() {
    let (sender, mut told) = mpsc::unbounded_channel();
    let (end, ends) = watch::channel(false);
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let (sender, mut ends) = (sender.clone(), ends.clone());
        async move {
            let credential = turn.program_credential();
            let lent = credential.lend(turn.delegate(None));
            let _ = sender.send(credential.text().to_owned());
            let _ = ends.wait_for(|end| *end).await;
            drop(lent);
            // The process lives on, as a warm program does.
            let _ = sender.send(format!("{credential:?}"));
            turn.cancelled().await;
            Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
        }
    });
    let engine = engine([hosted("coder", agent, Limits::default())]).await;
    let parent = send(&engine, &alice(), at_once("build")).await.unwrap();
    let credential = told.recv().await.unwrap();
    assert!(credential.starts_with("sabir_d_") && credential.len() == "sabir_d_".len() + 64);
    let program = engine.program_caller(credential.as_bytes()).unwrap();
    assert_eq!(program.delegation.unwrap().delegated.parent.task, parent.id);
    for wrong in ["", "sabir_d_", &credential[..credential.len() - 1], &credential.to_uppercase()] {
        assert!(engine.program_caller(wrong.as_bytes()).is_none(), "{wrong}");
    }
    end.send_replace(true);
    assert!(!told.recv().await.unwrap().contains(&credential));
    assert!(engine.program_caller(credential.as_bytes()).is_none());
    cancel(&engine, &alice(), &parent.id).await.unwrap();
}
