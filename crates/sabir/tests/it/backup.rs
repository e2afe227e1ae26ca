//! `sabir store backup` and `restore`, as a person runs them: under load, killed, with files that are not whole.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sabir_testkit::http::Http;
use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::sse;
use serde_json::{Value, json};

use crate::SABIR;

const V1: (&str, &str) = ("A2A-Version", "1.0");

struct Outcome {
    code: i32,
    /// Null where it is no JSON.
    printed: Value,
    errors: String,
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(SABIR);
    command.args(words).current_dir(folder).env_clear().env("HOME", folder);
    command
}

fn outcome(mut command: Command) -> Outcome {
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code().unwrap(),
        printed: serde_json::from_slice(&output.stdout).unwrap_or_default(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

fn sabir(folder: &Path, words: &[&str]) -> Outcome {
    outcome(command(folder, words))
}

/// The id of a task that this message began.
fn send(http: &mut Http, text: &str) -> String {
    let message = json!({"messageId": format!("m {text}"), "role": "ROLE_USER", "parts": [{"text": text}]});
    let body = json!({"message": message}).to_string();
    let reply = http.exchange("POST", "/message:send", &[V1], body.as_bytes()).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["task"]["id"].as_str().unwrap().to_owned()
}

fn get(server: &SabirProcess, task: &str) -> Vec<u8> {
    let reply = server.http().exchange("GET", &format!("/tasks/{task}"), &[V1], b"").unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.body
}

/// The numbers and the bytes of the events after this one.
fn events_after(server: &SabirProcess, task: &str, after: u64) -> Vec<(Option<u64>, String)> {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task}}).to_string();
    let after = after.to_string();
    let opened = sse::open(server.address, "POST", "/", &[V1, ("Last-Event-ID", &after)], request.as_bytes()).unwrap();
    let mut events = opened.unwrap_or_else(|reply| panic!("{}", reply.text()));
    let frames = events.rest().unwrap();
    frames.iter().map(|frame| (frame.id, frame.payload().to_string())).collect()
}

fn stop(mut server: SabirProcess) {
    server.terminate();
    assert!(server.wait(Duration::from_secs(30)).success());
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_backup_under_load_has_every_acknowledged_task_and_restores_the_same_bytes() {
    let (folder, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let mut http = server.http();
    let mut acknowledged: Vec<String> = (0..20).map(|number| send(&mut http, &format!("hello {number}"))).collect();
    let long = send(&mut http, "stream 3000 0");
    acknowledged.extend([long.clone(), send(&mut http, "ask Which day?"), send(&mut http, "fail on purpose")]);
    let store = format!("sqlite:{}", server.ready["store"].as_str().unwrap());

    let is_over = AtomicBool::new(false);
    let (backup, sent) = thread::scope(|scope| {
        let senders: Vec<_> = (0..3)
            .map(|sender| {
                let (mut http, is_over) = (server.http(), &is_over);
                scope.spawn(move || {
                    let mut sent = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        send(&mut http, &format!("load {sender} {sent}"));
                        sent += 1;
                    }
                    sent
                })
            })
            .collect();
        server.until("the load has begun", |server| {
            let page = server.http().exchange("GET", "/tasks?pageSize=1", &[V1], b"").unwrap().json();
            (page["totalSize"].as_u64() > Some(30)).then_some(())
        });
        let before = names(folder.path());
        let backup =
            sabir(folder.path(), &["store", "backup", "--store", &store, away.path().join("b").to_str().unwrap()]);
        assert_eq!(names(folder.path()), before, "the server writes no file");
        is_over.store(true, Ordering::Relaxed);
        (backup, senders.into_iter().map(|sender| sender.join().unwrap()).sum::<u64>())
    });
    assert_eq!(backup.code, 0, "{}", backup.errors);
    let in_backup = backup.printed["tasks"].as_u64().unwrap();
    assert!(in_backup > 30 && in_backup <= sent + acknowledged.len() as u64, "{in_backup} {sent}");
    let file = away.path().join("b");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(away.path()), BTreeSet::from(["b".to_owned()]));

    let expected: Vec<Vec<u8>> = acknowledged.iter().map(|task| get(&server, task)).collect();
    let events = events_after(&server, &long, 2500);
    assert!(events.len() > 400, "{}", events.len());
    stop(server);

    let restored = sabir(away.path(), &["store", "restore", "b", "--store", "sqlite:copy.db"]);
    assert_eq!((restored.code, &restored.printed["tasks"]), (0, &json!(in_backup)), "{}", restored.errors);
    assert_eq!(names(away.path()), ["b", "copy.db"].map(str::to_owned).into());
    let mut options = SabirOptions::new(SABIR, away.path());
    options.store = "sqlite:copy.db".to_owned();
    let server = options.start();
    for (task, expected) in acknowledged.iter().zip(expected) {
        assert_eq!(String::from_utf8(get(&server, task)), String::from_utf8(expected));
    }
    assert_eq!(events_after(&server, &long, 2500), events, "streams resume");
    stop(server);
}

/// A database with tasks, and a backup of it that has some tasks fewer.
fn store_and_backup(folder: &Path) -> (u64, u64) {
    let server = SabirOptions::new(SABIR, folder).start();
    let mut http = server.http();
    send(&mut http, "stream 5000 0");
    (0..30).for_each(|number| drop(send(&mut http, &format!("hello {number}"))));
    let backup = sabir(folder, &["store", "backup", "old.backup", "--store", "sqlite:sabir.db"]);
    assert_eq!(backup.code, 0, "{}", backup.errors);
    (0..7).for_each(|number| drop(send(&mut http, &format!("later {number}"))));
    stop(server);
    (31, 38)
}

/// Kills the command after this time, as `kill -9` does. Returns whether it had ended by itself.
fn kill_after(mut child: Child, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

#[test]
fn a_backup_or_restore_that_is_killed_leaves_nothing_half() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (in_backup, in_store) = store_and_backup(folder);
    let quiet = |words: &[&str]| command(folder, words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let tasks = |store: &str| {
        let checked = sabir(folder, &["store", "check", "--store", store]);
        assert_eq!((checked.code, &checked.printed["ok"]), (0, &json!(true)), "{} {}", checked.printed, checked.errors);
        checked.printed["tasks"].as_u64().unwrap()
    };
    let (mut killed, mut step) = (0, Duration::from_millis(2));
    loop {
        let ended = kill_after(quiet(&["store", "backup", "new.backup", "--store", "sqlite:sabir.db"]), step);
        if folder.join("new.backup").exists() {
            let restored = sabir(folder, &["store", "restore", "new.backup", "--store", "sqlite:copy.db", "--force"]);
            assert_eq!((restored.code, &restored.printed["tasks"]), (0, &json!(in_store)), "{}", restored.errors);
        }
        if ended {
            break;
        }
        killed += 1;
        step = step * 3 / 2;
    }
    assert!(killed > 2 && folder.join("new.backup").exists(), "{killed}");
    assert!(!folder.join("new.backup.partial").exists());

    let (mut killed, mut step) = (0, Duration::from_millis(2));
    loop {
        let ended =
            kill_after(quiet(&["store", "restore", "old.backup", "--store", "sqlite:sabir.db", "--force"]), step);
        let found = tasks("sqlite:sabir.db");
        assert!([in_store, in_backup].contains(&found), "{found}");
        if ended {
            assert_eq!(found, in_backup);
            break;
        }
        killed += 1;
        step = step * 3 / 2;
    }
    assert!(killed > 2, "{killed}");
    assert_eq!(tasks("sqlite:sabir.db.before-restore"), in_store, "the old database is kept");
    assert!(!names(folder).iter().any(|name| name.contains(".restoring")), "{:?}", names(folder));
}

#[test]
fn files_that_are_not_whole_and_stores_in_use_are_refused_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (in_backup, _) = store_and_backup(folder);
    let whole = fs::read(folder.join("old.backup")).unwrap();
    let database = fs::read(folder.join("sabir.db")).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    let mut longer = whole.clone();
    longer.push(b'x');
    let header = 15 + 5 + u32::from_be_bytes(whole[16..20].try_into().unwrap()) as usize;
    let stopped = [&whole[..header], b"X\0\0\0\x08\x1b[2Jgone"].concat();
    for (name, bytes, words) in [
        ("cut", whole[..whole.len() - 1].to_vec(), "its end is missing, so it is not complete"),
        ("cut-early", whole[..200].to_vec(), "its end is missing, so it is not complete"),
        ("flipped", flipped, "it is damaged"),
        ("longer", longer, "something follows its end"),
        // Nothing that is in it steers the terminal.
        ("stopped", stopped, "the server stopped writing it: \u{fffd}[2Jgone"),
        ("foreign", database.clone(), "it is no backup of Sabir"),
        ("empty", Vec::new(), "it is no backup of Sabir"),
        ("newer", b"Sabir backup 2\nB".to_vec(), "it was made by a newer Sabir"),
    ] {
        fs::write(folder.join(name), bytes).unwrap();
        let refused = sabir(folder, &["store", "restore", name, "--store", "sqlite:sabir.db", "--force"]);
        assert_eq!(refused.code, 1, "{name}");
        assert!(refused.errors.contains(words) && refused.errors.contains(name), "{name}: {}", refused.errors);
        assert!(fs::read(folder.join("sabir.db")).unwrap() == database, "{name}");
    }
    let restore = |words: &[&str]| sabir(folder, &[&["store", "restore", "old.backup", "--store"], words].concat());
    let refused = restore(&["sqlite:sabir.db"]);
    assert!(refused.code == 1 && refused.errors.contains("with --force it is replaced"), "{}", refused.errors);
    assert_eq!(sabir(folder, &["store", "restore", "none", "--store", "sqlite:x.db"]).code, 1);
    let memory = restore(&["memory:"]);
    assert!(memory.code == 1 && memory.errors.contains("memory: cannot be filled"), "{}", memory.errors);
    assert!(!names(folder).iter().any(|name| name.contains(".restoring") || name.contains(".before")));

    // Somebody names the database as the file.
    let refused = sabir(folder, &["store", "backup", "sabir.db", "--store", "sqlite:sabir.db"]);
    assert!(refused.code == 1 && refused.errors.contains("is there already and is no backup"), "{}", refused.errors);
    assert!(fs::read(folder.join("sabir.db")).unwrap() == database);
    let no_folder = sabir(folder, &["store", "backup", "none/x", "--store", "sqlite:sabir.db"]);
    assert!(no_folder.code == 1 && no_folder.errors.contains("cannot write none/x.partial"), "{}", no_folder.errors);

    let server = SabirOptions::new(SABIR, folder).start();
    let refused = restore(&["sqlite:sabir.db", "--force"]);
    assert!(refused.code == 1 && refused.errors.contains("is in use by a server; stop it first"), "{}", refused.errors);
    stop(server);
    let restored = restore(&["sqlite:sabir.db", "--force"]);
    assert_eq!((restored.code, &restored.printed["tasks"]), (0, &json!(in_backup)), "{}", restored.errors);
    let again = restore(&["sqlite:sabir.db", "--force"]);
    assert!(again.printed["kept"].as_str().unwrap().ends_with("sabir.db.before-restore-2"), "{}", again.printed);

    // A database that is damaged, with a log that cannot be moved into it.
    fs::write(folder.join("sabir.db"), vec![7; 100_000]).unwrap();
    fs::write(folder.join("sabir.db-wal"), "not a log").unwrap();
    let restored = restore(&["sqlite:sabir.db", "--force"]);
    assert_eq!((restored.code, &restored.printed["tasks"]), (0, &json!(in_backup)), "{}", restored.errors);
    let checked = sabir(folder, &["store", "check", "--store", "sqlite:sabir.db"]);
    assert_eq!((checked.code, &checked.printed["tasks"]), (0, &json!(in_backup)), "{}", checked.errors);
}

#[test]
fn only_admins_get_a_backup_and_the_audit_log_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let token = |words: &[&str]| sabir(folder.path(), &[&["token", "new"], words].concat()).printed;
    let (alice, admin) = (token(&["alice"]), token(&["ops", "--scope", "admin"]));
    let toml = format!("{}\n{}", alice["toml"].as_str().unwrap(), admin["toml"].as_str().unwrap());
    fs::write(folder.path().join("sabir.toml"), toml).unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let ask = |verb: &str, path: &str, token: Option<&Value>| {
        let header = token.map(|token| format!("Bearer {}", token["token"].as_str().unwrap()));
        let headers: Vec<_> = header.iter().map(|header| ("Authorization", header.as_str())).collect();
        server.http().exchange(verb, path, &headers, b"").unwrap()
    };
    let path = "/admin/v1/store/backup";
    assert_eq!(ask("GET", path, None).status, 401);
    let refused = ask("GET", path, Some(&alice));
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["detail"], "the credential lacks the scope admin");
    let wrong_verb = ask("POST", path, Some(&admin));
    assert_eq!((wrong_verb.status, wrong_verb.header("allow")), (405, Some("GET")));
    let whole = ask("GET", path, Some(&admin));
    assert_eq!((whole.status, whole.header("content-type")), (200, Some("application/octet-stream")));
    assert_eq!(whole.header("cache-control"), Some("no-store"));
    assert!(whole.body.starts_with(b"Sabir backup 1\n"));

    let backup = |token: Option<&Value>| {
        let mut backup = command(folder.path(), &["store", "backup", "b", "--store", "sqlite:sabir.db"]);
        backup.envs(token.map(|token| ("SABIR_TOKEN", token["token"].as_str().unwrap())));
        outcome(backup)
    };
    let refused = backup(None);
    assert!(refused.code == 1 && refused.errors.contains("SABIR_TOKEN"), "{}", refused.errors);
    let refused = backup(Some(&alice));
    assert!(refused.code == 1 && refused.errors.contains("the scope admin"), "{}", refused.errors);
    assert!(!names(folder.path()).iter().any(|name| name.starts_with('b')), "{:?}", names(folder.path()));
    let made = backup(Some(&admin));
    assert_eq!((made.code, &made.printed["tasks"]), (0, &json!(0)), "{}", made.errors);
    let entries = ask("GET", "/admin/v1/audit?action=backup", Some(&admin)).json();
    let told: Vec<_> = entries["entries"].as_array().unwrap().iter().map(|entry| &entry["subject"]).collect();
    assert_eq!(told, ["token:ops", "token:ops"], "{entries}");
}

#[test]
fn a_client_that_does_not_read_stops_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let mut http = server.http();
    for round in 0..4 {
        send(&mut http, &format!("stream 20000 0 {round}"));
    }
    let resident = server.resident();
    let mut slow = server.http();
    slow.send("GET", "/admin/v1/store/backup", &[], b"").unwrap();
    assert_eq!(slow.receive_head().unwrap().0, 200);
    let backup = || sabir(folder.path(), &["store", "backup", "b", "--store", "sqlite:sabir.db"]);
    // At once: the client that does not read is given up after a minute.
    let second = backup();
    assert!(second.code == 1 && second.errors.contains("another backup is being made"), "{}", second.errors);
    let start = Instant::now();
    for number in 0..50 {
        send(&mut http, &format!("meanwhile {number}"));
    }
    println!("50 sends while a client does not read: {:?}", start.elapsed());
    let grown = server.resident().saturating_sub(resident);
    assert!(grown < 64 << 20, "the server grew by {} MiB", grown >> 20);
    drop(slow);
    let made = server.until("the slow one is gone", |_| Some(backup()).filter(|made| made.code == 0));
    assert_eq!(made.printed["tasks"], 54);
}

#[test]
fn a_postgres_is_backed_up_and_restored_into_either_store() {
    let Some(postgres) = sabir_testkit::postgres::Postgres::shared() else {
        return sabir_testkit::postgres::report_skipped(1);
    };
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (postgres.fresh_database(), postgres.fresh_database());
    let mut options = SabirOptions::new(SABIR, folder.path()).variable("SABIR_CLUSTER_NODE_NAME", "a");
    options.store = first.clone();
    let server = options.start();
    let mut http = server.http();
    let mut tasks: Vec<String> = (0..5).map(|number| send(&mut http, &format!("hello {number}"))).collect();
    tasks.push(send(&mut http, "stream 3000 0"));
    let url = format!("http://{}", server.address);
    let made = sabir(folder.path(), &["store", "backup", "b", "--url", &url]);
    assert_eq!((made.code, &made.printed["tasks"]), (0, &json!(6)), "{}", made.errors);
    let expected: Vec<_> = tasks.iter().map(|task| get(&server, task)).collect();
    // While the server runs, by itself.
    let direct = sabir(folder.path(), &["store", "backup", "direct", "--store", &first]);
    assert_eq!((direct.code, &direct.printed["tasks"]), (0, &json!(6)), "{}", direct.errors);
    let refused = sabir(folder.path(), &["store", "restore", "b", "--store", &first]);
    assert!(refused.code == 1 && refused.errors.contains("is in use by node a"), "{}", refused.errors);
    stop(server);
    let refused = sabir(folder.path(), &["store", "restore", "b", "--store", &first, "--force"]);
    assert!(refused.code == 1 && refused.errors.contains("choose an empty database"), "{}", refused.errors);

    for store in [second.as_str(), "sqlite:copy.db"] {
        let restored = sabir(folder.path(), &["store", "restore", "b", "--store", store]);
        assert_eq!((restored.code, &restored.printed["tasks"]), (0, &json!(6)), "{}", restored.errors);
        options.store = store.to_owned();
        let server = options.start();
        for (task, expected) in tasks.iter().zip(&expected) {
            assert!(get(&server, task) == *expected, "{store}: {task}");
        }
        stop(server);
    }
}

/// An empty database, and a backup of it.
fn empty_store_and_backup(folder: &Path) {
    stop(SabirOptions::new(SABIR, folder).start());
    let backup = sabir(folder, &["store", "backup", "old.backup", "--store", "sqlite:sabir.db"]);
    assert_eq!(backup.code, 0, "{}", backup.errors);
}

#[test]
fn a_restore_by_root_leaves_the_database_to_its_owner() {
    const OWNER: (u32, u32, u32) = (65_534, 65_533, 0o640);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    empty_store_and_backup(folder);
    let database = folder.join("sabir.db");
    if chown(&database, Some(OWNER.0), Some(OWNER.1)).is_err() {
        eprintln!("1 tests skipped: only root can give files to another user");
        return;
    }
    chown(folder, Some(OWNER.0), Some(OWNER.1)).unwrap();
    fs::set_permissions(&database, fs::Permissions::from_mode(OWNER.2)).unwrap();
    let owner = |name: &str| {
        let found = folder.join(name).metadata().unwrap();
        (found.uid(), found.gid(), found.mode() & 0o777)
    };
    let restore = |store: &str| {
        let restored = sabir(folder, &["store", "restore", "old.backup", "--store", store, "--force"]);
        assert_eq!(restored.code, 0, "{}", restored.errors);
    };
    restore("sqlite:sabir.db");
    let kept: BTreeSet<_> = names(folder).into_iter().filter(|name| name.starts_with("sabir.db")).collect();
    assert_eq!(kept, ["sabir.db", "sabir.db.before-restore"].map(str::to_owned).into());
    kept.iter().for_each(|name| assert_eq!(owner(name), OWNER, "{name}"));
    // Where there was none, it is the owner of the folder, and of the nearest folder that was there.
    restore("sqlite:new.db");
    assert_eq!(owner("new.db"), (OWNER.0, OWNER.1, 0o600));
    restore("sqlite:a/b/new.db");
    for name in ["a", "a/b", "a/b/new.db"] {
        assert_eq!((owner(name).0, owner(name).1), (OWNER.0, OWNER.1), "{name}");
    }
}

#[test]
fn a_restored_database_has_the_mode_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    empty_store_and_backup(folder);
    let mode = || folder.join("sabir.db").metadata().unwrap().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(folder.join("sabir.db"), fs::Permissions::from_mode(0o660)).unwrap();
    let restored = sabir(folder, &["store", "restore", "old.backup", "--store", "sqlite:sabir.db", "--force"]);
    assert_eq!((restored.code, mode()), (0, 0o660), "{}", restored.errors);
}

#[test]
fn a_foreign_file_with_the_name_of_an_unfinished_backup_stays_as_it_is() {
    type Plant = fn(&Path, &Path);
    let refused: [(&str, Plant); 5] = [
        ("is there already and is no backup", |partial, _| fs::write(partial, "a thesis").unwrap()),
        ("is a symbolic link", |partial, other| symlink(other, partial).unwrap()),
        ("is a symbolic link", |partial, other| symlink(other.with_file_name("none"), partial).unwrap()),
        ("is no file of this user alone", |partial, other| fs::hard_link(other, partial).unwrap()),
        ("cannot write b.partial", |partial, _| fs::create_dir(partial).unwrap()),
    ];
    let accepted: [Plant; 2] = [
        |partial, _| fs::write(partial, "").unwrap(),
        |partial, _| fs::write(partial, "Sabir backup 1\nB".repeat(100_000)).unwrap(),
    ];
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    empty_store_and_backup(folder);
    let (partial, other) = (folder.join("b.partial"), folder.join("other"));
    let whole = fs::read(folder.join("old.backup")).unwrap();
    fs::write(&other, &whole).unwrap();
    for (words, plant) in refused {
        plant(&partial, &other);
        let content = || partial.symlink_metadata().unwrap().is_file().then(|| fs::read(&partial).unwrap());
        let before = content();
        let made = sabir(folder, &["store", "backup", "b", "--store", "sqlite:sabir.db"]);
        assert!(made.code == 1 && made.errors.contains(words), "{words}: {}", made.errors);
        assert_eq!(content(), before, "{words}");
        assert!(fs::read(&other).unwrap() == whole && !folder.join("none").exists(), "{words}");
        assert!(fs::remove_file(&partial).or_else(|_| fs::remove_dir(&partial)).is_ok());
    }
    for plant in accepted {
        plant(&partial, &other);
        let made = sabir(folder, &["store", "backup", "b", "--store", "sqlite:sabir.db"]);
        assert_eq!(made.code, 0, "{}", made.errors);
        let restored = sabir(folder, &["store", "restore", "b", "--store", "sqlite:copy.db", "--force"]);
        assert_eq!(restored.code, 0, "{}", restored.errors);
    }
}

#[test]
fn a_restore_replaces_databases_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    empty_store_and_backup(folder);
    fs::write(folder.join("thesis"), "a thesis").unwrap();
    symlink("thesis", folder.join("link")).unwrap();
    symlink("sabir.db", folder.join("link.db")).unwrap();
    symlink("none", folder.join("dangling")).unwrap();
    fs::create_dir(folder.join("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("fifo")).status().unwrap().success());
    let before = (names(folder), fs::read(folder.join("sabir.db")).unwrap());
    for (name, words) in [
        ("thesis", "it does not look like a database; if it is to be replaced, move it away yourself"),
        ("link", "it is a symbolic link; name the file itself"),
        ("link.db", "it is a symbolic link; name the file itself"),
        ("dangling", "it is a symbolic link; name the file itself"),
        ("folder", "it is a folder; name the file itself"),
        ("fifo", "it is a FIFO; name the file itself"),
    ] {
        let store = format!("sqlite:{name}");
        let refused = sabir(folder, &["store", "restore", "old.backup", "--store", &store, "--force"]);
        assert!(refused.code == 1 && refused.errors.contains(words), "{name}: {}", refused.errors);
        assert!(refused.errors.contains(name), "{name}: {}", refused.errors);
        assert!((names(folder), fs::read(folder.join("sabir.db")).unwrap()) == before, "{name}");
        assert_eq!(fs::read(folder.join("thesis")).unwrap(), b"a thesis", "{name}");
    }
    for name in ["link", "link.db", "dangling"] {
        assert!(folder.join(name).is_symlink(), "{name}");
    }
}

#[test]
fn of_two_restores_at_once_one_completes_and_the_other_leaves_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (in_backup, _) = store_and_backup(folder);
    let words = ["store", "restore", "old.backup", "--store", "sqlite:new.db"];
    for _ in 0..3 {
        let piped = |_| command(folder, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let restores: Vec<Child> = (0..6).map(piped).collect();
        let outputs: Vec<_> = restores.into_iter().map(|restore| restore.wait_with_output().unwrap()).collect();
        let errors: Vec<_> = outputs.iter().map(|output| String::from_utf8_lossy(&output.stderr)).collect();
        let completed = outputs.iter().filter(|output| output.status.success()).count();
        assert_eq!(completed, 1, "{errors:?}");
        for error in errors.iter().filter(|error| !error.is_empty()) {
            let is_refused = ["another restore is making a database", "is in use by", "is there already"];
            assert!(is_refused.iter().any(|words| error.contains(words)), "{error}");
        }
        let checked = sabir(folder, &["store", "check", "--store", "sqlite:new.db"]);
        assert_eq!((checked.code, &checked.printed["tasks"]), (0, &json!(in_backup)), "{}", checked.errors);
        assert!(!names(folder).iter().any(|name| name.contains(".restoring")), "{:?}", names(folder));
        fs::remove_file(folder.join("new.db")).unwrap();
    }
}

#[test]
fn what_is_no_file_is_told_with_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("fifo")).status().unwrap().success());
    for (verb, name, words) in [
        (&["store", "check"][..], "folder", "folder is a folder"),
        (&["store", "check"], "fifo", "fifo is no regular file"),
        (&["doctor", "--offline"], "folder", "folder is a folder"),
        (&["doctor", "--offline"], "fifo", "fifo is no regular file"),
    ] {
        let store = format!("sqlite:{name}");
        let told = sabir(folder, &[verb, &["--store", &store]].concat());
        let printed = told.printed.to_string();
        assert_ne!(told.code, 0, "{verb:?} {name}");
        assert!(told.errors.contains(words) || printed.contains(words), "{verb:?} {name}: {} {printed}", told.errors);
    }
}
