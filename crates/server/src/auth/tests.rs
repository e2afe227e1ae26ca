use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue};
use sabir_engine::{Clock, SystemClock};
use sabir_testkit::oidc_provider::{AUDIENCE, KEYS, OidcProvider, ProviderAnswer};

use super::*;

fn credential(secret: &str, subject: &str, scopes: &[&str]) -> Credential {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    Credential {
        digest: Digest::of(secret.as_bytes()),
        grant: Grant { subject: subject.into(), tenant: "acme".into(), scopes },
    }
}

fn auth() -> Auth {
    let key = |header: &str, secret: &str, subject: &str| ApiKey {
        header: header.into(),
        credential: credential(secret, subject, &["read"]),
    };
    Auth::new(&AuthSettings {
        tokens: vec![credential("secret-a", "alice", &["run"]), credential("secret-b", "bob", &[])],
        api_keys: vec![key("x-api-key", "key-c", "carol"), key("x-other-key", "key-d", "dave")],
        certificates: None,
        issuers: Arc::default(),
    })
}

fn headers(all: &[(&str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&str, &str)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    all.iter().map(pair).collect()
}

#[tokio::test]
async fn a_caller_is_who_its_credential_says() {
    let auth = auth();
    for (shown, expected) in [
        (&[("authorization", "Bearer secret-a")][..], "token:alice"),
        (&[("authorization", "bearer   secret-b ")], "token:bob"),
        (&[("x-api-key", "key-c")], "key:carol"),
        (&[("x-other-key", "key-d")], "key:dave"),
        // Authorization decides.
        (&[("authorization", "Bearer secret-a"), ("x-api-key", "key-c")], "token:alice"),
        (&[("authorization", "Bearer wrong"), ("x-api-key", "key-c")], "the bearer token is not known"),
        (&[("authorization", "Bearer key-c")], "the bearer token is not known"),
        (&[("x-other-key", "key-c")], "the API key is not known"),
        (&[("x-api-key", "")], "the API key is not known"),
        (&[("authorization", "Bearer")], "the bearer token is malformed"),
        (&[("authorization", "Bearer secret-a secret-b")], "the bearer token is malformed"),
        (&[("authorization", "Bearer secret-a"), ("authorization", "Bearer secret-b")], "twice"),
        (&[("x-api-key", "key-c"), ("x-api-key", "key-c")], "twice"),
        (&[("authorization", "Basic c2VjcmV0LWE6")], "not taken"),
        (&[("authorization", "")], "not taken"),
        (&[("authorization", "secret-a")], "not taken"),
        (&[], "a credential is required: send Authorization: Bearer TOKEN, or send x-api-key: KEY"),
    ] {
        match auth.caller(&headers(shown), &Peer::default()).await {
            Ok(caller) => assert_eq!((caller.subject(), caller.tenant()), (Some(expected), Some("acme")), "{shown:?}"),
            Err(error @ Error::Unauthenticated(_)) => {
                let text = error.to_string();
                assert!(text.contains(expected), "{shown:?}: {text}");
                assert!(!text.contains("secret-") && !text.contains("key-"), "a credential is repeated: {text}");
            }
            Err(other) => panic!("{shown:?}: {other}"),
        }
    }
    let bob = auth.caller(&headers(&[("authorization", "Bearer secret-b")]), &Peer::default()).await.unwrap();
    assert_eq!(bob.scopes.as_deref(), Some(&[][..]), "a credential without scopes allows nothing");
    let long = format!("Bearer {}", "x".repeat(20_000));
    assert!(auth.caller(&headers(&[("authorization", &long)]), &Peer::default()).await.is_err());
}

#[tokio::test]
async fn without_credentials_everybody_is_anonymous() {
    let open = Auth::new(&AuthSettings::default());
    assert!(!open.is_required() && open.schemes().is_empty());
    for shown in [&[][..], &[("authorization", "Bearer x")], &[("authorization", "Basic x")]] {
        assert!(open.caller(&headers(shown), &Peer::default()).await.unwrap().is_anonymous());
    }
}

#[test]
fn digests_have_one_text_form() {
    let digest = Digest::of(b"secret");
    let text = digest.to_string();
    assert_eq!(Digest::parse(&text), Some(digest));
    assert_eq!(Digest::parse(&text.to_uppercase().replace("SHA256", "sha256")), Some(digest));
    for wrong in ["", "sha256:", "sha256:00", "secret", &text[7..], &format!("{text}0"), &text.replace("sha256", "md5")]
    {
        assert_eq!(Digest::parse(wrong), None, "{wrong}");
    }
    assert!(!format!("{digest:?}").contains(&text[7..]));
}

#[test]
fn metadata_is_found_with_the_path_of_its_resource_appended() {
    for (path, expected) in [
        ("/.well-known/oauth-protected-resource", Some("")),
        ("/.well-known/oauth-protected-resource/", Some("")),
        ("/.well-known/oauth-protected-resource/a2a/jsonrpc", Some("/a2a/jsonrpc")),
        ("/.well-known/oauth-protected-resources", None),
        ("/.well-known/jwks.json", None),
    ] {
        assert_eq!(resource_path(path), expected, "{path}");
    }
}

#[tokio::test]
async fn a_client_certificate_is_a_credential_where_the_settings_say_so() {
    let uri = "spiffe://acme/worker".to_owned();
    let certificate = PeerCertificate { uri, fingerprint: "00".into(), not_after: std::time::SystemTime::UNIX_EPOCH };
    let peer = Peer { address: None, certificate: Some(Arc::new(certificate)) };
    let settings = |certificates| AuthSettings {
        tokens: vec![credential("secret-a", "alice", &["run"])],
        certificates,
        ..AuthSettings::default()
    };
    let with = Auth::new(&settings(Some(CertificateGrant { scopes: vec!["read".into()] })));
    let caller = with.caller(&HeaderMap::new(), &peer).await.unwrap();
    assert_eq!((caller.subject(), caller.has_scope("read")), (Some("cert:spiffe://acme/worker"), true));
    // A header decides.
    let shown = headers(&[("authorization", "Bearer secret-a")]);
    assert_eq!(with.caller(&shown, &peer).await.unwrap().subject(), Some("token:alice"));
    assert!(with.caller(&headers(&[("authorization", "Bearer wrong")]), &peer).await.is_err());
    assert!(with.caller(&HeaderMap::new(), &Peer::default()).await.is_err());
    assert_eq!(with.schemes().len(), 2);
    let without = Auth::new(&settings(None));
    assert!(without.caller(&HeaderMap::new(), &peer).await.is_err());
}

/// Documents of an issuer of this process.
struct Published(Arc<OidcProvider>);

impl jwt::DocumentFetcher for Published {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Bytes, String>> {
        let answer = match self.0.answer(url.strip_prefix(self.0.issuer.trim_end_matches('/')).unwrap_or_default()) {
            ProviderAnswer::Document(text) => Ok(Bytes::from(text)),
            other => Err(format!("{other:?}")),
        };
        Box::pin(std::future::ready(answer))
    }
}

fn auth_with_issuer(provider: &Arc<OidcProvider>) -> Auth {
    auth_with(provider, jwt::JwtSettings::new(provider.issuer.clone(), AUDIENCE))
}

fn auth_with(provider: &Arc<OidcProvider>, settings: jwt::JwtSettings) -> Auth {
    let verifier = jwt::JwtVerifier::new(settings, Arc::new(Published(provider.clone())));
    Auth::new(&AuthSettings {
        tokens: vec![credential("secret.a.b", "alice", &["run"])],
        issuers: Arc::new(Issuers::new(vec![verifier])),
        ..AuthSettings::default()
    })
}

#[tokio::test]
async fn tokens_of_issuers_and_of_the_file_are_taken_side_by_side() {
    let provider = Arc::new(OidcProvider::new("https://idp.example/"));
    let auth = auth_with_issuer(&provider);
    let now = SystemClock.now().as_millis() / 1000;
    let mut claims = provider.claims("alice", now);
    let good = provider.key().token(&claims);
    claims["aud"] = "another".into();
    let elsewhere = provider.key().token(&claims);
    for (token, expected) in [
        (good.as_str(), "https://idp.example/#alice"),
        ("secret.a.b", "token:alice"),
        (&elsewhere, "the token is meant for another audience"),
        ("wrong", "the bearer token is not known"),
        ("eyJh.b.c", "the token is malformed"),
        ("e.\u{e9}.c", "the token is malformed"),
    ] {
        let header = headers(&[("authorization", &format!("Bearer {token}"))]);
        let outcome = match auth.caller(&header, &Peer::default()).await {
            Ok(caller) => caller.subject().unwrap_or_default().to_owned(),
            Err(Error::Unauthenticated(words)) => words,
            Err(other) => panic!("{other}"),
        };
        assert!(outcome.starts_with(expected), "{token}: {outcome}");
    }
    let caller =
        auth.caller(&headers(&[("authorization", &format!("Bearer {good}"))]), &Peer::default()).await.unwrap();
    assert_eq!(caller.scopes.as_deref(), Some(&["read".to_owned(), "run".to_owned()][..]));
    assert!(auth.metadata("https://me.example", "").contains(r#""authorization_servers":["https://idp.example/"]"#));
    let schemes: Vec<String> = auth.schemes().into_iter().map(|(name, _)| name).collect();
    assert_eq!(schemes, ["bearer", "oauth2"]);
}

/// Hosts ask the issuer for what the metadata lists, and an issuer refuses names that it does not have.
#[test]
fn metadata_lists_scopes_as_the_issuer_calls_them() {
    let provider = Arc::new(OidcProvider::new("https://idp.example"));
    for (names, expected) in [
        (&[][..], r#"["run","read","approve","admin","metrics"]"#),
        (&[("a2a.look", "read"), ("a2a.run", "run")], r#"["a2a.look","a2a.run"]"#),
    ] {
        let mut settings = jwt::JwtSettings::new(provider.issuer.clone(), AUDIENCE);
        settings.scope_names = names.iter().map(|(name, ours)| ((*name).to_owned(), (*ours).to_owned())).collect();
        let metadata = auth_with(&provider, settings).metadata("https://me.example", "");
        assert!(metadata.contains(&format!(r#""scopes_supported":{expected}"#)), "{metadata}");
    }
}

#[tokio::test]
async fn without_the_keys_of_an_issuer_nobody_is_told_that_a_token_is_wrong() {
    let provider = Arc::new(OidcProvider::new("https://idp.example"));
    provider.fail(KEYS, ProviderAnswer::Status(500));
    let auth = auth_with_issuer(&provider);
    let token = provider.key().token(&provider.claims("alice", SystemClock.now().as_millis() / 1000));
    let header = headers(&[("authorization", &format!("Bearer {token}"))]);
    assert!(matches!(auth.caller(&header, &Peer::default()).await, Err(Error::IdentityUnavailable)));
    assert!(auth.caller(&headers(&[("authorization", "Bearer secret.a.b")]), &Peer::default()).await.is_ok());
}

#[tokio::test]
async fn listed_credentials_change_while_the_server_runs() {
    let auth = auth();
    let bearer = |secret: &str| headers(&[("authorization", &format!("Bearer {secret}"))]);
    let is_known = async |secret: &str| auth.caller(&bearer(secret), &Peer::default()).await.is_ok();
    assert!(is_known("secret-a").await && !is_known("secret-n").await);
    auth.reload(&[credential("secret-n", "nora", &["run"])], &[]).unwrap();
    assert!(!is_known("secret-a").await && is_known("secret-n").await);
    assert!(auth.caller(&headers(&[("x-api-key", "key-c")]), &Peer::default()).await.is_err());
    // Whoever removes the last one has locked everybody out, and let nobody in.
    auth.reload(&[], &[]).unwrap();
    assert!(auth.is_required() && !is_known("secret-n").await);
    assert!(auth.caller(&HeaderMap::new(), &Peer::default()).await.is_err());
    let key = ApiKey { header: "x-new".into(), credential: credential("k", "kim", &[]) };
    assert!(auth.reload(&[], &[key]).unwrap_err().contains("no keys in x-new so far"));
    let keys_only = Auth::new(&AuthSettings {
        api_keys: vec![ApiKey { header: "x-api-key".into(), credential: credential("k", "kim", &[]) }],
        ..AuthSettings::default()
    });
    assert!(keys_only.reload(&[credential("t", "tom", &[])], &[]).is_err());
}
