//! Checks that the paths still lead to the files that were opened.
//!
//! A file that is deleted, moved or replaced lives on for the process that has it open, and is lost with that process.
//! So after every commit, and before it is acknowledged, the paths are looked up: they must lead to the same files as
//! before. That takes two or three microseconds and no descriptor.
//!
//! The lookup must not ask for timestamps. After a program has asked for the timestamps of a file, Linux gives the next
//! write a timestamp of its own, so that every `fdatasync` writes the inode too: a second disk request per commit, a
//! sixth of the time of a send. Otherwise the timestamp changes only once per tick of the kernel's clock.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock::Lock;

/// The database, its write-ahead log and the index of the log, by device and inode.
pub(super) struct FileIdentity {
    files: [(PathBuf, Inode); 3],
    /// The largest size of the database so far. It never shrinks by itself: a shorter file was truncated or
    /// overwritten.
    longest: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inode {
    device: u64,
    number: u64,
}

/// The data of a file that the check needs, without timestamps.
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
            // Kernels before 4.11, and sandboxes without this system call.
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
    /// The identity of the locked file and of SQLite's files next to it.
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

    /// The error is a text for the operator.
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
