//! Which tokens are remembered, and for how long.

use std::time::Duration;

use super::*;

#[tokio::test]
async fn a_verified_token_is_remembered_for_five_minutes_or_until_it_expires() {
    for (members, minutes) in [(json!({}), 5), (json!({"exp": NOW + 120}), 2)] {
        let fixture = Fixture::new();
        let token = fixture.token_with(members.clone());
        assert_eq!(fixture.verifier.quick(&token), None);
        let verified = fixture.verifier.verify(&token).await.unwrap();
        assert_eq!(fixture.verifier.quick(&token), Some(verified.clone()));
        fixture.clock.advance(Duration::from_secs(minutes * 60 - 1));
        assert_eq!(fixture.verifier.quick(&token), Some(verified), "{members}");
        fixture.clock.advance(Duration::from_secs(1));
        assert_eq!(fixture.verifier.quick(&token), None, "{members}");
    }
}

#[tokio::test]
async fn a_token_within_the_leeway_is_accepted_and_not_remembered() {
    let fixture = Fixture::new();
    let token = fixture.token_with(json!({"exp": NOW - 30}));
    assert_eq!(fixture.say(&token).await, ALICE);
    assert_eq!(fixture.verifier.cached_tokens(), 0);
    fixture.clock.advance(Duration::from_secs(30));
    assert_eq!(fixture.say(&token).await, "the token has expired");
}

#[tokio::test]
async fn refused_tokens_are_not_remembered() {
    let fixture = Fixture::new();
    assert_eq!(fixture.say(&fixture.token()).await, ALICE);
    let stranger = key("first", "ES256");
    for number in 0..100 {
        let claims = changed(fixture.claims(), &json!({"jti": format!("{number}")}));
        assert!(fixture.verifier.verify(&stranger.token(&claims)).await.is_err());
    }
    assert_eq!(fixture.verifier.cached_tokens(), 1);
}

#[test]
fn a_full_cache_forgets_the_oldest() {
    let cache = verified_cache::VerifiedCache::new();
    let verified = Arc::new(Verified {
        issuer: ISSUER.to_owned(),
        subject: "alice".to_owned(),
        tenant: None,
        scopes: vec![],
        expires: sabir_model::Timestamp::from_millis(NOW * 1000),
    });
    let digests: Vec<_> = (0..30_000).map(|number| verified_cache::digest_of(&format!("{number}"))).collect();
    for digest in &digests {
        // The same token twice takes one place.
        for _ in 0..2 {
            cache.insert(*digest, verified.clone(), 0, 1);
        }
    }
    assert_eq!(cache.len(), 10_000);
    assert!(cache.get(&digests[0], 0, 1).is_none());
    assert!(cache.get(&digests[29_999], 0, 1).is_some());
    assert!(cache.get(&digests[29_999], 0, 2).is_none(), "other keys");
}
