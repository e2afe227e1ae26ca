//! What a task says, in words.

use sabir_model::{Content, Error, Message, Part, State, Task};

/// Texts of artifacts that belong together are apart by an empty line.
const APART: &str = "\n\n";

/// What the agent has answered: the texts of its artifacts, or else what it says at the end.
pub(crate) fn answer_text(task: &Task) -> String {
    let parts = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    let texts: Vec<&str> = parts.filter_map(Part::as_text).filter(|text| !text.is_empty()).collect();
    if texts.is_empty() { status_text(task) } else { texts.join(APART) }
}

/// What is said of the state: progress, a question or a reason.
pub(crate) fn status_text(task: &Task) -> String {
    task.status.message.as_deref().map_or_else(String::new, all_text)
}

/// The text parts of a message, each on lines of its own.
pub(crate) fn all_text(message: &Message) -> String {
    let texts: Vec<&str> = message.parts.iter().filter_map(Part::as_text).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// Whether a task ended without having been done.
pub(crate) fn is_failure(state: State) -> bool {
    matches!(state, State::Failed | State::Rejected)
}

/// Whether it is text.
pub(crate) fn is_text(part: &Part) -> bool {
    matches!(part.content, Content::Text(_))
}

/// What a caller is told of an error. What is the server's own fault goes to its log.
pub(crate) fn told_of(error: &Error) -> String {
    if let Error::Internal(source) = error {
        tracing::error!(%source, "a call through a door failed");
    }
    error.to_string()
}

/// Words that somebody else wrote, as one line of so many characters at most, without characters that hide or turn others.
pub(crate) fn one_line(words: &str, most: usize) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let shown: String = words.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    let line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}
