//! What every answer must have, whatever was asked: the envelope of JSON-RPC, the media type, the form of errors.

use sabir_wire::{Binding, Operation, PeerErrorKind};
use serde_json::Value;

use super::evidence::Evidence;
use super::exchange::{Answered, ResponseId, media_type};
use super::probe::Probe;
use super::reading::{Asked, Reading};
use super::rule::{Level, Rule, Sections, Subject};
use super::rules_grpc;
use super::stream_log::{FrameContent, FrameEnvelope, StreamLog};
use super::wire_error::WireError;

pub const RULES: &[&Rule] = &[
    &RPC_VERSION,
    &RPC_ID,
    &RPC_ID_TYPE,
    &RESULT_OR_ERROR,
    &RPC_CONTENT_TYPE,
    &HTTP_CONTENT_TYPE,
    &HTTP_ERROR_STATUS,
    &HTTP_ERROR_BODY,
    &ERROR_MESSAGE,
    &ERROR_DETAILS,
    &ERROR_INFO,
];

const ENVELOPE: Sections = Sections::all("§9.1", "§6.11.2", "§6.11.2");

pub static RPC_VERSION: Rule = Rule {
    id: "rpc.jsonrpc",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::JsonRpc),
    sections: ENVELOPE,
    says: "a response has the member jsonrpc, and it is \"2.0\"",
    remedy: "write \"jsonrpc\":\"2.0\" into every response and every frame of a stream",
};
pub static RPC_ID: Rule = Rule {
    id: "rpc.id",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::JsonRpc),
    sections: ENVELOPE,
    says: "a response has the id of its request, or null if that could not be read",
    remedy: "copy the id of the request into the response, frames of streams and errors included",
};
pub static RPC_ID_TYPE: Rule = Rule {
    id: "rpc.id-type",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::JsonRpc),
    sections: ENVELOPE,
    says: "the id of a response is the same value as that of the request: a number stays a number",
    remedy: "keep the id as the JSON value that came; do not turn it into a text",
};
pub static RESULT_OR_ERROR: Rule = Rule {
    id: "rpc.result-or-error",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::JsonRpc),
    sections: ENVELOPE,
    says: "a response has either result or error, and the other one does not exist",
    remedy: "leave out error on success and result on failure; null counts as being there",
};
pub static RPC_CONTENT_TYPE: Rule = Rule {
    id: "rpc.content-type",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::JsonRpc),
    sections: Sections::all("§9.1", "§7", "§7"),
    says: "responses of JSON-RPC have the media type application/json",
    remedy: "set Content-Type: application/json on every response that is no stream",
};
pub static HTTP_CONTENT_TYPE: Rule = Rule {
    id: "http.content-type",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::HttpJson),
    sections: Sections::since_v02("§11.2", "§3.2.3"),
    says: "answers have the media type application/a2a+json (application/json in 1.0.0 and in 0.3)",
    remedy: "set Content-Type: application/a2a+json on every answer of 1.0",
};
pub static HTTP_ERROR_STATUS: Rule = Rule {
    id: "http.error-status",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::HttpJson),
    sections: Sections::since_v02("§11.6", "§3.2.3"),
    says: "an error has its own HTTP status, and that is the code in its body",
    remedy: "answer errors with the status of the table in section 5.4, never with 2xx",
};
pub static HTTP_ERROR_BODY: Rule = Rule {
    id: "http.error-body",
    level: Level::Error,
    subject: Subject::InterfaceOf(Binding::HttpJson),
    sections: Sections::since_v1("§11.6"),
    says: "the body of an error is {\"error\": {\"code\", \"status\", \"message\", \"details\"}}",
    remedy: "write errors as google.rpc.Status in JSON, inside of a member error",
};
pub static ERROR_MESSAGE: Rule = Rule {
    id: "errors.message",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::all("§3.3.2", "§6.12", "§6.12"),
    says: "every error has a code and a message that people can read",
    remedy: "give each error a message",
};
pub static ERROR_DETAILS: Rule = Rule {
    id: "errors.details",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§9.5, §10.6, §11.6"),
    says: "the details of an error (data in JSON-RPC) are an array of objects, each with an @type",
    remedy: "wrap the details into an array, and give each the @type of its message",
};
pub static ERROR_INFO: Rule = Rule {
    id: "errors.error-info",
    level: Level::Error,
    subject: Subject::Interface,
    sections: Sections::since_v1("§9.5, §10.6, §11.6"),
    says: "the details of an A2A error have a google.rpc.ErrorInfo with reason and domain (SHOULD in JSON-RPC, MUST in HTTP+JSON and gRPC)",
    remedy: "add {\"@type\": \"type.googleapis.com/google.rpc.ErrorInfo\", \"reason\": \"TASK_NOT_FOUND\", \"domain\": \"a2a-protocol.org\"}; gRPC has it in grpc-status-details-bin",
};

/// Judges an answer that is no stream.
pub fn observe(probe: &Probe<'_>, asked: &Asked) {
    let Ok(answered) = &asked.exchange.answer else { return };
    let evidence = asked.evidence();
    // What a proxy in front of the server answers is not the server's.
    let is_foreign = matches!(answered.status, 401 | 403 | 407 | 421 | 429 | 502..=504);
    let json = answered.json();
    match (probe.protocol().binding(), &answered.grpc) {
        (Binding::JsonRpc, _) => {
            if is_foreign && json.as_ref().is_none_or(|json| json.get("jsonrpc").is_none()) {
                return;
            }
            observe_rpc(probe, asked, answered, json.as_ref(), &evidence);
        }
        (Binding::Grpc, Some(grpc)) => rules_grpc::observe(probe, grpc, &evidence),
        _ if !is_foreign => observe_http(probe, asked, answered, &evidence),
        _ => {}
    }
    if let Some(error) = asked.refusal().filter(|_| !is_foreign) {
        observe_error(probe, asked.exchange.operation, error, &evidence);
    }
}

/// Judges the frames of a stream.
pub fn observe_frames(probe: &Probe<'_>, log: &StreamLog) {
    if let Some(close) = &log.close {
        rules_grpc::observe_close(probe, close, &log.evidence_of_end());
    }
    for (place, frame) in log.frames.iter().enumerate() {
        let evidence = log.evidence_at(place);
        if probe.is_json_rpc() && frame.envelope == FrameEnvelope::AsItShouldBe && frame.whole.is_object() {
            judge_envelope(probe, &frame.whole, &log.response_id, log.operation, &evidence);
        }
        if let FrameContent::Error(error) = &frame.content {
            observe_error(probe, log.operation, error, &evidence);
        }
    }
}

fn observe_rpc(probe: &Probe<'_>, asked: &Asked, answered: &Answered, json: Option<&Value>, evidence: &Evidence) {
    let ledger = &probe.ledger;
    match answered.content_type().map(media_type).as_deref() {
        Some("application/json") => ledger.pass(&RPC_CONTENT_TYPE),
        Some(other) if other.ends_with("+json") => {
            ledger.fail_as(Level::Warning, &RPC_CONTENT_TYPE, format!("the answer has the type {other}"), evidence);
        }
        Some(other) => ledger.fail(&RPC_CONTENT_TYPE, format!("the answer has the type {other}"), evidence),
        None => ledger.fail(&RPC_CONTENT_TYPE, "the answer has no Content-Type", evidence),
    }
    match json {
        Some(json) if json.is_object() => {
            let (ResponseId::Same(id) | ResponseId::NullOr(id)) = &asked.exchange.response_id;
            // A request may be refused before its body is read.
            let response_id = match answered.status {
                401 | 403 | 413 | 415 | 429 => ResponseId::NullOr(id.clone()),
                _ => asked.exchange.response_id.clone(),
            };
            judge_envelope(probe, json, &response_id, asked.exchange.operation, evidence);
        }
        _ => ledger.fail(&RESULT_OR_ERROR, "the answer is no JSON object", evidence),
    }
}

fn judge_envelope(probe: &Probe<'_>, json: &Value, id: &ResponseId, operation: Operation, evidence: &Evidence) {
    let ledger = &probe.ledger;
    match json.get("jsonrpc") {
        Some(version) if version == "2.0" => ledger.pass(&RPC_VERSION),
        Some(version) => ledger.fail(&RPC_VERSION, format!("jsonrpc is {version}"), evidence),
        None => ledger.fail(&RPC_VERSION, "jsonrpc is missing", evidence),
    }
    // The id of such a request need not be known.
    let is_unreadable = matches!(json["error"]["code"].as_i64(), Some(-32700 | -32600));
    match id {
        ResponseId::Same(known) if is_unreadable => {
            judge_id(probe, json.get("id"), &ResponseId::NullOr(known.clone()), evidence);
        }
        id => judge_id(probe, json.get("id"), id, evidence),
    }
    let is_delete = operation == Operation::PushDelete;
    match (json.get("result"), json.get("error")) {
        (Some(_), None) | (None, Some(_)) => ledger.pass(&RESULT_OR_ERROR),
        (Some(_), Some(_)) => ledger.fail(&RESULT_OR_ERROR, "the response has both result and error", evidence),
        // Some SDKs leave out a result of null.
        (None, None) if is_delete => {
            ledger.fail_as(Level::Note, &RESULT_OR_ERROR, "the response to a delete has no result", evidence);
        }
        (None, None) => ledger.fail(&RESULT_OR_ERROR, "the response has neither result nor error", evidence),
    }
}

fn judge_id(probe: &Probe<'_>, id: Option<&Value>, expected: &ResponseId, evidence: &Evidence) {
    let (ResponseId::Same(expected_id) | ResponseId::NullOr(expected_id)) = expected;
    let ledger = &probe.ledger;
    match id {
        Some(id) if id == expected_id => {
            ledger.pass(&RPC_ID);
            ledger.pass(&RPC_ID_TYPE);
        }
        Some(Value::Null) if matches!(expected, ResponseId::NullOr(_)) => ledger.pass(&RPC_ID),
        // Where the request could not be read, some servers leave the id out.
        None if matches!(expected, ResponseId::NullOr(_)) => {
            ledger.fail_as(
                Level::Note,
                &RPC_ID,
                "the refusal of a broken request has no id; it should be null",
                evidence,
            );
        }
        Some(id) if plain(id) == plain(expected_id) => {
            ledger.fail(&RPC_ID_TYPE, format!("the id {expected_id} came back as {id}"), evidence);
        }
        Some(id) => ledger.fail(&RPC_ID, format!("the id {expected_id} came back as {id}"), evidence),
        None => ledger.fail(&RPC_ID, "the response has no id", evidence),
    }
}

/// A number as the text that it is written as.
fn plain(id: &Value) -> String {
    match id {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()),
        other => other.to_string(),
    }
}

fn observe_http(probe: &Probe<'_>, asked: &Asked, answered: &Answered, evidence: &Evidence) {
    let ledger = &probe.ledger;
    let is_refused = matches!(asked.reading, Reading::Refused(_));
    // A path that is not there is the web framework's to answer.
    let is_foreign = matches!(answered.status, 404 | 405) && answered.json().is_none();
    if is_foreign || answered.body.is_empty() && answered.status == 204 {
        return;
    }
    let is_error_of_v0 = is_refused && !probe.is_v1();
    // An error that is no JSON has no body at all, which is judged below.
    let is_json = answered.json().is_some();
    match answered.content_type().map(media_type).as_deref() {
        Some("application/json" | "application/a2a+json") => ledger.pass(&HTTP_CONTENT_TYPE),
        Some("application/problem+json") if is_error_of_v0 => ledger.pass(&HTTP_CONTENT_TYPE),
        _ if is_refused && !is_json => {}
        Some(other) => ledger.fail(&HTTP_CONTENT_TYPE, format!("the answer has the type {other}"), evidence),
        None => ledger.fail(&HTTP_CONTENT_TYPE, "the answer has no Content-Type", evidence),
    }
    let Some(error) = asked.refusal() else { return };
    if error.kind == PeerErrorKind::MethodNotFound {
        return;
    }
    let whole = answered.json().unwrap_or_default();
    if answered.is_success() {
        ledger.fail(&HTTP_ERROR_STATUS, format!("an error came with HTTP {}", answered.status), evidence);
    } else {
        let code = whole["error"]["code"].as_u64().filter(|_| probe.is_v1());
        match code {
            Some(code) if code != u64::from(answered.status) => {
                let fault = format!("the body says {code}, and HTTP says {}", answered.status);
                ledger.fail_as(Level::Warning, &HTTP_ERROR_STATUS, fault, evidence);
            }
            _ => ledger.pass(&HTTP_ERROR_STATUS),
        }
    }
    if probe.is_v1() {
        let fault = match &whole["error"] {
            Value::Object(error) if error.contains_key("code") => None,
            Value::Object(_) => Some("error has no code".to_owned()),
            _ => Some("the body has no object error".to_owned()),
        };
        ledger.judge(&HTTP_ERROR_BODY, fault, evidence);
    }
}

fn observe_error(probe: &Probe<'_>, operation: Operation, error: &WireError, evidence: &Evidence) {
    let ledger = &probe.ledger;
    let is_missing_path = !probe.is_json_rpc() && error.object.is_null();
    if is_missing_path {
        return;
    }
    let message = error.object.get("message").or_else(|| error.object.get("detail")).and_then(Value::as_str);
    let fault = match message {
        Some(text) if !text.trim().is_empty() => {
            let has_code = !probe.is_json_rpc() || error.code.is_some();
            (!has_code).then(|| "the error has no integer code".to_owned())
        }
        _ => Some("the error has no message".to_owned()),
    };
    ledger.judge(&ERROR_MESSAGE, fault, evidence);
    if probe.is_grpc() {
        rules_grpc::observe_error(probe, error, evidence);
    }
    if !probe.is_v1() {
        return;
    }
    let member = if probe.is_json_rpc() { "data" } else { "details" };
    match error.object.get(member) {
        None | Some(Value::Null) => {}
        Some(Value::Array(list)) => {
            let has_type = |detail: &Value| detail["@type"].as_str().is_some_and(|name| !name.is_empty());
            let fault = (!list.iter().all(has_type)).then(|| format!("an element of {member} has no @type"));
            ledger.judge(&ERROR_DETAILS, fault, evidence);
        }
        // JSON-RPC's own errors may say anything.
        Some(_) if probe.is_json_rpc() && !error.is_of_a2a() => {}
        Some(_) => ledger.fail(&ERROR_DETAILS, format!("{member} is no array"), evidence),
    }
    // Over HTTP a path that is not there looks like a task that is not.
    let is_path = operation == Operation::ExtendedCard && error.status == 404 && error.reason.is_none();
    if error.is_of_a2a() && !is_path && !ledger.has_failed(&ERROR_DETAILS) {
        judge_error_info(probe, error, evidence);
    }
}

fn judge_error_info(probe: &Probe<'_>, error: &WireError, evidence: &Evidence) {
    let mut details = error.details().into_iter().flatten();
    let is_info = |detail: &&Value| detail["@type"].as_str().is_some_and(|name| name.ends_with("google.rpc.ErrorInfo"));
    let info = details.find(is_info);
    let level = if probe.is_json_rpc() { Level::Warning } else { Level::Error };
    match info {
        None => probe.ledger.fail_as(level, &ERROR_INFO, "the error has no ErrorInfo", evidence),
        Some(info) if info["reason"].as_str().is_none_or(str::is_empty) => {
            probe.ledger.fail_as(level, &ERROR_INFO, "the ErrorInfo has no reason", evidence);
        }
        Some(info) if info["domain"] != "a2a-protocol.org" => {
            let fault = format!("the domain of the ErrorInfo is {}, not \"a2a-protocol.org\"", info["domain"]);
            probe.ledger.fail_as(level, &ERROR_INFO, fault, evidence);
        }
        Some(_) => probe.ledger.pass(&ERROR_INFO),
    }
}
