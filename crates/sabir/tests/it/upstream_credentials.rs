//! What remote agents are shown: the credential that the operator gave for them, and nothing of what callers show.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use sabir_model::Base64;
use sabir_testkit::certificates::{Authority, Wanted};
use sabir_testkit::oidc_provider::{CLIENT, ServedProvider, TOKENS};
use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::remote::{Operation, RecordedRequest, RemoteAgent, RemoteProtocol};
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::v1_message;

fn agent(id: &str, remote: &RemoteAgent, rest: &str) -> String {
    format!("[[agent]]\nid = \"{id}\"\nkind = \"a2a\"\nurl = \"{}\"\n{rest}\n", remote.url())
}

fn options(folder: &Path, toml: &str) -> SabirOptions {
    fs::write(folder.join("sabir.toml"), toml).unwrap();
    SabirOptions::new(SABIR, folder)
}

/// The task that a message to this agent made, when it is over.
fn send(server: &SabirProcess, agent: &str, text: &str) -> Value {
    let body = v1_message(text).to_string();
    let reply = server.http().exchange("POST", &format!("/agents/{agent}/message:send"), &[], body.as_bytes());
    reply.unwrap().json()["task"].clone()
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}

/// The first request that did something.
fn first_call(remote: &RemoteAgent) -> RecordedRequest {
    let is_call = |request: &RecordedRequest| matches!(request.operation, Some(Operation::Send | Operation::Stream));
    remote.requests().into_iter().find(is_call).expect("it was called")
}

#[test]
fn each_kind_of_credential_arrives() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("token"), "of-file\n").unwrap();
    let basic = format!("Basic {}", Base64::encode(b"me:pass word").as_str());
    let rows = [
        ("token = 'fixed'", "authorization", "Bearer fixed"),
        ("token_env = 'REMOTE_TOKEN'", "authorization", "Bearer of-environment"),
        ("token_file = 'token'", "authorization", "Bearer of-file"),
        ("api_key = 'key'", "x-api-key", "key"),
        ("api_key_env = 'REMOTE_TOKEN'\napi_key_name = 'X-Other'", "x-other", "of-environment"),
        ("api_key = 'key'\napi_key_name = 'sid'\napi_key_in = 'cookie'", "cookie", "sid=key"),
        ("api_key = 'a&b'\napi_key_name = 'k'\napi_key_in = 'query'", "(path)", "/?k=a%26b"),
        ("user = 'me'\npassword = 'pass word'", "authorization", &basic),
        ("token = 'fixed'\nheaders = { X-Team = 'ships' }", "x-team", "ships"),
    ];
    let remotes: Vec<RemoteAgent> = rows.iter().map(|_| RemoteAgent::start(RemoteProtocol::V1JsonRpc)).collect();
    let tables =
        rows.iter().zip(&remotes).enumerate().map(|(at, ((rest, ..), remote))| agent(&format!("a{at}"), remote, rest));
    let options = options(folder.path(), &tables.collect::<String>()).variable("REMOTE_TOKEN", "of-environment");
    let server = options.start();
    for (at, ((rest, header, expected), remote)) in rows.iter().zip(&remotes).enumerate() {
        let task = send(&server, &format!("a{at}"), "hello");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{rest}: {task}");
        let call = first_call(remote);
        let shown = if *header == "(path)" { Some(call.path.as_str()) } else { call.header(header) };
        assert_eq!(shown, Some(*expected), "{rest}: {:?}", call.headers);
    }
}

#[test]
fn tokens_are_fetched_or_exchanged() {
    let provider = ServedProvider::start();
    provider.provider.accept_subject("pod-token");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("subject"), "pod-token").unwrap();
    let url = format!("oauth_token_url = '{}{TOKENS}'", provider.provider.issuer);
    let client = format!("{url}\noauth_client_id = '{}'\noauth_client_secret = '{}'", CLIENT.0, CLIENT.1);
    let exchange = format!("{url}\noauth_subject_token_file = 'subject'");
    let rows = [
        (
            format!("{client}\noauth_scopes = ['a', 'b']\noauth_audience = 'desk'\noauth_resource = 'urn:desk'"),
            "client_credentials",
            &[("scope", "a b"), ("audience", "desk"), ("resource", "urn:desk")][..],
        ),
        (format!("{client}\noauth_client_auth = 'post'"), "client_credentials", &[("client_id", CLIENT.0)]),
        (
            format!("{exchange}\noauth_subject_token_type = 'urn:ietf:params:oauth:token-type:access_token'"),
            "urn:ietf:params:oauth:grant-type:token-exchange",
            &[("subject_token", "pod-token"), ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token")],
        ),
    ];
    let remotes: Vec<RemoteAgent> = rows.iter().map(|_| RemoteAgent::start(RemoteProtocol::V03JsonRpc)).collect();
    let tables =
        rows.iter().zip(&remotes).enumerate().map(|(at, ((rest, ..), remote))| agent(&format!("a{at}"), remote, rest));
    let server = options(folder.path(), &tables.collect::<String>()).start();
    for (at, ((_, grant, fields), remote)) in rows.iter().zip(&remotes).enumerate() {
        let task = send(&server, &format!("a{at}"), "hello");
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{grant}: {task}");
        let shown = first_call(remote).header("authorization").unwrap_or_default().to_owned();
        let requests = provider.provider.token_requests();
        let request = requests
            .iter()
            .find(|request| request.issued.as_ref().is_some_and(|token| shown == format!("Bearer {token}")));
        let request = request.unwrap_or_else(|| panic!("{grant}: nobody issued {shown}"));
        assert_eq!(request.field("grant_type"), Some(*grant));
        for (name, expected) in *fields {
            assert_eq!(request.field(name), Some(*expected), "{grant}");
        }
        // One token is enough for all calls, and for the card.
        send(&server, &format!("a{at}"), "again");
    }
    assert_eq!(provider.provider.token_requests().len(), rows.len());
}

#[test]
fn a_wrong_credential_fails_the_task_and_is_told_to_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let provider = ServedProvider::start();
    let remote = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_bearer("right").start();
    let oauth = format!(
        "oauth_token_url = '{}{TOKENS}'\noauth_client_id = 'sabir'\noauth_client_secret = 'wrong-secret'",
        provider.provider.issuer
    );
    let rows = [
        ("token = 'wrong-secret'", "the remote agent does not accept the credential of this server"),
        ("api_key = 'wrong-secret'", "the remote agent does not accept the credential of this server"),
        ("headers = { X-Key = 'wrong-secret' }", "the remote agent does not accept the credential of this server"),
        (&oauth, "this server has no valid credential for the remote agent now"),
    ];
    let tables = rows.iter().enumerate().map(|(at, (rest, _))| agent(&format!("a{at}"), &remote, rest));
    let log = folder.path().join("log");
    let options = options(folder.path(), &tables.collect::<String>()).argument("--log-level").argument("trace");
    let server = options.start_with(Stdio::from(File::create(&log).unwrap()));
    for (at, (rest, expected)) in rows.iter().enumerate() {
        let task = send(&server, &format!("a{at}"), "hello");
        assert_eq!(state(&task), "TASK_STATE_FAILED", "{rest}: {task}");
        let text = task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(text, *expected, "{rest}");
    }
    let log = fs::read_to_string(log).unwrap();
    let basic = Base64::encode(b"sabir:wrong-secret");
    assert!(log.contains("a remote agent failed"), "{log}");
    assert!(!log.contains("wrong-secret") && !log.contains(basic.as_str()), "{log}");
}

#[test]
fn a_rotated_token_file_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "first").unwrap();
    let remote = RemoteAgent::builder(RemoteProtocol::V1JsonRpc).with_bearer("second").start();
    let server = options(folder.path(), &agent("a", &remote, "token_file = 'token'")).start();
    assert_eq!(state(&send(&server, "a", "one")), "TASK_STATE_FAILED");
    fs::write(&token, "second").unwrap();
    let done = server.until("the new token is shown", |server| {
        let task = send(server, "a", "two");
        (state(&task) == "TASK_STATE_COMPLETED").then_some(task)
    });
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "echo: two");
}

#[test]
fn what_callers_show_is_never_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, with_token) =
        (RemoteAgent::start(RemoteProtocol::V1JsonRpc), RemoteAgent::start(RemoteProtocol::V1HttpJson));
    let toml = format!("{}{}", agent("plain", &plain, ""), agent("shown", &with_token, "token = 'of-operator'"));
    let server = options(folder.path(), &toml).variable("SABIR_AUTH_TOKENS", "alice:caller-secret").start();
    let headers = [
        ("Authorization", "Bearer caller-secret"),
        ("X-API-Key", "caller-secret"),
        ("Cookie", "session=caller-secret"),
        ("Proxy-Authorization", "Basic caller-secret"),
        ("X-Forwarded-For", "caller-secret"),
    ];
    for (id, remote, expected) in [("plain", &plain, None), ("shown", &with_token, Some("Bearer of-operator"))] {
        let body = v1_message("hello").to_string();
        let path = format!("/agents/{id}/message:send");
        let reply = server.http().exchange("POST", &path, &headers, body.as_bytes()).unwrap().json();
        assert_eq!(state(&reply["task"]), "TASK_STATE_COMPLETED", "{reply}");
        assert_eq!(first_call(remote).header("authorization"), expected);
        for request in remote.requests() {
            let all = format!("{:?}{}{}", request.headers, request.path, String::from_utf8_lossy(&request.body));
            assert!(!all.contains("caller-secret"), "{all}");
        }
    }
}

#[test]
fn a_certificate_is_shown_where_one_is_asked_for() {
    let (upstream_folder, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let authority = Authority::new("authority");
    authority.issue(&Wanted::server()).write(upstream_folder.path(), "server.pem", "server-key.pem");
    for folder in [upstream_folder.path(), folder.path()] {
        fs::write(folder.join("authority.pem"), authority.certificate()).unwrap();
    }
    authority.issue(&Wanted::client(&["spiffe://example.com/front"])).write(
        folder.path(),
        "client.pem",
        "client-key.pem",
    );
    let tls = "[server]\ntls_cert = 'server.pem'\ntls_key = 'server-key.pem'\ntls_client_ca = 'authority.pem'\n\
               tls_client_auth = 'required'\n";
    let upstream = options(upstream_folder.path(), tls).start();
    let table = |id: &str, rest: &str| {
        format!("[[agent]]\nid = \"{id}\"\nkind = \"a2a\"\nurl = \"https://{}\"\n{rest}", upstream.address)
    };
    let ca = "ca = 'authority.pem'\n";
    let certificate = "client_certificate = 'client.pem'\nclient_key = 'client-key.pem'\n";
    let toml = format!(
        "{}{}{}",
        table("all", &format!("{ca}{certificate}")),
        table("untrusting", certificate),
        table("unknown", ca)
    );
    let front = options(folder.path(), &toml).start();
    let task = send(&front, "all", "hello");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "echo: hello", "{task}");
    for id in ["untrusting", "unknown"] {
        assert_eq!(state(&send(&front, id, "hello")), "TASK_STATE_FAILED", "{id}");
    }
}

#[test]
fn what_is_missing_is_said_before_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let remote = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
    for (rest, expected) in [
        ("token_env = 'NOT_SET'", "sabir.toml:5: token_env names NOT_SET, which is not set"),
        ("token_file = 'none'", "none does not exist; write the token there, or name another file"),
        ("token = 'a'\napi_key = 'b'", "sabir.toml:6: api_key is set beside token; "),
    ] {
        let options = options(folder.path(), &agent("a", &remote, rest));
        let output = options.command().stderr(Stdio::piped()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{rest}: {errors}");
        assert!(errors.starts_with("sabir: ") && errors.contains(expected), "{rest}: {errors}");
    }
    // Those who only look need no secrets.
    fs::write(folder.path().join("sabir.toml"), agent("a", &remote, "token_env = 'NOT_SET'")).unwrap();
    let output = Command::new(SABIR).arg("config").current_dir(&folder).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.starts_with("sabir: warning: serve would refuse this: sabir.toml:5: token_env names"), "{errors}");
    let settings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let is_shown = |row: &Value| row["key"] == "agent.a.token_env" && row["value"] == json!("NOT_SET");
    assert!(settings.as_array().unwrap().iter().any(is_shown));
    assert!(!remote.wait_for_requests(Operation::Card, 1, Duration::ZERO), "nothing was dialled");
}
