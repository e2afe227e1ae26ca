//! Files that a program reports, as parts of artifacts, within limits.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use sabir_model::{Base64, Content, Part};

use super::regular_file::{open_below, read_all};

/// Larger files are not sent.
const LARGEST: u64 = 1 << 20;
/// How many files a turn may send, and how many bytes in all.
const MOST_FILES: usize = 20;
const MOST_BYTES: u64 = 8 << 20;
/// How many paths are kept, and how long they may be: a program may report the files of a whole disk.
const MOST_KNOWN: usize = 10_000;
const LONGEST_PATH: usize = 4096;

/// The files of one turn.
#[derive(Debug)]
pub(super) struct Collection {
    folder: PathBuf,
    paths: BTreeSet<String>,
    /// How many paths were not kept.
    unknown: usize,
    files: usize,
    bytes: u64,
}

/// A file's name and content, or why it was left out.
pub(super) type Produced = Result<(String, Part), String>;

impl Collection {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, paths: BTreeSet::new(), unknown: 0, files: 0, bytes: 0 }
    }

    pub fn add(&mut self, path: String) {
        if path.len() > LONGEST_PATH || self.paths.contains(&path) {
            return;
        }
        match self.paths.len() < MOST_KNOWN {
            true => drop(self.paths.insert(path)),
            false => self.unknown += 1,
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Reads all files, in the order of their paths. Blocks.
    pub fn collect(mut self) -> Vec<Produced> {
        let mut produced: Vec<Produced> = std::iter::from_fn(|| self.next()).collect();
        if self.unknown > 0 {
            let unknown = self.unknown;
            produced.push(Err(format!("The program told of {unknown} more files, which stay in the workspace")));
        }
        produced
    }

    /// Reads the next file, in the order of the paths. Paths that are no file of the workspace are skipped: callers must not
    /// learn which files exist elsewhere.
    fn next(&mut self) -> Option<Produced> {
        while let Some(path) = self.paths.pop_first() {
            let Some((name, file)) = find(&self.folder, &path) else { continue };
            let left_out = |why: String| Some(Err(format!("The file {name} stays in the workspace: {why}")));
            if self.files == MOST_FILES {
                return left_out(format!("a turn hands over at most {MOST_FILES} files"));
            }
            // Count the bytes that were read: the file may have grown.
            let bytes = match read_all(file, LARGEST) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return left_out(format!("it has more than {LARGEST} bytes")),
                Err(_) => continue,
            };
            if self.bytes + bytes.len() as u64 > MOST_BYTES {
                return left_out(format!("the files of a turn may have {MOST_BYTES} bytes together"));
            }
            self.files += 1;
            self.bytes += bytes.len() as u64;
            return Some(Ok((name.clone(), part(bytes, name))));
        }
        None
    }
}

/// The file and its name in the folder, if there is such a file.
fn find(folder: &Path, path: &str) -> Option<(String, File)> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let folder = fs::canonicalize(folder).ok()?;
    let path = fs::canonicalize(folder.join(path)).ok()?;
    let below = path.strip_prefix(&folder).ok()?;
    let name = below.to_str()?.to_owned();
    // The program may still run and replace a checked folder by a link.
    let file = open_below(&folder, below).ok()?;
    Some((name, file))
}

fn part(bytes: Vec<u8>, name: String) -> Part {
    let mut part = match String::from_utf8(bytes) {
        Ok(text) => Part::text(text),
        Err(binary) => Content::Bytes(Base64::encode(binary.as_bytes())).into(),
    };
    part.filename = Some(name);
    part
}

#[cfg(test)]
mod tests {
    use super::super::regular_file::make_pipe;
    use super::*;

    fn collect(folder: &Path, paths: &[String]) -> Vec<Produced> {
        let mut files = Collection::new(folder.to_owned());
        paths.iter().for_each(|path| files.add(path.clone()));
        files.collect()
    }

    #[test]
    fn only_files_of_the_workspace_are_handed_over() {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().join("work");
        fs::create_dir_all(work.join("deep")).unwrap();
        fs::write(work.join("deep/a.txt"), "text").unwrap();
        fs::write(work.join("b.bin"), [0xff, 0xfe]).unwrap();
        fs::write(home.path().join("secret"), "no").unwrap();
        std::os::unix::fs::symlink(home.path().join("secret"), work.join("link")).unwrap();
        std::os::unix::fs::symlink(home.path(), work.join("up")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", work.join("zero")).unwrap();
        std::os::unix::fs::symlink("loop", work.join("loop")).unwrap();
        make_pipe(&work.join("pipe"));
        let _socket = std::os::unix::net::UnixListener::bind(work.join("socket")).unwrap();
        let absolute = format!("file://{}", work.join("b.bin").display());
        let others = ["../secret", "link", "up/secret", "zero", "loop", "pipe", "socket", "deep", "missing", "", "/"];
        let long = "x".repeat(LONGEST_PATH + 1);
        let paths = ["deep/a.txt", "deep/a.txt", &absolute, &long].into_iter().chain(others).map(str::to_owned);
        let paths: Vec<String> = paths.collect();
        let found: Vec<(String, Part)> = collect(&work, &paths).into_iter().map(Result::unwrap).collect();
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["deep/a.txt", "b.bin"]);
        assert_eq!(found[0].1.as_text(), Some("text"));
        assert!(matches!(found[1].1.content, Content::Bytes(_)));
    }

    #[test]
    fn what_is_too_large_or_too_much_is_left_out_and_named() {
        let work = tempfile::tempdir().unwrap();
        let make = |name: String, length: u64| {
            fs::write(work.path().join(&name), vec![b'x'; length as usize]).unwrap();
            name
        };
        for (files, length, whole, why) in [
            (1, LARGEST, 1, ""),
            (1, LARGEST + 1, 0, "more than 1048576 bytes"),
            (MOST_FILES + 3, 1, MOST_FILES, "at most 20 files"),
            (10, LARGEST, 8, "8388608 bytes together"),
        ] {
            let paths: Vec<String> = (0..files).map(|number| make(format!("{number:02}"), length)).collect();
            let (given, left): (Vec<_>, Vec<_>) = collect(work.path(), &paths).into_iter().partition(Result::is_ok);
            assert_eq!((given.len(), left.len()), (whole, files - whole), "{files} of {length}");
            assert!(left.iter().all(|left| left.as_ref().unwrap_err().contains(why)), "{left:?}");
        }
    }

    #[test]
    fn a_program_may_tell_of_any_number_of_files() {
        let work = tempfile::tempdir().unwrap();
        fs::write(work.path().join("000000"), "x").unwrap();
        let paths: Vec<String> = (0..100_000).map(|number| format!("{number:06}")).collect();
        let found = collect(work.path(), &paths);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].as_ref().unwrap().0, "000000");
        assert!(found[1].as_ref().unwrap_err().contains(&(100_000 - MOST_KNOWN).to_string()), "{found:?}");
    }

    /// Files that are written while they are read, as logs are.
    #[test]
    fn what_grows_meanwhile_counts_as_it_was_read() {
        let work = tempfile::tempdir().unwrap();
        let path = work.path().join("log");
        let mut writing = File::create(&path).unwrap();
        let (_, file) = find(work.path(), "log").unwrap();
        std::io::Write::write_all(&mut writing, &vec![b'x'; LARGEST as usize + 1]).unwrap();
        assert_eq!(read_all(file, LARGEST).unwrap(), None, "no part of a file passes for the whole");
    }
}
