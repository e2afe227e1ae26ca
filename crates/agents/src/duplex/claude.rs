//! Claude Code's control protocol: prompts, permissions and interruptions as JSON lines, many of which its one-shot
//! output has too.
//!
//! `Reader` turns those common lines into updates; the rest is what only a program that can be answered says.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::attachment::{self, Attachment};
use super::interview::{Interview, Next, Topic};
use super::reading::{carried, count_at, list_at, owned_text_at, plain_words, text_at};
use crate::protocol::{Approve, Exit, Prompt, Protocol, Step};
use crate::update::{Choice, ChoiceKind, Question, Reply, Spent, Update};

const ALLOW: &str = "allow";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT: &str = "reject";

/// The tool by which the program asks its user something.
const ASKS_USER: &str = "AskUserQuestion";

pub struct ClaudeControl {
    prompt: Prompt,
    attachments: Vec<Attachment>,
    reader: Reader,
    pending: Vec<Pending>,
    interrupted: bool,
    over: bool,
}

/// A request of the program that waits for its answer.
struct Pending {
    id: String,
    input: Value,
    about: About,
}

enum About {
    /// What to remember if the tool is always allowed.
    Tool {
        suggestions: Vec<Value>,
    },
    Questions(Interview),
}

impl ClaudeControl {
    pub fn new(prompt: Prompt, attachments: Vec<Attachment>) -> Self {
        let attachments = attachment::all_of(&prompt, attachments);
        let reader = Reader { is_resumed: prompt.session.is_some(), ..Reader::default() };
        Self { prompt, attachments, reader, pending: Vec::new(), interrupted: false, over: false }
    }

    /// What the program is started with.
    pub fn arguments(prompt: &Prompt) -> Vec<String> {
        // Everything that needs leave is asked for here, also when all is allowed: the program refuses to bypass its
        // permissions for root.
        let mut arguments: Vec<String> = [
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-partial-messages",
            "--permission-prompt-tool",
            "stdio",
        ]
        .map(str::to_owned)
        .into();
        for (flag, value) in [
            ("--model", &prompt.model),
            ("--append-system-prompt", &prompt.instructions),
            ("--resume", &prompt.session),
        ] {
            if let Some(value) = value {
                arguments.extend([flag.to_owned(), value.clone()]);
            }
        }
        arguments
    }

    fn asked(&mut self, line: &Value) -> Vec<Step> {
        let Some(id) = owned_text_at(line, "/request_id") else { return Vec::new() };
        let request = &line["request"];
        if text_at(request, "/subtype") != Some("can_use_tool") {
            let refusal = json!({"subtype": "error", "request_id": id, "error": "not supported"});
            return vec![control_response(refusal)];
        }
        let tool = text_at(request, "/tool_name").unwrap_or("tool").to_owned();
        let input = request.get("input").cloned().unwrap_or_else(|| json!({}));
        if tool == ASKS_USER {
            let topics = list_at(&input, "/questions").iter().filter_map(topic).collect();
            if let Some((interview, question)) = Interview::begin(id.clone(), tool.clone(), topics) {
                self.pending.push(Pending { id, input, about: About::Questions(interview) });
                return vec![Step::Ask(question)];
            }
        }
        match self.prompt.approve {
            Approve::All => vec![allowed(&id, input, &[])],
            Approve::None => vec![denied(&id, "tools that need leave are not allowed here")],
            Approve::Ask => {
                let suggestions = list_at(request, "/permission_suggestions").to_vec();
                let question = question(&id, tool, request, &suggestions);
                self.pending.push(Pending { id, input, about: About::Tool { suggestions } });
                vec![Step::Ask(question)]
            }
        }
    }
}

impl Protocol for ClaudeControl {
    fn begin(&mut self) -> Vec<Step> {
        let (images, files): (Vec<_>, Vec<_>) = self.attachments.iter().partition(|file| file.image().is_some());
        let text = attachment::text_naming(&self.prompt, files.into_iter());
        let image = |(media_type, data): (&str, String)| json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}});
        let images = images.into_iter().filter_map(Attachment::image).map(image);
        let content: Vec<Value> = [json!({"type": "text", "text": text})].into_iter().chain(images).collect();
        let line = json!({
            "type": "user",
            "message": {"role": "user", "content": content},
            "parent_tool_use_id": null,
            "session_id": "",
        });
        vec![Step::Write(line.to_string())]
    }

    fn hear(&mut self, line: &str) -> Vec<Step> {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return Vec::new() };
        if self.over {
            return Vec::new();
        }
        match text_at(&line, "/type") {
            Some("control_request") => return self.asked(&line),
            Some("control_cancel_request") => {
                let canceled = text_at(&line, "/request_id").unwrap_or_default();
                self.pending.retain(|pending| pending.id != canceled);
                return Vec::new();
            }
            _ => {}
        }
        let mut steps = Vec::new();
        for update in self.reader.tell(&line) {
            let update = match update {
                // An interrupted turn ends as one that failed.
                Update::Failed(_) if self.interrupted => Update::Interrupted,
                update => update,
            };
            self.over = matches!(update, Update::Done { .. } | Update::Failed(_) | Update::Interrupted);
            steps.push(Step::Tell(update));
        }
        if self.over {
            self.pending.clear();
            steps.push(Step::CloseInput);
        }
        steps
    }

    fn answer(&mut self, question: &Question, reply: &Reply) -> Vec<Step> {
        let Some(index) = self.pending.iter().position(|pending| pending.asks(question)) else { return Vec::new() };
        let pending = &mut self.pending[index];
        let step = match &mut pending.about {
            About::Tool { suggestions } => match reply {
                Reply::Chosen { choice, .. } if choice == ALLOW => allowed(&pending.id, pending.input.take(), &[]),
                Reply::Chosen { choice, .. } if choice == ALLOW_ALWAYS => {
                    allowed(&pending.id, pending.input.take(), suggestions)
                }
                Reply::Chosen { said: Some(words), .. } | Reply::Said(words) => denied(&pending.id, words),
                Reply::Chosen { said: None, .. } => denied(&pending.id, "the user said no"),
                Reply::Nobody => denied(&pending.id, "nobody answered"),
            },
            About::Questions(interview) => match interview.answer(reply) {
                Next::Ask(question) => return vec![Step::Ask(question)],
                Next::GivenUp => denied(&pending.id, "nobody answered"),
                Next::Answered(answers) => {
                    let mut input = pending.input.take();
                    input["answers"] = answers.into_iter().map(|(key, answer)| (key, Value::String(answer))).collect();
                    allowed(&pending.id, input, &[])
                }
            },
        };
        self.pending.remove(index);
        vec![step]
    }

    fn interrupt(&mut self) -> Vec<Step> {
        self.interrupted = true;
        if self.over {
            return Vec::new();
        }
        // The program takes back by itself what it asked.
        self.pending.clear();
        let line = json!({"type": "control_request", "request_id": "interrupt", "request": {"subtype": "interrupt"}});
        vec![Step::Write(line.to_string())]
    }

    fn ended(&mut self, _exit: &Exit) -> Option<Update> {
        self.interrupted.then_some(Update::Interrupted)
    }
}

impl Pending {
    fn asks(&self, question: &Question) -> bool {
        match &self.about {
            About::Tool { .. } => self.id == question.id,
            About::Questions(interview) => interview.asks(question),
        }
    }
}

fn question(id: &str, tool: String, request: &Value, suggestions: &[Value]) -> Question {
    let input = &request["input"];
    let text = match (text_at(input, "/command"), text_at(input, "/file_path")) {
        (Some(command), _) => format!("Run \"{command}\"?"),
        (None, Some(path)) => format!("Allow {tool}: {path}?"),
        (None, None) => match text_at(request, "/description") {
            Some(description) => format!("Allow {tool}: {description}?"),
            None => format!("Allow {tool}?"),
        },
    };
    let choice = |id: &str, name: &str, kind| Choice { id: id.into(), name: name.into(), kind };
    let mut choices = vec![choice(ALLOW, "Allow", ChoiceKind::AllowOnce)];
    if !suggestions.is_empty() {
        choices.push(choice(ALLOW_ALWAYS, "Always allow", ChoiceKind::AllowAlways));
    }
    choices.push(choice(REJECT, "Reject", ChoiceKind::RejectOnce));
    Question { id: id.to_owned(), text, tool: Some(tool), input: carried(input), choices }
}

fn topic(question: &Value) -> Option<Topic> {
    let key = owned_text_at(question, "/question")?;
    let takes_many = question.get("multiSelect") == Some(&Value::Bool(true));
    let text = if takes_many { format!("{key} (more than one can be named)") } else { key.clone() };
    let option = |option: &Value| Some((owned_text_at(option, "/label")?, owned_text_at(option, "/description")));
    Some(Topic { key, text, options: list_at(question, "/options").iter().filter_map(option).collect() })
}

fn allowed(id: &str, input: Value, remembered: &[Value]) -> Step {
    let mut response = json!({"behavior": "allow", "updatedInput": input});
    if !remembered.is_empty() {
        response["updatedPermissions"] = json!(remembered);
    }
    control_response(json!({"subtype": "success", "request_id": id, "response": response}))
}

fn denied(id: &str, message: &str) -> Step {
    let response = json!({"behavior": "deny", "message": message});
    control_response(json!({"subtype": "success", "request_id": id, "response": response}))
}

fn control_response(response: Value) -> Step {
    Step::Write(json!({"type": "control_response", "response": response}).to_string())
}

/// The lines that tell what happens, whoever listens.
#[derive(Default)]
struct Reader {
    /// Then the money that is told is that of the whole session.
    is_resumed: bool,
    /// Messages whose text came in pieces, and comes once more as a whole.
    streamed: Vec<String>,
    tool_names: HashMap<String, String>,
}

impl Reader {
    fn tell(&mut self, line: &Value) -> Vec<Update> {
        match (text_at(line, "/type"), text_at(line, "/subtype")) {
            (Some("system"), Some("init")) => {
                let (session, model) = (owned_text_at(line, "/session_id"), owned_text_at(line, "/model"));
                vec![Update::Init { session, model }]
            }
            (Some("system"), Some("permission_denied")) => {
                let tool = text_at(line, "/tool_name").unwrap_or("A tool");
                let reason = text_at(line, "/message").unwrap_or("it needs leave");
                vec![Update::Progress(format!("{tool} was not allowed: {reason}"))]
            }
            (Some("system"), Some("api_retry")) => vec![Update::Progress(retry(line))],
            (Some("stream_event"), _) => self.piece(line).into_iter().collect(),
            (Some("assistant"), _) => self.message(line),
            (Some("user"), _) => self.tool_results(line),
            (Some("result"), _) => self.result(line),
            _ => Vec::new(),
        }
    }

    fn piece(&mut self, line: &Value) -> Option<Update> {
        if is_of_subagent(line) {
            return None;
        }
        let text = owned_text_at(line, "/event/delta/text").map(Update::Text);
        let piece = text.or_else(|| owned_text_at(line, "/event/delta/thinking").map(Update::Thought))?;
        let message = text_at(line, "/api_message_id").unwrap_or_default();
        if !self.streamed.iter().any(|streamed| streamed == message) {
            self.streamed.push(message.to_owned());
        }
        Some(piece)
    }

    fn message(&mut self, line: &Value) -> Vec<Update> {
        let id = text_at(line, "/message/id").unwrap_or_default();
        // What the program writes itself in the name of the model is an error, and the result says it again.
        let is_made_up = text_at(line, "/message/model") == Some("<synthetic>");
        let is_told = self.streamed.iter().any(|streamed| streamed == id) || is_made_up || is_of_subagent(line);
        let mut updates = Vec::new();
        for block in list_at(line, "/message/content") {
            match text_at(block, "/type") {
                Some("text") if !is_told => updates.extend(owned_text_at(block, "/text").map(Update::Text)),
                Some("thinking") if !is_told => updates.extend(owned_text_at(block, "/thinking").map(Update::Thought)),
                Some("tool_use") => {
                    let id = owned_text_at(block, "/id").unwrap_or_default();
                    let name = owned_text_at(block, "/name").unwrap_or_default();
                    self.tool_names.insert(id.clone(), name.clone());
                    updates.push(Update::ToolUse { id, name, input: carried(&block["input"]) });
                }
                _ => {}
            }
        }
        updates
    }

    fn tool_results(&self, line: &Value) -> Vec<Update> {
        let result = |block: &Value| {
            let id = text_at(block, "/tool_use_id")?;
            Some(Update::ToolResult {
                id: id.to_owned(),
                name: self.tool_names.get(id).cloned(),
                output: output(&block["content"]),
                is_error: block.get("is_error") == Some(&Value::Bool(true)),
            })
        };
        let is_result = |block: &&Value| text_at(block, "/type") == Some("tool_result");
        list_at(line, "/message/content").iter().filter(is_result).filter_map(result).collect()
    }

    fn result(&self, line: &Value) -> Vec<Update> {
        let tokens = |name: &str| count_at(line, &format!("/usage/{name}")).unwrap_or_default();
        let input = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
        let spent = Spent {
            input_tokens: input.into_iter().map(tokens).fold(0, u64::saturating_add),
            output_tokens: tokens("output_tokens"),
            cost: line.get("total_cost_usd").and_then(Value::as_f64).filter(|_| !self.is_resumed),
        };
        let was_aborted = text_at(line, "/terminal_reason").is_some_and(|reason| reason.starts_with("aborted"));
        let failed = line.get("is_error") == Some(&Value::Bool(true)) || text_at(line, "/subtype") != Some("success");
        let end = match (was_aborted, failed) {
            (true, _) => Update::Interrupted,
            (false, true) => Update::Failed(failure(line)),
            (false, false) => Update::Done { summary: owned_text_at(line, "/result") },
        };
        vec![Update::Spent(spent), end]
    }
}

fn is_of_subagent(line: &Value) -> bool {
    text_at(line, "/parent_tool_use_id").is_some()
}

fn retry(line: &Value) -> String {
    let number = |pointer: &str| count_at(line, pointer).map_or_else(|| "?".to_owned(), |count| count.to_string());
    let reason = count_at(line, "/error_status").map(|status| format!(" (status {status})")).unwrap_or_default();
    format!("The model did not answer{reason}, attempt {} of {}", number("/attempt"), number("/max_retries"))
}

/// The content of a tool's result: text, or blocks of it.
fn output(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| text_at(block, "/text")).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn failure(line: &Value) -> String {
    let errors: Vec<&str> = list_at(line, "/errors").iter().filter_map(Value::as_str).collect();
    if let Some(words) = text_at(line, "/result").or_else(|| text_at(line, "/error/message")) {
        return plain_words(words);
    }
    match text_at(line, "/subtype") {
        Some("error_max_turns") => "the program took as many steps as it may".into(),
        _ if !errors.is_empty() => errors.join("; "),
        Some(subtype) => format!("the program failed: {subtype}"),
        None => "the program failed and gave no reason".into(),
    }
}
