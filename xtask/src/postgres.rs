//! The Postgres and the PgBouncer of the workspace tests, from Debian's packages. The tests start servers of their own, in
//! temporary folders (`testkit::postgres`).

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::apt;

/// Tests read it: `required` makes a missing Postgres an error, elsewhere its tests are skipped.
pub const REQUIRED_VARIABLE: &str = "TESTKIT_POSTGRES";

/// Installs what is missing.
pub fn ready() -> Result<()> {
    match missing_packages().as_slice() {
        [] => Ok(()),
        missing => apt::install(missing),
    }
}

pub fn missing_packages() -> Vec<&'static str> {
    let mut missing = Vec::from_iter(missing_server());
    if !Path::new("/usr/sbin/pgbouncer").is_file() && !is_on_path("pgbouncer") {
        missing.push("pgbouncer");
    }
    missing
}

/// The package of the server, if it is not there.
pub fn missing_server() -> Option<&'static str> {
    // Debian keeps the programs of a server apart, by version.
    let mut versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let is_there = versions.any(|entry| entry.path().join("bin/initdb").is_file()) || is_on_path("initdb");
    (!is_there).then_some("postgresql")
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
