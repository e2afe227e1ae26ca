//! The database that stands for the store of the arguments, and the folder that the nodes have theirs in.
//!
//! The name of the database is in a file beside the one of `sqlite:PATH`. So a server that is started again on the same file
//! finds its tasks, and one that is started in a new folder of the same name does not.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sabir_testkit::postgres;

pub struct Database {
    pub url: String,
    folder: PathBuf,
    is_temporary: bool,
}

impl Database {
    /// `server` is the URL of any database of the Postgres.
    pub fn open(server: &str, store: Option<&str>) -> Result<Self, String> {
        let url_of =
            |name: &str| server.rsplit_once('/').map_or(server.to_owned(), |(start, _)| format!("{start}/{name}"));
        let failed = |error: io::Error| format!("cannot make a database: {error}");
        let Some(path) = store.and_then(|store| store.strip_prefix("sqlite:")).map(PathBuf::from) else {
            let name = fresh_name();
            postgres::create_database(server, &name).map_err(failed)?;
            let folder = std::env::temp_dir().join(format!("{name}-nodes"));
            return Ok(Self { url: url_of(&name), folder, is_temporary: true });
        };
        let path = std::path::absolute(path).map_err(failed)?;
        let name_file = with_ending(&path, ".postgres");
        let name = match fs::read_to_string(&name_file) {
            Ok(name) => name,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let name = fresh_name();
                postgres::create_database(server, &name).map_err(failed)?;
                fs::write(&name_file, &name).map_err(failed)?;
                name
            }
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { url: url_of(&name), folder: with_ending(&path, "-nodes"), is_temporary: false })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder that goes when the nodes have ended.
    pub fn temporary(&self) -> Option<&Path> {
        self.is_temporary.then_some(&self.folder)
    }
}

fn fresh_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    format!("cluster_{}_{now}", std::process::id())
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}
