//! The requests of a turn: initialize, open a session, prepare it, prompt, and read until the turn is over.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::initialized::Initialized;
use super::mode;
use super::model::{self, Change};
use super::permission::{Pending, cancelled};
use super::quirk::{self, Quirk};
use super::tool::{self, Tools};
use super::usage::{SessionOrigin, UsageMeter};
use crate::adapter::{Adapter, Exit, Step};
use crate::lenient_json::Object;
use crate::prompt::DOOR_NAME;
use crate::prompt::{Approve, Prompt};
use crate::protocols::attachment::{self, Attachment};
use crate::protocols::error_message;
use crate::protocols::jsonrpc::{self, Header, Incoming, RpcError};
use crate::update::{Question, Reply, Update};

const VERSION: u64 = 1;

/// Error code: the user has to log in first.
const AUTH_REQUIRED: i64 = -32000;

pub struct Acp {
    prompt: Prompt,
    attachments: Vec<Attachment>,
    stage: Stage,
    /// The id of our last request, the only one that waits for a response.
    last_request: u64,
    /// What the program said about itself.
    initialized: Initialized,
    quirk: Quirk,
    session: String,
    /// The model that the session uses, if it says so.
    model: Option<String>,
    origin: SessionOrigin,
    pending: Vec<Pending>,
    tools: Tools,
    /// The tools of the turn before, in the same process.
    last_tools: Tools,
    meter: UsageMeter,
    /// Updates that may belong to a replay of the session.
    held: Option<Vec<Update>>,
    /// Why the turn fails although the program will say that it ended well.
    failure: Option<String>,
    interrupt: Interrupt,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Initializing,
    Opening,
    Preparing(VecDeque<Preparation>),
    Prompted,
    /// The turn is completed, and the session waits for the next prompt.
    Idle,
    Over,
}

/// What is set in a session before it is prompted.
#[derive(Debug, PartialEq, Eq)]
enum Preparation {
    Model(Change),
    Mode(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Interrupt {
    NotAsked,
    Asked,
}

impl Acp {
    pub fn new(prompt: Prompt, attachments: Vec<Attachment>) -> Self {
        let attachments = attachment::all_of(&prompt, attachments);
        Self {
            prompt,
            attachments,
            stage: Stage::Initializing,
            last_request: 0,
            initialized: Initialized::default(),
            quirk: Quirk::None,
            session: String::new(),
            model: None,
            origin: SessionOrigin::New,
            pending: Vec::new(),
            tools: Tools::default(),
            last_tools: Tools::default(),
            meter: UsageMeter::default(),
            held: None,
            failure: None,
            interrupt: Interrupt::NotAsked,
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Step {
        self.last_request += 1;
        Step::Write(jsonrpc::request(Header::Version2, self.last_request, method, params))
    }

    fn on_response(&mut self, outcome: Result<Object, RpcError>) -> Vec<Step> {
        match (&mut self.stage, outcome) {
            (Stage::Initializing, Ok(result)) => self.greeted(&result),
            (Stage::Initializing, Err(fault)) => self.fail(format!("the program does not start: {}", fault.message)),
            (Stage::Opening, Ok(result)) => self.opened(&result),
            (Stage::Opening, Err(fault)) if fault.code == AUTH_REQUIRED => self.fail_logged_out(&fault),
            (Stage::Opening, Err(fault)) if self.origin == SessionOrigin::Resumed => self.open_anew(&fault.message),
            (Stage::Opening, Err(fault)) => self.fail(format!("the program opens no session: {}", fault.message)),
            (Stage::Preparing(preparations), outcome) => {
                match preparations.pop_front() {
                    Some(Preparation::Model(change)) => self.model_set(change, outcome),
                    // Without this mode the program asks more often, and the policy answers.
                    Some(Preparation::Mode(_)) | None => self.prepare(),
                }
            }
            (Stage::Prompted, Ok(result)) => self.ended_turn(&result),
            (Stage::Prompted, Err(_)) if self.interrupt == Interrupt::Asked => self.over(Update::Interrupted),
            (Stage::Prompted, Err(fault)) => {
                let is_logged_out = fault.code == AUTH_REQUIRED && fault.message.to_lowercase().contains("auth");
                if is_logged_out { self.fail_logged_out(&fault) } else { self.fail(fault.message) }
            }
            (Stage::Idle | Stage::Over, _) => Vec::new(),
        }
    }

    fn greeted(&mut self, initialized: &Object) -> Vec<Step> {
        if let Some(version) = initialized.integer("protocolVersion").filter(|spoken| *spoken != VERSION) {
            return self
                .fail(format!("the program speaks version {version} of the Agent Client Protocol, not {VERSION}"));
        }
        self.initialized = Initialized::of(initialized);
        self.quirk = Quirk::of(self.initialized.program.as_deref());
        let method = match (&self.prompt.session, self.initialized.resume_method) {
            (None, _) => return vec![self.open()],
            (Some(_), None) => return self.open_anew("the program keeps no sessions"),
            (Some(_), Some(method)) => method,
        };
        self.stage = Stage::Opening;
        self.origin = SessionOrigin::Resumed;
        let servers = self.servers();
        let params = json!({"sessionId": self.prompt.session, "cwd": self.folder(), "mcpServers": servers});
        vec![self.request(method, params)]
    }

    fn open(&mut self) -> Step {
        self.stage = Stage::Opening;
        self.origin = SessionOrigin::New;
        let params = json!({"cwd": self.folder(), "mcpServers": self.servers()});
        self.request("session/new", params)
    }

    /// The door to other agents, if the program may ask any.
    fn servers(&self) -> Value {
        let Some(door) = &self.prompt.agents_door else { return json!([]) };
        if self.initialized.knows_http_servers {
            let header = json!({"name": "Authorization", "value": format!("Bearer {}", door.credential)});
            return json!([{"type": "http", "name": DOOR_NAME, "url": door.url, "headers": [header]}]);
        }
        let base = door.url.strip_suffix("/mcp").unwrap_or(&door.url);
        let credential = json!({"name": "SABIR_TOKEN", "value": door.credential});
        let bridge = door.bridge.to_string_lossy();
        json!([{"name": DOOR_NAME, "command": bridge, "args": ["mcp", "--url", base], "env": [credential]}])
    }

    fn open_anew(&mut self, reason: &str) -> Vec<Step> {
        let report = progress(format!("The earlier session cannot be resumed, a new one begins: {reason}"));
        vec![report, self.open()]
    }

    fn opened(&mut self, session: &Object) -> Vec<Step> {
        // The answer to `session/load` need not repeat the id.
        let known = self.prompt.session.clone().filter(|_| self.origin == SessionOrigin::Resumed);
        let Some(id) = session.non_empty_text("sessionId").or(known) else {
            return self.fail("the program opens no session".into());
        };
        self.session = id;
        self.model = model::current(session);
        let mut preparations = VecDeque::new();
        match self.prompt.model.as_deref().map(|wanted| model::change(session, wanted)) {
            None | Some(Ok(None)) => {}
            Some(Ok(Some(change))) => preparations.push_back(Preparation::Model(change)),
            Some(Err(why)) => return self.fail_without_model(&why),
        }
        if self.prompt.approve == Approve::All {
            preparations.extend(mode::full_access(session).map(Preparation::Mode));
        }
        self.stage = Stage::Preparing(preparations);
        self.prepare()
    }

    /// Reads the response to the change of the model. The turn fails rather than use another model than the operator wants.
    fn model_set(&mut self, change: Change, outcome: Result<Object, RpcError>) -> Vec<Step> {
        let model = match (change, outcome) {
            (_, Err(fault)) => return self.fail_without_model(&fault.message),
            (Change::Option { id, value }, Ok(answer)) => {
                if let Some(other) = model::other_value(&answer, &id, &value) {
                    return self.fail_without_model(&format!("the program uses {other} instead"));
                }
                value
            }
            (Change::Model(id), Ok(_)) => id,
        };
        self.model = Some(model);
        self.prepare()
    }

    fn fail_without_model(&mut self, why: &str) -> Vec<Step> {
        let model = self.prompt.model.as_deref().unwrap_or_default();
        self.fail(format!("the model {model} cannot be used: {why}"))
    }

    /// Sends the next preparation, or the prompt if all are done.
    fn prepare(&mut self) -> Vec<Step> {
        let next = match &self.stage {
            Stage::Preparing(preparations) => preparations.front(),
            _ => None,
        };
        let session = &self.session;
        let (method, params) = match next {
            Some(Preparation::Model(Change::Option { id, value })) => {
                let params = json!({"sessionId": session, "configId": id, "value": value});
                ("session/set_config_option", params)
            }
            Some(Preparation::Model(Change::Model(model))) => {
                ("session/set_model", json!({"sessionId": session, "modelId": model}))
            }
            Some(Preparation::Mode(mode)) => ("session/set_mode", json!({"sessionId": session, "modeId": mode})),
            None => return self.begin_turn(),
        };
        vec![self.request(method, params)]
    }

    /// Reports the session and sends the prompt. Before the prompt the session is empty and not worth keeping.
    fn begin_turn(&mut self) -> Vec<Step> {
        self.stage = Stage::Prompted;
        if self.quirk == Quirk::ReplaysLate && self.origin == SessionOrigin::Resumed {
            self.held = Some(Vec::new());
        }
        let init = Update::Init { session: Some(self.session.clone()), model: self.model.clone() };
        let params = json!({"sessionId": self.session, "prompt": self.content()});
        vec![Step::Report(init), self.request("session/prompt", params)]
    }

    fn content(&self) -> Vec<Value> {
        let text = match &self.prompt.instructions {
            Some(instructions) if self.origin == SessionOrigin::New => {
                format!("{instructions}\n\n{}", self.prompt.text)
            }
            _ => self.prompt.text.clone(),
        };
        let file = |file: &Attachment| match file.image().filter(|_| self.initialized.takes_images) {
            Some((media_type, data)) => json!({"type": "image", "mimeType": media_type, "data": data}),
            None => {
                let mut link =
                    json!({"type": "resource_link", "uri": file.uri(&self.prompt.folder), "name": file.name});
                if let Some(media_type) = &file.media_type {
                    link["mimeType"] = json!(media_type);
                }
                link
            }
        };
        let text = json!({"type": "text", "text": text});
        [text].into_iter().chain(self.attachments.iter().map(file)).collect()
    }

    fn on_request(&mut self, id: Value, method: &str, params: &Object) -> Vec<Step> {
        if method != "session/request_permission" {
            // Sabir offers no files and terminals: the program has direct access to the workspace.
            return vec![Step::Write(jsonrpc::method_not_found(Header::Version2, &id))];
        }
        let asked_for = self.tools.asked_for(&params.object("toolCall"));
        let (tool, report) = asked_for.map_or((None, None), |(tool, report)| (Some(tool), report));
        let pending = Pending::new(id, params, tool, self.initialized.program.as_deref());
        let mut steps = self.release();
        steps.extend(report.map(Step::Report));
        let decided = if self.stage == Stage::Prompted && self.interrupt == Interrupt::NotAsked {
            pending.decided_by(self.prompt.approve)
        } else {
            Some(cancelled())
        };
        match decided {
            Some(outcome) => steps.push(Step::Write(jsonrpc::result(Header::Version2, &pending.id, outcome))),
            None => {
                steps.push(Step::Ask(pending.question.clone()));
                self.pending.push(pending);
            }
        }
        steps
    }

    fn on_notification(&mut self, method: &str, params: &Object) -> Vec<Step> {
        if method != "session/update" {
            return Vec::new();
        }
        let update = &params.object("update");
        if self.stage != Stage::Prompted {
            // Updates before the prompt are the history of the session.
            if update.non_empty_text("sessionUpdate").as_deref() == Some("usage_update") {
                self.meter.start_at(update);
            }
            return Vec::new();
        }
        if params.non_empty_text("sessionId").is_some_and(|session| session != self.session) {
            return Vec::new();
        }
        let updates = self.updates_of(update);
        match &mut self.held {
            Some(held) => {
                held.extend(updates);
                Vec::new()
            }
            None => updates.into_iter().map(Step::Report).collect(),
        }
    }

    fn updates_of(&mut self, update: &Object) -> Vec<Update> {
        let text = || update.object("content").non_empty_text("text");
        match update.non_empty_text("sessionUpdate").unwrap_or_default().as_str() {
            "agent_message_chunk" => text().and_then(|text| self.piece(update, text)).into_iter().collect(),
            "agent_thought_chunk" => text().map(Update::Thought).into_iter().collect(),
            // A tool of the previous turn has ended.
            "tool_call_update" if self.last_tools.knows(update) && !self.tools.knows(update) => Vec::new(),
            "tool_call" | "tool_call_update" => self.tools.note(update),
            "plan" => tool::plan(update).map(Update::Progress).into_iter().collect(),
            "usage_update" => {
                self.meter.note(update);
                Vec::new()
            }
            "session_info_update" => {
                match quirk::thread_state(update).as_deref() {
                    Some("systemError") => self.failure = Some("the program broke off its turn".into()),
                    Some("active") => self.failure = None,
                    _ => {}
                }
                Vec::new()
            }
            "available_commands_update" => {
                // The replay is over, and the held updates belong to it.
                self.held = None;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// A piece of text, usually of the answer.
    fn piece(&mut self, update: &Object, text: String) -> Option<Update> {
        let is_notice = self.quirk == Quirk::NoticesAmongText && update.non_empty_text("messageId").is_none();
        if is_notice && self.failure.is_some() {
            self.failure = Some(error_message::inner(&text));
            return None;
        }
        if is_notice {
            return Some(Update::Progress(text.trim().to_owned()));
        }
        if quirk::is_reported_failure(&text) {
            self.failure = Some(text.trim().to_owned());
            return None;
        }
        self.failure = None;
        Some(Update::Text(text))
    }

    fn ended_turn(&mut self, result: &Object) -> Vec<Step> {
        let mut steps = self.release();
        steps.extend(self.meter.total(self.origin, self.quirk, result).map(|spent| Step::Report(Update::Usage(spent))));
        let failed = |words: &str| Update::Failed(words.to_owned());
        let end = match (result.non_empty_text("stopReason").as_deref(), self.failure.take()) {
            // Goose ends an interrupted turn as if it were done.
            (Some("cancelled"), _) => Update::Interrupted,
            _ if self.interrupt == Interrupt::Asked => Update::Interrupted,
            (Some("end_turn"), None) => Update::Done { summary: None },
            (Some("end_turn"), Some(words)) => Update::Failed(words),
            (Some("max_tokens"), _) => failed("the answer is longer than its model may write"),
            (Some("max_turn_requests"), _) => failed("the program asked its model as often as it may in one turn"),
            (Some("refusal"), _) => failed("the model refuses to answer"),
            (Some(reason), _) => Update::Failed(format!("the program stopped: {reason}")),
            (None, _) => failed("the program stopped and gave no reason"),
        };
        steps.extend(self.over(end));
        steps
    }

    /// No replay is running: the held updates belong to this turn.
    fn release(&mut self) -> Vec<Step> {
        self.held.take().unwrap_or_default().into_iter().map(Step::Report).collect()
    }

    fn over(&mut self, end: Update) -> Vec<Step> {
        self.stage = if matches!(end, Update::Done { .. }) { Stage::Idle } else { Stage::Over };
        self.pending.clear();
        vec![Step::Report(end), Step::CloseInput]
    }

    fn fail(&mut self, words: String) -> Vec<Step> {
        self.over(Update::Failed(words))
    }

    fn fail_logged_out(&mut self, fault: &RpcError) -> Vec<Step> {
        let ways = &self.initialized.logins;
        let ways = if ways.is_empty() { String::new() } else { format!(" (it offers: {})", ways.join(", ")) };
        self.fail(format!(
            "the program is not logged in: log in with its own command first{ways}. It said: {}",
            fault.message
        ))
    }

    fn folder(&self) -> String {
        self.prompt.folder.to_string_lossy().into_owned()
    }
}

impl Adapter for Acp {
    fn begin(&mut self) -> Vec<Step> {
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
            "clientInfo": {"name": "sabir", "title": "Sabir", "version": env!("CARGO_PKG_VERSION")},
        });
        vec![self.request("initialize", params)]
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
            Some(Incoming::Notification { method, params }) => {
                let withdrawn: Vec<Pending> =
                    self.pending.extract_if(.., |pending| pending.is_withdrawn_by(&method, &params)).collect();
                let mut steps: Vec<Step> =
                    withdrawn.into_iter().map(|pending| Step::Withdraw(pending.question.id)).collect();
                steps.extend(self.on_notification(&method, &params));
                steps
            }
            Some(Incoming::Answer { .. }) | None => Vec::new(),
        }
    }

    fn answer(&mut self, question: &Question, reply: &Reply) -> Vec<Step> {
        let Some(index) = self.pending.iter().position(|pending| pending.question.id == question.id) else {
            return Vec::new();
        };
        let pending = self.pending.remove(index);
        vec![Step::Write(jsonrpc::result(Header::Version2, &pending.id, pending.outcome(reply)))]
    }

    fn is_resumable(&self) -> bool {
        self.initialized.resume_method.is_some()
    }

    fn reports_session_first(&self) -> bool {
        true
    }

    fn awaits_next_turn(&self) -> bool {
        self.stage == Stage::Idle
    }

    fn begin_next_turn(&mut self, prompt: Prompt, attachments: Vec<Attachment>) -> Vec<Step> {
        (self.prompt, self.attachments) = (prompt, attachments);
        self.origin = SessionOrigin::Resumed;
        self.last_tools = std::mem::take(&mut self.tools);
        self.meter.begin_next_turn();
        self.failure = None;
        let begun = self.begin_turn();
        // Nothing is replayed.
        self.held = None;
        begun
    }

    fn on_line_between_turns(&mut self, line: &str) -> Vec<String> {
        match jsonrpc::parse(line) {
            Some(Incoming::Request { id, method, .. }) if method == "session/request_permission" => {
                vec![jsonrpc::result(Header::Version2, &id, cancelled())]
            }
            Some(Incoming::Request { id, .. }) => vec![jsonrpc::method_not_found(Header::Version2, &id)],
            Some(Incoming::Notification { params, .. }) => {
                let update = params.object("update");
                let is_over = matches!(update.non_empty_text("status").as_deref(), Some("completed" | "failed"));
                match update.non_empty_text("sessionUpdate").as_deref() {
                    Some("usage_update") => self.meter.note(&update),
                    // The program works without a turn, and no program may work in the folder then.
                    Some("tool_call") if !is_over && !self.tools.knows(&update) => self.stage = Stage::Over,
                    _ => {}
                }
                Vec::new()
            }
            Some(Incoming::Answer { .. }) | None => Vec::new(),
        }
    }

    fn interrupt(&mut self) -> Vec<Step> {
        self.interrupt = Interrupt::Asked;
        if self.stage != Stage::Prompted {
            return Vec::new();
        }
        let cancel =
            jsonrpc::notification(Header::Version2, "session/cancel", Some(json!({"sessionId": self.session})));
        let unanswered =
            self.pending.drain(..).map(|pending| jsonrpc::result(Header::Version2, &pending.id, cancelled()));
        [cancel].into_iter().chain(unanswered).map(Step::Write).collect()
    }

    fn on_exit(&mut self, _exit: &Exit) -> Option<Update> {
        (self.interrupt == Interrupt::Asked).then_some(Update::Interrupted)
    }
}

fn progress(words: String) -> Step {
    Step::Report(Update::Progress(words))
}
