//! The server as a `tower` service, for programs that have an HTTP server of their own.
//!
//! Connections, their timeouts and their number are the other server's matter. Limits of bodies and memory are kept here.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use crate::App;
use crate::app::AppState;
use crate::incoming::BodySource;

/// What a response carries.
pub type ResponseBody = UnsyncBoxBody<Bytes, Box<dyn StdError + Send + Sync>>;
/// A response that is being made.
pub type ServiceFuture = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

/// How often memory is taken back from streams whose clients do not read.
const TAKE_BACK_EVERY: Duration = Duration::from_secs(5);

/// Answers requests of somebody else's HTTP server. Cheap to clone; all clones are the same server.
#[derive(Clone)]
pub struct Service {
    app: App,
}

impl Service {
    /// Must be called within a tokio runtime.
    pub fn new(app: App) -> Self {
        tokio::spawn(take_back(Arc::downgrade(&app.inner)));
        Self { app }
    }
}

impl<B> tower_service::Service<Request<B>> for Service
where
    B: hyper::body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = ServiceFuture;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ServiceFuture {
        let app = self.app.clone();
        let request = request.map(|body| {
            let body = body.map_frame(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())));
            BodySource::Mounted(body.map_err(Into::into).boxed_unsync())
        });
        Box::pin(async move {
            let response = app.answer(request, None).await;
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }
}

/// Ends with the server.
async fn take_back(server: Weak<AppState>) {
    loop {
        tokio::time::sleep(TAKE_BACK_EVERY).await;
        let Some(server) = server.upgrade() else { return };
        server.encoded_tasks.take_back(server.settings.timeouts.reply);
    }
}
