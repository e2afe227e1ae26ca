//! The folders for files of messages, which exist as long as their task runs.
//!
//! `WORKSPACE/.sabir/STORE-NUMBER-RANDOM/`: the number is that of the task in the server's store, which is unique, and the
//! rest is random. A folder is locked while a turn of its task runs. When the task is over, all its folders are removed. A
//! killed server leaves them behind, and a task may end without a turn. So the next turn in that workspace looks for them,
//! and so does `tidying`. The store says which tasks are over: one that waits for an answer still needs its files.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sabir_engine::TaskLookup;

use super::blocking::{self, blocking};
use super::folder_name::{fingerprint, folder_name};
use super::regular_file;
use super::remove_folder::remove_folder;

/// The folder in the workspace for files of callers. Its `.gitignore` hides it from git.
const INBOX: &str = ".sabir";
const IGNORE_FILE: &str = ".gitignore";
const IGNORE_ALL: &[u8] = b"*\n";

/// The name of the store if tasks are in memory.
const IN_MEMORY: &str = "memory";

/// The place for the files of one task.
pub(super) struct Uploads {
    inbox: PathBuf,
    /// The store and the number of the task, with which the names of all its folders begin. `None`: the folders stay.
    task: Option<(String, u64)>,
    name: String,
    /// The folder of this turn, as soon as there is one.
    lock: Option<File>,
}

impl Uploads {
    /// For a task of this database; without a database its tasks are in memory.
    pub fn new(workspace: &Path, database: Option<&Path>, number: u64) -> Self {
        let store = store_name(database);
        let name = format!("{store}-{number}-{}", random());
        Self { inbox: workspace.join(INBOX), task: Some((store, number)), name, lock: None }
    }

    /// For files that stay when the task is over. The name has the id of the task.
    pub fn kept(workspace: &Path, task: &str) -> Self {
        let name = format!("kept-{}-{}", folder_name(task), random());
        Self { inbox: workspace.join(INBOX), task: None, name, lock: None }
    }

    /// Writes a file. No other file of the turn may have this name.
    pub fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let folder = self.inbox.join(&self.name);
        if self.lock.is_none() {
            self.lock = Some(make_folder(&self.inbox, &folder)?);
        }
        let file = folder.join(name);
        write_new(&file, bytes)?;
        Ok(file)
    }

    /// Removes all folders of the task.
    pub fn remove(self) {
        let Some((store, number)) = &self.task else { return };
        remove_where(&self.inbox, |name| parse(name) == Some((store, *number)));
    }
}

/// Removes what earlier servers left in this workspace, of tasks that are over.
/// `own` is the number of the task that asks.
pub(super) async fn sweep(workspace: &Path, database: Option<&Path>, own: Option<u64>, tasks: &TaskLookup) {
    let inbox = workspace.join(INBOX);
    let own = (store_name(database), own);
    let place = inbox.clone();
    // No turn of a task runs if its folder is not locked. The store says whether the task is over; a task in the memory of
    // another server counts as over then.
    let unlocked = blocking(blocking::SHORT, move || {
        let is_left = |name: &String| {
            let Some((store, number)) = parse(name) else { return false };
            let is_ours = store == own.0;
            let is_own = is_ours && own.1 == Some(number);
            !is_own && (is_ours || store == IN_MEMORY) && is_unlocked(&place.join(name))
        };
        folders(&place).into_iter().filter(is_left).collect::<Vec<String>>()
    });
    let mut leftovers = HashSet::new();
    for name in unlocked.await.unwrap_or_default() {
        let is_over = match parse(&name) {
            Some((IN_MEMORY, _)) if database.is_some() => true,
            Some((_, number)) => tasks.is_over(number).await.unwrap_or(false),
            None => false,
        };
        if is_over {
            leftovers.insert(name);
        }
    }
    if !leftovers.is_empty() {
        let _ = blocking(blocking::LONG, move || remove_where(&inbox, |name| leftovers.contains(name))).await;
    }
}

/// A name for a database that is unique on this machine.
pub(super) fn store_name(database: Option<&Path>) -> String {
    database.map_or_else(
        || IN_MEMORY.to_owned(),
        |path| format!("{:016x}", fingerprint(path.as_os_str().as_encoded_bytes())),
    )
}

/// The store and the number in a folder's name, if it is one of ours.
fn parse(name: &str) -> Option<(&str, u64)> {
    let (store, rest) = name.split_once('-')?;
    let (number, random) = rest.split_once('-')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_store = store == IN_MEMORY || (store.len() == 16 && is_hex(store));
    let is_ours = is_store && random.len() == RANDOM_LENGTH && is_hex(random);
    is_ours.then(|| number.parse().ok().map(|number| (store, number))).flatten()
}

const RANDOM_LENGTH: usize = 32;

/// 128 random bits from the operating system, through the keys of the standard library's hash maps.
fn random() -> String {
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}

/// The names in the inbox. A repository may contain a link in its place, which would lead out of the workspace.
fn folders(inbox: &Path) -> Vec<String> {
    if !fs::symlink_metadata(inbox).is_ok_and(|about| about.is_dir()) {
        return Vec::new();
    }
    let entries = fs::read_dir(inbox).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn is_unlocked(folder: &Path) -> bool {
    File::open(folder).is_ok_and(|folder| folder.try_lock().is_ok())
}

fn remove_where(inbox: &Path, mut is_leftover: impl FnMut(&str) -> bool) {
    let mut removed = 0;
    for name in folders(inbox).iter().filter(|name| is_leftover(name)) {
        let folder = inbox.join(name);
        match remove_folder(&folder) {
            Ok(()) => removed += 1,
            Err(error) => {
                tracing::warn!(%error, folder = %folder.display(), "files of a message cannot be removed");
            }
        }
    }
    if removed > 0 {
        remove_unused(inbox);
    }
}

/// How often to retry if other tasks begin and end at the same moment.
const ATTEMPTS: usize = 1_000;

/// Removes the inbox if no folder is left in it. Other tasks may end at the same time, so the inbox is listed again after
/// folders are removed: the task that removes the last one finds none.
fn remove_unused(inbox: &Path) {
    let ignore = inbox.join(IGNORE_FILE);
    for _ in 0..ATTEMPTS {
        let is_ours = regular_file::read_up_to(&ignore, 1024).is_ok_and(|text| text == IGNORE_ALL);
        if !is_ours || !has_only_ignore_file(inbox) {
            return;
        }
        let _ = fs::remove_file(&ignore);
        let Err(error) = fs::remove_dir(inbox) else { return };
        let _ = write_new(&ignore, IGNORE_ALL);
        // If a task has just made a folder, it may be over by now. Without the ignore file it has left the inbox alone.
        if error.kind() != ErrorKind::DirectoryNotEmpty {
            return;
        }
    }
}

/// Other files in the inbox are not Sabir's, and then it stays.
fn has_only_ignore_file(inbox: &Path) -> bool {
    let is_folder = fs::symlink_metadata(inbox).is_ok_and(|about| about.is_dir());
    let is_ignore_file = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == IGNORE_FILE);
    is_folder && fs::read_dir(inbox).is_ok_and(|mut entries| entries.all(is_ignore_file))
}

/// Makes the folder and locks it. Removing the last folder removes the inbox, which may happen at the same time: a lock
/// would not help against other servers, and would be held for ever on a mount that does not respond.
fn make_folder(inbox: &Path, folder: &Path) -> io::Result<File> {
    let mut attempts = ATTEMPTS;
    loop {
        let made = own_folder(inbox).and_then(|()| hide_from_git(inbox)).and_then(|()| own_folder(folder));
        attempts -= 1;
        match made {
            // Somebody has just removed the inbox, which was empty.
            Err(error) if error.kind() == ErrorKind::NotFound && attempts > 0 => {}
            made => {
                made?;
                let folder = File::open(folder)?;
                // On file systems without locks only a sweep would need one, and it cannot lock either.
                let _ = folder.try_lock();
                return Ok(folder);
            }
        }
    }
}

/// Makes a folder that only this user can read. A link in its place would lead out of the workspace.
fn own_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && fs::symlink_metadata(path)?.is_dir() => Ok(()),
        made => made,
    }
}

fn hide_from_git(inbox: &Path) -> io::Result<()> {
    match write_new(&inbox.join(IGNORE_FILE), IGNORE_ALL) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        written => written,
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::thread;

    use super::*;

    fn names(workspace: &Path) -> Vec<String> {
        folders(&workspace.join(INBOX))
    }

    #[test]
    fn folders_of_a_task_go_together_and_the_last_one_takes_the_inbox() {
        let folder = tempfile::tempdir().unwrap();
        let database = Path::new("/data/sabir.db");
        let place = |number| Uploads::new(folder.path(), Some(database), number);
        let (mut first, mut second, mut other) = (place(7), place(7), place(71));
        let path = first.put("a", b"one").unwrap();
        second.put("a", b"two").unwrap();
        other.put("a", b"three").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for private in [path.parent().unwrap(), &folder.path().join(INBOX)] {
            assert_eq!(fs::metadata(private).unwrap().permissions().mode() & 0o777, 0o700, "{private:?}");
        }
        assert_eq!(names(folder.path()).len(), 3);
        first.remove();
        assert_eq!(names(folder.path()), [other.name.clone()]);
        assert_eq!(fs::read(folder.path().join(INBOX).join(IGNORE_FILE)).unwrap(), IGNORE_ALL);
        other.remove();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Another task ends after the folders are listed and before they are removed.
    #[test]
    fn tasks_that_end_at_the_same_time_take_the_inbox_with_them() {
        let folder = tempfile::tempdir().unwrap();
        let [mut first, mut second] = [1, 2].map(|number| Uploads::new(folder.path(), None, number));
        first.put("a", b"one").unwrap();
        second.put("a", b"two").unwrap();
        let mut second = Some(second);
        remove_where(&folder.path().join(INBOX), |name| {
            if let Some(second) = second.take() {
                second.remove();
            }
            name == first.name
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Folders are made while others are removed, and with them the inbox.
    #[test]
    fn tasks_that_begin_while_others_end_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let work = |number| {
            for _ in 0..2 {
                let mut uploads = Uploads::new(folder.path(), None, number);
                uploads.put("a", b"x").unwrap();
                uploads.remove();
            }
        };
        for round in 0..100 {
            thread::scope(|threads| {
                for number in 0..3 {
                    threads.spawn(move || work(number));
                }
            });
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "round {round}");
        }
    }

    #[test]
    fn what_is_kept_or_not_ours_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = Uploads::kept(folder.path(), "a/b");
        let path = kept.put("a", b"one").unwrap();
        let mut gone = Uploads::new(folder.path(), None, 1);
        gone.put("a", b"one").unwrap();
        fs::create_dir(folder.path().join(INBOX).join("memory-1-notes")).unwrap();
        gone.remove();
        kept.remove();
        assert!(path.exists() && folder.path().join(INBOX).join("memory-1-notes").exists());
    }

    #[test]
    fn names_lead_back_to_their_task() {
        for (database, number) in [(Some(Path::new("/a.db")), 0), (Some(Path::new("/b.db")), u64::MAX), (None, 7)] {
            let uploads = Uploads::new(Path::new("/w"), database, number);
            assert_eq!(parse(&uploads.name), Some((store_name(database).as_str(), number)), "{}", uploads.name);
        }
        let random = "0".repeat(RANDOM_LENGTH);
        for other in ["", "kept-x-1", "memory-x-0", &format!("kept-1-{random}"), &format!("memory--1-{random}")] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn links_do_not_lead_out_of_the_workspace() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), folder.path().join(INBOX)).unwrap();
        fs::create_dir(outside.path().join(Uploads::new(folder.path(), None, 1).name)).unwrap();
        assert!(Uploads::new(folder.path(), None, 1).put("a", b"x").is_err());
        Uploads::new(folder.path(), None, 1).remove();
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    /// Reading the pipe would block for ever, and with it one of the few threads for file work.
    #[test]
    fn a_pipe_in_the_place_of_the_ignore_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut uploads = Uploads::new(folder.path(), None, 1);
        uploads.put("a", b"x").unwrap();
        let ignore = folder.path().join(INBOX).join(IGNORE_FILE);
        fs::remove_file(&ignore).unwrap();
        regular_file::make_pipe(&ignore);
        uploads.remove();
        assert!(names(folder.path()).is_empty() && ignore.exists());
    }

    #[test]
    fn a_folder_in_use_is_locked() {
        let folder = tempfile::tempdir().unwrap();
        let mut uploads = Uploads::new(folder.path(), None, 1);
        let path = uploads.put("a", b"x").unwrap();
        assert!(!is_unlocked(path.parent().unwrap()));
        drop(uploads);
        assert!(is_unlocked(path.parent().unwrap()));
    }
}
