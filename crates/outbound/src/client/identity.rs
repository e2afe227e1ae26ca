//! The certificate that Sabir shows of itself to hosts that ask for one: mutual TLS.
//!
//! Certificate and key are read and compared when the identity is made, so an unusable file is found at the start and not
//! with the first request. The sentences of the errors are fixed: the PEM reader repeats what it read in its own, and that
//! may be the key.

use std::fmt;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

/// A certificate with those between it and its authority, and its private key. Cheap to clone.
#[derive(Clone)]
pub struct ClientIdentity(Arc<CertifiedKey>);

/// Why a certificate and a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableIdentity {
    #[error("the client certificate holds no PEM section \"BEGIN CERTIFICATE\"")]
    NoCertificate,
    #[error("the client certificate is not well-formed PEM")]
    CertificateNotPem,
    #[error("the client certificate cannot be used: {0}")]
    Certificate(String),
    #[error("the client key holds no PEM section \"BEGIN PRIVATE KEY\"")]
    NoKey,
    #[error("the client key is not well-formed PEM")]
    KeyNotPem,
    #[error("the client key is encrypted: decrypt it with `openssl pkey -in FILE -out NEW`")]
    EncryptedKey,
    #[error("the client key cannot be used: {0}")]
    Key(String),
    #[error("the client key is not the key of the client certificate")]
    KeyOfAnother,
}

impl ClientIdentity {
    /// Reads PEM: the certificate, followed by those between it and its authority; and its key. Both may be in one text,
    /// which is then given twice.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, UnusableIdentity> {
        let chain = CertificateDer::pem_slice_iter(certificates).collect::<Result<Vec<_>, pem::Error>>();
        let chain = chain.map_err(|_| UnusableIdentity::CertificateNotPem)?;
        Self::from_der(chain, private_key(key)?)
    }

    /// The chain begins with the certificate of the key.
    pub fn from_der(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, UnusableIdentity> {
        if chain.is_empty() {
            return Err(UnusableIdentity::NoCertificate);
        }
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => UnusableIdentity::KeyOfAnother,
            rustls::Error::InvalidCertificate(error) => UnusableIdentity::Certificate(error.to_string()),
            error => UnusableIdentity::Key(error.to_string()),
        })?;
        Ok(ClientIdentity(Arc::new(certified)))
    }

    pub(super) fn resolver(&self) -> Arc<dyn ResolvesClientCert> {
        Arc::new(SingleCertAndKey::from(Arc::clone(&self.0)))
    }
}

/// Says how long the chain is, and nothing of the key.
impl fmt::Debug for ClientIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientIdentity").field("certificates", &self.0.cert.len()).finish_non_exhaustive()
    }
}

fn private_key(bytes: &[u8]) -> Result<PrivateKeyDer<'static>, UnusableIdentity> {
    let text = String::from_utf8_lossy(bytes);
    // PKCS#8, and the older spelling of OpenSSL.
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(UnusableIdentity::EncryptedKey);
    }
    PrivateKeyDer::from_pem_slice(bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => UnusableIdentity::NoKey,
        _ => UnusableIdentity::KeyNotPem,
    })
}

#[cfg(test)]
mod tests {
    use sabir_testkit::certificates::{Authority, Wanted, pem};

    use super::*;

    #[test]
    fn certificates_and_keys() {
        let authority = Authority::new("authority");
        let (one, other) = (authority.issue(&Wanted::client(&[])), authority.issue(&Wanted::client(&[])));
        let chain = format!("{}{}", one.certificate, authority.certificate());
        let both = format!("{}{}", one.key, one.certificate);
        let in_one_line = one.key.replace('\n', "");
        let encrypted = one.key.replace("PRIVATE", "ENCRYPTED PRIVATE");
        let (garbage_certificate, garbage_key) = (pem("CERTIFICATE", b"x"), pem("PRIVATE KEY", b"x"));
        let not_base64 = one.key.replacen('M', "#", 1);
        for (certificate, key, expected) in [
            (&one.certificate, &one.key, "1 certificates"),
            (&chain, &one.key, "2 certificates"),
            (&both, &both, "1 certificates"),
            (&one.certificate, &other.key, "the client key is not the key of the client certificate"),
            (&one.key, &one.key, "the client certificate holds no PEM section \"BEGIN CERTIFICATE\""),
            (&in_one_line, &one.key, "the client certificate is not well-formed PEM"),
            (&garbage_certificate, &one.key, "the client certificate cannot be used: "),
            (&one.certificate, &one.certificate, "the client key holds no PEM section \"BEGIN PRIVATE KEY\""),
            (&one.certificate, &in_one_line, "the client key is not well-formed PEM"),
            (&one.certificate, &not_base64, "the client key is not well-formed PEM"),
            (&one.certificate, &encrypted, "the client key is encrypted: decrypt it with"),
            (&one.certificate, &garbage_key, "the client key cannot be used: "),
        ] {
            let outcome = match ClientIdentity::from_pem(certificate.as_bytes(), key.as_bytes()) {
                Ok(identity) => format!("{} certificates", identity.0.cert.len()),
                Err(error) => error.to_string(),
            };
            assert!(outcome.starts_with(expected), "{expected}: {outcome}");
            assert!(outcome.len() < 200, "{expected}: {outcome}");
        }
        let identity = ClientIdentity::from_pem(chain.as_bytes(), one.key.as_bytes()).unwrap();
        assert_eq!(format!("{identity:?}"), "ClientIdentity { certificates: 2, .. }");
    }
}
