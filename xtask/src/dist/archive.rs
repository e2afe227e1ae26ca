//! The archive: one folder with the binary and what belongs to it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Release;
use super::contents::{Contents, copy, copy_program};
use crate::command;

pub fn make(release: &Release, contents: &Contents) -> Result<()> {
    let name = format!("sabir-{}-{}", release.version, release.target);
    let folder = contents.folder.join(&name);
    copy_program(&release.binary, &folder.join("sabir"))?;
    for file in ["README.md", "LICENSE", "CHANGELOG.md", "sabir.example.toml", "sabir.schema.json"] {
        copy(&release.root.join(file), &folder.join(file))?;
    }
    copy(&release.root.join("packaging/debian/sabir.service"), &folder.join("systemd/sabir.service"))?;
    copy(&contents.bash, &folder.join("completions/sabir.bash"))?;
    copy(&contents.zsh, &folder.join("completions/_sabir"))?;
    copy(&contents.fish, &folder.join("completions/sabir.fish"))?;
    for page in contents.manual_pages()? {
        let page_name = page.file_name().context("a page has a name")?;
        copy(&page, &folder.join("man").join(page_name))?;
    }
    copy(&contents.sbom, &folder.join("sabir.cdx.json"))?;
    copy(&contents.sbom, &release.out.join(format!("{name}.cdx.json")))?;
    copy(&contents.licences, &folder.join("THIRD-PARTY-LICENSES"))?;
    pack(&contents.folder, &name, release)
}

/// The same bytes from the same files: sorted, nobody's, all of one time.
fn pack(parent: &Path, name: &str, release: &Release) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{}", release.time)).arg("--use-compress-program=gzip --no-name --best");
    tar.arg("--file").arg(release.out.join(format!("{name}.tar.gz"))).arg("--directory").arg(parent).arg(name);
    command::output(&mut tar).map(|_| ())
}
