//! HTTPS of the real program: certificates of the operator, of clients and of `--dev-tls`, and files that change.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use sabir_testkit::certificates::{Authority, Wanted, client_config, https_get, shown_certificate};
use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::Value;

use crate::SABIR;

/// A folder with a certificate of `authority`, and the options that use it.
struct Setup {
    folder: tempfile::TempDir,
    authority: Authority,
    options: SabirOptions,
}

impl Setup {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("servers");
        authority.issue(&Wanted::server()).write(folder.path(), "cert.pem", "key.pem");
        let options = SabirOptions::new(SABIR, folder.path())
            .variable("SABIR_SERVER_TLS_CERT", "cert.pem")
            .variable("SABIR_SERVER_TLS_KEY", "key.pem");
        Self { folder, authority, options }
    }

    fn with(self, name: &str, value: &str) -> Self {
        Self { options: self.options.variable(name, value), ..self }
    }
}

fn card(reply: &str) -> Value {
    serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|error| panic!("{error}: {reply}"))
}

const CARD: &str = "/.well-known/agent-card.json";

#[test]
fn a_server_with_a_certificate_speaks_https_and_says_so() {
    let setup = Setup::new();
    let server = setup.options.start();
    let base = format!("https://{}", server.address);
    assert_eq!(server.ready["url"], base);
    assert_eq!(server.ready["card"], format!("{base}{CARD}"));
    assert!(server.ready["ca"].is_null(), "{}", server.ready);
    let reply = https_get(&setup.authority.client_config(None, &[]), server.address, CARD).unwrap();
    assert_eq!(card(&reply)["url"], format!("{base}/a2a/jsonrpc"), "{reply}");
    let told = server.get("/healthz");
    assert_eq!((told.status, told.text().trim()), (400, "This port speaks HTTPS: use https:// instead of http://."));
}

#[test]
fn wrong_tls_settings_stop_the_start_with_the_file_and_the_remedy() {
    const CERT: &str = "SABIR_SERVER_TLS_CERT";
    const KEY: &str = "SABIR_SERVER_TLS_KEY";
    let setup = Setup::new();
    setup.authority.issue(&Wanted::server()).write(setup.folder.path(), "other.pem", "other-key.pem");
    for (variables, expected) in [
        (&[(CERT, "cert.pem")][..], "SABIR_SERVER_TLS_CERT is set without server.tls_key; name both files, or neither"),
        (&[(KEY, "key.pem")], "SABIR_SERVER_TLS_KEY is set without server.tls_cert; name both files, or neither"),
        (
            &[(CERT, "none.pem"), (KEY, "key.pem")],
            "SABIR_SERVER_TLS_CERT names none.pem, which does not exist; name the PEM file",
        ),
        (
            &[(CERT, "cert.pem"), (KEY, "other-key.pem")],
            "SABIR_SERVER_TLS_KEY names other-key.pem, which is not the key of the certificate in cert.pem; \
             name the two that belong together",
        ),
        (
            &[("SABIR_SERVER_TLS_CLIENT_CA", "cert.pem")],
            "SABIR_SERVER_TLS_CLIENT_CA asks for certificates of clients, which needs HTTPS; \
             set server.tls_cert and server.tls_key, or --dev-tls",
        ),
        (
            &[(CERT, "cert.pem"), (KEY, "key.pem"), ("SABIR_SERVER_TLS_CLIENT_CA", "key.pem")],
            "SABIR_SERVER_TLS_CLIENT_CA names key.pem, which holds no certificate; \
             name a PEM file with \"BEGIN CERTIFICATE\" in it",
        ),
    ] {
        let mut options = SabirOptions::new(SABIR, setup.folder.path());
        options.environment = variables.iter().map(|(name, file)| ((*name).into(), (*file).into())).collect();
        let output = options.command().output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), told.trim()), (Some(2), &*format!("sabir: {expected}")));
    }
}

#[test]
fn clients_show_certificates() {
    let (clients, foreign) = (Authority::new("clients"), Authority::new("foreign"));
    let alice = Wanted::client(&["spiffe://example.org/alice"]);
    let yesterday = SystemTime::now() - Duration::from_secs(86_400);
    let setup = Setup::new().with("SABIR_SERVER_TLS_CLIENT_CA", "clients.pem");
    let setup = setup.with("SABIR_SERVER_TLS_CLIENT_AUTH", "required");
    std::fs::write(setup.folder.path().join("clients.pem"), clients.certificate()).unwrap();
    let server = setup.options.start();
    for (certificate, expected) in [
        (Some(clients.issue(&alice)), "HTTP/1.1 200"),
        (Some(foreign.issue(&alice)), "UnknownCA"),
        (Some(clients.issue(&Wanted { not_after: yesterday, ..alice.clone() })), "CertificateExpired"),
        (Some(clients.issue(&Wanted::client(&[]))), "HTTP/1.1 403"),
        (None, "CertificateRequired"),
    ] {
        let config = setup.authority.client_config(certificate.as_ref(), &[]);
        let told = https_get(&config, server.address, "/healthz").unwrap_or_else(|error| error.to_string());
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

/// Waits until the server shows this certificate to new clients, or another than that.
fn until_shown(server: &SabirProcess, setup: &Setup, is_it: impl Fn(&[u8]) -> bool) {
    let config = setup.authority.client_config(None, &[]);
    server.until("the certificate is renewed", |server| {
        shown_certificate(&config, server.address).ok().filter(|shown| is_it(shown))
    });
}

#[test]
fn renewed_files_are_used_without_a_restart_and_broken_ones_are_not() {
    let setup = Setup::new();
    let log = setup.folder.path().join("log");
    let server = setup.options.start_with(Stdio::from(File::create(&log).unwrap()));
    let shown = || shown_certificate(&setup.authority.client_config(None, &[]), server.address).unwrap();
    let first = shown();
    setup.authority.issue(&Wanted::server()).write(setup.folder.path(), "cert.pem", "key.pem");
    until_shown(&server, &setup, |shown| shown != first);
    let second = shown();
    std::fs::write(setup.folder.path().join("cert.pem"), "nothing").unwrap();
    let lines = |words: &str| {
        let log = std::fs::read_to_string(&log).unwrap();
        log.lines().filter(|line| line.contains(words)).map(str::to_owned).collect::<Vec<_>>()
    };
    let warning = "server.tls_cert names cert.pem, which holds no certificate";
    server.until("the broken file is told", |_| lines(warning).first().cloned());
    assert_eq!(shown(), second, "the one from before is used");
    setup.authority.issue(&Wanted::server()).write(setup.folder.path(), "cert.pem", "key.pem");
    until_shown(&server, &setup, |shown| shown != second);
    assert_eq!(lines(warning).len(), 1, "it is told once: {:?}", lines("WARN"));
    assert_eq!(lines("the new TLS files are in force").len(), 2);
}

#[test]
fn sighup_has_the_files_looked_at() {
    let setup = Setup::new();
    let starter = setup.folder.path().join("detached");
    std::fs::write(&starter, format!("#!/bin/sh\nexec setsid '{SABIR}' \"$@\"\n")).unwrap();
    std::fs::set_permissions(&starter, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let log = setup.folder.path().join("log");
    let options = SabirOptions { binary: starter, ..setup.options };
    let server = options.start_with(Stdio::from(File::create(&log).unwrap()));
    server.signal("HUP");
    server.until("it has looked", |_| {
        std::fs::read_to_string(&log).unwrap().contains("the TLS files have not changed").then_some(())
    });
}

#[test]
fn dev_tls_makes_a_certificate_and_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path()).argument("--dev-tls");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut server = options.start();
        let authority = server.ready["ca"].as_str().unwrap().to_owned();
        assert_eq!(Path::new(&authority), folder.path().join("sabir.db-tls/ca.pem"));
        let config = client_config(&std::fs::read_to_string(&authority).unwrap(), None, &[]);
        let reply = https_get(&config, server.address, CARD).unwrap();
        assert_eq!(card(&reply)["url"], format!("https://{}/a2a/jsonrpc", server.address));
        // What the start lines tell people to type.
        let url = format!("{}/healthz", server.ready["url"].as_str().unwrap());
        let curl = Command::new("curl").args(["-sS", "--http2", "--cacert", &authority, &url]).output().unwrap();
        let told = String::from_utf8_lossy(&curl.stdout).into_owned() + &String::from_utf8_lossy(&curl.stderr);
        assert!(told.contains("ok"), "{told}");
        seen.push(shown_certificate(&config, server.address).unwrap());
        server.terminate();
        assert!(server.wait(Duration::from_secs(20)).success());
    }
    assert_eq!(seen[0], seen[1], "the next start uses it again");
}

#[test]
fn dev_tls_and_a_certificate_of_the_operator_exclude_each_other() {
    let setup = Setup::new();
    let output = setup.options.argument("--dev-tls").command().output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(
        told.contains("--dev-tls is set beside server.tls_cert or server.tls_key; leave one of them out"),
        "{told}"
    );
}
