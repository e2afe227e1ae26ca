//! An A2A server of 1.0 whose every answer is raw bytes that a test writes: for what no agent would do by mistake.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

pub struct HostileServer {
    pub address: SocketAddr,
    calls: Arc<AtomicUsize>,
    hung_up: Arc<AtomicUsize>,
}

/// What is asked of the server, and the socket to answer on.
pub struct Exchange {
    /// The JSON-RPC method, or the path of a GET.
    pub method: String,
    socket: TcpStream,
}

impl HostileServer {
    /// `answer` gets all calls; it has the socket for itself, and the connection ends with it.
    pub fn start(answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::with_card(|_| Ok(()), answer)
    }

    /// The same with a card that is written by a test: what `card` leaves unanswered is answered with the true one.
    pub fn with_card(
        card: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
        answer: impl Fn(&mut Exchange) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (calls, hung_up) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, ended) = (calls.clone(), hung_up.clone());
        let (card, answer) = (Arc::new(card), Arc::new(answer));
        // It ends with the tests: nobody waits for it.
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (card, answer, counted, ended) = (card.clone(), answer.clone(), counted.clone(), ended.clone());
                thread::spawn(move || {
                    let Ok(Some(mut exchange)) = read(socket) else { return };
                    let answered = if exchange.method.starts_with('/') {
                        card(&mut exchange).and_then(|()| exchange.card(address))
                    } else {
                        counted.fetch_add(1, Ordering::SeqCst);
                        answer(&mut exchange)
                    };
                    ended.fetch_add(usize::from(answered.is_err()), Ordering::SeqCst);
                });
            }
        });
        Self { address, calls, hung_up }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// How many answers ended because the client hung up.
    pub fn hung_up(&self) -> usize {
        self.hung_up.load(Ordering::SeqCst)
    }
}

impl Exchange {
    pub fn is_send(&self) -> bool {
        self.method == "SendStreamingMessage"
    }

    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    pub fn begin_stream(&mut self) -> io::Result<()> {
        self.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    }

    pub fn frame(&mut self, result: &Value) -> io::Result<()> {
        self.raw(frame(result).as_bytes())
    }

    /// A whole answer.
    pub fn result(&mut self, result: &Value) -> io::Result<()> {
        self.json(&json!({"jsonrpc": "2.0", "id": 1, "result": result}))
    }

    /// That there is no such method.
    pub fn refuse(&mut self) -> io::Result<()> {
        let error = json!({"code": -32004, "message": "This operation is not supported"});
        self.json(&json!({"jsonrpc": "2.0", "id": 1, "error": error}))
    }

    pub fn redirect(&mut self, url: &str) -> io::Result<()> {
        let head = format!("HTTP/1.1 307 X\r\nLocation: {url}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        self.raw(head.as_bytes())
    }

    fn json(&mut self, body: &Value) -> io::Result<()> {
        let body = body.to_string();
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n");
        self.raw(format!("{head}Connection: close\r\n\r\n{body}").as_bytes())
    }

    fn card(&mut self, address: SocketAddr) -> io::Result<()> {
        let interface =
            json!({"url": format!("http://{address}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        let card = json!({
            "name": "Hostile agent",
            "description": "Means no good.",
            "version": "1.0.0",
            "capabilities": {"streaming": true},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [],
            "supportedInterfaces": [interface],
        });
        // The one member that counts is in there; a client that follows a redirect does not see it.
        self.json(&card)
    }
}

/// One frame of a stream.
pub fn frame(result: &Value) -> String {
    format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": 1, "result": result}))
}

pub fn task(id: &str, state: &str) -> Value {
    json!({"task": {"id": id, "contextId": "c", "status": {"state": state}}})
}

pub fn status(id: &str, state: &str, text: &str) -> Value {
    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]});
    json!({"statusUpdate": {"taskId": id, "contextId": "c", "status": {"state": state, "message": message}}})
}

/// A piece of an artifact; the first is not appended.
pub fn chunk(task: &str, artifact: &str, text: &str, append: bool) -> Value {
    let artifact = json!({"artifactId": artifact, "parts": [{"text": text}]});
    json!({"artifactUpdate": {"taskId": task, "contextId": "c", "artifact": artifact, "append": append}})
}

fn read(socket: TcpStream) -> io::Result<Option<Exchange>> {
    let mut reader = BufReader::new(socket.try_clone()?);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        match header.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap_or(0),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = json["method"].as_str().map_or(path, str::to_owned);
    Ok(Some(Exchange { method, socket }))
}
