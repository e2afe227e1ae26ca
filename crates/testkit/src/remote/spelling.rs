//! Calls and outcomes in the spelling of each protocol.

use serde_json::{Value, json};

use super::call::{Artifacts, Call, Delivery, SendCall};
use super::errors::{ErrorKind, RemoteError};
use super::fields;
use super::perform::{Outcome, Page};
use super::protocol::{Operation, RemoteProtocol};
use super::task::{RemoteMessage, RemoteTask, TaskEvent};
use super::{spelling_v01, spelling_v1, spelling_v03, spelling_v03_proto};

/// The call that these params mean. HTTP+JSON gives its path and query as params too.
pub(super) fn read(protocol: RemoteProtocol, operation: Operation, params: &Value) -> Result<Call, RemoteError> {
    let id = || fields::text(params, "id");
    // Whose push configs: 1.0 names the task `taskId` everywhere, 0.x mostly `id`.
    let task_id = || if protocol.is_v1() { fields::text(params, "taskId") } else { id() };
    let config_id = || match protocol.is_v1() {
        true => fields::text(params, "id").map(Some),
        false => fields::optional_text(params, "pushNotificationConfigId"),
    };
    match operation {
        Operation::Send => read_send(protocol, params).map(Call::Send),
        Operation::Stream => {
            read_send(protocol, params).map(|send| Call::Send(SendCall { delivery: Delivery::Stream, ..send }))
        }
        Operation::Get => Ok(Call::Get { id: id()?, history_length: fields::count(params, "historyLength")? }),
        Operation::List => spelling_v1::read_list(params).map(Call::List),
        Operation::Cancel => Ok(Call::Cancel { id: id()? }),
        Operation::Subscribe => Ok(Call::Subscribe { id: id()?, after: None }),
        Operation::SetPush => read_set_push(protocol, params),
        Operation::GetPush => Ok(Call::GetPush { task_id: task_id()?, id: config_id()? }),
        Operation::ListPush => Ok(Call::ListPush { task_id: task_id()? }),
        Operation::DeletePush => Ok(Call::DeletePush { task_id: task_id()?, id: config_id()? }),
        Operation::ExtendedCard => Ok(Call::ExtendedCard),
        Operation::Card => Err(RemoteError::new(ErrorKind::MethodNotFound)),
    }
}

fn read_send(protocol: RemoteProtocol, params: &Value) -> Result<SendCall, RemoteError> {
    match protocol {
        RemoteProtocol::V1JsonRpc | RemoteProtocol::V1HttpJson => spelling_v1::read_send(params),
        RemoteProtocol::V03JsonRpc => spelling_v03::read_send(params),
        RemoteProtocol::V03HttpJson => spelling_v03_proto::read_send(params),
        RemoteProtocol::V02JsonRpc => {
            spelling_v03::check_v02(params)?;
            spelling_v03::read_send(params)
        }
        RemoteProtocol::V01JsonRpc => spelling_v01::read_send(params),
    }
}

fn read_set_push(protocol: RemoteProtocol, params: &Value) -> Result<Call, RemoteError> {
    let (task_id, mut config) = match protocol {
        RemoteProtocol::V1JsonRpc | RemoteProtocol::V1HttpJson => {
            (fields::text(params, "taskId")?, spelling_v1::read_push(params)?)
        }
        RemoteProtocol::V03HttpJson => (fields::text(params, "id")?, spelling_v03_proto::read_push(params)?),
        RemoteProtocol::V03JsonRpc | RemoteProtocol::V02JsonRpc => {
            let config = fields::object(params, "pushNotificationConfig")?;
            (fields::text(params, "taskId")?, spelling_v03::read_push(config)?)
        }
        RemoteProtocol::V01JsonRpc => {
            let config = fields::object(params, "pushNotificationConfig")?;
            (fields::text(params, "id")?, spelling_v03::read_push(config)?)
        }
    };
    if config.id.is_empty() {
        config.id = task_id.clone();
    }
    Ok(Call::SetPush { task_id, config })
}

/// The result of a call. A send has a wrapper where ProtoJSON is spoken.
pub(super) fn outcome(protocol: RemoteProtocol, operation: Operation, outcome: &Outcome) -> Value {
    let is_wrapped = operation == Operation::Send && (protocol.is_v1() || protocol == RemoteProtocol::V03HttpJson);
    match outcome {
        Outcome::Task(content) if is_wrapped => json!({ "task": task(protocol, content) }),
        Outcome::Task(content) => task(protocol, content),
        Outcome::Message(content) if is_wrapped => json!({ "message": message(protocol, content) }),
        Outcome::Message(content) => message(protocol, content),
        Outcome::Page(content) => page(content),
        Outcome::Push { task_id, config } => push(protocol, task_id, config),
        Outcome::NoPush => Value::Null,
        Outcome::PushList { task_id, configs } => {
            let list: Vec<Value> = configs.iter().map(|config| push(protocol, task_id, config)).collect();
            match protocol {
                RemoteProtocol::V03JsonRpc | RemoteProtocol::V02JsonRpc | RemoteProtocol::V01JsonRpc => json!(list),
                _ if list.is_empty() => json!({}),
                _ => json!({ "configs": list }),
            }
        }
        Outcome::Deleted => match protocol {
            RemoteProtocol::V1HttpJson | RemoteProtocol::V03HttpJson => json!({}),
            _ => Value::Null,
        },
        Outcome::Card(card) => card.clone(),
        Outcome::Stream(_) => Value::Null,
    }
}

pub(super) fn task(protocol: RemoteProtocol, task: &RemoteTask) -> Value {
    match protocol {
        RemoteProtocol::V1JsonRpc | RemoteProtocol::V1HttpJson => spelling_v1::task(task),
        RemoteProtocol::V03JsonRpc | RemoteProtocol::V02JsonRpc => spelling_v03::task(task),
        RemoteProtocol::V03HttpJson => spelling_v03_proto::task(task),
        RemoteProtocol::V01JsonRpc => spelling_v01::task(task),
    }
}

/// A frame of a stream.
pub(super) fn event(protocol: RemoteProtocol, task_id: &str, context_id: &str, event: &TaskEvent) -> Value {
    match protocol {
        RemoteProtocol::V1JsonRpc | RemoteProtocol::V1HttpJson => spelling_v1::event(task_id, context_id, event),
        RemoteProtocol::V03JsonRpc | RemoteProtocol::V02JsonRpc => spelling_v03::event(task_id, context_id, event),
        RemoteProtocol::V03HttpJson => spelling_v03_proto::event(task_id, context_id, event),
        RemoteProtocol::V01JsonRpc => spelling_v01::event(task_id, event),
    }
}

/// A frame that is a direct message.
pub(super) fn message_event(protocol: RemoteProtocol, content: &RemoteMessage) -> Value {
    match protocol {
        RemoteProtocol::V03JsonRpc | RemoteProtocol::V02JsonRpc => message(protocol, content),
        _ => json!({ "message": message(protocol, content) }),
    }
}

fn message(protocol: RemoteProtocol, message: &RemoteMessage) -> Value {
    match protocol {
        RemoteProtocol::V1JsonRpc | RemoteProtocol::V1HttpJson => spelling_v1::message(message),
        RemoteProtocol::V03HttpJson => spelling_v03_proto::message(message),
        // 0.1 never answers with a message.
        RemoteProtocol::V03JsonRpc | RemoteProtocol::V02JsonRpc | RemoteProtocol::V01JsonRpc => {
            spelling_v03::message(message)
        }
    }
}

fn push(protocol: RemoteProtocol, task_id: &str, config: &super::task::PushConfig) -> Value {
    match protocol {
        RemoteProtocol::V1JsonRpc | RemoteProtocol::V1HttpJson => spelling_v1::push(task_id, config),
        RemoteProtocol::V03HttpJson => spelling_v03_proto::push(task_id, config),
        RemoteProtocol::V03JsonRpc | RemoteProtocol::V02JsonRpc => {
            json!({"taskId": task_id, "pushNotificationConfig": spelling_v03::push(config)})
        }
        RemoteProtocol::V01JsonRpc => json!({"id": task_id, "pushNotificationConfig": spelling_v03::push(config)}),
    }
}

fn page(page: &Page) -> Value {
    let spell = |content: &RemoteTask| {
        let mut value = spelling_v1::task(content);
        let members = value.as_object_mut().expect("a task is an object");
        match page.artifacts {
            Artifacts::LeftOut => drop(members.remove("artifacts")),
            Artifacts::Included => drop(members.entry("artifacts").or_insert(json!([]))),
        }
        value
    };
    json!({
        "tasks": page.tasks.iter().map(spell).collect::<Vec<_>>(),
        "nextPageToken": page.next_token,
        "pageSize": page.size,
        "totalSize": page.total,
    })
}
