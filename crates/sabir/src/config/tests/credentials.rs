//! Credentials of callers: in tables and in the environment, and never shown.

use sabir_server::Digest;

use super::*;

fn hash(secret: &str) -> String {
    Digest::of(secret.as_bytes()).to_string()
}

#[test]
fn tables_and_variables_list_who_may_call() {
    let file = format!(
        "[[auth.token]]\nsubject = 'alice'\nhash = '{}'\n\n[[auth.token]]\nsubject = 'ops'\nhash = '{}'\nscopes = ['admin']\n\n\
         [[auth.api_key]]\nsubject = 'bob'\nhash = '{}'\ntenant = 'acme'\nheader = 'X-Bob'\n",
        hash("a"),
        hash("b"),
        hash("c")
    );
    let loaded = load_text(&CliOptions::default(), &[("SABIR_AUTH_TOKENS", "carol:x:y, plain")], &file).unwrap();
    let auth = &loaded.config.auth;
    let credential = |at: usize| auth.token[at].credential().unwrap();
    assert_eq!(credential(0).digest, Digest::of(b"a"));
    assert_eq!(
        (credential(0).grant.scopes, credential(1).grant.scopes),
        (vec!["run".into(), "read".into()], vec!["admin".into()])
    );
    assert_eq!((auth.api_key[0].header.as_str(), auth.api_key[0].tenant.as_deref()), ("x-bob", Some("acme")));
    let named: Vec<(&str, Digest)> =
        auth.tokens.iter().map(|each| (each.grant.subject.as_str(), each.digest)).collect();
    assert_eq!(named, [("carol", Digest::of(b"x:y")), ("default", Digest::of(b"plain"))]);
    assert!(loaded.config.asks_for_credentials());
}

#[test]
fn a_credential_that_does_not_fit_stops_the_start() {
    let token = |rest: &str| format!("[[auth.token]]\n{rest}");
    let ours = hash("a");
    for (file, expected) in [
        (token("subject = 'a'"), "sabir.toml:1: this [[auth.token]] has no hash"),
        (token(&format!("hash = '{ours}'")), "sabir.toml:1: this [[auth.token]] has no subject"),
        (
            token("subject = 'a'\nhash = 'my-secret'"),
            "sabir.toml:3: hash does not fit; expected sha256: and 64 hexadecimal digits; `sabir token new` makes one",
        ),
        (
            token(&format!("subject = 'a'\nhash = '{ours}'\nscopes = ['admin:coder']")),
            "sabir.toml:4: scopes holds \"admin:coder\"; expected a scope such as run, read, approve, admin, metrics or run:coder",
        ),
        (
            token(&format!("subject = 'a'\nhash = '{ours}'\nheader = 'X'")),
            "sabir.toml:4: unknown key \"header\" in [[auth.token]]; known keys: subject, hash, tenant, scopes",
        ),
        (
            format!("{0}\n{0}", token(&format!("subject = 'a'\nhash = '{ours}'"))),
            "sabir.toml:6: two [[auth.token]] have the same hash; each secret has one subject",
        ),
        (
            format!("[[auth.api_key]]\nsubject = 'a'\nhash = '{ours}'\nheader = 'Authorization'"),
            "sabir.toml:4: header is \"Authorization\"; expected the name of a request header other than Authorization",
        ),
        ("[auth]\ntoken = 'x'".to_owned(), "sabir.toml:2: token is \"x\"; expected [[auth.token]] tables"),
        ("[[auth.tokn]]".to_owned(), "sabir.toml:1: unknown section [[auth.tokn]]; did you mean [[auth.token]]?"),
    ] {
        assert_eq!(outcome(&CliOptions::default(), &[], &file, ""), expected, "{file}");
    }
}

#[test]
fn secrets_of_callers_are_neither_shown_nor_repeated() {
    let secret = "top-secret";
    let file = format!("[[auth.token]]\nsubject = 'a'\nhash = '{}'", hash(secret));
    let variables = [("A2A_AUTH_TOKEN", secret)];
    let loaded = load_text(&CliOptions::default(), &variables, &file).unwrap();
    let shown: String = loaded.values.iter().map(|shown| format!("{} = {}\n", shown.key, shown.value)).collect();
    let debug = format!("{:?}", loaded.config);
    for text in [&shown, &debug] {
        assert!(!text.contains(secret) && !text.contains(&hash(secret)[7..]), "{text}");
    }
    assert!(shown.contains("auth.tokens = [\"default:(not shown)\"]"), "{shown}");
    let refused = outcome(&CliOptions::default(), &[("SABIR_AUTH_TOKENS", "a:top secret")], "", "");
    assert!(refused.starts_with("SABIR_AUTH_TOKENS does not fit") && !refused.contains("secret"), "{refused}");
}

#[test]
fn other_machines_may_call_where_credentials_are_asked_for() {
    let open = ("SABIR_LISTEN", "0.0.0.0:1");
    for (variables, is_refused) in [
        (&[open][..], true),
        (&[open, ("A2A_AUTH_TOKEN", "x:y")], false),
        (&[open, ("A2A_AUTH_TOKENS", "a:b,c:d")], false),
        (&[("A2A_AUTH_ENABLED", "true")], true),
        (&[("A2A_AUTH_ENABLED", "true"), ("A2A_AUTH_TOKEN", "x")], false),
        (&[("A2A_AUTH_ENABLED", "false")], false),
    ] {
        let loaded = load_text(&CliOptions::default(), variables, "").unwrap();
        assert_eq!(loaded.check_exposure().is_err(), is_refused, "{variables:?}");
    }
    let host = [("A2A_HOST", "0.0.0.0"), ("A2A_AUTH_TOKEN", "x")];
    assert_eq!(outcome(&CliOptions::default(), &host, "", "server.listen"), r#"["0.0.0.0:41242"] # A2A_HOST"#);
}

#[test]
fn an_approver_without_credentials_is_warned_of() {
    let file = "[[agent]]\nid = 'a'\nkind = 'demo'\napprover = 'ops'";
    assert!(warnings(&[], file).contains("nobody can give the approvals that agent a asks for"));
    assert_eq!(warnings(&[("SABIR_AUTH_TOKENS", "a:b")], file), "");
}
