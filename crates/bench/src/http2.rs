//! One HTTP/2 connection without TLS, and many requests over it at the same time; gRPC among them.

use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use http::{HeaderMap, header};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::check::Wrong;
use crate::grpc;
use crate::place::Place;
use crate::request::Request;
use crate::sse::{self, Frame};
use crate::stage::Connect;

/// How long the server may take to let another stream begin.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct Http2 {
    requests: SendRequest<Bytes>,
}

/// A prepared request, its head apart from its body. Numbers are in the body alone.
pub struct Http2Request {
    head: http::Request<()>,
    body: Request,
}

impl Http2Request {
    /// Of a request that is written as HTTP/1.1 has it.
    pub fn new(place: &Place, request: Request) -> Self {
        let (head, body) = http2_head(request.bytes(), &place.authority).expect("our requests are written well");
        Self { head, body: Request::new(body.to_vec()) }
    }
}

/// A reply whose body has not been read to its end.
pub struct Reply {
    pub status: u16,
    framing: Framing,
    body: RecvStream,
    /// What has come and is not taken yet.
    buffer: Vec<u8>,
    taken: usize,
}

/// What a body consists of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Framing {
    /// JSON, or server-sent events.
    Text,
    /// Messages with a prefix, whose status is in the trailers.
    Grpc,
}

impl Connect for Http2 {
    async fn connect(place: &Place) -> Result<Self, Wrong> {
        let socket = TcpStream::connect(place.address).await?;
        socket.set_nodelay(true)?;
        let (requests, connection) = h2::client::handshake(socket).await.map_err(broken)?;
        // Ends with the last of those who use it; whoever does sees why.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { requests })
    }
}

impl Http2 {
    /// Sends the request with this number and waits for the head of the reply. A gRPC call that failed is wrong.
    pub async fn send(&mut self, request: &mut Http2Request, number: u64) -> Result<Reply, Wrong> {
        let body = request.body.numbered(number);
        // Waits as long as the server has as many streams as it wants to have.
        let ready = timeout(PATIENCE, self.requests.clone().ready()).await;
        let ready = ready.map_err(|_| Wrong::Lost("the server takes no more streams on one connection".into()))?;
        self.requests = ready.map_err(broken)?;
        let (response, mut stream) =
            self.requests.send_request(request.head.clone(), body.is_empty()).map_err(broken)?;
        if !body.is_empty() {
            stream.send_data(Bytes::copy_from_slice(body), true).map_err(broken)?;
        }
        let (head, body) = response.await.map_err(broken)?.into_parts();
        let framing = framing(&head.headers)?;
        Ok(Reply { status: head.status.as_u16(), framing, body, buffer: vec![], taken: 0 })
    }

    /// The same for a stream of events; anything else is wrong.
    pub async fn stream(&mut self, request: &mut Http2Request, number: u64) -> Result<Reply, Wrong> {
        let reply = self.send(request, number).await?;
        match reply.status {
            200 => Ok(reply),
            status => Err(Wrong::reply("no stream of events", status, &reply.whole().await?)),
        }
    }
}

impl Reply {
    /// All of it; of gRPC the one message.
    pub async fn whole(mut self) -> Result<Vec<u8>, Wrong> {
        while self.more().await? {}
        if self.framing == Framing::Text {
            return Ok(self.buffer);
        }
        match grpc::message(&self.buffer, 0)? {
            Some((message, end)) if end == self.buffer.len() => Ok(message.to_vec()),
            _ => Err(Wrong::event("not exactly one message", &self.buffer)),
        }
    }

    /// The next frame of a stream; none after its end.
    pub async fn frame(&mut self) -> Result<Option<Frame<'_>>, Wrong> {
        // Looked up twice on success, since the borrow checker cannot see that only one branch keeps it.
        while frame(self.framing, &self.buffer, self.taken)?.is_none() {
            self.buffer.drain(..std::mem::take(&mut self.taken));
            if !self.more().await? {
                let is_cut = self.framing == Framing::Grpc && !self.buffer.is_empty();
                return if is_cut { Err(Wrong::event("a message is cut", &self.buffer)) } else { Ok(None) };
            }
        }
        let (frame, next) = frame(self.framing, &self.buffer, self.taken)?.expect("it was there");
        self.taken = next;
        Ok(Some(frame))
    }

    async fn more(&mut self) -> Result<bool, Wrong> {
        let Some(data) = self.body.data().await else {
            self.check_status().await?;
            return Ok(false);
        };
        let data = data.map_err(broken)?;
        self.buffer.extend_from_slice(&data);
        self.body.flow_control().release_capacity(data.len()).map_err(broken)?;
        Ok(true)
    }

    /// What the trailers of gRPC say.
    async fn check_status(&mut self) -> Result<(), Wrong> {
        if self.framing != Framing::Grpc {
            return Ok(());
        }
        let trailers = self.body.trailers().await.map_err(broken)?.unwrap_or_default();
        grpc::status(&trailers).unwrap_or_else(|| Err(Wrong::Reply("a gRPC call ended without a status".into())))
    }
}

fn framing(headers: &HeaderMap) -> Result<Framing, Wrong> {
    let is_grpc =
        headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    if !is_grpc {
        return Ok(Framing::Text);
    }
    // The status is here and not in the trailers when no message follows, which no call of ours expects.
    match grpc::status(headers) {
        None => Ok(Framing::Grpc),
        Some(Err(wrong)) => Err(wrong),
        Some(Ok(())) => Err(Wrong::Reply("a gRPC call ended without a message".into())),
    }
}

/// The frame that begins here, and where the next one begins; none when it is not complete yet.
fn frame(framing: Framing, buffer: &[u8], from: usize) -> Result<Option<(Frame<'_>, usize)>, Wrong> {
    match framing {
        Framing::Text => Ok(sse::frame(buffer, from)),
        Framing::Grpc => {
            let message = grpc::message(buffer, from)?;
            Ok(message.map(|(data, next)| (Frame { id: None, data }, next)))
        }
    }
}

/// The head and the body of a request that is written as HTTP/1.1 has it.
fn http2_head<'a>(request: &'a [u8], authority: &str) -> Option<(http::Request<()>, &'a [u8])> {
    let at = memchr::memmem::find(request, b"\r\n\r\n")?;
    let (head, body) = (std::str::from_utf8(&request[..at]).ok()?, &request[at + 4..]);
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let mut builder = http::Request::builder().method(method).uri(format!("http://{authority}{path}"));
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        // What HTTP/2 says in another way.
        if !["host", "content-length"].iter().any(|other| name.eq_ignore_ascii_case(other)) {
            builder = builder.header(name, value);
        }
    }
    Some((builder.body(()).ok()?, body))
}

fn broken(error: h2::Error) -> Wrong {
    Wrong::Lost(format!("the HTTP/2 connection broke: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_the_same_in_both_versions() {
        let text = b"POST /a2a HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nContent-Length: 2\r\n\r\n{}";
        let (head, body) = http2_head(text, "localhost:1").unwrap();
        assert_eq!((head.method().as_str(), head.uri().to_string().as_str()), ("POST", "http://localhost:1/a2a"));
        let headers: Vec<String> = head.headers().iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        assert_eq!(headers, [r#"a2a-version: "1.0""#]);
        assert_eq!(body, b"{}");
        assert!(http2_head(b"nonsense", "localhost").is_none());
    }
}
