//! The door itself: reads a message of a client, and says what it is answered.
//!
//! Nothing is kept between messages. What a call needs of an earlier one is in the call: the version and the capabilities of the
//! client, the task, the question.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use sabir_engine::Engine;
use sabir_model::{
    Birth, Call, Caller, Cancel, Delivery, Error, IncomingMessage, Json, JsonMembers, OnFinishedCancel, Owner, Send,
    Task, TaskId,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;

use super::client::{Client, McpHeaders, McpTransport, McpVersion, unsupported};
use super::elicitation::{QuestionName, UserAction};
use super::message::{self, ClientMessage, Empty, Refusal, Request, json_of};
use super::resources::{self, TEMPLATE};
use super::tasks_extension::{DetailedTask, TASKS};
use super::tool_call::ToolCall;
use super::tools::{INSTRUCTIONS, definitions};
use crate::follow;
use crate::question::{GivenAnswer, Question, answer_send};
use crate::words::told_of;

/// How many messages wait for a slow client before the call waits too.
const WAITING_MESSAGES: usize = 16;
/// How many closed questions a call may be behind.
const MOST_CLOSED: usize = 64;
/// How long lists may be kept by clients.
const LIST_TTL_MS: u64 = 60_000;

/// How the door behaves.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// The longest wait of a call, below what hosts allow a tool.
    pub longest_wait: Duration,
    /// The version of this server.
    pub version: String,
    /// The dialect that tasks of this door are born in.
    pub born: Birth,
}

/// MCP in front of an engine.
#[derive(Clone)]
pub struct McpDoor {
    pub(crate) engine: Engine,
    pub(crate) settings: Arc<McpSettings>,
    /// Tells calls that wait here which questions users have closed, so that they wait no longer. A call that waits at another
    /// server waits to its end.
    closed_questions: broadcast::Sender<ClosedQuestion>,
}

/// A question that will get no answer from the form that shows it.
#[derive(Debug, Clone)]
pub(crate) struct ClosedQuestion {
    /// Whose form it is.
    pub(crate) owner: Owner,
    pub(crate) name: QuestionName,
    /// Why the answer was not taken; `None`: the user gave none.
    pub(crate) reason: Option<String>,
}

/// What became of what a user made of a form.
pub(crate) enum FormOutcome {
    /// The answer was sent to the task.
    Sent,
    /// The user gave none.
    Closed,
    Refused(String),
    /// It is not open any more.
    NotOpen,
}

/// What a message is answered.
pub enum McpReply {
    /// Nothing: a notification, or the response to a question.
    Accepted,
    /// A message that is there already.
    Whole {
        /// The status of HTTP.
        status: u16,
        /// JSON.
        body: Vec<u8>,
        /// The session that `initialize` began, for the header `Mcp-Session-Id`.
        session: Option<String>,
    },
    /// A call that takes its time.
    Call(McpCall),
}

/// A call under way. Whoever drops it stops waiting; the task goes on.
pub struct McpCall {
    /// What is told meanwhile, message by message: progress, and questions to the user.
    pub messages: mpsc::Receiver<Vec<u8>>,
    /// Resolves to the response.
    pub response: BoxFuture<'static, Vec<u8>>,
    /// The response instead, where there is no memory for the other one.
    pub too_large: Vec<u8>,
}

/// Where a call tells what happens meanwhile.
#[derive(Clone)]
pub(crate) struct Outlet(mpsc::Sender<Vec<u8>>);

impl Outlet {
    /// Something that may be left out if the client does not keep up.
    pub(crate) fn hint(&self, message: Vec<u8>) {
        let _ = self.0.try_send(message);
    }

    /// Something that must arrive; `false`: nobody reads it.
    pub(crate) async fn tell(&self, message: Vec<u8>) -> bool {
        self.0.send(message).await.is_ok()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskParams {
    task_id: String,
    input_responses: Option<std::collections::BTreeMap<String, Json>>,
}

#[derive(Serialize)]
struct ServerInfo<'a> {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'static str>,
    version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult<'a> {
    protocol_version: &'static str,
    capabilities: Json,
    server_info: ServerInfo<'a>,
    instructions: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult<'a> {
    result_type: &'static str,
    supported_versions: Vec<&'static str>,
    capabilities: Json,
    instructions: &'static str,
    ttl_ms: u64,
    cache_scope: &'static str,
    #[serde(rename = "_meta")]
    meta: ServerMeta<'a>,
}

#[derive(Serialize)]
struct ServerMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: ServerInfo<'a>,
}

/// A result of the modern era says what it is, and how long lists may be kept.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    #[serde(flatten)]
    result: T,
}

impl<T: Serialize> Listed<T> {
    fn new(client: Client, result: T) -> Self {
        let is_modern = client.is_modern();
        Self {
            result_type: is_modern.then_some("complete"),
            ttl_ms: is_modern.then_some(LIST_TTL_MS),
            // The agents that a caller sees are the caller's.
            cache_scope: is_modern.then_some("private"),
            result,
        }
    }
}

#[derive(Serialize)]
struct ToolList<T> {
    tools: T,
}

#[derive(Serialize)]
struct ResourceList {
    resources: [Empty; 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TemplateList {
    resource_templates: [Template; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Template {
    uri_template: &'static str,
    name: &'static str,
    description: &'static str,
}

/// An answer without content.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
}

impl McpDoor {
    /// A door in front of this engine.
    pub fn new(engine: Engine, settings: McpSettings) -> Self {
        Self { engine, settings: Arc::new(settings), closed_questions: broadcast::channel(MOST_CLOSED).0 }
    }

    /// Whether a session id is one of ours, so that a client with another begins anew.
    pub fn knows_session(id: &str, transport: McpTransport) -> bool {
        Client::of_session(id, transport).is_some()
    }

    /// Reads a message that came over HTTP, and does what it says.
    pub async fn receive_http(&self, caller: &Caller, headers: McpHeaders<'_>, body: &[u8]) -> McpReply {
        let message = match ClientMessage::read(body) {
            Ok(message) => message,
            Err((id, refusal)) => return refused(id.as_ref(), &refusal),
        };
        let request = match message {
            ClientMessage::Request(request) => request,
            ClientMessage::Notification => return McpReply::Accepted,
            ClientMessage::Response { id, result } => {
                self.take_response(caller, &id, result.as_ref()).await;
                return McpReply::Accepted;
            }
        };
        let client = match self.http_client(&request, headers) {
            Ok(client) => client,
            Err(refusal) => return refused(Some(&request.id), &refusal),
        };
        self.answer(caller, client, headers.transport, request).await
    }

    /// What is known of the client that sends this request.
    fn http_client(&self, request: &Request, headers: McpHeaders<'_>) -> Result<Client, Refusal> {
        let transport = headers.transport;
        if let Some(client) = Client::of_request(&request.params, headers.protocol_version, transport)? {
            check_headers(request, client, headers)?;
            return Ok(client);
        }
        let named = headers.protocol_version;
        let version = match named.map(|name| McpVersion::parse(name, transport)) {
            None => McpVersion::V2025_03_26,
            Some(Some(version)) => version,
            Some(None) => return Err(unsupported(named.unwrap_or_default(), transport)),
        };
        let known = headers.session.and_then(|id| Client::of_session(id, transport));
        Ok(known.unwrap_or(Client::unknown(version)))
    }

    async fn answer(&self, caller: &Caller, client: Client, transport: McpTransport, request: Request) -> McpReply {
        let answered = match (request.method.as_str(), client.is_modern()) {
            ("tools/list" | "resources/list" | "resources/templates/list", _) if names_cursor(&request) => {
                Err(Refusal::invalid_params("Invalid params: there is no such cursor; lists come whole"))
            }
            ("tools/call", _) => match ToolCall::read(self, caller, client, &request) {
                Ok(call) => return McpReply::Call(self.begin(caller, call, request.id)),
                Err(refusal) => Err(refusal),
            },
            ("initialize", false) => return self.initialize(&request, transport),
            ("ping", false) => Ok(message::result(&request.id, Empty {})),
            ("logging/setLevel", false) => Ok(message::result(&request.id, Empty {})),
            ("server/discover", true) => Ok(message::result(&request.id, self.discover(client, transport))),
            ("tools/list", _) => {
                let tools = definitions(&self.engine, caller, client, self.settings.longest_wait);
                Ok(message::result(&request.id, Listed::new(client, ToolList { tools })))
            }
            ("resources/list", _) => {
                Ok(message::result(&request.id, Listed::new(client, ResourceList { resources: [] })))
            }
            ("resources/templates/list", _) => {
                let template = Template {
                    uri_template: TEMPLATE,
                    name: "artifact",
                    description: "What a task has made. Results of tools name the URIs.",
                };
                let list = TemplateList { resource_templates: [template] };
                Ok(message::result(&request.id, Listed::new(client, list)))
            }
            ("resources/read", _) => {
                let read = resources::read(&self.engine, caller, &request).await;
                read.map(|read| message::result(&request.id, Listed::new(client, read)))
            }
            ("tasks/get" | "tasks/update" | "tasks/cancel", true) => self.task_method(caller, client, &request).await,
            (method, is_modern) => {
                let method: String = method.chars().take(200).collect();
                let refusal = Refusal::new(Refusal::NO_METHOD, format!("Method not found: {method}"));
                Err(if is_modern { refusal.with_status(404) } else { refusal })
            }
        };
        match answered {
            Ok(body) => McpReply::Whole { status: 200, body, session: None },
            Err(refusal) => refused(Some(&request.id), &refusal),
        }
    }

    fn begin(&self, caller: &Caller, call: ToolCall, id: Json) -> McpCall {
        let (sender, messages) = mpsc::channel(WAITING_MESSAGES);
        let no_memory = "the server has no memory left for this answer; call get_task later";
        let too_large = message::error(Some(&id), &Refusal::new(Refusal::INTERNAL, no_memory));
        let (door, caller) = (self.clone(), caller.clone());
        let response = Box::pin(async move {
            match call.run(&door, &caller, &Outlet(sender)).await {
                Ok(result) => message::result(&id, result),
                Err(refusal) => message::error(Some(&id), &refusal),
            }
        });
        McpCall { messages, response, too_large }
    }

    fn initialize(&self, request: &Request, transport: McpTransport) -> McpReply {
        let client = match Client::of_initialize(&request.params, transport) {
            Ok(client) => client,
            Err(refusal) => return refused(Some(&request.id), &refusal),
        };
        let result = InitializeResult {
            protocol_version: client.version.name(),
            capabilities: Json::parse(r#"{"tools":{},"resources":{}}"#).expect("it is JSON"),
            server_info: self.server_info(client),
            instructions: INSTRUCTIONS,
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let session = Some(client.session_id(since.as_nanos() as u64));
        McpReply::Whole { status: 200, body: message::result(&request.id, result), session }
    }

    fn discover(&self, client: Client, transport: McpTransport) -> DiscoverResult<'_> {
        let capabilities = format!(r#"{{"tools":{{}},"resources":{{}},"extensions":{{"{TASKS}":{{}}}}}}"#);
        DiscoverResult {
            result_type: "complete",
            supported_versions: McpVersion::names(transport),
            capabilities: Json::parse(capabilities).expect("it is JSON"),
            instructions: INSTRUCTIONS,
            ttl_ms: LIST_TTL_MS,
            cache_scope: "public",
            meta: ServerMeta { server_info: self.server_info(client) },
        }
    }

    fn server_info(&self, client: Client) -> ServerInfo<'_> {
        let title = client.knows_titles().then_some("Sabir");
        ServerInfo { name: "sabir", title, version: &self.settings.version }
    }

    /// `tasks/get`, `tasks/update` and `tasks/cancel` of the tasks extension.
    async fn task_method(&self, caller: &Caller, client: Client, request: &Request) -> Result<Vec<u8>, Refusal> {
        if !client.knows_tasks {
            #[derive(Serialize)]
            #[serde(rename_all = "camelCase")]
            struct Data {
                required_capabilities: Json,
            }
            let required = format!(r#"{{"extensions":{{"{TASKS}":{{}}}}}}"#);
            let data = Data { required_capabilities: Json::parse(required).expect("it is JSON") };
            let refusal = Refusal::new(Refusal::MISSING_CAPABILITY, "Missing required client capability");
            return Err(refusal.with_status(400).with_data(&data));
        }
        let params: TaskParams = serde_json::from_str(request.params.as_str())
            .map_err(|error| Refusal::invalid_params(format!("Invalid params: {error}")))?;
        let id = TaskId::parse(params.task_id)
            .map_err(|why| Refusal::invalid_params(format!("Invalid params: taskId {why}")))?;
        let done = Done { result_type: Some("complete") };
        match request.method.as_str() {
            "tasks/get" => {
                let task = follow::read(&self.engine, caller, None, id).await.map_err(|error| task_refusal(&error))?;
                Ok(message::result(&request.id, DetailedTask::of(client, caller, &task)))
            }
            "tasks/cancel" => {
                let cancel = Cancel { agent: None, task: id, metadata: None, on_finished: OnFinishedCancel::Leave };
                self.engine.call(caller, Call::Cancel(cancel)).await.map_err(|error| task_refusal(&error))?;
                Ok(message::result(&request.id, done))
            }
            _ => {
                // The task must exist, whatever is answered.
                let task = follow::read(&self.engine, caller, None, id).await.map_err(|error| task_refusal(&error))?;
                // What is not open, or was never asked, is left alone.
                if let Some(question) = Question::of(&task) {
                    let name = QuestionName::of(&task, &question);
                    let mut responses = params.input_responses.unwrap_or_default();
                    if let Some(response) = responses.remove(&name.text()) {
                        self.take_form_of(caller, &task, &name, UserAction::read(Some(&response))).await;
                    }
                }
                Ok(message::result(&request.id, done))
            }
        }
    }

    /// The response to an elicitation of a legacy client.
    async fn take_response(&self, caller: &Caller, id: &Json, result: Option<&Json>) {
        if let Some(name) = id.text().as_deref().and_then(QuestionName::parse) {
            self.take_form(caller, &name, UserAction::read(result)).await;
        }
    }

    /// Sends what the user has answered to the task, if that question is still open and this caller may answer it.
    pub(crate) async fn take_form(&self, caller: &Caller, name: &QuestionName, action: UserAction) -> FormOutcome {
        let found = follow::read(&self.engine, caller, Some(name.agent.clone()), name.task.clone()).await;
        let Ok(task) = found else { return FormOutcome::NotOpen };
        self.take_form_of(caller, &task, name, action).await
    }

    async fn take_form_of(&self, caller: &Caller, task: &Task, name: &QuestionName, action: UserAction) -> FormOutcome {
        let open = Question::of(task).filter(|open| open.id == name.question && open.may_be_answered_by(caller, task));
        let Some(question) = open else { return FormOutcome::NotOpen };
        let close = |reason| {
            // Without a receiver, nobody waits.
            let _ =
                self.closed_questions.send(ClosedQuestion { owner: caller.owner.clone(), name: name.clone(), reason });
        };
        let Some(answer) = action.answer(&question) else {
            close(None);
            return FormOutcome::Closed;
        };
        let mut send = self.answer_send(task, Some(&question.id.to_string()), &answer);
        // Whoever waits for the task does so elsewhere, and a stream has a limit.
        send.delivery = Delivery::Immediately;
        match self.engine.call(caller, Call::Send(Box::new(send))).await {
            Ok(_) => FormOutcome::Sent,
            Err(error) => {
                let reason = told_of(&error);
                close(Some(reason.clone()));
                FormOutcome::Refused(reason)
            }
        }
    }

    /// Tells which questions are closed from now on.
    pub(crate) fn closed_questions(&self) -> broadcast::Receiver<ClosedQuestion> {
        self.closed_questions.subscribe()
    }

    pub(crate) fn answer_send(&self, task: &Task, question: Option<&str>, answer: &GivenAnswer) -> Send {
        answer_send(task, question, answer, self.settings.born)
    }

    pub(crate) fn send(&self, message: IncomingMessage) -> Send {
        Send::new(message, self.settings.born)
    }

    pub(crate) fn deadline(&self, seconds: Option<u64>) -> Instant {
        let asked = seconds.map_or(self.settings.longest_wait, Duration::from_secs);
        Instant::now() + asked.min(self.settings.longest_wait)
    }
}

/// Lists come whole, so no cursor is one that a client was given.
fn names_cursor(request: &Request) -> bool {
    let JsonMembers(members) = serde_json::from_str(request.params.as_str()).unwrap_or(JsonMembers(Vec::new()));
    members.iter().any(|(name, value)| name == "cursor" && value.get() != "null")
}

/// Headers must repeat what the body says, since whatever stands in front decides by them.
fn check_headers(request: &Request, client: Client, headers: McpHeaders<'_>) -> Result<(), Refusal> {
    let mismatch =
        |why: String| Refusal::new(Refusal::HEADER_MISMATCH, format!("Header mismatch: {why}")).with_status(400);
    let expect = |name: &str, value: Option<&str>, expected: &str| match value {
        None => Err(mismatch(format!("{name} is missing"))),
        Some(value) if value == expected => Ok(()),
        Some(value) => {
            let short = |text: &str| text.chars().take(200).collect::<String>();
            Err(mismatch(format!(
                "{name} header value '{}' does not match body value '{}'",
                short(value),
                short(expected)
            )))
        }
    };
    expect("MCP-Protocol-Version", headers.protocol_version, client.version.name())?;
    expect("Mcp-Method", headers.method, &request.method)?;
    let member = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let JsonMembers(members) = serde_json::from_str(request.params.as_str()).unwrap_or(JsonMembers(Vec::new()));
    let mut named = members.iter().filter(|(known, _)| known == member).map(|(_, value)| Json::from(*value).text());
    let (Some(Some(named)), None) = (named.next(), named.next()) else {
        return Err(mismatch(format!("the body must have one {member}, which is a string")));
    };
    let value = headers.name.map(decoded_header);
    expect("Mcp-Name", value.as_deref(), &named)
}

/// A header value that is no plain text comes as base64 of UTF-8.
fn decoded_header(value: &str) -> String {
    let inner = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let bytes = inner.and_then(|base64| Some(sabir_model::Base64::parse(base64)?.decode()));
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_owned())
}

fn refused(id: Option<&Json>, refusal: &Refusal) -> McpReply {
    McpReply::Whole { status: refusal.status, body: message::error(id, refusal), session: None }
}

pub(crate) fn task_refusal(error: &Error) -> Refusal {
    let code = match error {
        Error::Internal(_) => Refusal::INTERNAL,
        _ => Refusal::INVALID_PARAMS,
    };
    Refusal::new(code, told_of(error))
}

/// The parameters of `notifications/progress`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressParams<'a> {
    pub(crate) progress_token: &'a Json,
    pub(crate) progress: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<&'a str>,
}

impl ProgressParams<'_> {
    pub(crate) fn notification(&self) -> Vec<u8> {
        message::notification("notifications/progress", json_of(self))
    }
}
