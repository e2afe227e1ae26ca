//! Finds the file of a program, as a shell would, and says what is wrong if there is none.
//!
//! The operating system would find it too, but only in the guard, which could report nothing but an error number.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::launch::LaunchError;

/// The `PATH` of an environment that has none.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The folder as an absolute path.
pub(super) fn folder(folder: &Path) -> Result<PathBuf, LaunchError> {
    let full = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    match full.metadata() {
        Ok(found) if found.is_dir() => Ok(full),
        Ok(_) => Err(LaunchError::NotAFolder(full)),
        Err(_) => Err(LaunchError::NoFolder(full)),
    }
}

/// The program's file. A path is relative to the folder in which the program starts; a name is looked up in the `PATH` that
/// the program gets.
pub(super) fn program(
    program: &OsStr,
    folder: &Path,
    environment: &[(OsString, OsString)],
) -> Result<PathBuf, LaunchError> {
    if program.as_bytes().contains(&b'/') {
        let file = folder.join(program);
        return match look(&file) {
            Found::Program => Ok(file),
            Found::NotExecutable => Err(LaunchError::NotExecutable(file)),
            Found::Nothing => Err(LaunchError::NoFile(file)),
        };
    }
    let path = environment.iter().rev().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value);
    let mut not_executable = None;
    for place in std::env::split_paths(path) {
        let file = folder.join(place).join(program);
        match look(&file) {
            Found::Program => return Ok(file),
            Found::NotExecutable => not_executable = not_executable.or(Some(file)),
            Found::Nothing => {}
        }
    }
    match not_executable {
        Some(file) => Err(LaunchError::NotExecutable(file)),
        None => Err(LaunchError::NotInPath { program: program.to_owned(), path: path.to_owned() }),
    }
}

enum Found {
    Program,
    NotExecutable,
    Nothing,
}

fn look(file: &Path) -> Found {
    match file.metadata() {
        Ok(found) if found.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok() => Found::Program,
        Ok(found) if found.is_file() => Found::NotExecutable,
        _ => Found::Nothing,
    }
}
