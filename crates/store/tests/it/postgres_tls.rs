//! TLS to Postgres, with each `sslmode`, and passwords.

use std::os::unix::fs::{PermissionsExt, chown};
use std::time::Duration;

use sabir_store::{PostgresSettings, PostgresStore};
use sabir_testkit::certificates::{Authority, Wanted};
use tokio::time::timeout;

use crate::postgres_own_server::Server;
use crate::postgres_server::new_database;

#[tokio::test(flavor = "multi_thread")]
async fn what_each_sslmode_checks() {
    let listening = |port: u16| format!("listen_addresses = '127.0.0.1'\nport = {port}\n");
    let Some(server) = Server::start(listening) else { return };
    let (port, settings) = (server.port, listening(server.port));
    let (ours, others) = (Authority::new("ours"), Authority::new("others"));
    let issued = ours.issue(&Wanted { hosts: vec!["localhost".to_owned()], ..Wanted::server() });
    let folder = server.folder.path();
    for (name, text) in [
        ("key.pem", issued.key),
        ("cert.pem", issued.certificate),
        ("ours.pem", ours.certificate()),
        ("others.pem", others.certificate()),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        if let Some((uid, gid)) = server.user {
            chown(&path, Some(uid), Some(gid)).expect("an owner");
        }
    }
    let folder = folder.display().to_string();
    let ssl = format!("{settings}ssl = on\nssl_key_file = '{folder}/key.pem'\nssl_cert_file = '{folder}/cert.pem'\n");
    server.write_settings(&ssl);
    let sql = "CREATE ROLE sabir SUPERUSER LOGIN PASSWORD 'geheim'";
    server.run("psql", &["-h", &folder, "-p", &port.to_string(), "-U", "postgres", "-qc", sql]);
    let access = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(format!("{}/pg_hba.conf", server.data()), access).expect("settings");
    server.control(&["restart"]);

    let (ours, others) = (format!("&sslrootcert={folder}/ours.pem"), format!("&sslrootcert={folder}/others.pem"));
    for (host, password, parameters, expected) in [
        ("localhost", "geheim", "", "opened"),
        ("localhost", "geheim", "?sslmode=require", "opened"),
        ("localhost", "geheim", "?sslmode=disable", "refuses to let us in"),
        ("localhost", "falsch", "?sslmode=require", "refuses to let us in"),
        ("localhost", "geheim", &*format!("?sslmode=require{ours}"), "opened"),
        ("localhost", "geheim", &*format!("?sslmode=require{others}"), "cannot be reached with TLS"),
        ("127.0.0.1", "geheim", &*format!("?sslmode=verify-ca{ours}"), "opened"),
        ("127.0.0.1", "geheim", &*format!("?sslmode=verify-ca{others}"), "cannot be reached with TLS"),
        ("127.0.0.1", "geheim", &*format!("?sslmode=verify-full{ours}"), "cannot be reached with TLS"),
        ("localhost", "geheim", &*format!("?sslmode=verify-full{ours}"), "opened"),
    ] {
        let url = format!("postgres://sabir:{password}@{host}:{port}/postgres{parameters}");
        let outcome = match PostgresStore::open(PostgresSettings::new(url, "a", "0")).await {
            Ok(_) => "opened".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(outcome.contains(expected) && !outcome.contains(password), "{host} {parameters}: {outcome}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_not_waited_for() {
    let Some(url) = new_database() else { return };
    for mode in ["require", "verify-full"] {
        let settings = PostgresSettings::new(format!("{url}?sslmode={mode}"), "a", "0");
        let opening = PostgresStore::open(PostgresSettings { start_timeout: Duration::from_secs(60), ..settings });
        let opened = timeout(Duration::from_secs(30), opening).await.expect("waiting cannot help");
        let error = opened.err().expect("it has no TLS").to_string();
        assert!(error.contains("server does not support TLS; check sslmode"), "{error}");
    }
}
