//! Working folders: runs in the same folder run one after the other, across all agents.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_engine::{AgentError, Builder, EngineSettings, Limits, Outcome, Recovery, Turn};
use sabir_model::{AgentId, Part, Required, Send, State, Task};
use sabir_store::MemoryStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::time::sleep;

use crate::fixture::{Fixture, at_once, hosted, text, to};

#[derive(Clone, Default)]
struct Folders(Arc<Mutex<HashMap<PathBuf, usize>>>);

impl Folders {
    fn enter(&self, folder: &str) {
        let mut folders = self.0.lock().unwrap();
        let inside = folders.entry(folder.into()).or_default();
        *inside += 1;
        assert_eq!(*inside, 1, "somebody else works in {folder}");
    }

    fn leave(&self, folder: &str) {
        *self.0.lock().unwrap().get_mut(&PathBuf::from(folder)).unwrap() -= 1;
    }
}

/// The first word of a message is the folder; `ask` asks during the work.
fn working(folders: &Folders) -> ScriptedAgent {
    let folders = folders.clone();
    let agent = ScriptedAgent::new(move |turn: Turn| {
        let folders = folders.clone();
        async move {
            let words = turn.message().text();
            let folder = words.split(' ').next().unwrap_or_default();
            folders.enter(folder);
            sleep(Duration::from_secs(1)).await;
            if words.contains("ask") {
                folders.leave(folder);
                turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
                folders.enter(folder);
                sleep(Duration::from_secs(1)).await;
            }
            folders.leave(folder);
            Ok::<_, AgentError>(Outcome::Completed(vec![Part::text("done")]))
        }
    });
    agent.working_in(|turn| turn.message().text().split(' ').next().map(PathBuf::from))
}

async fn fixture(folders: &Folders, limits: Limits) -> Fixture {
    desk_on(Arc::new(MemoryStore::new()), folders, limits, EngineSettings::default()).await
}

async fn desk_on(store: Arc<MemoryStore>, folders: &Folders, limits: Limits, settings: EngineSettings) -> Fixture {
    let mut builder = Builder::new(store.clone()).settings(settings);
    for id in ["one", "two"] {
        builder = builder.agent(hosted(id, working(folders), limits));
    }
    Fixture { engine: builder.start().await.unwrap(), store }
}

fn of(agent: &str, send: Send) -> Send {
    Send { agent: Some(AgentId::parse(agent).unwrap()), ..send }
}

fn note(task: &Task) -> String {
    task.status.message.as_ref().map(|message| message.text()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn runs_in_one_folder_take_turns_and_say_so() {
    let folders = Folders::default();
    let fixture = fixture(&folders, Limits::default()).await;
    let first = fixture.task(of("one", at_once("/a 1"))).await;
    sleep(Duration::from_millis(10)).await;
    let second = fixture.task(of("two", at_once("/a 2"))).await;
    let elsewhere = fixture.task(of("two", at_once("/b 3"))).await;
    sleep(Duration::from_millis(500)).await;
    let second = fixture.get(&second.id).await;
    let words = format!("waiting for task {}, which works in the same folder", first.id);
    assert_eq!((second.status.state, note(&second)), (State::Submitted, words));
    assert_eq!(fixture.get(&elsewhere.id).await.status.state, State::Working);
    sleep(Duration::from_secs(3)).await;
    for task in [&first, &second, &elsewhere] {
        assert_eq!(fixture.get(&task.id).await.status.state, State::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_folder_holds_no_slot() {
    let folders = Folders::default();
    let fixture = fixture(&folders, Limits::default().concurrent(2)).await;
    for i in 0..5 {
        fixture.task(of("one", at_once(&format!("/a {i}")))).await;
    }
    let done = tokio::time::timeout(Duration::from_millis(1500), fixture.task(of("one", text("/b 1")))).await;
    assert_eq!(done.expect("the places are free").status.state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_gives_its_folder_back_and_takes_it_again() {
    let folders = Folders::default();
    let fixture = fixture(&folders, Limits::default().concurrent(1)).await;
    let parked = fixture.task(of("one", text("/a ask"))).await;
    assert_eq!(parked.status.state, State::InputRequired);
    assert_eq!(fixture.task(of("two", text("/a 2"))).await.status.state, State::Completed);
    // The folder is in use when the answer comes, and the other agent's run finishes first.
    let other = fixture.task(of("two", at_once("/a 3"))).await;
    let answered = fixture.task(to(&parked.id, text("yes"))).await;
    assert_eq!(answered.status.state, State::Completed);
    assert_eq!(fixture.get(&other.id).await.status.state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn contexts_slots_folders_and_questions_never_deadlock() {
    let folders = Folders::default();
    let fixture = fixture(&folders, Limits::default().concurrent(2).max_parked(3)).await;
    let mut tasks = Vec::new();
    for i in 0..60 {
        let (agent, folder) = (["one", "two"][i % 2], ["/a", "/b", "/a/c"][i % 3]);
        let words = format!("{folder} {i}{}", if i % 4 == 0 { " ask" } else { "" });
        let send = crate::fixture::within(&format!("c{}", i % 7), at_once(&words));
        tasks.push(fixture.task(of(agent, send)).await.id);
    }
    let all = async {
        loop {
            let mut left = 0;
            for task in &tasks {
                let found = fixture.get(task).await;
                if found.status.state == State::InputRequired {
                    // It may be answered already, and wait for its folder.
                    let _ = fixture.send(to(task, at_once("yes"))).await;
                }
                left += usize::from(!found.status.state.is_terminal());
            }
            if left == 0 {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(600), all).await.expect("everybody gets through");
    for task in &tasks {
        assert_eq!(fixture.get(task).await.status.state, State::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_folder_is_queued_after_a_restart_too() {
    let folders = Folders::default();
    let store = Arc::new(MemoryStore::new());
    let settings = || EngineSettings { recovery: Recovery::Fail, ..EngineSettings::default() };
    let first_desk = desk_on(store.clone(), &folders, Limits::default(), settings()).await;
    let running = first_desk.task(of("one", at_once("/a 1"))).await;
    sleep(Duration::from_millis(10)).await;
    let queued = first_desk.task(of("one", at_once("/a 2"))).await;
    // A turn whose folder is in use is stored, even if its message had got a slot.
    let asking = first_desk.task(of("one", at_once("/b x"))).await;
    first_desk.engine.stop_now().await;
    let fixture = desk_on(store, &Folders::default(), Limits::default(), settings()).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(fixture.get(&running.id).await.status.state, State::Failed);
    assert_eq!(fixture.get(&queued.id).await.status.state, State::Completed);
    assert_eq!(fixture.get(&asking.id).await.status.state, State::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_leaves_the_queue_of_its_folder_when_it_is_cancelled() {
    let folders = Folders::default();
    let fixture = fixture(&folders, Limits::default()).await;
    let first = fixture.task(of("one", at_once("/a 1"))).await;
    sleep(Duration::from_millis(10)).await;
    let second = fixture.task(of("two", at_once("/a 2"))).await;
    let third = fixture.task(of("two", at_once("/a 3"))).await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(fixture.cancel(&second.id).await.unwrap().status.state, State::Canceled);
    sleep(Duration::from_secs(5)).await;
    for task in [&first, &third] {
        assert_eq!(fixture.get(&task.id).await.status.state, State::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answered_run_says_that_it_waits_for_its_folder_and_goes_before_those_who_came_after_it() {
    let folders = Folders::default();
    let fixture = fixture(&folders, Limits::default()).await;
    let parked = fixture.task(of("one", text("/a ask"))).await;
    assert_eq!(parked.status.state, State::InputRequired);
    let other = fixture.task(of("two", at_once("/a other"))).await;
    sleep(Duration::from_millis(10)).await;
    let later = fixture.task(of("two", at_once("/a later"))).await;
    fixture.send(to(&parked.id, at_once("yes"))).await.unwrap();
    sleep(Duration::from_millis(10)).await;
    let waiting = fixture.get(&parked.id).await;
    let words: Vec<&str> =
        waiting.status.message.as_ref().unwrap().parts.iter().filter_map(|part| part.as_text()).collect();
    let note = format!("waiting for task {}, which works in the same folder", other.id);
    assert_eq!((waiting.status.state, words), (State::InputRequired, vec![note.as_str(), "may I?"]));
    assert_eq!(waiting.open_question(), parked.open_question());
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(fixture.get(&parked.id).await.status.state, State::Working);
    assert_eq!(fixture.get(&later.id).await.status.state, State::Submitted);
    sleep(Duration::from_secs(5)).await;
    let done = fixture.get(&parked.id).await;
    assert_eq!(done.status.state, State::Completed);
    let history: Vec<String> = done.history.iter().map(|message| message.text()).collect();
    assert_eq!(history, ["/a ask", "may I?", "yes"], "the conversation keeps no note");
    assert_eq!(fixture.get(&later.id).await.status.state, State::Completed);
}

/// Works in the folder that is its first word. `stuck` ignores the order to stop, and leaves a process behind for a
/// minute.
fn leaving_something() -> ScriptedAgent {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        if turn.message().text().ends_with("stuck") {
            let hold = turn.hold();
            tokio::spawn(async move {
                sleep(Duration::from_secs(60)).await;
                drop(hold);
            });
            std::future::pending::<()>().await;
        }
        Ok::<_, AgentError>(Outcome::Completed(vec![Part::text("done")]))
    });
    agent.working_in(|turn| turn.message().text().split(' ').next().map(PathBuf::from))
}

#[tokio::test(start_paused = true)]
async fn folder_and_context_are_taken_until_what_a_dropped_agent_has_started_is_gone() {
    let store = Arc::new(MemoryStore::new());
    let builder = Builder::new(store.clone()).agent(hosted("one", leaving_something(), Limits::default()));
    let fixture = Fixture { engine: builder.start().await.unwrap(), store };
    let stuck = fixture.task(crate::fixture::within("c", at_once("/a stuck"))).await;
    sleep(Duration::from_millis(10)).await;
    assert_eq!(fixture.cancel(&stuck.id).await.unwrap().status.state, State::Canceled);
    let in_folder = fixture.task(at_once("/a next")).await;
    let in_context = fixture.task(crate::fixture::within("c", at_once("/b next"))).await;
    sleep(Duration::from_secs(10)).await;
    let words = format!("waiting for task {}, which works in the same folder", stuck.id);
    let in_folder = fixture.get(&in_folder.id).await;
    assert_eq!((in_folder.status.state, note(&in_folder)), (State::Submitted, words));
    assert_eq!(fixture.get(&in_context.id).await.status.state, State::Submitted);
    assert_eq!(fixture.task(text("/c elsewhere")).await.status.state, State::Completed);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(fixture.get(&in_folder.id).await.status.state, State::Completed);
    assert_eq!(fixture.get(&in_context.id).await.status.state, State::Completed);
}
