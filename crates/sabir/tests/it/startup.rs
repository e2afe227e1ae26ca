//! How it starts, and what it says when it cannot.

use std::process::{Command, Output, Stdio};

use sabir_testkit::process::SabirOptions;
use serde_json::Value;

use crate::SABIR;
use crate::server_fixture::ServerFixture;

/// Runs `sabir serve` with these flags; it is expected to end by itself.
fn serve(folder: &std::path::Path, arguments: &[&str]) -> Output {
    Command::new(SABIR)
        .arg("serve")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

#[test]
fn in_a_pipe_it_prints_one_line_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let card = server.ready["card"].as_str().expect("it says where the card is");
    assert_eq!(card, format!("http://{}/.well-known/agent-card.json", server.address));
    let card: Value = server.get("/.well-known/agent-card.json").json();
    assert_eq!(card["url"], format!("http://{}/a2a/jsonrpc", server.address));
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn it_says_where_the_console_is_unless_that_is_off() {
    let fixture = ServerFixture::new();
    assert_eq!(fixture.server.ready["console"], format!("http://{}/console", fixture.server.address));
    let page = fixture.get("/console/tasks");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let fixture = ServerFixture::configured("[console]\nenabled = false\n[[agent]]\nid = \"demo\"\nkind = \"demo\"\n");
    assert_eq!(fixture.server.ready["console"], Value::Null);
    assert_eq!(fixture.get("/console/tasks").status, 404);
}

#[test]
fn an_unusable_store_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("text.db"), "this is not a database, however long one looks at it").unwrap();
    std::fs::create_dir(at("folder.db")).unwrap();
    let held =
        SabirOptions { store: format!("sqlite:{}", at("held.db")), ..SabirOptions::new(SABIR, folder.path()) }.start();
    for (file, expected) in [
        ("text.db", "is not a Sabir database or is damaged"),
        ("folder.db", "folder.db"),
        ("held.db", "is in use by another Sabir"),
    ] {
        let output = serve(folder.path(), &["--port", "0", "--store", &format!("sqlite:{}", at(file))]);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{file}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        assert!(complaint.contains(expected) && complaint.contains(file), "{complaint}");
        assert!(output.stdout.is_empty());
    }
    drop(held);
}

#[test]
fn a_taken_or_unsafe_listen_address_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let taken = server.address.to_string();
    for (arguments, code, expected) in [
        (vec!["--listen", taken.as_str(), "--store", "memory:"], 1, "cannot listen on"),
        (vec!["--listen", "0.0.0.0:0", "--store", "memory:"], 2, "--allow-open"),
        (vec!["--agent", "nonsense", "--store", "memory:"], 2, "nonsense"),
        (vec!["--agent", "claude-code", "--store", "memory:"], 2, "claude-code"),
    ] {
        let output = serve(folder.path(), &arguments);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {complaint}");
        assert!(complaint.contains(expected), "{arguments:?}: {complaint}");
    }
}
