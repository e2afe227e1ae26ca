//! Messages as 0.1 spells them: a role and parts. They have no id, and what they belong to is said beside them.

use sabir_model as model;
use sabir_model::MessageId;
use serde::{Deserialize, Serialize};

use super::part::Part;
use crate::lenient::UNNAMED;
use crate::spelling::{Carried, Parts, Problems, Text, object};
use crate::v03::{read_role, role_name};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    role: Option<Text<'a>>,
    #[serde(default)]
    parts: Parts<'a, Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Carried<'a>>,
}

object! { both Message<'a> }

impl<'a> From<&'a model::Message> for Message<'a> {
    fn from(message: &'a model::Message) -> Self {
        Message {
            role: Some(role_name(message.role).into()),
            parts: (&message.parts).into(),
            metadata: message.metadata.as_ref().map(Carried::from),
        }
    }
}

impl TryFrom<Message<'_>> for model::Message {
    type Error = Problems;

    fn try_from(message: Message<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let role = problems.keep_required("role", read_role(message.role));
        let parts = message.parts.read_some("parts", &mut problems);
        let metadata = problems.object("metadata", message.metadata);
        problems.or(role.map(|role| model::Message {
            id: MessageId::parse(UNNAMED).expect("a short word is an id"),
            role,
            parts,
            task: None,
            context: None,
            references: Vec::new(),
            extensions: Vec::new(),
            metadata,
            request_metadata: None,
            answers: None,
        }))
    }
}
