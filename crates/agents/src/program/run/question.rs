//! Questions of a program: asking the caller, sleep while nobody answers, and questions that need no answer any more.

use std::pin::Pin;

use sabir_model::Required;
use tokio::time::Instant;

use super::super::approval;
use super::super::lost_question;
use super::super::settings::Isolation;
use super::drive::Run;
use super::stage::{OpenQuestion, Stage};
use crate::adapter::Step;
use crate::process::Ending;
use crate::update::{Question, Reply, Update};

/// How many questions of a program may wait until the open one is answered. Further ones are refused.
const MAX_WAITING_QUESTIONS: usize = 100;
const TOO_MANY_QUESTIONS: &str = "too many questions wait already";

impl<'t> Run<'t> {
    /// Asks the caller, who has read everything before the question by then.
    pub(super) async fn ask(&mut self, question: Question) {
        if let Some(rest) = self.masking.rest() {
            self.publisher.publish(rest).await;
        }
        let reply = self.reply_of_caller(&question);
        let is_asked_again = lost_question::is_asked_again(self.settings, &question);
        // A worktree is kept and removed when its program ends.
        let may_sleep = is_asked_again && self.settings.isolation == Isolation::Shared;
        let sleeps_at = self.settings.hibernate_after.filter(|_| may_sleep).map(|after| Instant::now() + after);
        if is_asked_again {
            self.end_on_sabir_exit(Ending::Kill);
            self.remember_asking_task().await;
        }
        self.state.stage = Stage::Asking(OpenQuestion { question, reply, is_asked_again, sleeps_at });
    }

    fn reply_of_caller(&self, question: &Question) -> Pin<Box<dyn Future<Output = Reply> + Send + 't>> {
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

    /// Kills a program whose question nobody answers, if its session can be resumed. Otherwise it stays, and is not put to
    /// sleep later either.
    pub(super) async fn put_to_sleep(&mut self) {
        let session = self.memories.of(self.memory_key).filter(|memory| memory.resumable);
        let session = session.map(|memory| memory.session.clone());
        if session.is_some() {
            tracing::info!(task = %self.turn.task(), "a program waits long for an answer; it is ended and resumed later");
            // Asked to end, it would close its turn.
            self.child.kill().await;
            self.publisher.start_usage_of_next_process(self.adapter.usage_so_far()).await;
        }
        self.state.stage = match (std::mem::replace(&mut self.state.stage, Stage::Working), session) {
            (Stage::Asking(question), Some(session)) => Stage::Asleep { question, session },
            (Stage::Asking(question), None) => Stage::Asking(OpenQuestion { sleeps_at: None, ..question }),
            (other, _) => other,
        };
    }

    /// Refuses the question that was just asked, if too many wait already.
    pub(super) async fn refuse_surplus_question(&mut self) {
        if !matches!(self.state.steps.back(), Some(Step::Ask(_))) {
            return;
        }
        let waiting = self.state.steps.iter().filter(|step| matches!(step, Step::Ask(_))).count();
        if waiting <= MAX_WAITING_QUESTIONS {
            return;
        }
        let Some(Step::Ask(question)) = self.state.steps.pop_back() else { return };
        if !std::mem::replace(&mut self.state.has_refused, true) {
            let words = format!("The program asks too much: {TOO_MANY_QUESTIONS}, so further ones are refused");
            self.state.steps.push_back(Step::Report(Update::Progress(words)));
        }
        let answer = self.adapter.answer(&question, &approval::refusal(&question, TOO_MANY_QUESTIONS));
        self.write_lines(answer).await;
    }

    /// Writes the lines among these steps and ignores the other ones.
    pub(super) async fn write_lines(&mut self, steps: Vec<Step>) {
        for step in steps {
            if let Step::Write(line) = step {
                self.write(&line).await;
            }
        }
    }

    /// Drops questions that need no answer any more: those that the program has withdrawn in the steps from `first_new` on,
    /// and all of them when the turn is over.
    pub(super) fn drop_dead_questions(&mut self, first_new: usize) {
        let is_closed = matches!(self.state.stage, Stage::Closed);
        let is_over = is_closed || self.state.steps.range(first_new..).any(ends_turn);
        self.drop_withdrawn_questions(first_new);
        if is_over {
            self.state.stage.drop_question(|_| true);
            self.state.steps.retain(|step| !matches!(step, Step::Ask(_)));
        }
    }

    /// Drops withdrawn questions, whether they are asked already or still wait, and the steps that withdraw them.
    pub(super) fn drop_withdrawn_questions(&mut self, first_new: usize) {
        let steps = &mut self.state.steps;
        let mut from = first_new;
        while let Some(place) = (from..steps.len()).find(|at| matches!(steps[*at], Step::Withdraw(_))) {
            let Some(Step::Withdraw(id)) = steps.remove(place) else { return };
            self.state.stage.drop_question(|question| question.id == id);
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
}

fn ends_turn(step: &Step) -> bool {
    matches!(step, Step::Report(Update::Done { .. } | Update::Failed(_) | Update::Interrupted))
}
