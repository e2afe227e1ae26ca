//! `WWW-Authenticate`: what a caller who was not let in should show.

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response};

use super::Auth;
use super::resource_metadata::METADATA_PATH;
use crate::body::Body;

impl Auth {
    /// Adds one challenge for each kind of credential that is taken. The first names the metadata of RFC 9728, by which
    /// hosts such as Claude find where to log in.
    ///
    /// `resource` is the path below which the metadata of a door is; empty for all else.
    pub(crate) fn challenge(&self, base: &str, resource: &str, request: &HeaderMap, response: &mut Response<Body>) {
        let metadata = format!("resource_metadata=\"{base}{METADATA_PATH}{resource}\"");
        let mut challenges = Vec::new();
        if self.takes_bearer() {
            // RFC 6750: who showed nothing is told no error.
            let error = if request.contains_key(AUTHORIZATION) { ", error=\"invalid_token\"" } else { "" };
            challenges.push(format!("Bearer realm=\"sabir\"{error}, {metadata}"));
        }
        let keys = self.api_keys.iter().map(|(header, _)| header);
        challenges.extend(keys.map(|header| format!("ApiKey realm=\"sabir\", header=\"{header}\", {metadata}")));
        // There is no scheme for certificates; a 401 must have one all the same.
        if challenges.is_empty() {
            challenges.push(format!("Mutual realm=\"sabir\", {metadata}"));
        }
        for challenge in challenges {
            if let Ok(value) = HeaderValue::try_from(challenge) {
                response.headers_mut().append(WWW_AUTHENTICATE, value);
            }
        }
    }
}
