//! The PEM files of TLS: where they are, what must be in them, and what is wrong with one that cannot be used.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{Error, RootCertStore};

/// Where the files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// The server's certificate, followed by those between it and its authority.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// `None`: clients are not asked for certificates.
    pub clients: Option<ClientCertificates>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificates {
    /// The authorities whose certificates are accepted.
    pub authorities: PathBuf,
    pub auth: ClientAuth,
}

/// What becomes of clients without a certificate. One that cannot be verified is always refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientAuth {
    /// They may connect.
    #[default]
    Optional,
    /// Their handshake fails.
    Required,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFile {
    Certificate,
    Key,
    Authorities,
}

/// Why a file cannot be used. The words follow what asks for it: `names PATH, which ...; REMEDY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsError {
    pub file: TlsFile,
    pub path: PathBuf,
    why: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "names {}, which {}", self.path.display(), self.why)
    }
}

impl std::error::Error for TlsError {}

/// The bytes of the files.
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Vec<u8>,
}

pub(super) struct Pair {
    pub(super) certificates: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Contents {
    pub(super) fn read(settings: &TlsSettings) -> Result<Self, TlsError> {
        Ok(Self {
            certificate: read(TlsFile::Certificate, &settings.certificate)?,
            key: read(TlsFile::Key, &settings.key)?,
            authorities: match &settings.clients {
                Some(clients) => read(TlsFile::Authorities, &clients.authorities)?,
                None => Vec::new(),
            },
        })
    }

    /// Tells these bytes from others, without keeping the key.
    pub(super) fn digest(&self) -> [u8; digest::SHA256_OUTPUT_LEN] {
        let mut context = digest::Context::new(&digest::SHA256);
        for bytes in [&self.certificate, &self.key, &self.authorities] {
            context.update(&bytes.len().to_be_bytes());
            context.update(bytes);
        }
        context.finish().as_ref().try_into().expect("a SHA-256 has its length")
    }

    pub(super) fn pair(&self, settings: &TlsSettings) -> Result<Pair, TlsError> {
        let certificates = certificates(TlsFile::Certificate, &settings.certificate, &self.certificate)?;
        Ok(Pair { certificates, key: key(&settings.key, &self.key)? })
    }

    pub(super) fn authorities(&self, clients: &ClientCertificates) -> Result<RootCertStore, TlsError> {
        let path = &clients.authorities;
        let mut roots = RootCertStore::empty();
        for certificate in certificates(TlsFile::Authorities, path, &self.authorities)? {
            roots.add(certificate).map_err(|error| {
                let why = format!("holds a certificate that cannot be an authority ({error}); remove it");
                TlsError { file: TlsFile::Authorities, path: path.clone(), why }
            })?;
        }
        Ok(roots)
    }
}

fn read(file: TlsFile, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::NotFound => "does not exist; name the PEM file".to_owned(),
            ErrorKind::PermissionDenied => "this user may not read; give it the right to".to_owned(),
            ErrorKind::IsADirectory => "is a folder; name the PEM file in it".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        TlsError { file, path: path.to_owned(), why }
    })
}

fn certificates(file: TlsFile, path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unusable = |why: String| TlsError { file, path: path.to_owned(), why };
    let read: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(bytes).collect();
    match read {
        Ok(all) if all.is_empty() => {
            Err(unusable("holds no certificate; name a PEM file with \"BEGIN CERTIFICATE\" in it".to_owned()))
        }
        Ok(all) => Ok(all),
        // The reader's own words repeat what it read, and the file may hold the key as well.
        Err(_) => Err(unusable("is not well-formed PEM".to_owned())),
    }
}

fn key(path: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    let unusable = |why: &str| TlsError { file: TlsFile::Key, path: path.to_owned(), why: why.to_owned() };
    let text = String::from_utf8_lossy(bytes);
    // PKCS#8, and the older spelling of OpenSSL.
    if text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(unusable(
            "is an encrypted key, and Sabir asks for no password; decrypt it with `openssl pkey -in FILE -out NEW`",
        ));
    }
    PrivateKeyDer::from_pem_slice(bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => unusable("holds no private key; name a PEM file with \"BEGIN PRIVATE KEY\" in it"),
        // The reader's own words repeat what it read: the key.
        _ => unusable("is not well-formed PEM"),
    })
}

/// What is wrong with a certificate and a key of which each could be read.
pub(super) fn unusable_pair(settings: &TlsSettings, error: &Error) -> TlsError {
    let certificate = settings.certificate.display();
    let (file, path, why) = match error {
        Error::InconsistentKeys(_) => {
            let why = format!("is not the key of the certificate in {certificate}; name the two that belong together");
            (TlsFile::Key, &settings.key, why)
        }
        Error::InvalidCertificate(error) => {
            let why = format!("holds a certificate that cannot be used: {error}");
            (TlsFile::Certificate, &settings.certificate, why)
        }
        error => (TlsFile::Key, &settings.key, format!("holds a key that cannot be used: {error}")),
    };
    TlsError { file, path: path.clone(), why }
}
