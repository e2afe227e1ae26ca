//! `sabir store check` and `migrate`, and `sabir nodes`, as a person runs them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sabir_testkit::process::SabirOptions;
use serde_json::{Value, json};

use crate::SABIR;
use crate::server_fixture::v03_message;

struct Outcome {
    code: i32,
    /// Null where it is no JSON.
    printed: Value,
    errors: String,
}

fn sabir(folder: &Path, words: &[&str]) -> Outcome {
    let output = Command::new(SABIR).args(words).current_dir(folder).env_clear().output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        printed: serde_json::from_slice(&output.stdout).unwrap_or_default(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_store_is_checked_and_copied_while_no_server_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = SabirOptions::new(SABIR, folder.path()).start();
    let send =
        json!({"jsonrpc": "2.0", "id": "r", "method": "message/send", "params": v03_message("hello")}).to_string();
    for _ in 0..3 {
        assert_eq!(server.http().exchange("POST", "/a2a/jsonrpc", &[], send.as_bytes()).unwrap().status, 200);
    }
    let store = format!("sqlite:{}", server.ready["store"].as_str().unwrap());
    let check = |store: &str| sabir(folder.path(), &["store", "check", "--store", store]);

    let outcome = check(&store);
    assert_eq!(outcome.code, 1, "{}", outcome.errors);
    assert!(outcome.errors.contains("is in use by a server; stop it first"), "{}", outcome.errors);

    let alone = sabir(folder.path(), &["nodes", &format!("http://{}", server.address)]);
    assert_eq!((alone.code, alone.printed), (0, json!({"shared": false, "nodes": []})), "{}", alone.errors);

    server.terminate();
    assert!(server.wait(Duration::from_secs(30)).success());
    let outcome = check(&store);
    assert_eq!((outcome.code, &outcome.printed["ok"]), (0, &json!(true)), "{} {}", outcome.printed, outcome.errors);
    assert_eq!(outcome.printed["tasks"], 3);

    let migrate = |to: &str| sabir(folder.path(), &["store", "migrate", "--from", &store, "--to", to]);
    let first = migrate("sqlite:made/copy.db");
    assert_eq!((first.code, &first.printed["tasks"]), (0, &json!(3)), "{}", first.errors);
    let again = migrate("sqlite:made/copy.db");
    assert_eq!((again.code, &again.printed["was_finished"]), (0, &json!(true)), "{}", again.errors);
    assert_eq!(again.printed["digest"], first.printed["digest"]);
    assert_eq!(check("sqlite:made/copy.db").printed["tasks"], 3);
    assert_eq!(migrate(&store).code, 1);

    // The log of a task loses a byte.
    let file = folder.path().join("made/copy.db");
    let bytes = std::fs::read(&file).unwrap();
    let place = bytes.windows(10).position(|window| window == b"{\"created\"").unwrap();
    let mut damaged = bytes.clone();
    damaged[place] = b'[';
    std::fs::write(&file, damaged).unwrap();
    let outcome = check("sqlite:made/copy.db");
    assert_eq!((outcome.code, &outcome.printed["ok"]), (1, &json!(false)), "{}", outcome.printed);
    assert!(outcome.printed["problems"][0]["task"].is_string(), "{}", outcome.printed);
}

#[test]
fn the_password_of_a_postgres_is_shown_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let url = "postgres://sabir:geheim@127.0.0.1:1/sabir";
    for (words, code) in [
        (&["config", "--store", url][..], 0),
        (&["serve", "--store", url], 1),
        (&["store", "check", "--store", url], 1),
        (&["store", "migrate", "--from", "sqlite:none.db", "--to", url], 1),
        (&["config", "--store", "postgres://sabir:geheim/x@127.0.0.1/sabir"], 2),
    ] {
        let output = Command::new(SABIR)
            .args(words)
            .current_dir(folder.path())
            .env_clear()
            .env("SABIR_CLUSTER_NODE_NAME", "test")
            .output()
            .unwrap();
        let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{words:?}: {printed}");
        assert!(!printed.contains("geheim"), "{words:?}: {printed}");
    }
}

#[test]
fn settings_that_do_not_fit_the_store_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sabir.toml"), "[store]\nurl = \"postgres://db/sabir\"\ndurability = \"full\"\n")
        .unwrap();
    let outcome = sabir(folder.path(), &["serve"]);
    assert_eq!(outcome.code, 2, "{}", outcome.errors);
    for word in ["sabir.toml:3", "store.durability", "store.url"] {
        assert!(outcome.errors.contains(word), "{word}: {}", outcome.errors);
    }
}

#[test]
fn a_postgres_of_a_newer_version_is_neither_checked_nor_copied() {
    let Some(postgres) = sabir_testkit::postgres::Postgres::shared() else {
        return sabir_testkit::postgres::report_skipped(1);
    };
    let folder = tempfile::tempdir().unwrap();
    let store = postgres.fresh_database();
    let migrate = |from: &str, to: &str| sabir(folder.path(), &["store", "migrate", "--from", from, "--to", to]);
    let mut server = SabirOptions::new(SABIR, folder.path()).start();
    let empty = format!("sqlite:{}", server.ready["store"].as_str().unwrap());
    server.terminate();
    assert!(server.wait(Duration::from_secs(30)).success());
    let made = migrate(&empty, &store);
    assert_eq!(made.code, 0, "{}", made.errors);
    assert_eq!(sabir(folder.path(), &["store", "check", "--store", &store]).code, 0);

    postgres.execute(&store, "UPDATE sabir_format SET format = 999, readable_by = 999");
    for words in [
        &["store", "check", "--store", &store][..],
        &["store", "backup", "--store", &store, "backup.sabir"],
        &["store", "migrate", "--from", &store, "--to", "sqlite:copy.db"],
        &["store", "migrate", "--from", &empty, "--to", &store],
    ] {
        let outcome = sabir(folder.path(), words);
        assert_eq!(outcome.code, 1, "{words:?}: {} {}", outcome.printed, outcome.errors);
        let newer = "was written by a newer Sabir (format 999, this one knows 1)";
        assert!(outcome.errors.contains(newer), "{words:?}: {}", outcome.errors);
    }
}
