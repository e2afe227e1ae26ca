//! The headers of a delivery.
//!
//! The token goes into both spellings of the notification-token header. `Authorization` is what the authentication says;
//! in 0.x a token wins over it and is a bearer token. `webhook-id` and `webhook-timestamp` are those of the Standard
//! Webhooks specification.

use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use sabir_model::{Birth, TraceContext};
use sabir_wire::{Dialect, V1};

use super::payload::Body;
use super::secrets::WebhookSecrets;
use super::signature::Signer;
use crate::client::AGENT;

const TOKEN_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-a2a-notification-token"), HeaderName::from_static("a2a-notification-token")];

pub(super) struct DeliveryHead<'a> {
    pub id: &'a str,
    /// Seconds since 1970.
    pub timestamp: i64,
    pub dialect: Birth,
    pub secrets: &'a WebhookSecrets,
    /// Of the request that the event comes from.
    pub trace: Option<&'a TraceContext>,
}

impl DeliveryHead<'_> {
    pub fn headers(&self, body: &Body, signer: &Signer) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(body.content_type));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if self.dialect == V1.birth() {
            headers.insert("a2a-version", HeaderValue::from_static("1.0"));
        }
        if let Some(trace) = self.trace {
            insert(&mut headers, HeaderName::from_static("traceparent"), trace.traceparent());
            if let Some(state) = trace.tracestate() {
                insert(&mut headers, HeaderName::from_static("tracestate"), state);
            }
        }
        if let Some(authorization) = self.authorization() {
            insert(&mut headers, AUTHORIZATION, &authorization);
        }
        for name in TOKEN_HEADERS {
            if let Some(token) = &self.secrets.token {
                insert(&mut headers, name, token);
            }
        }
        insert(&mut headers, HeaderName::from_static("webhook-id"), self.id);
        insert(&mut headers, HeaderName::from_static("webhook-timestamp"), &self.timestamp.to_string());
        for (name, value) in signer.sign(self.id, self.timestamp, &body.bytes) {
            insert(&mut headers, name, &value);
        }
        headers
    }

    fn authorization(&self) -> Option<String> {
        let WebhookSecrets { token, authentication } = self.secrets;
        let bearer = token.as_ref().filter(|_| self.dialect != V1.birth()).map(|token| format!("Bearer {token}"));
        bearer.or_else(|| {
            let authentication = authentication.as_ref()?;
            let credentials = authentication.credentials.as_ref()?;
            let scheme = authentication.schemes.first().map_or("Bearer", String::as_str);
            Some(format!("{scheme} {credentials}"))
        })
    }
}

/// Secrets were checked when they were set; one that cannot be sent all the same is left out.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(mut value) = HeaderValue::from_str(value) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sabir_model::PushAuthentication;
    use sabir_wire::{V01, V03};

    use super::*;

    fn told(dialect: Birth, token: Option<&str>, authentication: Option<(&[&str], Option<&str>)>) -> String {
        let authentication = authentication.map(|(schemes, credentials)| PushAuthentication {
            schemes: schemes.iter().map(|&scheme| scheme.to_owned()).collect(),
            credentials: credentials.map(str::to_owned),
        });
        let secrets = WebhookSecrets { token: token.map(str::to_owned), authentication };
        let body = Body { content_type: "application/json", bytes: Bytes::new() };
        let head = DeliveryHead { id: "msg_1", timestamp: 7, dialect, secrets: &secrets, trace: None };
        let headers = head.headers(&body, &Signer::default());
        let shown = ["authorization", "x-a2a-notification-token", "a2a-notification-token"];
        let values = shown.map(|name| headers.get(name).map_or("-", |value| value.to_str().unwrap()));
        values.join(" | ")
    }

    #[test]
    fn credentials_by_dialect() {
        let (v1, v03, v01) = (V1.birth(), V03.birth(), V01.birth());
        let basic: (&[&str], Option<&str>) = (&["Basic", "Bearer"], Some("c"));
        for (dialect, token, authentication, expected) in [
            (v1, None, None, "- | - | -"),
            (v1, Some("t"), None, "- | t | t"),
            (v1, Some("t"), Some(basic), "Basic c | t | t"),
            (v1, None, Some((&["Bearer"][..], None)), "- | - | -"),
            (v03, Some("t"), None, "Bearer t | t | t"),
            (v03, Some("t"), Some(basic), "Bearer t | t | t"),
            (v03, None, Some(basic), "Basic c | - | -"),
            (v03, None, Some((&[][..], Some("c"))), "Bearer c | - | -"),
            (v01, Some("t"), Some(basic), "Bearer t | t | t"),
            (v01, None, Some(basic), "Basic c | - | -"),
        ] {
            assert_eq!(told(dialect, token, authentication), expected, "{dialect} {token:?} {authentication:?}");
        }
    }
}
