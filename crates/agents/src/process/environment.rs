//! The environment variables of a program.
//!
//! A program gets what nearly every program needs and what the operator names, never all of Sabir's own environment: that
//! has the keys of other agents and Sabir's own secrets.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Variables that every program gets.
const EVERY_PROGRAM: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_*",
    "TERM",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Sabir's own variables have this prefix; one is passed only if it is named in full.
const SABIR_PREFIX: &[u8] = b"SABIR_";

/// The environment of a program: from the `server`'s variables those that every program needs and those that `pass` names
/// (`NAME`, or `PREFIX_*` for many). The `fixed` ones are added and win.
pub fn environment(
    server: impl IntoIterator<Item = (OsString, OsString)>,
    pass: &[String],
    fixed: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsStr| {
        let mut patterns = EVERY_PROGRAM.into_iter().chain(pass.iter().map(String::as_str));
        patterns.any(|pattern| names(pattern, name)) && !fixed.iter().any(|(fixed, _)| name == fixed.as_str())
    };
    let mut variables: Vec<_> = server.into_iter().filter(|(name, _)| passes(name)).collect();
    for (at, (name, value)) in fixed.iter().enumerate() {
        let is_overridden = fixed[at + 1..].iter().any(|(later, _)| later == name);
        if !is_overridden {
            variables.push((name.into(), value.into()));
        }
    }
    variables
}

fn names(pattern: &str, name: &OsStr) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.as_bytes().starts_with(prefix.as_bytes()) && !name.as_bytes().starts_with(SABIR_PREFIX),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::environment;

    fn check(server: &[&str], pass: &[&str], fixed: &[&str], expected: &str) {
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        let server = server.iter().map(|text| pair(text)).map(|(name, value)| (name.into(), value.into()));
        let pass: Vec<String> = pass.iter().map(|name| (*name).to_owned()).collect();
        let fixed: Vec<_> = fixed.iter().map(|text| pair(text)).collect();
        let made = environment(server, &pass, &fixed);
        let shown: Vec<_> =
            made.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        assert_eq!(shown.join(" "), expected, "pass {pass:?}, fixed {fixed:?}");
    }

    #[test]
    fn a_program_knows_what_it_needs_and_what_is_named() {
        let server =
            ["PATH=/bin", "LC_ALL=C", "XDG_DATA_HOME=/d", "https_proxy=p", "AWS_KEY=k", "AWS_ID=i", "SABIR_TOKEN=t"];
        let common = "PATH=/bin LC_ALL=C XDG_DATA_HOME=/d https_proxy=p";
        for (pass, fixed, more) in [
            (vec![], vec![], ""),
            (vec!["AWS_KEY"], vec![], " AWS_KEY=k"),
            (vec!["AWS_*"], vec![], " AWS_KEY=k AWS_ID=i"),
            (vec!["AWS"], vec![], ""),
            (vec!["NOT_THERE"], vec![], ""),
            (vec!["AWS_KEY"], vec!["AWS_KEY=mine"], " AWS_KEY=mine"),
            (vec![], vec!["A=1", "A=2"], " A=2"),
            (vec!["SABIR_*"], vec![], ""),
            (vec!["*"], vec![], " AWS_KEY=k AWS_ID=i"),
            (vec!["SABIR_TOKEN"], vec![], " SABIR_TOKEN=t"),
            (vec![], vec!["SABIR_TOKEN=other"], " SABIR_TOKEN=other"),
        ] {
            check(&server, &pass, &fixed, &format!("{common}{more}"));
        }
    }

    #[test]
    fn a_fixed_pair_wins_over_what_everybody_gets() {
        check(&["PATH=/bin", "HOME=/root"], &[], &["HOME=/tenant"], "PATH=/bin HOME=/tenant");
    }
}
