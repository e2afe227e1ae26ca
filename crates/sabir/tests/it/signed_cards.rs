//! Cards that the server signs, and `sabir card`, which verifies them.

use std::process::Command;

use sabir_outbound::jose::{KeySet, ProtectedHeader};
use sabir_testkit::process::SabirOptions;
use sabir_wire::{payloads_to_verify, read_card};
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::ServerFixture;

struct Outcome {
    code: i32,
    printed: Value,
    errors: String,
}

fn sabir(words: &[&str]) -> Outcome {
    let output = Command::new(SABIR).args(words).env_clear().output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        printed: serde_json::from_slice(&output.stdout).unwrap_or_default(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

fn new_key(alg: &str) -> String {
    sabir(&["key", "new", "--card", "--alg", alg]).printed["key"].as_str().unwrap().to_owned()
}

fn signing(key: &str) -> impl FnOnce(SabirOptions) -> SabirOptions {
    move |options| options.variable("SABIR_CARD_SIGNING_KEY", key)
}

#[test]
fn every_card_of_a_server_is_verified() {
    for (alg, name) in [("es256", "ES256"), ("eddsa", "EdDSA")] {
        let fixture = ServerFixture::with(signing(&new_key(alg)));
        let url = format!("http://{}", fixture.server.address);
        for (below, covers) in [
            ("", &["1.0", "0.3"][..]),
            ("/", &["1.0", "0.3"]),
            ("/agents/demo", &["1.0", "0.3"]),
            ("/.well-known/agent.json", &["1.0", "0.3"]),
        ] {
            let outcome = sabir(&["card", &format!("{url}{below}"), "--verify"]);
            assert_eq!((outcome.code, &outcome.printed["verified"]), (0, &json!(true)), "{below}: {}", outcome.errors);
            let signatures = outcome.printed["signatures"].as_array().unwrap();
            let found: Vec<&str> = signatures.iter().map(|check| check["covers"].as_str().unwrap()).collect();
            assert_eq!(found, covers, "{below}");
            for check in signatures {
                assert_eq!((&check["alg"], &check["trust"]), (&json!(name), &json!("nothing")));
                assert_eq!(check["key"], format!("{url}/.well-known/jwks.json"));
            }
            assert!(outcome.errors.starts_with("sabir: warning: card and key came"), "{}", outcome.errors);
        }
    }
}

#[test]
fn each_format_is_signed_for_the_clients_that_read_it() {
    let fixture = ServerFixture::with(signing(&new_key("es256")));
    let keys = fixture.get("/.well-known/jwks.json");
    let keys = KeySet::parse(&keys.body).unwrap();
    for (version, expected) in [("1.0", &["1.0"][..]), ("0.3", &["0.3"]), ("0.2", &["0.3"]), ("0.1", &[])] {
        let reply = fixture.ask("GET", "/.well-known/agent-card.json", &[("A2A-Version", version)], &Value::Null);
        let text = reply.text();
        let payloads = payloads_to_verify(text.as_bytes()).unwrap();
        let covers = |signature| {
            let header = ProtectedHeader::read(signature).unwrap();
            let key = keys.find(&header.kid).next().unwrap();
            let is_signed = |text: &str| key.verifies(&header, signature, text).unwrap();
            payloads.iter().find(|payload| is_signed(&payload.text)).map(|payload| payload.covers.version())
        };
        let found: Vec<_> = read_card(&text).unwrap().signatures.iter().map(covers).collect();
        assert_eq!(found, expected.iter().copied().map(Some).collect::<Vec<_>>(), "{version}: {text}");
        // Signed once: an ES256 signature is never the same twice.
        let again = fixture.ask("GET", "/.well-known/agent-card.json", &[("A2A-Version", version)], &Value::Null);
        assert_eq!(again.text(), text);
    }
}

#[test]
fn the_key_set_has_the_keys_of_cards_and_of_webhooks() {
    let signing_key = format!("sabir-signing-key-{}", "07".repeat(32));
    let fixture = ServerFixture::with(|options| {
        options.variable("SABIR_CARD_SIGNING_KEY", &new_key("es256")).variable("SABIR_PUSH_SIGNING_KEY", &signing_key)
    });
    let keys = fixture.get("/.well-known/jwks.json").json()["keys"].take();
    let keys = keys.as_array().unwrap();
    let shown: Vec<(&Value, &Value)> = keys.iter().map(|key| (&key["alg"], &key["use"])).collect();
    assert_eq!(shown, [(&json!("EdDSA"), &json!("sig")), (&json!("ES256"), &json!("sig"))]);
    assert!(keys.iter().all(|key| key["kid"].is_string() && key.get("d").is_none()), "{keys:?}");
}

#[test]
fn what_is_not_verified_is_said() {
    let signed = ServerFixture::with(signing(&new_key("es256")));
    let unsigned = ServerFixture::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (signed, unsigned) =
        (format!("http://{}", signed.server.address), format!("http://{}", unsigned.server.address));
    let keys = sabir(&["card", &signed]);
    assert_eq!((keys.code, keys.printed.get("verified")), (0, None));
    let own = sabir(&["key", "new", "--card"]).printed["jwks"].to_string();
    let (own, broken) = (file("other.json", &own), file("broken.json", "{}"));
    let jwks = format!("{signed}/.well-known/jwks.json");
    for (words, code, expected) in [
        (&["card", &signed, "--verify", "--jwks", &jwks][..], 0, ""),
        (&["card", &unsigned], 0, ""),
        (&["card", &unsigned, "--verify"], 1, "sabir: the card is not verified: the card has no signature\n"),
        (&["card", &signed, "--verify", "--jwks", &own], 1, "2 of its 2 signatures could not be confirmed"),
        (&["card", &signed, "--verify", "--jwks", &broken], 1, "broken.json is not JSON with a list of keys"),
        (&["card", &signed, "--verify", "--jwks", "nowhere.json"], 1, "cannot read the key set nowhere.json"),
        (&["card", &format!("{signed}/healthz.json")], 3, "there is no card at"),
        (&["card", &jwks], 1, "is no card: "),
        (&["card", "http://127.0.0.1:1"], 3, "cannot fetch http://127.0.0.1:1/.well-known/agent-card.json: "),
        (&["card", "localhost:1"], 3, "cannot fetch http://localhost:1/.well-known/agent-card.json: "),
        (&["card", "ftp://a"], 2, "cannot use the URL ftp://a: the URL must begin with http://"),
        (&["card", &signed, "--jwks", &own], 2, "--verify"),
    ] {
        let outcome = sabir(words);
        assert!(outcome.errors.contains(expected), "{words:?}: {}", outcome.errors);
        assert_eq!((outcome.code, outcome.errors.is_empty()), (code, expected.is_empty()), "{words:?}");
    }
}

#[test]
fn a_malformed_key_stops_the_start_and_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let pem = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (key, expected) in [("sabir-card-key-geheim", "it is cut off or damaged"), (pem, "it is encrypted")] {
        let output = Command::new(SABIR)
            .args(["serve", "--port", "0"])
            .env_clear()
            .env("SABIR_CARD_SIGNING_KEY", key)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.starts_with("sabir: SABIR_CARD_SIGNING_KEY does not fit; expected a private key"), "{errors}");
        assert!(errors.contains(expected) && !errors.contains("geheim") && !errors.contains("c2VjcmV0"), "{errors}");
    }
}
