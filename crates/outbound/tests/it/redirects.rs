//! Redirects: off unless asked for, bounded, and without secrets for another origin.

use http::{HeaderMap, HeaderValue};
use sabir_outbound::client::{DialError, Request, SecretQuery};
use sabir_outbound::guard::Refusal;
use tokio::io::AsyncWriteExt;

use crate::support::{LONG, Names, Receiver, client, closing, loopback_allowed, ok, post, post_following};

fn redirect(status: u16, location: &str) -> String {
    closing(&format!("HTTP/1.1 {status} Redirect\r\ncontent-length: 0\r\nlocation: {location}\r\n\r\n"))
}

fn secrets() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("authorization", "Bearer secret"),
        ("x-a2a-notification-token", "secret"),
        ("a2a-notification-token", "secret"),
        ("cookie", "secret"),
        ("content-type", "application/json"),
        ("x-plain", "plain"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let mut marked = HeaderValue::from_static("secret");
    marked.set_sensitive(true);
    headers.insert("x-marked", marked);
    headers
}

#[tokio::test]
async fn a_redirect_is_a_response_by_default() {
    let other = Receiver::answering("127.0.0.1:0", ok("other")).await;
    let first = Receiver::answering("127.0.0.1:0", redirect(307, &format!("http://{}/", other.address))).await;
    let client = client(loopback_allowed(), Names::new());
    let response = post(&client, &format!("http://{}/", first.address)).await.unwrap();
    assert_eq!((response.status.as_u16(), other.accepts()), (307, 0));
}

#[tokio::test]
async fn another_origin_gets_no_secrets() {
    for (status, method) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")] {
        let other = Receiver::answering("127.0.0.1:0", ok("other")).await;
        let first = Receiver::answering("127.0.0.1:0", redirect(status, &format!("http://{}/x", other.address))).await;
        let client = client(loopback_allowed(), Names::new());
        let response = post_following(&client, &format!("http://{}/", first.address), secrets()).await.unwrap();
        assert_eq!(response.body.as_ref(), b"other");
        assert_eq!(first.requests()[0].matches("secret").count(), 5);
        let request = &other.requests()[0];
        assert!(request.starts_with(&format!("{method} /x HTTP/1.1\r\n")), "{status}: {request}");
        assert!(!request.contains("secret"), "{status}: {request}");
        assert!(request.contains("x-plain: plain"), "{request}");
        assert!(request.contains(&format!("host: {}", other.address)), "{request}");
        assert_eq!(request.ends_with("{}"), method == "POST", "{status}: {request}");
    }
}

#[tokio::test]
async fn the_same_origin_keeps_them() {
    let receiver = Receiver::behaving("127.0.0.1:0", |mut stream, request| async move {
        let answer = if request.starts_with("POST /second/y ") { ok("done") } else { redirect(308, "second/x/../y") };
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    })
    .await;
    let client = client(loopback_allowed(), Names::new());
    let response = post_following(&client, &format!("http://{}/first", receiver.address), secrets()).await.unwrap();
    assert_eq!(response.body.as_ref(), b"done");
    assert_eq!(receiver.requests()[1].matches("secret").count(), 5);
}

#[tokio::test]
async fn a_secret_in_the_query_stays_with_its_origin() {
    let other = Receiver::answering("127.0.0.1:0", closing(&ok("other"))).await;
    let elsewhere = format!("http://{}", other.address);
    let refused = DialError::Refused(Refusal::SecretInRedirect).to_string();
    for (location, expected, last) in [
        (format!("{elsewhere}/x"), "other", "GET /x HTTP/1.1"),
        (format!("{elsewhere}/x?a=b&key=s%2Bcret"), &refused, ""),
        (format!("{elsewhere}/s+cret"), &refused, ""),
        ("/second?a=b".to_owned(), "same", "GET /second?a=b&key=s%2Bcret HTTP/1.1"),
        ("/second?key=s%2Bcret".to_owned(), "same", "GET /second?key=s%2Bcret HTTP/1.1"),
    ] {
        let answer = redirect(302, &location);
        let first = Receiver::behaving("127.0.0.1:0", move |mut stream, request| {
            let answer = if request.starts_with("GET /second") { closing(&ok("same")) } else { answer.clone() };
            async move {
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        })
        .await;
        let mut request = Request::get(format!("http://{}/first", first.address), LONG).following(3);
        request.secret_query = Some(SecretQuery::new("key", "s+cret"));
        let outcome = client(loopback_allowed(), Names::new()).send(request).await;
        let outcome = outcome
            .map(|response| String::from_utf8_lossy(&response.body).into_owned())
            .map_err(|error| error.to_string());
        assert_eq!(outcome.unwrap_or_else(|error| error), expected, "{location}");
        assert!(first.requests()[0].starts_with("GET /first?key=s%2Bcret HTTP/1.1\r\n"), "{location}");
        let seen = if location.starts_with('/') { first.requests() } else { other.requests() };
        assert!(seen.last().is_none_or(|seen| seen.starts_with(last)), "{location}: {seen:?}");
        assert!(!other.requests().join("").contains("cret"), "{location}");
    }
    assert_eq!(other.requests().len(), 1);
}

#[tokio::test]
async fn redirects_end() {
    let receiver = Receiver::answering("127.0.0.1:0", redirect(302, "/again")).await;
    let client = client(loopback_allowed(), Names::new());
    let error = post_following(&client, &format!("http://{}/", receiver.address), secrets()).await.unwrap_err();
    assert_eq!(error, DialError::TooManyRedirects(3));
    assert_eq!(receiver.requests().len(), 4);
}
