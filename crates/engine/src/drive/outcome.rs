//! How turns and tasks end: which outcome counts, when it is deferred, and which status it becomes.

use std::sync::Arc;

use sabir_model::{Command, Cost, Error, Message, MessageId, Part, QuestionForm, Role};
use sabir_store::SideRow;

use super::active_turn::{ActiveTurn, AgentResult, StopReason};
use super::append::{Ack, chain};
use super::{Driver, ReleaseReason};
use crate::engine::{Recovery, new_id};
use crate::turn::Outcome;
use crate::{AgentError, RunEnd, RunFailure};

/// The run that asked is gone with its server, and no agent can use the answer.
pub(crate) const QUESTION_LOST: &str = "interrupted: the question was lost when the server ended, since the agent cannot resume what \
                             asked it; send the request again";

impl Driver {
    /// Ends the turn. `None`: the agent did not stop in time.
    pub(super) fn end_turn(&mut self, worked: Option<AgentResult>) {
        let Some(mut turn) = self.turn.take() else { return };
        self.set_aside_unused_answers(None);
        let stopped_while_asking = turn.stopped_while_asking();
        let counted = turn.counted.take();
        let observed = turn.observed.take();
        let cause = failure_cause(&turn, worked.as_ref());
        let outcome = match (turn.stop_reason, turn.last_word, worked) {
            (None, _, Some(Ok(Ok(outcome)))) => outcome,
            // The announced outcome would not have ended the task, but the caller wants it to end.
            (Some(StopReason::Canceled(_)), Some(outcome), _) if self.may_go_on(&outcome) => match outcome {
                Outcome::Completed(parts) => Outcome::Canceled(parts),
                _ => Outcome::Canceled(Vec::new()),
            },
            // The agent had announced its outcome; the rest was cleaning up.
            (_, Some(outcome), _) => outcome,
            (Some(StopReason::Canceled(reason)), None, _) => {
                Outcome::Canceled(reason.into_iter().map(Part::text).collect())
            }
            (Some(StopReason::TimedOut(reason)), None, _) => failure(reason),
            (Some(StopReason::StoreFailed), None, _) => failure("the server could not store the task"),
            // Questions that survive do not get here, see `survives_stop`.
            (Some(StopReason::ServerStops), None, _) if stopped_while_asking => failure(QUESTION_LOST),
            (Some(StopReason::ServerStops), None, _) => return self.interrupt(),
            (None, None, Some(Ok(Err(AgentError::ForCaller(reason))))) => failure(reason),
            (None, None, Some(Ok(Err(AgentError::Internal(error))))) => {
                let (task, agent) = (&self.lease.key.task, &self.lease.key.agent);
                tracing::error!(%task, %agent, error = chain(&*error), "the agent failed");
                failure("the agent failed; the server's log says why")
            }
            (None, None, Some(Err(_))) => {
                tracing::error!(task = %self.lease.key.task, agent = %self.lease.key.agent, "the agent panicked");
                failure("the agent crashed")
            }
            (None, None, None) => failure("the agent stopped without an answer"),
        };
        if let Some(counted) = counted {
            counted.ends_with(&outcome);
        }
        if let Some(observed) = observed {
            let failure = matches!(outcome, Outcome::Failed(_)).then_some(cause);
            observed.end(&RunEnd { state: outcome.state(), usage: self.usage, failure });
        }
        let is_canceled = matches!(outcome, Outcome::Canceled(_));
        for done in std::mem::take(&mut self.cancels) {
            let ack = match is_canceled {
                true => Ack::cancel(done),
                false => Ack::refusal(done, Error::NotCancelable(self.lease.key.task.clone())),
            };
            self.pending.acks.push(ack);
        }
        // A task settles when its inbox is empty; a failure settles it at once.
        if self.may_go_on(&outcome) && !self.inbox.is_empty() {
            self.reset_attempts();
            self.deferred_outcome = Some(outcome);
        } else {
            self.finish(outcome);
        }
    }

    /// Whether the task continues after a turn with this outcome, now or with the next message.
    fn may_go_on(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Completed(_) => !self.inbox.is_empty(),
            Outcome::InputRequired(_) | Outcome::AuthRequired(_) => true,
            Outcome::Failed(_) | Outcome::Rejected(_) | Outcome::Canceled(_) => false,
        }
    }

    /// Settles a deferred outcome, when the messages that it was deferred for are gone or will not be read. `false`:
    /// there is none.
    pub(super) fn settle_deferred_outcome(&mut self) -> bool {
        let Some(outcome) = self.deferred_outcome.take().filter(|_| self.release_reason.is_none()) else {
            return false;
        };
        match self.core.settings.recovery {
            _ if self.inbox.is_empty() => self.finish(outcome),
            Recovery::Fail => self.interrupt(),
            Recovery::Requeue => {
                // The turn that has ended must not run again, so the next turn begins in the log, and the next start
                // runs it.
                self.deferred_outcome = Some(outcome);
                let (place, _) = self.choose_next();
                if let Some(input) = self.next_input(place) {
                    self.decide(Command::Begin { input });
                }
            }
        }
        true
    }

    /// The server stops before the task is finished.
    pub(super) fn interrupt(&mut self) {
        match self.core.settings.recovery {
            Recovery::Requeue => self.release_reason = Some(ReleaseReason::ForNextStart),
            Recovery::Fail => self.finish(failure("interrupted: the server was stopped")),
        }
    }

    pub(super) fn finish(&mut self, outcome: Outcome) {
        let mut unread = std::mem::take(&mut self.unused_answers);
        match outcome {
            Outcome::Completed(_) | Outcome::InputRequired(_) | Outcome::AuthRequired(_) => {}
            Outcome::Failed(_) | Outcome::Rejected(_) | Outcome::Canceled(_) => unread.extend(self.take_inbox()),
        }
        self.reset_attempts();
        let tells_cost = matches!(outcome, Outcome::Failed(_) | Outcome::Rejected(_));
        // The cost of a failed turn goes with the reason; otherwise it is on what the turn made.
        let cost = self.usage.filter(|_| tells_cost).map(|usage| {
            let duration_ms = self.began.elapsed().as_millis() as u64;
            Cost { usage, duration_ms, is_success: false }
        });
        // A question id needs a message, even an empty one.
        let asks = matches!(outcome, Outcome::InputRequired(_) | Outcome::AuthRequired(_))
            && self.executor.agent.hosted.agent.question_form() == QuestionForm::WithData;
        let outcome = outcome.map(|parts| {
            let mut message = (asks || !parts.is_empty()).then(|| self.agent_message(parts))?;
            if let Some(cost) = cost {
                cost.note_on_message(&mut message);
            }
            Some(Arc::new(message))
        });
        let usage = self.usage;
        self.decide(Command::Finish { outcome, usage, unread });
    }

    /// The turn that recovery had started is through.
    pub(super) fn reset_attempts(&mut self) {
        if std::mem::take(&mut self.attempts) > 0 {
            self.pending.side_rows.push(SideRow::Attempts(0));
        }
    }

    /// A message of the agent, for a status.
    pub(super) fn agent_message(&self, parts: Vec<Part>) -> Message {
        Message {
            task: Some(self.lease.key.task.clone()),
            context: Some(self.context.clone()),
            ..Message::new(new_id(MessageId::parse), Role::Agent, parts)
        }
    }

    pub(super) fn agent_message_if_any(&self, parts: Vec<Part>) -> Option<Arc<Message>> {
        (!parts.is_empty()).then(|| Arc::new(self.agent_message(parts)))
    }
}

/// Why the turn has failed, if it has.
fn failure_cause(turn: &ActiveTurn, worked: Option<&AgentResult>) -> RunFailure {
    match (&turn.stop_reason, worked) {
        _ if turn.last_word.is_some() => RunFailure::Agent,
        (Some(StopReason::TimedOut(_)), _) => RunFailure::Timeout,
        (Some(StopReason::StoreFailed), _) => RunFailure::Store,
        (Some(StopReason::ServerStops), _) => RunFailure::ServerStops,
        (Some(StopReason::Canceled(_)), _) | (None, Some(Ok(Ok(_) | Err(AgentError::ForCaller(_))))) => {
            RunFailure::Agent
        }
        (None, Some(Ok(Err(AgentError::Internal(_))))) => RunFailure::AgentError,
        (None, Some(Err(_)) | None) => RunFailure::Crash,
    }
}

pub(crate) fn failure(reason: impl Into<String>) -> Outcome {
    Outcome::Failed(vec![Part::text(reason)])
}
