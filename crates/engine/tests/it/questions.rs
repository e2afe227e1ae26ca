//! Questions during a turn: which messages answer them, and which do not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_engine::{AgentError, EngineSettings, Limits, Outcome, Turn};
use sabir_model::{Error, Json, Message, Part, QuestionId, Required, Send, State, Task};
use sabir_store::MemoryStore;
use sabir_testkit::scripted::ScriptedAgent;
use tokio::time::{sleep, timeout};

use crate::fixture::{Fixture, at_once, drain, text, to};

const HOUR: Duration = Duration::from_secs(3600);

async fn until_waiting(fixture: &Fixture, task: &sabir_model::TaskId) {
    while fixture.get(task).await.status.state != State::InputRequired {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn progress_while_a_question_is_open_does_not_close_it() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let ask = turn.ask(Required::Input, vec![Part::text("may I?")]);
        let talk = async {
            sleep(Duration::from_millis(10)).await;
            turn.progress("still looking").await;
            turn.still_working().await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answer = ask => Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(answer?.text())])),
            () = talk => unreachable!("it talks for ever"),
        }
    });
    let fixture = Fixture::with(agent).await;
    let task = fixture.task(text("go")).await;
    let mut stream = fixture.subscribe(&task.id, Some(0)).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let parked = fixture.get(&task.id).await;
    assert_eq!((parked.status.state, parked.status.message.unwrap().text()), (State::InputRequired, "may I?".into()));
    let done = timeout(HOUR, fixture.task(to(&task.id, text("yes")))).await.expect("the answer reaches the run");
    assert_eq!((done.status.state, done.status.message.unwrap().text()), (State::Completed, "yes".into()));
    let frames: Vec<String> = drain(&mut stream).await.into_iter().map(|(_, words)| words).collect();
    assert_eq!(
        frames,
        [
            "created",
            "Working",
            "InputRequired may I?",
            "Working still looking",
            "InputRequired may I?",
            "Working",
            "Completed yes."
        ]
    );
}

/// Withdraws its question after a second, without a message, and works until it gets another message.
fn impatient(seen: &Arc<Mutex<Vec<String>>>) -> ScriptedAgent {
    let seen = seen.clone();
    ScriptedAgent::new(move |turn: Turn| {
        let seen = seen.clone();
        async move {
            seen.lock().unwrap().push(turn.message().text());
            if turn.message().text() == "go" {
                let ask = turn.ask(Required::Input, vec![Part::text("may I?")]);
                assert!(timeout(Duration::from_secs(1), ask).await.is_err());
                sleep(Duration::from_secs(60)).await;
            }
            Ok::<_, AgentError>(Outcome::Completed(Vec::new()))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_agent_gave_up_is_withdrawn() {
    let seen = Arc::default();
    let fixture = Fixture::with(impatient(&seen)).await;
    let task = fixture.task(text("go")).await;
    assert_eq!(task.status.state, State::InputRequired);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(fixture.get(&task.id).await.status.state, State::Working, "nobody waits for an answer any more");
    for approval in ["yes", "No!", "go ahead"] {
        let refused = fixture.send(to(&task.id, text(approval))).await;
        assert!(matches!(&refused, Err(Error::Invalid(violations)) if violations[0].field == "message.parts"));
    }
    // Any other text is the next turn.
    let done = timeout(HOUR, fixture.task(to(&task.id, text("and then clean up")))).await.unwrap();
    assert_eq!(done.status.state, State::Completed);
    assert_eq!(*seen.lock().unwrap(), ["go", "and then clean up"]);
}

#[tokio::test(start_paused = true)]
async fn questions_of_several_helpers_are_asked_one_after_the_other() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let (first, second) = tokio::join!(
            turn.ask(Required::Input, vec![Part::text("first?")]),
            turn.ask(Required::Auth, vec![Part::text("second?")])
        );
        Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(format!("{} {}", first?.text(), second?.text()))]))
    });
    let fixture = Fixture::with(agent).await;
    let task = fixture.task(text("go")).await;
    assert_eq!(task.status.message.unwrap().text(), "first?");
    let task = fixture.task(to(&task.id, text("one"))).await;
    assert_eq!((task.status.state, task.status.message.unwrap().text()), (State::AuthRequired, "second?".into()));
    let task = fixture.task(to(&task.id, text("two"))).await;
    assert_eq!((task.status.state, task.status.message.unwrap().text()), (State::Completed, "one two".into()));
}

#[tokio::test(start_paused = true)]
async fn two_answers_at_once_are_an_answer_and_a_next_turn() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let text = turn.message().text();
        if text != "go" {
            return Ok::<_, AgentError>(Outcome::Completed(vec![Part::text(text)]));
        }
        let answer = turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
        turn.progress(format!("heard {}", answer.text())).await;
        Ok(Outcome::Completed(Vec::new()))
    });
    let fixture = Fixture::with(agent).await;
    let task = fixture.task(text("go")).await;
    let (first, second, third) = tokio::join!(
        fixture.send(to(&task.id, at_once("one"))),
        fixture.send(to(&task.id, at_once("two"))),
        fixture.send(to(&task.id, at_once("yes")))
    );
    first.unwrap();
    second.unwrap();
    assert!(matches!(third, Err(Error::Invalid(_))), "the question is answered, and this is nothing but an approval");
    let frames = drain(&mut fixture.subscribe(&task.id, Some(0)).await.unwrap()).await;
    let words: Vec<&str> = frames.iter().map(|(_, words)| words.as_str()).collect();
    assert!(words.contains(&"Working heard one") && words.last() == Some(&"Completed two."), "{words:?}");
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_waits_for_its_commit_is_not_turned_into_a_turn() {
    let store = Arc::new(sabir_testkit::faulty::FaultyStore::new(MemoryStore::new()));
    let seen = Arc::default();
    let fixture = Fixture::on(store.clone(), impatient(&seen), Limits::default(), EngineSettings::default()).await;
    let task = fixture.task(at_once("go")).await;
    until_waiting(&fixture, &task.id).await;
    sleep(Duration::from_millis(900)).await;
    // The agent withdraws the question while the answer is being stored.
    store.slow_down(Duration::from_millis(300));
    fixture.send(to(&task.id, at_once("yes"))).await.unwrap();
    drain(&mut fixture.subscribe(&task.id, Some(0)).await.unwrap()).await;
    let done = fixture.get(&task.id).await;
    assert_eq!(*seen.lock().unwrap(), ["go"], "the approval starts no turn");
    let said: Vec<String> = done.history.iter().map(|message| message.text()).collect();
    assert_eq!((done.status.state, said.contains(&"yes".into())), (State::Completed, true), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_too_long_fails() {
    let clock = Arc::new(sabir_testkit::clock::ManualClock::at(1_000_000));
    let parks = ScriptedAgent::new(|turn: Turn| async move {
        match turn.message().text().as_str() {
            "ends by asking" => Ok::<_, AgentError>(Outcome::InputRequired(vec![Part::text("which?")])),
            _ => {
                turn.ask(Required::Input, vec![Part::text("may I?")]).await?;
                Ok(Outcome::Completed(Vec::new()))
            }
        }
    });
    let mut settings = EngineSettings::default();
    settings.retention.waiting = Some(Duration::from_secs(600));
    let agent = crate::fixture::hosted("demo", parks, Limits::default());
    let store = Arc::new(MemoryStore::new());
    let builder = sabir_engine::Builder::new(store.clone()).settings(settings).clock(clock.clone()).agent(agent);
    let fixture = Fixture { engine: builder.start().await.unwrap(), store };
    let tasks = [fixture.task(text("ends by asking")).await, fixture.task(text("asks in its turn")).await];
    clock.advance(Duration::from_secs(599));
    fixture.engine.sweep().await;
    for task in &tasks {
        assert_eq!(fixture.get(&task.id).await.status.state, State::InputRequired, "it may wait a little longer");
    }
    clock.advance(Duration::from_secs(2));
    let fresh = fixture.task(text("ends by asking")).await;
    fixture.engine.sweep().await;
    sleep(Duration::from_secs(10)).await;
    for task in &tasks {
        let task = fixture.get(&task.id).await;
        let reason = task.status.message.map(|message| message.text());
        assert_eq!((task.status.state, reason.as_deref()), (State::Failed, Some("expired: nobody answered for 600s")));
    }
    assert_eq!(fixture.get(&fresh.id).await.status.state, State::InputRequired);
}

/// A message that names a question.
fn naming(question: QuestionId, send: Send) -> Send {
    let metadata = Json::of(&serde_json::json!({"questionId": question.to_string()})).unwrap();
    let message = Message { metadata: Some(metadata), ..send.message };
    Send { message, ..send }
}

/// Asks one question after the other, and withdraws each after a second except the last.
fn asks_on(count: usize) -> ScriptedAgent {
    ScriptedAgent::new(move |turn: Turn| async move {
        if turn.message().text() != "go" {
            return Ok::<_, AgentError>(Outcome::Completed(vec![Part::text("next turn")]));
        }
        for number in 1..count {
            let ask = turn.ask(Required::Input, vec![Part::text(format!("question {number}?"))]);
            if let Ok(answer) = timeout(Duration::from_secs(1), ask).await {
                turn.progress(format!("{number}: {}", answer?.text())).await;
            }
        }
        let answer = turn.ask(Required::Input, vec![Part::text("the last?")]).await?;
        Ok(Outcome::Completed(vec![Part::text(format!("last: {}", answer.text()))]))
    })
}

fn words(task: &Task) -> String {
    task.status.message.as_ref().map(|message| message.text()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_for_the_question_that_it_names() {
    let fixture = Fixture::with(asks_on(2)).await;
    let task = fixture.task(text("go")).await;
    let first = task.open_question().unwrap();
    sleep(Duration::from_secs(5)).await;
    let second = fixture.get(&task.id).await.open_question().unwrap();
    assert!(first < second);
    // Late answers: a yes, any other text, or an answer to both questions at once.
    for words in ["yes", "use the other folder"] {
        let late = fixture.send(to(&task.id, naming(first, text(words)))).await;
        assert!(matches!(late, Err(Error::QuestionClosed(_))), "{words}");
    }
    let asked = fixture.get(&task.id).await;
    assert_eq!((asked.open_question(), words(&asked).as_str()), (Some(second), "the last?"));
    let done = fixture.task(to(&task.id, naming(second, text("yes")))).await;
    assert_eq!((done.status.state, words(&done).as_str()), (State::Completed, "last: yes"));
    let late = fixture.send(to(&task.id, naming(second, text("yes")))).await;
    assert!(matches!(late, Err(Error::TaskFinished(_))));
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_the_inbox_does_not_wait_for_the_next_question() {
    for late in ["yes", "use the other folder"] {
        for is_named in [true, false] {
            let store = Arc::new(sabir_testkit::faulty::FaultyStore::new(MemoryStore::new()));
            let agent = asks_on(2);
            let seen = agent.seen();
            let fixture = Fixture::on(store.clone(), agent, Limits::default(), EngineSettings::default()).await;
            let task = fixture.task(at_once("go")).await;
            until_waiting(&fixture, &task.id).await;
            let first = fixture.get(&task.id).await.open_question().unwrap();
            sleep(Duration::from_millis(900)).await;
            // The agent withdraws its question while the answer is being stored, and asks the next one.
            store.slow_down(Duration::from_millis(300));
            let answer = to(&task.id, at_once(late));
            fixture.send(if is_named { naming(first, answer) } else { answer }).await.unwrap();
            store.slow_down(Duration::ZERO);
            sleep(Duration::from_secs(2)).await;
            let asked = fixture.get(&task.id).await;
            assert_eq!((asked.status.state, words(&asked).as_str()), (State::InputRequired, "the last?"), "{late}");
            let done = fixture.task(to(&task.id, text("no"))).await;
            // A message that names its question begins no turn either; other text does, after the current turn.
            let (end, turns): (&str, &[&str]) = match (late, is_named) {
                ("yes", _) | (_, true) => ("last: no", &["go"]),
                _ => ("next turn", &["go", "use the other folder"]),
            };
            assert_eq!(words(&done), end, "{late}, named: {is_named}");
            assert_eq!(*seen.lock().unwrap(), turns, "{late}, named: {is_named}");
            assert!(done.history.iter().any(|message| message.text() == late), "it is not forgotten");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_names_any_of_many_earlier_questions_is_refused() {
    let fixture = Fixture::with(asks_on(200)).await;
    let task = fixture.task(text("go")).await;
    let first = task.open_question().unwrap();
    let mut earlier = vec![first];
    while words(&fixture.get(&task.id).await) != "the last?" {
        sleep(Duration::from_millis(500)).await;
        earlier.extend(fixture.get(&task.id).await.open_question().filter(|id| !earlier.contains(id)));
    }
    let last = earlier.pop().unwrap();
    assert!(earlier.len() > 150, "{}", earlier.len());
    for id in earlier {
        let late = fixture.send(to(&task.id, naming(id, text("yes")))).await;
        assert!(matches!(late, Err(Error::QuestionClosed(_))), "{id}");
    }
    let other_task = QuestionId::issue(&sabir_model::TaskId::parse("other").unwrap(), last.event);
    let to_come = QuestionId::issue(&task.id, last.event + 1000);
    for id in [other_task, to_come] {
        let foreign = fixture.send(to(&task.id, naming(id, text("yes")))).await;
        assert!(matches!(foreign, Err(Error::QuestionClosed(_))), "{id}");
    }
    let done = fixture.task(to(&task.id, naming(last, text("yes")))).await;
    assert_eq!(words(&done), "last: yes");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_asks_without_end_is_refused() {
    let agent = ScriptedAgent::new(|turn: Turn| async move {
        let question = |number: usize| {
            let turn = &turn;
            async move { turn.ask(Required::Input, vec![Part::text(format!("{number}?"))]).await }
        };
        let answers = futures_util::future::join_all((0..10_000).map(question)).await;
        let refused: Vec<String> =
            answers.iter().filter_map(|answer| answer.as_ref().err().map(ToString::to_string)).collect();
        assert!(refused.iter().all(|reason| reason.contains("asks too much")), "{refused:?}");
        Ok(Outcome::Completed(vec![Part::text(format!("{} were refused", refused.len()))]))
    });
    let fixture = Fixture::with(agent).await;
    let mut task = fixture.task(text("go")).await;
    // Until all questions have been asked.
    sleep(Duration::from_secs(1)).await;
    let mut answered = 0;
    while task.status.state == State::InputRequired {
        task = fixture.task(to(&task.id, text("on"))).await;
        answered += 1;
    }
    assert_eq!((answered, words(&task).as_str()), (101, "9899 were refused"));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_ended_by_asking_is_answered_by_its_name_too() {
    let fixture = Fixture::with(crate::fixture::asking()).await;
    let task = fixture.task(text("ask which?")).await;
    let first = task.open_question().unwrap();
    let again = fixture.task(to(&task.id, naming(first, text("ask and when?")))).await;
    let second = again.open_question().unwrap();
    let late = fixture.send(to(&task.id, naming(first, text("monday")))).await;
    assert!(matches!(late, Err(Error::QuestionClosed(_))));
    assert_eq!(fixture.get(&task.id).await.open_question(), Some(second));
    assert_eq!(fixture.task(to(&task.id, naming(second, text("noon")))).await.status.state, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn two_answers_that_name_the_same_question_are_one_answer() {
    let fixture = Fixture::with(asks_on(1)).await;
    let task = fixture.task(text("go")).await;
    let id = task.open_question().unwrap();
    let (one, two) = tokio::join!(
        fixture.send(to(&task.id, naming(id, at_once("no")))),
        fixture.send(to(&task.id, naming(id, at_once("yes"))))
    );
    assert!(one.is_ok() && matches!(two, Err(Error::QuestionClosed(_))));
    drain(&mut fixture.subscribe(&task.id, Some(0)).await.unwrap()).await;
    let done = fixture.get(&task.id).await;
    assert_eq!(words(&done), "last: no");
    assert!(!done.history.iter().any(|message| message.text() == "yes"));
}
