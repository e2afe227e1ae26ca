//! The flows of OAuth 2. 0.3 may have several, 1.0 has room for one.

use sabir_model as model;
use serde::{Deserialize, Serialize};

use crate::wire_types::{OrderedMap, Text, non_empty, object};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Flow<'a> {
    #[serde(borrow, alias = "authorization_url", skip_serializing_if = "Option::is_none")]
    authorization_url: Option<Text<'a>>,
    #[serde(alias = "device_authorization_url", skip_serializing_if = "Option::is_none")]
    device_authorization_url: Option<Text<'a>>,
    #[serde(alias = "token_url", skip_serializing_if = "Option::is_none")]
    token_url: Option<Text<'a>>,
    #[serde(alias = "refresh_url", skip_serializing_if = "Option::is_none")]
    refresh_url: Option<Text<'a>>,
    #[serde(default)]
    scopes: OrderedMap<'a, Text<'a>>,
    #[serde(alias = "pkce_required", skip_serializing_if = "Option::is_none")]
    pkce_required: Option<bool>,
    /// With `value`, what a js server puts in the place of the flow's name.
    #[serde(rename = "$case", skip_serializing)]
    case: Option<Text<'a>>,
    #[serde(skip_serializing)]
    value: Option<Box<Flow<'a>>>,
}

object! { both Flow<'a> }

/// The one that 1.0 shows.
pub(crate) fn preferred<'f>(flows: impl IntoIterator<Item = &'f model::Flow>) -> Option<&'f model::Flow> {
    const ORDER: [&str; 5] = ["authorizationCode", "clientCredentials", "deviceCode", "implicit", "password"];
    let rank = |flow: &&model::Flow| ORDER.iter().position(|name| *name == flow.name).unwrap_or(ORDER.len());
    flows.into_iter().min_by_key(rank)
}

impl Flow<'_> {
    /// As 0.3 has it.
    pub(super) fn without_pkce(self) -> Self {
        Self { pkce_required: None, ..self }
    }
}

impl<'a> From<&'a model::Flow> for Flow<'a> {
    fn from(flow: &'a model::Flow) -> Self {
        Flow {
            authorization_url: flow.authorization_url.as_ref().map(Text::from),
            device_authorization_url: flow.device_authorization_url.as_ref().map(Text::from),
            token_url: flow.token_url.as_ref().map(Text::from),
            refresh_url: flow.refresh_url.as_ref().map(Text::from),
            scopes: OrderedMap(flow.scopes.iter().map(|(name, about)| (name.into(), about.into())).collect()),
            pkce_required: flow.pkce_required.then_some(true),
            case: None,
            value: None,
        }
    }
}

pub(super) fn read_flow((name, flow): (Text<'_>, Flow<'_>)) -> model::Flow {
    if let (Some(name), Some(flow)) = (flow.case, flow.value) {
        return read_flow((name, *flow));
    }
    model::Flow {
        name: name.into_string(),
        authorization_url: non_empty(flow.authorization_url),
        device_authorization_url: non_empty(flow.device_authorization_url),
        token_url: non_empty(flow.token_url),
        refresh_url: non_empty(flow.refresh_url),
        scopes: flow.scopes.0.into_iter().map(|(name, about)| (name.into_string(), about.into_string())).collect(),
        pkce_required: flow.pkce_required.unwrap_or(false),
    }
}
