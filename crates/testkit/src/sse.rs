//! Reading server-sent events, frame by frame.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;

use crate::http::{Http, Reply};

pub struct Events {
    http: Http,
    pending: Vec<u8>,
    is_over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub id: Option<u64>,
    pub event: Option<String>,
    /// The payload, byte for byte.
    pub data: String,
}

impl Frame {
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
) -> io::Result<Result<Events, Reply>> {
    let mut http = Http::connect(address)?;
    http.send(method, path, headers, body)?;
    let (status, headers) = http.receive_head()?;
    let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value.contains("chunked"));
    if status == 200 && is_chunked {
        return Ok(Ok(Events { http, pending: Vec::new(), is_over: false }));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let body = http.receive_exactly(length.unwrap_or(0))?;
    Ok(Err(Reply { status, headers, body }))
}

impl Events {
    /// The next frame; `None` at the proper end of the stream, an error when it breaks off.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame>> {
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
    pub fn rest(&mut self) -> io::Result<Vec<Frame>> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next_frame()? {
            frames.push(frame);
        }
        Ok(frames)
    }
}

/// The frames of a stream that was read as a whole.
pub fn frames(body: &str) -> Vec<Frame> {
    body.split("\n\n").filter_map(parse).collect()
}

/// Comments and empty blocks are no frames.
fn parse(block: &str) -> Option<Frame> {
    let mut frame = Frame { id: None, event: None, data: String::new() };
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
