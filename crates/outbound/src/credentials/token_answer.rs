//! Reads what a token endpoint answers (RFC 6749, sections 5.1 and 5.2; RFC 8693, section 2.2).
//!
//! Endpoints are read leniently where no harm can come of it: the lifetime may be a text, a type may be missing, and an error
//! may come with status 200. A token that cannot be shown as `Bearer` is refused.

use std::time::Duration;

use http::StatusCode;
use sabir_wire::excerpt;
use serde_json::{Map, Value};

use super::mask::Mask;
use super::secret::Secret;
use super::sendable::is_token;

/// A token that was issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub token: Secret,
    pub lifetime: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoGrant {
    /// The endpoint's error code and description.
    Refused(String),
    /// Follows the word "answered".
    Unusable(String),
}

/// Where the answer does not say how long its token lives.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);

/// More than that is not believed; it keeps sums of times in range.
const LONGEST_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// `mask` has the secrets of the request.
pub(super) fn read(status: StatusCode, body: &[u8], mask: &Mask) -> Result<Grant, NoGrant> {
    let unusable = |why: &str| NoGrant::Unusable(why.to_owned());
    if status.is_redirection() {
        return Err(unusable("with a redirect, which is not followed"));
    }
    let answer: Map<String, Value> = match serde_json::from_slice(body) {
        Ok(answer) => answer,
        Err(_) if status.is_success() => return Err(unusable("with something that is not a JSON object")),
        Err(_) => return Err(unusable("with an error that it does not explain")),
    };
    let text = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(error) = text("error") {
        let words = text("error_description").map_or(error.to_owned(), |description| format!("{error}: {description}"));
        return Err(NoGrant::Refused(shown(&words, mask)));
    }
    if !status.is_success() {
        return Err(unusable("with an error that it does not explain"));
    }
    let token = text("access_token").ok_or_else(|| unusable("without an access_token"))?;
    if !is_token(token) {
        return Err(unusable("with an access_token that no header can hold"));
    }
    match text("token_type") {
        // RFC 8693 calls it so where the token is not an access token by type; it is shown like one all the same.
        Some("N_A") | None => {}
        Some(kind) if kind.eq_ignore_ascii_case("bearer") => {}
        Some(kind) => {
            let why = format!("with a token of the type {}, and only Bearer can be shown", shown(kind, mask));
            return Err(NoGrant::Unusable(why));
        }
    }
    Ok(Grant { token: Secret::new(token), lifetime: lifetime(answer.get("expires_in")) })
}

fn lifetime(expires_in: Option<&Value>) -> Duration {
    let seconds = match expires_in {
        Some(Value::Number(seconds)) => seconds.as_f64(),
        Some(Value::String(seconds)) => seconds.trim().parse().ok(),
        _ => None,
    };
    let seconds = seconds.filter(|seconds| seconds.is_finite());
    seconds.map_or(DEFAULT_LIFETIME, |seconds: f64| {
        Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_LIFETIME.as_secs_f64()))
    })
}

/// One line of at most 200 characters, without secrets.
fn shown(text: &str, mask: &Mask) -> String {
    let line: String = mask.apply(text).chars().map(|each| if each.is_control() { ' ' } else { each }).collect();
    excerpt(line.trim()).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn say(status: u16, body: &[u8], mask: &Mask) -> String {
        match read(StatusCode::from_u16(status).unwrap(), body, mask) {
            Ok(grant) => format!("{} for {:?}", grant.token.as_str(), grant.lifetime),
            Err(NoGrant::Refused(words)) => format!("refused: {words}"),
            Err(NoGrant::Unusable(why)) => why,
        }
    }

    #[test]
    fn answers_of_endpoints() {
        let mut mask = Mask::default();
        mask.add(&Secret::new("geheim"));
        let unexplained = "with an error that it does not explain";
        let no_token = "without an access_token";
        for (status, body, expected) in [
            (200, r#"{"access_token":"t","token_type":"Bearer","expires_in":60}"#, "t for 60s"),
            (200, r#"{"access_token":"t","token_type":"bearer","expires_in":"60"}"#, "t for 60s"),
            (201, r#"{"access_token":"t","token_type":"N_A","expires_in":1.5}"#, "t for 1.5s"),
            (200, r#"{"access_token":"t"}"#, "t for 300s"),
            (200, r#"{"access_token":"t","expires_in":null,"error":null}"#, "t for 300s"),
            (200, r#"{"access_token":"t","expires_in":"soon"}"#, "t for 300s"),
            (200, r#"{"access_token":"t","expires_in":"inf"}"#, "t for 300s"),
            (200, r#"{"access_token":"t","expires_in":[1]}"#, "t for 300s"),
            (200, r#"{"access_token":"t","expires_in":0}"#, "t for 0ns"),
            (200, r#"{"access_token":"t","expires_in":-5}"#, "t for 0ns"),
            (200, r#"{"access_token":"t","expires_in":1e300}"#, "t for 31536000s"),
            (
                200,
                r#"{"access_token":"t","token_type":"DPoP"}"#,
                "with a token of the type DPoP, and only Bearer can be shown",
            ),
            (200, r#"{"access_token":"a b"}"#, "with an access_token that no header can hold"),
            (200, r#"{"access_token":"a\r\nb"}"#, "with an access_token that no header can hold"),
            (200, r#"{"access_token":7}"#, no_token),
            (200, r#"{"access_token":""}"#, no_token),
            (200, "{}", no_token),
            (200, "[]", "with something that is not a JSON object"),
            (200, "access_token=t", "with something that is not a JSON object"),
            (200, "", "with something that is not a JSON object"),
            (200, r#"{"error":"bad_verification_code"}"#, "refused: bad_verification_code"),
            (
                400,
                r#"{"error":"invalid_scope","error_description":"no\r\nsuch scope"}"#,
                "refused: invalid_scope: no  such scope",
            ),
            (
                401,
                r#"{"error":"invalid_client","error_description":"geheim is wrong"}"#,
                "refused: invalid_client: *** is wrong",
            ),
            (400, r#"{"error":"geheim"}"#, "refused: ***"),
            (500, r#"{"access_token":"t"}"#, unexplained),
            (400, r#"{"error":{"message":"x"}}"#, unexplained),
            (502, "<html>geheim</html>", unexplained),
            (302, r#"{"access_token":"t"}"#, "with a redirect, which is not followed"),
        ] {
            assert_eq!(say(status, body.as_bytes(), &mask), expected, "{status} {body}");
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(
            status in 200u16..600,
            bytes: Vec<u8>,
            error: Option<String>,
            description in "(\\PC|\n|geheim){0,300}",
            token in "\\PC{0,20}",
            expires in prop_oneof![any::<f64>().prop_map(Value::from), any::<i64>().prop_map(Value::from), ".*".prop_map(Value::from)],
        ) {
            let mut mask = Mask::default();
            mask.add(&Secret::new("geheim"));
            let mut answer = serde_json::json!({"access_token": token, "token_type": "Bearer", "expires_in": expires});
            if let Some(error) = error {
                answer["error"] = error.into();
                answer["error_description"] = description.into();
            }
            for body in [bytes, answer.to_string().into_bytes()] {
                match read(StatusCode::from_u16(status).unwrap(), &body, &mask) {
                    Ok(grant) => {
                        prop_assert!((200..300).contains(&status) && is_token(grant.token.as_str()));
                        prop_assert!(grant.lifetime <= LONGEST_LIFETIME);
                    }
                    Err(NoGrant::Refused(words) | NoGrant::Unusable(words)) => {
                        prop_assert!(words.chars().count() <= 260 && !words.chars().any(char::is_control));
                        prop_assert!(!words.contains("geheim"));
                    }
                }
            }
        }
    }
}
