//! Handing a message to a task that exists, whoever has it at the moment.

use std::sync::Arc;

use sabir_model::{Error, Message};
use tokio::sync::oneshot;

use crate::drive::{self, Assignment, Start, told};
use crate::engine::{Agency, Engine};
use crate::flight::Ticket;
use crate::schedule::Room;
use crate::sent::{Entrance, Sent};
use crate::subscribe::beyond;
use crate::topic::{Control, Delivered, TopicKey};

impl Engine {
    /// Hands a message to a task; returns when that is stored.
    pub(crate) async fn deliver(
        &self,
        agency: &Arc<Agency>,
        key: TopicKey,
        send: &sabir_model::Send,
        mut tickets: Vec<Ticket>,
    ) -> Result<Sent, Error> {
        loop {
            if *self.core.stopping.borrow() {
                return Err(Error::Stopping);
            }
            let lease = self.core.feed.open(key.clone());
            if !lease.load(&*self.core.store).await.map_err(told)? {
                return Err(Error::TaskNotFound(key.task));
            }
            let Some(before) = lease.task() else { return Err(Error::TaskNotFound(key.task)) };
            if send.after.is_some_and(|after| after > before.seq) {
                return Err(beyond(before.seq));
            }
            let message = Arc::new(Message {
                task: Some(before.id.clone()),
                context: Some(before.context.clone()),
                request_metadata: send.metadata.clone(),
                ..send.message.clone()
            });
            let (done, stored) = oneshot::channel();
            let keep = self.core.feed.open(key.clone());
            match lease.take() {
                Err(driver) => {
                    let key = send.idempotency.clone();
                    let tickets_given = std::mem::take(&mut tickets);
                    let control = Control::Deliver(Box::new(Delivered { message, key, tickets: tickets_given, done }));
                    if let Err(unsent) = driver.send(control) {
                        if let Control::Deliver(unheard) = unsent.0 {
                            tickets = unheard.tickets;
                        }
                        tokio::task::yield_now().await;
                        continue;
                    }
                }
                // Nobody else can move the task from here on, but somebody may have before.
                Ok(_) if lease.look(|task| task.seq) != Some(before.seq) => {
                    lease.release();
                    continue;
                }
                Ok(control) => {
                    if before.status.state.is_terminal() {
                        lease.release();
                        return Err(Error::TaskFinished(before.id.clone()));
                    }
                    let room = agency.schedule.enter((key.owner.clone(), before.context.clone()));
                    if matches!(room, Room::None) {
                        lease.release();
                        return Err(Error::Busy(agency.hosted.id.clone()));
                    }
                    lease.expect_more();
                    let key = send.idempotency.clone();
                    let start = Start::Deliver { task: before.clone(), message, key };
                    let tickets = std::mem::take(&mut tickets);
                    let assignment = Assignment { lease, control, start, room: Some(room), tickets, done: Some(done) };
                    drive::start(&self.core, agency, assignment);
                }
            }
            // A driver that let go before it heard us drops the question; then we ask again.
            if let Ok(stored) = stored.await {
                stored?;
                return Ok(Sent { lease: keep, entrance: Entrance::Continued(before) });
            }
        }
    }
}
