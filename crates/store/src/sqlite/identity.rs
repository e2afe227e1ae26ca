//! Whether the files are still the ones that were opened.
//!
//! A file that is deleted, moved or replaced lives on for those who have it open, and everything that is stored in it
//! is gone with the last of them. So after every commit, and before anybody is told of it, the names are looked up: they
//! must lead to the same files as before. That takes two or three microseconds and no descriptor.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock::Lock;

/// The database, its log and the index of the log, by what the file system knows them by.
pub(super) struct Identity {
    files: [(PathBuf, Node); 3],
    /// The database never becomes shorter by itself: one that did was cut off or overwritten in its place.
    longest: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    device: u64,
    number: u64,
}

impl From<&Metadata> for Node {
    fn from(meta: &Metadata) -> Self {
        Self { device: meta.dev(), number: meta.ino() }
    }
}

impl Identity {
    /// Of the file that is locked, and of what SQLite has beside it by now.
    pub fn new(path: &Path, lock: &Lock) -> io::Result<Self> {
        let beside = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            let path = PathBuf::from(name);
            fs::metadata(&path).map(|meta| (path, Node::from(&meta)))
        };
        let meta = lock.metadata()?;
        let file = (path.to_owned(), Node::from(&meta));
        let longest = AtomicU64::new(meta.len());
        Ok(Self { files: [file, beside("-wal")?, beside("-shm")?], longest })
    }

    /// Says what is wrong, in words for the operator.
    pub fn check(&self) -> Result<(), String> {
        let database = self.files[0].0.display();
        for (place, (path, node)) in self.files.iter().enumerate() {
            let what = match fs::metadata(path) {
                Ok(meta) if Node::from(&meta) != *node => "was replaced by another file",
                Ok(meta) if place == 0 && meta.len() < self.longest.fetch_max(meta.len(), Ordering::Relaxed) => {
                    "became shorter"
                }
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => "was deleted or moved away",
                Err(error) => {
                    return Err(format!(
                        "{} cannot be looked up: {error}; nothing is stored until it can",
                        path.display()
                    ));
                }
            };
            return Err(format!(
                "{} {what} while the server was running; nothing is stored any more: \
                 stop the server, put {database} back (a backup, or the file that was moved), and start it again",
                path.display()
            ));
        }
        Ok(())
    }
}
