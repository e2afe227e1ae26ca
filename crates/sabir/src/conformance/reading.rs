//! What an answer says: a result, an error, or nothing that A2A knows.

use sabir_model::{Error, Task};
use sabir_outbound::DialError;
use sabir_wire::{Binding, Operation, PeerError, PeerErrorKind, PeerProtocol, PeerResponse, Received};
use serde_json::{Value, json};

use super::evidence::Evidence;
use super::exchange::{Answered, Exchange, dial_error};
use super::grpc_answer::{GrpcAnswer, text_protocol};
use super::wire_error::WireError;

pub enum Reading {
    Result(Box<ReadResult>),
    Refused(Box<WireError>),
    Unreadable(String),
    /// The connection failed.
    NoAnswer(DialError),
}

pub struct ReadResult {
    pub response: PeerResponse,
    /// The member `result` of JSON-RPC, or the whole body.
    pub json: Value,
    /// Why a client that goes by the specification could not have read it.
    pub violation: Option<Error>,
}

/// An exchange and what it says.
pub struct Asked {
    pub exchange: Exchange,
    pub reading: Reading,
}

impl Asked {
    pub fn new(protocol: PeerProtocol, exchange: Exchange) -> Self {
        let reading = match &exchange.answer {
            Ok(answered) => read(protocol, &exchange, answered),
            Err(error) => Reading::NoAnswer(error.clone()),
        };
        Asked { exchange, reading }
    }

    pub fn evidence(&self) -> Evidence {
        self.exchange.evidence()
    }

    pub fn result(&self) -> Option<&ReadResult> {
        match &self.reading {
            Reading::Result(result) => Some(result),
            _ => None,
        }
    }

    pub fn refusal(&self) -> Option<&WireError> {
        match &self.reading {
            Reading::Refused(error) => Some(error),
            _ => None,
        }
    }

    /// The task that came, in whatever spelling.
    pub fn task(&self) -> Option<&Task> {
        match &self.result()?.response {
            PeerResponse::Task(task) => Some(task),
            _ => None,
        }
    }

    /// The JSON of the task that came.
    pub fn task_json(&self) -> Option<&Value> {
        self.task()?;
        let json = &self.result()?.json;
        Some(json.get("task").filter(|task| task.is_object()).unwrap_or(json))
    }

    /// The context as the answer names it.
    pub fn context(&self) -> Option<&str> {
        context_of(self.task_json()?)
    }

    /// What came, for a sentence: `a result`, `-32603`, ...
    pub fn words(&self, protocol: PeerProtocol) -> String {
        match &self.reading {
            Reading::Result(_) => "a result".to_owned(),
            Reading::Refused(error) => error.words(protocol),
            Reading::Unreadable(why) => format!("an answer that is not A2A ({why})"),
            Reading::NoAnswer(error) => format!("no answer ({})", dial_error(error)),
        }
    }
}

/// `contextId`, which 0.1 calls `sessionId`.
pub fn context_of(object: &Value) -> Option<&str> {
    let named = |name: &str| object.get(name).and_then(Value::as_str).filter(|id| !id.is_empty());
    named("contextId").or_else(|| named("context_id")).or_else(|| named("sessionId"))
}

fn read(protocol: PeerProtocol, exchange: &Exchange, answered: &Answered) -> Reading {
    match &answered.grpc {
        Some(grpc) => read_grpc(protocol, exchange, answered, grpc),
        None => read_text(protocol, exchange, answered),
    }
}

/// By the reader of gRPC. What that refuses is read from its JSON, as far as it goes.
fn read_grpc(protocol: PeerProtocol, exchange: &Exchange, answered: &Answered, grpc: &GrpcAnswer) -> Reading {
    let json = answered.json().unwrap_or_default();
    if let Some(error) = &grpc.error {
        return refused(error.clone(), json.get("error").cloned().unwrap_or_default());
    }
    if let Some(why) = &grpc.unreadable {
        return Reading::Unreadable(why.clone());
    }
    let error = match protocol.read_message(exchange.operation, &grpc.message) {
        Ok(Received { response, violation }) => {
            return Reading::Result(Box::new(ReadResult { response, json, violation }));
        }
        Err(error) => error,
    };
    match read_text(text_protocol(protocol), exchange, answered) {
        Reading::Result(mut result) => {
            result.violation.get_or_insert(Error::InvalidRequest(error.message));
            Reading::Result(result)
        }
        other => other,
    }
}

fn read_text(protocol: PeerProtocol, exchange: &Exchange, answered: &Answered) -> Reading {
    let Some(mut whole) = answered.json() else {
        let read = protocol.read_response(exchange.operation, exchange.task.as_ref(), answered.status, &answered.body);
        return match read {
            Err(error) if error.kind != PeerErrorKind::Malformed => refused(error, Value::Null),
            _ => Reading::Unreadable("its body is no JSON".to_owned()),
        };
    };
    let status = match protocol.binding() {
        Binding::JsonRpc => {
            drop_error_beside_result(&mut whole);
            answered.status
        }
        Binding::HttpJson | Binding::Grpc => {
            status_of_body(&whole).filter(|_| answered.is_success()).unwrap_or(answered.status)
        }
    };
    let body = whole.to_string();
    match protocol.read_response(exchange.operation, exchange.task.as_ref(), status, body.as_bytes()) {
        Ok(Received { response, violation }) => {
            Reading::Result(Box::new(ReadResult { response, json: result_of(protocol, whole), violation }))
        }
        Err(error) if error.kind == PeerErrorKind::Malformed => {
            // Whatever the body is, the status of HTTP says that the call was refused.
            let by_status = protocol.read_response(exchange.operation, exchange.task.as_ref(), answered.status, b"");
            match by_status {
                Err(refusal) if !answered.is_success() => refused(refusal, whole),
                _ => Reading::Unreadable(error.message),
            }
        }
        Err(error) => {
            let object = whole.get_mut("error").filter(|error| error.is_object()).map(Value::take).unwrap_or(whole);
            refused(PeerError { status: answered.status, ..error }, object)
        }
    }
}

fn refused(error: PeerError, object: Value) -> Reading {
    Reading::Refused(Box::new(WireError::new(error, object)))
}

/// The result counts; that both are there is judged as a rule of its own.
pub fn drop_error_beside_result(whole: &mut Value) {
    if let Some(members) = whole.as_object_mut()
        && members.get("result").is_some_and(|result| !result.is_null())
    {
        members.remove("error");
    }
}

pub fn result_of(protocol: PeerProtocol, mut whole: Value) -> Value {
    match (protocol.binding(), whole.get_mut("result")) {
        (Binding::JsonRpc, Some(result)) => result.take(),
        _ => whole,
    }
}

/// The status that an error in HTTP+JSON gives itself.
fn status_of_body(whole: &Value) -> Option<u16> {
    let error = whole.get("error").filter(|error| error.is_object())?;
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    Some(code.filter(|code| (400..600).contains(code)).unwrap_or(500))
}

/// What a frame of a stream says. `frame` is without the envelope.
pub fn read_frame(
    protocol: PeerProtocol,
    operation: Operation,
    task: Option<&sabir_model::TaskId>,
    frame: &Value,
) -> Result<Received, PeerError> {
    let protocol = text_protocol(protocol);
    let data = match protocol.binding() {
        Binding::JsonRpc => json!({"jsonrpc": "2.0", "id": 0, "result": frame}).to_string(),
        Binding::HttpJson | Binding::Grpc => frame.to_string(),
    };
    protocol.read_frame(operation, task, data.as_bytes())
}
