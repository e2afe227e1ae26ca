//! Debian packages, for what a machine lacks.

use std::io::{self, IsTerminal};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{command, needs, setup};

pub fn install(packages: &[&str]) -> Result<()> {
    let by_hand = by_hand(packages);
    if !command::works(Command::new("apt-get").arg("--version")) {
        bail!("{} are needed and there is no apt-get\nWhat to do: {by_hand}", packages.join(", "));
    }
    let become_root: &[&str] = match needs::is_root() {
        true => &[],
        // On a terminal it may ask for the password; elsewhere nobody could answer.
        false if io::stdin().is_terminal() => &["sudo"],
        false => &["sudo", "--non-interactive"],
    };
    let apt_get = || {
        let mut words = become_root.iter().chain(&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        let mut command = Command::new(words.next().expect("there are three at least"));
        command.args(words);
        command
    };
    // Lists that cannot be had in full may be good enough; if not, the installation says so.
    if let Err(error) = command::step(apt_get().arg("update"), setup::LIMIT, &by_hand) {
        println!("    going on with old package lists: {error:#}");
    }
    let mut install = apt_get();
    install.args(["install", "--yes", "--no-install-recommends"]).args(packages);
    command::step(&mut install, setup::LIMIT, &by_hand)
}

pub fn by_hand(packages: &[&str]) -> String {
    format!("run `apt-get install {}` as root, or install the same in your way", packages.join(" "))
}
