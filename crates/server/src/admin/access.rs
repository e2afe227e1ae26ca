//! Who may make admin calls: as long as there are no credentials, programs on this machine alone.
//!
//! A connection from a loopback address is not enough to know that: a proxy on this machine has one too, whoever calls it,
//! and so has a browser that shows a page of somebody else. So nothing may point to a proxy, the call must have been sent
//! to a loopback name, which no name of somebody else's is, and its page must be one of ours.

use std::net::IpAddr;

use http::HeaderMap;

use super::Source;
use crate::cors::RequestOrigin;

/// Whether admin calls are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdminAccess {
    /// From programs on this machine, without a proxy in between.
    #[default]
    Loopback,
    /// From nobody, since `public_url` says that others reach this server, and perhaps through a proxy on this machine.
    RefusedForPublicUrl,
    /// From nobody, since `allow_open` lets others call without credentials.
    RefusedForAllowOpen,
}

/// What proxies add to the requests that they pass on.
const FORWARDING_HEADERS: [&str; 3] = ["forwarded", "via", "x-real-ip"];
const FORWARDING_PREFIX: &str = "x-forwarded-";

impl AdminAccess {
    /// Why this call is refused; `None`: it is taken.
    pub(super) fn refuses(self, headers: &HeaderMap, source: &Source<'_>) -> Option<String> {
        let why = match self {
            AdminAccess::RefusedForPublicUrl => {
                "admin calls need a credential where server.public_url is set; make one with `sabir token new NAME --scope admin`"
            }
            AdminAccess::RefusedForAllowOpen => {
                "admin calls need a credential where server.allow_open is set; make one with `sabir token new NAME --scope admin`"
            }
            AdminAccess::Loopback if !source.peer.address.is_some_and(is_loopback) => {
                "admin calls are taken only from the machine that the server runs on"
            }
            AdminAccess::Loopback => {
                if let Some(name) = forwarding_header(headers) {
                    return Some(format!(
                        "admin calls are not taken through a proxy, and this one has the header {name}"
                    ));
                }
                match source.origin {
                    _ if !source.host.is_some_and(|host| host.is_loopback()) => {
                        "admin calls must be sent to localhost or to a loopback address"
                    }
                    RequestOrigin::Refused => "pages of this origin may not call; allow it with server.cors_origins",
                    // `*` opens the agents to every page. It says of no page that it may read a backup of the store.
                    RequestOrigin::AllowedAsAny(_) => {
                        "admin calls are not taken from pages that only `*` in server.cors_origins allows; \
                         name the origin there, or use a credential"
                    }
                    RequestOrigin::Own | RequestOrigin::Allowed(_) => return None,
                }
            }
        };
        Some(why.to_owned())
    }
}

fn forwarding_header(headers: &HeaderMap) -> Option<&str> {
    let is_one = |name: &&str| FORWARDING_HEADERS.contains(name) || name.starts_with(FORWARDING_PREFIX);
    headers.keys().map(http::HeaderName::as_str).find(is_one)
}

/// An IPv4 address may come as an IPv6 one.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::auth::Peer;
    use crate::host::Authority;

    #[test]
    fn only_programs_on_this_machine_may_make_admin_calls() {
        const LOCAL: Option<&str> = Some("127.0.0.1");
        const HERE: Option<&str> = Some("localhost:1");
        for (access, peer, host, header, expected) in [
            (AdminAccess::Loopback, LOCAL, HERE, None, "taken"),
            (AdminAccess::Loopback, Some("::1"), Some("[::1]:1"), None, "taken"),
            (AdminAccess::Loopback, Some("::ffff:127.0.0.1"), Some("127.9.9.9"), None, "taken"),
            (AdminAccess::Loopback, LOCAL, Some("app.localhost."), Some("accept"), "taken"),
            (AdminAccess::Loopback, None, HERE, None, "only from the machine"),
            (AdminAccess::Loopback, Some("10.0.0.1"), HERE, None, "only from the machine"),
            (AdminAccess::Loopback, Some("::ffff:10.0.0.1"), HERE, None, "only from the machine"),
            (AdminAccess::Loopback, LOCAL, HERE, Some("forwarded"), "the header forwarded"),
            (AdminAccess::Loopback, LOCAL, HERE, Some("Via"), "the header via"),
            (AdminAccess::Loopback, LOCAL, HERE, Some("X-Real-IP"), "the header x-real-ip"),
            (AdminAccess::Loopback, LOCAL, HERE, Some("X-Forwarded-For"), "the header x-forwarded-for"),
            (AdminAccess::Loopback, LOCAL, HERE, Some("X-Forwarded-Anything"), "the header x-forwarded-anything"),
            (AdminAccess::Loopback, LOCAL, None, None, "sent to localhost"),
            (AdminAccess::Loopback, LOCAL, Some("evil.example"), None, "sent to localhost"),
            (AdminAccess::Loopback, LOCAL, Some("localhost.evil.example"), None, "sent to localhost"),
            (AdminAccess::Loopback, LOCAL, Some("10.0.0.1"), None, "sent to localhost"),
            (AdminAccess::RefusedForPublicUrl, LOCAL, HERE, None, "server.public_url"),
            (AdminAccess::RefusedForAllowOpen, LOCAL, HERE, None, "server.allow_open"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(name) = header {
                headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::from_static(""));
            }
            let peer = peer.map(|peer| peer.parse().unwrap());
            let peer = Peer { address: peer, certificate: None };
            let source = Source { origin: &RequestOrigin::Own, host: host.and_then(Authority::parse), peer: &peer };
            let told = access.refuses(&headers, &source).unwrap_or_else(|| "taken".to_owned());
            assert!(told.contains(expected), "{access:?} {peer:?} {host:?} {header:?}: {told}");
        }
    }
}
