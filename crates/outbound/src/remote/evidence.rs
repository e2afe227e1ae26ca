//! Whether a task that waited has got a message, by what it shows now.
//!
//! A task that no longer waits has got it. One that waits shows it in its history, where messages keep their ids, or by the
//! time of its question: a new question comes after an answer. What shows neither leaves it open.

use sabir_model::{MessageId, Task, Timestamp};

/// What was known of a task when it asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// When it asked. `None`: it did not say.
    pub asked: Option<Timestamp>,
    /// The message that it had last.
    pub last_message: MessageId,
}

/// Whether messages have ids in the version of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageIds {
    Kept,
    /// 0.1 has none.
    None,
}

/// `None`: nobody can say.
pub(super) fn has_message(task: &Task, message: &MessageId, before: &OpenQuestion, ids: MessageIds) -> Option<bool> {
    if !task.status.state.is_waiting() {
        return Some(true);
    }
    // Clients that use one id for all their messages say nothing with it.
    let has_ids = ids == MessageIds::Kept && *message != before.last_message && !task.history.is_empty();
    let is_in_history = has_ids && task.history.iter().any(|known| known.id == *message);
    let time = Some(task.status.time).filter(|time| *time != Timestamp::default());
    let is_new_question = time.zip(before.asked).map(|(now, then)| now != then);
    match (is_in_history, is_new_question) {
        (true, _) | (_, Some(true)) => Some(true),
        (false, Some(false)) => Some(false),
        (false, None) => has_ids.then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use sabir_model::{AgentId, Birth, ContextId, Message, Owner, Part, Role, State, Status, TaskId};

    use super::*;

    fn id(text: &str) -> MessageId {
        MessageId::parse(text).unwrap()
    }

    fn task(state: State, asked: i64, history: &[&str]) -> Task {
        let message = |name: &&str| Message::new(id(name), Role::User, vec![Part::text("x")]).into();
        Task {
            id: TaskId::parse("t").unwrap(),
            context: ContextId::parse("c").unwrap(),
            agent: AgentId::parse("remote").unwrap(),
            owner: Owner::anonymous(),
            born: Birth(10),
            created: Timestamp::default(),
            status: Status { state, message: None, time: Timestamp::from_millis(asked) },
            turn_over: true,
            artifacts: Vec::new(),
            open: Vec::new(),
            history: history.iter().map(message).collect(),
            metadata: None,
            usage: None,
            seq: 0,
        }
    }

    #[test]
    fn what_a_task_shows_of_a_message() {
        use MessageIds::{Kept, None as NoIds};
        use State::{Completed, InputRequired, Working};
        // The question was asked at 5, after the message `first`; now there may be an answer.
        for (state, asked, history, answer, ids, expected) in [
            (Working, 5, &[][..], "answer", NoIds, Some(true)),
            (Completed, 0, &[], "answer", Kept, Some(true)),
            (InputRequired, 5, &["first"], "answer", Kept, Some(false)),
            (InputRequired, 5, &["first", "answer"], "answer", Kept, Some(true)),
            // It asks again.
            (InputRequired, 9, &["first"], "answer", Kept, Some(true)),
            (InputRequired, 9, &[], "answer", NoIds, Some(true)),
            (InputRequired, 5, &[], "answer", NoIds, Some(false)),
            // Without times.
            (InputRequired, 0, &["first"], "answer", Kept, Some(false)),
            (InputRequired, 0, &["first", "answer"], "answer", Kept, Some(true)),
            (InputRequired, 0, &[], "answer", Kept, None),
            (InputRequired, 0, &["unnamed"], "answer", NoIds, None),
            // The caller has one id for all.
            (InputRequired, 5, &["first"], "first", Kept, Some(false)),
            (InputRequired, 0, &["first"], "first", Kept, None),
        ] {
            let before = OpenQuestion { asked: Some(Timestamp::from_millis(5)), last_message: id("first") };
            let actual = has_message(&task(state, asked, history), &id(answer), &before, ids);
            assert_eq!(actual, expected, "{state:?} at {asked}, {history:?}, {answer}");
        }
    }
}
