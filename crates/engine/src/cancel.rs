//! Cancels: stops the run and answers the caller when it has stopped and that is stored.

use std::sync::Arc;

use sabir_model::{Caller, Cancel, Error, OnFinishedCancel, State, Task};
use tokio::sync::oneshot;

use crate::Answer;
use crate::access::Action;
use crate::audit::CallAudit;
use crate::cluster::{Contention, Forwarding, Loaded};
use crate::drive::{self, Assignment, Control, DriverOwnership, DriverStart, NotDone};
use crate::engine::Engine;
use crate::executor::Executor;
use crate::topic::TopicKey;

impl Engine {
    pub(crate) async fn cancel(&self, caller: &Caller, cancel: Cancel, audit: &CallAudit) -> Result<Answer, Error> {
        let found = self.locate(caller, cancel.agent.as_ref(), &cancel.task, Action::Run).await?;
        match self.cancel_task(caller, &found.key, audit).await {
            Ok(task) => Ok(Answer::Task(task)),
            Err(error @ Error::NotCancelable(_)) if cancel.on_finished != OnFinishedCancel::Refuse => {
                let task = self.task_of(&found.key).await?;
                if cancel.on_finished.leaves(task.born) { Ok(Answer::Task(task)) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }

    /// Cancels a task that was found already.
    pub(crate) async fn cancel_task(
        &self,
        caller: &Caller,
        key: &TopicKey,
        audit: &CallAudit,
    ) -> Result<Arc<Task>, Error> {
        self.cancel_task_because(caller, key, audit, None).await
    }

    /// The same for a reason, which the status message tells.
    pub(crate) async fn cancel_task_because(
        &self,
        caller: &Caller,
        key: &TopicKey,
        audit: &CallAudit,
        reason: Option<String>,
    ) -> Result<Arc<Task>, Error> {
        // A cancel does not need the agent, which may no longer be configured.
        let registered = self.registered_agent(Some(&key.agent)).or_else(|| self.registered_agent(None)).cloned();
        let registered = registered.ok_or_else(|| self.agent_not_found(caller, Some(&key.agent)))?;
        let (mut was_forwarded, mut contention) = (false, Contention::default());
        let refused = loop {
            let lease = self.core.feed.open(key.clone());
            let loaded = self.load(&lease).await?;
            if loaded == Loaded::Missing {
                return Err(Error::TaskNotFound(key.task.clone()));
            }
            if was_forwarded && lease.with_task(|task| task.status.state) == Some(State::Canceled) {
                // Its node did it, and died before it could say so.
                break Ok(lease.task());
            }
            if let (Loaded::Elsewhere, Some(membership), Some(no)) = (loaded, &self.core.membership, lease.no()) {
                let audit_entry = audit.for_driver(key);
                match membership.forward_cancel(no, key, audit_entry, reason.clone()).await {
                    Ok(Forwarding::Done) => {
                        self.load(&lease).await?;
                        break Ok(lease.task());
                    }
                    Ok(Forwarding::Withdrawn) => {
                        was_forwarded = true;
                        continue;
                    }
                    Err(error) => break Err(error),
                }
            }
            let inbox = match lease.no().filter(|_| loaded == Loaded::Left) {
                Some(no) => self.core.store.inbox(no).await?.into_iter().map(Arc::new).collect(),
                None => self.stored_inbox(&lease).await.unwrap_or_default(),
            };
            let (done, stopped) = oneshot::channel();
            let audit_entry = audit.for_driver(key);
            match lease.claim() {
                Err(driver) => {
                    if driver.send(Control::Cancel { done, audit: audit_entry, reason: reason.clone() }).is_err() {
                        tokio::task::yield_now().await;
                        continue;
                    }
                }
                Ok(control) => {
                    if lease.with_task(|task| task.status.state.is_terminal()) != Some(false) {
                        lease.release(None);
                        break Err(Error::NotCancelable(key.task.clone()));
                    }
                    let keep = self.core.feed.open(key.clone());
                    let reason = reason.clone();
                    let (start, scheduled, send_guards, done) =
                        (DriverStart::Cancel { inbox, audit: audit_entry, reason }, None, Vec::new(), Some(done));
                    let executor = Executor::unrouted(&registered);
                    drive::start(
                        &self.core,
                        executor,
                        Assignment {
                            lease,
                            control,
                            start,
                            scheduled,
                            send_guards,
                            done,
                            ownership: DriverOwnership::default(),
                        },
                    );
                    match stopped.await {
                        Ok(Ok(())) => break Ok(keep.task()),
                        Ok(Err(NotDone::Refused(error))) => break Err(error),
                        Ok(Err(
                            NotDone::Contended | NotDone::ContextBusy(_) | NotDone::Exists(_) | NotDone::Repeated,
                        ))
                        | Err(_) => {
                            contention.pause().await?;
                            continue;
                        }
                    }
                }
            }
            // A driver that released the task before it read the cancel drops `done`; then the loop tries again.
            match stopped.await {
                Ok(Ok(())) => break Ok(lease.task()),
                Ok(Err(NotDone::Refused(error))) => break Err(error),
                Ok(Err(NotDone::Contended | NotDone::ContextBusy(_) | NotDone::Exists(_) | NotDone::Repeated))
                | Err(_) => {
                    contention.pause().await?;
                    continue;
                }
            }
        };
        let task = refused?.ok_or_else(|| Error::TaskNotFound(key.task.clone()))?;
        audit.set_stored();
        Ok(task)
    }
}
