//! How a call of gRPC ended: in the trailers, or in the headers where there was no message.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use sabir_wire::{GrpcEnd, PeerProtocol};

use super::error::RemoteError;

pub(super) fn grpc_end<'h>(headers: &'h HeaderMap, trailers: &'h HeaderMap) -> GrpcEnd<'h> {
    let source = if trailers.contains_key("grpc-status") { trailers } else { headers };
    let text = |name: &str| source.get(name).and_then(|value| value.to_str().ok());
    GrpcEnd { status: text("grpc-status"), message: text("grpc-message"), details: text("grpc-status-details-bin") }
}

pub(super) fn grpc_error(
    protocol: PeerProtocol,
    status: StatusCode,
    headers: &HeaderMap,
    trailers: &HeaderMap,
) -> RemoteError {
    let error = protocol.read_grpc_error(status.as_u16(), &grpc_end(headers, trailers));
    let millis = |from: &HeaderMap| from.get("grpc-retry-pushback-ms")?.to_str().ok()?.parse().ok();
    let retry_after = millis(trailers).or_else(|| millis(headers)).map(Duration::from_millis);
    RemoteError::Peer { error, retry_after }
}
