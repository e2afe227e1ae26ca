//! Messages and cancels that arrive at the very end of a turn, or between two turns.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sabir_engine::{AgentError, EngineSettings, Limits, Outcome, Recovery, Turn};
use sabir_model::{Error, Message, MessageId, Part, QuestionForm, Send, State, Task, TaskId};
use sabir_store::MemoryStore;
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::fixture::{Fixture, asking, at_once, drain, echo, task_of, text, to};

/// As `asking`, but each turn needs a permit to end.
fn gated() -> (ScriptedAgent, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let turns = gate.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let turns = turns.clone();
        async move {
            tokio::select! {
                turn = turns.acquire() => turn?.forget(),
                () = turn.cancelled() => return Ok::<_, AgentError>(Outcome::Canceled(Vec::new())),
            }
            let text = turn.message().text();
            Ok(match text.strip_prefix("ask ") {
                Some(question) => Outcome::InputRequired(vec![Part::text(question)]),
                None => Outcome::Completed(vec![Part::text(text)]),
            })
        }
    });
    (agent, gate)
}

/// A task whose first turn has ended and is being stored, for 100 ms, while a second message waits.
struct Between {
    fixture: Arc<Fixture>,
    store: Arc<FaultyStore<MemoryStore>>,
    gate: Arc<Semaphore>,
    seen: Arc<Mutex<Vec<String>>>,
    task: TaskId,
}

impl Between {
    async fn turns(settings: EngineSettings) -> Self {
        let (agent, gate) = gated();
        let seen = agent.seen();
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        let fixture = Arc::new(Fixture::on(store.clone(), agent, Limits::default(), settings).await);
        let task = fixture.task(at_once("one")).await.id;
        until(|| !seen.lock().unwrap().is_empty()).await;
        store.slow_down(Duration::from_millis(100));
        let (sender, send) = (fixture.clone(), to(&task, at_once("two")));
        tokio::spawn(async move { sender.send(send).await });
        tokio::task::yield_now().await;
        gate.add_permits(1);
        tokio::time::sleep(Duration::from_millis(30)).await;
        Self { fixture, store, gate, seen, task }
    }
}

/// Yields to the other tasks until the condition holds.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn history(task: &Task) -> Vec<String> {
    task.history.iter().map(|message| message.text()).collect()
}

#[tokio::test]
async fn a_message_that_comes_as_the_last_append_completes_is_worked_on_or_refused() {
    for (first, expected) in [("ask which?", Ok("friday")), ("done", Err("task is finished"))] {
        let (agent, gate) = gated();
        let seen = agent.seen();
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        let fixture = Arc::new(Fixture::on(store.clone(), agent, Limits::default(), EngineSettings::default()).await);
        let task = fixture.task(at_once(first)).await;
        until(|| !seen.lock().unwrap().is_empty()).await;
        // The driver gets the result of its append and the message at the same time.
        let (sender, send) = (fixture.clone(), to(&task.id, text("friday")));
        let mut sending = Box::pin(async move { sender.send(send).await });
        let (under_way, sent) = tokio::sync::oneshot::channel();
        store.after_next_append(move || {
            let early = sending.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(early, Poll::Pending), "it waits for the driver");
            drop(under_way.send(sending));
        });
        gate.add_permits(2);
        let answer = timeout(Duration::from_secs(5), sent.await.unwrap()).await.expect("the sender is answered");
        let answer = match answer.map(task_of) {
            Ok(task) => Ok(task.status.message.unwrap().text()),
            Err(Error::TaskFinished(_)) => Err("task is finished"),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(answer.as_deref().map_err(|error| *error), expected, "after {first}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_that_race_with_the_end_of_a_turn_are_all_worked_on() {
    let fixture = Arc::new(Fixture::with(asking()).await);
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let fixture = fixture.clone();
            tokio::spawn(async move {
                for round in 0..200 {
                    let waiting = fixture.task(text("ask which?")).await;
                    let answered =
                        timeout(Duration::from_secs(20), fixture.task(to(&waiting.id, text("friday")))).await;
                    let Ok(done) = answered else { panic!("the answer of round {round} is lost") };
                    assert_eq!(done.status.state, State::Completed);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_between_two_turns_cancels() {
    let between = Between::turns(EngineSettings::default()).await;
    let canceled = timeout(Duration::from_secs(60), between.fixture.cancel(&between.task)).await.unwrap().unwrap();
    assert_eq!(canceled.status.state, State::Canceled);
    assert_eq!(history(&canceled), ["one", "two"]);
    between.gate.add_permits(1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(between.fixture.get(&between.task).await.status.state, State::Canceled);
    assert_eq!(*between.seen.lock().unwrap(), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_between_two_turns_is_quick_and_settles_by_policy() {
    for (recovery, expected) in [(Recovery::Fail, State::Failed), (Recovery::Requeue, State::Working)] {
        let between = Between::turns(EngineSettings { recovery, ..EngineSettings::default() }).await;
        let start = tokio::time::Instant::now();
        between.fixture.engine.stop(Duration::from_millis(50)).await;
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        let stopped = between.fixture.get(&between.task).await;
        assert_eq!(stopped.status.state, expected);
        assert_eq!(*between.seen.lock().unwrap(), ["one"]);
        if recovery == Recovery::Fail {
            assert_eq!(history(&stopped), ["one", "two"]);
            continue;
        }
        let agent = echo();
        let seen = agent.seen();
        let settings = EngineSettings { recovery, ..EngineSettings::default() };
        let fixture = Fixture::on(between.store.clone(), agent, Limits::default(), settings).await;
        drain(&mut fixture.subscribe(&between.task, Some(0)).await.unwrap()).await;
        assert_eq!(fixture.get(&between.task).await.status.state, State::Completed);
        assert_eq!(seen.lock().unwrap().last().unwrap(), "two");
    }
}

#[tokio::test]
async fn a_message_that_waited_while_a_turn_asked_is_the_one_that_runs_again() {
    for form in [QuestionForm::WithData, QuestionForm::WordsOnly] {
        let settings = || EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() };
        let (agent, gate) = gated();
        let (seen, store) = (agent.seen(), Arc::new(MemoryStore::new()));
        let fixture = Fixture::on(store.clone(), agent.asking_in(form), Limits::default(), settings()).await;
        let task = fixture.task(at_once("ask which?")).await.id;
        fixture.task(to(&task, at_once("two"))).await;
        gate.add_permits(1);
        until(|| seen.lock().unwrap().len() == 2).await;
        fixture.engine.stop(Duration::from_millis(50)).await;

        let agent = echo().asking_in(form);
        let seen = agent.seen();
        let fixture = Fixture::on(store, agent, Limits::default(), settings()).await;
        drain(&mut fixture.subscribe(&task, Some(0)).await.unwrap()).await;
        assert_eq!(*seen.lock().unwrap(), ["two"], "{form:?}");
    }
}

#[tokio::test]
async fn what_an_earlier_turn_said_is_kept_and_only_the_last_status_is_final() {
    for (first, expected) in [
        ("one", &["created", "Working", "Working one", "Working", "Completed two."][..]),
        ("ask which?", &["created", "Working", "InputRequired which?", "Working", "Completed two."]),
    ] {
        let (agent, gate) = gated();
        let fixture = Fixture::with(agent).await;
        let task = fixture.task(at_once(first)).await;
        let mut stream = fixture.subscribe(&task.id, Some(0)).await.unwrap();
        fixture.task(to(&task.id, at_once("two"))).await;
        gate.add_permits(2);
        let frames: Vec<String> = drain(&mut stream).await.into_iter().map(|(_, words)| words).collect();
        assert_eq!(frames, expected);
        let done = fixture.get(&task.id).await;
        assert_eq!(done.status.state, State::Completed);
    }
}

#[tokio::test]
async fn a_repeated_message_to_a_running_task_is_taken_once() {
    let (agent, gate) = gated();
    let seen = agent.seen();
    let fixture = Fixture::with(agent).await;
    let task = fixture.task(at_once("one")).await;
    let mut stream = fixture.subscribe(&task.id, Some(0)).await.unwrap();
    let again = || {
        let send = to(&task.id, at_once("two"));
        Send { message: Message { id: Some(MessageId::parse("same").unwrap()), ..send.message }, ..send }
    };
    fixture.task(again()).await;
    fixture.task(again()).await;
    gate.add_permits(5);
    drain(&mut stream).await;
    assert_eq!(*seen.lock().unwrap(), ["one", "two"]);
}

#[tokio::test]
async fn what_waits_for_one_task_is_bounded_by_bytes_too() {
    let (agent, gate) = gated();
    let fixture = Fixture::with(agent).await;
    let task = fixture.task(at_once("one")).await.id;
    let large = "x".repeat(16 << 20);
    for place in 1..=4 {
        assert!(fixture.send(to(&task, at_once(&large))).await.is_ok(), "message {place}");
    }
    for text in ["small", &large] {
        let refused = fixture.send(to(&task, at_once(text))).await;
        assert!(matches!(refused, Err(Error::Busy(_))), "a message of {} bytes", text.len());
    }
    gate.add_permits(9);
    while !fixture.get(&task).await.status.state.is_terminal() {
        tokio::task::yield_now().await;
    }
}
