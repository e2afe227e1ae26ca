//! What a caller needs: `{"schemes":{"oauth":{"list":["read"]}}}` in 1.0, `{"oauth":["read"]}` in 0.x.

use sabir_model as model;
use serde::{Deserialize, Serialize};

use crate::wire_types::{OrderedMap, Text, WireList, object};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Requirement<'a> {
    #[serde(borrow, default)]
    schemes: OrderedMap<'a, ScopeList<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub(super) struct ScopeList<'a> {
    #[serde(borrow, default, skip_serializing_if = "WireList::is_empty")]
    list: Scopes<'a>,
}

object! { both Requirement<'a>; both ScopeList<'a> }

pub(super) type Scopes<'a> = WireList<'a, Text<'a>, String>;

pub(super) fn write_v1(requirements: &[model::Requirement]) -> Option<Vec<Requirement<'_>>> {
    let each = requirements.iter().map(|requirement| {
        let schemes = requirement.schemes.iter().map(|(name, list)| (name.into(), ScopeList { list: list.into() }));
        Requirement { schemes: OrderedMap(schemes.collect()) }
    });
    (!requirements.is_empty()).then(|| each.collect())
}

pub(super) fn write_v0_3(requirements: &[model::Requirement]) -> Option<Vec<OrderedMap<'_, Scopes<'_>>>> {
    let each = requirements.iter().map(|requirement| {
        OrderedMap(requirement.schemes.iter().map(|(name, list)| (name.into(), list.into())).collect())
    });
    (!requirements.is_empty()).then(|| each.collect())
}

/// A hybrid card has both spellings; the newer one is read.
pub(super) fn read(
    v1: Option<Vec<Requirement<'_>>>,
    v03: Option<Vec<OrderedMap<'_, Scopes<'_>>>>,
) -> Vec<model::Requirement> {
    let strings = |scopes: Scopes<'_>| scopes.into_wire().into_iter().map(Text::into_string).collect();
    match v1.filter(|requirements| !requirements.is_empty()) {
        Some(requirements) => requirements
            .into_iter()
            .map(|requirement| model::Requirement {
                schemes: requirement.schemes.0.into_iter().map(|(n, s)| (n.into_string(), strings(s.list))).collect(),
            })
            .collect(),
        None => v03
            .unwrap_or_default()
            .into_iter()
            .map(|requirement| model::Requirement {
                schemes: requirement.0.into_iter().map(|(n, s)| (n.into_string(), strings(s))).collect(),
            })
            .collect(),
    }
}
