//! What is said: messages and their parts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Base64, ContextId, Json, MessageId, RequestContext, Seq, TaskId};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The caller.
    User,
    /// The agent.
    Agent,
}

/// Every message has an id, except one that is on its way in: see [`IncomingMessage`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message<Id = MessageId> {
    /// Given by its sender, or made by the server.
    pub id: Id,
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
    /// The task that it is for, or comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The conversation that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextId>,
    /// Other tasks that it speaks of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<TaskId>,
    /// Extensions that say something in its metadata.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// What else its sender says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// Metadata of the request that carried the message to a task which existed already. The agent gets it; no dialect
    /// spells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_metadata: Option<Json>,
    /// What else is known of the request that carried the message. The agent gets it; no dialect spells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<RequestContext>>,
    /// The event that asked the question which this message answers. The engine notes it; no dialect spells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Seq>,
}

/// A message as a client sends it. Clients may leave the id out; then the engine makes one.
pub type IncomingMessage = Message<Option<MessageId>>;

impl<Id> Message<Id> {
    /// With nothing but words, of no task yet.
    pub fn new(id: Id, role: Role, parts: Vec<Part>) -> Self {
        Self {
            id,
            role,
            parts,
            task: None,
            context: None,
            references: Vec::new(),
            extensions: Vec::new(),
            metadata: None,
            request_metadata: None,
            request: None,
            answers: None,
        }
    }

    /// The same message with another id.
    fn map_id<Other>(self, map: impl FnOnce(Id) -> Other) -> Message<Other> {
        let Message {
            id,
            role,
            parts,
            task,
            context,
            references,
            extensions,
            metadata,
            request_metadata,
            request,
            answers,
        } = self;
        let id = map(id);
        Message { id, role, parts, task, context, references, extensions, metadata, request_metadata, request, answers }
    }
}

impl IncomingMessage {
    /// The message with its own id, or with one that is made for it.
    pub fn or_with_id(self, make_id: impl FnOnce() -> MessageId) -> Message {
        self.map_id(|id| id.unwrap_or_else(make_id))
    }
}

impl From<Message> for IncomingMessage {
    fn from(message: Message) -> Self {
        message.map_id(Some)
    }
}

impl Message {
    /// The text parts, joined with one space.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match &part.content {
                Content::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join(" ")
    }
}

/// A piece of a message or an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What it holds.
    pub content: Content,
    /// Of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Of what it holds, such as `text/markdown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

/// What a part holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Words.
    Text(String),
    /// The bytes of a file.
    Bytes(Base64),
    /// Where a file is.
    Url(String),
    /// JSON of any kind.
    Data(Json),
}

impl Part {
    /// A part that is words.
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text(text.into()).into()
    }

    /// A part that is a file.
    pub fn file(name: impl Into<String>, media_type: impl Into<String>, bytes: &[u8]) -> Self {
        let content = Content::Bytes(Base64::encode(bytes));
        Self { content, filename: Some(name.into()), media_type: Some(media_type.into()), metadata: None }
    }

    /// A part that says where a file is.
    pub fn url(url: impl Into<String>) -> Self {
        Content::Url(url.into()).into()
    }

    /// A part that is JSON.
    pub fn data(json: Json) -> Self {
        Content::Data(json).into()
    }

    /// The words, if it is words.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Text with nothing beside it: two such neighbours can become one.
    pub(crate) fn is_plain_text(&self) -> bool {
        matches!(self.content, Content::Text(_))
            && self.filename.is_none()
            && self.media_type.is_none()
            && self.metadata.is_none()
    }
}

impl From<Content> for Part {
    fn from(content: Content) -> Self {
        Self { content, filename: None, media_type: None, metadata: None }
    }
}
