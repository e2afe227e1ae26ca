//! Reading members of a request. A missing or wrong one is an error that names it.
//!
//! The reading is strict where the specification is, so that a client which sends something wrong is noticed.

use serde_json::Value;

use super::errors::RemoteError;

/// A text that may be absent; empty and `null` count as absent.
pub(super) fn optional_text(value: &Value, field: &str) -> Result<Option<String>, RemoteError> {
    match value.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(RemoteError::invalid(field, "must be a string")),
    }
}

pub(super) fn text(value: &Value, field: &str) -> Result<String, RemoteError> {
    optional_text(value, field)?.ok_or_else(|| RemoteError::invalid(field, "is required"))
}

pub(super) fn object<'a>(value: &'a Value, field: &str) -> Result<&'a Value, RemoteError> {
    value.get(field).filter(|member| member.is_object()).ok_or_else(|| RemoteError::invalid(field, "must be an object"))
}

/// An object that may be absent.
pub(super) fn optional_object<'a>(value: &'a Value, field: &str) -> Result<Option<&'a Value>, RemoteError> {
    match value.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => object(value, field).map(Some),
    }
}

pub(super) fn flag(value: &Value, field: &str) -> Result<Option<bool>, RemoteError> {
    match value.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(RemoteError::invalid(field, "must be true or false")),
    }
}

/// A count that may be absent, as a number or as the text of a query.
pub(super) fn count(value: &Value, field: &str) -> Result<Option<usize>, RemoteError> {
    let number = match value.get(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(other) => other.as_u64().map(|number| number as usize),
    };
    number.map(Some).ok_or_else(|| RemoteError::invalid(field, "must be a number that is not negative"))
}

/// At least one element.
pub(super) fn elements<'a>(value: &'a Value, field: &str) -> Result<&'a [Value], RemoteError> {
    match value.get(field).and_then(Value::as_array) {
        Some(elements) if !elements.is_empty() => Ok(elements),
        _ => Err(RemoteError::invalid(field, "must be an array with at least one element")),
    }
}

/// Refuses members that are not in this list.
pub(super) fn only(value: &Value, known: &[&str]) -> Result<(), RemoteError> {
    let members = value.as_object().into_iter().flatten();
    match members.map(|(name, _)| name).find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(RemoteError::invalid(unknown, "is not known")),
        None => Ok(()),
    }
}

/// Sets a member unless there is nothing to set.
pub(super) fn set<T: Into<Value>>(value: &mut Value, field: &str, content: Option<T>) {
    if let Some(content) = content {
        value[field] = content.into();
    }
}
