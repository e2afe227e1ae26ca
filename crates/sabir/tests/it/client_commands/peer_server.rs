//! A server that answers as a test tells it, for what a Sabir never does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub struct PeerServer {
    pub url: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

pub struct PeerRequest {
    /// Empty for the card.
    pub body: String,
    /// So many requests with a body came before.
    pub earlier: usize,
}

pub enum Answer {
    Json(String),
    /// It has read the request, and says nothing.
    HangUp,
    /// The same, and the connection stays open.
    Silence,
    /// A stream of these events, numbered from 0, until the client has enough.
    Endless(NumberedEvent),
}

/// An event of a stream, by its number.
pub type NumberedEvent = fn(usize) -> String;

impl PeerServer {
    pub fn start(answer: impl Fn(&str, &PeerRequest) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let (shared, own, answer) = (bodies.clone(), url.clone(), Arc::new(answer));
        // It ends with the tests: nobody waits for it.
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (bodies, url, answer) = (shared.clone(), own.clone(), answer.clone());
                thread::spawn(move || drop(serve(connection, &bodies, |request| answer(&url, request))));
            }
        });
        PeerServer { url, bodies }
    }

    /// Of the requests that have one.
    pub fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }
}

fn serve(
    connection: TcpStream,
    bodies: &Mutex<Vec<String>>,
    answer: impl Fn(&PeerRequest) -> Answer,
) -> std::io::Result<()> {
    let mut answers = connection.try_clone()?;
    let mut reader = BufReader::new(connection);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body = String::from_utf8(body).unwrap();
        let mut known = bodies.lock().unwrap();
        let request = PeerRequest { body: body.clone(), earlier: known.len() };
        if !body.is_empty() {
            known.push(body);
        }
        drop(known);
        match answer(&request) {
            Answer::HangUp => return Ok(()),
            Answer::Silence => {
                reader.read_to_end(&mut Vec::new())?;
                return Ok(());
            }
            Answer::Endless(event) => {
                answers
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")?;
                for number in 0.. {
                    answers.write_all(format!("data: {}\n\n", event(number)).as_bytes())?;
                }
            }
            Answer::Json(json) => {
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}", json.len());
                answers.write_all(format!("{head}\r\n\r\n{json}").as_bytes())?;
            }
        }
    }
}
