//! What the client suites run with, below `target/clients`: made once, kept until what it is made from changes.
//!
//! A stamp beside it holds the text it was made from. It goes first and comes back last, so a set-up that was
//! interrupted is done again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clients::{Client, Kit};
use crate::workspace::Workspace;
use crate::{setup_node, setup_python};

/// For one download of packages; a slow line may need minutes.
pub const LIMIT: Duration = Duration::from_secs(900);
pub const REMEDY: &str = "check the network connection and the free disk space, then run again";

/// Makes what the suite needs, if it is not there.
pub fn ready(workspace: &Workspace, client: &Client) -> Result<()> {
    let folder = folder(workspace, client);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let source = source(workspace, client.kit);
    match client.kit {
        Kit::Python { requirements } => setup_python::ready(&folder, &source.join(requirements)),
        Kit::Node { package } => setup_node::ready(&folder, &source, package),
    }
}

/// The program of the suite, without its arguments.
pub fn command(workspace: &Workspace, client: &Client) -> Command {
    let folder = folder(workspace, client);
    match client.kit {
        Kit::Python { .. } => {
            let mut python = Command::new(setup_python::program(&folder));
            python.arg(source(workspace, client.kit).join(client.script));
            python
        }
        Kit::Node { .. } => {
            let mut node = Command::new("node");
            node.arg(client.script).current_dir(folder);
            node
        }
    }
}

/// Makes the folder from the text, unless that was done to its end and `works` still.
pub fn once(folder: &Path, text: &str, works: impl Fn() -> bool, make: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = folder.join("made-from.txt");
    if fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == text) && works() {
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

fn folder(workspace: &Workspace, client: &Client) -> PathBuf {
    workspace.clients().join(client.name)
}

fn source(workspace: &Workspace, kit: Kit) -> PathBuf {
    let language = match kit {
        Kit::Python { .. } => "python",
        Kit::Node { .. } => "js",
    };
    workspace.root.join("tests").join("clients").join(language)
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
            let said = match (tried.get(), made) {
                (true, Ok(())) => "made",
                (true, Err(_)) => "tried",
                (false, _) => "was there",
            };
            assert_eq!(said, expected, "from {text}, works: {works}, {outcome}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
