//! What the log of a task must say, given what its caller said: all of it, or up to a cancel or an interruption.
//!
//! An artifact that is cut short is closed by an empty chunk, just before the end.

use crate::tongue::Event;

/// How a log ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// As the agent's words say.
    Told,
    Canceled,
    /// With this reason.
    Interrupted(String),
}

/// What one turn shows after `working`.
struct Turn {
    chunks: Vec<String>,
    state: &'static str,
    words: Option<String>,
}

/// Reads the events of a task against the texts of its caller.
pub fn read(texts: &[String], events: &[Event]) -> Result<Ending, String> {
    match events.first() {
        Some(Event::Task(told)) if told.state == "submitted" && told.made.as_deref() == Some("") => {}
        other => return Err(format!("it begins with {other:?}")),
    }
    let mut at = 1;
    for (place, text) in texts.iter().enumerate() {
        let turn = Turn::of(text);
        if let Some(ending) = broken_off(events, at, Artifact::Closed) {
            return match ending {
                Ending::Interrupted(_) => Err(format!("interrupted at {} before it ran", at + 1)),
                ending => Ok(ending),
            };
        }
        expect(events, &mut at, |event| is_status(event, "working", None), || "working".to_owned())?;
        for (i, chunk) in turn.chunks.iter().enumerate() {
            let artifact = if i == 0 { Artifact::Closed } else { Artifact::Open };
            if let Some(ending) = broken_off(events, at, artifact) {
                return Ok(ending);
            }
            let is_last = i + 1 == turn.chunks.len();
            let is_so = |event: &Event| {
                matches!(event, Event::Artifact { text, append, last, .. }
                    if text == chunk && *append == (i > 0) && *last == is_last)
            };
            expect(events, &mut at, is_so, || format!("artifact {chunk:?}"))?;
        }
        if let Some(ending) = broken_off(events, at, Artifact::Closed) {
            return Ok(ending);
        }
        let words = turn.words.as_deref();
        expect(events, &mut at, |event| is_status(event, turn.state, words), || turn.state.to_owned())?;
        let goes_on = matches!(turn.state, "input-required" | "auth-required");
        if !goes_on && place + 1 < texts.len() {
            return Err(format!("{} more messages after the end", texts.len() - place - 1));
        }
    }
    match events.get(at) {
        // Who waits may be canceled.
        Some(_) => broken_off(events, at, Artifact::Closed)
            .ok_or_else(|| format!("event {} after the end: {:?}", at + 1, events[at])),
        None => Ok(Ending::Told),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Artifact {
    /// It has begun, and not had its last chunk.
    Open,
    Closed,
}

/// A cancel or an interruption, which must be the last event.
fn broken_off(events: &[Event], at: usize, artifact: Artifact) -> Option<Ending> {
    if artifact == Artifact::Open {
        let is_closed =
            matches!(events.get(at)?, Event::Artifact { text, append: true, last: true, .. } if text.is_empty());
        return if is_closed { broken_off(events, at + 1, Artifact::Closed) } else { None };
    }
    let Event::Status { state, words, .. } = events.get(at)? else { return None };
    if at + 1 != events.len() {
        return None;
    }
    let words = words.clone().unwrap_or_default();
    match state.as_str() {
        "canceled" => Some(Ending::Canceled),
        "failed" if words.starts_with("interrupted: ") => Some(Ending::Interrupted(words)),
        _ => None,
    }
}

fn is_status(event: &Event, expected: &str, said: Option<&str>) -> bool {
    matches!(event, Event::Status { state, words, .. } if state == expected && words.as_deref() == said)
}

fn expect(
    events: &[Event],
    at: &mut usize,
    is_so: impl Fn(&Event) -> bool,
    expected: impl Fn() -> String,
) -> Result<(), String> {
    match events.get(*at) {
        Some(event) if is_so(event) => {
            *at += 1;
            Ok(())
        }
        Some(event) => Err(format!("event {} should be {}: {event:?}", *at + 1, expected())),
        None => Err(format!("event {} is missing: {}", *at + 1, expected())),
    }
}

impl Turn {
    fn of(text: &str) -> Self {
        let mut rest = text;
        while let Some(after) = rest.strip_prefix("slow ") {
            rest = after.split_once(' ').map_or("", |(_, rest)| rest);
        }
        let (word, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let ends = |state| Self { chunks: Vec::new(), state, words: Some(more.to_owned()) };
        match word {
            "fail" => ends("failed"),
            "reject" => ends("rejected"),
            "ask" => ends("input-required"),
            "auth" => ends("auth-required"),
            "stream" => {
                let count: u64 = more.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
                let chunks = (1..=count).map(|i| format!("chunk {i}\n")).collect();
                Self { chunks, state: "completed", words: None }
            }
            _ => Self { chunks: vec![format!("echo: {text}")], state: "completed", words: None },
        }
    }
}
