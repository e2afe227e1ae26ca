//! The audit log through the real program: over HTTP, with `sabir audit`, and after `kill -9`.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sabir_testkit::http::Http;
use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::{Value, json};

use crate::SABIR;

struct Token {
    header: String,
    secret: String,
    toml: String,
}

fn token(words: &str) -> Token {
    let output = Command::new(SABIR).args(["token", "new"]).args(words.split_whitespace()).output().unwrap();
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    let secret = made["token"].as_str().unwrap().to_owned();
    Token { header: format!("Bearer {secret}"), secret, toml: made["toml"].as_str().unwrap().to_owned() }
}

/// A server whose callers are alice and an admin.
struct Guarded {
    alice: Token,
    admin: Token,
    options: SabirOptions,
    _folder: tempfile::TempDir,
}

impl Guarded {
    fn new(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (alice, admin) = (token("alice --tenant acme"), token("ops --scope admin"));
        std::fs::write(folder.path().join("sabir.toml"), format!("{more}\n{}\n{}", alice.toml, admin.toml)).unwrap();
        Self { alice, admin, options: SabirOptions::new(SABIR, folder.path()), _folder: folder }
    }
}

fn ask(server: &SabirProcess, who: Option<&Token>, verb: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut headers = vec![("A2A-Version", "1.0")];
    headers.extend(who.map(|token| ("Authorization", token.header.as_str())));
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = server.http().exchange(verb, path, &headers, body.as_bytes()).unwrap();
    (reply.status, serde_json::from_slice(&reply.body).unwrap_or_default())
}

fn message(text: &str) -> Value {
    json!({"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]})
}

fn entries(server: &SabirProcess, admin: &Token, query: &str) -> Vec<Value> {
    let (status, page) = ask(server, Some(admin), "GET", &format!("/admin/v1/audit?{query}"), &Value::Null);
    assert_eq!(status, 200, "{page}");
    page["entries"].as_array().unwrap().clone()
}

fn told(entries: &[Value]) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    entries.iter().map(|entry| format!("{} {}", word(&entry["action"]), word(&entry["outcome"]))).collect()
}

/// What `sabir audit` prints into a pipe.
fn audit(server: &SabirProcess, token: Option<&Token>, words: &[&str]) -> (i32, Vec<Value>, String) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}", server.address);
    let mut command = Command::new(SABIR);
    command.arg("audit").args(words).args(["--url", &url]).current_dir(folder.path()).env_clear();
    command.envs(token.map(|token| ("SABIR_TOKEN", &token.secret)));
    let output = command.output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code().unwrap(), lines, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn who_did_what_is_shown_to_admins_and_changed_by_nobody() {
    let guarded = Guarded::new("[push]\nallow_cidrs = [\"127.0.0.0/8\"]\n");
    let (alice, admin) = (&guarded.alice, &guarded.admin);
    let server = guarded.options.start();
    let post = |who, path: &str, body: Value| ask(&server, who, "POST", path, &body);
    let (_, made) = post(Some(alice), "/message:send", json!({"message": message("ask for my secret words")}));
    let task = made["task"]["id"].as_str().unwrap().to_owned();
    let mut answer = message("hunter2");
    answer["taskId"] = json!(task);
    assert_eq!(post(Some(alice), "/message:send", json!({"message": answer})).0, 200);
    let hook = json!({"id": "hook", "url": "http://127.0.0.1:1/path?key=topsecret", "token": "topsecret"});
    let hooks = format!("/tasks/{task}/pushNotificationConfigs");
    assert_eq!(post(Some(alice), &hooks, hook).0, 200);
    assert_eq!(ask(&server, Some(alice), "DELETE", &format!("{hooks}/hook"), &Value::Null).0, 200);
    assert_eq!(post(Some(alice), "/tasks/of-bob:cancel", json!({})).0, 404);
    // A stranger is not recorded; a caller without the right to make an admin call is.
    assert_eq!(post(None, "/message:send", json!({"message": message("x")})).0, 401);
    assert_eq!(ask(&server, Some(alice), "GET", "/admin/v1/audit", &Value::Null).0, 403);
    assert_eq!(ask(&server, None, "GET", "/admin/v1/audit", &Value::Null).0, 401);

    let expected =
        ["create ok", "answer ok", "webhook-set ok", "webhook-delete ok", "cancel task not found", "admin forbidden"];
    let all = server.until("the refusals are recorded", |server| {
        let all = entries(server, admin, "");
        (all.len() >= expected.len()).then_some(all)
    });
    assert_eq!(told(&all), expected);
    let first = &all[0];
    assert_eq!((&first["subject"], &first["tenant"]), (&json!("token:alice"), &json!("acme")));
    assert_eq!((&first["peer"], &first["agent"]), (&json!("127.0.0.1"), &json!("demo")));
    assert_eq!((&first["task"], &first["taskNumber"]), (&json!(task), &json!(1)));
    assert_eq!(first["owner"], "token:alice@acme");
    assert_eq!(all[4]["task"], "of-bob");
    assert_eq!(all[5]["detail"], "GET /admin/v1/audit");
    let text = json!(all).to_string();
    for secret in ["secret words", "hunter2", "topsecret", alice.secret.as_str()] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }

    // No call changes the log.
    for verb in ["POST", "PUT", "PATCH", "DELETE"] {
        for path in ["/admin/v1/audit", "/admin/v1/audit/1", "/admin/v1/audit?after=0"] {
            let (status, _) = ask(&server, Some(admin), verb, path, &json!({}));
            assert!(matches!(status, 404 | 405), "{verb} {path}: {status}");
        }
    }
    assert_eq!(entries(&server, admin, ""), all);

    for (query, expected) in [
        ("limit=2", &["create ok", "answer ok"][..]),
        ("after=4", &["cancel task not found", "admin forbidden"]),
        ("action=webhook-set", &["webhook-set ok"]),
        ("task=of-bob", &["cancel task not found"]),
        ("subject=token%3Abob", &[]),
        ("since=2999-01-01T00:00:00Z", &[]),
    ] {
        assert_eq!(told(&entries(&server, admin, query)), expected, "{query}");
    }
    for (words, expected) in [
        (&[][..], &expected[..]),
        (&["--since", "1h", "--task", &task, "--action", "create"], &["create ok"]),
        (&["--since", "all", "--subject", "token:alice@acme", "--action", "admin"], &["admin forbidden"]),
        (&["--since", "2999-01-01T00:00:00Z"], &[]),
    ] {
        let (code, lines, errors) = audit(&server, Some(admin), words);
        assert_eq!((code, errors.as_str(), told(&lines)), (0, "", told_of(expected)), "{words:?}");
    }
    for (token, words, code, expected) in [
        (None, &[][..], 1, "give a token with the scope admin as SABIR_TOKEN"),
        (Some(alice), &[], 1, "the credential lacks the scope admin"),
        (Some(admin), &["--since", "yesterday"], 2, "expected a duration such as 1h or 7d"),
        (Some(admin), &["--action", "delete"], 2, "possible values: create, message"),
        (Some(admin), &["--task", "a\u{1b}b"], 1, "task must not contain control characters"),
    ] {
        let (ended, _, errors) = audit(&server, token, words);
        assert!(ended == code && errors.contains(expected), "{words:?}: {ended} {errors}");
    }
}

fn told_of(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn the_log_is_kept_where_callers_have_credentials_unless_it_is_switched() {
    let nothing = "this server keeps no audit log; switch it on with audit.enabled";
    for (settings, has_credentials, is_kept) in [
        ("", true, true),
        ("[audit]\nenabled = false\n", true, false),
        ("", false, false),
        ("[audit]\nenabled = true\n", false, true),
    ] {
        let guarded = Guarded::new(settings);
        if !has_credentials {
            std::fs::write(guarded.options.folder.join("sabir.toml"), settings).unwrap();
        }
        let server = guarded.options.start();
        let who = has_credentials.then_some(&guarded.alice);
        assert_eq!(ask(&server, who, "POST", "/message:send", &json!({"message": message("hi")})).0, 200);
        let (code, lines, errors) = audit(&server, has_credentials.then_some(&guarded.admin), &[]);
        if is_kept {
            assert_eq!((code, told(&lines)), (0, told_of(&["create ok"])), "{settings:?} {has_credentials}: {errors}");
        } else {
            assert!(code == 1 && errors.contains(nothing), "{settings:?} {has_credentials}: {errors}");
        }
    }
}

/// Either both are there or neither: a task, and the entry of who made it.
#[test]
fn no_task_is_without_its_entry_after_kill_9() {
    let guarded = Guarded::new("");
    let mut server = guarded.options.start();
    let mut count = 0;
    for round in 0..5 {
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let (stop, address, header) = (stop.clone(), server.address, guarded.alice.header.clone());
                std::thread::spawn(move || {
                    for number in 0.. {
                        if stop.load(Ordering::SeqCst) {
                            return;
                        }
                        let body = json!({"message": message(&format!("m{round}-{client}-{number}"))}).to_string();
                        let headers = [("A2A-Version", "1.0"), ("Authorization", header.as_str())];
                        // The server dies in the middle of this.
                        let _ = Http::connect(address)
                            .and_then(|mut http| http.exchange("POST", "/message:send", &headers, body.as_bytes()));
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(60 + 25 * round));
        server.kill();
        stop.store(true, Ordering::SeqCst);
        clients.into_iter().for_each(|client| client.join().unwrap());

        server = guarded.options.start();
        let (mut tasks, mut token) = (BTreeSet::new(), String::new());
        loop {
            let path = format!("/tasks?pageSize=100&pageToken={token}");
            let (status, page) = ask(&server, Some(&guarded.alice), "GET", &path, &Value::Null);
            assert_eq!(status, 200, "{page}");
            tasks.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()));
            token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
        let (code, lines, errors) = audit(&server, Some(&guarded.admin), &["--since", "all", "--action", "create"]);
        assert_eq!((code, errors.as_str()), (0, ""));
        let recorded: BTreeSet<String> = lines.iter().map(|entry| entry["task"].as_str().unwrap().to_owned()).collect();
        assert_eq!(recorded.len(), lines.len(), "round {round}: an entry is there twice");
        assert_eq!(recorded, tasks, "round {round}");
        count = tasks.len();
    }
    assert!(count > 50, "the load was too light to prove anything: {count} tasks");
}
