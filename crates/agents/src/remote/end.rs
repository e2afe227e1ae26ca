//! Ending a remote task: it is told to stop until it has stopped, or until nobody can be reached for too long.

use std::time::Duration;

use sabir_model::{Call, Cancel, OnFinishedCancel, TaskId};
use sabir_outbound::PeerErrorKind;
use sabir_outbound::remote::{Following, Remote, RemoteError};
use tokio::time::{Instant, sleep, timeout_at};

/// How a cancel ended.
pub(super) enum Canceled {
    /// The remote agent has stopped.
    Stopped,
    /// It was over before the cancel came.
    WasOver,
    /// The remote agent does not know the task, or refuses.
    Refused(RemoteError),
    /// Nobody has answered in time.
    NoAnswer,
}

/// What is kept of the time to stop for telling how it went.
pub(super) const RESERVE: Duration = Duration::from_millis(100);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// For how long a remote agent is told to stop after our task has ended.
const LATE_CANCEL: Duration = Duration::from_secs(300);

/// Cancels a remote task, again and again where the connection fails.
pub(super) async fn cancel(remote: &Remote, task: &TaskId, deadline: Instant) -> Canceled {
    let on_finished = OnFinishedCancel::Refuse;
    let call = Call::Cancel(Cancel { agent: None, task: task.clone(), metadata: None, on_finished });
    loop {
        match timeout_at(deadline, remote.call(&call)).await {
            Ok(Ok(_)) => return Canceled::Stopped,
            Ok(Err(error)) if error.peer_kind() == Some(PeerErrorKind::NotCancelable) => return Canceled::WasOver,
            Ok(Err(error)) if error.is_transient() && Instant::now() + PAUSE < deadline => sleep(PAUSE).await,
            Ok(Err(error)) if error.is_transient() => return Canceled::NoAnswer,
            Ok(Err(error)) => return Canceled::Refused(error),
            Err(_) => return Canceled::NoAnswer,
        }
    }
}

/// Cancels the task of a message whose answer is still waited for, and which has ended here already.
pub(super) async fn cancel_when_known(remote: Remote, mut following: Following) {
    loop {
        if let Some(task) = following.task_id() {
            return cancel_late(remote, task.clone()).await;
        }
        let Ok(Some(_)) = following.next().await else { return };
    }
}

/// Cancels a remote task whose task here has ended already.
pub(super) async fn cancel_late(remote: Remote, task: TaskId) {
    match cancel(&remote, &task, Instant::now() + LATE_CANCEL).await {
        Canceled::Stopped | Canceled::WasOver => {}
        Canceled::Refused(error) => tracing::warn!(%task, %error, "a remote agent did not take a cancel"),
        Canceled::NoAnswer => tracing::warn!(%task, "a remote agent could not be told to cancel a task"),
    }
}
