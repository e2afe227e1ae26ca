//! A disk that can be full: a small file system in memory, filled by one large file.
//!
//! Mounting needs rights that few have, so the whole run moves into mount and user namespaces of its own, where
//! everybody has them and where the mount is gone with the last process.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Far more than a phase stores.
const SIZE: &str = "192m";
/// Says that the run is inside already.
const INSIDE: &str = "SOAK_INSIDE";
const BALLAST: &str = "ballast";

pub struct SmallDisk {
    pub folder: PathBuf,
}

/// Runs this program again where it may mount. `None`: it runs there already, or nowhere can that be had, which
/// `SmallDisk::make` then says.
pub fn run_where_one_can_be_made() -> Option<ExitCode> {
    if std::env::var_os(INSIDE).is_some() {
        return None;
    }
    let own = std::env::current_exe().ok()?;
    for ways in [&["--mount"][..], &["--map-root-user", "--mount"]] {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(ways).arg("--");
            command
        };
        let is_possible = unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if is_possible {
            let error = unshare().arg(own).args(std::env::args_os().skip(1)).env(INSIDE, "1").exec();
            eprintln!("cannot run in a namespace: {error}");
            return Some(ExitCode::FAILURE);
        }
    }
    None
}

impl SmallDisk {
    /// The error says what is missing.
    pub fn make(folder: &Path) -> Result<Self, String> {
        fs::create_dir(folder).map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={SIZE}"), "soak"]).arg(folder);
        let output = mount.output().map_err(|error| format!("`mount` cannot be started: {error}"))?;
        match output.status.success() {
            true => Ok(Self { folder: folder.to_owned() }),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }

    /// Takes all the room that is left.
    pub fn fill(&self) {
        let Ok(mut ballast) = File::options().create(true).append(true).open(self.folder.join(BALLAST)) else { return };
        let block = vec![0; 256 << 10];
        for size in [block.len(), 4096] {
            while ballast.write(&block[..size]).is_ok_and(|written| written == size) {}
        }
    }

    pub fn free(&self) {
        // Not there if there was no room for its name.
        let _ = fs::remove_file(self.folder.join(BALLAST));
    }
}
