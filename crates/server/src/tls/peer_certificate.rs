//! What a client's certificate says of its holder.
//!
//! The subject is a URI of the certificate's alternative names, as SPIFFE has it. If there are several, it is the first
//! that begins with `spiffe://`, else the first. A certificate without one names nobody that rules could be written for,
//! and all requests that come with it are refused.

use std::time::SystemTime;

use aws_lc_rs::digest;
use rustls::ServerConnection;
use rustls::pki_types::CertificateDer;

use super::der;

/// A longer name would be a burden for every row that names its owner.
const LONGEST_URI: usize = 1024;

/// The certificate of a client, which an authority of `TlsSettings::clients` has signed, and which was valid when the
/// connection was made. Requests after `not_after` are refused before they get here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCertificate {
    /// The subject. Visible ASCII only.
    pub uri: String,
    /// The SHA-256 of the certificate, in hexadecimal digits.
    pub fingerprint: String,
    pub not_after: SystemTime,
}

impl PeerCertificate {
    fn read(certificate: &CertificateDer<'_>) -> Result<Self, &'static str> {
        let fields = der::read(certificate).ok_or("the client certificate cannot be read")?;
        let spiffe = fields.uris.iter().find(|uri| uri.starts_with("spiffe://"));
        let uri = *spiffe.or(fields.uris.first()).ok_or(
            "the client certificate has no URI among its alternative names, so it does not say who calls; \
             use one that has",
        )?;
        if uri.is_empty() || uri.len() > LONGEST_URI || !uri.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the URI of the client certificate is empty, too long or not ASCII");
        }
        let digest = digest::digest(&digest::SHA256, certificate);
        let fingerprint = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { uri: uri.to_owned(), fingerprint, not_after: fields.not_after })
    }
}

/// What the client of a TLS connection has shown.
#[derive(Debug)]
pub(crate) enum ClientCertificate {
    None,
    Known(std::sync::Arc<PeerCertificate>),
    /// It was signed by an authority that is trusted, and does not say who its holder is.
    Unusable(&'static str),
}

/// Of a connection whose handshake is complete. A resumed session has the certificate of its first handshake.
pub(crate) fn client_certificate(session: &ServerConnection) -> ClientCertificate {
    let Some(certificate) = session.peer_certificates().and_then(<[_]>::first) else { return ClientCertificate::None };
    match PeerCertificate::read(certificate) {
        Ok(known) => ClientCertificate::Known(known.into()),
        Err(why) => ClientCertificate::Unusable(why),
    }
}

impl ClientCertificate {
    /// Why no request may come with it now; `None`: it may.
    pub(crate) fn refuses(&self, now: SystemTime) -> Option<&'static str> {
        match self {
            ClientCertificate::None => None,
            ClientCertificate::Unusable(why) => Some(why),
            ClientCertificate::Known(known) => (now > known.not_after)
                .then_some("the client certificate has expired since the connection was made; connect with a new one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::pki_types::pem::PemObject;
    use sabir_testkit::certificates::{Authority, Wanted};

    use super::*;

    fn read(wanted: &Wanted) -> Result<PeerCertificate, &'static str> {
        let issued = Authority::new("clients").issue(wanted);
        PeerCertificate::read(&CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap())
    }

    #[test]
    fn the_subject_is_a_uri_of_the_certificate() {
        let long = format!("spiffe://{}", "x".repeat(LONGEST_URI));
        for (uris, expected) in [
            (&["spiffe://example.org/alice"][..], "spiffe://example.org/alice"),
            (&["https://example.org/alice", "spiffe://example.org/alice", "spiffe://b"], "spiffe://example.org/alice"),
            (&["https://example.org/alice", "urn:alice"], "https://example.org/alice"),
            (&[], "has no URI"),
            (&["urn:a lice"], "not ASCII"),
            (&["urn:alice\n"], "not ASCII"),
            (&[""], "empty"),
            (&[&long], "too long"),
        ] {
            // A name of a host beside it says nothing of who calls.
            let wanted = Wanted { hosts: vec!["alice.example".into()], ..Wanted::client(uris) };
            let told = read(&wanted).map_or_else(str::to_owned, |known| known.uri);
            assert!(told.contains(expected), "{uris:?}: {told}");
        }
    }

    #[test]
    fn a_certificate_counts_until_it_expires() {
        let not_after = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        let known = read(&Wanted { not_after, ..Wanted::client(&["urn:alice"]) }).unwrap();
        assert_eq!(known.not_after, not_after);
        assert!(known.fingerprint.len() == 64 && known.fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let client = ClientCertificate::Known(known.into());
        for (now, is_refused) in [(not_after - Duration::from_secs(1), false), (not_after, false)] {
            assert_eq!(client.refuses(now).is_some(), is_refused);
        }
        assert!(client.refuses(not_after + Duration::from_secs(1)).is_some_and(|why| why.contains("expired")));
        assert_eq!(ClientCertificate::None.refuses(not_after), None);
    }
}
