//! Reading an answer, or one frame of a stream.

use sabir_model::{Error, TaskId};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::{PeerError, quoted};
use super::error_body::{read_http_error, read_rpc_error};
use super::lenient_object::LenientObject;
use super::lenient_response::{self, Expected};
use super::protocol::{Binding, PeerProtocol};
use crate::lenient::DataEncoding;
use crate::peer_response::PeerResponse;
use crate::{Dialect, Operation, ProtocolVersion, V01, V1, V03, V03Proto, json};

/// What a server answered.
#[derive(Debug)]
pub struct Received {
    pub response: PeerResponse,
    /// Why a client that goes by the specification could not have read it.
    pub violation: Option<Error>,
}

/// The envelope of JSON-RPC. What is null counts as missing.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl PeerProtocol {
    /// Reads the body of an answer. `task` is the one that was asked about.
    pub fn read_response(
        self,
        operation: Operation,
        task: Option<&TaskId>,
        status: u16,
        body: &[u8],
    ) -> Result<Received, PeerError> {
        let is_success = (200..300).contains(&status);
        let text = match json::check_text(body) {
            Ok(text) => text.trim_start_matches('\u{feff}'),
            Err(error) if is_success => return Err(PeerError::malformed(status, &error.to_string())),
            Err(_) => return Err(read_http_error(self, operation, status, "")),
        };
        if !is_success && self.binding() == Binding::HttpJson {
            return Err(read_http_error(self, operation, status, text));
        }
        self.read(operation, task, status, text)
    }

    /// Reads the data of one frame of a stream.
    pub fn read_frame(self, operation: Operation, task: Option<&TaskId>, data: &[u8]) -> Result<Received, PeerError> {
        let text = json::check_text(data).map_err(|error| PeerError::malformed(200, &error.to_string()))?;
        // Servers of HTTP+JSON that fail in the middle of a stream send the body of an error.
        if self.binding() == Binding::HttpJson
            && let Some(object) = LenientObject::of(text)
            && is_error_frame(&object)
        {
            let status = object.object(&["error"]).unwrap_or(object).integer(&["code", "status"]);
            let status = status.and_then(|status| u16::try_from(status).ok()).filter(|status| *status >= 400);
            return Err(read_http_error(self, operation, status.unwrap_or(500), text));
        }
        self.read(operation, task, 200, text)
    }

    fn read(self, operation: Operation, task: Option<&TaskId>, status: u16, text: &str) -> Result<Received, PeerError> {
        let result = match self.binding() {
            // gRPC is no text; `read_message` is for that.
            Binding::HttpJson | Binding::Grpc => text,
            Binding::JsonRpc => match json::parse::<Envelope<'_>>(text) {
                Ok(Envelope { error: Some(error), .. }) if error.get() != "null" => {
                    let Some(error) = LenientObject::of(error.get()) else {
                        if !(200..300).contains(&status) {
                            return Err(read_http_error(self, operation, status, text));
                        }
                        let why = format!("its error is {}", quoted(error.get()));
                        return Err(PeerError::malformed(status, &why));
                    };
                    return Err(read_rpc_error(&error, self.version(), operation, status));
                }
                Ok(Envelope { result: Some(result), .. }) => result.get(),
                _ if !(200..300).contains(&status) => {
                    return Err(read_http_error(self, operation, status, text));
                }
                // Some servers leave a result of null out, and some leave out the envelope.
                Ok(_) if operation == Operation::PushDelete => "null",
                Ok(_) | Err(_) => text,
            },
        };
        self.read_result(operation, task, status, result)
    }

    fn read_result(
        self,
        operation: Operation,
        task: Option<&TaskId>,
        status: u16,
        result: &str,
    ) -> Result<Received, PeerError> {
        let violation = match self.read_strictly(operation, result) {
            Ok(response) => return Ok(Received { response, violation: None }),
            Err(violation) => violation,
        };
        let (born, data) = match (self.version(), self.binding()) {
            (ProtocolVersion::V1_0, _) => (V1.birth(), DataEncoding::Any),
            (ProtocolVersion::V0_1, _) => (V01.birth(), DataEncoding::Object),
            (_, Binding::JsonRpc) => (V03.birth(), DataEncoding::Object),
            (_, Binding::HttpJson | Binding::Grpc) => (V03Proto.birth(), DataEncoding::Nested),
        };
        match lenient_response::read(result, &Expected { operation, task, born, data }) {
            Some(response) => Ok(Received { response, violation: Some(violation) }),
            None if result.trim().is_empty() => Err(PeerError::malformed(status, "the body is empty")),
            None => Err(PeerError::malformed(status, &format!("{violation}, in {}", quoted(result)))),
        }
    }

    fn read_strictly(self, operation: Operation, result: &str) -> Result<PeerResponse, Error> {
        match (self.version(), self.binding()) {
            (ProtocolVersion::V1_0, _) => V1.decode_response(operation, result),
            (ProtocolVersion::V0_3 | ProtocolVersion::V0_2, Binding::JsonRpc) => V03.decode_response(operation, result),
            (ProtocolVersion::V0_3 | ProtocolVersion::V0_2, Binding::HttpJson | Binding::Grpc) => {
                V03Proto.decode_response(operation, result)
            }
            (ProtocolVersion::V0_1, _) => V01.decode_response(operation, result),
        }
    }
}

/// An object that has an error, or a code and a message, and nothing of a task.
fn is_error_frame(object: &LenientObject<'_>) -> bool {
    let is_frame =
        object.has(&["task", "msg", "statusUpdate", "artifactUpdate"]) || object.object(&["message"]).is_some();
    !is_frame && (object.has(&["error"]) || object.has(&["code", "a2a_code"]))
}
