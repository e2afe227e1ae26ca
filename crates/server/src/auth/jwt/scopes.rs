//! Which of our scopes a token gives, by whatever name and in whatever claim the issuer lists them.
//!
//! A token may list thousands; only ours are kept. What is not ours is neither an error nor remembered.

use serde_json::value::RawValue;

use super::json_object::JsonObject;
use super::settings::JwtSettings;

/// Our scopes in this token, each once, in the order of the alphabet.
pub(super) fn scopes_of(claims: &JsonObject<'_>, settings: &JwtSettings) -> Vec<String> {
    let mut scopes = Vec::new();
    let mut add = |name: &str| {
        if let Some(scope) = own_scope(name, settings)
            && !scopes.iter().any(|known| known == scope)
        {
            scopes.push(scope.to_owned());
        }
    };
    for json in settings.scope_claims.iter().filter_map(|claim| claims.find(claim)) {
        if let Ok(text) = serde_json::from_str::<String>(json) {
            text.split_whitespace().for_each(&mut add);
        } else if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(json) {
            let texts = list.into_iter().filter_map(|item| serde_json::from_str::<String>(item.get()).ok());
            texts.for_each(|text| add(&text));
        }
    }
    if scopes.is_empty() {
        scopes.clone_from(&settings.default_scopes);
    }
    scopes.sort_unstable();
    scopes
}

fn own_scope<'s>(name: &str, settings: &'s JwtSettings) -> Option<&'s str> {
    if !settings.scope_names.is_empty() {
        return settings.scope_names.get(name).map(String::as_str);
    }
    settings.own_scopes.iter().map(String::as_str).find(|own| *own == name)
}
