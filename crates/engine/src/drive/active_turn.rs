//! One turn: the agent works, the driver listens, decides and stores, until the turn is over.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use sabir_model::{Command, Message, Part, Purpose, Seq, Timestamp, ToolCall, ToolPhase};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep};

use super::{Driver, InboxRow, LetGo, NextTurn};
use crate::beacon::Beacon;
use crate::turn::{AgentUpdate, Ask, Outcome, UpdateSender, WeighedUpdate};
use crate::{AgentError, Turn};

/// How long an agent that was told to stop may take before it is dropped.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// A turn under way, beside the agent's future.
pub(super) struct ActiveTurn {
    updates: mpsc::Receiver<WeighedUpdate>,
    stop: Arc<Beacon<bool>>,
    pub(super) question: Option<OpenQuestion>,
    /// Questions that are asked when the open one is closed.
    queued_questions: VecDeque<Ask>,
    /// Why the agent was told to stop.
    pub(super) stop_reason: Option<StopReason>,
    /// How the turn ended, from an agent that only tidies up now.
    pub(super) last_word: Option<Outcome>,
    timer: Option<Pin<Box<Sleep>>>,
    hard_limit: Option<Instant>,
    last_update: Instant,
    /// Until then the agent has to wait, and says so.
    waits_until: Option<Instant>,
    parked_since: Option<Instant>,
    /// What the agent has remembered of the context in this turn; it may not be stored yet.
    memory: Option<Option<String>>,
}

/// A question that the agent waits to have answered.
pub(super) struct OpenQuestion {
    reply: oneshot::Sender<Arc<Message>>,
    /// The event that asks it. Before that is stored, nobody has seen the question.
    pub(super) event: Seq,
    pub(super) asked: Timestamp,
    /// An answer is on its way to the store.
    pub(super) is_answered: bool,
}

pub(super) enum StopReason {
    Canceled,
    TimedOut(String),
    ServerStops,
    StoreFailed,
}

pub(super) type Worked = Result<Result<Outcome, AgentError>, Box<dyn std::any::Any + Send>>;

impl Driver {
    pub(super) async fn run_turn(&mut self, next: NextTurn) {
        let NextTurn { message, answers_lost_run, .. } = next;
        let (sender, updates) = UpdateSender::new();
        let stop = Arc::new(Beacon::new(false));
        let now = Instant::now();
        self.began = now;
        self.usage = None;
        let opening = self.lease.look(|task| task.history.first().cloned()).flatten();
        let turn = Turn {
            opening: opening.unwrap_or_else(|| message.clone()),
            metadata: message.request_metadata.clone().or_else(|| self.metadata.clone()),
            task_metadata: self.metadata.clone(),
            message,
            answers_lost_run,
            task: self.lease.key.task.clone(),
            no: self.no,
            context: self.context.clone(),
            owner: self.lease.key.owner.clone(),
            agent: self.lease.key.agent.clone(),
            began: now,
            updates: sender,
            stop: stop.clone(),
            store: self.core.store.clone(),
        };
        let limits = self.agency.hosted.limits;
        let mut active = ActiveTurn {
            updates,
            stop: stop.clone(),
            question: None,
            queued_questions: VecDeque::new(),
            stop_reason: None,
            last_word: None,
            timer: None,
            hard_limit: limits.timeout.map(|limit| now + limit),
            last_update: now,
            waits_until: None,
            parked_since: None,
            memory: None,
        };
        active.set_timer(limits.idle_timeout);
        self.turn = Some(active);
        let agency = self.agency.clone();
        // Also an agent that panics before it has a future to give.
        let worked = match catch_unwind(AssertUnwindSafe(|| agency.hosted.agent.run(turn))) {
            Ok(work) => {
                let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
                poll_fn(|cx| self.poll_turn(cx, work.as_mut())).await
            }
            Err(panic) => Some(Err(panic)),
        };
        // Whatever the agent has left running hears that nobody listens any more.
        stop.set(true);
        if let Some(permit) = &self.permit {
            permit.park(None);
        }
        if self.let_go.is_some() {
            self.turn = None;
            return;
        }
        if self.stays_parked().await {
            self.turn = None;
            self.let_go = Some(LetGo::StaysParked);
            return;
        }
        self.end_turn(worked);
    }

    /// Whether the server stops while the run waits for an answer that a later run can take.
    async fn stays_parked(&mut self) -> bool {
        let Some(turn) = &mut self.turn else { return false };
        let waits = turn.is_parked() && turn.last_word.is_none();
        if !waits || !matches!(turn.stop_reason, Some(StopReason::ServerStops)) {
            return false;
        }
        let memory = match turn.memory.take() {
            Some(memory) => Ok(memory),
            None => {
                let key = &self.lease.key;
                self.core.store.agent_state(&key.owner, &key.agent, &self.context).await
            }
        };
        // Where the store cannot say, the next start decides.
        memory.map_or(true, |memory| self.agency.hosted.agent.resumes(memory.as_deref()))
    }

    /// `Ready(None)`: the agent did not stop when it was told to, or the driver lets the task go.
    fn poll_turn(
        &mut self,
        cx: &mut Context<'_>,
        mut work: Pin<&mut impl Future<Output = Worked>>,
    ) -> Poll<Option<Worked>> {
        // Callers first: a cancel must reach an agent that never pauses.
        self.serve_callers(cx);
        loop {
            if self.pending.has_room() {
                if let Poll::Ready(worked) = work.as_mut().poll(cx) {
                    self.notice_abandoned_question(cx);
                    self.take_last_updates();
                    return Poll::Ready(Some(worked));
                }
                self.notice_abandoned_question(cx);
                self.take_updates(cx);
            }
            let was_full = !self.pending.has_room();
            if let Some(turn) = self.turn.as_mut().filter(|_| was_full) {
                // The agent waits for us, so its silence does not count.
                turn.last_update = Instant::now();
            }
            if self.has_timed_out(cx) {
                return Poll::Ready(None);
            }
            let _ = self.poll_store(cx);
            if self.let_go.is_some() {
                return Poll::Ready(None);
            }
            let has_room_again = was_full && self.pending.has_room();
            if !has_room_again {
                return Poll::Pending;
            }
        }
    }

    /// Takes what the agent and its helpers have reported, and asks to be woken for what they report later.
    fn take_updates(&mut self, cx: &mut Context<'_>) {
        while self.pending.has_room()
            && let Some(turn) = &mut self.turn
            && let Poll::Ready(Some(update)) = turn.updates.poll_recv(cx)
        {
            self.take_update(update.into_inner());
        }
    }

    /// The agent has returned: what it reported before counts, and its helpers are heard no more.
    fn take_last_updates(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.updates.close();
        }
        while let Some(turn) = &mut self.turn
            && let Ok(update) = turn.updates.try_recv()
        {
            self.take_update(update.into_inner());
        }
    }

    fn take_update(&mut self, update: AgentUpdate) {
        let Some(turn) = &mut self.turn else { return };
        turn.last_update = Instant::now();
        match update {
            AgentUpdate::Progress { parts, metadata } => {
                let message = self.agent_message_if_any(parts);
                self.decide(Command::Progress { message, metadata });
            }
            AgentUpdate::Tool(call) => {
                let mut message = self.agent_message(vec![Part::text(summary_of(&call))]);
                call.note_on(&mut message);
                self.decide(Command::Progress { message: Some(message.into()), metadata: None });
            }
            AgentUpdate::Artifact(update) => self.decide(Command::Make {
                artifact: Arc::new(update.artifact),
                append: update.append,
                last: update.last,
                metadata: update.metadata,
            }),
            AgentUpdate::Usage(usage) => self.usage = Some(usage),
            AgentUpdate::LastWord(outcome) => turn.last_word = Some(*outcome),
            AgentUpdate::Remember(memory) => {
                turn.memory = Some(memory.clone());
                self.pending.remember(memory);
            }
            AgentUpdate::Wait(time) => {
                turn.waits_until = Some(turn.last_update + time);
                turn.hard_limit = turn.hard_limit.map(|at| at + time);
            }
            AgentUpdate::WatchEnd(watcher) => self.end_watchers.push(watcher),
            // After a stop, the agent gets no more answers.
            AgentUpdate::Ask(_) if turn.stop_reason.is_some() => {}
            AgentUpdate::Ask(ask) if turn.question.is_some() => turn.queued_questions.push_back(*ask),
            AgentUpdate::Ask(ask) => self.ask(*ask),
        }
    }

    /// Asks the caller. Only what comes from now on answers: whoever wrote before did not know what would be asked, and
    /// a word such as "yes" must not allow what nobody has seen.
    fn ask(&mut self, ask: Ask) {
        let question = Arc::new(self.agent_message(ask.parts));
        self.decide(Command::Ask { required: ask.required, question });
        if let Some(permit) = &self.permit {
            permit.park(Some(self.lease.key.task.clone()));
        }
        if let Some(turn) = &mut self.turn {
            let (event, asked) = (self.standing.seq, self.core.clock.now());
            turn.question = Some(OpenQuestion { reply: ask.answer, event, asked, is_answered: false });
            turn.parked_since.get_or_insert_with(Instant::now);
        }
    }

    /// Takes the stored answer to the open question out of the inbox; the agent gets it when that is stored.
    pub(super) fn answer_question(&mut self) {
        let Some(event) = self.turn.as_ref().and_then(|turn| turn.question.as_ref()).map(|question| question.event)
        else {
            return;
        };
        // An answer to another question is none to this one.
        let is_stored_answer =
            |unread: &super::InboxMessage| unread.purpose == Purpose::Answer(event) && unread.row == InboxRow::Stored;
        let Some(place) = self.inbox.iter().position(is_stored_answer) else { return };
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.stop_reason.is_none()) else { return };
        let Some(question) = turn.question.take_if(|question| !question.reply.is_closed()) else { return };
        let Some(message) = self.take_from_inbox(place) else { return };
        self.decide(Command::Answer { message: message.clone() });
        self.pending.answers.push((question.reply, message));
        self.unpark();
        self.ask_next();
    }

    /// Withdraws a question that the agent no longer waits for, as soon as that is known.
    fn notice_abandoned_question(&mut self, cx: &mut Context<'_>) {
        let question = self.turn.as_mut().and_then(|turn| turn.question.as_mut());
        if question.is_some_and(|question| question.reply.poll_closed(cx).is_ready()) {
            self.drop_abandoned_question();
        }
    }

    pub(super) fn drop_abandoned_question(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        if turn.question.take_if(|question| question.reply.is_closed()).is_none() {
            return;
        }
        self.set_unused_answers_apart(None);
        if self.turn.as_ref().is_some_and(|turn| turn.stop_reason.is_none()) {
            self.decide(Command::WithdrawQuestion);
        }
        self.unpark();
        self.ask_next();
    }

    fn ask_next(&mut self) {
        while let Some(turn) = &mut self.turn
            && turn.question.is_none()
            && let Some(ask) = turn.queued_questions.pop_front()
        {
            if !ask.answer.is_closed() {
                self.ask(ask);
            }
        }
    }

    fn unpark(&mut self) {
        if let Some(permit) = &self.permit {
            permit.park(None);
        }
        let Some(turn) = &mut self.turn else { return };
        if let (Some(since), Some(at)) = (turn.parked_since.take(), &mut turn.hard_limit) {
            // The time in which the caller thinks is not the agent's.
            *at += since.elapsed();
        }
        turn.last_update = Instant::now();
    }

    fn has_timed_out(&mut self, cx: &mut Context<'_>) -> bool {
        let limits = self.agency.hosted.limits;
        let Some(turn) = &mut self.turn else { return false };
        while let Some(timer) = &mut turn.timer {
            if timer.as_mut().poll(cx).is_pending() {
                return false;
            }
            if turn.stop_reason.is_some() {
                tracing::warn!(task = %self.lease.key.task, "the agent did not stop when it was told to");
                return true;
            }
            let now = Instant::now();
            if let Some(limit) = limits.timeout
                && turn.parked_since.is_none()
                && turn.hard_limit.is_some_and(|at| now >= at)
            {
                turn.stop(StopReason::TimedOut(format!("timed out: the turn took longer than {limit:?}")));
            } else if let Some(limit) = limits.idle_timeout
                && turn.is_timed()
                && now >= turn.silent_since() + limit
            {
                let reason = format!("timed out: nothing was heard of the agent for {limit:?}");
                turn.stop(StopReason::TimedOut(reason));
            } else {
                turn.set_timer(limits.idle_timeout);
            }
        }
        false
    }
}

impl ActiveTurn {
    /// Tells the agent to stop, the first time; the reason that came first counts. Whether this was the first.
    pub(super) fn stop(&mut self, reason: StopReason) -> bool {
        self.stop_within(reason, STOP_GRACE)
    }

    /// The same for an agent that has less time, also where it was told to stop before.
    pub(super) fn stop_within(&mut self, reason: StopReason, grace: Duration) -> bool {
        let deadline = Instant::now() + grace.min(STOP_GRACE);
        if self.stop_reason.is_some() {
            if let Some(timer) = self.timer.as_mut().filter(|timer| timer.deadline() > deadline) {
                timer.as_mut().reset(deadline);
            }
            return false;
        }
        self.stop_reason = Some(reason);
        self.question = None;
        self.queued_questions.clear();
        self.stop.set(true);
        self.timer = Some(Box::pin(tokio::time::sleep_until(deadline)));
        true
    }

    pub(super) fn is_parked(&self) -> bool {
        self.parked_since.is_some()
    }

    /// Whether silence counts: neither while the caller thinks about an answer nor after the last word. The limit of the
    /// whole turn counts after the last word too, and does not change the outcome then.
    fn is_timed(&self) -> bool {
        self.parked_since.is_none() && self.last_word.is_none()
    }

    /// Since when silence counts; in the future while the agent has to wait.
    fn silent_since(&self) -> Instant {
        self.waits_until.map_or(self.last_update, |until| until.max(self.last_update))
    }

    fn set_timer(&mut self, idle: Option<Duration>) {
        let idle = idle.map(|idle| if self.is_timed() { self.silent_since() } else { Instant::now() } + idle);
        let hard = self
            .hard_limit
            .map(|at| if self.parked_since.is_none() { at } else { at.max(Instant::now() + Duration::from_secs(1)) });
        let next = match (idle, hard) {
            (Some(idle), Some(hard)) => Some(idle.min(hard)),
            (idle, hard) => idle.or(hard),
        };
        self.timer = next.map(|at| Box::pin(tokio::time::sleep_until(at)));
    }
}

/// What people read of a tool call; the whole of it is in the metadata.
fn summary_of(call: &ToolCall) -> String {
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
