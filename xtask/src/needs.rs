//! What the suites need and this machine does not have yet: said before anything is installed.
//!
//! Debian packages need root. Root and CI go ahead; a person on a terminal is asked first.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::process::Command;

use anyhow::{Result, bail};

use crate::clients::{Client, Kit};
use crate::jobs::TestJob;
use crate::workspace::Workspace;
use crate::{apt, command, console, documents, packages, postgres, setup, setup_node, setup_program, setup_python};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// What goes into `target/`, with its megabytes.
    folders: Vec<(String, u32)>,
    packages: BTreeSet<&'static str>,
}

impl Needs {
    pub fn of(workspace: &Workspace, jobs: &[TestJob]) -> Self {
        let mut needs = Self::default();
        for job in jobs {
            match job {
                TestJob::Client(client, _) => needs.sdk(workspace, client),
                TestJob::NodesTests => needs.packages.extend(postgres::missing_server()),
                TestJob::NodesClient(client, _) => {
                    needs.packages.extend(postgres::missing_server());
                    needs.sdk(workspace, client);
                }
                TestJob::SdkServer(server, _) => {
                    needs.packages.extend(setup_python::missing_packages());
                    needs.sdk(workspace, server.client());
                }
                TestJob::Agent(program) => {
                    needs.packages.extend(setup_python::missing_packages());
                    needs.packages.extend(setup_node::missing_packages());
                    needs.packages.extend(setup_program::missing_packages());
                    if !setup_program::is_ready(workspace, program) {
                        needs.folder(format!("{} {}", program.name, program.version), program.megabytes);
                    }
                }
                TestJob::Mcp(Kit::Python) | TestJob::OpenAi => needs.packages.extend(setup_python::missing_packages()),
                TestJob::Mcp(Kit::Node) => {
                    needs.packages.extend(setup_python::missing_packages());
                    needs.packages.extend(setup_node::missing_packages());
                }
                TestJob::Observability => needs.packages.extend(setup_python::missing_packages()),
                TestJob::Documents => needs.packages.extend(documents::missing_packages()),
                TestJob::Console => {
                    needs.packages.extend(console::missing_packages());
                    if !console::is_ready(workspace) {
                        needs.folder("what drives the browser".to_owned(), console::MEGABYTES);
                    }
                }
                TestJob::Packages => {
                    needs.packages.extend(packages::missing_packages());
                    if !packages::has_debian(workspace) {
                        needs.folder("the files of a small Debian".to_owned(), packages::DEBIAN_MEGABYTES);
                    }
                }
                TestJob::Workspace => needs.packages.extend(postgres::missing_packages()),
                _ => {}
            }
        }
        needs
    }

    fn sdk(&mut self, workspace: &Workspace, client: &Client) {
        match client.kit {
            Kit::Python => self.packages.extend(setup_python::missing_packages()),
            Kit::Node => self.packages.extend(setup_node::missing_packages()),
        }
        if !setup::is_ready(workspace, client) {
            self.folder(format!("the packages of {}", client.name), client.megabytes);
        }
    }

    /// Two bindings of one client share a folder, and so do a client and a server of one SDK.
    fn folder(&mut self, name: String, megabytes: u32) {
        if self.folders.iter().all(|(other, _)| *other != name) {
            self.folders.push((name, megabytes));
        }
    }

    /// Says what will be installed; an error if the person who is asked says no.
    pub fn announce(&self) -> Result<()> {
        print!("{}", self.report_faults());
        if self.packages.is_empty() || is_root() || std::env::var_os("CI").is_some() || !io::stdin().is_terminal() {
            return Ok(());
        }
        print!("Install the Debian packages with sudo? [y/N] ");
        io::stdout().flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => bail!("nothing was installed\nWhat to do: {}", apt::by_hand(&self.packages())),
        }
    }

    fn report_faults(&self) -> String {
        let mut report_faults = String::new();
        if !self.folders.is_empty() {
            let total: u32 = self.folders.iter().map(|(_, megabytes)| megabytes).sum();
            report_faults += &format!("To be installed below target/, about {total} MB:\n");
            for (name, megabytes) in &self.folders {
                report_faults += &format!("  {name} ({megabytes} MB)\n");
            }
        }
        if !self.packages.is_empty() {
            report_faults += &format!("To be installed as root by apt-get: {}\n", self.packages().join(", "));
        }
        report_faults
    }

    fn packages(&self) -> Vec<&'static str> {
        self.packages.iter().copied().collect()
    }
}

pub fn is_root() -> bool {
    command::output(Command::new("id").arg("-u")).is_ok_and(|id| id == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_be_installed_is_said_with_its_size() {
        let mut needs = Needs::default();
        assert_eq!(needs.report_faults(), "");
        needs.folder("the packages of js-1.3.0".into(), 6);
        needs.folder("the packages of js-1.3.0".into(), 6);
        needs.folder("goose 1.34.0".into(), 550);
        needs.packages.extend(["npm", "git", "npm"]);
        assert_eq!(
            needs.report_faults(),
            "To be installed below target/, about 556 MB:\n  the packages of js-1.3.0 (6 MB)\n  goose 1.34.0 (550 MB)\n\
             To be installed as root by apt-get: git, npm\n"
        );
    }
}
