//! What the editor is shown while an agent works: the notifications `session/update`.

use sabir_model::Json;
use serde::Serialize;

use super::content::Block;

/// One notification.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionNotification<'a> {
    pub session_id: &'a str,
    pub update: &'a SessionUpdate,
}

#[derive(Debug, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub enum SessionUpdate {
    UserMessageChunk(Chunk),
    AgentMessageChunk(Chunk),
    AgentThoughtChunk(Chunk),
    ToolCall(ToolCallUpdate),
    ToolCallUpdate(ToolCallUpdate),
    Plan { entries: Vec<PlanEntry> },
}

/// A piece of a message.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Chunk {
    pub content: Block,
    /// Pieces with one id are one message.
    pub message_id: String,
}

/// A tool call, or what is new of it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallUpdate {
    pub tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ToolContent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<Json>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ToolContent {
    Content { content: Block },
    Diff { path: String, old_text: String, new_text: String },
}

/// A file that a tool works on.
#[derive(Debug, Serialize)]
pub struct Location {
    pub path: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct PlanEntry {
    pub content: String,
    pub priority: &'static str,
    pub status: &'static str,
}

/// The plan that a progress message tells of, as the agents for programs write it: `Plan: one (done); two (in progress)`.
pub fn plan(text: &str) -> Option<Vec<PlanEntry>> {
    let entry = |text: &str| {
        let (content, status) = match text {
            text if text.ends_with(" (done)") => (text.trim_end_matches(" (done)"), "completed"),
            text if text.ends_with(" (in progress)") => (text.trim_end_matches(" (in progress)"), "in_progress"),
            text => (text, "pending"),
        };
        PlanEntry { content: content.to_owned(), priority: "medium", status }
    };
    Some(text.strip_prefix("Plan: ")?.split("; ").map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_back() {
        let entries = plan("Plan: look (done); mend (in progress); test").unwrap();
        let entries: Vec<_> = entries.iter().map(|entry| (entry.content.as_str(), entry.status)).collect();
        assert_eq!(entries, [("look", "completed"), ("mend", "in_progress"), ("test", "pending")]);
        assert_eq!(plan("Planning"), None);
    }

    #[test]
    fn an_update_is_written_as_acp_has_it() {
        let update = SessionUpdate::ToolCall(ToolCallUpdate {
            tool_call_id: "1".into(),
            title: Some("ls".into()),
            kind: Some("execute"),
            status: Some("in_progress"),
            content: vec![ToolContent::Content { content: Block::text("x") }],
            raw_input: Some(Json::parse(r#"{"command": "ls"}"#).unwrap()),
            ..ToolCallUpdate::default()
        });
        let written = serde_json::to_string(&SessionNotification { session_id: "s", update: &update }).unwrap();
        assert_eq!(
            written,
            r#"{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"1","title":"ls","kind":"execute","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"x"}}],"rawInput":{"command": "ls"}}}"#
        );
    }
}
