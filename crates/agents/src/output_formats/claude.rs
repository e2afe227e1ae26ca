//! Claude Code, and what its way of speaking has become: Qwen Code, Cursor and many small programs print the same lines.
//!
//! A line is a message of the conversation, with text, thoughts and tool calls as its blocks. With partial messages the
//! blocks come in pieces first. `result` ends the turn. The simpler lines of old (`system/init`, and `tool_use`,
//! `tool_result` and `error` as lines of their own) are understood as well.

use serde_json::json;

use crate::lenient_json::Object;
use crate::output_formats::arguments::{flag, strings};
use crate::output_formats::error_text::{error_text, without_provider_json};
use crate::output_formats::one_shot::OutputFormat;
use crate::output_formats::streamed_text::StreamedText;
use crate::output_formats::tool_call_ids::ToolCallIds;
use crate::prompt::{Approve, ProjectRules, Prompt, Workspace};
use crate::update::{TurnUsage, Update};

/// The tools that need permission by default.
const TOOLS: &str = "Bash,Edit,MultiEdit,Write,NotebookEdit,Read,Glob,Grep,LS,WebFetch,WebSearch,Task,TodoWrite,Skill";

/// How it says that the session to be resumed is not there.
const NO_SESSION: &str = "No conversation found with session ID";

/// The prompt goes to its standard input.
pub fn arguments(prompt: &Prompt) -> Vec<String> {
    let mut arguments = strings(&["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]);
    arguments.extend(flag("model", prompt.model.as_ref()));
    arguments.extend(flag("append-system-prompt", prompt.instructions.as_ref()));
    arguments.extend(flag("resume", prompt.session.as_ref()));
    arguments.push(match prompt.approve {
        // The flag that means all is refused to root by the program itself; then every tool is named.
        Approve::All if prompt.as_root => format!("--allowedTools={TOOLS}"),
        Approve::All => "--dangerously-skip-permissions".to_owned(),
        // Nobody can be asked here: what needs permission is denied, and the run goes on.
        Approve::Ask | Approve::None => "--permission-mode=default".to_owned(),
    });
    arguments.extend(confinement(prompt));
    arguments
}

/// What keeps the settings of its workspace from a program that must not obey them: no hooks, allow rules, servers, commands
/// and agents of the workspace; those of its user stay. Its `CLAUDE.md` comes back as that of an added folder, which needs
/// `ADDED_INSTRUCTIONS` in the environment, and so do the rules that restrict the program.
pub(crate) fn confinement(prompt: &Prompt) -> Vec<String> {
    let Workspace::Untrusted { rules, .. } = &prompt.workspace else { return Vec::new() };
    let mut arguments = strings(&["--setting-sources=user", "--strict-mcp-config"]);
    arguments.push(format!("--add-dir={}", prompt.folder.display()));
    if *rules != ProjectRules::default() {
        let settings = json!({"permissions": {"deny": rules.deny, "ask": rules.ask}});
        arguments.push(format!("--settings={settings}"));
    }
    arguments
}

/// Makes the program read `CLAUDE.md` in folders that were added.
pub(super) const ADDED_INSTRUCTIONS: &str = "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD";

/// Makes the program leave files alone that a prompt names. Older ones do not know it, so prompts are made inert as well.
pub(super) const NO_FILE_MENTIONS: &str = "CLAUDE_CODE_DISABLE_FILE_MENTIONS";

pub struct ClaudeCode {
    /// The program counts money over the whole session: what that came to before this turn. `None`: nobody knows.
    cost_before: Option<f64>,
    /// The same, after the last result.
    cost_so_far: Option<f64>,
    /// Tokens of this turn whose sum no result has told yet.
    untold: TurnUsage,
    /// Output of the message that is being written, which is part of that.
    output_of_message: u64,
    text: StreamedText,
    thought: StreamedText,
    calls: ToolCallIds,
}

impl ClaudeCode {
    pub fn new(prompt: &Prompt) -> Self {
        Self {
            cost_before: prompt.session.is_none().then_some(0.0),
            cost_so_far: None,
            untold: TurnUsage::default(),
            output_of_message: 0,
            text: StreamedText::default(),
            thought: StreamedText::default(),
            calls: ToolCallIds::default(),
        }
    }
}

impl ClaudeCode {
    /// Whether the line is one of this format. Known lines may mean nothing to us.
    pub(super) fn understands(line: &Object) -> bool {
        match line.kind().as_str() {
            "assistant" => {
                let message = line.object("message");
                message.text("content").is_some() || !message.objects("content").is_empty()
            }
            "system" | "system/init" | "stream_event" | "user" | "tool_use" | "tool_result" | "result" | "error" => {
                true
            }
            _ => false,
        }
    }
}

impl OutputFormat for ClaudeCode {
    fn read(&mut self, line: &Object) -> Vec<Update> {
        match line.kind().as_str() {
            "system" => system(line),
            "system/init" => vec![init(line)],
            "stream_event" if !is_of_helper(line) => self.piece(&line.object("event")),
            "assistant" => self.assistant(line),
            "user" => self.results(line),
            "tool_use" => vec![self.tool_use(line)],
            "tool_result" => vec![self.tool_result(line)],
            "result" => self.result(line),
            "error" => {
                vec![Update::Failed(error_text(line).unwrap_or_else(|| "it failed without a reason".to_owned()))]
            }
            _ => vec![],
        }
    }
}

impl ClaudeCode {
    /// Another turn of the session begins in the same process.
    pub(crate) fn begin_next_turn(&mut self) {
        self.cost_before = self.cost_so_far.take();
        (self.text, self.thought, self.calls) = Default::default();
        (self.untold, self.output_of_message) = Default::default();
    }

    /// What this turn has used of its model, where no result has come. Its price is not known then.
    pub(crate) fn usage_so_far(&self) -> Option<TurnUsage> {
        (self.untold != TurnUsage::default()).then(|| self.untold.clone())
    }

    /// The beginning of a message says what its model has read; how much it has written is said again and again.
    fn count(&mut self, event: &Object) {
        match event.kind().as_str() {
            "message_start" => {
                let usage = event.object("message").object("usage");
                self.untold.input_tokens = self.untold.input_tokens.saturating_add(input_tokens(&usage));
                self.output_of_message = 0;
                self.count_output(&usage);
            }
            "message_delta" => self.count_output(&event.object("usage")),
            _ => {}
        }
    }

    fn count_output(&mut self, usage: &Object) {
        let output = usage.count("output_tokens").max(self.output_of_message);
        let more = output - self.output_of_message;
        self.untold.output_tokens = self.untold.output_tokens.saturating_add(more);
        self.output_of_message = output;
    }

    fn piece(&mut self, event: &Object) -> Vec<Update> {
        self.count(event);
        if event.kind() == "message_start" {
            self.text.restart();
            self.thought.restart();
        }
        let delta = event.object("delta");
        match delta.kind().as_str() {
            "text_delta" => {
                let text = delta.non_empty_text("text");
                text.iter().for_each(|text| self.text.piece(text));
                text.map(Update::Text).into_iter().collect()
            }
            "thinking_delta" => {
                let thought = delta.non_empty_text("thinking");
                thought.iter().for_each(|thought| self.thought.piece(thought));
                thought.map(Update::Thought).into_iter().collect()
            }
            _ => vec![],
        }
    }

    fn assistant(&mut self, line: &Object) -> Vec<Update> {
        let message = line.object("message");
        let mut updates = vec![];
        if let Some(text) = message.text("content") {
            updates.extend(self.text(line, &text));
        }
        for block in message.objects("content") {
            match block.kind().as_str() {
                "text" => updates.extend(self.text(line, &block.text("text").unwrap_or_default())),
                "thinking" => {
                    let thought = block.text("thinking").unwrap_or_default();
                    updates.extend(unless_empty(self.thought.missing_part(&thought)).map(Update::Thought));
                }
                "tool_use" => updates.push(self.tool_use(&block)),
                _ => {}
            }
        }
        updates
    }

    fn text(&mut self, line: &Object, text: &str) -> Option<Update> {
        if is_of_helper(line) {
            // What one agent says to another is not the answer.
            unless_empty(text).map(Update::Thought)
        } else if line.is_true("is_api_error_message") {
            // The program speaks, not the model; the result says it again.
            unless_empty(text).map(Update::Progress)
        } else {
            unless_empty(self.text.missing_part(text)).map(Update::Text)
        }
    }

    /// Results of tools are lines of the user's side; what else stands there is an echo.
    fn results(&mut self, line: &Object) -> Vec<Update> {
        let mut updates = vec![];
        for block in line.object("message").objects("content") {
            if block.kind() == "tool_result" {
                updates.push(self.tool_result(&block));
            }
        }
        let has_failed = updates.iter().any(|update| matches!(update, Update::ToolResult { is_error: true, .. }));
        if !has_failed {
            // Only tools that write files name one here.
            updates.extend(line.object("tool_use_result").non_empty_text("filePath").map(Update::File));
        }
        updates
    }

    fn tool_use(&mut self, block: &Object) -> Update {
        Update::ToolUse {
            id: self.calls.open(block.id("id")),
            name: block.non_empty_text("name").unwrap_or_else(|| "tool".to_owned()),
            input: block.json("input"),
        }
    }

    fn tool_result(&mut self, block: &Object) -> Update {
        Update::ToolResult {
            id: self.calls.close(block.id("tool_use_id").or_else(|| block.id("id"))),
            name: block.non_empty_text("name"),
            output: block.content("content"),
            is_error: block.is_true("is_error"),
        }
    }

    fn result(&mut self, line: &Object) -> Vec<Update> {
        let mut updates: Vec<Update> = self.spent(line).map(Update::Usage).into_iter().collect();
        let errors = line.texts("errors");
        if errors.iter().any(|error| error.starts_with(NO_SESSION)) {
            updates.push(Update::SessionGone);
        }
        let subtype = line.text("subtype").unwrap_or_default();
        let reason = line.text("terminal_reason").unwrap_or_default();
        let summary = line.non_empty_text("result").or_else(|| line.non_empty_text("summary"));
        // An error of the model's provider is called a success that is an error.
        let has_failed = line.is_true("is_error") || subtype.starts_with("error");
        updates.push(if !has_failed {
            Update::Done { summary }
        } else if reason.starts_with("aborted") {
            Update::Interrupted
        } else {
            let steps = (subtype == "error_max_turns").then(|| "the program took as many steps as it may".to_owned());
            let errors = unless_empty(&errors.join("\n")).or(steps);
            let words =
                errors.or_else(|| error_text(line)).or_else(|| summary.map(|summary| without_provider_json(&summary)));
            Update::Failed(
                words.or_else(|| unless_empty(&subtype)).unwrap_or_else(|| "it ended with an error".to_owned()),
            )
        });
        updates
    }

    fn spent(&mut self, line: &Object) -> Option<TurnUsage> {
        let usage = ["usage", "cost"].into_iter().find(|name| line.has(name)).map(|name| line.object(name))?;
        self.cost_so_far = line.number("total_cost_usd");
        (self.untold, self.output_of_message) = Default::default();
        Some(TurnUsage {
            input_tokens: input_tokens(&usage),
            output_tokens: usage.count("output_tokens").saturating_add(usage.count("outputTokens")),
            cost: self.cost_so_far.zip(self.cost_before).map(|(now, before)| now - before),
        })
    }
}

fn input_tokens(usage: &Object) -> u64 {
    let input = usage.count("input_tokens").saturating_add(usage.count("inputTokens"));
    // Whoever gives a total has counted what came from the cache as input already.
    if usage.has("total_tokens") {
        return input;
    }
    let cached = ["cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadTokens", "cacheWriteTokens"];
    cached.iter().map(|name| usage.count(name)).fold(input, u64::saturating_add)
}

fn system(line: &Object) -> Vec<Update> {
    let said = |name: &str| line.non_empty_text(name).unwrap_or_default();
    match said("subtype").as_str() {
        "init" => vec![init(line)],
        "permission_denied" => {
            vec![Update::Progress(format!("{} was not allowed: {}", said("tool_name"), said("message")))]
        }
        "api_retry" => {
            let status = line.number("error_status").map(|status| format!("{status} ")).unwrap_or_default();
            let (attempt, retries) = (line.count("attempt"), line.count("max_retries"));
            vec![Update::Progress(format!(
                "the model gave an error ({status}{}), retry {attempt} of {retries}",
                said("error")
            ))]
        }
        _ => vec![],
    }
}

fn init(line: &Object) -> Update {
    Update::Init {
        session: line.id("session_id").or_else(|| line.id("sessionId")),
        model: line.non_empty_text("model"),
    }
}

/// Agents that the agent has started speak in the same stream.
fn is_of_helper(line: &Object) -> bool {
    line.has("parent_tool_use_id")
}

fn unless_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
