//! The balancer: who gets a request, and what streams through it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use sabir_testkit::balancer::{Balanced, Balancer};
use sabir_testkit::http::Http;

/// Answers each connection with what this makes of the request's head.
fn backend(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                    head.push(byte[0]);
                }
                answer(&String::from_utf8(head).unwrap(), &mut stream);
            });
        }
    });
    address
}

fn named(name: &'static str) -> SocketAddr {
    backend(move |_, stream| write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{name}").unwrap())
}

fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn get(http: &mut Http) -> String {
    http.exchange("GET", "/", &[], b"").unwrap().text()
}

#[test]
fn each_request_of_a_connection_goes_to_the_next_backend_that_accepts() {
    let (a, b) = (named("a"), named("b"));
    let balancer = Balancer::start(Balanced::Requests, &[a, b]);
    let mut http = Http::connect(balancer.address()).unwrap();
    assert_eq!([get(&mut http), get(&mut http), get(&mut http)].concat(), "aba");
    balancer.set_backends(&[closed(), b]);
    assert_eq!([get(&mut http), get(&mut http), get(&mut http)].concat(), "bbb");
    balancer.set_backends(&[closed()]);
    assert_eq!(http.exchange("GET", "/", &[], b"").unwrap().status, 502);
}

#[test]
fn a_backend_sees_the_host_of_the_client_and_the_whole_body() {
    let echo = backend(|head, stream| {
        let mut body = [0; 5];
        stream.read_exact(&mut body).unwrap();
        let text = format!("{head}{}", String::from_utf8_lossy(&body));
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()).unwrap();
    });
    let balancer = Balancer::start(Balanced::Requests, &[echo]);
    let mut http = Http::connect(balancer.address()).unwrap();
    let seen =
        http.exchange("POST", "/a?b=c", &[("host", "agents.example"), ("x-test", "1")], b"hello").unwrap().text();
    for part in ["POST /a?b=c HTTP/1.1", "host: agents.example", "x-test: 1", "hello"] {
        assert!(seen.contains(part), "{part} in {seen}");
    }
}

#[test]
fn a_stream_is_passed_on_piece_by_piece_and_ends_with_its_reader() {
    let (go, wait) = mpsc::channel::<()>();
    let (ended, end) = mpsc::channel();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let slow = backend(move |_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nfirst\n\r\n").unwrap();
        wait.lock().unwrap().recv().unwrap();
        stream.write_all(b"7\r\nsecond\n\r\n").unwrap();
        // The reader is gone.
        let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
        ended.send(stream.read(&mut [0]).unwrap_or(0)).unwrap();
    });
    let balancer = Balancer::start(Balanced::Requests, &[slow]);
    let mut http = Http::connect(balancer.address()).unwrap();
    http.send("GET", "/", &[], b"").unwrap();
    assert_eq!(http.receive_head().unwrap().0, 200);
    assert_eq!(http.receive_chunk().unwrap().unwrap(), b"first\n");
    go.send(()).unwrap();
    assert_eq!(http.receive_chunk().unwrap().unwrap(), b"second\n");
    drop(http);
    assert_eq!(end.recv_timeout(Duration::from_secs(20)).unwrap(), 0);
}

#[test]
fn http2_keeps_its_trailers_and_its_requests_are_balanced() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let served = |name: &'static str| {
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut connection = h2::server::handshake(stream).await.unwrap();
                    while let Some(Ok((request, mut respond))) = connection.accept().await {
                        assert_eq!(request.uri().path(), "/service/Method");
                        let mut body = respond.send_response(Response::new(()), false).unwrap();
                        body.send_data(Bytes::from_static(name.as_bytes()), false).unwrap();
                        let trailers =
                            HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static("0"))]);
                        body.send_trailers(trailers).unwrap();
                    }
                });
            }
        });
        address
    };
    let balancer = Balancer::start(Balanced::Requests, &[served("a"), served("b")]);
    let address = balancer.address();
    let answers = runtime.block_on(async move {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut answers = String::new();
        for _ in 0..4 {
            let request = Request::post(format!("http://{address}/service/Method")).body(()).unwrap();
            client = client.ready().await.unwrap();
            let (response, _) = client.send_request(request, true).unwrap();
            let mut body = response.await.unwrap().into_body();
            while let Some(data) = body.data().await {
                answers += std::str::from_utf8(&data.unwrap()).unwrap();
            }
            let trailers = body.trailers().await.unwrap().unwrap();
            assert_eq!(trailers["grpc-status"], "0");
        }
        answers
    });
    assert_eq!(answers, "abab");
}

#[test]
fn a_connection_is_copied_both_ways_until_both_sides_have_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        write!(stream, "heard {heard}").unwrap();
    });
    let balancer = Balancer::start(Balanced::Connections, &[closed(), address]);
    let mut client = TcpStream::connect(balancer.address()).unwrap();
    client.write_all(b"hello").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "heard hello");
}
