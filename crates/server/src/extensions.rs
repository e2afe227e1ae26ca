//! Which extensions a caller wants, and which of them it gets.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

/// 1.0's name for the header, and 0.x's.
const NAMES: [&str; 2] = ["a2a-extensions", "x-a2a-extensions"];

/// What is asked for, as one list. The header may come under both names and several times.
pub(crate) fn requested(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    listed(headers, &NAMES)
}

/// The values of a header that is a list, as one list.
pub(crate) fn listed<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<Cow<'a, str>> {
    let mut lists = names.iter().flat_map(|name| headers.get_all(*name)).filter_map(|value| value.to_str().ok());
    let first = lists.next()?;
    Some(lists.fold(Cow::Borrowed(first), |all, more| Cow::Owned(format!("{all},{more}"))))
}

/// What of that is active, since the one who is called declares it.
pub(crate) fn active(headers: &HeaderMap, is_declared: impl Fn(&str) -> bool) -> Option<HeaderValue> {
    let requested = requested(headers)?;
    let mut active: Vec<&str> = Vec::new();
    for uri in requested.split(',').map(str::trim) {
        if is_declared(uri) && !active.contains(&uri) {
            active.push(uri);
        }
    }
    if active.is_empty() { None } else { HeaderValue::try_from(active.join(", ")).ok() }
}

/// Tells the caller what is active, under the names by which it asked.
pub(crate) fn tell(active: &HeaderValue, request: &HeaderMap, response: &mut HeaderMap) {
    for name in NAMES.iter().filter(|name| request.contains_key(**name)) {
        response.insert(HeaderName::from_static(name), active.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_and_declared_is_active() {
        for (headers, expected) in [
            (vec![], vec![]),
            (vec![("a2a-extensions", "urn:c")], vec![]),
            (vec![("a2a-extensions", "urn:b, urn:c,urn:b")], vec![("a2a-extensions", "urn:b")]),
            (vec![("x-a2a-extensions", "urn:a")], vec![("x-a2a-extensions", "urn:a")]),
            (
                vec![("a2a-extensions", "urn:b"), ("a2a-extensions", "urn:a"), ("x-a2a-extensions", "urn:a")],
                vec![("a2a-extensions", "urn:b, urn:a"), ("x-a2a-extensions", "urn:b, urn:a")],
            ),
        ] {
            let mut request = HeaderMap::new();
            for (name, value) in &headers {
                request.append(*name, HeaderValue::from_static(value));
            }
            let mut response = HeaderMap::new();
            if let Some(active) = active(&request, |uri| matches!(uri, "urn:a" | "urn:b")) {
                tell(&active, &request, &mut response);
            }
            let shown: Vec<(&str, &str)> =
                response.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
            assert_eq!(shown, expected, "{headers:?}");
        }
    }
}
