//! For those who watch over the server: is it alive, can it take work. For those who get
//! webhooks or cards: the keys to verify them.

use http::{HeaderValue, Method, Response, StatusCode, header};
use sabir_engine::{Engine, Health};

use crate::body::Body;

/// The process answers. Nothing else is promised, so that a slow disk does not get it killed.
pub(crate) fn alive() -> Response<Body> {
    answer(StatusCode::OK, r#"{"status":"ok"}"#.into())
}

pub(crate) async fn ready(engine: &Engine) -> Response<Body> {
    match engine.health().await {
        Health::Ready => answer(
            StatusCode::OK,
            match engine.receives_hints() {
                None => r#"{"status":"ready"}"#,
                Some(true) => r#"{"status":"ready","notifications":"listening"}"#,
                Some(false) => r#"{"status":"ready","notifications":"polling"}"#,
            }
            .into(),
        ),
        Health::Stopping => answer(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"stopping"}"#.into()),
        Health::StoreDown(reason) => {
            tracing::warn!(reason, "the store cannot be used");
            answer(StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"the store cannot be used"}"#.into())
        }
    }
}

pub(crate) const JWKS_PATH: &str = "/.well-known/jwks.json";

/// Others may keep it for a while; a key that is replaced is known to all of them soon.
const PUBLIC_MAX_AGE: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// A document for everybody: keys, where to log in.
pub(crate) fn public_document(method: &Method, document: &str) -> Response<Body> {
    if *method != Method::GET && *method != Method::HEAD {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let mut response = answer(StatusCode::OK, document.to_owned());
    response.headers_mut().insert(header::CACHE_CONTROL, PUBLIC_MAX_AGE);
    response
}

fn answer(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body.into_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
