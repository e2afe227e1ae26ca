//! After a start: nobody is left behind.
//!
//! Queued tasks run, waiting ones keep waiting, and what was running when the last process died fails
//! with a reason or runs again, as the settings say.

use std::sync::Arc;

use sabir_model::{Error, Event, Message, State, Task};
use sabir_store::{Pending, TaskNo};

use crate::drive::{self, Assignment, Ending, Start, told};
use crate::engine::{Engine, Recovery};
use crate::topic::TopicKey;

/// Events that are looked at together.
const PAGE: usize = 256;

impl Engine {
    pub(crate) async fn recover(&self) -> Result<(), Error> {
        let pending = self.core.store.unfinished().await.map_err(told)?;
        let (mut failed, mut queued, mut waiting) = (0, 0, 0);
        for Pending { row, inbox, .. } in pending {
            let Some(task) = self.core.store.load(row.no).await.map_err(told)? else { continue };
            let first = self.turn_message(row.no, &task).await?;
            match self.plan(task, first, inbox) {
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

    fn plan(&self, task: Task, first: Option<Arc<Message>>, inbox: Vec<Message>) -> Option<Start> {
        let (task, inbox): (_, Vec<_>) = (Arc::new(task), inbox.into_iter().map(Arc::new).collect());
        let Ok(agency) = self.agency(Some(&task.agent)) else {
            let reason = format!("interrupted: agent {} is no longer configured", task.agent);
            // A task that waits may wait for its agent to come back too.
            let keeps_waiting = task.status.state.is_waiting() && inbox.is_empty();
            return (!keeps_waiting).then_some(Start::End { task, ending: Ending::Fail(reason), inbox });
        };
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

    /// The message that began the present turn. An agent that resumes goes on with the newest one; any
    /// other begins the turn again, and an answer in the middle of it is not its beginning.
    async fn turn_message(&self, no: TaskNo, task: &Task) -> Result<Option<Arc<Message>>, Error> {
        let resumes = self.agency(Some(&task.agent)).is_ok_and(|agency| agency.hosted.agent.resumes());
        if task.status.state != State::Working || resumes || self.core.settings.recovery == Recovery::Fail {
            return Ok(task.history.last().cloned());
        }
        let (mut first, mut is_parked, mut cursor) = (None, false, 0);
        loop {
            let events = self.core.store.events(no, cursor, PAGE).await.map_err(told)?;
            let Some(last) = events.last() else { return Ok(first) };
            cursor = last.seq;
            for recorded in events {
                match recorded.event {
                    Event::Created(created) => first = Some(created.message),
                    Event::Status(change) => {
                        if !is_parked && let Some(message) = change.input.into_iter().next() {
                            first = Some(message);
                        }
                        is_parked = change.status.state.is_waiting() && !change.is_final;
                    }
                    Event::Artifact(_) => {}
                }
            }
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
                // They were let in before: the bound of the queue is for newcomers.
                let room = agency.schedule.enter_again((key.owner, context));
                Some(room)
            }
        };
        drive::start(&self.core, agency, Assignment { lease, control, start, room, tickets: Vec::new(), done: None });
        Ok(())
    }
}
