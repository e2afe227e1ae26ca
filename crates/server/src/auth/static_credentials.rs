//! Credentials that the configuration lists: their digests, and who has them.
//!
//! A presented secret is looked up by its SHA-256 digest. The secrets are long and random (`sabir token new`), so neither a
//! slow hash nor a salt would add anything. Whoever measures how long a look-up takes learns about the digest of what it
//! sent, which it cannot steer towards the digest of another secret; the digests are compared in constant time all the same.

use std::collections::HashMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use sabir_model::{Caller, Owner};

/// A secret as the configuration keeps it, and what it grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    pub digest: Digest,
    pub grant: Grant,
}

/// Who has a credential, and what it allows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grant {
    pub subject: String,
    /// Empty: none.
    pub tenant: String,
    pub scopes: Vec<String>,
}

/// The SHA-256 digest of a secret. Its text form is `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

const PREFIX: &str = "sha256:";

impl Digest {
    pub fn of(secret: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, secret).as_ref());
        Self(bytes)
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == 64)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let digit = |letter: u8| char::from(letter).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// Never shown by accident, although nobody gets back to the secret from it.
impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("sha256:...")
    }
}

/// Callers by the digests of their secrets. The secrets may change while the server runs; that there are some may not, so
/// that no edit of a file opens a server to everybody.
pub(super) struct CredentialTable {
    /// Qualifies the subjects: the alice of a token is not the alice of a key.
    kind: &'static str,
    is_used: bool,
    callers: RwLock<HashMap<Digest, Caller>>,
}

impl CredentialTable {
    pub(super) fn new<'a>(kind: &'static str, credentials: impl Iterator<Item = &'a Credential>) -> Self {
        let callers = callers(kind, credentials);
        Self { kind, is_used: !callers.is_empty(), callers: RwLock::new(callers) }
    }

    /// Whether credentials of this kind are taken.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Only these count from now on.
    pub(super) fn replace<'a>(&self, credentials: impl Iterator<Item = &'a Credential>) {
        *self.callers.write().unwrap_or_else(PoisonError::into_inner) = callers(self.kind, credentials);
    }

    /// Whose secret it is.
    pub(super) fn find(&self, secret: &[u8]) -> Option<Caller> {
        let presented = Digest::of(secret);
        let callers = self.callers.read().unwrap_or_else(PoisonError::into_inner);
        let (known, caller) = callers.get_key_value(&presented)?;
        verify_slices_are_equal(&known.0, &presented.0).ok().map(|()| caller.clone())
    }
}

fn callers<'a>(kind: &str, credentials: impl Iterator<Item = &'a Credential>) -> HashMap<Digest, Caller> {
    let caller = |grant: &Grant| {
        let owner = Owner::new(&grant.tenant, &format!("{kind}:{}", grant.subject));
        Caller::from(owner).with_scopes(grant.scopes.iter().map(String::as_str))
    };
    credentials.map(|each| (each.digest, caller(&each.grant))).collect()
}

/// A new secret that nobody can guess: 256 random bits.
pub fn random_secret() -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bytes = [0; 43];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers");
    let letters = bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte & 63)]));
    // The prefix lets scanners of repositories recognise a leaked one.
    std::iter::once("sabir_").map(str::to_owned).chain(letters.map(String::from)).collect()
}
