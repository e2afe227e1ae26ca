//! Addresses to listen on, web addresses that the card shows, origins of web pages, and host names.
//!
//! Nothing here is looked up or dialled, so that a start-up never waits for a resolver. Web addresses are only kept from
//! what could never be right: relative ones, other schemes, and passwords that everybody could read on the card.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sabir_outbound::{EgressPolicy, Ports};
use sabir_server::{AddressRange, HostName};
use serde_json::json;

use super::raw::Raw;
use super::values::{ValueKind, count, not_empty, set};

/// Addresses to listen on, at least one.
pub fn listen_addresses() -> ValueKind<Vec<SocketAddr>> {
    let expected = "an address such as \"127.0.0.1:41242\", \"[::1]:41242\", \"localhost:41242\" or a port";
    let address = ValueKind::expecting(expected, json!({"type": ["string", "integer"]}), |raw| {
        let address = match raw {
            Raw::Integer(port) => parse_address(&port.to_string())?,
            other => parse_address(other.as_text()?)?,
        };
        Some((address, json!(address.to_string())))
    });
    // Port 0 asks for a free port, so two of them are two ports.
    not_empty(set(address, |known, new| known == new && new.port() != 0))
}

/// An absolute http or https address, without the slash at its end.
pub fn web_url() -> ValueKind<String> {
    let expected = "an absolute address without query and user, such as \"https://agents.example.com\"";
    ValueKind::of_text(expected, |text| {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
        let host = rest.split('/').next().unwrap_or_default();
        let is_plain = !text.contains(['?', '#', '\\']) && is_visible(text);
        (is_plain && is_host(host)).then(|| text.trim_end_matches('/').to_owned())
    })
}

/// Where gRPC is: host and port, without a scheme.
pub fn host_and_port() -> ValueKind<String> {
    ValueKind::of_text("a host and a port, such as \"agents.example.com:443\"", |text| {
        let (host, port) = text.rsplit_once(':')?;
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        (is_port && !host.is_empty() && is_visible(text) && is_host(text)).then(|| text.to_owned())
    })
}

/// `*`, or scheme, host and perhaps port, as browsers send it in `ValueOrigin`.
pub fn origin() -> ValueKind<String> {
    ValueKind::of_text("\"*\" or an origin such as \"https://app.example.com\"", |text| {
        if text == "*" {
            return Some(text.to_owned());
        }
        let origin = text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase();
        let (scheme, host) = origin.split_once("://")?;
        let is_plain = !host.contains(['/', '?', '#', '\\', '*', ',']) && is_visible(&origin);
        (is_scheme(scheme) && is_plain && is_host(host)).then_some(origin)
    })
}

/// A host that webhooks may lead to.
pub fn webhook_host() -> ValueKind<String> {
    ValueKind::of_text("a host name or an address, without scheme and port, such as \"hooks.internal\"", |text| {
        EgressPolicy::default().allow_host(text).ok().map(|()| text.to_owned())
    })
}

/// A range of addresses that webhooks may lead to.
pub fn webhook_range() -> ValueKind<String> {
    ValueKind::of_text("a range of addresses such as \"10.0.0.0/8\" or \"fd00::/8\"", |text| {
        EgressPolicy::default().allow_range(text).ok().map(|()| text.to_owned())
    })
}

/// Addresses of proxies.
pub fn address_range() -> ValueKind<AddressRange> {
    let expected = "an address or a range such as \"10.0.0.1\", \"10.0.0.0/8\" or \"fd00::/8\"";
    ValueKind::expecting(expected, json!({"type": "string"}), |raw| {
        let range = AddressRange::parse(raw.as_text()?)?;
        Some((range, json!(range.to_string())))
    })
}

/// Ports that webhooks may lead to: `any`, `safe`, or a list.
pub fn webhook_ports() -> ValueKind<Ports> {
    let ports = not_empty(set(count(1..=u64::from(u16::MAX)), u16::eq));
    let schema = json!({"anyOf": [{"enum": ["any", "safe"]}, ports.schema]});
    ValueKind::new(schema, move |raw| match raw.as_text() {
        Some("any") => Ok((Ports::Any, json!("any"))),
        Some("safe") => Ok((Ports::NotOtherProtocols, json!("safe"))),
        _ => match ports.read(raw) {
            Ok((ports, shown)) => Ok((Ports::Only(ports), shown)),
            Err(words) => Err(format!("{words}, or \"any\" or \"safe\" alone")),
        },
    })
}

/// The name of something by an address that need not lead anywhere, and that can stand in a list with commas.
pub fn uri() -> ValueKind<String> {
    ValueKind::of_text("a URI without commas, such as \"https://example.com/ext/v1\"", |text| {
        let (scheme, rest) = text.split_once(':')?;
        let is_plain = !rest.is_empty() && !text.contains(',') && is_visible(text);
        (is_plain && is_scheme(scheme)).then(|| text.to_owned())
    })
}

/// Host names without ports, or `*`.
pub fn host_names() -> ValueKind<Vec<String>> {
    let expected = "\"*\" or a host name without a port, such as \"agents.example.com\"";
    let name = ValueKind::of_text(expected, |text| match text {
        "*" => Some(text.to_owned()),
        name => HostName::parse(name).map(|name| name.as_str().to_owned()),
    });
    set(name, String::eq)
}

/// The host of a web address, without its port.
pub fn host_of_url(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => Some(host),
        _ => Some(authority),
    }
}

/// A host without a port. `localhost` is the only name; empty is loopback too.
pub fn parse_host(host: &str) -> Option<IpAddr> {
    if host.is_empty() || host.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

/// `7870` and `:7870` are loopback: who leaves the host out did not ask to be reached from elsewhere.
fn parse_address(text: &str) -> Option<SocketAddr> {
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

fn is_scheme(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_letter)
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A name or address, perhaps with a port. User and password are not for everybody to read.
fn is_host(host: &str) -> bool {
    // An IPv6 address has colons of its own, inside brackets.
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (is_name, port) = match bracketed {
        Some((address, rest)) => (address.parse::<Ipv6Addr>().is_ok(), rest),
        None => {
            let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
            (!name.is_empty() && !name.contains(['@', '[', ']']), port)
        }
    };
    let port_fits = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    is_name && port_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the text is shown, or what is wrong with it.
    fn outcome<V: 'static>(kind: &ValueKind<V>, raw: &Raw) -> String {
        kind.read(raw).map_or_else(|words| words, |(_, shown)| shown.to_string())
    }

    fn read(kind: &ValueKind<String>, text: &str) -> Option<String> {
        kind.read(&Raw::untyped(text)).ok().map(|(value, _)| value)
    }

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
            let address = parse_address(text).map(|address| address.to_string());
            assert_eq!(address.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn listen_takes_one_or_many_and_names_the_wrong_one() {
        let expected =
            "expected an address such as \"127.0.0.1:41242\", \"[::1]:41242\", \"localhost:41242\" or a port";
        let text = |text: &str| Raw::Text(text.to_owned());
        for (raw, expected) in [
            (Raw::untyped("7870, 0.0.0.0:80"), r#"["127.0.0.1:7870","0.0.0.0:80"]"#.to_owned()),
            (Raw::Integer(7870), r#"["127.0.0.1:7870"]"#.to_owned()),
            (Raw::untyped(":1,:1"), r#"["127.0.0.1:1"]"#.to_owned()),
            (Raw::untyped(":0,:0"), r#"["127.0.0.1:0","127.0.0.1:0"]"#.to_owned()),
            (Raw::List(vec![text("1"), text("nowhere")]), format!("holds \"nowhere\"; {expected}")),
            (Raw::untyped("1,nowhere"), format!("holds \"nowhere\"; {expected}")),
            (Raw::List(vec![]), format!("is empty; {expected}")),
        ] {
            assert_eq!(outcome(&listen_addresses(), &raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn hosts_are_names_without_ports() {
        let expected = "expected \"*\" or a host name without a port, such as \"agents.example.com\"";
        let text = |text: &str| Raw::Text(text.to_owned());
        for (raw, expected) in [
            (Raw::untyped("Agents.example.com., 10.0.0.1,10.0.0.1"), r#"["agents.example.com","10.0.0.1"]"#.to_owned()),
            (Raw::untyped("*"), r#"["*"]"#.to_owned()),
            (Raw::List(vec![]), "[]".to_owned()),
            (Raw::untyped("a.example,*.example"), format!("holds \"*.example\"; {expected}")),
            (text("a.example:80"), format!("is \"a.example:80\"; {expected}")),
            (text("https://a.example"), format!("is \"https://a.example\"; {expected}")),
            (Raw::List(vec![text("")]), format!("holds \"\"; {expected}")),
            (Raw::Integer(1), format!("is 1; {expected}")),
        ] {
            assert_eq!(outcome(&host_names(), &raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn proxies_are_addresses_and_ranges() {
        let expected = "expected an address or a range such as \"10.0.0.1\", \"10.0.0.0/8\" or \"fd00::/8\"";
        for (text, expected) in [
            ("10.0.0.0/8, ::1", r#"["10.0.0.0/8","::1"]"#.to_owned()),
            ("10.0.0.1/8", format!("is \"10.0.0.1/8\"; {expected}")),
            ("::1,proxy", format!("holds \"proxy\"; {expected}")),
        ] {
            assert_eq!(outcome(&super::super::values::list(address_range()), &Raw::untyped(text)), expected);
        }
    }

    #[test]
    fn web_addresses_are_absolute_and_hold_no_password() {
        for (text, expected) in [
            ("https://agents.example.com", Some("https://agents.example.com")),
            ("https://agents.example.com/", Some("https://agents.example.com")),
            ("http://[::1]:80/a2a/", Some("http://[::1]:80/a2a")),
            ("agents.example.com", None),
            ("ftp://example.com", None),
            ("https://", None),
            ("https:///path", None),
            ("https://user:secret@example.com", None),
            ("https://example.com:port", None),
            ("https://example.com?x=1", None),
            ("https://exa mple.com", None),
            ("http://[zebra]/", None),
        ] {
            assert_eq!(read(&web_url(), text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn hosts_of_web_addresses() {
        for (url, expected) in [
            ("https://agents.example.com", "agents.example.com"),
            ("https://agents.example.com:8443/a2a", "agents.example.com"),
            ("http://[::1]", "[::1]"),
            ("http://[::1]:80/a:b", "[::1]"),
        ] {
            assert_eq!(host_of_url(url), Some(expected), "{url}");
        }
    }

    #[test]
    fn origins_of_pages() {
        for (text, expected) in [
            ("*", Some("*")),
            ("https://App.example.com/", Some("https://app.example.com")),
            ("http://localhost:3000", Some("http://localhost:3000")),
            ("vscode-webview://abc", Some("vscode-webview://abc")),
            ("https://app.example.com/page", None),
            ("https://*.example.com", None),
            ("app.example.com", None),
            ("null", None),
        ] {
            assert_eq!(read(&origin(), text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn uris_that_can_stand_in_a_list() {
        for text in ["https://example.com/ext/v1", "urn:example:ext", "x-ours+1:a?b#c"] {
            assert_eq!(read(&uri(), text).as_deref(), Some(text));
        }
        for text in ["", "ext", ":ext", "https:", "1x:ext", "urn:a,urn:b", "urn:a b", "urn:é"] {
            assert_eq!(read(&uri(), text), None, "{text:?}");
        }
    }
}
