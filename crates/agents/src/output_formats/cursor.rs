//! The output of Cursor's agent: Claude Code's format, with tools on separate lines.

use crate::lenient_json::Object;
use crate::output_formats::arguments::{flag, last_argument, strings, with_instructions};
use crate::output_formats::claude::ClaudeCode;
use crate::output_formats::error_text::error_text;
use crate::output_formats::one_shot::OutputFormat;
use crate::output_formats::tool_call_ids::ToolCallIds;
use crate::prompt::{Approve, Prompt};
use crate::update::Update;

pub fn arguments(prompt: &Prompt) -> Vec<String> {
    let mut arguments = strings(&["--print", "--output-format", "stream-json"]);
    // Without this flag the program proposes changes and does not make them.
    if prompt.approve == Approve::All {
        arguments.push("-f".to_owned());
    }
    arguments.extend(flag("model", prompt.model.as_ref()));
    arguments.extend(flag("resume", prompt.session.as_ref()));
    arguments.extend(positional(prompt));
    arguments
}

/// The positional arguments.
pub(super) fn positional(prompt: &Prompt) -> Vec<String> {
    last_argument(with_instructions(prompt))
}

pub struct Cursor {
    messages: ClaudeCode,
    calls: ToolCallIds,
}

impl Cursor {
    pub fn new(prompt: &Prompt) -> Self {
        Self { messages: ClaudeCode::new(prompt), calls: ToolCallIds::default() }
    }
}

impl OutputFormat for Cursor {
    fn read(&mut self, line: &Object) -> Vec<Update> {
        match line.kind().as_str() {
            "tool_call" => self.tool(line),
            "thinking" => line.non_empty_text("text").map(Update::Thought).into_iter().collect(),
            _ => self.messages.read(line),
        }
    }
}

impl Cursor {
    fn tool(&mut self, line: &Object) -> Vec<Update> {
        let tool_call = line.object("tool_call");
        // The one member is named after the tool: `readToolCall`.
        let Some(member) = tool_call.names().find(|name| name.ends_with("ToolCall") || *name == "function") else {
            return vec![];
        };
        let call = tool_call.object(member);
        let name = call.non_empty_text("name").unwrap_or_else(|| member.trim_end_matches("ToolCall").to_owned());
        match line.text("subtype").as_deref() {
            Some("started") => vec![Update::ToolUse {
                id: self.calls.open(line.id("call_id")),
                name,
                input: call.json("args").or_else(|| call.json("arguments")),
            }],
            Some("completed") => self.completed(line.id("call_id"), name, &call),
            _ => vec![],
        }
    }

    fn completed(&mut self, id: Option<String>, name: String, call: &Object) -> Vec<Update> {
        let result = call.object("result");
        let success = result.object("success");
        let is_error = call.has("result") && !result.has("success");
        let path = success.non_empty_text("path").filter(|_| matches!(name.as_str(), "write" | "edit"));
        let output = success
            .non_empty_text("content")
            .or_else(|| success.non_empty_text("stdout"))
            .or_else(|| error_text(&result));
        // Each tool has its own result format; an unknown one is shown as JSON.
        let output = output.or_else(|| call.json("result").map(|json| json.as_str().to_owned()));
        let result = Update::ToolResult {
            id: self.calls.close(id),
            name: Some(name),
            output: output.unwrap_or_default(),
            is_error,
        };
        [result].into_iter().chain(path.map(Update::File)).collect()
    }
}
