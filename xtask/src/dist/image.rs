//! The files of the container image, which `packaging/container/Dockerfile` copies as they are.

use std::path::Path;

use anyhow::Result;

use super::Release;
use super::contents::{copy, copy_program, make_folder};

/// Where Debian and most others keep all root certificates in one file.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

pub fn make(release: &Release) -> Result<()> {
    let image = release.out.join("image").join(release.architecture.debian);
    let root = image.join("root");
    let source = release.root.join("packaging/container");
    copy_program(&release.binary, &root.join("usr/bin/sabir"))?;
    for name in ["passwd", "group"] {
        copy(&source.join(name), &root.join("etc").join(name))?;
    }
    copy(&source.join("sabir.toml"), &root.join("etc/sabir/sabir.toml"))?;
    copy(Path::new(CERTIFICATES), &root.join(&CERTIFICATES[1..]))?;
    copy(&release.root.join("LICENSE"), &root.join("usr/share/doc/sabir/LICENSE"))?;
    make_folder(&root.join("var/lib"))?;
    // Apart, since its owner is another one.
    make_folder(&image.join("data/sabir"))
}
