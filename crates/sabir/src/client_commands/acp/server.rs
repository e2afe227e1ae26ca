//! The server behind the editor's agent. It need not run yet when the editor starts this program, and it may be started again
//! meanwhile, perhaps at another address.

use std::sync::Arc;
use std::time::Duration;

use sabir_model::{Call, Cancel, ContextId, Get, List, OnFinishedCancel, Task, TaskId, Wanted};
use sabir_outbound::remote::RemoteError;
use sabir_wire::PeerResponse;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::json_rpc::RpcError;
use crate::cli::AcpOptions;
use crate::client_commands::Surroundings;
use crate::client_commands::connection::Connection;
use crate::client_commands::failure::Failure;
use crate::terminal_text::visible;

/// For how long a server that is away is asked again. `Following` is as patient.
const PATIENCE: Duration = Duration::from_secs(300);
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// What A2A allows.
const LARGEST_PAGE: u32 = 100;

pub struct Server {
    pub options: AcpOptions,
    around: Surroundings,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl Server {
    pub fn new(options: AcpOptions, around: Surroundings) -> Self {
        Server { options, around, connection: Mutex::default() }
    }

    /// The server, which has just answered. An error says what to do about it.
    pub async fn reached(&self) -> Result<Arc<Connection>, Failure> {
        let mut place = self.connection.lock().await;
        if let Some(connection) = &*place {
            match connection.remote.discover().await {
                Ok(_) => return Ok(connection.clone()),
                Err(error) if !error.is_unreachable() => return Err(connection.failure(&error)),
                // It may be at another address now.
                Err(_) => {}
            }
        }
        let AcpOptions { url, server, protocol, .. } = &self.options;
        let connection = Connection::open(url.as_deref(), server, protocol, None, &self.around).await?;
        connection.discovered().await?;
        Ok(place.insert(Arc::new(connection)).clone())
    }

    /// The server, as it was reached last. A server that is away for a while is waited for by what is asked of it.
    pub async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let known = self.connection.lock().await.clone();
        match known {
            Some(connection) => Ok(connection),
            None => self.reached().await,
        }
    }
}

/// Told on stderr, for whoever reads the editor's log.
pub fn log(text: &str) {
    eprintln!("sabir: {}", visible(text));
}

pub fn error_of(failure: &Failure) -> RpcError {
    RpcError::failed(failure.line())
}

/// A call that changes nothing, or that may be made twice. A server that is away is asked again for some minutes.
async fn persistent(connection: &Connection, call: &Call, page: Option<&str>) -> Result<PeerResponse, RemoteError> {
    let (began, mut wait) = (Instant::now(), FIRST_WAIT);
    loop {
        match connection.remote.call_page(call, page).await {
            Ok(received) => return Ok(received.response),
            Err(error) if error.is_transient() && began.elapsed() < PATIENCE => {
                log(&format!("{error}; trying again"));
                sleep(wait).await;
                wait = (wait * 3 / 2).min(LONGEST_WAIT);
            }
            Err(error) => return Err(error),
        }
    }
}

/// The task as it is now. `None`: the server has no such task, or it is somebody else's.
pub async fn get(connection: &Connection, task: &TaskId, history: Option<u32>) -> Result<Option<Task>, RpcError> {
    use sabir_wire::PeerErrorKind::TaskNotFound;
    let call = Call::Get(Get { agent: None, task: task.clone(), history, earlier: Wanted::No });
    match persistent(connection, &call, None).await {
        Ok(PeerResponse::Task(task)) => Ok(Some(*task)),
        Ok(_) => Err(RpcError::failed("the server answered with something else than a task")),
        Err(error) if error.peer_kind() == Some(TaskNotFound) => Ok(None),
        Err(error) => Err(error_of(&connection.failure(&error))),
    }
}

/// Cancels a task; one that has ended stays as it is.
pub async fn cancel(connection: &Connection, task: TaskId) -> Result<(), RpcError> {
    use sabir_wire::PeerErrorKind::NotCancelable;
    let call = Call::Cancel(Cancel { agent: None, task, metadata: None, on_finished: OnFinishedCancel::Leave });
    match persistent(connection, &call, None).await {
        Ok(_) => Ok(()),
        Err(error) if error.peer_kind() == Some(NotCancelable) => Ok(()),
        Err(error) => {
            let failure = connection.failure(&error);
            Err(RpcError::failed(format!("the task is not canceled: {}", failure.line())))
        }
    }
}

/// At most so many tasks, the newest first, without what they made.
pub async fn list(
    connection: &Connection,
    context: Option<ContextId>,
    history: u32,
    most: usize,
) -> Result<Vec<Task>, RpcError> {
    let call = Call::List(List {
        agent: None,
        context,
        state: None,
        since: None,
        page_size: LARGEST_PAGE,
        from: None,
        history: Some(history),
        artifacts: Wanted::No,
    });
    let (mut tasks, mut token): (Vec<Task>, Option<String>) = (Vec::new(), None);
    loop {
        let response = persistent(connection, &call, token.as_deref()).await;
        let response = response.map_err(|error| error_of(&connection.failure(&error)))?;
        let PeerResponse::Page { page, next } = response else {
            return Err(RpcError::failed("the server answered with something else than a list"));
        };
        let is_empty = page.tasks.is_empty();
        tasks.extend(page.tasks);
        // A server that repeats a page would never come to an end.
        if tasks.len() >= most || is_empty || next.is_none() || next == token {
            tasks.truncate(most);
            return Ok(tasks);
        }
        token = next;
    }
}
