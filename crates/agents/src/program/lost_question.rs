//! Questions whose program is gone: Sabir was killed or stopped, or has put the program to sleep.
//!
//! The caller's answer is saved. The program is resumed in the middle of its turn; when it asks for the same tool with the
//! same input again, the saved answer is used once. The answer is never sent to the program as a prompt: a "yes" is no
//! request. For programs that are not known to ask again (`KilledQuestion`) the task fails, with the advice to send the
//! request again. So does a question for information: the program would not ask it again with the same text.

use sabir_model::Message;

use super::approval;
use super::memory::Memory;
use super::settings::Settings;
use crate::kinds::KilledQuestion;
use crate::prompt::Approve;
use crate::update::{Question, Reply};

pub(super) const ANSWER_UNUSED: &str =
    "the question was lost with the program that asked it, so the answer was not used; send the request again";

/// The answer to a question whose program is gone.
pub(super) struct SavedAnswer {
    pub question: Question,
    pub reply: Reply,
}

impl SavedAnswer {
    /// The answer of this message to the stored question. `None`: the program will not ask again.
    pub fn of(settings: &Settings, memory: Option<&Memory>, question: &Message, answer: &Message) -> Option<Self> {
        let question = answerable(settings, memory, question)?;
        let reply = approval::understand(&question, answer);
        Some(Self { question, reply })
    }

    /// The reply, if this is the same question.
    pub fn reply_to(self, question: &Question) -> Option<Reply> {
        let is_same = approval::is_permission(question) && question.asks_for_the_same(&self.question);
        is_same.then(|| approval::once(question, self.reply))
    }
}

/// Whether the program asks this question again if it is killed and its turn is resumed.
pub(super) fn is_asked_again(settings: &Settings, question: &Question) -> bool {
    let asks_again = settings.mode_info().is_some_and(|mode| mode.killed_question == KilledQuestion::AskedAgain);
    asks_again && question.tool.is_some() && approval::is_permission(question)
}

/// Whether the answer to this stored question can still be used, although its program is gone.
pub(super) fn can_be_answered(settings: &Settings, memory: Option<&Memory>, question: &Message) -> bool {
    answerable(settings, memory, question).is_some()
}

/// The stored question, if its program will ask it again.
fn answerable(settings: &Settings, memory: Option<&Memory>, question: &Message) -> Option<Question> {
    // Another task may have had a turn in the session since then; resuming would continue that one.
    let is_next = |memory: &Memory| memory.resumable && memory.asked_in.is_some() && memory.asked_in == question.task;
    // The operator may have switched off questions since then. A no must not turn into a yes by that.
    let is_asked = settings.approve == Approve::Ask && memory.is_some_and(is_next);
    approval::read(question).filter(|question| is_asked && is_asked_again(settings, question))
}
