//! The database that is used when nobody names one: one for each folder that servers belong to, below the user's data
//! directory, so that two projects do not share one.
//!
//! A server with the file `sabir.toml` belongs to the folder of that file; another file has a database of its own name
//! there. It is not in the folder itself, where a coding agent may work. Without a home directory it is `sabir.db` in the
//! working directory. Earlier versions had one database for each user: where that is the only one, it stays in use.
//!
//! `sabir proxy` has a database for each remote agent, wherever it is started, so that it can run beside a `sabir serve` and tasks
//! of two remote agents never meet.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use sabir_outbound::{Target, sha256};

use super::environment::Environment;

/// Where the database is when nobody says.
#[derive(Debug, PartialEq)]
pub struct DefaultDatabase {
    pub path: PathBuf,
    /// What to tell about it.
    pub notice: Option<String>,
}

/// `folder` is the absolute one that the server belongs to; `file` is the name of the configuration file.
pub fn default_database(
    environment: &Environment,
    folder: &Path,
    file: Option<&OsStr>,
    exists: impl Fn(&Path) -> bool,
) -> DefaultDatabase {
    let Some(data) = data_directory(environment) else {
        return DefaultDatabase { path: PathBuf::from("sabir.db"), notice: None };
    };
    let file = Path::new(file.unwrap_or(OsStr::new("sabir.toml")));
    let name = if file.extension() == Some(OsStr::new("toml")) { file.file_stem() } else { file.file_name() };
    let mut name = name.unwrap_or(OsStr::new("sabir")).to_owned();
    name.push(".db");
    // The path of the folder, without its root, below ours.
    let parts = folder.components().filter(|part| matches!(part, Component::Normal(_)));
    let own = data.join("sabir/folders").join(parts.collect::<PathBuf>()).join(name);
    let shared = data.join("sabir/sabir.db");
    if exists(&own) || !exists(&shared) {
        return DefaultDatabase { path: own, notice: None };
    }
    let notice = format!(
        "tasks are kept in {}, the one database of earlier versions; to give this folder a database of its own, start \
         once with --store sqlite:{}, or move the old one there",
        shared.display(),
        own.display()
    );
    DefaultDatabase { path: shared, notice: Some(notice) }
}

/// The database of `sabir proxy URL`.
pub fn proxy_database(environment: &Environment, url: &str) -> DefaultDatabase {
    let name = proxy_name(url);
    let path = match data_directory(environment) {
        Some(data) => data.join("sabir/proxies").join(format!("{name}.db")),
        None => PathBuf::from(format!("sabir-proxy-{name}.db")),
    };
    DefaultDatabase { path, notice: None }
}

/// Host and port, and for an agent below a path a digest of all. The card of a server is the server.
fn proxy_name(url: &str) -> String {
    // A URL that cannot be used is refused before any database is opened.
    let Ok(target) = Target::parse(url) else { return "unknown".to_owned() };
    let url = target.to_string();
    let path = url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap_or_default();
    let path = path.split("/.well-known/").next().unwrap_or_default().trim_end_matches('/');
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    let host = target.host.to_string();
    let shown: String = host.chars().map(plain).filter(|letter| *letter != '[').take(LONGEST_NAME).collect();
    let name = format!("{}-{}", shown.trim_matches('-'), target.port);
    if path.is_empty() && host.len() <= LONGEST_NAME {
        return name;
    }
    let digest: String =
        sha256(format!("{host}{path}").as_bytes())[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let words: String = path.chars().map(plain).take(LONGEST_NAME).collect();
    match words.trim_matches('-') {
        "" => format!("{name}-{digest}"),
        words => format!("{name}-{words}-{digest}"),
    }
}

/// Names of files end somewhere, and others are made from this one.
const LONGEST_NAME: usize = 60;

pub fn data_directory(environment: &Environment) -> Option<PathBuf> {
    if let Some(data) = environment.path("XDG_DATA_HOME").filter(|data| data.is_absolute()) {
        return Some(data);
    }
    let data = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    Some(environment.path("HOME")?.join(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_in(variables: &[(&str, &str)], folder: &str, file: Option<&str>, existing: &[&str]) -> DefaultDatabase {
        let environment = Environment::new(variables.iter().copied());
        let exists = |path: &Path| existing.iter().any(|known| path == Path::new(known));
        default_database(&environment, Path::new(folder), file.map(OsStr::new), exists)
    }

    #[test]
    fn each_folder_has_a_database_of_its_own_in_the_data_directory() {
        let home = match cfg!(target_os = "macos") {
            true => "/h/Library/Application Support/sabir/folders/work/sabir.db",
            false => "/h/.local/share/sabir/folders/work/sabir.db",
        };
        let data = ("XDG_DATA_HOME", "/data");
        for (variables, folder, file, expected) in [
            (&[data, ("HOME", "/h")][..], "/work/a", None, "/data/sabir/folders/work/a/sabir.db"),
            (&[data], "/work/b", None, "/data/sabir/folders/work/b/sabir.db"),
            (&[data], "/work/a", Some("sabir.toml"), "/data/sabir/folders/work/a/sabir.db"),
            (&[data], "/work/a", Some("staging.toml"), "/data/sabir/folders/work/a/staging.db"),
            (&[data], "/work/a", Some("staging.conf"), "/data/sabir/folders/work/a/staging.conf.db"),
            (&[data], "/", None, "/data/sabir/folders/sabir.db"),
            (&[("XDG_DATA_HOME", "relative"), ("HOME", "/h")], "/work", None, home),
            (&[("HOME", "/h")], "/work", None, home),
            (&[("HOME", "")], "/work", None, "sabir.db"),
            (&[], "/work", None, "sabir.db"),
        ] {
            let expected = DefaultDatabase { path: PathBuf::from(expected), notice: None };
            assert_eq!(default_in(variables, folder, file, &[]), expected, "{variables:?} {folder} {file:?}");
        }
    }

    #[test]
    fn each_remote_agent_has_a_database_of_its_own() {
        let name = |url: &str| {
            let DefaultDatabase { path, notice } = proxy_database(&Environment::new([("XDG_DATA_HOME", "/data")]), url);
            assert_eq!((path.parent(), notice), (Some(Path::new("/data/sabir/proxies")), None), "{url}");
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        for (url, expected) in [
            ("https://agents.example.com", "agents.example.com-443.db"),
            ("https://Agents.example.com:443/", "agents.example.com-443.db"),
            ("https://agents.example.com/.well-known/agent-card.json", "agents.example.com-443.db"),
            ("http://agents.example.com", "agents.example.com-80.db"),
            ("http://localhost:9999/", "localhost-9999.db"),
            ("http://[fd00::1]:9999", "fd00--1-9999.db"),
        ] {
            assert_eq!(name(url), expected);
        }
        // Several agents of one server are told apart by a digest, as what is left of a path may be the same.
        let below = |path: &str| name(&format!("https://a.example/{path}"));
        assert!(below("agents/one").starts_with("a.example-443-agents-one-"));
        assert_eq!(below("agents/one"), below("agents/one/.well-known/agent.json"));
        assert_ne!(below("agents/one"), below("agents-one"));
        assert_ne!(below("?agent=1"), below("?agent=2"));
        let long = |last: &str| name(&format!("https://{}.{}.{last}.example/", "a".repeat(60), "b".repeat(60)));
        assert!(long("one") != long("two") && long("one").len() < 100, "{}", long("one"));

        let nowhere = proxy_database(&Environment::new([("HOME", "")]), "http://localhost:9999");
        assert_eq!(nowhere.path, Path::new("sabir-proxy-localhost-9999.db"));
    }

    #[test]
    fn the_one_database_of_earlier_versions_stays_in_use_where_it_is_the_only_one() {
        let (old, own) = ("/data/sabir/sabir.db", "/data/sabir/folders/work/sabir.db");
        for (existing, expected, is_told) in
            [(&[][..], own, false), (&[old], old, true), (&[own], own, false), (&[old, own], own, false)]
        {
            let database = default_in(&[("XDG_DATA_HOME", "/data")], "/work", None, existing);
            assert_eq!(
                (database.path.to_str().unwrap(), database.notice.is_some()),
                (expected, is_told),
                "{existing:?}"
            );
        }
    }
}
