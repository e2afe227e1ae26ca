//! The folder that a release is written to. Everything in it is replaced, since an earlier run had other checksums. So it must be
//! a folder that `cargo xtask dist` has made: `--out ~` must not empty the home directory.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::checksums;

/// Folders that a run makes.
const FOLDERS: [&str; 2] = ["contents", "image"];

/// Refuses a folder that holds something else than an earlier release.
pub fn check(folder: &Path) -> Result<()> {
    let shown = folder.display();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("{shown} cannot be the folder of a release"))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    if names.is_empty() {
        return Ok(());
    }
    let reason = match fs::read_to_string(folder.join(checksums::FILE)) {
        Ok(sums) if !is_of_release(&sums) => format!("the {} in it is not that of a release", checksums::FILE),
        Ok(_) => match names.iter().find(|name| !is_part_of_release(name)) {
            None => return Ok(()),
            Some(other) => format!("it also holds {other}"),
        },
        Err(_) => format!("it holds {} and no {} of an earlier release", names[0], checksums::FILE),
    };
    bail!(
        "{shown} is not replaced: {reason}\nWhat to do: name a new or empty folder with --out; if nothing in {shown} is needed, delete it yourself"
    )
}

/// Makes the folder, or empties it.
pub fn replace(folder: &Path) -> Result<()> {
    check(folder)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // It comes first and is never gone: the next run may replace what an interrupted one leaves behind.
    fs::write(folder.join(checksums::FILE), "").with_context(|| format!("cannot write to {}", folder.display()))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        match entry.file_type()? {
            _ if entry.file_name() == checksums::FILE => Ok(()),
            kind if kind.is_dir() => fs::remove_dir_all(&path),
            _ => fs::remove_file(&path),
        }
        .with_context(|| format!("cannot delete {}", path.display()))?;
    }
    Ok(())
}

/// Whether all of these checksums are of files that a run makes.
fn is_of_release(sums: &str) -> bool {
    sums.lines().all(|line| line.split_whitespace().nth(1).is_some_and(is_file_of_release))
}

fn is_part_of_release(name: &str) -> bool {
    name == checksums::FILE || FOLDERS.contains(&name) || is_file_of_release(name)
}

/// The archive, its list of parts and the Debian package.
fn is_file_of_release(name: &str) -> bool {
    let has_ending = [".tar.gz", ".cdx.json", ".deb"].iter().any(|ending| name.ends_with(ending));
    has_ending && (name.starts_with("sabir-") || name.starts_with("sabir_"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A folder with these files and folders, which end with a slash. It is deleted at the end of the test.
    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(number: usize, entries: &[(&str, &str)]) -> Self {
            let folder = std::env::temp_dir().join(format!("sabir-out-folder-{}-{number}", std::process::id()));
            fs::create_dir(&folder).unwrap();
            for (name, text) in entries {
                match name.strip_suffix('/') {
                    Some(inner) => {
                        fs::create_dir(folder.join(inner)).unwrap();
                        fs::write(folder.join(inner).join("file"), text).unwrap();
                    }
                    None => fs::write(folder.join(name), text).unwrap(),
                }
            }
            Self(folder)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_a_folder_of_an_earlier_release_is_replaced() {
        let sums = "00ff  sabir-0.1.0-x86_64-unknown-linux-musl.cdx.json\n00ff  sabir_0.1.0_amd64.deb\n";
        let archive = "sabir-0.1.0-x86_64-unknown-linux-musl.tar.gz";
        for (number, (entries, expected)) in [
            (&[][..], None),
            (&[("SHA256SUMS", sums), (archive, "x"), ("sabir_0.1.0_amd64.deb", "x"), ("image/", "x")], None),
            // One that was interrupted, and one with the image alone.
            (&[("SHA256SUMS", ""), ("contents/", "x"), (archive, "x")], None),
            (&[("SHA256SUMS", ""), ("image/", "x")], None),
            (&[(".bashrc", "x")], Some("it holds .bashrc and no SHA256SUMS of an earlier release")),
            (&[("image/", "x")], Some("it holds image and no SHA256SUMS of an earlier release")),
            (&[("SHA256SUMS", sums), ("notes.txt", "x")], Some("it also holds notes.txt")),
            (&[("SHA256SUMS", ""), (".ssh/", "x")], Some("it also holds .ssh")),
            (&[("SHA256SUMS", sums), ("sabir/", "x")], Some("it also holds sabir")),
            (
                &[("SHA256SUMS", "00ff  debian.iso\n"), ("image/", "x")],
                Some("the SHA256SUMS in it is not that of a release"),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let folder = TestFolder::new(number, entries);
            let before = folder.names();
            match (check(&folder.0), expected) {
                (Ok(()), None) => {
                    replace(&folder.0).unwrap();
                    assert_eq!(folder.names(), ["SHA256SUMS"], "{entries:?}");
                    assert_eq!(fs::read_to_string(folder.0.join("SHA256SUMS")).unwrap(), "");
                }
                (Err(error), Some(reason)) => {
                    let error = error.to_string();
                    assert!(error.contains(reason) && error.contains("What to do: name a new or empty"), "{error}");
                    assert!(replace(&folder.0).is_err(), "{entries:?}");
                    assert_eq!(folder.names(), before);
                }
                (found, _) => panic!("{entries:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_new_folder_is_made_and_a_file_is_left_alone() {
        let folder = TestFolder::new(100, &[("file", "x")]);
        replace(&folder.0.join("new/dist")).unwrap();
        assert!(folder.0.join("new/dist/SHA256SUMS").is_file());
        assert!(replace(&folder.0.join("file")).is_err());
        assert_eq!(fs::read_to_string(folder.0.join("file")).unwrap(), "x");
    }
}
