//! What cards say of credentials: exactly those that are taken, any one of which is enough.

use sabir_model::{Flow, Requirement, SecurityKind, SecurityScheme};

use super::Auth;
use super::jwt::{IssuerMetadata, JwtVerifier};

impl Auth {
    /// The schemes by name.
    pub(crate) fn schemes(&self) -> Vec<(String, SecurityScheme)> {
        let scheme = |description: &str, kind| SecurityScheme { description: Some(description.to_owned()), kind };
        let mut schemes = Vec::new();
        if self.takes_tokens() {
            let kind = SecurityKind::Http { scheme: "Bearer".into(), bearer_format: None };
            schemes.push(("bearer".to_owned(), scheme("A token from the operator of this server", kind)));
        }
        for (position, issuer) in self.issuers.iter().enumerate() {
            let number = if position == 0 { String::new() } else { (position + 1).to_string() };
            let text = format!("A token of {}", issuer.issuer());
            match issuer.discovery_url() {
                Some(url) => {
                    let flows = issuer.metadata().map(|metadata| flows(&metadata, issuer)).unwrap_or_default();
                    // Clients refuse a scheme of OAuth 2 without flows.
                    let kind = match flows.is_empty() {
                        true => SecurityKind::OpenIdConnect { url },
                        false => SecurityKind::OAuth2 { flows, metadata_url: Some(url) },
                    };
                    schemes.push((format!("oauth2{number}"), scheme(&text, kind)));
                }
                None => {
                    let kind = SecurityKind::Http { scheme: "Bearer".into(), bearer_format: Some("JWT".into()) };
                    schemes.push((format!("jwt{number}"), scheme(&text, kind)));
                }
            }
        }
        for (position, (header, _)) in self.api_keys.iter().enumerate() {
            let name = if position == 0 { "apiKey".to_owned() } else { format!("apiKey{}", position + 1) };
            let kind = SecurityKind::ApiKey { location: "header".into(), name: header.clone() };
            schemes.push((name, scheme("A key from the operator of this server", kind)));
        }
        if self.takes_certificates() {
            let words = "A client certificate of an authority that this server trusts";
            schemes.push(("mutualTls".to_owned(), scheme(words, SecurityKind::MutualTls)));
        }
        schemes
    }

    pub(crate) fn requirements(&self) -> Vec<Requirement> {
        self.schemes().into_iter().map(|(name, _)| Requirement { schemes: vec![(name, Vec::new())] }).collect()
    }
}

/// The ways to a token that the issuer says it has. Until its document is there, none is known.
fn flows(metadata: &IssuerMetadata, issuer: &JwtVerifier) -> Vec<Flow> {
    let Some(token_url) = &metadata.token_endpoint else { return Vec::new() };
    let flow = |name: &str| Flow {
        name: name.to_owned(),
        authorization_url: None,
        device_authorization_url: None,
        token_url: Some(token_url.clone()),
        refresh_url: None,
        scopes: issuer.scope_names().map(|(name, ours)| (name.to_owned(), meaning(ours).to_owned())).collect(),
        pkce_required: false,
    };
    let code = metadata
        .authorization_endpoint
        .clone()
        .map(|url| Flow { authorization_url: Some(url), ..flow("authorizationCode") });
    let device = metadata
        .device_authorization_endpoint
        .clone()
        .map(|url| Flow { device_authorization_url: Some(url), ..flow("deviceCode") });
    code.into_iter().chain([flow("clientCredentials")]).chain(device).collect()
}

/// What one of our scopes allows, for people.
fn meaning(scope: &str) -> &'static str {
    match scope.split(':').next().unwrap_or_default() {
        "run" => "Send messages, answer questions, cancel, set webhooks, and read",
        "read" => "See one's own tasks",
        "admin" => "Everything, with everybody's tasks",
        _ => "Answer questions for permission",
    }
}
