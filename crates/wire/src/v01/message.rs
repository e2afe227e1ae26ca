//! Messages of 0.1: a role and parts. They have no id; task and session are members of the request.

use sabir_model as model;
use sabir_model::{IncomingMessage, MessageId};
use serde::{Deserialize, Serialize};

use super::part::Part;
use crate::v03::{read_role, role_name};
use crate::wire_types::{PartList, RawJson, Text, Violations, object};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    role: Option<Text<'a>>,
    #[serde(default)]
    parts: PartList<'a, Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

object! { both Message<'a> }

impl<'a, Id> From<&'a model::Message<Id>> for Message<'a> {
    fn from(message: &'a model::Message<Id>) -> Self {
        Message {
            role: Some(role_name(message.role).into()),
            parts: (&message.parts).into(),
            metadata: message.metadata.as_ref().map(RawJson::from),
        }
    }
}

/// The id of a message in a peer's answer, until whoever stores the answer makes a real one.
const PLACEHOLDER_ID: &str = "unnamed";

impl TryFrom<Message<'_>> for model::Message {
    type Error = Violations;

    fn try_from(message: Message<'_>) -> Result<Self, Violations> {
        let message = IncomingMessage::try_from(message)?;
        Ok(message.or_with_id(|| MessageId::parse(PLACEHOLDER_ID).expect("a short word is an id")))
    }
}

impl TryFrom<Message<'_>> for IncomingMessage {
    type Error = Violations;

    fn try_from(message: Message<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let role = violations.check_required("role", read_role(message.role));
        let parts = message.parts.read_required("parts", &mut violations);
        let metadata = violations.object("metadata", message.metadata);
        violations.finish(role.map(|role| IncomingMessage { metadata, ..IncomingMessage::new(None, role, parts) }))
    }
}
