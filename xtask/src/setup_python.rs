//! A virtual environment per SDK version, from the Python of the machine or of Debian.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::{apt, command, setup};

/// The SDKs need 3.10; without `ensurepip`, which Debian packs apart, an environment has no pip.
const IS_FIT: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// `requirements` has every package with its hashes.
pub fn ready(folder: &Path, requirements: &Path) -> Result<()> {
    // A Python that was upgraded or removed takes its environments with it.
    let works = || command::works(Command::new(program(folder)).args(["-m", "pip", "--version"]));
    setup::once(folder, &setup::read(requirements)?, works, || {
        let mut make = Command::new(machine_python()?);
        make.args(["-m", "venv", "--clear"]).arg(folder);
        command::step(&mut make, setup::LIMIT, setup::REMEDY)?;
        let mut install = Command::new(program(folder));
        install.args(["-m", "pip", "install", "--disable-pip-version-check", "--require-hashes", "--requirement"]);
        install.arg(requirements);
        command::step(&mut install, setup::LIMIT, setup::REMEDY)
    })
}

pub fn program(folder: &Path) -> PathBuf {
    folder.join("bin").join("python")
}

pub fn machine_python() -> Result<&'static str> {
    if let Some(python) = fit_python() {
        return Ok(python);
    }
    apt::install(PACKAGES)?;
    match fit_python() {
        Some(python) => Ok(python),
        None => bail!(
            "there is no Python 3.10 or newer with the modules venv and ensurepip\n\
             What to do: install one as `python3`, then run again"
        ),
    }
}

/// Debian packages that a Python of this machine needs.
pub fn missing_packages() -> &'static [&'static str] {
    if fit_python().is_some() { &[] } else { PACKAGES }
}

const PACKAGES: &[&str] = &["python3", "python3-venv"];

/// The one of the user, or Debian's if that lacks something.
fn fit_python() -> Option<&'static str> {
    ["python3", "/usr/bin/python3"].into_iter().find(|python| command::works(Command::new(python).args(["-c", IS_FIT])))
}
