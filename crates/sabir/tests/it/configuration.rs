//! `sabir config`, and what `sabir serve` says of a configuration that it cannot use.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Exit code, output and errors of one call in this directory, with no environment but the given one.
fn sabir(directory: &Path, arguments: &str, variables: &[(&str, &str)]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_sabir"))
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The source of one setting in the JSON that `sabir config` prints.
fn source(output: &str, key: &str) -> String {
    let settings: serde_json::Value = serde_json::from_str(output).unwrap();
    let all = settings.as_array().unwrap();
    let setting = all.iter().find(|setting| setting["key"] == key).unwrap();
    format!("{} {}", setting["value"], setting["source"].as_str().unwrap())
}

#[test]
fn config_works_without_any_file_and_names_the_layers() {
    let directory = TempDir::new().unwrap();
    let (code, output, errors) = sabir(directory.path(), "config", &[("HOME", "/h")]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert_eq!(source(&output, "server.listen"), r#"["127.0.0.1:41242"] default"#);

    fs::write(directory.path().join("sabir.toml"), "[log]\nlevel = 'debug'\n").unwrap();
    let variables = [("SABIR_STORE", "memory:")];
    let (_, output, _) = sabir(directory.path(), "config --port 7870", &variables);
    assert_eq!(source(&output, "server.listen"), r#"["127.0.0.1:7870"] --port"#);
    assert_eq!(source(&output, "store.url"), r#""memory:" SABIR_STORE"#);
    assert_eq!(source(&output, "log.level"), r#""debug" sabir.toml:2"#);
}

#[test]
fn configuration_errors_exit_with_2_and_one_line_each() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("bad.toml"), "[server]\n\nlisen = 1\ngrace = true\n").unwrap();
    let typo = "sabir: bad.toml:3: unknown key \"lisen\" in [server]; did you mean \"listen\"?\n";
    for (arguments, variables, expected) in [
        ("serve --config bad.toml", &[][..], typo),
        ("config --config bad.toml", &[], typo),
        ("serve", &[("SABIR_CONFIG", "bad.toml")], typo),
        ("serve --config none.toml", &[], "sabir: none.toml: cannot read the configuration file from --config: "),
        ("serve", &[("SABIR_STORE", "x")], "sabir: SABIR_STORE is \"x\"; expected "),
        ("serve --listen 0.0.0.0:0", &[], "sabir: --listen: other machines can reach 0.0.0.0:0, "),
        (
            "serve --agent a2a",
            &[],
            "sabir: --agent is \"a2a\", which needs the address of the remote agent; use `sabir proxy URL`",
        ),
    ] {
        let (code, output, errors) = sabir(directory.path(), arguments, variables);
        let last = errors.lines().last().unwrap_or_default();
        assert_eq!((code, output.as_str()), (2, ""), "{arguments}");
        assert!(errors.contains(expected), "{arguments}: {errors}");
        assert!(last.starts_with("sabir: "), "{arguments}: {errors}");
    }
}

#[test]
fn unusable_environment_aliases_are_warnings_at_most() {
    let directory = TempDir::new().unwrap();
    let variables = [("PORT", "banana"), ("AGENT_MODEL", "large"), ("A2A_HOST", "0.0.0.0")];
    let (code, output, errors) = sabir(directory.path(), "config", &variables);
    assert_eq!(code, 0);
    assert_eq!(source(&output, "server.listen"), r#"["127.0.0.1:41242"] A2A_HOST"#);
    assert_eq!(errors.lines().filter(|line| line.starts_with("sabir: warning: ")).count(), 3);
}

/// A server that is ended with the test, and the database that its start line names.
struct Started {
    server: Child,
    store: String,
}

impl Started {
    fn new(directory: &Path, arguments: &str, home: &Path) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_sabir"))
            .args(["serve", "--port", "0"])
            .args(arguments.split_whitespace())
            .current_dir(directory)
            .env_clear()
            .env("XDG_DATA_HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        Started { server, store: ready["store"].as_str().unwrap().to_owned() }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn servers_in_two_folders_have_two_databases() {
    let (data, one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let folder = |directory: &TempDir| directory.path().canonicalize().unwrap().display().to_string();
    let database =
        |directory: &TempDir, name: &str| format!("{}/sabir/folders{}/{name}", folder(&data), folder(directory));
    fs::write(two.path().join("sabir.toml"), "").unwrap();
    fs::write(two.path().join("staging.toml"), "").unwrap();

    let home = data.path().canonicalize().unwrap();
    let first = Started::new(one.path(), "", &home);
    // The folder of the file counts, not the one where the server was started.
    let second = Started::new(one.path(), &format!("--config {}/sabir.toml", folder(&two)), &home);
    let third = Started::new(two.path(), "--config staging.toml", &home);
    // A file that is not kept anywhere has no folder.
    let fourth = TempDir::new().unwrap();
    let piped = Started::new(fourth.path(), "--config /dev/null", &home);
    for (started, expected) in [
        (first, database(&one, "sabir.db")),
        (second, database(&two, "sabir.db")),
        (third, database(&two, "staging.db")),
        (piped, database(&fourth, "sabir.db")),
    ] {
        assert_eq!(started.store, expected);
        assert!(Path::new(&expected).exists(), "{expected}");
    }
}

#[test]
fn the_database_of_an_earlier_version_is_used_and_named() {
    let (data, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let variables = [("XDG_DATA_HOME", data.path().to_str().unwrap())];
    let old = data.path().join("sabir/sabir.db");
    fs::create_dir_all(old.parent().unwrap()).unwrap();
    fs::write(&old, "").unwrap();
    let (_, output, errors) = sabir(folder.path(), "config", &variables);
    assert_eq!(source(&output, "store.url"), format!("\"sqlite:{}\" default", old.display()));
    assert!(errors.starts_with(&format!("sabir: warning: tasks are kept in {}, ", old.display())), "{errors}");

    let (_, output, errors) = sabir(folder.path(), "config --store sqlite:here.db", &variables);
    assert_eq!((source(&output, "store.url").as_str(), errors.as_str()), ("\"sqlite:here.db\" --store", ""));
}

#[test]
fn version_and_help_answer() {
    let directory = TempDir::new().unwrap();
    for (arguments, expected) in [
        ("--version", concat!("sabir ", env!("CARGO_PKG_VERSION"))),
        ("--help", "Examples:"),
        ("serve --help", "--public-url <URL>"),
        ("config --help", "Examples:"),
        ("config --schema --config none.toml", "\"$schema\": \"http://json-schema.org/draft-07/schema#\""),
        ("agents --help", "Examples:"),
    ] {
        let (code, output, _) = sabir(directory.path(), arguments, &[]);
        assert_eq!(code, 0, "{arguments}");
        assert!(output.contains(expected), "{arguments}: {output}");
    }
    let (code, ..) = sabir(directory.path(), "serve --banana", &[]);
    assert_eq!(code, 2);
}
