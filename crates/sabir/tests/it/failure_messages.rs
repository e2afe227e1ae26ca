//! What callers are told of a program that fails, and what only the log has.

use std::fs::{self, File};
use std::time::Duration;

use crate::program_fixture::{ProgramFixture, message, reason, send, state};

const KEY: &str = "sk-live-0123456789";

/// Fails as real programs do: the key is in what it prints.
const FAILING: &str = "echo \"starting up\" >&2\necho \"401 for $MY_API_KEY at $HTTPS_PROXY\" >&2\nexit 3\n";

#[test]
fn callers_see_the_end_of_stderr_by_default_only_on_loopback_and_never_secrets() {
    for (server_section, more, is_told) in [
        ("", "", true),
        ("", "tell_stderr = false", false),
        ("[server]\npublic_url = 'https://agents.example.com'\n", "", false),
        ("[server]\npublic_url = 'https://agents.example.com'\n", "tell_stderr = true", true),
    ] {
        for kind in ["command", "generic"] {
            let script = ProgramFixture::new(FAILING);
            let more = format!("pass_env = ['MY_API_KEY']\n{more}");
            let options = script.options(&format!("{server_section}{}", script.agent("prog", kind, &more)));
            let options = options.variable("MY_API_KEY", KEY).variable("HTTPS_PROXY", "http://me:hunter22@proxy:80");
            let log = script.folder.path().join("log");
            let mut server = options.start_with(File::create(&log).unwrap().into());
            let task = send(&server, message("x"));
            assert_eq!(state(&task), "FAILED", "{task}");
            let told = reason(&task);
            assert!(told.contains("exit code 3"), "{told}");
            assert_eq!(told.contains("401 for *** at http://me:***@proxy:80"), is_told, "{more}: {told}");
            assert_eq!(told.contains("the server's log"), !is_told, "{more}: {told}");
            server.terminate();
            server.wait(Duration::from_secs(20));
            let log = fs::read_to_string(&log).unwrap();
            assert!(log.contains("401 for *** at http://me:***@proxy:80"), "{log}");
            let all = format!("{task}{log}");
            assert!(!all.contains(KEY) && !all.contains("hunter22"), "{all}");
        }
    }
}

#[test]
fn failure_reasons_of_a_program_have_no_secrets() {
    let line = "echo \"{\\\"type\\\":\\\"error\\\",\\\"message\\\":\\\"bad key $MY_API_KEY\\\"}\"\n";
    let script = ProgramFixture::new(line);
    let server = script
        .options(&script.agent("prog", "generic", "pass_env = ['MY_API_KEY']"))
        .variable("MY_API_KEY", KEY)
        .start();
    let task = send(&server, message("x"));
    assert_eq!((state(&task), reason(&task)), ("FAILED", "bad key ***"), "{task}");
    server.kill();
}
