//! A program that cannot be started is named, with what to do about it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sabir_agents::adapter::Exit;
use sabir_agents::process::{Launch, Output};

use super::fixture::{ProcessMark, line, script, start};

async fn refusal(launch: Launch) -> String {
    match launch.start().await {
        Ok(_) => panic!("it was started"),
        Err(error) => error.to_string(),
    }
}

fn file(folder: &Path, name: &str, text: &str, mode: u32) {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_launch_error_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    file(folder, "plain", "#!/bin/sh\n", 0o644);
    file(folder, "orphan", "#!/no/such/interpreter\n", 0o755);
    file(folder, "nonsense", "\u{1}\u{2}", 0o755);
    let here = folder.display();
    let mark = ProcessMark::new();
    for (program, path, expected) in [
        ("no-such", "/bin", "no-such was not found in PATH (/bin); install it or give its full path".to_owned()),
        ("plain", "/bin:.", format!("{here}/./plain is not executable; allow it with: chmod +x {here}/./plain")),
        ("./plain", "/bin", format!("{here}/./plain is not executable; allow it with: chmod +x {here}/./plain")),
        ("/no/such", "/bin", "the program /no/such does not exist; install it or correct the path".to_owned()),
        ("../", "/bin", format!("the program {here}/../ does not exist; install it or correct the path")),
        (
            "./orphan",
            "/bin",
            format!("{here}/./orphan cannot be started: what it needs to run, named in its first line, is not there"),
        ),
        ("./nonsense", "/bin", format!("{here}/./nonsense cannot be started: Exec format error (os error 8)")),
    ] {
        let launch = Launch {
            program: program.into(),
            folder: folder.to_owned(),
            environment: vec![("PATH".into(), path.into()), mark.variable()],
            ..script("", &mark)
        };
        assert_eq!(refusal(launch).await, expected, "{program}");
    }
    for (name, expected) in [
        ("missing", format!("the folder {here}/missing does not exist; create it or choose another")),
        ("plain", format!("{here}/plain is not a folder; choose another")),
    ] {
        let launch = Launch { folder: folder.join(name), ..script("", &mark) };
        assert_eq!(refusal(launch).await, expected, "{name}");
    }
    let launch = Launch { guard: "/no/such/guard".into(), ..script("", &mark) };
    let expected = "/no/such/guard cannot be started as the guard of a program: No such file or directory (os error 2)";
    assert_eq!(refusal(launch).await, expected);
    let launch = Launch { guard: "/bin/true".into(), ..script("", &mark) };
    assert!(refusal(launch).await.starts_with("/bin/true cannot be started as the guard of a program"));
    let launch = Launch { arguments: vec!["x".repeat(8 * 1024 * 1024).into()], ..script("", &mark) };
    assert!(refusal(launch).await.ends_with("sh cannot be started: Argument list too long (os error 7)"));
    mark.assert_none_alive();
}

#[tokio::test]
async fn a_program_gets_its_folder_its_arguments_and_its_environment_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    file(&folder, "tool", "#!/bin/sh\npwd\nfor each; do echo \"<$each>\"; done\nexec /usr/bin/env\n", 0o755);
    let mark = ProcessMark::new();
    let launch = Launch {
        program: "./tool".into(),
        arguments: ["--help", "", "two words", "__guard"].map(Into::into).to_vec(),
        folder: folder.clone(),
        environment: vec![("ONLY".into(), "this".into())],
        ..script("", &mark)
    };
    let mut child = launch.start().await.unwrap();
    for expected in [folder.to_str().unwrap(), "<--help>", "<>", "<two words>", "<__guard>"] {
        assert_eq!(line(&mut child).await, expected);
    }
    let mut variables = Vec::new();
    while let Output::Line(line) = child.next().await {
        // The shell sets these itself, and Sabir the last.
        if !["PWD=", "_=", "SHLVL=", "OLDPWD=", "SABIR_RUN="].iter().any(|own| line.starts_with(own)) {
            variables.push(line);
        }
    }
    assert_eq!(variables, ["ONLY=this"]);
    assert_eq!(child.exit().await, Exit::Code(0));
}

#[tokio::test]
async fn a_program_may_open_as_many_files_as_it_is_allowed() {
    let launch = Launch { open_files: Some(123), ..script("ulimit -Sn; ulimit -Hn", &ProcessMark::new()) };
    let mut child = launch.start().await.unwrap();
    assert_eq!(line(&mut child).await, "123");
    assert_ne!(line(&mut child).await, "123", "it may raise the limit itself");
}

#[tokio::test]
async fn the_first_argument_of_the_guard_is_a_program() {
    let output = std::process::Command::new(crate::SABIR).arg("__guard").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "sabir: __guard needs a program\n");
    let help = std::process::Command::new(crate::SABIR).arg("--help").output().unwrap();
    assert!(!String::from_utf8_lossy(&help.stdout).contains("guard"), "nobody needs to know");
}

#[tokio::test]
async fn the_guard_is_small_and_stands_in_a_group_of_its_own() {
    let mut child = start("echo $$; sleep 1000").await;
    let program: u32 = line(&mut child).await.parse().unwrap();
    let (_, _, guards_group) = super::fixture::stat(child.pid()).unwrap();
    let (_, parent, programs_group) = super::fixture::stat(program).unwrap();
    assert_eq!((guards_group, parent, programs_group), (child.pid(), child.pid(), program));
    let resident = super::fixture::memory(child.pid(), "RssAnon:");
    // Most of it are addresses that the loader writes: a debug binary has many.
    assert!(resident < 3 * 1024 * 1024, "the guard has {resident} bytes");
    child.stop().await;
}
