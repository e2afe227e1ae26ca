//! Scheduling: limits of concurrent runs, one run per context, and bounded queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sabir_engine::{AgentError, Limits, Outcome, Turn};
use sabir_model::{Error, State};
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{Fixture, at_once, text, within};

/// Counts how many runs work at once.
fn counting(most: Arc<AtomicUsize>) -> ScriptedAgent {
    let now = Arc::new(AtomicUsize::new(0));
    ScriptedAgent::new(move |_: Turn| {
        let (now, most) = (now.clone(), most.clone());
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn concurrent_runs_are_limited_and_the_rest_waits() {
    let most = Arc::new(AtomicUsize::new(0));
    let fixture = Fixture::limited(counting(most.clone()), Limits::default().concurrent(3).queue(5)).await;
    let mut tasks = Vec::new();
    for i in 0..8 {
        tasks.push(fixture.task(at_once(&format!("{i}"))).await);
    }
    let Err(Error::Busy(agent)) = fixture.send(text("too many")).await else { panic!("the queue is full") };
    assert_eq!(agent.as_str(), "demo");
    tokio::time::sleep(Duration::from_secs(10)).await;
    for task in tasks {
        assert_eq!(fixture.get(&task.id).await.status.state, State::Completed);
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(fixture.task(text("again")).await.status.state, State::Completed, "there is room again");
}

#[tokio::test(start_paused = true)]
async fn one_context_runs_one_at_a_time_in_order_of_arrival() {
    let most = Arc::new(AtomicUsize::new(0));
    let agent = counting(most.clone());
    let seen = agent.seen();
    let fixture = Fixture::with(agent).await;
    let mut last = None;
    for i in 0..5 {
        last = Some(fixture.task(within("c1", at_once(&format!("{i}")))).await);
    }
    let queued = fixture.get(&last.unwrap().id).await;
    assert_eq!(queued.status.state, State::Submitted);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(*seen.lock().unwrap(), ["0", "1", "2", "3", "4"]);
    assert_eq!(most.load(Ordering::SeqCst), 1);
}
