//! Work in a worktree is handed over and kept, whatever ends the run.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use sabir_testkit::process::SabirOptions;
use serde_json::json;

use super::{ProgramFixture, artifact, begin, git, message, pid_in, send, state, wait_for};
use crate::SABIR;
use crate::server_fixture::ServerFixture;

#[test]
fn a_worktree_keeps_the_workspace_clean_and_hands_over_the_diff() {
    let program = ProgramFixture::new("echo two >> file.txt; echo new > made.txt; echo done\n");
    let work = program.workspace();
    git(&work, &["init", "--quiet"]);
    fs::write(work.join("file.txt"), "one\n").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    let fixture = program.serve_apart("command", "isolation = \"worktree\"\n");
    let task = send(&fixture, message("change it"));
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let changes = artifact(&task, "changes");
    let diff = changes["parts"][0]["text"].as_str().unwrap_or_default();
    assert!(diff.contains("+two") && diff.contains("made.txt") && diff.contains("+new"), "{task}");
    assert_eq!(fs::read_to_string(work.join("file.txt")).unwrap(), "one\n");
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
    assert_eq!(git(&work, &["worktree", "list"]).lines().count(), 1);
    fs::write(program.path("changes.diff"), diff).unwrap();
    git(&work, &["apply", program.path("changes.diff").to_str().unwrap()]);
    assert_eq!(fs::read_to_string(work.join("made.txt")).unwrap(), "new\n");
}

/// A repository in the workspace, and a home in which every `git add` of a file takes long.
fn slow_repository(program: &ProgramFixture, seconds: u32) {
    let work = program.workspace();
    git(&work, &["init", "--quiet"]);
    fs::write(work.join("file.txt"), "one\n").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    fs::write(work.join(".git/info/attributes"), "* filter=slow\n").unwrap();
    fs::create_dir(program.path("home")).unwrap();
    let settings = format!("[filter \"slow\"]\n\tclean = \"sleep {seconds}; cat\"\n");
    fs::write(program.path("home/.gitconfig"), settings).unwrap();
}

fn serve_with_home(program: &ProgramFixture, kind: &str, more: &str) -> ServerFixture {
    ServerFixture::with(|options| {
        fs::write(options.folder.join("sabir.toml"), program.agent("prog", kind, more)).unwrap();
        options.variable("HOME", program.path("home").to_str().unwrap())
    })
}

fn work_refs(work: &Path) -> Vec<String> {
    let refs = git(work, &["for-each-ref", "--format=%(refname)", "refs/sabir"]);
    refs.lines().filter(|name| name.ends_with("/work")).map(str::to_owned).collect()
}

#[test]
fn a_cancel_is_answered_when_the_program_has_ended_and_the_work_is_kept_after_that() {
    let program =
        ProgramFixture::new("echo changed > made.txt\necho $$ > \"$OLDPWD/../self\" || :\necho ready\nsleep 300\n");
    slow_repository(&program, 8);
    let fixture = serve_with_home(&program, "command", "isolation = \"worktree\"\n");
    let (id, mut events) = fixture.working("go");
    while !events.next_frame().unwrap().expect("it says something").data.contains("ready") {}
    let start = Instant::now();
    let task = fixture.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}))["result"].take();
    assert_eq!(task["status"]["state"], "canceled", "{task}");
    assert!(start.elapsed() < Duration::from_secs(5), "it took {:?}", start.elapsed());
    let work = program.workspace();
    assert_eq!(work_refs(&work), Vec::<String>::new(), "git is slow");
    wait_for("the work", Duration::from_secs(60), || !work_refs(&work).is_empty());
    let kept = work_refs(&work).pop().unwrap();
    assert_eq!(git(&work, &["show", &format!("{kept}:made.txt")]), "changed\n");
    wait_for("the tree is gone", Duration::from_secs(30), || git(&work, &["worktree", "list"]).lines().count() == 1);
}

#[test]
fn a_cancel_hands_over_the_diff_where_git_is_quick() {
    let program = ProgramFixture::new("echo changed > made.txt\necho ready\nsleep 300\n");
    slow_repository(&program, 0);
    let fixture = serve_with_home(&program, "command", "isolation = \"worktree\"\n");
    let (id, mut events) = fixture.working("go");
    while !events.next_frame().unwrap().expect("it says something").data.contains("ready") {}
    let task = fixture.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}))["result"].take();
    assert_eq!(task["status"]["state"], "canceled", "{task}");
    let diff = artifact(&task, "changes")["parts"][0]["text"].as_str().unwrap_or_default();
    assert!(diff.contains("+changed"), "{task}");
}

#[test]
fn work_that_a_stopping_server_cannot_keep_is_kept_by_the_next_one() {
    let program = ProgramFixture::new("echo changed > made.txt\necho $$ > \"$HOME/self\"\nsleep 300\n");
    slow_repository(&program, 6);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), program.agent("prog", "command", "isolation = \"worktree\"\n"))
        .unwrap();
    let options = SabirOptions::new(SABIR, folder.path())
        .variable("HOME", program.path("home").to_str().unwrap())
        .variable("SABIR_SERVER_GRACE", "3s");
    let work = program.workspace();
    for how in ["TERM", "KILL"] {
        let _ = fs::remove_file(program.path("home/self"));
        let mut server = options.start();
        begin(&server);
        pid_in(&program.path("home/self"));
        let start = Instant::now();
        match how {
            "KILL" => server.kill(),
            _ => {
                server.terminate();
                assert_eq!(server.wait(Duration::from_secs(30)).code(), Some(0));
                assert!(start.elapsed() < Duration::from_secs(4), "it took {:?}", start.elapsed());
            }
        }
        assert_eq!(work_refs(&work).len(), 0, "{how}: git is slow");
        let server = options.start();
        wait_for(how, Duration::from_secs(60), || work_refs(&work).len() == 1);
        wait_for("no tree is left", Duration::from_secs(30), || git(&work, &["worktree", "list"]).lines().count() == 1);
        assert_eq!(git(&work, &["show", &format!("{}:made.txt", work_refs(&work)[0])]), "changed\n");
        for name in git(&work, &["for-each-ref", "--format=%(refname)", "refs/sabir"]).lines() {
            git(&work, &["update-ref", "-d", name]);
        }
        wait_for("no file is left", Duration::from_secs(30), || !folder.path().join("sabir.db-worktrees").exists());
        server.kill();
    }
}

/// Like Claude Code: asks for permission, and asks again when its turn is resumed.
const ASKING_CLAUDE: &str = r#"case "$*" in *--resume*) ;; *) read -r prompt ;; esac
echo '{"type":"system","subtype":"init","session_id":"s1"}'
echo '{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}'
read -r answer
echo '{"type":"result","subtype":"success","is_error":false,"result":"went on"}'
"#;

#[test]
fn a_run_resumed_after_a_kill_continues_in_its_worktree() {
    let program = ProgramFixture::new(&format!("echo work >> made.txt\n{ASKING_CLAUDE}"));
    slow_repository(&program, 0);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), program.agent("prog", "claude-code", "isolation = \"worktree\"\n"))
        .unwrap();
    let options = SabirOptions::new(SABIR, folder.path()).variable("HOME", program.path("home").to_str().unwrap());
    let server = options.start();
    let parked = server.rpc("SendMessage", message("go"))["result"]["task"].take();
    assert_eq!(state(&parked), "INPUT_REQUIRED", "{parked}");
    server.kill();

    let server = options.start();
    let mut answer = message("yes");
    answer["message"]["taskId"] = parked["id"].clone();
    let task = server.rpc("SendMessage", answer)["result"]["task"].take();
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let diff = artifact(&task, "changes")["parts"][0]["text"].as_str().unwrap_or_default();
    assert!(diff.contains("+work\n+work\n"), "the work of both runs: {task}");
    assert_eq!(git(&program.workspace(), &["worktree", "list"]).lines().count(), 1);
    server.kill();
}
