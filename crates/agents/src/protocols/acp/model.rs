//! Which model a session uses, and how it is changed.
//!
//! In the protocol the model is an option of the session in the category `model`, set by `session/set_config_option`. An
//! older form is the list `models` and `session/set_model`; some programs have both, and some only the older one.

use crate::lenient_json::Object;

/// How many models a refusal names.
const NAMED: usize = 12;

/// A request that makes a session use another model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// `session/set_config_option`
    Option { id: String, value: String },
    /// `session/set_model`
    Model(String),
}

/// An offered model: its id and its display name.
type Offer = (String, String);

/// The model that a session says it uses.
pub(super) fn current(session: &Object) -> Option<String> {
    let listed = session.object("models").non_empty_text("currentModelId");
    listed.or_else(|| option(session).and_then(|option| option.non_empty_text("currentValue")))
}

/// The request that makes the session use this model, given by its id or its display name. `None`: the session uses it
/// already. An error says why it is impossible.
pub(super) fn change(session: &Object, wanted: &str) -> Result<Option<Change>, String> {
    let option = option(session);
    let offered = option.as_ref().map(values).unwrap_or_default();
    if let Some((option, value)) = option.as_ref().zip(find(&offered, wanted)) {
        let id = option.non_empty_text("id").unwrap_or_else(|| "model".to_owned());
        let is_set = option.non_empty_text("currentValue").as_deref() == Some(value);
        return Ok((!is_set).then(|| Change::Option { id, value: value.to_owned() }));
    }
    if session.is_object("models") {
        let models = session.object("models");
        let offered: Vec<Offer> =
            models.objects("availableModels").iter().filter_map(|model| offer(model, "modelId")).collect();
        // The list may be incomplete: Gemini accepts models that it does not list. The program decides.
        let id = find(&offered, wanted).unwrap_or(wanted);
        let is_set = models.non_empty_text("currentModelId").as_deref() == Some(id);
        return Ok((!is_set).then(|| Change::Model(id.to_owned())));
    }
    match option {
        None => Err("the program does not let its model be chosen".to_owned()),
        Some(_) => Err(format!("the program does not have it; it has {}", listed(&offered))),
    }
}

/// The value that the session still uses, if the response to `session/set_config_option` shows another one than was set.
pub(super) fn other_value(answer: &Object, id: &str, value: &str) -> Option<String> {
    let options = answer.objects("configOptions");
    let option = options.iter().find(|option| option.non_empty_text("id").as_deref() == Some(id))?;
    option.non_empty_text("currentValue").filter(|current| current != value)
}

/// The option for the model, found by its category, or by its id in programs without categories.
fn option<'line>(session: &Object<'line>) -> Option<Object<'line>> {
    let options = session.objects("configOptions");
    let is_of_category = |option: &&Object| option.non_empty_text("category").as_deref() == Some("model");
    let is_named_so = |option: &&Object| {
        option.non_empty_text("id").as_deref() == Some("model") && option.non_empty_text("category").is_none()
    };
    options.iter().find(is_of_category).or_else(|| options.iter().find(is_named_so)).cloned()
}

/// The values of an option and their names. They may come in groups.
fn values(option: &Object) -> Vec<Offer> {
    let mut offers = Vec::new();
    for one in option.objects("options") {
        offers.extend(offer(&one, "value"));
        offers.extend(one.objects("options").iter().filter_map(|value| offer(value, "value")));
    }
    offers
}

fn offer(value: &Object, id: &str) -> Option<Offer> {
    let id = value.non_empty_text(id)?;
    let name = value.non_empty_text("name").unwrap_or_else(|| id.clone());
    Some((id, name))
}

/// The id that `wanted` means: the id itself, or the only model with this name.
fn find<'a>(offered: &'a [Offer], wanted: &str) -> Option<&'a str> {
    if let Some((id, _)) = offered.iter().find(|(id, _)| id == wanted) {
        return Some(id);
    }
    let mut by_name = offered.iter().filter(|(_, name)| name.eq_ignore_ascii_case(wanted));
    match (by_name.next(), by_name.next()) {
        (Some((id, _)), None) => Some(id),
        _ => None,
    }
}

fn listed(offered: &[Offer]) -> String {
    let mut names: Vec<&str> = offered.iter().take(NAMED).map(|(id, _)| id.as_str()).collect();
    if names.is_empty() {
        return "none".to_owned();
    }
    if offered.len() > NAMED {
        names.push("...");
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_model_is_set_as_the_session_offers_it() {
        // As recorded of OpenCode, Qwen Code, Goose, codex-acp and Gemini CLI.
        let select = |current: &str, options: Value| {
            json!([{"id": "mode", "category": "mode", "currentValue": "x", "options": [{"value": "big"}]},
                   {"id": "model", "category": "model", "type": "select", "currentValue": current, "options": options}])
        };
        let opencode = json!({"configOptions": select("fake/small", json!([
            {"value": "fake/small", "name": "Fake/Small"}, {"value": "fake/big", "name": "Fake/Big"}]))});
        let qwen = json!({"configOptions": select("$a", json!([
            {"value": "$a", "name": "small"}, {"value": "$b", "name": "big"}, {"value": "$c", "name": "twin"},
            {"value": "$d", "name": "twin"}]))});
        let grouped = json!({"configOptions": select("a", json!([
            {"group": "g", "name": "G", "options": [{"value": "a"}, {"value": "big", "name": "Big"}]}]))});
        let uncategorised =
            json!({"configOptions": [{"id": "model", "currentValue": "a", "options": [{"value": "b"}]}]});
        let both = json!({"configOptions": select("gpt", json!([{"value": "gpt"}])),
                          "models": {"currentModelId": "gpt[low]", "availableModels": [{"modelId": "gpt[high]"}]}});
        let older = json!({"models": {"currentModelId": "auto", "availableModels": [{"modelId": "x-1", "name": "X"}]}});
        let many: Vec<Value> = (0..40).map(|number| json!({"value": format!("m{number}")})).collect();
        let many = json!({"configOptions": select("m1", json!(many))});
        for (session, wanted, expected) in [
            (&opencode, "fake/big", "option model=fake/big"),
            (&opencode, "fake/small", "nothing"),
            (&opencode, "FAKE/BIG", "option model=fake/big"),
            (&opencode, "big", "the program does not have it; it has fake/small, fake/big"),
            (&qwen, "big", "option model=$b"),
            (&qwen, "small", "nothing"),
            (&qwen, "twin", "the program does not have it; it has $a, $b, $c, $d"),
            (&grouped, "big", "option model=big"),
            (&uncategorised, "b", "option model=b"),
            (&both, "gpt", "nothing"),
            (&both, "gpt[high]", "model gpt[high]"),
            (&both, "gpt[low]", "nothing"),
            (&older, "X", "model x-1"),
            (&older, "unlisted", "model unlisted"),
            (&older, "auto", "nothing"),
            (&many, "x", "the program does not have it; it has m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, ..."),
            (&json!({"configOptions": select("a", json!([]))}), "x", "the program does not have it; it has none"),
            (&json!({}), "x", "the program does not let its model be chosen"),
            (&json!({"configOptions": null, "models": []}), "x", "the program does not let its model be chosen"),
        ] {
            let said = match change(&Object::of(session), wanted) {
                Ok(None) => "nothing".to_owned(),
                Ok(Some(Change::Option { id, value })) => format!("option {id}={value}"),
                Ok(Some(Change::Model(id))) => format!("model {id}"),
                Err(why) => why,
            };
            assert_eq!(said, expected, "{wanted} of {session}");
        }
    }

    #[test]
    fn the_answer_may_say_that_the_option_was_not_set() {
        let answer = |current: &str| Object::of(&json!({"configOptions": [{"id": "model", "currentValue": current}]}));
        assert_eq!(other_value(&answer("a"), "model", "a"), None);
        assert_eq!(other_value(&answer("b"), "model", "a").as_deref(), Some("b"));
        for silent in [json!(null), json!({}), json!({"configOptions": []}), json!({"configOptions": [{"id": "mode"}]})]
        {
            assert_eq!(other_value(&Object::of(&silent), "model", "a"), None, "{silent}");
        }
    }
}
