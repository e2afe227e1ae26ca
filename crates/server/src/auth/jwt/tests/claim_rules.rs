//! What a token must claim, and what becomes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use sabir_testkit::oidc_provider::KEYS;

use super::*;

#[tokio::test]
async fn claims_and_what_is_wrong_with_them() {
    let (expired, early) = ("the token has expired", "the token is not valid yet");
    let (issuer, audience) = ("the issuer of the token is not trusted", "the token is meant for another audience");
    let subject = "the token has no usable subject";
    let bound = "the token is bound to a key of its sender, which is not supported";
    let fixture = Fixture::new();
    let unusable = |name: &str| format!("the claim `{name}` of the token is not usable");
    let missing = |name: &str| format!("the token has no claim `{name}`");
    for (members, expected) in [
        (json!({}), ALICE.to_owned()),
        (json!({"exp": NOW - 59}), ALICE.to_owned()),
        (json!({"exp": NOW - 60}), expired.to_owned()),
        (json!({"exp": NOW as f64 + 0.5}), ALICE.to_owned()),
        (json!({"exp": 0}), expired.to_owned()),
        (json!({"exp": -1}), expired.to_owned()),
        (json!({"exp": null}), missing("exp")),
        (json!({"exp": "soon"}), unusable("exp")),
        (json!({"exp": 1e300}), unusable("exp")),
        (json!({"nbf": NOW + 60}), ALICE.to_owned()),
        (json!({"nbf": NOW + 61}), early.to_owned()),
        (json!({"nbf": true}), unusable("nbf")),
        (json!({"iat": NOW + 61}), early.to_owned()),
        (json!({"iat": null}), ALICE.to_owned()),
        (json!({"iss": null}), missing("iss")),
        (json!({"iss": format!("{ISSUER}/")}), issuer.to_owned()),
        (json!({"iss": ISSUER.to_uppercase()}), issuer.to_owned()),
        (json!({"iss": [ISSUER]}), unusable("iss")),
        (json!({"aud": null}), missing("aud")),
        (json!({"aud": "other"}), audience.to_owned()),
        (json!({"aud": ["other", AUDIENCE]}), ALICE.to_owned()),
        (json!({"aud": []}), audience.to_owned()),
        (json!({"aud": {"sabir": true}}), unusable("aud")),
        (json!({"aud": [1, null, AUDIENCE]}), ALICE.to_owned()),
        (json!({"sub": null}), subject.to_owned()),
        (json!({"sub": ""}), subject.to_owned()),
        (json!({"sub": " "}), subject.to_owned()),
        (json!({"sub": 7}), subject.to_owned()),
        (json!({"sub": "a\nb"}), subject.to_owned()),
        (json!({"sub": "x".repeat(1025)}), subject.to_owned()),
        // An ID token has such members; its audience decides.
        (json!({"nonce": "n", "at_hash": "h"}), ALICE.to_owned()),
        (json!({"cnf": {"jkt": "thumbprint"}}), bound.to_owned()),
        (json!({"cnf": {"x5t#S256": "thumbprint"}}), bound.to_owned()),
    ] {
        assert_eq!(fixture.say(&fixture.token_with(members.clone())).await, expected, "{members}");
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_accepted_makes_no_fetch() {
    let fixture = Fixture::new();
    for members in [json!({"exp": 1}), json!({"aud": "other"}), json!({"iss": "x"}), json!({"sub": null})] {
        assert!(fixture.verifier.verify(&fixture.token_with(members.clone())).await.is_err(), "{members}");
    }
    assert_eq!(fixture.provider.requests(KEYS), 0);
}

#[tokio::test]
async fn leeway_and_audience_are_the_operators() {
    let fixture = Fixture::with(|settings| JwtSettings {
        leeway: Duration::ZERO,
        audience: vec!["a".to_owned(), "b".to_owned()],
        ..settings
    });
    for (members, expected) in [
        (json!({"aud": "b", "exp": NOW + 1}), ALICE),
        (json!({"aud": "b", "exp": NOW}), "the token has expired"),
        (json!({"aud": "c"}), "the token is meant for another audience"),
    ] {
        assert_eq!(fixture.say(&fixture.token_with(members.clone())).await, expected, "{members}");
    }
}

#[tokio::test]
async fn scopes_in_every_spelling() {
    let fixture = Fixture::new();
    let many: Vec<String> = (0..1500).map(|number| number.to_string()).collect();
    for (members, expected) in [
        (json!({"scope": "run"}), "run"),
        (json!({"scope": "openid run  read run"}), "read run"),
        (json!({"scp": ["run", "x"]}), "run"),
        (json!({"scp": "admin"}), "admin"),
        (json!({"permissions": ["approve", 7, null, {}]}), "approve"),
        (json!({"roles": ["read"], "scope": "run"}), "read run"),
        (json!({"scope": "run:coder read:demo x:coder"}), "read:demo run:coder"),
        (json!({"scope": "admin:coder run: run:a/b"}), "read run"),
        (json!({"groups": ["admin"]}), "read run"),
        (json!({"scope": "openid profile"}), "read run"),
        (json!({"scope": "ADMIN"}), "read run"),
        (json!({"scope": {"admin": true}}), "read run"),
        (json!({"scp": many.iter().map(String::as_str).chain(["approve"]).collect::<Vec<_>>()}), "approve"),
    ] {
        let token = fixture.token_with(members.clone());
        assert_eq!(fixture.say(&token).await, format!("alice: {expected}"), "{members}");
    }
}

#[tokio::test]
async fn ten_thousand_scopes_do_not_fit_and_almost_as_many_do() {
    let fixture = Fixture::new();
    let list = |count: usize| vec!["x"; count].join(" ");
    let token = fixture.token_with(json!({"scope": list(10_000)}));
    assert_eq!(fixture.say(&token).await, "the token is larger than 16 KiB");
    let token = fixture.token_with(json!({"scope": format!("{} run", list(5_800))}));
    assert_eq!(fixture.say(&token).await, "alice: run");
    let verified = fixture.verifier.quick(&token).unwrap();
    assert_eq!(verified.scopes, ["run"], "nothing else is kept");
}

#[tokio::test]
async fn the_operator_names_claims_and_scopes() {
    let fixture = Fixture::with(|settings| JwtSettings {
        subject_claim: "email".to_owned(),
        tenant_claim: Some("org.id".to_owned()),
        scope_claims: vec!["realm_access.roles".to_owned(), "https://example.com/roles".to_owned()],
        scope_names: BTreeMap::from([("a2a.run", "run"), ("legal", "sign-off")].map(|(a, b)| (a.into(), b.into()))),
        default_scopes: vec![],
        ..settings
    });
    let email = json!({"email": "a@example.com"});
    for (members, expected) in [
        (json!({}), "a@example.com: "),
        (json!({"scope": "a2a.run"}), "a@example.com: "),
        (json!({"realm_access": {"roles": ["a2a.run", "admin"]}}), "a@example.com: run"),
        (json!({"https://example.com/roles": ["legal", "run"]}), "a@example.com: sign-off"),
        (json!({"org": {"id": "acme"}}), "a@example.com of acme: "),
        (json!({"org.id": "dotted"}), "a@example.com of dotted: "),
        (json!({"org": {"id": ["acme"]}}), "the token has no usable tenant"),
        (json!({"org": {"id": ""}}), "the token has no usable tenant"),
        (json!({"email": null}), "the token has no usable subject"),
    ] {
        let members = changed(email.clone(), &members);
        let members = if members.get("email").is_none() { json!({"email": null}) } else { members };
        assert_eq!(fixture.say(&fixture.token_with(members.clone())).await, expected, "{members}");
    }
}

#[tokio::test]
async fn refusals_do_not_repeat_the_token() {
    let fixture = Fixture::new();
    for members in [json!({"sub": "secret\u{7}"}), json!({"aud": "secret"}), json!({"iss": "secret"})] {
        let token = fixture.token_with(members);
        let refusal = fixture.verifier.verify(&token).await.unwrap_err();
        for text in [refusal.to_string(), format!("{refusal:?}")] {
            assert!(!text.contains("secret") && !text.contains(&token[..20]), "{text}");
        }
    }
}
