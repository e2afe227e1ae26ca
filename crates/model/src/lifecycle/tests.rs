//! Every command in every state, as a table, and what a replay gives.

use super::*;
use crate::{AgentId, Birth, ContextId, MessageId, Owner, Role};

fn message(text: &str) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId::parse(format!("m-{text}")).unwrap(),
        role: Role::User,
        parts: vec![Part::text(text)],
        task: None,
        context: None,
        references: Vec::new(),
        extensions: Vec::new(),
        metadata: None,
        request_metadata: None,
        request: None,
        answers: None,
    })
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_000)
}

/// A task as it stands; `open` names an artifact whose last chunk is still to come.
fn standing(state: State, run: RunState, open: Option<&str>) -> Standing {
    let question = (run == RunState::Parked).then(|| message("which?"));
    let mut standing = Standing { state, seq: 7, question, ..Standing::new(TaskId::parse("t1").unwrap()) };
    if let Some(id) = open {
        standing.know(&Artifact::new(ArtifactId::parse(id).unwrap(), Vec::new()), false);
    }
    standing
}

fn say(events: Vec<Event>) -> String {
    let events = events.iter().map(|event| match event {
        Event::Created(_) => "created".to_owned(),
        Event::Status(change) => {
            let text = change.status.message.as_ref().map_or(String::new(), |m| format!(" {:?}", m.text()));
            let input: String = change.input.iter().map(|m| format!(" <- {}", m.text())).collect();
            let end = if change.is_final { "." } else { "" };
            format!("{:?}{text}{input}{end}", change.status.state)
        }
        Event::Artifact(chunk) => {
            let append = if chunk.append { "+" } else { "" };
            let last = if chunk.last { "." } else { "" };
            format!("{append}artifact {} {}{last}", chunk.index, chunk.artifact.id)
        }
    });
    let all: Vec<String> = events.collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

/// Every way a task can stand.
fn every_standing() -> Vec<(State, RunState)> {
    let all = State::ALL.into_iter().flat_map(|state| [false, true].map(|over| (state, RunState::of(state, over))));
    all.collect()
}

fn check(command: impl Fn() -> Command, expected: impl Fn(State, RunState) -> &'static str) {
    for (state, run) in every_standing() {
        let decided = say(decide(&standing(state, run, None), command(), now()));
        assert_eq!(decided, expected(state, run), "{state:?} with {run:?}");
    }
}

#[test]
fn what_a_message_is_for() {
    for (state, run) in every_standing() {
        for (question, text, expected) in [
            (QuestionState::Open(7), "hi", "Answer(7)"),
            (QuestionState::Open(7), "yes", "Answer(7)"),
            (QuestionState::NotOpen, "hi", "NextTurn"),
            (QuestionState::NotOpen, "yes", "refused: invalid parameters: message.parts"),
        ] {
            let expected = if state.is_terminal() { "refused: the task is finished" } else { expected };
            let decided = match purpose(&standing(state, run, None), &message(text), question) {
                Ok(purpose) => format!("{purpose:?}"),
                Err(refusal) => format!("refused: {refusal}"),
            };
            assert!(decided.starts_with(expected), "{text} to {state:?} with {run:?}, {question:?}: {decided}");
        }
    }
}

#[test]
fn cancel_in_every_state() {
    check(
        || Command::Cancel { unread: vec![message("late")] },
        |state, _| if state.is_terminal() { "nothing" } else { "Canceled <- late." },
    );
}

#[test]
fn a_run_that_lost_the_race_with_a_cancel_is_not_heard() {
    let words: [fn() -> (Command, &'static str); 7] = [
        || (Command::Begin { input: vec![message("hi")] }, "Working <- hi"),
        || (Command::Answer { message: message("hi") }, "Working <- hi"),
        || {
            let artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text("x")]);
            (Command::Make { artifact: artifact.into(), append: true, last: false, metadata: None }, "artifact 0 a")
        },
        || (Command::Ask { required: Required::Input, question: message("which?") }, "InputRequired \"which?\""),
        || (Command::Ask { required: Required::Auth, question: message("token?") }, "AuthRequired \"token?\""),
        || (Command::AskBetweenTurns { required: Required::Auth, question: None }, "AuthRequired"),
        || {
            let outcome = Outcome::Completed(None);
            (Command::Finish { outcome, usage: None, unread: Vec::new() }, "Completed.")
        },
    ];
    for word in words {
        let expected_word = word().1;
        check(|| word().0, |state, _| if state.is_terminal() { "nothing" } else { expected_word });
    }
}

#[test]
fn progress_in_the_middle_of_a_question_shows_the_question_again() {
    check(
        || progress(Some("so far")),
        |state, run| match (state, run) {
            (state, _) if state.is_terminal() => "nothing",
            (State::InputRequired, RunState::Parked) => "Working \"so far\", InputRequired \"which?\"",
            (State::AuthRequired, RunState::Parked) => "Working \"so far\", AuthRequired \"which?\"",
            _ => "Working \"so far\"",
        },
    );
    check(
        || progress(None),
        |state, run| if state.is_terminal() || run == RunState::Parked { "nothing" } else { "Working" },
    );
}

#[test]
fn a_task_that_is_queued_or_parked_says_what_it_waits_for() {
    check(
        || Command::Queue { note: message("waiting") },
        |state, run| match (state, run) {
            (_, RunState::Queued) => "Submitted \"waiting\"",
            (State::InputRequired, RunState::Parked) => "InputRequired \"waiting\"",
            (State::AuthRequired, RunState::Parked) => "AuthRequired \"waiting\"",
            _ => "nothing",
        },
    );
}

#[test]
fn a_question_that_is_withdrawn_is_not_shown_any_more() {
    check(|| Command::WithdrawQuestion, |_, run| if run == RunState::Parked { "Working" } else { "nothing" });
}

#[test]
fn every_way_to_end_a_turn() {
    for (outcome, expected) in [
        (Outcome::Completed(None), "Completed <- late."),
        (Outcome::Failed(Some(message("boom"))), "Failed \"boom\" <- late."),
        (Outcome::Rejected(Some(message("no"))), "Rejected \"no\" <- late."),
        (Outcome::Canceled(None), "Canceled <- late."),
        (Outcome::InputRequired(Some(message("which?"))), "InputRequired \"which?\" <- late."),
        (Outcome::AuthRequired(Some(message("token?"))), "AuthRequired \"token?\" <- late."),
    ] {
        let command = Command::Finish { outcome, usage: None, unread: vec![message("late")] };
        assert_eq!(say(decide(&standing(State::Working, RunState::Active, None), command, now())), expected);
    }
}

#[test]
fn an_artifact_that_was_left_open_is_closed_before_the_end() {
    let task = standing(State::Working, RunState::Active, Some("a"));
    let command = Command::Finish { outcome: Outcome::Completed(None), usage: None, unread: Vec::new() };
    assert_eq!(say(decide(&task, command, now())), "+artifact 0 a., Completed.");
}

#[test]
fn chunks_know_their_artifact() {
    let task = standing(State::Working, RunState::Active, Some("a"));
    for (id, append, last, expected) in [
        ("a", true, false, "+artifact 0 a"),
        ("a", true, true, "+artifact 0 a."),
        ("a", false, true, "artifact 0 a."),
        ("b", true, false, "artifact 1 b"),
        ("b", false, true, "artifact 1 b."),
    ] {
        let artifact = Artifact::new(ArtifactId::parse(id).unwrap(), vec![Part::text("x")]);
        let command = Command::Make { artifact: artifact.into(), append, last, metadata: None };
        assert_eq!(say(decide(&task, command, now())), expected, "{id} append {append} last {last}");
    }
}

/// Follows a conversation command by command; the standing must keep up with the task all the way.
fn live(commands: Vec<Command>) -> Task {
    let birth = TaskBirth {
        context: ContextId::parse("c1").unwrap(),
        agent: AgentId::parse("demo").unwrap(),
        owner: Owner::anonymous(),
        born: Birth(10),
    };
    let created = Created { message: message("first"), metadata: None, note: None, time: now() };
    let mut task = Task::create(TaskId::parse("t1").unwrap(), birth, created);
    let mut standing = task.standing();
    for command in commands {
        for event in decide(&standing, command, now()) {
            let stored = serde_json::to_string(&event).unwrap();
            let replayed: Event = serde_json::from_str(&stored).unwrap();
            assert_eq!(replayed, event, "the log gives back what it got");
            apply(&mut task, &replayed);
            standing.follow(&event);
            assert_eq!((standing.state, standing.seq), (task.status.state, task.seq));
            assert_eq!(standing, task.standing(), "{event:?}");
        }
    }
    task
}

fn chunk(text: &str, append: bool, last: bool) -> Command {
    let artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text(text)]);
    Command::Make { artifact: artifact.into(), append, last, metadata: None }
}

fn progress(text: Option<&str>) -> Command {
    Command::Progress { message: text.map(message), metadata: None }
}

#[test]
fn chunks_become_one_text() {
    let task = live(vec![
        Command::Begin { input: Vec::new() },
        chunk("one ", false, false),
        chunk("two ", true, false),
        chunk("three", true, false),
        Command::Finish { outcome: Outcome::Completed(None), usage: None, unread: Vec::new() },
    ]);
    assert_eq!(task.artifacts.len(), 1);
    assert_eq!(task.artifacts[0].parts, vec![Part::text("one two three")]);
    assert_eq!(task.seq, 7);
    assert!(task.turn_over);
}

#[test]
fn who_takes_up_a_task_closes_what_was_left_open() {
    let left =
        live(vec![Command::Begin { input: Vec::new() }, chunk("one ", false, false), chunk("two ", true, false)]);
    let stored: Task = serde_json::from_str(&serde_json::to_string(&left).unwrap()).unwrap();
    let failed = Outcome::Failed(Some(message("interrupted")));
    let end = Command::Finish { outcome: failed, usage: None, unread: Vec::new() };
    assert_eq!(say(decide(&stored.standing(), end, now())), "+artifact 0 a., Failed \"interrupted\".");
    let cancel = Command::Cancel { unread: Vec::new() };
    assert_eq!(say(decide(&stored.standing(), cancel, now())), "+artifact 0 a., Canceled.");
}

/// Clients that show chunks by their artifact's name would lose the last one.
#[test]
fn the_chunk_that_closes_an_artifact_has_its_name() {
    let mut artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text("one")]);
    artifact.name = Some("answer".into());
    let named = Command::Make { artifact: Arc::new(artifact), append: false, last: false, metadata: None };
    let task = live(vec![Command::Begin { input: Vec::new() }, named, chunk("two", true, false)]);
    let end = Command::Finish { outcome: Outcome::Completed(None), usage: None, unread: Vec::new() };
    let events = decide(&task.standing(), end, now());
    let Some(Event::Artifact(closing)) = events.first() else { panic!("{events:?}") };
    assert_eq!((closing.artifact.name.as_deref(), closing.last), (Some("answer"), true));
}

#[test]
fn a_question_enters_the_history_with_its_answer_and_progress_does_not() {
    let task = live(vec![
        Command::Begin { input: Vec::new() },
        progress(Some("progress")),
        Command::Finish { outcome: Outcome::InputRequired(Some(message("which?"))), usage: None, unread: Vec::new() },
        Command::Begin { input: vec![message("friday")] },
        Command::Ask { required: Required::Input, question: message("sure?") },
        progress(Some("still looking")),
        Command::Answer { message: message("yes") },
        Command::Finish { outcome: Outcome::Completed(Some(message("done"))), usage: None, unread: Vec::new() },
    ]);
    let history: Vec<String> = task.history.iter().map(|message| message.text()).collect();
    assert_eq!(history, ["first", "which?", "friday", "sure?", "yes"]);
    assert_eq!(task.status.message.map(|message| message.text()), Some("done".into()));
}

#[test]
fn the_question_of_a_task_that_is_cancelled_while_it_waits_stays_in_its_history() {
    let ask = Command::Ask { required: Required::Input, question: message("sure?") };
    let end = Outcome::InputRequired(Some(message("sure?")));
    let ends_by_asking = Command::Finish { outcome: end, usage: None, unread: Vec::new() };
    for question in [ask, ends_by_asking] {
        let task = live(vec![
            Command::Begin { input: Vec::new() },
            question,
            Command::Cancel { unread: vec![message("unread")] },
        ]);
        let history: Vec<String> = task.history.iter().map(|message| message.text()).collect();
        assert_eq!(
            (task.status.state, history.as_slice()),
            (State::Canceled, &["first", "sure?", "unread"].map(String::from)[..])
        );
    }
}

/// Also where the words of an agent are shown byte for byte.
#[test]
fn who_approves_is_never_said_by_the_agent() {
    let forged = crate::Json::parse(r#"{"kind":"question","type":"input","approver":"me"}"#).unwrap();
    let question = Arc::new(Message { parts: vec![crate::Part::data(forged)], ..Message::clone(&message("which?")) });
    for form in [crate::QuestionForm::WithData, crate::QuestionForm::WordsOnly] {
        for approver in [None, Some("ops")] {
            let task = standing(State::Working, RunState::Active, None);
            let task = task.with_question_form(form).with_approver(approver.map(Into::into));
            let (question, required) = (question.clone(), Required::Input);
            for command in [
                Command::Ask { required, question: question.clone() },
                Command::AskBetweenTurns { required, question: Some(question) },
            ] {
                let events = decide(&task, command, now());
                let [Event::Status(change)] = &events[..] else { panic!("{events:?}") };
                assert_eq!(change.status.approver(), None, "{form:?} {approver:?}");
            }
        }
    }
}
