//! `sabir proxy`: its flags as settings of one agent, and where its database is.

use super::*;
use crate::cli::{Cli, CliCommand};
use clap::Parser;

fn proxy(words: &str) -> CliOptions {
    let words = format!("sabir proxy {words}");
    match Cli::parse_from(words.split_whitespace()).command {
        CliCommand::Proxy(options) => options.into_options(),
        _ => panic!("proxy was asked for"),
    }
}

#[test]
fn flags_and_the_variable_describe_one_agent() {
    let list = "[[agent]]\nid = 'b'\nkind = 'demo'\n";
    let token = [("SABIR_UPSTREAM_TOKEN", "t")];
    for (words, variables, key, expected) in [
        ("https://a.example", &[][..], "id", r#""remote" # proxy"#),
        ("https://a.example", &[], "kind", r#""a2a" # proxy"#),
        ("https://a.example", &[], "url", r#""https://a.example" # URL"#),
        ("https://a.example --card-url https://a/x.json", &[], "card_url", r#""https://a/x.json" # --card-url"#),
        ("https://a.example --endpoint https://a/x", &[], "endpoint", r#""https://a/x" # --endpoint"#),
        ("https://a.example --a2a-version 0.3", &[], "a2a_version", r#""0.3" # --a2a-version"#),
        (
            "https://a.example --transport http+json --transport jsonrpc",
            &[],
            "transports",
            r#"["http+json","jsonrpc"] # --transport"#,
        ),
        ("https://a.example", &token, "token", r#""(not shown)" # SABIR_UPSTREAM_TOKEN"#),
        ("https://a.example --bearer x", &token, "token", r#""(not shown)" # --bearer"#),
        ("https://a.example --api-key X-Key:a:b", &[], "api_key_name", r#""X-Key" # --api-key"#),
        (
            "https://a.example --header a:b --header c:d",
            &[],
            "headers",
            r#"{"a":"(not shown)","c":"(not shown)"} # --header"#,
        ),
        ("https://a.example", &[("SABIR_AGENT", "demo")], "id", r#""remote" # proxy"#),
    ] {
        let shown = outcome(&proxy(words), variables, list, &format!("agent.remote.{key}"));
        assert_eq!(shown, expected, "{words} {variables:?}");
        let config = load_text(&proxy(words), variables, list).unwrap().config;
        assert_eq!((config.agents.len(), config.agents[0].id.as_str()), (1, "remote"));
    }
    let config = load_text(&proxy("https://a.example --api-key X-Key:a:b"), &[], "").unwrap().config;
    assert_eq!(config.agents[0].remote.upstream.api_key.value.as_ref().map(|key| key.as_str()), Some("a:b"));
    assert_eq!(warnings_of(&proxy("https://a.example"), &token), "");
}

fn warnings_of(options: &CliOptions, variables: &[(&str, &str)]) -> String {
    load_text(options, variables, "").unwrap().warnings.join("\n")
}

#[test]
fn wrong_flags_are_named_and_secrets_are_not() {
    let address = "expected an absolute address without user, such as \"https://agents.example.com\"";
    for (words, variables, expected) in [
        ("a.example", &[][..], format!("URL is \"a.example\"; {address}")),
        ("https://me:secret@a.example", &[], format!("URL does not fit; {address}")),
        ("https://a.example --endpoint /rpc", &[], format!("--endpoint is \"/rpc\"; {address}")),
        (
            "https://a.example --a2a-version 2.0",
            &[],
            "--a2a-version is \"2.0\"; expected 0.1 or 0.2 or 0.3 or 1.0; did you mean \"1.0\"?".into(),
        ),
        (
            "https://a.example --transport soap",
            &[],
            "--transport holds \"soap\"; expected jsonrpc, http+json or grpc".into(),
        ),
        (
            "https://a.example --api-key secret",
            &[],
            "--api-key does not fit; expected NAME:VALUE, such as X-API-Key:abc".into(),
        ),
        (
            "https://a.example --header x:y --header secret",
            &[],
            "--header does not fit; expected NAME:VALUE, such as X-API-Key:abc".into(),
        ),
        (
            "https://a.example --api-key X:secret",
            &[("SABIR_UPSTREAM_TOKEN", "secret")],
            "--api-key is set beside SABIR_UPSTREAM_TOKEN; a remote agent is shown one credential; leave one out, or \
             write the second as a header: headers = { ... }"
                .into(),
        ),
        (
            "https://a.example --bearer secret --header Authorization:secret",
            &[],
            "--header sets Authorization, and so does --bearer; leave one of them out".into(),
        ),
    ] {
        let refused = outcome(&proxy(words), variables, "", "");
        assert_eq!(refused, expected, "{words}");
        assert!(!refused.contains("secret"), "{refused}");
    }
    let refused = Cli::try_parse_from(["sabir", "proxy", "https://a.example", "--agent", "demo"]).unwrap_err();
    assert_eq!(refused.kind(), clap::error::ErrorKind::ArgumentConflict);
    assert!(Cli::try_parse_from(["sabir", "proxy"]).is_err());
}
