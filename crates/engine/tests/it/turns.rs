//! Several turns of one task: messages during a turn, questions and answers.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{AgentError, Outcome, Turn};
use sabir_model::{Error, Json, Part, Required, Send, State};
use sabir_testkit::scripted::ScriptedAgent;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::fixture::{Fixture, asking, at_once, drain, text, to, within};

fn history(task: &sabir_model::Task) -> Vec<String> {
    task.history.iter().map(|message| message.text()).collect()
}

#[tokio::test]
async fn a_question_is_answered_on_the_same_task() {
    let fixture = Fixture::with(asking()).await;
    let waiting = fixture.task(text("ask which?")).await;
    assert_eq!(waiting.status.state, State::InputRequired);
    let done = fixture.task(to(&waiting.id, text("friday"))).await;
    assert_eq!((done.id.clone(), done.status.state), (waiting.id, State::Completed));
    assert_eq!(history(&done), ["ask which?", "which?", "friday"]);
}

#[tokio::test]
async fn a_message_to_a_working_task_is_its_next_turn_and_nothing_settles_before() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(turn.message().text())]))
        }
    });
    let seen = agent.seen();
    let fixture = Fixture::with(agent).await;
    let task = fixture.task(at_once("one")).await;
    let mut stream = fixture.subscribe(&task.id, Some(0)).await.unwrap();
    fixture.task(to(&task.id, at_once("two"))).await;
    fixture.task(to(&task.id, at_once("three"))).await;
    for _ in 0..3 {
        go.notify_one();
        tokio::task::yield_now().await;
    }
    let frames = loop {
        tokio::select! {
            frames = drain(&mut stream) => break frames,
            () = tokio::time::sleep(Duration::from_millis(5)) => go.notify_one(),
        }
    };
    assert_eq!(*seen.lock().unwrap(), ["one", "two", "three"]);
    let done = fixture.get(&task.id).await;
    assert_eq!(history(&done), ["one", "two", "three"]);
    assert_eq!(done.status.message.unwrap().text(), "three");
    assert_eq!(done.status.state, State::Completed);
    assert!(frames.iter().filter(|(_, words)| words.ends_with('.')).count() <= 1, "{frames:?}");
}

/// Asks during the turn and completes with the answer.
fn approving() -> ScriptedAgent {
    ScriptedAgent::new(|turn: Turn| async move {
        let answer = turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
        turn.progress(format!("heard {}", answer.text())).await;
        Ok(Outcome::Completed(vec![Part::text(answer.text())]))
    })
}

#[tokio::test]
async fn a_question_in_mid_turn_keeps_the_stream_open() {
    let fixture = Fixture::with(approving()).await;
    let parked = fixture.task(text("go")).await;
    assert_eq!((parked.status.state, parked.turn_over), (State::InputRequired, false));
    let mut stream = fixture.subscribe(&parked.id, Some(0)).await.unwrap();
    let done = fixture.task(to(&parked.id, text("yes"))).await;
    assert_eq!(done.status.message.as_ref().unwrap().text(), "yes");
    let frames: Vec<String> = drain(&mut stream).await.into_iter().map(|(_, words)| words).collect();
    assert_eq!(
        frames,
        ["created", "Working", "InputRequired may I?", "Working", "Working heard yes", "Completed yes."]
    );
    assert_eq!(history(&done), ["go", "may I?", "yes"]);
}

#[tokio::test]
async fn what_was_said_before_a_question_does_not_answer_it() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let gate = gate.clone();
        async move {
            if turn.message().text() != "go" {
                return Ok(Outcome::Completed(Vec::new()));
            }
            gate.notified().await;
            let answer = turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
            turn.progress(format!("heard {}", answer.text())).await;
            Ok(Outcome::Completed(Vec::new()))
        }
    });
    let seen = agent.seen();
    let fixture = Fixture::with(agent).await;
    let task = fixture.task(at_once("go")).await;
    fixture.task(to(&task.id, at_once("yes to all"))).await;
    let mut stream = fixture.subscribe(&task.id, Some(0)).await.unwrap();
    go.notify_one();
    while fixture.get(&task.id).await.status.state != State::InputRequired {
        tokio::task::yield_now().await;
    }
    let done = fixture.task(to(&task.id, text("no"))).await;
    assert_eq!(done.status.state, State::Completed);
    let frames: Vec<String> = drain(&mut stream).await.into_iter().map(|(_, words)| words).collect();
    assert!(frames.contains(&"Working heard no".to_owned()), "{frames:?}");
    assert_eq!(history(&done), ["go", "may I?", "no", "yes to all"]);
    assert_eq!(*seen.lock().unwrap(), ["go", "yes to all"]);
}

#[tokio::test]
async fn a_task_behind_a_parked_run_shows_what_it_waits_for() {
    let fixture = Fixture::with(approving()).await;
    let parked = fixture.task(within("c1", text("go"))).await;
    let behind = fixture.task(within("c1", at_once("me too"))).await;
    assert_eq!(behind.status.state, State::Submitted);
    assert!(behind.status.message.unwrap().text().contains(parked.id.as_str()));
    fixture.task(to(&parked.id, text("yes"))).await;
    let second = fixture.task(to(&behind.id, text("also yes"))).await;
    assert!(matches!(second.status.state, State::Completed | State::InputRequired), "{:?}", second.status);
}

#[tokio::test]
async fn an_agent_that_fails_or_panics_fails_its_task() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        match turn.message().text().as_str() {
            "panic" => panic!("as told"),
            "told" => Err(AgentError::for_caller("no network")),
            "error" => Err(std::io::Error::other("/home/me/.key: permission denied"))?,
            "text" => Err("the key is sk-1234")?,
            _ => Ok(Outcome::Completed(Vec::new())),
        }
    });
    let fixture = Fixture::with(agent).await;
    for (words, reason) in [
        ("told", "no network"),
        ("error", "the agent failed; the server's log says why"),
        ("text", "the agent failed; the server's log says why"),
        ("panic", "the agent crashed"),
    ] {
        let task = fixture.task(text(words)).await;
        assert_eq!(task.status.state, State::Failed);
        assert_eq!(task.status.message.unwrap().text(), reason);
    }
    assert_eq!(fixture.task(text("fine")).await.status.state, State::Completed);
}

#[tokio::test]
async fn an_agent_sees_the_conversation_its_references_and_its_memory() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let earlier = turn.conversation().await?;
        let referred = turn.references().await?;
        let memory = turn.memory().await?;
        turn.remember(Some(format!("after {}", turn.message().text()))).await;
        let text = format!("{} earlier, {} referred, {memory:?}", earlier.len(), referred.len());
        Ok(Outcome::Completed(vec![Part::text(text)]))
    });
    let fixture = Fixture::with(agent).await;
    let first = fixture.task(within("c1", text("one"))).await;
    assert_eq!(first.status.message.unwrap().text(), "0 earlier, 0 referred, None");
    let mut second = within("c1", text("two"));
    second.message.references = vec![first.id, sabir_model::TaskId::parse("unknown").unwrap()];
    let second = fixture.task(second).await;
    assert_eq!(second.status.message.unwrap().text(), "1 earlier, 1 referred, Some(\"after one\")");
    let elsewhere = fixture.task(within("c2", text("three"))).await;
    assert_eq!(elsewhere.status.message.unwrap().text(), "0 earlier, 0 referred, None");
}

#[tokio::test]
async fn an_agent_sees_the_metadata_of_the_request_in_every_turn() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let metadata = turn.metadata().map_or("none", Json::as_str).to_owned();
        Ok(Outcome::InputRequired(vec![Part::text(metadata)]))
    });
    let fixture = Fixture::with(agent).await;
    let metadata = r#"{"skill":"summarize_pr"}"#;
    let first = fixture.task(Send { metadata: Some(Json::parse(metadata).unwrap()), ..text("one") }).await;
    assert_eq!(first.status.message.unwrap().text(), metadata);
    let again = fixture.task(to(&first.id, text("two"))).await;
    assert_eq!(again.status.message.unwrap().text(), metadata);
}

#[tokio::test(start_paused = true)]
async fn what_is_queued_behind_a_turn_is_no_part_of_its_conversation() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let earlier: Vec<String> = turn.conversation().await?.iter().map(|task| task.history[0].text()).collect();
        Ok(Outcome::Completed(vec![Part::text(earlier.join(","))]))
    });
    let fixture = Fixture::with(agent).await;
    let mut tasks = Vec::new();
    for words in ["one", "two", "three"] {
        tasks.push(fixture.task(within("c", at_once(words))).await);
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    for (task, expected) in tasks.iter().zip(["", "one", "one,two"]) {
        assert_eq!(fixture.get(&task.id).await.status.message.unwrap().text(), expected);
    }
}

#[tokio::test]
async fn an_agent_that_panics_before_it_works_fails_its_task_and_harms_nobody() {
    let agent = ScriptedAgent::new(|turn: Turn| {
        let text = turn.message().text();
        assert_ne!(text, "panic", "as it was told");
        async move {
            Ok::<_, AgentError>(match text.strip_prefix("ask ") {
                Some(question) => Outcome::InputRequired(vec![Part::text(question)]),
                None => Outcome::Completed(Vec::new()),
            })
        }
    });
    let fixture = Fixture::with(agent).await;
    let waiting = fixture.task(within("c1", text("ask which?"))).await;
    for send in [text("panic"), to(&waiting.id, text("panic")), within("c1", text("panic"))] {
        let failed = timeout(Duration::from_secs(5), fixture.task(send)).await.expect("the sender is answered");
        assert_eq!(failed.status.state, State::Failed);
        assert_eq!(failed.status.message.unwrap().text(), "the agent crashed");
        assert!(matches!(fixture.cancel(&failed.id).await, Err(Error::NotCancelable(_))));
    }
    let next =
        timeout(Duration::from_secs(5), fixture.task(within("c1", text("fine")))).await.expect("its context is free");
    assert_eq!(next.status.state, State::Completed);
}
