//! What a program asks for in `POST /v1/chat/completions`.
//!
//! Settings that steer a model (`temperature`, `max_tokens`, `response_format` and many more) say nothing to an agent and are ignored.
//! What would change the meaning of the answer, and is not done, is refused.

use sabir_model::Part;

use super::fields::{Fields, items};
use super::parts;
use super::refusal::Refusal;

/// More messages are no conversation.
const MOST_MESSAGES: usize = 20_000;

/// A request that can be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChatRequest {
    /// As the program names it.
    pub(crate) model: String,
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) form: ReplyForm,
}

/// How the answer is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    /// Once, when it is complete.
    Whole,
    /// As it grows.
    Stream(UsageChunk),
}

/// Whether the last chunk of a stream says what the answer has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageChunk {
    Wanted,
    Unwanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChatMessage {
    pub(crate) role: ChatRole,
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatRole {
    /// Or `developer`, which is the same for newer models.
    System,
    User,
    Assistant,
    /// What a tool of the program has returned.
    Tool,
}

impl ChatMessage {
    /// Its words, one part per line.
    pub(crate) fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n")
    }
}

impl ChatRequest {
    pub(crate) fn read(body: &[u8]) -> Result<Self, Refusal> {
        let fields = Fields::of_body(body)?;
        let model = fields.required_text("model")?;
        if fields.optional::<u64>("n", "a whole number")?.is_some_and(|n| n != 1) {
            return Err(Refusal::field("n", "must be 1; an agent gives one answer"));
        }
        for (name, word) in [("tool_choice", "required"), ("function_call", "a function")] {
            let is_free = |raw: &str| matches!(raw, r#""none""# | r#""auto""#);
            if fields.raw(name)?.is_some_and(|raw| !is_free(raw.get())) {
                let why = format!("is {word}, but an agent uses its own tools; send \"auto\" or leave it out");
                return Err(Refusal::field(name, why));
            }
        }
        let form = match fields.optional::<bool>("stream", "true or false")? {
            Some(true) => {
                let options = fields.object("stream_options")?;
                let usage = options.map(|options| options.optional::<bool>("include_usage", "true or false"));
                let is_wanted = usage.transpose()?.flatten().unwrap_or(false);
                ReplyForm::Stream(if is_wanted { UsageChunk::Wanted } else { UsageChunk::Unwanted })
            }
            Some(false) | None => ReplyForm::Whole,
        };
        let list = fields.raw("messages")?.ok_or_else(|| fields.missing("messages"))?;
        let mut messages = Vec::new();
        for (place, item) in items("messages", list, MOST_MESSAGES)?.into_iter().enumerate() {
            let path = format!("messages[{place}]");
            let Some(fields) = Fields::of(path.clone(), item) else {
                return Err(Refusal::field(path, "must be an object"));
            };
            messages.push(message(&fields)?);
        }
        if messages.is_empty() {
            return Err(Refusal::field("messages", "is empty"));
        }
        Ok(Self { model, messages, form })
    }
}

fn message(fields: &Fields<'_>) -> Result<ChatMessage, Refusal> {
    let role = match fields.required_text("role")?.as_str() {
        "system" | "developer" => ChatRole::System,
        "user" => ChatRole::User,
        "assistant" => ChatRole::Assistant,
        "tool" | "function" => ChatRole::Tool,
        _ => {
            let why = "must be system, developer, user, assistant or tool";
            return Err(Refusal::field(fields.path("role"), why));
        }
    };
    let parts = match (fields.raw("content")?, role) {
        (Some(raw), _) => parts::read(&fields.path("content"), raw)?,
        // It only called tools.
        (None, ChatRole::Assistant) => Vec::new(),
        (None, _) => return Err(fields.missing("content")),
    };
    Ok(ChatMessage { role, parts })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(body: &str) -> String {
        match ChatRequest::read(body.as_bytes()) {
            Ok(request) => format!("{request:?}"),
            Err(refusal) => String::from_utf8(refusal.body()).unwrap(),
        }
    }

    #[test]
    fn what_cannot_be_served_is_refused_by_its_field() {
        let hi = r#""messages":[{"role":"user","content":"hi"}]"#;
        for (body, expected) in [
            ("", r#""code":"invalid_json""#.to_owned()),
            ("{", r#""code":"invalid_json""#.to_owned()),
            ("[]", r#""code":"invalid_json""#.to_owned()),
            ("{}", r#""param":"model""#.to_owned()),
            (r#"{"model":7}"#, r#""param":"model""#.to_owned()),
            (r#"{"model":"a","model":"b"}"#, r#""param":"model""#.to_owned()),
            (r#"{"model":"a"}"#, r#""param":"messages""#.to_owned()),
            (r#"{"model":"a","messages":[]}"#, r#""param":"messages""#.to_owned()),
            (r#"{"model":"a","messages":{}}"#, r#""param":"messages""#.to_owned()),
            (r#"{"model":"a","messages":[7]}"#, r#""param":"messages[0]""#.to_owned()),
            (r#"{"model":"a","messages":[{}]}"#, r#""param":"messages[0].role""#.to_owned()),
            (r#"{"model":"a","messages":[{"role":"king","content":""}]}"#, r#""param":"messages[0].role""#.to_owned()),
            (r#"{"model":"a","messages":[{"role":"user"}]}"#, r#""param":"messages[0].content""#.to_owned()),
            (&format!(r#"{{"model":"a","n":2,{hi}}}"#), r#""param":"n""#.to_owned()),
            (&format!(r#"{{"model":"a","n":"1",{hi}}}"#), r#""param":"n""#.to_owned()),
            (&format!(r#"{{"model":"a","stream":"yes",{hi}}}"#), r#""param":"stream""#.to_owned()),
            (
                &format!(r#"{{"model":"a","stream":true,"stream_options":7,{hi}}}"#),
                r#""param":"stream_options""#.to_owned(),
            ),
            (
                &format!(r#"{{"model":"a","stream":true,"stream_options":{{"include_usage":7}},{hi}}}"#),
                r#""param":"stream_options.include_usage""#.to_owned(),
            ),
            (&format!(r#"{{"model":"a","tool_choice":"required",{hi}}}"#), r#""param":"tool_choice""#.to_owned()),
            (
                &format!(r#"{{"model":"a","tool_choice":{{"type":"function"}},{hi}}}"#),
                r#""param":"tool_choice""#.to_owned(),
            ),
            (
                &format!(r#"{{"model":"a","function_call":{{"name":"f"}},{hi}}}"#),
                r#""param":"function_call""#.to_owned(),
            ),
        ] {
            let said = refused(body);
            assert!(said.contains(&expected), "{body}: {said}");
        }
        let deep = format!(r#"{{"model":"a","tools":{}{},{hi}}}"#, "[".repeat(1000), "]".repeat(1000));
        assert!(refused(&deep).contains("nested deeper"));
    }

    #[test]
    fn settings_of_models_are_ignored() {
        let body = r#"{"model":"a","n":1,"temperature":"hot","tools":[{"x":1}],"tool_choice":"auto","response_format":{},"user":7,
            "stream":true,"stream_options":{"include_usage":true},
            "messages":[{"role":"developer","content":"be brief"},{"role":"assistant","content":null,"tool_calls":[]},
                        {"role":"user","name":"x","content":[{"type":"text","text":"hi"}]}]}"#;
        let request = ChatRequest::read(body.as_bytes()).unwrap();
        assert_eq!(request.form, ReplyForm::Stream(UsageChunk::Wanted));
        let roles: Vec<ChatRole> = request.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [ChatRole::System, ChatRole::Assistant, ChatRole::User]);
        assert_eq!(request.messages[2].text(), "hi");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ChatRequest::read(&body);
        }
    }
}
