//! Reading server-sent events, frame by frame.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::http::{Http, HttpReply};

pub struct Events {
    http: Http,
    pending: Vec<u8>,
    is_over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseFrame {
    pub id: Option<u64>,
    pub event: Option<String>,
    /// The payload, byte for byte.
    pub data: String,
}

impl SseFrame {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error} in {:?}", self.data))
    }

    /// What is in the JSON-RPC envelope, or the payload itself where there is none.
    pub fn payload(&self) -> Value {
        let mut json = self.json();
        match json.get_mut("result") {
            Some(result) => result.take(),
            None => json,
        }
    }
}

/// Opens a stream; an answer that is none is the error.
pub fn open(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Result<Events, HttpReply>> {
    let mut http = Http::connect(address)?;
    http.send(method, path, headers, body)?;
    let (status, headers) = http.receive_head()?;
    let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value.contains("chunked"));
    if status == 200 && is_chunked {
        return Ok(Ok(Events { http, pending: Vec::new(), is_over: false }));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let body = http.receive_exactly(length.unwrap_or(0))?;
    Ok(Err(HttpReply { status, headers, body }))
}

impl Events {
    /// Frames that are not there when this time is over are not waited for, although keep-alives arrive.
    pub fn give_up_after(&mut self, time: Duration) {
        self.http.give_up_after(time);
    }

    /// The next frame; `None` at the proper end of the stream, an error when it breaks off.
    pub fn next_frame(&mut self) -> io::Result<Option<SseFrame>> {
        loop {
            if let Some(at) = self.pending.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.pending.drain(..at + 2).collect();
                if let Some(frame) = parse(&String::from_utf8_lossy(&block)) {
                    return Ok(Some(frame));
                }
                continue;
            }
            if self.is_over {
                return Ok(None);
            }
            match self.http.receive_chunk()? {
                Some(chunk) => self.pending.extend_from_slice(&chunk),
                None => self.is_over = true,
            }
        }
    }

    /// All frames up to the proper end.
    pub fn rest(&mut self) -> io::Result<Vec<SseFrame>> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next_frame()? {
            frames.push(frame);
        }
        Ok(frames)
    }
}

/// The frames of a stream that was read as a whole.
pub fn frames(body: &str) -> Vec<SseFrame> {
    body.split("\n\n").filter_map(parse).collect()
}

/// Comments and empty blocks are no frames.
fn parse(block: &str) -> Option<SseFrame> {
    let mut frame = SseFrame { id: None, event: None, data: String::new() };
    for line in block.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => frame.id = id.parse().ok(),
            Some(("event", event)) => frame.event = Some(event.to_owned()),
            Some(("data", data)) => frame.data.push_str(data),
            _ => {}
        }
    }
    (!frame.data.is_empty()).then_some(frame)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_stream_of_keep_alives_alone_ends_at_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            socket.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
            while socket.write_all(b"7\r\n: ping\n\r\n").is_ok() {}
        });
        let mut events = open(address, "GET", "/", &[], b"").unwrap().unwrap();
        events.give_up_after(Duration::from_millis(20));
        assert_eq!(events.next_frame().unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(events);
        server.join().unwrap();
    }
}
