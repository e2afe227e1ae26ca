//! Certificates of an authority of the test's own, for servers and for clients, and a TLS client that trusts it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use sabir_model::Base64;

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

/// Names and times of a certificate.
#[derive(Clone)]
pub struct Wanted {
    /// Host names and addresses.
    pub hosts: Vec<String>,
    pub uris: Vec<String>,
    pub not_after: SystemTime,
}

impl Wanted {
    /// For a server on this machine.
    pub fn server() -> Self {
        let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        Self { hosts, uris: Vec::new(), not_after: SystemTime::now() + Duration::from_secs(86_400) }
    }

    /// For a client with these URIs.
    pub fn client(uris: &[&str]) -> Self {
        let uris = uris.iter().map(|uri| (*uri).to_owned()).collect();
        Self { hosts: Vec::new(), uris, ..Self::server() }
    }
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its own certificate, as PEM.
    pub fn certificate(&self) -> String {
        pem("CERTIFICATE", self.0.der())
    }

    pub fn issue(&self, wanted: &Wanted) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(wanted.hosts.clone()).unwrap();
        let uris = wanted.uris.iter().map(|uri| SanType::URI(Ia5String::try_from(uri.as_str()).unwrap()));
        params.subject_alt_names.extend(uris);
        params.not_before = (SystemTime::now() - Duration::from_secs(2 * 86_400)).into();
        params.not_after = wanted.not_after.into();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued { certificate: pem("CERTIFICATE", certificate.der()), key: pem("PRIVATE KEY", &key.serialize_der()) }
    }

    /// Of a client that trusts this authority. `client` is what it shows of itself.
    pub fn client_config(&self, client: Option<&Issued>, protocols: &[&str]) -> Arc<ClientConfig> {
        client_config(&self.certificate(), client, protocols)
    }
}

/// Of a client that trusts this authority, which is PEM.
pub fn client_config(authority: &str, client: Option<&Issued>, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let chain = CertificateDer::pem_slice_iter(client.certificate.as_bytes()).collect::<Result<_, _>>();
            let key = PrivateKeyDer::from_pem_slice(client.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain.unwrap(), key).unwrap()
        }
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Arc::new(config)
}

impl Issued {
    /// Writes both files, under these names; an earlier file of a name is replaced, not written into.
    pub fn write(&self, folder: &Path, certificate: &str, key: &str) -> (PathBuf, PathBuf) {
        let put = |name: &str, text: &str| {
            let (new, file) = (folder.join(format!("{name}.new")), folder.join(name));
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, &file).unwrap();
            file
        };
        (put(certificate, &self.certificate), put(key, &self.key))
    }
}

/// The certificate that a server shows to a client that comes now.
pub fn shown_certificate(config: &Arc<ClientConfig>, address: SocketAddr) -> std::io::Result<Vec<u8>> {
    let mut session = session(config)?;
    let mut socket = connect(address)?;
    session.complete_io(&mut socket)?;
    let shown = session.peer_certificates().and_then(<[_]>::first).map(|certificate| certificate.to_vec());
    shown.ok_or_else(|| std::io::Error::other("the server has shown no certificate"))
}

fn session(config: &Arc<ClientConfig>) -> std::io::Result<ClientConnection> {
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(config.clone(), name).map_err(std::io::Error::other)
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    Ok(socket)
}

/// The whole reply to a request without a body on a connection of its own, or what went wrong.
pub fn https_get(config: &Arc<ClientConfig>, address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = StreamOwned::new(session(config)?, connect(address)?);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(reply)
}

pub fn pem(label: &str, der: &[u8]) -> String {
    let base64 = Base64::encode(der);
    let lines = base64.as_str().as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap());
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.collect::<Vec<_>>().join("\n"))
}
