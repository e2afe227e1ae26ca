//! Whatever arrives, it is refused or read; nothing panics.

use proptest::prelude::*;
use sabir_testkit::oidc_keys::base64url;

use super::claims::Claims;
use super::compact::CompactToken;
use super::discovery::Discovered;
use super::key_set::KeySet;
use super::*;

fn read_all(text: &str) {
    let settings = JwtSettings { tenant_claim: Some("a.b".to_owned()), ..JwtSettings::new(ISSUER, AUDIENCE) };
    let _ = CompactToken::parse(text);
    let _ = Claims::check(text.as_bytes(), &settings, NOW * 1000);
    let _ = Discovered::parse(text.as_bytes(), ISSUER);
    let _ = KeySet::parse(text.as_bytes());
    let _ = signing_key::SigningKey::parse(text);
    let token = format!("{}.{}.AAAA", base64url(br#"{"alg":"ES256","kid":"first"}"#), base64url(text.as_bytes()));
    let _ = CompactToken::parse(&token);
    let token = format!("{}.e30.AAAA", base64url(text.as_bytes()));
    let _ = CompactToken::parse(&token);
}

/// Good claims with one piece replaced.
fn damaged(at: usize, length: usize, replacement: &str) -> String {
    let claims = Fixture::new().claims().to_string();
    let characters: Vec<char> = claims.chars().collect();
    let at = at % characters.len();
    let end = (at + length).min(characters.len());
    characters[..at].iter().chain(&replacement.chars().collect::<Vec<_>>()).chain(&characters[end..]).collect()
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text: String) {
        read_all(&text);
    }

    #[test]
    fn damaged_claims_are_read_or_refused(at: usize, length in 0..20usize, replacement in "[\\[\\]{}\",:0-9a-z\\\\.e-]{0,8}") {
        read_all(&damaged(at, length, &replacement));
    }

    #[test]
    fn a_damaged_token_is_refused(at: usize, replacement in "[A-Za-z0-9_.-]") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let fixture = Fixture::new();
            let token = fixture.token();
            let at = at % token.len();
            let damaged = format!("{}{replacement}{}", &token[..at], &token[at + 1..]);
            let outcome = fixture.verifier.verify(&damaged).await;
            prop_assert_eq!(outcome.is_ok(), damaged == token, "{}", at);
            Ok(())
        })?;
    }
}
