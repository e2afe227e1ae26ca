//! Several answers in one request: each is judged by itself.
//!
//! A task has one open question at a time. Answers that name it go to it; if none does, those without a name that Sabir
//! issued do, together, so that a no among them wins. All others are refused, and the request says so of each.

use std::sync::Arc;

use sabir_model::{Caller, Error, Message, Part, QuestionId, Task};

use crate::engine::Engine;

/// What one of several answers is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerSubject {
    OpenQuestion,
    /// It names an earlier question, or one of another task.
    ClosedQuestion,
    /// It names no question that Sabir issued.
    Unnamed,
}

impl Engine {
    /// Makes one message of the answers that are for the open question, bound to it: should it close meanwhile, the
    /// message must not answer the next one. Returns what becomes of each answer.
    pub(crate) async fn sort_answers(
        &self,
        caller: &Caller,
        send: &sabir_model::Send,
        message: &mut Arc<Message>,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let id = message.task.as_ref().ok_or_else(|| Error::invalid("message.taskId", "is required"))?;
        let task = self.task(caller, send.agent.as_ref(), id).await?;
        let answers: Vec<&Vec<Part>> = [&message.parts].into_iter().chain(&send.further).collect();
        let subjects: Vec<AnswerSubject> = answers.iter().map(|parts| subject_of(&task, message, parts)).collect();
        let is_named = subjects.contains(&AnswerSubject::OpenQuestion);
        let is_sent = |subject: AnswerSubject| match subject {
            AnswerSubject::OpenQuestion => true,
            AnswerSubject::Unnamed => !is_named && task.status.state.is_waiting(),
            AnswerSubject::ClosedQuestion => false,
        };
        let refusal = |subject: AnswerSubject| match subject {
            AnswerSubject::ClosedQuestion if !task.status.state.is_terminal() => Error::QuestionClosed(task.id.clone()),
            AnswerSubject::ClosedQuestion | AnswerSubject::OpenQuestion | AnswerSubject::Unnamed => {
                Error::NotWaiting(task.id.clone())
            }
        };
        if !subjects.iter().any(|subject| is_sent(*subject)) {
            let is_late = subjects.contains(&AnswerSubject::ClosedQuestion);
            return Err(refusal(if is_late { AnswerSubject::ClosedQuestion } else { AnswerSubject::Unnamed }));
        }
        let sent = answers.into_iter().zip(&subjects).filter(|(_, subject)| is_sent(**subject));
        let parts: Vec<Part> = sent.flat_map(|(parts, _)| parts.iter().cloned()).collect();
        let results = subjects.iter().map(|subject| if is_sent(*subject) { Ok(()) } else { Err(refusal(*subject)) });
        let results = results.collect();
        let bound = Arc::make_mut(message);
        bound.parts = parts;
        bound.answers = task.open_question().map(|id| id.event);
        Ok(results)
    }
}

fn subject_of(task: &Task, message: &Message, parts: &[Part]) -> AnswerSubject {
    let answer = Message::new(message.id.clone(), message.role, parts.to_vec());
    let open: Option<QuestionId> = task.open_question();
    match &answer.named_questions()[..] {
        [] => AnswerSubject::Unnamed,
        named if named.iter().all(|named| Some(*named) == open) => AnswerSubject::OpenQuestion,
        _ => AnswerSubject::ClosedQuestion,
    }
}
