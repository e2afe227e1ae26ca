//! `sabir doctor` as a person runs it: where all is well, and with each fault planted.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use sabir_testkit::certificates::{Authority, Wanted};
use sabir_testkit::postgres::free_port;
use sabir_testkit::process::SabirOptions;
use serde_json::Value;

use crate::SABIR;

/// A check of a busy machine takes longer than the usual limit.
const LONGER: [&str; 2] = ["--timeout", "60"];

struct Outcome {
    code: i32,
    /// `level area: what -> next`, one line for each finding.
    lines: Vec<String>,
    printed: String,
}

impl Outcome {
    fn of(mut command: Command) -> Self {
        let output = command.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line = |finding: &Value| {
            let [level, area, what, next] = ["level", "area", "what", "next"].map(|key| text(&finding[key]));
            format!("{level} {area}: {what} -> {next}")
        };
        let lines = report["findings"].as_array().unwrap().iter().map(line).collect();
        Self { code: output.status.code().unwrap(), lines, printed }
    }

    fn has(&self, level_and_area: &str, words: &str) -> bool {
        self.lines.iter().any(|line| line.starts_with(level_and_area) && line.contains(words))
    }

    fn problems(&self) -> Vec<&String> {
        self.lines.iter().filter(|line| line.starts_with("problem")).collect()
    }
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(SABIR);
    command.arg("doctor").args(words).current_dir(folder).env_clear().env("HOME", folder).env("PATH", "/nowhere");
    let toml = fs::read_to_string(folder.join("sabir.toml")).unwrap_or_default();
    if !toml.contains("listen") && !words.iter().any(|word| ["--port", "--listen"].contains(word)) {
        // Another test may have a server at the default port.
        command.env("SABIR_LISTEN", "127.0.0.1:0");
    }
    if !words.contains(&"--timeout") {
        command.args(LONGER);
    }
    command
}

fn doctor(folder: &Path, words: &[&str]) -> Outcome {
    Outcome::of(command(folder, words))
}

fn entries(folder: &Path) -> Vec<(String, u64)> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
        .collect();
    entries.sort();
    entries
}

#[test]
fn a_healthy_server_has_no_problem_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = SabirOptions::new(SABIR, folder.path()).local().start();
    let (listen, store) = (server.address.to_string(), format!("sqlite:{}", folder.path().join("sabir.db").display()));
    let words = ["--listen", &listen, "--store", &store];
    let names = || entries(folder.path()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let before = names();
    let well = doctor(folder.path(), &words);
    assert_eq!((well.code, well.problems()), (0, vec![]), "{}", well.printed);
    let pid = format!("held by the server that runs with this store (pid {})", server.pid());
    for (area, words) in [
        ("ok configuration", "it is understood"),
        ("ok store", "a server has it open"),
        ("ok agents", "demo is built in"),
        ("ok ports", pid.as_str()),
        ("ok clock", "it says 2"),
        ("ok limits", "the running server may open"),
        ("ok certificates", "the server speaks HTTP"),
        ("ok server", "is ready"),
        ("ok webhooks", "no delivery fails"),
    ] {
        assert!(well.has(area, words), "{area} {words}: {}", well.printed);
    }
    // The log grows by what the server writes when it is asked whether it is ready.
    assert_eq!(names(), before);

    server.terminate();
    assert!(server.wait(Duration::from_secs(30)).success());
    let before = entries(folder.path());
    let stopped = doctor(folder.path(), &words);
    assert_eq!(stopped.code, 0, "{}", stopped.printed);
    assert!(stopped.has("ok ports", "is free") && stopped.has("ok server", "none runs"), "{}", stopped.printed);
    assert_eq!(entries(folder.path()), before, "not even a log of SQLite is made");
}

#[test]
fn a_server_that_asks_for_credentials_is_looked_at_with_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new(SABIR).args(["token", "new", "ops", "--scope", "admin"]).output().unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let (token, toml) = (made["token"].as_str().unwrap(), made["toml"].as_str().unwrap());
    fs::write(folder.path().join("sabir.toml"), toml).unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).local().start();
    let listen = server.address.to_string();
    let words = ["--listen", &listen, "--store", "sqlite:sabir.db"];
    let without = doctor(folder.path(), &words);
    assert!(without.has("warning server", "it refuses admin calls"), "{}", without.printed);
    assert!(without.has("ok server", "is ready"), "{}", without.printed);
    let mut with = command(folder.path(), &words);
    with.env("SABIR_TOKEN", token);
    let with = Outcome::of(with);
    assert!(with.has("ok webhooks", "") && !with.has("warning", "admin"), "{}", with.printed);
    assert!(!with.printed.contains(token), "{}", with.printed);
}

#[test]
fn each_fault_is_named_with_its_remedy() {
    type Plant = fn(&Path);
    let write = |folder: &Path, toml: &str| fs::write(folder.join("sabir.toml"), toml).unwrap();
    let rows: [(&str, &str, Plant, &str, &str); 11] = [
        ("[server\nlisten = 1", "broken file", |_| {}, "problem configuration", "sabir.toml:1"),
        ("[server]\nlisen = \"1\"", "unknown name", |_| {}, "problem configuration", "listen"),
        (
            "[server]\npublic_url = \"https://agents.example.com\"",
            "public without credentials",
            |_| {},
            "warning configuration",
            "sabir token new",
        ),
        (
            "[server]\nlisten = \"0.0.0.0:0\"",
            "open to others",
            |_| {},
            "problem configuration",
            "other machines can reach",
        ),
        ("[store]\nurl = \"memory:\"", "memory", |_| {}, "warning store", "gone when the server stops"),
        (
            "[store]\nurl = \"sqlite:sub/sabir.db\"",
            "read-only folder",
            |folder| {
                fs::create_dir(folder.join("sub")).unwrap();
                fs::set_permissions(folder.join("sub"), Permissions::from_mode(0o555)).unwrap();
            },
            "problem store",
            "sub cannot be written -> give the user of the server write permission",
        ),
        (
            "[store]\nurl = \"sqlite:sabir.db\"",
            "damaged",
            |folder| fs::write(folder.join("sabir.db"), vec![7; 10_000]).unwrap(),
            "problem store",
            "restore a backup",
        ),
        (
            "[store]\nurl = \"postgres://sabir:geheim@127.0.0.1:1/sabir\"",
            "no Postgres",
            |_| {},
            "problem store",
            "127.0.0.1:1/sabir cannot be reached",
        ),
        ("[[agent]]\nid = \"coder\"\nkind = \"claude-code\"", "no program", |_| {}, "problem agents", "npm install"),
        (
            "[[agent]]\nid = \"far\"\nkind = \"a2a\"\nurl = \"http://127.0.0.1:1\"",
            "no remote agent",
            |_| {},
            "problem agents",
            "far: http://127.0.0.1:1 cannot be used",
        ),
        (
            "[server]\ntls_cert = \"cert.pem\"\ntls_key = \"none.pem\"",
            "no key",
            |folder| {
                Authority::new("servers").issue(&Wanted::server()).write(folder, "cert.pem", "key.pem");
            },
            "problem certificates",
            "none.pem",
        ),
    ];
    for (toml, fault, plant, area, words) in rows {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), toml);
        plant(folder.path());
        let start = Instant::now();
        let found = doctor(folder.path(), &[]);
        assert!(found.has(area, words), "{fault}: {}", found.printed);
        let code = i32::from(area.starts_with("problem"));
        assert_eq!(found.code, code, "{fault}: {}", found.printed);
        assert!(!found.printed.contains("geheim"), "{}", found.printed);
        assert!(start.elapsed() < Duration::from_secs(60), "{fault}: {:?}", start.elapsed());
        let _ = fs::set_permissions(folder.path().join("sub"), Permissions::from_mode(0o755));
    }
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "[[agent]]\nid = \"far\"\nkind = \"a2a\"\nurl = \"http://127.0.0.1:1\"");
    let offline = doctor(folder.path(), &["--offline", "--listen", "127.0.0.1:0"]);
    assert!(offline.code == 0 && offline.has("ok agents", "was not checked (--offline)"), "{}", offline.printed);
}

#[test]
fn a_database_whose_pages_are_damaged_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = SabirOptions::new(SABIR, folder.path()).local().start();
    server.terminate();
    assert!(server.wait(Duration::from_secs(30)).success());
    let file = folder.path().join("sabir.db");
    let mut bytes = fs::read(&file).unwrap();
    let page = 8192;
    assert!(bytes.len() > 3 * page);
    bytes[page..2 * page].fill(0xee);
    fs::write(&file, bytes).unwrap();
    let found = doctor(folder.path(), &["--listen", "127.0.0.1:0", "--store", "sqlite:sabir.db"]);
    assert!(found.code == 1 && found.has("problem store", "restore"), "{}", found.printed);
}

#[test]
fn a_port_that_somebody_else_has_is_a_problem_with_the_name_of_that_process() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let found = doctor(folder.path(), &["--listen", &address, "--store", "sqlite:sabir.db"]);
    let pid = format!("(pid {})", std::process::id());
    assert!(found.code == 1 && found.has("problem ports", &pid), "{}", found.printed);
    assert!(found.has("problem ports", "choose another address with server.listen"), "{}", found.printed);
    assert_eq!(found.problems().len(), 1, "{}", found.printed);
}

#[test]
fn certificates_that_expire_and_limits_that_are_low_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let day = Duration::from_secs(86_400);
    for (not_after, expected) in [
        (SystemTime::now() + 100 * day, "ok certificates: the certificate can be used, and expires in 99 days"),
        (SystemTime::now() + 5 * day, "warning certificates: the certificate expires in 4 days"),
        (SystemTime::now() - 2 * day, "problem certificates: the certificate expired"),
    ] {
        let wanted = Wanted { not_after, ..Wanted::server() };
        Authority::new("servers").issue(&wanted).write(folder.path(), "cert.pem", "key.pem");
        let mut command = command(folder.path(), &["--listen", "127.0.0.1:0", "--store", "sqlite:sabir.db"]);
        command.envs([("SABIR_SERVER_TLS_CERT", "cert.pem"), ("SABIR_SERVER_TLS_KEY", "key.pem")]);
        let found = Outcome::of(command);
        assert!(found.has(expected, ""), "{expected}: {}", found.printed);
    }
    for (files, level) in [(64, "problem limits"), (512, "warning limits"), (4096, "ok limits")] {
        let mut command = Command::new("/bin/sh");
        let words = ["--listen", "127.0.0.1:0", "--store", "sqlite:sabir.db", LONGER[0], LONGER[1]].join(" ");
        let line = format!("ulimit -n {files}; exec {SABIR} doctor {words}");
        command.args(["-c", &line]).current_dir(folder.path()).env_clear().env("HOME", folder.path());
        let found = Outcome::of(command);
        let expected = format!("may open {files} files");
        assert!(found.has(level, &expected), "{files}: {}", found.printed);
        assert_eq!(found.code, i32::from(level.starts_with("problem")), "{}", found.printed);
    }
}

#[test]
fn a_check_that_does_not_end_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    // It accepts the connection and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let store = format!("postgres://sabir@{}/sabir?connect_timeout=600", silent.local_addr().unwrap());
    let mut printed = String::new();
    // A second is enough for the other checks, unless the machine is busy.
    for seconds in ["1", "5", "25"] {
        let start = Instant::now();
        let found = doctor(folder.path(), &["--listen", "127.0.0.1:0", "--store", &store, "--timeout", seconds]);
        assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
        let words = format!("did not end within {seconds} seconds");
        assert!(found.code == 1 && found.has("problem store", &words), "{}", found.printed);
        if found.has("ok clock", "it says") {
            return;
        }
        printed = found.printed;
    }
    panic!("{printed}");
}

#[test]
fn a_postgres_is_looked_at_and_gets_no_tables() {
    let Some(postgres) = sabir_testkit::postgres::Postgres::shared() else {
        return sabir_testkit::postgres::report_skipped(1);
    };
    let folder = tempfile::tempdir().unwrap();
    let store = postgres.fresh_database();
    let name = store.split('?').next().unwrap().rsplit('/').next().unwrap();
    let found = doctor(folder.path(), &["--listen", "127.0.0.1:0", "--store", &store]);
    assert!(found.has("ok store", "is Postgres ") && found.has("ok store", "makes the tables"), "{}", found.printed);
    assert!(found.has("ok clock", "it agrees with the clock of"), "{}", found.printed);
    assert!(!found.has("warning store", "pooler"), "{}", found.printed);
    let has_none = postgres.execute(name, "SELECT to_regclass('sabir_format') IS NULL");
    assert!(has_none.contains('t'), "{has_none}");
    let offline = doctor(folder.path(), &["--listen", "127.0.0.1:0", "--store", &store, "--offline"]);
    assert!(offline.has("ok store", "was not checked (--offline)"), "{}", offline.printed);
}

#[test]
fn an_address_of_the_metrics_that_cannot_be_used_is_a_problem_too() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken_address = taken.local_addr().unwrap().to_string();
    let free = format!("127.0.0.1:{}", free_port());
    for (listen, metrics, words) in [
        ("127.0.0.1:0", taken_address.as_str(), "choose another address with metrics.listen"),
        (free.as_str(), free.as_str(), "is in metrics.listen, and its port is in the settings once more"),
    ] {
        let mut command = command(folder.path(), &["--listen", listen, "--store", "sqlite:sabir.db"]);
        command.env("SABIR_METRICS_LISTEN", metrics);
        let found = Outcome::of(command);
        assert!(found.code == 1 && found.has("problem ports", words), "{words}: {}", found.printed);
        assert_eq!(found.problems().len(), 1, "{}", found.printed);
    }
    let server = SabirOptions::new(SABIR, folder.path()).local().variable("SABIR_METRICS_LISTEN", &free).start();
    let listen = server.address.to_string();
    let mut command = command(folder.path(), &["--listen", &listen, "--store", "sqlite:sabir.db"]);
    command.env("SABIR_METRICS_LISTEN", &free);
    let found = Outcome::of(command);
    let held = format!("{free} is held by the server that runs with this store");
    assert!(found.code == 0 && found.has("ok ports", &held), "{}", found.printed);
}

#[test]
fn a_clock_that_is_not_synchronized_is_a_warning() {
    for (script, expected) in [
        (
            "echo no",
            "warning clock: it is not synchronized, so it slowly becomes wrong -> switch on time synchronization",
        ),
        ("echo yes", ", and is synchronized -> "),
        ("echo broken; exit 1", ""),
        // It is given up.
        ("exec sleep 600", ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // Another process writes it: this one could not start it while any of its children has it open for writing.
        let write =
            format!("printf '#!/bin/sh\\nPATH=/usr/bin:/bin\\n%s\\n' '{script}' > timedatectl; chmod +x timedatectl");
        assert!(Command::new("/bin/sh").args(["-c", &write]).current_dir(folder.path()).status().unwrap().success());
        let mut command = command(folder.path(), &["--store", "sqlite:sabir.db"]);
        command.env("PATH", folder.path());
        let found = Outcome::of(command);
        assert!(found.code == 0 && found.has("ok clock", "it says 2"), "{script}: {}", found.printed);
        let about: Vec<_> = found.lines.iter().filter(|line| line.contains("synchron")).collect();
        match expected.is_empty() {
            true => assert!(about.is_empty(), "{script}: {}", found.printed),
            false => assert!(about.len() == 1 && about[0].contains(expected), "{script}: {}", found.printed),
        }
    }
}

#[test]
fn root_is_told_of_a_database_that_the_owner_of_its_folder_cannot_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = SabirOptions::new(SABIR, folder.path()).local().start();
    server.terminate();
    assert!(server.wait(Duration::from_secs(30)).success());
    if chown(folder.path(), Some(65_534), Some(65_534)).is_err() {
        eprintln!("1 tests skipped: only root can give files to another user");
        return;
    }
    let words = ["--listen", "127.0.0.1:0", "--store", "sqlite:sabir.db"];
    let found = doctor(folder.path(), &words);
    let expected = "chown 65534:65534 ";
    assert!(found.code == 0 && found.has("warning store", expected), "{}", found.printed);
    chown(folder.path().join("sabir.db"), Some(65_534), Some(65_534)).unwrap();
    let found = doctor(folder.path(), &words);
    assert!(found.code == 0 && !found.has("warning store", expected), "{}", found.printed);
}
