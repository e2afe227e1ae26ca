//! A folder of modules per SDK version, with the suite's files beside them: Node looks for modules from where a
//! file lies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{apt, command, setup};

const OLDEST_NODE: u32 = 18;

pub fn ready(folder: &Path, source: &Path, modules: &LockedModules) -> Result<()> {
    machine_node()?;
    let works = || folder.join("node_modules").is_dir();
    setup::once(folder, &modules.text(), works, || {
        modules.write(folder)?;
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(folder);
        command::step(&mut npm, setup::LIMIT, setup::REMEDY)
    })?;
    copy_modules(source, folder)
}

/// What a folder of modules is made from: what is wanted, and which files exactly that is, with their hashes.
pub struct LockedModules {
    package: String,
    lock: String,
}

impl LockedModules {
    /// Reads `package-NAME.json` and `package-NAME.lock.json`.
    pub fn read(source: &Path, name: &str) -> Result<Self> {
        Ok(Self {
            package: setup::read(&source.join(format!("package-{name}.json")))?,
            lock: setup::read(&source.join(format!("package-{name}.lock.json")))?,
        })
    }

    /// Both, for the stamp.
    pub fn text(&self) -> String {
        format!("{}{}", self.package, self.lock)
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        for (name, text) in [("package.json", &self.package), ("package-lock.json", &self.lock)] {
            let file = folder.join(name);
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(())
    }
}

/// Copies the suite's files; those that it no longer has go away, or an import of one would still work here.
pub fn copy_modules(source: &Path, folder: &Path) -> Result<()> {
    for old in modules(folder)? {
        fs::remove_file(&old).with_context(|| format!("cannot remove {}", old.display()))?;
    }
    for module in modules(source)? {
        let copy = folder.join(module.file_name().expect("a listed file has a name"));
        fs::copy(&module, &copy).with_context(|| format!("cannot write {}", copy.display()))?;
    }
    Ok(())
}

fn modules(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut modules = vec![];
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "mjs") {
            modules.push(path);
        }
    }
    Ok(modules)
}

pub fn machine_node() -> Result<()> {
    let missing = missing_packages();
    if !missing.is_empty() {
        apt::install(&missing)?;
    }
    let version = command::output(Command::new("node").arg("--version"))?;
    match major(&version) {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => bail!(
            "`node --version` says {version}, and the suites need {OLDEST_NODE} or newer\n\
             What to do: install a newer Node as `node`, then run again"
        ),
    }
}

/// Debian packages that Node needs on this machine.
pub fn missing_packages() -> Vec<&'static str> {
    let mut missing = vec![];
    for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
        if !command::works(Command::new(program).arg("--version")) {
            missing.push(package);
        }
    }
    if !missing.is_empty() {
        // Debian's Node trusts the certificates of the system.
        missing.push("ca-certificates");
    }
    missing
}

/// The first number of a version such as `v18.20.4`.
fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read() {
        for (version, expected) in [("v18.20.4", Some(18)), ("v9.0.0-pre", Some(9)), ("18.1.0", None), ("", None)] {
            assert_eq!(major(version), expected, "{version}");
        }
    }
}
