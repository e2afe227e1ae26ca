//! What the operator says of the model and its server.

use std::time::Duration;

use sabir_outbound::Service;

use crate::mcp_client::ToolServerSettings;

#[derive(Clone)]
pub struct OpenAiSettings {
    /// The server; `/chat/completions` is added to its address.
    pub service: Service,
    pub model: String,
    pub system_prompt: Option<String>,
    pub temperature: Option<f64>,
    /// The most tokens of one answer of the model.
    pub max_tokens: Option<u32>,
    pub history: HistoryLimits,
    /// How long the server may take until it begins its answer.
    pub answer_timeout: Duration,
    /// How long an answer may pause.
    pub silence: Duration,
    pub tool_servers: Vec<ToolServerSettings>,
    /// How often in one turn the model may call tools and go on with their results.
    pub max_tool_rounds: usize,
    /// Whether the caller is asked before each call of a tool.
    pub asks_before_tools: bool,
    /// A question that nobody answers in this time is answered with no.
    pub approval_timeout: Option<Duration>,
}

/// How much of a context's conversation the model gets again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    pub messages: usize,
    /// Of the text that is kept.
    pub bytes: usize,
}
