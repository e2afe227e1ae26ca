//! Reading errors: the four bodies in use, and what is left to say where none of them is there.
//!
//! JSON-RPC has `{code, message, data}`, also as the body of 0.3's HTTP+JSON; 1.0 has google.rpc.Status; others write
//! RFC 9457, a bare `message`, or `detail`.

use sabir_model::Json;

use super::error::{PeerError, PeerErrorKind, quoted};
use super::lenient_object::LenientObject;
use super::protocol::{Binding, PeerProtocol};
use crate::{Operation, ProtocolVersion};

/// Reads the `error` of a JSON-RPC answer.
pub(super) fn read_rpc_error(
    error: &LenientObject<'_>,
    version: ProtocolVersion,
    operation: Operation,
    status: u16,
) -> PeerError {
    let code = error.integer(&["code"]);
    let named = error.object(&["data"]).and_then(|data| data.text(&["name"])).and_then(|name| of_name(&name));
    let kind = named
        .or_else(|| reason(error))
        .or_else(|| code.and_then(|code| PeerErrorKind::of_code(code, version, operation, status)))
        .or_else(|| PeerErrorKind::of_status(status))
        .unwrap_or(PeerErrorKind::Internal);
    let message = message(error);
    PeerError { code, data: error.raw(&["data"]).map(Json::from), ..PeerError::new(kind, status, &message) }
}

/// Reads the body of an answer whose status says that something went wrong.
pub(super) fn read_http_error(protocol: PeerProtocol, operation: Operation, status: u16, body: &str) -> PeerError {
    let version = protocol.version();
    let by_status = PeerErrorKind::of_status(status).unwrap_or(PeerErrorKind::Internal);
    // A path that is not there is no missing task. In JSON-RPC no path names a task, so one that was there before is away.
    let names_task = !matches!(operation, Operation::Send | Operation::Stream | Operation::List);
    let by_status = match (by_status, protocol.binding()) {
        (PeerErrorKind::TaskNotFound, _) if !names_task => PeerErrorKind::MethodNotFound,
        (PeerErrorKind::TaskNotFound, Binding::JsonRpc) => PeerErrorKind::Unavailable,
        (kind, _) => kind,
    };
    let Some(object) = LenientObject::of(body) else {
        let text = body.trim();
        let message = if text.is_empty() || text.starts_with('<') { String::new() } else { quoted(text) };
        return PeerError::new(by_status, status, &message);
    };
    // google.rpc.Status, and JSON-RPC, which some servers answer with a status of its own.
    if let Some(error) = object.object(&["error"]) {
        let is_rpc = error.integer(&["code"]).is_some_and(|code| code < 0);
        if is_rpc {
            return read_rpc_error(&error, version, operation, status);
        }
        let named = error.text(&["status"]).and_then(|name| PeerErrorKind::of_reason(&name));
        let kind = reason(&error).unwrap_or(match (by_status, named) {
            // The status of HTTP and the name of google.rpc say the same; FAILED_PRECONDITION says less.
            (PeerErrorKind::Internal, Some(named)) => named,
            (by_status, _) => by_status,
        });
        return PeerError {
            data: error.raw(&["details"]).map(Json::from),
            ..PeerError::new(kind, status, &message(&error))
        };
    }
    let code = object.integer(&["code", "a2a_code"]);
    let kind = reason(&object)
        .or_else(|| code.and_then(|code| PeerErrorKind::of_code(code, version, operation, status)))
        .unwrap_or(by_status);
    let data = object.raw(&["data", "details"]).map(Json::from);
    PeerError { code: code.filter(|code| *code < 0), data, ..PeerError::new(kind, status, &message(&object)) }
}

/// The title, and behind it what the details say.
fn message(error: &LenientObject<'_>) -> String {
    let title = error.text(&["message", "title", "error"]).unwrap_or_default();
    let detail = error
        .text(&["detail"])
        .or_else(|| error.object(&["data"]).and_then(|data| data.text(&["detail", "message", "error"])))
        .or_else(|| error.text(&["data"]))
        .or_else(|| details(error).iter().find_map(detail_sentence));
    match detail.filter(|detail| *detail != title) {
        Some(detail) if title.is_empty() => detail,
        Some(detail) => format!("{title}: {detail}"),
        None => title,
    }
}

/// The typed details of 1.0: `details` over HTTP, `data` in JSON-RPC.
fn details<'t>(error: &LenientObject<'t>) -> Vec<LenientObject<'t>> {
    let list = error.list(&["details"]).or_else(|| error.list(&["data"])).unwrap_or_default();
    list.into_iter().filter_map(LenientObject::of).collect()
}

fn reason(error: &LenientObject<'_>) -> Option<PeerErrorKind> {
    details(error)
        .iter()
        .find_map(|detail| detail.text(&["reason"]))
        .and_then(|reason| PeerErrorKind::of_reason(&reason))
}

fn detail_sentence(detail: &LenientObject<'_>) -> Option<String> {
    let violation = |violation: &str| {
        let violation = LenientObject::of(violation)?;
        let (field, what) = (violation.text(&["field"])?, violation.text(&["description"])?);
        Some(format!("{field} {what}"))
    };
    match detail.list(&["fieldViolations", "field_violations"]) {
        Some(list) => {
            let each: Vec<String> = list.into_iter().take(5).filter_map(violation).collect();
            (!each.is_empty()).then(|| each.join("; "))
        }
        None => detail.object(&["metadata"]).and_then(|metadata| metadata.text(&["detail"])),
    }
}

/// `data.name`, by which 0.x tells two meanings of a code apart.
fn of_name(name: &str) -> Option<PeerErrorKind> {
    match name {
        "VersionNotSupported" => Some(PeerErrorKind::Version),
        "AgentUnavailable" => Some(PeerErrorKind::Unavailable),
        "AuthenticationRequired" => Some(PeerErrorKind::Unauthenticated),
        "AuthorizationFailed" => Some(PeerErrorKind::Forbidden),
        _ => None,
    }
}
