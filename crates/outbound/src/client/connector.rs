//! The only way to a socket: resolve once, check, connect to what was checked.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use tower_service::Service;

use super::connection::Connection;
use super::dial::dial;
use super::error::DialError;
use super::tls::Tls;
use crate::guard::{Guard, Scheme, Target};

#[derive(Clone)]
pub(super) struct Connector {
    guard: Arc<Guard>,
    tls: Arc<Tls>,
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(guard: Arc<Guard>, tls: Tls, timeout: Duration) -> Self {
        Connector { guard, tls: Arc::new(tls), timeout }
    }

    async fn connect(&self, target: &Target) -> Result<Connection, DialError> {
        let addresses = self.guard.addresses(target).await?;
        let stream = dial(&addresses, target.port).await.map_err(|error| DialError::Connect(error.kind()))?;
        // A request is one write or two; waiting for the acknowledgement of the first one helps nobody.
        stream.set_nodelay(true).map_err(|error| DialError::Connect(error.kind()))?;
        match target.scheme {
            Scheme::Http => Ok(Connection::Plain(TokioIo::new(stream))),
            Scheme::Https => {
                let stream = self.tls.connect(&target.host, stream).await?;
                Ok(Connection::Tls(Box::new(TokioIo::new(stream))))
            }
        }
    }
}

impl Service<Uri> for Connector {
    type Response = Connection;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<Connection, DialError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let target = Target::parse(&uri.to_string())?;
            let connected = tokio::time::timeout(connector.timeout, connector.connect(&target)).await;
            connected.unwrap_or(Err(DialError::ConnectTimeout))
        })
    }
}
