//! Races: two things that happen at the same time, at the worst moment for the driver.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sabir_engine::{AgentError, Builder, EngineSettings, Limits, Outcome, Recovery, Turn};
use sabir_model::{Error, IdempotencyKey, Message, MessageId, Part, Required, Send, State};
use sabir_store::{MemoryStore, Store};
use sabir_testkit::clock::ManualClock;
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use crate::fixture::{Fixture, PanickingClock, asking, at_once, drain, echo, endless, hosted, task_of, text, to};

const HOUR: Duration = Duration::from_secs(3600);
const SLOW: Duration = Duration::from_millis(100);

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn requeue() -> EngineSettings {
    EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() }
}

async fn faulty(agent: ScriptedAgent, settings: EngineSettings) -> (Arc<Fixture>, Arc<FaultyStore<MemoryStore>>) {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    (Arc::new(Fixture::on(store.clone(), agent, Limits::default(), settings).await), store)
}

/// A process that dies with everything in it but the store.
fn life<T: std::marker::Send + 'static>(
    store: Arc<dyn Store>,
    agent: ScriptedAgent,
    concurrent: usize,
    work: impl AsyncFnOnce(Fixture) -> T + std::marker::Send + 'static,
) -> T {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let limits = Limits::default().concurrent(concurrent);
        let result = runtime.block_on(async { work(Fixture::on(store, agent, limits, requeue()).await).await });
        runtime.shutdown_background();
        result
    })
    .join()
    .unwrap()
}

fn named(id: &str, send: Send) -> Send {
    Send { message: Message { id: Some(MessageId::parse(id).unwrap()), ..send.message }, ..send }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_run_again_after_a_crash_of_its_driver_has_one_driver() {
    let (clock, runs, stops) =
        (Arc::new(PanickingClock::default()), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (panicking, counter, stopped) = (clock.clone(), runs.clone(), stops.clone());
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let (panicking, stopped, run) = (panicking.clone(), stopped.clone(), counter.fetch_add(1, Ordering::SeqCst));
        async move {
            if run == 0 {
                panicking.is_armed.store(true, Ordering::SeqCst);
                turn.progress("the driver reads the clock for this").await;
            }
            turn.cancelled().await;
            stopped.fetch_add(1, Ordering::SeqCst);
            Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
        }
    });
    let store = Arc::new(MemoryStore::new());
    let builder = Builder::new(store.clone()).settings(requeue()).clock(clock);
    let builder = builder.agent(hosted("demo", agent, Limits::default()));
    let fixture = Fixture { engine: builder.start().await.unwrap(), store };
    let task = fixture.task(at_once("go")).await;
    sleep(millis(100)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2, "it runs again");
    let canceled = timeout(HOUR, fixture.cancel(&task.id)).await.unwrap().unwrap();
    assert_eq!(canceled.status.state, State::Canceled);
    assert_eq!(stops.load(Ordering::SeqCst), 1, "the run was told to stop before the caller heard that it has");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_crashes_while_an_append_is_under_way_settles_its_task() {
    for (recovery, expected) in [(Recovery::Fail, State::Failed), (Recovery::Requeue, State::Completed)] {
        let (clock, runs) = (Arc::new(PanickingClock::default()), Arc::new(AtomicUsize::new(0)));
        let (panicking, counter) = (clock.clone(), runs.clone());
        let agent = ScriptedAgent::new(move |turn: Turn| {
            let (panicking, run) = (panicking.clone(), counter.fetch_add(1, Ordering::SeqCst));
            async move {
                if run == 0 {
                    turn.progress("on its way to the store").await;
                    sleep(millis(10)).await;
                    panicking.is_armed.store(true, Ordering::SeqCst);
                    turn.progress("the driver reads the clock for this").await;
                    turn.cancelled().await;
                }
                Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
            }
        });
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        store.slow_down(millis(50));
        let builder =
            Builder::new(store.clone()).settings(EngineSettings { recovery, ..EngineSettings::default() }).clock(clock);
        let builder = builder.agent(hosted("demo", agent, Limits::default()));
        let fixture = Fixture { engine: builder.start().await.unwrap(), store };
        let task = timeout(HOUR, fixture.task(text("go"))).await.expect("the sender is answered");
        assert_eq!(task.status.state, expected, "{:?}", task.status);
        let frames = drain(&mut fixture.subscribe(&task.id, Some(0)).await.unwrap()).await;
        assert!(frames.iter().any(|(_, words)| words == "Working on its way to the store"), "{frames:?}");
        let numbers: Vec<u64> = frames.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(numbers, (1..=frames.len() as u64).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_message_is_not_acknowledged_before_the_first_is_stored() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            turn.progress("busy").await;
            turn.cancelled().await;
            Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
        }
    });
    let (fixture, store) = faulty(agent, EngineSettings::default()).await;
    let task = fixture.task(at_once("one")).await.id;
    sleep(millis(1)).await;
    store.slow_down(SLOW);
    go.notify_one();
    sleep(millis(10)).await;
    // The progress is being stored; the message waits for the next append, which will fail.
    let again = || named("same", to(&task, at_once("two")));
    let (sender, send) = (fixture.clone(), again());
    let first = tokio::spawn(async move { sender.send(send).await });
    sleep(millis(40)).await;
    store.fill();
    sleep(millis(70)).await;
    let second = timeout(HOUR, fixture.send(again())).await.expect("it is answered");
    assert!(matches!(first.await.unwrap(), Err(Error::StoreFull)));
    assert!(matches!(second, Err(Error::StoreFull)), "nothing of it is stored");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_message_that_comes_as_the_driver_releases_the_task_is_taken_once() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let agent = ScriptedAgent::new(move |_: Turn| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok::<_, AgentError>(Outcome::InputRequired(vec![Part::text("which?")]))
        }
    });
    let seen = agent.seen();
    let (fixture, store) = faulty(agent, EngineSettings::default()).await;
    let task = fixture.task(at_once("one")).await.id;
    sleep(millis(1)).await;
    let again = || named("same", to(&task, at_once("two")));
    let mut sends: Vec<_> = (0..2)
        .map(|_| {
            let (fixture, send) = (fixture.clone(), again());
            Box::pin(async move { fixture.send(send).await })
        })
        .collect();
    let (under_way, sent) = oneshot::channel();
    store.after_next_append(move || {
        for send in &mut sends {
            assert!(matches!(send.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        }
        drop(under_way.send(sends));
    });
    go.notify_one();
    for answer in futures_util::future::join_all(sent.await.unwrap()).await {
        answer.unwrap();
    }
    for _ in 0..3 {
        go.notify_one();
        sleep(millis(10)).await;
    }
    assert_eq!(*seen.lock().unwrap(), ["one", "two"]);
}

#[tokio::test]
async fn a_turn_after_one_that_ended_by_asking_begins_again_with_its_own_message() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let gate = gate.clone();
        async move {
            if turn.message().text() == "one" {
                gate.notified().await;
                return Ok::<_, AgentError>(Outcome::InputRequired(vec![Part::text("which?")]));
            }
            turn.cancelled().await;
            Ok(Outcome::Canceled(Vec::new()))
        }
    });
    let task = life(store.clone(), agent, 1, async move |fixture: Fixture| {
        let task = fixture.task(at_once("one")).await.id;
        fixture.task(to(&task, at_once("two"))).await;
        go.notify_one();
        sleep(millis(10)).await;
        assert_eq!(fixture.get(&task).await.status.state, State::Working);
        task
    });
    let agent = echo();
    let seen = agent.seen();
    let fixture = Fixture::on(store, agent, Limits::default(), requeue()).await;
    drain(&mut fixture.subscribe(&task, Some(0)).await.unwrap()).await;
    assert_eq!(*seen.lock().unwrap(), ["two"]);
}

#[tokio::test]
async fn a_task_that_waited_for_its_slot_has_not_been_tried() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let tasks = life(store.clone(), endless(), 2, async |fixture: Fixture| {
        let tasks = [fixture.task(at_once("a")).await.id, fixture.task(at_once("b")).await.id];
        sleep(millis(10)).await;
        tasks
    });
    // The first task takes the only slot each time, until it has been run three times.
    for _ in 0..2 {
        life(store.clone(), endless(), 1, async |_: Fixture| sleep(millis(10)).await);
    }
    let fixture = Fixture::on(store, echo(), Limits::default(), requeue()).await;
    for (task, expected) in tasks.iter().zip([State::Failed, State::Completed]) {
        drain(&mut fixture.subscribe(task, Some(0)).await.unwrap()).await;
        let task = fixture.get(task).await;
        assert_eq!(task.status.state, expected, "{:?}", task.status);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_sent_twice_does_not_answer_a_question_that_nobody_has_seen() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let (first, second) = tokio::join!(
            turn.ask(Required::Input, vec![Part::text("may I read?")]),
            turn.ask(Required::Input, vec![Part::text("may I delete?")])
        );
        Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(format!("{} {}", first?.text(), second?.text()))]))
    });
    let (fixture, store) = faulty(agent, EngineSettings::default()).await;
    let task = fixture.task(text("go")).await;
    store.slow_down(SLOW);
    fixture.task(to(&task.id, at_once("yes"))).await;
    // The answer is stored; the next question is being stored.
    assert_eq!(fixture.get(&task.id).await.status.message.unwrap().text(), "may I read?");
    let again = fixture.send(to(&task.id, at_once("yes"))).await;
    assert!(matches!(again, Err(Error::Invalid(_))), "it was meant for the first question");
    let parked = fixture.get(&task.id).await;
    assert_eq!(
        (parked.status.state, parked.status.message.unwrap().text()),
        (State::InputRequired, "may I delete?".into())
    );
    let done = timeout(HOUR, fixture.task(to(&task.id, text("no")))).await.unwrap();
    assert_eq!(done.status.message.unwrap().text(), "yes no");
}

#[tokio::test(start_paused = true)]
async fn streams_and_senders_of_unfinished_tasks_end_when_the_server_has_stopped() {
    for settings in [EngineSettings::default(), requeue()] {
        let limits = Limits::default().concurrent(1);
        let fixture = Arc::new(Fixture::on(Arc::new(MemoryStore::new()), endless(), limits, settings.clone()).await);
        let running = fixture.task(at_once("running")).await.id;
        let queued = fixture.task(at_once("queued")).await.id;
        let mut streams = Vec::new();
        for task in [&running, &queued] {
            streams.push(fixture.subscribe(task, Some(0)).await.unwrap());
        }
        let sender = fixture.clone();
        let blocked = tokio::spawn(async move { sender.send(text("blocked")).await });
        sleep(millis(10)).await;
        fixture.engine.stop(millis(10)).await;
        for stream in &mut streams {
            timeout(HOUR, drain(stream)).await.expect("the stream ends");
        }
        let blocked = timeout(HOUR, blocked).await.expect("the sender is answered").unwrap();
        assert_eq!(task_of(blocked.unwrap()).status.state, State::Submitted);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_being_stored_when_the_server_stops_is_stored_or_refused() {
    let approving = || {
        ScriptedAgent::new(|turn: Turn| async move {
            if turn.message().text() == "go" {
                turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
            }
            Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(turn.message().text())]))
        })
        .resuming()
    };
    let (fixture, store) = faulty(approving(), EngineSettings::default()).await;
    let task = fixture.task(text("go")).await.id;
    store.slow_down(SLOW);
    let (sender, send) = (fixture.clone(), to(&task, at_once("friday")));
    let sent = tokio::spawn(async move { sender.send(send).await });
    sleep(millis(30)).await;
    fixture.engine.stop(Duration::from_secs(10)).await;
    let sent = timeout(HOUR, sent).await.expect("the sender is answered").unwrap();
    let agent = approving();
    let seen = agent.seen();
    let fixture = Fixture::on(store, agent, Limits::default(), EngineSettings::default()).await;
    sleep(Duration::from_secs(1)).await;
    let expected: &[&str] = if sent.is_ok() { &["friday"] } else { &[] };
    assert_eq!(*seen.lock().unwrap(), expected, "the sender was told {:?}", sent.map(drop));
    drop(fixture);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_was_swept_is_gone_although_it_once_waited() {
    let mut settings = EngineSettings::default();
    settings.retention.max_tasks = Some(0);
    let fixture = Fixture::on(Arc::new(MemoryStore::new()), asking(), Limits::default(), settings).await;
    let task = fixture.task(text("ask which?")).await;
    assert_eq!(fixture.task(to(&task.id, text("friday"))).await.status.state, State::Completed);
    sleep(millis(10)).await;
    assert_eq!(fixture.engine.sweep().await, 1);
    let get = sabir_model::Get { agent: None, task: task.id, history: None, earlier: sabir_model::Wanted::No };
    let got = fixture.call(sabir_model::Call::Get(get)).await;
    assert!(matches!(got, Err(Error::TaskNotFound(_))), "it was deleted");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_the_last_word_ends_a_task_that_would_go_on() {
    for (is_asking, expected) in [(true, &["one"][..]), (false, &["one", "two"])] {
        let agent = ScriptedAgent::new(move |turn: Turn| async move {
            let parts = vec![Part::text("said")];
            let outcome = if is_asking { Outcome::InputRequired(parts) } else { Outcome::Completed(parts) };
            turn.last_word(outcome.clone()).await;
            turn.cancelled().await;
            Ok::<_, AgentError>(outcome)
        });
        let seen = agent.seen();
        let fixture = Fixture::with(agent).await;
        let task = fixture.task(at_once("one")).await;
        sleep(millis(10)).await;
        if !is_asking {
            fixture.task(to(&task.id, at_once("two"))).await;
        }
        let canceled = timeout(HOUR, fixture.cancel(&task.id)).await.expect("it is answered").expect("it is canceled");
        assert_eq!(canceled.status.state, State::Canceled);
        let said: Vec<String> = canceled.history.iter().map(|message| message.text()).collect();
        assert_eq!(said, expected);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(*seen.lock().unwrap(), ["one"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_being_answered_does_not_expire() {
    let clock = Arc::new(ManualClock::at(1_000_000));
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let answer = turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
        Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(answer.text())]))
    });
    let mut settings = EngineSettings::default();
    settings.retention.waiting = Some(Duration::from_secs(600));
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let builder = Builder::new(store.clone()).settings(settings).clock(clock.clone());
    let builder = builder.agent(hosted("demo", agent, Limits::default()));
    let fixture = Arc::new(Fixture { engine: builder.start().await.unwrap(), store: store.clone() });
    let task = fixture.task(text("go")).await.id;
    clock.advance(Duration::from_secs(700));
    store.slow_down(SLOW);
    let (sender, send) = (fixture.clone(), to(&task, text("friday")));
    let sent = tokio::spawn(async move { sender.task(send).await });
    sleep(millis(30)).await;
    fixture.engine.sweep().await;
    let done = timeout(HOUR, sent).await.unwrap().unwrap();
    assert_eq!((done.status.state, done.status.message.unwrap().text()), (State::Completed, "friday".into()));
}

/// Asks, and on a signal makes an artifact while it waits.
fn busy_asker(go: &Arc<Notify>) -> ScriptedAgent {
    let gate = go.clone();
    ScriptedAgent::new(move |turn: Turn| {
        let gate = gate.clone();
        async move {
            let ask = turn.ask(Required::Input, vec![Part::text("may I?")]);
            let talk = async {
                gate.notified().await;
                turn.progress("meanwhile").await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                answer = ask => Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(answer?.text())])),
                () = talk => unreachable!("it talks for ever"),
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_an_answer_that_was_refused() {
    let go = Arc::new(Notify::new());
    let (fixture, store) = faulty(busy_asker(&go), EngineSettings::default()).await;
    let keyed = || Send { idempotency: Some(IdempotencyKey::parse("k").unwrap()), ..text("go") };
    let task = fixture.task(keyed()).await.id;
    store.slow_down(SLOW);
    go.notify_one();
    sleep(millis(30)).await;
    let (sender, send) = (fixture.clone(), to(&task, at_once("friday")));
    let sent = tokio::spawn(async move { sender.send(send).await });
    sleep(millis(30)).await;
    store.fill();
    assert!(matches!(sent.await.unwrap(), Err(Error::StoreFull)));
    store.make_room();
    let joined = timeout(HOUR, fixture.task(keyed())).await.expect("the task waits for its caller, and nobody works");
    assert_eq!(joined.status.state, State::InputRequired);
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_was_refused_does_not_enter_the_history() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let ask = turn.ask(Required::Input, vec![Part::text("may I?")]);
        assert!(timeout(Duration::from_secs(1), ask).await.is_err());
        sleep(Duration::from_secs(60)).await;
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    });
    let (fixture, store) = faulty(agent, EngineSettings::default()).await;
    let task = fixture.task(text("go")).await.id;
    sleep(millis(950)).await;
    store.slow_down(SLOW);
    store.fill();
    // The agent withdraws its question while the approval is being stored, which will fail.
    let sent = fixture.send(to(&task, at_once("yes"))).await;
    assert!(matches!(sent, Err(Error::StoreFull)));
    store.make_room();
    drain(&mut fixture.subscribe(&task, Some(0)).await.unwrap()).await;
    let said: Vec<String> = fixture.get(&task).await.history.iter().map(|message| message.text()).collect();
    assert!(!said.contains(&"yes".into()), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_never_ends_after_its_last_word_is_ended_by_the_time_limit() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        turn.last_word(Outcome::Completed(vec![Part::text("done")])).await;
        std::future::pending::<()>().await;
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    });
    let limits = Limits::default().timeout(Duration::from_secs(60));
    let fixture = Fixture::limited(agent, limits).await;
    let done = timeout(HOUR, fixture.task(text("go"))).await.expect("the limit holds");
    assert_eq!((done.status.state, done.status.message.unwrap().text()), (State::Completed, "done".into()));
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_remembers_on_a_full_disk_is_bounded() {
    let remembered = Arc::new(AtomicUsize::new(0));
    let counter = remembered.clone();
    const PIECE: usize = 64 * 1024;
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let counter = counter.clone();
        async move {
            for _ in 0..1000 {
                turn.remember(Some("x".repeat(PIECE))).await;
                counter.fetch_add(PIECE, Ordering::SeqCst);
            }
            Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
        }
    });
    let (fixture, store) = faulty(agent, EngineSettings::default()).await;
    store.fill_after(1);
    fixture.task(at_once("go")).await;
    sleep(Duration::from_secs(600)).await;
    let held = remembered.load(Ordering::SeqCst);
    assert!((PIECE..=4 << 20).contains(&held), "{held} bytes are held");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_over_when_the_server_stopped_is_not_run_again() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(turn.message().text())]))
        }
    });
    let (fixture, store) = faulty(agent, requeue()).await;
    let task = fixture.task(at_once("one")).await.id;
    sleep(millis(1)).await;
    store.slow_down(SLOW);
    let (sender, send) = (fixture.clone(), to(&task, at_once("two")));
    let sent = tokio::spawn(async move { sender.send(send).await });
    sleep(millis(10)).await;
    go.notify_one();
    sleep(millis(10)).await;
    fixture.engine.stop(millis(50)).await;
    sent.await.unwrap().unwrap();
    let agent = echo();
    let seen: Arc<Mutex<Vec<String>>> = agent.seen();
    let fixture = Fixture::on(store, agent, Limits::default(), requeue()).await;
    let frames = drain(&mut fixture.subscribe(&task, Some(0)).await.unwrap()).await;
    assert_eq!(*seen.lock().unwrap(), ["two"], "{frames:?}");
    assert!(frames.iter().any(|(_, words)| words == "Working one"), "{frames:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_does_not_get_a_deleted_task_for_a_new_one_of_its_name() {
    let mut settings = EngineSettings::default();
    settings.retention.max_tasks = Some(0);
    let store = Arc::new(MemoryStore::new());
    let clock = Arc::new(ManualClock::at(1_000_000));
    let builder = Builder::new(store.clone()).settings(settings).clock(clock.clone());
    let builder = builder.agent(hosted("demo", echo(), Limits::default()));
    let fixture = Fixture { engine: builder.start().await.unwrap(), store };
    let name = sabir_model::TaskId::parse("mine").unwrap();
    let get = || sabir_model::Get { agent: None, task: name.clone(), history: None, earlier: sabir_model::Wanted::No };
    let mut held = Vec::new();
    for words in ["old", "new"] {
        let long = words.repeat(100_000);
        fixture.task(Send { on_unknown: sabir_model::OnUnknown::Create, ..to(&name, text(&long)) }).await;
        sleep(millis(10)).await;
        let answer = fixture.call(sabir_model::Call::Get(get())).await.unwrap();
        let sabir_engine::Answer::Task(task) = answer else { panic!("expected a task") };
        assert!(task.history[0].text() == long, "it is the task of {words}");
        // A slow reader holds the task while retention deletes it.
        held.push(task);
        fixture.engine.sweep().await;
        clock.advance(Duration::from_secs(1));
    }
}

/// Works for this many seconds on messages that begin with `work`, and asks on all others.
fn working(seconds: u64) -> ScriptedAgent {
    ScriptedAgent::new(move |turn: Turn| async move {
        if !turn.message().text().starts_with("work") {
            return Ok::<_, AgentError>(Outcome::InputRequired(vec![Part::text("which?")]));
        }
        tokio::select! {
            () = sleep(Duration::from_secs(seconds)) => Ok(Outcome::Completed(Vec::new())),
            () = turn.cancelled() => Ok(Outcome::Canceled(Vec::new())),
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_a_slot_begins_no_turn_while_the_server_stops() {
    let store = Arc::new(MemoryStore::new());
    let limits = Limits::default().concurrent(1);
    let agent = working(5);
    let seen = agent.seen();
    let fixture = Fixture::on(store.clone(), agent, limits, EngineSettings::default()).await;
    let waiting = fixture.task(text("ask")).await.id;
    fixture.task(at_once("work")).await;
    fixture.task(to(&waiting, at_once("work on"))).await;
    fixture.engine.stop(Duration::from_secs(12)).await;
    assert_eq!(*seen.lock().unwrap(), ["ask", "work"]);
    assert_eq!(fixture.get(&waiting).await.status.state, State::InputRequired);
    let fixture = Fixture::on(store, working(5), limits, EngineSettings::default()).await;
    drain(&mut fixture.subscribe(&waiting, Some(0)).await.unwrap()).await;
    assert_eq!(fixture.get(&waiting).await.status.state, State::Completed, "its message was kept");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_just_got_its_slot_may_finish_when_the_server_stops() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let limits = Limits::default().concurrent(1);
    let fixture = Fixture::on(store.clone(), working(1), limits, EngineSettings::default()).await;
    fixture.task(at_once("work")).await;
    let next = fixture.task(at_once("work too")).await.id;
    store.slow_down(SLOW);
    // The first has ended and its end is stored; the beginning of the next is being stored.
    sleep(millis(1_150)).await;
    assert_eq!(fixture.get(&next).await.status.state, State::Submitted);
    fixture.engine.stop(Duration::from_secs(12)).await;
    assert_eq!(fixture.get(&next).await.status.state, State::Completed);
}
