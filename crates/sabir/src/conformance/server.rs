//! The server that is checked: how it is reached, and what its card promises.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use sabir_outbound::guard::Host;
use sabir_outbound::{Client, EgressPolicy, Guard, Limits, Roots, SystemResolver, Target};
use sabir_wire::ProtocolVersion;
use serde_json::Value;

use crate::cli::CheckOptions;

/// A task with a large artifact must not look like a broken answer.
const LARGEST_ANSWER: usize = 16 << 20;

/// How a server is reached. What the operator typed is trusted; what its card names elsewhere passes the guard.
pub struct Access {
    /// The server, or its card.
    pub url: String,
    pub target: Target,
    /// Shown with every request: credentials, and what the operator adds.
    pub headers: HeaderMap,
    pub timeout: Duration,
}

/// What the card says that the server can do. `None`: it says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Promises {
    /// There is a card, so what it does not promise is not there.
    pub are_known: bool,
    pub streaming: Option<bool>,
    pub push: Option<bool>,
    extended_card: Option<bool>,
    /// What 0.x calls the same.
    extended_card_v0: Option<bool>,
    /// Extensions that every request has to name.
    pub required_extensions: Vec<String>,
    /// Whether requests need credentials.
    pub needs_credentials: bool,
}

impl Access {
    pub fn new(options: &CheckOptions) -> anyhow::Result<Self> {
        let url = options.url.clone().unwrap_or_default();
        let target = Target::parse(&url).map_err(|refusal| anyhow!("cannot use the URL {url}: {refusal}"))?;
        let mut headers = HeaderMap::new();
        if let Some(token) = &options.bearer {
            let value =
                HeaderValue::from_str(&format!("Bearer {token}")).context("--bearer does not fit into a header")?;
            headers.insert(header::AUTHORIZATION, secret(value));
        }
        for line in &options.headers {
            let (name, value) = read_header(line)?;
            headers.insert(name, secret(value));
        }
        Ok(Access { url, target, headers, timeout: options.timeout })
    }

    /// A client for the server and what else is on the same host.
    pub fn client<'u>(&self, interfaces: impl Iterator<Item = &'u str>) -> Client {
        let mut policy = EgressPolicy::default();
        policy.trust(self.target.host.clone(), self.target.port);
        for target in interfaces.filter_map(|url| Target::parse(url).ok()) {
            let is_same_machine = is_this_machine(&target.host) && is_this_machine(&self.target.host);
            if target.host == self.target.host || is_same_machine {
                policy.trust(target.host, target.port);
            }
        }
        let guard = Guard::new(policy, Arc::new(SystemResolver::default()));
        let limits = Limits { body: LARGEST_ANSWER, ..Limits::default() };
        Client::new(Arc::new(guard), limits, Roots::default())
    }

    pub fn has_credentials(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Whether the operator named this origin, and not only the card: credentials are for no other one.
    pub fn is_origin_of(&self, url: &str) -> bool {
        Target::parse(url).is_ok_and(|target| target.origin() == self.target.origin())
    }

    pub fn is_local(&self) -> bool {
        is_this_machine(&self.target.host)
    }
}

impl Promises {
    pub fn of(card: &Value) -> Self {
        let capabilities = &card["capabilities"];
        let extensions = capabilities["extensions"].as_array().into_iter().flatten();
        let required = extensions.filter(|extension| extension["required"] == true);
        let requirements = ["securityRequirements", "security"].map(|name| card[name].as_array());
        Promises {
            are_known: true,
            streaming: capabilities["streaming"].as_bool(),
            push: capabilities["pushNotifications"].as_bool(),
            extended_card: capabilities["extendedAgentCard"].as_bool(),
            extended_card_v0: card["supportsAuthenticatedExtendedCard"].as_bool(),
            required_extensions: required
                .filter_map(|extension| extension["uri"].as_str())
                .map(str::to_owned)
                .collect(),
            needs_credentials: requirements
                .into_iter()
                .flatten()
                .any(|list| !list.is_empty() && !list.iter().any(is_open))
                || card["authentication"]["schemes"].as_array().is_some_and(|schemes| !schemes.is_empty()),
        }
    }

    pub fn extended_card(&self, version: ProtocolVersion) -> Option<bool> {
        match version {
            ProtocolVersion::V1_0 => self.extended_card,
            _ => self.extended_card_v0,
        }
    }
}

/// An alternative without any scheme: credentials are optional.
fn is_open(requirement: &Value) -> bool {
    let schemes = requirement.get("schemes").unwrap_or(requirement);
    schemes.as_object().is_some_and(serde_json::Map::is_empty)
}

pub fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Address(address) => address.is_loopback() || address.is_unspecified(),
    }
}

fn read_header(line: &str) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':').ok_or_else(|| anyhow!("--header takes NAME:VALUE"))?;
    let name = name.trim().parse().map_err(|_| anyhow!("--header: {:?} is no name of a header", name.trim()))?;
    let value =
        HeaderValue::from_str(value.trim()).map_err(|_| anyhow!("--header: the value of {name} does not fit"))?;
    Ok((name, value))
}

fn secret(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_card_promises() {
        let card = json!({
            "capabilities": {"streaming": true, "extensions": [{"uri": "u", "required": true}, {"uri": "v"}]},
            "supportsAuthenticatedExtendedCard": true,
        });
        let promises = Promises::of(&card);
        assert_eq!((promises.streaming, promises.push), (Some(true), None));
        assert_eq!(promises.required_extensions, ["u"]);
        assert_eq!(promises.extended_card(ProtocolVersion::V1_0), None);
        assert_eq!(promises.extended_card(ProtocolVersion::V0_3), Some(true));
        for (card, expected) in [
            (json!({}), false),
            (json!({"security": []}), false),
            (json!({"security": [{"bearer": []}]}), true),
            (json!({"security": [{"bearer": []}, {}]}), false),
            (json!({"securityRequirements": [{"schemes": {"bearer": {}}}]}), true),
            (json!({"authentication": {"schemes": ["Bearer"]}}), true),
        ] {
            assert_eq!(Promises::of(&card).needs_credentials, expected, "{card}");
        }
    }
}
