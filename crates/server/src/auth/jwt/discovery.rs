//! What an issuer says about itself, in OpenID Connect Discovery 1.0 or RFC 8414.

use serde::Deserialize;

use super::json_object::JsonObject;

/// What cards and clients are told of an issuer. Only addresses that can be one are kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IssuerMetadata {
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub device_authorization_endpoint: Option<String>,
    pub scopes: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Discovered {
    pub(super) jwks_uri: String,
    pub(super) metadata: IssuerMetadata,
}

#[derive(Deserialize)]
struct Document {
    issuer: Option<String>,
    jwks_uri: Option<String>,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    scopes_supported: Option<Vec<String>>,
}

/// How many of the issuer's scopes are kept.
const MOST_SCOPES: usize = 200;

/// Where the document may be, in the order of trying. Issuers with a path append the well-known path to it (OpenID) or
/// put it before it (RFC 8414).
pub(super) fn locations(issuer: &str) -> Vec<String> {
    let issuer = issuer.trim_end_matches('/');
    let (origin, path) = split_origin(issuer);
    let mut locations = vec![openid_location(issuer), format!("{origin}/.well-known/oauth-authorization-server{path}")];
    if !path.is_empty() {
        locations.push(format!("{origin}/.well-known/openid-configuration{path}"));
    }
    locations
}

/// OpenID Connect Discovery 1.0, section 4.
pub(super) fn openid_location(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

impl Discovered {
    /// Reads the document of this issuer.
    pub(super) fn parse(document: &[u8], issuer: &str) -> Result<Self, &'static str> {
        // Read twice: the first reading refuses what is ambiguous.
        JsonObject::parse(document).ok_or("the discovery document is not a JSON object")?;
        let document: Document =
            serde_json::from_slice(document).map_err(|_| "the discovery document has members of other types")?;
        // OpenID Connect Discovery 1.0, section 4.3: otherwise one issuer could speak for another.
        if document.issuer.as_deref() != Some(issuer) {
            return Err("the discovery document is of another issuer than the configured one");
        }
        let jwks_uri = document.jwks_uri.ok_or("the discovery document has no jwks_uri")?;
        if !may_lead_to(issuer, &jwks_uri) {
            return Err("the jwks_uri of the discovery document is not an https address");
        }
        let address = |url: Option<String>| url.filter(|url| is_address(url));
        let scopes = document.scopes_supported.unwrap_or_default().into_iter().take(MOST_SCOPES);
        let metadata = IssuerMetadata {
            authorization_endpoint: address(document.authorization_endpoint),
            token_endpoint: address(document.token_endpoint),
            device_authorization_endpoint: address(document.device_authorization_endpoint),
            scopes: scopes.filter(|scope| is_scope(scope)).collect(),
        };
        Ok(Discovered { jwks_uri, metadata })
    }
}

/// Keys come over https. An issuer that the operator wrote with http may have them on its own host and port, or on
/// loopback, without it.
fn may_lead_to(issuer: &str, jwks_uri: &str) -> bool {
    if !is_address(jwks_uri) {
        return false;
    }
    if jwks_uri.starts_with("https://") {
        return true;
    }
    let (origin, _) = split_origin(jwks_uri);
    let host = origin.strip_prefix("http://").unwrap_or_default();
    let host = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(host, _)| host);
    let is_loopback = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    issuer.starts_with("http://") && (is_loopback || origin == split_origin(issuer).0)
}

/// Scheme and authority, and the rest.
fn split_origin(url: &str) -> (&str, &str) {
    let start = url.find("://").map_or(0, |colon| colon + 3);
    let end = url[start..].find('/').map_or(url.len(), |slash| start + slash);
    url.split_at(end)
}

fn is_address(url: &str) -> bool {
    let has_scheme = url.starts_with("https://") || url.starts_with("http://");
    has_scheme && url.len() <= 2048 && url.bytes().all(|byte| byte.is_ascii_graphic())
}

/// RFC 6749, section 3.3.
fn is_scope(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !text.is_empty() && text.len() <= 256 && text.bytes().all(is_letter)
}
