//! Signatures of cards: what is accepted, and what is refused with which words.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use sabir_model::Base64;
use sabir_outbound::cards::{CardClient, KeySource, SignatureCheck, Verdict};
use sabir_outbound::jose::{CardKey, KeyAlgorithm, KeySet, key_set};
use sabir_wire::{CardFormat, payloads_to_sign};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::support::{LONG, Receiver, SHORT, closing, ok};

const SIGNED: &str = include_str!("../../../wire/tests/signing/agent_card.signed.json");
const JWKS: &str = include_str!("../../../wire/tests/signing/jwks.json");

/// A server with a card and a key set, both made for the address that it has.
async fn serving(documents: impl Fn(&str) -> (String, String) + Send + Sync + 'static) -> Receiver {
    let documents = Arc::new(documents);
    Receiver::behaving("127.0.0.1:0", move |mut stream, request| {
        let documents = Arc::clone(&documents);
        async move {
            let (card, keys) = documents(&stream.local_addr().unwrap().to_string());
            let answer = match request.split(' ').nth(1).unwrap_or_default() {
                "/.well-known/agent-card.json" => ok(&card),
                "/keys" => ok(&keys),
                "/silence" => std::future::pending().await,
                "/elsewhere" => "HTTP/1.1 302 Found\r\nlocation: /keys\r\ncontent-length: 0\r\n\r\n".to_owned(),
                "/huge" => "HTTP/1.1 200 OK\r\ncontent-length: 9000000000\r\n\r\n{".to_owned(),
                _ => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            };
            let _ = stream.write_all(closing(&answer).as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    })
    .await
}

async fn verify(server: &Receiver, source: KeySource, timeout: Duration) -> Result<Vec<SignatureCheck>, String> {
    let client = CardClient::new(&format!("http://{}", server.address), None, timeout).unwrap();
    let card = client.card().await.map_err(|error| error.to_string())?;
    card.verify(&client, &source).await
}

/// A short form of what was found, without the port.
fn words(checked: &Result<Vec<SignatureCheck>, String>, server: &Receiver) -> String {
    let words = match checked.as_deref() {
        Err(why) => why.clone(),
        Ok(checks) => {
            let each = checks.iter().map(|check| match &check.verdict {
                Verdict::Valid { covers, trust, .. } => format!("valid {} {trust:?}", covers.version()),
                Verdict::Invalid(why) => format!("invalid: {why}"),
                Verdict::UnknownKey(why) => format!("unknown: {why}"),
            });
            each.collect::<Vec<_>>().join("; ")
        }
    };
    words.replace(&server.address.to_string(), "HOST")
}

fn base64url(bytes: &[u8]) -> String {
    Base64::encode(bytes).as_str().trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// A key whose signatures may say anything.
struct Forger(EcdsaKeyPair);

impl Forger {
    fn new() -> Self {
        Forger(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    fn jwk(&self) -> Value {
        let (x, y) = self.0.public_key().as_ref()[1..].split_at(32);
        json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": base64url(x), "y": base64url(y)})
    }

    fn sign(&self, header: &str, payload: &str) -> Value {
        let protected = base64url(header.as_bytes());
        let signed = format!("{protected}.{}", base64url(payload.as_bytes()));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        json!({"protected": protected, "signature": base64url(signature.as_ref())})
    }
}

fn card() -> Value {
    let mut card: Value = serde_json::from_str(SIGNED).unwrap();
    card.as_object_mut().unwrap().remove("signatures");
    card
}

fn payload(card: &Value) -> String {
    payloads_to_sign(card.to_string().as_bytes(), CardFormat::V1).unwrap().remove(0).text
}

#[tokio::test]
async fn the_golden_card_is_valid_and_no_changed_one_is() {
    let changed = |pointer: &str, value: Value| {
        let mut card: Value = serde_json::from_str(SIGNED).unwrap();
        *card.pointer_mut(pointer).unwrap() = value;
        card.to_string()
    };
    let altered = "invalid: it does not fit the card: one of them was changed";
    for (card, expected) in [
        (SIGNED.to_owned(), "valid 1.0 Given"),
        // Members that 1.0 does not know are not covered.
        (SIGNED.replacen('{', "{\"url\":\"http://elsewhere/\",", 1), "valid 1.0 Given"),
        (changed("/name", json!("Harbour Desk ")), altered),
        (changed("/supportedInterfaces/0/url", json!("https://evil.example/rpc")), altered),
        (changed("/capabilities/extensions/0/params/datum", json!(1)), altered),
        (changed("/skills", json!([])), altered),
        (changed("/signatures", json!([])), "the card has no signature"),
        (SIGNED.replacen("\"name\"", "\"documentation_uri\":1,\"name\"", 1), "valid 1.0 Given"),
        (SIGNED.replacen("qlm7BeTr", "qlm7BeTs", 1), altered),
    ] {
        let server = serving(move |_| (card.clone(), String::new())).await;
        let keys = KeySet::parse(JWKS.as_bytes()).unwrap();
        let checked = verify(&server, KeySource::Given { keys, name: "file".into() }, LONG).await;
        assert_eq!(words(&checked, &server), expected);
        if let Ok(checks) = checked {
            assert_eq!((checks[0].kid.as_deref(), checks[0].alg), (Some("golden-1"), Some("ES256")));
        }
    }
}

#[tokio::test]
async fn keys_come_from_the_server_of_the_card_alone() {
    for algorithm in [KeyAlgorithm::Es256, KeyAlgorithm::EdDsa] {
        let key = CardKey::generate(algorithm);
        let others = key_set([CardKey::generate(algorithm).jwk()]);
        for (jku, document, expected) in [
            ("http://HOST/keys", key_set([key.jwk()]), "valid 1.0 Nothing"),
            ("http://HOST/keys", key_set(["[]".into(), "{\"kty\":5}".into(), key.jwk()]), "valid 1.0 Nothing"),
            ("http://HOST/keys", others.clone(), "unknown: http://HOST/keys has no key with this id"),
            ("http://HOST/keys", "no".into(), "unknown: the key set http://HOST/keys is not JSON with a list of keys"),
            ("http://HOST/keys", "{}".into(), "unknown: the key set http://HOST/keys is not JSON with a list of keys"),
            (
                "http://HOST/keys",
                key_set(vec![key.jwk(); 101]),
                "unknown: the key set http://HOST/keys has more than 100 keys",
            ),
            ("http://HOST/none", String::new(), "unknown: the key set http://HOST/none answered 404 Not Found"),
            (
                "http://HOST/elsewhere",
                key_set([key.jwk()]),
                "unknown: the key set http://HOST/elsewhere answered 302 Found",
            ),
            (
                "http://HOST/huge",
                String::new(),
                "unknown: cannot fetch the key set http://HOST/huge: the body of the response is larger than 1048576 bytes",
            ),
            (
                "http://HOST/silence",
                String::new(),
                "unknown: cannot fetch the key set http://HOST/silence: no response within the time limit",
            ),
            (
                "https://keys.example/jwks.json",
                String::new(),
                "unknown: its key set https://keys.example/jwks.json is on another server than the card, and anybody can \
                 name one; if you trust that server, repeat with --jwks https://keys.example/jwks.json",
            ),
            (
                "http://127.0.0.1:1/keys",
                String::new(),
                "unknown: its key set http://127.0.0.1:1/keys is on another server than the card, and anybody can name \
                 one; if you trust that server, repeat with --jwks http://127.0.0.1:1/keys",
            ),
            ("file:///etc/passwd", String::new(), "unknown: its key set (jku) cannot be used: "),
            ("", String::new(), "unknown: the signature names no key set (jku); name one that you trust with --jwks"),
        ] {
            let signer = key.clone();
            let server = serving(move |address| {
                let mut card = card();
                let signature = signer.sign(&payload(&card), &jku.replace("HOST", address));
                card["signatures"] = json!([{"protected": signature.protected, "signature": signature.signature}]);
                (card.to_string(), document.clone())
            })
            .await;
            let timeout = if jku.ends_with("silence") { SHORT } else { LONG };
            let words = words(&verify(&server, KeySource::NamedByCard, timeout).await, &server);
            assert!(words.starts_with(expected), "{jku}: {words}");
        }
    }
}

#[tokio::test]
async fn forged_signatures_are_refused_with_the_reason() {
    let header = |alg: &str| format!(r#"{{"alg":"{alg}","kid":"k","typ":"JOSE"}}"#);
    let es256 = header("ES256");
    type Change = fn(&mut Value);
    let unchanged: Change = |_| {};
    for (header, change_signature, change_key, expected) in [
        (&*es256, unchanged, unchanged, "valid 1.0 Given"),
        (&*header("none"), unchanged, unchanged, "invalid: it is not signed at all (alg none)"),
        (&*header("nOnE"), unchanged, unchanged, "invalid: it is not signed at all (alg none)"),
        (
            &*header("HS256"),
            unchanged,
            unchanged,
            "invalid: HS256 is a shared secret, and that proves nothing about who signed",
        ),
        (&*header("ES512"), unchanged, unchanged, "invalid: the algorithm ES512 is not known"),
        (r#"{"kid":"k"}"#, unchanged, unchanged, "invalid: it names no algorithm (alg)"),
        (r#"{"alg":"ES256"}"#, unchanged, unchanged, "invalid: it names no key (kid)"),
        (r#"{"alg":"ES256","kid":""}"#, unchanged, unchanged, "invalid: it names no key (kid)"),
        (r#"{"alg":"ES256","kid":"other"}"#, unchanged, unchanged, "unknown: keys has no key with this id"),
        (
            r#"{"alg":"ES256","kid":"k","crit":["b64"],"b64":false}"#,
            unchanged,
            unchanged,
            "invalid: it depends on extensions that Sabir does not know (crit)",
        ),
        (
            r#"{"alg":"ES256","kid":"k","crit":null}"#,
            unchanged,
            unchanged,
            "invalid: it depends on extensions that Sabir does not know (crit)",
        ),
        (
            r#"{"alg":"ES256","kid":"k","b64":false}"#,
            unchanged,
            unchanged,
            "invalid: its payload is not encoded (b64), which signatures of cards never are",
        ),
        ("no JSON", unchanged, unchanged, "invalid: the protected header is not a JSON object of known form"),
        (r#"["ES256","k"]"#, unchanged, unchanged, "invalid: the protected header is not a JSON object of known form"),
        (
            r#"{"alg":"none","alg":"ES256","kid":"k"}"#,
            unchanged,
            unchanged,
            "invalid: the protected header is not a JSON object of known form",
        ),
        (
            &es256,
            |signature| signature["protected"] = json!("e30="),
            unchanged,
            "invalid: the protected header is not base64url",
        ),
        (
            &es256,
            |signature| signature["signature"] = json!("!!"),
            unchanged,
            "invalid: the signature is not base64url",
        ),
        (
            &es256,
            |signature| signature["signature"] = json!(""),
            unchanged,
            "its signatures cannot be read: signatures[0].signature is required",
        ),
        (
            &es256,
            |signature| signature["header"] = json!({"alg": "none"}),
            unchanged,
            "invalid: alg is in the unprotected header, which anybody can change",
        ),
        (&es256, |signature| signature["header"] = json!({"note": 1}), unchanged, "valid 1.0 Given"),
        // The key decides what it may verify.
        (
            &header("EdDSA"),
            unchanged,
            unchanged,
            "invalid: the signature says EdDSA, but the key is of the kind EC P-256",
        ),
        (
            &header("RS256"),
            unchanged,
            unchanged,
            "invalid: the signature says RS256, but the key is of the kind EC P-256",
        ),
        (
            &es256,
            unchanged,
            |key| *key = json!({"kty": "oct", "kid": "k", "k": "AAAA"}),
            "invalid: the key is a shared secret, and that proves nothing about who signed",
        ),
        (
            &es256,
            unchanged,
            |key| key["kty"] = json!("RSA"),
            "invalid: the signature says ES256, but the key is of the kind RSA",
        ),
        (
            &es256,
            unchanged,
            |key| key["crv"] = json!("secp256k1"),
            "invalid: the signature says ES256, but the key is of the kind EC secp256k1",
        ),
        (
            &es256,
            unchanged,
            |key| key["alg"] = json!("ES384"),
            "invalid: the signature says ES256, but the key is for ES384",
        ),
        (&es256, unchanged, |key| key["use"] = json!("enc"), "invalid: the key is not for signatures (use: enc)"),
        (&es256, unchanged, |key| key["key_ops"] = json!(["sign"]), "invalid: the key is not for verifying (key_ops)"),
        (&es256, unchanged, |key| key["key_ops"] = json!(["verify"]), "valid 1.0 Given"),
        (
            &es256,
            unchanged,
            |key| key["d"] = json!("AAAA"),
            "invalid: the key set shows the private half of the key, so anybody can sign with it",
        ),
        (&es256, unchanged, |key| key["x"] = json!("AAAA"), "invalid: the key is malformed"),
        (
            &es256,
            unchanged,
            |key| key["y"] = key["x"].clone(),
            "invalid: it does not fit the card: one of them was changed",
        ),
    ] {
        let forger = Forger::new();
        let (mut card, mut key) = (card(), forger.jwk());
        let mut signature = forger.sign(header, &payload(&card));
        change_signature(&mut signature);
        change_key(&mut key);
        card["signatures"] = json!([signature]);
        let server = serving(move |_| (card.to_string(), String::new())).await;
        let keys = KeySet::parse(key_set([key.to_string()]).as_bytes()).unwrap();
        let words = words(&verify(&server, KeySource::Given { keys, name: "keys".into() }, LONG).await, &server);
        assert!(words.starts_with(expected), "{header}: {words}");
    }
}

#[tokio::test]
async fn a_stranger_cannot_keep_us_busy() {
    let key = CardKey::generate(KeyAlgorithm::EdDsa);
    for (signatures, expected_requests, expected) in
        [(6, 4, "unknown: the signatures name more than 4 key sets"), (33, 0, "the card has more than 32 signatures")]
    {
        let signer = key.clone();
        let server = serving(move |address| {
            let mut card = card();
            let each = (0..signatures).map(|number| {
                let signature = signer.sign(&payload(&card), &format!("http://{address}/none{number}"));
                json!({"protected": signature.protected, "signature": signature.signature})
            });
            card["signatures"] = each.collect();
            (card.to_string(), String::new())
        })
        .await;
        let words = words(&verify(&server, KeySource::NamedByCard, LONG).await, &server);
        assert!(words.ends_with(expected), "{words}");
        assert_eq!(server.requests().len(), 1 + expected_requests);
    }
}

#[tokio::test]
async fn a_card_for_two_versions_says_which_members_are_signed() {
    let key = CardKey::generate(KeyAlgorithm::EdDsa);
    let mut card = card();
    card["url"] = json!("https://agents.example.com/é");
    let payloads = payloads_to_sign(card.to_string().as_bytes(), CardFormat::Hybrid).unwrap();
    let signatures = payloads.iter().map(|payload| {
        let signature = key.sign(&payload.text, "https://agents.example.com/keys");
        json!({"protected": signature.protected, "signature": signature.signature})
    });
    card["signatures"] = signatures.collect();
    for (url, expected) in [
        ("https://agents.example.com/é", "valid 1.0 Given; valid 0.3 Given"),
        ("https://evil.example/", "valid 1.0 Given; invalid: it does not fit the card: one of them was changed"),
    ] {
        card["url"] = json!(url);
        let text = card.to_string();
        let server = serving(move |_| (text.clone(), String::new())).await;
        let keys = KeySet::parse(key_set([key.jwk()]).as_bytes()).unwrap();
        let checked = verify(&server, KeySource::Given { keys, name: "keys".into() }, LONG).await;
        assert_eq!(words(&checked, &server), expected);
    }
}
