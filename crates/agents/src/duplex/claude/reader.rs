//! The lines that tell what happens: those that the program also prints when it cannot be answered.

use std::collections::HashMap;

use serde_json::Value;

use crate::duplex::reading::{carried, count_at, list_at, owned_text_at, plain_words, text_at};
use crate::protocol::Prompt;
use crate::update::{Spent, Update};
use crate::vocabulary::claude::NO_SESSION;

#[derive(Default)]
pub(super) struct Reader {
    /// Then the money that is told is that of the whole session.
    is_resumed: bool,
    /// Messages whose text came in pieces, and comes once more as a whole.
    streamed: Vec<String>,
    tool_names: HashMap<String, String>,
}

impl Reader {
    pub(super) fn new(prompt: &Prompt) -> Self {
        Self { is_resumed: prompt.session.is_some(), ..Self::default() }
    }

    pub(super) fn tell(&mut self, line: &Value) -> Vec<Update> {
        match (text_at(line, "/type"), text_at(line, "/subtype")) {
            (Some("system"), Some("init")) => {
                let (session, model) = (owned_text_at(line, "/session_id"), owned_text_at(line, "/model"));
                vec![Update::Init { session, model }]
            }
            (Some("system"), Some("permission_denied")) => {
                let tool = text_at(line, "/tool_name").unwrap_or("A tool");
                let reason = text_at(line, "/message").unwrap_or("it needs leave");
                vec![Update::Progress(format!("{tool} was not allowed: {reason}"))]
            }
            (Some("system"), Some("api_retry")) => vec![Update::Progress(retry(line))],
            (Some("stream_event"), _) => self.piece(line).into_iter().collect(),
            (Some("assistant"), _) => self.message(line),
            (Some("user"), _) => self.tool_results(line),
            (Some("result"), _) => self.result(line),
            _ => Vec::new(),
        }
    }

    fn piece(&mut self, line: &Value) -> Option<Update> {
        if is_of_subagent(line) {
            return None;
        }
        let text = owned_text_at(line, "/event/delta/text").map(Update::Text);
        let piece = text.or_else(|| owned_text_at(line, "/event/delta/thinking").map(Update::Thought))?;
        let message = text_at(line, "/api_message_id").unwrap_or_default();
        if !self.streamed.iter().any(|streamed| streamed == message) {
            self.streamed.push(message.to_owned());
        }
        Some(piece)
    }

    fn message(&mut self, line: &Value) -> Vec<Update> {
        let id = text_at(line, "/message/id").unwrap_or_default();
        // What the program writes itself in the name of the model is an error, and the result says it again.
        let is_made_up = text_at(line, "/message/model") == Some("<synthetic>");
        let is_told = self.streamed.iter().any(|streamed| streamed == id) || is_made_up || is_of_subagent(line);
        let mut updates = Vec::new();
        for block in list_at(line, "/message/content") {
            match text_at(block, "/type") {
                Some("text") if !is_told => updates.extend(owned_text_at(block, "/text").map(Update::Text)),
                Some("thinking") if !is_told => updates.extend(owned_text_at(block, "/thinking").map(Update::Thought)),
                Some("tool_use") => {
                    let id = owned_text_at(block, "/id").unwrap_or_default();
                    let name = owned_text_at(block, "/name").unwrap_or_default();
                    self.tool_names.insert(id.clone(), name.clone());
                    updates.push(Update::ToolUse { id, name, input: carried(&block["input"]) });
                }
                _ => {}
            }
        }
        updates
    }

    fn tool_results(&self, line: &Value) -> Vec<Update> {
        let result = |block: &Value| {
            let id = text_at(block, "/tool_use_id")?;
            Some(Update::ToolResult {
                id: id.to_owned(),
                name: self.tool_names.get(id).cloned(),
                output: output(&block["content"]),
                is_error: block.get("is_error") == Some(&Value::Bool(true)),
            })
        };
        let is_result = |block: &&Value| text_at(block, "/type") == Some("tool_result");
        list_at(line, "/message/content").iter().filter(is_result).filter_map(result).collect()
    }

    fn result(&self, line: &Value) -> Vec<Update> {
        let tokens = |name: &str| count_at(line, &format!("/usage/{name}")).unwrap_or_default();
        let input = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
        let spent = Spent {
            input_tokens: input.into_iter().map(tokens).fold(0, u64::saturating_add),
            output_tokens: tokens("output_tokens"),
            cost: line.get("total_cost_usd").and_then(Value::as_f64).filter(|_| !self.is_resumed),
        };
        let was_aborted = text_at(line, "/terminal_reason").is_some_and(|reason| reason.starts_with("aborted"));
        let failed = line.get("is_error") == Some(&Value::Bool(true)) || text_at(line, "/subtype") != Some("success");
        let end = match (was_aborted, failed) {
            (true, _) => Update::Interrupted,
            (false, true) => Update::Failed(failure(line)),
            (false, false) => Update::Done { summary: owned_text_at(line, "/result") },
        };
        // It writes a session down late: one that was canceled early is known and yet not there.
        let is_gone =
            list_at(line, "/errors").iter().filter_map(Value::as_str).any(|error| error.starts_with(NO_SESSION));
        let gone = is_gone.then_some(Update::SessionGone);
        [Update::Spent(spent)].into_iter().chain(gone).chain([end]).collect()
    }
}

fn is_of_subagent(line: &Value) -> bool {
    text_at(line, "/parent_tool_use_id").is_some()
}

fn retry(line: &Value) -> String {
    let number = |pointer: &str| count_at(line, pointer).map_or_else(|| "?".to_owned(), |count| count.to_string());
    let reason = count_at(line, "/error_status").map(|status| format!(" (status {status})")).unwrap_or_default();
    format!("The model did not answer{reason}, attempt {} of {}", number("/attempt"), number("/max_retries"))
}

/// The content of a tool's result: text, or blocks of it.
fn output(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| text_at(block, "/text")).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn failure(line: &Value) -> String {
    let errors: Vec<&str> = list_at(line, "/errors").iter().filter_map(Value::as_str).collect();
    if let Some(words) = text_at(line, "/result").or_else(|| text_at(line, "/error/message")) {
        return plain_words(words);
    }
    match text_at(line, "/subtype") {
        Some("error_max_turns") => "the program took as many steps as it may".into(),
        _ if !errors.is_empty() => errors.join("; "),
        Some(subtype) => format!("the program failed: {subtype}"),
        None => "the program failed and gave no reason".into(),
    }
}
