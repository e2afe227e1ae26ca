//! HTTP/2 on the same port as HTTP/1.1: many calls and streams at once on one connection.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2 as client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sabir_server::{HostCheck, HostName, ServerSettings, Timeouts};
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
    stream.set_nodelay(true).unwrap();
    let (sender, connection) =
        client::Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

#[tokio::test]
async fn the_http2_authority_is_checked_like_a_host() {
    let names = vec![HostName::parse("agents.example").unwrap()];
    let served = crate::serve_with(|settings| ServerSettings { hosts: HostCheck::Names(names), ..settings }).await;
    let mut sender = connect(served.address).await;
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

/// Opens a stream and does not read it.
async fn watch(sender: &mut client::SendRequest<Full<Bytes>>, text: &str) -> http::Response<hyper::body::Incoming> {
    let body = format!(r#"{{"message":{{"messageId":"{text}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#);
    let request = http::Request::post("http://localhost/message:stream")
        .header("content-type", "application/json")
        .header("a2a-version", "1.0")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    sender.send_request(request).await.unwrap()
}

#[tokio::test]
async fn five_hundred_open_streams_leave_room_for_a_call() {
    let served = crate::serve().await;
    let mut sender = connect(served.address).await;
    let mut watching = Vec::new();
    for i in 0..500 {
        watching.push(watch(&mut sender, &format!("slow 60 {i}")).await);
    }
    let (status, _) = post(&mut sender, "/message:send", "hello").await;
    assert_eq!(status, 200);
    drop(watching);
}

#[tokio::test]
async fn a_reply_that_nobody_reads_is_reset_and_a_stream_is_not() {
    let timeouts = Timeouts { reply: Duration::from_millis(200), ..Timeouts::default() };
    let served = crate::serve_with(|settings| ServerSettings { timeouts, ..settings }).await;
    let stream = TcpStream::connect(served.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut sender, connection) = client::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1000)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut watching = watch(&mut sender, "stream 300 0").await.into_body();
    let large = "x".repeat(300_000);
    let body = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{large}"}}]}}}}"#);
    let request = http::Request::post("http://localhost/message:send")
        .header("a2a-version", "1.0")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let mut unread = sender.send_request(request).await.unwrap().into_body();
    assert!(served.app.reserved_memory() > 0);
    // The window lets a little of it through; nothing opens it further, since nothing of that is read.
    crate::until(|| served.app.reserved_memory() == 0).await;
    let mut size = 0;
    let error = loop {
        match unread.frame().await {
            Some(Ok(frame)) => size += frame.data_ref().map_or(0, Bytes::len),
            Some(Err(error)) => break error,
            None => panic!("the reply came to its end after {size} bytes"),
        }
    };
    assert!(size < 300_000 && error.to_string().contains("error"), "{error} after {size} bytes");
    let mut events = String::new();
    while let Some(frame) = watching.frame().await {
        events.push_str(&String::from_utf8_lossy(frame.unwrap().data_ref().unwrap()));
    }
    assert!(events.contains("TASK_STATE_COMPLETED"), "the stream was as slow and is whole");
}

#[tokio::test]
async fn calls_and_streams_share_a_connection() {
    let served = crate::serve().await;
    let sender = connect(served.address).await;
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
