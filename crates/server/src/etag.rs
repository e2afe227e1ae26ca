//! Tags by which clients and caches know what they have already.

use http::{HeaderMap, HeaderValue, header};

/// The same for the same content. Weak, since a proxy may compress it.
pub(crate) fn etag_of(of: &str, content: &[u8]) -> HeaderValue {
    let hash = content
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    HeaderValue::try_from(format!("W/\"{of}-{hash:016x}\"")).expect("names and digits can be a header")
}

/// Whether the client says that it has this one: `*`, one tag or a list of them; weak comparison, as the method demands.
pub(crate) fn matches_etag(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let ours = etag.to_str().map(strong).unwrap_or_default();
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| tag.trim() == "*" || strong(tag) == ours)
}
