//! One HTTP/2 connection without TLS, and many requests over it at the same time.

use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::check::Wrong;
use crate::place::Place;
use crate::sse::{self, Frame};

/// How long the server may take to let another stream begin.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct Http2 {
    requests: SendRequest<Bytes>,
    authority: String,
}

/// A reply whose body has not been read to its end.
pub struct Reply {
    pub status: u16,
    body: RecvStream,
    /// What has come and is not taken yet.
    buffer: Vec<u8>,
    taken: usize,
}

impl Http2 {
    pub async fn open(place: &Place) -> Result<Self, Wrong> {
        let socket = TcpStream::connect(place.address).await?;
        socket.set_nodelay(true)?;
        let (requests, connection) = h2::client::handshake(socket).await.map_err(broken)?;
        // Ends with the last of those who use it; whoever does sees why.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { requests, authority: place.authority.clone() })
    }

    /// Sends a request that is written as HTTP/1.1 has it.
    pub async fn send(&mut self, request: &[u8]) -> Result<Reply, Wrong> {
        let (head, body) = http2_head(request, &self.authority).ok_or_else(|| Wrong::Lost("no request".into()))?;
        // Waits as long as the server has as many streams as it wants to have.
        let ready = timeout(PATIENCE, self.requests.clone().ready()).await;
        let ready = ready.map_err(|_| Wrong::Lost("the server takes no more streams on one connection".into()))?;
        self.requests = ready.map_err(broken)?;
        let (response, mut stream) = self.requests.send_request(head, body.is_empty()).map_err(broken)?;
        if !body.is_empty() {
            stream.send_data(Bytes::copy_from_slice(body), true).map_err(broken)?;
        }
        let (head, body) = response.await.map_err(broken)?.into_parts();
        Ok(Reply { status: head.status.as_u16(), body, buffer: vec![], taken: 0 })
    }
}

impl Reply {
    /// All of it.
    pub async fn whole(mut self) -> Result<Vec<u8>, Wrong> {
        while self.more().await? {}
        Ok(self.buffer)
    }

    /// The next frame of a stream; none after its end.
    pub async fn frame(&mut self) -> Result<Option<Frame<'_>>, Wrong> {
        // Looked up twice on success, since the borrow checker cannot see that only one branch keeps it.
        while sse::frame(&self.buffer, self.taken).is_none() {
            self.buffer.drain(..std::mem::take(&mut self.taken));
            if !self.more().await? {
                return Ok(None);
            }
        }
        let (frame, next) = sse::frame(&self.buffer, self.taken).expect("it was there");
        self.taken = next;
        Ok(Some(frame))
    }

    async fn more(&mut self) -> Result<bool, Wrong> {
        let Some(data) = self.body.data().await else { return Ok(false) };
        let data = data.map_err(broken)?;
        self.buffer.extend_from_slice(&data);
        self.body.flow_control().release_capacity(data.len()).map_err(broken)?;
        Ok(true)
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
