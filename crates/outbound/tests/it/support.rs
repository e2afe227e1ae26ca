//! A resolver with a table, and receivers that behave as a test says.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use sabir_outbound::client::{Client, DialError, Limits, Request, Response, Roots};
use sabir_outbound::guard::{EgressPolicy, Guard, Resolve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Long enough for a slow machine; no test waits for it to pass.
pub const LONG: Duration = Duration::from_secs(30);

/// Short, for tests whose host never answers.
pub const SHORT: Duration = Duration::from_millis(100);

/// Names and what they resolve to, one answer after the other; the last one is repeated.
#[derive(Default)]
pub struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    lookups: AtomicUsize,
}

impl Names {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// `answers`: each one is addresses with spaces between.
    pub fn set(&self, name: &str, answers: &[&str]) {
        let read = |answer: &&str| answer.split_whitespace().map(|address| address.parse().unwrap()).collect();
        self.answers.lock().unwrap().insert(name.to_owned(), answers.iter().map(read).collect());
    }

    pub fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.get_mut(name) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0].clone()),
            None => Err(io::Error::other("no such name")),
        };
        Box::pin(async move { answer })
    }
}

/// A listener that counts its connections and keeps what it was sent.
pub struct Receiver {
    pub address: SocketAddr,
    accepts: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Receiver {
    /// Reads a request from each connection and answers it with these bytes, then closes.
    pub async fn answering(at: &str, answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        Self::behaving(at, move |mut stream, _| {
            let answer = Arc::clone(&answer);
            async move {
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    /// Reads a request from each connection, then does with it what the test says.
    pub async fn behaving<B, F>(at: &str, behaviour: B) -> Self
    where
        B: Fn(TcpStream, String) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let behaviour = Arc::new(behaviour);
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&requests);
        Self::accepting(at, requests, move |mut stream| {
            let (behaviour, kept) = (Arc::clone(&behaviour), Arc::clone(&kept));
            async move {
                if let Some(request) = read_request(&mut stream).await {
                    kept.lock().unwrap().push(request.clone());
                    behaviour(stream, request).await;
                }
            }
        })
        .await
    }

    pub async fn accepting<B, F>(at: &str, requests: Arc<Mutex<Vec<String>>>, connection: B) -> Self
    where
        B: Fn(TcpStream) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        Self::serving(TcpListener::bind(at).await.unwrap(), requests, connection)
    }

    fn serving<B, F>(listener: TcpListener, requests: Arc<Mutex<Vec<String>>>, connection: B) -> Self
    where
        B: Fn(TcpStream) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr().unwrap();
        let accepts = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepts);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(connection(stream));
            }
        });
        Receiver { address, accepts, requests, task }
    }

    /// Two receivers on the same port of two addresses, each with its answer. Another process may have that port of the
    /// second address, so they try until one port is free on both.
    pub async fn pair(first: (&str, &str), second: (&str, &str)) -> (Self, Self) {
        for _ in 0..100 {
            let one = TcpListener::bind((first.0, 0)).await.unwrap();
            let port = one.local_addr().unwrap().port();
            let Ok(two) = TcpListener::bind((second.0, port)).await else { continue };
            let serve = |listener, body: &str| {
                let answer: Arc<[u8]> = closing(&ok(body)).into_bytes().into();
                Self::serving(listener, Arc::default(), move |mut stream: TcpStream| {
                    let answer = Arc::clone(&answer);
                    async move {
                        if read_request(&mut stream).await.is_some() {
                            let _ = stream.write_all(&answer).await;
                            let _ = stream.shutdown().await;
                        }
                    }
                })
            };
            return (serve(one, first.1), serve(two, second.1));
        }
        panic!("no port is free on both {} and {}", first.0, second.0);
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn accepts(&self) -> usize {
        self.accepts.load(Ordering::SeqCst)
    }

    /// The requests so far, each with head and body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One request with its body, or nothing if the connection closes.
pub async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text);
            }
        }
    }
}

pub fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// The response with a word that its connection is closed: without, the client may try it for the next request.
pub fn closing(response: &str) -> String {
    response.replacen("\r\n", "\r\nconnection: close\r\n", 1)
}

/// A policy under which the loopback interface may be dialled.
pub fn loopback_allowed() -> EgressPolicy {
    let mut policy = EgressPolicy::default();
    policy.allow_range("127.0.0.0/8").unwrap();
    policy
}

pub fn client(policy: EgressPolicy, names: Arc<dyn Resolve>) -> Client {
    Client::new(Arc::new(Guard::new(policy, names)), Limits::default(), Roots::default())
}

pub async fn post(client: &Client, url: &str) -> Result<Response, DialError> {
    client.post(url, HeaderMap::new(), Bytes::from_static(b"{}"), LONG).await
}

pub async fn post_following(client: &Client, url: &str, headers: HeaderMap) -> Result<Response, DialError> {
    client.send(Request::post(url, headers, Bytes::from_static(b"{}"), LONG).following(3)).await
}
