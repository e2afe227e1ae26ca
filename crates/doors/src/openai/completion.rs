//! What a program reads: models, completions and the chunks of a stream.

use std::time::{SystemTime, UNIX_EPOCH};

use sabir_engine::Hosted;
use sabir_model::Usage;
use serde::Serialize;

use super::request::UsageChunk;
use crate::words::one_line;

/// What a list shows of what an agent says of itself.
const LONGEST_NAME: usize = 100;
const LONGEST_DESCRIPTION: usize = 1000;

/// An agent as a model.
#[derive(Serialize)]
pub(crate) struct Model {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// For people, as some programs show it.
    name: String,
    description: String,
}

impl Model {
    /// `created` is what the API asks for and an agent has not.
    pub(crate) fn of(hosted: &Hosted, created: u64) -> Self {
        let about = hosted.about();
        Self {
            id: hosted.id.to_string(),
            object: "model",
            created,
            owned_by: "sabir",
            name: if about.name.is_empty() { hosted.id.to_string() } else { one_line(&about.name, LONGEST_NAME) },
            description: one_line(&about.description, LONGEST_DESCRIPTION),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct ModelList {
    object: &'static str,
    data: Vec<Model>,
}

impl ModelList {
    pub(crate) fn new(data: Vec<Model>) -> Self {
        Self { object: "list", data }
    }
}

/// What all parts of one answer have in common.
#[derive(Debug, Clone)]
pub(crate) struct Completion {
    id: String,
    model: String,
    created: u64,
}

#[derive(Serialize)]
struct Whole<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [WholeChoice<'a>; 1],
    usage: UsageData,
    system_fingerprint: (),
}

#[derive(Serialize)]
struct WholeChoice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: (),
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
    refusal: (),
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: &'a [ChunkChoice<'a>],
    /// `null` in all chunks but the last, and nowhere if it is not wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<UsageData>>,
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: (),
    finish_reason: Option<&'static str>,
}

#[derive(Serialize, Default)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

#[derive(Serialize)]
struct UsageData {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

/// Something that a stream says.
pub(crate) enum ChunkContent<'a> {
    /// Comes first.
    Role,
    Text(&'a str),
    /// There is no more text.
    Finish,
    /// Behind the end, for those who want it.
    Usage(Option<Usage>),
}

impl Completion {
    pub(crate) fn new(id: String, model: String) -> Self {
        Self { id, model, created: now() }
    }

    pub(crate) fn whole(&self, content: &str, usage: Option<Usage>) -> Vec<u8> {
        let message = Message { role: "assistant", content, refusal: () };
        let choice = WholeChoice { index: 0, message, logprobs: (), finish_reason: "stop" };
        bytes_of(&Whole {
            id: &self.id,
            object: "chat.completion",
            created: self.created,
            model: &self.model,
            choices: [choice],
            usage: usage_data(usage),
            system_fingerprint: (),
        })
    }

    pub(crate) fn chunk(&self, content: &ChunkContent<'_>, usage: UsageChunk) -> Vec<u8> {
        let (delta, finish_reason) = match content {
            ChunkContent::Role => (Some(Delta { role: Some("assistant"), content: Some("") }), None),
            ChunkContent::Text(text) => (Some(Delta { role: None, content: Some(text) }), None),
            ChunkContent::Finish => (Some(Delta::default()), Some("stop")),
            ChunkContent::Usage(_) => (None, None),
        };
        let choice = delta.map(|delta| ChunkChoice { index: 0, delta, logprobs: (), finish_reason });
        let told = match content {
            ChunkContent::Usage(usage) => Some(usage_data(*usage)),
            _ => None,
        };
        bytes_of(&Chunk {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.created,
            model: &self.model,
            choices: choice.as_slice(),
            usage: (usage == UsageChunk::Wanted).then_some(told),
        })
    }
}

/// The end of a stream that has gone well.
pub(crate) const DONE: &[u8] = b"[DONE]";

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn usage_data(usage: Option<Usage>) -> UsageData {
    let Usage { input_tokens, output_tokens } = usage.unwrap_or_default();
    UsageData {
        prompt_tokens: input_tokens,
        completion_tokens: output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
    }
}

pub(crate) fn bytes_of(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("texts and numbers can be written as JSON")
}
