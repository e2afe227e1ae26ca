//! HTTP/2 on the same port as HTTP/1.1: many calls and streams at once on one connection.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2 as client;
use hyper_util::rt::{TokioExecutor, TokioIo};
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

#[tokio::test]
async fn calls_and_streams_share_a_connection() {
    let (address, _closing) = crate::serve().await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) =
        client::Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
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
