//! Tokens that somebody else made, or that were made for something else.

use sabir_testkit::oidc_keys::{base64url, hmac_token, message};
use sabir_testkit::oidc_provider::{KEYS, ProviderAnswer};

use super::*;

#[tokio::test]
async fn every_algorithm_is_accepted_from_its_key() {
    for algorithm in JwtAlgorithm::ALL {
        let fixture = Fixture::new();
        let key = fixture.provider.add_key(key("k", algorithm.name()));
        let token = key.token(&fixture.claims());
        assert_eq!(fixture.say(&token).await, ALICE, "{algorithm:?}");
        let (rest, signature) = token.rsplit_once('.').unwrap();
        let first = if signature.starts_with('A') { 'B' } else { 'A' };
        let forged = format!("{rest}.{first}{}", &signature[1..]);
        assert_eq!(fixture.say(&forged).await, "the signature of the token is wrong", "{algorithm:?}");
    }
}

#[tokio::test]
async fn the_key_decides_about_the_algorithm() {
    let algorithm = "the signature algorithm of the token is not accepted";
    let fixture = Fixture::new();
    let bound = fixture.provider.add_key(key("bound", "RS256"));
    let free = fixture.provider.add_key(key("free", "RS256").for_any_algorithm());
    let ec = fixture.provider.add_key(key("ec", "ES256"));
    for (key, name, expected) in [
        (&bound, "RS256", ALICE),
        (&bound, "RS512", algorithm),
        (&bound, "PS256", algorithm),
        (&free, "RS256", ALICE),
        (&free, "RS512", ALICE),
        (&free, "PS384", ALICE),
        (&ec, "ES256", ALICE),
        (&ec, "ES384", algorithm),
        (&ec, "RS256", algorithm),
        (&ec, "EdDSA", algorithm),
    ] {
        let header = changed(key.header(), &json!({"alg": name}));
        let message = message(&header.to_string(), &fixture.claims().to_string());
        let token = format!("{message}.{}", base64url(&key.sign(name, message.as_bytes())));
        assert_eq!(fixture.say(&token).await, expected, "{:?} {name}", key.id);
    }
}

#[tokio::test]
async fn the_operator_can_narrow_the_algorithms() {
    let fixture = Fixture::with(|settings| JwtSettings { algorithms: vec![JwtAlgorithm::EdDsa], ..settings });
    let refused = fixture.token();
    fixture.provider.add_key(key("ed", "EdDSA"));
    assert_eq!(fixture.say(&refused).await, "the signature algorithm of the token is not accepted");
    assert_eq!(fixture.say(&fixture.token()).await, ALICE);
}

#[tokio::test]
async fn tokens_without_a_real_signature() {
    let algorithm = "the signature algorithm of the token is not accepted";
    let fixture = Fixture::new();
    let rsa = fixture.provider.add_key(key("rsa", "RS256"));
    let (header, claims, jwk) = (rsa.header(), fixture.claims().to_string(), rsa.jwk());
    let with = |members: Value| changed(header.clone(), &members).to_string();
    let public = jwk.to_string();
    let modulus = jwk["n"].as_str().unwrap();
    for (what, token, expected) in [
        ("none", format!("{}.", message(&with(json!({"alg": "none"})), &claims)), algorithm),
        ("None", format!("{}.", message(&with(json!({"alg": "None"})), &claims)), algorithm),
        ("a JWK as secret", hmac_token(&with(json!({"alg": "HS256"})), &claims, public.as_bytes()), algorithm),
        ("a modulus as secret", hmac_token(&with(json!({"alg": "HS512"})), &claims, modulus.as_bytes()), algorithm),
        ("a secret, called RS256", hmac_token(&header.to_string(), &claims, modulus.as_bytes()), SIGNATURE),
        ("no signature", format!("{}.", message(&header.to_string(), &claims)), SIGNATURE),
        ("alg is a list", rsa.token_of(&with(json!({"alg": ["RS256"]})), &claims), HEADER),
        ("no alg", rsa.token_of(&with(json!({"alg": null})), &claims), HEADER),
    ] {
        assert_eq!(fixture.say(&token).await, expected, "{what}");
    }
}

#[tokio::test]
async fn keys_that_a_token_brings_or_names_do_not_count() {
    let fixture = Fixture::new();
    let attacker = key("attacker", "ES256");
    let unknown = "the token is signed with a key that its issuer does not publish";
    for (members, expected) in [
        (json!({}), unknown),
        (json!({"jwk": attacker.jwk()}), unknown),
        (json!({"jku": "https://attacker.example.com/keys"}), unknown),
        (json!({"x5u": "https://attacker.example.com/chain", "x5c": ["AAAA"]}), unknown),
        (json!({"kid": "first"}), SIGNATURE),
        (json!({"kid": null}), SIGNATURE),
        (json!({"kid": "first", "jwk": attacker.jwk()}), SIGNATURE),
        (json!({"kid": "../../first"}), unknown),
        (json!({"kid": "x".repeat(1025)}), HEADER),
        (json!({"kid": 1}), HEADER),
    ] {
        let header = changed(attacker.header(), &members).to_string();
        let token = attacker.token_of(&header, &fixture.claims().to_string());
        assert_eq!(fixture.say(&token).await, expected, "{members}");
    }
    let requests = fixture.provider.requests(KEYS);
    assert_eq!(requests, 1, "unknown keys of one moment make one fetch");
}

#[tokio::test]
async fn a_key_counts_for_its_own_issuer_only() {
    let (one, other) = (OidcProvider::new(ISSUER), OidcProvider::new("https://other.example.com"));
    other.remove_key("first");
    other.add_key(key("second", "ES256"));
    let (one, other) = (Arc::new(one), Arc::new(other));
    let verifier = |provider: &Arc<OidcProvider>| {
        let settings = JwtSettings::new(provider.issuer.clone(), AUDIENCE);
        let clock = Arc::new(ManualClock::at(NOW * 1000));
        JwtVerifier::with_clock(settings, Arc::new(InProcess(provider.clone())), clock)
    };
    let issuers = Issuers::new(vec![verifier(&one), verifier(&other)]);
    let unknown = "the token is signed with a key that its issuer does not publish";
    let stranger = OidcProvider::new("https://stranger.example.com");
    for (what, token, expected) in [
        ("one", one.key().token(&one.claims("alice", NOW)), ALICE),
        ("other", other.key().token(&other.claims("bob", NOW)), "bob: read run"),
        ("other signs as one", other.key().token(&one.claims("alice", NOW)), unknown),
        ("one signs as other", one.key().token(&other.claims("alice", NOW)), unknown),
        ("stranger", stranger.key().token(&stranger.claims("eve", NOW)), "the issuer of the token is not trusted"),
        ("stranger signs as one", stranger.key().token(&one.claims("alice", NOW)), SIGNATURE),
    ] {
        assert_eq!(say(issuers.verify(&token).await), expected, "{what}");
        assert_eq!(issuers.quick(&token).is_some(), !expected.starts_with("the "), "{what}");
    }
    let owners = [("one", &one, "alice"), ("other", &other, "bob")];
    for (what, provider, subject) in owners {
        let token = provider.key().token(&provider.claims(subject, NOW));
        assert_eq!(issuers.verify(&token).await.unwrap().issuer, provider.issuer, "{what}");
    }
}

#[tokio::test]
async fn headers_that_mean_something_else() {
    let fixture = Fixture::new();
    let key = fixture.provider.key();
    let kind = "the token is of a type that is no access token";
    let critical = "the token demands header extensions that are not supported";
    for (members, expected) in [
        (json!({"typ": "JWT"}), ALICE),
        (json!({"typ": "jwt"}), ALICE),
        (json!({"typ": "application/at+jwt"}), ALICE),
        (json!({"typ": null}), ALICE),
        (json!({"typ": "dpop+jwt"}), kind),
        (json!({"typ": "logout+jwt"}), kind),
        (json!({"typ": "secevent+jwt"}), kind),
        (json!({"typ": 7}), HEADER),
        (json!({"crit": ["b64"], "b64": false}), critical),
        (json!({"crit": []}), critical),
    ] {
        let header = changed(key.header(), &members).to_string();
        let token = key.token_of(&header, &fixture.claims().to_string());
        assert_eq!(fixture.say(&token).await, expected, "{members}");
    }
}

#[tokio::test]
async fn text_that_readers_could_understand_differently() {
    let fixture = Fixture::new();
    let key = fixture.provider.key();
    let (header, claims) = (key.header().to_string(), fixture.claims().to_string());
    let open = |object: &str| object[..object.len() - 1].to_owned();
    let deep = format!("{},\"x\":{}1{}}}", open(&claims), "[".repeat(20), "]".repeat(20));
    let no_claims = "the token is malformed: its claims are not a JSON object";
    let no_base64 = "the token is malformed: a part of it is not base64url";
    let no_parts = "the token is malformed: it does not have three parts";
    let mut good = key.token_of(&header, &claims);
    // 64 bytes leave four bits of their last digit unused.
    let last = good.pop().unwrap();
    let respelled = format!("{good}{}", char::from(last as u8 + 1));
    good.push(last);
    for (what, token, expected) in [
        ("other bits behind the end", respelled, no_base64),
        ("alg twice", key.token_of(&format!("{},\"alg\":\"none\"}}", open(&header)), &claims), HEADER),
        ("kid twice", key.token_of(&format!("{},\"kid\":\"first\"}}", open(&header)), &claims), HEADER),
        ("sub twice", key.token_of(&header, &format!("{},\"sub\":\"admin\"}}", open(&claims))), no_claims),
        ("exp twice, escaped", key.token_of(&header, &format!("{},\"\\u0065xp\":9}}", open(&claims))), no_claims),
        ("deep", key.token_of(&header, &deep), no_claims),
        ("more behind", key.token_of(&header, &format!("{claims} {{}}")), no_claims),
        ("a list", key.token_of(&header, &format!("[{claims}]")), no_claims),
        ("no JSON", key.token_of(&header, "alice"), no_claims),
        ("empty", String::new(), no_parts),
        ("two parts", "a.b".to_owned(), no_parts),
        ("four parts", format!("{good}.x"), no_parts),
        ("five parts", "a.b.c.d.e".to_owned(), no_parts),
        ("padding", format!("{good}=="), no_base64),
        ("a blank", format!("{good} "), no_base64),
        ("standard base64", good.replace('.', "+."), no_base64),
        ("not ASCII", good.replace('.', "é."), no_base64),
        ("oversized", format!("{good}{}", "A".repeat(16 * 1024)), "the token is larger than 16 KiB"),
    ] {
        assert_eq!(fixture.say(&token).await, expected, "{what}");
    }
    assert_eq!(fixture.say(&good).await, ALICE);
}

#[tokio::test]
async fn keys_that_must_not_verify_anything() {
    let unknown = "the token is signed with a key that its issuer does not publish";
    let signer = key("k", "ES256");
    let jwk = signer.jwk();
    for (what, jwk, expected) in [
        ("good", jwk.clone(), ALICE),
        ("for encryption", changed(jwk.clone(), &json!({"use": "enc"})), unknown),
        ("for signing only", changed(jwk.clone(), &json!({"use": null, "key_ops": ["sign"]})), unknown),
        ("for verifying", changed(jwk.clone(), &json!({"use": null, "key_ops": ["verify"]})), ALICE),
        ("its private half is public", signer.leaked_jwk(), unknown),
        ("a curve of another size", changed(jwk.clone(), &json!({"crv": "P-384"})), unknown),
        ("a curve that is not supported", changed(jwk.clone(), &json!({"crv": "secp256k1"})), unknown),
        ("an algorithm of another type", changed(jwk.clone(), &json!({"alg": "RS256"})), unknown),
        ("symmetric", json!({"kty": "oct", "kid": "k", "alg": "HS256", "k": "AAAA"}), unknown),
        ("a point that is on no curve", changed(jwk.clone(), &json!({"x": base64url(&[1; 32])})), SIGNATURE),
        ("no text", json!({"kty": 1, "kid": "k"}), unknown),
    ] {
        let fixture = Fixture::new();
        let set = json!({"keys": [jwk]}).to_string();
        fixture.provider.fail(KEYS, ProviderAnswer::Document(set));
        assert_eq!(fixture.say(&signer.token(&fixture.claims())).await, expected, "{what}");
    }
}

#[test]
fn rsa_keys_are_neither_weak_nor_endless() {
    for (bits, is_usable) in [(512, false), (1024, false), (2040, false), (2048, true), (4096, true), (16384, false)] {
        let modulus = base64url(&vec![0x80; bits / 8]);
        let jwk = json!({"kty": "RSA", "kid": "k", "n": modulus, "e": "AQAB"}).to_string();
        assert_eq!(signing_key::SigningKey::parse(&jwk).is_some(), is_usable, "{bits}");
    }
    // Zeros before the number do not make it longer.
    let padded = base64url(&[vec![0; 200], vec![0x80; 128]].concat());
    let jwk = json!({"kty": "RSA", "n": padded, "e": "AQAB"}).to_string();
    assert!(signing_key::SigningKey::parse(&jwk).is_none());
}

const SIGNATURE: &str = "the signature of the token is wrong";
const HEADER: &str = "the token is malformed: its header is not usable";
