//! The Rust code of the `.proto` files: made by `sabir-proto-generator`, committed, and compared here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

fn committed(workspace: &Workspace) -> PathBuf {
    workspace.root.join("crates").join("proto").join("src").join("generated")
}

/// Writes the code again.
pub fn write(workspace: &Workspace) -> Result<()> {
    let made = made(workspace)?;
    let folder = committed(workspace);
    for name in read(&folder)?.into_keys() {
        fs::remove_file(folder.join(name))?;
    }
    for (name, content) in made {
        fs::write(folder.join(name), content)?;
    }
    Ok(())
}

/// What is committed and is not what the generator gives.
pub fn faults(workspace: &Workspace) -> Result<Vec<String>> {
    let (made, committed) = (made(workspace)?, read(&committed(workspace))?);
    let names = made.keys().chain(committed.keys().filter(|name| !made.contains_key(*name)));
    let differs = names.filter(|name| made.get(*name) != committed.get(*name));
    let sentence = |name: &String| {
        format!("crates/proto/src/generated/{name} is not what the .proto files give; run `cargo xtask generate`")
    };
    Ok(differs.map(sentence).collect())
}

/// The files that the generator gives.
fn made(workspace: &Workspace) -> Result<BTreeMap<String, Vec<u8>>> {
    let folder = workspace.root.join("target").join("generated");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let mut generator = workspace.cargo();
    generator.args(["run", "--quiet", "--package", "sabir-proto-generator", "--"]).arg(&folder);
    command::shown(&mut generator)?;
    read(&folder)
}

fn read(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        Ok((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?))
    };
    entries.map(file).collect()
}
