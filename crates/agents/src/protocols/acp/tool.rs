//! The tool calls of a turn, assembled from several messages.
//!
//! A program may announce a tool before its input is known, repeat it with more details, or announce nothing before it asks
//! for permission. A tool is reported once, as soon as its input is known or it runs.

use sabir_model::Json;
use serde_json::json;

use crate::lenient_json::{Object, normalized};
use crate::update::Update;

#[derive(Debug, Default)]
pub(super) struct Tools(Vec<Tool>);

#[derive(Debug, Default)]
pub(super) struct Tool {
    id: String,
    pub(super) name: String,
    pub(super) kind: Option<String>,
    pub(super) title: Option<String>,
    pub(super) input: Option<Json>,
    /// Output that arrived while the tool ran, for programs that do not repeat it at the end.
    streamed: String,
    stage: Stage,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Announced,
    Published,
    Ended,
}

impl Tools {
    /// A `tool_call` or `tool_call_update`.
    pub(super) fn note(&mut self, update: &Object) -> Vec<Update> {
        let Some(tool) = self.merge(update) else { return Vec::new() };
        let status = update.non_empty_text("status");
        let status = status.as_deref();
        let mut updates = Vec::new();
        let has_ended = matches!(status, Some("completed" | "failed"));
        if has_ended || status == Some("in_progress") || tool.knows_its_input() {
            updates.extend(tool.report());
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
                updates.extend(changed(update).into_iter().map(Update::File));
            }
        }
        updates
    }

    /// The tool of a request for permission, and the update that reports it, unless it was reported before.
    pub(super) fn asked_for(&mut self, call: &Object) -> Option<(&Tool, Option<Update>)> {
        let tool = self.merge(call)?;
        let update = tool.report();
        Some((tool, update))
    }

    /// Whether the tool of this message is known.
    pub(super) fn knows(&self, message: &Object) -> bool {
        message.non_empty_text("toolCallId").is_some_and(|id| self.0.iter().any(|tool| tool.id == id))
    }

    fn merge(&mut self, message: &Object) -> Option<&mut Tool> {
        let id = message.non_empty_text("toolCallId")?;
        let known = self.0.iter().position(|tool| tool.id == id);
        let index = known.unwrap_or_else(|| {
            self.0.push(Tool { id, name: first_name(message), ..Tool::default() });
            self.0.len() - 1
        });
        let tool = &mut self.0[index];
        if let Some(name) = own_name(message) {
            tool.name = name;
        }
        tool.kind = message.non_empty_text("kind").or(tool.kind.take());
        tool.title = message.non_empty_text("title").or(tool.title.take());
        tool.input = message.normalized("rawInput").or(tool.input.take());
        tool.streamed.push_str(&message.at("_meta/terminal_output_delta").non_empty_text("data").unwrap_or_default());
        Some(tool)
    }
}

impl Tool {
    fn knows_its_input(&self) -> bool {
        // Opencode fills in where a command will run before it knows the command.
        let is_place_only =
            |input: &Json| Object::parse(input.as_str()).is_some_and(|input| input.names().all(|name| name == "cwd"));
        self.input.as_ref().is_some_and(|input| !is_place_only(input))
    }

    fn report(&mut self) -> Option<Update> {
        if self.stage != Stage::Announced {
            return None;
        }
        self.stage = Stage::Published;
        // Gemini sends no input; its title describes the call.
        let title = self.title.as_ref().filter(|title| **title != self.name).map(|title| json!({"title": title}));
        let input = self.input.clone().or_else(|| title.and_then(|title| normalized(&title)));
        Some(Update::ToolUse { id: self.id.clone(), name: self.name.clone(), input })
    }
}

/// Where programs put the tool's name: a path of objects, and the member.
const NAMES: [(&str, &str); 5] = [
    ("", "name"),
    ("_meta/claudeCode", "toolName"),
    ("_meta/goose/toolCall", "toolName"),
    ("_meta", "toolName"),
    ("_meta", "tool_name"),
];

/// Where programs put the exit code of a command.
const EXIT_CODES: [(&str, &str); 4] = [
    ("_meta/terminal_exit", "exit_code"),
    ("rawOutput", "exit_code"),
    ("rawOutput", "exitCode"),
    ("rawOutput/metadata", "exit"),
];

fn own_name(message: &Object) -> Option<String> {
    NAMES.iter().find_map(|(path, name)| message.at(path).non_empty_text(name))
}

/// The best name that the first message has: opencode's first title is a name, other titles are sentences or commands.
fn first_name(message: &Object) -> String {
    let title = message.non_empty_text("title");
    let is_word = |title: &String| title.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'));
    let name = title.clone().filter(is_word).or_else(|| message.non_empty_text("kind")).or(title);
    name.unwrap_or_else(|| "tool".to_owned())
}

/// The output of the tool: its plain text if there is one, else the text for a screen.
fn output(update: &Object) -> Option<String> {
    if let Some(text) = update.non_empty_text("rawOutput") {
        return Some(text);
    }
    let content = update.objects("content");
    let texts: Vec<String> =
        content.iter().filter_map(|block| block.object("content").non_empty_text("text")).collect();
    if !texts.is_empty() {
        return Some(texts.join("\n"));
    }
    let raw = update.object("rawOutput");
    let raw =
        ["content", "output", "stdout", "text", "message", "error"].iter().find_map(|name| raw.non_empty_text(name));
    raw.or_else(|| {
        let paths = changed(update);
        (!paths.is_empty()).then(|| paths.join("\n"))
    })
}

/// The files that the tool has changed.
fn changed(update: &Object) -> Vec<String> {
    let content = update.objects("content");
    content.iter().filter(|block| block.kind() == "diff").filter_map(|block| block.non_empty_text("path")).collect()
}

fn exit_code(update: &Object) -> Option<u64> {
    EXIT_CODES.iter().find_map(|(path, name)| update.at(path).integer(name))
}

/// The entries of a plan in one line.
pub(super) fn plan(update: &Object) -> Option<String> {
    let entry = |entry: &Object| {
        let content = entry.non_empty_text("content")?;
        Some(match entry.non_empty_text("status").as_deref() {
            Some("completed") => format!("{content} (done)"),
            Some("in_progress") => format!("{content} (in progress)"),
            _ => content,
        })
    };
    let entries: Vec<String> = update.objects("entries").iter().filter_map(entry).collect();
    (!entries.is_empty()).then(|| format!("Plan: {}", entries.join("; ")))
}

/// The command in an input, which a question shows first.
pub(super) fn command(input: &Object) -> Option<String> {
    let words = || input.is_list("command").then(|| input.texts("command").join(" "));
    input.text("command").or_else(words)
}

/// What the tool works on: a file, or an address.
pub(super) fn target(input: &Object) -> Option<String> {
    ["path", "file_path", "filePath", "filepath", "fileName", "url"].iter().find_map(|name| input.non_empty_text(name))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn updates(lines: &[Value]) -> Vec<String> {
        let mut tools = Tools::default();
        let updates = lines.iter().flat_map(|line| tools.note(&Object::of(line)));
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
        assert_eq!(updates(&lines), [r#"Bash Some({"command":"ls"})"#, "a\nb false"]);
        assert_eq!(updates(&[announced]), Vec::<String>::new());
    }

    #[test]
    fn a_tool_that_was_never_announced() {
        let done = json!({"toolCallId": "1", "title": "ls -l", "kind": "execute", "status": "failed"});
        assert_eq!(updates(&[done]), [r#"execute Some({"title":"ls -l"})"#, " true"]);
    }

    #[test]
    fn a_command_that_fails_is_an_error_even_if_its_tool_is_not() {
        let lines = [json!({"toolCallId": "1", "status": "completed", "_meta": {
            "terminal_output_delta": {"data": "oh"}, "terminal_exit": {"exit_code": 3}}})];
        assert_eq!(updates(&lines), ["tool None", "oh true"]);
    }

    #[test]
    fn files_that_were_changed_are_told_of() {
        let done =
            |status: &str| json!({"toolCallId": "1", "status": status, "content": [{"type": "diff", "path": "a.txt"}]});
        assert_eq!(updates(&[done("completed")]), ["tool None", "a.txt false", "file a.txt"]);
        assert_eq!(updates(&[done("failed")]), ["tool None", "a.txt true"]);
    }

    #[test]
    fn a_plan_in_one_line() {
        let update = json!({"entries": [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"},
            {"content": "c", "status": "pending"}, {}]});
        assert_eq!(plan(&Object::of(&update)).as_deref(), Some("Plan: a (done); b (in progress); c"));
        assert_eq!(plan(&Object::of(&json!({"entries": []}))), None);
    }
}
