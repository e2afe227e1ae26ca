//! How single programs differ from the protocol, as seen in recorded runs. They are known by the name that they give.

use crate::lenient_json::Object;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Quirk {
    #[default]
    None,
    /// Gemini answers `session/load` before it has replayed the session; the list of its commands ends the replay.
    ReplaysLate,
    /// Codex mixes notices into the text of its answer. They are the pieces without a message id.
    NoticesAmongText,
    /// Copilot and Vibe count the tokens of a session and not those of a turn.
    CountsForSession,
}

impl Quirk {
    /// The quirk of the program with this name.
    pub(super) fn of(program: Option<&str>) -> Self {
        match program {
            Some("gemini-cli") => Self::ReplaysLate,
            Some("@agentclientprotocol/codex-acp") => Self::NoticesAmongText,
            Some("Copilot" | "@mistralai/mistral-vibe") => Self::CountsForSession,
            _ => Self::None,
        }
    }
}

/// Goose reports an error of its model as text and ends the turn as a success. Both sentences in one piece identify it: a
/// model's answer comes in many pieces.
pub(super) fn is_reported_failure(piece: &str) -> bool {
    piece.starts_with("Ran into this error: ")
        && piece.trim_end().ends_with("Please retry if you think this is a transient or recoverable error.")
}

/// Codex reports a failed turn by the state of its thread; the message follows as the next notice.
pub(super) fn thread_state(update: &Object) -> Option<String> {
    update.at("_meta/codex/threadStatus").non_empty_text("type")
}
