//! Where a program works: the configured folder, or the caller's choice below the allowed roots.

use std::fs;
use std::path::{Path, PathBuf};

use sabir_model::Json;
use serde_json::Value;

/// Metadata keys by which callers choose a folder, in a message or a request.
const NAMES: [&str; 4] = ["workspace", "repoPath", "cwd", "workingDirectory"];

/// How many characters of the caller's path a refusal repeats.
const LONGEST_SHOWN: usize = 200;

/// The caller's choice, if any: the message's metadata comes before the request's.
pub(super) fn chosen<'a>(metadata: impl IntoIterator<Item = Option<&'a Json>>) -> Option<String> {
    metadata.into_iter().flatten().find_map(|json| {
        let members: Value = serde_json::from_str(json.as_str()).ok()?;
        NAMES.iter().find_map(|name| members.get(*name)?.as_str().map(str::to_owned))
    })
}

/// The folder, with all links resolved. A choice must be inside a root; a relative path starts at the workspace.
pub(super) fn folder(workspace: &Path, roots: &[PathBuf], chosen: Option<&str>) -> Result<PathBuf, String> {
    let Some(chosen) = chosen.filter(|chosen| !chosen.is_empty()) else {
        return fs::canonicalize(workspace).map_err(|error| {
            tracing::error!(%error, workspace = %workspace.display(), "the workspace of an agent is not there");
            "the agent's workspace is not there; the server's log says why".into()
        });
    };
    // One message for all refusals: callers must not learn whether a path outside exists.
    let refused = || {
        let shown: String = chosen.chars().take(LONGEST_SHOWN).collect();
        format!("the folder {shown:?} is not one that this agent may work in")
    };
    let folder = fs::canonicalize(workspace.join(chosen)).map_err(|_| refused())?;
    let is_inside = |root: &PathBuf| fs::canonicalize(root).is_ok_and(|root| folder.starts_with(root));
    match folder.is_dir() && roots.iter().any(is_inside) {
        true => Ok(folder),
        false => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_stay_inside_the_roots() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        for name in ["work", "roots/a/deep", "roots-not", "secret"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        fs::write(path("roots/file"), "").unwrap();
        std::os::unix::fs::symlink(path("secret"), path("roots/link")).unwrap();
        let roots = [path("roots")];
        let real = |name: &str| fs::canonicalize(path(name)).unwrap();
        let at = |chosen: Option<&str>| folder(&path("work"), &roots, chosen);
        assert_eq!(at(None), Ok(real("work")));
        assert_eq!(at(Some("")), Ok(real("work")));
        assert_eq!(at(Some(path("roots/a").to_str().unwrap())), Ok(real("roots/a")));
        assert_eq!(at(Some("../roots/a/deep")), Ok(real("roots/a/deep")));
        for outside in ["roots-not", "secret", "roots/link", "roots/file", "roots/missing", "work", "roots/../secret"] {
            let chosen = path(outside);
            assert!(at(chosen.to_str()).is_err(), "{outside}");
        }
        assert!(folder(&path("work"), &[], Some("deeper")).is_err());
        assert!(at(Some(&"x".repeat(5000))).unwrap_err().len() < 300);
    }

    #[test]
    fn the_message_is_asked_before_the_request() {
        let json = |text: &str| Json::parse(text).unwrap();
        let (message, request) = (json(r#"{"cwd":"/m"}"#), json(r#"{"repoPath":"/r"}"#));
        assert_eq!(chosen([Some(&message), Some(&request)]), Some("/m".into()));
        assert_eq!(chosen([None, Some(&request)]), Some("/r".into()));
        assert_eq!(chosen([Some(&json(r#"{"cwd":5}"#)), None]), None);
    }
}
