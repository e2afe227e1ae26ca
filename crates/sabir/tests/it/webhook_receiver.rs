//! A receiver of webhooks on this machine: it writes down every request, and answers as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpSocket;

/// Longer than any wait between two attempts of these tests.
const LIMIT: Duration = Duration::from_secs(60);

pub struct WebhookReceiver {
    pub address: SocketAddr,
    /// 0: it drops the connection instead of answering.
    status: Arc<AtomicU16>,
    requests: Receiver<ReceivedRequest>,
}

#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl WebhookReceiver {
    pub fn start() -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn serve(listener: TcpListener) -> Self {
        let address = listener.local_addr().unwrap();
        let status = Arc::new(AtomicU16::new(200));
        let (sender, requests) = mpsc::channel();
        let shared = status.clone();
        // It ends with the tests: nobody waits for it.
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (status, sender) = (shared.clone(), sender.clone());
                std::thread::spawn(move || drop(serve(connection, &status, &sender)));
            }
        });
        Self { address, status, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The status of all answers from now on; 0 drops connections.
    pub fn answer(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// The next request.
    pub fn next(&self) -> ReceivedRequest {
        self.requests.recv_timeout(LIMIT).expect("a delivery within the time limit")
    }

    /// Requests until one fits, which is the last.
    pub fn until(&self, fits: impl Fn(&ReceivedRequest) -> bool) -> Vec<ReceivedRequest> {
        let mut all = Vec::new();
        loop {
            all.push(self.next());
            if all.last().is_some_and(&fits) {
                return all;
            }
        }
    }

    /// What has arrived and nobody has asked for.
    pub fn rest(&self) -> Vec<ReceivedRequest> {
        self.requests.try_iter().collect()
    }
}

/// A receiver that is down: it has a port, and connections to it are refused.
pub struct ClosedReceiver {
    socket: TcpSocket,
}

impl ClosedReceiver {
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        Self { socket }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.socket.local_addr().unwrap())
    }

    /// From now on it is up.
    pub fn open(self) -> WebhookReceiver {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _entered = runtime.enter();
        let listener = self.socket.listen(64).unwrap().into_std().unwrap();
        listener.set_nonblocking(false).unwrap();
        WebhookReceiver::serve(listener)
    }
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

fn serve(connection: TcpStream, status: &AtomicU16, requests: &Sender<ReceivedRequest>) -> std::io::Result<()> {
    let mut answers = connection.try_clone()?;
    let mut reader = BufReader::new(connection);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let request = ReceivedRequest { line: line.trim_end().to_owned(), headers, body: String::new() };
        let mut body = vec![0; request.header("content-length").parse().unwrap_or(0)];
        reader.read_exact(&mut body)?;
        let status = status.load(Ordering::SeqCst);
        // The test may be over.
        let _ = requests.send(ReceivedRequest { body: String::from_utf8_lossy(&body).into_owned(), ..request });
        if status == 0 {
            return Ok(());
        }
        // In one piece: of several, the second would wait for the acknowledgement of the first.
        answers.write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n").as_bytes())?;
    }
}
