//! A webhook on this machine, for servers on this machine: takes what is posted to it, for as long as it is kept.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

/// A notification with a whole task in it.
const LARGEST: usize = 4 << 20;
/// Who posts has posted by then.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many requests are read at once, and so many wait to be looked at; more are acknowledged and dropped.
const MOST: usize = 8;

pub struct WebhookReceiver {
    address: SocketAddr,
    posted: mpsc::Receiver<Posted>,
    accepting: JoinHandle<()>,
}

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    pub head: String,
    pub body: Vec<u8>,
}

impl WebhookReceiver {
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (sender, posted) = mpsc::channel(MOST);
        let accepting = tokio::spawn(async move {
            let places = Arc::new(Semaphore::new(MOST));
            while let Ok(place) = places.clone().acquire_owned().await
                && let Ok((socket, _)) = listener.accept().await
            {
                let sender = sender.clone();
                tokio::spawn(async move {
                    let taken = tokio::time::timeout(PATIENCE, take(&socket)).await;
                    if let Ok(Ok(posted)) = taken {
                        let _ = sender.try_send(posted);
                    }
                    drop(place);
                });
            }
        });
        Ok(WebhookReceiver { address, posted, accepting })
    }

    pub fn url(&self) -> String {
        format!("http://{}/sabir-check", self.address)
    }

    /// What is posted next, if it comes in time.
    pub async fn next(&mut self, patience: Duration) -> Option<Posted> {
        tokio::time::timeout(patience, self.posted.recv()).await.ok().flatten()
    }
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Reads one request and acknowledges it.
async fn take(socket: &TcpStream) -> io::Result<Posted> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        read_some(socket, &mut bytes).await?;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut body = bytes.split_off(end);
    match header(&head, "content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => {
            while body.len() < length.min(LARGEST) {
                read_some(socket, &mut body).await?;
            }
            body.truncate(length);
        }
        None if header(&head, "transfer-encoding").is_some() => {
            while !body.ends_with(b"0\r\n\r\n") {
                read_some(socket, &mut body).await?;
            }
            body = without_chunks(&body);
        }
        None => {}
    }
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let mut written = 0;
    while written < answer.len() {
        socket.writable().await?;
        match socket.try_write(&answer[written..]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Posted { head, body })
}

async fn read_some(socket: &TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    if bytes.len() > LARGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut buffer = [0; 16 * 1024];
    loop {
        socket.readable().await?;
        match socket.try_read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                bytes.extend_from_slice(&buffer[..count]);
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// The body of a chunked message.
fn without_chunks(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let line = String::from_utf8_lossy(&bytes[..end]);
        let size = line.split(';').next().and_then(|size| usize::from_str_radix(size.trim(), 16).ok()).unwrap_or(0);
        let Some(chunk) = bytes.get(end + 2..end + 2 + size).filter(|_| size > 0) else { break };
        body.extend_from_slice(chunk);
        bytes = bytes.get(end + 2 + size + 2..).unwrap_or_default();
    }
    body
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn what_is_posted_is_taken_and_acknowledged() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for (request, expected) in [
                ("POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "{}"),
                (
                    "POST /x HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{\"a\r\n4;x\r\n\":1}\r\n0\r\n\r\n",
                    "{\"a\":1}",
                ),
                ("POST /x HTTP/1.1\r\nHost: a\r\n\r\n", ""),
            ] {
                let mut receiver = WebhookReceiver::start().await.unwrap();
                let address = receiver.address;
                let client = std::thread::spawn(move || {
                    let mut socket = std::net::TcpStream::connect(address).unwrap();
                    let (first, rest) = request.split_at(9);
                    socket.write_all(first.as_bytes()).unwrap();
                    socket.write_all(rest.as_bytes()).unwrap();
                    let mut answer = String::new();
                    socket.read_to_string(&mut answer).unwrap();
                    answer
                });
                let posted = receiver.next(Duration::from_secs(10)).await.unwrap();
                assert_eq!(String::from_utf8(posted.body).unwrap(), expected);
                assert!(posted.head.starts_with("POST /x"));
                assert!(client.join().unwrap().starts_with("HTTP/1.1 200"));
            }
        });
    }
}
