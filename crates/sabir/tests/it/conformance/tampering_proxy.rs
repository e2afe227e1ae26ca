//! A proxy of gRPC that breaks one rule in what a real server answers.
//!
//! Streams pass message by message, so a task can be watched and canceled through it.

use std::net::{SocketAddr, TcpListener};
use std::thread;

use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use prost_reflect::bytes::{Buf, Bytes, BytesMut};
use prost_reflect::prost::Message;
use sabir_proto::v1;

/// What is wrong with the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrpcFault {
    Nothing,
    StatusMissing,
    StreamStatusMissing,
    ContentType,
    SecondMessage,
    MalformedMessage,
    UnknownRole,
    ArtifactWithoutId,
    StreamWithoutTask,
    StreamWithUnknownPrefix,
    ErrorInfoMissing,
    ErrorTextMissing,
    ErrorCode,
    ErrorWithoutName,
    VersionAccepted,
}

pub struct TamperingProxy {
    pub address: SocketAddr,
}

impl TamperingProxy {
    pub fn start(server: SocketAddr, fault: GrpcFault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        // It ends with the tests: nobody waits for it.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(accept(listener, server, fault));
        });
        TamperingProxy { address }
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, fault: GrpcFault) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((socket, _)) = listener.accept().await {
        tokio::spawn(async move {
            let Ok(mut connection) = h2::server::handshake(socket).await else { return };
            while let Some(Ok((request, respond))) = connection.accept().await {
                tokio::spawn(async move {
                    // Either side may go away in the middle of a stream.
                    let _ = pass_on(server, fault, request, respond).await;
                });
            }
        });
    }
}

async fn pass_on(
    server: SocketAddr,
    fault: GrpcFault,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let response = forward(server, fault, request).await?;
    let (head, mut body) = response.into_parts();
    let mut answer = Response::new(());
    *answer.status_mut() = head.status;
    *answer.headers_mut() = tampered_end(fault, &method, head.headers);
    if fault == GrpcFault::ContentType {
        answer.headers_mut().insert("content-type", HeaderValue::from_static("application/octet-stream"));
    }
    let is_over = body.is_end_stream();
    let mut out = respond.send_response(answer, is_over)?;
    if is_over {
        return Ok(());
    }
    let mut pending = BytesMut::new();
    let mut place = 0;
    while let Some(bytes) = body.data().await {
        let bytes = bytes?;
        body.flow_control().release_capacity(bytes.len())?;
        pending.extend_from_slice(&bytes);
        while let Some(message) = next_message(&mut pending) {
            out.send_data(tampered_message(fault, &method, place, message), false)?;
            place += 1;
        }
    }
    end(&mut out, tampered_end(fault, &method, body.trailers().await?.unwrap_or_default()))
}

fn end(out: &mut SendStream<Bytes>, trailers: HeaderMap) -> Result<(), h2::Error> {
    match trailers.is_empty() {
        true => out.send_data(Bytes::new(), true),
        false => out.send_trailers(trailers),
    }
}

async fn forward(
    server: SocketAddr,
    fault: GrpcFault,
    request: Request<RecvStream>,
) -> Result<Response<RecvStream>, h2::Error> {
    let (head, mut body) = request.into_parts();
    let mut message = BytesMut::new();
    while let Some(bytes) = body.data().await {
        let bytes = bytes?;
        body.flow_control().release_capacity(bytes.len())?;
        message.extend_from_slice(&bytes);
    }
    let socket = tokio::net::TcpStream::connect(server).await.expect("the server runs");
    let (client, connection) = h2::client::handshake(socket).await?;
    tokio::spawn(connection);
    let mut forwarded = Request::post(format!("http://{server}{}", head.uri.path())).body(()).unwrap();
    *forwarded.headers_mut() = head.headers;
    if fault == GrpcFault::VersionAccepted {
        forwarded.headers_mut().insert("a2a-version", HeaderValue::from_static("1.0"));
    }
    let (response, mut out) = client.ready().await?.send_request(forwarded, false)?;
    out.send_data(message.freeze(), true)?;
    response.await
}

/// With its prefix.
fn next_message(pending: &mut BytesMut) -> Option<Bytes> {
    let length = pending.get(1..5)?.try_into().map(u32::from_be_bytes).ok()? as usize;
    (pending.len() >= 5 + length).then(|| pending.split_to(5 + length).freeze())
}

fn tampered_message(fault: GrpcFault, method: &str, place: usize, message: Bytes) -> Bytes {
    match (fault, method) {
        (GrpcFault::SecondMessage, "GetTask") => [&message[..], &message[..]].concat().into(),
        (GrpcFault::MalformedMessage, "GetTask") => framed(b"\xff"),
        (GrpcFault::UnknownRole, "GetTask") => {
            changed(message, |task| task.history.iter_mut().for_each(|message| message.role = 99))
        }
        (GrpcFault::ArtifactWithoutId, "GetTask") => {
            changed(message, |task| task.artifacts.iter_mut().for_each(|artifact| artifact.artifact_id.clear()))
        }
        (GrpcFault::StreamWithoutTask, "SendStreamingMessage") if place == 0 => Bytes::new(),
        (GrpcFault::StreamWithUnknownPrefix, "SendStreamingMessage") if place == 0 => {
            [&[7], &message[1..]].concat().into()
        }
        _ => message,
    }
}

/// The task of 1.0 in a message.
fn changed(mut message: Bytes, change: impl FnOnce(&mut v1::Task)) -> Bytes {
    message.advance(5);
    let mut task = v1::Task::decode(message).unwrap();
    change(&mut task);
    framed(&task.encode_to_vec())
}

fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, message].concat().into()
}

/// The status of a call, in the headers or in the trailers.
fn tampered_end(fault: GrpcFault, method: &str, mut end: HeaderMap) -> HeaderMap {
    let Some(code) = end.get("grpc-status").cloned() else { return end };
    let is_stream = method == "SendStreamingMessage";
    match fault {
        GrpcFault::StatusMissing if code == "0" && !is_stream => drop(end.remove("grpc-status")),
        GrpcFault::StreamStatusMissing if code == "0" && is_stream => drop(end.remove("grpc-status")),
        GrpcFault::ErrorInfoMissing => drop(end.remove("grpc-status-details-bin")),
        GrpcFault::ErrorTextMissing => drop(end.remove("grpc-message")),
        GrpcFault::ErrorCode if code == "5" => drop(end.insert("grpc-status", HeaderValue::from_static("13"))),
        GrpcFault::ErrorWithoutName if code != "0" => {
            drop(end.insert("grpc-message", HeaderValue::from_static("something is wrong")));
        }
        _ => {}
    }
    end
}
