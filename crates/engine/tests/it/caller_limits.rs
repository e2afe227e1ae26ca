//! Limits per caller: what is refused, what is not, and that everything is counted down again.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{
    AgentError, Answer, Builder, CallerLimits, Engine, EngineSettings, Limits, Outcome, Recovery, RetentionPolicy, Turn,
};
use sabir_model::{
    AgentId, Call, Caller, Delivery, Error, IdempotencyKey, Message, Part, Send, State, Subscribe, TaskId,
};
use sabir_store::{MemoryStore, Store};
use sabir_testkit::clock::ManualClock;
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::fixture::{Fixture, at_once, echo, endless, hosted, stream_of, task_of, text, to};
use crate::recovering::crash;

const HOUR: Duration = Duration::from_secs(3600);

fn owner(name: &str) -> Caller {
    Caller::new("org", name)
}

async fn send(engine: &Engine, caller: &Caller, send: Send) -> Result<Answer, Error> {
    engine.call(caller, Call::Send(Box::new(send))).await
}

/// The sentence of a refusal.
fn refusal(answer: Result<Answer, Error>) -> String {
    match answer {
        Err(Error::LimitReached { sentence, retry_after }) if retry_after > 0 => sentence,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it is not refused"),
    }
}

/// Does what its message says: `end`, `fail`, `panic`, `park`, `ask`, `stay`.
fn obedient() -> ScriptedAgent {
    ScriptedAgent::new(|turn: Turn| async move {
        match turn.message().text().as_str() {
            "fail" => return Err(AgentError::for_caller("as told")),
            "panic" => panic!("as told"),
            "park" => drop(turn.ask(sabir_model::Required::Input, vec![Part::text("well?")]).await),
            "ask" => return Ok(Outcome::InputRequired(vec![Part::text("well?")])),
            "stay" => {
                turn.cancelled().await;
                return Ok(Outcome::Canceled(Vec::new()));
            }
            _ => {}
        }
        Ok(Outcome::Completed(Vec::new()))
    })
}

/// An agent each of whose turns needs a permit of the semaphore to end.
fn gated() -> (Arc<Semaphore>, ScriptedAgent) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let agent = ScriptedAgent::new(move |_: Turn| {
        let gate = gate.clone();
        async move {
            gate.acquire().await?.forget();
            Ok(Outcome::Completed(Vec::new()))
        }
    });
    (opened, agent)
}

#[tokio::test(start_paused = true)]
async fn a_caller_has_so_many_tasks_at_once_on_an_agent() {
    let (limits, one) = (Limits::default().tasks_per_caller(2), Limits::default().tasks_per_caller(1).concurrent(1));
    let builder = Builder::new(Arc::new(MemoryStore::new()));
    let builder = builder.agent(hosted("coder", endless(), limits)).agent(hosted("single", endless(), one));
    let engine = builder.start().await.unwrap();
    let (alice, bob) = (owner("alice"), owner("bob"));
    let coder = |words: &str| Send { agent: Some(AgentId::parse("coder").unwrap()), ..at_once(words) };
    let first = task_of(send(&engine, &alice, coder("1")).await.unwrap());
    task_of(send(&engine, &alice, coder("2")).await.unwrap());
    assert_eq!(
        refusal(send(&engine, &alice, coder("3")).await),
        "at most 2 tasks at once for you on agent coder; wait for one to end, or cancel one"
    );
    // Others have places of their own, and so has another agent. A task in the queue counts too.
    task_of(send(&engine, &bob, coder("1")).await.unwrap());
    let single = || Send { agent: Some(AgentId::parse("single").unwrap()), ..at_once("x") };
    task_of(send(&engine, &bob, single()).await.unwrap());
    assert_eq!(task_of(send(&engine, &alice, single()).await.unwrap()).status.state, State::Submitted);
    assert_eq!(
        refusal(send(&engine, &alice, single()).await),
        "at most 1 task at once for you on agent single; wait for one to end, or cancel one"
    );
    let cancel = sabir_model::Cancel {
        agent: None,
        task: first.id,
        metadata: None,
        on_finished: sabir_model::OnFinishedCancel::Refuse,
    };
    engine.call(&alice, Call::Cancel(cancel)).await.unwrap();
    task_of(send(&engine, &alice, coder("3")).await.unwrap());
    assert_eq!(engine.counted_against_limits(), (5, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sends_at_once_do_not_exceed_the_limit() {
    for _ in 0..20 {
        let fixture = Fixture::limited(endless(), Limits::default().tasks_per_caller(7)).await;
        let sends: Vec<_> = (0..64)
            .map(|at| {
                let engine = fixture.engine.clone();
                tokio::spawn(async move { send(&engine, &owner("alice"), at_once(&at.to_string())).await })
            })
            .collect();
        let mut made = 0;
        for sent in sends {
            match sent.await.unwrap() {
                Ok(_) => made += 1,
                refused => drop(refusal(refused)),
            }
        }
        assert_eq!((made, fixture.engine.counted_against_limits().0), (7, 7));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_sends_one_after_the_other_is_never_refused() {
    let fixture = Fixture::limited(obedient(), Limits::default().tasks_per_caller(1)).await;
    for round in 0..300 {
        let words = ["end", "fail", "ask", "park"][round % 4];
        let answer = send(&fixture.engine, &owner("alice"), text(words)).await;
        assert!(answer.is_ok(), "round {round}: {:?}", answer.err());
    }
    let (tasks, _) = fixture.engine.counted_against_limits();
    assert_eq!(tasks, 0, "none of them is queued or works");
}

#[tokio::test(start_paused = true)]
async fn a_place_is_given_back_however_a_task_ends_or_waits() {
    for (words, state) in [
        ("end", State::Completed),
        ("fail", State::Failed),
        ("panic", State::Failed),
        ("park", State::InputRequired),
        ("ask", State::InputRequired),
    ] {
        let fixture = Fixture::limited(obedient(), Limits::default().tasks_per_caller(1)).await;
        let task = timeout(HOUR, fixture.task(text(words))).await.unwrap();
        assert_eq!((task.status.state, fixture.engine.counted_against_limits().0), (state, 0), "{words}");
        if !state.is_waiting() {
            continue;
        }
        // A task that waits leaves its place to others, and resumes beyond the limit.
        let other = fixture.task(at_once("stay")).await;
        assert!(fixture.send(text("end")).await.is_err());
        let answered = timeout(HOUR, fixture.task(to(&task.id, text("go on")))).await.unwrap();
        assert_eq!(answered.status.state, State::Completed, "{words}");
        fixture.cancel(&other.id).await.unwrap();
        assert_eq!(fixture.engine.counted_against_limits().0, 0, "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_could_not_be_stored_takes_no_place() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let limits = Limits::default().tasks_per_caller(1);
    let fixture = Fixture::on(store.clone(), echo(), limits, EngineSettings::default()).await;
    store.fill();
    for _ in 0..20 {
        assert!(matches!(fixture.send(text("lost")).await, Err(Error::StoreFull)));
    }
    store.make_room();
    assert_eq!(fixture.task(text("kept")).await.status.state, State::Completed);
    assert_eq!(fixture.engine.counted_against_limits().0, 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_takes_no_place() {
    let limits = Limits::default().concurrent(1).queue(0).tasks_per_caller(10);
    let fixture = Fixture::limited(endless(), limits).await;
    fixture.task(at_once("runs")).await;
    for _ in 0..20 {
        assert!(matches!(fixture.send(at_once("busy")).await, Err(Error::Busy(_))));
    }
    assert_eq!(fixture.engine.counted_against_limits().0, 1);
}

#[tokio::test]
async fn tasks_of_an_earlier_process_count_and_run_beyond_the_limit() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    crash(store.clone(), endless(), async |fixture: Fixture| {
        for at in 0..5 {
            fixture.task(at_once(&at.to_string())).await;
        }
    });
    let (opened, gated) = gated();
    let seen = gated.seen();
    let limits = Limits::default().concurrent(1).tasks_per_caller(2);
    let settings = EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() };
    let fixture = Fixture::on(store, gated, limits, settings).await;
    assert_eq!(fixture.engine.counted_against_limits().0, 5);
    refusal(fixture.send(at_once("late")).await);
    opened.add_permits(100);
    while fixture.engine.counted_against_limits().0 > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*seen.lock().unwrap(), ["0", "1", "2", "3", "4"], "in their order");
    assert_eq!(fixture.task(text("late")).await.status.state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_caller_has_so_many_open_streams() {
    let limits = CallerLimits::default().open_streams(2);
    let settings = EngineSettings { limits, ..EngineSettings::default() };
    let fixture = Fixture::on(Arc::new(MemoryStore::new()), endless(), Limits::default(), settings).await;
    let engine = &fixture.engine;
    let streaming = || Send { delivery: Delivery::Stream, ..text("x") };
    let subscribe = |task: &TaskId| {
        let on_finished = sabir_model::OnFinishedSubscribe::Refuse;
        Call::Subscribe(Subscribe { agent: None, task: task.clone(), after: None, on_finished })
    };
    let peer = |address: &str| Caller::anonymous().from_peer(address.parse().ok());
    for (alice, other) in [(owner("alice"), owner("bob")), (peer("192.0.2.1"), peer("192.0.2.2"))] {
        let first = stream_of(send(engine, &alice, streaming()).await.unwrap());
        let second = stream_of(engine.call(&alice, subscribe(first.task())).await.unwrap());
        let sentence = "at most 2 streams at once for you; close one, or send without streaming and get the task";
        assert_eq!(refusal(engine.call(&alice, subscribe(first.task())).await), sentence);
        let stored = fixture.store.unfinished().await.unwrap().len();
        assert_eq!(refusal(send(engine, &alice, streaming()).await), sentence);
        assert_eq!(fixture.store.unfinished().await.unwrap().len(), stored, "nothing was done");
        // Sends without a stream and other callers are not concerned.
        task_of(send(engine, &alice, at_once("x")).await.unwrap());
        drop(stream_of(send(engine, &other, streaming()).await.unwrap()));
        drop(second);
        let again = stream_of(engine.call(&alice, subscribe(first.task())).await.unwrap());
        assert_eq!(engine.counted_against_limits().1, 2);
        drop((first, again));
        // A subscription that is refused keeps no place.
        let unknown = TaskId::parse("nothing").unwrap();
        assert!(matches!(engine.call(&alice, subscribe(&unknown)).await, Err(Error::TaskNotFound(_))));
        assert_eq!(engine.counted_against_limits().1, 0);
    }
}

#[tokio::test]
async fn a_message_has_a_size_that_its_agent_takes() {
    let limits = Limits::default().message_bytes(20).message_parts(2);
    let fixture = Fixture::limited(echo(), limits).await;
    let message = |parts: Vec<Part>| {
        let send = text("");
        Send { message: Message { parts, ..send.message }, ..send }
    };
    let words = |length: usize| Part::text("w".repeat(length));
    for (parts, expected) in [
        (vec![words(20)], None),
        (vec![words(10), words(10)], None),
        (vec![words(21)], Some("invalid parameters: message has 21 bytes; agent demo takes at most 20")),
        (vec![words(10), words(11)], Some("invalid parameters: message has 21 bytes; agent demo takes at most 20")),
        (vec![words(1); 3], Some("invalid parameters: message.parts are 3; agent demo takes at most 2")),
        // A file counts with its own size and its name.
        (vec![Part::file("f", "text/plain", &[0; 9])], None),
        (
            vec![Part::file("f", "text/plain", &[0; 10])],
            Some("invalid parameters: message has 21 bytes; agent demo takes at most 20"),
        ),
    ] {
        let answer = fixture.send(message(parts.clone())).await.map(drop).map_err(|error| error.to_string());
        assert_eq!(answer.err().as_deref(), expected, "{parts:?}");
    }
    let send = text("short");
    let metadata = sabir_model::Json::parse(format!("{{\"k\":\"{}\"}}", "v".repeat(20))).ok();
    let heavy = Send { message: Message { metadata, ..send.message }, ..send };
    assert!(matches!(fixture.send(heavy).await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn a_caller_with_five_hundred_queued_tasks_does_not_delay_another() {
    let (opened, gated) = gated();
    let seen = gated.seen();
    // The queue is full with her tasks, too.
    let fixture = Fixture::limited(gated, Limits::default().concurrent(1).queue(500)).await;
    for at in 0..=500 {
        send(&fixture.engine, &owner("alice"), at_once(&format!("alice {at}"))).await.unwrap();
    }
    assert!(matches!(send(&fixture.engine, &owner("alice"), at_once("more")).await, Err(Error::Busy(_))));
    let engine = fixture.engine.clone();
    let bob = tokio::spawn(async move { send(&engine, &owner("bob"), text("bob")).await });
    while fixture.store.unfinished().await.unwrap().len() < 502 {
        tokio::task::yield_now().await;
    }
    opened.add_permits(2);
    assert_eq!(task_of(bob.await.unwrap().unwrap()).status.state, State::Completed);
    assert_eq!(seen.lock().unwrap()[..2], ["alice 0", "bob"]);
}

#[tokio::test]
async fn owners_take_turns_after_a_restart_too() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    crash(store.clone(), endless(), async |fixture: Fixture| {
        for words in ["a0", "a1", "a2", "a3", "b0", "b1"] {
            send(&fixture.engine, &owner(&words[..1]), at_once(words)).await.unwrap();
        }
    });
    let (opened, agent) = gated();
    let seen = agent.seen();
    let settings = EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() };
    let limits = Limits::default().concurrent(1).tasks_per_caller(9);
    let fixture = Fixture::on(store, agent, limits, settings).await;
    opened.add_permits(100);
    while fixture.engine.counted_against_limits().0 > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*seen.lock().unwrap(), ["a0", "b0", "a1", "b1", "a2", "a3"]);
}

/// An engine on which the tasks of a caller may take so many bytes. Retention deletes what has settled a minute ago.
async fn with_stored_bytes(
    store: &Arc<FaultyStore<MemoryStore>>,
    clock: &Arc<ManualClock>,
    bytes: Option<u64>,
) -> Engine {
    let retention = RetentionPolicy { max_age: Some(Duration::from_secs(60)), ..RetentionPolicy::default() };
    let limits = CallerLimits::default().stored_bytes(bytes);
    let settings = EngineSettings { retention, limits, ..EngineSettings::default() };
    let builder = Builder::new(store.clone()).clock(clock.clone()).settings(settings);
    builder.agent(hosted("demo", obedient(), Limits::default())).start().await.unwrap()
}

fn new_store() -> (Arc<FaultyStore<MemoryStore>>, Arc<ManualClock>) {
    (Arc::new(FaultyStore::new(MemoryStore::new())), Arc::new(ManualClock::at(1_000_000)))
}

async fn bytes_of(store: &dyn Store, caller: &Caller) -> u64 {
    let all = store.stored_bytes().await.unwrap();
    all.iter().find(|(owner, _)| *owner == caller.owner).map_or(0, |(_, bytes)| *bytes)
}

const LARGE: usize = 20_000;

fn large() -> String {
    "x".repeat(LARGE)
}

#[tokio::test(start_paused = true)]
async fn a_caller_at_its_stored_bytes_can_only_finish_what_has_begun() {
    let (store, clock) = new_store();
    let engine = with_stored_bytes(&store, &clock, Some(LARGE as u64)).await;
    let (alice, bob) = (owner("alice"), owner("bob"));
    let works = task_of(send(&engine, &alice, at_once("stay")).await.unwrap());
    let parked = task_of(send(&engine, &alice, text("park")).await.unwrap());
    let asked = task_of(send(&engine, &alice, text("ask")).await.unwrap());
    let keyed = || Send { idempotency: Some(IdempotencyKey::parse("key").unwrap()), ..text(&large()) };
    let last = task_of(send(&engine, &alice, keyed()).await.unwrap());
    assert_eq!(last.status.state, State::Completed, "the limit was not reached when it came");

    let stored = bytes_of(&*store, &alice).await;
    let expected = format!(
        "your tasks take {stored} of {LARGE} bytes; wait until old ones are deleted by retention, or ask the operator for more"
    );
    let streamed = Send { delivery: Delivery::Stream, ..text("end") };
    for refused in [text("end"), at_once("end"), streamed, to(&works.id, at_once("more"))] {
        let about = format!("{:?} {:?}", refused.delivery, refused.message.task);
        assert_eq!(refusal(send(&engine, &alice, refused).await), expected, "{about}");
    }
    assert_eq!(bytes_of(&*store, &alice).await, stored, "nothing is stored of what is refused");
    assert_eq!(engine.counted_against_limits(), (0, 0));
    let again = task_of(send(&engine, &alice, keyed()).await.unwrap());
    assert_eq!(again.id, last.id, "a repeated send finds its task");

    task_of(send(&engine, &bob, text("end")).await.unwrap());
    for waits in [&parked, &asked] {
        let answered = task_of(send(&engine, &alice, to(&waits.id, text("yes"))).await.unwrap());
        assert_eq!(answered.status.state, State::Completed);
    }
    let cancel = sabir_model::Cancel {
        agent: None,
        task: works.id,
        metadata: None,
        on_finished: sabir_model::OnFinishedCancel::Refuse,
    };
    let canceled = task_of(engine.call(&alice, Call::Cancel(cancel)).await.unwrap());
    assert_eq!(canceled.status.state, State::Canceled);
}

#[tokio::test(start_paused = true)]
async fn stored_bytes_are_counted_at_the_start_and_when_a_sweep_may_have_made_room() {
    let (store, clock) = new_store();
    let (alice, bob) = (owner("alice"), owner("bob"));
    let engine = with_stored_bytes(&store, &clock, None).await;
    for caller in [&alice, &bob] {
        task_of(send(&engine, caller, text(&large())).await.unwrap());
    }
    clock.advance(Duration::from_secs(61));
    engine.sweep().await;
    task_of(send(&engine, &alice, text(&large())).await.unwrap());
    engine.assign(&owner("admin"), &alice.owner, &bob.owner).await.unwrap();
    task_of(send(&engine, &alice, text(&large())).await.unwrap());
    assert_eq!(store.byte_counts(), 0, "without a limit nothing is counted");
    engine.stop(HOUR).await;

    let engine = with_stored_bytes(&store, &clock, Some(LARGE as u64)).await;
    for caller in [&alice, &alice, &bob] {
        refusal(send(&engine, caller, text("end")).await);
    }
    assert_eq!(store.byte_counts(), 1, "the earlier process has stored them");
    assert_eq!(engine.sweep().await, 0);
    refusal(send(&engine, &alice, text("end")).await);
    assert_eq!(store.byte_counts(), 1, "nothing was deleted");
    clock.advance(Duration::from_secs(61));
    assert_eq!(engine.sweep().await, 2);
    assert_eq!(store.byte_counts(), 1, "nobody has asked for the room");
    for caller in [&alice, &alice, &bob] {
        task_of(send(&engine, caller, text("end")).await.unwrap());
    }
    assert_eq!(store.byte_counts(), 2, "one count for all owners");
}

#[tokio::test(start_paused = true)]
async fn stored_bytes_go_with_tasks_that_get_another_owner() {
    let (store, clock) = new_store();
    let (alice, bob) = (owner("alice"), owner("bob"));
    let engine = with_stored_bytes(&store, &clock, Some(LARGE as u64)).await;
    task_of(send(&engine, &alice, text(&large())).await.unwrap());
    refusal(send(&engine, &alice, text("end")).await);
    assert_eq!(engine.assign(&owner("admin"), &alice.owner, &bob.owner).await.unwrap().moved, 1);
    refusal(send(&engine, &bob, text("end")).await);
    task_of(send(&engine, &alice, text("end")).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_the_engine_counts_is_what_the_store_has() {
    let (store, clock) = new_store();
    let alice = owner("alice");
    let engine = with_stored_bytes(&store, &clock, Some(u64::MAX)).await;
    let works = task_of(send(&engine, &alice, at_once("stay")).await.unwrap());
    // Messages wait in the inbox until their turn and are in the log after that.
    let mut sends = tokio::task::JoinSet::new();
    for at in 0..200 {
        let (engine, alice, works) = (engine.clone(), alice.clone(), works.id.clone());
        let words = ["end", "fail", "ask", "park"][at % 4];
        let sent = if at % 5 == 0 { to(&works, at_once(words)) } else { text(words) };
        sends.spawn(async move { send(&engine, &alice, sent).await.map(drop).unwrap() });
    }
    sends.join_all().await;
    let cancel = sabir_model::Cancel {
        agent: None,
        task: works.id,
        metadata: None,
        on_finished: sabir_model::OnFinishedCancel::Refuse,
    };
    engine.call(&alice, Call::Cancel(cancel)).await.unwrap();
    engine.stop(HOUR).await;
    let stored = bytes_of(&*store, &alice).await;
    assert_eq!(engine.stored_bytes_of(&alice.owner), Some(stored));
    assert_eq!(store.byte_counts(), 2, "one at the start, one here");
}
