//! `cargo xtask dist`: the files of a release for this machine's architecture, in `target/dist`.
//!
//! One static binary is built, and everything else is put together around it with the tools that a Debian has: an archive, a
//! Debian package, the files of the container image, a list of the parts (SBOM) and checksums. Nothing is downloaded but the
//! Rust target, once. Equal sources give equal files: times come from `SOURCE_DATE_EPOCH` or the last commit, owners and orders
//! are fixed, and no path of the machine is in the binary.

mod archive;
mod binary;
mod checksums;
mod contents;
mod debian;
mod image;
mod licences;
mod out_folder;
mod sbom;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::workspace::Workspace;

pub use binary::missing_packages;

pub const HELP: &str = "\
  cargo xtask dist            the files of a release in target/dist: archive, Debian package, files of the image, SBOM, checksums;
                              --profile NAME instead of `release`, --out DIR (new, empty or of an
                              earlier run), --only archive, deb or image (may be repeated)
";

/// What is made, and how.
pub struct DistOptions {
    /// Of cargo.
    pub profile: String,
    pub out: PathBuf,
    pub only: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Archive,
    Deb,
    Image,
}

impl DistOptions {
    pub fn parse(workspace: &Workspace, words: &[&str]) -> Result<Self> {
        let mut options = Self { profile: "release".to_owned(), out: workspace.target.join("dist"), only: Vec::new() };
        let mut words = words.iter();
        while let Some(flag) = words.next() {
            let mut value = || words.next().copied().with_context(|| format!("{flag} needs a value"));
            match *flag {
                "--profile" => options.profile = value()?.to_owned(),
                "--out" => options.out = std::path::absolute(value()?)?,
                "--only" => options.only.push(match value()? {
                    "archive" => Part::Archive,
                    "deb" => Part::Deb,
                    "image" => Part::Image,
                    other => bail!("--only {other}: expected archive, deb or image"),
                }),
                other => bail!("{other} is no flag of `cargo xtask dist`\n\n{HELP}"),
            }
        }
        Ok(options)
    }

    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// A release in the making.
struct Release {
    version: String,
    /// The name of the platform, as Rust spells it.
    target: String,
    architecture: Architecture,
    /// Seconds since 1970, for all files.
    time: u64,
    binary: PathBuf,
    root: PathBuf,
    out: PathBuf,
}

struct Architecture {
    rust: &'static str,
    /// As Debian and container images spell it.
    debian: &'static str,
}

const ARCHITECTURES: [Architecture; 2] =
    [Architecture { rust: "x86_64", debian: "amd64" }, Architecture { rust: "aarch64", debian: "arm64" }];

/// Makes the files, and says where they are.
pub fn run(workspace: &Workspace, options: &DistOptions) -> Result<()> {
    // Before the build, which takes minutes.
    out_folder::check(&options.out)?;
    let architecture = this_architecture()?;
    let target = target();
    let version = version(workspace)?;
    let binary = binary::build(workspace, &target, &options.profile)?;
    out_folder::replace(&options.out)?;
    let time = time(workspace)?;
    let root = workspace.root.clone();
    let release = Release { version, target, architecture, time, binary, root, out: options.out.clone() };
    let parts = sbom::Parts::of(workspace, &release.target)?;
    let contents = contents::Contents::make(&release, &parts)?;
    if options.wants(Part::Archive) {
        archive::make(&release, &contents)?;
    }
    if options.wants(Part::Deb) {
        debian::make(&release, &contents)?;
    }
    if options.wants(Part::Image) {
        image::make(&release)?;
    }
    fs::remove_dir_all(&contents.folder)?;
    checksums::write(&release.out)?;
    println!("{}", command::output(Command::new("ls").args(["-l", "--human-readable"]).arg(&release.out))?);
    println!("made {}", release.out.display());
    Ok(())
}

/// The build of the static binary, which takes most of the time.
pub fn build(workspace: &Workspace, profile: &str) -> Result<Command> {
    this_architecture()?;
    binary::command(workspace, &target(), profile)
}

fn this_architecture() -> Result<Architecture> {
    let here = std::env::consts::ARCH;
    let known = ARCHITECTURES.into_iter().find(|known| known.rust == here);
    known.with_context(|| format!("releases are made on x86_64 and aarch64, and this machine is {here}"))
}

fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

fn version(workspace: &Workspace) -> Result<String> {
    let packages = workspace.metadata["packages"].as_array().into_iter().flatten();
    let sabir = packages.into_iter().find(|package| package["name"] == "sabir");
    let version = sabir.and_then(|package| package["version"].as_str());
    version.map(str::to_owned).context("the workspace has no crate sabir")
}

/// The time of all files: as the environment says, or that of the last commit.
fn time(workspace: &Workspace) -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.parse().with_context(|| format!("SOURCE_DATE_EPOCH is {text:?}; expected seconds since 1970"));
    }
    let mut log = Command::new("git");
    log.arg("-C").arg(&workspace.root).args(["log", "-1", "--format=%ct"]);
    // Sources without a repository have no commit.
    Ok(command::output(&mut log).ok().and_then(|text| text.parse().ok()).unwrap_or_default())
}
