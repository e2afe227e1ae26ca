//! Values that name files and folders: the database, workspaces, commands.
//!
//! A path is taken as it is, relative to the working directory. What people paste from other programs
//! (`sqlite::memory:`, options after `?`, `~/`) is refused rather than made into a file of that name.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::environment::Environment;
use super::raw::Raw;
use super::sections::StoreUrl;
use super::values::Kind;

/// Where tasks are kept: `sqlite:PATH` or `memory:`.
pub fn store_url() -> Kind<StoreUrl> {
    Kind::new(json!({"type": "string", "pattern": "^(sqlite:.+|memory:?)$"}), |raw| {
        let expected = "\"sqlite:PATH\" or \"memory:\"";
        let text = raw.as_text().ok_or_else(|| raw.unexpected(expected))?;
        if text.starts_with("postgres:") || text.starts_with("postgresql:") {
            // Such an address often holds a password, so it is not repeated.
            return Err("names a Postgres database, which comes in a later version; use sqlite:PATH".to_owned());
        }
        if ["memory:", "memory", "sqlite::memory:"].contains(&text) {
            return Ok((StoreUrl::Memory, json!("memory:")));
        }
        let path = text.strip_prefix("sqlite:").ok_or_else(|| raw.unexpected(expected))?;
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.contains('?') {
            return Err(format!("is {raw}; options after ? are not known, expected sqlite:PATH"));
        }
        if path.is_empty() || path.ends_with('/') || path.contains('\0') {
            return Err(format!("is {raw}; expected the name of a file after sqlite:"));
        }
        if path.starts_with('~') {
            return Err(format!("is {raw}; ~ is not understood here, write the directory out"));
        }
        Ok((StoreUrl::Sqlite(PathBuf::from(path)), json!(format!("sqlite:{path}"))))
    })
}

pub fn folder() -> Kind<PathBuf> {
    Kind::new(json!({"type": "string"}), |raw| {
        let path = raw.as_text().filter(|path| !path.is_empty()).ok_or_else(|| raw.unexpected("a folder"))?;
        if path.starts_with('~') {
            return Err(format!("is {raw}; ~ is not understood here, write the directory out"));
        }
        Ok((PathBuf::from(path), json!(path)))
    })
    .called("a folder")
}

/// A program and its first arguments.
pub fn command() -> Kind<Vec<String>> {
    let arguments = arguments();
    Kind::new(arguments.schema.clone(), move |raw| match arguments.read(raw)? {
        (words, shown) if words.first().is_some_and(|program| !program.is_empty()) => Ok((words, shown)),
        _ => Err("names no program; expected a list such as [\"my-agent\", \"--verbose\"]".to_owned()),
    })
}

/// Arguments to the letter, blanks and commas included; a text alone is one argument.
pub fn arguments() -> Kind<Vec<String>> {
    let text = json!({"type": "string"});
    Kind::new(json!({"anyOf": [{"type": "array", "items": text}, text]}), |raw| {
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

/// The file that is used when nobody names one: in the user's data directory, or here when there is no home.
pub fn default_database(environment: &Environment) -> PathBuf {
    if let Some(data) = environment.path("XDG_DATA_HOME").filter(|data| data.is_absolute()) {
        return data.join("sabir/sabir.db");
    }
    let Some(home) = environment.path("HOME") else {
        return PathBuf::from("sabir.db");
    };
    let data = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    home.join(Path::new(data)).join("sabir/sabir.db")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say<V: 'static>(kind: &Kind<V>, raw: &Raw) -> String {
        kind.read(raw).map_or_else(|words| words, |(_, shown)| shown.to_string())
    }

    fn texts(texts: &[&str]) -> Raw {
        Raw::List(texts.iter().map(|text| Raw::Text((*text).to_owned())).collect())
    }

    #[test]
    fn stores_are_files_or_memory() {
        for (text, expected) in [
            ("sqlite:sabir.db", "\"sqlite:sabir.db\""),
            ("sqlite:/var/lib/sabir.db", "\"sqlite:/var/lib/sabir.db\""),
            ("sqlite:///var/lib/sabir.db", "\"sqlite:/var/lib/sabir.db\""),
            ("memory:", "\"memory:\""),
            ("sqlite::memory:", "\"memory:\""),
            ("sqlite:", "is \"sqlite:\"; expected the name of a file after sqlite:"),
            ("sqlite:~/x.db", "is \"sqlite:~/x.db\"; ~ is not understood here, write the directory out"),
            ("sqlite:x?mode=rwc", "is \"sqlite:x?mode=rwc\"; options after ? are not known, expected sqlite:PATH"),
            ("sabir.db", "is \"sabir.db\"; expected \"sqlite:PATH\" or \"memory:\""),
            ("mysql://me:secret@db/sabir", "does not fit; expected \"sqlite:PATH\" or \"memory:\""),
            (
                "postgres://me:secret@db/sabir",
                "names a Postgres database, which comes in a later version; use sqlite:PATH",
            ),
        ] {
            assert_eq!(say(&store_url(), &Raw::untyped(text)), expected, "{text:?}");
        }
    }

    #[test]
    fn folders_are_written_out() {
        for (text, expected) in [
            ("/srv/repo", "\"/srv/repo\""),
            ("~/repo", "is \"~/repo\"; ~ is not understood here, write the directory out"),
            ("", "is \"\"; expected a folder"),
        ] {
            assert_eq!(say(&folder(), &Raw::untyped(text)), expected, "{text}");
        }
    }

    #[test]
    fn commands_begin_with_a_program() {
        for (raw, expected) in [
            (texts(&["npx", "x"]), r#"["npx","x"]"#),
            (Raw::Text("my agent".to_owned()), r#"["my agent"]"#),
            (Raw::untyped("/opt/a, b"), r#"["/opt/a, b"]"#),
            (texts(&["x", "", " y "]), r#"["x",""," y "]"#),
            (texts(&[]), "names no program; expected a list such as [\"my-agent\", \"--verbose\"]"),
            (texts(&[""]), "names no program; expected a list such as [\"my-agent\", \"--verbose\"]"),
            (Raw::List(vec![Raw::Integer(1)]), "holds 1; expected texts"),
        ] {
            assert_eq!(say(&command(), &raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn the_default_database_is_in_the_data_directory() {
        let home = if cfg!(target_os = "macos") {
            "/h/Library/Application Support/sabir/sabir.db"
        } else {
            "/h/.local/share/sabir/sabir.db"
        };
        for (environment, expected) in [
            (vec![("XDG_DATA_HOME", "/data"), ("HOME", "/h")], "/data/sabir/sabir.db"),
            (vec![("XDG_DATA_HOME", "relative"), ("HOME", "/h")], home),
            (vec![("HOME", "/h")], home),
            (vec![("HOME", "")], "sabir.db"),
            (vec![], "sabir.db"),
        ] {
            let file = default_database(&Environment::new(environment.clone()));
            assert_eq!(file, Path::new(expected), "{environment:?}");
        }
    }
}
