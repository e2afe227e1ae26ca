//! Tool calls of agents as ACP has them. A task tells a tool's name and its input; kind, title and files are read from these.

use sabir_model::{Json, TaskId, ToolCall, ToolPhase};

use super::content::Block;
use super::session_update::{Location, SessionUpdate, ToolCallUpdate, ToolContent};

/// Words in the names of tools, and what such a tool does. The first that fits counts.
const KINDS: [(&str, &[&str]); 9] = [
    ("delete", &["delete", "remove"]),
    ("move", &["move", "rename"]),
    ("fetch", &["fetch", "web", "http", "browse"]),
    ("search", &["search", "grep", "glob", "find", "list"]),
    ("edit", &["edit", "write", "patch", "replace", "create"]),
    ("execute", &["bash", "shell", "exec", "run", "command", "terminal"]),
    ("read", &["read", "view", "cat", "open"]),
    ("think", &["think", "todo", "plan"]),
    ("other", &[""]),
];

/// Members of an input that name a file.
const FILES: [&str; 6] = ["file_path", "filePath", "path", "notebook_path", "abs_path", "filename"];
/// Members of an input that say best what a tool does.
const TITLES: [&str; 7] = ["title", "command", "cmd", "pattern", "query", "url", "description"];
const LONGEST_TITLE: usize = 200;

pub fn kind(name: &str) -> &'static str {
    let name = name.to_lowercase();
    KINDS.iter().find(|(_, words)| words.iter().any(|word| name.contains(word))).map_or("other", |(kind, _)| kind)
}

/// One line that says what a tool does.
pub fn title(name: &str, args: Option<&Json>) -> String {
    let words = |member: &str| {
        let value = args?.member(member)?;
        // Some programs give a command as a list of words.
        let list = || serde_json::from_str::<Vec<String>>(value.as_str()).ok().map(|words| words.join(" "));
        value.text().or_else(list).filter(|text| !text.trim().is_empty())
    };
    let file = || FILES.iter().find_map(|member| words(member)).map(|file| format!("{name} {file}"));
    let said = words(TITLES[0]).or_else(file).or_else(|| TITLES[1..].iter().find_map(|member| words(member)));
    let said = said.unwrap_or_else(|| name.to_owned());
    let line = said.lines().next().unwrap_or_default();
    line.chars().take(LONGEST_TITLE).collect()
}

/// The id of a call in its session. The name that a program gives to a call may come again in its next task.
pub fn id(task: &TaskId, call: &str) -> String {
    format!("{task}:{call}")
}

/// A call, as far as it has come.
pub fn update(task: &TaskId, call: &ToolCall, is_known: bool) -> SessionUpdate {
    let status = match call.phase {
        ToolPhase::Started => "in_progress",
        ToolPhase::Completed => "completed",
        ToolPhase::Failed => "failed",
    };
    let said = call.result.as_ref().or(call.error.as_ref()).filter(|text| !text.is_empty());
    let mut content: Vec<ToolContent> =
        said.map(|text| ToolContent::Content { content: Block::text(text.as_str()) }).into_iter().collect();
    let mut locations = Vec::new();
    if let Some(args) = &call.args {
        content.extend(diff(args));
        locations.extend(file(args).map(|path| Location { path }));
    }
    let mut update = ToolCallUpdate {
        tool_call_id: id(task, &call.id),
        status: Some(status),
        content,
        locations,
        raw_input: call.args.clone(),
        ..ToolCallUpdate::default()
    };
    if is_known {
        return SessionUpdate::ToolCallUpdate(update);
    }
    update.title = Some(title(&call.name, call.args.as_ref()));
    update.kind = Some(kind(&call.name));
    SessionUpdate::ToolCall(update)
}

/// The file that a tool works on.
fn file(args: &Json) -> Option<String> {
    FILES.iter().find_map(|member| args.text_of(member)).filter(|path| path.starts_with('/'))
}

/// What an edit changes, where its input says so.
pub fn diff(args: &Json) -> Option<ToolContent> {
    let (old_text, new_text) = (args.text_of("old_string")?, args.text_of("new_string")?);
    Some(ToolContent::Diff { path: file(args)?, old_text, new_text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_inputs_say_what_a_tool_does() {
        for (name, args, expected) in [
            ("Bash", r#"{"command":"ls -l\nrm x"}"#, ("execute", "ls -l")),
            ("shell", r#"{"command":["ls","-l"]}"#, ("execute", "ls -l")),
            ("Read", r#"{"file_path":"/a/b.rs"}"#, ("read", "Read /a/b.rs")),
            ("Edit", r#"{"file_path":"/a/b.rs","old_string":"x","new_string":"y"}"#, ("edit", "Edit /a/b.rs")),
            ("Grep", r#"{"pattern":"fn .*"}"#, ("search", "fn .*")),
            ("WebFetch", r#"{"url":"https://x"}"#, ("fetch", "https://x")),
            ("execute", r#"{"title":"make all"}"#, ("execute", "make all")),
            ("delete_file", "{}", ("delete", "delete_file")),
            ("mystery", "[1]", ("other", "mystery")),
        ] {
            let args = Json::parse(args).unwrap();
            assert_eq!((kind(name), title(name, Some(&args)).as_str()), expected, "{name}");
        }
    }

    #[test]
    fn an_edit_is_a_diff_in_a_file() {
        let call = ToolCall {
            id: "1".into(),
            name: "Edit".into(),
            phase: ToolPhase::Started,
            args: Json::parse(r#"{"file_path":"/a","old_string":"x","new_string":"y"}"#).ok(),
            result: None,
            error: None,
        };
        let written = serde_json::to_string(&update(&TaskId::parse("t").unwrap(), &call, false)).unwrap();
        assert!(
            written.contains(r#""content":[{"type":"diff","path":"/a","oldText":"x","newText":"y"}]"#),
            "{written}"
        );
        assert!(written.contains(r#""locations":[{"path":"/a"}]"#), "{written}");
        assert!(written.contains(r#""toolCallId":"t:1""#), "{written}");
    }
}
