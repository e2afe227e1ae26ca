//! Sockets: accepting connections, and letting them go.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::App;

/// A request whose head does not come within this time is dropped.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// After an accept that failed (too many open files), others may close meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// One line of log says as much as twenty a second.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

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
            match TcpListener::bind(address).await {
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

    /// Serves until `closing` turns true, and then until the connections have ended, at most `linger`
    /// after `quiet` has resolved.
    pub async fn serve(
        self,
        app: App,
        closing: watch::Receiver<bool>,
        quiet: impl Future<Output = ()>,
        linger: Duration,
    ) {
        let mut accepting = JoinSet::new();
        let (open, mut all_closed) = watch::channel(());
        for listener in self.listeners {
            accepting.spawn(accept(listener, app.clone(), closing.clone(), open.clone()));
        }
        drop(open);
        while accepting.join_next().await.is_some() {}
        quiet.await;
        // Each connection holds a sender; when the last one is gone, waiting fails.
        let closed = async { while all_closed.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(linger, closed).await;
    }
}

async fn accept(listener: TcpListener, app: App, closing: watch::Receiver<bool>, open: watch::Sender<()>) {
    let mut closes = pin!(until_true(closing.clone()));
    let mut complained: Option<Instant> = None;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    tokio::spawn(connect(stream, app.clone(), closing.clone(), open.clone()));
                }
                Err(error) => {
                    if complained.is_none_or(|at| at.elapsed() > COMPLAIN_EVERY) {
                        tracing::warn!(%error, "cannot accept connections");
                        complained = Some(Instant::now());
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = closes.as_mut() => return,
        }
    }
}

async fn connect(stream: TcpStream, app: App, closing: watch::Receiver<bool>, open: watch::Sender<()>) {
    // A stream's events are small and must not wait for each other.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(HEAD_TIMEOUT));
    let (spoke, mut speaks) = watch::channel(false);
    let service = service_fn(move |request| {
        let app = app.clone();
        spoke.send_if_modified(|spoke| !std::mem::replace(spoke, true));
        async move { Ok::<_, Infallible>(app.answer(request).await) }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // hyper counts from the first byte; who sends none at all would never be dropped.
    let is_mute = async { tokio::time::timeout(HEAD_TIMEOUT, speaks.wait_for(|spoke| *spoke)).await.is_err() };
    let mute = async {
        if !is_mute.await {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = mute => return,
        () = until_true(closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
    drop(open);
}

/// Also when nobody is left who could say so.
async fn until_true(mut flag: watch::Receiver<bool>) {
    drop(flag.wait_for(|is_set| *is_set).await);
}
