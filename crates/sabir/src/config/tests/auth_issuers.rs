//! Issuers of tokens: what must be said of them, and what other servers' names mean.

use super::*;

const ISSUER: &str = "https://login.example.com/realms/x";

fn issuer_outcome(variables: &[(&str, &str)], file: &str) -> String {
    match load_text(&CliOptions::default(), variables, file) {
        Err(problems) => problems.to_string(),
        Ok(loaded) => {
            let shown = loaded.values.iter().filter(|shown| shown.key.starts_with("auth.issuer."));
            let shown = shown.filter(|shown| shown.origin != ValueOrigin::Default || shown.key.ends_with("audience"));
            let rows = shown.map(|shown| format!("{} = {} # {}", &shown.key[12..], shown.value, shown.origin));
            rows.collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn an_issuer_in_the_file() {
    let file = format!(
        "[[auth.issuer]]\nissuer = '{ISSUER}/'\naudience = ['a', 'b']\nscope_names = {{ 'a2a.run' = 'run' }}\n\
         algorithms = 'ES256'\nleeway = 5\ndefault_scopes = []"
    );
    let loaded = load_text(&CliOptions::default(), &[], &file).unwrap();
    let [issuer] = loaded.config.auth.issuers.as_slice() else { panic!("one issuer") };
    assert_eq!(issuer.issuer, format!("{ISSUER}/"), "tokens are compared with it, slash and all");
    assert_eq!(issuer.audience, ["a", "b"]);
    assert_eq!(issuer.algorithms.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>(), ["ES256"]);
    assert_eq!(issuer.leeway, Duration::from_secs(5));
    assert_eq!(issuer.scope_names.get("a2a.run").map(String::as_str), Some("run"));
    assert_eq!((issuer.subject_claim.as_str(), issuer.default_scopes.len()), ("sub", 0));
    assert_eq!(issuer.scope_claims, ["scope", "scp", "permissions", "roles"]);

    let defaults = sabir_server::jwt::JwtSettings::new(ISSUER, "a");
    let file = format!("[[auth.issuer]]\nissuer = '{ISSUER}'\naudience = 'a'");
    let loaded = load_text(&CliOptions::default(), &[], &file).unwrap();
    assert_eq!(loaded.config.auth.issuers, [defaults], "one table of defaults says what the other does");
}

#[test]
fn what_must_be_said_of_an_issuer() {
    let url = "the address of an issuer without query and user, such as \"https://login.example.com\"";
    let names = "RS256 or RS384 or RS512 or PS256 or PS384 or PS512 or ES256 or ES384 or EdDSA";
    let open = "issuer must begin with https:// unless it is on loopback, or jwks_url says where its keys are";
    for (keys, expected) in [
        ("audience = 'a'", "sabir.toml:1: this [[auth.issuer]] has no issuer".to_owned()),
        (
            "issuer = 'https://a.example'",
            "sabir.toml:1: this [[auth.issuer]] has no audience; name one, or set server.public_url".to_owned(),
        ),
        (
            "issuer = 'login.example.com'\naudience = 'a'",
            format!("sabir.toml:2: issuer is \"login.example.com\"; expected {url}"),
        ),
        (
            "issuer = 'https://u:p@a.example'\naudience = 'a'",
            format!("sabir.toml:2: issuer does not fit; expected {url}"),
        ),
        (
            "issuer = 'https://a.example?x'\naudience = 'a'",
            format!("sabir.toml:2: issuer is \"https://a.example?x\"; expected {url}"),
        ),
        ("issuer = 'http://a.example'\naudience = 'a'", format!("sabir.toml:2: {open}")),
        ("issuer = 'http://localhost.a.example'\naudience = 'a'", format!("sabir.toml:2: {open}")),
        (
            "issuer = 'https://a.example'\naudience = []",
            "sabir.toml:3: audience is empty; expected a text that is not empty\n\
             sabir.toml:1: this [[auth.issuer]] has no audience; name one, or set server.public_url"
                .to_owned(),
        ),
        (
            "issuer = 'https://a.example'\naudience = 'a'\nalgorithms = ['ES256', 'HS256']",
            format!("sabir.toml:4: algorithms holds \"HS256\"; expected {names}"),
        ),
        (
            "issuer = 'https://a.example'\naudience = 'a'\nalgorithms = ['none']",
            format!("sabir.toml:4: algorithms holds \"none\"; expected {names}"),
        ),
        (
            "issuer = 'https://a.example'\naudience = 'a'\nleeway = '1h'",
            "sabir.toml:4: leeway is \"1h\"; expected at most 10m".to_owned(),
        ),
        (
            "issuer = 'https://a.example'\naudience = 'a'\nscope_names = { x = 1 }",
            "sabir.toml:4: scope_names holds \"x\", which is 1; expected a text that is not empty".to_owned(),
        ),
        (
            "issuer = 'https://a.example'\naudience = 'a'\njwks_uri = 'https://a.example/keys'",
            "sabir.toml:4: unknown key \"jwks_uri\" in [[auth.issuer]]; did you mean \"jwks_url\"?".to_owned(),
        ),
    ] {
        let mut lines: Vec<String> =
            issuer_outcome(&[], &format!("[[auth.issuer]]\n{keys}")).lines().map(str::to_owned).collect();
        let mut expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected, "{keys}");
    }
    for (file, expected) in [
        (
            "[[auth.issuer]]\nissuer = 'https://a.example'\naudience = 'a'\n[[auth.issuer]]\nissuer = 'https://a.example'\n\
             audience = 'b'",
            "sabir.toml:5: there are two issuers with the issuer \"https://a.example\"",
        ),
        ("auth = 1", "sabir.toml:1: auth is 1; expected a section [auth]"),
        (
            "[auth]\nissuer = 'https://a.example'",
            "sabir.toml:2: issuer is \"https://a.example\"; expected [[auth.issuer]] tables",
        ),
        ("[auth.issuer]\nissuer = 'x'", "sabir.toml:1: issuers are a list; write [[auth.issuer]] for each"),
        ("[[auth.isuer]]\nissuer = 'x'", "sabir.toml:1: unknown section [[auth.isuer]]; did you mean [[auth.issuer]]?"),
    ] {
        assert_eq!(issuer_outcome(&[], file), expected, "{file}");
    }
}

#[test]
fn plain_http_is_for_loopback_or_with_an_address_of_keys() {
    for keys in [
        "issuer = 'http://127.0.0.1:8080/realms/x'",
        "issuer = 'http://localhost:8080'",
        "issuer = 'http://[::1]:8080'",
        "issuer = 'http://keycloak:8080/realms/x'\njwks_url = 'http://keycloak:8080/keys'",
        "issuer = 'https://a.example'\njwks_url = 'https://b.example/keys?policy=x'",
    ] {
        let file = format!("[[auth.issuer]]\naudience = 'a'\n{keys}");
        assert!(load_text(&CliOptions::default(), &[], &file).is_ok(), "{keys}");
    }
}

#[test]
fn the_public_address_is_the_audience_by_default() {
    let file = format!("[server]\npublic_url = 'https://agents.example.com'\n[[auth.issuer]]\nissuer = '{ISSUER}'");
    let expected = format!(
        "\"{ISSUER}\".issuer = \"{ISSUER}\" # sabir.toml:4\n\
         \"{ISSUER}\".audience = [\"https://agents.example.com\"] # default"
    );
    assert_eq!(issuer_outcome(&[], &file), expected);
}

#[test]
fn names_of_other_servers_make_one_issuer() {
    let discovery = format!("{ISSUER}/.well-known/openid-configuration");
    let discovery = ("AUTH_OIDC_DISCOVERY_URL", discovery.as_str());
    let (on, off) = (("AUTH_ENABLED", "true"), ("AUTH_ENABLED", "false"));
    let audience = ("AUTH_RESOURCE_URL", "https://agents.example.com/mcp");
    let both = format!(
        "\"{ISSUER}\".issuer = \"{ISSUER}\" # AUTH_OIDC_DISCOVERY_URL\n\
         \"{ISSUER}\".audience = [\"https://agents.example.com/mcp\"] # AUTH_RESOURCE_URL"
    );
    let unknown = "asks callers for tokens, and nothing says who issues them; set AUTH_OIDC_DISCOVERY_URL";
    for (variables, expected) in [
        (&[discovery, audience][..], both.clone()),
        (&[on, discovery, audience], both),
        (&[off, discovery, audience], String::new()),
        (&[off], String::new()),
        (&[on], format!("AUTH_ENABLED {unknown}, or write [[auth.issuer]] or [[auth.token]]")),
        (&[on, ("A2A_AUTH_TOKEN", "secret")], String::new()),
        (&[on, audience], format!("AUTH_RESOURCE_URL {unknown}")),
        (
            &[on, discovery],
            "AUTH_OIDC_DISCOVERY_URL: tokens need an audience; set AUTH_AUDIENCE, AUTH_RESOURCE_URL or \
             server.public_url"
                .to_owned(),
        ),
        (
            &[
                on,
                ("AUTH_ISSUER", "https://a.example"),
                ("AUTH_JWKS_URI", "https://a.example/k"),
                ("AUTH_AUDIENCE", "x,y"),
            ],
            "\"https://a.example\".issuer = \"https://a.example\" # AUTH_ISSUER\n\
             \"https://a.example\".audience = [\"x\",\"y\"] # AUTH_AUDIENCE\n\
             \"https://a.example\".jwks_url = \"https://a.example/k\" # AUTH_JWKS_URI"
                .to_owned(),
        ),
        (
            &[on, ("AUTH_ISSUER", "banana"), audience],
            "AUTH_ISSUER is \"banana\"; expected the address of an issuer without query and user, such as \
             \"https://login.example.com\""
                .to_owned(),
        ),
    ] {
        assert_eq!(issuer_outcome(variables, ""), expected, "{variables:?}");
    }
    let file = "[[auth.issuer]]\nissuer = 'https://a.example'\naudience = 'a'";
    let told = warnings(&[on, discovery], file);
    assert!(told.contains("AUTH_OIDC_DISCOVERY_URL is ignored, since sabir.toml lists issuers"), "{told}");
    assert!(
        warnings(&[off, discovery], "").contains("AUTH_OIDC_DISCOVERY_URL is ignored, since AUTH_ENABLED is false")
    );
}

#[test]
fn callers_with_tokens_are_not_the_operator() {
    let agent = "[[agent]]\nid = 'a'\nkind = 'command'\ncommand = 'cat'\n";
    let issuer = "[[auth.issuer]]\nissuer = 'https://a.example'\naudience = 'a'";
    for (file, expected) in [(agent.to_owned(), "true # default"), (format!("{agent}{issuer}"), "false # default")] {
        assert_eq!(outcome(&CliOptions::default(), &[], &file, "agent.a.tell_stderr"), expected);
    }
}
