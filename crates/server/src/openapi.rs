//! `/openapi.json`: a description of the HTTP+JSON binding, the gateway and `/admin/v1`, for tools and people.
//!
//! The document is a file, written by hand. Only what depends on the server is put in here: its address, its version and the
//! credentials that it takes. It has no secrets, so everybody may read it. Tests compare it with what is served.

use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};
use sabir_model::{Flow, SecurityKind, SecurityScheme};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::auth::Auth;
use crate::body::Body;
use crate::etag::{etag_of, matches_etag};

pub(crate) const PATH: &str = "/openapi.json";

const DOCUMENT: &str = include_str!("../openapi.json");

/// The flows that OpenAPI 3.1 knows.
const FLOWS: [&str; 4] = ["authorizationCode", "clientCredentials", "implicit", "password"];

pub(crate) fn answer(parts: &Parts, base: &str, version: &str, auth: &Auth) -> Response<Body> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let document = document(base, version, &auth.schemes());
    let etag = etag_of("openapi", document.as_bytes());
    let is_known = matches_etag(&parts.headers, &etag);
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(document.into_bytes()) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let headers = response.headers_mut();
    headers.insert(header::ETAG, etag);
    // The address may be that of the request, so it is asked each time whether the document is still the same.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn document(base: &str, version: &str, schemes: &[(String, SecurityScheme)]) -> String {
    let requirements: Vec<Requirement<'_>> = schemes.iter().map(|(name, _)| Requirement(name)).collect();
    let values = [
        ("\"BASE\"", text(&base)),
        ("\"VERSION\"", text(&version)),
        ("\"SECURITY\"", text(&requirements)),
        ("\"SCHEMES\"", text(&Schemes(schemes))),
    ];
    values.iter().fold(DOCUMENT.to_owned(), |document, (place, value)| document.replacen(place, value, 1))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts can be written as JSON")
}

/// Any one of them is enough.
struct Requirement<'a>(&'a str);

impl Serialize for Requirement<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.0, [(); 0])])
    }
}

struct Schemes<'a>(&'a [(String, SecurityScheme)]);

impl Serialize for Schemes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, scheme)| (name, Scheme(scheme))))
    }
}

struct Scheme<'a>(&'a SecurityScheme);

impl Serialize for Scheme<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.0.kind {
            SecurityKind::Http { scheme, bearer_format } => {
                map.serialize_entry("type", "http")?;
                map.serialize_entry("scheme", &scheme.to_lowercase())?;
                if let Some(format) = bearer_format {
                    map.serialize_entry("bearerFormat", format)?;
                }
            }
            SecurityKind::ApiKey { location, name } => {
                map.serialize_entry("type", "apiKey")?;
                map.serialize_entry("in", location)?;
                map.serialize_entry("name", name)?;
            }
            SecurityKind::OpenIdConnect { url } => {
                map.serialize_entry("type", "openIdConnect")?;
                map.serialize_entry("openIdConnectUrl", url)?;
            }
            SecurityKind::OAuth2 { flows, .. } => {
                map.serialize_entry("type", "oauth2")?;
                map.serialize_entry("flows", &Flows(flows))?;
            }
            SecurityKind::MutualTls => map.serialize_entry("type", "mutualTLS")?,
        }
        if let Some(description) = &self.0.description {
            map.serialize_entry("description", description)?;
        }
        map.end()
    }
}

struct Flows<'a>(&'a [Flow]);

impl Serialize for Flows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = self.0.iter().filter(|flow| FLOWS.contains(&flow.name.as_str()));
        serializer.collect_map(known.map(|flow| (&flow.name, FlowView::of(flow))))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FlowView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    authorization_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_url: Option<&'a str>,
    #[serde(serialize_with = "as_map")]
    scopes: &'a [(String, String)],
}

fn as_map<S: Serializer>(scopes: &&[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(scopes.iter().map(|(name, meaning)| (name, meaning)))
}

impl<'a> FlowView<'a> {
    fn of(flow: &'a Flow) -> Self {
        Self {
            authorization_url: flow.authorization_url.as_deref(),
            token_url: flow.token_url.as_deref(),
            refresh_url: flow.refresh_url.as_deref(),
            scopes: &flow.scopes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    fn parsed(schemes: &[(String, SecurityScheme)]) -> Value {
        serde_json::from_str(&document("https://a.example/\"", "1.2.3", schemes)).unwrap()
    }

    #[test]
    fn what_depends_on_the_server_is_put_in() {
        let scheme = |kind| SecurityScheme { description: None, kind };
        let flow = |name: &str| Flow {
            name: name.to_owned(),
            authorization_url: None,
            device_authorization_url: None,
            token_url: Some("https://idp/token".to_owned()),
            refresh_url: None,
            scopes: vec![("run".to_owned(), "Run".to_owned())],
            pkce_required: false,
        };
        let flows = vec![flow("clientCredentials"), flow("deviceCode")];
        let schemes = [
            ("bearer".to_owned(), scheme(SecurityKind::Http { scheme: "Bearer".into(), bearer_format: None })),
            ("key".to_owned(), scheme(SecurityKind::ApiKey { location: "header".into(), name: "X-Key".into() })),
            ("oidc".to_owned(), scheme(SecurityKind::OpenIdConnect { url: "https://idp".into() })),
            ("oauth".to_owned(), scheme(SecurityKind::OAuth2 { flows, metadata_url: None })),
            ("tls".to_owned(), scheme(SecurityKind::MutualTls)),
        ];
        let document = parsed(&schemes);
        assert_eq!(document["servers"], json!([{"url": "https://a.example/\""}]));
        assert_eq!(document["info"]["version"], "1.2.3");
        assert_eq!(
            document["components"]["securitySchemes"],
            json!({
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
                "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://idp"},
                "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://idp/token", "scopes": {"run": "Run"}}}},
                "tls": {"type": "mutualTLS"},
            })
        );
        assert_eq!(
            document["security"],
            json!([{"bearer": []}, {"key": []}, {"oidc": []}, {"oauth": []}, {"tls": []}])
        );
        assert_eq!((&parsed(&[])["security"], &parsed(&[])["components"]["securitySchemes"]), (&json!([]), &json!({})));
    }

    /// The arms of `App::admin_call` that do something, as `get /admin/v1/tasks/{}`.
    fn routes_in_the_code() -> BTreeSet<String> {
        let arms = include_str!("admin.rs")
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("([") && line.contains("=>"));
        let mut routes = BTreeSet::new();
        for arm in arms {
            let Some((segments, rest)) = arm[2..].split_once("], \"") else { continue };
            let (verb, _) = rest.split_once('"').unwrap();
            let segments = segments.split(", ").map(|segment| match segment.strip_prefix('"') {
                Some(name) => name.trim_end_matches('"'),
                None => "{}",
            });
            routes.insert(format!("{} /admin/v1/{}", verb.to_lowercase(), segments.collect::<Vec<_>>().join("/")));
        }
        routes
    }

    #[test]
    fn every_admin_call_is_described() {
        let document = parsed(&[]);
        let mut described = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
            let path = segments.collect::<Vec<_>>().join("/");
            if path.starts_with("/admin/v1/") {
                described.extend(item.as_object().unwrap().keys().map(|verb| format!("{verb} {path}")));
            }
        }
        let mut routes = routes_in_the_code();
        assert!(routes.len() >= 14, "{routes:?}");
        // Its answer is a stream, so it has no arm.
        routes.insert("get /admin/v1/store/backup".to_owned());
        assert_eq!(described, routes);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = parsed(&[]);
        let mut pending = vec![&document];
        let mut ids = BTreeSet::new();
        while let Some(value) = pending.pop() {
            if let Some(path) = value["$ref"].as_str() {
                assert!(document.pointer(path.trim_start_matches('#')).is_some(), "{path}");
            }
            if let Some(id) = value["operationId"].as_str() {
                assert!(ids.insert(id), "{id} is there twice");
            }
            pending.extend(value.as_object().into_iter().flat_map(|object| object.values()));
            pending.extend(value.as_array().into_iter().flatten());
        }
        assert!(ids.len() > 40, "{ids:?}");
    }
}
