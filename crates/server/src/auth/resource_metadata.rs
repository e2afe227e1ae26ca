//! The metadata of a protected resource (RFC 9728): which credentials it takes, and who issues them.

use serde::Serialize;

use super::Auth;
use super::jwt::OWN_SCOPES;

pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The path of the resource that this path is the metadata of: what follows is appended. `None`: it is no metadata.
pub(crate) fn resource_path(path: &str) -> Option<&str> {
    let below = path.strip_prefix(METADATA_PATH)?;
    (below.is_empty() || below.starts_with('/')).then(|| if below == "/" { "" } else { below })
}

#[derive(Serialize)]
struct Metadata<'a> {
    resource: String,
    resource_name: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<&'a str>,
    scopes_supported: Vec<&'a str>,
    bearer_methods_supported: &'a [&'a str],
}

impl Auth {
    /// `base` is where clients reach this server.
    pub(crate) fn metadata(&self, base: &str, path: &str) -> String {
        let metadata = Metadata {
            resource: format!("{base}{path}"),
            resource_name: "Sabir",
            authorization_servers: self.issuers().collect(),
            scopes_supported: self.scopes_to_ask_for(),
            bearer_methods_supported: if self.takes_bearer() { &["header"] } else { &[] },
        };
        serde_json::to_string(&metadata).expect("texts can be written as JSON")
    }

    /// As the issuers call them: hosts ask the issuer for these very names.
    fn scopes_to_ask_for(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.issuers.iter().flat_map(|issuer| issuer.scope_names()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() { OWN_SCOPES.to_vec() } else { names }
    }

    /// Who issues tokens that count here.
    fn issuers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|issuer| issuer.issuer())
    }
}
