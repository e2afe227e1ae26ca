//! Time limits of turns and of blocking sends.

use std::time::Duration;

use sabir_engine::{AgentError, EngineSettings, Limits, Outcome, Turn};
use sabir_model::{Part, Required, State};
use sabir_store::MemoryStore;
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{Fixture, endless, text, to};

/// Reports progress every 3 seconds, ten times.
fn chatty() -> ScriptedAgent {
    ScriptedAgent::new(|turn: Turn| async move {
        for i in 0..10 {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(3)) => turn.progress(format!("{i}")).await,
                () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
            }
        }
        Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
    })
}

#[tokio::test(start_paused = true)]
async fn limits_fail_the_task_and_say_which_one() {
    let seconds = |n| Some(Duration::from_secs(n));
    for (timeout, idle_timeout, expected) in [
        (seconds(5), None, Some("timed out: the turn took longer than 5s")),
        (None, seconds(2), Some("timed out: nothing was heard of the agent for 2s")),
        (seconds(20), seconds(4), Some("timed out: the turn took longer than 20s")),
        (None, seconds(4), None),
        (seconds(40), seconds(4), None),
    ] {
        let fixture = Fixture::limited(chatty(), Limits::default().timeout(timeout).idle_timeout(idle_timeout)).await;
        let task = fixture.task(text("go")).await;
        let reason = task.status.message.map(|message| message.text());
        assert_eq!(reason.as_deref(), expected, "{timeout:?} {idle_timeout:?}");
        let state = if expected.is_some() { State::Failed } else { State::Completed };
        assert_eq!(task.status.state, state);
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_that_the_caller_needs_for_an_answer_does_not_count() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let answer = turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
        Ok(Outcome::Completed(vec![Part::text(answer.text())]))
    });
    let limits = Limits::default().timeout(Duration::from_secs(5)).idle_timeout(Duration::from_secs(2));
    let fixture = Fixture::limited(agent, limits).await;
    let parked = fixture.task(text("go")).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(fixture.get(&parked.id).await.status.state, State::InputRequired);
    assert_eq!(fixture.task(to(&parked.id, text("yes"))).await.status.state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn the_time_that_an_agent_has_to_wait_is_not_silence() {
    let seconds = |n| Some(Duration::from_secs(n));
    for (silent, expected) in [
        (1, None),
        (3, Some("timed out: nothing was heard of the agent for 2s")),
        // After the wait, silence counts again.
        (9, Some("timed out: nothing was heard of the agent for 2s")),
    ] {
        let agent = ScriptedAgent::new(move |turn: Turn| async move {
            turn.wait(Duration::from_secs(60)).await;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(silent)) => Ok::<_, AgentError>(Outcome::Completed(Vec::new())),
                () = turn.cancelled() => Ok(Outcome::Canceled(Vec::new())),
            }
        });
        let limits = Limits::default().timeout(seconds(5)).idle_timeout(seconds(2));
        let task = Fixture::limited(agent, limits).await.task(text("go")).await;
        assert_eq!(task.status.message.map(|message| message.text()).as_deref(), expected, "silent for {silent} s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_waits_can_be_canceled() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        turn.wait(Duration::from_secs(3600)).await;
        assert!(turn.is_cancelled());
        Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
    });
    let limits = Limits::default().timeout(Duration::from_secs(5));
    let settings = EngineSettings { max_wait: Some(Duration::from_secs(1)), ..EngineSettings::default() };
    let fixture = Fixture::on(std::sync::Arc::new(MemoryStore::new()), agent, limits, settings).await;
    let task = fixture.task(text("go")).await;
    assert_eq!(task.status.state, State::Working);
    assert_eq!(fixture.cancel(&task.id).await.unwrap().status.state, State::Canceled);
}

#[tokio::test(start_paused = true)]
async fn no_limit_fails_an_agent_that_has_announced_its_outcome() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        turn.progress("nearly").await;
        turn.last_word(Outcome::Completed(Vec::new())).await;
        tokio::time::sleep(Duration::from_secs(7)).await;
        Ok(Outcome::Completed(Vec::new()))
    });
    let limits = Limits::default().timeout(Duration::from_secs(5)).idle_timeout(Duration::from_secs(2));
    let task = Fixture::limited(agent, limits).await.task(text("go")).await;
    assert_eq!(task.status.state, State::Completed, "{:?}", task.status);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_blocking_send_does_not_change_the_task() {
    let settings = EngineSettings { max_wait: Some(Duration::from_secs(1)), ..EngineSettings::default() };
    let fixture = Fixture::on(std::sync::Arc::new(MemoryStore::new()), endless(), Limits::default(), settings).await;
    let task = fixture.task(text("go")).await;
    assert_eq!(task.status.state, State::Working);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fixture.get(&task.id).await.status.state, State::Working);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_waited_long_enough_continues_and_is_timed_again() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let asking = turn.ask(Required::Input, vec![Part::text("may I?")]);
        assert!(tokio::time::timeout(Duration::from_secs(60), asking).await.is_err(), "nobody answers");
        turn.progress("nobody answered").await;
        turn.cancelled().await;
        Ok::<_, AgentError>(Outcome::Canceled(Vec::new()))
    });
    let limits = Limits::default().idle_timeout(Duration::from_secs(2));
    let fixture = Fixture::limited(agent, limits).await;
    let parked = fixture.task(text("go")).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let task = fixture.get(&parked.id).await;
    assert_eq!(task.status.message.map(|message| message.text()).as_deref(), Some("nobody answered"));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let task = fixture.get(&parked.id).await;
    let reason = task.status.message.map(|message| message.text());
    assert_eq!(reason.as_deref(), Some("timed out: nothing was heard of the agent for 2s"));
}
