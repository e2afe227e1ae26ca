//! Query parameters, as the JSON that a body would have had.

use sabir_model::{Error, Violation};

use super::endpoints::EndpointGroup;
use crate::{Operation, json, percent};

#[derive(Debug)]
pub(super) struct Field {
    pub name: &'static str,
    pub json: Vec<u8>,
}

#[derive(Clone, Copy)]
enum ValueType {
    Text,
    Number,
    Flag,
}

/// Both spellings are read, like in a body. Violations are reported in this order, which is that of the specification.
const PARAMETERS: [(&str, &str, ValueType); 8] = [
    ("tenant", "tenant", ValueType::Text),
    ("contextId", "context_id", ValueType::Text),
    ("status", "status", ValueType::Text),
    ("pageSize", "page_size", ValueType::Number),
    ("pageToken", "page_token", ValueType::Text),
    ("historyLength", "history_length", ValueType::Number),
    ("statusTimestampAfter", "status_timestamp_after", ValueType::Text),
    ("includeArtifacts", "include_artifacts", ValueType::Flag),
];

pub(super) fn in_order(mut violations: Vec<Violation>) -> Vec<Violation> {
    violations.sort_by_key(|violation| PARAMETERS.iter().position(|(name, ..)| *name == violation.field));
    violations
}

/// The fields that the operation takes, and their violations; other parameters are ignored.
pub(super) fn fields(query: Option<&str>, group: EndpointGroup, operation: Operation) -> (Vec<Field>, Vec<Violation>) {
    let mut fields: Vec<Field> = Vec::new();
    let mut violations: Vec<Violation> = Vec::new();
    for (key, raw) in percent::parameters(query) {
        let known = PARAMETERS.iter().find(|(camel, snake, _)| key == *camel || key == *snake);
        let Some((name, _, kind)) = known.filter(|(name, ..)| is_taken(name, group, operation)) else {
            continue;
        };
        let value = percent::value(raw).ok_or("is not percent-encoded UTF-8").and_then(|text| as_json(&text, *kind));
        let earlier = fields.iter().find(|field| field.name == *name);
        let wrong = match (value, earlier) {
            (Ok(json), None) => {
                fields.push(Field { name, json });
                continue;
            }
            (Ok(json), Some(earlier)) if earlier.json == json => continue,
            (Ok(_), Some(_)) => "is given twice, with different values",
            (Err(wrong), _) => wrong,
        };
        if violations.iter().all(|violation| violation.field != *name) {
            violations.push(Violation { field: (*name).to_owned(), description: wrong.to_owned() });
        }
    }
    (fields, violations)
}

/// The agent that a query names, whatever the operation.
pub(super) fn tenant(query: Option<&str>, group: EndpointGroup) -> Result<Option<String>, Error> {
    // A send takes nothing else from the query.
    let (fields, violations) = fields(query, group, Operation::Send);
    if !violations.is_empty() {
        return Err(Error::Invalid(violations));
    }
    let text = fields.first().and_then(|field| std::str::from_utf8(&field.json).ok());
    Ok(text.map(json::read::<String>).transpose()?.filter(|tenant| !tenant.is_empty()))
}

fn is_taken(name: &str, group: EndpointGroup, operation: Operation) -> bool {
    match name {
        "tenant" => matches!(group, EndpointGroup::V1 | EndpointGroup::Unversioned),
        "historyLength" => matches!(operation, Operation::Get | Operation::List),
        "pageSize" | "pageToken" => matches!(operation, Operation::List | Operation::PushList),
        _ => operation == Operation::List,
    }
}

fn as_json(text: &str, kind: ValueType) -> Result<Vec<u8>, &'static str> {
    let mut value = Vec::with_capacity(text.len() + 2);
    match kind {
        ValueType::Text => json::write(&text, &mut value),
        ValueType::Number => json::write(&text.parse::<i64>().map_err(|_| "must be a whole number")?, &mut value),
        ValueType::Flag => json::write(&text.parse::<bool>().map_err(|_| "must be true or false")?, &mut value),
    }
    Ok(value)
}
