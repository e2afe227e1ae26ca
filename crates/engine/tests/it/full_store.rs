//! A store that is full, or slow, while a task runs: nothing acknowledged is lost, and no caller hangs.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{AgentError, Answer, ArtifactUpdate, EngineSettings, Health, Limits, Outcome, Turn};
use sabir_model::{Artifact, Error, Message, MessageId, Part, Required, Send, State, Task, TaskId};
use sabir_store::MemoryStore;
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::fixture::{Fixture, asking, at_once, drain, echo, endless, task_of, text, to};

const HOUR: Duration = Duration::from_secs(3600);

async fn fixture(agent: ScriptedAgent, limits: Limits) -> (Fixture, Arc<FaultyStore<MemoryStore>>) {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    (Fixture::on(store.clone(), agent, limits, EngineSettings::default()).await, store)
}

/// The task when its stream has ended.
async fn settled(fixture: &Fixture, task: &TaskId) -> Task {
    let mut stream = fixture.subscribe(task, Some(0)).await.unwrap();
    timeout(HOUR, drain(&mut stream)).await.expect("the task settles");
    fixture.get(task).await
}

/// Sends while the store is full, and expects the refusal soon.
async fn refused(fixture: &Fixture, send: Send) {
    match timeout(Duration::from_secs(1), fixture.send(send)).await {
        Ok(Err(Error::StoreFull)) => {}
        Ok(Err(error)) => panic!("{error}"),
        Ok(Ok(_)) => panic!("it is not stored"),
        Err(_) => panic!("the sender waits for the disk"),
    }
}

fn history(task: &Task) -> Vec<String> {
    task.history.iter().map(|message| message.text()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_completes_with_a_message_waiting_settles() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(turn.message().text())]))
        }
    });
    let (fixture, store) = fixture(agent, Limits::default()).await;
    let task = fixture.task(at_once("one")).await;
    store.fill();
    tokio::join!(refused(&fixture, to(&task.id, at_once("two"))), async { go.notify_one() });
    store.make_room();
    let done = settled(&fixture, &task.id).await;
    assert_eq!((done.status.state, done.status.message.unwrap().text()), (State::Completed, "one".into()));
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_remembers_meanwhile_does_not_lose_its_task() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        turn.progress("a").await;
        sleep(Duration::from_millis(100)).await;
        turn.remember(Some("session".into())).await;
        sleep(Duration::from_millis(10)).await;
        turn.progress("b").await;
        sleep(Duration::from_secs(1)).await;
        Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(turn.memory().await?.unwrap_or_default())]))
    });
    let (fixture, store) = fixture(agent, Limits::default()).await;
    let task = fixture.task(at_once("go")).await;
    sleep(Duration::from_millis(50)).await;
    store.fill();
    sleep(Duration::from_millis(80)).await;
    store.make_room();
    let done = settled(&fixture, &task.id).await;
    assert_eq!((done.status.state, done.status.message.unwrap().text()), (State::Completed, "session".into()));
}

#[tokio::test(start_paused = true)]
async fn messages_to_a_running_task_are_refused_soon() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        while !turn.is_cancelled() {
            sleep(Duration::from_millis(100)).await;
            turn.progress("x").await;
        }
        Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
    });
    let (fixture, store) = fixture(agent, Limits::default()).await;
    let task = fixture.task(at_once("one")).await;
    store.fill();
    for pause in [0, 1, 60] {
        sleep(Duration::from_secs(pause)).await;
        refused(&fixture, to(&task.id, at_once("two"))).await;
    }
    store.make_room();
    sleep(Duration::from_secs(10)).await;
    fixture.task(to(&task.id, at_once("three"))).await;
    assert_eq!(history(&fixture.cancel(&task.id).await.unwrap()).last().unwrap(), "three");
    let kept = fixture.get(&task.id).await;
    assert!(!history(&kept).contains(&"two".into()));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_answer_is_refused_waits_on() {
    let agent = asking();
    let seen = agent.seen();
    let (fixture, store) = fixture(agent, Limits::default()).await;
    let waiting = fixture.task(text("ask which?")).await;
    store.fill();
    for _ in 0..3 {
        refused(&fixture, to(&waiting.id, text("friday"))).await;
    }
    assert_eq!(fixture.get(&waiting.id).await, waiting);
    store.make_room();
    let done = timeout(HOUR, fixture.task(to(&waiting.id, text("monday")))).await.unwrap();
    assert_eq!(done.status.state, State::Completed);
    assert_eq!(history(&done), ["ask which?", "which?", "monday"]);
    assert_eq!(seen.lock().unwrap().last().unwrap(), "monday");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_refused_answers_no_question() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            let answer = turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
            Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(answer.text())]))
        }
    });
    let (fixture, store) = fixture(agent, Limits::default()).await;
    let task = fixture.task(at_once("go")).await;
    sleep(Duration::from_millis(1)).await;
    store.slow_down(Duration::from_millis(100));
    store.fill();
    // The question is asked while the message is being stored, which will fail.
    tokio::join!(refused(&fixture, to(&task.id, at_once("yes to all"))), async {
        sleep(Duration::from_millis(30)).await;
        go.notify_one();
    });
    store.make_room();
    sleep(Duration::from_secs(60)).await;
    let parked = fixture.get(&task.id).await;
    assert_eq!(parked.status.state, State::InputRequired);
    assert!(!history(&parked).contains(&"yes to all".into()), "{:?}", history(&parked));
    let done = timeout(HOUR, fixture.task(to(&task.id, text("no")))).await.unwrap();
    assert_eq!(done.status.message.unwrap().text(), "no");
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_not_called_silent_because_of_the_disk() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        for _ in 0..5000 {
            turn.progress("x").await;
            sleep(Duration::from_millis(1)).await;
        }
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    });
    let limits = Limits::default().idle_timeout(Duration::from_secs(30));
    let (fixture, store) = fixture(agent, limits).await;
    let task = fixture.task(at_once("go")).await;
    sleep(Duration::from_millis(50)).await;
    store.fill();
    sleep(Duration::from_secs(60)).await;
    store.make_room();
    let done = settled(&fixture, &task.id).await;
    assert_eq!(done.status.state, State::Completed, "{:?}", done.status.message.map(|message| message.text()));
}

#[tokio::test(start_paused = true)]
async fn duplicates_of_a_failed_send_make_one_task() {
    let (fixture, store) = fixture(endless(), Limits::default()).await;
    let fixture = Arc::new(fixture);
    store.slow_down(Duration::from_millis(50));
    store.fill();
    let mut senders = Vec::new();
    for _ in 0..5 {
        let (fixture, send) = (fixture.clone(), at_once("go"));
        let send = Send { message: Message { id: Some(MessageId::parse("same").unwrap()), ..send.message }, ..send };
        senders.push(tokio::spawn(async move { fixture.send(send).await }));
        sleep(Duration::from_millis(5)).await;
    }
    store.make_room();
    let mut answers: Vec<Result<Answer, Error>> = Vec::new();
    for sender in senders {
        answers.push(timeout(HOUR, sender).await.unwrap().unwrap());
    }
    let (made, failed): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert!(matches!(failed[..], [Err(Error::StoreFull)]), "only the first came to a full store");
    let mut tasks: Vec<TaskId> = made.into_iter().flatten().map(|answer| task_of(answer).id).collect();
    tasks.dedup();
    assert_eq!(tasks.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn helpers_on_other_threads_wait_for_the_disk_too() {
    const EACH: usize = 10_000;
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let turn = Arc::new(turn);
        let helpers: Vec<_> = (0..3)
            .map(|_| {
                let turn = turn.clone();
                tokio::spawn(async move {
                    for _ in 0..EACH {
                        turn.still_working().await;
                    }
                })
            })
            .collect();
        for helper in helpers {
            helper.await?;
        }
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    });
    let (fixture, store) = fixture(agent, Limits::default()).await;
    store.slow_down(Duration::from_millis(5));
    let done = fixture.task(text("go")).await;
    assert_eq!(done.seq as usize, 3 * EACH + 3);
    let largest = store.largest_append();
    assert!(largest <= 1024 + 256 + 2, "a full batch and what was said ahead, but it was {largest}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_of_a_waiting_task_is_refused_soon_and_the_task_waits_on() {
    let (fixture, store) = fixture(asking(), Limits::default()).await;
    let waiting = fixture.task(text("ask which?")).await;
    store.fill();
    let canceled = timeout(Duration::from_secs(1), fixture.cancel(&waiting.id)).await.expect("an answer comes soon");
    assert!(matches!(canceled, Err(Error::StoreFull)));
    assert_eq!(fixture.get(&waiting.id).await.status.state, State::InputRequired);
    store.make_room();
    assert_eq!(fixture.cancel(&waiting.id).await.unwrap().status.state, State::Canceled);
}

#[tokio::test(start_paused = true)]
async fn a_send_that_cannot_be_stored_is_refused_and_makes_no_task() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let fixture = Fixture::on(store.clone(), echo(), Limits::default(), EngineSettings::default()).await;
    store.fill();
    assert!(matches!(fixture.send(text("x")).await, Err(Error::StoreFull)));
    assert!(matches!(fixture.send(at_once("x")).await, Err(Error::StoreFull)));
    assert!(matches!(fixture.engine.health().await, Health::StoreDown(_)));
    store.make_room();
    assert_eq!(fixture.task(text("x")).await.status.state, State::Completed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fixture.engine.health().await, Health::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_room_and_loses_nothing() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let id = turn.new_artifact_id();
        for i in 0..3000u32 {
            let artifact = Artifact::new(id.clone(), vec![Part::text(format!("{i} "))]);
            turn.artifact_update(ArtifactUpdate::new(artifact).append(i > 0).last(i == 2999)).await;
            if i % 500 == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    });
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let fixture = Fixture::on(store.clone(), agent, Limits::default(), EngineSettings::default()).await;
    let mut stream = fixture.stream(text("go")).await;
    tokio::time::sleep(Duration::from_millis(25)).await;
    store.fill();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(fixture.get(stream.task()).await.status.state, State::Working);
    store.make_room();
    let frames = drain(&mut stream).await;
    assert_eq!(frames.len(), 3003);
    assert_eq!(frames.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), (1..=3003).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_message_that_cannot_be_stored_is_not_acknowledged() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let fixture = Fixture::on(store.clone(), endless(), Limits::default(), EngineSettings::default()).await;
    let task = fixture.task(at_once("go")).await;
    store.fill();
    assert!(matches!(fixture.send(to(&task.id, at_once("more"))).await, Err(Error::StoreFull)));
    store.make_room();
    fixture.task(to(&task.id, at_once("once more"))).await;
    let canceled = fixture.cancel(&task.id).await.unwrap();
    let history: Vec<String> = canceled.history.iter().map(|message| message.text()).collect();
    assert_eq!(history, ["go", "once more"]);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_not_stored_is_not_shown() {
    let agent = || {
        ScriptedAgent::new(|_: Turn| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
        })
    };
    for caller in ["cancels", "sends"] {
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        let fixture = Fixture::on(store.clone(), agent(), Limits::default(), EngineSettings::default()).await;
        let task = fixture.task(at_once("go")).await;
        store.slow_down(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(fixture.get(&task.id).await.status.state, State::Working, "its end is on the way to the store");
        match caller {
            "cancels" => assert!(matches!(fixture.cancel(&task.id).await, Err(Error::NotCancelable(_)))),
            _ => assert!(matches!(fixture.send(to(&task.id, at_once("more"))).await, Err(Error::TaskFinished(_)))),
        }
        assert_eq!(fixture.get(&task.id).await.status.state, State::Completed, "whoever {caller} is told of the end");
    }
}
