//! Commands find the server that runs with their store, at whatever address it listens.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sabir_testkit::process::SabirOptions;
use serde_json::Value;

use crate::SABIR;

const FILE: &str = "sabir.db.server.json";

/// Exit code, output and errors of `sabir push list` in this folder. No server listens where the configuration says.
fn push_list(folder: &Path, listen: &str) -> (i32, String, String) {
    let output = Command::new(SABIR)
        .args(["push", "list"])
        .current_dir(folder)
        .env_clear()
        .envs([("SABIR_STORE", "sqlite:sabir.db"), ("SABIR_LISTEN", listen)])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn found(folder: &Path) {
    assert_eq!(push_list(folder, "127.0.0.1:1"), (0, "[]\n".to_owned(), String::new()));
}

/// Checks that commands ask where a server would be, and say what to do.
fn not_found(folder: &Path) {
    for (listen, expected) in [
        (
            "127.0.0.1:1",
            &["sabir: cannot ask the server at http://127.0.0.1:1: ", "start one with `sabir serve`, or give its URL"]
                [..],
        ),
        ("127.0.0.1:0", &["sabir: no server runs with this store", "start one with `sabir serve`, or give its URL"]),
    ] {
        let (code, _, errors) = push_list(folder, listen);
        assert_eq!(code, 1, "{errors}");
        assert!(expected.iter().all(|words| errors.contains(words)), "{errors}");
    }
}

fn content(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(FILE)).unwrap()).unwrap()
}

#[test]
fn a_server_is_found_by_its_store_until_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    not_found(folder.path());
    let mut server = SabirOptions::new(SABIR, folder.path()).start();
    found(folder.path());
    let content = content(folder.path());
    assert_eq!(content["url"], format!("http://{}", server.address));
    assert_eq!((&content["pid"], &content["version"]), (&server.ready["pid"], &server.ready["version"]));
    let started = content["started"].as_str().unwrap();
    assert!(sabir_model::Timestamp::parse(started).is_some(), "{started}");
    // Whoever starts a second one is refused, and the first stays where it is.
    let second = SabirOptions::new(SABIR, folder.path()).command().output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    found(folder.path());

    server.terminate();
    assert!(server.wait(Duration::from_secs(20)).success());
    assert!(!folder.path().join(FILE).exists());
    not_found(folder.path());
}

#[test]
fn the_address_of_a_killed_server_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    SabirOptions::new(SABIR, folder.path()).start().kill();
    let left = content(folder.path());
    not_found(folder.path());
    let server = SabirOptions::new(SABIR, folder.path()).start();
    found(folder.path());
    assert_eq!(content(folder.path())["url"], format!("http://{}", server.address));
    assert_ne!(content(folder.path())["pid"], left["pid"]);
}

#[test]
fn a_server_with_dev_tls_is_found_and_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).argument("--dev-tls").start();
    assert_eq!(content(folder.path())["url"], format!("https://{}", server.address));
    assert_eq!(content(folder.path())["ca"], server.ready["ca"]);
    found(folder.path());
}

#[test]
fn a_server_whose_tasks_are_in_memory_leaves_no_address() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions { store: "memory:".into(), ..SabirOptions::new(SABIR, folder.path()) }.start();
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
