//! Every task in every dialect and binding: whatever one of them makes, all others can read, watch, continue and cancel,
//! and nothing is lost on the way but what a dialect has no words for.
//!
//! One table has the dialects (`dialect`), one the ways in which tasks end (`ENDS`). What each dialect says is read into
//! one neutral form and compared with what 1.0 says, after `translation_loss` has taken away what the dialect cannot say.

pub mod dialect_client;
mod exact_json;
pub mod json_format;
pub mod neutral_task;
mod translation_loss;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use self::dialect_client::{DIALECTS, DialectClient, EventStream, JSON_DIALECTS, REFERENCE};
use self::json_format::JsonFormat;
use self::neutral_task::{Artifact, Content, Event, Message, Part, Status, Task};
use crate::server_fixture::ServerFixture;

/// How a turn that is started by this text ends.
struct TurnEnd {
    text: &'static str,
    state: &'static str,
    /// The status message.
    words: Option<&'static str>,
    made: ExpectedArtifact,
}

#[derive(Clone, Copy, PartialEq)]
enum ExpectedArtifact {
    Nothing,
    /// `echo: ` and the text, then all parts that are no text.
    Echo,
    /// The same, with what it cost.
    Bill,
    Text(&'static str),
}

#[rustfmt::skip]
const ENDS: [TurnEnd; 8] = [
    TurnEnd { text: "h\u{e9}llo \"you\"\tthere \u{2615}", state: "completed", words: None, made: ExpectedArtifact::Echo },
    TurnEnd { text: "stream 4 1", state: "completed", words: None, made: ExpectedArtifact::Text("chunk 1\nchunk 2\nchunk 3\nchunk 4\n") },
    TurnEnd { text: "tool read_file", state: "completed", words: None, made: ExpectedArtifact::Echo },
    TurnEnd { text: "usage 3 4", state: "completed", words: None, made: ExpectedArtifact::Bill },
    TurnEnd { text: "fail The disk is full", state: "failed", words: Some("The disk is full"), made: ExpectedArtifact::Nothing },
    TurnEnd { text: "reject Not my job", state: "rejected", words: Some("Not my job"), made: ExpectedArtifact::Nothing },
    TurnEnd { text: "ask Which day?", state: "input-required", words: Some("Which day?"), made: ExpectedArtifact::Nothing },
    TurnEnd { text: "auth Log in first", state: "auth-required", words: Some("Log in first"), made: ExpectedArtifact::Nothing },
];

/// JSON that only comes through whole when nobody reads it as numbers and members.
const EXACT: &str = r#"{"n":12345678901234567,"e":1e3,"b":5.0,"a":[{"z":null},0.10],"twice":1,"twice":2}"#;

/// JSON that comes through protobuf as it is.
const PLAIN: &str = r#"{"a":[{"z":null},0.5],"b":5,"n":9007199254740992}"#;

/// A server, the dialects that talk to it, and the JSON that they carry.
struct Matrix {
    fixture: ServerFixture,
    dialects: &'static [DialectClient],
    carried: &'static str,
}

impl Matrix {
    /// All of JSON in those that carry it, and all dialects with what protobuf can hold.
    fn both() -> [Self; 2] {
        let exact = Self { fixture: ServerFixture::new(), dialects: JSON_DIALECTS, carried: EXACT };
        [exact, Self { fixture: ServerFixture::new(), dialects: &DIALECTS, carried: PLAIN }]
    }

    fn streaming_dialects(&self) -> impl Iterator<Item = &'static DialectClient> {
        self.dialects.iter().filter(|dialect| dialect.can_stream())
    }

    /// A message with parts of every kind, each with all that can be said beside it.
    fn message(&self, text: &str) -> Message {
        message(text, self.carried)
    }
}

fn message(text: &str, carried: &str) -> Message {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let binding = |n: u32| Some(format!(r#"{{"exact":{carried},"part":{n}}}"#));
    let part = |n, content, name: Option<&str>, media_type: &str| Part {
        content,
        name: name.map(str::to_owned),
        media_type: Some(media_type.to_owned()),
        metadata: binding(n),
    };
    let parts = vec![
        part(0, Content::Text(text.to_owned()), Some("note.md"), "text/markdown"),
        part(1, Content::Data(carried.to_owned()), None, "application/json"),
        part(2, Content::Bytes("SGVsbG8gZmlsZQ==".to_owned()), Some("h\u{e9}llo \"file\".txt"), "text/plain"),
        part(3, Content::Data(format!("[7,{carried}]")), None, "application/json"),
        part(4, Content::Url("https://example.com/a.pdf?x=1&y=2".to_owned()), Some("a.pdf"), "application/pdf"),
        Part::of(Content::Bytes("AA==".to_owned())),
        Part::of(Content::Data("1000".to_owned())),
    ];
    Message {
        id: Some(format!("message {}", COUNT.fetch_add(1, Ordering::Relaxed))),
        references: vec!["another task".to_owned()],
        extensions: vec!["https://example.com/ext/v1".to_owned()],
        metadata: Some(carried.to_owned()),
        ..Message::new("user", parts)
    }
}

/// What a task of these turns is, but for what the server makes: ids and times.
fn expected(turns: &[(&DialectClient, &Message, &TurnEnd)], carried: &str) -> Task {
    let (creator, ..) = turns[0];
    let (_, _, end) = turns[turns.len() - 1];
    let words = |end: &TurnEnd| end.words.map(|words| Message::new("agent", vec![Part::text(words)]));
    let mut history = Vec::new();
    for (place, (sender, message, _)) in turns.iter().enumerate() {
        // A question moves into the history with its answer.
        history.extend(place.checked_sub(1).and_then(|before| words(turns[before].2)));
        history.push(sender.format.reduce_message(message));
    }
    let said = history.last().expect("there is a turn");
    let text = match end.made {
        ExpectedArtifact::Nothing => None,
        ExpectedArtifact::Echo | ExpectedArtifact::Bill => Some(format!("echo: {}", said.text())),
        ExpectedArtifact::Text(text) => Some(text.to_owned()),
    };
    let mut parts: Vec<Part> = text.map(Part::text).into_iter().collect();
    if matches!(end.made, ExpectedArtifact::Echo | ExpectedArtifact::Bill) {
        parts.extend(said.parts.iter().filter(|part| part.as_text().is_none()).cloned());
    }
    let artifact = Artifact {
        id: None,
        name: Some("result".to_owned()),
        description: None,
        parts,
        extensions: Vec::new(),
        metadata: None,
    };
    Task {
        id: String::new(),
        context: String::new(),
        status: Status { state: end.state.to_owned(), message: words(end), time: None },
        artifacts: if end.made == ExpectedArtifact::Nothing { Vec::new() } else { vec![artifact] },
        history,
        // The gateway has text only.
        metadata: (creator.format != JsonFormat::Gateway).then(|| carried.to_owned()),
    }
}

/// Compares what is with what was sent, but for what the server makes.
fn check(matrix: &Matrix, task: &Task, turns: &[(&DialectClient, &Message, &TurnEnd)]) {
    let expected = expected(turns, matrix.carried);
    let mut bare = task.clone();
    assert!(!bare.id.is_empty() && !bare.context.is_empty() && bare.status.time.is_some(), "{bare:?}");
    (bare.id, bare.context, bare.status.time) = (String::new(), String::new(), None);
    let named = expected.history.iter().map(|message| message.id.is_some()).chain([false]);
    for (message, is_named) in bare.history.iter_mut().chain(&mut bare.status.message).zip(named) {
        assert!(message.id.as_ref().is_some_and(|id| !id.is_empty()), "{message:?}");
        message.id = message.id.take().filter(|_| is_named);
        (message.task, message.context) = (None, None);
    }
    for artifact in &mut bare.artifacts {
        assert!(artifact.id.take().is_some_and(|id| !id.is_empty()), "{artifact:?}");
        if turns[turns.len() - 1].2.made == ExpectedArtifact::Bill {
            assert!(artifact.description.take().is_some());
            assert!(artifact.metadata.take().is_some_and(|bill| bill.contains(r#""input_tokens":3"#)));
            assert_eq!(std::mem::take(&mut artifact.extensions).len(), 1);
        }
    }
    assert_eq!(bare, expected);
}

/// Waits until the task is like this.
fn until(matrix: &Matrix, id: &str, is_so: impl Fn(&Task) -> bool) -> Task {
    let start = Instant::now();
    loop {
        let task = REFERENCE.get(&matrix.fixture, id);
        if is_so(&task) {
            return task;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "waited in vain: {task:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn is_at_rest(task: &Task) -> bool {
    task.status.is_at_rest()
}

/// Everybody reads the same task.
fn check_readers(matrix: &Matrix, task: &Task) {
    for reader in matrix.dialects {
        assert_eq!(reader.get(&matrix.fixture, &task.id), reader.reduce_task(task), "read in {}", reader.name);
    }
}

/// Where a call is answered with the task, it is the one that is read.
fn check_answer(dialect: &DialectClient, answer: Option<Task>, task: &Task) {
    assert_eq!(answer, dialect.can_stream().then(|| dialect.reduce_task(task)), "in {}", dialect.name);
}

/// All events of a task that is at rest, by their numbers from 1 on.
fn events(matrix: &Matrix, task: &Task) -> Vec<Event> {
    replay(REFERENCE, matrix, task, 0)
}

/// The events after this one, up to the task as it stands.
fn replay(reader: &DialectClient, matrix: &Matrix, task: &Task, after: u64) -> Vec<Event> {
    let mut watch = reader.subscribe(&matrix.fixture, &task.id, Some(after));
    let last = reader.reduce_task(task).status;
    let mut events = Vec::new();
    while let Some((number, event)) = watch.next() {
        events.push(event);
        assert_eq!(number, after + events.len() as u64, "numbers have no gaps in {}", reader.name);
        // A stream of a task that waits stays open for what comes.
        if !task.status.is_terminal()
            && matches!(&events[events.len() - 1], Event::Status { status, .. } if *status == last)
        {
            break;
        }
    }
    events
}

/// Everybody can hear again what has happened, from any event on.
fn check_replays(matrix: &Matrix, task: &Task) {
    let events = events(matrix, task);
    assert_eq!(Task::folded(&events, &task.history), *task, "what was streamed is what is read");
    for reader in matrix.streaming_dialects() {
        let expected: Vec<Event> = events.iter().map(|event| reader.reduce_event(event, task)).collect();
        for after in [0, events.len() - 1] {
            let replayed = replay(reader, matrix, task, after as u64);
            assert_eq!(replayed, expected[after..], "after {after} in {}", reader.name);
        }
    }
}

/// One who watches, and what it saw first.
struct Watcher {
    dialect: &'static DialectClient,
    snapshot: (u64, Event),
    watch: EventStream,
}

impl Watcher {
    fn new(dialect: &'static DialectClient, mut watch: EventStream) -> Self {
        Self { dialect, snapshot: watch.next().expect("a snapshot"), watch }
    }
}

/// Everybody watches a task that is not at its end.
fn watch(matrix: &Matrix, id: &str) -> Vec<Watcher> {
    matrix
        .streaming_dialects()
        .map(|dialect| Watcher::new(dialect, dialect.subscribe(&matrix.fixture, id, None)))
        .collect()
}

/// Everybody has seen the task as it was when he came, then the same events under the same numbers, and the end of the
/// turn.
fn check_watchers(matrix: &Matrix, task: &Task, watchers: Vec<Watcher>) {
    let events = events(matrix, task);
    for Watcher { dialect, snapshot: (number, snapshot), mut watch } in watchers {
        let (before, after) = events.split_at(number as usize);
        let then = Event::Task(Task::folded(before, &task.history));
        assert_eq!(snapshot, dialect.reduce_event(&then, task), "{number} in {}", dialect.name);
        let expected = (number + 1..).zip(after.iter().map(|event| dialect.reduce_event(event, task)));
        assert_eq!(watch.rest(), expected.collect::<Vec<_>>(), "after {number} in {}", dialect.name);
    }
}

/// Does this with every dialect as the first, all at once.
fn for_each_creator(check: impl Fn(&Matrix, usize, &'static DialectClient) + Sync) {
    for matrix in &Matrix::both() {
        thread::scope(|scope| {
            for (place, creator) in matrix.dialects.iter().enumerate() {
                let check = &check;
                let run = move || check(matrix, place, creator);
                thread::Builder::new().name(format!("made in {}", creator.name)).spawn_scoped(scope, run).unwrap();
            }
        });
    }
}

#[test]
fn a_task_of_any_dialect_is_read_and_replayed_in_every_other() {
    for_each_creator(|matrix, _, creator| {
        for end in &ENDS {
            let message = matrix.message(end.text);
            let sent = creator.send(&matrix.fixture, &message, None, Some(matrix.carried));
            let task = until(matrix, &sent.id, is_at_rest);
            check(matrix, &task, &[(creator, &message, end)]);
            check_answer(creator, sent.task, &task);
            check_readers(matrix, &task);
            check_replays(matrix, &task);
        }
    });
}

#[test]
fn a_running_task_is_watched_and_canceled_in_every_other_dialect() {
    for_each_creator(|matrix, _, creator| {
        for canceler in matrix.dialects {
            let id = creator.start(&matrix.fixture, &matrix.message("slow 600"));
            let running = until(matrix, &id, |task| task.status.state == "working");
            check_readers(matrix, &running);
            let watchers = watch(matrix, &id);
            let answer =
                canceler.cancel(&matrix.fixture, &id).unwrap_or_else(|code| panic!("{code} in {}", canceler.name));
            let task = until(matrix, &id, is_at_rest);
            assert_eq!(task.status.state, "canceled", "by {}", canceler.name);
            check_answer(canceler, answer, &task);
            check_watchers(matrix, &task, watchers);
            check_readers(matrix, &task);
            check_replays(matrix, &task);
            for late in matrix.dialects {
                assert_eq!(late.cancel(&matrix.fixture, &id), Err(late.not_cancelable), "again in {}", late.name);
            }
            assert_eq!(REFERENCE.get(&matrix.fixture, &id), task, "a refusal changes nothing");
        }
    });
}

#[test]
fn a_late_subscriber_sees_the_whole_artifact_in_every_dialect() {
    for_each_creator(|matrix, _, creator| {
        let id = creator.start(&matrix.fixture, &matrix.message("stream 1000000 2"));
        until(matrix, &id, |task| !task.artifacts.is_empty());
        let watchers: Vec<Watcher> = (0..3).flat_map(|_| watch(matrix, &id)).collect();
        REFERENCE.cancel(&matrix.fixture, &id).unwrap();
        let task = until(matrix, &id, is_at_rest);
        check_watchers(matrix, &task, watchers);
        check_readers(matrix, &task);
        check_replays(matrix, &task);
    });
}

#[test]
fn a_task_that_asks_in_one_dialect_is_answered_in_every_other() {
    let question = TurnEnd {
        text: "ask How far?",
        state: "input-required",
        words: Some("How far?"),
        made: ExpectedArtifact::Nothing,
    };
    for_each_creator(|matrix, place, creator| {
        for (other, answerer) in matrix.dialects.iter().enumerate() {
            let end = &ENDS[(place + other) % ENDS.len()];
            for is_streamed in [false, true] {
                let (first, second) = (matrix.message(question.text), matrix.message(end.text));
                let id = creator.send(&matrix.fixture, &first, None, Some(matrix.carried)).id;
                let waiting = until(matrix, &id, is_at_rest);
                check(matrix, &waiting, &[(creator, &first, &question)]);
                let mut watchers = watch(matrix, &id);
                let mut answer = None;
                if is_streamed && answerer.can_stream() {
                    watchers.push(Watcher::new(answerer, answerer.stream(&matrix.fixture, &second, Some(&id))));
                } else {
                    let sent = answerer.send(&matrix.fixture, &second, Some(&id), None);
                    assert_eq!(sent.id, id, "it is the same task in {}", answerer.name);
                    answer = sent.task;
                }
                let task = until(matrix, &id, |task| is_at_rest(task) && task.status != waiting.status);
                check(matrix, &task, &[(creator, &first, &question), (answerer, &second, end)]);
                if !is_streamed {
                    check_answer(answerer, answer, &task);
                }
                check_watchers(matrix, &task, watchers);
                check_readers(matrix, &task);
                check_replays(matrix, &task);
            }
        }
    });
}

/// A walk over all dialects that goes from each to each once, itself included.
fn walk(matrix: &Matrix) -> Vec<&'static DialectClient> {
    let all: Vec<&'static DialectClient> = matrix.streaming_dialects().collect();
    let mut walk = Vec::new();
    for first in 0..all.len() {
        walk.push(all[first]);
        for second in &all[first + 1..] {
            walk.extend([all[first], *second]);
        }
    }
    walk.push(all[0]);
    walk
}

#[test]
fn a_broken_stream_of_one_dialect_is_resumed_in_every_other() {
    for_each_creator(|matrix, _, creator| {
        let walk = walk(matrix);
        // Two events for each stop: the creation, the start and the end are three of them.
        let chunks = 2 * walk.len() - 3;
        let id = creator.start(&matrix.fixture, &matrix.message(&format!("stream {chunks} 5")));
        let mut received: Vec<(u64, &DialectClient, Event)> = Vec::new();
        for stop in &walk {
            let after = received.last().map_or(0, |(number, ..)| *number);
            let mut watch = stop.subscribe(&matrix.fixture, &id, Some(after));
            // Then it hangs up, in the middle of what is sent.
            received.extend((0..2).map(|_| {
                let (number, event) = watch.next().expect("there is more");
                (number, *stop, event)
            }));
        }
        let task = until(matrix, &id, is_at_rest);
        let events = events(matrix, &task);
        assert_eq!(received.len(), events.len());
        for ((number, stop, event), (place, expected)) in received.iter().zip((1..).zip(&events)) {
            assert_eq!(*number, place, "nothing is lost or repeated in {}", stop.name);
            assert_eq!(*event, stop.reduce_event(expected, &task), "event {number} in {}", stop.name);
        }
    });
}
