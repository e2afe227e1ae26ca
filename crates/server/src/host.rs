//! The host that a request names, and whether this server answers to it.
//!
//! To a browser, a page on any name that resolves to this machine has the same origin as this server (DNS rebinding), so
//! the name is the only thing that tells the two apart. It is checked before anything else of a request is read. IP
//! addresses need no check: rebinding needs a name.
//!
//! `Host`, the `:authority` of HTTP/2 and the address in an HTTP/1 request line say the same thing. A request in which they
//! differ is refused, so that no two parts of the server can believe different ones.

use std::net::{IpAddr, Ipv6Addr};

use http::header;
use http::request::Parts;
use sabir_model::Error;

/// Which host names a server answers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HostCheck {
    /// Any name: something in front of the server checks it, or every call needs a credential.
    #[default]
    Off,
    /// These, `localhost` and the names below it, `host.docker.internal`, and every IP address.
    Names(Vec<HostName>),
}

/// A host name in lower case, without a dot at its end, or an IP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

impl HostName {
    /// `None`: it has a port, or is no name and no address at all.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Some(Self(IpAddr::from(address).to_string()));
        }
        let named = Authority::parse(text).filter(|named| named.port.is_none() && !text.ends_with(':'))?;
        Some(Self(match named.host {
            Host::Address(address) => address.to_string(),
            Host::Name(name) => name.to_ascii_lowercase(),
        }))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl HostCheck {
    /// The host of a request, if it names one and this server answers to it.
    pub(crate) fn check<'a>(&self, parts: &'a Parts) -> Result<Option<Authority<'a>>, Error> {
        let requested = requested(parts)?;
        let HostCheck::Names(names) = self else { return Ok(requested) };
        match &requested {
            None => Err(Error::BrokenHead("the request has no Host header".into())),
            Some(authority) if authority.host.is_ours(names) => Ok(requested),
            Some(authority) => {
                Err(Error::Misdirected(format!("server.allowed_hosts does not list the host {}", authority.text)))
            }
        }
    }
}

/// The host that a request names. `None`: it names none.
pub(crate) fn requested(parts: &Parts) -> Result<Option<Authority<'_>>, Error> {
    let broken = |why: &str| Error::BrokenHead(why.into());
    let mut headers = parts.headers.get_all(header::HOST).iter();
    let header = match (headers.next(), headers.next()) {
        (_, Some(_)) => return Err(broken("the request has more than one Host header")),
        (None, None) => None,
        (Some(value), None) => {
            let parsed = value.to_str().ok().and_then(Authority::parse);
            Some(parsed.ok_or_else(|| broken("the Host header is not a host"))?)
        }
    };
    let target = match parts.uri.authority() {
        None => None,
        Some(text) => Some(Authority::parse(text.as_str()).ok_or_else(|| broken("the address is not a host"))?),
    };
    let default_port = if parts.uri.scheme_str() == Some("https") { 443 } else { 80 };
    match (header, target) {
        (Some(header), Some(target)) if !header.is_same(&target, default_port) => {
            Err(broken("the Host header contradicts the address of the request"))
        }
        (header, target) => Ok(target.or(header)),
    }
}

/// `host`, `host:port`, `1.2.3.4:port`, `[::1]:port`; never with a user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Authority<'a> {
    pub(crate) text: &'a str,
    host: Host<'a>,
    port: Option<u16>,
}

#[derive(Debug, Clone, Copy)]
enum Host<'a> {
    Address(IpAddr),
    /// Without a dot at its end.
    Name(&'a str),
}

impl<'a> Authority<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                (Host::Address(address.parse::<Ipv6Addr>().ok()?.into()), port)
            }
            None => {
                let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                let name = name.strip_suffix('.').unwrap_or(name);
                let host = match name.parse() {
                    Ok(address) => Host::Address(address),
                    Err(_) if is_name(name) => Host::Name(name),
                    Err(_) => return None,
                };
                (host, port)
            }
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            None => return None,
            Some("") => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            Some(_) => return None,
        };
        Some(Self { text, host, port })
    }

    /// Whether it can only be this machine. Names below `localhost` are never resolved elsewhere.
    pub(crate) fn is_loopback(&self) -> bool {
        match self.host {
            Host::Address(address) => address.to_canonical().is_loopback(),
            Host::Name(name) => is_localhost(name),
        }
    }

    /// The name of the host, if it is one that others can look up.
    pub(crate) fn domain(&self) -> Option<&'a str> {
        match self.host {
            Host::Name(name) if !is_localhost(name) => Some(name),
            Host::Name(_) | Host::Address(_) => None,
        }
    }

    /// Whether both name the same host and port, where leaving the port out means the default one.
    pub(crate) fn is_same(&self, other: &Authority<'_>, default_port: u16) -> bool {
        self.host.is_same(&other.host) && self.port.unwrap_or(default_port) == other.port.unwrap_or(default_port)
    }
}

impl Host<'_> {
    fn is_same(&self, other: &Host<'_>) -> bool {
        match (self, other) {
            (Host::Address(one), Host::Address(other)) => one == other,
            (Host::Name(one), Host::Name(other)) => one.eq_ignore_ascii_case(other),
            _ => false,
        }
    }

    fn is_ours(&self, names: &[HostName]) -> bool {
        let Host::Name(name) = self else { return true };
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        is_localhost(name) || is("host.docker.internal") || names.iter().any(|known| is(known.as_str()))
    }
}

/// `localhost` and the names below it.
fn is_localhost(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|top_label| top_label.eq_ignore_ascii_case("localhost"))
}

/// What a resolver takes for a name: labels of letters, digits, dashes and underscores.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use http::{Request, Version};

    use super::*;

    fn say(names: Option<&[&str]>, target: &str, hosts: &[&str]) -> String {
        let mut request = Request::builder().uri(target).version(Version::HTTP_11);
        for host in hosts {
            request = request.header("host", http::HeaderValue::from_bytes(host.as_bytes()).unwrap());
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let check = match names {
            Some(names) => HostCheck::Names(names.iter().map(|name| HostName::parse(name).unwrap()).collect()),
            None => HostCheck::Off,
        };
        match check.check(&parts) {
            Ok(Some(authority)) => authority.text.to_owned(),
            Ok(None) => "none".to_owned(),
            Err(Error::Misdirected(_)) => "421".to_owned(),
            Err(Error::BrokenHead(_)) => "400".to_owned(),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_request_must_come_to_a_host_of_ours() {
        for (host, expected) in [
            ("127.0.0.1:41242", "127.0.0.1:41242"),
            ("203.0.113.9", "203.0.113.9"),
            ("127.0.0.1.", "127.0.0.1."),
            ("[::1]:41242", "[::1]:41242"),
            ("[::ffff:127.0.0.1]", "[::ffff:127.0.0.1]"),
            ("localhost", "localhost"),
            ("LOCALHOST:1", "LOCALHOST:1"),
            ("localhost.:1", "localhost.:1"),
            ("app.localhost:1", "app.localhost:1"),
            ("host.docker.internal:41242", "host.docker.internal:41242"),
            ("Agents.Example.com.", "Agents.Example.com."),
            ("agents.example.com:9", "agents.example.com:9"),
            ("evil.example", "421"),
            ("evil.example:41242", "421"),
            ("127.0.0.1.evil.example", "421"),
            ("localhost.evil.example", "421"),
            ("notlocalhost", "421"),
            ("sub.agents.example.com", "421"),
            ("agents.example.com.evil", "421"),
            ("127.1", "421"),
            ("2130706433", "421"),
            ("localhost:", "localhost:"),
            // None of these is a host.
            ("", "400"),
            (".", "400"),
            ("localhost..", "400"),
            ("a..localhost", "400"),
            ("user@localhost", "400"),
            ("evil.example@localhost", "400"),
            ("localhost:80@evil.example", "400"),
            ("localhost, evil.example", "400"),
            ("localhost evil.example", "400"),
            ("localhost/evil", "400"),
            ("http://localhost", "400"),
            ("localhost:http", "400"),
            ("localhost:+80", "400"),
            ("localhost:99999", "400"),
            ("::1", "400"),
            ("[::1", "400"),
            ("[::1]evil", "400"),
            ("[evil.example]", "400"),
            ("%6cocalhost", "400"),
            ("löcalhost", "400"),
        ] {
            assert_eq!(say(Some(&["agents.example.com"]), "/tasks", &[host]), expected, "{host:?}");
        }
    }

    #[test]
    fn what_names_the_host_must_name_one() {
        let ours: Option<&[&str]> = Some(&["agents.example.com"]);
        for (names, target, hosts, expected) in [
            (ours, "/", &["localhost", "localhost"][..], "400"),
            (ours, "/", &["localhost", "evil.example"], "400"),
            (ours, "/", &[], "400"),
            (ours, "http://localhost:1/", &[], "localhost:1"),
            (ours, "http://evil.example/", &[], "421"),
            (ours, "http://localhost:1/", &["LOCALHOST:1"], "localhost:1"),
            (ours, "http://localhost/", &["localhost:80"], "localhost"),
            (ours, "https://localhost/", &["localhost:443"], "localhost"),
            (ours, "http://localhost/", &["localhost:443"], "400"),
            (ours, "http://evil.example/", &["localhost"], "400"),
            (ours, "http://localhost/", &["evil.example"], "400"),
            (ours, "http://localhost:1/", &["localhost:2"], "400"),
            (ours, "http://user@localhost/", &["localhost"], "400"),
            // Without a list any name goes, but not two of them.
            (None, "/", &["evil.example"], "evil.example"),
            (None, "/", &[], "none"),
            (None, "/", &["localhost", "localhost"], "400"),
            (None, "http://evil.example/", &["localhost"], "400"),
        ] {
            assert_eq!(say(names, target, hosts), expected, "{target} with {hosts:?}");
        }
    }

    #[test]
    fn names_in_settings_have_one_spelling() {
        for (text, expected) in [
            ("Agents.Example.com.", Some("agents.example.com")),
            ("my_host", Some("my_host")),
            ("10.0.0.1", Some("10.0.0.1")),
            ("[::1]", Some("::1")),
            ("0:0::1", Some("::1")),
            ("", None),
            ("*", None),
            ("*.example.com", None),
            ("example.com:80", None),
            ("example.com:", None),
            ("[::1]:80", None),
            ("https://example.com", None),
            ("exa mple.com", None),
            ("user@example.com", None),
        ] {
            assert_eq!(HostName::parse(text).as_ref().map(HostName::as_str), expected, "{text:?}");
        }
    }
}
