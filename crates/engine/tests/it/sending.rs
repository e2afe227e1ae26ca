//! Sends: which task a message goes to, and which sends are refused.

use sabir_engine::Answer;
use sabir_model::{Content, ContextAlone, Direct, Error, Json, OnFinished, Part, PushConfig, Send, State, TaskId};

use crate::fixture::{Fixture, asking, at_once, echo, task_of, text, to, within};

#[tokio::test]
async fn a_blocking_send_returns_the_settled_task() {
    let fixture = Fixture::with(echo()).await;
    let task = fixture.task(text("hello")).await;
    assert_eq!(task.status.state, State::Completed);
    assert_eq!(task.status.message.unwrap().text(), "hello");
    assert_eq!(task.history.len(), 1);
    assert_eq!(task.history[0].task.as_ref(), Some(&task.id));
    assert_eq!(task.history[0].context.as_ref(), Some(&task.context));
    assert_eq!(task.seq, 3);
}

#[tokio::test]
async fn an_immediate_send_returns_the_task_as_it_was_made() {
    let fixture = Fixture::with(echo()).await;
    let task = fixture.task(at_once("hello")).await;
    assert_eq!((task.status.state, task.seq), (State::Submitted, 1));
}

#[tokio::test]
async fn history_is_cut_to_what_was_asked_for() {
    let fixture = Fixture::with(asking()).await;
    let task = fixture.task(text("ask which?")).await;
    fixture.task(to(&task.id, text("friday"))).await;
    for (length, expected) in [(None, 3), (Some(0), 0), (Some(2), 2), (Some(9), 3)] {
        let get =
            sabir_model::Get { agent: None, task: task.id.clone(), history: length, earlier: sabir_model::Wanted::No };
        let found = task_of(fixture.call(sabir_model::Call::Get(get)).await.unwrap());
        assert_eq!(found.history.len(), expected, "{length:?}");
    }
}

#[tokio::test]
async fn a_direct_reply_makes_no_task() {
    let fixture = Fixture::with(echo()).await;
    let Answer::Message(message) = fixture.send(within("c1", text("reply hi"))).await.unwrap() else {
        panic!("expected a message");
    };
    assert_eq!(message.text(), "hi");
    assert_eq!(message.context.unwrap().as_str(), "c1");
    assert_eq!(message.task, None);
    let as_task = fixture.task(Send { direct: Direct::StoredTask, ..text("reply hi") }).await;
    assert_eq!(as_task.status.state, State::Completed);
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_and_leaves_nothing() {
    let fixture = Fixture::with(asking()).await;
    let done = fixture.task(text("x")).await;
    let waiting = fixture.task(within("c1", text("ask which?"))).await;
    let video = Part { media_type: Some("video/mp4".into()), ..Content::Url("http://x".into()).into() };
    let mut with_video = text("look");
    with_video.message.parts.push(video);
    let mut with_data = text("look");
    with_data.message.parts.push(Content::Data(Json::parse("{}").unwrap()).into());
    let push = PushConfig { id: None, task: None, url: "http://x".into(), token: None, authentication: None };
    for (send, expected) in [
        (to(&done.id, text("more")), "the task is finished"),
        (to(&TaskId::parse("nope").unwrap(), text("more")), "task nope does not exist"),
        (
            within("other", to(&waiting.id, text("more"))),
            "invalid parameters: message.contextId does not match the task",
        ),
        (with_video, "no skill takes video/mp4"),
        (with_data, "no skill takes application/json"),
        (Send { push: Some(push), ..text("x") }, "push notifications are not supported"),
        (
            Send { agent: Some(sabir_model::AgentId::parse("ghost").unwrap()), ..text("x") },
            "there is no agent ghost; known: demo",
        ),
    ] {
        let refused = fixture.send(send).await.err().expect("it is refused");
        assert_eq!(refused.to_string(), expected);
    }
    assert_eq!(fixture.get(&waiting.id).await.status.state, State::InputRequired);
}

#[tokio::test]
async fn a_message_to_a_finished_task_may_start_another_in_its_context() {
    let fixture = Fixture::with(echo()).await;
    let first = fixture.task(text("one")).await;
    let second = fixture.task(Send { on_finished: OnFinished::StartTask, ..to(&first.id, text("two")) }).await;
    assert_ne!(first.id, second.id);
    assert_eq!(first.context, second.context);
}

#[tokio::test]
async fn a_context_alone_answers_the_one_task_that_waits() {
    let fixture = Fixture::with(asking()).await;
    let waiting = fixture.task(within("c1", text("ask which?"))).await;
    let answers = |words: &str| Send { context_alone: ContextAlone::AnswersWaiting, ..within("c1", text(words)) };
    let answered = fixture.task(answers("friday")).await;
    assert_eq!(answered.id, waiting.id);
    assert_eq!(answered.status.state, State::Completed);
    let fresh = fixture.task(answers("monday")).await;
    assert_ne!(fresh.id, waiting.id, "nobody waits any more");

    let (a, b) = (fixture.task(within("c1", text("ask a"))).await, fixture.task(within("c1", text("ask b"))).await);
    let Err(Error::Invalid(violations)) = fixture.send(answers("which of them")).await else { panic!("two wait") };
    assert!(violations[0].description.contains(a.id.as_str()) && violations[0].description.contains(b.id.as_str()));
    let other = fixture.task(within("c1", text("not an answer"))).await;
    assert_ne!(other.id, a.id, "where a context alone starts a task, it does");
}
