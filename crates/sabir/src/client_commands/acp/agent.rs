//! The methods of ACP, and the sessions that are open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sabir_model::{ContextId, Json, MessageId, Part, Task};
use serde::Serialize;
use serde::de::IgnoredAny;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

use super::content::parts_of;
use super::editor::Editor;
use super::json_rpc::{Incoming, RpcError, Unreadable, read_params};
use super::lines::{self, Line};
use super::params::{self, Authenticate, CancelSession, Initialize, ListSessions, NewSession, OpenSession};
use super::presenter::Presenter;
use super::server::{self, Server, error_of, log};
use super::session::{PromptPlace, Session, canceled};
use super::turn::{StopReason, Turn};
use super::{replay, session_list};
use crate::client_commands::connection::Connection;
use crate::client_commands::received_task::ReceivedTask;

/// The version that is spoken here, whatever the editor speaks. One that has no such version hangs up.
const VERSION: u16 = 1;
/// For answers when the editor has closed its end.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// Requests under way at the same time.
const MOST_REQUESTS: usize = 256;
/// Of the newest tasks of a session, so many are told again.
const MOST_TASKS: usize = 1000;

struct Agent {
    server: Server,
    editor: Arc<Editor>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
}

/// Answers the editor until it closes its end, or reads no more. Tasks go on without it.
pub async fn serve(server: Server) {
    let (out, mut written) = lines::output();
    let agent = Arc::new(Agent { server, editor: Arc::new(Editor::new(out)), sessions: Mutex::default() });
    let mut under_way = JoinSet::new();
    let mut lines = lines::input();
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => agent.take(line, &mut under_way).await,
                None => break,
            },
            _ = &mut written => return,
            Some(_) = under_way.join_next() => {}
        }
    }
    // A script closes its end after the last message. An editor that has gone is not waited for.
    let last_answers = async { while under_way.join_next().await.is_some() {} };
    tokio::select! {
        _ = timeout(LAST_ANSWERS, last_answers) => {}
        _ = &mut written => return,
    }
    under_way.shutdown().await;
    drop(agent);
    let _ = timeout(LAST_ANSWERS, written).await;
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Initialized {
    protocol_version: u16,
    agent_capabilities: Capabilities,
    agent_info: Implementation,
    auth_methods: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    load_session: bool,
    prompt_capabilities: PromptCapabilities,
    /// The agent's tools are configured where it runs.
    mcp_capabilities: McpCapabilities,
    session_capabilities: SessionCapabilities,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PromptCapabilities {
    image: bool,
    audio: bool,
    embedded_context: bool,
}

#[derive(Serialize)]
struct McpCapabilities {
    http: bool,
    sse: bool,
}

#[derive(Serialize)]
struct SessionCapabilities {
    list: Empty,
    resume: Empty,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Implementation {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionIsNew<'a> {
    session_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PromptIsOver {
    stop_reason: StopReason,
}

/// What to do with the history of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replay {
    /// `session/load`.
    Shown,
    /// `session/resume`.
    LeftOut,
}

impl Agent {
    async fn take(self: &Arc<Self>, line: Line, under_way: &mut JoinSet<()>) {
        let text = match line {
            Line::Text(text) if text.trim_ascii().is_empty() => return,
            Line::Text(text) => text,
            Line::TooLong => return self.editor.refuse(None, &RpcError::invalid_request(lines::too_long())).await,
        };
        match Incoming::read(text.trim_ascii()) {
            Ok(Incoming::Response { id, outcome }) => self.editor.answered(&id, outcome),
            Ok(Incoming::Notification { method, params }) => self.notified(&method, &params),
            Ok(Incoming::Request { id, .. }) if under_way.len() >= MOST_REQUESTS => {
                let error = RpcError::failed(format!("{MOST_REQUESTS} requests are under way already; wait for one"));
                self.editor.refuse(Some(&id), &error).await;
            }
            Ok(Incoming::Request { id, method, params }) => self.requested(id, &method, &params, under_way),
            Err(Unreadable { id, error }) => self.editor.refuse(id.as_ref(), &error).await,
        }
    }

    fn notified(&self, method: &str, params: &Json) {
        // All others are extensions, or what ACP has for other agents.
        if method == "session/cancel" {
            match read_params(params).and_then(|params: CancelSession| self.session(&params.session_id)) {
                Ok(session) => session.cancel(),
                Err(error) => log(&format!("session/cancel: {}", error.message)),
            }
        }
    }

    /// Begins to answer a request. What has an order is done here: a cancel that comes next finds its prompt.
    fn requested(self: &Arc<Self>, id: Json, method: &str, params: &Json, under_way: &mut JoinSet<()>) {
        let agent = self.clone();
        match method {
            "initialize" => {
                let outcome = read_params::<Initialize>(params).and_then(|_| json(&initialized()));
                self.answer(under_way, id, async { outcome });
            }
            "authenticate" => {
                let outcome = read_params::<Authenticate>(params).and_then(|params| Err(no_methods(&params.method_id)));
                self.answer(under_way, id, async { outcome });
            }
            "session/new" => {
                let params = read_params(params);
                self.answer(under_way, id, async move { agent.new_session(params?).await });
            }
            "session/load" | "session/resume" => {
                let replay = if method == "session/load" { Replay::Shown } else { Replay::LeftOut };
                let params = read_params(params);
                self.answer(under_way, id, async move { agent.open_session(params?, replay).await });
            }
            "session/list" => {
                let params = read_params(params);
                self.answer(under_way, id, async move { agent.list_sessions(params?).await });
            }
            "session/prompt" => {
                let begun = self.begin_prompt(params);
                self.answer(under_way, id, async move { agent.prompt(begun?).await });
            }
            // It has no answer in ACP; an editor that wants one gets one.
            "session/cancel" => {
                self.notified(method, params);
                self.answer(under_way, id, async { json(&Empty {}) });
            }
            _ => {
                let error = RpcError::method_not_found(method);
                self.answer(under_way, id, async { Err(error) });
            }
        }
    }

    fn answer(
        self: &Arc<Self>,
        under_way: &mut JoinSet<()>,
        id: Json,
        work: impl Future<Output = Result<Json, RpcError>> + Send + 'static,
    ) {
        let editor = self.editor.clone();
        under_way.spawn(async move {
            let outcome = work.await;
            editor.answer(&id, outcome).await;
        });
    }

    async fn new_session(&self, params: NewSession) -> Result<Json, RpcError> {
        let cwd = params::folder(params.cwd)?;
        note_mcp_servers(&params.mcp_servers);
        self.server.reached().await.map_err(|failure| error_of(&failure))?;
        let id = Uuid::now_v7().to_string();
        let context = ContextId::parse(id.as_str()).expect("a UUID is an id");
        let session = self.keep(Session::new(id, cwd, context, None));
        json(&SessionIsNew { session_id: &session.id })
    }

    /// Opens a session that the server knows. What is still at work in it is followed from then on.
    async fn open_session(&self, params: OpenSession, replay: Replay) -> Result<Json, RpcError> {
        let cwd = params::folder(params.cwd)?;
        note_mcp_servers(&params.mcp_servers);
        let id = params.session_id;
        let known = self.session(&id).ok();
        if known.as_ref().is_some_and(|session| session.is_prompted()) {
            return Err(RpcError::invalid_request("sessionId: this session has a prompt; wait for its answer"));
        }
        let context = match &known {
            Some(session) => session.context(),
            None => ContextId::parse(id.as_str())
                .map_err(|error| RpcError::invalid_params(format!("sessionId: {error}")))?,
        };
        let connection = self.server.reached().await.map_err(|failure| error_of(&failure))?;
        let tasks = server::list(&connection, Some(context.clone()), 0, MOST_TASKS).await?;
        if tasks.is_empty() && known.is_none() {
            let shown: String = id.chars().take(100).collect();
            return Err(RpcError::not_found(format!("sessionId: the server knows no task of session {shown:?}")));
        }
        if tasks.len() == MOST_TASKS {
            log(&format!("session {id} has more than {MOST_TASKS} tasks; the oldest are left out"));
        }
        if let Some(session) = &known {
            session.stop_background();
        }
        let last = tasks.first().map(|task| task.id.clone());
        let session = self.keep(Session::new(id, cwd, context, last));
        let following = session.following.clone().lock_owned().await;
        let mut presenter = Presenter::new(self.editor.clone(), session.clone());
        let mut at_work = Vec::new();
        for task in tasks.iter().rev() {
            let is_over = task.status.state.is_terminal();
            if replay == Replay::LeftOut && is_over {
                continue;
            }
            let Some(task) = server::get(&connection, &task.id, None).await? else { continue };
            if replay == Replay::Shown {
                replay::show(&connection, &mut presenter, &task).await;
            }
            if !task.status.state.is_terminal() {
                at_work.push(task);
            }
        }
        if !at_work.is_empty() {
            let (editor, held) = (self.editor.clone(), session.clone());
            let background = tokio::spawn(async move {
                resume(&connection, &editor, &held, at_work, presenter).await;
                drop(following);
            });
            session.set_background(background.abort_handle());
        }
        json(&Empty {})
    }

    async fn list_sessions(&self, params: ListSessions) -> Result<Json, RpcError> {
        let connection = self.server.reached().await.map_err(|failure| error_of(&failure))?;
        let here = std::env::current_dir().map(|folder| folder.to_string_lossy().into_owned());
        let here = here.unwrap_or_else(|_| "/".to_owned());
        json(&session_list::list(&connection, params.cwd.as_deref(), &here).await?)
    }

    fn begin_prompt(&self, params: &Json) -> Result<Prompt, RpcError> {
        let params: params::Prompt = read_params(params)?;
        let parts = parts_of(params.prompt)?;
        let id = params.message_id.map(MessageId::parse).transpose();
        let id = id.map_err(|error| RpcError::invalid_params(format!("messageId: {error}")))?;
        let session = self.session(&params.session_id)?;
        let place = session.begin_prompt()?;
        let cancel = session.cancel_signal();
        Ok(Prompt { session, parts, id, cancel, place })
    }

    async fn prompt(&self, prompt: Prompt) -> Result<Json, RpcError> {
        let Prompt { session, parts, id, mut cancel, place } = prompt;
        let over = |stop_reason| json(&PromptIsOver { stop_reason });
        // What was at work when the session was loaded comes first.
        let _following = tokio::select! {
            following = session.following.lock() => following,
            () = canceled(&mut cancel) => return over(StopReason::Cancelled),
        };
        let connection = self.server.connection().await.map_err(|failure| error_of(&failure))?;
        let turn = Turn::new(connection, self.editor.clone(), session.clone(), cancel);
        let stop_reason = turn.prompt(&self.server, parts, id).await?;
        drop(place);
        over(stop_reason)
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, RpcError> {
        let known = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let shown: String = id.chars().take(100).collect();
        known.ok_or_else(|| {
            RpcError::not_found(format!(
                "sessionId: session {shown:?} is not open; open it with session/new or session/load"
            ))
        })
    }

    fn keep(&self, session: Session) -> Arc<Session> {
        let session = Arc::new(session);
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(session.id.clone(), session.clone());
        session
    }
}

/// A prompt that has its place.
struct Prompt {
    session: Arc<Session>,
    parts: Vec<Part>,
    id: Option<MessageId>,
    cancel: watch::Receiver<bool>,
    place: PromptPlace,
}

/// Follows tasks that were at work when their session was loaded, one after the other.
async fn resume(
    connection: &Arc<Connection>,
    editor: &Arc<Editor>,
    session: &Arc<Session>,
    tasks: Vec<Task>,
    mut presenter: Presenter,
) {
    for task in tasks {
        session.set_last_task(task.id.clone());
        let turn = Turn::new(connection.clone(), editor.clone(), session.clone(), session.cancel_signal());
        if let Err(error) = turn.resume(ReceivedTask::of(&task), presenter).await {
            presenter = Presenter::new(editor.clone(), session.clone());
            presenter.note(&error.message).await;
            log(&error.message);
        } else {
            presenter = Presenter::new(editor.clone(), session.clone());
        }
    }
}

fn initialized() -> Initialized {
    Initialized {
        protocol_version: VERSION,
        agent_capabilities: Capabilities {
            load_session: true,
            prompt_capabilities: PromptCapabilities { image: true, audio: true, embedded_context: true },
            mcp_capabilities: McpCapabilities { http: false, sse: false },
            session_capabilities: SessionCapabilities { list: Empty {}, resume: Empty {} },
        },
        agent_info: Implementation { name: "sabir", title: "Sabir", version: env!("CARGO_PKG_VERSION") },
        auth_methods: [],
    }
}

fn no_methods(method: &str) -> RpcError {
    let shown: String = method.chars().take(100).collect();
    RpcError::invalid_params(format!(
        "methodId: there is no method {shown:?}; if the server asks for credentials, give a token as SABIR_TOKEN"
    ))
}

fn note_mcp_servers(servers: &[IgnoredAny]) {
    if !servers.is_empty() {
        log(&format!(
            "the editor's MCP servers ({}) are not used: the agent's tools are configured where it runs",
            servers.len()
        ));
    }
}

fn json(value: &impl Serialize) -> Result<Json, RpcError> {
    Json::of(value).map_err(|error| RpcError::failed(error.to_string()))
}
