//! A coding program in a folder of its own below `target/agents`, of exactly the version that the suite was written for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::programs::{Finish, Lock, Program};
use crate::setup_node::LockedModules;
use crate::workspace::Workspace;
use crate::{apt, command, setup, setup_node};

/// An exact version is installed whatever Node it asks for: a native program needs none, and whether another runs is
/// seen at once.
const INSTALL: [&str; 4] = ["--no-audit", "--no-fund", "--engine-strict=false", "--ignore-scripts"];

pub fn ready(workspace: &Workspace, program: &Program) -> Result<()> {
    setup_node::machine_node()?;
    if !missing_packages().is_empty() {
        apt::install(missing_packages())?;
    }
    let folder = folder(workspace, program);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let modules = modules(workspace, program)?;
    setup::once(
        &folder,
        &modules.text(),
        || version(&folder, program).is_ok(),
        || {
            // These are large downloads, and one that breaks off is no news.
            if let Err(error) = install(&folder, program, &modules) {
                println!("    once more, since {error:#}");
                install(&folder, program, &modules)?;
            }
            Ok(())
        },
    )
}

/// Whether that was done before, as far as its stamp says.
pub fn is_ready(workspace: &Workspace, program: &Program) -> bool {
    modules(workspace, program).is_ok_and(|modules| setup::is_made(&folder(workspace, program), &modules.text()))
}

/// Debian packages that the suites of programs need: the workspaces of coding programs are repositories.
pub fn missing_packages() -> &'static [&'static str] {
    if command::works(Command::new("git").arg("--version")) { &[] } else { &["git"] }
}

fn folder(workspace: &Workspace, program: &Program) -> PathBuf {
    workspace.agents().join(program.name)
}

fn modules(workspace: &Workspace, program: &Program) -> Result<LockedModules> {
    LockedModules::read(&workspace.root.join("tests").join("agents"), program.name)
}

fn install(folder: &Path, program: &Program, locked: &LockedModules) -> Result<()> {
    let modules = folder.join("node_modules");
    if modules.exists() {
        fs::remove_dir_all(&modules).with_context(|| format!("cannot remove {}", modules.display()))?;
    }
    locked.write(folder)?;
    // Both take versions and hashes from the lock file; `ci` also insists that it is complete.
    let verb = match program.lock {
        Lock::Whole => "ci",
        Lock::ThisPlatform => "install",
    };
    command::step(Command::new("npm").arg(verb).args(INSTALL).current_dir(folder), setup::LIMIT, setup::REMEDY)?;
    if let Finish::Script(script) = program.finish {
        let mut node = Command::new("node");
        node.arg(modules.join(script)).current_dir(folder);
        command::step(&mut node, setup::LIMIT, setup::REMEDY)?;
    }
    version(folder, program)
}

/// Runs the program, and is content if it is the one that was asked for.
fn version(folder: &Path, program: &Program) -> Result<()> {
    let mut ask = Command::new(folder.join("node_modules").join(".bin").join(program.binary));
    // Its home is not that of the person who runs the suites.
    let printed = command::output(ask.arg("--version").env("HOME", folder))?;
    if !is_printed(program.version, &printed) {
        bail!("`{} --version` says {printed}, not {}\nWhat to do: {}", program.binary, program.version, setup::REMEDY);
    }
    Ok(())
}

/// Whether the version is a word of what was said; 0.61.0 is not 0.61.01.
fn is_printed(version: &str, printed: &str) -> bool {
    printed.split_whitespace().any(|word| word == version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_among_words() {
        for (printed, expected) in [
            ("0.61.0", true),
            ("codex-cli 0.61.0", true),
            ("0.61.0 (Some Program)", true),
            ("10.61.0", false),
            ("0.61.01", false),
            ("", false),
        ] {
            assert_eq!(is_printed("0.61.0", printed), expected, "{printed:?}");
        }
    }
}
