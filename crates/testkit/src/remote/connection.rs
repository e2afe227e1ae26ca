//! One connection: reading requests and writing bytes, and ending it in every way that a socket can end.
//!
//! A connection can be ended from another thread (`Connection::abort`). Its own thread notices at the next read, write or
//! pause.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::faults::Drip;

pub(super) struct Connection {
    socket: TcpStream,
    /// Counted from 1.
    pub number: usize,
    is_aborted: AtomicBool,
}

/// A request as it came.
pub(super) struct RawRequest {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl RawRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// How long a thread waits before it looks whether its connection was ended.
const SLICE: Duration = Duration::from_millis(20);

/// How long a peer may take to close its side.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

impl Connection {
    pub(super) fn new(socket: TcpStream, number: usize) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(SLICE))?;
        Ok(Self { socket, number, is_aborted: AtomicBool::new(false) })
    }

    pub(super) fn reader(&self) -> BufReader<&TcpStream> {
        BufReader::new(&self.socket)
    }

    /// Ends the connection with a reset; for other threads.
    pub(super) fn abort(&self) {
        self.is_aborted.store(true, Ordering::SeqCst);
        let _ = self.arm_reset();
        // Wakes the thread that reads.
        let _ = self.socket.shutdown(Shutdown::Read);
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.is_aborted.load(Ordering::SeqCst)
    }

    /// The connection is reset when it is dropped, and unsent data is discarded.
    pub(super) fn arm_reset(&self) -> io::Result<()> {
        SockRef::from(&self.socket).set_linger(Some(Duration::ZERO))
    }

    /// Closes in order. What the peer sends meanwhile is read: a socket that is closed with unread data sends a reset.
    pub(super) fn close(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)?;
        self.socket.set_read_timeout(Some(SLICE))?;
        let end = Instant::now() + CLOSE_LIMIT;
        while !self.is_aborted() && Instant::now() < end {
            match (&self.socket).read(&mut [0; 4096]) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Has the peer closed its side, or was this side ended?
    pub(super) fn is_over(&self) -> bool {
        if self.is_aborted() {
            return true;
        }
        let _ = self.socket.set_read_timeout(Some(Duration::from_millis(1)));
        let peeked = self.socket.peek(&mut [0; 1]);
        let _ = self.socket.set_read_timeout(None);
        match peeked {
            Ok(count) => count == 0,
            Err(error) => !is_timeout(&error),
        }
    }

    /// False if the connection was ended meanwhile.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.is_aborted() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(SLICE));
        }
        false
    }

    pub(super) fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.is_aborted() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            match (&self.socket).write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes at the pace of the fault, if there is one.
    pub(super) fn write_slowly(&self, bytes: &[u8], drip: Option<Drip>) -> io::Result<()> {
        let Some(drip) = drip else {
            return self.write(bytes);
        };
        for piece in bytes.chunks(drip.bytes.max(1)) {
            self.write(piece)?;
            if !self.pause(drip.pause) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
        Ok(())
    }

    /// The next request; `None` when the peer has no more.
    pub(super) fn read_request(&self, reader: &mut BufReader<&TcpStream>) -> io::Result<Option<RawRequest>> {
        let start = read_line(reader)?;
        let mut words = start.split(' ');
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Ok(None);
        };
        let mut request =
            RawRequest { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() };
        loop {
            let line = read_line(reader)?;
            match line.split_once(':') {
                Some((name, value)) => request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
                None if line.is_empty() => break,
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        if request.header("expect").is_some() {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        if request.header("transfer-encoding").is_some() {
            request.body = read_chunks(reader)?;
        } else if let Some(length) = request.header("content-length") {
            let length = length.parse().map_err(|_| io::ErrorKind::InvalidData)?;
            request.body = vec![0; length];
            reader.read_exact(&mut request.body)?;
        }
        Ok(Some(request))
    }
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = read_line(reader)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| io::ErrorKind::InvalidData)?;
        if size == 0 {
            while !read_line(reader)?.is_empty() {}
            return Ok(body);
        }
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..])?;
        read_line(reader)?;
    }
}

/// Without its end; empty at the end of the connection too.
fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// What Linux and others say when the time of a read or write is over.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
