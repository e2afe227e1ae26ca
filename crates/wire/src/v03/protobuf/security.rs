//! What a card says of security: schemes, and which of them a caller needs.
//!
//! Protobuf has room for one flow of OAuth 2, and for neither the device flow nor the demand for PKCE.

use std::collections::BTreeMap;

use sabir_model as model;
use sabir_model::SecurityKind;
use sabir_proto::v03;
use sabir_proto::v03::o_auth_flows::Flow;
use sabir_proto::v03::security_scheme::Scheme;

use super::fields::present;
use crate::card::preferred_flow;
use crate::wire_types::{Violations, non_empty};

const AUTHORIZATION_CODE: &str = "authorizationCode";
const CLIENT_CREDENTIALS: &str = "clientCredentials";
const IMPLICIT: &str = "implicit";
const PASSWORD: &str = "password";

pub(super) fn write_scheme(scheme: &model::SecurityScheme) -> v03::SecurityScheme {
    let description = scheme.description.clone().unwrap_or_default();
    let scheme = match &scheme.kind {
        SecurityKind::ApiKey { location, name } => Scheme::ApiKeySecurityScheme(v03::ApiKeySecurityScheme {
            description,
            location: location.clone(),
            name: name.clone(),
        }),
        SecurityKind::Http { scheme, bearer_format } => Scheme::HttpAuthSecurityScheme(v03::HttpAuthSecurityScheme {
            description,
            scheme: scheme.clone(),
            bearer_format: bearer_format.clone().unwrap_or_default(),
        }),
        SecurityKind::OAuth2 { flows, metadata_url } => Scheme::Oauth2SecurityScheme(v03::OAuth2SecurityScheme {
            description,
            flows: Some(v03::OAuthFlows { flow: write_flows(flows) }),
            oauth2_metadata_url: metadata_url.clone().unwrap_or_default(),
        }),
        SecurityKind::OpenIdConnect { url } => Scheme::OpenIdConnectSecurityScheme(v03::OpenIdConnectSecurityScheme {
            description,
            open_id_connect_url: url.clone(),
        }),
        SecurityKind::MutualTls => Scheme::MtlsSecurityScheme(v03::MutualTlsSecurityScheme { description }),
    };
    v03::SecurityScheme { scheme: Some(scheme) }
}

/// The preferred one of those that 0.3 knows.
fn write_flows(flows: &[model::Flow]) -> Option<Flow> {
    const KNOWN: [&str; 4] = [AUTHORIZATION_CODE, CLIENT_CREDENTIALS, IMPLICIT, PASSWORD];
    let flow = preferred_flow(flows.iter().filter(|flow| KNOWN.contains(&flow.name.as_str())))?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let authorization_url = text(&flow.authorization_url);
    let token_url = text(&flow.token_url);
    let refresh_url = text(&flow.refresh_url);
    let scopes: BTreeMap<String, String> = flow.scopes.iter().cloned().collect();
    Some(match flow.name.as_str() {
        AUTHORIZATION_CODE => Flow::AuthorizationCode(v03::AuthorizationCodeOAuthFlow {
            authorization_url,
            token_url,
            refresh_url,
            scopes,
        }),
        CLIENT_CREDENTIALS => {
            Flow::ClientCredentials(v03::ClientCredentialsOAuthFlow { token_url, refresh_url, scopes })
        }
        IMPLICIT => Flow::Implicit(v03::ImplicitOAuthFlow { authorization_url, refresh_url, scopes }),
        _ => Flow::Password(v03::PasswordOAuthFlow { token_url, refresh_url, scopes }),
    })
}

pub(super) fn write_requirements(requirements: &[model::Requirement]) -> Vec<v03::Security> {
    let each = requirements.iter().map(|requirement| {
        let schemes = requirement.schemes.iter();
        let schemes = schemes.map(|(name, scopes)| (name.clone(), v03::StringList { list: scopes.clone() }));
        v03::Security { schemes: schemes.collect() }
    });
    each.collect()
}

/// A scheme of an unknown kind is `None`: the card is still useful to a client that needs another scheme.
pub(super) fn read_scheme(scheme: v03::SecurityScheme) -> Result<Option<model::SecurityScheme>, Violations> {
    let mut violations = Violations::default();
    let Some(scheme) = scheme.scheme else { return Ok(None) };
    let (description, kind) = match scheme {
        Scheme::ApiKeySecurityScheme(scheme) => {
            let location = violations.required_text("location", present(scheme.location));
            let name = violations.required_text("name", present(scheme.name));
            let kind = location.zip(name).map(|(location, name)| SecurityKind::ApiKey { location, name });
            (scheme.description, kind)
        }
        Scheme::HttpAuthSecurityScheme(scheme) => {
            let bearer_format = non_empty(present(scheme.bearer_format));
            let name = violations.required_text("scheme", present(scheme.scheme));
            (scheme.description, name.map(|scheme| SecurityKind::Http { scheme, bearer_format }))
        }
        Scheme::Oauth2SecurityScheme(scheme) => {
            let flow = scheme.flows.and_then(|flows| flows.flow);
            let kind = SecurityKind::OAuth2 {
                flows: flow.map(read_flow).into_iter().collect(),
                metadata_url: non_empty(present(scheme.oauth2_metadata_url)),
            };
            (scheme.description, Some(kind))
        }
        Scheme::OpenIdConnectSecurityScheme(scheme) => {
            let url = violations.required_text("openIdConnectUrl", present(scheme.open_id_connect_url));
            (scheme.description, url.map(|url| SecurityKind::OpenIdConnect { url }))
        }
        Scheme::MtlsSecurityScheme(scheme) => (scheme.description, Some(SecurityKind::MutualTls)),
    };
    let description = non_empty(present(description));
    violations.finish(kind.map(|kind| Some(model::SecurityScheme { description, kind })))
}

fn read_flow(flow: Flow) -> model::Flow {
    let (name, authorization_url, token_url, refresh_url, scopes) = match flow {
        Flow::AuthorizationCode(flow) => {
            (AUTHORIZATION_CODE, flow.authorization_url, flow.token_url, flow.refresh_url, flow.scopes)
        }
        Flow::ClientCredentials(flow) => {
            (CLIENT_CREDENTIALS, String::new(), flow.token_url, flow.refresh_url, flow.scopes)
        }
        Flow::Implicit(flow) => (IMPLICIT, flow.authorization_url, String::new(), flow.refresh_url, flow.scopes),
        Flow::Password(flow) => (PASSWORD, String::new(), flow.token_url, flow.refresh_url, flow.scopes),
    };
    model::Flow {
        name: name.to_owned(),
        authorization_url: non_empty(present(authorization_url)),
        device_authorization_url: None,
        token_url: non_empty(present(token_url)),
        refresh_url: non_empty(present(refresh_url)),
        scopes: scopes.into_iter().collect(),
        pkce_required: false,
    }
}

pub(super) fn read_requirements(requirements: Vec<v03::Security>) -> Vec<model::Requirement> {
    let each = requirements.into_iter().map(|requirement| model::Requirement {
        schemes: requirement.schemes.into_iter().map(|(name, scopes)| (name, scopes.list)).collect(),
    });
    each.collect()
}
