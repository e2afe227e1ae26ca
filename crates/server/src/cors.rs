//! Pages of other origins: refused, unless the settings name them.
//!
//! A browser sends `RequestOrigin` with every request that a script makes. A server on loopback would
//! otherwise be open to every page that its user looks at. A page counts as our own when its origin is the
//! host that the request came to, which `host` has checked before.

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use crate::app::CorsSettings;
use crate::body::Body;
use crate::host::Authority;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
/// Beside these, those that API keys are shown in.
const HEADERS: &str = "Content-Type, Accept, Authorization, A2A-Version, A2A-Extensions, X-A2A-Extensions, Last-Event-ID, Idempotency-Key, Sabir-Push-Events, X-Request-Id, X-Grpc-Web, Grpc-Timeout, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, X-Sabir-Context, OpenAI-Organization, OpenAI-Project, X-Stainless-Arch, X-Stainless-Lang, X-Stainless-OS, X-Stainless-Package-Version, X-Stainless-Runtime, X-Stainless-Runtime-Version, X-Stainless-Retry-Count, X-Stainless-Timeout, X-User-Agent";
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "A2A-Extensions, X-A2A-Extensions, ETag, Retry-After, WWW-Authenticate, X-Request-Id, Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, First-Event-Id, Mcp-Session-Id, X-Sabir-Context, X-Sabir-Task",
);
const ONE_DAY: HeaderValue = HeaderValue::from_static("86400");

/// What the origin of a request means.
pub(crate) enum RequestOrigin {
    /// No page of another origin is involved.
    Own,
    /// The settings name the origin.
    Allowed(HeaderValue),
    /// The settings allow every origin, so this page is nobody's in particular.
    AllowedAsAny(HeaderValue),
    Refused,
}

impl CorsSettings {
    /// `host` is where the request came to.
    pub(crate) fn judge(&self, headers: &HeaderMap, host: Option<&Authority<'_>>) -> RequestOrigin {
        let mut all = headers.get_all(header::ORIGIN).iter();
        let origin = match (all.next(), all.next()) {
            (None, _) => return RequestOrigin::Own,
            (Some(origin), None) => origin,
            // No browser sends two; one of them would go unjudged.
            (Some(_), Some(_)) => return RequestOrigin::Refused,
        };
        if self.origins.iter().any(|named| named.as_bytes().eq_ignore_ascii_case(origin.as_bytes())) {
            return RequestOrigin::Allowed(origin.clone());
        }
        if origin.to_str().ok().zip(host).is_some_and(|(origin, host)| is_at(origin, host)) {
            return RequestOrigin::Own;
        }
        let any = self.origins.iter().any(|named| named == "*");
        if any { RequestOrigin::AllowedAsAny(origin.clone()) } else { RequestOrigin::Refused }
    }

    /// Marks a response as one that depends on the origin, so that no cache shows it to another.
    pub(crate) fn vary(&self, response: &mut Response<Body>) {
        if !self.origins.is_empty() {
            response.headers_mut().append(header::VARY, HeaderValue::from_static("Origin"));
        }
    }
}

/// Whether pages of this origin come from that host. `null` and other schemes never do.
fn is_at(origin: &str, host: &Authority<'_>) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let default_port = match scheme {
        scheme if scheme.eq_ignore_ascii_case("http") => 80,
        scheme if scheme.eq_ignore_ascii_case("https") => 443,
        _ => return false,
    };
    Authority::parse(authority).is_some_and(|origin| origin.is_same(host, default_port))
}

/// The answer to a browser that asks before it sends. `key_headers` are those that API keys are shown in.
pub(crate) fn preflight<'a>(
    method: &Method,
    headers: &HeaderMap,
    key_headers: impl Iterator<Item = &'a str>,
) -> Option<Response<Body>> {
    let asks = method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    asks.then(|| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        let allowed = [HEADERS].into_iter().chain(key_headers).collect::<Vec<_>>().join(", ");
        let allowed = HeaderValue::try_from(allowed).unwrap_or(HeaderValue::from_static(HEADERS));
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, ONE_DAY);
        response
    })
}

pub(crate) fn allow(origin: HeaderValue, response: &mut Response<Body>) {
    let headers = response.headers_mut();
    // What every origin may read says so already.
    headers.entry(header::ACCESS_CONTROL_ALLOW_ORIGIN).or_insert(origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(allowed: &[&str], host: Option<&str>, origins: &[&str]) -> &'static str {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let settings = CorsSettings { origins: allowed.iter().map(ToString::to_string).collect() };
        let host = host.map(|host| Authority::parse(host).unwrap());
        match settings.judge(&headers, host.as_ref()) {
            RequestOrigin::Own => "own",
            RequestOrigin::Allowed(_) => "allowed",
            RequestOrigin::AllowedAsAny(_) => "allowed as any",
            RequestOrigin::Refused => "refused",
        }
    }

    #[test]
    fn who_may_call() {
        for (allowed, origin, expected) in [
            (&[][..], None, "own"),
            (&[], Some("http://127.0.0.1:41242"), "own"),
            (&[], Some("https://evil.example"), "refused"),
            (&[], Some("null"), "refused"),
            (&["https://app.example"], Some("https://app.example"), "allowed"),
            (&["https://app.example"], Some("https://evil.example"), "refused"),
            (&["*"], Some("https://evil.example"), "allowed as any"),
            (&["*"], Some("null"), "allowed as any"),
            (&["*"], Some("http://127.0.0.1:41242"), "own"),
            (&["*", "https://app.example"], Some("https://app.example"), "allowed"),
        ] {
            let origins: Vec<&str> = origin.into_iter().collect();
            assert_eq!(say(allowed, Some("127.0.0.1:41242"), &origins), expected, "{origin:?} with {allowed:?}");
        }
        assert_eq!(say(&["*"], None, &["https://a.example", "https://b.example"]), "refused");
    }

    #[test]
    fn a_preflight_allows_the_headers_that_keys_are_shown_in() {
        let mut asks = HeaderMap::new();
        assert!(preflight(&Method::OPTIONS, &asks, [].into_iter()).is_none());
        asks.insert(header::ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("POST"));
        assert!(preflight(&Method::POST, &asks, [].into_iter()).is_none());
        for (keys, end) in [(&[][..], "X-User-Agent"), (&["x-api-key", "x-other-key"], "x-api-key, x-other-key")] {
            let response = preflight(&Method::OPTIONS, &asks, keys.iter().copied()).unwrap();
            let allowed = response.headers()[header::ACCESS_CONTROL_ALLOW_HEADERS].to_str().unwrap();
            assert!(allowed.contains(", Authorization, ") && allowed.ends_with(end), "{allowed}");
        }
    }

    #[test]
    fn a_page_is_our_own_when_its_origin_is_the_host() {
        for (host, origin, expected) in [
            ("localhost:41242", "http://localhost:41242", "own"),
            ("localhost:41242", "HTTP://LocalHost:41242", "own"),
            ("localhost:41242", "http://localhost", "refused"),
            ("localhost:41242", "http://localhost:41243", "refused"),
            ("localhost", "http://localhost", "own"),
            ("localhost:80", "http://localhost", "own"),
            ("localhost:443", "https://localhost", "own"),
            ("localhost:443", "http://localhost", "refused"),
            ("[::1]:41242", "http://[::1]:41242", "own"),
            ("[::1]:41242", "http://[0:0:0:0:0:0:0:1]:41242", "own"),
            ("[::1]:41242", "http://[::2]:41242", "refused"),
            ("127.0.0.1:41242", "http://localhost:41242", "refused"),
            ("localhost:41242", "http://evil.example@localhost:41242", "refused"),
            ("localhost:41242", "http://localhost:41242@evil.example", "refused"),
            ("localhost:41242", "http://localhost:41242/", "refused"),
            ("localhost:41242", "http://localhost:41242.evil.example", "refused"),
            ("localhost:41242", "file://localhost:41242", "refused"),
            ("localhost:41242", "localhost:41242", "refused"),
            ("localhost:41242", "null", "refused"),
            ("localhost:41242", "", "refused"),
        ] {
            assert_eq!(say(&[], Some(host), &[origin]), expected, "{origin} at {host}");
        }
        assert_eq!(say(&[], None, &["http://localhost"]), "refused", "nothing to compare with");
    }
}
