//! For those who watch over the server: is it alive, can it take work.

use http::{HeaderValue, Response, StatusCode, header};
use sabir_engine::{Engine, Health};

use crate::body::Body;

/// The process answers. Nothing else is promised, so that a slow disk does not get it killed.
pub(crate) fn alive() -> Response<Body> {
    answer(StatusCode::OK, r#"{"status":"ok"}"#.into())
}

pub(crate) async fn ready(engine: &Engine) -> Response<Body> {
    match engine.health().await {
        Health::Ready => answer(StatusCode::OK, r#"{"status":"ready"}"#.into()),
        Health::Stopping => answer(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"stopping"}"#.into()),
        Health::StoreDown(reason) => {
            tracing::warn!(reason, "the store cannot be used");
            answer(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"the store cannot be used"}"#.into())
        }
    }
}

fn answer(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body.into_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
