//! The request for a token: a form, and how the client proves who it is (RFC 6749, section 2.3.1).
//!
//! Everything is percent-encoded, spaces as well: who reads a form takes `%20` for a space like `+`.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use sabir_model::Base64;
use sabir_wire::percent_encode;

use super::settings::{ClientAuthentication, OauthClient, RequestedAccess};
use crate::client::AGENT;

/// The parameters of a request, in their order.
#[derive(Clone, Default)]
pub(super) struct TokenForm {
    body: String,
    headers: HeaderMap,
}

impl TokenForm {
    pub fn new(grant_type: &str) -> Self {
        let mut form = TokenForm::default();
        form.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        form.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        form.headers.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
        form.add("grant_type", grant_type);
        form
    }

    pub fn add(&mut self, name: &str, value: &str) {
        if !self.body.is_empty() {
            self.body.push('&');
        }
        self.body.push_str(&format!("{name}={}", percent_encode(value)));
    }

    pub fn add_access(&mut self, access: &RequestedAccess) {
        for audience in &access.audiences {
            self.add("audience", audience);
        }
        for resource in &access.resources {
            self.add("resource", resource);
        }
        if !access.scopes.is_empty() {
            self.add("scope", &access.scopes.join(" "));
        }
    }

    pub fn add_client(&mut self, client: &OauthClient) {
        match &client.authentication {
            ClientAuthentication::SecretBasic(secret) => {
                self.headers.insert(header::AUTHORIZATION, basic(&client.basic_pair(secret)));
            }
            ClientAuthentication::SecretPost(secret) => {
                self.add("client_id", &client.id);
                self.add("client_secret", secret.as_str());
            }
            ClientAuthentication::IdOnly => self.add("client_id", &client.id),
        }
    }

    pub fn into_parts(self) -> (HeaderMap, Bytes) {
        (self.headers, self.body.into())
    }
}

/// The header of HTTP basic for `USER:PASSWORD`.
pub(super) fn basic(pair: &str) -> HeaderValue {
    let text = format!("Basic {}", Base64::encode(pair.as_bytes()).as_str());
    let mut value = HeaderValue::try_from(text).expect("base64 fits into a header");
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use super::super::secret::Secret;
    use super::*;

    #[test]
    fn forms() {
        let secret = || Secret::new("s&c ret");
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let access = RequestedAccess {
            scopes: words(&["run", "read"]),
            audiences: words(&["https://a", "b"]),
            resources: words(&["urn:c"]),
        };
        let nothing = RequestedAccess::default();
        for (access, authentication, body, authorization) in [
            (&nothing, None, "grant_type=g", "-"),
            (&access, None, "grant_type=g&audience=https%3A%2F%2Fa&audience=b&resource=urn%3Ac&scope=run%20read", "-"),
            // `a%3Ab:s%26c%20ret`
            (
                &nothing,
                Some(ClientAuthentication::SecretBasic(secret())),
                "grant_type=g",
                "Basic YSUzQWI6cyUyNmMlMjByZXQ=",
            ),
            (
                &nothing,
                Some(ClientAuthentication::SecretPost(secret())),
                "grant_type=g&client_id=a%3Ab&client_secret=s%26c%20ret",
                "-",
            ),
            (&nothing, Some(ClientAuthentication::IdOnly), "grant_type=g&client_id=a%3Ab", "-"),
        ] {
            let mut form = TokenForm::new("g");
            form.add_access(access);
            if let Some(authentication) = authentication {
                form.add_client(&OauthClient { id: "a:b".to_owned(), authentication });
            }
            let (headers, sent) = form.into_parts();
            assert_eq!(sent, body);
            let shown = headers.get(header::AUTHORIZATION);
            assert_eq!(shown.map_or("-", |value| value.to_str().unwrap()), authorization);
            assert!(shown.is_none_or(HeaderValue::is_sensitive));
            assert_eq!(headers[header::CONTENT_TYPE], "application/x-www-form-urlencoded");
        }
    }
}
