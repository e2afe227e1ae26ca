//! The requests of a turn: initialize, open a thread, start a turn, and read until it is completed.

use serde_json::{Value, json};

use super::approval::{Pending, Response};
use super::item::Items;
use crate::adapter::{Adapter, Exit, Step};
use crate::lenient_json::Object;
use crate::output_formats::codex::agents_door;
use crate::prompt::{Approve, Prompt, Workspace};
use crate::protocols::attachment::{self, Attachment};
use crate::protocols::error_message;
use crate::protocols::jsonrpc::{self, Header, Incoming, RpcError};
use crate::update::{Question, Reply, TurnUsage, Update};

pub struct CodexServer {
    prompt: Prompt,
    attachments: Vec<Attachment>,
    stage: Stage,
    /// The id of our last request that waits for a response.
    last_request: u64,
    thread: String,
    model: Option<String>,
    turn: Option<String>,
    /// The turn before, in the same process.
    last_turn: Option<String>,
    items: Items,
    pending: Vec<Pending>,
    /// The usage of the thread before this turn.
    before: Option<TurnUsage>,
    /// The usage of the thread, as last reported.
    total: Option<TurnUsage>,
    /// The last error that Codex will not retry.
    error: Option<String>,
    interrupted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Initializing,
    Resuming,
    Opening,
    Starting,
    Working,
    /// The turn is completed, and the thread waits for the next one.
    Idle,
    Over,
}

impl CodexServer {
    pub fn new(prompt: Prompt, attachments: Vec<Attachment>) -> Self {
        let attachments = attachment::all_of(&prompt, attachments);
        Self {
            prompt,
            attachments,
            stage: Stage::Initializing,
            last_request: 0,
            thread: String::new(),
            model: None,
            turn: None,
            last_turn: None,
            items: Items::default(),
            pending: Vec::new(),
            before: None,
            total: None,
            error: None,
            interrupted: false,
        }
    }

    /// The arguments of the program. All else is sent when the thread is opened.
    pub fn arguments(prompt: &Prompt) -> Vec<String> {
        [vec!["app-server".to_owned()], agents_door(prompt)].concat()
    }

    fn request(&mut self, stage: Stage, method: &str, params: Value) -> Step {
        self.stage = stage;
        self.last_request += 1;
        Step::Write(jsonrpc::request(Header::Absent, self.last_request, method, params))
    }

    fn on_response(&mut self, outcome: Result<Object, RpcError>) -> Vec<Step> {
        match (self.stage, outcome) {
            (Stage::Initializing, Ok(_)) => {
                let greeted = Step::Write(jsonrpc::notification(Header::Absent, "initialized", None));
                vec![greeted, self.open()]
            }
            (Stage::Initializing, Err(fault)) => self.fail(format!("the program does not start: {}", fault.message)),
            (Stage::Resuming, Err(fault)) => {
                self.prompt.session = None;
                let words = format!("The earlier session cannot be resumed, a new one begins: {}", fault.message);
                vec![Step::Report(Update::Progress(words)), self.open()]
            }
            (Stage::Resuming | Stage::Opening, Ok(result)) => self.opened(&result),
            (Stage::Opening, Err(fault)) => self.fail(format!("the program opens no session: {}", fault.message)),
            (Stage::Starting, Ok(result)) => {
                self.turn = result.object("turn").non_empty_text("id").or(self.turn.take());
                self.stage = Stage::Working;
                Vec::new()
            }
            (Stage::Starting, Err(fault)) => self.fail(fault.message),
            // The response to an interrupt; the end of the turn follows.
            (Stage::Working | Stage::Idle | Stage::Over, _) => Vec::new(),
        }
    }

    fn open(&mut self) -> Step {
        let (policy, sandbox) = match self.prompt.approve {
            // With `on-request` Codex reads any file of the machine without asking.
            Approve::Ask => ("untrusted", "workspace-write"),
            Approve::All => ("never", "danger-full-access"),
            Approve::None => ("never", "read-only"),
        };
        let folder = self.prompt.folder.to_string_lossy();
        // Without this, Codex marks the folder as trusted in its user's settings and obeys the folder's own settings:
        // servers to start, hooks, rules.
        let trust = if self.prompt.workspace == Workspace::Trusted { "trusted" } else { "untrusted" };
        let mut params = json!({
            "cwd": folder,
            "approvalPolicy": policy,
            "sandbox": sandbox,
            "config": {"projects": {folder.as_ref(): {"trust_level": trust}}},
        });
        if let Some(model) = &self.prompt.model {
            params["model"] = json!(model);
        }
        if let Some(session) = &self.prompt.session {
            params["threadId"] = json!(session);
            return self.request(Stage::Resuming, "thread/resume", params);
        }
        // A resumed thread has them already.
        if let Some(instructions) = &self.prompt.instructions {
            params["developerInstructions"] = json!(instructions);
        }
        self.request(Stage::Opening, "thread/start", params)
    }

    fn opened(&mut self, result: &Object) -> Vec<Step> {
        let Some(thread) = result.object("thread").non_empty_text("id") else {
            return self.fail("the program opens no session".into());
        };
        self.thread = thread;
        self.model = result.non_empty_text("model");
        self.begin_turn()
    }

    fn begin_turn(&mut self) -> Vec<Step> {
        let (session, model) = (Some(self.thread.clone()), self.model.clone());
        let (images, files): (Vec<_>, Vec<_>) = self.attachments.iter().partition(|file| file.image().is_some());
        let text = attachment::text_naming(&self.prompt, files.into_iter());
        let image = |file: &Attachment| json!({"type": "localImage", "path": self.prompt.folder.join(&file.path)});
        let images = images.into_iter().map(image);
        let text = json!({"type": "text", "text": text});
        let input: Vec<Value> = self.workspace_instructions().into_iter().chain([text]).chain(images).collect();
        let params = json!({"threadId": self.thread, "input": input});
        let start = self.request(Stage::Starting, "turn/start", params);
        vec![Step::Report(Update::Init { session, model }), start]
    }

    /// The instructions of an untrusted workspace, which Codex ignores together with its settings. A resumed thread has them
    /// already.
    fn workspace_instructions(&self) -> Option<Value> {
        let Workspace::Untrusted { instructions: Some(words), .. } = &self.prompt.workspace else { return None };
        let text = format!("AGENTS.md of this folder says:\n\n{words}");
        self.prompt.session.is_none().then(|| json!({"type": "text", "text": text}))
    }

    /// Whether this id is of another turn than the current one: messages of an earlier turn may arrive after the next was
    /// started.
    fn is_other_turn(&self, turn: Option<&str>) -> bool {
        match (turn, &self.turn) {
            (None, _) => false,
            (Some(turn), Some(ours)) => turn != ours,
            (Some(turn), None) => Some(turn) == self.last_turn.as_deref(),
        }
    }

    fn on_request(&mut self, id: Value, method: &str, params: &Object) -> Vec<Step> {
        // Requests of subagents in their own threads belong to this turn.
        let is_of_thread = params.non_empty_text("threadId").as_ref() == Some(&self.thread);
        if is_of_thread && self.is_other_turn(params.non_empty_text("turnId").as_deref()) {
            return vec![Step::Write(jsonrpc::method_not_found(Header::Absent, &id))];
        }
        match Pending::new(id.clone(), method, params, &self.items, self.prompt.approve) {
            None => vec![Step::Write(jsonrpc::method_not_found(Header::Absent, &id))],
            Some((_, Response::Result(result))) => vec![Step::Write(jsonrpc::result(Header::Absent, &id, result))],
            Some((pending, Response::Ask(question))) => {
                self.pending.push(pending);
                vec![Step::Ask(question)]
            }
        }
    }

    fn on_notification(&mut self, method: &str, params: &Object) -> Vec<Step> {
        // Threads of subagents are not reported.
        let is_ours = params.non_empty_text("threadId").is_none_or(|thread| thread == self.thread);
        if !is_ours || !matches!(self.stage, Stage::Starting | Stage::Working) {
            return Vec::new();
        }
        let updates: Vec<Update> = match method {
            "turn/started" => {
                let turn = params.object("turn").non_empty_text("id").filter(|turn| !self.is_other_turn(Some(turn)));
                self.turn = turn.or(self.turn.take());
                Vec::new()
            }
            // Also reports the usage after an earlier turn.
            "thread/tokenUsage/updated" => self.spent(params).map(Update::Usage).into_iter().collect(),
            _ if self.is_other_turn(params.non_empty_text("turnId").as_deref()) => Vec::new(),
            "item/agentMessage/delta" => self.items.piece(params, Update::Text).into_iter().collect(),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.items.piece(params, Update::Thought).into_iter().collect()
            }
            "item/started" => self.items.started(&params.object("item")).into_iter().collect(),
            "item/completed" => self.items.completed(&params.object("item")),
            "turn/plan/updated" => plan(params).map(Update::Progress).into_iter().collect(),
            // Codex also sends this for requests that were answered; those are not pending any more.
            "serverRequest/resolved" => {
                let request = params.parsed("requestId");
                let is_resolved = |pending: &mut Pending| Some(&pending.id) == request.as_ref();
                let resolved: Vec<Pending> = self.pending.extract_if(.., is_resolved).collect();
                return resolved.iter().map(|pending| Step::Withdraw(pending.question_id())).collect();
            }
            "error" => {
                let words = error_message::of_object(&params.object("error"));
                if params.is_true("willRetry") {
                    vec![Update::Progress(words)]
                } else {
                    self.error = Some(words);
                    Vec::new()
                }
            }
            "turn/completed" => return self.completed(&params.object("turn")),
            _ => Vec::new(),
        };
        updates.into_iter().map(Step::Report).collect()
    }

    /// Codex reports usage summed over the thread. A resumed thread first reports its sum under the id of an earlier turn;
    /// if it did not, the sum before is computed from its last step.
    fn spent(&mut self, params: &Object) -> Option<TurnUsage> {
        let usage = params.object("tokenUsage");
        let sum = |of: &str| {
            let counted = usage.object(of);
            let (input_tokens, output_tokens) = (counted.integer("inputTokens")?, counted.integer("outputTokens")?);
            Some(TurnUsage { input_tokens, output_tokens, cost: None })
        };
        let total = sum("total")?;
        self.total = Some(total.clone());
        let is_of_this_turn = self.turn.is_some() && params.non_empty_text("turnId") == self.turn;
        if !is_of_this_turn {
            self.before = Some(total);
            return None;
        }
        let before = self.before.get_or_insert_with(|| less(&total, &sum("last").unwrap_or_default()));
        Some(less(&total, before))
    }

    fn completed(&mut self, turn: &Object) -> Vec<Step> {
        if self.is_other_turn(turn.non_empty_text("id").as_deref()) {
            return Vec::new();
        }
        let error = turn.has("error").then(|| error_message::of_object(&turn.object("error")));
        match turn.non_empty_text("status").as_deref() {
            Some("completed") => self.over(Update::Done { summary: None }),
            Some("interrupted") => self.over(Update::Interrupted),
            _ if self.interrupted => self.over(Update::Interrupted),
            _ => {
                let words = error.or(self.error.take());
                self.fail(words.unwrap_or_else(|| "the program failed and gave no reason".into()))
            }
        }
    }

    fn over(&mut self, end: Update) -> Vec<Step> {
        self.stage = if matches!(end, Update::Done { .. }) { Stage::Idle } else { Stage::Over };
        self.pending.clear();
        vec![Step::Report(end), Step::CloseInput]
    }

    fn fail(&mut self, words: String) -> Vec<Step> {
        self.over(Update::Failed(words))
    }
}

impl Adapter for CodexServer {
    fn begin(&mut self) -> Vec<Step> {
        let client = json!({"name": "sabir", "title": "Sabir", "version": env!("CARGO_PKG_VERSION")});
        vec![self.request(Stage::Initializing, "initialize", json!({"clientInfo": client}))]
    }

    fn on_line(&mut self, line: &str) -> Vec<Step> {
        if matches!(self.stage, Stage::Idle | Stage::Over) {
            return Vec::new();
        }
        match jsonrpc::parse(line) {
            Some(Incoming::Answer { id, outcome }) if id.as_u64() == Some(self.last_request) => {
                self.on_response(outcome)
            }
            Some(Incoming::Request { id, method, params }) => self.on_request(id, &method, &params),
            Some(Incoming::Notification { method, params }) => self.on_notification(&method, &params),
            Some(Incoming::Answer { .. }) | None => Vec::new(),
        }
    }

    fn answer(&mut self, question: &Question, reply: &Reply) -> Vec<Step> {
        let Some(index) = self.pending.iter().position(|pending| pending.asks(question)) else { return Vec::new() };
        match self.pending[index].answer(reply) {
            Response::Ask(question) => vec![Step::Ask(question)],
            Response::Result(result) => {
                let pending = self.pending.remove(index);
                vec![Step::Write(jsonrpc::result(Header::Absent, &pending.id, result))]
            }
        }
    }

    fn is_resumable(&self) -> bool {
        true
    }

    fn reports_session_first(&self) -> bool {
        true
    }

    fn awaits_next_turn(&self) -> bool {
        self.stage == Stage::Idle
    }

    fn begin_next_turn(&mut self, prompt: Prompt, attachments: Vec<Attachment>) -> Vec<Step> {
        (self.prompt, self.attachments) = (prompt, attachments);
        self.last_turn = self.turn.take();
        self.items = Items::default();
        self.before = self.total.take().or(self.before.take());
        self.error = None;
        self.begin_turn()
    }

    fn on_line_between_turns(&mut self, line: &str) -> Vec<String> {
        match jsonrpc::parse(line) {
            Some(Incoming::Request { id, .. }) => vec![jsonrpc::method_not_found(Header::Absent, &id)],
            Some(Incoming::Notification { method, .. }) => {
                if method == "turn/started" {
                    // The program works without a turn, and no program may work in the folder then.
                    self.stage = Stage::Over;
                }
                Vec::new()
            }
            Some(Incoming::Answer { .. }) | None => Vec::new(),
        }
    }

    fn interrupt(&mut self) -> Vec<Step> {
        self.interrupted = true;
        let Some(turn) = self.turn.clone().filter(|_| self.stage == Stage::Working) else { return Vec::new() };
        // The program withdraws its requests by itself.
        self.pending.clear();
        let params = json!({"threadId": self.thread, "turnId": turn});
        vec![self.request(Stage::Working, "turn/interrupt", params)]
    }

    fn on_exit(&mut self, _exit: &Exit) -> Option<Update> {
        self.interrupted.then_some(Update::Interrupted)
    }
}

fn less(spent: &TurnUsage, before: &TurnUsage) -> TurnUsage {
    TurnUsage {
        input_tokens: spent.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: spent.output_tokens.saturating_sub(before.output_tokens),
        cost: None,
    }
}

/// The steps of a plan in one line.
fn plan(params: &Object) -> Option<String> {
    let step = |step: &Object| {
        let words = step.non_empty_text("step")?;
        Some(match step.non_empty_text("status").as_deref() {
            Some("completed") => format!("{words} (done)"),
            Some("inProgress") => format!("{words} (in progress)"),
            _ => words,
        })
    };
    let steps: Vec<String> = params.objects("plan").iter().filter_map(step).collect();
    (!steps.is_empty()).then(|| format!("Plan: {}", steps.join("; ")))
}
