//! What the remote agent does with a message: a few words that tests drive it with.
//!
//! The first word decides. `hold` and `steps` wait for the test (`RemoteTasks::release`), so that a test need not guess how
//! long something takes.
//!
//! | text | what happens |
//! |---|---|
//! | anything else | artifact `result` with `echo: TEXT` and all parts that are no text, completed |
//! | `stream N [MS] [TEXT]` | N chunks `TEXT i\n` of one artifact, MS milliseconds apart (default 10), completed |
//! | `steps N` | the same, each chunk after one release |
//! | `slow S REST` | S seconds (decimal) of work, then as REST says |
//! | `hold REST` | works until it is released, then as REST says |
//! | `ask TEXT`, `auth TEXT` | input-required, auth-required; the next message continues by this table |
//! | `fail TEXT`, `reject TEXT` | failed, rejected |
//! | `message TEXT` | a direct message, no task |
//! | `file`, `data` | an artifact with a file of bytes, with a JSON object |

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::task::{RemoteArtifact, RemoteMessage, RemotePart, RemoteState};
use super::tasks::{RunId, WeakTasks, new_id};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// A direct message.
    Reply(String),
    Work(Vec<Step>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Pause(Duration),
    /// Until the test releases the task.
    Hold,
    Chunk {
        artifact: RemoteArtifact,
        append: bool,
        last: bool,
    },
    Settle(RemoteState, Option<String>),
}

/// What a message asks for.
pub(super) fn plan(message: &RemoteMessage) -> Plan {
    let text = message.text();
    let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
    match (word, rest) {
        ("message", rest) => Plan::Reply(if rest.is_empty() { "hello" } else { rest }.to_owned()),
        _ => Plan::Work(steps(&text, message)),
    }
}

fn steps(text: &str, message: &RemoteMessage) -> Vec<Step> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let told =
        |state: RemoteState| vec![Step::Settle(state, Some(if rest.is_empty() { word } else { rest }.to_owned()))];
    match word {
        "ask" => told(RemoteState::InputRequired),
        "auth" => told(RemoteState::AuthRequired),
        "fail" => told(RemoteState::Failed),
        "reject" => told(RemoteState::Rejected),
        "hold" => after(Step::Hold, steps_or_echo(rest, text, message)),
        "file" => result(vec![RemotePart::Bytes {
            base64: "SGVsbG8gZmlsZQ==".to_owned(),
            name: Some("output.txt".to_owned()),
            media_type: Some("text/plain".to_owned()),
        }]),
        "data" => result(vec![RemotePart::Data(json!({"key": "value", "count": 42}))]),
        "slow" => {
            let (seconds, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            match seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
                Some(time) => after(Step::Pause(time), steps_or_echo(rest, text, message)),
                None => echo(text, message),
            }
        }
        "stream" => chunks(rest, Step::Pause).unwrap_or_else(|| echo(text, message)),
        "steps" => chunks(rest, |_| Step::Hold).unwrap_or_else(|| echo(text, message)),
        _ => echo(text, message),
    }
}

fn steps_or_echo(rest: &str, text: &str, message: &RemoteMessage) -> Vec<Step> {
    if rest.is_empty() { echo(text, message) } else { steps(rest, message) }
}

fn after(first: Step, then: Vec<Step>) -> Vec<Step> {
    [vec![first], then].concat()
}

fn echo(text: &str, message: &RemoteMessage) -> Vec<Step> {
    let spoken = (!text.is_empty()).then(|| RemotePart::Text(format!("echo: {text}")));
    let others = message.parts.iter().filter(|part| part.text().is_none()).cloned();
    result(spoken.into_iter().chain(others).collect())
}

fn result(parts: Vec<RemotePart>) -> Vec<Step> {
    let done = Step::Settle(RemoteState::Completed, None);
    if parts.is_empty() {
        return vec![done];
    }
    let artifact = RemoteArtifact { id: new_id("artifact"), name: "result".to_owned(), parts };
    vec![Step::Chunk { artifact, append: false, last: true }, done]
}

/// `N [MS] [TEXT]`
fn chunks(rest: &str, between: impl Fn(Duration) -> Step) -> Option<Vec<Step>> {
    let mut words = rest.splitn(3, ' ');
    let count: usize = words.next()?.parse().ok()?;
    let pause = Duration::from_millis(words.next().map_or(Some(10), |pause| pause.parse().ok())?);
    let text = words.next().unwrap_or("chunk");
    let id = new_id("artifact");
    let mut steps = Vec::new();
    for number in 1..=count {
        let parts = vec![RemotePart::Text(format!("{text} {number}\n"))];
        let artifact = RemoteArtifact { id: id.clone(), name: "result".to_owned(), parts };
        steps.push(between(pause));
        steps.push(Step::Chunk { artifact, append: number > 1, last: number == count });
    }
    steps.push(Step::Settle(RemoteState::Completed, None));
    Some(steps)
}

/// Does the work on a thread of its own, until it is done or the task is taken from it.
pub(super) fn start(tasks: WeakTasks, run: RunId, announce: Announce, steps: Vec<Step>) {
    thread::spawn(move || {
        if announce == Announce::Work && !report(&tasks, &run, |say| say.status(RemoteState::Working, None)) {
            return;
        }
        for step in steps {
            let goes_on = match step {
                Step::Pause(time) => pause(&tasks, &run, time),
                Step::Hold => hold(&tasks, &run),
                Step::Chunk { artifact, append, last } => {
                    report(&tasks, &run, |say| say.artifact(artifact, append, last))
                }
                Step::Settle(state, text) => report(&tasks, &run, |say| say.status(state, text.as_deref())),
            };
            if !goes_on {
                return;
            }
        }
    });
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announce {
    /// Says first that it works.
    Work,
    /// The task says so already.
    Nothing,
}

fn report(tasks: &WeakTasks, run: &RunId, step: impl FnOnce(&mut super::tasks::Reporter<'_>)) -> bool {
    tasks.upgrade().is_some_and(|tasks| tasks.report(run, step))
}

/// How long a thread waits before it looks whether anybody still has the tasks.
const SLICE: Duration = Duration::from_millis(20);

fn pause(tasks: &WeakTasks, run: &RunId, time: Duration) -> bool {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match tasks.upgrade() {
            Some(tasks) if tasks.is_running(run) => {
                if left.is_zero() {
                    return true;
                }
                tasks.wait(left.min(SLICE));
            }
            _ => return false,
        }
    }
}

fn hold(tasks: &WeakTasks, run: &RunId) -> bool {
    loop {
        let Some(tasks) = tasks.upgrade() else {
            return false;
        };
        match tasks.pass(run) {
            None => return false,
            Some(true) => return true,
            Some(false) => tasks.wait(SLICE),
        }
    }
}
