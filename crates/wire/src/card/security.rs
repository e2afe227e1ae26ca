//! Security schemes: a member that names the kind in 1.0, a `type` in 0.x, both at once on a hybrid card.

use sabir_model as model;
use sabir_model::SecurityKind;
use serde::{Deserialize, Serialize};

use super::CardFormat;
use super::case::Scheme;
use super::flow::{Flow, preferred, read_flow};
use crate::wire_types::{OrderedMap, Text, Violations, non_empty, object};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct SecurityScheme<'a> {
    #[serde(alias = "api_key_security_scheme", borrow, skip_serializing_if = "Option::is_none")]
    api_key_security_scheme: Option<Details<'a>>,
    #[serde(alias = "http_auth_security_scheme", skip_serializing_if = "Option::is_none")]
    http_auth_security_scheme: Option<Details<'a>>,
    #[serde(alias = "oauth2_security_scheme", skip_serializing_if = "Option::is_none")]
    oauth2_security_scheme: Option<Details<'a>>,
    #[serde(alias = "open_id_connect_security_scheme", skip_serializing_if = "Option::is_none")]
    open_id_connect_security_scheme: Option<Details<'a>>,
    #[serde(alias = "mtls_security_scheme", skip_serializing_if = "Option::is_none")]
    mtls_security_scheme: Option<Details<'a>>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    type_: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Text<'a>>,
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    in_: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<Scheme<'a>>,
    #[serde(alias = "bearer_format", skip_serializing_if = "Option::is_none")]
    bearer_format: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<OrderedMap<'a, Flow<'a>>>,
    #[serde(alias = "oauth2_metadata_url", skip_serializing_if = "Option::is_none")]
    oauth2_metadata_url: Option<Text<'a>>,
    #[serde(alias = "open_id_connect_url", skip_serializing_if = "Option::is_none")]
    open_id_connect_url: Option<Text<'a>>,
}

/// What any kind of scheme may say in 1.0.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Details<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    description: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<Text<'a>>,
    #[serde(alias = "bearer_format", skip_serializing_if = "Option::is_none")]
    bearer_format: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<OrderedMap<'a, Flow<'a>>>,
    #[serde(alias = "oauth2_metadata_url", skip_serializing_if = "Option::is_none")]
    oauth2_metadata_url: Option<Text<'a>>,
    #[serde(alias = "open_id_connect_url", skip_serializing_if = "Option::is_none")]
    open_id_connect_url: Option<Text<'a>>,
}

object! { both SecurityScheme<'a>; both Details<'a> }

const API_KEY: &str = "apiKeySecurityScheme";
const HTTP: &str = "httpAuthSecurityScheme";
const OAUTH2: &str = "oauth2SecurityScheme";
const OPEN_ID_CONNECT: &str = "openIdConnectSecurityScheme";
const MTLS: &str = "mtlsSecurityScheme";

impl<'a> SecurityScheme<'a> {
    pub(super) fn from_model(scheme: &'a model::SecurityScheme, format: CardFormat) -> Self {
        let mut written = SecurityScheme::default();
        if format.has_schemes_as_proto() {
            let details = Some(Details::from_model(scheme));
            match &scheme.kind {
                SecurityKind::ApiKey { .. } => written.api_key_security_scheme = details,
                SecurityKind::Http { .. } => written.http_auth_security_scheme = details,
                SecurityKind::OAuth2 { .. } => written.oauth2_security_scheme = details,
                SecurityKind::OpenIdConnect { .. } => written.open_id_connect_security_scheme = details,
                SecurityKind::MutualTls => written.mtls_security_scheme = details,
            }
        }
        if format.has_v0_3() {
            written.write_v0_3(scheme, format);
        }
        written
    }

    fn write_v0_3(&mut self, scheme: &'a model::SecurityScheme, format: CardFormat) {
        self.description = scheme.description.as_ref().map(Text::from);
        self.type_ = Some(match &scheme.kind {
            SecurityKind::ApiKey { location, name } => {
                (self.in_, self.name) = (Some(location.into()), Some(name.into()));
                "apiKey".into()
            }
            SecurityKind::Http { scheme, bearer_format } => {
                self.scheme = Some(Scheme::Name(scheme.into()));
                self.bearer_format = bearer_format.as_ref().map(Text::from);
                "http".into()
            }
            SecurityKind::OAuth2 { flows, metadata_url } => {
                // 0.3 knows neither the device flow nor the demand for PKCE.
                let flows = flows.iter().filter(|flow| flow.name != "deviceCode");
                // Where a card has both, the SDK 1.3 for Python reads these members, into a type of 1.0 that has one flow.
                let flows: Vec<_> =
                    if format.has_v1() { preferred(flows).into_iter().collect() } else { flows.collect() };
                let flows = flows.into_iter().map(|flow| (Text::from(&flow.name), Flow::from(flow).without_pkce()));
                self.flows = Some(OrderedMap(flows.collect()));
                self.oauth2_metadata_url = metadata_url.as_ref().map(Text::from);
                "oauth2".into()
            }
            SecurityKind::OpenIdConnect { url } => {
                self.open_id_connect_url = Some(url.into());
                "openIdConnect".into()
            }
            SecurityKind::MutualTls => "mutualTLS".into(),
        });
    }
}

impl<'a> Details<'a> {
    fn from_model(scheme: &'a model::SecurityScheme) -> Self {
        let description = scheme.description.as_ref().map(Text::from);
        let details = Details { description, ..Details::default() };
        match &scheme.kind {
            SecurityKind::ApiKey { location, name } => {
                Details { location: Some(location.into()), name: Some(name.into()), ..details }
            }
            SecurityKind::Http { scheme, bearer_format } => Details {
                scheme: Some(scheme.into()),
                bearer_format: bearer_format.as_ref().map(Text::from),
                ..details
            },
            SecurityKind::OAuth2 { flows, metadata_url } => {
                let flows = preferred(flows).map(|flow| (Text::from(&flow.name), Flow::from(flow)));
                Details {
                    flows: Some(OrderedMap(flows.into_iter().collect())),
                    oauth2_metadata_url: metadata_url.as_ref().map(Text::from),
                    ..details
                }
            }
            SecurityKind::OpenIdConnect { url } => Details { open_id_connect_url: Some(url.into()), ..details },
            SecurityKind::MutualTls => details,
        }
    }
}

/// A hybrid scheme has the members of 1.0 and of 0.x; those of 1.0 are read. A scheme of an unknown kind is `None`: the
/// card is still useful to a client that needs another scheme.
pub(super) fn read(scheme: SecurityScheme<'_>) -> Result<Option<model::SecurityScheme>, Violations> {
    let mut violations = Violations::default();
    let (name_of_http, case) = match scheme.scheme {
        Some(Scheme::Case(case)) => (None, Some(case)),
        Some(Scheme::Name(name)) => (Some(name), None),
        None => (None, None),
    };
    let old = Details {
        description: scheme.description,
        location: scheme.in_,
        name: scheme.name,
        scheme: name_of_http,
        bearer_format: scheme.bearer_format,
        flows: scheme.flows,
        oauth2_metadata_url: scheme.oauth2_metadata_url,
        open_id_connect_url: scheme.open_id_connect_url,
    };
    let named = [
        ("apiKey", API_KEY, scheme.api_key_security_scheme),
        ("http", HTTP, scheme.http_auth_security_scheme),
        ("oauth2", OAUTH2, scheme.oauth2_security_scheme),
        ("openIdConnect", OPEN_ID_CONNECT, scheme.open_id_connect_security_scheme),
        ("mutualTLS", MTLS, scheme.mtls_security_scheme),
    ];
    let case_name = case.as_ref().and_then(|case| case.case.as_ref()).map(|name| name.as_str().to_owned());
    let mut case = case.and_then(|case| case.value);
    let new = named.into_iter().find_map(|(kind, member, details)| {
        let of_case = || if case_name.as_deref() == Some(member) { case.take() } else { None };
        details.or_else(of_case).map(|details| (kind, details))
    });
    let (kind, details) = match (new, &scheme.type_) {
        (Some(new), _) => new,
        (None, Some(kind)) => (kind.as_str(), old),
        (None, None) => return Ok(None),
    };
    let kind = match kind {
        "apiKey" => {
            let location = violations.required_text("location", details.location);
            let name = violations.required_text("name", details.name);
            location.zip(name).map(|(location, name)| SecurityKind::ApiKey { location, name })
        }
        "http" => {
            let scheme = violations.required_text("scheme", details.scheme);
            let bearer_format = non_empty(details.bearer_format);
            scheme.map(|scheme| SecurityKind::Http { scheme, bearer_format })
        }
        "oauth2" => Some(SecurityKind::OAuth2 {
            flows: details.flows.unwrap_or_default().0.into_iter().map(read_flow).collect(),
            metadata_url: non_empty(details.oauth2_metadata_url),
        }),
        "openIdConnect" => {
            let url = violations.required_text("openIdConnectUrl", details.open_id_connect_url);
            url.map(|url| SecurityKind::OpenIdConnect { url })
        }
        "mutualTLS" => Some(SecurityKind::MutualTls),
        _ => return Ok(None),
    };
    let description = non_empty(details.description);
    violations.finish(kind.map(|kind| Some(model::SecurityScheme { description, kind })))
}
