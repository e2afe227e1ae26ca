//! How a remote agent wants to be spoken to: its card, and the interface that is used.

use std::sync::Arc;

use sabir_model::{AgentId, Card, Interface};
use sabir_wire::{Binding, PeerProtocol, ProtocolVersion};

use super::address::usable;
use super::error::RemoteError;
use super::settings::RemoteSettings;
use crate::cards::FetchedCard;
use crate::guard::{EgressPolicy, Target};

/// What is known of a remote agent.
#[derive(Debug, Clone)]
pub struct Discovered {
    /// `None`: it has none, and the operator said enough to do without.
    pub card: Option<Arc<FetchedCard>>,
    pub endpoint: Endpoint,
    /// The address that the card names, where another one is called.
    pub replaced: Option<String>,
    /// What the operator should know: addresses that were replaced, faults of the card.
    pub notes: Vec<String>,
}

/// Where and how calls are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    pub protocol: PeerProtocol,
    pub tenant: Option<AgentId>,
}

impl Discovered {
    /// Whether the card promises streams. A server without a card is asked.
    pub fn streams(&self) -> bool {
        self.card.as_ref().is_none_or(|card| card.card.capabilities.streaming == Some(true))
    }

    /// Whether a subscription leaves its task alone. The Python SDKs of 0.2 and 0.3 store every piece of an artifact once more for
    /// each subscriber, and nothing tells them from other servers of these versions.
    pub fn subscriptions_are_harmless(&self) -> bool {
        !matches!(self.endpoint.protocol.version(), ProtocolVersion::V0_2 | ProtocolVersion::V0_3)
    }

    /// Whether the server says that it knows `Idempotency-Key`, so that a message may be sent again.
    pub fn knows_idempotency_keys(&self) -> bool {
        let Some(card) = &self.card else { return false };
        card.card.capabilities.extensions.iter().any(|extension| extension.uri == sabir_model::IDEMPOTENCY_KEY)
    }
}

/// What the card of a server says, and where it is called.
pub(super) fn choose(
    fetched: FetchedCard,
    settings: &RemoteSettings,
    policy: &EgressPolicy,
) -> Result<Discovered, RemoteError> {
    let address = Target::parse(&fetched.url).map_err(|error| RemoteError::NoInterface(error.to_string()))?;
    let mut notes: Vec<String> = fetched
        .faults
        .iter()
        .map(|fault| format!("the card is wrong: {} {}", fault.field, fault.description))
        .collect();
    let mut refusals = Vec::new();
    for (interface, protocol) in in_order(&fetched.card, settings) {
        let tenant = settings.tenant.as_ref().or(interface.tenant.as_ref());
        let tenant = tenant.and_then(|tenant| AgentId::parse(tenant.as_str()).ok());
        let url = match &settings.endpoint {
            Some(endpoint) => Ok((endpoint.clone(), None)),
            None => usable(&with_scheme(&interface.url, protocol.binding(), &address), &address, policy),
        };
        match url {
            Ok((url, note)) => {
                let replaced = note.is_some().then(|| interface.url.clone());
                notes.extend(note);
                let endpoint = Endpoint { url, protocol, tenant };
                return Ok(Discovered { card: Some(Arc::new(fetched)), endpoint, replaced, notes });
            }
            Err(why) => refusals.push(why),
        }
    }
    Err(RemoteError::NoInterface(match refusals.into_iter().next() {
        Some(why) => why,
        None => no_interface(&fetched.card, settings),
    }))
}

/// Without a card: what the operator wrote must do.
pub(super) fn without_card(settings: &RemoteSettings) -> Option<Discovered> {
    let version = settings.version?;
    let binding = settings.bindings.first().copied().unwrap_or(Binding::JsonRpc);
    let protocol = PeerProtocol::new(version, binding)?;
    let url = settings.endpoint.clone().unwrap_or_else(|| settings.url.clone());
    let tenant = settings.tenant.as_ref().and_then(|tenant| AgentId::parse(tenant.as_str()).ok());
    let notes = vec![format!("there is no card at {}; it is spoken to in {protocol}", settings.url)];
    Some(Discovered { card: None, endpoint: Endpoint { url, protocol, tenant }, replaced: None, notes })
}

/// The interfaces that can be used, best first: the bindings that the operator prefers, then those of JSON, then the newest
/// version, then the order of the card.
fn in_order<'c>(card: &'c Card, settings: &RemoteSettings) -> Vec<(&'c Interface, PeerProtocol)> {
    let mut usable: Vec<(&Interface, PeerProtocol)> = card
        .interfaces
        .iter()
        .filter_map(|interface| Some((interface, PeerProtocol::of_interface(interface)?)))
        .filter_map(|(interface, protocol)| match settings.version {
            // Any interface of the same line of versions can be asked in another one of it; servers say so if not.
            Some(version) if is_line_0(version) != is_line_0(protocol.version()) => None,
            Some(version) => PeerProtocol::new(version, protocol.binding()).map(|protocol| (interface, protocol)),
            None => Some((interface, protocol)),
        })
        .collect();
    let preference = |protocol: PeerProtocol| {
        let place = settings.bindings.iter().position(|binding| *binding == protocol.binding());
        place.unwrap_or(settings.bindings.len())
    };
    // gRPC holds less than JSON, and its address says less, so it is taken where it is all there is, or asked for.
    let is_grpc = |protocol: PeerProtocol| protocol.binding() == Binding::Grpc;
    usable.sort_by_key(|(_, protocol)| {
        (preference(*protocol), is_grpc(*protocol), std::cmp::Reverse(protocol.version()))
    });
    usable
}

/// Addresses of gRPC are `host:port`. Whether that is with TLS, the address of the card says.
pub fn with_scheme(url: &str, binding: Binding, card: &Target) -> String {
    if binding != Binding::Grpc {
        return url.to_owned();
    }
    match url.split_once("://") {
        Some(("grpc", rest)) => format!("http://{rest}"),
        Some(("grpcs", rest)) => format!("https://{rest}"),
        Some(_) => url.to_owned(),
        None => format!("{}://{url}", card.scheme.as_str()),
    }
}

fn is_line_0(version: ProtocolVersion) -> bool {
    version != ProtocolVersion::V1_0
}

fn no_interface(card: &Card, settings: &RemoteSettings) -> String {
    let offered: Vec<String> =
        card.interfaces.iter().map(|interface| format!("{} over {}", interface.version, interface.binding)).collect();
    let offered = if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") };
    let wanted = match settings.version {
        Some(version) => format!(" in version {}", version.number()),
        None => String::new(),
    };
    format!("the card offers {offered}; nothing of that can be used{wanted} (JSONRPC, HTTP+JSON and GRPC can)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(interfaces: &[(&str, &str)]) -> FetchedCard {
        let interface = |(binding, version): &(&str, &str)| Interface {
            url: format!("https://a.example/{binding}/{version}"),
            binding: (*binding).to_owned(),
            version: (*version).to_owned(),
            tenant: None,
        };
        let card = Card { interfaces: interfaces.iter().map(interface).collect(), ..Card::default() };
        let url = "https://a.example/.well-known/agent-card.json".to_owned();
        FetchedCard { url, text: String::new(), card, faults: Vec::new() }
    }

    #[test]
    fn addresses_of_grpc_get_the_scheme_of_the_card() {
        let card = |scheme: &str| Target::parse(&format!("{scheme}://a.example/")).unwrap();
        for (url, binding, scheme, expected) in [
            ("a.example:443", Binding::Grpc, "https", "https://a.example:443"),
            ("127.0.0.1:50051", Binding::Grpc, "http", "http://127.0.0.1:50051"),
            ("http://b.example:1", Binding::Grpc, "https", "http://b.example:1"),
            ("grpc://b.example:1", Binding::Grpc, "https", "http://b.example:1"),
            ("grpcs://b.example:1", Binding::Grpc, "http", "https://b.example:1"),
            ("a.example:443", Binding::HttpJson, "https", "a.example:443"),
        ] {
            assert_eq!(with_scheme(url, binding, &card(scheme)), expected, "{url}");
        }
    }

    #[test]
    fn the_newest_version_wins_and_then_the_order_of_the_card() {
        const ALL: &[(&str, &str)] =
            &[("GRPC", "1.0"), ("HTTP+JSON", "0.3"), ("JSONRPC", "0.3"), ("HTTP+JSON", "1.0.1"), ("JSONRPC", "1.0")];
        for (interfaces, version, bindings, expected) in [
            (ALL, None, &[][..], "https://a.example/HTTP+JSON/1.0.1 1.0 over HTTP+JSON"),
            (ALL, None, &[Binding::Grpc], "https://a.example/GRPC/1.0 1.0 over GRPC"),
            (&ALL[..1], None, &[], "https://a.example/GRPC/1.0 1.0 over GRPC"),
            (ALL, None, &[Binding::JsonRpc], "https://a.example/JSONRPC/1.0 1.0 over JSONRPC"),
            (ALL, Some(ProtocolVersion::V0_3), &[], "https://a.example/HTTP+JSON/0.3 0.3 over HTTP+JSON"),
            (ALL, Some(ProtocolVersion::V0_1), &[], "https://a.example/JSONRPC/0.3 0.1 over JSONRPC"),
            (&[("JSONRPC", "0.2")], None, &[Binding::HttpJson], "https://a.example/JSONRPC/0.2 0.2 over JSONRPC"),
            (&[("json-rpc", "0.2.6")], None, &[], "https://a.example/json-rpc/0.2.6 0.2 over JSONRPC"),
            (
                &[("SOAP", "1.0")],
                None,
                &[],
                "the card offers 1.0 over SOAP; nothing of that can be used (JSONRPC, HTTP+JSON and GRPC can)",
            ),
        ] {
            let settings =
                RemoteSettings { version, bindings: bindings.to_vec(), ..RemoteSettings::new("https://a.example") };
            let chosen = choose(card(interfaces), &settings, &EgressPolicy::default());
            let actual = match chosen {
                Ok(found) => format!("{} {}", found.endpoint.url, found.endpoint.protocol),
                Err(error) => error.to_string(),
            };
            assert_eq!(actual, expected);
        }
    }
}
