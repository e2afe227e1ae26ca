//! Debian packages, for what a machine lacks.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, needs, setup};

pub fn install(packages: &[&str]) -> Result<()> {
    let by_hand = by_hand(packages);
    if !command::works(Command::new("apt-get").arg("--version")) {
        bail!("{} are needed and there is no apt-get\nWhat to do: {by_hand}", packages.join(", "));
    }
    update(&by_hand)?;
    let mut install = as_root();
    install.args(["install", "--yes", "--no-install-recommends"]).args(packages);
    command::step(&mut install, setup::LIMIT, &by_hand)
}

/// Unpacks a package below the folder without installing it: nothing is started, and no root is needed.
pub fn unpack(package: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let by_hand = format!("install {package} in your way, then run again");
    let download = || {
        let mut download = Command::new("apt-get");
        download.args(["download", package]).current_dir(folder);
        command::step(&mut download, setup::LIMIT, &by_hand)
    };
    // The first time fails where no package lists are kept.
    if download().is_err() {
        update(&by_hand)?;
        download()?;
    }
    let mut unpack = Command::new("sh");
    unpack.args(["-c", &format!("dpkg-deb --extract {package}_*.deb .")]).current_dir(folder);
    command::step(&mut unpack, setup::LIMIT, &by_hand)
}

fn update(by_hand: &str) -> Result<()> {
    // Lists that cannot be had in full may be good enough; if not, what needs them says so.
    if let Err(error) = command::step(as_root().arg("update"), setup::LIMIT, by_hand) {
        println!("    going on with old package lists: {error:#}");
    }
    Ok(())
}

fn as_root() -> Command {
    let become_root: &[&str] = match needs::is_root() {
        true => &[],
        // On a terminal it may ask for the password; elsewhere nobody could answer.
        false if io::stdin().is_terminal() => &["sudo"],
        false => &["sudo", "--non-interactive"],
    };
    let mut words = become_root.iter().chain(&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    let mut command = Command::new(words.next().expect("there are three at least"));
    command.args(words);
    command
}

pub fn by_hand(packages: &[&str]) -> String {
    format!("run `apt-get install {}` as root, or install the same in your way", packages.join(" "))
}
