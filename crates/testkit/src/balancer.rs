//! A plain balancer before several servers, for tests of nodes that share a store.
//!
//! As a reverse proxy of HTTP it sends every request to the next backend, also those of one connection, which is what a client
//! that keeps its connection needs to meet all nodes. It knows HTTP/1.1 and HTTP/2 without TLS; bodies stream in both directions,
//! with their trailers. As a balancer of TCP it gives each connection to the next backend and copies bytes.
//! A backend that refuses the connection is skipped in both.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// A balancer that runs until it is dropped.
pub struct Balancer {
    address: SocketAddr,
    backends: Arc<Backends>,
    runtime: Option<Runtime>,
}

/// What is balanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balanced {
    /// Each request.
    Requests,
    /// Each TCP connection.
    Connections,
}

impl Balancer {
    /// On a free port of loopback.
    pub fn start(balanced: Balanced, backends: &[SocketAddr]) -> Self {
        Self::listen(SocketAddr::from(([127, 0, 0, 1], 0)), balanced, backends).expect("loopback has a free port")
    }

    pub fn listen(address: SocketAddr, balanced: Balanced, backends: &[SocketAddr]) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Backends::default());
        let mut balancer = Self { address, backends: shared.clone(), runtime: None };
        balancer.set_backends(backends);
        runtime.spawn(async move {
            // A connection that is gone before it is accepted is an error too.
            loop {
                if let Ok((client, _)) = listener.accept().await {
                    let _ = client.set_nodelay(true);
                    tokio::spawn(serve(balanced, client, shared.clone()));
                }
            }
        });
        balancer.runtime = Some(runtime);
        Ok(balancer)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For requests and connections from now on.
    pub fn set_backends(&self, backends: &[SocketAddr]) {
        self.backends.0.lock().expect("nobody panics with it").addresses = backends.to_vec();
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A test may drop it in a runtime of its own, which must not block.
            runtime.shutdown_background();
        }
    }
}

#[derive(Default)]
struct Backends(Mutex<RoundRobin>);

#[derive(Default)]
struct RoundRobin {
    addresses: Vec<SocketAddr>,
    next: usize,
}

impl Backends {
    /// All of them, beginning with the one whose turn it is.
    fn in_turn(&self) -> Vec<SocketAddr> {
        let mut turn = self.0.lock().expect("nobody panics with it");
        let (all, first) = (turn.addresses.clone(), turn.next);
        turn.next = first.wrapping_add(1);
        let count = all.len().max(1);
        all.iter().cycle().skip(first % count).take(all.len()).copied().collect()
    }

    async fn connect(&self) -> Option<TcpStream> {
        for address in self.in_turn() {
            if let Ok(backend) = TcpStream::connect(address).await {
                let _ = backend.set_nodelay(true);
                return Some(backend);
            }
        }
        None
    }
}

async fn serve(balanced: Balanced, mut client: TcpStream, backends: Arc<Backends>) {
    if balanced == Balanced::Connections {
        if let Some(mut backend) = backends.connect().await {
            let _ = tokio::io::copy_bidirectional(&mut client, &mut backend).await;
        }
        return;
    }
    let is_http2 = begins_http2(&client).await;
    let forward = service_fn(move |request| forward(request, backends.clone()));
    let client = TokioIo::new(client);
    if is_http2 {
        let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(client, forward).await;
    } else {
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(client, forward).await;
    }
}

/// A client of HTTP/2 says so first.
async fn begins_http2(client: &TcpStream) -> bool {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0";
    let mut first = [0; PREFACE.len()];
    // What arrives in pieces is looked at again with the next piece.
    loop {
        match client.peek(&mut first).await {
            Ok(length) if length > 0 && PREFACE.starts_with(&first[..length]) => {
                if length == PREFACE.len() {
                    return true;
                }
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            _ => return false,
        }
    }
}

type Body = Either<Incoming, Full<Bytes>>;

async fn forward(request: Request<Incoming>, backends: Arc<Backends>) -> Result<Response<Body>, Infallible> {
    let Some(backend) = backends.connect().await else { return Ok(bad_gateway("no backend accepts connections")) };
    let answered = match request.version() {
        Version::HTTP_2 => send_http2(backend, request).await,
        _ => send_http1(backend, request).await,
    };
    Ok(answered.map_or_else(|error| bad_gateway(&error.to_string()), |response| response.map(Either::Left)))
}

async fn send_http2(backend: TcpStream, request: Request<Incoming>) -> hyper::Result<Response<Incoming>> {
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(backend));
    let (mut sender, connection) = handshake.await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}

async fn send_http1(backend: TcpStream, mut request: Request<Incoming>) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(backend)).await?;
    tokio::spawn(connection);
    remove_hop_headers(request.headers_mut());
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let mut response = sender.send_request(request).await?;
    remove_hop_headers(response.headers_mut());
    Ok(response)
}

/// What is said of one connection only.
fn remove_hop_headers(headers: &mut HeaderMap) {
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, header::TE] {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}

fn bad_gateway(reason: &str) -> Response<Body> {
    let mut response = Response::new(Either::Right(Full::from(format!("{reason}\n"))));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
