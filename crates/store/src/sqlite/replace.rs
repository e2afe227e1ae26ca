//! Puts another database in the place of a file, so that at any moment one of the two is there, and keeps the old one.
//!
//! | step | what is there if the machine stops after it                                       |
//! |------|---------------------------------------------------------------------------------|
//! | the new file gets the owner, group and mode of the old one | the old database            |
//! | the write-ahead log of the old file is moved into it | the old database                  |
//! | the old file gets a second name                      | the old database, with two names  |
//! | the new file is renamed to the name of the old one   | the new database                  |
//!
//! A log that stayed beside the new file would be taken for its own. So nothing is replaced while another program keeps the
//! log from being moved. The log of a damaged file cannot be moved into it, and goes with it under the second name.
//!
//! The command may run as root, and a wrong path must not cost a file of the system. So only a file that looks like a database
//! is replaced, and only by its own name, never through a symbolic link.

use std::fs::{self, File, FileType, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::examine::beside;
use super::lock::Lock;
use super::{connect, open};
use crate::OpenError;

/// How long a program that reads the old file may keep its log from being moved.
const PATIENCE: Duration = Duration::from_secs(1);

/// What every SQLite database begins with.
const SQLITE_HEADER: &[u8] = b"SQLite format 3\0";
/// Files that SQLite and Sabir make beside a database. They show that a file without the header is a damaged database.
const DATABASE_COMPANIONS: [&str; 2] = ["-wal", ".server.json"];

/// A place for a database. While this is there, no server can open the file that is in it, and nobody else can take a place in
/// the same folder.
pub struct SqlitePlace {
    path: PathBuf,
    /// `None`: there is no file yet.
    lock: Option<Lock>,
    /// Locked. Where there is no file yet, nothing else could be.
    _folder: File,
}

impl SqlitePlace {
    /// # Errors
    /// A server has the file open, it cannot be written, it does not look like a database, or another place in its folder
    /// is taken.
    pub fn take(path: &Path) -> Result<Self, OpenError> {
        // Without a slash at its end, which would lead through a symbolic link.
        let path = path.components().as_path();
        check_is_plain_file(path)?;
        let path = open::canonical_path(path)?;
        open::check_writable(&path)?;
        let folder = lock_folder(&path)?;
        // Again: another restore may have ended before the folder was locked.
        let Some(found) = check_is_plain_file(&path)? else { return Ok(Self { path, lock: None, _folder: folder }) };
        check_looks_like_database(&path)?;
        let lock = Lock::take(&path)?;
        let is_same = |locked: Metadata| (locked.dev(), locked.ino()) == (found.dev(), found.ino());
        if !lock.metadata().is_ok_and(is_same) {
            return Err(other(&path, "somebody has put another file in its place; try again"));
        }
        Ok(Self { path, lock: Some(lock), _folder: folder })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_taken(&self) -> bool {
        self.lock.is_some()
    }

    /// Puts the file `new` into this place; it must be closed and in the same folder. Returns where the old one is now.
    ///
    /// # Errors
    /// The old database is still in its place, with all its commits.
    pub fn put(&self, new: &Path) -> io::Result<Option<PathBuf>> {
        let folder = self.path.parent().expect("a canonical path of a file has a folder");
        // Not a link, so that root changes the owner of no other file.
        let new_file = OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(new)?;
        match &self.lock {
            Some(old) => give_to_owner_of_old(&new_file, &old.metadata()?)?,
            None => give_to_owner_of_folder(&new_file, &fs::metadata(folder)?)?,
        }
        new_file.sync_all()?;
        let folder = File::open(folder)?;
        self.move_wal_into_file()?;
        let kept = self.free_name();
        self.exchange(new, &kept)?;
        folder.sync_all()?;
        Ok(self.is_taken().then_some(kept))
    }

    /// Afterwards the old file alone is the old database, unless it is damaged.
    fn move_wal_into_file(&self) -> io::Result<()> {
        let wal = beside(&self.path, "-wal");
        if !self.is_taken() || !wal.exists() {
            return Ok(());
        }
        let busy = "another program has the database open; close that program and try again".to_owned();
        let reason = match checkpoint(&self.path) {
            // The last connection that is closed removes the log.
            Ok(true) if !wal.exists() => return Ok(()),
            Ok(_) => busy,
            Err(error) => match (error.sqlite_error_code(), open::open_error(&self.path, error)) {
                (_, OpenError::Damaged { .. }) => return Ok(()),
                (Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked), _) => busy,
                (Some(rusqlite::ErrorCode::DiskFull), _) => "the disk is full; make room and try again".to_owned(),
                (_, error) => format!("{error}; move both files to another folder and try again"),
            },
        };
        let message = format!("{} has commits that cannot be moved into the database: {reason}", wal.display());
        Err(io::Error::other(message))
    }

    /// If a step fails, those before it are undone.
    fn exchange(&self, new: &Path, kept: &Path) -> io::Result<()> {
        let (wal, kept_wal) = (beside(&self.path, "-wal"), beside(kept, "-wal"));
        let has_wal = wal.exists();
        if has_wal {
            fs::rename(&wal, &kept_wal)?;
        }
        let exchanged = self.exchange_files(new, kept);
        if exchanged.is_err() && has_wal {
            fs::rename(kept_wal, wal)?;
        }
        exchanged
    }

    fn exchange_files(&self, new: &Path, kept: &Path) -> io::Result<()> {
        remove_if_there(&beside(&self.path, "-shm"))?;
        let Some(old) = &self.lock else {
            // Unlike a rename, this fails if somebody has made a file there meanwhile.
            fs::hard_link(new, &self.path)?;
            // From here on the new database is in its place, with or without its first name.
            let _ = fs::remove_file(new);
            return Ok(());
        };
        keep(&self.path, kept, old)?;
        fs::rename(new, &self.path).inspect_err(|_| drop(fs::remove_file(kept)))
    }

    /// An old database of an earlier time is not overwritten.
    fn free_name(&self) -> PathBuf {
        let is_free = |path: &PathBuf| !path.exists() && !beside(path, "-wal").exists();
        let first = beside(&self.path, ".before-restore");
        let others = (2..).map(|number| beside(&self.path, &format!(".before-restore-{number}")));
        std::iter::once(first).chain(others).find(is_free).expect("there is always another number")
    }
}

fn other(path: &Path, reason: impl Into<String>) -> OpenError {
    OpenError::Other { path: path.into(), reason: reason.into() }
}

/// Returns nothing if there is no file yet.
fn check_is_plain_file(path: &Path) -> Result<Option<Metadata>, OpenError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(Some(found)),
        Ok(found) => Err(other(path, format!("it is {}; name the file itself", name_of_kind(found.file_type())))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(other(path, error.to_string())),
    }
}

fn name_of_kind(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

/// Where the file system cannot lock folders, as NFS, nothing keeps two from taking a place at once.
fn lock_folder(path: &Path) -> Result<File, OpenError> {
    let folder = File::open(path.parent().expect("a canonical path of a file has a folder"));
    let folder = folder.map_err(|error| other(path, format!("its folder: {error}")))?;
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(other(path, "another restore is making a database in this folder; wait until it is over"))
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(folder),
    }
}

fn check_looks_like_database(path: &Path) -> Result<(), OpenError> {
    let unreadable = |error: io::Error| match error.kind() {
        ErrorKind::PermissionDenied => OpenError::ReadOnly(path.into()),
        _ => other(path, error.to_string()),
    };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let mut beginning = Vec::new();
    file.take(SQLITE_HEADER.len() as u64).read_to_end(&mut beginning).map_err(unreadable)?;
    let has_companion = DATABASE_COMPANIONS.iter().any(|suffix| beside(path, suffix).exists());
    if beginning.is_empty() || beginning == SQLITE_HEADER || has_companion {
        return Ok(());
    }
    Err(other(path, "it does not look like a database; if it is to be replaced, move it away yourself"))
}

/// Moves the log of a database into it. Returns whether all of it could be moved.
fn checkpoint(path: &Path) -> rusqlite::Result<bool> {
    let conn = connect::open(path)?;
    conn.busy_timeout(PATIENCE)?;
    let is_busy: bool = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
    Ok(!is_busy)
}

/// A second name for the file; a copy where the file system has no second names.
fn keep(path: &Path, kept: &Path, lock: &Lock) -> io::Result<()> {
    match fs::hard_link(path, kept) {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
            copy(path, kept, &lock.metadata()?)
        }
        linked => linked,
    }
}

fn copy(path: &Path, kept: &Path, old: &Metadata) -> io::Result<()> {
    let mut source = File::open(path)?;
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(kept)?;
    let copied = io::copy(&mut source, &mut target)
        .and_then(|_| give_to_owner_of_old(&target, old))
        .and_then(|()| target.sync_all());
    copied.inspect_err(|_| drop(fs::remove_file(kept)))
}

/// The server that could open the old file can open the new one, also after root has made it.
fn give_to_owner_of_old(new: &File, old: &Metadata) -> io::Result<()> {
    let mut mode = old.mode() & 0o777;
    let made = new.metadata()?;
    if (made.uid(), made.gid()) != (old.uid(), old.gid())
        && let Err(error) = give_to(new, &made, old)
    {
        if is_of_root(&made) {
            return Err(error);
        }
        // What the old file allowed its group is not meant for another group.
        mode &= 0o700;
    }
    new.set_permissions(Permissions::from_mode(mode))
}

/// Where root makes the first database, the folder says whose it is.
fn give_to_owner_of_folder(new: &File, folder: &Metadata) -> io::Result<()> {
    let made = new.metadata()?;
    if is_of_root(&made) && !is_of_root(folder) { give_to(new, &made, folder) } else { Ok(()) }
}

fn give_to(new: &File, made: &Metadata, owner: &Metadata) -> io::Result<()> {
    let (user, group) = (owner.uid(), owner.gid());
    let changed = match made.is_file() && made.nlink() == 1 {
        true => fchown(new, Some(user), Some(group)),
        false => Err(io::Error::other("it has a second name")),
    };
    changed.map_err(|error| {
        let message = format!(
            "the new file cannot be given to user {user} and group {group}: {error}; run the command as that user"
        );
        io::Error::new(error.kind(), message)
    })
}

/// Whether root made this file, and so whether this process is root.
fn is_of_root(file: &Metadata) -> bool {
    file.uid() == 0
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_step_that_fails_leaves_the_old_files_as_they_were() {
        for is_taken in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("sabir.db");
            if is_taken {
                fs::write(&path, "old").unwrap();
            }
            fs::write(beside(&path, "-wal"), "log").unwrap();
            let place = SqlitePlace::take(&path).unwrap();
            let entries = || {
                let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
                let entries = entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap()));
                entries.collect::<BTreeSet<_>>()
            };
            let before = entries();
            // The last step finds no file that it could rename.
            let error = place.exchange(&beside(&path, ".new"), &place.free_name()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{is_taken}");
            assert_eq!(entries(), before, "{is_taken}");
        }
    }

    #[test]
    fn only_what_looks_like_a_database_is_a_place() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content, companion, is_place) in [
            ("header", "SQLite format 3\0 and damage", None, true),
            ("empty", "", None, true),
            ("log", "damage", Some("-wal"), true),
            ("address", "damage", Some(".server.json"), true),
            ("thesis", "a thesis", None, false),
            ("short", "SQLite", None, false),
            ("another", "a thesis", Some(".txt"), false),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            if let Some(suffix) = companion {
                fs::write(beside(&path, suffix), "").unwrap();
            }
            match SqlitePlace::take(&path) {
                Ok(_) => assert!(is_place, "{name}"),
                Err(error) => assert!(!is_place && error.to_string().contains("move it away yourself"), "{error}"),
            }
            assert_eq!(fs::read(&path).unwrap(), content.as_bytes(), "{name}");
        }
    }

    #[test]
    fn links_folders_and_sockets_are_no_places() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("empty"), "").unwrap();
        symlink("empty", path("link")).unwrap();
        symlink("none", path("dangling")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        symlink("folder", path("folder-link")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        for (name, kind) in [
            ("link", "a symbolic link"),
            ("link/", "a symbolic link"),
            ("dangling", "a symbolic link"),
            ("folder", "a folder"),
            ("folder-link/.", "a symbolic link"),
            ("socket", "a socket"),
        ] {
            let error = SqlitePlace::take(&path(name)).err().unwrap().to_string();
            assert!(error.contains(&format!("it is {kind}; name the file itself")), "{name}: {error}");
        }
        assert!(!path("none").exists());
        assert!(SqlitePlace::take(&path("folder-link/new")).is_ok(), "a link to the folder is no harm");
    }

    #[test]
    fn only_one_at_a_time_takes_a_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.db");
        let place = SqlitePlace::take(&path).unwrap();
        let error = SqlitePlace::take(&path).err().unwrap().to_string();
        assert!(error.contains("another restore is making a database in this folder"), "{error}");
        drop(place);
        assert!(SqlitePlace::take(&path).is_ok_and(|place| !place.is_taken()));
    }

    #[test]
    fn a_copy_has_the_mode_of_the_old_file_and_takes_no_other_place() {
        let folder = tempfile::tempdir().unwrap();
        let (path, kept) = (folder.path().join("sabir.db"), folder.path().join("kept"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let old = fs::metadata(&path).unwrap();
        copy(&path, &kept, &old).unwrap();
        assert_eq!(fs::read(&kept).unwrap(), b"old");
        assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o777, 0o640);
        fs::write(&kept, "another").unwrap();
        assert_eq!(copy(&path, &kept, &old).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&kept).unwrap(), b"another");
    }
}
