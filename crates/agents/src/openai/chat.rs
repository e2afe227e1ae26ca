//! What is sent to the server: the spelling of `/chat/completions`.

use sabir_model::Json;
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
pub(super) struct Request<'a> {
    pub(super) model: &'a str,
    pub(super) messages: Vec<&'a ChatMessage>,
    pub(super) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
    /// The newer name of the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) tools: &'a [ToolSpec],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: bool,
}

/// A message of the conversation, as it is sent and as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChatMessage {
    pub(super) role: ChatRole,
    #[serde(default)]
    pub(super) content: ChatContent,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ChatToolCall>,
    /// Of the call that this is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChatRole {
    System,
    User,
    Assistant,
    Tool,
}

/// A text alone is a text: not every server takes lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum ChatContent {
    Text(String),
    Parts(Vec<ChatPart>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatPart {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ImageUrl {
    pub(super) url: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChatToolCall {
    pub(super) id: String,
    #[serde(rename = "type", default)]
    pub(super) kind: Function,
    pub(super) function: CalledFunction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Function {
    #[default]
    Function,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CalledFunction {
    pub(super) name: String,
    /// JSON, as the model wrote it.
    pub(super) arguments: String,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct ToolSpec {
    #[serde(rename = "type")]
    pub(super) kind: Function,
    pub(super) function: FunctionSpec,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct FunctionSpec {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    pub(super) parameters: Json,
}

impl Default for ChatContent {
    fn default() -> Self {
        ChatContent::Text(String::new())
    }
}

impl ChatMessage {
    pub(super) fn text(role: ChatRole, text: impl Into<String>) -> Self {
        ChatMessage { role, content: ChatContent::Text(text.into()), tool_calls: Vec::new(), tool_call_id: None }
    }

    pub(super) fn user(content: ChatContent) -> Self {
        ChatMessage { content, ..ChatMessage::text(ChatRole::User, "") }
    }

    pub(super) fn tool_result(call: &str, text: String) -> Self {
        ChatMessage { tool_call_id: Some(call.to_owned()), ..ChatMessage::text(ChatRole::Tool, text) }
    }
}
