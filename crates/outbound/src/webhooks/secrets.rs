//! Token and authentication of a webhook: checked when they are set, sealed in the store, used as headers.

use http::HeaderValue;
use sabir_model::PushAuthentication;
use serde::{Deserialize, Serialize};

use super::seal::{SealKey, UnsealError, seal, unseal};

/// What a receiver expects of us.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WebhookSecrets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<PushAuthentication>,
}

/// Says what is set, and nothing of it.
impl std::fmt::Debug for WebhookSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (token, authentication) = (self.token.is_some(), self.authentication.is_some());
        f.debug_struct("WebhookSecrets").field("token", &token).field("authentication", &authentication).finish()
    }
}

/// A secret that no header can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InvalidSecret {
    /// The member of the config.
    pub field: &'static str,
    pub reason: &'static str,
}

/// Receivers refuse longer headers.
const MAX_SECRET: usize = 4096;
/// Far more than there are schemes of HTTP.
const MAX_SCHEMES: usize = 32;
const MAX_SCHEME: usize = 64;

impl WebhookSecrets {
    /// Says which member cannot be sent as a header.
    pub fn check(&self) -> Result<(), InvalidSecret> {
        let is_sendable = |text: &str| {
            text.len() <= MAX_SECRET
                && text.bytes().all(|byte| (b' '..0x7f).contains(&byte))
                && HeaderValue::from_str(text).is_ok()
        };
        let authentication = self.authentication.as_ref();
        let credentials = authentication.and_then(|authentication| authentication.credentials.as_deref());
        for (field, text) in [("token", self.token.as_deref()), ("authentication.credentials", credentials)] {
            if !text.is_none_or(is_sendable) {
                return Err(InvalidSecret { field, reason: "must be at most 4096 printable ASCII characters" });
            }
        }
        // Answers show schemes, so credentials must not hide in one.
        let schemes = authentication.map_or(&[][..], |authentication| &authentication.schemes);
        if schemes.len() > MAX_SCHEMES || !schemes.iter().all(|scheme| is_scheme(scheme)) {
            let reason = "must be the name of a scheme of HTTP, such as Bearer";
            return Err(InvalidSecret { field: "authentication.scheme", reason });
        }
        Ok(())
    }

    /// The bytes that are stored.
    pub fn seal(&self, key: Option<&SealKey>, url: &str) -> Vec<u8> {
        seal(key, url, serde_json::to_vec(self).expect("texts can be written as JSON"))
    }

    /// The authentication schemes in what is stored, which callers may be shown; none if it cannot be unsealed.
    pub fn schemes(key: Option<&SealKey>, url: &str, stored: &[u8]) -> Vec<String> {
        let authentication = Self::unseal(key, url, stored).ok().and_then(|secrets| secrets.authentication);
        authentication.map(|authentication| authentication.schemes).unwrap_or_default()
    }

    pub(super) fn unseal(key: Option<&SealKey>, url: &str, stored: &[u8]) -> Result<Self, UnsealError> {
        serde_json::from_slice(&unseal(key, url, stored)?).map_err(|_| UnsealError::Damaged)
    }
}

/// A token of HTTP.
fn is_scheme(text: &str) -> bool {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.len() <= MAX_SCHEME && text.bytes().all(is_of_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(token: &str, schemes: &[&str], credentials: &str) -> WebhookSecrets {
        let schemes = schemes.iter().map(|&scheme| scheme.to_owned()).collect();
        let authentication = PushAuthentication { schemes, credentials: Some(credentials.to_owned()) };
        WebhookSecrets { token: Some(token.to_owned()), authentication: Some(authentication) }
    }

    #[test]
    fn secrets_must_fit_into_headers() {
        let long = "x".repeat(MAX_SECRET + 1);
        for (given, wrong) in [
            (WebhookSecrets::default(), None),
            (secrets("t", &["Bearer"], "c"), None),
            (secrets("t", &[], ""), None),
            (secrets("a\r\nHost: b", &["Bearer"], "c"), Some("token")),
            (secrets(&long, &["Bearer"], "c"), Some("token")),
            (secrets("t", &["Bear\ner"], "c"), Some("authentication.scheme")),
            (secrets("t", &["Bearer c"], ""), Some("authentication.scheme")),
            (secrets("t", &["Bearer", "Basic:x"], "c"), Some("authentication.scheme")),
            (secrets("t", &[""], "c"), Some("authentication.scheme")),
            (secrets("t", &["Bearer", &long], "c"), Some("authentication.scheme")),
            (secrets("t", &["Basic"; MAX_SCHEMES + 1], "c"), Some("authentication.scheme")),
            (secrets("t", &["Basic"; MAX_SCHEMES], "c"), None),
            (secrets("t", &["Bearer"], "ü"), Some("authentication.credentials")),
        ] {
            assert_eq!(given.check().err().map(|error| error.field), wrong, "{given:?}");
        }
    }

    #[test]
    fn a_log_shows_no_secret() {
        let shown = format!("{:?}", secrets("geheim", &["geheim"], "geheim"));
        assert_eq!(shown, "WebhookSecrets { token: true, authentication: true }");
    }

    #[test]
    fn secrets_survive_the_store() {
        let key = SealKey::generate();
        let given = secrets("t", &["Basic"], "c");
        for key in [None, Some(&key)] {
            let stored = given.seal(key, "https://a/");
            assert_eq!(WebhookSecrets::unseal(key, "https://a/", &stored).unwrap(), given);
            assert_eq!(WebhookSecrets::schemes(key, "https://a/", &stored), ["Basic"]);
        }
        assert_eq!(WebhookSecrets::unseal(None, "https://a/", b"\0{"), Err(UnsealError::Damaged));
        assert!(WebhookSecrets::schemes(None, "https://a/", b"\0{").is_empty());
    }
}
