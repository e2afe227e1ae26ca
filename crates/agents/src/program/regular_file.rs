//! Reads files that other programs have made: only regular files, and only up to a limit.
//!
//! Opening a pipe blocks until its other end is open, a device may have no end, and a file may grow while it is read.

use std::fs::File;
use std::io::{self, Error, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Opens a file, if it is a regular one.
pub(super) fn open(path: &Path) -> io::Result<File> {
    checked(openat(CWD, path, FLAGS, Mode::empty())?)
}

/// Opens a file in a folder, if it is a regular one. No component of the path may be a link: otherwise a program that
/// changes the folder meanwhile could lead out of it.
pub(super) fn open_below(folder: &Path, path: &Path) -> io::Result<File> {
    let mut place = openat(CWD, folder, FLAGS | OFlags::DIRECTORY, Mode::empty())?;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Err(Error::other("the path leads elsewhere")) };
        let kind = if parts.peek().is_some() { OFlags::DIRECTORY } else { OFlags::empty() };
        place = openat(place.as_fd(), name, FLAGS | OFlags::NOFOLLOW | kind, Mode::empty())?;
    }
    checked(place)
}

/// Opening never blocks.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

fn checked(file: OwnedFd) -> io::Result<File> {
    let file = File::from(file);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::other("it is no regular file")),
    }
}

/// The content of a file that has at most `limit` bytes.
pub(super) fn read_up_to(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    match read_all(open(path)?, limit)? {
        Some(bytes) => Ok(bytes),
        None => Err(Error::other(format!("it has more than {limit} bytes"))),
    }
}

/// Like `read_up_to`, for an open file. `None`: the file is longer.
pub(super) fn read_all(file: File, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

#[cfg(test)]
pub(super) fn make_pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_below_the_folder_are_opened() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("work");
        fs::create_dir_all(folder.join("deep")).unwrap();
        fs::write(folder.join("deep/file"), "in").unwrap();
        fs::write(home.path().join("secret"), "out").unwrap();
        make_pipe(&folder.join("pipe"));
        let _socket = UnixListener::bind(folder.join("socket")).unwrap();
        symlink("deep/file", folder.join("link")).unwrap();
        symlink("..", folder.join("up")).unwrap();
        symlink("/dev/zero", folder.join("zero")).unwrap();
        for (path, is_opened, is_opened_below) in [
            ("deep/file", true, true),
            ("./deep/file", true, false),
            ("link", true, false),
            ("up/secret", true, false),
            ("../secret", true, false),
            ("deep/../deep/file", true, false),
            ("deep", false, false),
            ("pipe", false, false),
            ("socket", false, false),
            ("zero", false, false),
            ("missing", false, false),
            ("deep/file/more", false, false),
            ("", false, false),
        ] {
            assert_eq!(open(&folder.join(path)).is_ok(), is_opened, "{path}");
            assert_eq!(open_below(&folder, Path::new(path)).is_ok(), is_opened_below, "{path}");
        }
        let absolute = folder.join("deep/file");
        assert!(open_below(&folder, &absolute).is_err());
    }

    #[test]
    fn a_file_with_more_than_the_limit_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        fs::write(&path, "four").unwrap();
        for (limit, expected) in [(3, None), (4, Some("four")), (5, Some("four"))] {
            let read = read_up_to(&path, limit).ok().map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(read.as_deref(), expected, "{limit}");
        }
    }
}
