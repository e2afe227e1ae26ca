//! The floor under every HTTP server of this kind: axum that answers every message with the same bytes.
//!
//! Its reply is as long as a real one, and nothing is parsed, decided or stored. It prints its address as `sabir serve`
//! does in a pipe, so that `cargo xtask bench` starts both in the same way.

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};

const REPLY: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"000000000001","result":{"task":{"id":"019a1e0c-3f06-7270-8974-eeac97a3d228","#,
    r#""contextId":"019a1e0c-3f06-7270-8974-eeab62b9e3da","status":{"state":"TASK_STATE_COMPLETED","#,
    r#""timestamp":"2026-01-01T00:00:00.000Z"},"artifacts":[{"artifactId":"019a1e0c-3f06-7270-8974-eead44ed78ff","#,
    r#""name":"result","parts":[{"text":"always the same answer..."}]}],"history":[{"messageId":"bench-000000000001","#,
    r#""contextId":"019a1e0c-3f06-7270-8974-eeab62b9e3da","taskId":"019a1e0c-3f06-7270-8974-eeac97a3d228","#,
    r#""role":"ROLE_USER","parts":[{"text":"bench 000000000001"}]}]}}}"#
);
const CARD: &str = r#"{"name":"floor","url":"/"}"#;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new()
        .route("/", post(|_: Bytes| async { json(REPLY) }))
        .route("/.well-known/agent-card.json", get(|| async { json(CARD) }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!(r#"{{"url":"http://{}","pid":{}}}"#, listener.local_addr()?, std::process::id());
    axum::serve(listener, app).await
}

fn json(text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], text)
}
