//! A small gRPC client whose messages are JSON.
//!
//! It knows the messages by their descriptors alone, so it shares no code with what it tests. A test can stop reading in the
//! middle of a stream, and send bodies and metadata that no proper client would.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request};
use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use serde_json::Value;
use tokio::net::TcpStream;

/// For a whole call.
const PATIENCE: Duration = Duration::from_secs(60);
const PREFIX: usize = 5;

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(sabir_proto::DESCRIPTORS).expect("the generator made it"));

/// The service of 1.0.
pub const V1: &str = "lf.a2a.v1.A2AService";
/// The service of 0.3.
pub const V03: &str = "a2a.v1.A2AService";

#[derive(Debug, Clone, Default)]
pub struct GrpcReply {
    pub http_status: u16,
    pub headers: HeaderMap,
    pub trailers: HeaderMap,
    /// As ProtoJSON.
    pub messages: Vec<Value>,
    /// How many of them came compressed.
    pub compressed: usize,
    /// The stream was reset, or the connection broke.
    pub broken: Option<String>,
}

impl GrpcReply {
    fn end(&self, name: &str) -> Option<&str> {
        let place = if self.trailers.contains_key("grpc-status") { &self.trailers } else { &self.headers };
        place.get(name).and_then(|value| value.to_str().ok())
    }

    /// `None`: there is none.
    pub fn code(&self) -> Option<u8> {
        self.end("grpc-status").and_then(|code| code.parse().ok())
    }

    /// Still percent-encoded.
    pub fn text(&self) -> &str {
        self.end("grpc-message").unwrap_or_default()
    }

    /// The typed details of the status, as ProtoJSON.
    pub fn details(&self) -> Value {
        let Some(text) = self.end("grpc-status-details-bin") else { return Value::Null };
        let bytes = sabir_model::Base64::parse(text).expect("it is base64").decode();
        let status = json_of(message_named("google.rpc.Status"), &bytes);
        status["details"].clone()
    }

    /// The only message of a call that went well.
    pub fn only(&self) -> &Value {
        assert_eq!((self.code(), self.messages.len()), (Some(0), 1), "{self:?}");
        &self.messages[0]
    }

    /// The number of the first message of a stream.
    pub fn first_event_id(&self) -> Option<u64> {
        self.headers.get("first-event-id")?.to_str().ok()?.parse().ok()
    }
}

/// When to stop reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadUntil {
    End,
    /// After so many messages the stream is reset.
    Messages(usize),
}

/// A call of a method, `lf.a2a.v1.A2AService/GetTask`, on a connection of its own.
pub fn call(address: SocketAddr, method: &str, metadata: &[(&str, &str)], message: &Value) -> GrpcReply {
    read(address, method, metadata, message, ReadUntil::End)
}

pub fn read(
    address: SocketAddr,
    method: &str,
    metadata: &[(&str, &str)],
    message: &Value,
    until: ReadUntil,
) -> GrpcReply {
    raw(address, &format!("/{method}"), metadata, framed(&encode(method, message)), until)
}

/// The message of a request, as protobuf.
pub fn encode(method: &str, message: &Value) -> Vec<u8> {
    let input = method_named(method).input();
    let dynamic = DynamicMessage::deserialize(input, message.clone());
    dynamic.unwrap_or_else(|error| panic!("{error} in {message}")).encode_to_vec()
}

/// With the prefix of a message.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("tests are small").to_be_bytes();
    [&[0][..], &length, message].concat()
}

/// A stream that is read message by message. Dropping it hangs up.
pub struct GrpcStream {
    /// Of the first message.
    pub first_event_id: u64,
    events: std::sync::mpsc::Receiver<StreamEvent>,
    _hang_up: tokio::sync::oneshot::Sender<()>,
}

enum StreamEvent {
    Message(Value),
    End(Box<GrpcReply>),
}

impl GrpcStream {
    /// `None` at the proper end.
    pub fn next_message(&mut self) -> Option<Value> {
        match self.events.recv_timeout(PATIENCE).expect("the stream goes on or ends") {
            StreamEvent::Message(message) => Some(message),
            StreamEvent::End(reply) => {
                assert_eq!(reply.code(), Some(0), "{reply:?}");
                None
            }
        }
    }

    /// What has arrived before the stream broke, as when its server was killed.
    pub fn rest_until_broken(self) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            match self.events.recv_timeout(PATIENCE).expect("the stream goes on or ends") {
                StreamEvent::Message(message) => messages.push(message),
                StreamEvent::End(reply) => {
                    assert_eq!(reply.code(), None, "it has ended properly: {reply:?}");
                    return messages;
                }
            }
        }
    }
}

/// Opens a stream; an answer that is none is the error.
pub fn open(
    address: SocketAddr,
    method: &str,
    metadata: &[(&str, &str)],
    message: &Value,
) -> Result<GrpcStream, Box<GrpcReply>> {
    let body = framed(&encode(method, message));
    let path = format!("/{method}");
    let metadata: Vec<(String, String)> =
        metadata.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (to_test, events) = std::sync::mpsc::channel();
    let (hang_up, hung_up) = tokio::sync::oneshot::channel();
    let (to_opener, opened) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let metadata: Vec<(&str, &str)> =
            metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // Whoever has hung up wants no more.
        let on_head = |reply: &GrpcReply| {
            let _ = to_opener.send(reply.first_event_id());
        };
        let on_message = |message: &Value| {
            let _ = to_test.send(StreamEvent::Message(message.clone()));
        };
        let reading = exchange(address, &path, &metadata, body, ReadUntil::End, on_head, on_message);
        runtime.block_on(async {
            tokio::select! {
                reply = reading => {
                    let _ = to_test.send(StreamEvent::End(Box::new(reply)));
                }
                _ = hung_up => {}
            }
        });
    });
    match opened.recv_timeout(PATIENCE).expect("it answers") {
        Some(first_event_id) => Ok(GrpcStream { first_event_id, events, _hang_up: hang_up }),
        None => match events.recv_timeout(PATIENCE).expect("it ends") {
            StreamEvent::End(reply) => Err(reply),
            StreamEvent::Message(message) => panic!("a stream without numbers: {message}"),
        },
    }
}

/// Any body at any path.
pub fn raw(address: SocketAddr, path: &str, metadata: &[(&str, &str)], body: Vec<u8>, until: ReadUntil) -> GrpcReply {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let exchange = async {
        match tokio::time::timeout(PATIENCE, exchange(address, path, metadata, body, until, |_| {}, |_| {})).await {
            Ok(reply) => reply,
            Err(_) => panic!("no answer to {path} within {PATIENCE:?}"),
        }
    };
    runtime.block_on(exchange)
}

async fn exchange(
    address: SocketAddr,
    path: &str,
    metadata: &[(&str, &str)],
    body: Vec<u8>,
    until: ReadUntil,
    on_head: impl FnOnce(&GrpcReply),
    on_message: impl Fn(&Value),
) -> GrpcReply {
    let socket = TcpStream::connect(address).await.expect("the server is alive");
    let (client, connection) = h2::client::handshake(socket).await.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    let mut client = client.ready().await.expect("it takes a stream");
    let mut request = Request::post(format!("http://{address}{path}")).version(http::Version::HTTP_2);
    let headers = request.headers_mut().expect("the address is one");
    headers.insert("content-type", HeaderValue::from_static("application/grpc"));
    headers.insert("te", HeaderValue::from_static("trailers"));
    for (name, value) in metadata {
        let name = http::HeaderName::try_from(*name).expect("a name of a header");
        headers.insert(name, HeaderValue::try_from(*value).expect("a value of a header"));
    }
    let request = request.body(()).expect("a request");
    let mut reply = GrpcReply::default();
    let (response, mut stream) = client.send_request(request, false).expect("it takes a request");
    // Flow control: the server may refuse before it has read everything.
    let mut left = Bytes::from(body);
    let sending = async move {
        loop {
            stream.reserve_capacity(left.len());
            if left.is_empty() {
                let _ = stream.send_data(Bytes::new(), true);
                return;
            }
            let Some(Ok(room)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await else { return };
            let piece = left.split_to(room.min(left.len()));
            if stream.send_data(piece, false).is_err() {
                return;
            }
        }
    };
    tokio::spawn(sending);
    let response = match response.await {
        Ok(response) => response,
        Err(error) => return GrpcReply { broken: Some(error.to_string()), ..reply },
    };
    reply.http_status = response.status().as_u16();
    reply.headers = response.headers().clone();
    on_head(&reply);
    let output = POOL.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let output = output.into_iter().find(|method| path == path_of(method)).map(|method| method.output());
    let is_grpc =
        reply.headers.get("content-type").is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    let mut body = response.into_body();
    let mut pending = BytesMut::new();
    while let Some(piece) = body.data().await {
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => return GrpcReply { broken: Some(error.to_string()), ..reply },
        };
        let _ = body.flow_control().release_capacity(piece.len());
        if is_grpc {
            pending.extend_from_slice(&piece);
        }
        while let Some((is_compressed, message)) = next_message(&mut pending) {
            reply.compressed += usize::from(is_compressed);
            let message = output.clone().map_or(Value::Null, |output| json_of(output, &message));
            on_message(&message);
            reply.messages.push(message);
            if until == ReadUntil::Messages(reply.messages.len()) {
                return reply;
            }
        }
    }
    match body.trailers().await {
        Ok(trailers) => reply.trailers = trailers.unwrap_or_default(),
        Err(error) => reply.broken = Some(error.to_string()),
    }
    reply
}

/// The next message that is complete, and whether it was compressed.
fn next_message(pending: &mut BytesMut) -> Option<(bool, Bytes)> {
    let prefix = pending.first_chunk::<PREFIX>()?;
    let is_compressed = prefix[0] == 1;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
    if pending.len() < PREFIX + length {
        return None;
    }
    pending.advance(PREFIX);
    let message = pending.split_to(length).freeze();
    if !is_compressed {
        return Some((false, message));
    }
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(&message[..]).read_to_end(&mut content).expect("it is gzip");
    Some((true, content.into()))
}

fn method_named(name: &str) -> MethodDescriptor {
    let (service, method) = name.split_once('/').expect("service/method");
    let service = POOL.get_service_by_name(service).unwrap_or_else(|| panic!("there is no service {service}"));
    service.methods().find(|known| known.name() == method).unwrap_or_else(|| panic!("there is no {name}"))
}

fn path_of(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

fn message_named(name: &str) -> MessageDescriptor {
    POOL.get_message_by_name(name).expect("a message of the descriptors")
}

fn json_of(descriptor: MessageDescriptor, bytes: &[u8]) -> Value {
    let message = DynamicMessage::decode(descriptor, bytes).expect("it is protobuf");
    serde_json::to_value(&message).expect("messages are JSON")
}
