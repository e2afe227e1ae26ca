//! Nothing happens before it is stored: agents start, and get answers, after the commit. Stopping needs no commit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_engine::{AgentError, Effects, EngineSettings, Limits, Outcome, Turn};
use sabir_model::{Error, IdempotencyKey, Part, Required, Send, State};
use sabir_store::{MemoryStore, Store};
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::time::{sleep, timeout};

use crate::fixture::{Fixture, asking, at_once, text, to};

type Faulty = Arc<FaultyStore<MemoryStore>>;

async fn fixture(agent: ScriptedAgent) -> (Fixture, Faulty) {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    (Fixture::on(store.clone(), agent, Limits::default(), EngineSettings::default()).await, store)
}

/// Counts how often it is started.
fn counting(effects: Effects) -> (ScriptedAgent, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(turn.message().text())])) }
    });
    (agent.with_effects(effects), count)
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_acts_is_not_started_for_a_task_that_cannot_be_stored() {
    for (effects, starts_while_full) in [(Effects::Anywhere, 0), (Effects::ThroughTurn, 3)] {
        let (agent, count) = counting(effects);
        let (fixture, store) = fixture(agent).await;
        store.fill();
        let keyed = || Send { idempotency: Some(IdempotencyKey::parse("k").unwrap()), ..text("go") };
        for _ in 0..3 {
            assert!(matches!(fixture.send(keyed()).await, Err(Error::StoreFull)));
        }
        assert_eq!(count.load(Ordering::SeqCst), starts_while_full, "{effects:?}");
        store.make_room();
        assert_eq!(fixture.task(keyed()).await.status.state, State::Completed);
        assert_eq!(count.load(Ordering::SeqCst), starts_while_full + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_starts_after_the_commit_of_its_message() {
    let seen: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let (stored, sight) = (Arc::new(Mutex::new(None::<Faulty>)), seen.clone());
    let at_store = stored.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let (store, sight) = (at_store.lock().unwrap().clone().unwrap(), sight.clone());
        async move {
            // What a second process would find if this one died now.
            let task = store.unfinished().await?;
            let task = store.load(task[0].row.no).await?.expect("the task is stored");
            sight.lock().unwrap().push(task.history.iter().map(|message| message.text()).collect());
            let text = turn.message().text();
            Ok::<_, AgentError>(match text.as_str() {
                "end" => Outcome::Completed(Vec::new()),
                _ => Outcome::InputRequired(vec![Part::text("more?")]),
            })
        }
    });
    let (fixture, store) = fixture(agent).await;
    *stored.lock().unwrap() = Some(store.clone());
    store.slow_down(Duration::from_millis(50));
    let task = fixture.task(text("go")).await;
    fixture.task(to(&task.id, text("on"))).await;
    fixture.task(to(&task.id, text("end"))).await;
    let expected: [&[&str]; 3] = [&["go"], &["go", "more?", "on"], &["go", "more?", "on", "more?", "end"]];
    assert_eq!(*seen.lock().unwrap(), expected);
}

/// Asks during the turn, and keeps the answer.
fn approving(answers: &Arc<Mutex<Vec<String>>>) -> ScriptedAgent {
    let answers = answers.clone();
    ScriptedAgent::new(move |turn: Turn| {
        let answers = answers.clone();
        async move {
            let answer = turn.ask(Required::Input, vec![Part::text("delete everything?")]).await?;
            answers.lock().unwrap().push(answer.text());
            Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_the_agent_after_its_commit() {
    let answers = Arc::default();
    let (fixture, store) = fixture(approving(&answers)).await;
    let task = fixture.task(text("go")).await;
    store.fill();
    assert!(matches!(fixture.send(to(&task.id, text("yes"))).await, Err(Error::StoreFull)));
    sleep(Duration::from_secs(60)).await;
    assert!(answers.lock().unwrap().is_empty(), "the answer is not stored");
    assert_eq!(fixture.get(&task.id).await.status.state, State::InputRequired, "the question is still open");
    store.make_room();
    store.slow_down(Duration::from_millis(100));
    let history = Arc::new(Mutex::new(Vec::new()));
    let (seen, at_commit) = (answers.clone(), history.clone());
    store.after_next_append(move || at_commit.lock().unwrap().extend(seen.lock().unwrap().clone()));
    let done = timeout(Duration::from_secs(60), fixture.task(to(&task.id, text("no")))).await.unwrap();
    assert!(history.lock().unwrap().is_empty(), "nobody has the answer when its row is being committed");
    assert_eq!(*answers.lock().unwrap(), ["no"]);
    let said: Vec<String> = done.history.iter().map(|message| message.text()).collect();
    assert_eq!(said, ["go", "delete everything?", "no"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_on_a_full_disk_stops_the_run_and_fails_to_its_caller() {
    let stopped = Arc::new(AtomicUsize::new(0));
    let count = stopped.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let count = count.clone();
        async move {
            turn.cancelled().await;
            count.fetch_add(1, Ordering::SeqCst);
            Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
        }
    });
    let (fixture, store) = fixture(agent).await;
    let task = fixture.task(at_once("go")).await;
    sleep(Duration::from_millis(10)).await;
    store.fill();
    for _ in 0..2 {
        let canceled = timeout(Duration::from_secs(1), fixture.cancel(&task.id)).await.expect("an answer comes soon");
        assert!(matches!(canceled, Err(Error::StoreFull)), "{canceled:?}");
        assert_eq!(stopped.load(Ordering::SeqCst), 1, "the run is stopped all the same");
    }
    store.make_room();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(fixture.get(&task.id).await.status.state, State::Canceled);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_cancel_is_stored_before_the_run_has_stopped() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        turn.cancelled().await;
        sleep(Duration::from_secs(3)).await;
        Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
    });
    let (fixture, store) = fixture(agent).await;
    let fixture = Arc::new(fixture);
    let task = fixture.task(at_once("go")).await;
    sleep(Duration::from_millis(10)).await;
    let (canceller, id) = (fixture.clone(), task.id.clone());
    let canceling = tokio::spawn(async move { canceller.cancel(&id).await });
    sleep(Duration::from_secs(1)).await;
    let pending = store.unfinished().await.unwrap();
    assert!(pending[0].cancel_requested, "a crash now must not run it again");
    assert_eq!(canceling.await.unwrap().unwrap().status.state, State::Canceled);
    assert!(store.unfinished().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wake_that_cannot_be_stored_starts_nothing() {
    let agent = asking();
    let seen = agent.seen();
    let (fixture, store) = fixture(agent).await;
    let waiting = fixture.task(text("ask which?")).await;
    store.fill();
    assert!(matches!(fixture.send(to(&waiting.id, text("friday"))).await, Err(Error::StoreFull)));
    assert_eq!(*seen.lock().unwrap(), ["ask which?"]);
}
