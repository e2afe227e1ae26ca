//! The stages of a run and the events that move it from one to the next. `run` has the table.

use std::pin::Pin;

use tokio::time::Instant;

use super::super::lost_question::SavedAnswer;
use crate::process::Output;
use crate::update::{Question, Reply};

pub(super) enum Stage<'t> {
    Working,
    AwaitsRepeat(SavedAnswer),
    Asking(OpenQuestion<'t>),
    Asleep {
        question: OpenQuestion<'t>,
        /// The session to resume.
        session: String,
    },
    Closed,
}

/// A question that the caller has not answered yet.
pub(super) struct OpenQuestion<'t> {
    pub question: Question,
    pub reply: Pin<Box<dyn Future<Output = Reply> + Send + 't>>,
    /// The program asks it again if it is killed meanwhile.
    pub is_asked_again: bool,
    /// When the program may be put to sleep.
    pub sleeps_at: Option<Instant>,
}

pub(super) enum Event {
    Canceled,
    Output(Output),
    Reply(Reply),
    /// The question has been open for so long that the program may be put to sleep.
    SleepDue,
    /// The resumed program has been silent for too long.
    RepeatOverdue,
    /// The program has printed nothing for a moment: an incomplete line may be a question.
    Silence,
}

impl<'t> Stage<'t> {
    pub fn has_question(&self) -> bool {
        matches!(self, Stage::Asking(_) | Stage::Asleep { .. })
    }

    /// Whether there is a process whose output can be read.
    pub fn has_process(&self) -> bool {
        !matches!(self, Stage::Asleep { .. })
    }

    pub fn sleeps_at(&self) -> Option<Instant> {
        match self {
            Stage::Asking(open) => open.sleeps_at,
            _ => None,
        }
    }

    /// The reply to the open question; never resolves if there is none.
    pub async fn reply(&mut self) -> Reply {
        match self {
            Stage::Asking(open) | Stage::Asleep { question: open, .. } => open.reply.as_mut().await,
            Stage::Working | Stage::AwaitsRepeat(_) | Stage::Closed => std::future::pending().await,
        }
    }

    /// Drops the question that is asked, if it is like this. The caller's answer has no use any more.
    pub fn drop_question(&mut self, is_wanted: impl FnOnce(&Question) -> bool) {
        if matches!(self, Stage::Asking(open) if is_wanted(&open.question)) {
            *self = Stage::Working;
        }
    }

    /// The answer that waits for the program to ask again. It is used for the next question or not at all.
    pub fn take_saved_answer(&mut self) -> Option<SavedAnswer> {
        match std::mem::replace(self, Stage::Working) {
            Stage::AwaitsRepeat(saved) => Some(saved),
            other => {
                *self = other;
                None
            }
        }
    }
}
