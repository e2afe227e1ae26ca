//! Mutual TLS: hosts that want to see a certificate of ours.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use sabir_outbound::client::{Client, ClientIdentity, DialError, Limits, Roots};
use sabir_outbound::guard::Guard;
use sabir_testkit::certificates::{Authority, Issued, Wanted};
use tokio_rustls::TlsAcceptor;

use crate::support::{Names, Receiver, loopback_allowed, post};

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

pub fn roots(authority: &Authority) -> Roots {
    let mut roots = Roots::default();
    roots.add(der(&authority.certificate())).unwrap();
    roots
}

pub fn identity(issued: &Issued) -> ClientIdentity {
    ClientIdentity::from_pem(issued.certificate.as_bytes(), issued.key.as_bytes()).unwrap()
}

/// A host that answers with a body, but only to clients with a certificate of the authority.
pub async fn demanding_host(
    authority: &Authority,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&str],
    body: &'static str,
) -> Receiver {
    let issued = authority.issue(&Wanted::server());
    let mut trusted = RootCertStore::empty();
    trusted.add(der(&authority.certificate())).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(trusted), Arc::clone(&provider)).build().unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![der(&issued.certificate)], PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap())
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Receiver::accepting("127.0.0.1:0", Arc::default(), move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let speaks_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let answer = service_fn(move |_: hyper::Request<Incoming>| async move {
                Ok::<_, Infallible>(hyper::Response::new(Full::new(Bytes::from_static(body.as_bytes()))))
            });
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

fn client(authority: &Authority, identity: Option<ClientIdentity>) -> Client {
    let guard = Guard::new(loopback_allowed(), Names::new());
    Client::with_identity(Arc::new(guard), Limits::default(), roots(authority), identity)
}

#[tokio::test]
async fn a_host_that_demands_a_certificate_gets_it() {
    let authority = Authority::new("authority");
    let identity = identity(&authority.issue(&Wanted::client(&["urn:sabir"])));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for protocols in [["http/1.1"], ["h2"]] {
            let host = demanding_host(&authority, &[version], &protocols, "welcome").await;
            let client = client(&authority, Some(identity.clone()));
            let url = format!("https://127.0.0.1:{}/", host.port());
            for _ in 0..2 {
                let response = post(&client, &url).await.expect("the certificate is accepted");
                assert_eq!(response.body.as_ref(), b"welcome", "{version:?} {protocols:?}");
            }
            assert_eq!(host.accepts(), 1, "the connection is used again");
        }
    }
}

#[tokio::test]
async fn without_a_certificate_that_the_host_accepts_there_is_no_response() {
    let authority = Authority::new("authority");
    let stranger = identity(&Authority::new("another").issue(&Wanted::client(&[])));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for protocols in [["http/1.1"], ["h2"]] {
            for identity in [None, Some(stranger.clone())] {
                let host = demanding_host(&authority, &[version], &protocols, "welcome").await;
                let what = format!("{version:?} {protocols:?} {identity:?}");
                let url = format!("https://127.0.0.1:{}/", host.port());
                match post(&client(&authority, identity), &url).await.expect_err(&what) {
                    DialError::Tls(reason) => assert!(reason.starts_with("received fatal alert"), "{what}: {reason}"),
                    // The host has closed before its alert was read.
                    DialError::Broken { .. } => assert_eq!(version, &rustls::version::TLS13, "{what}"),
                    error => panic!("{what}: {error:?}"),
                }
            }
        }
    }
}
