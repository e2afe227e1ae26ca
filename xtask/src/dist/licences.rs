//! The texts of the licences of all crates that are in the binary, which those licences ask for.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::sbom::Parts;

const NAMES: [&str; 4] = ["license", "licence", "copying", "notice"];

/// Each text once, under the crates that have it.
pub fn texts(parts: &Parts) -> Result<String> {
    let mut crates_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in parts.foreign() {
        for text in texts_in(&part.folder)? {
            crates_of.entry(text).or_default().push(format!("{} {} ({})", part.name, part.version, part.licence));
        }
    }
    let mut sections: Vec<String> =
        crates_of.into_iter().map(|(text, crates)| format!("{}\n\n{text}\n", crates.join("\n"))).collect();
    sections.sort();
    Ok(sections.join(&format!("\n{}\n\n", "-".repeat(80))))
}

fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if NAMES.iter().any(|start| name.starts_with(start)) && entry.path().is_file() {
            let text = fs::read(entry.path())?;
            found.push(String::from_utf8_lossy(&text).trim().replace('\r', ""));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}
