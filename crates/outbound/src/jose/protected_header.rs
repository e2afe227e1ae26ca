//! What a signature says of itself, in the part that it covers.

use sabir_model::{Signature, from_base64url};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The algorithms that prove who signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwsAlgorithm {
    Es256,
    Es384,
    EdDsa,
    Rs256,
    Ps256,
}

impl JwsAlgorithm {
    const ALL: [JwsAlgorithm; 5] =
        [JwsAlgorithm::Es256, JwsAlgorithm::Es384, JwsAlgorithm::EdDsa, JwsAlgorithm::Rs256, JwsAlgorithm::Ps256];

    pub fn name(self) -> &'static str {
        match self {
            JwsAlgorithm::Es256 => "ES256",
            JwsAlgorithm::Es384 => "ES384",
            JwsAlgorithm::EdDsa => "EdDSA",
            JwsAlgorithm::Rs256 => "RS256",
            JwsAlgorithm::Ps256 => "PS256",
        }
    }

    /// RFC 9864 has a second name for EdDSA with Ed25519.
    pub(super) fn is_called(self, name: &str) -> bool {
        self.name() == name || (self == JwsAlgorithm::EdDsa && name == "Ed25519")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedHeader {
    pub algorithm: JwsAlgorithm,
    pub kid: String,
    /// Where the signer's key set is, as the signature says.
    pub jku: Option<String>,
}

impl ProtectedHeader {
    /// An error says why such a signature cannot be accepted, whatever the key.
    pub fn read(signature: &Signature) -> Result<Self, String> {
        let bytes = from_base64url(&signature.protected).ok_or("the protected header is not base64url")?;
        // Serde would take a list for an object whose names are left out.
        let raw = serde_json::from_slice(&bytes).ok().filter(|_| bytes.trim_ascii_start().starts_with(b"{"));
        let raw: RawHeader = raw.ok_or("the protected header is not a JSON object of known form")?;
        if raw.crit.is_some() {
            return Err("it depends on extensions that Sabir does not know (crit)".to_owned());
        }
        if raw.b64.is_some_and(|b64| b64 != Value::Bool(true)) {
            return Err("its payload is not encoded (b64), which signatures of cards never are".to_owned());
        }
        if let Some(header) = &signature.header {
            let names: Map<String, Value> =
                serde_json::from_str(header.as_str()).map_err(|_| "its unprotected header is not an object")?;
            let decisive = ["alg", "kid", "jku", "crit", "b64"];
            if let Some(name) = decisive.into_iter().find(|name| names.contains_key(*name)) {
                return Err(format!("{name} is in the unprotected header, which anybody can change"));
            }
        }
        let algorithm = match raw.alg.as_deref() {
            None => return Err("it names no algorithm (alg)".to_owned()),
            Some(name) => {
                JwsAlgorithm::ALL.into_iter().find(|known| known.is_called(name)).ok_or_else(|| refusal(name))?
            }
        };
        let kid = raw.kid.filter(|kid| !kid.is_empty()).ok_or("it names no key (kid)")?;
        Ok(ProtectedHeader { algorithm, kid, jku: raw.jku.filter(|jku| !jku.is_empty()) })
    }
}

#[derive(Deserialize)]
struct RawHeader {
    alg: Option<String>,
    kid: Option<String>,
    jku: Option<String>,
    #[serde(default, deserialize_with = "present")]
    crit: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    b64: Option<Value>,
}

/// `null` is a value too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn refusal(name: &str) -> String {
    match name {
        _ if name.eq_ignore_ascii_case("none") => "it is not signed at all (alg none)".to_owned(),
        "HS256" | "HS384" | "HS512" => {
            format!("{name} is a shared secret, and that proves nothing about who signed")
        }
        _ => format!("the algorithm {} is not known", sabir_wire::excerpt(name)),
    }
}
