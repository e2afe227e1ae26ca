//! HTTP/2 on the same port as HTTP/1.1: many calls and streams at once on one connection.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2 as client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sabir_server::{HostCheck, HostName, ServerSettings};
use tokio::net::TcpStream;

async fn post(sender: &mut client::SendRequest<Full<Bytes>>, path: &str, text: &str) -> (u16, String) {
    let body = format!(r#"{{"message":{{"messageId":"{text}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#);
    let request = http::Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/json")
        .header("a2a-version", "1.0")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn connect(address: std::net::SocketAddr) -> client::SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) =
        client::Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

#[tokio::test]
async fn the_authority_is_checked_like_a_host() {
    let names = vec![HostName::parse("agents.example").unwrap()];
    let (address, _closing) =
        crate::serve_with(|settings| ServerSettings { hosts: HostCheck::Names(names), ..settings }).await;
    let mut sender = connect(address).await;
    for (authority, host, expected) in [
        ("localhost:1", None, 200),
        ("agents.example", None, 200),
        ("agents.example", Some("agents.example:80"), 200),
        ("evil.example", None, 421),
        ("evil.example", Some("localhost"), 400),
        ("localhost", Some("evil.example"), 400),
    ] {
        let mut request = http::Request::get(format!("http://{authority}/tasks"));
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let response = sender.send_request(request.body(Full::default()).unwrap()).await.unwrap();
        assert_eq!(response.status().as_u16(), expected, "{authority} and {host:?}");
    }
}

#[tokio::test]
async fn calls_and_streams_share_a_connection() {
    let (address, _closing) = crate::serve().await;
    let sender = connect(address).await;
    let all: Vec<_> = (0..20)
        .map(|i| {
            let mut sender = sender.clone();
            tokio::spawn(async move {
                if i % 2 == 0 {
                    post(&mut sender, "/message:stream", &format!("stream {i} 1")).await
                } else {
                    post(&mut sender, "/message:send", &format!("slow 0.0{i} x")).await
                }
            })
        })
        .collect();
    for (i, one) in all.into_iter().enumerate() {
        let (status, body) = one.await.unwrap();
        assert_eq!(status, 200, "{body}");
        let frames = body.matches("\ndata: ").count();
        assert_eq!(frames, if i % 2 == 0 { i + 3 } else { 0 }, "{body}");
        assert!(body.contains("TASK_STATE_COMPLETED"), "{body}");
    }
}
