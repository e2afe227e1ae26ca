//! Real keys of an issuer: they publish themselves as JWKs and sign tokens.

use aws_lc_rs::encoding::AsBigEndian;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaKeyPair,
};
use aws_lc_rs::{hmac, signature};
use sabir_model::Base64;
use serde_json::{Value, json};

/// A key pair with the id under which it is published.
pub struct IssuerKey {
    pub id: Option<String>,
    /// The key's `alg`.
    published_algorithm: Option<&'static str>,
    /// What `token` signs with.
    algorithm: &'static str,
    pair: Pair,
}

enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair, &'static str),
    Ed(Ed25519KeyPair),
}

impl IssuerKey {
    /// A new key for an algorithm of RFC 7518, such as `RS256`.
    pub fn generate(id: &str, algorithm: &'static str) -> Self {
        let ec = |kind: &'static EcdsaSigningAlgorithm, curve| Pair::Ec(EcdsaKeyPair::generate(kind).unwrap(), curve);
        let pair = match algorithm {
            "ES256" => ec(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256"),
            "ES384" => ec(&ECDSA_P384_SHA384_FIXED_SIGNING, "P-384"),
            "EdDSA" => Pair::Ed(Ed25519KeyPair::generate().unwrap()),
            _ => Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()),
        };
        IssuerKey { id: Some(id.to_owned()), published_algorithm: Some(algorithm), algorithm, pair }
    }

    /// Published without an `alg`.
    pub fn for_any_algorithm(self) -> Self {
        IssuerKey { published_algorithm: None, ..self }
    }

    /// Published, and used, without a `kid`.
    pub fn without_id(self) -> Self {
        IssuerKey { id: None, ..self }
    }

    /// The public half as RFC 7517 spells it.
    pub fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Rsa(pair) => {
                let public = pair.public_key();
                let (modulus, exponent) = der_integers(public.as_ref());
                json!({"kty": "RSA", "n": base64url(modulus), "e": base64url(exponent)})
            }
            Pair::Ec(pair, curve) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                json!({"kty": "EC", "crv": curve, "x": base64url(x), "y": base64url(y)})
            }
            Pair::Ed(pair) => json!({"kty": "OKP", "crv": "Ed25519", "x": base64url(pair.public_key().as_ref())}),
        };
        jwk["use"] = json!("sig");
        if let Some(id) = &self.id {
            jwk["kid"] = json!(id);
        }
        if let Some(algorithm) = self.published_algorithm {
            jwk["alg"] = json!(algorithm);
        }
        jwk
    }

    /// A key that is published with its private half, by accident.
    pub fn leaked_jwk(&self) -> Value {
        let mut jwk = self.jwk();
        let Pair::Ec(pair, _) = &self.pair else { panic!("a key on a curve") };
        jwk["d"] = json!(base64url(pair.private_key().as_be_bytes().unwrap().as_ref()));
        jwk
    }

    /// The header that honest tokens of this key have.
    pub fn header(&self) -> Value {
        let mut header = json!({"alg": self.algorithm, "typ": "at+jwt"});
        if let Some(id) = &self.id {
            header["kid"] = json!(id);
        }
        header
    }

    /// A token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        self.token_of(&self.header().to_string(), &claims.to_string())
    }

    /// A token with this text as its header and this text as its claims, whatever they are.
    pub fn token_of(&self, header: &str, claims: &str) -> String {
        let message = message(header, claims);
        let signature = self.sign(self.algorithm, message.as_bytes());
        format!("{message}.{}", base64url(&signature))
    }

    /// The raw signature with an algorithm of this kind of key.
    pub fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ec(pair, _) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let encoding: &dyn signature::RsaEncoding = match algorithm {
                    "RS256" => &RSA_PKCS1_SHA256,
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    other => panic!("no algorithm of RSA: {other}"),
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }
}

/// What is signed of a token.
pub fn message(header: &str, claims: &str) -> String {
    format!("{}.{}", base64url(header.as_bytes()), base64url(claims.as_bytes()))
}

/// A token that is signed with a shared secret.
pub fn hmac_token(header: &str, claims: &str, secret: &[u8]) -> String {
    let message = message(header, claims);
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    format!("{message}.{}", base64url(hmac::sign(&key, message.as_bytes()).as_ref()))
}

pub fn base64url(bytes: &[u8]) -> String {
    let text = Base64::encode(bytes);
    text.as_str().trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// The two numbers of an RSA public key in DER: `SEQUENCE { INTEGER, INTEGER }`.
fn der_integers(der: &[u8]) -> (&[u8], &[u8]) {
    let (sequence, _) = der_value(der);
    let (modulus, rest) = der_value(sequence);
    let (exponent, _) = der_value(rest);
    // A zero stands before numbers whose first bit would make them negative.
    (&modulus[modulus.iter().position(|byte| *byte != 0).unwrap()..], exponent)
}

/// The content of the first value, and what follows it.
fn der_value(der: &[u8]) -> (&[u8], &[u8]) {
    let (length, start) = match der[1] {
        short @ 0..=127 => (usize::from(short), 2),
        long => {
            let digits = usize::from(long & 127);
            (der[2..2 + digits].iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), 2 + digits)
        }
    };
    der[start..].split_at(length)
}
