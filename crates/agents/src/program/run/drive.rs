//! The state machine of a run: performs the adapter's steps, waits for the next event, and decides what it means.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sabir_engine::{AgentError, Outcome, ProgramCredential, Turn};
use sabir_model::Part;
use tokio::time::Instant;

use super::super::lost_question::SavedAnswer;
use super::super::memory::{Memories, MemoryKey};
use super::super::publisher::{Published, Publisher};
use super::super::secrets::Masking;
use super::super::settings::Settings;
use super::super::turn::Starter;
use super::end::KeepWarm;
use super::stage::{Event, Stage};
use crate::adapter::{Adapter, Step};
use crate::process::{Child, Descendants, Ending, Output, lease_is_over};
use crate::update::{Reply, Update};

/// A question on a terminal has no line break. A program that asks so is then silent for this long.
const SILENCE: Duration = Duration::from_millis(300);

/// Steps that come while a question is open wait until it is answered. When their lines have more bytes than this, the run
/// stops reading, and the rest waits in the program's pipe.
const MAX_WAITING_BYTES: usize = 1024 * 1024;

pub(in super::super) struct Run<'t> {
    pub memory_key: MemoryKey<'t>,
    pub settings: &'t Settings,
    pub turn: &'t Turn,
    /// The folder of the conversation.
    pub base: PathBuf,
    pub starter: Starter<'t>,
    pub adapter: Box<dyn Adapter>,
    pub child: Child,
    /// The processes of the program before it did any work. All later ones would keep working in the folder between turns.
    pub own_processes: Descendants,
    pub credential: Option<Arc<ProgramCredential>>,
    pub origin: ProgramOrigin,
    pub publisher: Publisher<'t>,
    pub memories: Memories,
    pub masking: Masking,
    /// `None`: the program ends with its turn.
    pub keep: Option<KeepWarm>,
    pub state: RunState<'t>,
}

/// Where the program of a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum ProgramOrigin {
    Started,
    /// It has waited since an earlier turn.
    Warm,
}

/// What changes while a program runs.
pub(in super::super) struct RunState<'t> {
    pub(super) stage: Stage<'t>,
    /// What is to be done, in order.
    pub(super) steps: VecDeque<Step>,
    /// Bytes of the lines whose steps still wait.
    waiting_bytes: usize,
    last_output: Instant,
    /// How the guard ends the program if Sabir is gone.
    pub(super) ending: Ending,
    pub(super) has_reported: bool,
    /// The program has reported more than its session, or has asked.
    pub(super) has_worked: bool,
    /// A question was refused because too many waited. The caller learns of that once.
    pub(super) has_refused: bool,
}

impl RunState<'_> {
    /// `saved_answer` is the answer to the question that was open when an earlier process of this turn was ended.
    pub fn new(first_steps: Vec<Step>, saved_answer: Option<SavedAnswer>) -> Self {
        Self {
            stage: saved_answer.map_or(Stage::Working, Stage::AwaitsRepeat),
            steps: first_steps.into(),
            waiting_bytes: 0,
            last_output: Instant::now(),
            ending: Ending::Graceful,
            has_reported: false,
            has_worked: false,
            has_refused: false,
        }
    }
}

/// How the turn of a program ended.
pub(super) enum TurnEnd {
    Outcome(Outcome),
    /// The program had waited for this turn and was gone before it did anything.
    ProgramGone,
}

impl<'t> Run<'t> {
    /// Runs until the turn ends. The program may still be running then.
    pub(super) async fn drive(&mut self) -> Result<TurnEnd, AgentError> {
        loop {
            if let Some(outcome) = self.perform_steps().await {
                return Ok(TurnEnd::Outcome(outcome));
            }
            if matches!(self.state.stage, Stage::Closed) {
                if self.origin == ProgramOrigin::Warm && !self.state.has_worked {
                    return Ok(TurnEnd::ProgramGone);
                }
                return Ok(TurnEnd::Outcome(self.on_output_closed().await));
            }
            let event = self.next_event().await;
            if let Some(outcome) = self.on_event(event).await? {
                return Ok(TurnEnd::Outcome(outcome));
            }
        }
    }

    /// Performs the steps up to the next question, or all of them. Nothing is reported while a question is open: the task
    /// would look as if it went on. Returns the outcome if the turn is over.
    async fn perform_steps(&mut self) -> Option<Outcome> {
        if self.state.has_reported && !self.adapter.reports_session_first() {
            self.note_own_processes().await;
        }
        if !self.state.stage.has_question() {
            self.end_on_sabir_exit(Ending::Graceful);
        }
        while !self.state.stage.has_question()
            && let Some(step) = self.state.steps.pop_front()
        {
            match step {
                Step::Write(line) => self.write(&line).await,
                Step::CloseInput => self.child.close_input(),
                Step::Ask(question) => {
                    self.state.has_worked = true;
                    let saved = self.state.stage.take_saved_answer();
                    match saved.and_then(|saved| saved.reply_to(&question)) {
                        Some(reply) => self.prepend(|adapter| adapter.answer(&question, &reply)),
                        None => self.ask(question).await,
                    }
                }
                // `drop_dead_questions` has removed it already.
                Step::Withdraw(_) => {}
                Step::Report(update) => {
                    if let Some(outcome) = self.report(update).await {
                        return Some(outcome);
                    }
                }
            }
        }
        if self.state.steps.is_empty() {
            self.state.waiting_bytes = 0;
        }
        None
    }

    async fn report(&mut self, update: Update) -> Option<Outcome> {
        self.state.has_reported = true;
        match update {
            Update::Init { .. } => self.note_own_processes().await,
            _ => self.state.has_worked = true,
        }
        self.remember(&update).await;
        for update in self.masking.hide(update) {
            match self.publisher.publish(update).await {
                Published::Continue => {}
                Published::Done => {
                    if matches!(self.state.stage, Stage::AwaitsRepeat(_)) {
                        self.turn.progress("The program did not ask again, so the answer was not used").await;
                    }
                    return Some(self.completed());
                }
                Published::Failed(reason) => return Some(failed(reason)),
                Published::Interrupted => return Some(failed("the program stopped before it was done".into())),
            }
        }
        None
    }

    async fn next_event(&mut self) -> Event {
        let Self { turn, child, adapter, settings, state, .. } = self;
        let has_process = state.stage.has_process();
        let reads_output = has_process && state.waiting_bytes < MAX_WAITING_BYTES;
        let may_ask_in_text = has_process && adapter.asks_in_plain_text();
        let sleeps_at = state.stage.sleeps_at();
        let is_awaiting = matches!(state.stage, Stage::AwaitsRepeat(_));
        let repeats_until = is_awaiting.then(|| state.last_output + settings.asks_again_within);
        tokio::select! {
            biased;
            () = turn.cancelled() => Event::Canceled,
            // Before the reply: the program may have gone on without it.
            output = child.next(), if reads_output => Event::Output(output),
            reply = state.stage.reply() => Event::Reply(reply),
            () = until(sleeps_at) => Event::SleepDue,
            () = until(repeats_until) => Event::RepeatOverdue,
            () = tokio::time::sleep(SILENCE), if may_ask_in_text => Event::Silence,
        }
    }

    /// Moves to the next stage and adds the steps that follow. Returns the outcome if the turn is over.
    async fn on_event(&mut self, event: Event) -> Result<Option<Outcome>, AgentError> {
        // Thousands of steps may wait behind a question, and each event adds only a few: only those are looked at.
        let first_new = self.state.steps.len();
        match event {
            Event::Canceled => {
                self.cancel().await;
                return Ok(Some(Outcome::Canceled(Vec::new())));
            }
            Event::Output(output) => {
                if let Some(outcome) = self.on_output(output).await {
                    return Ok(Some(outcome));
                }
            }
            Event::Reply(reply) => return self.on_reply(reply, first_new).await,
            Event::SleepDue => self.put_to_sleep().await,
            // It is paused, and its time begins again.
            Event::RepeatOverdue if lease_is_over() => self.state.last_output = Instant::now(),
            Event::RepeatOverdue => {
                let limit = self.settings.asks_again_within;
                return Ok(Some(failed(format!(
                    "the program was resumed to ask its question again and has said nothing for {limit:?}, so the \
                     answer was not used; send the request again"
                ))));
            }
            Event::Silence => {
                let adapter = &self.adapter;
                let is_complete = |line: &str| adapter.is_question(line) || adapter.continues_without_answer(line);
                if let Some(line) = self.child.take_partial_line(is_complete) {
                    self.state.steps.extend(self.adapter.on_line(&line));
                }
            }
        }
        self.drop_dead_questions(first_new);
        Ok(None)
    }

    async fn on_output(&mut self, output: Output) -> Option<Outcome> {
        self.state.last_output = Instant::now();
        match output {
            Output::Line(line) => {
                self.state.waiting_bytes += line.len();
                self.state.steps.extend(self.adapter.on_line(&line));
                self.refuse_surplus_question().await;
                self.merge_plain_text();
            }
            Output::LineTooLong(bytes) => {
                let limit = self.settings.max_line;
                let words = format!("A line of {bytes} bytes was left out; the limit is {limit}");
                self.state.steps.push_back(Step::Report(Update::Progress(words)));
            }
            Output::LimitReached => {
                let limit = self.settings.max_output;
                return Some(failed(format!("the program printed more than {limit} bytes and was stopped")));
            }
            Output::Closed => self.state.stage = Stage::Closed,
        }
        None
    }

    async fn on_reply(&mut self, reply: Reply, first_new: usize) -> Result<Option<Outcome>, AgentError> {
        let adapter = &self.adapter;
        if let Some(line) = self.child.take_partial_line(|line| adapter.continues_without_answer(line)) {
            self.state.steps.extend(self.adapter.on_line(&line));
            self.drop_withdrawn_questions(first_new);
        }
        match std::mem::replace(&mut self.state.stage, Stage::Working) {
            Stage::Asking(open) => self.prepend(|adapter| adapter.answer(&open.question, &reply)),
            Stage::Asleep { question: open, session } => {
                let Some((child, adapter)) = self.starter.resume(session).await? else {
                    return Ok(Some(Outcome::Canceled(Vec::new())));
                };
                (self.child, self.adapter) = (child, adapter);
                self.own_processes = self.child.descendants().await;
                // Updates that waited are reported now. Lines and questions were for a process that is gone.
                self.state.steps.retain(|step| matches!(step, Step::Report(_)));
                self.state.steps.extend(self.adapter.begin());
                self.state.stage = Stage::AwaitsRepeat(SavedAnswer { question: open.question, reply });
                self.state.last_output = Instant::now();
            }
            // The program has just withdrawn the question.
            other => {
                self.state.stage = other;
                return Ok(None);
            }
        }
        self.drop_dead_questions(0);
        Ok(None)
    }

    /// Puts steps before all that wait: an answer comes before whatever the program has said since it asked.
    fn prepend(&mut self, steps: impl FnOnce(&mut dyn Adapter) -> Vec<Step>) {
        for step in steps(&mut *self.adapter).into_iter().rev() {
            self.state.steps.push_front(step);
        }
    }

    /// Adds plain text that has arrived already to the update that waits last: each update is stored on its own, and a
    /// program may print a million short lines. A program that prints messages has chosen its pieces itself.
    fn merge_plain_text(&mut self) {
        if !self.adapter.prints_plain_text() {
            return;
        }
        let steps = &mut self.state.steps;
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

    /// A program that no longer reads will end soon, or its time limit ends it.
    pub(super) async fn write(&mut self, line: &str) {
        if let Err(error) = self.child.write_line(line).await {
            tracing::debug!(%error, "a program does not read");
        }
    }

    pub(super) fn end_on_sabir_exit(&mut self, ending: Ending) {
        if std::mem::replace(&mut self.state.ending, ending) != ending {
            self.child.end_on_sabir_exit(ending);
        }
    }

    /// A caller who got nothing is told so: silence would look like a lost answer.
    pub(super) fn completed(&self) -> Outcome {
        match self.publisher.has_answered() {
            true => Outcome::Completed(Vec::new()),
            false => Outcome::Completed(vec![Part::text("The program ended without an answer")]),
        }
    }
}

pub(super) fn failed(reason: String) -> Outcome {
    Outcome::Failed(vec![Part::text(reason)])
}

/// Resolves at this time, or never.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
