//! What single programs do in their own way, known by the name they give themselves and seen in recorded runs.

use crate::lenient_json::Object;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Quirk {
    #[default]
    None,
    /// Gemini answers `session/load` before it has replayed the session; the list of its commands ends the replay.
    ReplaysLate,
    /// Codex puts notices between the text of its answer. They are the pieces without a message id.
    NoticesAmongText,
    /// Copilot and Vibe count the tokens of a session and not those of a turn.
    CountsForSession,
}

impl Quirk {
    /// Of the program that gives itself this name.
    pub(super) fn of(program: Option<&str>) -> Self {
        match program {
            Some("gemini-cli") => Self::ReplaysLate,
            Some("@agentclientprotocol/codex-acp") => Self::NoticesAmongText,
            Some("Copilot" | "@mistralai/mistral-vibe") => Self::CountsForSession,
            _ => Self::None,
        }
    }
}

/// Goose tells an error of its model as text and ends the turn as if all went well. Both its sentences in one piece are
/// no accident: a model's answer comes in many.
pub(super) fn is_reported_failure(piece: &str) -> bool {
    piece.starts_with("Ran into this error: ")
        && piece.trim_end().ends_with("Please retry if you think this is a transient or recoverable error.")
}

/// Codex says by the state of its thread that the turn broke; the words come as the next notice.
pub(super) fn thread_state(update: &Object) -> Option<String> {
    update.at("_meta/codex/threadStatus").non_empty_text("type")
}
