//! The list of the crates that are in the binary (SBOM), as CycloneDX 1.5, from what cargo knows. Nothing is asked over the network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::command;
use crate::workspace::Workspace;

/// The crates of one binary.
pub struct Parts {
    parts: BTreeMap<(String, String), Part>,
}

pub struct Part {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
    pub folder: PathBuf,
    is_foreign: bool,
    /// Of its archive, as Cargo.lock has it.
    sha256: Option<String>,
    dependencies: BTreeSet<(String, String)>,
}

impl Parts {
    pub fn of(workspace: &Workspace, target: &str) -> Result<Self> {
        // The crates of this one program, without those that only run while it is built.
        let mut tree = workspace.cargo();
        tree.args(["tree", "--locked", "--package", "sabir", "--target", target, "--prefix", "none"]);
        tree.args(["--edges", "normal,no-proc-macro", "--format", "{p}"]);
        let included = tree_lines(&command::output(&mut tree)?);
        let mut metadata = workspace.cargo();
        metadata.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target]);
        let metadata: Value = serde_json::from_str(&command::output(&mut metadata)?)?;
        let lock = std::fs::read_to_string(workspace.root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
        Self::collect(&included, &metadata, &checksums(&lock))
    }

    fn collect(
        included: &BTreeSet<(String, String)>,
        metadata: &Value,
        checksums: &BTreeMap<(String, String), String>,
    ) -> Result<Self> {
        let text = |value: &Value, member: &str| value[member].as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut parts = BTreeMap::new();
        let mut key_of_id = BTreeMap::new();
        for package in list(&metadata["packages"]) {
            let key = (text(&package, "name"), text(&package, "version"));
            if !included.contains(&key) {
                continue;
            }
            key_of_id.insert(text(&package, "id"), key.clone());
            let manifest = PathBuf::from(text(&package, "manifest_path"));
            let part = Part {
                name: key.0.clone(),
                version: key.1.clone(),
                // How crates spelled a choice before SPDX.
                licence: text(&package, "license").replace('/', " OR "),
                folder: manifest.parent().context("a manifest lies in a folder")?.to_owned(),
                is_foreign: !package["source"].is_null(),
                sha256: checksums.get(&key).cloned(),
                dependencies: BTreeSet::new(),
            };
            parts.insert(key, part);
        }
        for node in list(&metadata["resolve"]["nodes"]) {
            let Some(part) = key_of_id.get(&text(&node, "id")).and_then(|key| parts.get_mut(key)) else { continue };
            let needed = list(&node["dependencies"]);
            part.dependencies = needed.iter().filter_map(|id| key_of_id.get(id.as_str()?).cloned()).collect();
        }
        let missing = included.iter().find(|key| !parts.contains_key(*key));
        if let Some((name, version)) = missing {
            anyhow::bail!("`cargo tree` names {name} {version}, and `cargo metadata` does not");
        }
        Ok(Self { parts })
    }

    pub fn foreign(&self) -> impl Iterator<Item = &Part> {
        self.parts.values().filter(|part| part.is_foreign)
    }

    pub fn cyclone_dx(&self, version: &str, time: u64) -> Result<String> {
        let sabir = self.parts.values().find(|part| part.name == "sabir").context("sabir is a part of itself")?;
        let rest = self.parts.values().filter(|part| part.name != "sabir");
        let components: Vec<Value> = rest.map(|part| part.component("library")).collect();
        let dependencies: Vec<Value> = self
            .parts
            .values()
            .map(
                |part| json!({"ref": part.purl(), "dependsOn": part.dependencies.iter().map(purl).collect::<Vec<_>>()}),
            )
            .collect();
        let document = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": rfc3339(time),
                "tools": {"components": [{"type": "application", "name": "cargo xtask dist", "version": version}]},
                "component": sabir.component("application"),
            },
            "components": components,
            "dependencies": dependencies,
        });
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }
}

impl Part {
    fn purl(&self) -> String {
        purl(&(self.name.clone(), self.version.clone()))
    }

    fn component(&self, kind: &str) -> Value {
        let mut component = json!({
            "type": kind,
            "bom-ref": self.purl(),
            "name": self.name,
            "version": self.version,
            "purl": self.purl(),
            "licenses": [{"expression": self.licence}],
        });
        if let Some(sha256) = &self.sha256 {
            component["hashes"] = json!([{"alg": "SHA-256", "content": sha256}]);
        }
        component
    }
}

fn purl((name, version): &(String, String)) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

/// Name and version of each line, such as `serde v1.0.0 (proc-macro) (*)`.
fn tree_lines(tree: &str) -> BTreeSet<(String, String)> {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
    };
    tree.lines().filter_map(of_line).collect()
}

/// The checksum of each crate in Cargo.lock.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |table: &str, key: &str| {
        let line = table.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let of_table = |table: &str| {
        let key = (value(table, "name")?, value(table, "version")?);
        Some((key, value(table, "checksum")?))
    };
    lock.split("[[package]]").filter_map(of_table).collect()
}

fn rfc3339(time: u64) -> String {
    // Days to a date, by the method of Howard Hinnant.
    let (days, seconds) = (time / 86_400, time % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_what_cargo_says() {
        let tree = "sabir v0.1.0 (/x/crates/sabir)\nserde v1.0.5\nserde v1.0.5 (*)\n";
        let lock = "version = 4\n\n[[package]]\nname = \"serde\"\nversion = \"1.0.5\"\nsource = \"s\"\n\
                    checksum = \"abc\"\ndependencies = [\n \"x\",\n]\n\n[[package]]\nname = \"sabir\"\nversion = \"0.1.0\"\n";
        let package = |name: &str, version: &str, source: Option<&str>| json!({"name": name, "version": version, "id": name, "source": source, "license": "MIT/Apache-2.0", "manifest_path": format!("/x/{name}/Cargo.toml")});
        let metadata = json!({
            "packages": [package("sabir", "0.1.0", None), package("serde", "1.0.5", Some("s")), package("test", "1.0.0", Some("s"))],
            "resolve": {"nodes": [{"id": "sabir", "dependencies": ["serde", "test"]}, {"id": "serde", "dependencies": []}]},
        });
        let parts = Parts::collect(&tree_lines(tree), &metadata, &checksums(lock)).unwrap();
        let document: Value = serde_json::from_str(&parts.cyclone_dx("0.1.0", 1_700_000_000).unwrap()).unwrap();
        let expected = json!([{"type": "library", "bom-ref": "pkg:cargo/serde@1.0.5", "name": "serde", "version": "1.0.5",
            "purl": "pkg:cargo/serde@1.0.5", "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "hashes": [{"alg": "SHA-256", "content": "abc"}]}]);
        assert_eq!(document["components"], expected);
        assert_eq!(document["metadata"]["component"]["name"], "sabir");
        assert_eq!(
            document["dependencies"][0],
            json!({"ref": "pkg:cargo/sabir@0.1.0", "dependsOn": ["pkg:cargo/serde@1.0.5"]})
        );
        assert_eq!(parts.foreign().count(), 1);
        let unknown = tree_lines("sabir v0.1.0\nlost v2.0.0\n");
        assert!(Parts::collect(&unknown, &metadata, &BTreeMap::new()).is_err());
    }

    #[test]
    fn times_are_dates() {
        for (time, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(time), expected);
        }
    }
}
