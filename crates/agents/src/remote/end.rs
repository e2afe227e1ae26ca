//! Ending a remote task: it is told to stop until it has stopped, or until nobody can be reached for too long.

use std::time::Duration;

use futures_util::future::BoxFuture;
use sabir_model::{Call, Cancel, Get, OnFinishedCancel, Task, TaskId, Wanted};
use sabir_outbound::remote::{Following, Remote, RemoteError, Step};
use sabir_outbound::{PeerErrorKind, PeerResponse};
use tokio::time::{Instant, sleep, timeout_at};

/// How a cancel ended.
pub(super) enum Canceled {
    /// The remote task is over: canceled, or over before the cancel came.
    Over(Box<Task>),
    /// The remote agent knows no such task any more.
    Gone,
    /// The remote agent was told, and does not say that the task is over.
    Unconfirmed,
    /// Nobody has answered in time.
    NoAnswer,
}

/// A message that is on its way, and what comes of it.
pub(super) type Sending = BoxFuture<'static, (Following, Result<Option<Step>, RemoteError>)>;

/// What is kept of the time to stop for telling how it went.
pub(super) const RESERVE: Duration = Duration::from_millis(300);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// For how long a remote agent is told to stop after our task has ended.
const LATE_CANCEL: Duration = Duration::from_secs(300);

/// Cancels a remote task, again and again where the connection fails, and looks whether it has stopped.
pub(super) async fn cancel(remote: &Remote, task: &TaskId, deadline: Instant) -> Canceled {
    let on_finished = OnFinishedCancel::Refuse;
    let call = Call::Cancel(Cancel { agent: None, task: task.clone(), metadata: None, on_finished });
    let told = loop {
        match timeout_at(deadline, remote.call(&call)).await {
            Ok(Ok(received)) => match received.response {
                PeerResponse::Task(task) if task.status.state.is_terminal() => return Canceled::Over(task),
                // It will stop, or not.
                _ => break true,
            },
            Ok(Err(error)) if error.is_transient() && Instant::now() + PAUSE < deadline => sleep(PAUSE).await,
            Ok(Err(error)) if error.is_transient() => return Canceled::NoAnswer,
            Ok(Err(error)) => {
                // It may be over already. Whatever else is wrong with the cancel, the task says how it stands.
                tracing::debug!(%task, %error, "a remote agent did not take a cancel");
                break false;
            }
            Err(_) => return Canceled::NoAnswer,
        }
    };
    loop {
        match timeout_at(deadline, ask(remote, task)).await {
            Ok(Ok(task)) if task.status.state.is_terminal() => return Canceled::Over(Box::new(task)),
            Ok(Err(error)) if error.peer_kind() == Some(PeerErrorKind::TaskNotFound) => return Canceled::Gone,
            Ok(_) if told && Instant::now() + PAUSE < deadline => sleep(PAUSE).await,
            Ok(_) | Err(_) => return Canceled::Unconfirmed,
        }
    }
}

/// Cancels the task of a message that is still on its way, and whose task here has ended already.
pub(super) async fn cancel_when_known(remote: Remote, sending: Sending) {
    let (following, _) = sending.await;
    if let Some(task) = following.task_id() {
        cancel_late(remote, task.clone()).await;
    }
}

/// Cancels a remote task whose task here has ended already.
pub(super) async fn cancel_late(remote: Remote, task: TaskId) {
    match cancel(&remote, &task, Instant::now() + LATE_CANCEL).await {
        Canceled::Over(_) | Canceled::Gone => {}
        Canceled::Unconfirmed => tracing::warn!(%task, "a remote agent did not confirm that it stopped"),
        Canceled::NoAnswer => tracing::warn!(%task, "a remote agent could not be told to cancel a task"),
    }
}

async fn ask(remote: &Remote, task: &TaskId) -> Result<Task, RemoteError> {
    let call = Call::Get(Get { agent: None, task: task.clone(), history: None, earlier: Wanted::No });
    match remote.call(&call).await?.response {
        PeerResponse::Task(task) => Ok(*task),
        _ => Err(RemoteError::StreamEnded),
    }
}
