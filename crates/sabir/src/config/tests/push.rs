//! Webhooks: allow-lists stop the start where they are malformed, and secrets are shown nowhere.

use sabir_outbound::jose::{CardKey, KeyAlgorithm};
use sabir_outbound::webhooks::{SealKey, SigningKey};

use super::*;

#[test]
fn allow_lists_in_every_spelling() {
    let hosts = "a host name or an address, without scheme and port, such as \"hooks.internal\"";
    let ranges = "a range of addresses such as \"10.0.0.0/8\" or \"fd00::/8\"";
    for (variables, file, key, expected) in [
        (&[][..], "", "allow_hosts", "null # default".to_owned()),
        (
            &[("PUSH_NOTIFICATION_ALLOWED_HOSTS", " hook-a , hook-b,")],
            "[push]\nallow_hosts = 'c'",
            "allow_hosts",
            r#"["hook-a","hook-b"] # PUSH_NOTIFICATION_ALLOWED_HOSTS"#.to_owned(),
        ),
        (
            &[("PUSH_NOTIFICATION_ALLOWED_CIDRS", "10.0.0.0/8,fd00::/8"), ("SABIR_PUSH_ALLOW_CIDRS", "::1/128")],
            "",
            "allow_cidrs",
            r#"["::1/128"] # SABIR_PUSH_ALLOW_CIDRS"#.to_owned(),
        ),
        (
            &[("PUSH_NOTIFICATION_ALLOWED_CIDRS", "10.0.0.0/8, 10.0.0.0/33")],
            "",
            "",
            format!("PUSH_NOTIFICATION_ALLOWED_CIDRS holds \"10.0.0.0/33\"; expected {ranges}"),
        ),
        (
            &[("PUSH_NOTIFICATION_ALLOWED_HOSTS", "http://hook-a")],
            "",
            "",
            format!("PUSH_NOTIFICATION_ALLOWED_HOSTS is \"http://hook-a\"; expected {hosts}"),
        ),
        (
            &[("SABIR_PUSH_ALLOW_CIDRS", "banana")],
            "[push]\nallow_hosts = ['a', 'b:80']",
            "",
            format!(
                "sabir.toml:2: push.allow_hosts holds \"b:80\"; expected {hosts}\n\
                 SABIR_PUSH_ALLOW_CIDRS is \"banana\"; expected {ranges}"
            ),
        ),
    ] {
        let key = format!("push.{key}");
        assert_eq!(outcome(&CliOptions::default(), variables, file, &key), expected, "{variables:?} {file}");
    }
}

#[test]
fn ports_in_every_spelling() {
    let expected = "a number from 1 to 65535, or \"any\" or \"safe\" alone";
    for (variables, file, shown) in [
        (&[][..], "", "\"any\" # default".to_owned()),
        (&[], "[push]\nports = 'safe'", "\"safe\" # sabir.toml:2".to_owned()),
        (&[], "[push]\nports = [443, 8443, 443]", "[443,8443] # sabir.toml:2".to_owned()),
        (&[("SABIR_PUSH_PORTS", "443, 8443")], "", "[443,8443] # SABIR_PUSH_PORTS".to_owned()),
        (&[], "[push]\nports = 8443", "[8443] # sabir.toml:2".to_owned()),
        (&[], "[push]\nports = [443, 0]", format!("sabir.toml:2: push.ports holds 0; expected {expected}")),
        (&[], "[push]\nports = ['any', 443]", format!("sabir.toml:2: push.ports holds \"any\"; expected {expected}")),
        (&[("SABIR_PUSH_PORTS", "https")], "", format!("SABIR_PUSH_PORTS is \"https\"; expected {expected}")),
    ] {
        assert_eq!(outcome(&CliOptions::default(), variables, file, "push.ports"), shown, "{variables:?} {file}");
    }
}

#[test]
fn secrets_are_neither_shown_nor_repeated() {
    let (store, signing) = (SealKey::generate().to_text(), SigningKey::generate().to_text());
    let card = CardKey::generate(KeyAlgorithm::Es256).to_text();
    for (variable, fitting, wrong) in [
        ("SABIR_CARD_SIGNING_KEY", card.as_str(), "sabir-card-key-0123"),
        ("SABIR_STORE_KEY", store.as_str(), "sabir-key-0123"),
        ("SABIR_PUSH_SIGNING_KEY", &signing, "sabir-signing-key-0123"),
        ("SABIR_PUSH_HMAC_SECRET", "at least 16 bytes", "too short"),
        ("SABIR_PUSH_HMAC_SECRET", "whsec_MDEyMzQ1Njc4OWFiY2RlZg==", "whsec_0123456789abcdef!"),
    ] {
        let loaded = load_text(&CliOptions::default(), &[(variable, fitting)], "").unwrap();
        for text in [show(&loaded, Audience::Person), show(&loaded, Audience::Program), format!("{loaded:?}")] {
            assert!(!text.contains(fitting) && text.contains("(not shown)"), "{variable}");
        }
        let refusal = load_text(&CliOptions::default(), &[(variable, wrong)], "").unwrap_err().to_string();
        assert!(refusal.starts_with(&format!("{variable} does not fit; expected ")), "{refusal}");
        assert!(!refusal.contains(wrong), "{refusal}");
    }
}
