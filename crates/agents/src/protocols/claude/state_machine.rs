//! The messages of a turn: the prompt, answers to requests, and lines up to the result.

use serde_json::{Value, json};

use super::session_permissions::{self, SessionPermissions};
use crate::adapter::{Adapter, Exit, Step};
use crate::lenient_json::Object;
use crate::output_formats::claude::{ClaudeCode, agents_door, confinement};
use crate::output_formats::one_shot::OutputFormat;
use crate::prompt::{Approve, Prompt};
use crate::protocols::attachment::{self, Attachment};
use crate::protocols::question_series::{NOBODY_ANSWERS, Next, QuestionSeries, SeriesQuestion};
use crate::update::{Choice, ChoiceKind, Question, Reply, TurnUsage, Update};

const ALLOW: &str = "allow";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT: &str = "reject";

/// The tool by which the program asks its user something.
const ASKS_USER: &str = "AskUserQuestion";

pub struct ClaudeControl {
    prompt: Prompt,
    attachments: Vec<Attachment>,
    reader: ClaudeCode,
    pending: Vec<Pending>,
    interrupted: bool,
    over: bool,
    /// The last turn went well, so the program waits for the next prompt.
    awaits_prompt: bool,
    prompt_state: PromptState,
    /// Whether commands or subagents still run in the background.
    has_background_tasks: bool,
}

/// Whether the program has begun with the prompt of this turn. Earlier lines belong to another turn. The program begins a
/// turn by itself when a background command ends, and when it resumes a session in which one has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptState {
    /// It has not mentioned the prompt. Older versions never do (2.1.325 does), so all of their lines belong to this turn.
    Unknown,
    Queued,
    Begun,
}

/// A request of the program that waits for its answer.
struct Pending {
    id: String,
    input: Value,
    about: About,
}

enum About {
    Tool {
        /// What the program remembers if the tool is always allowed.
        always: SessionPermissions,
    },
    Questions(QuestionSeries),
}

impl ClaudeControl {
    pub fn new(prompt: Prompt, attachments: Vec<Attachment>) -> Self {
        let attachments = attachment::all_of(&prompt, attachments);
        let reader = ClaudeCode::new(&prompt);
        Self {
            prompt,
            attachments,
            reader,
            pending: Vec::new(),
            interrupted: false,
            over: false,
            awaits_prompt: false,
            prompt_state: PromptState::Unknown,
            has_background_tasks: false,
        }
    }

    /// What the program is started with.
    pub fn arguments(prompt: &Prompt) -> Vec<String> {
        // The program asks for everything that needs permission, even if all is allowed: it refuses to bypass permissions
        // for root.
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
        arguments.extend(confinement(prompt));
        arguments.extend(agents_door(prompt));
        arguments
    }

    /// What the program needs in its environment.
    pub fn environment(prompt: &Prompt) -> Option<(String, String)> {
        // Without it a session that was killed in the middle of a turn waits for the next prompt (seen with 2.1.325).
        prompt.resumes_turn.then(|| ("CLAUDE_CODE_RESUME_INTERRUPTED_TURN".to_owned(), "1".to_owned()))
    }

    /// Whether the program has not taken up the prompt of this turn yet.
    fn is_before_its_turn(&self) -> bool {
        self.prompt_state == PromptState::Queued && !self.interrupted
    }

    fn asked(&mut self, line: &Object) -> Vec<Step> {
        let Some(id) = line.non_empty_text("request_id") else { return Vec::new() };
        let request = &line.object("request");
        // A question must show its complete input, so input that is nested too deep to be read is refused.
        let input = if request.has("input") { request.parsed("input") } else { Some(json!({})) };
        let input = input.filter(|_| request.non_empty_text("subtype").as_deref() == Some("can_use_tool"));
        let Some(input) = input else {
            let refusal = json!({"subtype": "error", "request_id": id, "error": "not supported"});
            return vec![control_response(refusal)];
        };
        let tool = request.non_empty_text("tool_name").unwrap_or_else(|| "tool".to_owned());
        if tool == ASKS_USER && self.prompt.approve == Approve::All {
            return vec![denied(&id, NOBODY_ANSWERS)];
        }
        if tool == ASKS_USER {
            let questions = request.object("input").objects("questions").iter().filter_map(topic).collect();
            if let Some((series, question)) = QuestionSeries::begin(id.clone(), tool.clone(), questions) {
                self.pending.push(Pending { id, input, about: About::Questions(series) });
                return vec![Step::Ask(question)];
            }
        }
        match self.prompt.approve {
            Approve::All => vec![allowed(&id, input, &[])],
            Approve::None => vec![denied(&id, "tools that need permission are not allowed here")],
            Approve::Ask => {
                let always = session_permissions::for_session(request.values("permission_suggestions"));
                let question = question(&id, tool, request, &always);
                self.pending.push(Pending { id, input, about: About::Tool { always } });
                vec![Step::Ask(question)]
            }
        }
    }
}

impl Adapter for ClaudeControl {
    fn begin(&mut self) -> Vec<Step> {
        if self.prompt.resumes_turn {
            return Vec::new();
        }
        let (images, files): (Vec<_>, Vec<_>) = self.attachments.iter().partition(|file| file.image().is_some());
        let text = attachment::text_naming(&self.prompt, files.into_iter());
        let image = |(media_type, data): (&str, String)| {
            let source = json!({"type": "base64", "media_type": media_type, "data": data});
            json!({"type": "image", "source": source})
        };
        let images = images.into_iter().filter_map(Attachment::image).map(image);
        let content: Vec<Value> = [json!({"type": "text", "text": text})].into_iter().chain(images).collect();
        let mut line = json!({
            "type": "user",
            "message": {"role": "user", "content": content},
            "parent_tool_use_id": null,
            "session_id": "",
        });
        if let Some(id) = &self.prompt.id {
            line["uuid"] = json!(id);
        }
        vec![Step::Write(line.to_string())]
    }

    fn on_line(&mut self, line: &str) -> Vec<Step> {
        if self.over {
            return Vec::new();
        }
        let Some(line) = Object::parse(line) else { return Vec::new() };
        match line.kind().as_str() {
            "command_lifecycle" => {
                if self.prompt.id.is_some() && line.non_empty_text("command_uuid") == self.prompt.id {
                    let is_queued = line.non_empty_text("state").as_deref() == Some("queued");
                    self.prompt_state = if is_queued { PromptState::Queued } else { PromptState::Begun };
                }
                return Vec::new();
            }
            // The question would be for a turn that is over.
            "control_request" if self.is_before_its_turn() => {
                return refused(&line).map(Step::Write).into_iter().collect();
            }
            "system" if is_system(&line, "background_tasks_changed") => {
                self.has_background_tasks = !line.objects("tasks").is_empty();
                return Vec::new();
            }
            "system" if is_system(&line, "init") => {}
            _ if self.is_before_its_turn() => return Vec::new(),
            "control_request" => return self.asked(&line),
            "control_cancel_request" => {
                let canceled = line.text("request_id").unwrap_or_default();
                let canceled: Vec<Pending> = self.pending.extract_if(.., |pending| pending.id == canceled).collect();
                return canceled.iter().map(|pending| Step::Withdraw(pending.question_id())).collect();
            }
            _ => {}
        }
        let mut steps = Vec::new();
        for update in self.reader.read(&line) {
            let update = match update {
                // The program reports an interrupted turn as a failed one.
                Update::Failed(_) if self.interrupted => Update::Interrupted,
                update => update,
            };
            self.over = matches!(update, Update::Done { .. } | Update::Failed(_) | Update::Interrupted);
            self.awaits_prompt = matches!(update, Update::Done { .. });
            steps.push(Step::Report(update));
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
            About::Tool { always } => match reply {
                Reply::Chosen { choice, .. } if choice == ALLOW => allowed(&pending.id, pending.input.take(), &[]),
                Reply::Chosen { choice, .. } if choice == ALLOW_ALWAYS => {
                    allowed(&pending.id, pending.input.take(), always)
                }
                Reply::Chosen { comment: Some(words), .. } | Reply::Text(words) => denied(&pending.id, words),
                Reply::Chosen { comment: None, .. } => denied(&pending.id, "the user said no"),
                Reply::Unanswered => denied(&pending.id, "nobody answered"),
            },
            About::Questions(series) => match series.answer(reply) {
                Next::Ask(question) => return vec![Step::Ask(question)],
                Next::Unanswered => denied(&pending.id, "nobody answered"),
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

    fn is_resumable(&self) -> bool {
        true
    }

    fn usage_so_far(&self) -> Option<TurnUsage> {
        self.reader.usage_so_far()
    }

    /// Only if the program reports when it begins with a prompt: otherwise its next result could belong to any prompt. And
    /// not while it works in the background: no program may work in the folder without a turn.
    fn awaits_next_turn(&self) -> bool {
        self.awaits_prompt && self.prompt_state == PromptState::Begun && !self.has_background_tasks
    }

    fn begin_next_turn(&mut self, prompt: Prompt, attachments: Vec<Attachment>) -> Vec<Step> {
        (self.prompt, self.attachments) = (prompt, attachments);
        self.reader.begin_next_turn();
        (self.over, self.awaits_prompt, self.prompt_state) = (false, false, PromptState::Queued);
        self.begin()
    }

    fn on_line_between_turns(&mut self, line: &str) -> Vec<String> {
        let line = Object::parse(line).unwrap_or_default();
        // The program has begun a turn by itself, for example because a background command has ended. Its result would be
        // taken for that of the next prompt.
        let begins = is_system(&line, "init");
        if begins || matches!(line.kind().as_str(), "assistant" | "user" | "stream_event" | "result") {
            self.awaits_prompt = false;
        }
        let is_request = line.kind() == "control_request";
        is_request.then(|| refused(&line)).flatten().into_iter().collect()
    }

    fn interrupt(&mut self) -> Vec<Step> {
        self.interrupted = true;
        if self.over {
            return Vec::new();
        }
        // The program withdraws its requests by itself.
        self.pending.clear();
        let line = json!({"type": "control_request", "request_id": "interrupt", "request": {"subtype": "interrupt"}});
        vec![Step::Write(line.to_string())]
    }

    fn on_exit(&mut self, _exit: &Exit) -> Option<Update> {
        self.interrupted.then_some(Update::Interrupted)
    }
}

impl Pending {
    fn question_id(&self) -> String {
        match &self.about {
            About::Tool { .. } => self.id.clone(),
            About::Questions(series) => series.question_id(),
        }
    }

    fn asks(&self, question: &Question) -> bool {
        match &self.about {
            About::Tool { .. } => self.id == question.id,
            About::Questions(series) => series.asks(question),
        }
    }
}

fn question(id: &str, tool: String, request: &Object, always: &[Value]) -> Question {
    let input = request.object("input");
    let text = match (input.non_empty_text("command"), input.non_empty_text("file_path")) {
        (Some(command), _) => format!("Run \"{command}\"?"),
        (None, Some(path)) => format!("Allow {tool}: {path}?"),
        (None, None) => match request.non_empty_text("description") {
            Some(description) => format!("Allow {tool}: {description}?"),
            None => format!("Allow {tool}?"),
        },
    };
    let choice = |id: &str, name: &str, kind| Choice { id: id.into(), name: name.into(), kind };
    let mut choices = vec![choice(ALLOW, "Allow", ChoiceKind::AllowOnce)];
    if !always.is_empty() {
        choices.push(choice(ALLOW_ALWAYS, "Allow for this session", ChoiceKind::AllowAlways));
    }
    choices.push(choice(REJECT, "Reject", ChoiceKind::RejectOnce));
    Question { id: id.to_owned(), text, tool: Some(tool), input: request.normalized("input"), choices }
}

fn topic(question: &Object) -> Option<SeriesQuestion> {
    let key = question.non_empty_text("question")?;
    let takes_many = question.is_true("multiSelect");
    let text = if takes_many { format!("{key} (more than one can be named)") } else { key.clone() };
    let option = |option: &Object| Some((option.non_empty_text("label")?, option.non_empty_text("description")));
    Some(SeriesQuestion { key, text, options: question.objects("options").iter().filter_map(option).collect() })
}

fn is_system(line: &Object, subtype: &str) -> bool {
    line.kind() == "system" && line.non_empty_text("subtype").as_deref() == Some(subtype)
}

/// The answer to a request that comes when nobody can be asked.
fn refused(request: &Object) -> Option<String> {
    let refusal = |id| json!({"subtype": "error", "request_id": id, "error": "nobody can be asked now"});
    request.non_empty_text("request_id").map(refusal).map(|refusal| response_line(&refusal))
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
    Step::Write(response_line(&response))
}

fn response_line(response: &Value) -> String {
    json!({"type": "control_response", "response": response}).to_string()
}
