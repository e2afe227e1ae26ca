//! The host of a URL: an address or a name, in one spelling only.
//!
//! Guards are gotten around by spellings that the guard reads in one way and the dialler in another. So there is one
//! reader, whose result is what gets dialled, and it takes only the plain spelling of each thing: an IPv4 address as
//! four decimal numbers, an IPv6 address in brackets without zone, a name in ASCII. Whatever an older resolver would take
//! for a number (`127.1`, `0x7f.1`, `2130706433`) is refused rather than understood.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use super::refusal::Refusal;

/// An address, or a name in lower case without the final dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    Address(IpAddr),
    Name(String),
}

impl Host {
    /// Reads a host as URLs have it: IPv6 addresses are in brackets.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if let Some(rest) = text.strip_prefix('[') {
            let address = rest.strip_suffix(']').ok_or(Refusal::Malformed)?;
            let address: Ipv6Addr = address.parse().map_err(|_| Refusal::AddressSpelling)?;
            // An IPv4-mapped address is dialled as the IPv4 address that it is.
            return Ok(Host::Address(IpAddr::V6(address).to_canonical()));
        }
        if !text.is_ascii() {
            return Err(Refusal::NameNotAscii);
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if looks_numeric(name) {
            let address = name.parse().map_err(|_| Refusal::AddressSpelling)?;
            return Ok(Host::Address(IpAddr::V4(address)));
        }
        let is_name = name.len() <= 253 && name.split('.').all(is_label);
        is_name.then(|| Host::Name(name.to_ascii_lowercase())).ok_or(Refusal::Malformed)
    }
}

/// Whether a resolver could take a name for an IPv4 address: its last label is a number, decimal or with `0x`.
fn looks_numeric(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && is_number(last),
    }
}

/// Letters, digits, hyphens, and underscores, which container networks have in their names.
fn is_label(label: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=63).contains(&label.len()) && label.bytes().all(is_plain)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_spelling() {
        for (text, expected) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com.", "example.com"),
            ("hook-a", "hook-a"),
            ("my_service.internal", "my_service.internal"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("1.example", "1.example"),
            ("0x7f.example", "0x7f.example"),
            ("8.8.8.8", "8.8.8.8"),
            ("8.8.8.8.", "8.8.8.8"),
            ("[2606:4700::1111]", "[2606:4700::1111]"),
            ("[2606:4700:0:0:0:0:0:1111]", "[2606:4700::1111]"),
            ("[::ffff:8.8.8.8]", "8.8.8.8"),
        ] {
            assert_eq!(Host::parse(text).expect(text).to_string(), expected);
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for (refusal, hosts) in [
            (
                Refusal::AddressSpelling,
                [
                    "2130706433",
                    "0x7f000001",
                    "0X7F000001",
                    "017700000001",
                    "127.1",
                    "127.0.1",
                    "0177.0.0.1",
                    "0x7f.0.0.1",
                    "127.0.0.0x1",
                    "127.000.000.001",
                    "1.2.3.4.5",
                    "256.1.1.1",
                    "0x",
                    "0",
                    "[::1%lo]",
                    "[::1%25lo]",
                    "[fe80::1%eth0]",
                    "[127.0.0.1]",
                    "[]",
                    "[1::2::3]",
                    "%31%32%37.0.0.1",
                ]
                .as_slice(),
            ),
            (Refusal::NameNotAscii, &["bücher.example", "１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "ⓛocalhost"]),
            (
                Refusal::Malformed,
                &[
                    "", ".", "..", "a..b", ".a", "a b", "a%2eb", "[::1", "::1", "a/b", "a\\b", "a@b", "a\0b", "a:b",
                    "a*",
                ],
            ),
        ] {
            for host in hosts {
                assert_eq!(Host::parse(host), Err(refusal.clone()), "{host:?}");
            }
        }
        assert_eq!(Host::parse(&"a".repeat(64)), Err(Refusal::Malformed));
        assert_eq!(Host::parse(&"a.".repeat(127)), Ok(Host::Name("a.".repeat(127).trim_end_matches('.').to_owned())));
        assert_eq!(Host::parse(&"a.".repeat(128)), Err(Refusal::Malformed));
    }
}
