//! The private key that a server signs its cards with: ES256 (P-256) or EdDSA (Ed25519).

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use sabir_model::{Base64, Signature, base64url, from_base64url};
use serde_json::json;

/// PKCS#8 in base64 follows: a PEM file in one line.
const PREFIX: &str = "sabir-card-key-";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAlgorithm {
    Es256,
    EdDsa,
}

#[derive(Clone)]
pub struct CardKey(Arc<Pair>);

enum Pair {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

/// Why a text is no key for cards. It never repeats the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCardKey {
    #[error("it is neither PEM nor a key of `sabir key new --card`")]
    Unknown,
    #[error("it is a public key or a certificate; cards are signed with the private key")]
    Public,
    #[error("it is encrypted; `openssl pkcs8 -in FILE` removes the passphrase")]
    Encrypted,
    #[error("it is cut off or damaged")]
    Damaged,
    #[error("it is of another kind; cards are signed with keys of P-256 (ES256) or Ed25519 (EdDSA)")]
    Kind,
}

impl CardKey {
    /// A new random key.
    pub fn generate(algorithm: KeyAlgorithm) -> Self {
        let made = "the system has random numbers";
        Self(Arc::new(match algorithm {
            KeyAlgorithm::Es256 => Pair::Es256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect(made)),
            KeyAlgorithm::EdDsa => Pair::EdDsa(Ed25519KeyPair::generate().expect(made)),
        }))
    }

    /// The key as it is written into a configuration.
    pub fn to_text(&self) -> String {
        let written = "a key that was made can be written";
        let document = match &*self.0 {
            Pair::Es256(pair) => pair.to_pkcs8v1().expect(written),
            // The version that OpenSSL reads as well.
            Pair::EdDsa(pair) => pair.to_pkcs8v1().expect(written),
        };
        format!("{PREFIX}{}", base64url(document.as_ref()))
    }

    /// Reads PEM (`PRIVATE KEY`, `EC PRIVATE KEY`) or what `to_text` wrote.
    pub fn parse(text: &str) -> Result<Self, InvalidCardKey> {
        let text = text.trim();
        let der = match text.strip_prefix(PREFIX) {
            Some(encoded) => from_base64url(encoded).ok_or(InvalidCardKey::Damaged)?,
            None => der_of_pem(text)?,
        };
        let es256 = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).map(Pair::Es256);
        let pair = es256.or_else(|_| Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map(Pair::EdDsa));
        let pair = pair.map_err(|_| match is_whole_der(&der) {
            true => InvalidCardKey::Kind,
            false => InvalidCardKey::Damaged,
        })?;
        Ok(Self(Arc::new(pair)))
    }

    pub fn algorithm(&self) -> KeyAlgorithm {
        match &*self.0 {
            Pair::Es256(_) => KeyAlgorithm::Es256,
            Pair::EdDsa(_) => KeyAlgorithm::EdDsa,
        }
    }

    /// The thumbprint of the public key (RFC 7638).
    pub fn kid(&self) -> String {
        // The required members alone, sorted.
        let members = match &*self.0 {
            Pair::Es256(_) => {
                let (x, y) = self.point();
                format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#)
            }
            Pair::EdDsa(pair) => {
                format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, base64url(pair.public_key().as_ref()))
            }
        };
        base64url(digest(&SHA256, members.as_bytes()).as_ref())
    }

    /// The public half as a JSON object, for a key set.
    pub fn jwk(&self) -> String {
        let kid = self.kid();
        match &*self.0 {
            Pair::Es256(_) => {
                let (x, y) = self.point();
                format!(r#"{{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"{kid}","x":"{x}","y":"{y}"}}"#)
            }
            Pair::EdDsa(pair) => {
                let x = base64url(pair.public_key().as_ref());
                format!(r#"{{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"{kid}","x":"{x}"}}"#)
            }
        }
    }

    /// The signature of a card with this payload; `jku` is where the public half can be had.
    pub fn sign(&self, payload: &str, jku: &str) -> Signature {
        let header = json!({"alg": self.algorithm().name(), "jku": jku, "kid": self.kid(), "typ": "JOSE"});
        let protected = base64url(header.to_string().as_bytes());
        let signed = format!("{protected}.{}", base64url(payload.as_bytes()));
        let signature = match &*self.0 {
            Pair::Es256(pair) => {
                pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("a key that was read can sign")
            }
            Pair::EdDsa(pair) => pair.sign(signed.as_bytes()),
        };
        Signature { protected, signature: base64url(signature.as_ref()), header: None }
    }

    /// The two coordinates of a public key on P-256.
    fn point(&self) -> (String, String) {
        let Pair::Es256(pair) = &*self.0 else { return Default::default() };
        // 4, x, y.
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        (base64url(x), base64url(y))
    }
}

impl KeyAlgorithm {
    /// As `alg` has it.
    pub fn name(self) -> &'static str {
        match self {
            KeyAlgorithm::Es256 => "ES256",
            KeyAlgorithm::EdDsa => "EdDSA",
        }
    }
}

impl fmt::Debug for CardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CardKey({})", self.kid())
    }
}

fn der_of_pem(text: &str) -> Result<Vec<u8>, InvalidCardKey> {
    // OpenSSL writes the parameters of a curve before the key.
    let start = text.find("-----BEGIN ").filter(|_| text.contains("PRIVATE KEY-----"));
    let start =
        start.ok_or(if text.contains("-----BEGIN ") { InvalidCardKey::Public } else { InvalidCardKey::Unknown })?;
    let mut rest = &text[start..];
    loop {
        let after = rest.split_once("-----BEGIN ").ok_or(InvalidCardKey::Damaged)?.1;
        let (label, body) = after.split_once("-----").ok_or(InvalidCardKey::Damaged)?;
        let (body, next) = body.split_once("-----END ").ok_or(InvalidCardKey::Damaged)?;
        match label {
            "PRIVATE KEY" | "EC PRIVATE KEY" => {
                if body.contains("ENCRYPTED") {
                    return Err(InvalidCardKey::Encrypted);
                }
                let digits: String = body.split_whitespace().collect();
                return Base64::parse(digits).map(|base64| base64.decode()).ok_or(InvalidCardKey::Damaged);
            }
            "ENCRYPTED PRIVATE KEY" => return Err(InvalidCardKey::Encrypted),
            "RSA PRIVATE KEY" | "DSA PRIVATE KEY" | "OPENSSH PRIVATE KEY" => return Err(InvalidCardKey::Kind),
            _ => rest = next,
        }
    }
}

/// Whether this is one DER sequence from its beginning to its end.
fn is_whole_der(der: &[u8]) -> bool {
    let Some((0x30, rest)) = der.split_first().map(|(tag, rest)| (*tag, rest)) else { return false };
    match rest {
        [length @ 0..=0x7f, content @ ..] => content.len() == usize::from(*length),
        [0x81, length, content @ ..] => content.len() == usize::from(*length),
        [0x82, high, low, content @ ..] => content.len() == usize::from(u16::from_be_bytes([*high, *low])),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jose::{KeySet, ProtectedHeader};

    const BOTH: [KeyAlgorithm; 2] = [KeyAlgorithm::Es256, KeyAlgorithm::EdDsa];

    fn pem(label: &str, base64: &str) -> String {
        format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n")
    }

    #[test]
    fn a_key_is_read_back_from_its_text_and_from_pem() {
        for algorithm in BOTH {
            let key = CardKey::generate(algorithm);
            let text = key.to_text();
            let der = from_base64url(text.strip_prefix(PREFIX).unwrap()).unwrap();
            let pem = pem("PRIVATE KEY", Base64::encode(&der).as_str());
            for text in [format!("{text}\n"), pem.clone(), format!("comment\n{pem}"), pem.replace('\n', "\r\n")] {
                let read = CardKey::parse(&text).unwrap();
                assert_eq!((read.jwk(), read.algorithm()), (key.jwk(), algorithm));
            }
            assert!(!format!("{key:?}").contains(&text[20..]));
        }
    }

    #[test]
    fn keys_of_openssl() {
        let parameters = pem("EC PARAMETERS", "BggqhkjOPQMBBw==");
        let sec1 = "MHcCAQEEIO9ENmZryAJvY5fTXc779ktt0c19yp5rWgDs75IMAC/noAoGCCqGSM49\n\
            AwEHoUQDQgAEn6oYKtiKgvbpiDbtE9cnXrN/2Tuv1L2hVnCzKB5iTzt/n6w3Rxa7\n/QlzjdO/hRtrFL8VwnfPmZZ+0FgdTRjuBQ==";
        let p384 = "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDA5s23nDhnbBgtcImXz\n\
            VlWj+xZKHwafU54u5NzkfDt/Fc0przcLaPYi7fUMHfHAEO6hZANiAAT/XWbJjK5W\n\
            kuyYiKL6/Vd/bMKVVu2JgR473w0Z9IAHCp/HxE1imXK3HFIvZ3JbL39fBm2syRNm\n\
            lzCiFWV0U8chUIAjYSaLYnUbAd8ycj44mWLMC+4KmqCxMUJ7+N7V8Pg=";
        let ed25519 = "MC4CAQAwBQYDK2VwBCIEICHkyOFqjYKbKBVW1Hh+geFVjZDamuGFqYpvrPUnyYKe";
        for (text, expected) in [
            // `openssl ecparam -genkey -name prime256v1`, and secp384r1 through `openssl pkcs8 -topk8 -nocrypt`.
            (parameters + &pem("EC PRIVATE KEY", sec1), Ok(KeyAlgorithm::Es256)),
            (pem("PRIVATE KEY", p384), Err(InvalidCardKey::Kind)),
            // `openssl genpkey -algorithm ed25519`.
            (pem("PRIVATE KEY", ed25519), Ok(KeyAlgorithm::EdDsa)),
        ] {
            assert_eq!(CardKey::parse(&text).map(|key| key.algorithm()), expected, "{text}");
        }
        // The thumbprint that RFC 8037 gives for its key.
        let seed =
            [&[0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20][..], &RFC_8037_SEED].concat();
        let key = CardKey::parse(&pem("PRIVATE KEY", Base64::encode(&seed).as_str())).unwrap();
        assert_eq!(key.kid(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }

    const RFC_8037_SEED: [u8; 32] = [
        0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44, 0x49,
        0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
    ];

    #[test]
    fn what_is_no_key_is_refused_with_the_reason() {
        let text = CardKey::generate(KeyAlgorithm::Es256).to_text();
        for (text, expected) in [
            ("", InvalidCardKey::Unknown),
            ("sabir-signing-key-00", InvalidCardKey::Unknown),
            (&text[..text.len() - 8], InvalidCardKey::Damaged),
            (&format!("{text}!"), InvalidCardKey::Damaged),
            (&pem("PUBLIC KEY", "AAAA"), InvalidCardKey::Public),
            (&pem("CERTIFICATE", "AAAA"), InvalidCardKey::Public),
            (&pem("ENCRYPTED PRIVATE KEY", "AAAA"), InvalidCardKey::Encrypted),
            (&pem("EC PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nAAAA"), InvalidCardKey::Encrypted),
            (&pem("RSA PRIVATE KEY", "AAAA"), InvalidCardKey::Kind),
            (&pem("PRIVATE KEY", "*"), InvalidCardKey::Damaged),
            (&pem("PRIVATE KEY", "AAAA"), InvalidCardKey::Damaged),
            (&pem("PRIVATE KEY", "MAMCAQA="), InvalidCardKey::Kind),
            ("-----BEGIN PRIVATE KEY-----\nMC4C", InvalidCardKey::Damaged),
        ] {
            assert_eq!(CardKey::parse(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_signed_is_verified_with_the_published_half() {
        for algorithm in BOTH {
            let key = CardKey::generate(algorithm);
            let keys = KeySet::parse(format!(r#"{{"keys":[{}]}}"#, key.jwk()).as_bytes()).unwrap();
            let signature = key.sign("{}", "https://a.example/.well-known/jwks.json");
            let header = ProtectedHeader::read(&signature).unwrap();
            assert_eq!(header.jku.as_deref(), Some("https://a.example/.well-known/jwks.json"));
            assert_eq!((&header.kid, header.algorithm.name()), (&key.kid(), algorithm.name()));
            let found = keys.find(&header.kid).next().unwrap();
            assert!(found.verifies(&header, &signature, "{}").unwrap());
            assert!(!found.verifies(&header, &signature, "{ }").unwrap());
        }
    }
}
