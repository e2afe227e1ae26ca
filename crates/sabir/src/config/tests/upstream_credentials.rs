//! What remote agents are shown: where secrets come from, what does not go together, and that none is shown.

use sabir_outbound::credentials::{ApiKeyPlace, Authentication, ClientAuthentication, Secret, TokenInput};

use super::*;
use crate::machine::Machine;
use crate::upstream;

const SECRET: &str = "top-secret";

fn file(rest: &str) -> String {
    format!("[[agent]]\nid = 'x'\nkind = 'a2a'\nurl = 'https://a.example'\n{rest}")
}

/// What the remote agent will be shown, in a few words.
fn shown(rest: &str, variables: &[(&str, &str)]) -> String {
    let config = load_text(&CliOptions::default(), variables, &file(rest)).unwrap().config;
    let machine = Machine { path: "".into(), folder: "/start".into() };
    let settings = upstream::remote_settings(&config.agents[0].remote, &machine).unwrap().credentials;
    let client = |way: &ClientAuthentication| match way {
        ClientAuthentication::SecretBasic(secret) => format!("basic {}", secret.as_str()),
        ClientAuthentication::SecretPost(secret) => format!("post {}", secret.as_str()),
        ClientAuthentication::IdOnly => "nothing".to_owned(),
    };
    let input = |input: &TokenInput| match input {
        TokenInput::Text(token) => token.as_str().to_owned(),
        TokenInput::File(path) => path.display().to_string(),
    };
    let authentication = match &settings.authentication {
        Authentication::None => "none".to_owned(),
        Authentication::Bearer(token) => format!("bearer {}", input(token)),
        Authentication::ApiKey(key) => format!("{:?} {}: {}", key.place, key.name, key.value.as_str()),
        Authentication::Basic { user, password } => format!("{user}:{}", password.as_str()),
        Authentication::ClientCredentials(of) => {
            format!("{} {} {} {:?}", of.endpoint.url, of.client.id, client(&of.client.authentication), of.access)
        }
        Authentication::TokenExchange(of) => {
            let client = of.client.as_ref().map(|of| format!("{} {}", of.id, client(&of.authentication)));
            let kind = of.subject_token_type.as_deref().unwrap_or("-");
            format!("{} {} {kind} {}", of.endpoint.url, input(&of.subject), client.unwrap_or_default())
        }
    };
    let headers = settings.headers.iter().map(|(name, value): &(String, Secret)| format!(" {name}={}", value.as_str()));
    format!("{authentication}{}", headers.collect::<String>())
}

#[test]
fn each_kind_of_credential_and_where_its_secret_comes_from() {
    let oauth = "oauth_token_url = 'https://i.example/token'\noauth_client_id = 'sabir'\n";
    for (rest, expected) in [
        ("", "none"),
        ("token = 'top-secret'", "bearer top-secret"),
        ("token_env = 'VARIABLE'", "bearer of-the-environment"),
        ("token_file = 'run/token'", "bearer run/token"),
        ("token_file = '~/token'", "bearer /h/token"),
        ("api_key = 'k'", "Header X-API-Key: k"),
        ("api_key_env = 'VARIABLE'\napi_key_name = 'key'\napi_key_in = 'query'", "Query key: of-the-environment"),
        ("api_key = 'k'\napi_key_in = 'cookie'\napi_key_name = 'session'", "Cookie session: k"),
        ("user = 'me'\npassword = ' to the letter '", "me: to the letter "),
        ("user = 'me'\npassword = ''", "me:"),
        ("user = 'me'\npassword_env = 'VARIABLE'", "me:of-the-environment"),
        (
            &format!(
                "{oauth}oauth_client_secret = 's'\noauth_scopes = ['a', 'b']\noauth_audience = 'c'\noauth_resource = 'urn:d'"
            ),
            "https://i.example/token sabir basic s \
             RequestedAccess { scopes: [\"a\", \"b\"], audiences: [\"c\"], resources: [\"urn:d\"] }",
        ),
        (
            &format!("{oauth}oauth_client_secret_env = 'VARIABLE'\noauth_client_auth = 'post'"),
            "https://i.example/token sabir post of-the-environment \
             RequestedAccess { scopes: [], audiences: [], resources: [] }",
        ),
        (
            "oauth_token_url = 'https://i.example/token'\noauth_subject_token_file = '/t'",
            "https://i.example/token /t - ",
        ),
        (
            &format!(
                "{oauth}oauth_subject_token_file = '/t'\noauth_subject_token_type = 'urn:x'\noauth_client_secret = 's'"
            ),
            "https://i.example/token /t urn:x sabir basic s",
        ),
        ("token = 'top-secret'\nheaders = { X-Team = 'a', y = 'b' }", "bearer top-secret X-Team=a y=b"),
    ] {
        assert_eq!(shown(rest, &[("VARIABLE", "of-the-environment"), ("HOME", "/h")]), expected, "{rest}");
    }
    assert_eq!(ApiKeyPlace::default(), ApiKeyPlace::Header);
}

#[test]
fn what_does_not_go_together_is_refused_by_both_names() {
    let one = "leave one of them out";
    let kinds =
        "a remote agent is shown one credential; leave one out, or write the second as a header: headers = { ... }";
    let without = |key: &str, others: &str| format!("{key} is set without {others}; add that, or leave it out");
    let url = "oauth_token_url = 'https://i.example/token'";
    for (rest, expected) in [
        ("token = 'a'\ntoken_env = 'B'", format!("6: token_env is set beside token; {one}")),
        ("token_file = 'a'\ntoken_env = 'B'", format!("5: token_file is set beside token_env; {one}")),
        ("api_key = 'a'\napi_key_env = 'B'", format!("6: api_key_env is set beside api_key; {one}")),
        ("user = 'a'\npassword = 'b'\npassword_env = 'C'", format!("7: password_env is set beside password; {one}")),
        ("token = 'a'\napi_key = 'b'", format!("6: api_key is set beside token; {kinds}")),
        ("user = 'a'\npassword = 'b'\ntoken_env = 'C'", format!("5: user is set beside token_env; {kinds}")),
        (
            &format!("{url}\noauth_client_id = 'a'\noauth_client_secret = 'b'\napi_key = 'c'"),
            format!("5: oauth_token_url is set beside api_key; {kinds}"),
        ),
        ("api_key_name = 'X'", format!("5: {}", without("api_key_name", "api_key or api_key_env"))),
        ("user = 'a'", format!("5: {}", without("user", "password or password_env"))),
        ("password = 'a'", format!("5: {}", without("password", "user"))),
        (url, format!("5: {}", without("oauth_token_url", "oauth_client_id or oauth_subject_token_file"))),
        (
            &format!("{url}\noauth_client_id = 'a'"),
            format!(
                "6: {}",
                without(
                    "oauth_client_id",
                    "oauth_client_secret, oauth_client_secret_env, client_certificate or oauth_subject_token_file"
                )
            ),
        ),
        ("oauth_scopes = ['a']", format!("5: {}", without("oauth_scopes", "oauth_token_url"))),
        ("client_certificate = 'a'", format!("5: {}", without("client_certificate", "client_key"))),
        ("client_key = 'a'", format!("5: {}", without("client_key", "client_certificate"))),
        (
            "token = 'a'\nheaders = { authorization = 'b' }",
            format!("6: headers sets authorization, and so does token; {one}"),
        ),
        (
            "api_key = 'a'\nheaders = { x-api-key = 'b' }",
            format!("6: headers sets x-api-key, and so does api_key; {one}"),
        ),
    ] {
        let outcome = outcome(&CliOptions::default(), &[], &file(rest), "");
        assert_eq!(outcome, format!("sabir.toml:{expected}"), "{rest}");
    }
    let plain = "[[agent]]\nid = 'x'\nkind = 'a2a'\nurl = 'http://a.example'\nca = 'a.pem'";
    let useless = "sabir.toml:5: ca has no use: it is for https://, and url begins with http://";
    assert_eq!(outcome(&CliOptions::default(), &[], plain, ""), useless);
    let demo = "[[agent]]\nid = 'x'\nkind = 'demo'\ntoken = 'a'";
    let useless = "sabir.toml:4: token is for remote agents (kind a2a) and models behind a server (kind openai); an agent of kind demo has no use for it";
    assert_eq!(outcome(&CliOptions::default(), &[], demo, ""), useless);
}

#[test]
fn secrets_are_neither_shown_nor_repeated() {
    let with = |rest: &str| rest.replace("SECRET", SECRET);
    for rest in [
        "token = 'SECRET'",
        "api_key = 'SECRET'",
        "user = 'a'\npassword = 'SECRET'",
        "oauth_token_url = 'https://i'\noauth_client_id = 'a'\noauth_client_secret = 'SECRET'",
        "headers = { x = 'SECRET' }",
    ] {
        let loaded = load_text(&CliOptions::default(), &[], &file(&with(rest))).unwrap();
        for text in [show(&loaded, Audience::Person), show(&loaded, Audience::Program), format!("{loaded:?}")] {
            assert!(!text.contains(SECRET) && text.contains("(not shown)"), "{rest}: {text}");
        }
    }
    let long = SECRET.repeat(1000);
    for (rest, variables, expected) in [
        ("token = 'two SECRET'", &[][..], "token must be the token alone: visible ASCII characters without spaces"),
        (
            "token_env = 'V'",
            &[("V", "two top-secret")],
            "token_env names V, whose value must be the token alone: visible ASCII characters without spaces",
        ),
        (
            "api_key = \"a\\nSECRET\"",
            &[],
            "api_key must be 1 to 8192 printable ASCII characters without spaces at its ends",
        ),
        ("api_key_env = 'V'", &[("V", &long)], "api_key_env names V, whose value must have 1 to 8192 bytes"),
        ("api_key = 'SECRET'\napi_key_name = 'a b'", &[], "api_key_name `a b` is not the name of a header"),
        ("user = 'a:b'\npassword = 'SECRET'", &[], "user must not hold a colon or control characters"),
        ("user = 'a'\npassword = \"\\u0007SECRET\"", &[], "password must not hold control characters"),
        ("headers = { Host = 'SECRET' }", &[], "headers `Host` is a header that Sabir sets itself"),
        ("headers = { x = \"SECRET\\n\", y = \"\\u0007SECRET\" }", &[], "headers must be 1 to 8192 printable ASCII"),
        ("headers = { x = 1 }", &[], "headers holds \"x\", which is no text; put its value in quotes"),
        ("headers = 'SECRET'", &[], "headers does not fit; expected a table of texts"),
        ("token = ['SECRET']", &[], "token does not fit; expected a text that is not empty"),
        ("token = ''", &[], "token does not fit; expected a text that is not empty"),
        ("password = 1", &[], "password does not fit; expected a text"),
    ] {
        let refused = outcome(&CliOptions::default(), variables, &file(&with(rest)), "");
        let words = refused.split_once(": ").map(|(_, words)| words).unwrap_or_default();
        assert!(words.starts_with(expected), "{rest}: {refused}");
        assert!(!refused.contains(SECRET), "{refused}");
    }
}

#[test]
fn what_is_missing_stops_the_start_and_not_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine { path: "".into(), folder: folder.path().to_owned() };
    std::fs::write(folder.path().join("token"), "t").unwrap();
    std::fs::write(folder.path().join("empty"), "").unwrap();
    let authority = sabir_testkit::certificates::Authority::new("authority");
    let wanted = sabir_testkit::certificates::Wanted::client(&[]);
    authority.issue(&wanted).write(folder.path(), "one.pem", "one-key.pem");
    authority.issue(&wanted).write(folder.path(), "two.pem", "two-key.pem");
    let certificates =
        |certificate: &str, key: &str| format!("client_certificate = '{certificate}'\nclient_key = '{key}'");
    for (rest, variables, expected) in [
        ("token_env = 'V'".to_owned(), &[("V", "t")][..], ""),
        (
            "token_env = 'V'".to_owned(),
            &[],
            "5: token_env names V, which is not set in the environment of this process; set it there",
        ),
        ("token_env = 'V'".to_owned(), &[("V", "")], "5: token_env names V, which is not set"),
        ("user = 'a'\npassword_env = 'V'".to_owned(), &[], "6: password_env names V, which is not set"),
        ("token_file = 'token'".to_owned(), &[], ""),
        (
            "token_file = 'none'".to_owned(),
            &[],
            "5: token_file cannot be used: the token file FOLDER/none does not exist; write the token there, or name another file",
        ),
        (
            "token_file = 'empty'".to_owned(),
            &[],
            "5: token_file cannot be used: the token file FOLDER/empty is empty; ",
        ),
        (
            "oauth_token_url = 'https://i'\noauth_subject_token_file = 'none'".to_owned(),
            &[],
            "6: oauth_subject_token_file cannot be used: the token file FOLDER/none does not exist; ",
        ),
        (certificates("one.pem", "one-key.pem"), &[], ""),
        (
            certificates("none.pem", "one-key.pem"),
            &[],
            "5: client_certificate names none.pem, which does not exist; name a PEM file that is there",
        ),
        (
            certificates("one.pem", "two-key.pem"),
            &[],
            "6: client_key names two-key.pem, which cannot be used: the client key is not the key of the client certificate",
        ),
        (certificates("empty", "one-key.pem"), &[], "5: client_certificate names empty, which cannot be used: "),
        ("ca = 'one.pem'".to_owned(), &[], ""),
        (
            "ca = 'none.pem'".to_owned(),
            &[],
            "5: ca names none.pem, which does not exist; name a PEM file that is there",
        ),
        (
            "ca = 'one-key.pem'".to_owned(),
            &[],
            "5: ca names one-key.pem, which cannot be used: there is no PEM section",
        ),
    ] {
        let loaded = load_text(&CliOptions::default(), variables, &file(&rest)).unwrap();
        let outcome =
            loaded.check_requirements(&machine).map_or_else(|problems| problems.to_string(), |()| String::new());
        let outcome = outcome.replace(&folder.path().display().to_string(), "FOLDER");
        let expected = if expected.is_empty() { String::new() } else { format!("sabir.toml:{expected}") };
        assert!(outcome.starts_with(&expected) && outcome.is_empty() == expected.is_empty(), "{rest}: {outcome}");
    }
}

#[test]
fn credentials_that_can_be_read_on_the_way_are_warned_of() {
    let agent = |url: &str, rest: &str| format!("[[agent]]\nid = 'x'\nkind = 'a2a'\nurl = '{url}'\n{rest}");
    let warning = |url: &str| format!("agent x shows its credentials to {url} without encryption; use https://");
    let token = "token = 't'";
    for (file, expected) in [
        (agent("https://a.example", token), String::new()),
        (agent("http://a.example", ""), String::new()),
        (agent("http://a.example", token), warning("http://a.example")),
        (agent("http://10.0.0.1:80", "headers = { x = 'y' }"), warning("http://10.0.0.1:80")),
        (agent("http://127.0.0.1:7", token), String::new()),
        (agent("http://localhost:7", token), String::new()),
        (agent("https://a.example", "endpoint = 'http://b.example'\ntoken_file = 't'"), warning("http://b.example")),
        (
            agent("https://a.example", "oauth_token_url = 'http://i.example'\noauth_subject_token_file = 't'"),
            warning("http://i.example"),
        ),
    ] {
        assert_eq!(warnings(&[], &file), expected, "{file}");
    }
}
