//! Security schemes and requirements of a card. Protobuf keeps them by name, in no order, and has room for one flow.

use std::collections::BTreeMap;

use sabir_model as model;
use sabir_model::SecurityKind;
use sabir_proto::v1 as proto;
use sabir_proto::v1::o_auth_flows::Flow;
use sabir_proto::v1::security_scheme::Scheme;

use crate::card::preferred_flow;
use crate::wire_types::{Violations, non_empty};

pub(super) fn write_scheme(scheme: &model::SecurityScheme) -> proto::SecurityScheme {
    let description = scheme.description.clone().unwrap_or_default();
    let scheme = match &scheme.kind {
        SecurityKind::ApiKey { location, name } => Scheme::ApiKeySecurityScheme(proto::ApiKeySecurityScheme {
            description,
            location: location.clone(),
            name: name.clone(),
        }),
        SecurityKind::Http { scheme, bearer_format } => Scheme::HttpAuthSecurityScheme(proto::HttpAuthSecurityScheme {
            description,
            scheme: scheme.clone(),
            bearer_format: bearer_format.clone().unwrap_or_default(),
        }),
        SecurityKind::OAuth2 { flows, metadata_url } => Scheme::Oauth2SecurityScheme(proto::OAuth2SecurityScheme {
            description,
            flows: Some(proto::OAuthFlows { flow: preferred_flow(flows).and_then(write_flow) }),
            oauth2_metadata_url: metadata_url.clone().unwrap_or_default(),
        }),
        SecurityKind::OpenIdConnect { url } => {
            Scheme::OpenIdConnectSecurityScheme(proto::OpenIdConnectSecurityScheme {
                description,
                open_id_connect_url: url.clone(),
            })
        }
        SecurityKind::MutualTls => Scheme::MtlsSecurityScheme(proto::MutualTlsSecurityScheme { description }),
    };
    proto::SecurityScheme { scheme: Some(scheme) }
}

/// `None`: a flow that the protocol does not name.
fn write_flow(flow: &model::Flow) -> Option<Flow> {
    let authorization_url = flow.authorization_url.clone().unwrap_or_default();
    let token_url = flow.token_url.clone().unwrap_or_default();
    let refresh_url = flow.refresh_url.clone().unwrap_or_default();
    let scopes = flow.scopes.iter().cloned().collect();
    Some(match flow.name.as_str() {
        "authorizationCode" => Flow::AuthorizationCode(proto::AuthorizationCodeOAuthFlow {
            authorization_url,
            token_url,
            refresh_url,
            scopes,
            pkce_required: flow.pkce_required,
        }),
        "clientCredentials" => {
            Flow::ClientCredentials(proto::ClientCredentialsOAuthFlow { token_url, refresh_url, scopes })
        }
        "deviceCode" => Flow::DeviceCode(proto::DeviceCodeOAuthFlow {
            device_authorization_url: flow.device_authorization_url.clone().unwrap_or_default(),
            token_url,
            refresh_url,
            scopes,
        }),
        "implicit" => Flow::Implicit(proto::ImplicitOAuthFlow { authorization_url, refresh_url, scopes }),
        "password" => Flow::Password(proto::PasswordOAuthFlow { token_url, refresh_url, scopes }),
        _ => return None,
    })
}

pub(super) fn write_requirements(requirements: &[model::Requirement]) -> Vec<proto::SecurityRequirement> {
    let scopes = |(name, list): &(String, Vec<String>)| (name.clone(), proto::StringList { list: list.clone() });
    requirements
        .iter()
        .map(|requirement| proto::SecurityRequirement { schemes: requirement.schemes.iter().map(scopes).collect() })
        .collect()
}

/// A scheme of an unknown kind is left out: the card is still useful to a client that needs another one.
pub(super) fn read_schemes(
    schemes: BTreeMap<String, proto::SecurityScheme>,
    violations: &mut Violations,
) -> Vec<(String, model::SecurityScheme)> {
    let mut known = Vec::new();
    for (name, scheme) in schemes {
        let Some(scheme) = scheme.scheme else { continue };
        if let Some(scheme) = violations.check(&format!("securitySchemes.{name}"), read_scheme(scheme)) {
            known.push((name, scheme));
        }
    }
    known
}

fn read_scheme(scheme: Scheme) -> Result<model::SecurityScheme, Violations> {
    let mut violations = Violations::default();
    let (kind, description) = match scheme {
        Scheme::ApiKeySecurityScheme(scheme) => {
            let location = violations.required_text("location", Some(scheme.location.into()));
            let name = violations.required_text("name", Some(scheme.name.into()));
            let kind = location.zip(name).map(|(location, name)| SecurityKind::ApiKey { location, name });
            (kind, scheme.description)
        }
        Scheme::HttpAuthSecurityScheme(http) => {
            let scheme = violations.required_text("scheme", Some(http.scheme.into()));
            let bearer_format = non_empty(Some(http.bearer_format.into()));
            (scheme.map(|scheme| SecurityKind::Http { scheme, bearer_format }), http.description)
        }
        Scheme::Oauth2SecurityScheme(scheme) => {
            let flow = scheme.flows.and_then(|flows| flows.flow);
            let metadata_url = non_empty(Some(scheme.oauth2_metadata_url.into()));
            let flows = flow.map(read_flow).into_iter().collect();
            (Some(SecurityKind::OAuth2 { flows, metadata_url }), scheme.description)
        }
        Scheme::OpenIdConnectSecurityScheme(scheme) => {
            let url = violations.required_text("openIdConnectUrl", Some(scheme.open_id_connect_url.into()));
            (url.map(|url| SecurityKind::OpenIdConnect { url }), scheme.description)
        }
        Scheme::MtlsSecurityScheme(scheme) => (Some(SecurityKind::MutualTls), scheme.description),
    };
    let description = non_empty(Some(description.into()));
    violations.finish(kind.map(|kind| model::SecurityScheme { description, kind }))
}

fn read_flow(flow: Flow) -> model::Flow {
    let text = |text: String| non_empty(Some(text.into()));
    let named = |name: &str, refresh_url: String, scopes: BTreeMap<String, String>| model::Flow {
        name: name.to_owned(),
        authorization_url: None,
        device_authorization_url: None,
        token_url: None,
        refresh_url: text(refresh_url),
        scopes: scopes.into_iter().collect(),
        pkce_required: false,
    };
    match flow {
        Flow::AuthorizationCode(flow) => model::Flow {
            authorization_url: text(flow.authorization_url),
            token_url: text(flow.token_url),
            pkce_required: flow.pkce_required,
            ..named("authorizationCode", flow.refresh_url, flow.scopes)
        },
        Flow::ClientCredentials(flow) => {
            model::Flow { token_url: text(flow.token_url), ..named("clientCredentials", flow.refresh_url, flow.scopes) }
        }
        Flow::DeviceCode(flow) => model::Flow {
            device_authorization_url: text(flow.device_authorization_url),
            token_url: text(flow.token_url),
            ..named("deviceCode", flow.refresh_url, flow.scopes)
        },
        Flow::Implicit(flow) => model::Flow {
            authorization_url: text(flow.authorization_url),
            ..named("implicit", flow.refresh_url, flow.scopes)
        },
        Flow::Password(flow) => {
            model::Flow { token_url: text(flow.token_url), ..named("password", flow.refresh_url, flow.scopes) }
        }
    }
}

pub(super) fn read_requirements(requirements: Vec<proto::SecurityRequirement>) -> Vec<model::Requirement> {
    let scopes = |(name, scopes): (String, proto::StringList)| (name, scopes.list);
    requirements
        .into_iter()
        .map(|requirement| model::Requirement { schemes: requirement.schemes.into_iter().map(scopes).collect() })
        .collect()
}
