//! A child ends with its parent: when that is canceled, fails or is rejected, nobody waits for the child any more.
//!
//! The child's side does it. A watcher follows the parent from the log, like any reader, on the node that has made or taken up the
//! child, and ends with the child. When the parent completes, its children go on.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sabir_model::{Caller, Error, State};
use sabir_store::{AuditAction, StoreError, TaskRow};
use tokio::sync::watch;

use crate::audit::CallAudit;
use crate::cluster::{FollowGuard, Loaded};
use crate::engine::{Core, Engine};
use crate::feed::Lease;
use crate::topic::{TaskActivity, TopicKey};

/// How long to wait after the store could not be read, or the child could not be canceled.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What is to be done for a child now.
enum Look {
    /// The child has ended, or its parent has completed.
    Over,
    /// Retention has deleted the parent, so it has ended.
    ParentGone,
    /// The parent has ended without a result; `None`: it was deleted before it could be seen how it ended.
    ParentEnded(Option<State>),
    Wait(Box<Watched>),
}

/// Both tasks, kept as new as the log.
struct Watched {
    child: Lease,
    parent: Lease,
    _followed: [Option<FollowGuard>; 2],
}

impl Engine {
    /// Watches over the parent of this task, if it has one.
    pub(crate) fn watch_parent_of(&self, child: &Lease) {
        let key = child.key.clone();
        let parent = child.with_task(|task| {
            let parent = task.delegated()?.parent.clone();
            Some(TopicKey { owner: task.owner.clone(), agent: parent.agent, task: parent.task })
        });
        if let Some(parent) = parent.flatten() {
            self.watch_parent(key, parent);
        }
    }

    /// The same for a task that is being stored. It does not need the call that makes it: whoever made that may be gone.
    pub(crate) fn watch_parent_of_new(&self, child: Lease) {
        let engine = self.clone();
        tokio::spawn(async move {
            child.until_stored().await;
            engine.watch_parent_of(&child);
        });
    }

    /// Watches over the parents of tasks that nobody works on: those that wait for an answer.
    pub(crate) fn watch_parents_of_waiting(&self) {
        let (core, left) = (Arc::downgrade(&self.core), self.core.left.subscribe());
        let store = self.core.store.clone();
        tokio::spawn(async move {
            let unfinished = loop {
                match store.unfinished().await {
                    Ok(unfinished) => break unfinished,
                    Err(error) => tracing::warn!(%error, "cannot look for delegated tasks; will try again"),
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            };
            let waiting = unfinished.into_iter().map(|unfinished| unfinished.row).filter(|row| row.state.is_waiting());
            let mut rows: Vec<TaskRow> = waiting.collect();
            loop {
                let mut unread = Vec::new();
                for row in rows {
                    let task = match store.load(row.no).await {
                        Ok(Some(task)) => task,
                        // What is damaged is shown as failed, and nobody waits for it.
                        Ok(None) | Err(StoreError::Damaged { .. } | StoreError::Closed | StoreError::Lost(_)) => {
                            continue;
                        }
                        Err(error) => {
                            tracing::warn!(task = %row.task, %error, "cannot see whether a task is delegated; will try again");
                            unread.push(row);
                            continue;
                        }
                    };
                    let Some(delegated) = task.delegated() else { continue };
                    let (agent, task) = (delegated.parent.agent.clone(), delegated.parent.task.clone());
                    let parent = TopicKey { owner: row.owner.clone(), agent, task };
                    let child = TopicKey { owner: row.owner, agent: row.agent, task: row.task };
                    tokio::spawn(follow(core.clone(), left.clone(), child, parent));
                }
                if unread.is_empty() || core.strong_count() == 0 {
                    return;
                }
                rows = unread;
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
    }

    fn watch_parent(&self, child: TopicKey, parent: TopicKey) {
        tokio::spawn(follow(Arc::downgrade(&self.core), self.core.left.subscribe(), child, parent));
    }

    async fn look_at_parent(&self, child: &TopicKey, parent: &TopicKey) -> Result<Look, Error> {
        let child = self.core.feed.open(child.clone());
        let is_missing = self.load(&child).await? == Loaded::Missing;
        if is_missing || child.with_task(|task| task.status.state.is_terminal()) != Some(false) {
            return Ok(Look::Over);
        }
        let parent = self.core.feed.open(parent.clone());
        if self.load(&parent).await? == Loaded::Missing {
            return Ok(Look::ParentGone);
        }
        Ok(match parent.with_task(|task| task.status.state) {
            Some(State::Completed) => Look::Over,
            Some(state) if state.is_terminal() => Look::ParentEnded(Some(state)),
            _ => {
                let followed = [self.core.follow(&child), self.core.follow(&parent)];
                Look::Wait(Box::new(Watched { child, parent, _followed: followed }))
            }
        })
    }

    async fn cancel_child(&self, child: &TopicKey, parent: &TopicKey, state: Option<State>) -> Result<(), Error> {
        let how = match state {
            Some(state) => format!("is {}", state.name()),
            None => "is deleted".to_owned(),
        };
        let reason =
            format!("canceled: task {} of agent {}, which has delegated this one, {how}", parent.task, parent.agent);
        // The owner's own right is used, as if the owner had done it.
        let caller = Caller::from(child.owner.clone());
        let mut entry = self.entry(&caller, AuditAction::Cancel);
        entry.detail = crate::audit::shortened(reason.clone());
        let audit = CallAudit::of_server(self.core.audit.as_ref().map(|_| entry));
        match self.cancel_task_because(&caller, child, &audit, Some(reason)).await {
            Ok(_) | Err(Error::NotCancelable(_) | Error::TaskNotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Ends with the child, with its parent or with the engine, and keeps none of them alive.
async fn follow(core: Weak<Core>, mut left: watch::Receiver<bool>, child: TopicKey, parent: TopicKey) {
    let mut was_seen = false;
    loop {
        let looked = {
            let Some(core) = core.upgrade() else { return };
            let engine = Engine { core };
            let looked = match engine.look_at_parent(&child, &parent).await {
                // It had ended before anything was followed here. Whoever followed it then has seen how.
                Ok(Look::ParentGone) if !was_seen => Ok(Look::Over),
                Ok(Look::ParentGone) => Ok(Look::ParentEnded(None)),
                looked => looked,
            };
            match looked {
                Ok(Look::ParentEnded(state)) => match engine.cancel_child(&child, &parent, state).await {
                    Ok(()) => return,
                    Err(error) => Err(error),
                },
                looked => looked,
            }
        };
        match looked {
            Ok(Look::Over | Look::ParentGone | Look::ParentEnded(_)) => return,
            Ok(Look::Wait(watched)) => {
                was_seen = true;
                let is_over = |activity| matches!(activity, TaskActivity::Finished | TaskActivity::StoreFailing);
                let failing = tokio::select! {
                    now = watched.parent.until(|now| is_over(now.activity)) => now,
                    now = watched.child.until(|now| is_over(now.activity)) => now,
                    _ = left.wait_for(|left| *left) => return,
                };
                if failing.activity == TaskActivity::Finished {
                    continue;
                }
            }
            Err(error) => {
                let error = crate::recover::causes(&error);
                tracing::warn!(task = %child.task, agent = %child.agent, error, "cannot follow the parent of a task; will try again");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            _ = left.wait_for(|left| *left) => return,
        }
    }
}
