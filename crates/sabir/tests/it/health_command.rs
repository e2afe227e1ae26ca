//! `sabir health`: the exit code says whether a server can take work.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sabir_testkit::process::SabirOptions;

use crate::SABIR;

/// Exit code, output and errors of `sabir health` with these words, in this folder.
fn health(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let variables =
        [("SABIR_STORE", "sqlite:sabir.db"), ("SABIR_LISTEN", "127.0.0.1:1"), ("SABIR_UNKNOWN", "warned of")];
    let mut command = Command::new(SABIR);
    let output = command.arg("health").args(words).current_dir(folder).env_clear().envs(variables).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_server_is_ready_while_it_runs() {
    for flags in [&[][..], &["--dev-tls"]] {
        let folder = tempfile::tempdir().unwrap();
        let options = SabirOptions::new(SABIR, folder.path());
        let mut server = flags.iter().fold(options, |options, flag| options.argument(flag)).start();
        assert_eq!(health(folder.path(), &[]), (0, "{\"status\":\"ready\"}\n".to_owned(), String::new()), "{flags:?}");
        server.terminate();
        assert!(server.wait(Duration::from_secs(20)).success());
        let (code, printed, errors) = health(folder.path(), &[]);
        assert_eq!((code, printed.as_str()), (1, ""), "{flags:?}");
        assert!(errors.starts_with("sabir: cannot ask the server at "), "{errors}");
    }
}

#[test]
fn credentials_are_not_needed() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).variable("SABIR_AUTH_TOKENS", "alice:secret-of-alice").start();
    let url = format!("http://{}", server.address);
    for words in [&[][..], &[url.as_str()]] {
        // What the configuration is warned of, the server has said at its start.
        let ready = (0, "{\"status\":\"ready\"}\n".to_owned(), String::new());
        assert_eq!(health(folder.path(), words), ready, "{words:?}");
    }
}

#[test]
fn any_other_answer_is_a_failure() {
    for (answer, expected) in [
        (
            "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 21\r\n\r\n{\"status\":\"stopping\"}",
            "cannot take work: stopping",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "answered 200; is it a Sabir of this version?"),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "answered 404; is it a Sabir of this version?"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let folder = tempfile::tempdir().unwrap();
        let (code, printed, errors) = health(folder.path(), &[&url]);
        answering.join().unwrap();
        assert_eq!((code, printed.as_str()), (1, ""), "{answer}");
        assert!(errors.contains(expected), "{errors}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(health(folder.path(), &["no address"]).0, 1);
    assert_eq!(health(folder.path(), &["http://127.0.0.1:1", "--config", "x.toml"]).0, 2);
}
