//! The items of a turn: messages, reasoning and tools.

use sabir_model::Json;
use serde_json::Value;

use crate::lenient_json::{Object, normalized};
use crate::update::Update;

/// Items that are tools. Other items repeat what notifications report.
const TOOLS: [&str; 8] = [
    "commandExecution",
    "fileChange",
    "mcpToolCall",
    "dynamicToolCall",
    "collabAgentToolCall",
    "webSearch",
    "imageView",
    "imageGeneration",
];

/// Members of an item that are its state, not its input.
const NOT_INPUT: [&str; 14] = [
    "id",
    "type",
    "status",
    "source",
    "pluginId",
    "processId",
    "aggregatedOutput",
    "exitCode",
    "durationMs",
    "startedAtMs",
    "completedAtMs",
    "result",
    "error",
    "commandActions",
];

#[derive(Default)]
pub(super) struct Items {
    /// Items whose text came in pieces and comes again as a whole.
    streamed: Vec<String>,
    /// Tools that run.
    running: Vec<Tool>,
}

/// What a question about a tool needs to know of it.
pub(super) struct Tool {
    id: String,
    /// The command of a `commandExecution`.
    pub(super) command: Option<String>,
    /// The files of a `fileChange`, and what is changed in them.
    pub(super) paths: Vec<String>,
    pub(super) changes: Option<Json>,
}

impl Items {
    pub(super) fn piece(&mut self, params: &Object, update: fn(String) -> Update) -> Option<Update> {
        let delta = params.non_empty_text("delta")?;
        let item = params.non_empty_text("itemId").unwrap_or_default();
        if !self.streamed.contains(&item) {
            self.streamed.push(item);
        }
        Some(update(delta))
    }

    pub(super) fn started(&mut self, item: &Object) -> Option<Update> {
        let kind = item.kind();
        if !TOOLS.contains(&kind.as_str()) {
            return None;
        }
        self.running.push(Tool {
            id: id(item),
            command: command_line(item),
            paths: paths(item),
            changes: item.normalized("changes"),
        });
        Some(tool_use(&kind, item))
    }

    pub(super) fn completed(&mut self, item: &Object) -> Vec<Update> {
        let is_told = self.streamed.contains(&id(item));
        match item.kind().as_str() {
            "agentMessage" if !is_told => item.non_empty_text("text").map(Update::Text).into_iter().collect(),
            "reasoning" if !is_told => item.texts("summary").into_iter().map(Update::Thought).collect(),
            kind if TOOLS.contains(&kind) => {
                let known = self.running.iter().position(|running| running.id == id(item));
                let update = match known {
                    Some(index) => {
                        self.running.remove(index);
                        None
                    }
                    None => Some(tool_use(kind, item)),
                };
                let is_done = item.non_empty_text("status").as_deref() == Some("completed");
                let files = if is_done { paths(item) } else { Vec::new() };
                update.into_iter().chain([result(kind, item)]).chain(files.into_iter().map(Update::File)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What is known of a tool that runs, or wants to.
    pub(super) fn running(&self, item: &str) -> Option<&Tool> {
        self.running.iter().find(|running| running.id == item)
    }
}

/// The command line as it will be executed, including the shell. The parsed form (`commandActions`) leaves out folders,
/// pipes and redirections.
pub(super) fn command_line(message: &Object) -> Option<String> {
    let line =
        if message.is_list("command") { Some(message.texts("command").join(" ")) } else { message.text("command") };
    line.filter(|line| !line.is_empty())
}

/// The files of a `fileChange`.
fn paths(item: &Object) -> Vec<String> {
    item.objects("changes").iter().filter_map(|change| change.non_empty_text("path")).collect()
}

fn id(item: &Object) -> String {
    item.non_empty_text("id").unwrap_or_default()
}

fn tool_use(kind: &str, item: &Object) -> Update {
    Update::ToolUse { id: id(item), name: name(kind, item), input: normalized(&input(item)) }
}

fn name(kind: &str, item: &Object) -> String {
    match (item.non_empty_text("server"), item.non_empty_text("tool")) {
        (Some(server), Some(tool)) => format!("{server}.{tool}"),
        (None, Some(tool)) => tool,
        _ => kind.to_owned(),
    }
}

fn input(item: &Object) -> Value {
    let names = item.names().filter(|name| !NOT_INPUT.contains(name));
    names.filter_map(|name| Some((name.to_owned(), item.parsed(name)?))).collect()
}

fn result(kind: &str, item: &Object) -> Update {
    let is_refused = matches!(item.non_empty_text("status").as_deref(), Some("failed" | "declined"));
    let output = match kind {
        "fileChange" => Some(paths(item).join("\n")),
        _ => {
            let error = || item.object("error").non_empty_text("message");
            item.non_empty_text("aggregatedOutput").or_else(error).or_else(|| item.non_empty_text("result"))
        }
    };
    let texts = || {
        let blocks = [item.object("result").objects("content"), item.objects("contentItems")].concat();
        blocks.iter().filter_map(|block| block.non_empty_text("text")).collect::<Vec<_>>().join("\n")
    };
    Update::ToolResult {
        id: id(item),
        name: Some(name(kind, item)),
        output: output.unwrap_or_else(texts),
        is_error: is_refused || item.integer("exitCode").is_some_and(|code| code != 0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_told_by_what_they_are() {
        for (item, tool, expected) in [
            (
                json!({"type": "fileChange", "id": "1", "status": "completed", "changes": [{"path": "a"}, {"path": "b"}]}),
                r#"fileChange {"changes":[{"path":"a"},{"path":"b"}]}"#,
                "a\nb false",
            ),
            (
                json!({"type": "mcpToolCall", "id": "1", "server": "s", "tool": "t", "arguments": {"x": 1}, "status": "failed",
                    "error": {"message": "no"}}),
                r#"s.t {"arguments":{"x":1},"server":"s","tool":"t"}"#,
                "no true",
            ),
            (
                json!({"type": "mcpToolCall", "id": "1", "tool": "t", "result": {"content": [{"text": "x"}, {"text": "y"}]}}),
                r#"t {"tool":"t"}"#,
                "x\ny false",
            ),
            (
                json!({"type": "commandExecution", "id": "1", "command": "ls", "exitCode": 2, "aggregatedOutput": "oh"}),
                r#"commandExecution {"command":"ls"}"#,
                "oh true",
            ),
        ] {
            let item = Object::of(&item);
            let update = Items::default().completed(&item);
            let [Update::ToolUse { name, input, .. }, Update::ToolResult { output, is_error, .. }, files @ ..] =
                &update[..]
            else {
                panic!("{update:?}")
            };
            let changed: Vec<Update> = paths(&item).into_iter().map(Update::File).collect();
            assert_eq!(files, changed);
            assert_eq!(format!("{name} {}", input.as_ref().unwrap().as_str()), tool);
            assert_eq!(format!("{output} {is_error}"), expected);
        }
    }

    #[test]
    fn text_that_came_in_pieces_is_not_told_again() {
        let mut items = Items::default();
        let whole = Object::of(&json!({"type": "agentMessage", "id": "m", "text": "ab"}));
        assert_eq!(items.completed(&whole), [Update::Text("ab".into())]);
        assert!(items.piece(&Object::of(&json!({"itemId": "m", "delta": "a"})), Update::Text).is_some());
        assert_eq!(items.completed(&whole), []);
    }
}
