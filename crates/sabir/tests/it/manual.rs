//! `sabir completions` and `sabir man`: what shells and `man` read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use crate::SABIR;

fn sabir(words: &[&str], folder: &Path) -> Output {
    Command::new(SABIR).args(words).current_dir(folder).env_clear().output().unwrap()
}

fn printed(words: &[&str]) -> String {
    let output = sabir(words, Path::new("/"));
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What bash offers when TAB is pressed after these words.
fn completed(words: &[&str]) -> Vec<String> {
    let script = r#"
        source <("$0" completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
        _sabir sabir "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let output = Command::new("bash").args(["--norc", "-c", script, SABIR]).args(words).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    for (words, expected) in [
        (&["sabir", "pu"][..], &["push"][..]),
        (&["sabir", "push", "re"], &["retry"]),
        (&["sabir", "serve", "--dev"], &["--dev-tls"]),
        (&["sabir", "push", "list", "--state", ""], &["pending", "given-up"]),
        (&["sabir", "completions", "z"], &["zsh"]),
    ] {
        assert_eq!(completed(words), expected, "{words:?}");
    }
}

#[test]
fn each_shell_gets_a_script_of_its_own() {
    for (shell, registers) in [
        ("bash", "complete -F _sabir "),
        ("zsh", "#compdef sabir"),
        ("fish", "complete -c sabir "),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName 'sabir'"),
        ("elvish", "edit:completion:arg-completer[sabir]"),
    ] {
        let script = printed(&["completions", shell]);
        for words in [registers, "serve", "assign", "dev-tls"] {
            assert!(script.contains(words), "no {words} for {shell}: {script}");
        }
    }
    let output = sabir(&["completions", "tcsh"], Path::new("/"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("possible values: bash, elvish, fish, powershell, zsh"), "{errors}");
}

#[test]
fn the_manual_is_printed_or_written_into_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let page = printed(&["man"]);
    assert!(page.contains(".TH sabir 1") && page.contains("sabir\\-serve(1)"), "{page}");
    for _ in 0..2 {
        assert!(sabir(&["man", "new/man1"], folder.path()).status.success(), "a page that is there is replaced");
    }
    let written = folder.path().join("new/man1");
    assert_eq!(fs::read_to_string(written.join("sabir.1")).unwrap(), page);
    for name in ["sabir-serve.1", "sabir-push.1", "sabir-push-list.1", "sabir-man.1"] {
        assert!(written.join(name).is_file(), "{name}");
    }
    assert!(!written.join("sabir-help.1").exists());

    fs::write(folder.path().join("file"), "").unwrap();
    let output = sabir(&["man", "file/man1"], folder.path());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.starts_with("sabir: cannot make the folder file/man1: "), "{errors}");
}

#[test]
fn a_link_in_the_place_of_a_page_is_replaced_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("man1")).unwrap();
    fs::write(at("mine"), "mine").unwrap();
    for (link, target) in [("sabir.1", "mine"), ("sabir-serve.1", "nobody"), (".sabir-man.1.new", "mine")] {
        symlink(at(target), at("man1").join(link)).unwrap();
    }
    let output = sabir(&["man", "man1"], folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(at("mine")).unwrap(), "mine");
    assert!(!at("nobody").exists());
    for entry in fs::read_dir(at("man1")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        assert!(entry.file_type().unwrap().is_file() && !name.starts_with('.'), "{name}");
    }

    // What cannot be replaced is named, and nothing is left beside it.
    let taken = at("taken");
    fs::create_dir_all(taken.join("sabir.1")).unwrap();
    let output = sabir(&["man", "taken"], folder.path());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.starts_with("sabir: cannot write taken/sabir.1: "), "{errors}");
    assert_eq!(fs::read_dir(taken).unwrap().count(), 1);
}
