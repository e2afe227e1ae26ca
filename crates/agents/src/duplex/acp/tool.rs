//! The tools of a turn, put together from what is said of them piece by piece.
//!
//! A program may announce a tool before it knows its input, repeat it with more, or say nothing before it asks for
//! leave. A tool is told once, as soon as its input is known or it runs.

use serde_json::{Value, json};

use crate::duplex::reading::{carried, count_at, list_at, owned_text_at, text_at};
use crate::update::Update;

#[derive(Debug, Default)]
pub(super) struct Tools(Vec<Tool>);

#[derive(Debug, Default)]
pub(super) struct Tool {
    id: String,
    pub(super) name: String,
    pub(super) kind: Option<String>,
    pub(super) title: Option<String>,
    pub(super) input: Value,
    /// Output as it came while it ran, in programs that repeat none of it at the end.
    streamed: String,
    stage: Stage,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Announced,
    Told,
    Ended,
}

impl Tools {
    /// A `tool_call` or `tool_call_update`.
    pub(super) fn note(&mut self, update: &Value) -> Vec<Update> {
        let Some(tool) = self.merge(update) else { return Vec::new() };
        let status = text_at(update, "/status");
        let mut updates = Vec::new();
        let has_ended = matches!(status, Some("completed" | "failed"));
        if has_ended || status == Some("in_progress") || tool.knows_its_input() {
            updates.extend(tool.tell());
        }
        if has_ended && tool.stage != Stage::Ended {
            tool.stage = Stage::Ended;
            let is_error = status == Some("failed") || exit_code(update).is_some_and(|code| code != 0);
            updates.push(Update::ToolResult {
                id: tool.id.clone(),
                name: Some(tool.name.clone()),
                output: output(update).unwrap_or_else(|| std::mem::take(&mut tool.streamed)),
                is_error,
            });
            if !is_error {
                updates.extend(changed(update).into_iter().map(|path| Update::File(path.to_owned())));
            }
        }
        updates
    }

    /// The `toolCall` of a request for leave, and what was known of it before.
    pub(super) fn asked_for(&mut self, call: &Value) -> Option<(&Tool, Option<Update>)> {
        let tool = self.merge(call)?;
        let told = tool.tell();
        Some((tool, told))
    }

    fn merge(&mut self, said: &Value) -> Option<&mut Tool> {
        let id = text_at(said, "/toolCallId")?;
        let index = self.0.iter().position(|tool| tool.id == id).unwrap_or_else(|| {
            self.0.push(Tool { id: id.to_owned(), name: first_name(said), ..Tool::default() });
            self.0.len() - 1
        });
        let tool = &mut self.0[index];
        if let Some(name) = own_name(said) {
            tool.name = name.to_owned();
        }
        tool.kind = owned_text_at(said, "/kind").or(tool.kind.take());
        tool.title = owned_text_at(said, "/title").or(tool.title.take());
        if let Some(input) = said.get("rawInput").filter(|input| carried(input).is_some()) {
            tool.input = input.clone();
        }
        tool.streamed.push_str(text_at(said, "/_meta/terminal_output_delta/data").unwrap_or_default());
        Some(tool)
    }
}

impl Tool {
    fn knows_its_input(&self) -> bool {
        // Opencode fills in where a command will run before it knows the command.
        let is_place_only = self.input.as_object().is_some_and(|input| input.keys().all(|name| name == "cwd"));
        !self.input.is_null() && !is_place_only
    }

    fn tell(&mut self) -> Option<Update> {
        if self.stage != Stage::Announced {
            return None;
        }
        self.stage = Stage::Told;
        // Gemini gives no input; its title says what will be done.
        let title = self.title.as_ref().filter(|title| **title != self.name).map(|title| json!({"title": title}));
        let input = carried(&self.input).or_else(|| title.and_then(|title| carried(&title)));
        Some(Update::ToolUse { id: self.id.clone(), name: self.name.clone(), input })
    }
}

/// The tool's name where the program gives it, each in its own place.
fn own_name(said: &Value) -> Option<&str> {
    ["/name", "/_meta/claudeCode/toolName", "/_meta/goose/toolCall/toolName", "/_meta/toolName", "/_meta/tool_name"]
        .iter()
        .find_map(|pointer| text_at(said, pointer))
}

/// The best name at first sight: opencode's first title is one, other titles are sentences or commands.
fn first_name(said: &Value) -> String {
    let title = text_at(said, "/title");
    let is_word = |title: &&str| title.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'));
    let name = title.filter(is_word).or_else(|| text_at(said, "/kind")).or(title).unwrap_or("tool");
    name.to_owned()
}

/// What the tool has put out: the plain text of it before the text that was made for a screen.
fn output(update: &Value) -> Option<String> {
    if let Some(text) = text_at(update, "/rawOutput") {
        return Some(text.to_owned());
    }
    let content = list_at(update, "/content");
    let texts: Vec<&str> = content.iter().filter_map(|block| text_at(block, "/content/text")).collect();
    if !texts.is_empty() {
        return Some(texts.join("\n"));
    }
    let raw = ["/content", "/output", "/stdout", "/text", "/message", "/error"];
    let raw = update.get("rawOutput").and_then(|output| raw.iter().find_map(|pointer| text_at(output, pointer)));
    raw.map(str::to_owned).or_else(|| {
        let paths = changed(update);
        (!paths.is_empty()).then(|| paths.join("\n"))
    })
}

/// The files that the tool has changed.
fn changed(update: &Value) -> Vec<&str> {
    let is_diff = |block: &&Value| text_at(block, "/type") == Some("diff");
    list_at(update, "/content").iter().filter(is_diff).filter_map(|block| text_at(block, "/path")).collect()
}

fn exit_code(update: &Value) -> Option<u64> {
    ["/_meta/terminal_exit/exit_code", "/rawOutput/exit_code", "/rawOutput/exitCode", "/rawOutput/metadata/exit"]
        .iter()
        .find_map(|pointer| count_at(update, pointer))
}

/// The entries of a plan in one line.
pub(super) fn plan(update: &Value) -> Option<String> {
    let entry = |entry: &Value| {
        let content = text_at(entry, "/content")?;
        Some(match text_at(entry, "/status") {
            Some("completed") => format!("{content} (done)"),
            Some("in_progress") => format!("{content} (in progress)"),
            _ => content.to_owned(),
        })
    };
    let entries: Vec<String> = list_at(update, "/entries").iter().filter_map(entry).collect();
    (!entries.is_empty()).then(|| format!("Plan: {}", entries.join("; ")))
}

/// For questions: what the input says that a person wants to see first.
pub(super) fn command(input: &Value) -> Option<String> {
    match input.get("command")? {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        _ => None,
    }
}

/// What the tool works on: a file, or an address.
pub(super) fn target(input: &Value) -> Option<&str> {
    ["/path", "/file_path", "/filePath", "/filepath", "/fileName", "/url"]
        .iter()
        .find_map(|pointer| text_at(input, pointer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[Value]) -> Vec<String> {
        let mut tools = Tools::default();
        let updates = lines.iter().flat_map(|line| tools.note(line));
        updates
            .map(|update| match update {
                Update::ToolUse { name, input, .. } => format!("{name} {input:?}"),
                Update::ToolResult { output, is_error, .. } => format!("{output} {is_error}"),
                Update::File(path) => format!("file {path}"),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_tool_is_told_once_when_its_input_is_known() {
        let announced = json!({"toolCallId": "1", "name": "Bash", "status": "pending", "rawInput": {}});
        let filled = json!({"toolCallId": "1", "rawInput": {"command": "ls"}});
        let done = json!({"toolCallId": "1", "status": "completed", "rawOutput": "a\nb"});
        let lines = [announced.clone(), filled.clone(), filled, done.clone(), done];
        assert_eq!(told(&lines), [r#"Bash Some({"command":"ls"})"#, "a\nb false"]);
        assert_eq!(told(&[announced]), Vec::<String>::new());
    }

    #[test]
    fn a_tool_that_was_never_announced() {
        let done = json!({"toolCallId": "1", "title": "ls -l", "kind": "execute", "status": "failed"});
        assert_eq!(told(&[done]), [r#"execute Some({"title":"ls -l"})"#, " true"]);
    }

    #[test]
    fn a_command_that_fails_is_an_error_even_if_its_tool_is_not() {
        let lines = [json!({"toolCallId": "1", "status": "completed", "_meta": {
            "terminal_output_delta": {"data": "oh"}, "terminal_exit": {"exit_code": 3}}})];
        assert_eq!(told(&lines), ["tool None", "oh true"]);
    }

    #[test]
    fn files_that_were_changed_are_told_of() {
        let done =
            |status: &str| json!({"toolCallId": "1", "status": status, "content": [{"type": "diff", "path": "a.txt"}]});
        assert_eq!(told(&[done("completed")]), ["tool None", "a.txt false", "file a.txt"]);
        assert_eq!(told(&[done("failed")]), ["tool None", "a.txt true"]);
    }

    #[test]
    fn a_plan_in_one_line() {
        let update = json!({"entries": [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"},
            {"content": "c", "status": "pending"}, {}]});
        assert_eq!(plan(&update).as_deref(), Some("Plan: a (done); b (in progress); c"));
        assert_eq!(plan(&json!({"entries": []})), None);
    }
}
