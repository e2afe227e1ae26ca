//! TLS with certificates of our own: who gets in, what is said to those who do not, and files that change.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sabir_engine::Builder;
use sabir_server::{ClientAuth, ClientCertificates, Reloaded, ServerSettings, Timeouts, Tls, TlsFile, TlsSettings};
use sabir_store::MemoryStore;
use sabir_testkit::certificates::{Authority, Issued, Wanted};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{Served, serve_all};

/// A server with a certificate of `authority`, and its files.
struct Secured {
    served: Served,
    tls: Arc<Tls>,
    authority: Authority,
    folder: TempDir,
}

impl Secured {
    async fn new() -> Self {
        Self::with(None, |settings| settings).await
    }

    async fn with(
        clients: Option<(&Authority, ClientAuth)>,
        change: impl FnOnce(ServerSettings) -> ServerSettings,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("servers");
        let (certificate, key) = authority.issue(&Wanted::server()).write(folder.path(), "cert.pem", "key.pem");
        let clients = clients.map(|(authority, auth)| {
            let authorities = folder.path().join("clients.pem");
            std::fs::write(&authorities, authority.certificate()).unwrap();
            ClientCertificates { authorities, auth }
        });
        let tls = Tls::load(TlsSettings { certificate, key, clients }).unwrap();
        let served = serve_all(Builder::new(Arc::new(MemoryStore::new())), change, Some(tls.clone())).await;
        Self { served, tls, authority, folder }
    }

    fn address(&self) -> SocketAddr {
        self.served.address
    }

    fn renew(&self) {
        self.authority.issue(&Wanted::server()).write(self.folder.path(), "cert.pem", "key.pem");
    }
}

async fn connect(address: SocketAddr, config: Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    TlsConnector::from(config).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

/// The certificate that the server shows to a client that comes now.
async fn shown(secured: &Secured) -> Vec<u8> {
    let stream = connect(secured.address(), secured.authority.client_config(None, &[])).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

async fn get(sender: &mut http1::SendRequest<Full<Bytes>>, path: &str) -> hyper::Result<(u16, String)> {
    let request = http::Request::get(path).header("host", "localhost").body(Full::default()).unwrap();
    sender.ready().await?;
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8(body.to_vec()).unwrap()))
}

async fn http1_client(address: SocketAddr, config: Arc<ClientConfig>) -> Option<http1::SendRequest<Full<Bytes>>> {
    let stream = connect(address, config).await.ok()?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Some(sender)
}

#[tokio::test]
async fn both_protocols_are_spoken_and_cards_say_https() {
    let secured = Secured::new().await;
    for (offered, agreed) in
        [(&["h2", "http/1.1"][..], Some("h2")), (&["http/1.1"], Some("http/1.1")), (&["h2"], Some("h2")), (&[], None)]
    {
        let stream = connect(secured.address(), secured.authority.client_config(None, offered)).await.unwrap();
        let protocol = stream.get_ref().1.alpn_protocol().map(|protocol| String::from_utf8(protocol.to_vec()).unwrap());
        assert_eq!(protocol.as_deref(), agreed, "{offered:?}");
        let request = http::Request::get("https://localhost:1/.well-known/agent-card.json");
        let response = if agreed == Some("h2") {
            let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap()
        } else {
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let request = request.header("host", "localhost:1").body(Full::<Bytes>::default()).unwrap();
            sender.send_request(request).await.unwrap()
        };
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let card: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(card["url"], "https://localhost:1/a2a/jsonrpc", "{offered:?}: {card}");
    }
}

#[tokio::test]
async fn a_protocol_that_the_server_does_not_speak_is_refused() {
    let secured = Secured::new().await;
    let refused = connect(secured.address(), secured.authority.client_config(None, &["h3"])).await.unwrap_err();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
}

#[tokio::test]
async fn clients_are_let_in_by_their_certificates() {
    let (clients, foreign) = (Authority::new("clients"), Authority::new("foreign"));
    let alice = Wanted::client(&["spiffe://example.org/alice"]);
    let yesterday = SystemTime::now() - Duration::from_secs(86_400);
    let shown = [
        ("none", None),
        ("good", Some(clients.issue(&alice))),
        ("foreign", Some(foreign.issue(&alice))),
        ("expired", Some(clients.issue(&Wanted { not_after: yesterday, ..alice.clone() }))),
        ("nameless", Some(clients.issue(&Wanted { hosts: vec!["alice.example".into()], ..Wanted::client(&[]) }))),
    ];
    for (auth, name, expected) in [
        (ClientAuth::Optional, "none", "200"),
        (ClientAuth::Required, "none", "CertificateRequired"),
        (ClientAuth::Optional, "good", "200"),
        (ClientAuth::Required, "good", "200"),
        (ClientAuth::Optional, "foreign", "UnknownCA"),
        (ClientAuth::Required, "foreign", "UnknownCA"),
        (ClientAuth::Optional, "expired", "CertificateExpired"),
        (ClientAuth::Required, "expired", "CertificateExpired"),
        (ClientAuth::Optional, "nameless", "403 the client certificate has no URI"),
        (ClientAuth::Required, "nameless", "403 the client certificate has no URI"),
    ] {
        let secured = Secured::with(Some((&clients, auth)), |settings| settings).await;
        let certificate = shown.iter().find(|(known, _)| *known == name).unwrap().1.as_ref();
        let told = told(&secured, certificate).await;
        assert!(told.starts_with(expected), "{name}, {auth:?}: {told}");
    }
}

/// The status and body of a request with this certificate, or the alert that ended the handshake. In TLS 1.3 the client is
/// done before the server has seen its certificate, so the alert comes with the first read.
async fn told(secured: &Secured, certificate: Option<&Issued>) -> String {
    let alert = |error: std::io::Error| {
        let text = error.to_string();
        text.rsplit(": ").next().unwrap().to_owned()
    };
    let mut stream = match connect(secured.address(), secured.authority.client_config(certificate, &[])).await {
        Ok(stream) => stream,
        Err(error) => return alert(error),
    };
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    let mut reply = String::new();
    match stream.read_to_string(&mut reply).await {
        Ok(_) => {
            let (head, body) = reply.split_once("\r\n\r\n").unwrap();
            format!("{} {body}", head.split(' ').nth(1).unwrap())
        }
        Err(error) => alert(error),
    }
}

#[tokio::test]
async fn a_certificate_that_expires_during_a_connection_does_not_count_any_more() {
    let clients = Authority::new("clients");
    let secured = Secured::with(Some((&clients, ClientAuth::Optional)), |settings| settings).await;
    let not_after = SystemTime::now() + Duration::from_secs(2);
    let certificate = clients.issue(&Wanted { not_after, ..Wanted::client(&["spiffe://example.org/alice"]) });
    let config = secured.authority.client_config(Some(&certificate), &[]);
    let mut sender = http1_client(secured.address(), config).await.unwrap();
    let refused = loop {
        let (status, body) = get(&mut sender, "/healthz").await.unwrap();
        match status {
            200 => tokio::time::sleep(Duration::from_millis(20)).await,
            status => break (status, body),
        }
    };
    assert!(refused.0 == 403 && refused.1.contains("has expired"), "{refused:?}");
    assert!(SystemTime::now() > not_after - Duration::from_secs(1));
    assert!(get(&mut sender, "/healthz").await.is_err(), "the connection ends with it");
}

#[tokio::test]
async fn who_speaks_without_tls_is_told_so() {
    let secured = Secured::new().await;
    for request in [
        &b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"nonsense\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(secured.address()).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 400 ") && reply.contains("This port speaks HTTPS"), "{reply}");
    }
}

#[tokio::test]
async fn tls_to_a_port_without_it_ends_at_once() {
    let (served, authority) = (crate::serve().await, Authority::new("servers"));
    let ended =
        tokio::time::timeout(Duration::from_secs(20), connect(served.address, authority.client_config(None, &[])));
    assert!(ended.await.expect("the server closes it").is_err());
}

#[tokio::test]
async fn a_handshake_has_a_time_limit() {
    let timeouts = Timeouts { head: Duration::from_millis(200), ..Timeouts::default() };
    let secured = Secured::with(None, |settings| ServerSettings { timeouts, ..settings }).await;
    // Nothing, the first byte, and the head of a record whose content never comes.
    for sent in [&[][..], &[0x16], &[0x16, 3, 1, 2, 0, 1]] {
        let mut slow = TcpStream::connect(secured.address()).await.unwrap();
        slow.write_all(sent).await.unwrap();
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(20), slow.read_to_end(&mut rest)).await;
        assert!(closed.is_ok() && rest.is_empty(), "{sent:?}: {rest:?}");
    }
    // One that is complete and asks nothing.
    let mut silent = connect(secured.address(), secured.authority.client_config(None, &[])).await.unwrap();
    let closed = tokio::time::timeout(Duration::from_secs(20), silent.read(&mut [0; 1])).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
}

#[tokio::test]
async fn unfinished_handshakes_give_way_to_requests() {
    let secured = Secured::with(None, |settings| ServerSettings { max_connections: 8, ..settings }).await;
    let mut silent = Vec::new();
    for sent in [&[][..], &[0x16], &[0x16, 3, 1, 2, 0, 1]].repeat(20) {
        let mut stream = TcpStream::connect(secured.address()).await.unwrap();
        let _ = stream.write_all(sent).await;
        silent.push(stream);
    }
    for _ in 0..5 {
        assert_eq!(told(&secured, None).await.split(' ').next(), Some("200"), "a client with a request is answered");
    }
}

#[tokio::test]
async fn a_certificate_is_renewed_under_load() {
    let secured = Arc::new(Secured::new().await);
    let before = shown(&secured).await;
    let config = secured.authority.client_config(None, &[]);
    let mut old = http1_client(secured.address(), config.clone()).await.unwrap();
    assert_eq!(get(&mut old, "/healthz").await.unwrap().0, 200);
    let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (address, config) = (secured.address(), config.clone());
            let (is_over, answered) = (is_over.clone(), answered.clone());
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let mut sender = http1_client(address, config.clone()).await.expect("every handshake succeeds");
                    assert_eq!(get(&mut sender, "/healthz").await.unwrap().0, 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..10 {
        let seen = answered.load(Ordering::Relaxed);
        crate::until(|| {
            answered.load(Ordering::Relaxed) > seen + 4 || clients.iter().any(|client| client.is_finished())
        })
        .await;
        secured.renew();
        assert_eq!(secured.tls.reload(), Reloaded::Renewed);
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert_ne!(shown(&secured).await, before, "new connections see the new certificate");
    assert_eq!(get(&mut old, "/healthz").await.unwrap().0, 200, "old connections live on");
}

#[tokio::test]
async fn files_that_cannot_be_used_leave_those_from_before_in_force() {
    let secured = Secured::new().await;
    let before = shown(&secured).await;
    assert_eq!(secured.tls.reload(), Reloaded::Unchanged);
    let other = secured.authority.issue(&Wanted::server());
    for (certificate, key, expected) in [
        (Some(other.certificate.as_str()), None, TlsFile::Key),
        (Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), None, TlsFile::Certificate),
        (Some(""), None, TlsFile::Certificate),
        (None, Some(""), TlsFile::Key),
    ] {
        let read = |name: &str| std::fs::read_to_string(secured.folder.path().join(name)).unwrap();
        let saved = Issued { certificate: read("cert.pem"), key: read("key.pem") };
        let written = Issued {
            certificate: certificate.unwrap_or(&saved.certificate).to_owned(),
            key: key.unwrap_or(&saved.key).to_owned(),
        };
        written.write(secured.folder.path(), "cert.pem", "key.pem");
        match secured.tls.reload() {
            Reloaded::Broken(error) => assert_eq!(error.file, expected, "{error}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(shown(&secured).await, before);
        saved.write(secured.folder.path(), "cert.pem", "key.pem");
        assert_eq!(secured.tls.reload(), Reloaded::Unchanged, "what is in force is what the files say again");
    }
    other.write(secured.folder.path(), "cert.pem", "key.pem");
    assert_eq!(secured.tls.reload(), Reloaded::Renewed);
    assert_ne!(shown(&secured).await, before);
}

#[tokio::test]
async fn authorities_of_clients_are_renewed_too() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let secured = Secured::with(Some((&old, ClientAuth::Required)), |settings| settings).await;
    let of = |authority: &Authority| authority.issue(&Wanted::client(&["spiffe://example.org/alice"]));
    let (of_old, of_new) = (of(&old), of(&new));
    // Both before and after with one client each, so that the old one has a session that it could resume.
    let old_client = secured.authority.client_config(Some(&of_old), &[]);
    for _ in 0..2 {
        let mut sender = http1_client(secured.address(), old_client.clone()).await.unwrap();
        assert_eq!(get(&mut sender, "/healthz").await.unwrap().0, 200);
    }
    assert_eq!(told(&secured, Some(&of_new)).await, "UnknownCA");
    std::fs::write(secured.folder.path().join("clients.pem"), new.certificate()).unwrap();
    assert_eq!(secured.tls.reload(), Reloaded::Renewed);
    assert!(told(&secured, Some(&of_new)).await.starts_with("200"));
    assert_eq!(told(&secured, Some(&of_old)).await, "UnknownCA");
    let resumed = match http1_client(secured.address(), old_client).await {
        Some(mut sender) => get(&mut sender, "/healthz").await.is_ok(),
        None => false,
    };
    assert!(!resumed, "a session of the old authority is not resumed");
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("servers");
    let at = |name: &str| folder.path().join(name);
    authority.issue(&Wanted::server()).write(folder.path(), "cert.pem", "key.pem");
    authority.issue(&Wanted::server()).write(folder.path(), "other-cert.pem", "other-key.pem");
    std::fs::write(at("empty.pem"), "").unwrap();
    std::fs::write(
        at("encrypted.pem"),
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    .unwrap();
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
    std::fs::write(at("old.pem"), old).unwrap();
    std::fs::write(at("torn.pem"), "-----BEGIN CERTIFICATE-----\n!\n").unwrap();
    std::fs::write(at("garbage.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    // A key whose line breaks were lost, and one whose end was: nothing of it may be in the message.
    std::fs::write(at("joined.pem"), "-----BEGIN PRIVATE KEY-----SECRET-----END PRIVATE KEY-----\n").unwrap();
    std::fs::write(at("unended.pem"), "-----BEGIN PRIVATE KEY-----\nSECRET\n").unwrap();
    std::fs::create_dir(at("folder.pem")).unwrap();
    for (certificate, key, authorities, expected) in [
        ("missing.pem", "key.pem", None, "missing.pem, which does not exist; name the PEM file"),
        ("cert.pem", "missing.pem", None, "missing.pem, which does not exist"),
        ("folder.pem", "key.pem", None, "folder.pem, which is a folder"),
        ("empty.pem", "key.pem", None, "empty.pem, which holds no certificate"),
        ("key.pem", "key.pem", None, "key.pem, which holds no certificate"),
        ("torn.pem", "key.pem", None, "torn.pem, which is not well-formed PEM"),
        ("cert.pem", "joined.pem", None, "joined.pem, which is not well-formed PEM"),
        ("cert.pem", "unended.pem", None, "unended.pem, which is not well-formed PEM"),
        ("garbage.pem", "key.pem", None, "garbage.pem, which holds a certificate that cannot be used"),
        ("cert.pem", "empty.pem", None, "empty.pem, which holds no private key"),
        ("cert.pem", "cert.pem", None, "cert.pem, which holds no private key"),
        ("cert.pem", "encrypted.pem", None, "encrypted.pem, which is an encrypted key"),
        ("cert.pem", "old.pem", None, "old.pem, which is an encrypted key"),
        ("cert.pem", "other-key.pem", None, "other-key.pem, which is not the key of the certificate in"),
        ("cert.pem", "key.pem", Some("missing.pem"), "missing.pem, which does not exist"),
        ("cert.pem", "key.pem", Some("empty.pem"), "empty.pem, which holds no certificate"),
        (
            "cert.pem",
            "key.pem",
            Some("garbage.pem"),
            "garbage.pem, which holds a certificate that cannot be an authority",
        ),
    ] {
        let clients = authorities.map(|name| ClientCertificates { authorities: at(name), auth: ClientAuth::Optional });
        let settings = TlsSettings { certificate: at(certificate), key: at(key), clients };
        let error = Tls::load(settings).err().expect("it cannot be used").to_string();
        assert!(error.contains(expected), "{error}");
        let secret: Vec<String> = b"SECRET".iter().map(u8::to_string).collect();
        assert!(!error.contains("SECRET") && !error.contains(&secret.join(", ")), "{error}");
    }
}
