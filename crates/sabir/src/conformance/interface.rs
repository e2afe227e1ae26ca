//! The interfaces that a card names, in the members of 1.0 and in those of 0.x, and where each of them is called.

use std::collections::HashSet;

use sabir_model::AgentId;
use sabir_outbound::Target;
use sabir_outbound::remote::with_scheme;
use sabir_wire::{Binding, PeerProtocol, ProtocolVersion};
use serde_json::Value;

use super::server::{Access, is_this_machine};

/// What a card says of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Where in the card: `supportedInterfaces[0]`.
    pub member: String,
    pub url: String,
    pub binding: String,
    /// `None`: it names none.
    pub version: Option<String>,
    pub tenant: Option<String>,
}

/// An interface that can be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub url: String,
    pub protocol: PeerProtocol,
    pub tenant: Option<AgentId>,
}

/// Where a card was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardPlace {
    /// `/.well-known/agent-card.json`, since 0.3.
    New,
    /// `/.well-known/agent.json`, before 0.3.
    Old,
    /// Where the operator says.
    Named,
}

/// All that the card claims, in its order.
pub fn claims(card: &Value) -> Vec<Claim> {
    let text = |value: &Value, name: &str| value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let mut claims: Vec<Claim> = Vec::new();
    for (place, interface) in card["supportedInterfaces"].as_array().into_iter().flatten().enumerate() {
        claims.push(Claim {
            member: format!("supportedInterfaces[{place}]"),
            url: text(interface, "url").unwrap_or_default(),
            binding: text(interface, "protocolBinding").unwrap_or_default(),
            version: text(interface, "protocolVersion"),
            tenant: text(interface, "tenant"),
        });
    }
    let Some(url) = text(card, "url") else { return claims };
    let version = text(card, "protocolVersion");
    let binding = text(card, "preferredTransport").unwrap_or_else(|| "JSONRPC".to_owned());
    let mut known: HashSet<_> = claims.iter().map(Claim::key).collect();
    let mut add = |member: String, url: String, binding: String| {
        let claim = Claim { member, url, binding, version: version.clone(), tenant: None };
        if known.insert(claim.key()) {
            claims.push(claim);
        }
    };
    add("url".to_owned(), url, binding);
    for (place, interface) in card["additionalInterfaces"].as_array().into_iter().flatten().enumerate() {
        let url = text(interface, "url").unwrap_or_default();
        let binding = text(interface, "transport").unwrap_or_default();
        add(format!("additionalInterfaces[{place}]"), url, binding);
    }
    claims
}

impl Claim {
    /// The version and the binding, as far as they are known; a missing version is guessed.
    pub fn protocol(&self, place: CardPlace) -> Option<PeerProtocol> {
        let guessed = match (self.is_of_v1(), place) {
            (true, _) => ProtocolVersion::V1_0,
            (false, CardPlace::Old) => ProtocolVersion::V0_2,
            (false, CardPlace::New | CardPlace::Named) => ProtocolVersion::V0_3,
        };
        let version = match &self.version {
            Some(version) => ProtocolVersion::parse(version)?,
            None => guessed,
        };
        let binding = Binding::parse(&self.binding)?;
        match (version, binding) {
            // Cards of 0.2 from its last days may name HTTP+JSON and gRPC, which 0.3 then kept.
            (ProtocolVersion::V0_2, Binding::HttpJson | Binding::Grpc) => {
                PeerProtocol::new(ProtocolVersion::V0_3, binding)
            }
            (version, binding) => PeerProtocol::new(version, binding),
        }
    }

    pub fn is_of_v1(&self) -> bool {
        self.member.starts_with("supportedInterfaces")
    }

    pub fn is_grpc(&self) -> bool {
        Binding::parse(&self.binding) == Some(Binding::Grpc)
    }

    /// The URL with a scheme: for gRPC, cards name a host and a port.
    pub fn absolute_url(&self, access: &Access) -> String {
        match Binding::parse(&self.binding) {
            Some(binding) => with_scheme(&self.url, binding, &access.target),
            None => self.url.clone(),
        }
    }

    /// Where it is called. A card that names its own machine is called where it came from, by its path; gRPC has no path, but
    /// a port.
    pub fn call_url(&self, access: &Access) -> Option<String> {
        let url = self.absolute_url(access);
        match Target::parse(&url) {
            Ok(target) if self.is_elsewhere_local(access) && self.is_grpc() => {
                let mut there = access.target.join("/").ok()?;
                (there.scheme, there.port) = (target.scheme, target.port);
                Some(there.to_string())
            }
            Ok(target) if self.is_elsewhere_local(access) => {
                Some(access.target.join(&path_of(&target.to_string())).ok()?.to_string())
            }
            Ok(_) => Some(url),
            Err(_) if self.url.starts_with('/') && !self.is_grpc() => {
                Some(access.target.join(&self.url).ok()?.to_string())
            }
            Err(_) => None,
        }
    }

    /// Whether it names the server's own machine, and is asked from another one.
    pub fn is_elsewhere_local(&self, access: &Access) -> bool {
        let is_local = |target: Target| is_this_machine(&target.host);
        !access.is_local() && Target::parse(&self.absolute_url(access)).is_ok_and(is_local)
    }

    /// The same for two claims of the same interface: url, binding and version.
    fn key(&self) -> (String, String, String) {
        let version = self.version.as_deref().unwrap_or_default();
        let short = version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
        (self.url.trim_end_matches('/').to_owned(), self.binding.to_ascii_lowercase(), short)
    }
}

impl Interface {
    pub fn of(claim: &Claim, place: CardPlace, access: &Access) -> Option<Self> {
        let tenant = claim.tenant.as_deref().and_then(|tenant| AgentId::parse(tenant).ok());
        Some(Interface { url: claim.call_url(access)?, protocol: claim.protocol(place)?, tenant })
    }

    /// The same for two interfaces that are called in the same way.
    pub fn key(&self) -> (String, PeerProtocol, Option<AgentId>) {
        let url = Target::parse(&self.url).map_or_else(|_| self.url.clone(), |target| target.to_string());
        (url, self.protocol, self.tenant.clone())
    }
}

/// `/b?c` of `https://a/b?c`.
fn path_of(url: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or_else(|| "/".to_owned(), |slash| url[host + slash..].to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn say(card: &Value, place: CardPlace) -> Vec<String> {
        let claim = |claim: &Claim| match claim.protocol(place) {
            Some(protocol) => format!("{} {protocol}", claim.url),
            None => format!("{} unknown", claim.url),
        };
        claims(card).iter().map(claim).collect()
    }

    #[test]
    fn interfaces_of_every_version_are_found_once() {
        for (card, place, expected) in [
            (
                json!({
                    "supportedInterfaces": [
                        {"url": "http://a/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                        {"url": "http://a", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
                        {"url": "a:1", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                        {"url": "http://b/", "protocolBinding": "HTTP+JSON"},
                    ],
                    "url": "http://a/", "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC",
                    "additionalInterfaces": [{"url": "http://a/rest", "transport": "HTTP+JSON"}],
                }),
                CardPlace::New,
                &[
                    "http://a/ 1.0 over JSONRPC",
                    "http://a 0.3 over JSONRPC",
                    "a:1 1.0 over GRPC",
                    "http://b/ 1.0 over HTTP+JSON",
                    "http://a/rest 0.3 over HTTP+JSON",
                ][..],
            ),
            (json!({"url": "http://a/"}), CardPlace::New, &["http://a/ 0.3 over JSONRPC"]),
            (json!({"url": "http://a/"}), CardPlace::Old, &["http://a/ 0.2 over JSONRPC"]),
            (json!({"url": "http://a/", "protocolVersion": "0.2.5"}), CardPlace::Old, &["http://a/ 0.2 over JSONRPC"]),
            (json!({"url": "http://a/", "protocolVersion": "7.0"}), CardPlace::New, &["http://a/ unknown"]),
            (
                json!({"url": "a:1", "preferredTransport": "GRPC", "protocolVersion": "0.3.0"}),
                CardPlace::New,
                &["a:1 0.3 over GRPC"],
            ),
            (json!({}), CardPlace::New, &[]),
        ] {
            assert_eq!(say(&card, place), expected, "{card}");
        }
    }

    #[test]
    fn addresses_of_grpc_are_dialled_with_the_scheme_of_the_card() {
        for (card, url, expected) in [
            ("http://127.0.0.1:1/card.json", "127.0.0.1:2", Some("http://127.0.0.1:2")),
            ("https://a.example", "a.example:443", Some("https://a.example:443")),
            ("https://a.example", "grpc://a.example:2", Some("http://a.example:2")),
            ("http://a.example", "grpcs://a.example:2", Some("https://a.example:2")),
            ("http://a.example", "https://b.example:2", Some("https://b.example:2")),
            ("https://a.example/card.json", "localhost:2", Some("https://a.example:2/")),
            ("https://a.example", "dns:///a.example:2", None),
            ("https://a.example", "/grpc", None),
        ] {
            let claim = Claim {
                member: "supportedInterfaces[0]".to_owned(),
                url: url.to_owned(),
                binding: "GRPC".to_owned(),
                version: Some("1.0".to_owned()),
                tenant: None,
            };
            assert_eq!(claim.call_url(&access(card)).as_deref(), expected, "{url} on {card}");
        }
    }

    fn access(url: &str) -> Access {
        let target = Target::parse(url).unwrap();
        let (headers, timeout) = (http::HeaderMap::new(), std::time::Duration::from_secs(1));
        Access { url: url.to_owned(), target, headers, timeout }
    }
}
