//! After a start: nobody is left behind.
//!
//! Queued tasks run, waiting ones keep waiting, and what was running when the last process died fails
//! with a reason or runs again, as the settings say.

use sabir_model::{Error, Message, State, Task};
use sabir_store::Pending;

use crate::drive::{self, Assignment, Ending, Start, told};
use crate::engine::{Engine, Recovery};
use crate::schedule::Room;
use crate::topic::TopicKey;

impl Engine {
    pub(crate) async fn recover(&self) -> Result<(), Error> {
        let pending = self.core.store.unfinished().await.map_err(told)?;
        let (mut failed, mut queued, mut waiting) = (0, 0, 0);
        for Pending { row, inbox } in pending {
            let Some(task) = self.core.store.load(row.no).await.map_err(told)? else { continue };
            match self.plan(task, inbox) {
                None => waiting += 1,
                Some(start) => {
                    if matches!(start, Start::End { .. }) {
                        failed += 1
                    } else {
                        queued += 1
                    }
                    self.take_up(TopicKey { owner: row.owner, agent: row.agent, task: row.task }, start).await?;
                }
            }
        }
        if failed + queued + waiting > 0 {
            tracing::info!(failed, queued, waiting, "took up the tasks of an earlier run");
        }
        Ok(())
    }

    fn plan(&self, task: Task, inbox: Vec<Message>) -> Option<Start> {
        let task = Box::new(task);
        let Ok(agency) = self.agency(Some(&task.agent)) else {
            let reason = format!("interrupted: agent {} is no longer configured", task.agent);
            // A task that waits may wait for its agent to come back too.
            let keeps_waiting = task.status.state.is_waiting() && inbox.is_empty();
            return (!keeps_waiting).then_some(Start::End { task, ending: Ending::Fail(reason), inbox });
        };
        let first = task.history.last().cloned();
        match task.status.state {
            State::Submitted => Some(Start::Again { task, first, inbox }),
            State::Working if self.core.settings.recovery == Recovery::Requeue => {
                Some(Start::Again { task, first, inbox })
            }
            State::Working => {
                let ending = Ending::Fail("interrupted: the server was restarted while the task was running".into());
                Some(Start::End { task, ending, inbox })
            }
            State::InputRequired | State::AuthRequired if !task.turn_over && !agency.hosted.agent.resumes() => {
                let ending = Ending::Fail("interrupted: the server was restarted and the agent cannot resume".into());
                Some(Start::End { task, ending, inbox })
            }
            State::InputRequired | State::AuthRequired if inbox.is_empty() => None,
            State::InputRequired | State::AuthRequired => Some(Start::Again { task, first: None, inbox }),
            State::Completed | State::Failed | State::Canceled | State::Rejected => None,
        }
    }

    async fn take_up(&self, key: TopicKey, start: Start) -> Result<(), Error> {
        let lease = self.core.feed.open(key.clone());
        lease.load(&*self.core.store).await.map_err(told)?;
        let Ok(control) = lease.take() else { return Ok(()) };
        lease.expect_more();
        let agency = match self.agency(Some(&key.agent)) {
            Ok(agency) => agency,
            // It only ends the task; any agency will do.
            Err(_) => self.agency(None)?,
        };
        let room = match &start {
            Start::End { .. } => None,
            Start::Create { .. } | Start::Deliver { .. } | Start::Again { .. } => {
                let context = lease.look(|task| task.context.clone()).ok_or(Error::TaskNotFound(key.task))?;
                let room = agency.schedule.enter((key.owner, context));
                if matches!(room, Room::None) {
                    // More are left over than the queue holds: they stay submitted until the next start.
                    tracing::warn!(agent = %key.agent, "the queue is too short for the tasks of an earlier run");
                    lease.release();
                    return Ok(());
                }
                Some(room)
            }
        };
        drive::start(&self.core, agency, Assignment { lease, control, start, room, tickets: Vec::new(), done: None });
        Ok(())
    }
}
