//! TLS of the listener: the certificate, the key and the authorities of client certificates, read from PEM files and read
//! again when the files change.
//!
//! `files` reads them and says what is wrong with one. `reload` notices changes. `peer_certificate` is what a client's
//! certificate says of its holder, read with `der`. A connection uses the configuration that was current when it came; a
//! new one has its own store of sessions, so nobody resumes a session of authorities that are not trusted any more.

mod der;
mod files;
mod peer_certificate;
mod reload;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};

pub use files::{ClientAuth, ClientCertificates, TlsError, TlsFile, TlsSettings};
pub use peer_certificate::PeerCertificate;
pub(crate) use peer_certificate::{ClientCertificate, client_certificate};
pub use reload::Reloaded;

use files::Contents;
use reload::Looked;

/// By ALPN; a client that offers neither speaks HTTP/1.1.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The TLS of a server, with the files that are in force.
pub struct Tls {
    settings: TlsSettings,
    current: RwLock<InForce>,
    looked: Mutex<Looked>,
}

struct InForce {
    config: Arc<ServerConfig>,
    /// The server's own.
    certificate: CertificateDer<'static>,
}

impl Tls {
    /// Reads the files, or says which of them cannot be used and why.
    pub fn load(settings: TlsSettings) -> Result<Arc<Self>, TlsError> {
        // Before the files are read: what changes while they are read is noticed at the next look.
        let identities = reload::identities(&settings);
        let contents = Contents::read(&settings)?;
        let config = server_config(&settings, &contents)?;
        let looked = Mutex::new(Looked::new(identities, &contents));
        Ok(Arc::new(Self { settings, current: RwLock::new(config), looked }))
    }

    /// Whether clients that ask for this name or address may accept the certificate in force.
    pub fn is_for(&self, name: &str) -> bool {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let parsed = ParsedCertificate::try_from(&current.certificate);
        let name = ServerName::try_from(name);
        parsed.is_ok_and(|parsed| name.is_ok_and(|name| verify_server_name(&parsed, &name).is_ok()))
    }

    /// When the certificate in force expires, if it says so in a way that is understood.
    pub fn not_after(&self) -> Option<SystemTime> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        der::read(&current.certificate).map(|fields| fields.not_after)
    }

    /// For a connection that comes now.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).config.clone()
    }

    fn replace(&self, config: InForce) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn looked(&self) -> MutexGuard<'_, Looked> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn server_config(settings: &TlsSettings, contents: &Contents) -> Result<InForce, TlsError> {
    let pair = contents.pair(settings)?;
    let certificate = pair.certificates[0].clone();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("the provider knows TLS 1.2 and 1.3");
    let builder = match &settings.clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let roots = Arc::new(contents.authorities(clients)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = match clients.auth {
                ClientAuth::Required => verifier,
                ClientAuth::Optional => verifier.allow_unauthenticated(),
            };
            builder.with_client_cert_verifier(verifier.build().expect("there is at least one authority"))
        }
    };
    let mut config = builder
        .with_single_cert(pair.certificates, pair.key)
        .map_err(|error| files::unusable_pair(settings, &error))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(InForce { config: Arc::new(config), certificate })
}
