//! Whether a message is nothing but a yes or a no.
//!
//! Such a message means something only while its question is open. Sent to a task that asks nothing, it must neither
//! start a turn nor wait for a later question, which its sender has not seen.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::{Content, Message};

/// Words that grant what was asked for.
pub const YES: [&str; 14] = [
    "y", "yes", "ok", "okay", "allow", "approve", "approved", "accept", "true", "sure", "go", "go ahead", "resume",
    "continue",
];
/// Words that refuse it.
pub const NO: [&str; 12] =
    ["n", "no", "deny", "denied", "reject", "rejected", "decline", "refuse", "false", "cancel", "stop", "don't"];

/// An approval is small. Longer data is content, and is not parsed to find out.
const LONGEST: usize = 16 * 1024;

impl Message {
    /// Says yes or no and nothing else: a lone word, a data part in the shape of an approval, or both.
    pub fn is_only_approval(&self) -> bool {
        let mut approves = false;
        for part in &self.parts {
            match &part.content {
                Content::Text(text) if text.trim().is_empty() => {}
                Content::Text(text) if is_verdict(text) => approves = true,
                Content::Data(data) if data.as_str().len() <= LONGEST && is_approval(data.as_str()) => approves = true,
                Content::Text(_) | Content::Data(_) | Content::Bytes(_) | Content::Url(_) => return false,
            }
        }
        approves
    }
}

/// A lone yes or no, however it is written.
fn is_verdict(text: &str) -> bool {
    let text = text.trim();
    if text.len() > 16 {
        return false;
    }
    let word = text.trim_end_matches(['.', '!']).to_lowercase();
    YES.contains(&word.as_str()) || NO.contains(&word.as_str())
}

fn is_approval(json: &str) -> bool {
    if matches!(json, "true" | "false") {
        return true;
    }
    if let Ok(text) = serde_json::from_str::<Cow<'_, str>>(json) {
        return is_verdict(&text);
    }
    let Ok(members) = serde_json::from_str::<HashMap<Cow<'_, str>, &RawValue>>(json) else { return false };
    let has = |name: &str, fits: fn(&str) -> bool| members.get(name).is_some_and(|value| fits(value.get()));
    let is_bool = |json: &str| matches!(json, "true" | "false");
    let is_text = |json: &str| json.starts_with('"');
    ["approved", "approve", "allow"].iter().any(|name| has(name, is_bool))
        || ["decision_id", "optionId", "questionId"].iter().any(|name| has(name, is_text))
        || ["decision", "answer", "choice", "option", "action", "result"].iter().any(|name| has(name, is_approval))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, MessageId, Part, Role};

    fn data(json: &str) -> Part {
        Content::Data(Json::parse(json).unwrap()).into()
    }

    #[test]
    fn what_is_only_an_approval() {
        let text = |text: &str| vec![Part::text(text)];
        for (parts, expected) in [
            (text("yes"), true),
            (text(" No! "), true),
            (text("go ahead"), true),
            (text("yes, and deploy it"), false),
            (text("which?"), false),
            (text(""), false),
            (vec![], false),
            (vec![data(r#"{"approved":false}"#)], true),
            (vec![data("true")], true),
            (vec![data(r#""deny""#)], true),
            (vec![data(r#"{"target_id":"t","decision_id":"d","action":"resume","result":{"approved":true}}"#)], true),
            (vec![data(r#"{"result":{"approved":true}}"#)], true),
            (vec![data(r#"{"action":"create_user","result":{"name":"x"}}"#)], false),
            (vec![data(r#"{"approved":"by the board"}"#)], false),
            (vec![data("[true]")], false),
            (vec![data("5")], false),
            (vec![Part::text("yes"), data(r#"{"approved":true}"#)], true),
            (vec![Part::text("use this"), data(r#"{"approved":true}"#)], false),
            (vec![Part::text("yes"), Content::Url("file:///x".into()).into()], false),
        ] {
            let message = Message::new(MessageId::parse("m").unwrap(), Role::User, parts);
            assert_eq!(message.is_only_approval(), expected, "{:?}", message.parts);
        }
    }

    #[test]
    fn deep_and_long_data_is_content() {
        let deep = format!("{}true{}", r#"{"result":"#.repeat(100), "}".repeat(100));
        for parts in [vec![data(&deep)], vec![data(&format!(r#"{{"approved":true,"x":"{}"}}"#, "x".repeat(LONGEST)))]] {
            let is_long =
                parts.iter().any(|part| matches!(&part.content, Content::Data(data) if data.as_str().len() > LONGEST));
            let message = Message::new(MessageId::parse("m").unwrap(), Role::User, parts);
            assert_eq!(message.is_only_approval(), !is_long);
        }
    }
}
