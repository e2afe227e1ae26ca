//! Who may know whom, checked: the dependencies between our crates against the table of allowed ones.
//!
//! Each absent arrow is a design rule; ARCHITECTURE.md says why. Dev-dependencies are free, since tests may
//! bring rooms together, but nothing ever depends on `xtask`.

use anyhow::Result;
use serde_json::Value;

use crate::command;
use crate::workspace::Workspace;

/// A crate and the crates of ours that it may know.
const ALLOWED: [(&str, &[&str]); 14] = [
    ("sabir-model", &[]),
    ("sabir-proto", &[]),
    ("sabir-proto-generator", &[]),
    ("sabir-wire", &["sabir-model", "sabir-proto"]),
    ("sabir-store", &["sabir-model"]),
    ("sabir-engine", &["sabir-model", "sabir-store"]),
    ("sabir-outbound", &["sabir-model", "sabir-wire", "sabir-store"]),
    ("sabir-agents", &["sabir-model", "sabir-engine", "sabir-outbound"]),
    ("sabir-doors", &["sabir-model", "sabir-engine"]),
    ("sabir-server", &["sabir-model", "sabir-wire", "sabir-engine", "sabir-doors"]),
    ("sabir", LIBRARIES),
    ("sabir-bench", &[]),
    ("sabir-testkit", &["sabir-model", "sabir-proto", "sabir-store", "sabir-engine"]),
    ("xtask", &[]),
];

const LIBRARIES: &[&str] = &[
    "sabir-model",
    "sabir-proto",
    "sabir-wire",
    "sabir-store",
    "sabir-engine",
    "sabir-outbound",
    "sabir-agents",
    "sabir-doors",
    "sabir-server",
    "sabir-bench",
];

/// Crates without clock, socket and disk, and what would bring those in.
const PURE: [&str; 2] = ["sabir-model", "sabir-wire"];
const IMPURE: [&str; 3] = ["tokio", "hyper", "rusqlite"];

/// Foreign crates that have one home.
const HOMES: [(&str, &str); 1] = [("rusqlite", "sabir-store")];

const RULE: &str = "the rule stands in ARCHITECTURE.md, \"The rooms\"";

/// Every forbidden arrow in the workspace, one sentence each.
pub fn broken(workspace: &Workspace) -> Result<Vec<String>> {
    let mut broken = direct(&workspace.metadata);
    for package in packages(&workspace.metadata).map(name).filter(|name| PURE.contains(name)) {
        let mut tree = workspace.cargo();
        tree.args(["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
        broken.extend(drawn_in(package, &command::output(&mut tree)?, &workspace.metadata));
    }
    Ok(broken)
}

/// Forbidden arrows that stand in a manifest of ours.
fn direct(metadata: &Value) -> Vec<String> {
    let ours: Vec<&str> = packages(metadata).map(name).collect();
    let mut broken = vec![];
    for package in packages(metadata) {
        let from = name(package);
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == from) else {
            broken.push(format!("{from} is new: say whom it may know in xtask/src/arrows.rs and ARCHITECTURE.md"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = name(dependency);
            let only_tests = dependency["kind"] == "dev";
            let forbidden = if only_tests {
                to == "xtask"
            } else if ours.contains(&to) {
                !allowed.contains(&to)
            } else {
                is_forbidden(from, to)
            };
            if forbidden {
                broken.push(format!("{from} may not depend on {to}: {RULE}"));
            }
        }
    }
    broken
}

/// What a pure crate draws in through others; `tree` has one `name version` per line.
fn drawn_in(package: &str, tree: &str, metadata: &Value) -> Vec<String> {
    let manifest = packages(metadata).find(|each| name(each) == package);
    let is_direct = |library: &str| {
        let dependencies = manifest.and_then(|manifest| manifest["dependencies"].as_array());
        dependencies.into_iter().flatten().any(|each| name(each) == library && each["kind"] != "dev")
    };
    let in_tree = |library: &str| tree.lines().any(|line| line.split(' ').next() == Some(library));
    let hidden = IMPURE.into_iter().filter(|library| in_tree(library) && !is_direct(library));
    hidden
        .map(|library| {
            let path = format!("cargo tree --package {package} --edges normal --invert {library}");
            format!("{package} may not draw in {library} through others, see `{path}`: {RULE}")
        })
        .collect()
}

fn is_forbidden(package: &str, library: &str) -> bool {
    let has_another_home = HOMES.iter().any(|(name, home)| *name == library && *home != package);
    has_another_home || (PURE.contains(&package) && IMPURE.contains(&library))
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn name(value: &Value) -> &str {
    value["name"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arrows_between_crates() {
        for (arrow, expected) in [
            ("sabir-wire -> sabir-model", "fine"),
            ("sabir-wire -> sabir-proto", "fine"),
            ("sabir-server -> sabir-engine", "fine"),
            ("sabir -> sabir-store", "fine"),
            ("sabir-testkit -> sabir-engine", "fine"),
            ("sabir -> sabir-bench", "fine"),
            ("sabir-bench -> sabir-model", "sabir-bench may not depend on sabir-model"),
            ("sabir-server -> sabir-store (dev)", "fine"),
            ("sabir-engine -> sabir-testkit (dev)", "fine"),
            ("sabir-model -> sabir-wire", "sabir-model may not depend on sabir-wire"),
            ("sabir-server -> sabir-store", "sabir-server may not depend on sabir-store"),
            ("sabir-engine -> sabir-wire", "sabir-engine may not depend on sabir-wire"),
            ("sabir-engine -> sabir-testkit", "sabir-engine may not depend on sabir-testkit"),
            ("sabir -> sabir-testkit", "sabir may not depend on sabir-testkit"),
            ("sabir-store -> sabir-wire (build)", "sabir-store may not depend on sabir-wire"),
            ("sabir -> xtask (dev)", "sabir may not depend on xtask"),
            ("xtask -> sabir", "xtask may not depend on sabir"),
            ("sabir-helpers -> sabir-model", "sabir-helpers is new"),
        ] {
            check(arrow, expected);
        }
    }

    #[test]
    fn libraries_of_others() {
        for (arrow, expected) in [
            ("sabir-model -> serde", "fine"),
            ("sabir-wire -> tokio (dev)", "fine"),
            ("sabir-store -> rusqlite", "fine"),
            ("sabir-engine -> tokio", "fine"),
            ("sabir-model -> tokio", "sabir-model may not depend on tokio"),
            ("sabir-wire -> hyper", "sabir-wire may not depend on hyper"),
            ("sabir-wire -> rusqlite", "sabir-wire may not depend on rusqlite"),
            ("sabir-engine -> rusqlite", "sabir-engine may not depend on rusqlite"),
        ] {
            check(arrow, expected);
        }
    }

    #[test]
    fn what_a_pure_crate_draws_in() {
        let metadata = metadata("sabir-wire -> hyper");
        for (tree, expected) in [
            ("sabir-wire v0.1.0 (/w/wire)\nserde v1.0.0\ntokio-like v1.0.0", ""),
            ("sabir-wire v0.1.0 (/w/wire)\nhyper v1.0.0\ntokio v1.0.0", "tokio through others"),
        ] {
            let broken = drawn_in("sabir-wire", tree, &metadata);
            assert_eq!(broken.len(), usize::from(!expected.is_empty()), "{broken:?}");
            assert!(broken.join("").contains(expected), "{broken:?}");
        }
    }

    #[test]
    fn a_broken_arrow_names_its_rule() {
        assert!(direct(&metadata("sabir-model -> tokio"))[0].contains("ARCHITECTURE.md"));
    }

    fn check(arrow: &str, expected: &str) {
        let broken = direct(&metadata(arrow));
        match expected {
            "fine" => assert_eq!(broken, [""; 0], "{arrow}"),
            _ => assert!(broken.len() == 1 && broken[0].starts_with(expected), "{arrow}: {broken:?}"),
        }
    }

    /// A workspace of all our crates, with the one dependency `from -> to (kind)`.
    fn metadata(arrow: &str) -> Value {
        let (from, to) = arrow.split_once(" -> ").unwrap();
        let (to, kind) = match to.split_once(' ') {
            Some((to, kind)) => (to, json!(kind.trim_matches(['(', ')']))),
            None => (to, Value::Null),
        };
        let mut names: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
        if !names.contains(&from) {
            names.push(from);
        }
        let dependencies = |name| if name == from { json!([{"name": to, "kind": kind}]) } else { json!([]) };
        let packages: Vec<Value> =
            names.into_iter().map(|name| json!({"name": name, "dependencies": dependencies(name)})).collect();
        json!({ "packages": packages })
    }
}
