//! Cancels: in the queue, while the agent works, while it asks, and after the end.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{AgentError, Builder, EngineSettings, Limits, Outcome, Turn};
use sabir_model::{Call, Cancel, Error, OnFinishedCancel, State, TaskId};
use sabir_store::{MemoryStore, Store};
use sabir_testkit::scripted::ScriptedAgent;
use tokio::time::timeout;

use crate::fixture::{Fixture, asking, at_once, drain, echo, endless, hosted, task_of, text, within};

#[tokio::test]
async fn a_running_task_is_stopped() {
    let fixture = Fixture::with(endless()).await;
    let task = fixture.task(at_once("go")).await;
    let mut stream = fixture.subscribe(&task.id, Some(0)).await.unwrap();
    let canceled = fixture.cancel(&task.id).await.unwrap();
    assert_eq!(canceled.status.state, State::Canceled);
    let frames: Vec<String> = drain(&mut stream).await.into_iter().map(|(_, words)| words).collect();
    assert_eq!(frames, ["created", "Working", "Canceled."]);
}

#[tokio::test]
async fn a_queued_task_never_runs() {
    let agent = endless();
    let seen = agent.seen();
    let fixture = Fixture::limited(agent, Limits::default().concurrent(1)).await;
    let first = fixture.task(at_once("first")).await;
    let queued = fixture.task(at_once("queued")).await;
    assert_eq!(fixture.cancel(&queued.id).await.unwrap().status.state, State::Canceled);
    fixture.cancel(&first.id).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["first"]);
}

#[tokio::test]
async fn a_waiting_task_is_canceled_at_once() {
    let fixture = Fixture::with(asking()).await;
    let waiting = fixture.task(text("ask which?")).await;
    assert_eq!(fixture.cancel(&waiting.id).await.unwrap().status.state, State::Canceled);
    assert!(matches!(fixture.cancel(&waiting.id).await, Err(Error::NotCancelable(_))), "once is enough");
}

#[tokio::test]
async fn a_finished_task_is_refused_or_left() {
    let fixture = Fixture::with(echo()).await;
    let done = fixture.task(text("x")).await;
    assert!(matches!(fixture.cancel(&done.id).await, Err(Error::NotCancelable(_))));
    let leave = Cancel { agent: None, task: done.id.clone(), metadata: None, on_finished: OnFinishedCancel::Leave };
    assert_eq!(task_of(fixture.call(Call::Cancel(leave)).await.unwrap()), done);
    assert!(matches!(fixture.cancel(&TaskId::parse("nope").unwrap()).await, Err(Error::TaskNotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_listen_is_dropped() {
    let deaf = ScriptedAgent::new(|_: Turn| async {
        std::future::pending::<()>().await;
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    });
    let fixture = Fixture::limited(deaf, Limits::default().concurrent(1)).await;
    let task = fixture.task(at_once("go")).await;
    assert_eq!(fixture.cancel(&task.id).await.unwrap().status.state, State::Canceled);
    let next = fixture.task(within("c", at_once("next"))).await;
    fixture.cancel(&next.id).await.unwrap();
}

#[tokio::test]
async fn many_cancels_of_one_task_are_all_answered() {
    let fixture = std::sync::Arc::new(Fixture::with(endless()).await);
    let task = fixture.task(at_once("go")).await;
    let all: Vec<_> = (0..20)
        .map(|_| {
            let (fixture, id) = (fixture.clone(), task.id.clone());
            tokio::spawn(async move { fixture.cancel(&id).await })
        })
        .collect();
    let mut canceled = 0;
    for one in all {
        match one.await.unwrap() {
            Ok(task) => {
                assert_eq!(task.status.state, State::Canceled);
                canceled += 1;
            }
            Err(Error::NotCancelable(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(canceled >= 1);
}

#[tokio::test]
async fn a_waiting_task_can_be_canceled_when_its_agent_is_gone() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let fixture = Fixture::on(store.clone(), asking(), Limits::default(), EngineSettings::default()).await;
    let waiting = fixture.task(text("ask which?")).await.id;
    drop(fixture);
    let builder = Builder::new(store.clone()).agent(hosted("other", echo(), Limits::default()));
    let fixture = Fixture { engine: builder.start().await.unwrap(), store };
    let mut watcher = fixture.subscribe(&waiting, None).await.unwrap();
    let patience = Duration::from_secs(5);
    let canceled = timeout(patience, fixture.cancel(&waiting)).await.expect("nobody spins").unwrap();
    assert_eq!(canceled.status.state, State::Canceled);
    let again = timeout(patience, fixture.cancel(&waiting)).await.expect("nobody spins");
    assert!(matches!(again, Err(Error::NotCancelable(_))));
    let frames = timeout(patience, drain(&mut watcher)).await.expect("the stream ends");
    assert_eq!(frames.last().unwrap().1, "Canceled.");
}

#[tokio::test]
async fn canceled_tasks_leave_the_queue() {
    let fixture = Fixture::limited(endless(), Limits::default().concurrent(1).queue(10)).await;
    fixture.task(at_once("runs")).await;
    for i in 0..25 {
        let context = if i % 2 == 0 { "even" } else { "odd" };
        let queued = fixture.task(within(context, at_once("waits"))).await;
        assert_eq!(fixture.cancel(&queued.id).await.unwrap().status.state, State::Canceled);
    }
}
