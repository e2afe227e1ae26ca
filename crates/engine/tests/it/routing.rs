//! Routing: the executing agent is chosen before the schedule is asked, so its limits apply.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_engine::{AgentError, Builder, Effects, EngineSettings, Limits, Outcome, Route, Router, Turn};
use sabir_model::{AgentId, Json, Message, Part, Required, State};
use sabir_store::MemoryStore;
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{Fixture, at_once, echo, hosted, text, to, within};

/// Routes messages that begin with `hard` to another agent, with a model.
struct ByFirstWord(&'static str);

impl Router for ByFirstWord {
    fn route(&self, opening: &Message, _metadata: Option<&Json>) -> Option<Route> {
        let agent = AgentId::parse(self.0).unwrap();
        opening.text().starts_with("hard").then(|| Route { agent, model: Some("large".into()) })
    }
}

async fn routed(other: ScriptedAgent, limits: Limits, store: Arc<MemoryStore>) -> Fixture {
    let mut usual = hosted("usual", echo(), Limits::default());
    usual.is_default = true;
    usual.router = Some(Arc::new(ByFirstWord("other")));
    let builder = Builder::new(store.clone()).settings(EngineSettings::default()).agent(usual);
    Fixture { engine: builder.routed_agent(hosted("other", other, limits)).start().await.unwrap(), store }
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_the_agent_that_does_the_work_hold() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = most.clone();
    let slow = ScriptedAgent::new(move |turn: Turn| {
        let (now, most) = (now.clone(), counted.clone());
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let stay = if turn.message().text() == "hard for ever" { 3600 } else { 1 };
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(stay)) => {}
                () = turn.cancelled() => {}
            }
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
        }
    });
    let limits = Limits::default().concurrent(1).queue(3).timeout(Duration::from_secs(60));
    let fixture = routed(slow, limits, Arc::new(MemoryStore::new())).await;
    let mut tasks = Vec::new();
    for i in 0..4 {
        tasks.push(fixture.task(at_once(&format!("hard {i}"))).await);
    }
    let refused = fixture.send(text("hard 5")).await;
    assert!(
        matches!(&refused, Err(sabir_model::Error::Busy(agent)) if agent.as_str() == "usual"),
        "the queue is that of the routed agent, and its caller knows the one it addressed"
    );
    assert_eq!(fixture.task(text("easy")).await.status.state, State::Completed, "the usual agent has its own places");
    tokio::time::sleep(Duration::from_secs(10)).await;
    for task in tasks {
        let task = fixture.get(&task.id).await;
        assert_eq!((task.status.state, task.agent.as_str()), (State::Completed, "usual"));
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let late = fixture.task(text("hard for ever")).await;
    let reason = late.status.message.map(|message| message.text());
    assert_eq!(reason.as_deref(), Some("timed out: the turn took longer than 60s"));
}

#[tokio::test(start_paused = true)]
async fn follow_ups_and_contexts_stay_with_the_addressed_agent() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    let other = ScriptedAgent::new(move |turn: Turn| {
        let log = log.clone();
        async move {
            let words = format!("{} {} {:?}", turn.agent(), turn.executor(), turn.model());
            log.lock().unwrap().push(words);
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, AgentError>(match turn.message().text().as_str() {
                "hard?" => Outcome::InputRequired(vec![Part::text("how?")]),
                text => Outcome::Completed(vec![Part::text(format!("other {text}"))]),
            })
        }
    });
    let fixture = routed(other, Limits::default(), Arc::new(MemoryStore::new())).await;
    let asked = fixture.task(text("hard?")).await;
    assert_eq!(asked.status.state, State::InputRequired);
    let answered = fixture.task(to(&asked.id, text("slowly"))).await;
    assert_eq!(answered.status.message.unwrap().text(), "other slowly", "whoever asked gets the answer");
    assert_eq!(*seen.lock().unwrap(), [r#"usual other Some("large")"#; 2]);
    // One run per context, whichever agent executes it.
    let first = fixture.task(within("c", at_once("hard"))).await;
    let second = fixture.task(within("c", at_once("easy"))).await;
    let second = fixture.get(&second.id).await;
    let note = second.status.message.map(|message| message.text());
    assert_eq!(
        (second.status.state, note),
        (State::Submitted, Some(format!("waiting for task {} of this context", first.id)))
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(fixture.get(&second.id).await.status.message.unwrap().text(), "easy");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_same_agent_continues() {
    let store = Arc::new(MemoryStore::new());
    let asks = || {
        ScriptedAgent::new(|turn: Turn| async move {
            if turn.message().text() == "hard" {
                turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
            }
            Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(format!("other {}", turn.message().text()))]))
        })
    };
    let fixture = routed(asks().resuming(), Limits::default(), store.clone()).await;
    let parked = fixture.task(text("hard")).await;
    assert_eq!(parked.status.state, State::InputRequired);
    fixture.engine.stop_now().await;
    // The usual agent cannot resume, but it is not the agent that asked.
    let fixture = routed(asks().resuming(), Limits::default(), store.clone()).await;
    assert_eq!(fixture.get(&parked.id).await.status.state, State::InputRequired);
    let done = fixture.task(to(&parked.id, text("yes, do"))).await;
    assert_eq!(done.status.message.unwrap().text(), "other yes, do");
}

#[tokio::test(start_paused = true)]
async fn what_the_routed_agent_says_of_its_effects_counts() {
    // An agent with effects elsewhere starts after the commit, even if the addressed agent would not have to wait.
    let store = Arc::new(sabir_testkit::faulty::FaultyStore::new(MemoryStore::new()));
    let acts = ScriptedAgent::new(|_: Turn| async move { Ok::<_, AgentError>(Outcome::Completed(Vec::new())) });
    let seen = acts.seen();
    let mut usual = hosted("usual", echo().with_effects(Effects::ThroughTurn), Limits::default());
    usual.router = Some(Arc::new(ByFirstWord("other")));
    let builder = Builder::new(store.clone()).agent(usual).routed_agent(hosted("other", acts, Limits::default()));
    let fixture = Fixture { engine: builder.start().await.unwrap(), store: store.clone() };
    store.slow_down(Duration::from_secs(5));
    let sending = fixture.send(at_once("hard"));
    assert!(tokio::time::timeout(Duration::from_secs(1), sending).await.is_err(), "it is being stored");
    assert!(seen.lock().unwrap().is_empty(), "nothing is done before it is stored");
}
