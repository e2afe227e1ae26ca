//! `docs/internals/promises.md`, made of the tests: every promise, what it says, and where it is tested.
//!
//! A promise is a test whose name begins with its row, `s1_15_...`, or a line in the list of those that wait.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// How many promises each of the five systems made.
const ROWS: [(&str, u32); 5] = [
    ("coding-agent-a2a", 38),
    ("tirea, a gateway", 35),
    ("CodeTether", 30),
    ("a tutorial of protocol v0.1", 32),
    ("protoAgent", 29),
];

const PROMISES: &str = "crates/sabir/tests/it/promises";
const DOCUMENT: &str = "docs/internals/promises.md";

const OPENING: &str = "\
# Promises and their tests

Sabir replaces five systems and keeps their promises to clients. Each row is one promise; each that does not wait for a feature is
a test against the real program, named after its row (`cargo test -p sabir --test it s1_15`). `cargo xtask compatibility` writes
this page from those tests.
";

/// System and number, `S1-15`.
type Row = (usize, u32);

#[derive(Debug, PartialEq, Eq)]
enum PromiseState {
    Tested { what: String, test: String },
    Waiting { what: String, feature: String },
}

/// Writes the page.
pub fn write(workspace: &Workspace) -> Result<()> {
    let (rows, faults) = read(&workspace.root.join(PROMISES))?;
    for fault in faults {
        eprintln!("{fault}");
    }
    let path = workspace.root.join(DOCUMENT);
    fs::write(&path, page(&rows)).with_context(|| format!("cannot write {}", path.display()))
}

/// What is wrong: promises without a place, with two of them, or a page that says something else.
pub fn faults(workspace: &Workspace) -> Result<Vec<String>> {
    let (rows, mut faults) = read(&workspace.root.join(PROMISES))?;
    for (system, (name, count)) in ROWS.iter().enumerate() {
        let missing = (1..=*count).filter(|number| !rows.contains_key(&(system, *number)));
        faults.extend(missing.map(|number| {
            format!("{} of {name} has neither a test nor a line in {PROMISES}/waiting.txt", title((system, number)))
        }));
    }
    let written = fs::read_to_string(workspace.root.join(DOCUMENT)).unwrap_or_default();
    if written != page(&rows) {
        faults.push(format!("{DOCUMENT} is not what the tests say; `cargo xtask compatibility` writes it"));
    }
    Ok(faults)
}

fn read(folder: &Path) -> Result<(BTreeMap<Row, PromiseState>, Vec<String>)> {
    let mut rows = BTreeMap::new();
    let mut faults = vec![];
    let mut put = |row: Row, state: PromiseState| {
        if let Some(other) = rows.insert(row, state) {
            faults.push(format!("{} stands twice: {other:?}", title(row)));
        }
    };
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name == "waiting.txt" {
            waiting(&text).into_iter().for_each(|(row, state)| put(row, state));
        } else if name.ends_with(".rs") {
            tested(&text).into_iter().for_each(|(row, state)| put(row, state));
        }
    }
    Ok((rows, faults))
}

/// The tests of a file: the comment above, the attribute, and the name.
fn tested(text: &str) -> Vec<(Row, PromiseState)> {
    let mut rows = vec![];
    let mut comment = String::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("/// ") {
            comment = if comment.is_empty() { words.to_owned() } else { format!("{comment} {words}") };
        } else if let Some(rest) = line.strip_prefix("fn ") {
            let test = rest.split('(').next().unwrap_or_default();
            if let Some(row) = row_of_test(test) {
                let what = comment.trim_end_matches('.').to_owned();
                rows.push((row, PromiseState::Tested { what, test: test.to_owned() }));
            }
            comment.clear();
        } else if !line.starts_with("#[") {
            comment.clear();
        }
    }
    rows
}

fn waiting(text: &str) -> Vec<(Row, PromiseState)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .filter_map(|line| {
            let mut columns = line.split(" | ").map(|column| column.trim().to_owned());
            let row = row_of_title(&columns.next()?)?;
            Some((row, PromiseState::Waiting { what: columns.next()?, feature: columns.next()? }))
        })
        .collect()
}

/// `s1_15_a_done_task...` is S1-15.
fn row_of_test(name: &str) -> Option<Row> {
    let mut words = name.strip_prefix('s')?.split('_');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

fn row_of_title(title: &str) -> Option<Row> {
    let (system, number) = title.strip_prefix('S')?.split_once('-')?;
    Some((system.parse().ok()?, number.parse().ok()?))
}

fn title((system, number): Row) -> String {
    format!("S{system}-{number:02}")
}

fn page(rows: &BTreeMap<Row, PromiseState>) -> String {
    let tested = rows.values().filter(|state| matches!(state, PromiseState::Tested { .. })).count();
    let mut page = format!("{OPENING}\n{tested} promises hold, {} wait.\n", rows.len() - tested);
    for (system, (name, _)) in ROWS.iter().enumerate() {
        page.push_str(&format!("\n## {name}\n\n| row | what | where |\n|---|---|---|\n"));
        for (row, state) in rows.iter().filter(|((of, _), _)| *of == system) {
            let (what, place) = match state {
                PromiseState::Tested { what, test } => (what, format!("`{test}`")),
                PromiseState::Waiting { what, feature } => (what, format!("waits for {feature}")),
            };
            page.push_str(&format!("| {} | {} | {place} |\n", title(*row), what.replace('|', "\\|")));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_lines_become_rows() {
        let source = "/// A card is public.\n#[test]\nfn s0_01_the_card_is_public() {}\n\nfn helper() {}\n";
        let what = "A card is public".to_owned();
        let test = "s0_01_the_card_is_public".to_owned();
        assert_eq!(tested(source), [((0, 1), PromiseState::Tested { what, test })]);
        let list = "# comment\nS4-18 | a token goes out | webhooks\n";
        let (what, feature) = ("a token goes out".to_owned(), "webhooks".to_owned());
        assert_eq!(waiting(list), [((4, 18), PromiseState::Waiting { what, feature })]);
    }
}
