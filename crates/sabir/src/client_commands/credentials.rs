//! What the server is shown: a bearer token, an API key, headers. All of it counts as secret.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use sabir_model::{Card, SecurityKind};
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

    /// Adds them to the requests of a remote agent. Only its card says where an API key belongs, so it is fetched for that.
    pub async fn add_to(&self, settings: &mut RemoteSettings) -> Result<(), Failure> {
        settings.headers = self.headers()?;
        if self.api_key.is_some()
            && let Ok(remote) = Remote::new(RemoteSettings { observer: None, ..settings.clone() })
            && let Ok(known) = remote.discovered().await
            && let Some(fetched) = &known.card
        {
            settings.headers = self.headers_for(Some(&fetched.card))?;
        }
        Ok(())
    }

    fn headers_for(&self, card: Option<&Card>) -> Result<HeaderMap, Failure> {
        let mut headers: HeaderMap = self.headers.iter().cloned().collect();
        if let Some(token) = &self.bearer {
            headers.insert(header::AUTHORIZATION, secret("the bearer token", &format!("Bearer {}", token.trim()))?);
        }
        if let Some(key) = &self.api_key {
            let (name, value) = api_key(key.trim(), card)?;
            headers.insert(name, secret("the API key", &value)?);
        }
        Ok(headers)
    }
}

fn api_key(key: &str, card: Option<&Card>) -> Result<(HeaderName, String), Failure> {
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
                    return Ok((header, key.to_owned()));
                }
            }
            "cookie" => return Ok((header::COOKIE, format!("{name}={key}"))),
            _ => in_query = Some(name),
        }
    }
    match in_query {
        Some(name) => Err(Failure::usage(format!(
            "the card wants the API key as the query parameter {name:?}, which is not supported: addresses are logged"
        ))),
        None => Ok((API_KEY, key.to_owned())),
    }
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
            (&[][..], "x-api-key k"),
            (&[("header", "X-Key")], "x-key k"),
            (&[("cookie", "session")], "cookie session=k"),
            (&[("query", "key"), ("header", "X-Key")], "x-key k"),
            (&[("query", "key")], "refused"),
            (&[("header", "no header")], "x-api-key k"),
        ] {
            let scheme = |(location, name): &(&str, &str)| {
                let kind = SecurityKind::ApiKey { location: (*location).to_owned(), name: (*name).to_owned() };
                ("key".to_owned(), SecurityScheme { description: None, kind })
            };
            let card = Card { security_schemes: declared.iter().map(scheme).collect(), ..Card::default() };
            let actual = match api_key("k", Some(&card)) {
                Ok((name, value)) => format!("{name} {value}"),
                Err(_) => "refused".to_owned(),
            };
            assert_eq!(actual, expected, "{declared:?}");
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
