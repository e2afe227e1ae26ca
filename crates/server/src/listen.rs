//! Sockets: accepting connections, with TLS or without, and letting them go.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::App;
use crate::body::Body;
use crate::connections::{ConnectionSlot, Connections, End, OpenConnections, Protocol};
use crate::exchange::Connected;
use crate::gathered_writes::GatheredWrites;
use crate::incoming::BodySource;
use crate::log_limit::LogLimit;
use crate::metrics::Serves;
use crate::pieces::PIECE;
use crate::progress::Streams;
use crate::scheme::Scheme;
use crate::socket::{Opening, Socket};
use crate::tls::{ClientCertificate, Tls, client_certificate};

/// After an accept that failed (too many open files), others may close meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How many streams one HTTP/2 connection may have open. Each is a few kilobytes; with too few of them a client that
/// watches many tasks could not cancel one.
const HTTP2_STREAMS: u32 = 4096;
/// How often the client of an HTTP/2 connection is asked whether it is still there.
const HTTP2_PING: Duration = Duration::from_secs(30);

/// What may still come of a request that is refused unread. To close the connection before it has come would take the
/// answer from its client.
const UNREAD_REQUEST: u64 = 64 * 1024;
const UNREAD_FOR: Duration = Duration::from_secs(1);
/// So many connections are told at the same time that they are too many.
const REFUSALS: usize = 64;

/// So many connections has the listener for figures, beside all others: it answers when the others are full.
const SCRAPERS: usize = 64;

/// Addresses that are bound and not served yet.
pub struct Listeners {
    listeners: Vec<TcpListener>,
    tls: Option<Arc<Tls>>,
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
        Ok(Self { listeners, tls: None })
    }

    /// All of them speak TLS, and nothing else.
    pub fn with_tls(self, tls: Arc<Tls>) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// The addresses as they are, with the ports that the system has chosen.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Serves until `closing` turns true, and then until the connections have ended, at most for `linger`.
    pub async fn serve(self, app: App, closing: watch::Receiver<bool>, linger: Duration) {
        let settings = &app.inner.settings;
        let (most, open) = match app.serves {
            Serves::Everything => (settings.max_connections, app.inner.connections.clone()),
            Serves::Metrics => (SCRAPERS, OpenConnections::default()),
        };
        let connections = Connections::new(most, settings.per_peer.clone(), settings.timeouts, open);
        let refusing = Arc::new(Semaphore::new(REFUSALS));
        let mut accepting = JoinSet::new();
        for listener in self.listeners {
            let app = app.on_listener(listener.local_addr().ok());
            let front = Arc::new(Front {
                app,
                tls: self.tls.clone(),
                misdirected: LogLimit::default(),
                crowded: LogLimit::default(),
                refusing: refusing.clone(),
            });
            accepting.spawn(accept(listener, connections.clone(), front));
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

/// What the connections of a listener share.
struct Front {
    app: App,
    tls: Option<Arc<Tls>>,
    /// Lines on clients that speak TLS to a port without it.
    misdirected: LogLimit,
    /// Lines on peers with too many connections.
    crowded: LogLimit,
    /// Who may be told of a refusal now.
    refusing: Arc<Semaphore>,
}

impl Front {
    /// A connection too many. It is told so, unless it would need a handshake first, or many are being told.
    fn refuse_crowd(&self, stream: TcpStream, peer: IpAddr) {
        if self.crowded.is_due() {
            tracing::warn!(%peer, "a peer has too many connections; further ones are refused (limits.connections_per_peer)");
        }
        let Ok(permit) = self.refusing.clone().try_acquire_owned() else { return };
        if self.tls.is_none() {
            tokio::spawn(async move {
                refuse_unread(stream, TOO_MANY, CROWDED).await;
                drop(permit);
            });
        }
    }
}

async fn accept(listener: TcpListener, connections: Arc<Connections>, front: Arc<Front>) {
    let failures = LogLimit::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let peer = peer.ip().to_canonical();
                match connections.admit(peer).await {
                    Some(slot) => drop(tokio::spawn(connect(stream, slot, front.clone()))),
                    None => front.refuse_crowd(stream, peer),
                }
            }
            Err(error) => {
                if failures.is_due() {
                    tracing::warn!(%error, "cannot accept connections");
                }
                connections.make_room();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connect(stream: TcpStream, slot: ConnectionSlot, front: Arc<Front>) {
    let (app, connection) = (&front.app, &slot.connection);
    let mut socket = Socket::new(stream, connection.clone());
    let opening = tokio::select! {
        opening = socket.opening() => opening,
        // Nothing has been asked, so nothing is lost.
        _ = connection.has_to_end(End::Gracefully) => return,
    };
    let ended = match (opening, &front.tls) {
        (Ok(Some(Opening::Http1)), None) => serve_http1(socket, None, app, &slot).await,
        // Rare and large, so that the others should not carry its size.
        (Ok(Some(Opening::Http2)), None) => Box::pin(serve_http2(socket, None, app, &slot)).await,
        (Ok(Some(Opening::Tls)), Some(tls)) => Box::pin(serve_tls(socket, tls, app, &slot)).await,
        (Ok(Some(Opening::Tls)), None) => {
            if front.misdirected.is_due() {
                let peer = slot.peer;
                tracing::warn!(%peer, "a client speaks TLS, and this port does not; give it an http:// address, or set server.tls_cert");
            }
            Ok(())
        }
        (Ok(Some(Opening::Http1 | Opening::Http2)), Some(_)) => {
            tracing::debug!(peer = %slot.peer, "a client speaks HTTP without TLS");
            Box::pin(refuse_unread(socket, BAD_REQUEST, SPEAKS_HTTPS)).await;
            Ok(())
        }
        (Ok(None), _) => Ok(()),
        (Err(error), _) => return tracing::debug!(%error, "a connection broke off"),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

const BAD_REQUEST: &str = "400 Bad Request";
const TOO_MANY: &str = "429 Too Many Requests\r\nRetry-After: 1";
const CROWDED: &str = "Too many connections come from your address; close some, or try again later.";
const SPEAKS_HTTPS: &str = "This port speaks HTTPS: use https:// instead of http://.";

/// Answers whatever is asked, unread, and closes the connection.
async fn refuse_unread(mut stream: impl AsyncRead + AsyncWrite + Unpin, status: &str, text: &str) {
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}\n",
        text.len() + 1
    );
    let refusing = async {
        stream.write_all(answer.as_bytes()).await?;
        close_unread(&mut stream).await
    };
    let _ = tokio::time::timeout(UNREAD_FOR, refusing).await;
}

async fn close_unread(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<()> {
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(UNREAD_REQUEST), &mut tokio::io::sink()).await.map(drop)
}

/// Until the handshake is complete, the connection is one that has asked nothing, with the limits of such.
async fn serve_tls(socket: Socket, tls: &Tls, app: &App, slot: &ConnectionSlot) -> hyper::Result<()> {
    let shaking_hands = TlsAcceptor::from(tls.current()).accept(socket).into_fallible();
    let stream = tokio::select! {
        stream = shaking_hands => stream,
        _ = slot.connection.has_to_end(End::Gracefully) => return Ok(()),
    };
    let stream = match stream {
        Ok(stream) => stream,
        Err((error, mut socket)) => {
            tracing::debug!(peer = %slot.peer, %error, "a TLS handshake failed");
            // The client has been sent the reason.
            let _ = tokio::time::timeout(UNREAD_FOR, close_unread(&mut socket)).await;
            return Ok(());
        }
    };
    let session = stream.get_ref().1;
    let client = client_certificate(session);
    match session.alpn_protocol() {
        Some(b"h2") => serve_http2(stream, Some(&client), app, slot).await,
        _ => serve_http1(stream, Some(&client), app, slot).await,
    }
}

async fn serve_http1(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    client: Option<&ClientCertificate>,
    app: &App,
    slot: &ConnectionSlot,
) -> hyper::Result<()> {
    let connection = &slot.connection;
    let mut builder = http1::Builder::new();
    // A head may be as large as what is buffered of a reply; `connections` has the timeouts.
    builder.max_buf_size(PIECE).half_close(true).header_read_timeout(None);
    let service = service_fn(|request| answer(app.clone(), slot, client, request));
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
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

async fn serve_http2(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    client: Option<&ClientCertificate>,
    app: &App,
    slot: &ConnectionSlot,
) -> hyper::Result<()> {
    let connection = &slot.connection;
    connection.speaks(Protocol::Http2);
    let mut builder = http2::Builder::new(Streams { limit: app.inner.settings.timeouts.reply });
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(HTTP2_PING))
        .max_concurrent_streams(HTTP2_STREAMS)
        .max_send_buf_size(PIECE);
    let service = service_fn(|request| answer(app.clone(), slot, client, request));
    let mut serving = pin!(builder.serve_connection(TokioIo::new(GatheredWrites::new(stream)), service));
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

/// `client` is what a TLS connection knows of its client. In a box, which is gone when the response is there: a stream may
/// be open for days, and the connection would keep room for the making of its response.
fn answer(
    app: App,
    slot: &ConnectionSlot,
    client: Option<&ClientCertificate>,
    mut request: Request<Incoming>,
) -> ResponseFuture {
    let connection = slot.connection.clone();
    let source = app.inner.settings.trusted_proxies.source(slot.peer, request.headers());
    let refused = client.and_then(|client| client.refuses(SystemTime::now()));
    let in_flight = source.is_forwarded.then(|| slot.begin_forwarded(source.peer));
    // The client's own https may end at the proxy, whose word counts then.
    let scheme = source.scheme.or(client.is_some().then_some(Scheme::Https));
    if scheme == Some(Scheme::Https) {
        request.extensions_mut().insert(Scheme::Https);
    }
    let peer_certificate = match client {
        Some(ClientCertificate::Known(known)) => Some(known.clone()),
        _ => None,
    };
    Box::pin(async move {
        // Here, since a stream of HTTP/2 has a task of its own.
        let exchange = connection.begin();
        let exchange = match in_flight {
            None => exchange,
            Some(Some(in_flight)) => exchange.counted(Some(Box::new(in_flight))),
            Some(None) => return Ok(crowded().map(|body| body.of(exchange))),
        };
        if let Some(why) = refused {
            connection.end(End::Gracefully);
            return Ok(forbidden(why).map(|body| body.of(exchange)));
        }
        let connected = Connected { exchange, peer: source.peer, peer_certificate };
        Ok(app.answer(request.map(BodySource::Connection), Some(connected)).await)
    })
}

fn forbidden(why: &str) -> Response<Body> {
    plain(StatusCode::FORBIDDEN, why)
}

fn crowded() -> Response<Body> {
    let why = "Too many requests come from your address at the same time; try again when some are answered.";
    let mut response = plain(StatusCode::TOO_MANY_REQUESTS, why);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(1));
    response
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{text}\n").into_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Also when nobody is left who could say so.
async fn until_true(mut flag: watch::Receiver<bool>) {
    drop(flag.wait_for(|is_set| *is_set).await);
}
