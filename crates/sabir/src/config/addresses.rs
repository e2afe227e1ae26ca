//! Addresses to listen on.
//!
//! `7870` and `:7870` are loopback: who leaves the host out did not ask to be reached from elsewhere. No name
//! but `localhost` is looked up, so that a start-up never waits for a resolver.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub const EXPECTED: &str = "an address such as \"127.0.0.1:41242\", \"[::1]:41242\", \"localhost:41242\" or a port";

pub fn parse(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    // `parse` of a number also takes a sign.
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(SocketAddr::new(parse_host(host)?, port.parse().ok()?))
}

/// A host without a port. Empty is loopback.
pub fn parse_host(host: &str) -> Option<IpAddr> {
    match host {
        "" => Some(Ipv4Addr::LOCALHOST.into()),
        name if name.eq_ignore_ascii_case("localhost") => Some(Ipv4Addr::LOCALHOST.into()),
        ip => {
            let bare = ip.strip_prefix('[').and_then(|ip| ip.strip_suffix(']'));
            bare.unwrap_or(ip).parse().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_their_short_forms() {
        for (text, expected) in [
            ("127.0.0.1:41242", Some("127.0.0.1:41242")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("localhost:80", Some("127.0.0.1:80")),
            (":7870", Some("127.0.0.1:7870")),
            ("7870", Some("127.0.0.1:7870")),
            ("0", Some("127.0.0.1:0")),
            ("", None),
            (":", None),
            ("+80", None),
            ("70000", None),
            ("127.0.0.1", None),
            ("example.com:80", None),
            ("http://127.0.0.1:80", None),
        ] {
            let address = parse(text).map(|address| address.to_string());
            assert_eq!(address.as_deref(), expected, "{text:?}");
        }
    }
}
