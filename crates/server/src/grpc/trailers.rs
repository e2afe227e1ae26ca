//! A status as trailers: `grpc-status`, `grpc-message`, `grpc-status-details-bin`.

use http::{HeaderMap, HeaderName, HeaderValue};
use sabir_model::Base64;
use sabir_wire::grpc::GrpcStatus;

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// Clients that repeat calls by themselves wait at least so many milliseconds.
const RETRY_AFTER: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

pub(crate) fn trailers_of(status: &GrpcStatus) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(4);
    trailers.insert(GRPC_STATUS, HeaderValue::from(u16::from(status.code.0)));
    if !status.message.is_empty() {
        trailers.insert(GRPC_MESSAGE, header_text(&status.message));
    }
    if !status.details.is_empty() {
        let details = Base64::encode(&status.details);
        let details = details.as_str().trim_end_matches('=');
        trailers.insert(GRPC_DETAILS, HeaderValue::from_str(details).expect("base64 is ASCII"));
    }
    if let Some(seconds) = status.retry_after {
        trailers.insert(RETRY_AFTER, HeaderValue::from(u64::from(seconds) * 1000));
    }
    trailers
}

/// Percent-encodes what is not visible ASCII, as gRPC wants it.
fn header_text(text: &str) -> HeaderValue {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::from_str(&encoded).expect("it is visible ASCII")
}

#[cfg(test)]
mod tests {
    use sabir_wire::grpc::GrpcCode;

    use super::*;

    #[test]
    fn any_text_fits_into_a_trailer() {
        for (message, expected) in [("plain, text", "plain, text"), ("100 %", "100 %25"), ("é\n", "%C3%A9%0A")] {
            let status = GrpcStatus {
                code: GrpcCode::NOT_FOUND,
                message: message.to_owned(),
                details: vec![1, 2, 3, 4],
                retry_after: Some(5),
            };
            let trailers = trailers_of(&status);
            assert_eq!(trailers["grpc-status"], "5");
            assert_eq!(trailers["grpc-message"], expected);
            assert_eq!(trailers["grpc-status-details-bin"], "AQIDBA");
            assert_eq!(trailers["grpc-retry-pushback-ms"], "5000");
        }
        assert_eq!(trailers_of(&GrpcStatus::ok()).len(), 1);
    }
}
