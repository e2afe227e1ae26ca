//! The message as the remote agent gets it: with its ids in place of ours.
//!
//! Message ids of callers stay here. Two callers may choose the same one, and a server that takes equal ids for one message
//! would answer one of them with the task of the other.

use std::borrow::Cow;

use sabir_engine::{AgentError, Turn};
use sabir_model::{
    Birth, Content, IdempotencyKey, IncomingMessage, Json, MessageId, Part, QUESTION_ID, QuestionId, Send, TaskId,
};
use sabir_outbound::sha256;

use super::memory::{ContextMemory, RemoteTask};

/// A message that comes from this server has no dialect of its own.
const BORN_HERE: Birth = Birth(0);

/// The id of the message of this turn at the remote agent: the same for each repetition of the message, and no other
/// message of any caller has it.
pub(super) fn message_id(turn: &Turn) -> MessageId {
    MessageId::parse(key_text(turn)).expect("letters and digits are an id")
}

/// `remote` is the remote task before, `id` the `message_id` of this turn.
pub(super) async fn send(turn: &Turn, id: &MessageId, remote: Option<&RemoteTask>) -> Result<Send, AgentError> {
    let context = match remote {
        Some(remote) => Some(remote.context.clone()),
        None => turn.memory().await?.as_deref().and_then(ContextMemory::read).map(|memory| memory.context),
    };
    let (waiting, over) = match remote {
        Some(remote) if remote.waits.is_some() => (Some(remote.id.clone()), None),
        remote => (None, remote.map(|remote| remote.id.clone())),
    };
    let message = turn.message();
    let parts = message.parts.iter().map(|part| without_question_id(part, turn.task()).into_owned()).collect();
    let message = IncomingMessage {
        task: waiting,
        context,
        references: over.into_iter().collect(),
        extensions: message.extensions.clone(),
        metadata: message.metadata.clone(),
        ..IncomingMessage::new(Some(id.clone()), message.role, parts)
    };
    Ok(Send {
        metadata: turn.metadata().cloned(),
        accepted_output: turn.accepted_output().to_vec(),
        extensions: turn.extensions().to_vec(),
        trace: turn.trace().cloned(),
        idempotency: Some(IdempotencyKey::parse(id.as_str()).expect("letters and digits are a key")),
        ..Send::new(message, BORN_HERE)
    })
}

/// Answers name the question by the id that this server gave it. To a remote Sabir that is a question of another task.
fn without_question_id<'p>(part: &'p Part, task: &TaskId) -> Cow<'p, Part> {
    let is_ours = |data: &Json| {
        let named = data.text_of(QUESTION_ID).and_then(|id| QuestionId::parse(&id));
        named.is_some_and(|id| id.is_of(task))
    };
    match &part.content {
        Content::Data(data) if data.is_object() && is_ours(data) => {
            let content = Content::Data(data.without_member(QUESTION_ID));
            Cow::Owned(Part { content, ..part.clone() })
        }
        _ => Cow::Borrowed(part),
    }
}

fn key_text(turn: &Turn) -> String {
    let number = turn.number().unwrap_or_default().to_string();
    // Clients may use one id for several messages, but they answer each question once.
    let answers = turn.message().answers.map(|event| event.to_string()).unwrap_or_default();
    let (owner, message) = (turn.owner().as_key(), turn.message().id.as_str());
    let parts = [owner, turn.agent().as_str(), turn.task().as_str(), message, &number, &answers];
    let mut text = Vec::new();
    for part in parts {
        // The length keeps the parts apart.
        text.extend_from_slice(format!("{}:{part}", part.len()).as_bytes());
    }
    let digest: String = sha256(&text)[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sabir-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_do_not_name_questions_of_this_server() {
        let task = TaskId::parse("t").unwrap();
        let ours = QuestionId::issue(&task, 3).to_string();
        let theirs = QuestionId::issue(&TaskId::parse("u").unwrap(), 3).to_string();
        for (text, expected) in [
            (format!(r#"{{"approved":true,"questionId":"{ours}"}}"#), r#"{"approved":true}"#.to_owned()),
            (format!(r#"{{"questionId":"{theirs}"}}"#), format!(r#"{{"questionId":"{theirs}"}}"#)),
            (r#"{"questionId":"mine","n":1e3}"#.to_owned(), r#"{"questionId":"mine","n":1e3}"#.to_owned()),
            ("[1,2]".to_owned(), "[1,2]".to_owned()),
        ] {
            let part = Part::from(Content::Data(Json::parse(text.clone()).unwrap()));
            let Content::Data(data) = &without_question_id(&part, &task).content else { panic!() };
            assert_eq!(data.as_str(), expected, "{text}");
        }
    }
}
