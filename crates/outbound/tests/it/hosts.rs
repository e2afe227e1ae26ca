//! Hosts that are slow, huge, broken or gone: each costs a bounded amount of time and memory, and its error says what it was.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode};
use sabir_outbound::client::{Client, DialError, Limits, Roots};
use sabir_outbound::guard::{Guard, Resolve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;

use crate::support::{LONG, Names, Receiver, SHORT, client, loopback_allowed, ok, post, read_request};

fn kind(error: &DialError) -> &'static str {
    match error {
        DialError::Refused(_) => "refused",
        DialError::Dns { .. } => "dns",
        DialError::ConnectTimeout => "connect timeout",
        DialError::Connect(_) => "connect",
        DialError::Tls(_) => "tls",
        DialError::Timeout => "timeout",
        DialError::Broken { .. } => "broken",
        DialError::Malformed { .. } => "malformed",
        DialError::HeadTooLarge => "head too large",
        DialError::BodyTooLarge { .. } => "body too large",
        DialError::BodyTimeout { .. } => "body timeout",
        DialError::BodyBroken { .. } => "body broken",
        DialError::TooManyRedirects(_) => "too many redirects",
    }
}

#[tokio::test]
async fn a_post_arrives_as_it_was_written() {
    let receiver = Receiver::answering("127.0.0.1:0", ok("thanks")).await;
    let client = client(loopback_allowed(), Names::new());
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer t"));
    // These would lie about the connection or the body.
    headers.insert("host", HeaderValue::from_static("other.example"));
    headers.insert("content-length", HeaderValue::from_static("1"));
    headers.insert("transfer-encoding", HeaderValue::from_static("chunked"));
    let url = format!("http://{}/hook?a=b#c", receiver.address);
    let response = client.post(&url, headers, Bytes::from_static(b"{\"x\":1}"), LONG).await.unwrap();
    assert_eq!((response.status.as_u16(), response.body.as_ref()), (200, b"thanks".as_slice()));
    let request = &receiver.requests()[0];
    assert!(request.starts_with("POST /hook?a=b HTTP/1.1\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\n{\"x\":1}"), "{request}");
    for line in ["authorization: Bearer t", "content-length: 7", &format!("host: {}", receiver.address)] {
        assert!(request.lines().any(|each| each == line), "{line} in {request}");
    }
    assert!(!request.contains("transfer-encoding"), "{request}");
}

/// What a host sends after a request, and then closes; the error that follows and the status that is known.
#[tokio::test]
async fn broken_and_huge_answers() {
    let many_headers: String = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
    let large_header = "y".repeat(1 << 20);
    let too_large = "x".repeat(65_537);
    for (answer, expected, status) in [
        (String::new(), "broken", None),
        ("HTTP/1.1 200 OK\r\ncontent-le".to_owned(), "broken", None),
        ("SSH-2.0-OpenSSH_9.9\r\n".to_owned(), "malformed", None),
        ("220 mail.example ESMTP\r\n".to_owned(), "malformed", None),
        (format!("HTTP/1.1 200 OK\r\n{many_headers}\r\n"), "head too large", None),
        (format!("HTTP/1.1 200 OK\r\nx: {large_header}\r\n\r\n"), "head too large", None),
        (format!("HTTP/1.1 200 OK\r\ncontent-length: 65537\r\n\r\n{too_large}"), "body too large", Some(200)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nx".to_owned(), "body too large", Some(200)),
        (format!("HTTP/1.1 500 No\r\n\r\n{too_large}"), "body too large", Some(500)),
        ("HTTP/1.1 202 OK\r\ncontent-length: 9\r\n\r\nx".to_owned(), "body broken", Some(202)),
        ("HTTP/1.1 202 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_owned(), "body broken", Some(202)),
    ] {
        let shown = answer[..answer.len().min(60)].to_owned();
        let receiver = Receiver::answering("127.0.0.1:0", answer).await;
        let client = client(loopback_allowed(), Names::new());
        let error = post(&client, &format!("http://{}/", receiver.address)).await.expect_err(&shown);
        assert_eq!(kind(&error), expected, "{shown:?}: {error:?}");
        assert_eq!(error.status().map(|status| status.as_u16()), status, "{shown:?}");
        assert!(!error.is_permanent());
    }
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_read() {
    let receiver = Receiver::answering("127.0.0.1:0", ok(&"x".repeat(65_536))).await;
    let client = client(loopback_allowed(), Names::new());
    assert_eq!(post(&client, &format!("http://{}/", receiver.address)).await.unwrap().body.len(), 65_536);
}

#[tokio::test]
async fn limits_are_settings() {
    let headers: String = (0..20).map(|n| format!("x-{n}: {}\r\n", "y".repeat(1000))).collect();
    let answer = format!("HTTP/1.1 200 OK\r\n{headers}content-length: 9\r\n\r\n123456789");
    for (limits, expected) in [
        (Limits::default(), None),
        (Limits { headers: 21, head: 32_000, body: 9, ..Limits::default() }, None),
        (Limits { headers: 20, ..Limits::default() }, Some("head too large")),
        (Limits { head: 16_000, ..Limits::default() }, Some("head too large")),
        (Limits { body: 8, ..Limits::default() }, Some("body too large")),
    ] {
        let receiver = Receiver::answering("127.0.0.1:0", answer.clone()).await;
        let guard = Arc::new(Guard::new(loopback_allowed(), Names::new()));
        let client = Client::new(guard, limits.clone(), Roots::default());
        let outcome = post(&client, &format!("http://{}/", receiver.address)).await;
        assert_eq!(outcome.as_ref().err().map(kind), expected, "{limits:?}: {outcome:?}");
    }
}

/// Hosts that never come to an end, and what they repeat: the client hangs up on each.
#[tokio::test]
async fn endless_answers_are_cut_off() {
    for (head, repeated, expected) in [
        ("HTTP/1.1 200 OK\r\n", "x: y\r\n", "head too large"),
        ("HTTP/1.1 200 OK\r\nx: ", "yyyyyyyy", "head too large"),
        ("HTTP/1.1 200 OK\r\n\r\n", "xxxxxxxx", "body too large"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "4\r\nxxxx\r\n", "body too large"),
    ] {
        let (hung_up, mut when_hung_up) = mpsc::channel(1);
        let receiver = Receiver::behaving("127.0.0.1:0", move |mut stream, _| {
            let hung_up = hung_up.clone();
            async move {
                let block = repeated.repeat(1024);
                let _ = stream.write_all(head.as_bytes()).await;
                while stream.write_all(block.as_bytes()).await.is_ok() {}
                let _ = hung_up.send(()).await;
            }
        })
        .await;
        let client = client(loopback_allowed(), Names::new());
        let error = post(&client, &format!("http://{}/", receiver.address)).await.expect_err(head);
        assert_eq!(kind(&error), expected, "{head:?}: {error:?}");
        when_hung_up.recv().await.expect("the client closes the connection");
    }
}

/// Hosts that stop halfway: how far they get, and which limit ends the wait.
#[tokio::test]
async fn silent_hosts_are_given_up() {
    for (sent, expected, status) in [
        ("", "timeout", None),
        ("HTTP/1.1 200", "timeout", None),
        ("HTTP/1.1 100 Continue\r\n\r\n", "timeout", None),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nx", "body timeout", Some(StatusCode::OK)),
    ] {
        let receiver = Receiver::behaving("127.0.0.1:0", move |mut stream, _| async move {
            let _ = stream.write_all(sent.as_bytes()).await;
            // Until the client hangs up.
            let _ = stream.read(&mut [0]).await;
        })
        .await;
        let client = client(loopback_allowed(), Names::new());
        let url = format!("http://{}/", receiver.address);
        let error = client.post(&url, HeaderMap::new(), Bytes::new(), SHORT).await.expect_err(sent);
        assert_eq!((kind(&error), error.status()), (expected, status), "{sent:?}: {error:?}");
    }
}

/// A resolver that never answers.
struct Silent;

impl Resolve for Silent {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn connecting_has_a_limit_of_its_own() {
    let mute = Receiver::accepting("127.0.0.1:0", Arc::default(), |stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let guard = Arc::new(Guard::new(loopback_allowed(), Arc::new(Silent)));
    let limits = Limits { connect_timeout: SHORT, ..Limits::default() };
    let client = Client::new(guard, limits, Roots::default());
    for url in ["http://silent.example/".to_owned(), format!("https://{}/", mute.address)] {
        let error = post(&client, &url).await.expect_err(&url);
        assert_eq!(error, DialError::ConnectTimeout, "{url}");
    }
}

#[tokio::test]
async fn a_closed_port_is_a_connect_error_and_a_missing_name_one_of_dns() {
    // Bound but not listening: nobody else gets the port meanwhile.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let client = client(loopback_allowed(), Names::new());
    let error = post(&client, &format!("http://{}/", closed.local_addr().unwrap())).await.unwrap_err();
    assert_eq!(error, DialError::Connect(io::ErrorKind::ConnectionRefused));
    let error = post(&client, "http://missing.example/").await.unwrap_err();
    assert_eq!((kind(&error), error.detail()), ("dns", Some("no such name")));
}

#[tokio::test]
async fn a_dead_address_does_not_hide_a_live_one() {
    let receiver = Receiver::answering("127.0.0.2:0", ok("alive")).await;
    let names = Names::new();
    names.set("two.example", &["127.0.0.1 127.0.0.3 127.0.0.2"]);
    let client = client(loopback_allowed(), names);
    let response = post(&client, &format!("http://two.example:{}/", receiver.port())).await.unwrap();
    assert_eq!(response.body.as_ref(), b"alive");
}

#[tokio::test]
async fn a_connection_is_used_again_for_its_host_alone() {
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let keep_alive = |mut stream: TcpStream| async move {
        while read_request(&mut stream).await.is_some() {
            stream.write_all(ok("again").as_bytes()).await.unwrap();
        }
    };
    let receiver = Receiver::accepting("127.0.0.1:0", requests, keep_alive).await;
    let names = Names::new();
    names.set("one.example", &["127.0.0.1"]);
    names.set("two.example", &["127.0.0.1"]);
    let client = client(loopback_allowed(), names.clone());
    for (host, accepts) in [("one.example", 1), ("ONE.example.", 1), ("two.example", 2), ("one.example", 2)] {
        let response = post(&client, &format!("http://{host}:{}/", receiver.port())).await.unwrap();
        assert_eq!(response.body.as_ref(), b"again");
        assert_eq!((receiver.accepts(), names.lookups()), (accepts, accepts), "{host}");
    }
}
