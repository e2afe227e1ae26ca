//! What a server with Postgres keeps on its own machine: the name of the node, and its folder below the user's data directory.

use std::path::PathBuf;

use sabir_server::is_path_segment;
use serde_json::json;

use crate::machine;

use super::default_database::data_directory;
use super::environment::Environment;
use super::values::ValueKind;

/// A name that is also the name of a folder.
pub fn node_name() -> ValueKind<String> {
    ValueKind::new(json!({"type": "string"}), |raw| {
        let name = raw.as_text().filter(|name| is_path_segment(name));
        let name = name.ok_or_else(|| raw.unexpected("1 to 64 letters, digits, dots, dashes and underscores"))?;
        Ok((name.to_owned(), json!(name)))
    })
}

/// The node that this machine is when nobody says.
pub fn machine_node_name() -> String {
    node_name_of(machine::own_name().as_deref())
}

fn node_name_of(machine: Option<&str>) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' };
    let name: String = machine.unwrap_or_default().chars().map(plain).take(64).collect();
    if is_path_segment(&name) { name } else { "node".to_owned() }
}

/// Where the files of this node are when nobody says. Without a home directory they are below the working directory.
pub fn default_node_folder(environment: &Environment, node: &str) -> PathBuf {
    match data_directory(environment) {
        Some(data) => data.join("sabir/nodes").join(node),
        None => PathBuf::from(format!("sabir-node-{node}")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_of_machines_become_names_of_nodes() {
        for (machine, expected) in [
            (Some("web-1"), "web-1"),
            (Some("web-1.example.com"), "web-1.example.com"),
            (Some("größe 1"), "gr--e-1"),
            (Some(".."), "node"),
            (Some(""), "node"),
            (None, "node"),
        ] {
            assert_eq!(node_name_of(machine), expected, "{machine:?}");
        }
        assert!(is_path_segment(&node_name_of(Some(&"x".repeat(300)))));
    }

    #[test]
    fn each_node_has_a_folder_of_its_own() {
        let folder =
            |variables: &[(&str, &str)]| default_node_folder(&Environment::new(variables.iter().copied()), "a");
        assert_eq!(folder(&[("XDG_DATA_HOME", "/data")]), Path::new("/data/sabir/nodes/a"));
        assert_eq!(folder(&[]), Path::new("sabir-node-a"));
    }
}
