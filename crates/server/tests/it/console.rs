//! How the console's files are served. What they do in a browser is tested in one.

use sabir_server::{AuthSettings, Console, Credential, Digest, Grant, HostCheck, HostName, ServerSettings};

use super::{ask, serve, serve_with};

#[tokio::test]
async fn every_path_below_the_console_is_a_page_or_a_file() {
    let served = serve().await;
    for (verb, path, status, kind) in [
        ("GET", "/console", 200, "text/html; charset=utf-8"),
        ("GET", "/console/", 200, "text/html; charset=utf-8"),
        ("HEAD", "/console", 200, "text/html; charset=utf-8"),
        ("GET", "/console/tasks/01-ab.js?from=3", 200, "text/html; charset=utf-8"),
        ("GET", "/console/assets/app.js", 200, "text/javascript; charset=utf-8"),
        ("HEAD", "/console/assets/app.js", 200, "text/javascript; charset=utf-8"),
        ("GET", "/console/assets/style.css", 200, "text/css; charset=utf-8"),
        ("GET", "/console/assets/icon.svg", 200, "image/svg+xml"),
        ("GET", "/console/assets/none.js", 404, "text/plain; charset=utf-8"),
        ("GET", "/console/assets/", 404, "text/plain; charset=utf-8"),
        ("GET", "/console/assets/index.html", 404, "text/plain; charset=utf-8"),
        ("GET", "/console/assets/../app.js", 404, "text/plain; charset=utf-8"),
        ("POST", "/console", 405, "text/plain; charset=utf-8"),
        ("DELETE", "/console/assets/app.js", 405, "text/plain; charset=utf-8"),
    ] {
        let told = ask(served.address, verb, path, &[], "").await;
        assert_eq!(told.status, status, "{verb} {path}");
        assert!(told.head.contains(&format!("content-type: {kind}\r\n")), "{verb} {path}: {}", told.head);
        assert_eq!(told.body.is_empty(), verb == "HEAD", "{verb} {path}");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n",
            "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n",
            "x-frame-options: deny\r\n",
        ] {
            assert!(told.head.contains(header), "{verb} {path} lacks {header}: {}", told.head);
        }
        assert!(!told.head.contains("set-cookie"), "{}", told.head);
    }
    let elsewhere = ask(served.address, "GET", "/consoles", &[], "").await;
    assert!(!elsewhere.body.contains("<html"), "{}", elsewhere.body);
}

#[tokio::test]
async fn a_browser_asks_again_and_is_told_that_nothing_changed() {
    let served = serve().await;
    for path in ["/console", "/console/tasks/1", "/console/assets/style.css"] {
        let first = ask(served.address, "GET", path, &[], "").await;
        assert!(first.head.contains("cache-control: no-cache\r\n"), "{}", first.head);
        let etag = first.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().replace("w/", "W/");
        let again = ask(served.address, "GET", path, &[("If-None-Match", &etag)], "").await;
        assert_eq!((again.status, again.body.as_str()), (304, ""), "{path}");
        let other = ask(served.address, "GET", path, &[("If-None-Match", "\"other\"")], "").await;
        assert_eq!((other.status, other.body), (200, first.body), "{path}");
    }
}

#[tokio::test]
async fn files_are_public_and_data_is_not() {
    let credential = Credential {
        digest: Digest::of(b"secret"),
        grant: Grant { subject: "alice".into(), tenant: String::new(), scopes: vec!["run".into()] },
    };
    let auth = AuthSettings { tokens: vec![credential], ..AuthSettings::default() };
    let served = serve_with(|settings| ServerSettings { auth, ..settings }).await;
    for (path, status) in
        [("/console", 200), ("/console/assets/app.js", 200), ("/tasks", 401), ("/admin/v1/nodes", 401)]
    {
        assert_eq!(ask(served.address, "GET", path, &[], "").await.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_name_that_is_not_this_servers_gets_no_console() {
    let hosts = HostCheck::Names(HostName::parse("sabir.example").into_iter().collect());
    let served = serve_with(|settings| ServerSettings { hosts, ..settings }).await;
    for (host, status) in [("sabir.example", 200), ("localhost", 200), ("evil.example", 421)] {
        let told = ask(served.address, "GET", "/console", &[("Host", host)], "").await;
        assert_eq!(told.status, status, "{host}");
    }
}

#[tokio::test]
async fn a_console_that_is_off_is_not_there() {
    let served = serve_with(|settings| ServerSettings { console: Console::Off, ..settings }).await;
    for path in ["/console", "/console/tasks", "/console/assets/app.js"] {
        assert_eq!(ask(served.address, "GET", path, &[], "").await.status, 404, "{path}");
    }
}
