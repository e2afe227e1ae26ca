//! A program that runs: what it says is told, what it asks is asked, and it is ended whatever happens.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use sabir_engine::{AgentError, Outcome, Turn};
use sabir_model::{Part, Required};
use tokio::time::Instant;

use super::approval;
use super::lost_question::{self, SavedAnswer};
use super::memory::{Memories, Memory, MemoryKey};
use super::publisher::{Published, Publisher};
use super::reuse_key::ReuseKey;
use super::secrets::Masking;
use super::settings::{Isolation, Settings};
use super::turn::{Starter, stop_budget};
use super::warm::{RunningProgram, WarmKey, WarmPrograms};
use crate::adapter::{Adapter, Exit, Step};
use crate::kinds::AfterTurn;
use crate::process::{Child, Descendants, Ending, Output};
use crate::update::{Question, Reply, Update};

/// How long a program that was asked to stop may take to say that it has.
const INTERRUPT_GRACE: Duration = Duration::from_millis(1500);
/// A question that is asked on a terminal has no line end: who asks so is silent for this long.
const SILENCE: Duration = Duration::from_millis(300);
/// How long a program that has closed its output may take to end. Longer than its guard gives to those whom it leaves
/// behind: they are not its fault.
const LAST_WORDS: Duration = Duration::from_secs(4);
/// How long what a program has started may take to end when the program has finished its turn, such as its last look at the
/// repository.
const HELPERS_END: Duration = Duration::from_millis(500);
/// How often is looked for them meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What a program says while its question is open is told after the answer. More than this is not read until then, and waits
/// in the program's pipe.
const HELD_BACK: usize = 1024 * 1024;

/// How many questions of a program may wait until the open one is answered. Further ones are refused.
const MAX_WAITING_QUESTIONS: usize = 100;
const TOO_MANY_QUESTIONS: &str = "too many questions wait already";

/// How long a program that has finished its turn may take to end by itself.
fn time_to_end(after_turn: AfterTurn) -> Duration {
    match after_turn {
        AfterTurn::Exits => Duration::from_secs(6),
        AfterTurn::Stays => Duration::from_millis(200),
    }
}

/// How a run came to its end.
pub(super) enum RunEnd<'t> {
    Turn(Result<Outcome, AgentError>),
    /// The program had waited for this turn and was gone before it did anything. Another can take its place.
    BeforeItsTurn {
        publisher: Box<Publisher<'t>>,
        memories: Memories,
    },
}

/// Where a program waits after its turn, if it can.
pub(super) struct KeepWarm {
    pub warm: WarmPrograms,
    pub key: WarmKey,
    /// Without the session, which is known after the turn.
    pub reuse_key: ReuseKey,
    pub limit: Duration,
}

pub(super) struct Run<'t> {
    pub memory_key: MemoryKey<'t>,
    pub settings: &'t Settings,
    pub turn: &'t Turn,
    pub base: PathBuf,
    pub starter: Starter<'t>,
    pub adapter: Box<dyn Adapter>,
    pub child: Child,
    /// What the program had running before it did anything. All else would go on working in the folder between turns.
    pub own_processes: Descendants,
    /// What the turn begins with.
    pub first: Vec<Step>,
    pub origin: ProgramOrigin,
    pub publisher: Publisher<'t>,
    pub memories: Memories,
    pub masking: Masking,
    /// `None`: the program ends with its turn.
    pub keep: Option<KeepWarm>,
    /// The answer to the question that this turn had asked when its program was ended. It is used once, if the program asks
    /// the same again.
    pub saved_answer: Option<SavedAnswer>,
    /// How the program is ended if Sabir is gone, as its guard knows.
    pub ending: Ending,
    pub has_spoken: bool,
    /// It has told more than that it is there, or asked.
    pub has_worked: bool,
    /// It has asked too much, and its caller will hear of that.
    pub has_refused: bool,
    /// It had waited for this turn, and ended before it did anything.
    pub is_lost: bool,
}

/// Where the program of a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramOrigin {
    Started,
    /// It has waited since an earlier turn.
    Warm,
}

type Answering<'t> = Pin<Box<dyn Future<Output = Reply> + Send + 't>>;

/// A question that the caller has not answered yet.
struct Asked<'t> {
    question: Question,
    answering: Answering<'t>,
    /// The program asks it again if it is killed meanwhile.
    is_asked_again: bool,
    /// When the program may be put to sleep.
    sleeps_at: Option<Instant>,
}

impl<'t> Run<'t> {
    pub async fn finish(mut self) -> RunEnd<'t> {
        let outcome = self.until_told().await;
        if let Some(rest) = self.masking.rest() {
            self.publisher.publish(rest).await;
        }
        if self.is_lost {
            self.stop_program().await;
            return RunEnd::BeforeItsTurn { publisher: Box::new(self.publisher), memories: self.memories };
        }
        if let Ok(Outcome::Completed(parts)) = &outcome {
            self.turn.last_word(Outcome::Completed(parts.clone())).await;
            let is_alone = self.keep.is_none() || self.is_alone().await;
            if is_alone && self.keep.is_some() && self.adapter.awaits_next_turn() {
                self.stay();
                return RunEnd::Turn(outcome);
            }
            // It has finished and may still have to write its session down.
            self.child.close_input();
            let after_turn = self.settings.mode_info().map_or(AfterTurn::Exits, |way| way.after_turn);
            // One that waits for its commands would not end by itself.
            let limit = if is_alone { time_to_end(after_turn) } else { time_to_end(after_turn).min(HELPERS_END) };
            let turn = self.turn;
            tokio::select! {
                _ = tokio::time::timeout(limit, self.quiet_end()) => {}
                () = turn.cancelled() => {}
            }
        }
        self.stop_program().await;
        if let Ok(Outcome::Failed(parts)) = &outcome {
            self.log_failure(parts);
        }
        RunEnd::Turn(outcome)
    }

    /// Ends the program. A stop that comes meanwhile leaves it less time.
    async fn stop_program(&mut self) {
        let turn = self.turn;
        tokio::select! {
            biased;
            () = turn.cancelled() => {}
            _ = self.child.stop() => return,
        }
        // Half of what is left is for SIGTERM; SIGKILL needs little, and what was changed is still to be told.
        self.child.stop_within(stop_budget(turn) / 2).await;
    }

    /// The program waits for the next turn of its context.
    fn stay(self) {
        // The folder and the context are free meanwhile.
        self.child.hold(None);
        let session = self.memories.of(self.memory_key).map(|memory| memory.session.clone());
        if let Some(KeepWarm { warm, key, reuse_key, limit }) = self.keep {
            let program =
                RunningProgram { child: self.child, adapter: self.adapter, own_processes: self.own_processes };
            warm.keep(key, reuse_key.with_session(session), program, limit);
        }
    }

    /// Whether nothing runs that the program has started in its turn. Commands in the background would work in the folder
    /// while another agent has its turn there, so such a program is ended with them.
    async fn is_alone(&mut self) -> bool {
        let deadline = Instant::now() + HELPERS_END;
        loop {
            let others = self.child.descendants().await.since(&self.own_processes);
            if others.is_empty() {
                return true;
            }
            if Instant::now() >= deadline {
                let (task, agent) = (self.turn.task(), self.turn.agent());
                let others = others.join(", ");
                tracing::info!(%task, %agent, others, "a program left processes running; it is ended and does not wait for the next message");
                return false;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Notes what the program has running before it does anything, its own servers for example. `Update::Init` is the last
    /// that is heard before; what came behind it may be work already.
    async fn note_own_processes(&mut self) {
        if self.keep.is_none() || self.has_worked || self.origin == ProgramOrigin::Warm {
            return;
        }
        let descendants = self.child.descendants().await;
        if self.adapter.reports_session_first() || self.child.has_no_output() {
            self.own_processes = descendants;
        }
    }

    /// The log has what the program wrote to its standard error, whatever its caller is told.
    fn log_failure(&self, parts: &[Part]) {
        let reason: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
        let stderr = self.masking.secrets.mask(&self.child.stderr_tail());
        let (task, agent) = (self.turn.task(), self.turn.agent());
        tracing::warn!(%task, %agent, reason = reason.join("\n"), stderr, "a program failed");
    }

    async fn until_told(&mut self) -> Result<Outcome, AgentError> {
        let mut steps: VecDeque<Step> = std::mem::take(&mut self.first).into();
        let mut asked: Option<Asked<'t>> = None;
        let mut is_closed = false;
        // Bytes of the lines whose steps are still to be done.
        let mut held_back = 0;
        // Ended while its question is open; the session to resume.
        let mut asleep: Option<String> = None;
        let mut last_heard = Instant::now();
        loop {
            if self.has_spoken && !self.adapter.reports_session_first() {
                self.note_own_processes().await;
            }
            if asked.is_none() {
                self.end_on_sabir_exit(Ending::Graceful);
            }
            // Nothing else is told while a question stands: the task would look as if it went on.
            while asked.is_none()
                && let Some(step) = steps.pop_front()
            {
                match step {
                    Step::Write(line) => self.write(&line).await,
                    Step::CloseInput => self.child.close_input(),
                    Step::Ask(question) => {
                        self.has_worked = true;
                        match self.saved_answer.take().and_then(|kept| kept.reply_to(&question)) {
                            Some(reply) => at_once(&mut steps, self.adapter.answer(&question, &reply)),
                            None => {
                                // The caller reads it before the question, and nothing goes on while that stands.
                                if let Some(rest) = self.masking.rest() {
                                    self.publisher.publish(rest).await;
                                }
                                asked = Some(self.asked(question).await);
                            }
                        }
                    }
                    // Taken out as soon as it is heard.
                    Step::Withdraw(_) => {}
                    Step::Report(update) => {
                        self.has_spoken = true;
                        match update {
                            Update::Init { .. } => self.note_own_processes().await,
                            _ => self.has_worked = true,
                        }
                        self.remember(&update).await;
                        for update in self.masking.hide(update) {
                            match self.publisher.publish(update).await {
                                Published::Continue => {}
                                Published::Done => {
                                    if self.saved_answer.is_some() {
                                        let words = "The program did not ask again, so the answer was not used";
                                        self.turn.progress(words).await;
                                    }
                                    return Ok(self.completed());
                                }
                                Published::Failed(reason) => return Ok(failed(reason)),
                                Published::Interrupted => {
                                    return Ok(failed("the program stopped before it was done".into()));
                                }
                            }
                        }
                    }
                }
            }
            if is_closed && self.origin == ProgramOrigin::Warm && !self.has_worked {
                self.is_lost = true;
                return Err("the program that waited for this message is gone".into());
            }
            if is_closed {
                return self.ended().await;
            }
            if steps.is_empty() {
                held_back = 0;
            }
            let sleeps_at = asked.as_ref().and_then(|asked| asked.sleeps_at);
            let asks_until = self.saved_answer.as_ref().map(|_| last_heard + self.settings.asks_again_within);
            // Steps up to here were looked at. Thousands may wait behind a question, and each line adds only a few.
            let mut known = steps.len();
            tokio::select! {
                biased;
                () = self.turn.cancelled() => return match asleep {
                    Some(_) => Ok(Outcome::Canceled(Vec::new())),
                    None => self.cancel(asked).await,
                },
                output = self.child.next(), if asleep.is_none() && held_back < HELD_BACK => {
                    last_heard = Instant::now();
                    match output {
                        Output::Line(line) => {
                            held_back += line.len();
                            steps.extend(self.adapter.on_line(&line));
                            self.refuse_surplus(&mut steps).await;
                            self.hear_on(&mut steps);
                        }
                        Output::LineTooLong(bytes) => {
                            let limit = self.settings.max_line;
                            let words = format!("A line of {bytes} bytes was left out; the limit is {limit}");
                            steps.push_back(Step::Report(Update::Progress(words)));
                        }
                        Output::LimitReached => {
                            let limit = self.settings.max_output;
                            return Ok(failed(format!("the program printed more than {limit} bytes and was stopped")));
                        }
                        Output::Closed => is_closed = true,
                    }
                }
                // After what the program has said: it may have gone on without the answer.
                reply = answered(&mut asked) => {
                    if let Some(line) = self.child.take_partial_line(|partial_line| self.adapter.continues_without_answer(partial_line)) {
                        steps.extend(self.adapter.on_line(&line));
                        withdraw(&mut steps, &mut asked, known);
                    }
                    known = 0;
                    let Some(Asked { question, .. }) = asked.take() else { continue };
                    match asleep.take() {
                        None => at_once(&mut steps, self.adapter.answer(&question, &reply)),
                        Some(session) => {
                            let Some((child, adapter)) = self.starter.resume(session).await? else {
                                return Ok(Outcome::Canceled(Vec::new()));
                            };
                            (self.child, self.adapter) = (child, adapter);
                            self.own_processes = self.child.descendants().await;
                            // What was said behind the question is told now. What was to be written or asked was for a process
                            // that is gone.
                            steps.retain(|step| matches!(step, Step::Report(_)));
                            steps.extend(self.adapter.begin());
                            self.saved_answer = Some(SavedAnswer { question, reply });
                            last_heard = Instant::now();
                        }
                    }
                }
                () = until(sleeps_at), if asleep.is_none() => {
                    asleep = self.put_to_sleep().await;
                    if let Some(asked) = &mut asked {
                        asked.sleeps_at = None;
                    }
                }
                () = until(asks_until) => {
                    let limit = self.settings.asks_again_within;
                    return Ok(failed(format!(
                        "the program was resumed to ask its question again and has said nothing for {limit:?}, so the \
                         answer was not used; send the request again"
                    )));
                }
                () = tokio::time::sleep(SILENCE), if asleep.is_none() && self.adapter.asks_in_plain_text() => {
                    let is_told = |partial_line: &str| self.adapter.is_question(partial_line) || self.adapter.continues_without_answer(partial_line);
                    if let Some(line) = self.child.take_partial_line(is_told) {
                        steps.extend(self.adapter.on_line(&line));
                    }
                }
            }
            let is_over = is_closed || steps.range(known..).any(ends_turn);
            withdraw(&mut steps, &mut asked, known);
            if is_over {
                // Whoever answers now answers nobody.
                asked = None;
                steps.retain(|step| !matches!(step, Step::Ask(_)));
            }
        }
    }

    /// Plain text that has come with what was heard is told with it: each piece is stored for itself, and a program may print
    /// a million short lines. Whoever speaks in messages has chosen the pieces.
    fn hear_on(&mut self, steps: &mut VecDeque<Step>) {
        if !self.adapter.prints_plain_text() {
            return;
        }
        while matches!(steps.back(), Some(Step::Report(Update::Text(_))))
            && let Some(line) = self.child.take_whole_line()
        {
            for step in self.adapter.on_line(&line) {
                match (steps.back_mut(), step) {
                    (Some(Step::Report(Update::Text(text))), Step::Report(Update::Text(more))) => text.push_str(&more),
                    (_, step) => steps.push_back(step),
                }
            }
        }
    }

    /// Refuses what the program has just asked, if too many of its questions wait already.
    async fn refuse_surplus(&mut self, steps: &mut VecDeque<Step>) {
        if !matches!(steps.back(), Some(Step::Ask(_))) {
            return;
        }
        let waiting = steps.iter().filter(|step| matches!(step, Step::Ask(_))).count();
        if waiting <= MAX_WAITING_QUESTIONS {
            return;
        }
        let Some(Step::Ask(question)) = steps.pop_back() else { return };
        if !std::mem::replace(&mut self.has_refused, true) {
            let words = format!("The program asks too much: {TOO_MANY_QUESTIONS}, so further ones are refused");
            steps.push_back(Step::Report(Update::Progress(words)));
        }
        for step in self.adapter.answer(&question, &approval::refusal(&question, TOO_MANY_QUESTIONS)) {
            if let Step::Write(line) = step {
                self.write(&line).await;
            }
        }
    }

    /// A program that does not read any more will end soon, or is ended by its time limit.
    async fn write(&mut self, line: &str) {
        if let Err(error) = self.child.write_line(line).await {
            tracing::debug!(%error, "a program does not read");
        }
    }

    /// The session counts from the moment it is known: a cancel in mid-turn does not lose it.
    async fn remember(&mut self, update: &Update) {
        let resumable = self.adapter.is_resumable();
        match update {
            Update::Init { session: Some(session), .. } => {
                let known = self.memories.of(self.memory_key);
                let memory = match known.filter(|known| known.session == *session) {
                    Some(known) => {
                        let asked_in = known.asked_in.clone().filter(|task| task == self.turn.task());
                        Memory { agent: Some(self.memory_key.agent.into()), resumable, asked_in, ..known.clone() }
                    }
                    None => Memory { resumable, ..Memory::of(self.memory_key, session, &self.base) },
                };
                if known == Some(&memory) {
                    return;
                }
                self.memories.put(self.memory_key, memory);
            }
            // Else every message of the context would fail from now on.
            Update::SessionGone => self.memories.forget(self.memory_key),
            _ => return,
        }
        self.turn.remember(self.memories.text()).await;
    }

    /// Asks the caller.
    async fn asked(&mut self, question: Question) -> Asked<'t> {
        let answering = self.ask(&question);
        let is_asked_again = lost_question::is_asked_again(self.settings, &question);
        // A worktree is kept and removed when its program ends.
        let may_sleep = is_asked_again && self.settings.isolation == Isolation::Shared;
        let sleeps_at = self.settings.hibernate_after.filter(|_| may_sleep).map(|after| Instant::now() + after);
        if is_asked_again {
            self.end_on_sabir_exit(Ending::Kill);
            self.remember_who_asks().await;
        }
        Asked { question, answering, is_asked_again, sleeps_at }
    }

    /// The next turn of the context may be another task's.
    async fn remember_who_asks(&mut self) {
        let asked_in = Some(self.turn.task().clone());
        if let Some(known) = self.memories.of(self.memory_key).filter(|known| known.asked_in != asked_in) {
            let memory = Memory { asked_in, ..known.clone() };
            self.memories.put(self.memory_key, memory);
            self.turn.remember(self.memories.text()).await;
        }
    }

    fn end_on_sabir_exit(&mut self, ending: Ending) {
        if std::mem::replace(&mut self.ending, ending) != ending {
            self.child.end_on_sabir_exit(ending);
        }
    }

    fn ask(&self, question: &Question) -> Answering<'t> {
        let (turn, limit) = (self.turn, self.settings.approval_timeout);
        let question = question.clone();
        let parts = self.masking.secrets.mask_parts(approval::parts(&question));
        Box::pin(async move {
            match turn.ask_within(limit, Required::Input, parts).await {
                Ok(Some(message)) => approval::understand(&question, &message),
                Err(_) => Reply::Unanswered,
                Ok(None) => {
                    turn.progress("Nobody answered in time, which means no").await;
                    approval::refusal(&question, "nobody answered in time")
                }
            }
        })
    }

    /// Ends a program whose question nobody answers, if its session is known. Returns the session to resume.
    async fn put_to_sleep(&mut self) -> Option<String> {
        let session = self.memories.of(self.memory_key).filter(|memory| memory.resumable)?.session.clone();
        tracing::info!(task = %self.turn.task(), "a program waits long for an answer; it is ended and resumed later");
        // Asked to end, it would close its turn.
        self.child.kill().await;
        self.publisher.start_usage_of_next_process(self.adapter.usage_so_far()).await;
        Some(session)
    }

    /// The program is asked to stop where it can be asked, so that its session stays whole; else it is signalled. If its
    /// question stays open, it must not close its turn.
    async fn cancel(&mut self, asked: Option<Asked<'t>>) -> Result<Outcome, AgentError> {
        if self.turn.leaves_question() && asked.is_some_and(|asked| asked.is_asked_again) {
            self.child.kill().await;
            return Ok(Outcome::Canceled(Vec::new()));
        }
        let steps = self.adapter.interrupt();
        if !steps.is_empty() {
            for step in steps {
                if let Step::Write(line) = step {
                    self.write(&line).await;
                }
            }
            let grace = INTERRUPT_GRACE.min(stop_budget(self.turn) / 3);
            let _ = tokio::time::timeout(grace, self.until_quiet()).await;
        }
        Ok(Outcome::Canceled(Vec::new()))
    }

    /// Reads on until the turn is over, and tells nobody.
    async fn until_quiet(&mut self) {
        loop {
            let Output::Line(line) = self.child.next().await else { return };
            for step in self.adapter.on_line(&line) {
                match step {
                    Step::Report(Update::Done { .. } | Update::Failed(_) | Update::Interrupted) => return,
                    Step::Report(update) => self.remember(&update).await,
                    Step::Ask(question) => {
                        for step in self.adapter.answer(&question, &Reply::Unanswered) {
                            if let Step::Write(line) = step {
                                self.write(&line).await;
                            }
                        }
                    }
                    Step::Write(line) => self.write(&line).await,
                    Step::CloseInput | Step::Withdraw(_) => {}
                }
            }
        }
    }

    /// Reads to the end of the program, so that it never waits for us.
    async fn quiet_end(&mut self) {
        while !matches!(self.child.next().await, Output::Closed) {}
        self.child.exit().await;
    }

    /// The program has closed its output without saying that it was done.
    async fn ended(&mut self) -> Result<Outcome, AgentError> {
        let turn = self.turn;
        let exit = tokio::select! {
            biased;
            exit = tokio::time::timeout(LAST_WORDS, self.child.exit()) => exit,
            () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
        };
        // One that closed its output and lives on has nothing more to say.
        let Ok(exit) = exit else {
            return Ok(failed("the program closed its output and did not end".into()));
        };
        match self.adapter.on_exit(&exit) {
            Some(update) => {
                for update in self.masking.hide(update) {
                    match self.publisher.publish(update).await {
                        Published::Done => return Ok(self.completed()),
                        Published::Failed(reason) => return Ok(failed(reason)),
                        Published::Continue | Published::Interrupted => {}
                    }
                }
                Ok(failed(self.reason(exit)))
            }
            None if exit != Exit::Code(0) && !self.has_spoken && self.has_session() => {
                // Some programs say only so that the session is gone; else every message of the context would fail.
                self.remember(&Update::SessionGone).await;
                Ok(failed(format!("{}; the next message begins a new session", self.reason(exit))))
            }
            None => Ok(failed(self.reason(exit))),
        }
    }

    fn has_session(&self) -> bool {
        self.memories.of(self.memory_key).is_some()
    }

    fn reason(&mut self, exit: Exit) -> String {
        let how = match exit {
            Exit::Code(0) => "the program ended without saying that it was done".to_owned(),
            Exit::Code(code) => format!("the program ended with exit code {code}"),
            Exit::Signal(signal) => format!("the program was ended by signal {signal}"),
        };
        let how = self.publisher.with_notes(how);
        match self.masking.secrets.mask(&self.child.stderr_tail()) {
            complaint if complaint.is_empty() => how,
            complaint if self.settings.tell_stderr => format!("{how}: {complaint}"),
            _ => format!("{how}; the server's log says more"),
        }
    }

    /// A caller who got nothing is told so: silence would look like a lost answer.
    fn completed(&self) -> Outcome {
        match self.publisher.has_answered() {
            true => Outcome::Completed(Vec::new()),
            false => Outcome::Completed(vec![Part::text("The program ended without an answer")]),
        }
    }
}

fn failed(reason: String) -> Outcome {
    Outcome::Failed(vec![Part::text(reason)])
}

fn ends_turn(step: &Step) -> bool {
    matches!(step, Step::Report(Update::Done { .. } | Update::Failed(_) | Update::Interrupted))
}

/// Drops the questions that the program has withdrawn in the steps from `known` on, whether they are asked already or still
/// due.
fn withdraw(steps: &mut VecDeque<Step>, asked: &mut Option<Asked<'_>>, known: usize) {
    let mut from = known;
    while let Some(place) = (from..steps.len()).find(|at| matches!(steps[*at], Step::Withdraw(_))) {
        let Some(Step::Withdraw(id)) = steps.remove(place) else { return };
        asked.take_if(|asked| asked.question.id == id);
        let length = steps.len();
        let is_withdrawn = |at: usize, step: &Step| at < place && matches!(step, Step::Ask(due) if due.id == id);
        let mut at = 0;
        steps.retain(|step| {
            at += 1;
            !is_withdrawn(at - 1, step)
        });
        from = place - (length - steps.len());
    }
}

/// The answer to the question that stands; never, if none does.
async fn answered(asked: &mut Option<Asked<'_>>) -> Reply {
    match asked {
        Some(asked) => asked.answering.as_mut().await,
        None => std::future::pending().await,
    }
}

/// An answer goes before whatever the program has said since it asked, such as another question.
fn at_once(steps: &mut VecDeque<Step>, answer: Vec<Step>) {
    for step in answer.into_iter().rev() {
        steps.push_front(step);
    }
}

/// Ends at this time, or never.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
