//! Web addresses and other URIs that the card shows, and origins of web pages.
//!
//! Nothing here dials them, so this only keeps out what could never be right: relative addresses, other
//! schemes, and passwords that everybody could read on the card.

/// An absolute http or https address, without the slash at its end.
pub fn parse(text: &str) -> Option<String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let host = rest.split('/').next().unwrap_or_default();
    let plain = !text.contains(['?', '#', '\\']) && is_visible(text);
    (plain && is_host(host)).then(|| text.trim_end_matches('/').to_owned())
}

/// The host of an address that `parse` has taken, without its port.
pub fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => Some(host),
        _ => Some(authority),
    }
}

/// `*`, or scheme, host and perhaps port, as browsers send it in `Origin`.
pub fn parse_origin(text: &str) -> Option<String> {
    if text == "*" {
        return Some(text.to_owned());
    }
    let origin = text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase();
    let (scheme, host) = origin.split_once("://")?;
    let plain = !host.contains(['/', '?', '#', '\\', '*', ',']) && is_visible(&origin);
    (is_scheme(scheme) && plain && is_host(host)).then_some(origin)
}

/// Any absolute URI that can stand in a list with commas.
pub fn parse_uri(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    let plain = !rest.is_empty() && !text.contains(',') && is_visible(text);
    (plain && is_scheme(scheme)).then(|| text.to_owned())
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
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, "")) => (name, None),
        Some((name, rest)) => match rest.strip_prefix(':') {
            Some(port) => (name, Some(port)),
            None => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let is_bracketed = host.starts_with('[');
    if is_bracketed && name.parse::<std::net::Ipv6Addr>().is_err() {
        return false;
    }
    let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok());
    !name.is_empty() && !name.contains(['@', '[', ']']) && port_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses() {
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
            assert_eq!(parse(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn hosts_of_addresses() {
        for (url, expected) in [
            ("https://agents.example.com", "agents.example.com"),
            ("https://agents.example.com:8443/a2a", "agents.example.com"),
            ("http://[::1]", "[::1]"),
            ("http://[::1]:80/a:b", "[::1]"),
        ] {
            assert_eq!(host_of(url), Some(expected), "{url}");
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
            assert_eq!(parse_origin(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn uris_that_can_stand_in_a_list() {
        for text in ["https://example.com/ext/v1", "urn:example:ext", "x-ours+1:a?b#c"] {
            assert_eq!(parse_uri(text).as_deref(), Some(text));
        }
        for text in ["", "ext", ":ext", "https:", "1x:ext", "urn:a,urn:b", "urn:a b", "urn:é"] {
            assert_eq!(parse_uri(text), None, "{text:?}");
        }
    }
}
