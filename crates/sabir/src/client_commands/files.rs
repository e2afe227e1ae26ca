//! `--output`: saves the files of artifacts in a folder.
//!
//! Each file is made anew directly in the folder (`O_EXCL`), so no name of a stranger overwrites a file or follows a link.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use sabir_model::{Content, Part};

use super::failure::Failure;
use super::file_name::{numbered, safe_name};

/// A folder with more files of the same name is somebody's mistake.
const MOST_OF_A_NAME: usize = 10_000;

/// Saves all parts that are files, and says where. A file of which only the address is known is not fetched.
pub fn save<'p>(folder: &Path, parts: impl Iterator<Item = &'p Part>) -> Result<Vec<PathBuf>, Failure> {
    let mut saved = Vec::new();
    for part in parts {
        let Some(bytes) = file_of(part) else { continue };
        if saved.is_empty() {
            let made = fs::create_dir_all(folder);
            made.map_err(|error| Failure::local(format!("cannot make the folder {}: {error}", folder.display())))?;
        }
        let name = safe_name(part.filename.as_deref(), part.media_type.as_deref());
        saved.push(save_one(folder, &name, &bytes)?);
    }
    Ok(saved)
}

/// The content of a part that is a file: bytes, or text and data that have a name.
fn file_of(part: &Part) -> Option<Vec<u8>> {
    match &part.content {
        Content::Bytes(bytes) => Some(bytes.decode()),
        Content::Text(text) if part.filename.is_some() => Some(text.clone().into_bytes()),
        Content::Data(data) if part.filename.is_some() => Some(data.as_str().as_bytes().to_vec()),
        Content::Text(_) | Content::Data(_) | Content::Url(_) => None,
    }
}

fn save_one(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
    let failure = |path: &Path, error| Failure::local(format!("cannot save {}: {error}", path.display()));
    for number in 1..=MOST_OF_A_NAME {
        let path = folder.join(numbered(name, number));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes).map_err(|error| failure(&path, error))?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failure(&path, error)),
        }
    }
    Err(Failure::local(format!("{} has {MOST_OF_A_NAME} files named {name} already", folder.display())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_land_in_the_folder_and_overwrite_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("new/out"), folder.path().join("outside"));
        fs::create_dir_all(&inside).unwrap();
        fs::write(inside.join("a.txt"), "mine").unwrap();
        symlink(&outside, inside.join("b.txt")).unwrap();
        let parts = [
            Part::file("a.txt", "text/plain", b"1"),
            Part::file("../../outside", "text/plain", b"2"),
            Part::file("b.txt", "text/plain", b"3"),
            Part::text("no file"),
            Part { filename: Some("note.md".into()), ..Part::text("4") },
            Part::url("https://x/y"),
        ];
        let saved = save(&inside, parts.iter()).unwrap();
        let names: Vec<_> = saved.iter().map(|path| path.strip_prefix(&inside).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a-2.txt", "outside", "b-2.txt", "note.md"]);
        let contents: Vec<_> = saved.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        assert_eq!(contents, ["1", "2", "3", "4"]);
        assert_eq!(fs::read_to_string(inside.join("a.txt")).unwrap(), "mine");
        assert!(!outside.exists(), "the link was not followed");
    }

    #[test]
    fn without_files_there_is_no_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert!(save(&folder.path().join("x"), [Part::text("t")].iter()).unwrap().is_empty());
        assert!(!folder.path().join("x").exists());
        fs::write(folder.path().join("file"), "").unwrap();
        let failure = save(&folder.path().join("file"), [Part::file("a", "b", b"")].iter()).unwrap_err();
        assert!(failure.message.starts_with("cannot make the folder "), "{}", failure.message);
    }
}
