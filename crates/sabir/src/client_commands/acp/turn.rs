//! One turn: what happens between a prompt and its answer, or in a task that was still at work when its session was loaded.
//!
//! ```text
//!            ┌───────────── the answer is sent, or somebody else gave it ◀───────────┐
//!            ▼                                                                      │
//!   a task is followed ──▶ it waits ──▶ for permission ──▶ the editor asks its user ─┘
//!            │                 └──────▶ for words: they are shown; end_turn, and the next prompt answers
//!            └──▶ it ends: end_turn, refusal, cancelled, or an error with the reason
//! ```
//!
//! A cancel of the user is passed on to the task, which is followed on until it has ended.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sabir_model::{Json, MessageId, Part, Send, State, Status, TaskId};
use sabir_outbound::remote::{Following, Mirror, OpenQuestion, RemoteError, Step};
use sabir_wire::PeerErrorKind;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::editor::Editor;
use super::json_rpc::RpcError;
use super::permission::{PermissionRequest, is_permission};
use super::presenter::{Presenter, reason};
use super::server::{self, Server, error_of, log};
use super::session::{Session, canceled};
use crate::client_commands::connection::Connection;
use crate::client_commands::message;
use crate::client_commands::received_task::ReceivedTask;

/// The member of a message's metadata with the folder that the editor has open, for `session/list`.
pub const CWD: &str = "urn:sabir:acp:cwd";
/// By which an agent is told to work in a folder.
const WORKSPACE: &str = "workspace";
/// How often a question that the editor's user looks at is looked at, since others may answer it.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

/// Why a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    Refusal,
    Cancelled,
}

pub struct Turn {
    connection: Arc<Connection>,
    editor: Arc<Editor>,
    session: Arc<Session>,
    cancel: watch::Receiver<bool>,
    /// The cancel of the task, as soon as the user wants it.
    canceling: Option<Canceling>,
    presenter: Presenter,
    received: ReceivedTask,
}

/// A cancel on its way. What follows the task may end first.
struct Canceling(JoinHandle<Result<(), RpcError>>);

impl Drop for Canceling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How the following of a task ended.
enum Ended {
    Replied,
    Over(Status, Option<Vec<Part>>),
}

/// What the user says to a question for permission.
enum Decision {
    Answer(Vec<Part>),
    /// Somebody else answered, or the agent goes on without.
    Closed,
    Canceled,
    /// The editor has no such dialog.
    CannotAsk,
}

/// What is known of a task that failed, for whoever reads errors.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FailedTask<'a> {
    task_id: &'a str,
    state: &'static str,
}

impl Turn {
    pub fn new(
        connection: Arc<Connection>,
        editor: Arc<Editor>,
        session: Arc<Session>,
        cancel: watch::Receiver<bool>,
    ) -> Self {
        let presenter = Presenter::new(editor.clone(), session.clone());
        let received = ReceivedTask::default();
        Turn { connection, editor, session, cancel, canceling: None, presenter, received }
    }

    /// Sends a prompt, and follows what becomes of it.
    pub async fn prompt(
        mut self,
        server: &Server,
        parts: Vec<Part>,
        id: Option<MessageId>,
    ) -> Result<StopReason, RpcError> {
        let known = self.connection.discovered().await.map_err(|failure| error_of(&failure))?;
        let open = self.open_question().await?;
        if *self.cancel.borrow() {
            return Ok(StopReason::Cancelled);
        }
        let context = Some(self.session.context());
        let mut send = match &open {
            Some((task, status)) => message::answer(parts, task.clone(), context, status, &known),
            None => {
                let mut send = message::send(parts, None, context, &known);
                let folder = Json::of(&self.session.cwd).expect("text is JSON");
                let mut metadata = Json::with_member(None, CWD, &folder);
                if server.options.workspace {
                    metadata = Json::with_member(Some(&metadata), WORKSPACE, &folder);
                }
                send.message.metadata = Some(metadata);
                send
            }
        };
        if let Some(id) = id {
            send.idempotency = sabir_model::IdempotencyKey::parse(id.as_str()).ok();
            send.message.id = Some(id);
        }
        let following = self.following_of(send, open.as_ref().map(|(_, status)| status));
        self.follow(following, open.map(|(_, status)| status)).await
    }

    /// Follows a task that was at work already. `received` is what the user has seen of it.
    pub async fn resume(mut self, received: ReceivedTask, presenter: Presenter) -> Result<StopReason, RpcError> {
        (self.received, self.presenter) = (received, presenter);
        let following = self.following_on()?;
        self.follow(following, None).await
    }

    /// The question that this prompt answers. An error: the user has not seen it yet, and does now.
    async fn open_question(&mut self) -> Result<Option<(TaskId, Status)>, RpcError> {
        let Some(last) = self.session.last_task() else { return Ok(None) };
        let Some(task) = server::get(&self.connection, &last.id, Some(0)).await? else { return Ok(None) };
        if !task.status.state.is_waiting() {
            return Ok(None);
        }
        self.received = ReceivedTask::of(&task);
        self.presenter.set_task(task.id.clone());
        if last.question.as_ref().is_none_or(|shown| !is_same_question(shown, &task.status)) {
            self.show_question(&task.status).await;
            return Err(RpcError::failed(
                "the agent asks something that you have not seen yet, so your message was not sent; answer the question",
            ));
        }
        Ok(Some((task.id, task.status)))
    }

    /// `answered` is the question that the message answers.
    async fn follow(&mut self, mut following: Following, mut answered: Option<Status>) -> Result<StopReason, RpcError> {
        loop {
            let ended = match self.until_over(&mut following).await {
                Ok(ended) => ended,
                Err(error) => match answered.take() {
                    Some(question) => {
                        following = self.after_refused_answer(&question, error).await?;
                        continue;
                    }
                    None => return Err(self.error_of(&error)),
                },
            };
            let status = match ended {
                Ended::Replied => return Ok(StopReason::EndTurn),
                Ended::Over(status, last_words) if !status.state.is_waiting() => {
                    return self.conclude(&status, last_words).await;
                }
                Ended::Over(status, _) => status,
            };
            if *self.cancel.borrow() {
                self.finish_cancel().await?;
                following = self.following_on()?;
                continue;
            }
            if !is_permission(&status) {
                self.show_question(&status).await;
                return Ok(StopReason::EndTurn);
            }
            following = match self.decide(&status).await? {
                Decision::Answer(parts) => {
                    let known = self.connection.discovered().await.map_err(|failure| error_of(&failure))?;
                    let (task, context) = self.received.ids.clone().ok_or_else(unknown_task)?;
                    let send = message::answer(parts, task, Some(context), &status, &known);
                    answered = Some(status.clone());
                    self.following_of(send, Some(&status))
                }
                Decision::Closed => self.following_on()?,
                Decision::Canceled => {
                    self.finish_cancel().await?;
                    self.following_on()?
                }
                Decision::CannotAsk => {
                    self.show_question(&status).await;
                    return Ok(StopReason::EndTurn);
                }
            };
        }
    }

    /// Shows what comes of a task until it has ended or waits.
    async fn until_over(&mut self, following: &mut Following) -> Result<Ended, RemoteError> {
        loop {
            let step = {
                let mut next = pin!(following.next());
                loop {
                    if *self.cancel.borrow() {
                        self.begin_cancel();
                    }
                    let is_canceled = *self.cancel.borrow();
                    tokio::select! {
                        // The future of a step is never dropped before it is there: that could send a message twice.
                        step = &mut next => break step?,
                        () = canceled(&mut self.cancel), if !is_canceled => {}
                    }
                }
            };
            match step {
                Some(Step::Known { task, context }) => {
                    self.presenter.set_task(task.clone());
                    if self.session.last_task().is_none_or(|last| last.id != task) {
                        self.session.set_last_task(task.clone());
                    }
                    if self.session.context() != context {
                        log(&format!("the server calls the context of session {} {context}", self.session.id));
                        self.session.set_context(context.clone());
                    }
                    self.received.ids = Some((task, context));
                }
                Some(Step::Update(update)) => {
                    let taken = self.received.take(&update);
                    match &update {
                        sabir_outbound::remote::Update::Progress(change) => self.presenter.status(&change.status).await,
                        sabir_outbound::remote::Update::Artifact { artifact, .. } => {
                            self.presenter.artifact(artifact).await;
                        }
                    }
                    taken?;
                }
                Some(Step::Replied(message)) => {
                    self.presenter.parts(message.id.as_str(), &message.parts).await;
                    return Ok(Ended::Replied);
                }
                Some(Step::Over { status, last_words }) => {
                    self.received.status = Some(status.clone());
                    return Ok(Ended::Over(status, last_words));
                }
                Some(Step::Trouble(why)) => log(&format!("{why}; trying again")),
                None => return Err(RemoteError::StreamEnded),
            }
        }
    }

    async fn conclude(&mut self, status: &Status, last_words: Option<Vec<Part>>) -> Result<StopReason, RpcError> {
        let is_canceled = *self.cancel.borrow();
        match status.state {
            State::Canceled => Ok(StopReason::Cancelled),
            State::Rejected => {
                self.presenter.failure(status).await;
                Ok(StopReason::Refusal)
            }
            State::Failed if is_canceled => Ok(StopReason::Cancelled),
            State::Failed => {
                let task_id = self.received.id().map_or("", TaskId::as_str);
                Err(RpcError::failed(reason(status)).with_data(&FailedTask { task_id, state: status.state.name() }))
            }
            _ => {
                self.presenter.status(status).await;
                if let Some(words) = last_words {
                    self.presenter.parts("last-words", &words).await;
                }
                Ok(StopReason::EndTurn)
            }
        }
    }

    /// Asks the editor's user, as long as the question is open.
    async fn decide(&mut self, status: &Status) -> Result<Decision, RpcError> {
        let task = self.received.id().cloned().ok_or_else(unknown_task)?;
        let Some(request) = PermissionRequest::of(&self.session.id, &task, status, &self.presenter) else {
            return Ok(Decision::CannotAsk);
        };
        let editor = self.editor.clone();
        let connection = self.connection.clone();
        tokio::select! {
            // An editor that cancels closes its dialog, too. That is no answer to the question.
            biased;
            () = canceled(&mut self.cancel) => Ok(Decision::Canceled),
            response = editor.ask("session/request_permission", &request) => Ok(match response {
                Ok(response) => Decision::Answer(request.answer(&response, status, &task)),
                Err(why) => {
                    log(&format!("the editor does not ask for permission: {why}"));
                    Decision::CannotAsk
                }
            }),
            () = until_closed(&connection, &task, status) => Ok(Decision::Closed),
        }
    }

    /// The server does not take an answer. Its question may be closed, or for somebody else.
    async fn after_refused_answer(&mut self, question: &Status, error: RemoteError) -> Result<Following, RpcError> {
        let refusal = self.error_of(&error);
        let is_forbidden = error.peer_kind() == Some(PeerErrorKind::Forbidden);
        let is_refusal = matches!(
            error.peer_kind(),
            Some(PeerErrorKind::Invalid | PeerErrorKind::InvalidRequest | PeerErrorKind::Unsupported)
        );
        if !is_forbidden && !is_refusal {
            return Err(refusal);
        }
        if *self.cancel.borrow() {
            // The user has canceled while the answer was on its way.
            self.finish_cancel().await?;
            return self.following_on();
        }
        let task = self.received.id().cloned().ok_or_else(unknown_task)?;
        if is_forbidden {
            self.presenter.note(&format!("{}. Waiting for somebody who may answer.", refusal.message)).await;
            let connection = self.connection.clone();
            tokio::select! {
                () = until_closed(&connection, &task, question) => {}
                () = canceled(&mut self.cancel) => self.finish_cancel().await?,
            }
            return self.following_on();
        }
        match server::get(&self.connection, &task, Some(0)).await? {
            Some(task) if !is_same_question(&task.status, question) => self.following_on(),
            _ => Err(refusal),
        }
    }

    /// The next prompt answers this question.
    async fn show_question(&mut self, status: &Status) {
        self.presenter.question(status).await;
        self.session.set_question(status.clone());
    }

    /// Passes the user's cancel on, once the task is known.
    fn begin_cancel(&mut self) {
        if self.canceling.is_none()
            && let Some(task) = self.received.id().cloned()
        {
            let connection = self.connection.clone();
            let canceling = async move {
                let canceled = server::cancel(&connection, task).await;
                if let Err(error) = &canceled {
                    log(&error.message);
                }
                canceled
            };
            self.canceling = Some(Canceling(tokio::spawn(canceling)));
        }
    }

    /// Waits until the server has taken the cancel.
    async fn finish_cancel(&mut self) -> Result<(), RpcError> {
        self.begin_cancel();
        match &mut self.canceling {
            Some(Canceling(canceling)) => match canceling.await {
                Ok(outcome) => {
                    self.canceling = None;
                    outcome
                }
                Err(error) => Err(RpcError::failed(error.to_string())),
            },
            None => Err(unknown_task()),
        }
    }

    fn following_of(&self, send: Send, question: Option<&Status>) -> Following {
        let last_message = send.message.id.clone();
        let following = Following::send(self.connection.remote.clone(), send, Mirror::new(&self.received.artifacts));
        match (question, last_message) {
            (Some(question), Some(last_message)) => {
                following.answering(OpenQuestion { asked: Some(question.time), last_message })
            }
            _ => following,
        }
    }

    /// Follows the task that is known already.
    fn following_on(&self) -> Result<Following, RpcError> {
        let (task, context) = self.received.ids.clone().ok_or_else(unknown_task)?;
        let mirror = Mirror::new(&self.received.artifacts);
        Ok(Following::task(self.connection.remote.clone(), task, mirror).in_context(context))
    }

    fn error_of(&self, error: &RemoteError) -> RpcError {
        let failure = self.connection.failure(error);
        match self.received.id() {
            Some(task) if error.peer_kind().is_none() => {
                RpcError::failed(format!("{}; task {task} may go on", failure.line()))
            }
            _ => error_of(&failure),
        }
    }
}

fn unknown_task() -> RpcError {
    RpcError::failed("the server has not said which task waits")
}

/// Whether both ask the same, at the same time.
fn is_same_question(one: &Status, other: &Status) -> bool {
    let id = |status: &Status| status.message.as_ref().map(|message| message.id.clone());
    one.state == other.state && one.time == other.time && id(one) == id(other)
}

/// Resolves when the task does not wait for the answer to this question any more.
async fn until_closed(connection: &Connection, task: &TaskId, question: &Status) {
    loop {
        sleep(BETWEEN_LOOKS).await;
        match server::get(connection, task, Some(0)).await {
            Ok(Some(task)) if is_same_question(&task.status, question) => {}
            Ok(_) => return,
            Err(error) => log(&error.message),
        }
    }
}
