//! A session of the editor: a context of A2A, the folder that the editor has open, and the task that was last in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sabir_model::{ContextId, Status, TaskId};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::json_rpc::RpcError;

pub struct Session {
    pub id: String,
    /// The folder that the editor has open.
    pub cwd: String,
    /// The context in which its tasks are. Some servers insist on a name of their own.
    context: Mutex<ContextId>,
    last_task: Mutex<Option<LastTask>>,
    is_prompted: AtomicBool,
    /// Held by what follows a task of this session, so that two never speak at once.
    pub following: Arc<tokio::sync::Mutex<()>>,
    /// What follows tasks that were at work when the session was loaded.
    background: Mutex<Option<AbortHandle>>,
    /// By which those who work for this session learn of a cancel.
    cancels: Mutex<Vec<watch::Sender<bool>>>,
}

/// What is known of the last task of a session.
#[derive(Clone)]
pub struct LastTask {
    pub id: TaskId,
    /// The status with the question that the user was shown. The next prompt answers it.
    pub question: Option<Status>,
}

/// The one prompt of a session.
pub struct PromptPlace(Arc<Session>);

impl Drop for PromptPlace {
    fn drop(&mut self) {
        self.0.is_prompted.store(false, Ordering::Relaxed);
    }
}

impl Session {
    pub fn new(id: String, cwd: String, context: ContextId, last_task: Option<TaskId>) -> Self {
        let last_task = last_task.map(|id| LastTask { id, question: None });
        Session {
            id,
            cwd,
            context: Mutex::new(context),
            last_task: Mutex::new(last_task),
            is_prompted: AtomicBool::new(false),
            following: Arc::default(),
            background: Mutex::default(),
            cancels: Mutex::default(),
        }
    }

    /// Takes the place of the one prompt.
    pub fn begin_prompt(self: &Arc<Self>) -> Result<PromptPlace, RpcError> {
        match self.is_prompted.swap(true, Ordering::Relaxed) {
            false => Ok(PromptPlace(self.clone())),
            true => Err(RpcError::invalid_request(
                "sessionId: this session has a prompt already; wait for its answer, or send session/cancel",
            )),
        }
    }

    pub fn is_prompted(&self) -> bool {
        self.is_prompted.load(Ordering::Relaxed)
    }

    pub fn context(&self) -> ContextId {
        lock(&self.context).clone()
    }

    pub fn set_context(&self, context: ContextId) {
        *lock(&self.context) = context;
    }

    pub fn last_task(&self) -> Option<LastTask> {
        lock(&self.last_task).clone()
    }

    /// This task is the last one, and what was shown of an earlier question does not count any more.
    pub fn set_last_task(&self, id: TaskId) {
        *lock(&self.last_task) = Some(LastTask { id, question: None });
    }

    /// The user was shown this question of the last task.
    pub fn set_question(&self, question: Status) {
        if let Some(last) = &mut *lock(&self.last_task) {
            last.question = Some(question);
        }
    }

    /// How somebody who begins to work for this session learns of a cancel.
    pub fn cancel_signal(&self) -> watch::Receiver<bool> {
        let (sender, receiver) = watch::channel(false);
        let mut cancels = lock(&self.cancels);
        cancels.retain(|one| !one.is_closed());
        cancels.push(sender);
        receiver
    }

    pub fn set_background(&self, background: AbortHandle) {
        *lock(&self.background) = Some(background);
    }

    /// The session is opened anew, and what follows its tasks does not count any more.
    pub fn stop_background(&self) {
        if let Some(background) = lock(&self.background).take() {
            background.abort();
        }
    }

    pub fn cancel(&self) {
        for one in lock(&self.cancels).drain(..) {
            let _ = one.send(true);
        }
    }
}

/// Resolves when the user cancels, and never if nobody can any more.
pub async fn canceled(signal: &mut watch::Receiver<bool>) {
    if signal.wait_for(|is_canceled| *is_canceled).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
