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
    })
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_000)
}

/// A task as it stands; `open` names an artifact whose last chunk is still to come.
fn standing(state: State, run: Run, open: Option<&str>) -> Standing {
    let mut standing = Standing { state, run, seq: 7, ..Standing::new(TaskId::parse("t1").unwrap()) };
    if let Some(id) = open {
        standing.know(&ArtifactId::parse(id).unwrap(), false);
    }
    standing
}

fn say(decision: Result<Decision, Error>) -> String {
    let decision = match decision {
        Ok(decision) => decision,
        Err(refusal) => return format!("refused: {refusal}"),
    };
    let events = decision.events.iter().map(|event| match event {
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
    let actions = decision.actions.iter().map(|action| match action {
        Action::StartRun(message) => format!("start run with {}", message.text()),
        Action::Enqueue(message) => format!("enqueue {}", message.text()),
        Action::AnswerRun(message) => format!("answer run with {}", message.text()),
        Action::StopRun => "stop run".to_owned(),
        Action::ForgetRun => "forget run".to_owned(),
    });
    let all: Vec<String> = events.chain(actions).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

/// Every way a task can stand.
fn every_standing() -> Vec<(State, Run)> {
    vec![
        (State::Submitted, Run::Queued),
        (State::Working, Run::Active),
        (State::InputRequired, Run::None),
        (State::InputRequired, Run::Queued),
        (State::InputRequired, Run::Parked),
        (State::AuthRequired, Run::None),
        (State::AuthRequired, Run::Parked),
        (State::Completed, Run::None),
        (State::Failed, Run::None),
        (State::Canceled, Run::None),
        (State::Rejected, Run::None),
    ]
}

fn check(command: impl Fn() -> Command, expected: impl Fn(State, Run) -> &'static str) {
    for (state, run) in every_standing() {
        let decided = say(decide(&standing(state, run, None), command(), now()));
        assert_eq!(decided, expected(state, run), "{state:?} with {run:?}");
    }
}

#[test]
fn a_message_in_every_state() {
    check(
        || Command::Deliver(message("hi")),
        |state, run| match (state.is_terminal(), run) {
            (true, _) => "refused: the task is finished",
            (false, Run::None) => "start run with hi",
            (false, Run::Queued | Run::Active) => "enqueue hi",
            (false, Run::Parked) => "Working <- hi, answer run with hi",
        },
    );
}

#[test]
fn cancel_in_every_state() {
    check(
        || Command::Cancel { unread: vec![message("late")] },
        |state, run| match (state.is_terminal(), run) {
            (true, _) => "refused: task t1 can no longer be canceled",
            (false, Run::None) => "Canceled <- late.",
            (false, Run::Queued) => "Canceled <- late., forget run",
            (false, Run::Active | Run::Parked) => "stop run",
        },
    );
}

#[test]
fn a_run_that_lost_the_race_with_a_cancel_is_not_heard() {
    let words: [fn() -> (Command, &'static str); 7] = [
        || (Command::Begin { input: vec![message("hi")] }, "Working <- hi"),
        || (say_so(Some("so far")), "Working \"so far\""),
        || (say_so(None), "Working"),
        || {
            let artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text("x")]);
            (Command::Make { artifact: artifact.into(), append: true, last: false, metadata: None }, "artifact 0 a")
        },
        || (Command::Ask { state: State::InputRequired, question: message("which?") }, "InputRequired \"which?\""),
        || (Command::AskedAndAnswered { state: State::AuthRequired, question: None }, "AuthRequired"),
        || {
            let outcome = Outcome::Completed(None);
            (Command::Finish { outcome, usage: None, unread: Vec::new() }, "Completed.")
        },
    ];
    for word in words {
        let heard = word().1;
        check(|| word().0, |state, _| if state.is_terminal() { "nothing" } else { heard });
    }
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
        assert_eq!(say(decide(&standing(State::Working, Run::Active, None), command, now())), expected);
    }
}

#[test]
fn an_artifact_that_was_left_open_is_closed_before_the_end() {
    let task = standing(State::Working, Run::Active, Some("a"));
    let command = Command::Finish { outcome: Outcome::Completed(None), usage: None, unread: Vec::new() };
    assert_eq!(say(decide(&task, command, now())), "+artifact 0 a., Completed.");
}

#[test]
fn chunks_know_their_artifact() {
    let task = standing(State::Working, Run::Active, Some("a"));
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
        for event in decide(&standing, command, now()).unwrap().events {
            let stored = serde_json::to_string(&event).unwrap();
            let replayed: Event = serde_json::from_str(&stored).unwrap();
            assert_eq!(replayed, event, "the log gives back what it got");
            apply(&mut task, &replayed);
            standing.follow(&event);
            assert_eq!((standing.state, standing.seq), (task.status.state, task.seq));
            assert_eq!(standing.run, task.standing().run, "{event:?}");
            assert_eq!(standing.artifacts, task.standing().artifacts, "{event:?}");
        }
    }
    task
}

fn chunk(text: &str, append: bool, last: bool) -> Command {
    let artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text(text)]);
    Command::Make { artifact: artifact.into(), append, last, metadata: None }
}

fn say_so(text: Option<&str>) -> Command {
    Command::Say { message: text.map(message), metadata: None }
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
    let at_rest = Standing { run: Run::None, ..stored.standing() };
    let cancel = Command::Cancel { unread: Vec::new() };
    assert_eq!(say(decide(&at_rest, cancel, now())), "+artifact 0 a., Canceled.");
}

#[test]
fn a_question_enters_the_history_with_its_answer_and_progress_does_not() {
    let task = live(vec![
        Command::Begin { input: Vec::new() },
        say_so(Some("progress")),
        Command::Finish { outcome: Outcome::InputRequired(Some(message("which?"))), usage: None, unread: Vec::new() },
        Command::Begin { input: vec![message("friday")] },
        Command::Ask { state: State::InputRequired, question: message("sure?") },
        Command::Deliver(message("yes")),
        Command::Finish { outcome: Outcome::Completed(Some(message("done"))), usage: None, unread: Vec::new() },
    ]);
    let history: Vec<String> = task.history.iter().map(|message| message.text()).collect();
    assert_eq!(history, ["first", "which?", "friday", "sure?", "yes"]);
    assert_eq!(task.status.message.map(|message| message.text()), Some("done".into()));
}
