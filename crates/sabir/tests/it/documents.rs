//! README, docs/ and the pages beside them: what can be checked without running their commands.
//!
//! `tests/docs/suite.py` runs the commands (`cargo xtask test documents`). Here the configuration blocks are read by the
//! real loader, and links and names of files must lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::SABIR;

/// How many blocks may say that they cannot be run. Each gives its reason.
const MOST_BLOCKS_NOT_RUN: usize = 30;

/// The languages that somebody checks: this file, or the suite that runs the commands.
const LANGUAGES: [&str; 12] =
    ["sh", "console", "toml", "json", "python", "js", "nginx", "caddyfile", "ini", "rust", "lua", "yaml"];

struct Page {
    path: PathBuf,
    text: String,
}

struct Block<'a> {
    language: &'a str,
    options: &'a str,
    text: String,
    /// Page and line, for whoever has to find it.
    place: String,
}

#[test]
fn every_configuration_block_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("block.toml");
    let mut read = 0;
    for page in pages() {
        for block in page.blocks().iter().filter(|block| block.language == "toml" && block.options != "manifest") {
            fs::write(&file, &block.text).unwrap();
            let mut config = Command::new(SABIR);
            config.args(["config", "--config"]).arg(&file).env_clear().current_dir(&folder).stdin(Stdio::null());
            let output = config.output().unwrap();
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(0), "{}: {complaint}", block.place);
            read += 1;
        }
    }
    assert!(read >= 5, "{read} blocks");
}

/// The Rust of the pages is that of the library's front page, which is compiled as a documentation test.
#[test]
fn every_rust_block_is_compiled_by_the_library() {
    let compiled = fs::read_to_string(root().join("crates/sabir/src/lib.rs")).unwrap();
    let compiled: Vec<&str> = compiled.lines().map(|line| line.trim_start_matches("//!").trim()).collect();
    for page in pages() {
        for block in page.blocks().iter().filter(|block| block.language == "rust") {
            for line in
                block.text.lines().map(str::trim).filter(|line| line.contains("sabir::") || line.starts_with('.'))
            {
                let is_compiled = line.contains("fn main") || compiled.contains(&line);
                assert!(is_compiled, "{}: the front page of the library has no {line:?}", block.place);
            }
        }
    }
}

#[test]
fn every_json_block_is_json() {
    for page in pages() {
        for block in page.blocks().iter().filter(|block| block.language == "json") {
            let read: Result<serde_json::Value, _> = serde_json::from_str(&block.text);
            assert!(read.is_ok(), "{}: {read:?}", block.place);
        }
    }
}

#[test]
fn every_block_is_run_or_says_why_not() {
    let mut not_run = vec![];
    for page in pages() {
        for block in page.blocks() {
            assert!(LANGUAGES.contains(&block.language), "{}: nothing checks {:?}", block.place, block.language);
            if let Some((_, reason)) = block.options.split_once("no-run=") {
                assert!(reason.starts_with('"') && reason.len() > 10, "{}: no-run needs a reason", block.place);
                not_run.push(block.place);
            } else if ["python", "js", "nginx", "caddyfile", "ini", "lua", "yaml"].contains(&block.language) {
                assert!(block.options.contains("file="), "{}: it is no file that is run", block.place);
            }
        }
    }
    assert!(not_run.len() <= MOST_BLOCKS_NOT_RUN, "{} blocks are not run: {not_run:#?}", not_run.len());
}

#[test]
fn every_link_leads_somewhere() {
    for page in pages() {
        for link in page.links() {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.path.clone() } else { page.folder().join(path) };
            assert!(target.exists(), "{}: {link} leads nowhere", page.path.display());
            if !anchor.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let is_there = text.lines().filter(|line| line.starts_with('#')).any(|line| slug(line) == anchor);
                assert!(is_there, "{}: {link} has no such heading", page.path.display());
            }
        }
    }
}

#[test]
fn every_file_that_a_page_names_exists() {
    for page in pages() {
        let quoted = page.text.split('`').skip(1).step_by(2);
        let of_workspace = ["crates/", "docs/", "tests/", "xtask/", ".ci/"];
        for name in quoted.filter(|name| of_workspace.iter().any(|folder| name.starts_with(folder))) {
            let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
            assert!(!is_plain || root().join(name).exists(), "{} names {name}", page.path.display());
        }
    }
}

/// The page about tests names many, and tests are renamed.
#[test]
fn every_test_that_the_page_about_tests_names_exists() {
    let page = fs::read_to_string(root().join("docs/internals/testing.md")).unwrap();
    let sources: Vec<String> =
        below(&root().join("crates"), "rs").iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let is_test = |name: &&str| name.matches('_').count() >= 3 && name.chars().all(|c| c == '_' || c.is_alphanumeric());
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() >= 10, "{named:?}");
    for name in named {
        let function = format!("fn {name}(");
        assert!(sources.iter().any(|source| source.contains(&function)), "there is no test {name}");
    }
}

#[test]
fn operations_says_what_each_alert_means() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let after = |text: &str, prefix: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.trim_start().strip_prefix(prefix)).map(str::to_owned).collect()
    };
    let rules = after(&read("docs/examples/observability/alerts.yaml"), "- alert: ");
    assert!(rules.len() > 10, "{rules:?}");
    let sections = after(&read("docs/guides/operations.md"), "### ");
    assert_eq!(sections, rules, "the sections of the guide, and the rules, in their order");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md"].map(|name| root().join(name)).into();
    paths.extend(below(&root().join("docs"), "md"));
    assert!(paths.len() > 20, "{paths:?}");
    paths.into_iter().map(|path| Page { text: fs::read_to_string(&path).unwrap(), path }).collect()
}

/// All files of this kind below the folder.
fn below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut paths = vec![];
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                paths.push(path);
            }
        }
    }
    paths
}

impl Page {
    fn folder(&self) -> &Path {
        self.path.parent().unwrap()
    }

    /// The fenced blocks. Indented text, which ARCHITECTURE.md has, is none.
    fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks = vec![];
        let mut inside: Option<Block<'_>> = None;
        for (number, line) in self.text.lines().enumerate() {
            match (line.strip_prefix("```"), &mut inside) {
                (Some(info), None) => {
                    let (language, options) = info.split_once(' ').unwrap_or((info, ""));
                    let place = format!("{}:{}", self.path.display(), number + 1);
                    inside = Some(Block { language, options, text: String::new(), place });
                }
                (Some(_), Some(_)) => blocks.extend(inside.take()),
                (None, Some(block)) => block.text.extend([line, "\n"]),
                (None, None) => {}
            }
        }
        assert!(inside.is_none(), "{}: a block has no end", self.path.display());
        blocks
    }

    /// The targets of `[words](target)` outside of blocks.
    fn links(&self) -> Vec<String> {
        let mut text = String::new();
        for (number, piece) in self.text.split("\n```").enumerate() {
            if number % 2 == 0 {
                text.push_str(piece);
            }
        }
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        targets.map(|(target, _)| target.to_owned()).collect()
    }
}

/// The anchor of a heading, as it is made where Markdown is shown.
fn slug(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}
