//! The card itself, its interfaces and what it can do.

use serde::{Deserialize, Serialize};

use super::authentication::{Authentication, read_if_known};
use super::requirement::{Requirement, Scopes};
use super::security::SecurityScheme;
use super::skill::Skill;
use crate::wire_types::{OrderedMap, RawJson, Text, object};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Card<'a> {
    #[serde(alias = "protocol_version", borrow, skip_serializing_if = "Option::is_none")]
    pub(super) protocol_version: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) description: Option<Text<'a>>,
    #[serde(alias = "supported_interfaces", skip_serializing_if = "Option::is_none")]
    pub(super) supported_interfaces: Option<Vec<Interface<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<Text<'a>>,
    #[serde(alias = "preferred_transport", skip_serializing_if = "Option::is_none")]
    pub(super) preferred_transport: Option<Text<'a>>,
    #[serde(alias = "additional_interfaces", skip_serializing_if = "Option::is_none")]
    pub(super) additional_interfaces: Option<Vec<Interface<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider: Option<Provider<'a>>,
    pub(super) version: Option<Text<'a>>,
    #[serde(alias = "documentation_url", skip_serializing_if = "Option::is_none")]
    pub(super) documentation_url: Option<Text<'a>>,
    #[serde(alias = "icon_url", skip_serializing_if = "Option::is_none")]
    pub(super) icon_url: Option<Text<'a>>,
    pub(super) capabilities: Option<Capabilities<'a>>,
    #[serde(alias = "security_schemes", default, skip_serializing_if = "OrderedMap::is_empty")]
    pub(super) security_schemes: OrderedMap<'a, SecurityScheme<'a>>,
    #[serde(alias = "security_requirements", skip_serializing_if = "Option::is_none")]
    pub(super) security_requirements: Option<Vec<Requirement<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) security: Option<Vec<OrderedMap<'a, Scopes<'a>>>>,
    #[serde(alias = "default_input_modes")]
    pub(super) default_input_modes: Option<Vec<Text<'a>>>,
    #[serde(alias = "default_output_modes")]
    pub(super) default_output_modes: Option<Vec<Text<'a>>>,
    pub(super) skills: Option<Vec<Skill<'a>>>,
    #[serde(alias = "supports_authenticated_extended_card", skip_serializing_if = "Option::is_none")]
    pub(super) supports_authenticated_extended_card: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signatures: Option<Vec<Signature<'a>>>,
    /// Of 0.1.
    #[serde(default, deserialize_with = "read_if_known", skip_serializing_if = "Option::is_none")]
    pub(super) authentication: Option<Authentication<'a>>,
}

/// 1.0 calls it `protocolBinding`, 0.3 `transport`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Interface<'a> {
    #[serde(borrow)]
    pub(super) url: Option<Text<'a>>,
    #[serde(alias = "protocol_binding", skip_serializing_if = "Option::is_none")]
    pub(super) protocol_binding: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) transport: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(alias = "protocol_version", skip_serializing_if = "Option::is_none")]
    pub(super) protocol_version: Option<Text<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Provider<'a> {
    #[serde(borrow)]
    pub(super) organization: Option<Text<'a>>,
    pub(super) url: Option<Text<'a>>,
}

/// Other servers also write these in snake_case.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Capabilities<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) streaming: Option<bool>,
    #[serde(alias = "push_notifications", skip_serializing_if = "Option::is_none")]
    pub(super) push_notifications: Option<bool>,
    #[serde(alias = "state_transition_history", skip_serializing_if = "Option::is_none")]
    pub(super) state_transition_history: Option<bool>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(super) extensions: Option<Vec<Extension<'a>>>,
    #[serde(alias = "extended_agent_card", skip_serializing_if = "Option::is_none")]
    pub(super) extended_agent_card: Option<bool>,
    /// These four are the gateway's.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) task_management: Option<bool>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) agent_discovery: Option<bool>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) agent_count: Option<usize>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) agents: Option<Vec<Text<'a>>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Extension<'a> {
    #[serde(borrow)]
    pub(super) uri: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) required: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<RawJson<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Signature<'a> {
    #[serde(borrow)]
    pub(super) protected: Option<Text<'a>>,
    pub(super) signature: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) header: Option<RawJson<'a>>,
}

object! {
    both Card<'a>; both Interface<'a>; both Provider<'a>; both Capabilities<'a>; both Extension<'a>;
    both Signature<'a>
}
