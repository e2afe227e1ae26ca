//! What a token claims, held against what its issuer is configured for.
//!
//! The claims are checked before the signature: that is cheap, and so a token that could not be accepted anyway never
//! makes the server fetch keys.

use serde_json::value::RawValue;

use super::json_object::JsonObject;
use super::refusal::JwtRefusal;
use super::scopes::scopes_of;
use super::settings::JwtSettings;

/// Claims that are fine if the signature is.
#[derive(Debug, PartialEq)]
pub(super) struct Claims {
    pub(super) subject: String,
    pub(super) tenant: Option<String>,
    pub(super) scopes: Vec<String>,
    /// Milliseconds since 1970.
    pub(super) expires: i64,
}

/// The longest subject or tenant in bytes; they are stored with every task.
const LONGEST_NAME: usize = 1024;

const NO_CLAIMS: JwtRefusal = JwtRefusal::Malformed("its claims are not a JSON object");

impl Claims {
    /// `now` is in milliseconds since 1970.
    pub(super) fn check(json: &[u8], settings: &JwtSettings, now: i64) -> Result<Self, JwtRefusal> {
        let claims = JsonObject::parse(json).ok_or(NO_CLAIMS)?;
        check_issuer(&claims, settings)?;
        check_audience(&claims, settings)?;
        let expires = check_times(&claims, settings, now as f64 / 1000.0)?;
        // RFC 7800: such a token is worth nothing without the proof of its key. Taken as a bearer token it would be weaker
        // than its issuer made it.
        if claims.contains("cnf") {
            return Err(JwtRefusal::SenderConstrained);
        }
        let subject = claims.find(&settings.subject_claim).and_then(name).ok_or(JwtRefusal::Subject)?;
        let tenant = match settings.tenant_claim.as_ref().and_then(|claim| claims.find(claim)) {
            Some(json) => Some(name(json).ok_or(JwtRefusal::Tenant)?),
            None => None,
        };
        let scopes = scopes_of(&claims, settings);
        Ok(Claims { subject, tenant, scopes, expires: (expires * 1000.0) as i64 })
    }
}

/// The issuer that a token names, before anything about it is known.
pub(super) fn unverified_issuer(json: &[u8]) -> Result<String, JwtRefusal> {
    let claims = JsonObject::parse(json).ok_or(NO_CLAIMS)?;
    let issuer = claims.text("iss").map_err(|()| JwtRefusal::UnusableClaim("iss"))?;
    issuer.ok_or(JwtRefusal::MissingClaim("iss"))
}

fn check_issuer(claims: &JsonObject<'_>, settings: &JwtSettings) -> Result<(), JwtRefusal> {
    match claims.text("iss") {
        Ok(Some(issuer)) if issuer == settings.issuer => Ok(()),
        Ok(Some(_)) => Err(JwtRefusal::Issuer),
        Ok(None) => Err(JwtRefusal::MissingClaim("iss")),
        Err(()) => Err(JwtRefusal::UnusableClaim("iss")),
    }
}

/// One of ours is enough. An ID token has the client as its audience, so it passes only where that is configured.
fn check_audience(claims: &JsonObject<'_>, settings: &JwtSettings) -> Result<(), JwtRefusal> {
    let json = claims.get("aud").ok_or(JwtRefusal::MissingClaim("aud"))?;
    let is_ours = |text: &String| settings.audience.contains(text);
    let fits = match serde_json::from_str::<String>(json) {
        Ok(one) => is_ours(&one),
        Err(_) => {
            let list: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| JwtRefusal::UnusableClaim("aud"))?;
            list.into_iter().filter_map(|item| serde_json::from_str(item.get()).ok()).any(|text| is_ours(&text))
        }
    };
    if fits { Ok(()) } else { Err(JwtRefusal::Audience) }
}

/// Answers with `exp`.
fn check_times(claims: &JsonObject<'_>, settings: &JwtSettings, now: f64) -> Result<f64, JwtRefusal> {
    let leeway = settings.leeway.as_secs_f64();
    let expires = seconds(claims, "exp")?.ok_or(JwtRefusal::MissingClaim("exp"))?;
    if now >= expires + leeway {
        return Err(JwtRefusal::Expired);
    }
    for claim in ["nbf", "iat"] {
        if seconds(claims, claim)?.is_some_and(|start| start > now + leeway) {
            return Err(JwtRefusal::NotYetValid);
        }
    }
    Ok(expires)
}

/// A `NumericDate`, which may have a fraction.
fn seconds(claims: &JsonObject<'_>, claim: &'static str) -> Result<Option<f64>, JwtRefusal> {
    let Some(json) = claims.get(claim) else { return Ok(None) };
    let seconds: Option<f64> = serde_json::from_str(json).ok();
    match seconds.filter(|seconds| seconds.abs() < FARTHEST) {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(JwtRefusal::UnusableClaim(claim)),
    }
}

/// In seconds; far beyond all clocks, and milliseconds of it still fit into an `i64`.
const FARTHEST: f64 = 1e14;

fn name(json: &str) -> Option<String> {
    serde_json::from_str(json).ok().filter(|name: &String| is_name(name))
}

/// Whether a text can be stored, shown in one line and compared.
fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= LONGEST_NAME && !text.contains(char::is_control)
}
