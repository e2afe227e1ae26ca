//! Reads the log of a task that a remote agent works on.
//!
//! In which pieces artifacts come depends on what happened to the connection, so only the order of states is read here; what
//! was made is compared with what the remote agent has (`check_fronts`). A turn is `working` and then artifacts. A run that
//! ended with its server resumes the turn, with a `working` of its own. A `working` without words also says that an agent which
//! could not be reached is there again.

use crate::dialect_client::{CallerMessage, Event, is_terminal};
use crate::log_parser::{Ending, ParsedLog};

/// How a front says that its agent is away for now.
const UNREACHABLE: &str = "the remote agent cannot be reached now";

/// Reads the events of a task against the messages of its callers. `may_resume` says whether the server ended just before
/// the event at this place.
pub fn parse(
    messages: &[CallerMessage],
    events: &[Event],
    may_resume: impl Fn(usize) -> bool,
) -> Result<ParsedLog, String> {
    match events.first() {
        Some(Event::Task(view)) if view.state == "submitted" && view.made.as_deref() == Some("") => {}
        other => return Err(format!("it begins with {other:?}")),
    }
    let (mut state, mut begins) = ("submitted", Vec::new());
    let mut ending = Ending::ByAgent;
    let mut is_unreachable = false;
    for (place, event) in events.iter().enumerate().skip(1) {
        let unexpected = || Err(format!("event {} comes while it is {state}: {event:?}", place + 1));
        match event {
            _ if is_terminal(state) => return unexpected(),
            Event::Task(_) => return unexpected(),
            Event::Artifact { text, .. } if state == "working" || text.is_empty() => {}
            Event::Artifact { .. } => return unexpected(),
            Event::Status { state: next, words, .. } => {
                match (next.as_str(), words) {
                    ("working", Some(words)) if words.starts_with(UNREACHABLE) => is_unreachable = true,
                    ("working", None) if is_unreachable => is_unreachable = false,
                    ("working", None) => begins.push(place),
                    ("submitted", Some(words)) if words.starts_with("waiting for ") && state == "submitted" => {}
                    ("submitted", _) => return unexpected(),
                    ("canceled", _) => ending = Ending::Canceled,
                    ("failed", Some(reason)) if reason.starts_with("interrupted: ") => {
                        ending = Ending::Interrupted(reason.clone());
                    }
                    _ if state != "working" => return unexpected(),
                    _ => {}
                }
                is_unreachable &= next == "working";
                state = next;
            }
        }
    }
    let surplus = begins.len().saturating_sub(messages.len());
    let resumed: Vec<usize> = begins.iter().copied().filter(|place| may_resume(*place)).collect();
    if surplus > resumed.len() {
        let (count, all) = (messages.len(), begins.len());
        return Err(format!("{count} messages began {all} turns, of which {} may be resumed ones", resumed.len()));
    }
    let reruns = if surplus > 0 { resumed } else { Vec::new() };
    Ok(ParsedLog { ending, reruns, answered: Vec::new() })
}
