//! What cards say of credentials: exactly those that are taken, any one of which is enough.

use sabir_model::{Requirement, SecurityKind, SecurityScheme};

use super::Auth;

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
                    schemes
                        .push((format!("openIdConnect{number}"), scheme(&text, SecurityKind::OpenIdConnect { url })));
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
