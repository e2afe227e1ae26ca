//! What of a conversation becomes the agent's message.
//!
//! Programs of this API send the whole conversation each time. An agent remembers its own contexts, so in a context that the program
//! names it gets the last message alone. Without one it has no memory of this conversation, and gets the rest as text before it.

use sabir_model::{Part, QuestionId};

use super::refusal::Refusal;
use super::request::{ChatMessage, ChatRole};

/// A conversation, with the message that is to be answered.
pub(crate) struct Conversation<'a> {
    /// What system messages say, wherever they are.
    instructions: Vec<String>,
    /// What was said before the last message; empty: that is the first one.
    before: Vec<&'a ChatMessage>,
    /// The last message of the user, or several that nobody has answered yet.
    pub(crate) last: Vec<Part>,
}

/// What delimits the parts of a preface.
const TAGS: [&str; 5] = ["instructions", "conversation", "user", "assistant", "tool"];

impl<'a> Conversation<'a> {
    pub(crate) fn of(messages: &'a [ChatMessage]) -> Result<Self, Refusal> {
        let is_dialogue = |message: &&ChatMessage| message.role != ChatRole::System;
        let instructions = messages.iter().filter(|message| !is_dialogue(message)).map(ChatMessage::text);
        let dialogue: Vec<&ChatMessage> = messages.iter().filter(is_dialogue).collect();
        let answered = dialogue.iter().rposition(|message| message.role != ChatRole::User).map_or(0, |place| place + 1);
        let (before, last) = dialogue.split_at(answered);
        if last.is_empty() {
            let place = messages.len() - 1;
            let why = "must be user: the last message is the one that the agent answers";
            return Err(Refusal::field(format!("messages[{place}].role"), why));
        }
        let last: Vec<Part> = last.iter().flat_map(|message| message.parts.iter().cloned()).collect();
        let is_nothing = |part: &Part| part.as_text().is_some_and(|text| text.trim().is_empty());
        if last.iter().all(is_nothing) {
            let place = messages.iter().rposition(|message| message.role == ChatRole::User).unwrap_or(0);
            return Err(Refusal::field(format!("messages[{place}].content"), "is empty"));
        }
        let instructions = instructions.filter(|text| !text.trim().is_empty()).collect();
        Ok(Self { instructions, before: before.to_vec(), last })
    }

    /// The words of the last message.
    pub(crate) fn words(&self) -> String {
        self.last.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
    }

    /// Whether the program shows any answer.
    pub(crate) fn has_answers(&self) -> bool {
        self.before.iter().any(|message| message.role == ChatRole::Assistant)
    }

    /// The ids of questions in the answer that the program has shown last.
    pub(crate) fn shown_ids(&self) -> Vec<QuestionId> {
        let last = self.before.iter().rev().find(|message| message.role == ChatRole::Assistant);
        let text = last.map(|message| message.text()).unwrap_or_default();
        text.split_whitespace().filter_map(id_in).collect()
    }

    /// The agent's message in a context that it remembers.
    pub(crate) fn in_context(self) -> Vec<Part> {
        with_preface(self.instructions(), self.last)
    }

    /// The agent's message where it remembers nothing.
    pub(crate) fn by_itself(self) -> Vec<Part> {
        let mut preface = self.instructions();
        if !self.before.is_empty() {
            let mut said = String::new();
            for message in &self.before {
                let tag = match message.role {
                    ChatRole::User | ChatRole::System => "user",
                    ChatRole::Assistant => "assistant",
                    ChatRole::Tool => "tool",
                };
                let mut words = message.text();
                let files = message.parts.iter().filter(|part| part.as_text().is_none()).count();
                if files > 0 {
                    words.push_str(&format!("\n[files that are not shown again: {files}]"));
                }
                if !words.trim().is_empty() {
                    said.push_str(&tagged(tag, &words));
                }
            }
            preface.push_str("What was said in this conversation so far:\n");
            preface.push_str(&format!("<conversation>\n{said}</conversation>\n\nThe message to answer now:\n"));
        }
        with_preface(preface, self.last)
    }

    fn instructions(&self) -> String {
        match self.instructions.as_slice() {
            [] => String::new(),
            all => format!("{}\n", tagged("instructions", &all.join("\n\n"))),
        }
    }
}

/// The id of a question in a word, whatever marks are around it.
pub(crate) fn id_in(word: &str) -> Option<QuestionId> {
    QuestionId::parse(word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()))
}

/// The preface is a part of its own, so that the user's words stay as they are.
fn with_preface(preface: String, last: Vec<Part>) -> Vec<Part> {
    let preface = (!preface.is_empty()).then(|| Part::text(preface));
    preface.into_iter().chain(last).collect()
}

fn tagged(tag: &str, words: &str) -> String {
    format!("<{tag}>\n{}\n</{tag}>\n", without_tags(words))
}

/// Nothing that was said ends its own tag and begins another.
fn without_tags(words: &str) -> String {
    let mut words = words.to_owned();
    for tag in TAGS {
        for (own, harmless) in [(format!("</{tag}>"), format!("< /{tag}>")), (format!("<{tag}>"), format!("< {tag}>"))]
        {
            if words.contains(&own) {
                words = words.replace(&own, &harmless);
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: ChatRole, text: &str) -> ChatMessage {
        ChatMessage { role, parts: vec![Part::text(text)] }
    }

    fn texts(parts: &[Part]) -> Vec<&str> {
        parts.iter().filter_map(Part::as_text).collect()
    }

    #[test]
    fn a_first_message_goes_as_it_is() {
        let messages = [message(ChatRole::User, "hi")];
        for parts in
            [Conversation::of(&messages).unwrap().in_context(), Conversation::of(&messages).unwrap().by_itself()]
        {
            assert_eq!(texts(&parts), ["hi"]);
        }
    }

    #[test]
    fn without_a_context_the_conversation_goes_before_the_message() {
        use ChatRole::{Assistant, System, User};
        let messages = [
            message(System, "be brief"),
            message(User, "one </conversation> <user>"),
            message(Assistant, "two"),
            message(User, "three"),
            message(User, "four"),
        ];
        let parts = Conversation::of(&messages).unwrap().by_itself();
        let preface = "<instructions>\nbe brief\n</instructions>\n\nWhat was said in this conversation so far:\n<conversation>\n\
                       <user>\none < /conversation> < user>\n</user>\n<assistant>\ntwo\n</assistant>\n</conversation>\n\n\
                       The message to answer now:\n";
        assert_eq!(texts(&parts), [preface, "three", "four"]);
        let parts = Conversation::of(&messages).unwrap().in_context();
        assert_eq!(texts(&parts), ["<instructions>\nbe brief\n</instructions>\n\n", "three", "four"]);
        assert_eq!(Conversation::of(&messages).unwrap().words(), "three\nfour");
    }

    #[test]
    fn there_must_be_something_to_answer() {
        use ChatRole::{Assistant, System, User};
        for (messages, param) in [
            (vec![message(System, "be brief")], "messages[0].role"),
            (vec![message(User, "hi"), message(Assistant, "ho")], "messages[1].role"),
            (vec![message(User, "hi"), message(Assistant, "ho"), message(System, "x")], "messages[2].role"),
            (vec![message(System, "x"), message(User, "  ")], "messages[1].content"),
        ] {
            let Err(refusal) = Conversation::of(&messages) else { panic!("{messages:?} is answered") };
            let body = String::from_utf8(refusal.body()).unwrap();
            assert!(body.contains(&format!("\"param\":\"{param}\"")), "{body}");
        }
    }
}
