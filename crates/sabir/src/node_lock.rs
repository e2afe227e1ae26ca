//! The lock that a server with Postgres has on its folder, so that no two servers of one machine are the same node.
//!
//! It is a lock of the operating system on the file `node`, which ends with the process. Readers of the address file ask for it
//! in the same way as for that of an SQLite database.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::config::{Config, StoreUrl};

/// A server may be started again as soon as it was killed. Its lock ends when the kernel has closed its files, which takes a while
/// on a busy machine, and a child that it was starting has a copy of the lock until it executes its own program.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

pub struct NodeLock {
    file: File,
}

impl NodeLock {
    /// `None`: the store is not shared, and has a lock of its own.
    pub fn of(config: &Config) -> anyhow::Result<Option<Self>> {
        match (&config.store.url, config.store.local_file()) {
            (StoreUrl::Postgres(_), Some(file)) => Self::take(&file, &config.cluster.node(), RELEASE_LIMIT).map(Some),
            _ => Ok(None),
        }
    }

    /// Waits as long as `patience` for another process to release it.
    fn take(path: &Path, node: &str, patience: Duration) -> anyhow::Result<Self> {
        let folder = path.parent().unwrap_or(path);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("cannot make the folder {}; choose another with store.folder", folder.display()))?;
        let opened = OpenOptions::new().create(true).read(true).write(true).truncate(false).mode(0o600).open(path);
        let file = opened.with_context(|| format!("cannot write {}; check its permissions", path.display()))?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => bail!(
                    "node {node} runs on this machine already, in {}; stop it, or give this server another \
                     cluster.node_name (SABIR_CLUSTER_NODE_NAME)",
                    folder.display()
                ),
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("{} cannot be locked", path.display()));
                }
            }
        }
    }
}

impl Drop for NodeLock {
    fn drop(&mut self) {
        // Closing unlocks too, but not while a child process still has a copy of the descriptor.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address_file::{self, AddressFile, ServerAddress, StartedBy};

    #[test]
    fn a_node_runs_once_and_is_found_by_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes/a/node");
        let take = |file: &Path, node: &str| NodeLock::take(file, node, Duration::from_millis(20));
        let lock = take(&file, "a").unwrap();
        let refusal = take(&file, "a").err().unwrap().to_string();
        assert!(refusal.starts_with("node a runs on this machine already"), "{refusal}");
        assert!(take(&folder.path().join("nodes/b/node"), "b").is_ok());

        let server = AddressFile::claim(&file, lock);
        let address = ServerAddress { url: "http://127.0.0.1:7".into(), started_by: StartedBy::Serve, authority: None };
        server.write(&address).unwrap();
        assert_eq!(address_file::read(&file), Some(address));
        drop(server);
        assert_eq!(address_file::read(&file), None);
        assert!(take(&file, "a").is_ok());
    }
}
