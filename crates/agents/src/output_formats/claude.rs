//! The output format of Claude Code, which Qwen Code, Cursor and many small programs print as well.
//!
//! A line is a message of the conversation, with text, thoughts and tool calls as its blocks. With partial messages the
//! blocks come in pieces first. `result` ends the turn. An older, simpler format (`system/init`, and `tool_use`,
//! `tool_result` and `error` as separate lines) is understood as well.

use serde_json::json;

use crate::lenient_json::Object;
use crate::output_formats::arguments::{flag, strings};
use crate::output_formats::error_text::{error_text, without_provider_json};
use crate::output_formats::one_shot::OutputFormat;
use crate::output_formats::streamed_text::StreamedText;
use crate::output_formats::tool_call_ids::ToolCallIds;
use crate::prompt::{Approve, CREDENTIAL_VARIABLE, DOOR_NAME, ProjectRules, Prompt, Workspace};
use crate::update::{TurnUsage, Update};

/// The tools that need permission by default.
const TOOLS: &str = "Bash,Edit,MultiEdit,Write,NotebookEdit,Read,Glob,Grep,LS,WebFetch,WebSearch,Task,TodoWrite,Skill";

/// The message for a session that cannot be resumed because it does not exist.
const NO_SESSION: &str = "No conversation found with session ID";

/// The prompt goes to its standard input.
pub fn arguments(prompt: &Prompt) -> Vec<String> {
    let mut arguments = strings(&["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]);
    arguments.extend(flag("model", prompt.model.as_ref()));
    arguments.extend(flag("append-system-prompt", prompt.instructions.as_ref()));
    arguments.extend(flag("resume", prompt.session.as_ref()));
    arguments.push(match prompt.approve {
        // Claude Code refuses the flag for all tools to root; then the flags name every tool.
        Approve::All if prompt.as_root => format!("--allowedTools={TOOLS}"),
        Approve::All => "--dangerously-skip-permissions".to_owned(),
        // Nobody can be asked here: the program denies what needs permission and continues.
        Approve::Ask | Approve::None => "--permission-mode=default".to_owned(),
    });
    arguments.extend(confinement(prompt));
    arguments.extend(agents_door(prompt));
    arguments
}

/// The door to other agents, with permission to use it: the operator has given that. The program puts the credential in the place of
/// the variable's name.
pub(crate) fn agents_door(prompt: &Prompt) -> Vec<String> {
    let Some(door) = &prompt.agents_door else { return Vec::new() };
    let headers = json!({"Authorization": format!("Bearer ${{{CREDENTIAL_VARIABLE}}}")});
    let config = json!({"mcpServers": {DOOR_NAME: {"type": "http", "url": door.url, "headers": headers}}});
    vec![format!("--mcp-config={config}"), format!("--allowedTools=mcp__{DOOR_NAME}")]
}

/// Flags that make the program ignore the settings of an untrusted workspace: its hooks, allow rules, servers, commands and
/// agents. Those of the user still apply. `CLAUDE.md` is read as that of an added folder, which needs `ADDED_INSTRUCTIONS`
/// in the environment. Rules that restrict the program are passed on.
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

/// Variable that makes the program read `CLAUDE.md` in added folders.
pub(super) const ADDED_INSTRUCTIONS: &str = "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD";

/// Variable that stops the program from reading files that a prompt mentions. Older versions do not know it, so prompts are
/// sanitized as well.
pub(super) const NO_FILE_MENTIONS: &str = "CLAUDE_CODE_DISABLE_FILE_MENTIONS";

pub struct ClaudeCode {
    /// The cost of the session before this turn, since the program reports the cost of the whole session. `None`: unknown.
    cost_before: Option<f64>,
    /// The cost of the session after the last result.
    cost_so_far: Option<f64>,
    /// Tokens of this turn that no result has reported yet.
    unreported: TurnUsage,
    /// Output tokens of the current message, which are included there.
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
            unreported: TurnUsage::default(),
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
        (self.unreported, self.output_of_message) = Default::default();
    }

    /// The usage of this turn before its result. The cost is not known then.
    pub(crate) fn usage_so_far(&self) -> Option<TurnUsage> {
        (self.unreported != TurnUsage::default()).then(|| self.unreported.clone())
    }

    /// Counts tokens: the start of a message reports the input, and later events report the output so far.
    fn count(&mut self, event: &Object) {
        match event.kind().as_str() {
            "message_start" => {
                let usage = event.object("message").object("usage");
                self.unreported.input_tokens = self.unreported.input_tokens.saturating_add(input_tokens(&usage));
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
        self.unreported.output_tokens = self.unreported.output_tokens.saturating_add(more);
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
            // Text between agents is not the answer.
            unless_empty(text).map(Update::Thought)
        } else if line.is_true("is_api_error_message") {
            // This text is from the program, not the model; the result repeats it.
            unless_empty(text).map(Update::Progress)
        } else {
            unless_empty(self.text.missing_part(text)).map(Update::Text)
        }
    }

    /// Tool results come in messages of the user; everything else there is an echo.
    fn results(&mut self, line: &Object) -> Vec<Update> {
        let mut updates = vec![];
        for block in line.object("message").objects("content") {
            if block.kind() == "tool_result" {
                updates.push(self.tool_result(&block));
            }
        }
        let has_failed = updates.iter().any(|update| matches!(update, Update::ToolResult { is_error: true, .. }));
        if !has_failed {
            // Only tools that write files have this member.
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
        // An error of the model's provider has the subtype `success` with `is_error`.
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
        (self.unreported, self.output_of_message) = Default::default();
        Some(TurnUsage {
            input_tokens: input_tokens(&usage),
            output_tokens: usage.count("output_tokens").saturating_add(usage.count("outputTokens")),
            cost: self.cost_so_far.zip(self.cost_before).map(|(now, before)| now - before),
        })
    }
}

fn input_tokens(usage: &Object) -> u64 {
    let input = usage.count("input_tokens").saturating_add(usage.count("inputTokens"));
    // A program that reports a total has included cached tokens in the input already.
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

/// Whether a subagent printed the line: subagents print to the same stream.
fn is_of_helper(line: &Object) -> bool {
    line.has("parent_tool_use_id")
}

fn unless_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
