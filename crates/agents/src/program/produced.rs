//! Files that a program tells of, as parts of artifacts: as many and as much as a task can carry.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use sabir_model::{Base64, Content, Part};

/// Larger files stay where they are.
const LARGEST: u64 = 1 << 20;
/// How many files one turn hands over, and how many bytes all of them have.
const MOST_FILES: usize = 20;
const MOST_BYTES: u64 = 8 << 20;
/// A program may tell of the files of a whole disk.
const MOST_KNOWN: usize = 10_000;

/// The files of one turn.
pub(super) struct Collection {
    folder: PathBuf,
    paths: BTreeSet<String>,
    files: usize,
    bytes: u64,
}

/// A file's name and content, or why it was left out.
pub(super) type Produced = Result<(String, Part), String>;

impl Collection {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, paths: BTreeSet::new(), files: 0, bytes: 0 }
    }

    pub fn add(&mut self, path: String) {
        if self.paths.len() < MOST_KNOWN {
            self.paths.insert(path);
        }
    }

    /// The next file, by its path. Paths that lead to no file of the workspace are passed over: what lies elsewhere, and
    /// whether it is there, is not for callers.
    pub fn next(&mut self) -> Option<Produced> {
        while let Some(path) = self.paths.pop_first() {
            let Some((name, file, length)) = find(&self.folder, &path) else { continue };
            let why = if length > LARGEST {
                format!("it has {length} bytes, and the limit is {LARGEST}")
            } else if self.files == MOST_FILES {
                format!("a turn hands over at most {MOST_FILES} files")
            } else if self.bytes + length > MOST_BYTES {
                format!("the files of a turn may have {MOST_BYTES} bytes together")
            } else {
                let Some(part) = read(file, &name) else { continue };
                self.files += 1;
                self.bytes += length;
                return Some(Ok((name, part)));
            };
            return Some(Err(format!("The file {name} stays in the workspace: {why}")));
        }
        None
    }
}

/// The file, its name in the folder and its length, if there is such a file.
fn find(folder: &Path, path: &str) -> Option<(String, File, u64)> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let folder = fs::canonicalize(folder).ok()?;
    let path = fs::canonicalize(folder.join(path)).ok()?;
    let name = path.strip_prefix(&folder).ok()?.to_str()?.to_owned();
    // A pipe would be waited for.
    if !fs::metadata(&path).ok()?.is_file() {
        return None;
    }
    let file = File::open(&path).ok()?;
    let length = file.metadata().ok()?.len();
    Some((name, file, length))
}

fn read(file: File, name: &str) -> Option<Part> {
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    let mut part = match String::from_utf8(bytes) {
        Ok(text) => Part::text(text),
        Err(binary) => Content::Bytes(Base64::encode(binary.as_bytes())).into(),
    };
    part.filename = Some(name.to_owned());
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(folder: &Path, paths: &[String]) -> Vec<Produced> {
        let mut files = Collection::new(folder.to_owned());
        paths.iter().for_each(|path| files.add(path.clone()));
        std::iter::from_fn(|| files.next()).collect()
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
        let absolute = format!("file://{}", work.join("b.bin").display());
        let paths = ["deep/a.txt", "deep/a.txt", &absolute, "../secret", "link", "deep", "missing"].map(str::to_owned);
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
            (1, LARGEST + 1, 0, "the limit is 1048576"),
            (MOST_FILES + 3, 1, MOST_FILES, "at most 20 files"),
            (10, LARGEST, 8, "8388608 bytes together"),
        ] {
            let paths: Vec<String> = (0..files).map(|number| make(format!("{number:02}"), length)).collect();
            let (given, left): (Vec<_>, Vec<_>) = collect(work.path(), &paths).into_iter().partition(Result::is_ok);
            assert_eq!((given.len(), left.len()), (whole, files - whole), "{files} of {length}");
            assert!(left.iter().all(|left| left.as_ref().unwrap_err().contains(why)), "{left:?}");
        }
    }
}
