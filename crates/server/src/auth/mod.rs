//! Who calls: which credential a request shows, and whose it is.
//!
//! `Auth` is the one source of what is enforced and of what the cards and the metadata say of it. Without a credential in
//! its settings everybody is the anonymous caller. Of several credentials the first decides (`Authorization`, then the
//! headers of API keys, then the certificate): if it does not count, the request is refused although another one would.

mod card_security;
mod challenge;
pub mod jwt;
mod presented;
mod refusal_log;
mod resource_metadata;
mod static_credentials;

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, header};
use sabir_engine::CREDENTIAL_PREFIX;
use sabir_model::{Caller, Error, Owner};

pub use static_credentials::{Credential, Digest, Grant, random_secret};

use jwt::{Issuers, JwtRefusal, Verified};
use presented::Presented;
pub(crate) use refusal_log::RefusalLog;
pub(crate) use resource_metadata::resource_path;
use static_credentials::CredentialTable;

use crate::tls::PeerCertificate;

/// What callers may show. With none of these, nobody is asked.
#[derive(Debug, Clone, Default)]
pub struct AuthSettings {
    /// Shown as `Authorization: Bearer`.
    pub tokens: Vec<Credential>,
    /// Shown in a header of their own.
    pub api_keys: Vec<ApiKey>,
    /// Whose signed tokens count, shown as `Authorization: Bearer` too.
    pub issuers: Arc<Issuers>,
    /// What a verified client certificate allows; `None`: it is no credential.
    pub certificates: Option<CertificateGrant>,
}

/// What callers with a client certificate may do. The certificate says who they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateGrant {
    pub scopes: Vec<String>,
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peer {
    /// `None`: this server is mounted in another one, which has the connection.
    pub(crate) address: Option<IpAddr>,
    /// Verified, and not expired.
    pub(crate) certificate: Option<Arc<PeerCertificate>>,
}

/// A key in a header.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// In lower case.
    pub header: String,
    pub credential: Credential,
}

/// Finds out who calls.
pub(crate) struct Auth {
    tokens: CredentialTable,
    /// One table for each header.
    api_keys: Vec<(String, CredentialTable)>,
    issuers: Arc<Issuers>,
    certificate_scopes: Option<Arc<[String]>>,
}

impl Auth {
    pub(crate) fn new(settings: &AuthSettings) -> Self {
        let mut headers: Vec<&str> = settings.api_keys.iter().map(|key| key.header.as_str()).collect();
        headers.sort_unstable();
        headers.dedup();
        let table_of = |header: &str| {
            let own = settings.api_keys.iter().filter(|key| key.header == header);
            CredentialTable::new("key", own.map(|key| &key.credential))
        };
        Self {
            tokens: CredentialTable::new("token", settings.tokens.iter()),
            api_keys: headers.into_iter().map(|header| (header.to_owned(), table_of(header))).collect(),
            issuers: settings.issuers.clone(),
            certificate_scopes: settings.certificates.as_ref().map(|grant| grant.scopes.clone().into()),
        }
    }

    /// Takes these tokens and keys from now on, and no others.
    ///
    /// # Errors
    /// One is of a kind that the server has not taken so far: cards and challenges say which ones are taken.
    pub(crate) fn reload(&self, tokens: &[Credential], api_keys: &[ApiKey]) -> Result<(), String> {
        if !tokens.is_empty() && !self.takes_tokens() {
            return Err("the server has taken no bearer tokens so far; restart it to begin with them".into());
        }
        if let Some(key) = api_keys.iter().find(|key| !self.key_headers().any(|header| header == key.header)) {
            return Err(format!(
                "the server has taken no keys in {} so far; restart it to begin with them",
                key.header
            ));
        }
        self.tokens.replace(tokens.iter());
        for (header, table) in &self.api_keys {
            table.replace(api_keys.iter().filter(|key| key.header == *header).map(|key| &key.credential));
        }
        Ok(())
    }

    /// Whether callers must show a credential.
    pub(crate) fn is_required(&self) -> bool {
        self.takes_bearer() || !self.api_keys.is_empty() || self.takes_certificates()
    }

    /// The headers that API keys are shown in.
    pub(crate) fn key_headers(&self) -> impl Iterator<Item = &str> {
        self.api_keys.iter().map(|(header, _)| header.as_str())
    }

    fn takes_certificates(&self) -> bool {
        self.certificate_scopes.is_some()
    }

    /// Whether a credential may be shown as `Authorization: Bearer`.
    fn takes_bearer(&self) -> bool {
        self.takes_tokens() || !self.issuers.is_empty()
    }

    fn takes_tokens(&self) -> bool {
        self.tokens.is_used()
    }

    /// The credential of a program that works on a task, if the request shows one (`sabir_engine::ProgramCredential`).
    ///
    /// # Errors
    /// What the request shows is malformed.
    pub(crate) fn program_credential<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a [u8]>, Error> {
        if !headers.contains_key(header::AUTHORIZATION) {
            return Ok(None);
        }
        Ok(match Presented::find(headers, std::iter::empty())? {
            Presented::Bearer(token) if token.starts_with(CREDENTIAL_PREFIX.as_bytes()) => Some(token),
            Presented::Bearer(_) | Presented::OtherScheme | Presented::ApiKey { .. } | Presented::Nothing => None,
        })
    }

    /// Who calls. The error says what is missing, and nothing of what was shown.
    pub(crate) async fn caller(&self, headers: &HeaderMap, peer: &Peer) -> Result<Caller, Error> {
        if !self.is_required() {
            return match self.program_credential(headers) {
                // It limits what its program may do, so it is not taken for nothing.
                Ok(Some(_)) => Err(refused("the credential of a program counts at /mcp only")),
                // Whatever else is shown, nobody asks for it.
                Ok(None) | Err(_) => Ok(Caller::anonymous().from_peer(peer.address)),
            };
        }
        let caller = match Presented::find(headers, self.key_headers())? {
            Presented::Bearer(token) if self.takes_bearer() => self.bearer(token).await?,
            Presented::ApiKey { header, key } => {
                let table = self.api_keys.iter().find(|(name, _)| name == header).map(|(_, table)| table);
                table.and_then(|table| table.find(key)).ok_or_else(|| refused("the API key is not known"))?
            }
            Presented::Bearer(_) | Presented::OtherScheme => {
                return Err(refused(format!("this kind of credential is not taken; {}", self.wanted())));
            }
            Presented::Nothing => self
                .caller_of_certificate(peer)
                .ok_or_else(|| refused(format!("a credential is required: {}", self.wanted())))?,
        };
        Ok(caller.from_peer(peer.address))
    }

    /// A credential in a header comes first: programs that share a certificate may act for different callers.
    fn caller_of_certificate(&self, peer: &Peer) -> Option<Caller> {
        let (certificate, scopes) = (peer.certificate.as_ref()?, self.certificate_scopes.as_ref()?);
        let mut caller = Caller::from(Owner::new("", &format!("cert:{}", certificate.uri)));
        caller.scopes = Some(scopes.clone());
        Some(caller)
    }

    async fn bearer(&self, token: &[u8]) -> Result<Caller, Error> {
        if let Some(caller) = self.tokens.find(token) {
            return Ok(caller);
        }
        let unknown = || refused("the bearer token is not known");
        let token = std::str::from_utf8(token).map_err(|_| unknown())?;
        if self.issuers.is_empty() || !Issuers::looks_like_jwt(token) {
            return Err(unknown());
        }
        match self.issuers.verify(token).await {
            Ok(verified) => Ok(caller_of(&verified)),
            Err(JwtRefusal::KeysUnavailable { .. }) => Err(Error::IdentityUnavailable),
            Err(refusal) => Err(refused(refusal.to_string())),
        }
    }

    /// What callers can show, in words.
    fn wanted(&self) -> String {
        let bearer = self.takes_bearer().then(|| "send Authorization: Bearer TOKEN".to_owned());
        let keys = self.api_keys.iter().map(|(header, _)| format!("send {header}: KEY"));
        let certificate = self.takes_certificates().then(|| "connect with a client certificate".to_owned());
        bearer.into_iter().chain(keys).chain(certificate).collect::<Vec<_>>().join(", or ")
    }
}

/// The issuer is before the `#`, which no issuer has in its own name.
fn caller_of(verified: &Verified) -> Caller {
    let subject = format!("{}#{}", verified.issuer, verified.subject);
    Caller::new(verified.tenant.as_deref().unwrap_or_default(), &subject).with_scopes(verified.scopes.iter().cloned())
}

fn refused(why: impl Into<String>) -> Error {
    Error::Unauthenticated(why.into())
}

#[cfg(test)]
mod tests;
