//! Security in a card of 0.1: the names of schemes, and a URL for some of them.

use std::collections::{HashMap, HashSet};

use sabir_model as model;
use sabir_model::SecurityKind;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::json;
use crate::wire_types::{Text, WireList, non_empty, object};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Authentication<'a> {
    #[serde(borrow, default)]
    schemes: WireList<'a, Text<'a>, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<Text<'a>>,
}

object! { both Authentication<'a> }

impl<'a> Authentication<'a> {
    /// `None` where no credential is needed. Clients of 0.1 can set an HTTP header, so other schemes are named only
    /// where there is no HTTP scheme.
    pub(super) fn of(card: &'a model::Card) -> Option<Self> {
        if card.security.is_empty() {
            return None;
        }
        let (mut http, mut others) = (Vec::new(), Vec::new());
        let mut credentials: Option<Text<'_>> = None;
        let schemes: HashMap<&str, &model::SecurityScheme> =
            card.security_schemes.iter().rev().map(|(name, scheme)| (name.as_str(), scheme)).collect();
        let mut named: HashSet<&str> = HashSet::new();
        for (name, _) in card.security.iter().flat_map(|requirement| &requirement.schemes) {
            let Some(scheme) = schemes.get(name.as_str()) else { continue };
            let (list, name, url): (&mut Vec<Text<'_>>, &str, Option<&String>) = match &scheme.kind {
                SecurityKind::Http { scheme, .. } => (&mut http, scheme, None),
                SecurityKind::ApiKey { .. } => (&mut others, "ApiKey", None),
                SecurityKind::OAuth2 { metadata_url, .. } => (&mut others, "oauth2", metadata_url.as_ref()),
                // 0.1 has no name of its own for it; its tokens are got and shown like those of OAuth 2.
                SecurityKind::OpenIdConnect { url } => (&mut others, "oauth2", Some(url)),
                SecurityKind::MutualTls => (&mut others, "MutualTLS", None),
            };
            credentials = credentials.or(url.map(Text::from));
            if named.insert(name) {
                list.push(name.into());
            }
        }
        Some(if http.is_empty() {
            Authentication { schemes: WireList::Wire(others), credentials }
        } else {
            Authentication { schemes: WireList::Wire(http), credentials: None }
        })
    }

    /// As later versions write it: any one of the schemes is enough. A name that cannot be used without more details is
    /// left out.
    pub(super) fn read(self) -> (Vec<(String, model::SecurityScheme)>, Vec<model::Requirement>) {
        let credentials = non_empty(self.credentials);
        let mut schemes: Vec<(String, model::SecurityScheme)> = Vec::new();
        for name in self.schemes.into_wire().into_iter().map(Text::into_string) {
            // Upper and lower case mean the same here, so there are five of them at most.
            if schemes.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)) {
                continue;
            }
            let kind = match (name.to_ascii_lowercase().as_str(), &credentials) {
                ("bearer" | "basic" | "digest", _) => SecurityKind::Http { scheme: name.clone(), bearer_format: None },
                ("oauth2", url) => SecurityKind::OAuth2 { flows: Vec::new(), metadata_url: url.clone() },
                ("openidconnect", Some(url)) => SecurityKind::OpenIdConnect { url: url.clone() },
                _ => continue,
            };
            schemes.push((name, model::SecurityScheme { description: None, kind }));
        }
        let requirement = |name: &String| model::Requirement { schemes: vec![(name.clone(), Vec::new())] };
        let security = schemes.iter().map(|(name, _)| requirement(name)).collect();
        (schemes, security)
    }
}

/// Some cards have a list here, which says nothing that the rest of the card does not say.
pub(super) fn read_if_known<'de: 'a, 'a, D>(deserializer: D) -> Result<Option<Authentication<'a>>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = <&'de RawValue>::deserialize(deserializer)?;
    Ok(json::parse(raw.get()).ok())
}
