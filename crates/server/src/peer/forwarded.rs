//! What a proxy says of a request that it passes on: who asked it (`Forwarded`, `X-Forwarded-For`), and whether that was by
//! https (`proto`, `X-Forwarded-Proto`).
//!
//! Anybody can send these headers, so they count only on connections from proxies that the operator trusts. Each proxy
//! adds whom it was asked by at the end, so the list is read from there: trusted proxies are passed over, and the first
//! other address is the peer. What is before it may be invented, and need not even be readable. Where the last word of a proxy
//! cannot be read, or where the two headers disagree (a proxy keeps up one of them, and the client may have sent the other),
//! the peer is the proxy itself. Clients can bring about the second, so such requests count together as those of one peer:
//! otherwise a header of two letters would lift the limit of its sender.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;

use super::AddressRange;
use crate::scheme::Scheme;

/// Whose forwarding headers are believed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrustedProxies(pub Vec<AddressRange>);

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestSource {
    pub(crate) peer: IpAddr,
    /// Whether it counts among the requests of the peer: a trusted proxy has named the peer, or a client keeps it from that.
    pub(crate) is_forwarded: bool,
    /// What a trusted proxy says it was asked by.
    pub(crate) scheme: Option<Scheme>,
}

/// One proxy on the way, and whom it was asked by.
struct Hop<'a> {
    client: &'a str,
    proto: Option<&'a str>,
}

impl TrustedProxies {
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(address))
    }

    /// `connected` is the other end of the connection.
    pub(crate) fn source(&self, connected: IpAddr, headers: &HeaderMap) -> RequestSource {
        let itself = RequestSource { peer: connected, is_forwarded: false, scheme: None };
        if self.0.is_empty() || !self.contains(connected) {
            return itself;
        }
        let standard = hops(headers, "forwarded", forwarded_hop);
        let common = hops(headers, "x-forwarded-for", |client| Some(Hop { client, proto: None }));
        let protos = hops(headers, "x-forwarded-proto", |proto| Some(Hop { client: "", proto: Some(proto) }));
        let found = match (self.peer_of(&standard), self.peer_of(&common)) {
            (None, None) => None,
            (Some(found), None) => Some((found, standard[found.at].proto)),
            (None, Some(found)) => Some((found, None)),
            (Some(one), Some(other)) if one.peer == other.peer => Some((one, standard[one.at].proto)),
            _ => return RequestSource { is_forwarded: true, ..itself },
        };
        let beside = |at: usize| match protos.as_slice() {
            [only] => only.proto,
            several if several.len() == common.len() => several.get(at).and_then(|hop| hop.proto),
            _ => None,
        };
        match found {
            Some((Found { peer: Some(peer), at }, proto)) => {
                RequestSource { peer, is_forwarded: true, scheme: scheme(proto.or_else(|| beside(at))) }
            }
            Some((Found { peer: None, .. }, _)) => itself,
            None => RequestSource { scheme: scheme(beside(0)), ..itself },
        }
    }

    /// The last that is not itself trusted; if all are, the first. `None`: there is no such header.
    fn peer_of(&self, hops: &[Hop<'_>]) -> Option<Found> {
        let mut found = None;
        for (at, hop) in hops.iter().enumerate().rev() {
            let peer = address(hop.client);
            found = Some(Found { peer, at });
            if !peer.is_some_and(|peer| self.contains(peer)) {
                break;
            }
        }
        found
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    /// `None`: the proxy does not say, or not in a way that can be read.
    peer: Option<IpAddr>,
    /// Its place among the hops.
    at: usize,
}

/// All hops of a header, which may come in several lines. One that cannot be read names nobody.
fn hops<'a>(headers: &'a HeaderMap, name: &str, read: impl Fn(&'a str) -> Option<Hop<'a>>) -> Vec<Hop<'a>> {
    let elements = headers.get_all(name).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let hop = |element| std::str::from_utf8(element).ok().and_then(|element| read(element.trim()));
    elements.map(|element| hop(element).unwrap_or(Hop { client: "", proto: None })).collect()
}

/// `for=192.0.2.1;proto=https;by=...`, RFC 7239. No value that counts here has a comma or a semicolon in its quotes.
fn forwarded_hop(element: &str) -> Option<Hop<'_>> {
    let mut hop = Hop { client: "", proto: None };
    for pair in element.split(';') {
        let (name, value) = pair.trim().split_once('=')?;
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.strip_suffix('"')?,
            None => value,
        };
        match name {
            _ if name.eq_ignore_ascii_case("for") => hop.client = value,
            _ if name.eq_ignore_ascii_case("proto") => hop.proto = Some(value),
            _ => {}
        }
    }
    Some(hop)
}

/// An address, perhaps with a port, perhaps in brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = match (bare.unwrap_or(text).parse::<IpAddr>(), text.parse::<SocketAddr>()) {
        (Ok(address), _) => address,
        (_, Ok(with_port)) => with_port.ip(),
        _ => return None,
    };
    Some(address.to_canonical())
}

fn scheme(proto: Option<&str>) -> Option<Scheme> {
    match proto {
        Some(proto) if proto.eq_ignore_ascii_case("https") => Some(Scheme::Https),
        Some(proto) if proto.eq_ignore_ascii_case("http") => Some(Scheme::Http),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn whom_trusted_proxies_name() {
        let trusted = ["10.0.0.0/8", "127.0.0.1", "fd00::/8"].map(|range| AddressRange::parse(range).unwrap()).to_vec();
        let proxies = TrustedProxies(trusted);
        const PROXY: &str = "10.0.0.1";
        const FOR: &str = "x-forwarded-for";
        const PROTO: &str = "x-forwarded-proto";
        for (connected, headers, expected) in [
            // Who is not trusted is not believed.
            ("203.0.113.9", &[(FOR, "198.51.100.1"), (PROTO, "https")][..], "203.0.113.9"),
            ("203.0.113.9", &[("forwarded", "for=198.51.100.1;proto=https")], "203.0.113.9"),
            (PROXY, &[], PROXY),
            (PROXY, &[(FOR, "198.51.100.1")], "198.51.100.1 forwarded"),
            ("::ffff:10.0.0.1", &[(FOR, "198.51.100.1")], "198.51.100.1 forwarded"),
            // What the client invented stands before what the proxy added.
            (PROXY, &[(FOR, "127.0.0.1, 198.51.100.1")], "198.51.100.1 forwarded"),
            (PROXY, &[(FOR, "nonsense, 198.51.100.1, 10.0.0.7")], "198.51.100.1 forwarded"),
            (PROXY, &[(FOR, "127.0.0.1"), (FOR, "198.51.100.1")], "198.51.100.1 forwarded"),
            (PROXY, &[(FOR, "10.0.0.9, 10.0.0.7")], "10.0.0.9 forwarded"),
            (PROXY, &[(FOR, "198.51.100.1:4711")], "198.51.100.1 forwarded"),
            (PROXY, &[(FOR, "[2001:db8::1]:4711")], "2001:db8::1 forwarded"),
            (PROXY, &[(FOR, "[2001:db8::1]")], "2001:db8::1 forwarded"),
            (PROXY, &[(FOR, "2001:db8::1")], "2001:db8::1 forwarded"),
            (PROXY, &[(FOR, "::ffff:198.51.100.1")], "198.51.100.1 forwarded"),
            // What cannot be read.
            (PROXY, &[(FOR, "198.51.100.1, nonsense")], PROXY),
            (PROXY, &[(FOR, "")], PROXY),
            (PROXY, &[(FOR, "198.51.100.1,")], PROXY),
            (PROXY, &[(FOR, "198.51.100.1\u{e9}")], PROXY),
            (PROXY, &[("forwarded", "for=198.51.100.1")], "198.51.100.1 forwarded"),
            (PROXY, &[("forwarded", "For=\"[2001:db8::1]:4711\"; Proto=HTTPS")], "2001:db8::1 forwarded https"),
            (PROXY, &[("forwarded", "for=127.0.0.1, for=198.51.100.1;proto=http")], "198.51.100.1 forwarded http"),
            (
                PROXY,
                &[("forwarded", "for=198.51.100.1;proto=https, for=10.0.0.7;proto=http")],
                "198.51.100.1 forwarded https",
            ),
            (PROXY, &[("forwarded", "for=unknown")], PROXY),
            (PROXY, &[("forwarded", "for=_hidden")], PROXY),
            (PROXY, &[("forwarded", "proto=https")], PROXY),
            (PROXY, &[("forwarded", "for=\"198.51.100.1")], PROXY),
            (PROXY, &[("forwarded", "nonsense")], PROXY),
            // Two headers that agree, and two of which the client may have sent one.
            (
                PROXY,
                &[("forwarded", "for=198.51.100.1;proto=https"), (FOR, "198.51.100.1")],
                "198.51.100.1 forwarded https",
            ),
            (PROXY, &[("forwarded", "for=127.0.0.1;proto=https"), (FOR, "198.51.100.1")], "10.0.0.1 forwarded"),
            (PROXY, &[("forwarded", "nonsense"), (FOR, "198.51.100.1")], "10.0.0.1 forwarded"),
            (PROXY, &[("forwarded", "for=198.51.100.1"), (FOR, "\u{e9}")], "10.0.0.1 forwarded"),
            // What the client wrote before the proxy's word cannot hide that.
            (PROXY, &[(FOR, "\u{e9}, 198.51.100.1")], "198.51.100.1 forwarded"),
            (PROXY, &[(FOR, "\u{e9}"), (FOR, "198.51.100.1")], "198.51.100.1 forwarded"),
            (PROXY, &[("forwarded", "nonsense, for=198.51.100.1")], "198.51.100.1 forwarded"),
            (PROXY, &[("forwarded", "for=\"x, for=198.51.100.1")], "198.51.100.1 forwarded"),
            (PROXY, &[(FOR, "198.51.100.1"), (PROTO, "\u{e9}")], "198.51.100.1 forwarded"),
            // By which scheme.
            (PROXY, &[(FOR, "198.51.100.1"), (PROTO, "https")], "198.51.100.1 forwarded https"),
            (PROXY, &[(FOR, "1.1.1.1, 198.51.100.1"), (PROTO, "http, https")], "198.51.100.1 forwarded https"),
            (PROXY, &[(FOR, "198.51.100.1"), (PROTO, "https, http")], "198.51.100.1 forwarded"),
            (PROXY, &[(FOR, "198.51.100.1"), (PROTO, "gopher")], "198.51.100.1 forwarded"),
            (PROXY, &[(PROTO, "https")], "10.0.0.1 https"),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
                map.append(HeaderName::from_static(name), value);
            }
            let connected: IpAddr = connected.parse().unwrap();
            let RequestSource { peer, is_forwarded, scheme } = proxies.source(connected.to_canonical(), &map);
            let mut told = peer.to_string();
            told += if is_forwarded { " forwarded" } else { "" };
            told += &scheme.map(|scheme| format!(" {scheme}")).unwrap_or_default();
            assert_eq!(told, expected, "{connected} {headers:?}");
        }
    }
}
