//! Lists of tasks: the order of pages, and that owners and agents are kept apart.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{Answer, Builder, Limits};
use sabir_model::{AgentId, Call, Caller, ContextId, Get, List, Page, QuestionForm, Send, State, Wanted};
use sabir_store::MemoryStore;
use sabir_testkit::clock::ManualClock;

use crate::fixture::{Fixture, asking, echo, hosted, text, within};

fn list() -> List {
    List {
        agent: None,
        context: None,
        state: None,
        since: None,
        page_size: 50,
        from: None,
        history: None,
        artifacts: Wanted::No,
    }
}

async fn page(fixture: &Fixture, list: List) -> Page {
    match fixture.call(Call::List(list)).await.unwrap() {
        Answer::Page(page) => *page,
        _ => panic!("expected a page"),
    }
}

#[tokio::test]
async fn a_listed_task_names_no_other_question_than_the_task() {
    let fixture = Fixture::with(asking().asking_in(QuestionForm::WordsOnly)).await;
    let asked = fixture.task(text("ask which?")).await;
    let question = fixture.get(&asked.id).await.open_question();
    assert!(question.is_some());
    for (artifacts, expected) in [(Wanted::Yes, question), (Wanted::No, None)] {
        let listed = page(&fixture, List { artifacts, ..list() }).await.tasks.remove(0);
        assert_eq!((listed.status.state, listed.open_question()), (State::InputRequired, expected), "{artifacts:?}");
    }
}

#[tokio::test]
async fn pages_are_newest_first_and_hold_every_task_once() {
    let clock = Arc::new(ManualClock::at(1_000));
    let store = Arc::new(MemoryStore::new());
    let builder = Builder::new(store.clone()).clock(clock.clone()).agent(hosted("demo", asking(), Limits::default()));
    let fixture = Fixture { engine: builder.start().await.unwrap(), store };
    let mut made = Vec::new();
    for i in 0..7 {
        let words = if i % 3 == 0 { format!("ask {i}") } else { format!("{i}") };
        made.push(fixture.task(within(if i < 4 { "c1" } else { "c2" }, text(&words))).await.id);
        clock.advance(Duration::from_millis(i % 2));
    }
    let mut listed = Vec::new();
    let mut from = None;
    loop {
        let page = page(&fixture, List { page_size: 2, from, ..list() }).await;
        assert_eq!(page.total, 7);
        listed.extend(page.tasks.iter().map(|task| (std::cmp::Reverse(task.status.time), task.id.clone())));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert!(listed.windows(2).all(|pair| pair[0].0 <= pair[1].0), "newest first");
    let mut ids: Vec<_> = listed.into_iter().map(|(_, id)| id).collect();
    ids.sort();
    made.sort();
    assert_eq!(ids, made);

    let context = Some(ContextId::parse("c1").unwrap());
    assert_eq!(page(&fixture, List { context: context.clone(), ..list() }).await.total, 4);
    assert_eq!(page(&fixture, List { state: Some(State::InputRequired), ..list() }).await.total, 3);
    assert_eq!(page(&fixture, List { context, state: Some(State::Completed), ..list() }).await.total, 2);
}

#[tokio::test]
async fn owners_and_agents_are_kept_apart() {
    let store = Arc::new(MemoryStore::new());
    let builder = Builder::new(store.clone()).agent(hosted("a", echo(), Limits::default())).agent(hosted(
        "b",
        echo(),
        Limits::default(),
    ));
    let engine = builder.start().await.unwrap();
    let (alice, bob) = (Caller::new("org", "alice"), Caller::new("org", "bob"));
    let at = |agent: &str| Some(AgentId::parse(agent).unwrap());
    let send = Send { agent: at("b"), ..text("secret") };
    let Answer::Task(task) = engine.call(&alice, Call::Send(Box::new(send))).await.unwrap() else { panic!() };
    let get =
        |agent: Option<AgentId>| Call::Get(Get { agent, task: task.id.clone(), history: None, earlier: Wanted::No });
    for (caller, agent, expected) in [
        (&alice, None, true),
        (&alice, at("b"), true),
        (&alice, at("a"), false),
        (&bob, None, false),
        (&bob, at("b"), false),
        (&Caller::anonymous(), None, false),
    ] {
        let found = engine.call(caller, get(agent.clone())).await;
        assert_eq!(found.is_ok(), expected, "{} at {agent:?}", caller.owner);
        let Ok(Answer::Page(page)) = engine.call(caller, Call::List(List { agent, ..list() })).await else { panic!() };
        assert_eq!(page.total, u64::from(expected));
    }
}
