//! The envelope of a request, read in place.
//!
//! Id and params are slices of the body: the id is echoed as the caller wrote it, and the params are parsed once, by
//! their dialect.

use std::borrow::Cow;

use sabir_model::Error;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::json;

/// In bytes. Every frame of a stream repeats the id.
const MAX_ID_LENGTH: usize = 1024;

#[derive(Debug)]
pub struct Request<'a> {
    /// JSON: a string, a number or null. `None`: it is missing, and the request is refused after everything else is checked.
    pub id: Option<&'a str>,
    pub method: Cow<'a, str>,
    params: Option<&'a RawValue>,
}

/// Why a text is no JSON-RPC request.
#[derive(Debug)]
pub struct InvalidRequest<'a> {
    /// JSON; `null` where no id can be read.
    pub id: &'a str,
    pub error: Error,
}

#[derive(Deserialize)]
struct RequestMembers<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

/// Keeps an explicit `null`, which a plain `Option` would take for a missing member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// For a client that posts something else to a JSON-RPC mount.
const NOT_A_REQUEST: &str = "this is no JSON-RPC request: jsonrpc, id and method are needed here; \
    plain messages go to /message:send (1.0), /v1/message:send (0.3) or /v1/a2a/agents/{id}/message:send";

impl<'a> Request<'a> {
    pub fn parse(text: &'a str) -> Result<Self, InvalidRequest<'a>> {
        let envelope = read(text).map_err(|error| InvalidRequest { id: "null", error })?;
        if envelope.jsonrpc.is_none() && envelope.method.is_none() {
            let id = envelope.id.map(RawValue::get).filter(|id| is_id(id) && id.len() <= MAX_ID_LENGTH);
            return Err(invalid(id, NOT_A_REQUEST));
        }
        let id = match envelope.id.map(RawValue::get) {
            Some(id) if id.len() > MAX_ID_LENGTH => return Err(invalid(None, "id must not be longer than 1024 bytes")),
            Some(id) if !is_id(id) => return Err(invalid(None, "id must be a string, a number or null")),
            id => id,
        };
        if envelope.jsonrpc.and_then(as_text).as_deref() != Some("2.0") {
            return Err(invalid(id, "jsonrpc must be \"2.0\""));
        }
        match envelope.method.and_then(as_text) {
            Some(method) => Ok(Self { id, method, params: envelope.params }),
            None => Err(invalid(id, "method must be a string")),
        }
    }

    pub(super) fn method_not_found(&self) -> Error {
        Error::MethodNotFound(self.method.clone().into_owned())
    }

    /// One JSON object; no params are an empty one.
    pub fn params(&self) -> Result<&'a str, Error> {
        match self.params.map(RawValue::get) {
            None | Some("null") => Ok("{}"),
            Some(object) if object.starts_with('{') => Ok(object),
            Some(_) => Err(Error::invalid("params", "must be an object")),
        }
    }
}

fn invalid<'a>(id: Option<&'a str>, why: &str) -> InvalidRequest<'a> {
    InvalidRequest { id: id.unwrap_or("null"), error: Error::InvalidRequest(why.to_owned()) }
}

fn read(text: &str) -> Result<RequestMembers<'_>, Error> {
    // Serde would take the elements of an array for the members, in their order.
    if text.trim_start().starts_with('[') {
        return Err(invalid_if_json(text, "batches are not supported"));
    }
    json::parse(text).map_err(|error| match error.classify() {
        Category::Data if !text.trim_start().starts_with('{') => invalid_if_json(text, "a request is a JSON object"),
        // A member name with half of a surrogate pair is a syntax error here, although it is JSON.
        Category::Data | Category::Syntax => invalid_if_json(text, &error.to_string()),
        Category::Eof | Category::Io => Error::NotJson(error.to_string()),
    })
}

/// The reader stops at the first fault, and what follows may not be JSON: then that is the error.
fn invalid_if_json(text: &str, why: &str) -> Error {
    match json::parse::<&RawValue>(text) {
        Ok(_) => Error::InvalidRequest(why.to_owned()),
        Err(error) => Error::NotJson(error.to_string()),
    }
}

fn is_id(json: &str) -> bool {
    json == "null" || json.starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'))
}

/// Some clients escape the slash in a method's name.
fn as_text(json: &RawValue) -> Option<Cow<'_, str>> {
    let inner = json.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { json::parse(json.get()).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}
