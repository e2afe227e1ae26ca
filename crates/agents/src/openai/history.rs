//! What a context remembers: the conversation, bounded.
//!
//! It is cut where a message of the caller begins, so that no result of a tool is left without its call. Images are
//! remembered by a note alone; they would push out everything else.

use serde::{Deserialize, Serialize};

use super::chat::{ChatContent, ChatMessage, ChatPart, ChatRole};
use super::settings::HistoryLimits;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct History {
    /// Tells it from what other kinds of agents remember.
    chat: Vec<ChatMessage>,
}

impl History {
    /// Text that cannot be read is from another kind of agent, which had this id before.
    pub(super) fn read(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// `None`: nothing is remembered.
    pub(super) fn write(&self) -> Option<String> {
        (!self.chat.is_empty()).then(|| serde_json::to_string(self).expect("texts are always JSON"))
    }

    pub(super) fn messages(&self) -> &[ChatMessage] {
        &self.chat
    }

    /// Adds what was said in a turn: the caller's message, calls of tools and their results, the answer.
    pub(super) fn add(&mut self, turn: Vec<ChatMessage>, limits: HistoryLimits) {
        self.chat.extend(turn.into_iter().map(without_images));
        self.limit(limits);
    }

    /// The settings may have changed since it was written.
    pub(super) fn limit(&mut self, limits: HistoryLimits) {
        while self.chat.len() > limits.messages || self.bytes() > limits.bytes {
            let is_user = |message: &ChatMessage| message.role == ChatRole::User;
            match self.chat.iter().skip(1).position(is_user) {
                Some(next) => drop(self.chat.drain(..=next)),
                // One turn alone is too much: what tools said is left out first.
                None if self.chat.iter().any(is_of_tool) => self.chat.retain(|message| !is_of_tool(message)),
                None => self.chat.clear(),
            }
        }
    }

    fn bytes(&self) -> usize {
        self.chat.iter().map(bytes).sum()
    }
}

fn is_of_tool(message: &ChatMessage) -> bool {
    message.role == ChatRole::Tool || !message.tool_calls.is_empty()
}

fn bytes(message: &ChatMessage) -> usize {
    let content = match &message.content {
        ChatContent::Text(text) => text.len(),
        ChatContent::Parts(parts) => parts
            .iter()
            .map(|part| match part {
                ChatPart::Text { text } => text.len(),
                ChatPart::ImageUrl { image_url } => image_url.url.len(),
            })
            .sum(),
    };
    let calls = message.tool_calls.iter().map(|call| call.function.name.len() + call.function.arguments.len());
    content + calls.sum::<usize>()
}

fn without_images(message: ChatMessage) -> ChatMessage {
    let ChatContent::Parts(parts) = message.content else { return message };
    let texts = parts.into_iter().map(|part| match part {
        ChatPart::Text { text } => text,
        ChatPart::ImageUrl { .. } => "[an image, which is no longer here]".to_owned(),
    });
    ChatMessage { content: ChatContent::Text(texts.collect::<Vec<_>>().join("\n\n")), ..message }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::openai::chat::{CalledFunction, ChatToolCall, Function, ImageUrl};

    const WIDE: HistoryLimits = HistoryLimits { messages: 100, bytes: 1000 };

    fn user(text: &str) -> ChatMessage {
        ChatMessage::text(ChatRole::User, text)
    }

    fn answer(text: &str) -> ChatMessage {
        ChatMessage::text(ChatRole::Assistant, text)
    }

    fn call(id: &str) -> ChatMessage {
        let function = CalledFunction { name: "t".into(), arguments: "{}".into() };
        let call = ChatToolCall { id: id.into(), kind: Function::Function, function };
        ChatMessage { tool_calls: vec![call], ..answer("") }
    }

    fn say(history: &History) -> String {
        let each = history.chat.iter().map(|message| match &message.content {
            ChatContent::Text(text) if message.tool_calls.is_empty() => text.clone(),
            _ => "call".to_owned(),
        });
        each.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_oldest_turns_are_forgotten_whole() {
        let turns = || {
            vec![
                vec![user("a"), call("1"), ChatMessage::tool_result("1", "one".into()), answer("b")],
                vec![user("c"), answer("d")],
                vec![user("e"), answer("f")],
            ]
        };
        for (messages, bytes, expected) in [
            (100, 1000, "a call one b c d e f"),
            (7, 1000, "c d e f"),
            (4, 1000, "c d e f"),
            (3, 1000, "e f"),
            (2, 1000, "e f"),
            (1, 1000, ""),
            (0, 1000, ""),
            (100, 4, "c d e f"),
            (100, 3, "e f"),
            (100, 1, ""),
        ] {
            let mut history = History::default();
            for turn in turns() {
                history.add(turn, HistoryLimits { messages, bytes });
            }
            assert_eq!(say(&history), expected, "{messages} {bytes}");
        }
        let mut history = History::default();
        history.add(turns().remove(0), HistoryLimits { messages: 3, bytes: 1000 });
        assert_eq!(say(&history), "a b", "one turn alone loses what tools said");
    }

    #[test]
    fn images_are_remembered_by_a_note() {
        let image = ChatPart::ImageUrl { image_url: ImageUrl { url: "data:image/png;base64,aGk=".into() } };
        let parts = vec![ChatPart::Text { text: "look".into() }, image];
        let mut history = History::default();
        history.add(vec![ChatMessage::user(ChatContent::Parts(parts))], WIDE);
        assert_eq!(say(&history), "look\n\n[an image, which is no longer here]");
    }

    #[test]
    fn what_is_written_is_read_again_and_anything_else_is_nothing() {
        let mut history = History::default();
        assert_eq!(history.write(), None);
        history.add(vec![user("a"), call("1"), ChatMessage::tool_result("1", "r".into()), answer("b")], WIDE);
        assert_eq!(History::read(history.write().as_deref()), history);
        for text in [None, Some(""), Some("session-1"), Some(r#"{"memories":[]}"#), Some(r#"{"chat":1}"#)] {
            assert_eq!(History::read(text), History::default(), "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_history_keeps_to_its_limits_and_begins_with_the_caller(
            turns in proptest::collection::vec((0usize..40, 0usize..3), 0..12), messages in 0usize..12, bytes in 0usize..120,
        ) {
            let limits = HistoryLimits { messages, bytes };
            let mut history = History::default();
            for (length, calls) in turns {
                let mut turn = vec![user(&"x".repeat(length))];
                for _ in 0..calls {
                    turn.extend([call("1"), ChatMessage::tool_result("1", "r".into())]);
                }
                turn.push(answer("y"));
                history.add(turn, limits);
                prop_assert!(history.chat.len() <= messages && history.bytes() <= bytes);
                prop_assert!(history.chat.first().is_none_or(|first| first.role == ChatRole::User));
            }
        }
    }
}
