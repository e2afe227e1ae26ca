use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{AgentError, Builder, Limits, Outcome, Settings, Turn};
use sabir_model::{Call, Cancel, Error, OnFinishedCancel, State, TaskId};
use sabir_store::{MemoryStore, Store};
use sabir_testkit::scripted::ScriptedAgent;
use tokio::time::timeout;

use crate::desk::{Desk, asking, at_once, drain, echo, endless, hosted, task_of, text, within};

#[tokio::test]
async fn a_running_task_is_stopped() {
    let desk = Desk::with(endless()).await;
    let task = desk.task(at_once("go")).await;
    let mut stream = desk.subscribe(&task.id, Some(0)).await.unwrap();
    let canceled = desk.cancel(&task.id).await.unwrap();
    assert_eq!(canceled.status.state, State::Canceled);
    let frames: Vec<String> = drain(&mut stream).await.into_iter().map(|(_, words)| words).collect();
    assert_eq!(frames, ["created", "Working", "Canceled."]);
}

#[tokio::test]
async fn a_queued_task_never_runs() {
    let agent = endless();
    let seen = agent.seen();
    let desk = Desk::limited(agent, Limits { concurrent: 1, ..Limits::default() }).await;
    let first = desk.task(at_once("first")).await;
    let queued = desk.task(at_once("queued")).await;
    assert_eq!(desk.cancel(&queued.id).await.unwrap().status.state, State::Canceled);
    desk.cancel(&first.id).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["first"]);
}

#[tokio::test]
async fn a_waiting_task_is_canceled_at_once() {
    let desk = Desk::with(asking()).await;
    let waiting = desk.task(text("ask which?")).await;
    assert_eq!(desk.cancel(&waiting.id).await.unwrap().status.state, State::Canceled);
    assert!(matches!(desk.cancel(&waiting.id).await, Err(Error::NotCancelable(_))), "once is enough");
}

#[tokio::test]
async fn a_finished_task_is_refused_or_left() {
    let desk = Desk::with(echo()).await;
    let done = desk.task(text("x")).await;
    assert!(matches!(desk.cancel(&done.id).await, Err(Error::NotCancelable(_))));
    let leave = Cancel { agent: None, task: done.id.clone(), metadata: None, on_finished: OnFinishedCancel::Leave };
    assert_eq!(task_of(desk.call(Call::Cancel(leave)).await.unwrap()), done);
    assert!(matches!(desk.cancel(&TaskId::parse("nope").unwrap()).await, Err(Error::TaskNotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_listen_is_dropped() {
    let deaf = ScriptedAgent::new(|_: Turn| async {
        std::future::pending::<()>().await;
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    });
    let desk = Desk::limited(deaf, Limits { concurrent: 1, ..Limits::default() }).await;
    let task = desk.task(at_once("go")).await;
    assert_eq!(desk.cancel(&task.id).await.unwrap().status.state, State::Canceled);
    let next = desk.task(within("c", at_once("next"))).await;
    desk.cancel(&next.id).await.unwrap();
}

#[tokio::test]
async fn many_cancels_of_one_task_are_all_answered() {
    let desk = std::sync::Arc::new(Desk::with(endless()).await);
    let task = desk.task(at_once("go")).await;
    let all: Vec<_> = (0..20)
        .map(|_| {
            let (desk, id) = (desk.clone(), task.id.clone());
            tokio::spawn(async move { desk.cancel(&id).await })
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
    let desk = Desk::on(store.clone(), asking(), Limits::default(), Settings::default()).await;
    let waiting = desk.task(text("ask which?")).await.id;
    drop(desk);
    let builder = Builder::new(store.clone()).agent(hosted("other", echo(), Limits::default()));
    let desk = Desk { engine: builder.start().await.unwrap(), store };
    let mut watcher = desk.subscribe(&waiting, None).await.unwrap();
    let patience = Duration::from_secs(5);
    let canceled = timeout(patience, desk.cancel(&waiting)).await.expect("nobody spins").unwrap();
    assert_eq!(canceled.status.state, State::Canceled);
    let again = timeout(patience, desk.cancel(&waiting)).await.expect("nobody spins");
    assert!(matches!(again, Err(Error::NotCancelable(_))));
    let frames = timeout(patience, drain(&mut watcher)).await.expect("the stream ends");
    assert_eq!(frames.last().unwrap().1, "Canceled.");
}

#[tokio::test]
async fn canceled_tasks_leave_the_queue() {
    let desk = Desk::limited(endless(), Limits { concurrent: 1, queue: 10, ..Limits::default() }).await;
    desk.task(at_once("runs")).await;
    for i in 0..25 {
        let context = if i % 2 == 0 { "even" } else { "odd" };
        let queued = desk.task(within(context, at_once("waits"))).await;
        assert_eq!(desk.cancel(&queued.id).await.unwrap().status.state, State::Canceled);
    }
}
