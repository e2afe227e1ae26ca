//! A token in its three parts, with the header read. Nothing in it is trusted yet.
//!
//! `jwk`, `jku`, `x5c` and `x5u` of a header offer a key or say where to get one. They are not read: only the issuer's
//! published keys count.

use sabir_model::from_base64url;

use super::algorithm::JwtAlgorithm;
use super::json_object::JsonObject;
use super::refusal::JwtRefusal;

/// The largest token that is read; heads of requests are limited to about the same.
pub(super) const LARGEST_TOKEN: usize = 16 * 1024;

/// Key ids are names; longer ones are somebody's attempt.
const LONGEST_KEY_ID: usize = 1024;

pub(super) struct CompactToken<'t> {
    pub(super) algorithm: JwtAlgorithm,
    pub(super) key_id: Option<String>,
    /// JSON, if the token is honest.
    pub(super) claims: Vec<u8>,
    /// What was signed.
    pub(super) message: &'t [u8],
    pub(super) signature: Vec<u8>,
}

impl<'t> CompactToken<'t> {
    pub(super) fn parse(token: &'t str) -> Result<Self, JwtRefusal> {
        if token.len() > LARGEST_TOKEN {
            return Err(JwtRefusal::TooLarge);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(NO_PARTS)?;
        let (header, claims) = message.split_once('.').ok_or(NO_PARTS)?;
        if claims.contains('.') {
            return Err(NO_PARTS);
        }
        let header = from_base64url(header).ok_or(NO_BASE64)?;
        let (algorithm, key_id) = read_header(&header)?;
        Ok(CompactToken {
            algorithm,
            key_id,
            claims: from_base64url(claims).ok_or(NO_BASE64)?,
            message: message.as_bytes(),
            signature: from_base64url(signature).ok_or(NO_BASE64)?,
        })
    }
}

const NO_PARTS: JwtRefusal = JwtRefusal::Malformed("it does not have three parts");
const NO_BASE64: JwtRefusal = JwtRefusal::Malformed("a part of it is not base64url");
const NO_HEADER: JwtRefusal = JwtRefusal::Malformed("its header is not usable");

fn read_header(bytes: &[u8]) -> Result<(JwtAlgorithm, Option<String>), JwtRefusal> {
    let header = JsonObject::parse(bytes).ok_or(NO_HEADER)?;
    let text = |name: &str| header.text(name).map_err(|()| NO_HEADER);
    // RFC 7515, section 4.1.11: whoever does not know all that it lists must refuse the token. We know none of it.
    if header.contains("crit") {
        return Err(JwtRefusal::CriticalHeader);
    }
    let name = text("alg")?.ok_or(NO_HEADER)?;
    let algorithm = JwtAlgorithm::parse(&name).ok_or(JwtRefusal::Algorithm)?;
    if text("typ")?.is_some_and(|name| !is_access_token(&name)) {
        return Err(JwtRefusal::TokenType);
    }
    let key_id = text("kid")?;
    if key_id.as_ref().is_some_and(|id| id.len() > LONGEST_KEY_ID) {
        return Err(NO_HEADER);
    }
    Ok((algorithm, key_id))
}

/// `typ` keeps apart what an issuer signs for other purposes with the same key: logout tokens, DPoP proofs and the like.
fn is_access_token(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("application/").unwrap_or(&name);
    matches!(name, "jwt" | "at+jwt")
}
