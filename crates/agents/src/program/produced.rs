//! Files that a program tells of, as parts of an artifact.

use std::fs;
use std::path::Path;

use sabir_model::{Base64, Content, Part};

/// Larger ones stay where they are; the program has told where.
const LARGEST: u64 = 1 << 20;

/// The file's name and content. `None`: there is no such file, it is too large, or it lies outside of the folder.
pub(super) fn read(folder: &Path, path: &str) -> Option<(String, Part)> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let folder = fs::canonicalize(folder).ok()?;
    let file = fs::canonicalize(folder.join(path)).ok()?;
    let name = file.strip_prefix(&folder).ok()?.to_str()?.to_owned();
    let about = fs::metadata(&file).ok()?;
    if !about.is_file() || about.len() > LARGEST {
        return None;
    }
    let bytes = fs::read(&file).ok()?;
    let mut part = match String::from_utf8(bytes) {
        Ok(text) => Part::text(text),
        Err(binary) => Content::Bytes(Base64::encode(binary.as_bytes())).into(),
    };
    part.filename = Some(name.clone());
    Some((name, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_workspace_are_handed_over() {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().join("work");
        fs::create_dir_all(work.join("deep")).unwrap();
        fs::write(work.join("deep/a.txt"), "text").unwrap();
        fs::write(work.join("b.bin"), [0xff, 0xfe]).unwrap();
        fs::write(home.path().join("secret"), "no").unwrap();
        fs::write(work.join("large"), vec![b'x'; (LARGEST + 1) as usize]).unwrap();
        std::os::unix::fs::symlink(home.path().join("secret"), work.join("link")).unwrap();
        let (name, part) = read(&work, "deep/a.txt").unwrap();
        assert_eq!((name.as_str(), part.as_text()), ("deep/a.txt", Some("text")));
        let absolute = format!("file://{}", work.join("b.bin").display());
        assert!(matches!(read(&work, &absolute).unwrap().1.content, Content::Bytes(_)));
        for other in ["../secret", "link", "large", "deep", "missing"] {
            assert!(read(&work, other).is_none(), "{other}");
        }
    }
}
