//! What all packages have beside the binary. The binary itself writes its manual and completions, so they fit it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::sbom::Parts;
use super::{Release, licences};
use crate::command;

pub struct Contents {
    /// Gone when the packages are made.
    pub folder: PathBuf,
    pub bash: PathBuf,
    pub zsh: PathBuf,
    pub fish: PathBuf,
    pub sbom: PathBuf,
    pub licences: PathBuf,
    manual: PathBuf,
}

impl Contents {
    pub fn make(release: &Release, parts: &Parts) -> Result<Self> {
        let folder = release.out.join("contents");
        fs::create_dir_all(&folder)?;
        let file = |name: &str| folder.join(name);
        let contents = Self {
            bash: file("sabir.bash"),
            zsh: file("_sabir"),
            fish: file("sabir.fish"),
            sbom: file("sabir.cdx.json"),
            licences: file("THIRD-PARTY-LICENSES"),
            manual: file("man1"),
            folder: folder.clone(),
        };
        for (shell, file) in [("bash", &contents.bash), ("zsh", &contents.zsh), ("fish", &contents.fish)] {
            let script = command::output(Command::new(&release.binary).args(["completions", shell]))?;
            fs::write(file, format!("{script}\n"))?;
        }
        command::output(Command::new(&release.binary).arg("man").arg(&contents.manual))?;
        fs::write(&contents.sbom, parts.cyclone_dx(&release.version, release.time)?)?;
        fs::write(&contents.licences, licences::texts(parts)?)?;
        Ok(contents)
    }

    pub fn manual_pages(&self) -> Result<Vec<PathBuf>> {
        let mut pages = Vec::new();
        for entry in fs::read_dir(&self.manual)? {
            pages.push(entry?.path());
        }
        pages.sort();
        Ok(pages)
    }
}

/// A file that everybody may read; its folder is made.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    copy_with_mode(from, to, 0o644)
}

pub fn copy_program(from: &Path, to: &Path) -> Result<()> {
    copy_with_mode(from, to, 0o755)
}

pub fn copy_with_mode(from: &Path, to: &Path, mode: u32) -> Result<()> {
    make_folder(to.parent().context("a file lies in a folder")?)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(fs::set_permissions(to, Permissions::from_mode(mode))?)
}

/// A folder that everybody may enter, whatever the umask is.
pub fn make_folder(folder: &Path) -> Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    for folder in missing.into_iter().rev() {
        fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    }
    Ok(())
}
