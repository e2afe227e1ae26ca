//! One turn: the agent works, the driver listens, decides and stores, until the turn is over.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use sabir_model::{Action, Command, Error, Message, Outcome, Part, ToolCall, ToolPhase};
use sabir_store::Beside;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep};

use super::storing::Ack;
use super::{Done, Driver};
use crate::beacon::Beacon;
use crate::schedule::Permit;
use crate::topic::{Control, Delivered};
use crate::{AgentError, Ask, Ended, Said, Turn};

/// What an agent may say ahead of the driver.
const SAID_AHEAD: usize = 256;
/// What gathers while an append is under way; then the agent has to wait.
const BATCH_ENTRIES: usize = 1024;
/// How long an agent that was told to stop may take before it is dropped.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// A turn under way, beside the agent's future.
struct Going<'a> {
    permit: &'a Permit,
    hears: mpsc::Receiver<Said>,
    stop: Arc<Beacon<bool>>,
    /// The agent waits for this answer.
    asked: Option<oneshot::Sender<Arc<Message>>>,
    /// Why it was told to stop.
    fate: Option<Fate>,
    cancels: Vec<Done>,
    timer: Option<Pin<Box<Sleep>>>,
    hard_limit: Option<Instant>,
    heard: Instant,
    parked: Option<Instant>,
    /// It has said all that it had to say.
    is_tidying: bool,
}

enum Fate {
    Canceled,
    TimedOut(String),
    Interrupted,
}

type Worked = Result<Result<Ended, AgentError>, Box<dyn std::any::Any + Send>>;

impl Driver {
    pub(super) async fn turn(&mut self, message: Arc<Message>, permit: &Permit) {
        let (said, hears) = mpsc::channel(SAID_AHEAD);
        let stop = Arc::new(Beacon::new(false));
        let now = Instant::now();
        self.began = now;
        let turn = Turn {
            message,
            task: self.lease.key.task.clone(),
            context: self.context.clone(),
            owner: self.lease.key.owner.clone(),
            agent: self.lease.key.agent.clone(),
            metadata: self.metadata.clone(),
            began: now,
            said,
            stop: stop.clone(),
            store: self.core.store.clone(),
        };
        let limits = self.agency.hosted.limits;
        let mut going = Going {
            permit,
            hears,
            stop,
            asked: None,
            fate: None,
            cancels: Vec::new(),
            timer: None,
            hard_limit: limits.timeout.map(|limit| now + limit),
            heard: now,
            parked: None,
            is_tidying: false,
        };
        going.set_timer(limits.idle_timeout);
        let agency = self.agency.clone();
        // Also an agent that panics before it has a future to give.
        let worked = match catch_unwind(AssertUnwindSafe(|| agency.hosted.agent.run(turn))) {
            Ok(work) => {
                let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
                poll_fn(|cx| self.poll_turn(cx, &mut going, work.as_mut())).await
            }
            Err(panic) => Some(Err(panic)),
        };
        // Whatever the agent has left running hears that nobody listens any more.
        going.stop.set(true);
        permit.park(None);
        if self.is_lost {
            return;
        }
        self.end_turn(worked, going);
    }

    /// `Ready(None)`: the agent did not stop when it was told, or the task is lost.
    fn poll_turn(
        &mut self,
        cx: &mut Context<'_>,
        going: &mut Going<'_>,
        mut work: Pin<&mut impl Future<Output = Worked>>,
    ) -> Poll<Option<Worked>> {
        // Callers first: a cancel must reach an agent that never pauses.
        while let Poll::Ready(Some(control)) = self.control.poll_recv(cx) {
            self.take_control(control, going);
        }
        loop {
            if self.has_room() {
                let worked = work.as_mut().poll(cx);
                if let Poll::Ready(worked) = worked {
                    going.hears.close();
                    while let Ok(said) = going.hears.try_recv() {
                        self.hear(said, going);
                    }
                    return Poll::Ready(Some(worked));
                }
                while self.has_room()
                    && let Ok(said) = going.hears.try_recv()
                {
                    self.hear(said, going);
                }
                // Nothing is there now; this asks to be woken for what its helpers say later.
                while self.has_room()
                    && let Poll::Ready(Some(said)) = going.hears.poll_recv(cx)
                {
                    self.hear(said, going);
                }
            }
            if !self.has_room() {
                // The agent waits for us, so its silence does not count.
                going.heard = Instant::now();
            }
            if self.timed_out(cx, going) {
                return Poll::Ready(None);
            }
            let was_full = !self.has_room();
            let _ = self.poll_store(cx);
            if self.is_lost {
                going.stop.set(true);
                return Poll::Ready(None);
            }
            let has_room_again = was_full && self.has_room();
            if !has_room_again {
                return Poll::Pending;
            }
        }
    }

    /// A batch that is full waits for the one that is being stored, and the agent waits for both.
    fn has_room(&self) -> bool {
        self.batch.entries.len() + self.batch.beside.len() < BATCH_ENTRIES
    }

    fn hear(&mut self, said: Said, going: &mut Going<'_>) {
        going.heard = Instant::now();
        if going.asked.as_ref().is_some_and(oneshot::Sender::is_closed) {
            // It waited long enough and goes on without an answer.
            going.asked = None;
            going.unpark();
        }
        match said {
            Said::Progress(parts) => {
                let message = self.speak_if_any(parts);
                self.decide(Command::Say { message, metadata: None });
            }
            Said::Tool(call) => {
                let mut message = self.speak(vec![Part::text(words_on(&call))]);
                call.note_on(&mut message);
                self.decide(Command::Say { message: Some(message.into()), metadata: None });
            }
            Said::Chunk(chunk) => {
                self.decide(Command::Make {
                    artifact: chunk.artifact.into(),
                    append: chunk.append,
                    last: chunk.last,
                    metadata: None,
                });
            }
            Said::Usage(usage) => self.usage = Some(usage),
            Said::LastWord => going.is_tidying = true,
            Said::Remember(memory) => self.batch.beside.push(Beside::AgentState(memory)),
            // Who is told to stop gets no answers any more.
            Said::Ask(_) if going.fate.is_some() => {}
            // Only what comes from now on answers it: who wrote before did not know what would be asked, and a word such as
            // "yes" must not allow what nobody has seen.
            Said::Ask(ask) => {
                let Ask { state, parts, answer } = *ask;
                let question = self.speak(parts);
                self.decide(Command::Ask { state, question: question.into() });
                going.asked = Some(answer);
                going.parked = Some(Instant::now());
                going.permit.park(Some(self.lease.key.task.clone()));
            }
        }
    }

    fn take_control(&mut self, control: Control, going: &mut Going<'_>) {
        match control {
            Control::Deliver(delivered) => {
                let Delivered { message, key, tickets, done } = *delivered;
                if self.is_inbox_full() {
                    let _ = done.send(Err(Error::Busy(self.lease.key.agent.clone())));
                    return;
                }
                self.tickets.extend(tickets);
                let decided = sabir_model::decide(&self.standing, Command::Deliver(message), self.core.clock.now());
                match decided {
                    Ok(decision) => {
                        for event in decision.events {
                            self.record(event);
                        }
                        going.answer(&decision.actions);
                        self.take_in(decision.actions, key, done);
                    }
                    // As for any message, the disk is not waited for.
                    Err(_) if self.is_store_full() => drop(done.send(Err(Error::StoreFull))),
                    Err(refusal) => self.refuse(done, refusal),
                }
            }
            Control::Cancel { done } => {
                if self.standing.state.is_terminal() {
                    return self.refuse(done, Error::NotCancelable(self.standing.task.clone()));
                }
                going.cancels.push(done);
                going.end(Fate::Canceled);
            }
            Control::Settle => going.end(Fate::Interrupted),
        }
    }

    fn timed_out(&mut self, cx: &mut Context<'_>, going: &mut Going<'_>) -> bool {
        let limits = self.agency.hosted.limits;
        while let Some(timer) = &mut going.timer {
            if timer.as_mut().poll(cx).is_pending() {
                return false;
            }
            if going.fate.is_some() {
                tracing::warn!(task = %self.lease.key.task, "the agent did not stop when it was told to");
                return true;
            }
            let now = Instant::now();
            if let Some(limit) = limits.timeout
                && going.is_timed()
                && going.hard_limit.is_some_and(|at| now >= at)
            {
                going.end(Fate::TimedOut(format!("timed out: the turn took longer than {limit:?}")));
            } else if let Some(limit) = limits.idle_timeout
                && going.is_timed()
                && now >= going.heard + limit
            {
                going.end(Fate::TimedOut(format!("timed out: nothing was heard of the agent for {limit:?}")));
            } else {
                going.set_timer(limits.idle_timeout);
            }
        }
        false
    }

    fn end_turn(&mut self, worked: Option<Worked>, going: Going<'_>) {
        let outcome = match (going.fate, worked) {
            (Some(Fate::Canceled), _) => Outcome::Canceled(None),
            (Some(Fate::TimedOut(reason)), _) => self.failure(reason),
            // It waits for its caller's answer, and can take it in another life.
            (Some(Fate::Interrupted), _) if going.parked.is_some() && self.agency.hosted.agent.resumes() => {
                self.is_lost = true;
                return;
            }
            (Some(Fate::Interrupted), _) => return self.interrupt(),
            (None, Some(Ok(Ok(ended)))) => self.outcome(ended),
            (None, Some(Ok(Err(AgentError(reason))))) => self.failure(reason),
            (None, Some(Err(_))) => {
                tracing::error!(task = %self.lease.key.task, agent = %self.lease.key.agent, "the agent panicked");
                self.failure("the agent crashed".into())
            }
            (None, None) => self.failure("the agent stopped without an answer".into()),
        };
        for done in going.cancels {
            self.batch.acks.push(Ack::plain(done));
        }
        // A task is not settled before its inbox is empty; a failure settles it whatever waits.
        let may_go_on = matches!(outcome, Outcome::Completed(_) | Outcome::InputRequired(_) | Outcome::AuthRequired(_));
        if may_go_on && !self.inbox.is_empty() {
            self.withheld = Some(outcome);
        } else {
            self.finish(outcome);
        }
    }

    fn failure(&self, reason: String) -> Outcome {
        Outcome::Failed(Some(self.speak(vec![Part::text(reason)]).into()))
    }
}

/// What people read of a tool call; the whole of it is in the metadata.
fn words_on(call: &ToolCall) -> String {
    let outcome = |text: &Option<String>| cut(text.as_deref().unwrap_or("done"));
    match call.phase {
        ToolPhase::Started => format!("Using tool: {}", call.name),
        ToolPhase::Completed => format!("Tool result: {}", outcome(&call.result)),
        ToolPhase::Failed => format!("Tool failed: {}", outcome(&call.error)),
    }
}

/// Tools print pages; a status is one line or two.
fn cut(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

impl Going<'_> {
    fn answer(&mut self, actions: &[Action]) {
        for action in actions {
            if let Action::AnswerRun(message) = action {
                self.unpark();
                if let Some(answer) = self.asked.take() {
                    let _ = answer.send(message.clone());
                }
            }
        }
    }

    fn unpark(&mut self) {
        self.permit.park(None);
        if let (Some(since), Some(at)) = (self.parked.take(), &mut self.hard_limit) {
            // The time in which the caller thinks is not the agent's.
            *at += since.elapsed();
        }
        self.heard = Instant::now();
    }

    /// Tells the agent to stop, the first time; the reason that came first counts.
    fn end(&mut self, fate: Fate) {
        if self.fate.is_none() {
            self.fate = Some(fate);
            self.asked = None;
            self.stop.set(true);
            self.timer = Some(Box::pin(tokio::time::sleep(STOP_GRACE)));
        }
    }

    /// Neither the time of the caller, who thinks about an answer, nor that after the last word counts.
    fn is_timed(&self) -> bool {
        self.parked.is_none() && !self.is_tidying
    }

    fn set_timer(&mut self, idle: Option<Duration>) {
        let idle = idle.map(|idle| if self.is_timed() { self.heard } else { Instant::now() } + idle);
        let hard = self
            .hard_limit
            .map(|at| if self.is_timed() { at } else { at.max(Instant::now() + Duration::from_secs(1)) });
        let next = match (idle, hard) {
            (Some(idle), Some(hard)) => Some(idle.min(hard)),
            (idle, hard) => idle.or(hard),
        };
        self.timer = next.map(|at| Box::pin(tokio::time::sleep_until(at)));
    }
}
