//! What a task says, in words.

use sabir_model::{Content, Error, Message, Part, State, Task, is_hidden};

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
    let shown: String = words.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    let line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_hides_no_letters() {
        let hidden = "a\u{e0041}\u{61c}b\u{ad}\u{202e}c\nd\u{3164}e";
        assert_eq!(one_line(hidden, 100), "a b c d e");
        assert_eq!(one_line("\u{5d0}\u{2764}\u{fe0f}é", 3), "\u{5d0}\u{2764}\u{fe0f}…");
    }
}
