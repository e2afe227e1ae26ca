//! One turn: the driver polls the agent, decides and stores its updates, and serves callers until the turn is over.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use sabir_model::{Caller, Command, Message, Part, Purpose, Seq, Timestamp, ToolCall, ToolPhase};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep};

use super::start::TurnMessage;
use super::{Driver, InboxRow, ReleaseReason};
use crate::metrics::CountedRun;
use crate::turn::{
    AgentUpdate, Ask, CallersAnswer, MAX_QUEUED_QUESTIONS, Outcome, Stop, StopCause, TooManyQuestions, UpdateSender,
    WeighedUpdate,
};
use crate::turn_signals::TurnSignals;
use crate::watch_cell::WatchCell;
use crate::{AgentError, InterruptedRun, ObservedRun, RunStart, Survives, Turn};

/// How long an agent may take to stop before it is dropped.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// How often a turn whose time would be over looks whether the lease of the node is confirmed again.
const LEASE_CHECK: Duration = Duration::from_secs(1);

/// A turn that has not begun.
pub(super) struct PreparedTurn {
    pub(super) turn: Turn,
    updates: mpsc::Receiver<WeighedUpdate>,
}

/// The driver's side of a running turn. The future of the agent is kept apart.
pub(super) struct ActiveTurn {
    updates: mpsc::Receiver<WeighedUpdate>,
    pub(super) signals: Arc<WatchCell<TurnSignals>>,
    pub(super) question: Option<OpenQuestion>,
    /// Further questions; the next is asked when the open one closes.
    queued_questions: VecDeque<Ask>,
    /// Why the agent must stop.
    pub(super) stop_reason: Option<StopReason>,
    /// The outcome that an agent has announced before it cleans up.
    pub(super) last_word: Option<Outcome>,
    timer: Option<Pin<Box<Sleep>>>,
    hard_limit: Option<Instant>,
    last_update: Instant,
    /// The agent has announced that it waits until then.
    waits_until: Option<Instant>,
    parked_since: Option<Instant>,
    /// What the agent has remembered in this turn, stored or not.
    memory: Option<Option<String>>,
    /// The same of the task.
    task_memory: Option<Option<String>>,
    /// `None`: no figures are kept.
    pub(super) counted: Option<CountedRun>,
    /// Who watches the run. `None`: nobody.
    pub(super) observed: Option<Box<dyn ObservedRun>>,
}

/// A question that the agent has asked and waits for.
pub(super) struct OpenQuestion {
    reply: oneshot::Sender<CallersAnswer>,
    /// Ends the time that the caller has for the answer.
    expires: Option<Pin<Box<Sleep>>>,
    /// The event that asks the question. Before this event is stored, no caller has seen the question.
    pub(super) event: Seq,
    pub(super) asked: Timestamp,
    /// An answer is being stored.
    pub(super) is_answered: bool,
}

pub(super) enum StopReason {
    /// By its caller, or for this reason.
    Canceled(Option<String>),
    TimedOut(String),
    ServerStops,
    StoreFailed,
}

pub(super) type AgentResult = Result<Result<Outcome, AgentError>, Box<dyn std::any::Any + Send>>;

impl Driver {
    /// Makes the agent's side of a turn with this message.
    pub(super) fn new_turn(&self, TurnMessage { message, interrupted_question }: TurnMessage) -> PreparedTurn {
        let (sender, updates) = UpdateSender::new();
        let opening = self.lease.with_task(|task| task.history.first().cloned()).flatten();
        let caller = message.request.as_ref().and_then(|request| request.caller.clone());
        let caller = caller.unwrap_or_else(|| Caller::from(self.lease.key.owner.clone()));
        let turn = Turn {
            opening: opening.unwrap_or_else(|| message.clone()),
            metadata: message.request_metadata.clone().or_else(|| self.metadata.clone()),
            task_metadata: self.metadata.clone(),
            trace: None,
            message,
            interrupted_question,
            task: self.lease.key.task.clone(),
            no: self.no,
            context: self.context.clone(),
            owner: self.lease.key.owner.clone(),
            caller,
            // The first run that recovery starts is the second of its turn.
            is_resumed: self.attempts > 1,
            agent: self.lease.key.agent.clone(),
            executor: self.executor.agent.hosted.id.clone(),
            model: self.executor.model.clone(),
            began: Instant::now(),
            updates: sender,
            signals: Arc::new(WatchCell::new(TurnSignals::default())),
            store: self.core.store.clone(),
            grants: self.core.grants.clone(),
        };
        PreparedTurn { turn, updates }
    }

    pub(super) async fn run_turn(&mut self, PreparedTurn { mut turn, updates }: PreparedTurn) {
        let now = Instant::now();
        self.began = now;
        self.usage = None;
        turn.began = now;
        // The turn may have been prepared before the task was stored.
        turn.no = self.no;
        let signals = turn.signals.clone();
        let limits = self.executor.agent.hosted.limits;
        let observed = self.core.run_observer.as_ref().map(|observer| {
            let observed = observer.begin(&RunStart {
                executor: &turn.executor,
                agent: &turn.agent,
                task: &turn.task,
                context: &turn.context,
                message: &turn.message,
                model: turn.model.as_deref(),
                is_resumed: turn.is_resumed,
            });
            turn.trace = Some(observed.trace());
            observed
        });
        let mut active = ActiveTurn {
            updates,
            signals: signals.clone(),
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
            task_memory: None,
            counted: self.executor.agent.metrics.as_ref().map(|metrics| metrics.start_run()),
            observed,
        };
        active.set_timer(limits.idle_timeout);
        self.has_run = true;
        self.turn = Some(active);
        let registered = self.executor.agent.clone();
        // Catches also an agent that panics before it returns its future.
        let worked = match catch_unwind(AssertUnwindSafe(|| registered.hosted.agent.run(turn))) {
            Ok(work) => {
                let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
                poll_fn(|cx| self.poll_turn(cx, work.as_mut())).await
            }
            Err(panic) => Some(Err(panic)),
        };
        // Tells everything that the agent has left running to stop.
        signals.modify(|signals| {
            signals.stop.get_or_insert_with(|| Stop {
                cause: StopCause::TurnOver,
                deadline: Instant::now(),
                stopped_while_asking: false,
            });
        });
        self.turn_holds = Some(signals).filter(|signals| signals.get().is_held());
        self.acquiring = None;
        if let Some(permit) = &self.permit {
            permit.unpark();
        }
        if self.release_reason.is_some() {
            self.turn = None;
            return;
        }
        if let Some(release_reason) = self.survives_stop().await {
            self.turn = None;
            self.release_reason = Some(release_reason);
            return;
        }
        self.end_turn(worked);
    }

    /// How the driver leaves its task, if the server stops and a later run can take up what this one leaves.
    async fn survives_stop(&mut self) -> Option<ReleaseReason> {
        let turn = self.turn.as_ref()?;
        let is_interrupted = matches!(turn.stop_reason, Some(StopReason::ServerStops)) && turn.last_word.is_none();
        if !is_interrupted {
            return None;
        }
        if turn.stopped_while_asking() {
            let question = self.standing.question().cloned()?;
            return (self.survives(Some(&question)).await >= Survives::Questions).then_some(ReleaseReason::StaysParked);
        }
        self.is_resumable().await.then_some(ReleaseReason::ForNextStart)
    }

    /// Whether the next start resumes a run that is not parked. If so, it does not count as a crash.
    pub(super) async fn is_resumable(&mut self) -> bool {
        if self.survives(None).await < Survives::Runs {
            return false;
        }
        self.reset_attempts();
        self.flush().await;
        true
    }

    /// What the agent can use of this run after the server has ended.
    async fn survives(&mut self, question: Option<&Message>) -> Survives {
        let (memory, task_memory) = match &mut self.turn {
            Some(turn) => (turn.memory.take(), turn.task_memory.take()),
            None => (None, None),
        };
        let (key, store) = (&self.lease.key, &self.core.store);
        let memory = match memory {
            Some(memory) => Ok(memory),
            None => store.agent_state(&key.owner, &key.agent, &self.context).await,
        };
        let task_memory = match (task_memory, self.no) {
            (Some(memory), _) => Ok(memory),
            (None, Some(no)) => store.task_state(no).await,
            (None, None) => Ok(None),
        };
        let (Ok(memory), Ok(task_memory)) = (memory, task_memory) else {
            // Where the store cannot say, the next start decides.
            return Survives::Runs;
        };
        let run = InterruptedRun { memory: memory.as_deref(), task_memory: task_memory.as_deref(), question };
        self.executor.agent.hosted.agent.survives_restart(&run)
    }

    /// `Ready(None)`: the agent did not stop in time, or the driver releases the task.
    fn poll_turn(
        &mut self,
        cx: &mut Context<'_>,
        mut work: Pin<&mut impl Future<Output = AgentResult>>,
    ) -> Poll<Option<AgentResult>> {
        // Callers come first: a cancel must reach an agent that never pauses.
        self.serve_callers(cx);
        if self.release_reason.is_some() {
            return Poll::Ready(None);
        }
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
                // The agent waits for the store, so this time does not count as silence.
                turn.last_update = Instant::now();
            }
            if self.has_timed_out(cx) {
                return Poll::Ready(None);
            }
            let _ = self.poll_store(cx);
            if self.release_reason.is_some() {
                return Poll::Ready(None);
            }
            let has_room_again = was_full && self.pending.has_room();
            let is_resumed = self.poll_resume(cx);
            if !has_room_again && !is_resumed {
                return Poll::Pending;
            }
        }
    }

    /// Processes the pending updates of the agent and its helpers, and registers for the next one.
    fn take_updates(&mut self, cx: &mut Context<'_>) {
        while self.pending.has_room()
            && let Some(turn) = &mut self.turn
            && let Poll::Ready(Some(update)) = turn.updates.poll_recv(cx)
        {
            self.take_update(update.into_inner());
        }
    }

    /// The agent has returned: earlier updates are processed, later ones of its helpers are not.
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
                if let Some(observed) = &mut turn.observed {
                    observed.tool(&call);
                }
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
            AgentUpdate::RememberInTask(memory) => {
                turn.task_memory = Some(memory.clone());
                self.pending.remember_in_task(memory);
            }
            AgentUpdate::Wait(time) => {
                turn.waits_until = Some(turn.last_update + time);
                turn.hard_limit = turn.hard_limit.map(|at| at + time);
            }
            AgentUpdate::WatchEnd(watcher) => self.end_watchers.push(watcher),
            AgentUpdate::WatchStore(watcher) => self.watch_store(watcher),
            // After a stop, the agent gets no more answers.
            AgentUpdate::Ask(_) if turn.stop_reason.is_some() => {}
            AgentUpdate::Ask(ask) if turn.question.is_some() => turn.queue_question(*ask),
            AgentUpdate::Ask(ask) => self.ask(*ask),
        }
    }

    /// Asks the caller. Only messages that arrive from now on can answer: an earlier "yes" must not permit something
    /// that its sender has not seen.
    fn ask(&mut self, ask: Ask) {
        let question = Arc::new(self.agent_message(ask.parts));
        self.decide(Command::Ask { required: ask.required, question });
        self.release_while_parked();
        (self.noted_wait_reason, self.plain_question) = (None, None);
        if let Some(turn) = &mut self.turn {
            let (event, asked) = (self.standing.seq, self.core.clock.now());
            let expires = ask.limit.map(|limit| Box::pin(tokio::time::sleep(limit)));
            turn.question = Some(OpenQuestion { reply: ask.answer, expires, event, asked, is_answered: false });
            turn.parked_since.get_or_insert_with(Instant::now);
        }
    }

    /// Resumes a run whose question is answered or has expired, as soon as the run has its folder and a slot again.
    /// Until then the task stays parked, so that a crash loses no answer. `false`: nothing to resume now.
    fn poll_resume(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.stop_reason.is_none()) else { return false };
        let Some(question) = turn.question.as_mut().filter(|question| !question.reply.is_closed()) else {
            return false;
        };
        // An answer to another question does not count.
        let purpose = Purpose::Answer(question.event);
        let is_stored_answer =
            |unread: &super::InboxMessage| unread.purpose == purpose && unread.row == InboxRow::Stored;
        let answer = self.inbox.iter().position(is_stored_answer);
        if answer.is_none() && (question.is_answered || !question.has_expired(cx)) {
            return false;
        }
        if self.poll_acquire(cx).is_pending() {
            return answer.is_some() && self.note_what_is_acquired();
        }
        let Some(question) = self.turn.as_mut().and_then(|turn| turn.question.take()) else { return false };
        let answer = answer.and_then(|place| self.take_from_inbox(place));
        self.show_plain_question();
        if let (Some(message), Some(turn)) = (&answer, &mut self.turn)
            && let Some(observed) = &mut turn.observed
        {
            observed.answered(message);
        }
        match &answer {
            Some(message) => self.decide(Command::Answer { message: message.clone() }),
            None => self.decide(Command::WithdrawQuestion),
        }
        // The agent gets the answer after the commit.
        self.pending.answers.push((question.reply, Ok(answer)));
        self.unpark();
        self.ask_next();
        true
    }

    /// Withdraws the question when the agent has dropped the future that waits for it.
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
        self.set_aside_unused_answers(None);
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
        self.acquire_at_once();
        if let Some(permit) = &self.permit {
            permit.unpark();
        }
        let Some(turn) = &mut self.turn else { return };
        if let (Some(since), Some(at)) = (turn.parked_since.take(), &mut turn.hard_limit) {
            // The time that the caller needs does not count for the time limit of the turn.
            *at += since.elapsed();
        }
        turn.last_update = Instant::now();
    }

    fn has_timed_out(&mut self, cx: &mut Context<'_>) -> bool {
        let limits = self.executor.agent.hosted.limits;
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
            if self.core.has_lapsed_lease() {
                // Its program is paused until the lease is confirmed, so silence says nothing, and no time is used up.
                turn.last_update = now;
                turn.hard_limit = turn.hard_limit.map(|at| at.max(now + LEASE_CHECK));
                turn.timer = Some(Box::pin(tokio::time::sleep(LEASE_CHECK)));
                continue;
            }
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

impl OpenQuestion {
    /// Whether the caller's time is over. A timer must not be polled again after it has ended.
    fn has_expired(&mut self, cx: &mut Context<'_>) -> bool {
        self.expires.as_mut().is_some_and(|expires| expires.is_elapsed() || expires.as_mut().poll(cx).is_ready())
    }
}

impl ActiveTurn {
    /// Whether the agent must stop because the server stops, while its question is open.
    pub(super) fn stopped_while_asking(&self) -> bool {
        self.signals.get().stop.is_some_and(|stop| stop.stopped_while_asking)
    }

    /// Orders the agent to stop. The first reason counts. Returns whether this was the first order.
    pub(super) fn stop(&mut self, reason: StopReason) -> bool {
        self.stop_within(reason, STOP_GRACE)
    }

    /// The same with a shorter deadline, which applies also if the agent was ordered to stop before.
    pub(super) fn stop_within(&mut self, reason: StopReason, grace: Duration) -> bool {
        let deadline = Instant::now() + grace.min(STOP_GRACE);
        if self.stop_reason.is_some() {
            if let Some(timer) = self.timer.as_mut().filter(|timer| timer.deadline() > deadline) {
                timer.as_mut().reset(deadline);
                self.signals.modify(|signals| signals.stop = signals.stop.map(|stop| Stop { deadline, ..stop }));
            }
            return false;
        }
        let stopped_while_asking =
            matches!(reason, StopReason::ServerStops) && self.is_parked() && self.last_word.is_none();
        let cause = match &reason {
            StopReason::Canceled(_) => StopCause::Canceled,
            StopReason::TimedOut(_) => StopCause::TimedOut,
            StopReason::ServerStops => StopCause::ServerStops,
            StopReason::StoreFailed => StopCause::StoreFailed,
        };
        self.stop_reason = Some(reason);
        self.question = None;
        self.queued_questions.clear();
        self.signals.modify(|signals| signals.stop = Some(Stop { cause, deadline, stopped_while_asking }));
        self.timer = Some(Box::pin(tokio::time::sleep_until(deadline)));
        true
    }

    fn queue_question(&mut self, ask: Ask) {
        if self.queued_questions.len() >= MAX_QUEUED_QUESTIONS {
            self.queued_questions.retain(|ask| !ask.answer.is_closed());
        }
        if self.queued_questions.len() < MAX_QUEUED_QUESTIONS {
            self.queued_questions.push_back(ask);
        } else {
            let _ = ask.answer.send(Err(TooManyQuestions));
        }
    }

    pub(super) fn is_parked(&self) -> bool {
        self.parked_since.is_some()
    }

    /// Whether silence counts for the idle timeout: not while the caller is asked, and not after the agent has
    /// announced its outcome. The time limit of the whole turn still applies then, but does not change the outcome.
    fn is_timed(&self) -> bool {
        self.parked_since.is_none() && self.last_word.is_none()
    }

    /// Since when silence counts; in the future while the agent waits.
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

/// A summary of a tool call for people; the metadata has all of it.
fn summary_of(call: &ToolCall) -> String {
    let outcome = |text: &Option<String>| cut(text.as_deref().unwrap_or("done"));
    match call.phase {
        ToolPhase::Started => format!("Using tool: {}", call.name),
        ToolPhase::Completed => format!("Tool result: {}", outcome(&call.result)),
        ToolPhase::Failed => format!("Tool failed: {}", outcome(&call.error)),
    }
}

/// Tools may print pages; a status has a line or two.
fn cut(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
