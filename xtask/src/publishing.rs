//! Whether our crates can be published: what a registry wants to know of each, and versions beside paths.
//!
//! `cargo publish` would say so too, but only on the day of a release, and one crate after the other.

use std::path::Path;

use serde_json::Value;

/// What a registry shows of a crate.
const TEXTS: [&str; 4] = ["description", "license", "readme", "rust_version"];
const LISTS: [&str; 2] = ["keywords", "categories"];

/// Everything that is missing, one sentence each. `metadata` is that of `cargo metadata`.
pub fn faults(metadata: &Value) -> Vec<String> {
    let ours: Vec<&Value> = array(metadata, "packages").filter(|package| package["source"].is_null()).collect();
    let is_published = |name: &str| ours.iter().any(|package| text(package, "name") == name && publishes(package));
    let is_ours = |name: &str| ours.iter().any(|package| text(package, "name") == name);
    let mut faults = vec![];
    for package in ours.iter().filter(|package| publishes(package)) {
        let name = text(package, "name");
        let texts = TEXTS.iter().filter(|member| text(package, member).is_empty());
        let lists = LISTS.iter().filter(|member| array(package, member).next().is_none());
        faults.extend(texts.chain(lists).map(|member| format!("{name} has no `{member}` in its manifest")));
        if array(package, "keywords").count() > 5 {
            faults.push(format!("{name} has more than five keywords, which crates.io refuses"));
        }
        let readme = Path::new(text(package, "manifest_path")).with_file_name(text(package, "readme"));
        if !text(package, "readme").is_empty() && !readme.is_file() {
            faults.push(format!("{name} has no readme at {}", readme.display()));
        }
        for dependency in array(package, "dependencies").filter(|dependency| is_ours(text(dependency, "name"))) {
            let (to, has_version) = (text(dependency, "name"), text(dependency, "req") != "*");
            match (is_published(to), has_version) {
                (true, false) => {
                    faults.push(format!("{name} depends on {to} without a version: give it beside its path"))
                }
                (false, _) if dependency["kind"] != "dev" => {
                    faults.push(format!("{name} depends on {to}, which is not published"));
                }
                // Without a version cargo leaves it out of the published manifest.
                (false, true) => {
                    faults.push(format!("{name} tests with {to}, which is not published: give only its path"))
                }
                (true, true) | (false, false) => {}
            }
        }
    }
    faults
}

/// An empty list of registries is `publish = false`.
fn publishes(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

fn array<'v>(value: &'v Value, member: &str) -> impl Iterator<Item = &'v Value> {
    value[member].as_array().into_iter().flatten()
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str) -> Value {
        json!({
            "name": name, "source": null, "publish": null, "manifest_path": concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            "description": "d", "license": "MIT", "readme": "Cargo.toml", "rust_version": "1.89",
            "keywords": ["k"], "categories": ["c"], "dependencies": [],
        })
    }

    #[test]
    fn what_a_registry_would_refuse() {
        let depends = |on: &str, req: &str, kind: Value| json!([{"name": on, "req": req, "kind": kind}]);
        for (change, value, expected) in [
            ("version", json!("1"), None),
            ("description", json!(null), Some("a has no `description`")),
            ("license", json!(""), Some("a has no `license`")),
            ("keywords", json!([]), Some("a has no `keywords`")),
            ("keywords", json!(["1", "2", "3", "4", "5", "6"]), Some("more than five keywords")),
            ("readme", json!("nowhere.md"), Some("a has no readme at")),
            ("dependencies", depends("b", "^0.1.0", json!(null)), None),
            ("dependencies", depends("b", "*", json!(null)), Some("a depends on b without a version")),
            ("dependencies", depends("kit", "*", json!("dev")), None),
            ("dependencies", depends("kit", "^0.1.0", json!("dev")), Some("a tests with kit")),
            ("dependencies", depends("kit", "*", json!(null)), Some("a depends on kit, which is not published")),
            ("dependencies", depends("serde", "*", json!(null)), None),
        ] {
            let mut a = package("a");
            a[change] = value.clone();
            let mut kit = package("kit");
            kit["publish"] = json!([]);
            kit["description"] = json!(null);
            let faults = faults(&json!({"packages": [a, package("b"), kit]}));
            assert_eq!(faults.len(), usize::from(expected.is_some()), "{change} {value}: {faults:?}");
            assert!(expected.is_none_or(|expected| faults[0].contains(expected)), "{change} {value}: {faults:?}");
        }
    }
}
