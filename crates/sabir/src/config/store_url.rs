//! Where tasks are kept: `sqlite:PATH` or `memory:`.
//!
//! The path is taken as it is, relative to the working directory. What people paste from other programs
//! (`sqlite::memory:`, options after `?`, `~/`) is refused rather than made into a file of that name.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::environment::Environment;
use super::kinds::{Read, said, wrong};
use super::raw::Raw;
use super::sections::StoreUrl;

pub fn store_url(raw: &Raw) -> Read<StoreUrl> {
    let text = said(raw).ok_or_else(|| wrong(raw, EXPECTED))?;
    if text.starts_with("postgres:") || text.starts_with("postgresql:") {
        // Such an address often holds a password, so it is not repeated.
        return Err("names a Postgres database, which comes in a later version; use sqlite:PATH".to_owned());
    }
    if ["memory:", "memory", "sqlite::memory:"].contains(&text) {
        return Ok((StoreUrl::Memory, json!("memory:")));
    }
    let Some(path) = text.strip_prefix("sqlite:") else {
        return Err(wrong(raw, EXPECTED));
    };
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.contains('?') {
        return Err(format!("is {raw}; options after ? are not known, expected sqlite:PATH"));
    }
    if path.starts_with('~') {
        return Err(format!("is {raw}; ~ is not understood here, write the directory out"));
    }
    if path.is_empty() || path.ends_with('/') || path.contains('\0') {
        return Err(format!("is {raw}; expected the name of a file after sqlite:"));
    }
    Ok((StoreUrl::Sqlite(PathBuf::from(path)), json!(format!("sqlite:{path}"))))
}

/// The file that is used when nobody names one: in the user's data directory, or here when there is no home.
pub fn default_file(environment: &Environment) -> PathBuf {
    if let Some(data) = environment.path("XDG_DATA_HOME").filter(|data| data.is_absolute()) {
        return data.join("sabir/sabir.db");
    }
    let Some(home) = environment.path("HOME") else {
        return PathBuf::from("sabir.db");
    };
    let data = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    home.join(Path::new(data)).join("sabir/sabir.db")
}

const EXPECTED: &str = "\"sqlite:PATH\" or \"memory:\"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores() {
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
            let read = store_url(&Raw::Word(text.to_owned()));
            let said = read.map_or_else(|words| words, |(_, shown)| shown.to_string());
            assert_eq!(said, expected, "{text:?}");
        }
    }

    #[test]
    fn the_default_file_is_in_the_data_directory() {
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
            let file = default_file(&Environment::new(environment.clone()));
            assert_eq!(file, Path::new(expected), "{environment:?}");
        }
    }
}
