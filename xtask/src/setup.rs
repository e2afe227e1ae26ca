//! What the client suites and the servers of SDKs run with, below `target/clients`: made once, kept until what it is made from changes.
//!
//! A stamp beside it holds the text it was made from. It goes first and comes back last, so a set-up that was
//! interrupted is done again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clients::{Client, Kit};
use crate::setup_node::LockedModules;
use crate::workspace::Workspace;
use crate::{setup_node, setup_python};

/// For one download of packages; a slow line may need minutes.
pub const LIMIT: Duration = Duration::from_secs(900);
pub const REMEDY: &str = "check the network connection and the free disk space, then run again";

/// Makes what the suite needs, if it is not there.
pub fn ready(workspace: &Workspace, client: &Client) -> Result<()> {
    let folder = folder(workspace, client);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    match client.kit {
        Kit::Python => setup_python::ready(&folder, &requirements(workspace, client)),
        Kit::Node => setup_node::ready(&folder, &source(workspace, client.kit), &modules(workspace, client)?),
    }
}

/// Whether that was done before, as far as its stamp says.
pub fn is_ready(workspace: &Workspace, client: &Client) -> bool {
    let text = match client.kit {
        Kit::Python => read(&requirements(workspace, client)),
        Kit::Node => modules(workspace, client).map(|modules| modules.text()),
    };
    text.is_ok_and(|text| is_made(&folder(workspace, client), &text))
}

fn requirements(workspace: &Workspace, client: &Client) -> PathBuf {
    source(workspace, client.kit).join(format!("requirements-{}.lock.txt", client.version))
}

fn modules(workspace: &Workspace, client: &Client) -> Result<LockedModules> {
    LockedModules::read(&source(workspace, client.kit), client.version)
}

/// The program of the suite, without its arguments.
pub fn command(workspace: &Workspace, client: &Client) -> Command {
    let folder = folder(workspace, client);
    match client.kit {
        Kit::Python => {
            let mut python = Command::new(setup_python::program(&folder));
            python.arg(source(workspace, client.kit).join(client.script));
            python
        }
        Kit::Node => {
            let mut node = Command::new("node");
            node.arg(client.script).current_dir(folder);
            node
        }
    }
}

/// Whether the folder was made from the text, to the end.
pub fn is_made(folder: &Path, text: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|made_from| made_from == text)
}

const STAMP: &str = "made-from.txt";

/// Makes the folder from the text, unless that was done to its end and `works` still.
pub fn once(folder: &Path, text: &str, works: impl Fn() -> bool, make: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = folder.join(STAMP);
    if is_made(folder, text) && works() {
        return Ok(());
    }
    if stamp.exists() {
        fs::remove_file(&stamp).with_context(|| format!("cannot remove {}", stamp.display()))?;
    }
    make()?;
    fs::write(&stamp, text).with_context(|| format!("cannot write {}", stamp.display()))
}

pub fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Where the packages of the client's SDK are.
pub fn folder(workspace: &Workspace, client: &Client) -> PathBuf {
    workspace.clients().join(client.name)
}

fn source(workspace: &Workspace, kit: Kit) -> PathBuf {
    workspace.root.join("tests").join("clients").join(kit.language())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::bail;

    use super::*;

    #[test]
    fn a_folder_is_made_when_it_must_be() {
        let folder = std::env::temp_dir().join(format!("sabir-xtask-setup-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (text, works, outcome, expected) in [
            ("a", true, "made", "made"),
            ("a", true, "made", "was there"),
            ("b", true, "made", "made"),
            ("b", false, "made", "made"),
            ("b", true, "made", "was there"),
            ("a", true, "broken", "tried"),
            // What a broken attempt left is nobody's.
            ("b", true, "made", "made"),
        ] {
            let tried = Cell::new(false);
            let made = once(
                &folder,
                text,
                || works,
                || {
                    tried.set(true);
                    if outcome == "broken" { bail!("no network") } else { Ok(()) }
                },
            );
            let printed = match (tried.get(), made) {
                (true, Ok(())) => "made",
                (true, Err(_)) => "tried",
                (false, _) => "was there",
            };
            assert_eq!(printed, expected, "from {text}, works: {works}, {outcome}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
