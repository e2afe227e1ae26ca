//! The driver: the one who has a task from its birth, or from the message that wakes it, until it is at
//! rest again.
//!
//! Only the driver writes to the task's log, so decisions never race. It works in strides: the agent
//! runs as far as it can, everything it has said is decided, and all of that is stored in one append.
//! While an append is under way the next one gathers.

mod storing;
mod turning;
mod waiting;

use std::collections::VecDeque;
use std::sync::Arc;

use sabir_model::{
    Action, Birth, Command, ContextId, Cost, Created, Decision, Error, Event, IdempotencyKey, Message, Outcome, Part,
    Role, Run, Seq, Standing, State, Task, TaskBirth,
};
use sabir_store::{Beside, TaskNo};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::engine::{Agency, Core, Recovery, new_id};
use crate::feed::Lease;
use crate::flight::Ticket;
use crate::schedule::Room;
use crate::topic::Control;
use crate::{Ended, Entry};
pub(crate) use storing::told;
use storing::{Ack, Batch, Storing};

pub(crate) struct Driver {
    core: Arc<Core>,
    agency: Arc<Agency>,
    lease: Lease,
    context: ContextId,
    standing: Standing,
    /// What this driver begins with, until that is stored.
    fresh: Fresh,
    no: Option<TaskNo>,
    /// The last event that is stored.
    stored: Seq,
    control: mpsc::UnboundedReceiver<Control>,
    batch: Batch,
    storing: Option<Storing>,
    inbox: VecDeque<Unread>,
    usage: Option<sabir_model::Usage>,
    /// When the last turn began.
    began: Instant,
    metadata: Option<sabir_model::Json>,
    tickets: Vec<Ticket>,
    /// How the last turn ended, where messages still wait that may change it.
    withheld: Option<Outcome>,
    /// The server stops: no more turns.
    is_settling: bool,
    /// The log is not ours any more, or never came to be: stop without a word.
    is_lost: bool,
}

/// A beginning that can still be taken back: nobody has been told of it.
enum Fresh {
    Birth(NewBirth),
    /// A message or a cancel comes to a task at rest.
    Wake,
    No,
}

struct NewBirth {
    birth: TaskBirth,
    key: Option<IdempotencyKey>,
}

/// A message that waits for its turn.
struct Unread {
    message: Arc<Message>,
    /// It has a row in the store's inbox.
    is_stored: bool,
}

/// What a driver begins with.
pub(crate) enum Start {
    /// A task that does not exist yet.
    Create { created: Created, context: ContextId, born: Birth, key: Option<IdempotencyKey> },
    /// A message for a task at rest.
    Deliver { task: Arc<Task>, message: Arc<Message>, key: Option<IdempotencyKey> },
    /// A task that was left behind: its messages, those of them that are in the store's inbox, and
    /// whether the first one is in the history already.
    Again { task: Arc<Task>, first: Option<Arc<Message>>, inbox: Vec<Arc<Message>> },
    /// A task at rest, or one that was left behind, which shall end.
    End { task: Arc<Task>, ending: Ending, inbox: Vec<Arc<Message>> },
}

pub(crate) enum Ending {
    Cancel,
    Fail(String),
}

pub(crate) type Done = oneshot::Sender<Result<(), Error>>;

/// A task that has been taken, and what is to be done with it.
pub(crate) struct Assignment {
    pub(crate) lease: Lease,
    pub(crate) control: mpsc::UnboundedReceiver<Control>,
    pub(crate) start: Start,
    /// `None` where nothing is to be run.
    pub(crate) room: Option<Room>,
    /// Kept until the task is at rest.
    pub(crate) tickets: Vec<Ticket>,
    /// Answered when what it begins with is stored.
    pub(crate) done: Option<Done>,
}

/// Starts a driver.
pub(crate) fn start(core: &Arc<Core>, agency: &Arc<Agency>, assignment: Assignment) {
    let Assignment { lease, control, start, room, tickets, done } = assignment;
    let key = lease.key.clone();
    let (context, metadata, mut standing, fresh) = match &start {
        Start::Create { created, context, born, key: idempotency } => {
            let birth =
                TaskBirth { context: context.clone(), agent: key.agent.clone(), owner: key.owner.clone(), born: *born };
            let standing = Standing::new(key.task.clone());
            let birth = NewBirth { birth, key: idempotency.clone() };
            (context.clone(), created.metadata.clone(), standing, Fresh::Birth(birth))
        }
        Start::Deliver { task, .. } | Start::End { task, ending: Ending::Cancel, .. } => {
            (task.context.clone(), task.metadata.clone(), task.standing(), Fresh::Wake)
        }
        Start::Again { task, .. } | Start::End { task, ending: Ending::Fail(_), .. } => {
            (task.context.clone(), task.metadata.clone(), task.standing(), Fresh::No)
        }
    };
    if standing.state.is_waiting() && !matches!(start, Start::End { .. }) {
        standing.run = Run::Queued;
    }
    // In a box of its own: a future that held it by value would be copied with it on its way to the scheduler.
    let mut driver = Box::new(Driver {
        core: core.clone(),
        agency: agency.clone(),
        no: lease.no(),
        lease,
        context,
        stored: standing.seq,
        standing,
        fresh,
        control,
        batch: Batch::default(),
        storing: None,
        inbox: VecDeque::new(),
        usage: None,
        began: Instant::now(),
        metadata,
        tickets,
        withheld: None,
        is_settling: false,
        is_lost: false,
    });
    let first = driver.begin_with(start, matches!(room, Some(Room::Now(_))));
    driver.batch.acks.extend(done.map(Ack::plain));
    let running = core.running.enter();
    tokio::spawn(async move {
        driver.drive(first, room).await;
        drop(driver);
        drop(running);
    });
}

impl Driver {
    /// Puts down what it begins with; returns the first message to work on.
    fn begin_with(&mut self, start: Start, has_room: bool) -> First {
        match start {
            Start::Create { created, .. } => {
                let message = created.message.clone();
                self.record(Event::Created(created));
                First::InHistory(message)
            }
            Start::Deliver { message, key, .. } => {
                self.batch.beside.extend(key.map(Beside::Key));
                if !has_room {
                    self.batch.beside.push(Beside::InboxAdd(message.clone()));
                }
                self.inbox.push_back(Unread { message, is_stored: !has_room });
                First::InInbox
            }
            Start::Again { first, inbox, .. } => {
                self.inbox.extend(inbox.into_iter().map(|message| Unread { message, is_stored: true }));
                first.map_or(First::InInbox, First::InHistory)
            }
            Start::End { ending, inbox, .. } => {
                self.inbox.extend(inbox.into_iter().map(|message| Unread { message, is_stored: true }));
                match ending {
                    Ending::Cancel => {
                        let unread = self.take_inbox();
                        // Nobody runs it, so there is nobody to stop.
                        self.standing.run = Run::None;
                        self.decide(Command::Cancel { unread });
                    }
                    Ending::Fail(reason) => {
                        self.finish(Outcome::Failed(Some(self.speak(vec![Part::text(reason)]).into())))
                    }
                }
                First::Nothing
            }
        }
    }

    async fn drive(&mut self, first: First, room: Option<Room>) {
        let permit = match (&first, room) {
            (First::Nothing, _) | (_, None) => None,
            (_, Some(Room::Now(permit))) => Some(permit),
            (_, Some(Room::Later { permit, .. })) => self.wait_for_room(permit).await,
            (_, Some(Room::None)) => None,
        };
        let mut next = match first {
            First::InHistory(message) => Some((message, Vec::new())),
            First::InInbox if permit.is_some() => self.next_message(),
            First::InInbox | First::Nothing => None,
        };
        loop {
            if let (Some((message, input)), Some(permit)) = (next.take(), &permit) {
                self.decide(Command::Begin { input });
                self.turn(message, permit).await;
            }
            self.flush().await;
            // From here to the release nothing is awaited: a caller who comes too late finds nobody and asks again.
            if permit.is_some() && !self.is_settling {
                next = self.next_message();
            }
            if next.is_none() && !self.settle_what_was_withheld() {
                break;
            }
        }
        drop(permit);
    }

    /// The last turn left its outcome open for messages that are not there any more, or that nobody will
    /// read. `false`: there is nothing to settle.
    fn settle_what_was_withheld(&mut self) -> bool {
        let Some(outcome) = self.withheld.take().filter(|_| !self.is_lost) else { return false };
        if self.inbox.is_empty() {
            self.finish(outcome);
        } else {
            self.interrupt();
        }
        true
    }

    /// The server stops before the task is through.
    fn interrupt(&mut self) {
        match self.core.settings.recovery {
            // The next start finds it working and runs it again.
            Recovery::Requeue => self.is_lost = true,
            Recovery::Fail => {
                let reason = vec![Part::text("interrupted: the server was stopped")];
                self.finish(Outcome::Failed(Some(self.speak(reason).into())));
            }
        }
    }

    /// The next message that waits, and what must go into the history with it.
    fn next_message(&mut self) -> Option<(Arc<Message>, Vec<Arc<Message>>)> {
        if self.is_lost || self.standing.state.is_terminal() {
            return None;
        }
        let unread = self.inbox.pop_front()?;
        match self.withheld.take() {
            // What the last turn had to say is not its end any more.
            Some(Outcome::Completed(Some(said))) => {
                drop(self.decide(Command::Say { message: Some(said), metadata: None }))
            }
            Some(Outcome::InputRequired(question)) => {
                self.decide(Command::AskedAndAnswered { state: State::InputRequired, question });
            }
            Some(Outcome::AuthRequired(question)) => {
                self.decide(Command::AskedAndAnswered { state: State::AuthRequired, question });
            }
            Some(Outcome::Completed(None) | Outcome::Failed(_) | Outcome::Rejected(_) | Outcome::Canceled(_))
            | None => {}
        }
        if unread.is_stored {
            self.batch.beside.push(Beside::InboxTake(1));
        }
        Some((unread.message.clone(), vec![unread.message]))
    }

    /// Messages that nobody will work on any more.
    fn take_inbox(&mut self) -> Vec<Arc<Message>> {
        let stored = self.inbox.iter().filter(|unread| unread.is_stored).count();
        if stored > 0 {
            self.batch.beside.push(Beside::InboxTake(stored));
        }
        self.inbox.drain(..).map(|unread| unread.message).collect()
    }

    /// Decides a command and puts its events down. What is left to do is returned.
    fn decide(&mut self, command: Command) -> Vec<Action> {
        match sabir_model::decide(&self.standing, command, self.core.clock.now()) {
            Ok(Decision { events, actions }) => {
                for event in events {
                    self.record(event);
                }
                actions
            }
            // Refusals are for callers, and callers are asked before.
            Err(_) => Vec::new(),
        }
    }

    fn record(&mut self, event: Event) {
        self.standing.follow(&event);
        self.batch.entries.push(Arc::new(Entry::new(self.standing.seq, event)));
    }

    fn finish(&mut self, mut outcome: Outcome) {
        // Where a turn came to nothing, its cost is told with the reason; else it is on what the turn made.
        if let (Some(usage), Outcome::Failed(Some(reason)) | Outcome::Rejected(Some(reason))) =
            (self.usage, &mut outcome)
        {
            let duration_ms = self.began.elapsed().as_millis() as u64;
            Cost { usage, duration_ms, is_success: false }.note_on_message(Arc::make_mut(reason));
        }
        let unread = match outcome {
            Outcome::Completed(_) | Outcome::InputRequired(_) | Outcome::AuthRequired(_) => Vec::new(),
            Outcome::Failed(_) | Outcome::Rejected(_) | Outcome::Canceled(_) => self.take_inbox(),
        };
        let usage = self.usage;
        self.decide(Command::Finish { outcome, usage, unread });
    }

    /// A message of the agent's, for a status.
    fn speak(&self, parts: Vec<Part>) -> Message {
        Message {
            task: Some(self.lease.key.task.clone()),
            context: Some(self.context.clone()),
            ..Message::new(new_id(sabir_model::MessageId::parse), Role::Agent, parts)
        }
    }

    fn speak_if_any(&self, parts: Vec<Part>) -> Option<Arc<Message>> {
        (!parts.is_empty()).then(|| Arc::new(self.speak(parts)))
    }

    fn outcome(&self, ended: Ended) -> Outcome {
        match ended {
            Ended::Completed(parts) => Outcome::Completed(self.speak_if_any(parts)),
            Ended::Failed(parts) => Outcome::Failed(self.speak_if_any(parts)),
            Ended::Rejected(parts) => Outcome::Rejected(self.speak_if_any(parts)),
            Ended::Canceled => Outcome::Canceled(None),
            Ended::InputRequired(parts) => Outcome::InputRequired(self.speak_if_any(parts)),
            Ended::AuthRequired(parts) => Outcome::AuthRequired(self.speak_if_any(parts)),
        }
    }
}

/// Also when it panics: whoever comes next must not find a driver that is none.
impl Drop for Driver {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.lease.abandon();
        }
        self.lease.release();
    }
}

enum First {
    /// The message is in the history already.
    InHistory(Arc<Message>),
    /// It is the first of the inbox.
    InInbox,
    /// There is nothing to run.
    Nothing,
}
