//! The output of goose: a banner, messages in pieces, and `complete`.

use crate::lenient_json::Object;
use crate::output_formats::arguments::{flag, strings};
use crate::output_formats::error_text::error_text;
use crate::output_formats::one_shot::OutputFormat;
use crate::output_formats::tool_call_ids::ToolCallIds;
use crate::prompt::Prompt;
use crate::update::{TurnUsage, Update};

/// Its model and its approvals are set by the environment; the prompt goes to its standard input.
pub fn arguments(prompt: &Prompt) -> Vec<String> {
    let mut arguments = strings(&["run", "--output-format=stream-json"]);
    if let Some(session) = flag("session-id", prompt.session.as_ref()) {
        arguments.extend(["--resume".to_owned(), session]);
    }
    arguments.extend(flag("system", prompt.instructions.as_ref()));
    arguments.push("--instructions=-".to_owned());
    arguments
}

/// goose reports an error of the model as text of the model that begins and ends like this.
const ERROR_START: &str = "Ran into this error: ";
const ERROR_END: &str = "Please retry if you think this is a transient or recoverable error.";

pub struct Goose {
    is_resumed: bool,
    is_known: bool,
    calls: ToolCallIds,
    /// An error of the model, which ends the run unless something follows.
    error: Option<String>,
}

impl Goose {
    pub fn new(prompt: &Prompt) -> Self {
        Self { is_resumed: prompt.session.is_some(), is_known: false, calls: ToolCallIds::default(), error: None }
    }
}

impl OutputFormat for Goose {
    fn read(&mut self, line: &Object) -> Vec<Update> {
        match line.kind().as_str() {
            "message" => self.message(&line.object("message")),
            "error" => vec![Update::Failed(error_text(line).unwrap_or_else(|| "it failed".to_owned()))],
            "complete" => self.complete(line),
            _ => vec![],
        }
    }

    /// The banner is the only place where it names its session: `20261115_3 · /workspace`.
    fn read_plain(&mut self, line: &str) -> Vec<Update> {
        let session = line.split_whitespace().find(|word| is_session(word));
        match session {
            Some(session) if !self.is_known => {
                self.is_known = true;
                vec![Update::Init { session: Some(session.to_owned()), model: None }]
            }
            // Before it has a session, it prints errors in plain text.
            _ => {
                let error_text = line.trim().strip_prefix("error: ").filter(|_| !self.is_known);
                error_text.map(|words| Update::Failed(words.to_owned())).into_iter().collect()
            }
        }
    }
}

impl Goose {
    fn message(&mut self, message: &Object) -> Vec<Update> {
        let mut updates: Vec<Update> = self.error.take().map(Update::Progress).into_iter().collect();
        let is_assistant = message.text("role").as_deref() == Some("assistant");
        for block in message.objects("content") {
            match block.kind().as_str() {
                "text" if is_assistant => {
                    let text = block.non_empty_text("text");
                    // Text of the model has an id; an error has none.
                    match text.as_deref().and_then(error_of).filter(|_| !message.has("id")) {
                        Some(error) => self.error = Some(error),
                        None => updates.extend(text.map(Update::Text)),
                    }
                }
                "thinking" if is_assistant => updates.extend(block.non_empty_text("thinking").map(Update::Thought)),
                "toolRequest" => updates.push(self.request(&block)),
                "toolResponse" => updates.push(self.response(&block)),
                _ => {}
            }
        }
        updates
    }

    fn request(&mut self, block: &Object) -> Update {
        let call = block.object("toolCall").object("value");
        Update::ToolUse {
            id: self.calls.open(block.id("id")),
            name: call.non_empty_text("name").unwrap_or_else(|| "tool".to_owned()),
            input: call.json("arguments"),
        }
    }

    fn response(&mut self, block: &Object) -> Update {
        let result = block.object("toolResult");
        let value = result.object("value");
        let has_failed = result.text("status").as_deref() == Some("error");
        Update::ToolResult {
            id: self.calls.close(block.id("id")),
            name: None,
            output: error_text(&result).unwrap_or_else(|| value.content("content")),
            is_error: has_failed || value.is_true("isError"),
        }
    }

    fn complete(&mut self, line: &Object) -> Vec<Update> {
        let mut updates = vec![];
        // It counts tokens over the whole session, so for a resumed one the usage of this turn is unknown.
        if line.has("input_tokens") && !self.is_resumed {
            updates.push(Update::Usage(TurnUsage {
                input_tokens: line.count("input_tokens"),
                output_tokens: line.count("output_tokens"),
                cost: None,
            }));
        }
        updates.push(self.error.take().map_or(Update::Done { summary: None }, Update::Failed));
        updates
    }
}

fn error_of(text: &str) -> Option<String> {
    let error = text.trim_end().strip_prefix(ERROR_START)?.strip_suffix(ERROR_END)?;
    Some(error.trim_end().to_owned())
}

/// A date and a number, such as `20261115_3`.
fn is_session(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once('_').is_some_and(|(date, number)| date.len() == 8 && is_number(date) && is_number(number))
}
