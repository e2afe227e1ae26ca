//! What the next request is when a response is a redirect.

use http::{HeaderMap, HeaderName, Method, StatusCode, header};

use super::error::DialError;
use super::request::{Request, Response};
use crate::guard::{Refusal, Scheme, Target};

/// Headers that are for one origin only. Values that are marked as sensitive are, too.
const SECRETS: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("x-a2a-notification-token"),
    HeaderName::from_static("a2a-notification-token"),
];

/// Where a response redirects to, if it does.
pub(super) fn location(target: &Target, response: &Response) -> Option<Result<Target, DialError>> {
    let is_redirect = matches!(response.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers.get(header::LOCATION).filter(|_| is_redirect)?;
    let next = location.to_str().map_err(|_| Refusal::Malformed).and_then(|location| target.join(location));
    Some(match next {
        Ok(next) if target.scheme == Scheme::Https && next.scheme == Scheme::Http => Err(Refusal::Downgrade.into()),
        next => next.map_err(DialError::Refused),
    })
}

/// The request as the next hop gets it: what was a POST may become a GET, and another origin gets no secrets.
pub(super) fn follow(
    mut request: Request,
    status: StatusCode,
    from: &Target,
    to: &Target,
) -> Result<Request, DialError> {
    let keeps_method = matches!(status.as_u16(), 307 | 308) || matches!(request.method, Method::GET | Method::HEAD);
    if !keeps_method {
        request.method = Method::GET;
        request.body.clear();
        for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CONTENT_LANGUAGE] {
            request.headers.remove(name);
        }
    }
    if from.origin() != to.origin() {
        request.headers = without_secrets(request.headers);
        if request.secret_query.take().is_some_and(|query| query.is_in(to)) {
            return Err(Refusal::SecretInRedirect.into());
        }
    }
    Ok(request)
}

fn without_secrets(headers: HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    for (name, value) in &headers {
        if value.is_sensitive() || SECRETS.contains(name) {
            kept.remove(name);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderValue;

    use super::*;

    #[test]
    fn locations_of_responses() {
        let refused = |refusal| Some(Err(DialError::Refused(refusal)));
        let to = |url| Some(Ok(Target::parse(url).unwrap()));
        for (from, status, value, expected) in [
            ("https://a.example/", 302, Some("https://b.example/"), to("https://b.example/")),
            ("https://a.example/", 302, Some("http://a.example/"), refused(Refusal::Downgrade)),
            ("http://a.example/", 302, Some("https://a.example/"), to("https://a.example/")),
            ("http://a.example/", 307, Some("//b.example"), to("http://b.example/")),
            ("http://a.example/", 302, Some("file:///x"), refused(Refusal::Scheme)),
            ("http://a.example/", 302, Some("http://bücher.example/"), refused(Refusal::Malformed)),
            ("http://a.example/", 302, None, None),
            ("http://a.example/", 304, Some("/x"), None),
            ("http://a.example/", 200, Some("/x"), None),
            ("http://a.example/", 201, Some("/x"), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.extend(value.map(|value| (header::LOCATION, HeaderValue::from_str(value).unwrap())));
            let status = StatusCode::from_u16(status).unwrap();
            let response = Response { status, headers, body: Bytes::new(), trailers: HeaderMap::new() };
            assert_eq!(location(&Target::parse(from).unwrap(), &response), expected, "{from} {status} {value:?}");
        }
    }
}
