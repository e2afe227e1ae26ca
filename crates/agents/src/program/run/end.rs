//! The end of a run: the program waits for the next turn or is ended, whatever happens.

use std::time::Duration;

use sabir_engine::{AgentError, Outcome};
use sabir_model::Part;

use super::super::memory::Memories;
use super::super::publisher::{Published, Publisher};
use super::super::reuse_key::ReuseKey;
use super::super::turn::stop_budget;
use super::super::warm::{RunningProgram, WarmKey, WarmPrograms};
use super::drive::{Run, TurnEnd, failed};
use super::own_processes::HELPERS_END;
use super::stage::Stage;
use crate::adapter::{Exit, Step};
use crate::kinds::AfterTurn;
use crate::process::Output;
use crate::update::{Reply, Update};

/// How long a program that was asked to stop may take to say that it has.
const INTERRUPT_GRACE: Duration = Duration::from_millis(1500);
/// How long a program that has closed its output may take to exit. Longer than its guard gives to the processes that the
/// program leaves behind: they are not its fault.
const EXIT_AFTER_CLOSE: Duration = Duration::from_secs(4);

/// How long a program that has finished its turn may take to exit by itself.
fn time_to_exit(after_turn: AfterTurn) -> Duration {
    match after_turn {
        AfterTurn::Exits => Duration::from_secs(6),
        AfterTurn::Stays => Duration::from_millis(200),
    }
}

/// How a run ended.
pub(in super::super) enum RunEnd<'t> {
    Turn(Result<Outcome, AgentError>),
    /// The program had waited for this turn and was gone before it did anything. Another can take its place.
    BeforeItsTurn {
        publisher: Box<Publisher<'t>>,
        memories: Memories,
    },
}

/// Where a program waits after its turn, if it can.
pub(in super::super) struct KeepWarm {
    pub warm: WarmPrograms,
    pub key: WarmKey,
    /// Without the session, which is known after the turn.
    pub reuse_key: ReuseKey,
    pub limit: Duration,
}

impl<'t> Run<'t> {
    pub async fn finish(mut self) -> RunEnd<'t> {
        let end = self.drive().await;
        // Nobody needs the answer to an open question any more.
        self.state.stage = Stage::Working;
        if let Some(rest) = self.masking.rest() {
            self.publisher.publish(rest).await;
        }
        let outcome = match end {
            Ok(TurnEnd::ProgramGone) => {
                self.stop_program().await;
                return RunEnd::BeforeItsTurn { publisher: Box::new(self.publisher), memories: self.memories };
            }
            Ok(TurnEnd::Outcome(outcome)) => Ok(outcome),
            Err(error) => Err(error),
        };
        if let Ok(Outcome::Completed(parts)) = &outcome {
            self.turn.last_word(Outcome::Completed(parts.clone())).await;
            let is_alone = self.keep.is_none() || self.is_alone().await;
            if is_alone && self.keep.is_some() && self.adapter.awaits_next_turn() {
                self.keep_warm();
                return RunEnd::Turn(outcome);
            }
            // It has finished and may still have to write its session down.
            self.child.close_input();
            let after_turn = self.settings.mode_info().map_or(AfterTurn::Exits, |mode| mode.after_turn);
            // One that waits for its commands would not exit by itself.
            let limit = if is_alone { time_to_exit(after_turn) } else { time_to_exit(after_turn).min(HELPERS_END) };
            let turn = self.turn;
            tokio::select! {
                _ = tokio::time::timeout(limit, self.drain_until_exit()) => {}
                () = turn.cancelled() => {}
            }
        }
        self.stop_program().await;
        if let Ok(Outcome::Failed(parts)) = &outcome {
            self.log_failure(parts);
        }
        RunEnd::Turn(outcome)
    }

    /// Ends the program. A stop of the turn that comes meanwhile leaves it less time.
    async fn stop_program(&mut self) {
        let turn = self.turn;
        tokio::select! {
            biased;
            () = turn.cancelled() => {}
            _ = self.child.stop() => return,
        }
        // Half of what is left is for SIGTERM; SIGKILL needs little, and the last updates are still to come.
        self.child.stop_within(stop_budget(turn) / 2).await;
    }

    /// Lets the program wait for the next turn of its context.
    fn keep_warm(self) {
        // The folder and the context are free meanwhile.
        self.child.hold(None);
        let session = self.memories.of(self.memory_key).map(|memory| memory.session.clone());
        if let Some(KeepWarm { warm, key, reuse_key, limit }) = self.keep {
            let program = RunningProgram {
                child: self.child,
                adapter: self.adapter,
                own_processes: self.own_processes,
                credential: self.credential,
            };
            warm.keep(key, reuse_key.with_session(session), program, limit);
        }
    }

    /// Logs what the program wrote to its standard error, whatever the caller learns.
    fn log_failure(&self, parts: &[Part]) {
        let reason: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
        let stderr = self.masking.secrets.mask(&self.child.stderr_tail());
        let (task, agent) = (self.turn.task(), self.turn.agent());
        tracing::warn!(%task, %agent, reason = reason.join("\n"), stderr, "a program failed");
    }

    /// Asks the program to stop its turn, if its adapter can, so that its session stays whole; otherwise it is signalled
    /// later. A program whose question stays open is killed: it must not close its turn.
    pub(super) async fn cancel(&mut self) {
        let stage = std::mem::replace(&mut self.state.stage, Stage::Working);
        let is_asleep = matches!(stage, Stage::Asleep { .. });
        let is_asked_again = matches!(&stage, Stage::Asking(open) if open.is_asked_again);
        let stopped_while_asking = self.turn.stopped_while_asking();
        // Otherwise the question stays open until the program has stopped.
        let _open = (!stopped_while_asking).then_some(stage);
        if is_asleep {
            return;
        }
        if stopped_while_asking && is_asked_again {
            self.child.kill().await;
            return;
        }
        let steps = self.adapter.interrupt();
        if steps.is_empty() {
            return;
        }
        self.write_lines(steps).await;
        let grace = INTERRUPT_GRACE.min(stop_budget(self.turn) / 3);
        let _ = tokio::time::timeout(grace, self.drain_until_turn_ends()).await;
    }

    /// Reads on until the turn is over, and reports nothing.
    async fn drain_until_turn_ends(&mut self) {
        loop {
            let Output::Line(line) = self.child.next().await else { return };
            for step in self.adapter.on_line(&line) {
                match step {
                    Step::Report(Update::Done { .. } | Update::Failed(_) | Update::Interrupted) => return,
                    Step::Report(update) => self.remember(&update).await,
                    Step::Ask(question) => {
                        let answer = self.adapter.answer(&question, &Reply::Unanswered);
                        self.write_lines(answer).await;
                    }
                    Step::Write(line) => self.write(&line).await,
                    Step::CloseInput | Step::Withdraw(_) => {}
                }
            }
        }
    }

    /// Reads on until the program has exited, so that it never waits for a reader.
    async fn drain_until_exit(&mut self) {
        while !matches!(self.child.next().await, Output::Closed) {}
        self.child.exit().await;
    }

    /// The program has closed its output without saying that it was done: its exit status decides.
    pub(super) async fn on_output_closed(&mut self) -> Outcome {
        let turn = self.turn;
        let exit = tokio::select! {
            biased;
            exit = tokio::time::timeout(EXIT_AFTER_CLOSE, self.child.exit()) => exit,
            () = turn.cancelled() => return Outcome::Canceled(Vec::new()),
        };
        let Ok(exit) = exit else {
            return failed("the program closed its output and did not end".into());
        };
        match self.adapter.on_exit(&exit) {
            Some(update) => {
                for update in self.masking.hide(update) {
                    match self.publisher.publish(update).await {
                        Published::Done => return self.completed(),
                        Published::Failed(reason) => return failed(reason),
                        Published::Continue | Published::Interrupted => {}
                    }
                }
                failed(self.failure_reason(exit))
            }
            None if exit != Exit::Code(0) && !self.state.has_reported && self.has_session() => {
                // Some programs show only by this that the session is gone. If it were kept, every message would fail.
                self.remember(&Update::SessionGone).await;
                failed(format!("{}; the next message begins a new session", self.failure_reason(exit)))
            }
            None => failed(self.failure_reason(exit)),
        }
    }

    fn failure_reason(&mut self, exit: Exit) -> String {
        let how = match exit {
            Exit::Code(0) => "the program ended without saying that it was done".to_owned(),
            Exit::Code(code) => format!("the program ended with exit code {code}"),
            Exit::Signal(signal) => format!("the program was ended by signal {signal}"),
        };
        let how = self.publisher.with_notes(how);
        match self.masking.secrets.mask(&self.child.stderr_tail()) {
            stderr if stderr.is_empty() => how,
            stderr if self.settings.tell_stderr => format!("{how}: {stderr}"),
            _ => format!("{how}; the server's log says more"),
        }
    }
}
