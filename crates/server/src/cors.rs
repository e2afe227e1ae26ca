//! Pages of other origins: refused, unless the settings name them.
//!
//! A browser sends `Origin` with every request that a script makes. A server on loopback would
//! otherwise be open to every page that its user looks at.

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use crate::app::CorsSettings;
use crate::body::Body;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Accept, Authorization, A2A-Version, A2A-Extensions, X-A2A-Extensions, Last-Event-ID, Idempotency-Key, X-Request-Id",
);
const EXPOSED: HeaderValue =
    HeaderValue::from_static("A2A-Extensions, X-A2A-Extensions, ETag, Retry-After, X-Request-Id");
const ONE_DAY: HeaderValue = HeaderValue::from_static("86400");

/// What the origin of a request means.
pub(crate) enum Origin {
    /// No page of another origin is involved.
    Own,
    Allowed(HeaderValue),
    Refused,
}

impl CorsSettings {
    /// `host` is what the request says that it came to.
    pub(crate) fn judge(&self, headers: &HeaderMap, host: Option<&str>) -> Origin {
        let Some(origin) = headers.get(header::ORIGIN) else { return Origin::Own };
        let listed = |wanted: &String| wanted == "*" || wanted.as_bytes().eq_ignore_ascii_case(origin.as_bytes());
        if self.origins.iter().any(listed) {
            return Origin::Allowed(origin.clone());
        }
        let authority =
            origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
        if authority.is_some() && authority == host { Origin::Own } else { Origin::Refused }
    }
}

/// The answer to a browser that asks before it sends.
pub(crate) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
    let asks = method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    asks.then(|| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, ONE_DAY);
        response
    })
}

pub(crate) fn allow(origin: HeaderValue, response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_call() {
        let say = |allowed: &[&str], origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            let settings = CorsSettings { origins: allowed.iter().map(ToString::to_string).collect() };
            match settings.judge(&headers, Some("127.0.0.1:41242")) {
                Origin::Own => "own",
                Origin::Allowed(_) => "allowed",
                Origin::Refused => "refused",
            }
        };
        for (allowed, origin, expected) in [
            (&[][..], None, "own"),
            (&[], Some("http://127.0.0.1:41242"), "own"),
            (&[], Some("https://evil.example"), "refused"),
            (&[], Some("null"), "refused"),
            (&["https://app.example"], Some("https://app.example"), "allowed"),
            (&["https://app.example"], Some("https://evil.example"), "refused"),
            (&["*"], Some("https://evil.example"), "allowed"),
            (&["*"], Some("null"), "allowed"),
        ] {
            assert_eq!(say(allowed, origin), expected, "{origin:?} with {allowed:?}");
        }
    }
}
