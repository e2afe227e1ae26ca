//! The text of the file: problems come with their lines, and no text panics.

use super::*;

/// What is wrong with the file, by line.
fn problems(text: &[u8]) -> String {
    let environment = Environment::new::<&str, &str>([]);
    match merge(&CliOptions::default(), &environment, file::parse(Path::new("sabir.toml"), text), DATABASE.as_ref()) {
        Ok(_) => String::new(),
        Err(Problems(problems)) => problems.join("\n").replace("sabir.toml:", ""),
    }
}

#[test]
fn unknown_keys_are_named_with_their_line() {
    let server_keys = "listen, public_url, public_grpc, body_limit, memory, cors_origins, allowed_hosts, allow_open, grace, drain, keep_alive, tls_cert, tls_key, tls_client_ca, tls_client_auth, dev_tls, trusted_proxies";
    for (text, expected) in [
        ("", ""),
        ("\u{feff}[server]\ngrace = 1\n", ""),
        ("[server]\n\nlisen = 1\n", "3: unknown key \"lisen\" in [server]; did you mean \"listen\"?"),
        ("server.lisen = 1\n", "1: unknown key \"lisen\" in [server]; did you mean \"listen\"?"),
        ("[server]\nbanana = 1", &format!("2: unknown key \"banana\" in [server]; known keys: {server_keys}")),
        ("listen = 1", "1: unknown key \"listen\" at the top level; did you mean \"listen\" in [server]?"),
        ("[store]\nlisten = 1", "2: unknown key \"listen\" in [store]; did you mean \"listen\" in [server]?"),
        (
            "[[agent]]\nid = 'a'\nkind = 'demo'\nkidn = 'x'",
            "4: unknown key \"kidn\" in [[agent]]; did you mean \"kind\"?",
        ),
        ("[[agents]]\nid = 'a'", "1: unknown section [[agents]]; did you mean [[agent]]?"),
        ("[sevrer]", "1: unknown section [sevrer]; did you mean [server]?"),
        ("[agent]\nid = 'a'", "1: agents are a list; write [[agent]] for each"),
        ("agent = 3", "1: agent is 3; expected [[agent]] tables"),
        ("agent = ['demo']", "1: agent holds \"demo\"; expected [[agent]] tables"),
        ("server = 3", "1: server is 3; expected a section [server]"),
        ("[server]\ngrace = \n", "2: string values must be quoted, expected literal string"),
        ("[log]\nlevel = 'a'\nlevel = 'b'\n", "3: duplicate key"),
    ] {
        assert_eq!(problems(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn several_problems_come_in_the_order_of_the_lines() {
    let text = b"[zebra]\n[[agent]]\nid = 'a'\nkind = 'demo'\nkidn = 1\n[server]\nlisen = 1\n[log]\nlevle = 1\n";
    let lines: Vec<String> = problems(text).lines().map(|line| line[..2].to_owned()).collect();
    assert_eq!(lines, ["1:", "5:", "7:", "9:"]);
}

#[test]
fn a_file_in_another_encoding_is_named_with_the_line() {
    assert_eq!(problems(b"[server]\n# gr\xfc\xdfe\n"), "2: the file is not UTF-8 text");
}

proptest::proptest! {
    #[test]
    fn no_file_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        let file = file::parse(Path::new("sabir.toml"), &bytes);
        let _ = merge(&CliOptions::default(), &Environment::new::<&str, &str>([]), file, DATABASE.as_ref());
    }

    /// Random bytes seldom are TOML; these are near it.
    #[test]
    fn no_nearly_right_file_panics(
        words in proptest::collection::vec(proptest::sample::select(PIECES), 0..40),
    ) {
        let file = file::parse(Path::new("sabir.toml"), words.concat().as_bytes());
        let _ = merge(&CliOptions::default(), &Environment::new::<&str, &str>([]), file, DATABASE.as_ref());
    }
}

const PIECES: &[&str] = &[
    "[server]\n",
    "[[agent]]\n",
    "[[agent.skill]]\n",
    "[[agent.extension]]\n",
    "params",
    "[agent]\n",
    "[store]\n",
    "[routing]\n",
    "mode",
    "command",
    "'generic'",
    "env",
    "complex",
    "[x.y]\n",
    "listen",
    "id",
    "kind",
    "url",
    "grace",
    "=",
    " = ",
    "\"sqlite:x\"",
    "'demo'",
    "'é'",
    "[1, 'x']",
    "{a = 1}",
    "1979-05-27",
    "nan",
    "-0",
    "99999999999999999999",
    "\n",
    "\r\n",
    ".",
    "#",
    "\u{feff}",
    "\"\\u0000\"",
    "true",
];
