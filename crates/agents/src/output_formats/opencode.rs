//! The output of opencode: finished parts of messages, and steps, each with its own tokens and cost.

use crate::adapter::Exit;
use crate::lenient_json::Object;
use crate::output_formats::arguments::{flag, strings};
use crate::output_formats::error_text::{error_text, without_provider_json};
use crate::output_formats::one_shot::OutputFormat;
use crate::output_formats::tool_call_ids::ToolCallIds;
use crate::prompt::{Approve, Prompt};
use crate::update::{TurnUsage, Update};

/// The prompt goes to its standard input.
pub fn arguments(prompt: &Prompt) -> Vec<String> {
    let mut arguments = strings(&["run", "--format=json", "--thinking"]);
    arguments.extend(flag("model", prompt.model.as_ref()));
    arguments.extend(flag("session", prompt.session.as_ref()));
    if prompt.approve == Approve::All {
        arguments.push("--auto".to_owned());
    }
    arguments
}

/// The variable that restricts opencode: it allows everything by default, and has no flag for this.
pub(super) fn permission(action: &str) -> (String, String) {
    ("OPENCODE_PERMISSION".to_owned(), format!(r#"{{"bash":"{action}","edit":"{action}"}}"#))
}

#[derive(Default)]
pub struct Opencode {
    is_known: bool,
    calls: ToolCallIds,
    spent: TurnUsage,
    /// Why the last step ended.
    last_reason: Option<String>,
    /// The error of the last tool.
    last_refusal: Option<String>,
}

impl Opencode {
    pub fn new() -> Self {
        Self::default()
    }
}

impl OutputFormat for Opencode {
    fn read(&mut self, line: &Object) -> Vec<Update> {
        let mut updates = vec![];
        // No line announces the session, so the first line with its id counts.
        if let (false, Some(session)) = (self.is_known, line.id("sessionID")) {
            self.is_known = true;
            updates.push(Update::Init { session: Some(session), model: None });
        }
        let part = line.object("part");
        match line.kind().as_str() {
            "text" => updates.extend(part.non_empty_text("text").map(Update::Text)),
            "reasoning" => updates.extend(part.non_empty_text("text").map(Update::Thought)),
            "tool_use" => updates.extend(self.tool(&part)),
            "step_finish" => updates.extend(self.step(&part)),
            "error" => updates.push(Update::Failed(why(&line.object("error")))),
            _ => {}
        }
        updates
    }

    fn on_exit(&mut self, exit: &Exit) -> Option<Update> {
        // A refused tool stops the run between two steps, with no line and exit status 0.
        let reason = self.last_reason.take().filter(|_| *exit == Exit::Code(0))?;
        let words = self.last_refusal.take().unwrap_or_else(|| format!("it stopped before it was done ({reason})"));
        Some(Update::Failed(words))
    }
}

impl Opencode {
    /// Tools are reported once, when they have ended.
    fn tool(&mut self, part: &Object) -> Vec<Update> {
        let state = part.object("state");
        let id = self.calls.at_once(part.id("callID"));
        let name = part.non_empty_text("tool").unwrap_or_else(|| "tool".to_owned());
        let has_failed = state.text("status").as_deref() == Some("error");
        let metadata = state.object("metadata");
        let output = if has_failed { state.content("error") } else { state.content("output") };
        self.last_refusal = has_failed.then(|| output.clone()).filter(|output| !output.is_empty());
        let mut updates = vec![
            Update::ToolUse { id: id.clone(), name: name.clone(), input: state.json("input") },
            Update::ToolResult {
                id,
                name: Some(name.clone()),
                output,
                is_error: has_failed || metadata.number("exit").is_some_and(|code| code != 0.0),
            },
        ];
        if !has_failed && matches!(name.as_str(), "write" | "edit") {
            updates.extend(state.object("input").non_empty_text("filePath").map(Update::File));
        }
        updates
    }

    fn step(&mut self, part: &Object) -> Vec<Update> {
        let tokens = part.object("tokens");
        let cache = tokens.object("cache");
        let spent = &mut self.spent;
        for input in [tokens.count("input"), cache.count("read"), cache.count("write")] {
            spent.input_tokens = spent.input_tokens.saturating_add(input);
        }
        for output in [tokens.count("output"), tokens.count("reasoning")] {
            spent.output_tokens = spent.output_tokens.saturating_add(output);
        }
        if let Some(cost) = part.number("cost") {
            spent.cost = Some(spent.cost.unwrap_or_default() + cost);
        }
        self.last_reason = part.non_empty_text("reason");
        let mut updates = vec![Update::Usage(spent.clone())];
        if self.last_reason.as_deref() == Some("stop") {
            updates.push(Update::Done { summary: None });
        }
        updates
    }
}

fn why(error: &Object) -> String {
    let message = error.object("data").non_empty_text("message").map(|message| without_provider_json(&message));
    message
        .or_else(|| error_text(error))
        .or_else(|| error.non_empty_text("name"))
        .unwrap_or_else(|| "it failed".to_owned())
}
