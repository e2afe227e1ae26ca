//! Message deduplication: repeated sends, by idempotency key and by message id, have one effect.

use std::sync::Arc;

use sabir_model::{IdempotencyKey, LastEventId, Message, MessageId, Send, State};

use crate::fixture::{Fixture, asking, at_once, drain, echo, endless, task_of, text, to};

fn keyed(key: &str, send: Send) -> Send {
    Send { idempotency: Some(IdempotencyKey::parse(key).unwrap()), ..send }
}

fn named(id: &str, send: Send) -> Send {
    let message = Message { id: Some(MessageId::parse(id).unwrap()), ..send.message };
    Send { message, ..send }
}

#[tokio::test]
async fn a_key_makes_one_task_whatever_the_body() {
    let agent = echo();
    let seen = agent.seen();
    let fixture = Fixture::with(agent).await;
    let first = fixture.task(keyed("k", text("one"))).await;
    let again = fixture.task(keyed("k", text("something else"))).await;
    assert_eq!(first, again);
    let other = fixture.task(keyed("k2", text("two"))).await;
    assert_ne!(first.id, other.id);
    assert_eq!(*seen.lock().unwrap(), ["one", "two"]);
}

#[tokio::test]
async fn a_repeated_stream_replays_and_closes() {
    let fixture = Fixture::with(echo()).await;
    let first = drain(&mut fixture.stream(keyed("k", text("one"))).await).await;
    let again = drain(&mut fixture.stream(keyed("k", text("one"))).await).await;
    assert_eq!(first, again);
    let rest = drain(
        &mut fixture.stream(Send { last_event_id: Some(LastEventId::Event(2)), ..keyed("k", text("one")) }).await,
    )
    .await;
    assert_eq!(rest, first[2..]);
}

#[tokio::test]
async fn many_sends_with_one_key_at_once_make_one_task() {
    let agent = echo();
    let seen = agent.seen();
    let fixture = Arc::new(Fixture::with(agent).await);
    let all: Vec<_> = (0..50)
        .map(|_| {
            let fixture = fixture.clone();
            tokio::spawn(async move { fixture.task(keyed("k", text("one"))).await.id })
        })
        .collect();
    let mut ids = Vec::new();
    for one in all {
        ids.push(one.await.unwrap());
    }
    ids.dedup();
    assert_eq!((ids.len(), seen.lock().unwrap().len()), (1, 1));
}

#[tokio::test]
async fn the_same_message_is_a_duplicate_while_the_first_is_in_flight() {
    let fixture = Fixture::with(endless()).await;
    let first = fixture.task(named("m", at_once("go"))).await;
    let joined = fixture.task(named("m", at_once("go"))).await;
    assert_eq!(first.id, joined.id);
    let other = fixture.task(named("m", at_once("go elsewhere"))).await;
    assert_ne!(first.id, other.id, "other words are another message");
    let mut stream = fixture.stream(named("m", text("go"))).await;
    fixture.cancel(&first.id).await.unwrap();
    assert_eq!(drain(&mut stream).await.len(), 3, "a joining stream shows it all");
    let fresh = fixture.task(named("m", at_once("go"))).await;
    assert_ne!(first.id, fresh.id, "the first is finished");
}

#[tokio::test]
async fn messages_without_an_id_are_never_duplicates() {
    let fixture = Fixture::with(endless()).await;
    let unnamed = || {
        let send = at_once("go");
        Send { message: Message { id: None, ..send.message }, ..send }
    };
    let (a, b) = (fixture.task(unnamed()).await, fixture.task(unnamed()).await);
    assert_ne!(a.id, b.id);
    assert_ne!(a.history[0].id, b.history[0].id, "each gets a name of its own");
}

#[tokio::test]
async fn a_repeated_answer_is_taken_once() {
    let agent = asking();
    let seen = agent.seen();
    let fixture = Arc::new(Fixture::with(agent).await);
    let waiting = fixture.task(text("ask which?")).await;
    let answer = |words: &str| named("answer", to(&waiting.id, text(words)));
    let (a, b) = tokio::join!(fixture.send(answer("friday")), fixture.send(answer("friday")));
    let (a, b) = (a.map(task_of), b.map(task_of));
    // The second may arrive when the first is done; then the task is finished.
    assert_eq!(a.unwrap().status.state, State::Completed);
    if let Ok(b) = b {
        assert_eq!(b.status.state, State::Completed);
    }
    assert_eq!(*seen.lock().unwrap(), ["ask which?", "friday"]);
}

#[tokio::test]
async fn an_answer_with_a_key_is_taken_once_also_when_it_is_repeated_late() {
    let agent = asking();
    let seen = agent.seen();
    let fixture = Fixture::with(agent).await;
    let waiting = fixture.task(text("ask which?")).await;
    let answer = |words: &str| keyed("k", to(&waiting.id, text(words)));
    let first = fixture.task(answer("ask which month?")).await;
    let again = fixture.task(answer("ask which month?")).await;
    assert_eq!((first.seq, again.seq), (5, 5), "the task waits again, and the repeated answer changes nothing");
    fixture.task(to(&waiting.id, text("may"))).await;
    let late = fixture.task(answer("ask which month?")).await;
    assert_eq!(late.status.state, State::Completed, "the task is finished, and the sender is told how it ended");
    assert_eq!(*seen.lock().unwrap(), ["ask which?", "ask which month?", "may"]);
}
