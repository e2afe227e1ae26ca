//! Task ids that callers choose, and messages that a task accepts only in certain states.

use std::sync::Arc;

use sabir_engine::{Builder, Hosted, Limits, Outcome, Turn};
use sabir_model::{
    Addressee, AgentId, Birth, COST, Call, Caller, Cancel, Delivery, Error, Extension, Get, OnFinished,
    OnFinishedCancel, OnUnknown, Part, Send, State, TaskId, Usage, Wanted,
};
use sabir_store::MemoryStore;
use sabir_testkit::clock::ManualClock;
use sabir_testkit::scripted::ScriptedAgent;

use crate::fixture::{Fixture, asking, at_once, drain, echo, endless, hosted, task_of, text, to, within};

fn named(id: &str, send: Send) -> Send {
    Send { on_unknown: OnUnknown::Create, ..to(&TaskId::parse(id).unwrap(), send) }
}

#[tokio::test]
async fn a_caller_chooses_the_id_of_its_task_and_continues_it() {
    let fixture = Fixture::with(asking()).await;
    let task = fixture.task(named("mine", text("ask Which?"))).await;
    assert_eq!((task.id.as_str(), task.status.state), ("mine", State::InputRequired));
    let task = fixture.task(named("mine", text("that one"))).await;
    assert_eq!((task.id.as_str(), task.status.state, task.history.len()), ("mine", State::Completed, 3));
    let refused = fixture.send(named("mine", text("more"))).await;
    assert!(matches!(refused, Err(Error::TaskFinished(id)) if id.as_str() == "mine"));
    let refused = fixture.send(to(&TaskId::parse("unknown").unwrap(), text("x"))).await;
    assert!(matches!(refused, Err(Error::TaskNotFound(_))));
}

#[tokio::test]
async fn one_name_sent_many_times_at_once_is_one_task() {
    let agent = echo();
    let seen = agent.seen();
    let fixture = Arc::new(Fixture::with(agent).await);
    let all: Vec<_> = (0..40)
        .map(|n| {
            let fixture = fixture.clone();
            tokio::spawn(async move { fixture.send(named("mine", text(&n.to_string()))).await.map(task_of) })
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
    let task = fixture.get(&TaskId::parse("mine").unwrap()).await;
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
    // Without an agent, the default agent's task is preferred, and other agents' tasks are found too.
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
    let fixture = Fixture::with(asking()).await;
    let answer = |task: &TaskId| Send { addressee: Addressee::Waiting, ..to(task, text("yes")) };
    let waiting = fixture.task(text("ask Sure?")).await;
    assert_eq!(fixture.task(answer(&waiting.id)).await.status.state, State::Completed);
    assert!(matches!(fixture.send(answer(&waiting.id)).await, Err(Error::NotWaiting(_))));

    let fixture = Fixture::with(endless()).await;
    let working = fixture.task(at_once("go")).await;
    assert!(matches!(fixture.send(answer(&working.id)).await, Err(Error::NotWaiting(_))));
    fixture.cancel(&working.id).await.unwrap();
}

#[tokio::test]
async fn a_task_that_continues_a_finished_one_refers_to_it() {
    let fixture = Fixture::with(echo()).await;
    let first = fixture.task(text("one")).await;
    let send = Send { on_finished: OnFinished::StartTask, ..to(&first.id, text("two")) };
    let second = fixture.task(send).await;
    assert_ne!(second.id, first.id);
    assert_eq!((second.context, &second.history[0].references[..]), (first.context, &[first.id][..]));
}

#[tokio::test]
async fn a_get_may_bring_what_came_before() {
    let fixture = Fixture::with(echo()).await;
    for words in ["one", "two", "three"] {
        fixture.task(within("c", text(words))).await;
    }
    fixture.task(within("other", text("elsewhere"))).await;
    let last = fixture.task(within("c", text("four"))).await;
    assert_eq!(before(&fixture, &last.id).await, ["one", "two", "three"]);
}

/// The texts of the earlier tasks that a get returns with this one.
async fn before(fixture: &Fixture, task: &TaskId) -> Vec<String> {
    let get = Get { agent: None, task: task.clone(), history: None, earlier: Wanted::Yes };
    let sabir_engine::Answer::Conversation(found, earlier) = fixture.call(Call::Get(get)).await.unwrap() else {
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
    let fixture = Fixture { engine: builder.start().await.unwrap(), store };
    let first = fixture.task(within("c", text("one"))).await;
    let second = fixture.task(within("c", text("two"))).await;
    let third = fixture.task(within("c", text("three"))).await;
    for (task, expected) in [(first, &[][..]), (second, &["one"]), (third, &["one", "two"])] {
        assert_eq!(before(&fixture, &task.id).await, expected);
    }
}

#[tokio::test]
async fn a_finished_task_is_left_alone_unless_it_was_born_elsewhere() {
    let fixture = Fixture::with(echo()).await;
    let task = fixture.task(text("one")).await;
    for (on_finished, expected) in [
        (OnFinishedCancel::Refuse, false),
        (OnFinishedCancel::Leave, true),
        (OnFinishedCancel::LeaveUnlessBorn(Birth(1)), true),
        (OnFinishedCancel::LeaveUnlessBorn(Birth(10)), false),
    ] {
        let cancel = Cancel { agent: None, task: task.id.clone(), metadata: None, on_finished };
        match fixture.call(Call::Cancel(cancel)).await {
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
    let required = |uri: &str, required: bool| Extension { uri: uri.into(), description: None, required, params: None };
    let agent: Hosted = hosted("demo", echo(), Limits::default()).described_by(move |about| {
        about.without_streaming().extension(required("urn:free", false)).extension(required("urn:needed", true))
    });
    let store = Arc::new(MemoryStore::new());
    let engine = Builder::new(store.clone()).agent(agent).start().await.unwrap();
    let fixture = Fixture { engine, store };
    let active = |send: Send| Send { extensions: vec!["urn:needed".into()], ..send };

    let refused = fixture.send(text("one")).await;
    assert!(matches!(refused, Err(Error::ExtensionRequired(uri)) if uri == "urn:needed"));
    let task = fixture.task(active(text("one"))).await;
    let mut by_message = text("two");
    by_message.message.extensions = vec!["urn:needed".into()];
    fixture.task(by_message).await;
    let refused = fixture.send(active(Send { delivery: Delivery::Stream, ..text("three") })).await;
    assert!(matches!(refused, Err(Error::Unsupported(_))));
    assert!(matches!(fixture.subscribe(&task.id, Some(0)).await, Err(Error::Unsupported(_))));
}

#[tokio::test]
async fn the_cost_of_a_failed_turn_is_shown_with_the_reason() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        turn.usage(Usage { input_tokens: 3, output_tokens: 4 }).await;
        Ok(Outcome::Failed(vec![Part::text("boom")]))
    });
    let fixture = Fixture::with(agent).await;
    let task = fixture.task(text("go")).await;
    let reason = task.status.message.unwrap();
    assert_eq!(reason.extensions, [COST]);
    let metadata: serde_json::Value = serde_json::from_str(reason.metadata.as_ref().unwrap().as_str()).unwrap();
    assert_eq!(metadata[COST]["usage"]["total_tokens"], 7);
    assert_eq!(metadata[COST]["success"], false);
}

#[tokio::test]
async fn a_named_stream_begins_with_its_creation() {
    let fixture = Fixture::with(echo()).await;
    let mut stream = fixture.stream(named("mine", text("one"))).await;
    let seen: Vec<String> = drain(&mut stream).await.into_iter().map(|(_, words)| words).collect();
    assert_eq!(seen, ["created", "Working", "Completed one."]);
    assert_eq!(stream.whole().unwrap().status.state, State::Completed);
    assert_eq!(stream.born(), Birth(10));
}
