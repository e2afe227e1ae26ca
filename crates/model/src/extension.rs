//! The protocol extensions that agents here speak: what a turn has cost, and which tools it used.
//!
//! Their data lies in the metadata of artifacts and messages, under the extension's URI. Whoever does not know the
//! URI reads past it, so it is sent to everybody.

use serde::{Deserialize, Serialize};

use crate::{Artifact, Extension, Json, Message, Usage};

/// Tokens and time, on what a turn made; where it made nothing, on its last words.
pub const COST: &str = "https://proto-labs.ai/a2a/ext/cost-v1";
/// One tool call, on the progress message that tells of it.
pub const TOOL_CALL: &str = "https://proto-labs.ai/a2a/ext/tool-call-v1";
/// The server knows `Idempotency-Key`: a message that is sent again with the same key joins the first one.
pub const IDEMPOTENCY_KEY: &str = "urn:sabir:a2a:ext:idempotency-key-v1";

/// How a card declares `COST`.
pub fn cost_extension() -> Extension {
    declared(COST, "What a task has cost: tokens and milliseconds, in the metadata of its artifact")
}

/// How a card declares `IDEMPOTENCY_KEY`.
pub fn idempotency_extension() -> Extension {
    declared(IDEMPOTENCY_KEY, "A message that is sent again with the same Idempotency-Key joins the task of the first")
}

/// How a card declares `TOOL_CALL`.
pub fn tool_call_extension() -> Extension {
    declared(TOOL_CALL, "Which tools a task uses, in the metadata of its progress messages")
}

fn declared(uri: &str, description: &str) -> Extension {
    Extension { uri: uri.into(), description: Some(description.into()), required: false, params: None }
}

/// What a turn has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Tokens.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
    /// Whether the turn did what it was asked.
    pub is_success: bool,
}

/// One call of a tool, as far as it has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The same when the call begins and when it ends.
    #[serde(rename = "toolCallId")]
    pub id: String,
    /// Of the tool.
    pub name: String,
    /// How far it is.
    pub phase: ToolPhase,
    /// What the tool was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Json>,
    /// What it gave back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolPhase {
    /// The tool works.
    Started,
    /// It has a result.
    Completed,
    /// It has an error.
    Failed,
}

impl Cost {
    /// Puts the cost on an artifact.
    pub fn note_on(self, artifact: &mut Artifact) {
        self.note(&mut artifact.metadata, &mut artifact.extensions);
    }

    /// Puts the cost on the last words of a turn that made nothing.
    pub fn note_on_message(self, message: &mut Message) {
        self.note(&mut message.metadata, &mut message.extensions);
    }

    fn note(self, metadata: &mut Option<Json>, extensions: &mut Vec<String>) {
        let Usage { input_tokens, output_tokens } = self.usage;
        let payload = CostPayload {
            usage: Tokens { input_tokens, output_tokens, total_tokens: input_tokens.saturating_add(output_tokens) },
            duration_ms: self.duration_ms,
            success: self.is_success,
        };
        note(COST, &payload, metadata, extensions);
    }
}

impl ToolCall {
    /// Puts the call on the message that tells of it.
    pub fn note_on(&self, message: &mut Message) {
        note(TOOL_CALL, self, &mut message.metadata, &mut message.extensions);
    }

    /// The call that a message tells of.
    pub fn in_message(message: &Message) -> Option<Self> {
        let payload = message.metadata.as_ref()?.member(TOOL_CALL)?;
        serde_json::from_str(payload.as_str()).ok()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CostPayload {
    usage: Tokens,
    duration_ms: u64,
    success: bool,
}

#[derive(Serialize)]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
}

fn note(uri: &str, payload: &impl Serialize, metadata: &mut Option<Json>, extensions: &mut Vec<String>) {
    // Numbers and strings are always JSON.
    let Ok(payload) = Json::of(payload) else { return };
    *metadata = Some(Json::with_member(metadata.as_ref(), uri, &payload));
    if !extensions.iter().any(|known| known == uri) {
        extensions.push(uri.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArtifactId, MessageId, Part, Role};

    #[test]
    fn a_tool_call_is_read_back_from_its_message() {
        let call = ToolCall {
            id: "1".into(),
            name: "Bash".into(),
            phase: ToolPhase::Failed,
            args: Some(Json::parse(r#"{"command":"ls"}"#).unwrap()),
            result: None,
            error: Some("no".into()),
        };
        let mut message = Message::new(MessageId::parse("m").unwrap(), Role::Agent, vec![]);
        assert_eq!(ToolCall::in_message(&message), None);
        call.note_on(&mut message);
        assert_eq!(ToolCall::in_message(&message), Some(call));
    }

    #[test]
    fn the_cost_stands_beside_what_was_there() {
        let mut artifact = Artifact::new(ArtifactId::parse("a").unwrap(), vec![Part::text("x")]);
        artifact.metadata = Some(Json::parse(r#"{"mine":1e3}"#).unwrap());
        let usage = Usage { input_tokens: 1200, output_tokens: 340 };
        Cost { usage, duration_ms: 5, is_success: true }.note_on(&mut artifact);
        let expected = r#"{"https://proto-labs.ai/a2a/ext/cost-v1":{"usage":{"input_tokens":1200,"output_tokens":340,"total_tokens":1540},"durationMs":5,"success":true},"mine":1e3}"#;
        assert_eq!(artifact.metadata.unwrap().as_str(), expected);
        assert_eq!(artifact.extensions, [COST]);
    }
}
