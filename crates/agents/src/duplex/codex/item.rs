//! The items of a turn: messages, reasoning and tools.

use serde_json::{Map, Value};

use crate::duplex::reading::{carried, count_at, list_at, owned_text_at, text_at};
use crate::update::Update;

/// Items that are tools; what else there is tells nothing that is not told otherwise.
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

/// Members of an item that say how it goes, not what it is.
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
    /// Items whose text came in pieces, and comes once more as a whole.
    streamed: Vec<String>,
    /// Tools that run, by their id.
    running: Vec<Value>,
}

impl Items {
    pub(super) fn piece(&mut self, params: &Value, update: fn(String) -> Update) -> Option<Update> {
        let delta = owned_text_at(params, "/delta")?;
        let item = owned_text_at(params, "/itemId").unwrap_or_default();
        if !self.streamed.contains(&item) {
            self.streamed.push(item);
        }
        Some(update(delta))
    }

    pub(super) fn started(&mut self, item: &Value) -> Option<Update> {
        let kind = text_at(item, "/type").filter(|kind| TOOLS.contains(kind))?;
        self.running.push(item.clone());
        Some(Update::ToolUse { id: id(item), name: name(kind, item), input: carried(&input(item)) })
    }

    pub(super) fn completed(&mut self, item: &Value) -> Vec<Update> {
        let is_told = self.streamed.contains(&id(item));
        match text_at(item, "/type").unwrap_or_default() {
            "agentMessage" if !is_told => owned_text_at(item, "/text").map(Update::Text).into_iter().collect(),
            "reasoning" if !is_told => {
                let parts = list_at(item, "/summary").iter().filter_map(Value::as_str);
                parts.map(|part| Update::Thought(part.to_owned())).collect()
            }
            kind if TOOLS.contains(&kind) => {
                let known = self.running.iter().position(|running| id(running) == id(item));
                let told = match known {
                    Some(index) => {
                        self.running.remove(index);
                        None
                    }
                    None => {
                        Some(Update::ToolUse { id: id(item), name: name(kind, item), input: carried(&input(item)) })
                    }
                };
                let is_done = text_at(item, "/status") == Some("completed");
                let files = if is_done { paths(item) } else { Vec::new() };
                let files = files.into_iter().map(|path| Update::File(path.to_owned()));
                told.into_iter().chain([result(kind, item)]).chain(files).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What is known of a tool that runs, or wants to.
    pub(super) fn running(&self, item: &str) -> Option<&Value> {
        self.running.iter().find(|running| id(running) == item)
    }
}

/// The files of a `fileChange`.
pub(super) fn paths(item: &Value) -> Vec<&str> {
    list_at(item, "/changes").iter().filter_map(|change| text_at(change, "/path")).collect()
}

/// A command as it will be executed, the shell around it included. What the program has parsed from it (`commandActions`)
/// leaves out folders, pipes and redirections.
pub(super) fn command_line(said: &Value) -> Option<String> {
    match said.get("command")? {
        Value::Array(words) => {
            Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")).filter(|line| !line.is_empty())
        }
        _ => owned_text_at(said, "/command"),
    }
}

fn id(item: &Value) -> String {
    owned_text_at(item, "/id").unwrap_or_default()
}

fn name(kind: &str, item: &Value) -> String {
    match (text_at(item, "/server"), text_at(item, "/tool")) {
        (Some(server), Some(tool)) => format!("{server}.{tool}"),
        (None, Some(tool)) => tool.to_owned(),
        _ => kind.to_owned(),
    }
}

fn input(item: &Value) -> Value {
    let members = item.as_object().into_iter().flatten();
    let is_input = |name: &str, value: &Value| !value.is_null() && !NOT_INPUT.contains(&name);
    let input: Map<String, Value> = members
        .filter(|(name, value)| is_input(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Value::Object(input)
}

fn result(kind: &str, item: &Value) -> Update {
    let is_refused = matches!(text_at(item, "/status"), Some("failed" | "declined"));
    let output = match kind {
        "fileChange" => Some(paths(item).join("\n")),
        _ => ["/aggregatedOutput", "/error/message", "/result"].iter().find_map(|pointer| owned_text_at(item, pointer)),
    };
    let texts = || {
        let blocks = list_at(item, "/result/content").iter().chain(list_at(item, "/contentItems"));
        blocks.filter_map(|block| text_at(block, "/text")).collect::<Vec<_>>().join("\n")
    };
    Update::ToolResult {
        id: id(item),
        name: Some(name(kind, item)),
        output: output.unwrap_or_else(texts),
        is_error: is_refused || count_at(item, "/exitCode").is_some_and(|code| code != 0),
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
            let told = Items::default().completed(&item);
            let [Update::ToolUse { name, input, .. }, Update::ToolResult { output, is_error, .. }, files @ ..] =
                &told[..]
            else {
                panic!("{told:?}")
            };
            let changed: Vec<Update> = paths(&item).iter().map(|path| Update::File((*path).to_owned())).collect();
            assert_eq!(files, changed);
            assert_eq!(format!("{name} {}", input.as_ref().unwrap().as_str()), tool);
            assert_eq!(format!("{output} {is_error}"), expected);
        }
    }

    #[test]
    fn text_that_came_in_pieces_is_not_told_again() {
        let mut items = Items::default();
        let whole = json!({"type": "agentMessage", "id": "m", "text": "ab"});
        assert_eq!(items.completed(&whole), [Update::Text("ab".into())]);
        assert!(items.piece(&json!({"itemId": "m", "delta": "a"}), Update::Text).is_some());
        assert_eq!(items.completed(&whole), []);
    }
}
