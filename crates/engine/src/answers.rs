//! Several answers in one request; each of them is accepted or refused on its own.
//!
//! A task has one open question at a time. Answers that name this question are delivered. If there is none, the answers
//! that name no question are delivered together, so that a no among them wins. All other answers are refused, and the
//! response says so for each.

use std::sync::Arc;

use sabir_model::{Error, Message, Part, QuestionId, Task};

use crate::engine::Engine;
use crate::topic::TopicKey;

/// What one of several answers refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerSubject {
    OpenQuestion,
    /// It names an earlier question, or a question of another task.
    ClosedQuestion,
    /// It names no question.
    Unnamed,
}

impl Engine {
    /// Combines the answers to the open question into one message and binds it to this question: if the question closes
    /// in the meantime, the message must not answer the next one. Returns the result of each answer.
    pub(crate) async fn sort_answers(
        &self,
        task: Option<&TopicKey>,
        send: &sabir_model::Send,
        message: &mut Arc<Message>,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let task = match (task, &message.task) {
            (Some(key), _) => self.task_of(key).await?,
            (None, Some(id)) => return Err(Error::TaskNotFound(id.clone())),
            (None, None) => return Err(Error::invalid("message.taskId", "is required")),
        };
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
