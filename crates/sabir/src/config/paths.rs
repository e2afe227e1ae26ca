//! Values that name files and folders: the database, workspaces, commands.
//!
//! A relative path in the file begins at the folder of the file; elsewhere it begins at the working directory. `~/` is the
//! home directory everywhere, since no shell has replaced it in a file. What people paste from other programs
//! (`sqlite::memory:`, options after `?`) is refused rather than made into a file of that name.

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::origin::{Configured, Problem, SettingValue, ValueOrigin};
use super::postgres_url::PostgresUrl;
use super::raw::Raw;
use super::sections::{Config, ProgramConfig, ServerSection, StoreUrl, UpstreamConfig};
use super::values::ValueKind;

/// Where tasks are kept: `sqlite:PATH`, `postgres://...` or `memory:`.
pub fn store_url() -> ValueKind<StoreUrl> {
    let examples = json!({"type": "string", "examples": ["sqlite:sabir.db", PostgresUrl::EXPECTED, "memory:"]});
    ValueKind::new(examples, |raw| {
        let expected = format!("\"sqlite:PATH\", \"{}\" or \"memory:\"", PostgresUrl::EXPECTED);
        let text = raw.as_text().ok_or_else(|| raw.unexpected(&expected))?;
        if PostgresUrl::is_meant(text) {
            let url = PostgresUrl::parse(text)?;
            let shown = json!(url.to_string());
            return Ok((StoreUrl::Postgres(url), shown));
        }
        if ["memory:", "memory", "sqlite::memory:"].contains(&text) {
            return Ok((StoreUrl::Memory, json!("memory:")));
        }
        let path = text.strip_prefix("sqlite:").ok_or_else(|| {
            // Other spellings of an address may have a password.
            match text.contains(['@', '=', ' ']) {
                true => format!("does not fit; expected {expected}"),
                false => raw.unexpected(&expected),
            }
        })?;
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.contains('?') {
            return Err(format!("is {raw}; options after ? are not known, expected sqlite:PATH"));
        }
        if path.is_empty() || path.ends_with('/') || path.contains('\0') {
            return Err(format!("is {raw}; expected the name of a file after sqlite:"));
        }
        Ok((StoreUrl::Sqlite(PathBuf::from(path)), json!(format!("sqlite:{path}"))))
    })
}

/// The same of a word of the command line that is no setting. `Err` follows the name of the flag.
pub fn parse_store_url(text: &str) -> Result<StoreUrl, String> {
    store_url().read(&Raw::untyped(text)).map(|(url, _)| url)
}

pub fn folder() -> ValueKind<PathBuf> {
    ValueKind::new(json!({"type": "string"}), |raw| {
        let path = raw.as_text().filter(|path| !path.is_empty()).ok_or_else(|| raw.unexpected("a folder"))?;
        Ok((PathBuf::from(path), json!(path)))
    })
    .called("a folder")
}

/// A file with words for a model.
pub fn prompt_file() -> ValueKind<PathBuf> {
    file("a file with text")
}

pub fn pem_file() -> ValueKind<PathBuf> {
    file("a PEM file")
}

pub fn token_file() -> ValueKind<PathBuf> {
    file("a file with a token")
}

fn file(expected: &'static str) -> ValueKind<PathBuf> {
    ValueKind::new(json!({"type": "string"}), move |raw| {
        let path = raw.as_text().filter(|path| !path.is_empty()).ok_or_else(|| raw.unexpected(expected))?;
        Ok((PathBuf::from(path), json!(path)))
    })
}

/// A program and its first arguments.
pub fn command() -> ValueKind<Vec<String>> {
    let arguments = arguments();
    ValueKind::new(arguments.schema.clone(), move |raw| match arguments.read(raw)? {
        (words, shown) if words.first().is_some_and(|program| !program.is_empty()) => Ok((words, shown)),
        _ => Err("names no program; expected a list such as [\"my-agent\", \"--verbose\"]".to_owned()),
    })
}

/// Arguments to the letter, blanks and commas included; a text alone is one argument.
pub fn arguments() -> ValueKind<Vec<String>> {
    let text = json!({"type": "string"});
    ValueKind::new(json!({"anyOf": [{"type": "array", "items": text}, text]}), |raw| {
        let list = match raw {
            Raw::List(list) => list.as_slice(),
            single => std::slice::from_ref(single),
        };
        let mut words = Vec::new();
        for part in list {
            match part {
                Raw::Text(word) | Raw::Untyped(word) if !word.contains('\0') => words.push(word.clone()),
                other => return Err(format!("holds {other}; expected texts")),
            }
        }
        Ok((words.clone(), json!(words)))
    })
}

/// Where the paths of a configuration begin.
pub struct Folders<'a> {
    /// Of the configuration file; empty is the working directory.
    pub file: &'a Path,
    pub home: Option<&'a Path>,
}

impl Folders<'_> {
    /// Completes the paths of all settings, and tells which cannot be.
    pub fn complete_all(&self, config: &mut Configured<Config>) -> Vec<Problem> {
        let Configured { subject, values } = config;
        let mut values = Values { folders: self, values, problems: Vec::new() };
        if let StoreUrl::Sqlite(path) = &mut subject.store.url {
            values.complete("store.url", "store.url", &mut [path]);
            values.show("store.url", json!(format!("sqlite:{}", path.display())));
        }
        if let Some(folder) = &mut subject.store.folder {
            values.complete("store.folder", "store.folder", &mut [folder]);
            values.show("store.folder", json!(folder.display().to_string()));
        }
        let ServerSection { tls_cert, tls_key, tls_client_ca, .. } = &mut subject.server;
        for (key, path) in
            [("server.tls_cert", tls_cert), ("server.tls_key", tls_key), ("server.tls_client_ca", tls_client_ca)]
        {
            if let Some(path) = path {
                values.complete(key, key, &mut [path]);
                values.show(key, json!(path.display().to_string()));
            }
        }
        for agent in subject.agents.iter_mut().chain(&mut subject.routed_agents).filter(|agent| agent.is_program()) {
            let key = |leaf: &str| format!("agent.{}.{leaf}", agent.id);
            let ProgramConfig { workspace, workspace_roots, command, .. } = &mut agent.program;
            values.complete(&key("workspace"), "workspace", &mut [workspace]);
            values.show(&key("workspace"), json!(workspace.display().to_string()));
            if !workspace_roots.is_empty() {
                values.complete(
                    &key("workspace_roots"),
                    "workspace_roots",
                    &mut workspace_roots.iter_mut().collect::<Vec<_>>(),
                );
                let shown: Vec<String> = workspace_roots.iter().map(|root| root.display().to_string()).collect();
                values.show(&key("workspace_roots"), json!(shown));
            }
            // A name without a slash is looked for on the PATH.
            if let Some(program) = command.first_mut().filter(|program| program.contains('/')) {
                let mut path = PathBuf::from(&*program);
                values.complete(&key("command"), "command", &mut [&mut path]);
                *program = path.to_string_lossy().into_owned();
                values.show(&key("command"), json!(command));
            }
        }
        for agent in subject.agents.iter_mut().chain(&mut subject.routed_agents) {
            let key = |leaf: &str| format!("agent.{}.{leaf}", agent.id);
            if let Some(path) = &mut agent.openai.system_prompt_file {
                values.complete(&key("system_prompt_file"), "system_prompt_file", &mut [path]);
                values.show(&key("system_prompt_file"), json!(path.display().to_string()));
            }
            for server in &mut agent.openai.mcp_servers {
                if let Some(program) = server.command.first_mut().filter(|program| program.contains('/')) {
                    let mut path = PathBuf::from(&*program);
                    values.complete(&key("mcp_servers"), "mcp_servers", &mut [&mut path]);
                    *program = path.to_string_lossy().into_owned();
                }
            }
            let UpstreamConfig { token_file, oauth, client_certificate, client_key, ca, .. } =
                &mut agent.remote.upstream;
            for (leaf, path) in [
                ("token_file", token_file),
                ("oauth_subject_token_file", &mut oauth.subject_token_file),
                ("client_certificate", client_certificate),
                ("client_key", client_key),
                ("ca", ca),
            ] {
                if let Some(path) = path {
                    let key = format!("agent.{}.{leaf}", agent.id);
                    values.complete(&key, leaf, &mut [path]);
                    values.show(&key, json!(path.display().to_string()));
                }
            }
        }
        values.problems
    }

    /// The whole path, or what is wrong with it in words that follow the name of the setting.
    fn complete(&self, path: &Path, origin: &ValueOrigin) -> Result<PathBuf, String> {
        let path = expand_home(path, self.home)?;
        match origin {
            ValueOrigin::File { .. } if path == Path::new(".") && self.file != Path::new("") => {
                Ok(self.file.to_owned())
            }
            ValueOrigin::File { .. } => Ok(self.file.join(path)),
            _ => Ok(path),
        }
    }
}

/// The values of a configuration while their paths are completed.
struct Values<'a> {
    folders: &'a Folders<'a>,
    values: &'a mut [SettingValue],
    problems: Vec<Problem>,
}

impl Values<'_> {
    /// `leaf` is the name of the setting in messages.
    fn complete(&mut self, key: &str, leaf: &str, paths: &mut [&mut PathBuf]) {
        let Some(value) = self.values.iter().find(|value| value.key == key) else { return };
        for path in paths {
            match self.folders.complete(path, &value.origin) {
                Ok(whole) => **path = whole,
                Err(words) => self.problems.push(Problem::of(&value.origin, leaf, &words)),
            }
        }
    }

    fn show(&mut self, key: &str, shown: Value) {
        if let Some(value) = self.values.iter_mut().find(|value| value.key == key) {
            value.value = shown;
        }
    }
}

/// Puts the home directory in the place of `~`.
pub fn expand_home(path: &Path, home: Option<&Path>) -> Result<PathBuf, String> {
    let mut parts = path.components();
    let Some(Component::Normal(first)) = parts.next() else { return Ok(path.to_owned()) };
    match (first.to_str(), home) {
        (Some("~"), Some(home)) => Ok(home.components().chain(parts).collect()),
        (Some("~"), None) => Err(format!("names {}, but HOME is not set; write the directory out", path.display())),
        (Some(name), _) if name.starts_with('~') => {
            let words = "~ is only understood as ~/, your own home; write the directory out";
            Err(format!("names {}; {words}", path.display()))
        }
        _ => Ok(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome<V: 'static>(kind: &ValueKind<V>, raw: &Raw) -> String {
        kind.read(raw).map_or_else(|words| words, |(_, shown)| shown.to_string())
    }

    fn texts(texts: &[&str]) -> Raw {
        Raw::List(texts.iter().map(|text| Raw::Text((*text).to_owned())).collect())
    }

    #[test]
    fn stores_are_files_databases_or_memory() {
        for (text, expected) in [
            ("sqlite:sabir.db", "\"sqlite:sabir.db\""),
            ("sqlite:/var/lib/sabir.db", "\"sqlite:/var/lib/sabir.db\""),
            ("sqlite:///var/lib/sabir.db", "\"sqlite:/var/lib/sabir.db\""),
            ("memory:", "\"memory:\""),
            ("sqlite::memory:", "\"memory:\""),
            ("sqlite:", "is \"sqlite:\"; expected the name of a file after sqlite:"),
            ("sqlite:x?mode=rwc", "is \"sqlite:x?mode=rwc\"; options after ? are not known, expected sqlite:PATH"),
            (
                "host=127.0.0.1 password=s3cret",
                "does not fit; expected \"sqlite:PATH\", \"postgres://USER@HOST/DATABASE\" or \"memory:\"",
            ),
            ("sabir.db", "is \"sabir.db\"; expected \"sqlite:PATH\", \"postgres://USER@HOST/DATABASE\" or \"memory:\""),
            (
                "mysql://me:secret@db/sabir",
                "does not fit; expected \"sqlite:PATH\", \"postgres://USER@HOST/DATABASE\" or \"memory:\"",
            ),
            ("postgres://me:secret@db/sabir", "\"postgres://me@db/sabir\""),
            ("postgresql://me:secret@db/sabir", "\"postgres://me@db/sabir\""),
            (
                "postgres://me:secret@db",
                "names a Postgres database, but the name of the database is missing; expected postgres://USER@HOST/DATABASE",
            ),
        ] {
            assert_eq!(outcome(&store_url(), &Raw::untyped(text)), expected, "{text:?}");
        }
    }

    #[test]
    fn paths_of_the_file_begin_at_its_folder_and_the_tilde_is_home() {
        let file = |path| (path, ValueOrigin::File { name: "conf/sabir.toml".to_owned(), line: 1 });
        let flag = |path| (path, ValueOrigin::Flag("--store"));
        let home = Some("/home/me");
        for ((path, origin), folder, home, expected) in [
            (file("repo"), "conf", home, "conf/repo"),
            (file("./agent"), "conf", home, "conf/./agent"),
            (file("../repo"), "/etc/sabir", home, "/etc/sabir/../repo"),
            (file("."), "conf", home, "conf"),
            (file("."), "", home, "."),
            (file("./agent"), "", home, "./agent"),
            (file("/srv/repo"), "conf", home, "/srv/repo"),
            (file("~/repo"), "conf", home, "/home/me/repo"),
            (file("~"), "conf", home, "/home/me"),
            (file("./~"), "conf", home, "conf/./~"),
            (flag("repo"), "conf", home, "repo"),
            (flag("~/repo"), "conf", home, "/home/me/repo"),
            (flag("~/repo"), "", None, "names ~/repo, but HOME is not set; write the directory out"),
            (
                file("~you/repo"),
                "conf",
                home,
                "names ~you/repo; ~ is only understood as ~/, your own home; write the directory out",
            ),
        ] {
            let folders = Folders { file: Path::new(folder), home: home.map(Path::new) };
            let completed = folders.complete(Path::new(path), &origin);
            let result = completed.map_or_else(|words| words, |path| path.display().to_string());
            assert_eq!(result, expected, "{path} in {folder:?}");
        }
    }

    #[test]
    fn commands_begin_with_a_program() {
        for (raw, expected) in [
            (texts(&["npx", "x"]), r#"["npx","x"]"#),
            (Raw::Text("my agent".to_owned()), r#"["my agent"]"#),
            (Raw::untyped("/opt/a, b"), r#"["/opt/a, b"]"#),
            (texts(&["x", "", " y "]), r#"["x",""," y "]"#),
            (Raw::Text("".to_owned()), "names no program; expected a list such as [\"my-agent\", \"--verbose\"]"),
            (texts(&[]), "names no program; expected a list such as [\"my-agent\", \"--verbose\"]"),
            (texts(&[""]), "names no program; expected a list such as [\"my-agent\", \"--verbose\"]"),
            (Raw::List(vec![Raw::Integer(1)]), "holds 1; expected texts"),
        ] {
            assert_eq!(outcome(&command(), &raw), expected, "{raw:?}");
        }
    }
}
