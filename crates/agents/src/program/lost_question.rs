//! What becomes of a question when the program that asked it is gone: Sabir was killed or stopped, or has put the program to
//! sleep.
//!
//! The caller's answer means something only as the answer to that question. It is kept until the program, resumed in the
//! middle of its turn, asks for the same tool with the same input again, and is used once then. It is never sent to the
//! program as a prompt: a "yes" is no request. Where a program was not shown to ask again (`KilledQuestion`), the task fails, with
//! the advice to send the request again. That holds for questions that want to know something, too: they are not asked
//! again in the same words, and "blue" is no request either.

use sabir_model::Message;

use super::approval;
use super::memory::Memory;
use super::settings::Settings;
use crate::kinds::KilledQuestion;
use crate::prompt::Approve;
use crate::update::{Question, Reply};

pub(super) const QUESTION_LOST: &str =
    "the question was lost with the program that asked it, so the answer was not used; send the request again";

/// The answer to a question whose program is gone.
pub(super) struct SavedAnswer {
    pub question: Question,
    pub reply: Reply,
}

impl SavedAnswer {
    /// What this message answers to the stored question. `None`: nobody will ask for it again.
    pub fn of(settings: &Settings, memory: Option<&Memory>, question: &Message, answer: &Message) -> Option<Self> {
        let question = lost(settings, memory, question)?;
        let reply = approval::understand(&question, answer);
        Some(Self { question, reply })
    }

    /// The reply to this question, if it is the same.
    pub fn reply_to(self, question: &Question) -> Option<Reply> {
        let is_same = approval::is_permission(question) && question.asks_for_the_same(&self.question);
        is_same.then(|| approval::once(question, self.reply))
    }
}

/// Whether the program asks this question again when it was killed and its turn is resumed.
pub(super) fn is_asked_again(settings: &Settings, question: &Question) -> bool {
    let asks_again = settings.mode_info().is_some_and(|way| way.killed_question == KilledQuestion::AskedAgain);
    asks_again && question.tool.is_some() && approval::is_permission(question)
}

/// Whether the answer to this stored question can still be used, although its program is gone.
pub(super) fn can_be_answered(settings: &Settings, memory: Option<&Memory>, question: &Message) -> bool {
    lost(settings, memory, question).is_some()
}

fn lost(settings: &Settings, memory: Option<&Memory>, question: &Message) -> Option<Question> {
    // Another task may have had its turn in the session since then: what is resumed there is not this turn.
    let is_next = |memory: &Memory| memory.resumable && memory.asked_in.is_some() && memory.asked_in == question.task;
    // The operator may have decided since then that nobody is asked. A no must not be lost by that.
    let is_asked = settings.approve == Approve::Ask && memory.is_some_and(is_next);
    approval::read(question).filter(|question| is_asked && is_asked_again(settings, question))
}
