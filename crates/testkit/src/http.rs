//! A small blocking HTTP/1.1 client.
//!
//! Tests want to see exactly what is on the wire, to stop reading in the middle and to hang up at any
//! byte, which proper clients are built to hide.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The timeout of one connect, read or write.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that can be used for one request after the other.
pub struct Http {
    reader: BufReader<Stream>,
}

/// A socket whose reads end at a deadline. A timeout of single reads is not enough: a stream that sends
/// keep-alives never runs into it.
struct Stream {
    socket: TcpStream,
    deadline: Option<Instant>,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.map_or(PATIENCE, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left.min(PATIENCE)))?;
        self.socket.read(buffer).map_err(|error| match error.kind() {
            // What Linux says when a read times out.
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpReply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }
}

impl Http {
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { reader: BufReader::new(Stream { socket: stream, deadline: None }) })
    }

    /// From now on, reads fail with `TimedOut` when this time is over, however much arrives.
    pub fn give_up_after(&mut self, time: Duration) {
        self.reader.get_mut().deadline = Some(Instant::now() + time);
    }

    /// Sends a request and reads the whole answer.
    pub fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<HttpReply> {
        self.send(method, path, headers, body)?;
        if method == "HEAD" {
            let (status, headers) = self.receive_head()?;
            return Ok(HttpReply { status, headers, body: Vec::new() });
        }
        self.receive()
    }

    /// Sends a request and leaves the answer to be read.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str("Host: localhost\r\n");
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                head.push_str("Content-Type: application/json\r\n");
            }
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        self.write_raw(&request)
    }

    pub fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().socket.write_all(bytes)
    }

    pub fn receive(&mut self) -> io::Result<HttpReply> {
        let (status, headers) = self.receive_head()?;
        let mut reply = HttpReply { status, headers, body: Vec::new() };
        let length = reply.header("content-length").and_then(|length| length.parse::<usize>().ok());
        if reply.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
            while let Some(chunk) = self.receive_chunk()? {
                reply.body.extend_from_slice(&chunk);
            }
        } else if let Some(length) = length {
            reply.body = self.receive_exactly(length)?;
        } else if status != 204 && status != 304 {
            self.reader.read_to_end(&mut reply.body)?;
        }
        Ok(reply)
    }

    pub fn receive_head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        let status = self.line()?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code =
            code.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no status in {status:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok((code, headers));
            }
            if let Some((name, value)) = line.split_once(':') {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
    }

    /// One chunk of a chunked body; `None` at its end.
    pub fn receive_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = self.line()?;
        let size = usize::from_str_radix(size.trim(), 16)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("no chunk size in {size:?}")))?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk)?;
        chunk.truncate(size);
        Ok((size > 0).then_some(chunk))
    }

    pub fn receive_exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}
