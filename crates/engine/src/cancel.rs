//! Cancels: stops the run and answers the caller when it has stopped and that is stored.

use sabir_model::{Caller, Cancel, Error, OnFinishedCancel};
use tokio::sync::oneshot;

use crate::Answer;
use crate::access::Action;
use crate::audit::CallAudit;
use crate::drive::{self, Assignment, Control, DriverStart};
use crate::engine::Engine;
use crate::executor::Executor;

impl Engine {
    pub(crate) async fn cancel(&self, caller: &Caller, cancel: Cancel, audit: &CallAudit) -> Result<Answer, Error> {
        let found = self.locate(caller, cancel.agent.as_ref(), &cancel.task, Action::Run).await?;
        // A cancel does not need the agent, which may no longer be configured.
        let registered = self.registered_agent(Some(&found.key.agent)).or_else(|| self.registered_agent(None)).cloned();
        let registered = registered.ok_or_else(|| self.agent_not_found(caller, Some(&found.key.agent)))?;
        let refused = loop {
            let lease = self.core.feed.open(found.key.clone());
            if !lease.load(&*self.core.store).await? {
                return Err(Error::TaskNotFound(cancel.task));
            }
            let inbox = self.stored_inbox(&lease).await.unwrap_or_default();
            let (done, stopped) = oneshot::channel();
            let audit_entry = audit.for_driver(&found.key);
            match lease.claim() {
                Err(driver) => {
                    if driver.send(Control::Cancel { done, audit: audit_entry }).is_err() {
                        tokio::task::yield_now().await;
                        continue;
                    }
                }
                Ok(control) => {
                    if lease.with_task(|task| task.status.state.is_terminal()) != Some(false) {
                        lease.release(None);
                        break Err(Error::NotCancelable(found.key.task.clone()));
                    }
                    let keep = self.core.feed.open(found.key.clone());
                    let (start, scheduled, send_guards, done) =
                        (DriverStart::Cancel { inbox, audit: audit_entry }, None, Vec::new(), Some(done));
                    let executor = Executor::unrouted(&registered);
                    drive::start(
                        &self.core,
                        executor,
                        Assignment { lease, control, start, scheduled, send_guards, done },
                    );
                    match stopped.await {
                        Ok(result) => break result.map(|()| keep.task()),
                        Err(_) => continue,
                    }
                }
            }
            // A driver that released the task before it read the cancel drops `done`; then the loop tries again.
            match stopped.await {
                Ok(result) => break result.map(|()| lease.task()),
                Err(_) => continue,
            }
        };
        match refused {
            Ok(Some(task)) => {
                audit.set_stored();
                Ok(Answer::Task(task))
            }
            Ok(None) => Err(Error::TaskNotFound(cancel.task)),
            Err(error @ Error::NotCancelable(_)) if cancel.on_finished != OnFinishedCancel::Refuse => {
                let task = self.task_of(&found.key).await?;
                if cancel.on_finished.leaves(task.born) { Ok(Answer::Task(task)) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }
}
