//! What the server is shown: a bearer token, an API key, headers. All of it counts as secret.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use sabir_model::{Card, SecurityKind};
use sabir_outbound::credentials::{ApiKey, ApiKeyPlace, Authentication, CredentialSettings, Secret};
use sabir_outbound::remote::{Remote, RemoteSettings};

use super::failure::{Failure, Shown};
use crate::cli::ServerName;
use crate::process_environment::ClientVariables;

/// Where an API key goes if the card says nothing of it.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

pub struct Credentials {
    bearer: Option<String>,
    api_key: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Credentials {
    /// Flags win over the environment.
    pub fn new(server: &ServerName, variables: &ClientVariables) -> Self {
        Credentials {
            bearer: server.bearer.clone().or_else(|| variables.bearer.clone()),
            api_key: server.api_key.clone().or_else(|| variables.api_key.clone()),
            headers: server.svc_param.clone(),
        }
    }

    pub fn shown(&self) -> Shown {
        match (&self.bearer, &self.api_key, self.headers.is_empty()) {
            (None, None, true) => Shown::Nothing,
            _ => Shown::Credential,
        }
    }

    /// The headers for a server of which nothing is known yet.
    pub fn headers(&self) -> Result<HeaderMap, Failure> {
        self.headers_for(None)
    }

    /// Shows them to a remote agent, and to no other server that its card may lead to. Only its card says where an API key
    /// belongs, so it is fetched for that.
    pub async fn add_to(&self, settings: &mut RemoteSettings) -> Result<(), Failure> {
        settings.credentials = self.settings_for(None)?;
        if self.api_key.is_some()
            && let Ok(remote) = Remote::new(RemoteSettings { observer: None, ..settings.clone() })
            && let Ok(known) = remote.discovered().await
            && let Some(fetched) = &known.card
        {
            settings.credentials = self.settings_for(Some(&fetched.card))?;
        }
        Ok(())
    }

    fn settings_for(&self, card: Option<&Card>) -> Result<CredentialSettings, Failure> {
        let mut settings = CredentialSettings::default();
        for (name, value) in &self.headers_for(card)? {
            // What is no ASCII was refused with the command line.
            let value = value.to_str().map_err(|_| Failure::usage(format!("the header {name} is not ASCII")))?;
            settings.headers.push((name.to_string(), Secret::new(value)));
        }
        if let Some(key) = &self.api_key
            && let KeyPlace::Query(name) = key_place(card)
        {
            let value = Secret::new(key.trim());
            settings.authentication = Authentication::ApiKey(ApiKey { place: ApiKeyPlace::Query, name, value });
        }
        Ok(settings)
    }

    fn headers_for(&self, card: Option<&Card>) -> Result<HeaderMap, Failure> {
        let mut headers: HeaderMap = self.headers.iter().cloned().collect();
        if let Some(token) = &self.bearer {
            headers.insert(header::AUTHORIZATION, secret("the bearer token", &format!("Bearer {}", token.trim()))?);
        }
        if let Some(key) = &self.api_key {
            let key = key.trim();
            match key_place(card) {
                KeyPlace::Header(name) => headers.insert(name, secret("the API key", key)?),
                KeyPlace::Cookie(name) => {
                    headers.insert(header::COOKIE, secret("the API key", &format!("{name}={key}"))?)
                }
                KeyPlace::Query(_) => None,
            };
        }
        Ok(headers)
    }
}

/// Where an API key belongs.
#[derive(Debug, PartialEq, Eq)]
enum KeyPlace {
    Header(HeaderName),
    Cookie(String),
    Query(String),
}

/// As the card says; a header is best, since addresses are logged.
fn key_place(card: Option<&Card>) -> KeyPlace {
    let schemes = card.into_iter().flat_map(|card| &card.security_schemes);
    let declared = schemes.filter_map(|(_, scheme)| match &scheme.kind {
        SecurityKind::ApiKey { location, name } => Some((location.as_str(), name.as_str())),
        _ => None,
    });
    let mut in_query = None;
    for (location, name) in declared {
        match location {
            "header" => {
                if let Ok(header) = HeaderName::try_from(name) {
                    return KeyPlace::Header(header);
                }
            }
            "cookie" => return KeyPlace::Cookie(name.to_owned()),
            _ => in_query = Some(name.to_owned()),
        }
    }
    in_query.map_or(KeyPlace::Header(API_KEY), KeyPlace::Query)
}

fn secret(what: &str, text: &str) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::try_from(text);
    let mut value = value.map_err(|_| Failure::usage(format!("{what} has characters that a header cannot carry")))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use sabir_model::SecurityScheme;

    use super::*;

    #[test]
    fn a_key_goes_where_the_card_wants_it() {
        for (declared, expected) in [
            (&[][..], KeyPlace::Header(API_KEY)),
            (&[("header", "X-Key")], KeyPlace::Header(HeaderName::from_static("x-key"))),
            (&[("cookie", "session")], KeyPlace::Cookie("session".into())),
            (&[("query", "key"), ("header", "X-Key")], KeyPlace::Header(HeaderName::from_static("x-key"))),
            (&[("query", "key")], KeyPlace::Query("key".into())),
            (&[("header", "no header")], KeyPlace::Header(API_KEY)),
        ] {
            let scheme = |(location, name): &(&str, &str)| {
                let kind = SecurityKind::ApiKey { location: (*location).to_owned(), name: (*name).to_owned() };
                ("key".to_owned(), SecurityScheme { description: None, kind })
            };
            let card = Card { security_schemes: declared.iter().map(scheme).collect(), ..Card::default() };
            assert_eq!(key_place(Some(&card)), expected, "{declared:?}");
        }
    }

    #[test]
    fn everything_that_is_shown_is_marked_as_a_secret() {
        let server = ServerName {
            bearer: Some("token".into()),
            svc_param: vec![("x-y".parse().unwrap(), HeaderValue::from_static("z"))],
            ..ServerName::default()
        };
        let variables = ClientVariables { bearer: Some("other".into()), api_key: Some("key".into()), agent_card: None };
        let headers = Credentials::new(&server, &variables).headers().unwrap();
        assert_eq!(
            (&headers["authorization"], &headers["x-api-key"]),
            (&HeaderValue::from_static("Bearer token"), &HeaderValue::from_static("key"),)
        );
        assert!(headers["authorization"].is_sensitive() && headers["x-api-key"].is_sensitive());
        let broken = ServerName { bearer: Some("a\nb".into()), ..ServerName::default() };
        assert!(Credentials::new(&broken, &ClientVariables::default()).headers().is_err());
    }
}
