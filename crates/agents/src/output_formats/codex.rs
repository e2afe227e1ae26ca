//! The output of `codex exec --json`: items that are started and completed, whole messages, and the usage of the thread.

use sabir_model::Json;

use crate::adapter::Exit;
use crate::lenient_json::Object;
use crate::output_formats::arguments::{flag, strings};
use crate::output_formats::error_text::error_text;
use crate::output_formats::one_shot::OutputFormat;
use crate::output_formats::tool_call_ids::ToolCallIds;
use crate::prompt::{Approve, CREDENTIAL_VARIABLE, DOOR_NAME, Prompt, Workspace};
use crate::update::{TurnUsage, Update};

/// The prompt goes to its standard input.
pub fn arguments(prompt: &Prompt) -> Vec<String> {
    let mut arguments = strings(&["exec", "--json", "--skip-git-repo-check"]);
    arguments.extend(flag("model", prompt.model.as_ref()));
    if let Some(instructions) = &prompt.instructions {
        arguments.extend(["-c".to_owned(), format!("developer_instructions={}", toml_text(instructions))]);
    }
    let trust = if prompt.workspace == Workspace::Trusted { "trusted" } else { "untrusted" };
    let folder = toml_text(&prompt.folder.to_string_lossy());
    arguments.extend(["-c".to_owned(), format!("projects={{{folder}={{trust_level=\"{trust}\"}}}}")]);
    arguments.push(match prompt.approve {
        Approve::All => "--dangerously-bypass-approvals-and-sandbox".to_owned(),
        // `codex exec` never asks: what the sandbox forbids fails, and the model learns of it.
        Approve::Ask | Approve::None => "--sandbox=read-only".to_owned(),
    });
    arguments.extend(agents_door(prompt));
    arguments.extend(positional(prompt));
    arguments
}

/// The door to other agents. The program reads the credential from its environment.
pub(crate) fn agents_door(prompt: &Prompt) -> Vec<String> {
    let Some(door) = &prompt.agents_door else { return Vec::new() };
    let settings = [("url", door.url.as_str()), ("bearer_token_env_var", CREDENTIAL_VARIABLE)];
    let set = |(key, value)| ["-c".to_owned(), format!("mcp_servers.{DOOR_NAME}.{key}={}", toml_text(value))];
    settings.into_iter().flat_map(set).collect()
}

/// The positional arguments. `-` means standard input.
pub(super) fn positional(prompt: &Prompt) -> Vec<String> {
    match &prompt.session {
        Some(session) => strings(&["resume", session, "-"]),
        None => strings(&["-"]),
    }
}

/// A JSON string is a TOML string, except for one character that TOML wants escaped.
fn toml_text(text: &str) -> String {
    Json::of(text).expect("text is JSON").as_str().replace('\u{7f}', "\\u007F")
}

pub struct Codex {
    /// The session was resumed: the program counts tokens over the whole thread.
    is_resumed: bool,
    calls: ToolCallIds,
    last_error: Option<String>,
}

impl Codex {
    pub fn new(prompt: &Prompt) -> Self {
        Self { is_resumed: prompt.session.is_some(), calls: ToolCallIds::default(), last_error: None }
    }
}

impl OutputFormat for Codex {
    fn read(&mut self, line: &Object) -> Vec<Update> {
        match line.kind().as_str() {
            "thread.started" => vec![Update::Init { session: line.id("thread_id"), model: None }],
            "item.started" => self.started(&line.object("item")).into_iter().collect(),
            "item.completed" => self.completed(&line.object("item")),
            // The program may reconnect and continue; a later line says whether it gave up.
            "error" => {
                self.last_error = error_text(line);
                self.last_error.clone().map(Update::Progress).into_iter().collect()
            }
            "turn.failed" => vec![Update::Failed(self.why(line))],
            "turn.completed" => {
                let spent = self.spent(&line.object("usage")).map(Update::Usage);
                spent.into_iter().chain([Update::Done { summary: None }]).collect()
            }
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

impl Codex {
    fn started(&mut self, item: &Object) -> Option<Update> {
        let (name, input) = tool(item)?;
        Some(Update::ToolUse { id: self.calls.open(item.id("id")), name, input })
    }

    fn completed(&mut self, item: &Object) -> Vec<Update> {
        match item.kind().as_str() {
            "agent_message" => item.non_empty_text("text").map(Update::Text).into_iter().collect(),
            "reasoning" => item.non_empty_text("text").map(Update::Thought).into_iter().collect(),
            // Warnings, such as an unknown model.
            "error" => error_text(item).map(Update::Progress).into_iter().collect(),
            _ => self.tool_ended(item),
        }
    }

    fn tool_ended(&mut self, item: &Object) -> Vec<Update> {
        let Some((name, _)) = tool(item) else {
            return vec![];
        };
        // Quick tools are reported only when they have ended.
        let is_new = item.id("id").is_some_and(|id| !self.calls.is_open(&id));
        let mut updates: Vec<Update> = if is_new { self.started(item).into_iter().collect() } else { vec![] };
        let is_error = matches!(item.text("status").as_deref(), Some("failed" | "declined"))
            || item.number("exit_code").is_some_and(|code| code != 0.0);
        updates.push(Update::ToolResult {
            id: self.calls.close(item.id("id")),
            name: Some(name),
            output: output(item),
            is_error,
        });
        if !is_error && item.kind() == "file_change" {
            updates.extend(
                item.objects("changes").iter().filter_map(|change| change.non_empty_text("path")).map(Update::File),
            );
        }
        updates
    }

    fn why(&mut self, line: &Object) -> String {
        error_text(line).or_else(|| self.last_error.take()).unwrap_or_else(|| "the turn failed".to_owned())
    }

    /// For a resumed thread the usage of this turn is unknown.
    fn spent(&self, usage: &Object) -> Option<TurnUsage> {
        let is_known = usage.has("input_tokens") && !self.is_resumed;
        is_known.then(|| TurnUsage {
            input_tokens: usage.count("input_tokens"),
            output_tokens: usage.count("output_tokens"),
            cost: None,
        })
    }
}

/// The name and the input of a tool item; `None`: the item is no tool.
fn tool(item: &Object) -> Option<(String, Option<Json>)> {
    let kind = item.kind();
    let (name, input) = match kind.as_str() {
        "command_execution" => ("shell".to_owned(), member(item, "command")),
        "file_change" => (kind, member(item, "changes")),
        "web_search" => (kind, member(item, "query")),
        "mcp_tool_call" => {
            let said = |name: &str| item.non_empty_text(name).unwrap_or_default();
            (format!("{}.{}", said("server"), said("tool")), item.json("arguments"))
        }
        _ => return None,
    };
    Some((name, input))
}

/// An object with only this member of the item.
fn member(item: &Object, name: &str) -> Option<Json> {
    item.json(name).map(|value| Json::with_member(None, name, &value))
}

fn output(item: &Object) -> String {
    let said = item.non_empty_text("aggregated_output").or_else(|| error_text(item));
    said.unwrap_or_else(|| item.object("result").content("content"))
}
