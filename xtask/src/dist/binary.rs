//! The static binary, built for musl. mimalloc is its allocator, so it is not slower for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{apt, command};

/// Programs, and the Debian packages that hold them.
const TOOLS: [(&str, &str); 2] = [("musl-gcc", "musl-tools"), ("dpkg-deb", "dpkg")];

pub fn build(workspace: &Workspace, target: &str, profile: &str) -> Result<PathBuf> {
    let mut build = command(workspace, target, profile)?;
    println!("    building sabir for {target} with the profile {profile}");
    command::shown(&mut build)?;
    let binary = workspace.target.join(target).join(profile).join("sabir");
    check_static(&binary)?;
    Ok(binary)
}

/// The build, with the tools that it needs installed.
pub fn command(workspace: &Workspace, target: &str, profile: &str) -> Result<Command> {
    match missing_packages().as_slice() {
        [] => {}
        missing => apt::install(missing)?,
    }
    add_target(target)?;
    let mut build = workspace.cargo();
    build.args(["build", "--locked", "--package", "sabir", "--bin", "sabir", "--target", target, "--profile", profile]);
    let cargo_home = cargo_home()?;
    // Flags of the environment would take the place of these.
    build.env("RUSTFLAGS", rust_flags(&workspace.root, &cargo_home)?);
    let c_flags = format!("-ffile-prefix-map={}={CARGO_HOME}", cargo_home.display());
    build.env(format!("CFLAGS_{}", target.replace('-', "_")), c_flags);
    Ok(build)
}

/// Debian packages that a build needs on this machine.
pub fn missing_packages() -> Vec<&'static str> {
    let is_there = |program: &str| command::works(Command::new("sh").args(["-c", &format!("command -v {program}")]));
    TOOLS.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect()
}

fn add_target(target: &str) -> Result<()> {
    let sysroot = command::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    if Path::new(&sysroot).join("lib/rustlib").join(target).is_dir() {
        return Ok(());
    }
    let mut add = Command::new("rustup");
    add.args(["target", "add", target]);
    command::step(&mut add, Duration::from_secs(600), &format!("install the Rust standard library for {target}"))
}

/// Where foreign crates are, as the binary spells it.
const CARGO_HOME: &str = "/cargo";

fn cargo_home() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("there is no home directory")
}

/// Paths of this machine are not in the binary.
fn rust_flags(root: &Path, cargo_home: &Path) -> Result<String> {
    let (root, home) = (root.display().to_string(), cargo_home.display().to_string());
    if root.contains(char::is_whitespace) || home.contains(char::is_whitespace) {
        bail!("a path with white space cannot be written as a flag of the compiler: {root} or {home}");
    }
    Ok(format!("--remap-path-prefix={root}=/sabir --remap-path-prefix={home}={CARGO_HOME}"))
}

/// An interpreter in the program headers is what makes a program need a C library of the machine.
fn check_static(binary: &Path) -> Result<()> {
    let content = std::fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
    match has_interpreter(&content) {
        Some(false) => Ok(()),
        Some(true) => bail!("{} is not static: it names an interpreter", binary.display()),
        None => bail!("{} is no 64-bit ELF file", binary.display()),
    }
}

/// None if it is no 64-bit little-endian ELF file.
fn has_interpreter(content: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    if content.get(..6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(content.get(at..at + bytes)?);
        usize::try_from(u64::from_le_bytes(value)).ok()
    };
    let (headers, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let kinds: Option<Vec<usize>> = (0..count).map(|index| number(headers + index * size, 4)).collect();
    Some(kinds?.contains(&(INTERPRETER as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_programs_are_told_from_others() {
        // The test itself is linked with the C library of the machine.
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(has_interpreter(&this), Some(true));
        // An object file has no program headers.
        let mut headless = this.clone();
        headless[56] = 0;
        headless[57] = 0;
        assert_eq!(has_interpreter(&headless), Some(false));
        assert_eq!(has_interpreter(b"#!/bin/sh\n"), None);
        assert_eq!(has_interpreter(&this[..60]), None);
    }
}
