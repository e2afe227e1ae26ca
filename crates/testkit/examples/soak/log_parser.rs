//! Parses the log of a task: it must hold what the callers' messages lead to, all of it, or up to a cancel or an
//! interruption.
//!
//! A queued task may say what it waits for. A turn is `working` and then the steps that its message leads to. After it
//! comes the turn of the next message, if one waited. A turn that was cut off may begin again, if the next server
//! process runs tasks again. The log does not say which of these a `working` is, so the parser tries them in turn.

use std::cell::RefCell;

use crate::agents::{Kind, PROGRAM_ANSWER};
use crate::dialect_client::{CallerMessage, Content, Event};

/// A turn is run so often at most.
const MOST_RUNS: u32 = 3;

const NO_ANSWER: &str = "Nobody answered in time, which means no";

/// A log that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedLog {
    pub ending: Ending,
    /// The events with which turns began again.
    pub reruns: Vec<usize>,
    /// Questions of the program that were closed: the message whose turn asked, and the one that answered; none if
    /// nobody did in time.
    pub answered: Vec<(usize, Option<usize>)>,
}

impl ParsedLog {
    /// Whether a run was ended before it was through.
    pub fn is_cut_off(&self) -> bool {
        self.ending != Ending::ByAgent || !self.reruns.is_empty()
    }
}

/// How a log ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// As the agent ended it.
    ByAgent,
    Canceled,
    /// With this reason.
    Interrupted(String),
}

/// What a turn shows after `working`.
enum Step {
    /// A `working` status without a message.
    Progress,
    Chunk {
        text: String,
        append: bool,
        last: bool,
    },
    /// A question in the middle of the turn, which begins like this, and its answer.
    Question(String),
}

/// How a turn ends.
struct Outcome {
    state: &'static str,
    words: Option<String>,
}

struct Turn {
    steps: Vec<Step>,
    outcome: Outcome,
}

/// How far a log was read.
#[derive(Clone)]
struct Position {
    /// The next event.
    at: usize,
    /// The message of the present turn.
    message: usize,
    /// The first message that has not been taken up.
    next: usize,
    run: u32,
    /// Artifacts that turns which were cut off have left open, and whether the present run has one.
    left_open: usize,
    is_open: bool,
    reruns: Vec<usize>,
    answered: Vec<(usize, Option<usize>)>,
}

struct LogParser<'a> {
    kind: Kind,
    messages: &'a [CallerMessage],
    events: &'a [Event],
    /// Whether a turn may begin again with the event at this place.
    may_rerun: &'a dyn Fn(usize) -> bool,
    /// The furthest event that is not as expected, and what was expected.
    mismatch: RefCell<(usize, String)>,
}

/// Reads the events of a task against the messages of its callers. `may_rerun` says whether a turn may begin again with the
/// event at this place.
pub fn parse(
    kind: Kind,
    messages: &[CallerMessage],
    events: &[Event],
    may_rerun: &dyn Fn(usize) -> bool,
) -> Result<ParsedLog, String> {
    match events.first() {
        Some(Event::Task(view)) if view.state == "submitted" && view.made.as_deref() == Some("") => {}
        other => return Err(format!("it begins with {other:?}")),
    }
    let reader = LogParser { kind, messages, events, may_rerun, mismatch: RefCell::default() };
    let start = Position {
        at: 1,
        message: 0,
        next: 1,
        run: 1,
        left_open: 0,
        is_open: false,
        reruns: Vec::new(),
        answered: Vec::new(),
    };
    reader.turn(start).ok_or_else(|| reader.mismatch.into_inner().1)
}

impl LogParser<'_> {
    /// A turn from its `working` on, and all that follows.
    fn turn(&self, mut position: Position) -> Option<ParsedLog> {
        while self.is_queued(position.at) {
            position.at += 1;
        }
        match self.cut_off(&position) {
            Some(ParsedLog { ending: Ending::Interrupted(_), .. }) => {
                self.expected(position.at, "a run before it is interrupted");
                return None;
            }
            Some(log) => return Some(log),
            None => {}
        }
        if position.run > MOST_RUNS {
            self.expected(position.at, "no further run");
            return None;
        }
        if !self.is_status(position.at, "working", None) {
            self.expected(position.at, "working");
            return None;
        }
        position.at += 1;
        let turn = Turn::of(self.kind, &self.messages.get(position.message)?.text);
        self.steps(&turn, 0, position)
    }

    fn steps(&self, turn: &Turn, from: usize, mut position: Position) -> Option<ParsedLog> {
        for (place, step) in turn.steps.iter().enumerate().skip(from) {
            if let Some(log) = self.cut_off(&position) {
                return Some(log);
            }
            match step {
                Step::Chunk { text: expected, append, last } => {
                    let is_so = matches!(self.events.get(position.at), Some(Event::Artifact { text, append: appends, last: ends, .. })
                        if text == expected && appends == append && ends == last);
                    if !is_so {
                        self.expected(position.at, &format!("artifact {expected:?}"));
                        return self.rerun(position);
                    }
                    position.at += 1;
                    position.is_open = if *append { !last } else { position.is_open || !last };
                }
                Step::Progress => {
                    if !self.is_status(position.at, "working", None) {
                        self.expected(position.at, "progress");
                        return None;
                    }
                    let signed = Position { at: position.at + 1, ..position.clone() };
                    return self.steps(turn, place + 1, signed).or_else(|| self.rerun(position));
                }
                Step::Question(question) => {
                    let is_asked = matches!(self.events.get(position.at), Some(Event::Status { state, words: Some(words), .. })
                        if state == "input-required" && words.starts_with(question.as_str()));
                    if !is_asked {
                        self.expected(position.at, &format!("the question {question:?}"));
                        return self.rerun(position);
                    }
                    position.at += 1;
                    return self.question(turn, place, position);
                }
            }
        }
        self.outcome(turn, position)
    }

    /// A question is open; the step is the one that asked it.
    fn question(&self, turn: &Turn, step: usize, position: Position) -> Option<ParsedLog> {
        if let Some(log) = self.cut_off(&position) {
            return Some(log);
        }
        if !self.is_status(position.at, "working", None) {
            self.expected(position.at, "an answer to the question");
            return None;
        }
        let answered = |by: Option<usize>, at: usize, next: usize| {
            let mut answered = position.answered.clone();
            answered.push((position.message, by));
            Position { at, next, answered, ..position.clone() }
        };
        for next in self.upcoming(position.next) {
            let after = answered(Some(next), position.at + 1, next + 1);
            if let Some(log) = self.steps(turn, step + 1, after) {
                return Some(log);
            }
        }
        if self.is_status(position.at + 1, "working", Some(NO_ANSWER)) {
            let after = answered(None, position.at + 2, position.next);
            if let Some(log) = self.steps(turn, step + 1, after) {
                return Some(log);
            }
        }
        // The question was withdrawn, and the server ended before the agent could say so.
        let withdrawn = answered(None, position.at + 1, position.next);
        self.cut_off(&withdrawn).or_else(|| self.rerun(withdrawn)).or_else(|| self.rerun(position))
    }

    /// The steps are over: the turn ends, or another message waits, or the turn begins again.
    fn outcome(&self, turn: &Turn, position: Position) -> Option<ParsedLog> {
        if let Some(log) = self.cut_off(&position) {
            return Some(log);
        }
        let Outcome { state, words } = &turn.outcome;
        let has_ended = self.closed(&position).filter(|at| self.is_status(*at, state, words.as_deref()));
        let asks = matches!(*state, "input-required" | "auth-required");
        if let Some(at) = has_ended {
            let mut ended = Position { at: at + 1, ..position.clone() };
            if asks {
                // A message that waited already leaves the artifacts as they are.
                if at > position.at {
                    (ended.left_open, ended.is_open) = (0, false);
                }
                // Whoever waits may be canceled, but has no run that could be interrupted.
                let canceled = self.cut_off(&ended).filter(|log| log.ending == Ending::Canceled);
                return self.end(&ended).or(canceled).or_else(|| self.next_turn(ended));
            }
            let has_more = self.upcoming(ended.next).any(|next| !self.is_approval(next));
            if *state == "completed" && has_more {
                self.expected(at, "no end while a message waits");
                return None;
            }
            return self.end(&ended);
        }
        self.expected(position.at, state);
        let next = if *state == "completed" { self.next_turn(position.clone()) } else { None };
        next.or_else(|| self.rerun(position))
    }

    fn next_turn(&self, position: Position) -> Option<ParsedLog> {
        let next = self.upcoming(position.next).find(|next| !self.is_approval(*next))?;
        self.turn(Position { message: next, next: next + 1, run: 1, ..carried_on(position) })
    }

    fn rerun(&self, position: Position) -> Option<ParsedLog> {
        if !self.is_status(position.at, "working", None) || !(self.may_rerun)(position.at) {
            return None;
        }
        let mut again = carried_on(position);
        again.run += 1;
        again.reruns.push(again.at);
        self.turn(again)
    }

    /// Messages that may come next. An approval that came too late for its question is in the history and nothing else.
    fn upcoming(&self, from: usize) -> impl Iterator<Item = usize> {
        let approvals = (from..self.messages.len()).take_while(|place| self.is_approval(*place)).count();
        (from..=from + approvals).filter(|place| *place < self.messages.len())
    }

    fn is_approval(&self, place: usize) -> bool {
        self.messages.get(place).is_some_and(|message| matches!(message.content, Content::OnlyApproval(_)))
    }

    fn end(&self, position: &Position) -> Option<ParsedLog> {
        if position.at < self.events.len() {
            self.expected(position.at, "nothing after the end");
            return None;
        }
        Some(position.log(Ending::ByAgent))
    }

    /// A cancel or an interruption, which must be the last event.
    fn cut_off(&self, position: &Position) -> Option<ParsedLog> {
        let at = self.closed(position)?;
        let Event::Status { state, words, .. } = self.events.get(at)? else { return None };
        if at + 1 != self.events.len() {
            return None;
        }
        let words = words.clone().unwrap_or_default();
        match state.as_str() {
            "canceled" => Some(position.log(Ending::Canceled)),
            "failed" if words.starts_with("interrupted: ") => Some(position.log(Ending::Interrupted(words))),
            _ => None,
        }
    }

    /// Where the events go on behind the empty chunks that close what is open; such a chunk comes just before an end.
    fn closed(&self, position: &Position) -> Option<usize> {
        let open = position.left_open + usize::from(position.is_open);
        let is_closing =
            |event: &Event| matches!(event, Event::Artifact { text, append: true, last: true, .. } if text.is_empty());
        let closing = self.events.iter().skip(position.at).take(open).take_while(|event| is_closing(event)).count();
        // A turn that ended by asking while a message waited closes nothing.
        (closing == open || closing == 0)
            .then_some(position.at + closing)
            .filter(|at| closing == open || self.asks(*at))
    }

    fn asks(&self, at: usize) -> bool {
        matches!(self.events.get(at), Some(Event::Status { state, .. }) if matches!(state.as_str(), "input-required" | "auth-required"))
    }

    fn is_status(&self, at: usize, expected: &str, expected_words: Option<&str>) -> bool {
        matches!(self.events.get(at), Some(Event::Status { state, words, .. })
            if state == expected && words.as_deref() == expected_words)
    }

    /// Whether the task says there what it waits for.
    fn is_queued(&self, at: usize) -> bool {
        matches!(self.events.get(at), Some(Event::Status { state, words: Some(words), .. })
            if state == "submitted" && words.starts_with("waiting for "))
    }

    fn expected(&self, at: usize, what: &str) {
        let mut mismatch = self.mismatch.borrow_mut();
        if at >= mismatch.0 {
            *mismatch = (at, format!("event {} should be {what}: {:?}", at + 1, self.events.get(at)));
        }
    }
}

impl Position {
    fn log(&self, ending: Ending) -> ParsedLog {
        ParsedLog { ending, reruns: self.reruns.clone(), answered: self.answered.clone() }
    }
}

/// What the present run has left open stays open.
fn carried_on(position: Position) -> Position {
    Position { left_open: position.left_open + usize::from(position.is_open), is_open: false, ..position }
}

impl Turn {
    fn of(kind: Kind, text: &str) -> Self {
        match kind {
            Kind::Demo => Self::of_demo(text),
            Kind::Program => Self::of_program(text),
            Kind::Front(_) => unreachable!("`front_log` reads the logs of fronts"),
        }
    }

    fn of_demo(text: &str) -> Self {
        let mut rest = text;
        while let Some(after) = rest.strip_prefix("slow ") {
            rest = after.split_once(' ').map_or("", |(_, rest)| rest);
        }
        let (word, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let ends = |state| Self { steps: Vec::new(), outcome: Outcome { state, words: Some(more.to_owned()) } };
        let makes = |texts: Vec<String>| {
            let count = texts.len();
            let chunk = |(i, text)| Step::Chunk { text, append: i > 0, last: i + 1 == count };
            let steps = texts.into_iter().enumerate().map(chunk).collect();
            Self { steps, outcome: Outcome { state: "completed", words: None } }
        };
        match word {
            "fail" => ends("failed"),
            "reject" => ends("rejected"),
            "ask" => ends("input-required"),
            "auth" => ends("auth-required"),
            "stream" => {
                let count: u64 = more.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
                makes((1..=count).map(|i| format!("chunk {i}\n")).collect())
            }
            _ => makes(vec![format!("echo: {text}")]),
        }
    }

    fn of_program(text: &str) -> Self {
        let mut steps = vec![Step::Progress];
        steps.push(Step::Chunk { text: PROGRAM_ANSWER.to_owned(), append: false, last: false });
        if let Some(name) = text.strip_prefix("approve ") {
            steps.push(Step::Question(format!("Run {name}? [Y/n]")));
        }
        // The result, which is data.
        steps.push(Step::Chunk { text: String::new(), append: false, last: true });
        Self { steps, outcome: Outcome { state: "completed", words: None } }
    }
}
