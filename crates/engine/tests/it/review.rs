//! Two things at once, at the worst moment: what a hostile reader of the driver tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sabir_engine::{AgentError, Builder, Clock, Limits, Outcome, Recovery, Settings, Turn};
use sabir_model::{State, Timestamp};
use sabir_store::MemoryStore;
use sabir_testkit::faulty::FaultyStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::time::{sleep, timeout};

use crate::desk::{Desk, at_once, drain, hosted, text};

const HOUR: Duration = Duration::from_secs(3600);

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn requeue() -> Settings {
    Settings { recovery: Recovery::Requeue, ..Settings::default() }
}

/// A clock that panics when it is told to, which makes the driver panic that asks it.
#[derive(Default)]
struct Bomb {
    is_armed: AtomicBool,
}

impl Clock for Bomb {
    fn now(&self) -> Timestamp {
        assert!(!self.is_armed.swap(false, Ordering::SeqCst), "the clock is broken");
        Timestamp::from_millis(1_000)
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_run_again_after_a_crash_of_its_driver_has_one_driver() {
    let (clock, runs, stops) =
        (Arc::new(Bomb::default()), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (bomb, counter, stopped) = (clock.clone(), runs.clone(), stops.clone());
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let (bomb, stopped, run) = (bomb.clone(), stopped.clone(), counter.fetch_add(1, Ordering::SeqCst));
        async move {
            if run == 0 {
                bomb.is_armed.store(true, Ordering::SeqCst);
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
    let desk = Desk { engine: builder.start().await.unwrap(), store };
    let task = desk.task(at_once("go")).await;
    sleep(millis(100)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2, "it runs again");
    let canceled = timeout(HOUR, desk.cancel(&task.id)).await.unwrap().unwrap();
    assert_eq!(canceled.status.state, State::Canceled);
    assert_eq!(stops.load(Ordering::SeqCst), 1, "the run was told to stop before the caller heard that it has");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_crashes_while_an_append_is_under_way_settles_its_task() {
    for (recovery, expected) in [(Recovery::Fail, State::Failed), (Recovery::Requeue, State::Completed)] {
        let (clock, runs) = (Arc::new(Bomb::default()), Arc::new(AtomicUsize::new(0)));
        let (bomb, counter) = (clock.clone(), runs.clone());
        let agent = ScriptedAgent::new(move |turn: Turn| {
            let (bomb, run) = (bomb.clone(), counter.fetch_add(1, Ordering::SeqCst));
            async move {
                if run == 0 {
                    turn.progress("on its way to the store").await;
                    sleep(millis(10)).await;
                    bomb.is_armed.store(true, Ordering::SeqCst);
                    turn.progress("the driver reads the clock for this").await;
                    turn.cancelled().await;
                }
                Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
            }
        });
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        store.slow_down(millis(50));
        let builder = Builder::new(store.clone()).settings(Settings { recovery, ..Settings::default() }).clock(clock);
        let builder = builder.agent(hosted("demo", agent, Limits::default()));
        let desk = Desk { engine: builder.start().await.unwrap(), store };
        let task = timeout(HOUR, desk.task(text("go"))).await.expect("the sender is answered");
        assert_eq!(task.status.state, expected, "{:?}", task.status);
        let frames = drain(&mut desk.subscribe(&task.id, Some(0)).await.unwrap()).await;
        assert!(frames.iter().any(|(_, words)| words == "Working on its way to the store"), "{frames:?}");
        let numbers: Vec<u64> = frames.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(numbers, (1..=frames.len() as u64).collect::<Vec<_>>());
    }
}
