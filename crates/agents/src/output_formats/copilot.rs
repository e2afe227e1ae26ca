//! The output of Copilot CLI: many events, of which only a few matter here.

use crate::adapter::Exit;
use crate::lenient_json::Object;
use crate::output_formats::arguments::{flag, strings, with_instructions};
use crate::output_formats::error_text::error_text;
use crate::output_formats::one_shot::OutputFormat;
use crate::output_formats::streamed_text::StreamedText;
use crate::output_formats::tool_call_ids::ToolCallIds;
use crate::prompt::{Approve, Prompt};
use crate::update::Update;

pub fn arguments(prompt: &Prompt) -> Vec<String> {
    let mut arguments = strings(&["--output-format=json"]);
    arguments.extend(flag("model", prompt.model.as_ref()));
    arguments.extend(flag("resume", prompt.session.as_ref()));
    // Without this flag the program denies what needs permission and continues.
    if prompt.approve == Approve::All {
        arguments.push("--allow-all-tools".to_owned());
    }
    arguments.extend(flag("prompt", Some(&with_instructions(prompt))));
    arguments
}

#[derive(Default)]
pub struct Copilot {
    model: Option<String>,
    text: StreamedText,
    thought: StreamedText,
    calls: ToolCallIds,
    last_error: Option<String>,
}

impl Copilot {
    pub fn new() -> Self {
        Self::default()
    }
}

impl OutputFormat for Copilot {
    fn read(&mut self, line: &Object) -> Vec<Update> {
        let data = line.object("data");
        match line.kind().as_str() {
            "session.tools_updated" => self.model(&data),
            "assistant.message_start" => {
                self.text.restart();
                vec![]
            }
            "assistant.message_delta" => {
                let text = data.non_empty_text("deltaContent");
                text.iter().for_each(|text| self.text.piece(text));
                text.map(Update::Text).into_iter().collect()
            }
            "assistant.reasoning_delta" => {
                let thought = data.non_empty_text("deltaContent");
                thought.iter().for_each(|thought| self.thought.piece(thought));
                thought.map(Update::Thought).into_iter().collect()
            }
            "assistant.message" => rest(&mut self.text, &data).map(Update::Text).into_iter().collect(),
            "assistant.reasoning" => rest(&mut self.thought, &data).map(Update::Thought).into_iter().collect(),
            "tool.execution_start" => vec![Update::ToolUse {
                id: self.calls.open(data.id("toolCallId")),
                name: data.non_empty_text("toolName").unwrap_or_else(|| "tool".to_owned()),
                input: data.json("arguments"),
            }],
            "tool.execution_complete" => self.completed(&data),
            "session.error" => {
                self.last_error = error_text(&data);
                self.last_error.clone().map(Update::Progress).into_iter().collect()
            }
            "result" => self.result(line),
            _ => vec![],
        }
    }

    fn on_exit(&mut self, exit: &Exit) -> Option<Update> {
        match exit {
            Exit::Code(0) | Exit::Signal(_) => None,
            Exit::Code(_) => self.last_error.take().map(Update::Failed),
        }
    }
}

impl Copilot {
    /// The event repeats whenever the tools change.
    fn model(&mut self, data: &Object) -> Vec<Update> {
        let model = data.non_empty_text("model");
        if model.is_none() || model == self.model {
            return vec![];
        }
        self.model.clone_from(&model);
        vec![Update::Init { session: None, model }]
    }

    fn completed(&mut self, data: &Object) -> Vec<Update> {
        let is_error = data.is_false("success") || data.has("error");
        let mut updates = vec![Update::ToolResult {
            id: self.calls.close(data.id("toolCallId")),
            name: data.non_empty_text("toolName"),
            output: data.object("result").non_empty_text("content").or_else(|| error_text(data)).unwrap_or_default(),
            is_error,
        }];
        if !is_error {
            updates.extend(
                data.objects("fileEdits").iter().filter_map(|edit| edit.non_empty_text("path")).map(Update::File),
            );
        }
        updates
    }

    /// Only the last line names the session.
    fn result(&mut self, line: &Object) -> Vec<Update> {
        let mut updates = vec![];
        if let Some(session) = line.id("sessionId") {
            updates.push(Update::Init { session: Some(session), model: self.model.clone() });
        }
        updates.push(if line.number("exitCode") == Some(0.0) {
            Update::Done { summary: None }
        } else {
            Update::Failed(self.last_error.take().unwrap_or_else(|| "it ended with an error".to_owned()))
        });
        updates
    }
}

fn rest(streamed: &mut StreamedText, data: &Object) -> Option<String> {
    let whole = data.text("content")?;
    Some(streamed.missing_part(&whole).to_owned()).filter(|rest| !rest.is_empty())
}
