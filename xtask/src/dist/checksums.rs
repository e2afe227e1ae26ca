//! `SHA256SUMS`, for `sha256sum --check`. Its folder is known by it as one that `cargo xtask dist` has made.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::command;

pub const FILE: &str = "SHA256SUMS";

pub fn write(folder: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != FILE {
            names.push(entry.file_name());
        }
    }
    names.sort();
    if names.is_empty() {
        return Ok(());
    }
    let sums = command::output(Command::new("sha256sum").args(&names).current_dir(folder))?;
    Ok(fs::write(folder.join(FILE), format!("{sums}\n"))?)
}
