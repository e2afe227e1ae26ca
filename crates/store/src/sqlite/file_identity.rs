//! Whether the files are still the ones that were opened.
//!
//! A file that is deleted, moved or replaced lives on for those who have it open, and everything that is stored in it
//! is gone with the last of them. So after every commit, and before anybody is told of it, the names are looked up: they
//! must lead to the same files as before. That takes two or three microseconds and no descriptor.
//!
//! The look-up must not ask for times. Once somebody asked for a file's times, Linux gives the next write to it a time of
//! its own, which makes every `fdatasync` write the inode as well: a second request to the disk per commit, a sixth of
//! the time of a send. Without it the time moves on once per tick of the kernel's clock.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock::Lock;

/// The database, its log and the index of the log, by what the file system knows them by.
pub(super) struct FileIdentity {
    files: [(PathBuf, Inode); 3],
    /// The database never becomes shorter by itself: one that did was cut off or overwritten in its place.
    longest: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inode {
    device: u64,
    number: u64,
}

/// What the check needs to know of a file, and nothing else (see the top of this file).
struct FileStat {
    inode: Inode,
    length: u64,
}

impl FileStat {
    #[cfg(target_os = "linux")]
    fn at(path: &Path) -> io::Result<Self> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};

        match statx(CWD, path, AtFlags::empty(), StatxFlags::INO | StatxFlags::SIZE) {
            Ok(found) => {
                let device = makedev(found.stx_dev_major, found.stx_dev_minor);
                Ok(Self { inode: Inode { device, number: found.stx_ino }, length: found.stx_size })
            }
            // Kernels before 4.11, and sandboxes that do not know the call.
            Err(rustix::io::Errno::NOSYS) => Self::from_metadata(path),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn at(path: &Path) -> io::Result<Self> {
        Self::from_metadata(path)
    }

    fn from_metadata(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|meta| Self::from(&meta))
    }
}

impl From<&Metadata> for FileStat {
    fn from(meta: &Metadata) -> Self {
        Self { inode: Inode { device: meta.dev(), number: meta.ino() }, length: meta.len() }
    }
}

impl FileIdentity {
    /// Of the file that is locked, and of what SQLite has beside it by now.
    pub fn new(path: &Path, lock: &Lock) -> io::Result<Self> {
        let sidecar = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            let path = PathBuf::from(name);
            FileStat::at(&path).map(|stat| (path, stat.inode))
        };
        let locked = FileStat::from(&lock.metadata()?);
        let file = (path.to_owned(), locked.inode);
        let longest = AtomicU64::new(locked.length);
        Ok(Self { files: [file, sidecar("-wal")?, sidecar("-shm")?], longest })
    }

    /// Says what is wrong, in words for the operator.
    pub fn check(&self) -> Result<(), String> {
        let database = self.files[0].0.display();
        for (place, (path, inode)) in self.files.iter().enumerate() {
            let what = match FileStat::at(path) {
                Ok(stat) if stat.inode != *inode => "was replaced by another file",
                Ok(stat) if place == 0 && stat.length < self.longest.fetch_max(stat.length, Ordering::Relaxed) => {
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
