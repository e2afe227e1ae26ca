//! TLS: which certificates are trusted, which one is shown, and the handshake.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::DialError;
use super::identity::ClientIdentity;
use crate::guard::Host;

/// The certificates that sign the hosts' ones: the platform's, or Mozilla's where the platform has none (a container
/// without them), and those that the operator adds.
#[derive(Debug, Clone)]
pub struct Roots {
    extra: RootCertStore,
}

/// A certificate that cannot be a root.
#[derive(Debug, thiserror::Error)]
#[error("the certificate cannot be used as a root: {0}")]
pub struct UnusableRoot(#[source] rustls::Error);

/// Why a text with roots cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UnusableRoots {
    #[error("there is no PEM section \"BEGIN CERTIFICATE\"")]
    None,
    #[error("it is not well-formed PEM")]
    NotPem,
    #[error("{0}")]
    Root(#[from] UnusableRoot),
}

impl Default for Roots {
    fn default() -> Self {
        Roots { extra: RootCertStore::empty() }
    }
}

impl Roots {
    /// Adds a root in DER form.
    pub fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), UnusableRoot> {
        self.extra.add(certificate).map_err(UnusableRoot)
    }

    /// Adds all certificates of a PEM text; at least one must be there.
    pub fn add_pem(&mut self, text: &[u8]) -> Result<(), UnusableRoots> {
        let mut is_empty = true;
        for certificate in CertificateDer::pem_slice_iter(text) {
            // The error of the PEM reader repeats what it read, which may be a key.
            self.add(certificate.map_err(|_| UnusableRoots::NotPem)?)?;
            is_empty = false;
        }
        if is_empty { Err(UnusableRoots::None) } else { Ok(()) }
    }
}

pub(super) struct Tls {
    roots: Roots,
    identity: Option<ClientIdentity>,
    /// Made with the first connection: reading the platform's certificates takes a while, and many servers never dial.
    config: OnceCell<Arc<ClientConfig>>,
}

impl Tls {
    pub(super) fn new(roots: Roots, identity: Option<ClientIdentity>) -> Self {
        Tls { roots, identity, config: OnceCell::new() }
    }

    /// Shakes hands; the host must prove that it has the name, or the address, of the URL.
    pub(super) async fn connect(&self, host: &Host, stream: TcpStream) -> Result<TlsStream<TcpStream>, DialError> {
        let name = match host {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => {
                ServerName::try_from(name.clone()).map_err(|error| DialError::Tls(error.to_string()))?
            }
        };
        let connector = TlsConnector::from(self.config().await?);
        connector.connect(name, stream).await.map_err(|error| DialError::Tls(error.to_string()))
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, DialError> {
        let config = self.config.get_or_try_init(|| async {
            let (roots, identity) = (self.roots.clone(), self.identity.clone());
            let made = tokio::task::spawn_blocking(move || client_config(roots, identity)).await;
            made.map_err(|error| error.to_string()).and_then(|made| made.map_err(|error| error.to_string()))
        });
        config.await.cloned().map_err(DialError::Tls)
    }
}

fn client_config(roots: Roots, identity: Option<ClientIdentity>) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(all_roots(roots));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder.with_client_cert_resolver(identity.resolver()),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn all_roots(roots: Roots) -> RootCertStore {
    let platform = rustls_native_certs::load_native_certs();
    for error in &platform.errors {
        tracing::debug!(%error, "root certificates of the platform");
    }
    let mut all = roots.extra;
    let (added, _) = all.add_parsable_certificates(platform.certs);
    if added == 0 {
        tracing::warn!("the platform has no root certificates; those of Mozilla are used");
        all.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    all
}

#[cfg(test)]
mod tests {
    use sabir_testkit::certificates::{Authority, Wanted, pem};

    use super::*;

    #[test]
    fn roots_are_read_from_pem() {
        let (one, two) = (Authority::new("one"), Authority::new("two"));
        let key = one.issue(&Wanted::server()).key;
        let garbage = pem("CERTIFICATE", b"x");
        let torn = one.certificate().replacen("-----END", "", 1);
        for (text, expected) in [
            (one.certificate(), "1 roots"),
            (format!("# ours\n{}\n{}", one.certificate(), two.certificate()), "2 roots"),
            (String::new(), "there is no PEM section \"BEGIN CERTIFICATE\""),
            (key, "there is no PEM section \"BEGIN CERTIFICATE\""),
            (torn, "it is not well-formed PEM"),
            (garbage, "the certificate cannot be used as a root: "),
        ] {
            let mut roots = Roots::default();
            let outcome = match roots.add_pem(text.as_bytes()) {
                Ok(()) => format!("{} roots", roots.extra.len()),
                Err(error) => error.to_string(),
            };
            assert!(outcome.starts_with(expected) && outcome.len() < 200, "{expected}: {outcome}");
        }
    }
}
