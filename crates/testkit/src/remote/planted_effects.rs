//! What a planted fault changes, at the few places where an honest server can be bent.
//!
//! In the order of an exchange: the card, what is checked before a call (`checks_*`, `before`), what a refusal turns into
//! (`after_refusal`), the content of answers and frames (`content`, `result`), and the envelope. `planted_stream` bends the
//! order of frames.

use serde_json::{Value, json};

use super::call::{Artifacts, Call, Delivery};
use super::errors::{ErrorKind, RemoteError};
use super::perform::{Outcome, Source};
use super::planted::PlantedFault as Fault;
use super::protocol::{Operation, RemoteBinding, RemoteProtocol};
use super::server::Server;
use super::tamper;
use super::task::RemoteState;

pub(super) fn card(server: &Server, card: &mut Value) {
    let Some(fault) = server.settings.planted else {
        return;
    };
    let members = card.as_object_mut().expect("a card is an object");
    match fault {
        Fault::CardWithoutName => drop(members.remove("name")),
        Fault::CardWithoutSkills => drop(members.remove("skills")),
        Fault::CardSkillWithoutTags => tamper::remove(card, &["tags"]),
        Fault::CardWithoutOutputModes => drop(members.remove("defaultOutputModes")),
        Fault::CardWithoutProtocolVersion => tamper::remove(card, &["protocolVersion"]),
        Fault::CardDeadInterface => add_dead_interface(server, card),
        Fault::ExtendedCardMissing | Fault::ExtendedCardOpen => {
            if card.get("supportedInterfaces").is_some() {
                card["capabilities"]["extendedAgentCard"] = json!(true);
            } else {
                card["supportsAuthenticatedExtendedCard"] = json!(true);
            }
        }
        _ => {}
    }
}

/// The first protocol over the other binding.
fn add_dead_interface(server: &Server, card: &mut Value) {
    let first = server.settings.first_protocol();
    let binding = match first.binding() {
        RemoteBinding::JsonRpc => RemoteBinding::HttpJson.on_card(),
        RemoteBinding::HttpJson => RemoteBinding::JsonRpc.on_card(),
    };
    let url = format!("http://{}", server.dead_address);
    let (list, interface) = match first.is_v1() {
        true => ("supportedInterfaces", json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0"})),
        false => ("additionalInterfaces", json!({"url": url, "transport": binding})),
    };
    if let Some(interfaces) = card[list].as_array_mut() {
        interfaces.push(interface);
    }
}

pub(super) fn checks_version(fault: Option<Fault>) -> bool {
    fault != Some(Fault::VersionAccepted)
}

pub(super) fn checks_envelope(fault: Option<Fault>) -> bool {
    fault != Some(Fault::InvalidRequestAccepted)
}

/// Bends a call before it is performed, or refuses it.
pub(super) fn before(server: &Server, call: &mut Call) -> Result<(), RemoteError> {
    let Some(fault) = server.settings.planted else {
        return Ok(());
    };
    let operation = call.operation();
    let is_push =
        matches!(operation, Operation::SetPush | Operation::GetPush | Operation::ListPush | Operation::DeletePush);
    match (fault, call) {
        (Fault::StreamingRefused, _) if matches!(operation, Operation::Stream | Operation::Subscribe) => {
            return Err(RemoteError::unsupported("this agent does not stream"));
        }
        (Fault::PushRefused, _) if is_push => return Err(RemoteError::new(ErrorKind::PushNotSupported)),
        (Fault::PushConfigLost, Call::GetPush { task_id, .. }) => return Err(RemoteError::task_not_found(task_id)),
        (Fault::PushDeleteNotIdempotent, Call::DeletePush { task_id, id }) => {
            let task = server.tasks.get(task_id);
            let is_known = |id: &String| task.iter().flat_map(|task| &task.push_configs).any(|known| known.id == *id);
            if !id.as_ref().is_some_and(is_known) {
                return Err(RemoteError::task_not_found(task_id));
            }
        }
        (Fault::GetAfterSendNotFound, Call::Get { id, .. }) => return Err(RemoteError::task_not_found(id)),
        (Fault::FinishedTaskMessageAccepted, Call::Send(send)) => {
            let task = send.message.task_id.as_ref().and_then(|id| server.tasks.get(id));
            if task.is_some_and(|task| task.state.is_terminal()) {
                send.message.task_id = None;
            }
        }
        (Fault::UnknownTaskMessageAccepted, Call::Send(send)) => {
            send.message.task_id = send.message.task_id.take().filter(|id| server.tasks.get(id).is_some());
        }
        (Fault::ContextMismatchAccepted, Call::Send(send)) if send.message.task_id.is_some() => {
            send.message.context_id = None;
        }
        (Fault::ContextReplaced, Call::Send(send)) if send.message.task_id.is_none() => {
            send.message.context_id = None;
        }
        (Fault::BlockingReturnsEarly, Call::Send(send)) if send.delivery == Delivery::WhenSettled => {
            send.delivery = Delivery::Immediately;
        }
        (Fault::ReturnImmediatelyIgnored, Call::Send(send)) if send.delivery == Delivery::Immediately => {
            send.delivery = Delivery::WhenSettled;
        }
        (Fault::HistoryTooLong, Call::Get { history_length: length, .. }) if *length != Some(0) => *length = None,
        (Fault::HistoryZeroIgnored, Call::Get { history_length: length, .. }) if *length == Some(0) => *length = None,
        (Fault::ListPageSizeIgnored, Call::List(query)) if query.page_size.is_some_and(|size| size <= 100) => {
            query.page_size = None;
        }
        (Fault::ListBadPageSizeAccepted, Call::List(query)) => {
            query.page_size = query.page_size.map(|size| size.clamp(1, 100));
        }
        (Fault::ListPageTokenIgnored, Call::List(query)) => query.page_token = None,
        (Fault::ListContextIgnored, Call::List(query)) => query.context_id = None,
        (Fault::ListWithArtifacts, Call::List(query)) => query.artifacts = Artifacts::Included,
        _ => {}
    }
    Ok(())
}

/// What a refusal turns into: another one, or an answer.
pub(super) fn after_refusal(
    server: &Server,
    operation: Option<Operation>,
    error: RemoteError,
) -> Result<Outcome, RemoteError> {
    let Some(fault) = server.settings.planted else {
        return Err(error);
    };
    let other = |kind: ErrorKind| Err(RemoteError { kind, ..error.clone() });
    let task = error.task_id.as_ref().and_then(|id| server.tasks.snapshot(id));
    match (fault, error.kind) {
        (Fault::UnknownMethodCode, ErrorKind::MethodNotFound)
        | (Fault::InvalidJsonCode, ErrorKind::InvalidJson)
        | (Fault::InvalidParamsCode, ErrorKind::InvalidParams)
        | (Fault::TaskNotFoundCode, ErrorKind::TaskNotFound) => Err(RemoteError::new(ErrorKind::Internal)),
        (Fault::CancelFinishedCode, ErrorKind::TaskNotCancelable) => other(ErrorKind::UnsupportedOperation),
        (Fault::VersionCode, ErrorKind::VersionNotSupported) => other(ErrorKind::UnsupportedOperation),
        (Fault::CancelFinishedAccepted, ErrorKind::TaskNotCancelable) => {
            task.map(|(task, _)| Outcome::Task(task)).ok_or(error)
        }
        (Fault::SubscribeFinishedAccepted, ErrorKind::UnsupportedOperation)
            if operation == Some(Operation::Subscribe) =>
        {
            let source = task.map(|(task, seen)| Source::Task { id: task.id.clone(), first: Some(task), seen });
            source.map(Outcome::Stream).ok_or(error)
        }
        _ => Err(error),
    }
}

/// The extended card: this server has none.
pub(super) fn extended_card(server: &Server, protocol: RemoteProtocol) -> Result<Outcome, RemoteError> {
    match server.settings.planted {
        Some(Fault::ExtendedCardMissing) => Err(RemoteError::new(ErrorKind::MethodNotFound)),
        Some(Fault::ExtendedCardOpen) => Ok(Outcome::Card(super::card::card(server))),
        _ if protocol.is_v1() => Err(RemoteError::unsupported("this agent has no extended card")),
        _ => Err(RemoteError::new(ErrorKind::ExtendedCardNotConfigured)),
    }
}

/// Bends what is in answers and frames.
pub(super) fn content(fault: Option<Fault>, protocol: RemoteProtocol, value: &mut Value) {
    let Some(fault) = fault else {
        return;
    };
    let is_task = |members: &serde_json::Map<String, Value>| {
        members.contains_key("status") && members.contains_key("id") && !members.contains_key("taskId")
    };
    match fault {
        Fault::TaskWithoutContext => tamper::each_object(value, &mut |members| {
            if is_task(members) {
                members.remove("contextId");
            }
        }),
        Fault::TimestampWithoutZone => tamper::without_zone(value),
        Fault::ForeignStateNames => tamper::change(value, "state", &mut |state| {
            let meant = RemoteState::ALL.into_iter().find(|known| match protocol.is_v1() {
                true => state == known.in_v1(),
                false => state == known.in_v03(),
            });
            if let Some(meant) = meant {
                *state = json!(if protocol.is_v1() { meant.in_v03() } else { meant.in_v1() });
            }
        }),
        Fault::SnakeCaseMember => tamper::each_object(value, &mut |members| {
            if let Some(id) = members.remove("artifactId") {
                members.insert("artifact_id".to_owned(), id);
            }
        }),
        Fault::ArtifactWithoutId => tamper::remove(value, &["artifactId"]),
        Fault::ArtifactWithoutParts => tamper::each_object(value, &mut |members| {
            if members.contains_key("artifactId") {
                members.insert("parts".to_owned(), json!([]));
            }
        }),
        Fault::MessageWithoutId => tamper::each_object(value, &mut |members| {
            let is_agent = members.get("role").is_some_and(|role| role == "ROLE_AGENT" || role == "agent");
            if is_agent {
                members.remove("messageId");
            }
        }),
        Fault::ResultWithoutKind => drop(value.as_object_mut().map(|members| members.remove("kind"))),
        _ => {}
    }
}

/// Bends the result of a call that is no stream.
pub(super) fn result(fault: Option<Fault>, operation: Operation, value: &mut Value) {
    match (fault, operation) {
        (Some(Fault::SendResultNotWrapped), Operation::Send) => {
            for name in ["task", "message"] {
                if let Some(inner) = value.get_mut(name) {
                    *value = inner.take();
                    return;
                }
            }
        }
        (Some(Fault::ListWithoutNextToken), Operation::List) => tamper::remove(value, &["nextPageToken"]),
        (Some(Fault::ListWithoutTotalSize), Operation::List) => tamper::remove(value, &["totalSize"]),
        (Some(Fault::ListOldestFirst), Operation::List) => {
            if let Some(tasks) = value["tasks"].as_array_mut() {
                tasks.reverse();
            }
        }
        _ => {}
    }
}

/// Bends a response of JSON-RPC, envelope and all.
pub(super) fn envelope(fault: Option<Fault>, whole: &mut Value) {
    let Some(members) = whole.as_object_mut().filter(|members| members.contains_key("jsonrpc")) else {
        return;
    };
    match fault {
        Some(Fault::IdNotEchoed) => drop(members.insert("id".to_owned(), json!("another-id"))),
        Some(Fault::IdTypeChanged) => {
            if let Some(id) = members.get_mut("id").filter(|id| id.is_number()) {
                *id = json!(id.to_string());
            }
        }
        Some(Fault::ResultAndError) if members.contains_key("result") => {
            members.insert("error".to_owned(), json!({"code": 0, "message": "no error"}));
        }
        Some(Fault::ResponseWithoutJsonrpc) => drop(members.remove("jsonrpc")),
        _ => {}
    }
}

/// Bends an error, in whichever binding it is.
pub(super) fn error(fault: Option<Fault>, whole: &mut Value) {
    match fault {
        Some(Fault::ErrorWithoutInfo) => tamper::remove(whole, &["data", "details"]),
        Some(Fault::ErrorDataNotArray) => tamper::change(whole, "data", &mut |data| {
            if let Some(first) = data.get_mut(0) {
                *data = first.take();
            }
        }),
        Some(Fault::ErrorWithoutMessage) => tamper::remove(whole, &["message"]),
        _ => {}
    }
}
