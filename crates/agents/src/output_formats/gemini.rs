//! The output of Gemini CLI: messages in pieces, tools by their id, and one result at the end.

use crate::lenient_json::Object;
use crate::output_formats::arguments::{flag, strings};
use crate::output_formats::error_text::error_text;
use crate::output_formats::one_shot::OutputFormat;
use crate::output_formats::tool_call_ids::ToolCallIds;
use crate::prompt::{Approve, Prompt};
use crate::update::{TurnUsage, Update};

/// The prompt goes to its standard input.
pub fn arguments(prompt: &Prompt) -> Vec<String> {
    let mut arguments = strings(&["--output-format=stream-json"]);
    arguments.extend(flag("model", prompt.model.as_ref()));
    arguments.extend(flag("resume", prompt.session.as_ref()));
    arguments.push(match prompt.approve {
        Approve::All => "--approval-mode=yolo".to_owned(),
        // The model does not get tools that need permission.
        Approve::Ask | Approve::None => "--approval-mode=default".to_owned(),
    });
    arguments
}

#[derive(Default)]
pub struct Gemini {
    calls: ToolCallIds,
}

impl Gemini {
    pub fn new() -> Self {
        Self::default()
    }
}

impl OutputFormat for Gemini {
    fn read(&mut self, line: &Object) -> Vec<Update> {
        match line.kind().as_str() {
            "init" => vec![Update::Init { session: line.id("session_id"), model: line.non_empty_text("model") }],
            "message" if line.text("role").as_deref() == Some("assistant") => {
                line.non_empty_text("content").map(Update::Text).into_iter().collect()
            }
            "tool_use" => vec![Update::ToolUse {
                id: self.calls.open(line.id("tool_id")),
                name: line.non_empty_text("tool_name").unwrap_or_else(|| "tool".to_owned()),
                input: line.json("parameters"),
            }],
            // Gemini reports a failed command as a success: the tool itself has worked.
            "tool_result" => vec![Update::ToolResult {
                id: self.calls.close(line.id("tool_id")),
                name: None,
                output: line.non_empty_text("output").or_else(|| error_text(line)).unwrap_or_default(),
                is_error: line.text("status").as_deref() == Some("error"),
            }],
            // Errors that end the turn come in its result.
            "error" => error_text(line).map(Update::Progress).into_iter().collect(),
            "result" => result(line),
            _ => vec![],
        }
    }
}

fn result(line: &Object) -> Vec<Update> {
    let mut updates = vec![];
    if line.has("stats") {
        let stats = line.object("stats");
        updates.push(Update::Usage(TurnUsage {
            input_tokens: stats.count("input_tokens"),
            output_tokens: stats.count("output_tokens"),
            cost: None,
        }));
    }
    updates.push(match line.text("status").as_deref() {
        Some("success") => Update::Done { summary: None },
        _ => Update::Failed(error_text(line).unwrap_or_else(|| "it ended with an error".to_owned())),
    });
    updates
}
