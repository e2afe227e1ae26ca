//! Foreign crates, checked: their licences, that each is there once and from the registry, and that what a manifest of
//! ours names is used.
//!
//! Known vulnerabilities need a database from the network: `cargo deny check` looks them up, with the rules of
//! `deny.toml`, and is part of this check wherever cargo-deny is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command;
use crate::workspace::Workspace;

/// Licences that a user of Sabir can live with. `deny.toml` has the same.
const LICENCES: [&str; 9] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0", // Mozilla's root certificates, which are data
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that are there twice, and why nothing can be done about it.
const DOUBLED: [(&str, &str); 7] = [
    ("syn", "derive macros move to version 3 one by one; it is not in the binary"),
    ("hashbrown", "prost-build has an older one, and only the generator of the gRPC messages uses that"),
    ("foldhash", "of that hashbrown"),
    ("rand", "opentelemetry-proto, which reads spans in tests, has an older one than proptest"),
    ("rand_core", "of that rand"),
    ("getrandom", "of that rand"),
    ("fallible-iterator", "rusqlite and tokio-postgres differ; it is a few dozen lines"),
];

/// Dependencies that no line of ours names, and what they are for.
const UNNAMED: [(&str, &str); 0] = [];

/// Everything that is wrong, one sentence each.
pub fn faults(workspace: &Workspace) -> Result<Vec<String>> {
    let host = host(workspace)?;
    let metadata = metadata(workspace, &host)?;
    let tree = command::output(workspace.cargo().args(TREE).args(["--target", &host]))?;
    let mut faults = foreign(&metadata, &tree);
    faults.extend(unused(&metadata)?);
    if command::works(workspace.cargo().args(["deny", "--version"])) {
        let deny = command::shown(workspace.cargo().args(["deny", "check"]));
        faults.extend(deny.err().map(|error| format!("{error:#}")));
    } else {
        println!("    cargo-deny is not installed: nobody looks for known vulnerabilities here");
    }
    Ok(faults)
}

/// This machine's platform: crates of others need not even be downloaded.
fn host(workspace: &Workspace) -> Result<String> {
    let version = command::output(Command::new("rustc").arg("-vV").current_dir(&workspace.root))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("`rustc -vV` names no host")?;
    Ok(host.to_owned())
}

fn metadata(workspace: &Workspace, host: &str) -> Result<Value> {
    let text =
        command::output(workspace.cargo().args(["metadata", "--format-version", "1", "--filter-platform", host]))?;
    serde_json::from_str(&text).context("`cargo metadata` did not print JSON")
}

/// What is built: one `name vVERSION` per line. The metadata also has optional crates that a feature mentions
/// (`ring?/std`) and nobody switches on.
const TREE: [&str; 8] = ["tree", "--workspace", "--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}"];

fn foreign(metadata: &Value, tree: &str) -> Vec<String> {
    let mut faults = vec![];
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let built: BTreeSet<(&str, &str)> = tree.lines().filter_map(built_package).collect();
    for package in packages(metadata) {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let Some(source) = package["source"].as_str() else { continue };
        if !built.contains(&(name, version)) {
            continue;
        }
        versions.entry(name).or_default().insert(version);
        if !source.starts_with("registry+") {
            faults.push(format!("{name} {version} comes from {source}; take it from the registry"));
        }
        let licence = text(package, "license");
        if !is_accepted(licence) {
            faults.push(format!("{name} {version} has the licence `{licence}`, which is not one of {LICENCES:?}"));
        }
    }
    let doubled = versions.iter().filter(|(name, versions)| versions.len() > 1 && !is_known(&DOUBLED, name));
    faults.extend(doubled.map(|(name, versions)| {
        let versions: Vec<&str> = versions.iter().copied().collect();
        format!("{name} is there in several versions ({}): choose crates that agree on one", versions.join(", "))
    }));
    let once = |name: &&str| versions.get(name).is_none_or(|versions| versions.len() < 2);
    let excused = DOUBLED.iter().map(|(name, _)| *name).filter(once);
    faults.extend(excused.map(|name| format!("{name} is there only once: take it out of the list of excuses")));
    faults
}

fn built_package(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

/// Whether an SPDX expression can be met. A slash is the old spelling of OR.
fn is_accepted(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest) && rest.is_empty()
}

fn either(words: &mut &[&str]) -> bool {
    let mut accepted = both(words);
    while let Some((&"OR", rest)) = words.split_first() {
        *words = rest;
        accepted |= both(words);
    }
    accepted
}

fn both(words: &mut &[&str]) -> bool {
    let mut accepted = licence(words);
    while let Some((&"AND", rest)) = words.split_first() {
        *words = rest;
        accepted &= licence(words);
    }
    accepted
}

fn licence(words: &mut &[&str]) -> bool {
    let Some((&word, rest)) = words.split_first() else { return false };
    *words = rest;
    if word == "(" {
        let accepted = either(words);
        if let Some((&")", rest)) = words.split_first() {
            *words = rest;
        }
        return accepted;
    }
    match words {
        ["WITH", exception, rest @ ..] => {
            *words = rest;
            LICENCES.contains(&format!("{word} WITH {exception}").as_str())
        }
        _ => LICENCES.contains(&word),
    }
}

/// Dependencies of our crates that none of their files names.
fn unused(metadata: &Value) -> Result<Vec<String>> {
    let mut faults = vec![];
    for package in packages(metadata).filter(|package| package["source"].is_null()) {
        let manifest = Path::new(text(package, "manifest_path"));
        let folder = manifest.parent().context("a manifest lies in a folder")?;
        let mut code = String::new();
        for place in ["src", "tests", "benches", "examples"] {
            read_code(&folder.join(place), &mut code)?;
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let name = dependency["rename"].as_str().unwrap_or_else(|| text(dependency, "name"));
            if !is_named(&code, &name.replace('-', "_")) && !is_known(&UNNAMED, name) {
                faults.push(format!("{} depends on {name} and does not use it", text(package, "name")));
            }
        }
    }
    Ok(faults)
}

fn read_code(folder: &Path, code: &mut String) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            read_code(&path, code)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            code.push_str(&fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?);
        }
    }
    Ok(())
}

/// Whether a path in the code begins with the crate, or its macro or an import names it.
fn is_named(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(place, _)| {
        let before = code[..place].chars().next_back();
        let after = &code[place + name.len()..];
        !before.is_some_and(|before| before.is_alphanumeric() || before == '_')
            && (after.starts_with("::") || after.starts_with(';') || after.starts_with(" as "))
    })
}

fn is_known(list: &[(&str, &str)], name: &str) -> bool {
    list.iter().any(|(known, _)| *known == name)
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn licences_that_are_accepted() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("MIT/Apache-2.0", true),
            ("MIT AND GPL-3.0-only", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND GPL-2.0", false),
            ("GPL-2.0 OR MIT AND GPL-3.0-only", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
            ("MIT WITH GCC-exception-3.1", false),
            ("", false),
            ("MIT MIT", false),
        ] {
            assert_eq!(is_accepted(expression), expected, "{expression}");
        }
    }

    #[test]
    fn what_is_wrong_with_foreign_crates() {
        let package = |name: &str, version: &str, licence: &str, source: Option<&str>| json!({"name": name, "version": version, "license": licence, "source": source});
        let (registry, git) = (Some("registry+x"), Some("git+https://x"));
        // Those that are excused are there twice.
        let excused = DOUBLED.iter().flat_map(|(name, _)| [(*name, "1.0.0"), (*name, "2.0.0")]);
        let excused: Vec<(&str, &str)> = excused.collect();
        let mut metadata = json!({"packages": [
            package("ours", "0.1.0", "Apache-2.0", None),
            package("twice", "1.0.0", "MIT", registry),
            package("twice", "2.0.0", "MIT", registry),
            package("copyleft", "1.0.0", "AGPL-3.0", registry),
            package("elsewhere", "1.0.0", "MIT", git),
            package("off", "1.0.0", "AGPL-3.0", registry),
        ]});
        let list = metadata["packages"].as_array_mut().expect("a list");
        list.extend(excused.iter().map(|(name, version)| package(name, version, "MIT", registry)));
        let excused: String = excused.iter().map(|(name, version)| format!("{name} v{version}\n")).collect();
        let tree = "ours v0.1.0 (/x)\ntwice v1.0.0\ntwice v2.0.0 (proc-macro)\n\
                    copyleft v1.0.0\nelsewhere v1.0.0 (https://x#1) (*)\n";
        let faults = foreign(&metadata, &format!("{tree}{excused}"));
        assert_eq!(faults.len(), 3, "{faults:?}");
        for (fault, words) in
            faults.iter().zip(["copyleft 1.0.0 has the licence", "elsewhere 1.0.0 comes", "twice is there"])
        {
            assert!(fault.starts_with(words), "{fault}");
        }
    }

    #[test]
    fn a_crate_is_named_by_its_paths() {
        for (code, expected) in [
            ("use tokio::net;", true),
            ("tokio::spawn(x)", true),
            ("extern crate tokio;", true),
            ("use tokio as runtime;", true),
            ("my_tokio::x", false),
            ("tokio_util::x", false),
            ("// tokio is not here", false),
        ] {
            assert_eq!(is_named(code, "tokio"), expected, "{code}");
        }
    }
}
