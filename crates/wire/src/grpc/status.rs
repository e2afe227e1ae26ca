//! How a call of gRPC ended: a code, a title, and for 1.0 the details that programs read.
//!
//! 1.0 has `google.rpc.Status` with the same details as its HTTP+JSON. 0.3 has nothing but text, which begins with the name of the
//! error; its clients look there.

use sabir_model::Error;
use sabir_proto::prost::Message;
use sabir_proto::{prost_types, rpc};

use crate::errors::{self, ErrorText};
use crate::{Operation, ProtocolVersion};

/// A code of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrpcCode(pub u8);

impl GrpcCode {
    pub const OK: Self = Self(0);
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    pub const NOT_FOUND: Self = Self(5);
    pub const UNIMPLEMENTED: Self = Self(12);
    pub const INTERNAL: Self = Self(13);

    /// Of the name that `google.rpc` gives to a code. Those that nobody knows are UNKNOWN.
    pub fn of_name(name: &str) -> Self {
        Self(NAMES.iter().position(|known| *known == name).unwrap_or(2) as u8)
    }

    pub fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).copied().unwrap_or("UNKNOWN")
    }
}

const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// So many bytes of text, and of violations, are in the trailers.
const MOST_TEXT: usize = 1000;
const MOST_DETAILS: usize = 3000;

/// What is in the trailers of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcStatus {
    pub code: GrpcCode,
    /// For people. Any text: whoever writes the trailer encodes it.
    pub message: String,
    /// An encoded `google.rpc.Status`; empty: none.
    pub details: Vec<u8>,
    /// When a retry makes sense, in seconds.
    pub retry_after: Option<u32>,
}

impl GrpcStatus {
    pub fn ok() -> Self {
        Self { code: GrpcCode::OK, message: String::new(), details: Vec::new(), retry_after: None }
    }

    pub(crate) fn of(error: &Error, version: ProtocolVersion, operation: Option<Operation>) -> Self {
        let code = GrpcCode::of_name(errors::grpc_name(error));
        let text = ErrorText::of(error);
        let retry_after = errors::retry_after(error);
        if version.is_0_x() {
            let name = errors::name_0_3(error, operation);
            let sentence = if text.sentence.is_empty() { text.title } else { &text.sentence };
            let message = format!("{name}: {}", shortened(sentence));
            return Self { code, message, details: Vec::new(), retry_after };
        }
        let mut details = Vec::new();
        if !text.violations.is_empty() {
            let mut room = MOST_DETAILS;
            let violations = text.violations.into_iter().take_while(|(field, description)| {
                let length = field.len() + description.len();
                room = room.saturating_sub(length);
                room > 0
            });
            let field_violations = violations
                .map(|(field, description)| rpc::bad_request::FieldViolation { field, description })
                .collect();
            details.push(any("google.rpc.BadRequest", &rpc::BadRequest { field_violations }));
        }
        let info = rpc::ErrorInfo {
            reason: text.reason.to_owned(),
            domain: errors::DOMAIN.to_owned(),
            metadata: text.members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        };
        details.push(any("google.rpc.ErrorInfo", &info));
        let message = text.title.to_owned();
        let status = rpc::Status { code: i32::from(code.0), message: message.clone(), details };
        Self { code, message, details: status.encode_to_vec(), retry_after }
    }
}

/// Clients take few kilobytes of metadata; percent-encoding makes text up to three times as long.
fn shortened(sentence: &str) -> &str {
    let end = sentence.char_indices().map(|(at, _)| at).take_while(|at| *at <= MOST_TEXT).last().unwrap_or(0);
    if sentence.len() <= MOST_TEXT { sentence } else { &sentence[..end] }
}

fn any(name: &str, message: &impl Message) -> prost_types::Any {
    prost_types::Any { type_url: format!("type.googleapis.com/{name}"), value: message.encode_to_vec() }
}

#[cfg(test)]
mod tests {
    use sabir_model::Violation;

    use super::*;

    /// Clients take about eight kilobytes of metadata, and text grows when it is encoded.
    #[test]
    fn an_error_with_much_to_say_still_fits_into_trailers() {
        let long =
            |at: usize| Violation { field: format!("{at}{}", "😀".repeat(200)), description: "é".repeat(200) };
        let error = Error::Invalid((0..20).map(long).collect());
        for version in [ProtocolVersion::V1_0, ProtocolVersion::V0_3] {
            let status = GrpcStatus::of(&error, version, Some(Operation::Send));
            assert_eq!(status.code.name(), "INVALID_ARGUMENT");
            let (text, details) = (status.message.len() * 3, status.details.len() * 4 / 3);
            assert!(text + details < 8000, "{version:?}: {text} and {details}");
            assert!(version == ProtocolVersion::V1_0 || status.message.starts_with("InvalidParamsError: "));
        }
        let short = GrpcStatus::of(&Error::invalid("id", "is required"), ProtocolVersion::V0_3, None);
        assert_eq!(short.message, "InvalidParamsError: id is required");
    }
}
