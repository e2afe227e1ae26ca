//! Which of our scopes a token gives, by whatever name and in whatever claim the issuer lists them.
//!
//! A token may list thousands; only ours are kept. What is not ours is neither an error nor remembered.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::json_object::JsonObject;
use super::settings::JwtSettings;
use crate::agent_ids::is_path_segment;

/// Our scopes in this token, each once, in the order of the alphabet.
pub(super) fn scopes_of(claims: &JsonObject<'_>, settings: &JwtSettings) -> Vec<String> {
    let mut scopes = BTreeSet::new();
    let mut add = |name: &str| scopes.extend(own_scope(name, settings).map(str::to_owned));
    for json in settings.scope_claims.iter().filter_map(|claim| claims.find(claim)) {
        if let Ok(text) = serde_json::from_str::<String>(json) {
            text.split_whitespace().for_each(&mut add);
        } else if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(json) {
            let texts = list.into_iter().filter_map(|item| serde_json::from_str::<String>(item.get()).ok());
            texts.for_each(|text| add(&text));
        }
    }
    if scopes.is_empty() {
        scopes.extend(settings.default_scopes.iter().cloned());
    }
    scopes.into_iter().collect()
}

fn own_scope<'a>(name: &'a str, settings: &'a JwtSettings) -> Option<&'a str> {
    if !settings.scope_names.is_empty() {
        return settings.scope_names.get(name).map(String::as_str);
    }
    // `run:coder` is for one agent alone. An admin sees all agents; there is no smaller one.
    let (scope, agent) = name.split_once(':').map_or((name, None), |(scope, agent)| (scope, Some(agent)));
    let is_ours = settings.own_scopes.iter().any(|own| own == scope);
    let fits = agent.is_none_or(|agent| !["admin", "metrics"].contains(&scope) && is_path_segment(agent));
    (is_ours && fits).then_some(name)
}
