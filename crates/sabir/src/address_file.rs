//! The file in which a server says where it is: `sabir.db.server.json` beside `sabir.db`, and with Postgres
//! `node.server.json` beside `node` in the folder of the node.
//!
//! It is there while the server runs. A server that is killed leaves it behind, so readers believe it only while a process
//! holds the lock of the database or of the node, which ends with its process. The next server removes what it finds before it
//! is ready.

use std::any::Any;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sabir_engine::{Clock, SystemClock};
use sabir_store::SqliteStore;
use serde_json::{Value, json};

/// The file has a few hundred bytes.
const LONGEST: u64 = 64 * 1024;

/// Where a server is reached from its own machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    pub url: String,
    pub started_by: StartedBy,
    /// The certificate of the authority that clients must trust, with `--dev-tls`.
    pub authority: Option<PathBuf>,
}

/// The command whose process the server runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedBy {
    Serve,
    /// It ends with the program that has started `sabir mcp`.
    Mcp,
}

impl StartedBy {
    fn name(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Mcp => "mcp",
        }
    }
}

/// The file of this server. It is removed when this is dropped.
pub struct AddressFile {
    path: PathBuf,
    /// While it is there, no other server can have the database or the node, and so none can have written the file.
    _lock: Box<dyn Any + Send + Sync>,
}

impl AddressFile {
    /// For the server that holds the lock of `local_file` (`StoreSection::local_file`) by `lock`.
    pub fn claim(local_file: &Path, lock: impl Any + Send + Sync) -> Self {
        let claimed = Self { path: path_beside(&real_path(local_file)), _lock: Box::new(lock) };
        claimed.remove();
        claimed
    }

    /// Readers see all of it or nothing.
    pub fn write(&self, address: &ServerAddress) -> io::Result<()> {
        let mut content = json!({
            "url": address.url,
            "command": address.started_by.name(),
            "pid": std::process::id(),
            "started": SystemClock.now().to_string(),
            "version": env!("CARGO_PKG_VERSION"),
        });
        if let Some(authority) = &address.authority {
            content["ca"] = authority.display().to_string().into();
        }
        let new = with_suffix(&self.path, ".new");
        remove_if_there(&new)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(format!("{content}\n").as_bytes())?;
        fs::rename(new, &self.path)
    }

    fn remove(&self) {
        if let Err(error) = remove_if_there(&self.path) {
            tracing::warn!(%error, file = %self.path.display(), "cannot remove the address file");
        }
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The address of the server that runs with this database, or as this node.
pub fn read(database: &Path) -> Option<ServerAddress> {
    let database = real_path(database);
    if !SqliteStore::is_open_elsewhere(&database) {
        return None;
    }
    let path = path_beside(&database);
    // Neither a link to a file that somebody else wrote, nor something that never answers.
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let (known, owner_of_database) = (file.metadata().ok()?, database.metadata().ok()?.uid());
    if !known.is_file() || known.nlink() != 1 || !is_trusted(known.uid(), owner_of_database) {
        return None;
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    let content: Value = serde_json::from_str(&text).ok()?;
    let url = content["url"].as_str()?.to_owned();
    let started_by = match content["command"].as_str() {
        Some("mcp") => StartedBy::Mcp,
        _ => StartedBy::Serve,
    };
    Some(ServerAddress { url, started_by, authority: content["ca"].as_str().map(PathBuf::from) })
}

/// Clients show their tokens to the server that the file names, so nobody else who can write into the folder may name it.
fn is_trusted(owner: u32, owner_of_database: u32) -> bool {
    const ROOT: u32 = 0;
    owner == owner_of_database || owner == ROOT
}

/// One name for a database that has several by links.
fn real_path(database: &Path) -> PathBuf {
    database.canonicalize().or_else(|_| std::path::absolute(database)).unwrap_or_else(|_| database.to_owned())
}

fn path_beside(database: &Path) -> PathBuf {
    with_suffix(database, ".server.json")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn claim(database: &Path) -> AddressFile {
        AddressFile::claim(database, ())
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_address_is_read_while_its_server_has_the_database() {
        let folder = tempfile::tempdir().unwrap();
        let (database, link) = (folder.path().join("sabir.db"), folder.path().join("link.db"));
        // The lock of a server.
        let locked = File::create(&database).unwrap();
        locked.lock().unwrap();
        symlink(&database, &link).unwrap();
        assert_eq!(read(&database), None, "it is not ready yet");

        let server = claim(&link);
        for (started_by, authority) in
            [(StartedBy::Serve, None), (StartedBy::Mcp, None), (StartedBy::Serve, Some(PathBuf::from("/x/ca.pem")))]
        {
            let address = ServerAddress { url: "http://127.0.0.1:7".into(), started_by, authority };
            server.write(&address).unwrap();
            assert_eq!((read(&database), read(&link)), (Some(address.clone()), Some(address)));
        }
        let file = folder.path().join("sabir.db.server.json");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["link.db", "sabir.db", "sabir.db.server.json"]);

        locked.unlock().unwrap();
        assert_eq!(read(&database), None, "the server was killed");
        locked.lock().unwrap();
        for content in ["", "{", "{}", r#"{"url": 7}"#, "[]"] {
            fs::write(&file, content).unwrap();
            assert_eq!(read(&database), None, "{content:?}");
        }
        drop(server);
        assert_eq!(names(folder.path()), ["link.db", "sabir.db"]);
    }

    #[test]
    fn what_a_killed_server_left_is_gone_before_the_next_one_is_ready() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("sabir.db");
        for name in ["sabir.db", "sabir.db.server.json", "sabir.db.server.json.new"] {
            fs::write(folder.path().join(name), "{}").unwrap();
        }
        let server = claim(&database);
        assert!(!folder.path().join("sabir.db.server.json").exists());
        server
            .write(&ServerAddress { url: "http://127.0.0.1:7".into(), started_by: StartedBy::Serve, authority: None })
            .unwrap();
        assert_eq!(names(folder.path()), ["sabir.db", "sabir.db.server.json"]);
    }

    #[test]
    fn only_the_owner_of_the_database_says_where_its_server_is() {
        for (owner, owner_of_database, expected) in
            [(1000, 1000, true), (0, 1000, true), (1001, 1000, false), (1000, 0, false), (0, 0, true)]
        {
            assert_eq!(is_trusted(owner, owner_of_database), expected, "{owner} {owner_of_database}");
        }
    }
}
