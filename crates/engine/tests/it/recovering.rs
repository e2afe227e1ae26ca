//! Recovery: what becomes of tasks when the process dies or the server restarts.

use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{EngineSettings, Limits, Outcome, Recovery, Turn};
use sabir_model::{Command, Part, Required, State};
use sabir_store::{Append, AppendTarget, MemoryStore, Ownership, SideRow, Store};
use sabir_testkit::scripted::ScriptedAgent;
use tokio::time::timeout;

use crate::fixture::{Fixture, asking, at_once, drain, echo, endless, text, to};

/// Simulates a crash: `before` runs in a process that dies with everything in it but the store.
pub fn crash<T: Send + 'static>(
    store: Arc<dyn Store>,
    agent: ScriptedAgent,
    before: impl AsyncFnOnce(Fixture) -> T + Send + 'static,
) -> T {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let limits = Limits::default().concurrent(2);
        let result = runtime
            .block_on(async { before(Fixture::on(store, agent, limits, EngineSettings::default()).await).await });
        runtime.shutdown_background();
        result
    })
    .join()
    .unwrap()
}

#[tokio::test]
async fn everybody_is_settled_by_policy() {
    for (policy, expected) in [(Recovery::Fail, State::Failed), (Recovery::Requeue, State::Completed)] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (running, queued) = crash(store.clone(), endless(), async |fixture: Fixture| {
            let running = fixture.task(at_once("running")).await.id;
            fixture.task(at_once("running too")).await;
            (running, fixture.task(at_once("queued")).await.id)
        });
        let agent = echo();
        let settings = EngineSettings { recovery: policy, ..EngineSettings::default() };
        let fixture = Fixture::on(store, agent, Limits::default(), settings).await;
        for (id, expected) in [(running, expected), (queued, State::Completed)] {
            let mut stream = fixture.subscribe(&id, Some(0)).await.unwrap();
            let frames = drain(&mut stream).await;
            assert_eq!(fixture.get(&id).await.status.state, expected, "{frames:?}");
            let numbers: Vec<u64> = frames.iter().map(|(seq, _)| *seq).collect();
            assert_eq!(numbers, (1..=frames.len() as u64).collect::<Vec<_>>());
        }
    }
}

#[tokio::test]
async fn waiting_tasks_keep_waiting_and_unread_messages_are_read() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let waiting = crash(store.clone(), asking(), async |fixture: Fixture| fixture.task(text("ask which?")).await.id);
    let fixture = Fixture::on(store, asking(), Limits::default(), EngineSettings::default()).await;
    assert_eq!(fixture.get(&waiting).await.status.state, State::InputRequired);
    assert_eq!(fixture.task(to(&waiting, text("friday"))).await.status.state, State::Completed);

    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let busy = crash(store.clone(), endless(), async |fixture: Fixture| {
        let busy = fixture.task(at_once("one")).await.id;
        fixture.task(to(&busy, at_once("two"))).await;
        busy
    });
    let agent = echo();
    let seen = agent.seen();
    let settings = EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() };
    let fixture = Fixture::on(store, agent, Limits::default(), settings).await;
    drain(&mut fixture.subscribe(&busy, Some(0)).await.unwrap()).await;
    assert_eq!(*seen.lock().unwrap(), ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_parked_in_mid_turn_waits_on_if_its_agent_can_resume() {
    let approving = || {
        ScriptedAgent::new(|turn: Turn| async move {
            if turn.message().text() == "go" {
                turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
            }
            Ok(Outcome::Completed(vec![Part::text(turn.message().text())]))
        })
    };
    for (resumes, expected) in [(true, State::InputRequired), (false, State::Failed)] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let parked = crash(store.clone(), approving(), async |fixture: Fixture| fixture.task(text("go")).await.id);
        let agent = if resumes { approving().resuming() } else { approving() };
        let fixture = Fixture::on(store, agent, Limits::default(), EngineSettings::default()).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(fixture.get(&parked).await.status.state, expected);
        if resumes {
            let done = fixture.task(to(&parked, text("yes"))).await;
            assert_eq!(done.status.message.unwrap().text(), "yes");
        }
    }
}

/// Remembers the text of its message and asks; its reply to an answer says whether the run that asked was lost.
fn remembering() -> ScriptedAgent {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let words = turn.message().text();
        if let Some(question) = turn.interrupted_question() {
            return Ok(Outcome::Completed(vec![Part::text(format!("late {words} to {}", question.text()))]));
        }
        turn.remember(Some(words)).await;
        let answer = turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
        Ok(Outcome::Completed(vec![Part::text(format!("in time {}", answer.text()))]))
    });
    agent.resuming_if(|memory, question| memory == Some("resumable") && question.text() == "may I?")
}

#[tokio::test(start_paused = true)]
async fn whether_a_parked_run_can_resume_is_asked_for_each_context() {
    for is_killed in [true, false] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let leave_behind = async move |fixture: Fixture| {
            let mut left = Vec::new();
            for words in ["resumable", "gone"] {
                left.push(fixture.task(text(words)).await.id);
            }
            if !is_killed {
                fixture.engine.stop(Duration::from_secs(1)).await;
            }
            left
        };
        let left = crash(store.clone(), remembering(), leave_behind);
        let fixture = Fixture::on(store, remembering(), Limits::default(), EngineSettings::default()).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut states = Vec::new();
        for task in &left {
            states.push(fixture.get(task).await.status.state);
        }
        assert_eq!(states, [State::InputRequired, State::Failed], "killed: {is_killed}");
        let done = fixture.task(to(&left[0], text("yes"))).await;
        assert_eq!(done.status.message.unwrap().text(), "late yes to may I?", "killed: {is_killed}");
        let parked = fixture.task(text("new")).await;
        let done = fixture.task(to(&parked.id, text("yes"))).await;
        assert_eq!(done.status.message.unwrap().text(), "in time yes", "killed: {is_killed}");
    }
}

/// After a crash, the inbox may hold a message from before the question, the answer, and an answer to another question.
#[tokio::test]
async fn after_a_crash_only_the_answer_to_the_open_question_answers() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let parked = ScriptedAgent::new(|turn: Turn| async move {
        turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
        Ok(Outcome::Completed(Vec::new()))
    });
    let task = crash(store.clone(), parked.resuming(), async |fixture: Fixture| fixture.task(text("go")).await);
    let open = task.open_question().unwrap().event;
    let row = store.find(&task.owner, None, &task.id).await.unwrap().unwrap();
    let unread = |words: &str, answers: Option<u64>| {
        let message = sabir_model::Message { answers, ..text(words).message };
        SideRow::InboxAdd(Arc::new(message.or_with_id(|| unreachable!("the message has an id"))))
    };
    let side_rows = [unread("earlier", None), unread("no", Some(open - 1)), unread("yes", Some(open))];
    // The answered run waited for its folder, and its status said so.
    let mut noted = sabir_model::Message::clone(task.status.message.as_ref().unwrap());
    noted.parts.insert(0, Part::text("waiting for another task"));
    let queue = Command::Queue { note: Arc::new(noted) };
    let events = sabir_model::decide(&task.standing(), queue, task.status.time);
    let events: Vec<&sabir_model::Event> = events.iter().collect();
    let append = Append {
        target: AppendTarget::Known(row.no),
        events: &events,
        after: task.seq,
        snapshot: None,
        side_rows: &side_rows,
        ownership: Ownership::default(),
    };
    store.append(append).await.unwrap();
    let agent = echo().resuming();
    let seen = agent.seen();
    let fixture = Fixture::on(store, agent, Limits::default(), EngineSettings::default()).await;
    drain(&mut fixture.subscribe(&task.id, Some(0)).await.unwrap()).await;
    assert_eq!(*seen.lock().unwrap(), ["yes", "earlier"]);
    let said: Vec<String> = fixture.get(&task.id).await.history.iter().map(|message| message.text()).collect();
    assert_eq!(said, ["go", "may I?", "no", "yes", "earlier"]);
}

#[tokio::test]
async fn an_interrupted_turn_begins_again_and_not_with_an_answer() {
    for agent in [echo(), echo().resuming()] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let approving = ScriptedAgent::new(|turn: Turn| async move {
            turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
            turn.cancelled().await;
            Ok(Outcome::Canceled(Vec::new()))
        });
        let answered = crash(store.clone(), approving, async |fixture: Fixture| {
            let parked = fixture.task(text("go")).await.id;
            fixture.task(to(&parked, at_once("yes"))).await;
            parked
        });
        let seen = agent.seen();
        let settings = EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() };
        let fixture = Fixture::on(store, agent, Limits::default(), settings).await;
        drain(&mut fixture.subscribe(&answered, Some(0)).await.unwrap()).await;
        assert_eq!(*seen.lock().unwrap(), ["go"]);
        assert_eq!(fixture.get(&answered).await.status.state, State::Completed);
    }
}

/// A message from before the question does not answer it, and waits until the question is answered.
#[tokio::test]
async fn after_a_crash_an_earlier_message_leaves_the_question_open() {
    let asking = || {
        ScriptedAgent::new(|turn: Turn| async move {
            match (turn.message().text().as_str(), turn.interrupted_question()) {
                ("go", _) => {
                    turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
                }
                (words, lost) => turn.progress(format!("{words}, lost: {}", lost.is_some())).await,
            }
            Ok(Outcome::Completed(Vec::new()))
        })
        .resuming()
    };
    for (ends, state, expected) in [
        (Some("yes"), State::Completed, &["go", "may I?", "yes", "earlier"][..]),
        (None, State::Canceled, &["go", "may I?", "earlier"]),
    ] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let task = crash(store.clone(), asking(), async |fixture: Fixture| fixture.task(text("go")).await);
        let row = store.find(&task.owner, None, &task.id).await.unwrap().unwrap();
        let earlier = text("earlier").message.or_with_id(|| unreachable!("the message has an id"));
        let side_rows = [SideRow::InboxAdd(Arc::new(earlier))];
        let append = Append {
            target: AppendTarget::Known(row.no),
            events: &[],
            after: task.seq,
            snapshot: None,
            side_rows: &side_rows,
            ownership: Ownership::default(),
        };
        store.append(append).await.unwrap();
        let agent = asking();
        let seen = agent.seen();
        let fixture = Fixture::on(store.clone(), agent, Limits::default(), EngineSettings::default()).await;
        let left = fixture.get(&task.id).await;
        assert_eq!((left.status.state, left.open_question()), (State::InputRequired, task.open_question()));
        match ends {
            Some(answer) => {
                fixture.task(to(&task.id, at_once(answer))).await;
                drain(&mut fixture.subscribe(&task.id, Some(0)).await.unwrap()).await;
                assert_eq!(*seen.lock().unwrap(), ["yes", "earlier"]);
            }
            None => {
                fixture.cancel(&task.id).await.unwrap();
            }
        }
        let over = fixture.get(&task.id).await;
        let said: Vec<String> = over.history.iter().map(|message| message.text()).collect();
        assert_eq!(
            (over.status.state, &said[..]),
            (state, &expected.iter().map(|said| (*said).to_owned()).collect::<Vec<_>>()[..])
        );
        assert!(store.inbox(row.no).await.unwrap().is_empty());
    }
}

/// The answer to a question whose run was lost begins a run, but not a turn.
#[tokio::test]
async fn a_turn_that_was_resumed_with_an_answer_begins_again_without_it() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let asking = ScriptedAgent::new(|turn: Turn| async move {
        turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
        Ok(Outcome::Completed(Vec::new()))
    });
    let task = crash(store.clone(), asking.resuming(), async |fixture: Fixture| fixture.task(text("go")).await.id);
    let (answered, resumed) = (task.clone(), endless().resuming());
    crash(store.clone(), resumed, async move |fixture: Fixture| {
        fixture.task(to(&answered, at_once("yes"))).await;
        while fixture.get(&answered).await.status.state != State::Working {
            tokio::task::yield_now().await;
        }
    });
    let agent = echo().resuming();
    let seen = agent.seen();
    let settings = EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() };
    let fixture = Fixture::on(store, agent, Limits::default(), settings).await;
    drain(&mut fixture.subscribe(&task, Some(0)).await.unwrap()).await;
    assert_eq!(*seen.lock().unwrap(), ["go"]);
}

#[tokio::test]
async fn all_are_taken_up_by_a_queue_that_is_shorter_now() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let tasks = crash(store.clone(), endless(), async |fixture: Fixture| {
        let mut tasks = Vec::new();
        for i in 0..6 {
            tasks.push(fixture.task(at_once(&format!("{i}"))).await.id);
        }
        fixture.task(to(&tasks[5], at_once("acknowledged"))).await;
        tasks
    });
    let agent = echo();
    let seen = agent.seen();
    let limits = Limits::default().concurrent(1).queue(2);
    let settings = EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() };
    let fixture = Fixture::on(store, agent, limits, settings).await;
    for task in &tasks {
        drain(&mut fixture.subscribe(task, Some(0)).await.unwrap()).await;
        assert_eq!(fixture.get(task).await.status.state, State::Completed);
    }
    assert_eq!(*seen.lock().unwrap(), ["0", "1", "2", "3", "4", "5", "acknowledged"]);
}

#[tokio::test]
async fn a_task_that_waits_again_for_its_slot_can_be_canceled() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let tasks = crash(store.clone(), endless(), async |fixture: Fixture| {
        [fixture.task(at_once("a")).await.id, fixture.task(at_once("b")).await.id]
    });
    let agent = endless();
    let seen = agent.seen();
    let settings = EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() };
    let fixture = Fixture::on(store, agent, Limits::default().concurrent(1), settings).await;
    for task in tasks.iter().rev() {
        let canceled = timeout(Duration::from_secs(4), fixture.cancel(task)).await.expect("it is canceled at once");
        assert_eq!(canceled.unwrap().status.state, State::Canceled);
    }
    assert!(!seen.lock().unwrap().contains(&"b".into()), "it never had its place");
}

#[tokio::test]
async fn a_damaged_task_fails_and_keeps_nobody_else_from_a_start() {
    for recovery in [Recovery::Fail, Recovery::Requeue] {
        let store = Arc::new(MemoryStore::new());
        let tasks = crash(store.clone(), endless(), async |fixture: Fixture| {
            [fixture.task(at_once("damaged")).await.id, fixture.task(at_once("whole")).await.id]
        });
        let damaged =
            store.unfinished().await.unwrap().into_iter().find(|pending| pending.row.task == tasks[0]).unwrap();
        store.corrupt_event(damaged.row.no, 1);
        let settings = EngineSettings { recovery, ..EngineSettings::default() };
        let fixture = Fixture::on(store.clone(), echo(), Limits::default(), settings).await;
        let expected = if recovery == Recovery::Fail { State::Failed } else { State::Completed };
        drain(&mut fixture.subscribe(&tasks[1], Some(2)).await.unwrap()).await;
        assert_eq!(fixture.get(&tasks[1]).await.status.state, expected);
        timeout(Duration::from_secs(10), async {
            while !store.unfinished().await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await
        .expect("the damaged one is settled too");
        assert_eq!(fixture.get(&tasks[0]).await.status.state, State::Failed);
    }
}

#[tokio::test]
async fn a_task_whose_cancel_was_stored_is_canceled_and_not_run_again() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let stubborn = ScriptedAgent::new(|_: Turn| async { std::future::pending().await });
    let canceled = crash(store.clone(), stubborn, async |fixture: Fixture| {
        let task = fixture.task(at_once("go")).await.id;
        tokio::time::sleep(Duration::from_millis(10)).await;
        // The server dies before the agent has stopped.
        assert!(timeout(Duration::from_millis(50), fixture.cancel(&task)).await.is_err());
        task
    });
    let agent = echo();
    let seen = agent.seen();
    let settings = EngineSettings { recovery: Recovery::Requeue, ..EngineSettings::default() };
    let fixture = Fixture::on(store, agent, Limits::default(), settings).await;
    drain(&mut fixture.subscribe(&canceled, Some(0)).await.unwrap()).await;
    assert_eq!(fixture.get(&canceled).await.status.state, State::Canceled);
    assert!(seen.lock().unwrap().is_empty());
}
