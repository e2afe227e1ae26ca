//! The Debian package, put together with `dpkg-deb` alone: cargo-deb would have to be installed first, and does no more.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Release;
use super::contents::{Contents, copy, copy_program, copy_with_mode, make_folder};
use crate::command;

const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
const CONFIGURATION: &str = "etc/sabir/sabir.toml";

pub fn make(release: &Release, contents: &Contents) -> Result<()> {
    let tree = contents.folder.join("deb");
    lay_out(release, contents, &tree)?;
    describe(release, &tree)?;
    let name = format!("sabir_{}_{}.deb", release.version, release.architecture.debian);
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&tree).arg(release.out.join(name));
    build.env("SOURCE_DATE_EPOCH", release.time.to_string());
    command::output(&mut build).map(|_| ())
}

fn lay_out(release: &Release, contents: &Contents, tree: &Path) -> Result<()> {
    let source = release.root.join("packaging/debian");
    let documents = tree.join("usr/share/doc/sabir");
    copy_program(&release.binary, &tree.join("usr/bin/sabir"))?;
    copy(&source.join("sabir.service"), &tree.join("lib/systemd/system/sabir.service"))?;
    // It may get secrets, so others do not read it.
    copy_with_mode(&source.join("sabir.toml"), &tree.join(CONFIGURATION), 0o640)?;
    copy(&contents.bash, &tree.join("usr/share/bash-completion/completions/sabir"))?;
    copy(&contents.zsh, &tree.join("usr/share/zsh/vendor-completions/_sabir"))?;
    copy(&contents.fish, &tree.join("usr/share/fish/vendor_completions.d/sabir.fish"))?;
    for page in contents.manual_pages()? {
        let name = page.file_name().context("a page has a name")?.to_string_lossy().into_owned();
        let copied = tree.join("usr/share/man/man1").join(name);
        copy(&page, &copied)?;
        compress(&copied)?;
    }
    copy(&source.join("copyright"), &documents.join("copyright"))?;
    copy(&release.root.join("README.md"), &documents.join("README.md"))?;
    copy(&release.root.join("sabir.example.toml"), &documents.join("examples/sabir.example.toml"))?;
    copy(&contents.sbom, &documents.join("sabir.cdx.json"))?;
    for (from, name) in
        [(&release.root.join("CHANGELOG.md"), "changelog"), (&contents.licences, "THIRD-PARTY-LICENSES")]
    {
        copy(from, &documents.join(name))?;
        compress(&documents.join(name))?;
    }
    copy(&source.join("lintian-overrides"), &tree.join("usr/share/lintian/overrides/sabir"))
}

/// What dpkg reads: `control`, scripts, the files that are the administrator's, and checksums.
fn describe(release: &Release, tree: &Path) -> Result<()> {
    let source = release.root.join("packaging/debian");
    let kilobytes = command::output(Command::new("du").args(["--summarize", "--apparent-size", "-k"]).arg(tree))?;
    let kilobytes = kilobytes.split_whitespace().next().context("`du` printed nothing")?.to_owned();
    let sums = "find . -type f ! -path './etc/*' -printf '%P\\0' | LC_ALL=C sort --zero-terminated | xargs -0 md5sum";
    let sums = command::output(Command::new("sh").args(["-c", sums]).current_dir(tree))?;
    let folder = tree.join("DEBIAN");
    make_folder(&folder)?;
    let control = fs::read_to_string(source.join("control"))?;
    let control = control
        .replace("{version}", &release.version)
        .replace("{architecture}", release.architecture.debian)
        .replace("{kilobytes}", &kilobytes);
    write(&folder.join("control"), &control)?;
    write(&folder.join("conffiles"), &format!("/{CONFIGURATION}\n"))?;
    write(&folder.join("md5sums"), &format!("{sums}\n"))?;
    for script in SCRIPTS {
        copy_program(&source.join(script), &folder.join(script))?;
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text)?;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o644))?)
}

fn compress(file: &Path) -> Result<()> {
    command::output(Command::new("gzip").args(["--best", "--no-name"]).arg(file)).map(|_| ())
}
