//! Sockets: accepting connections, and letting them go.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::App;
use crate::body::Body;
use crate::connections::{Connection, ConnectionSlot, Connections, End, Protocol};
use crate::exchange::Connected;
use crate::incoming::BodySource;
use crate::pieces::PIECE;
use crate::progress::Streams;
use crate::socket::Socket;

/// After an accept that failed (too many open files), others may close meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// One line of log says as much as twenty a second.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);
/// How many streams one HTTP/2 connection may have open. Each is a few kilobytes; with too few of them a client that
/// watches many tasks could not cancel one.
const HTTP2_STREAMS: u32 = 4096;
/// How often the client of an HTTP/2 connection is asked whether it is still there.
const HTTP2_PING: Duration = Duration::from_secs(30);

/// Addresses that are bound and not served yet.
pub struct Listeners {
    listeners: Vec<TcpListener>,
}

/// An address that cannot be listened on.
#[derive(Debug)]
pub struct Unavailable {
    pub address: SocketAddr,
    pub error: io::Error,
}

impl Listeners {
    /// Binds all of them, or says which one could not be bound.
    pub async fn bind(addresses: &[SocketAddr]) -> Result<Self, Unavailable> {
        let mut listeners = Vec::new();
        for address in addresses {
            match listen(*address) {
                Ok(listener) => listeners.push(listener),
                Err(error) => return Err(Unavailable { address: *address, error }),
            }
        }
        Ok(Self { listeners })
    }

    /// The addresses as they are, with the ports that the system has chosen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Serves until `closing` turns true, and then until the connections have ended, at most for `linger`.
    pub async fn serve(self, app: App, closing: watch::Receiver<bool>, linger: Duration) {
        let settings = &app.inner.settings;
        let connections = Connections::new(settings.max_connections, settings.timeouts);
        let mut accepting = JoinSet::new();
        for listener in self.listeners {
            accepting.spawn(accept(listener, app.clone(), connections.clone()));
        }
        let serving = async {
            until_true(closing).await;
            drop(accepting);
            connections.close();
            let _ = tokio::time::timeout(linger, connections.until_none()).await;
        };
        let limit = settings.timeouts.reply;
        tokio::select! {
            () = serving => {}
            () = connections.end_overdue(|| app.inner.encoded_tasks.take_back(limit)) => {}
        }
    }
}

/// A crowd that connects at once is queued by the system. Whom it has no room for must ask again, a second later.
const BACKLOG: u32 = 4096;

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // So that a restart need not wait for the connections of the server before it.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener, app: App, connections: Arc<Connections>) {
    let mut complained: Option<Instant> = None;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let slot = connections.admit().await;
                tokio::spawn(connect(stream, peer.ip(), app.clone(), slot));
            }
            Err(error) => {
                if complained.is_none_or(|at| at.elapsed() > COMPLAIN_EVERY) {
                    tracing::warn!(%error, "cannot accept connections");
                    complained = Some(Instant::now());
                }
                connections.make_room();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connect(stream: TcpStream, peer: IpAddr, app: App, slot: ConnectionSlot) {
    let connection = &slot.connection;
    let mut socket = Socket::new(stream, connection.clone());
    let protocol = tokio::select! {
        protocol = socket.protocol() => protocol,
        // Nothing has been asked, so nothing is lost.
        _ = connection.has_to_end(End::Gracefully) => return,
    };
    let ended = match protocol {
        Ok(Some(Protocol::Http1)) => serve_http1(socket, peer, app, connection).await,
        // Rare and large, so that the others should not carry its size.
        Ok(Some(Protocol::Http2)) => Box::pin(serve_http2(socket, peer, app, connection)).await,
        Ok(None) => Ok(()),
        Err(error) => return tracing::debug!(%error, "a connection broke off"),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

async fn serve_http1(socket: Socket, peer: IpAddr, app: App, connection: &Arc<Connection>) -> hyper::Result<()> {
    let mut builder = http1::Builder::new();
    // A head may be as large as what is buffered of a reply; `connections` has the timeouts.
    builder.max_buf_size(PIECE).half_close(true).header_read_timeout(None);
    let service = service_fn(|request| answer(app.clone(), connection.clone(), peer, request));
    let mut serving = pin!(builder.serve_connection(TokioIo::new(socket), service));
    tokio::select! {
        ended = serving.as_mut() => return ended,
        how = connection.has_to_end(End::Gracefully) => match how {
            End::Gracefully => serving.as_mut().graceful_shutdown(),
            End::Now => return Ok(()),
        }
    }
    tokio::select! {
        ended = serving => ended,
        _ = connection.has_to_end(End::Now) => Ok(()),
    }
}

async fn serve_http2(socket: Socket, peer: IpAddr, app: App, connection: &Arc<Connection>) -> hyper::Result<()> {
    connection.speaks(Protocol::Http2);
    let mut builder = http2::Builder::new(Streams { limit: app.inner.settings.timeouts.reply });
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(HTTP2_PING))
        .max_concurrent_streams(HTTP2_STREAMS)
        .max_send_buf_size(PIECE);
    let service = service_fn(|request| answer(app.clone(), connection.clone(), peer, request));
    let mut serving = pin!(builder.serve_connection(TokioIo::new(socket), service));
    tokio::select! {
        ended = serving.as_mut() => return ended,
        how = connection.has_to_end(End::Gracefully) => match how {
            End::Gracefully => serving.as_mut().graceful_shutdown(),
            End::Now => return Ok(()),
        }
    }
    tokio::select! {
        ended = serving => ended,
        _ = connection.has_to_end(End::Now) => Ok(()),
    }
}

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// In a box, which is gone when the response is there: a stream may be open for days, and the connection would keep
/// room for the making of its response.
fn answer(app: App, connection: Arc<Connection>, peer: IpAddr, request: Request<Incoming>) -> ResponseFuture {
    Box::pin(async move {
        let connected = Connected { exchange: connection.begin(), peer };
        Ok(app.answer(request.map(BodySource::Connection), Some(connected)).await)
    })
}

/// Also when nobody is left who could say so.
async fn until_true(mut flag: watch::Receiver<bool>) {
    drop(flag.wait_for(|is_set| *is_set).await);
}
