//! What the operator says about one issuer.

use std::collections::BTreeMap;
use std::time::Duration;

use sabir_model::scope;

use super::algorithm::JwtAlgorithm;

/// The scopes that Sabir knows by itself.
pub const OWN_SCOPES: [&str; 5] = [scope::RUN, scope::READ, scope::APPROVE, scope::ADMIN, scope::METRICS];

/// One issuer whose tokens are accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct JwtSettings {
    /// Equal to the `iss` of its tokens and to the `issuer` of its discovery document, byte by byte.
    pub issuer: String,
    /// A token must be meant for at least one of these.
    pub audience: Vec<String>,
    /// Where the keys are. Without it the discovery document of the issuer says so.
    pub jwks_url: Option<String>,
    pub algorithms: Vec<JwtAlgorithm>,
    /// How far the clocks of issuer and server may be apart.
    pub leeway: Duration,
    /// The claim that tells callers apart.
    pub subject_claim: String,
    pub tenant_claim: Option<String>,
    /// Claims that list scopes: a text with blanks between them, or a list of texts.
    pub scope_claims: Vec<String>,
    /// From the issuer's name of a scope to ours. Empty: the issuer uses our names. Otherwise only these count.
    pub scope_names: BTreeMap<String, String>,
    /// Our scopes, which count under their own names while `scope_names` is empty.
    pub own_scopes: Vec<String>,
    /// What a token may do that names none of our scopes.
    pub default_scopes: Vec<String>,
}

impl JwtSettings {
    /// The defaults for an issuer and one audience.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        JwtSettings {
            issuer: issuer.into(),
            audience: vec![audience.into()],
            jwks_url: None,
            algorithms: JwtAlgorithm::ALL.to_vec(),
            leeway: Duration::from_secs(60),
            subject_claim: "sub".to_owned(),
            tenant_claim: None,
            scope_claims: texts(&["scope", "scp", "permissions", "roles"]),
            scope_names: BTreeMap::new(),
            own_scopes: texts(&OWN_SCOPES),
            default_scopes: texts(&["run", "read"]),
        }
    }
}
