//! TLS with certificates of our own: who is trusted, for which name, and which HTTP is spoken.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sabir_outbound::client::{Client, DialError, Limits, Roots};
use sabir_outbound::guard::Guard;
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;

use crate::support::{Names, Receiver, loopback_allowed, post};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn roots(&self) -> Roots {
        let mut roots = Roots::default();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }

    fn certificate(&self, name: &str, last_year: i32) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(last_year, 1, 1);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
    }

    /// A receiver that answers with the protocol that was spoken, the name of the handshake, and the request's body.
    async fn receiver(&self, name: &str, last_year: i32, protocols: &[&str]) -> Receiver {
        let (certificate, key) = self.certificate(name, last_year);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        Receiver::accepting("127.0.0.1:0", requests, move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let session = stream.get_ref().1;
                let speaks_h2 = session.alpn_protocol() == Some(b"h2");
                let name = session.server_name().unwrap_or("none").to_owned();
                let answer = service_fn(move |request| answer(name.clone(), request));
                let stream = TokioIo::new(stream);
                if speaks_h2 {
                    let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(stream, answer).await;
                } else {
                    let _ = http1::Builder::new().serve_connection(stream, answer).await;
                }
            }
        })
        .await
    }
}

async fn answer(name: String, request: hyper::Request<Incoming>) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let mut response = hyper::Response::new(Full::from(format!("{:?} {name} {body}", head.version)));
    if head.uri.path() == "/flood" {
        let value = "y".repeat(1000).parse().unwrap();
        let headers = (0..100).map(|n| (format!("x-{n}").parse().unwrap(), http::HeaderValue::clone(&value)));
        response.headers_mut().extend(headers.map(|(name, value): (http::HeaderName, _)| (name, value)));
    }
    if head.uri.path() == "/huge" {
        *response.body_mut() = Full::from("x".repeat(1 << 20));
    }
    Ok(response)
}

fn client(roots: Roots) -> Client {
    client_within(Limits::default(), roots)
}

fn client_within(limits: Limits, roots: Roots) -> Client {
    let names = Names::new();
    for name in ["hook.example", "other.example", "a.hooks.example"] {
        names.set(name, &["127.0.0.1"]);
    }
    Client::new(Arc::new(Guard::new(loopback_allowed(), names)), limits, roots)
}

#[tokio::test]
async fn the_name_of_the_url_is_proven_and_both_versions_of_http_are_spoken() {
    let authority = Authority::new();
    for (certified, host, protocols, expected) in [
        ("hook.example", "hook.example", ["h2", "http/1.1"].as_slice(), "HTTP/2.0 hook.example {}"),
        ("hook.example", "HOOK.example.", &["http/1.1"], "HTTP/1.1 hook.example {}"),
        ("hook.example", "hook.example", &[], "HTTP/1.1 hook.example {}"),
        ("*.hooks.example", "a.hooks.example", &["h2"], "HTTP/2.0 a.hooks.example {}"),
        ("127.0.0.1", "127.0.0.1", &["h2"], "HTTP/2.0 none {}"),
    ] {
        let receiver = authority.receiver(certified, 4000, protocols).await;
        let client = client(authority.roots());
        let url = format!("https://{host}:{}/hook", receiver.port());
        for _ in 0..2 {
            let response = post(&client, &url).await.expect(host);
            assert_eq!(String::from_utf8_lossy(&response.body), expected);
        }
        assert_eq!(receiver.accepts(), 1, "the connection is used again");
    }
}

#[tokio::test]
async fn a_host_that_cannot_prove_its_name_gets_no_request() {
    let authority = Authority::new();
    for (certified, last_year, host, roots, expected) in [
        ("hook.example", 4000, "hook.example", Roots::default(), "UnknownIssuer"),
        ("hook.example", 4000, "hook.example", Authority::new().roots(), "certificate"),
        ("hook.example", 4000, "other.example", authority.roots(), "not valid for name"),
        ("hook.example", 4000, "127.0.0.1", authority.roots(), "not valid for name"),
        ("hook.example", 2001, "hook.example", authority.roots(), "expired"),
    ] {
        let receiver = authority.receiver(certified, last_year, &["h2", "http/1.1"]).await;
        let error = post(&client(roots), &format!("https://{host}:{}/", receiver.port())).await.expect_err(expected);
        let DialError::Tls(reason) = &error else { panic!("{expected}: {error:?}") };
        assert!(reason.contains(expected), "{reason}");
    }
}

#[tokio::test]
async fn a_host_that_speaks_no_tls_is_a_tls_error() {
    let plain = Receiver::accepting("127.0.0.1:0", Arc::default(), |mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    let error = post(&client(Roots::default()), &format!("https://hook.example:{}/", plain.port())).await.unwrap_err();
    assert!(matches!(error, DialError::Tls(_)), "{error:?}");
}

#[tokio::test]
async fn limits_hold_for_http2() {
    let authority = Authority::new();
    let receiver = authority.receiver("hook.example", 4000, &["h2"]).await;
    let client = client(authority.roots());
    let url = |path: &str| format!("https://hook.example:{}{path}", receiver.port());
    let error = post(&client, &url("/huge")).await.unwrap_err();
    assert!(matches!(error, DialError::BodyTooLarge { .. }), "{error:?}");
    let error = post(&client, &url("/flood")).await.unwrap_err();
    assert!(matches!(error, DialError::Broken { .. } | DialError::HeadTooLarge), "{error:?}");
    post(&client, &url("/")).await.expect("the connection survives");
    assert_eq!(receiver.accepts(), 1);
    let limits = Limits { head: 1 << 18, body: 1 << 20, ..Limits::default() };
    let generous = client_within(limits, authority.roots());
    for path in ["/huge", "/flood"] {
        post(&generous, &url(path)).await.expect(path);
    }
}
