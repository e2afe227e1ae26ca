//! Tasks that their callers name, and messages that need a certain standing.

use std::sync::Arc;

use sabir_engine::{Builder, Hosted, Limits, Outcome, Streaming, Turn};
use sabir_model::{
    Addressee, AgentId, Birth, COST, Call, Caller, Cancel, Delivery, Error, Extension, Get, OnFinished,
    OnFinishedCancel, OnUnknown, Part, Send, State, TaskId, Usage, Wanted,
};
use sabir_store::MemoryStore;
use sabir_testkit::clock::ManualClock;
use sabir_testkit::scripted::ScriptedAgent;

use crate::desk::{Desk, asking, at_once, drain, echo, endless, hosted, task_of, text, to, within};

fn named(id: &str, send: Send) -> Send {
    Send { on_unknown: OnUnknown::Create, ..to(&TaskId::parse(id).unwrap(), send) }
}

#[tokio::test]
async fn a_caller_names_its_task_and_goes_on_with_it() {
    let desk = Desk::with(asking()).await;
    let task = desk.task(named("mine", text("ask Which?"))).await;
    assert_eq!((task.id.as_str(), task.status.state), ("mine", State::InputRequired));
    let task = desk.task(named("mine", text("that one"))).await;
    assert_eq!((task.id.as_str(), task.status.state, task.history.len()), ("mine", State::Completed, 3));
    let refused = desk.send(named("mine", text("more"))).await;
    assert!(matches!(refused, Err(Error::TaskFinished(id)) if id.as_str() == "mine"));
    let refused = desk.send(to(&TaskId::parse("unknown").unwrap(), text("x"))).await;
    assert!(matches!(refused, Err(Error::TaskNotFound(_))));
}

#[tokio::test]
async fn one_name_sent_many_times_at_once_is_one_task() {
    let agent = echo();
    let seen = agent.seen();
    let desk = Arc::new(Desk::with(agent).await);
    let all: Vec<_> = (0..40)
        .map(|n| {
            let desk = desk.clone();
            tokio::spawn(async move { desk.send(named("mine", text(&n.to_string()))).await.map(task_of) })
        })
        .collect();
    let (mut taken, mut refused) = (0, 0);
    for one in all {
        match one.await.unwrap() {
            Ok(task) => {
                assert_eq!(task.id.as_str(), "mine");
                taken += 1;
            }
            Err(Error::TaskFinished(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    let task = desk.get(&TaskId::parse("mine").unwrap()).await;
    assert_eq!(task.status.state, State::Completed);
    assert_eq!((task.history.len(), seen.lock().unwrap().len()), (taken, taken), "{refused} were refused");
}

#[tokio::test]
async fn two_agents_may_have_a_task_of_the_same_name() {
    let store = Arc::new(MemoryStore::new());
    let builder = Builder::new(store).agent(hosted("a", echo(), Limits::default()));
    let engine = builder.agent(hosted("b", echo(), Limits::default())).start().await.unwrap();
    let caller = Caller::anonymous();
    let at = |agent: &str, words: &str| {
        let send = Send { agent: Some(AgentId::parse(agent).unwrap()), ..named("mine", text(words)) };
        Call::Send(Box::new(send))
    };
    for (agent, words) in [("b", "to b"), ("a", "to a")] {
        let task = task_of(engine.call(&caller, at(agent, words)).await.unwrap());
        assert_eq!((task.agent.as_str(), task.history[0].text().as_str()), (agent, words));
    }
    // At the root the default agent's comes first, and another agent's is known there too.
    let refused = engine.call(&caller, Call::Send(Box::new(named("mine", text("again"))))).await;
    assert!(matches!(refused, Err(Error::TaskFinished(_))));
    let get = Get { agent: None, task: TaskId::parse("mine").unwrap(), history: None, earlier: Wanted::No };
    assert_eq!(task_of(engine.call(&caller, Call::Get(get)).await.unwrap()).agent.as_str(), "a");
    let only_b = Send { agent: Some(AgentId::parse("b").unwrap()), ..named("only b's", text("one")) };
    engine.call(&caller, Call::Send(Box::new(only_b))).await.unwrap();
    let refused = engine.call(&caller, Call::Send(Box::new(named("only b's", text("two"))))).await;
    assert!(matches!(refused, Err(Error::TaskFinished(_))));
    for (agent, words) in [("b", "to b"), ("a", "to a")] {
        let agent = Some(AgentId::parse(agent).unwrap());
        let get = Get { agent, task: TaskId::parse("mine").unwrap(), history: None, earlier: Wanted::No };
        assert_eq!(task_of(engine.call(&caller, Call::Get(get)).await.unwrap()).history[0].text(), words);
    }
}

#[tokio::test]
async fn an_answer_needs_a_question() {
    let desk = Desk::with(asking()).await;
    let answer = |task: &TaskId| Send { addressee: Addressee::Waiting, ..to(task, text("yes")) };
    let waiting = desk.task(text("ask Sure?")).await;
    assert_eq!(desk.task(answer(&waiting.id)).await.status.state, State::Completed);
    assert!(matches!(desk.send(answer(&waiting.id)).await, Err(Error::NotWaiting(_))));

    let desk = Desk::with(endless()).await;
    let working = desk.task(at_once("go")).await;
    assert!(matches!(desk.send(answer(&working.id)).await, Err(Error::NotWaiting(_))));
    desk.cancel(&working.id).await.unwrap();
}

#[tokio::test]
async fn a_task_that_goes_on_from_a_finished_one_says_so() {
    let desk = Desk::with(echo()).await;
    let first = desk.task(text("one")).await;
    let send = Send { on_finished: OnFinished::StartTask, ..to(&first.id, text("two")) };
    let second = desk.task(send).await;
    assert_ne!(second.id, first.id);
    assert_eq!((second.context, &second.history[0].references[..]), (first.context, &[first.id][..]));
}

#[tokio::test]
async fn a_get_may_bring_what_came_before() {
    let desk = Desk::with(echo()).await;
    for words in ["one", "two", "three"] {
        desk.task(within("c", text(words))).await;
    }
    desk.task(within("other", text("elsewhere"))).await;
    let last = desk.task(within("c", text("four"))).await;
    assert_eq!(before(&desk, &last.id).await, ["one", "two", "three"]);
}

/// The texts of the tasks that a get brings with this one.
async fn before(desk: &Desk, task: &TaskId) -> Vec<String> {
    let get = Get { agent: None, task: task.clone(), history: None, earlier: Wanted::Yes };
    let sabir_engine::Answer::Conversation(found, earlier) = desk.call(Call::Get(get)).await.unwrap() else {
        panic!("expected a conversation")
    };
    assert_eq!(found.id, *task);
    earlier.iter().map(|task| task.history[0].text()).collect()
}

#[tokio::test]
async fn what_came_later_did_not_come_before_also_within_one_millisecond() {
    let store = Arc::new(MemoryStore::new());
    let builder = Builder::new(store.clone()).clock(Arc::new(ManualClock::at(1_000)));
    let builder = builder.agent(hosted("demo", echo(), Limits::default()));
    let desk = Desk { engine: builder.start().await.unwrap(), store };
    let first = desk.task(within("c", text("one"))).await;
    let second = desk.task(within("c", text("two"))).await;
    let third = desk.task(within("c", text("three"))).await;
    for (task, expected) in [(first, &[][..]), (second, &["one"]), (third, &["one", "two"])] {
        assert_eq!(before(&desk, &task.id).await, expected);
    }
}

#[tokio::test]
async fn a_finished_task_is_left_alone_unless_it_was_born_elsewhere() {
    let desk = Desk::with(echo()).await;
    let task = desk.task(text("one")).await;
    for (on_finished, expected) in [
        (OnFinishedCancel::Refuse, false),
        (OnFinishedCancel::Leave, true),
        (OnFinishedCancel::LeaveUnlessBorn(Birth(1)), true),
        (OnFinishedCancel::LeaveUnlessBorn(Birth(10)), false),
    ] {
        let cancel = Cancel { agent: None, task: task.id.clone(), metadata: None, on_finished };
        match desk.call(Call::Cancel(cancel)).await {
            Ok(answer) => {
                assert_eq!(task_of(answer), task);
                assert!(expected, "{on_finished:?}");
            }
            Err(Error::NotCancelable(_)) => assert!(!expected, "{on_finished:?}"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn what_the_card_does_not_offer_is_refused() {
    let mut agent: Hosted = hosted("demo", echo(), Limits::default());
    agent.about.streaming = Streaming::Refused;
    let required = |uri: &str, required: bool| Extension { uri: uri.into(), description: None, required, params: None };
    agent.about.extensions = vec![required("urn:free", false), required("urn:needed", true)];
    let store = Arc::new(MemoryStore::new());
    let engine = Builder::new(store.clone()).agent(agent).start().await.unwrap();
    let desk = Desk { engine, store };
    let active = |send: Send| Send { extensions: vec!["urn:needed".into()], ..send };

    let refused = desk.send(text("one")).await;
    assert!(matches!(refused, Err(Error::ExtensionRequired(uri)) if uri == "urn:needed"));
    let task = desk.task(active(text("one"))).await;
    let mut by_message = text("two");
    by_message.message.extensions = vec!["urn:needed".into()];
    desk.task(by_message).await;
    let refused = desk.send(active(Send { delivery: Delivery::Stream, ..text("three") })).await;
    assert!(matches!(refused, Err(Error::Unsupported(_))));
    assert!(matches!(desk.subscribe(&task.id, Some(0)).await, Err(Error::Unsupported(_))));
}

#[tokio::test]
async fn what_a_failure_has_cost_is_told_with_its_reason() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        turn.usage(Usage { input_tokens: 3, output_tokens: 4 }).await;
        Ok(Outcome::Failed(vec![Part::text("boom")]))
    });
    let desk = Desk::with(agent).await;
    let task = desk.task(text("go")).await;
    let reason = task.status.message.unwrap();
    assert_eq!(reason.extensions, [COST]);
    let metadata: serde_json::Value = serde_json::from_str(reason.metadata.as_ref().unwrap().as_str()).unwrap();
    assert_eq!(metadata[COST]["usage"]["total_tokens"], 7);
    assert_eq!(metadata[COST]["success"], false);
}

#[tokio::test]
async fn a_named_stream_begins_with_its_creation() {
    let desk = Desk::with(echo()).await;
    let mut stream = desk.stream(named("mine", text("one"))).await;
    let seen: Vec<String> = drain(&mut stream).await.into_iter().map(|(_, words)| words).collect();
    assert_eq!(seen, ["created", "Working", "Completed one."]);
    assert_eq!(stream.whole().unwrap().status.state, State::Completed);
    assert_eq!(stream.born(), Birth(10));
}
