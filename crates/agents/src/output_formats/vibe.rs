//! The output of Mistral Vibe: one line for each finished entry of the conversation. Its exit status, not a line, ends the
//! turn.

use crate::adapter::Exit;
use crate::lenient_json::Object;
use crate::output_formats::arguments::{flag, strings, with_instructions};
use crate::output_formats::error_text::error_text;
use crate::output_formats::one_shot::OutputFormat;
use crate::output_formats::tool_call_ids::ToolCallIds;
use crate::prompt::{Approve, Prompt};
use crate::update::Update;

/// Its model is set by the environment.
pub fn arguments(prompt: &Prompt) -> Vec<String> {
    // Trust concerns the folder: without it Vibe reads nothing there. Permissions are a separate setting.
    let mut arguments = strings(&["--trust", "--output=streaming"]);
    arguments.extend(flag("resume", prompt.session.as_ref()));
    arguments.push(match prompt.approve {
        Approve::All => "--auto-approve".to_owned(),
        // It denies what it cannot ask for, and continues.
        Approve::Ask | Approve::None => "--agent=ask".to_owned(),
    });
    arguments.extend(flag("prompt", Some(&with_instructions(prompt))));
    arguments
}

#[derive(Default)]
pub struct Vibe {
    is_known: bool,
    calls: ToolCallIds,
}

impl Vibe {
    pub fn new() -> Self {
        Self::default()
    }
}

impl OutputFormat for Vibe {
    fn read(&mut self, line: &Object) -> Vec<Update> {
        let mut updates = vec![];
        if let (false, Some(session)) = (self.is_known, line.id("sessionId")) {
            self.is_known = true;
            updates.push(Update::Init { session: Some(session), model: None });
        }
        match line.kind().as_str() {
            "message" if line.text("role").as_deref() == Some("assistant") => {
                let text = line.content("content");
                updates.extend((!text.is_empty()).then_some(Update::Text(text)));
            }
            "reasoning" => updates.extend(line.non_empty_text("text").map(Update::Thought)),
            "effect" => updates.extend(self.tool(line)),
            "callback" if line.object("detail").text("kind").as_deref() == Some("approval") => {
                let name = line.object("detail").object("effect").non_empty_text("toolName");
                let name = name.unwrap_or_else(|| "a tool".to_owned());
                updates.push(Update::Progress(format!("{name} needs permission, and nobody can be asked")));
            }
            _ => {}
        }
        updates
    }

    fn on_exit(&mut self, exit: &Exit) -> Option<Update> {
        (*exit == Exit::Code(0)).then_some(Update::Done { summary: None })
    }
}

impl Vibe {
    /// Tools are reported once, when they have ended.
    fn tool(&mut self, line: &Object) -> Vec<Update> {
        let (detail, state) = (line.object("detail"), line.object("state"));
        let id = self.calls.at_once(line.id("id"));
        let name = detail
            .non_empty_text("toolName")
            .or_else(|| line.non_empty_text("title"))
            .unwrap_or_else(|| "tool".to_owned());
        let is_error = state.text("status").as_deref() == Some("failed") || state.has("error");
        let output = state.non_empty_text("outputText").or_else(|| error_text(&state)).unwrap_or_default();
        let mut updates = vec![
            Update::ToolUse { id: id.clone(), name: name.clone(), input: detail.json("input") },
            Update::ToolResult { id, name: Some(name), output, is_error },
        ];
        let is_write = detail.text("kind").is_some_and(|kind| matches!(kind.as_str(), "file_write" | "file_edit"));
        if is_write && !is_error {
            updates.extend(state.object("output").non_empty_text("filePath").map(Update::File));
        }
        updates
    }
}
