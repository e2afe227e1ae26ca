//! Programs behind the real server: where they work, what they are given, and what happens when they misbehave.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use sabir_testkit::process::{Options, Sabir};
use serde_json::{Value, json};

use crate::SABIR;
use crate::desk::Desk;

const RPC: &str = "/a2a/v1";

/// A folder with a program in it, and a workspace beside.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// The program is a shell script.
    fn shell(program: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = Self { folder };
        fs::create_dir(bench.workspace()).unwrap();
        let path = bench.path("program");
        fs::write(&path, format!("#!/bin/sh\n{program}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn workspace(&self) -> PathBuf {
        self.path("work")
    }

    /// The file that hosts the program as this kind, with more settings.
    fn config(&self, kind: &str, more: &str) -> String {
        format!(
            "[[agent]]\nid = \"prog\"\nkind = \"{kind}\"\ncommand = [{:?}]\nworkspace = {:?}\n{more}\n",
            self.path("program"),
            self.workspace()
        )
    }

    fn serve(&self, kind: &str, more: &str) -> Desk {
        Desk::configured(&self.config(kind, more))
    }
}

fn message(text: &str) -> Value {
    json!({"message": {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

fn send(desk: &Desk, params: Value) -> Value {
    let answer = desk.rpc(RPC, "SendMessage", params);
    answer["result"]["task"].as_object().map(|task| Value::Object(task.clone())).unwrap_or_else(|| panic!("{answer}"))
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}

fn reason(task: &Value) -> &str {
    task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
}

fn artifact<'a>(task: &'a Value, name: &str) -> &'a Value {
    let artifacts = task["artifacts"].as_array().map(Vec::as_slice).unwrap_or_default();
    artifacts.iter().find(|artifact| artifact["name"] == name).unwrap_or(&Value::Null)
}

fn answer(task: &Value) -> &str {
    artifact(task, "assistant-response")["parts"][0]["text"].as_str().unwrap_or_default()
}

fn is_alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn wait_for(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn pid_in(path: &Path) -> String {
    let mut pid = String::new();
    wait_for("a pid", Duration::from_secs(10), || {
        pid = fs::read_to_string(path).unwrap_or_default();
        pid.ends_with('\n')
    });
    pid.trim().to_owned()
}

#[test]
fn a_command_answers_with_what_it_prints() {
    let bench = Bench::shell("tr a-z A-Z; echo; pwd\n");
    let task = send(&bench.serve("command", ""), message("hello"));
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    let folder = fs::canonicalize(bench.workspace()).unwrap();
    assert_eq!(answer(&task).trim_end(), format!("HELLO\n\n{}", folder.display()));
}

#[test]
fn the_exit_code_of_a_command_decides() {
    let bench = Bench::shell("echo half; echo 'no luck' >&2; exit 7\n");
    let task = send(&bench.serve("command", ""), message("x"));
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    assert!(reason(&task).contains("exit code 7") && reason(&task).contains("no luck"), "{task}");
    assert_eq!(answer(&task).trim_end(), "half");
}

#[test]
fn a_program_has_the_environment_that_it_is_given() {
    let bench = Bench::shell("env\n");
    let config = bench.config("command", "env = { COLOUR = \"green\" }\npass_env = [\"PASSED_ON\", \"MANY_*\"]\n");
    let desk = Desk::with(|options| {
        fs::write(options.folder.join("sabir.toml"), config).unwrap();
        let options = options.variable("SECRET_OF_THE_HOUSE", "s").variable("SABIR_SEND_MAX_WAIT", "60s");
        options.variable("PASSED_ON", "p").variable("MANY_THINGS", "m")
    });
    let task = send(&desk, message("x"));
    let lines: Vec<&str> = answer(&task).lines().collect();
    for expected in ["COLOUR=green", "PASSED_ON=p", "MANY_THINGS=m"] {
        assert!(lines.contains(&expected), "{expected} in {lines:?}");
    }
    assert!(lines.iter().any(|line| line.starts_with("PATH=")), "{lines:?}");
    // The mark is Sabir's own, by which it finds what programs leave behind.
    let is_ours = |line: &&str| line.starts_with("SABIR") && !line.starts_with("SABIR_RUN=");
    assert!(!lines.iter().any(|line| line.starts_with("SECRET") || is_ours(line)), "{lines:?}");
}

#[test]
fn callers_choose_among_the_allowed_folders() {
    let bench = Bench::shell("pwd\n");
    for name in ["roots/one", "elsewhere"] {
        fs::create_dir_all(bench.path(name)).unwrap();
    }
    let desk = bench.serve("command", &format!("workspace_roots = [{:?}]\n", bench.path("roots")));
    let at = |folder: &Path| {
        let mut params = message("x");
        params["metadata"] = json!({"workspace": folder});
        params["message"]["messageId"] = json!(folder);
        send(&desk, params)
    };
    let inside = at(&bench.path("roots/one"));
    let real = fs::canonicalize(bench.path("roots/one")).unwrap();
    assert_eq!(answer(&inside).trim_end(), real.to_str().unwrap(), "{inside}");
    for outside in ["elsewhere", "roots/../elsewhere", "roots/missing"] {
        let refused = at(&bench.path(outside));
        assert_eq!(state(&refused), "TASK_STATE_REJECTED", "{outside}: {refused}");
    }
}

#[test]
fn files_and_data_of_a_message_reach_the_program() {
    let bench = Bench::shell("cat; cat .sabir/*/notes.txt\n");
    let mut params = message("read this");
    params["message"]["parts"] = json!([
        {"text": "read this"},
        {"raw": "Zm9ydHktdHdv", "filename": "notes.txt", "mediaType": "text/plain"},
        {"data": {"depth": 3}},
    ]);
    let task = send(&bench.serve("command", ""), params);
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    for expected in ["read this", "notes.txt", r#"{"depth":3}"#, "forty-two"] {
        assert!(answer(&task).contains(expected), "{expected} in {}", answer(&task));
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_worktree_keeps_the_workspace_clean_and_hands_over_the_diff() {
    let bench = Bench::shell("echo two >> file.txt; echo new > made.txt; echo done\n");
    let work = bench.workspace();
    git(&work, &["init", "--quiet"]);
    fs::write(work.join("file.txt"), "one\n").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    let desk = bench.serve("command", "isolation = \"worktree\"\n");
    let task = send(&desk, message("change it"));
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    let changes = artifact(&task, "changes");
    let diff = changes["parts"][0]["text"].as_str().unwrap_or_default();
    assert!(diff.contains("+two") && diff.contains("made.txt") && diff.contains("+new"), "{task}");
    assert_eq!(fs::read_to_string(work.join("file.txt")).unwrap(), "one\n");
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
    assert_eq!(git(&work, &["worktree", "list"]).lines().count(), 1);
    fs::write(bench.path("changes.diff"), diff).unwrap();
    git(&work, &["apply", bench.path("changes.diff").to_str().unwrap()]);
    assert_eq!(fs::read_to_string(work.join("made.txt")).unwrap(), "new\n");
}

/// A repository in the workspace, and a home in which every `git add` of a file takes long.
fn slow_repository(bench: &Bench, seconds: u32) {
    let work = bench.workspace();
    git(&work, &["init", "--quiet"]);
    fs::write(work.join("file.txt"), "one\n").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    fs::write(work.join(".git/info/attributes"), "* filter=slow\n").unwrap();
    fs::create_dir(bench.path("home")).unwrap();
    let settings = format!("[filter \"slow\"]\n\tclean = \"sleep {seconds}; cat\"\n");
    fs::write(bench.path("home/.gitconfig"), settings).unwrap();
}

fn serve_with_home(bench: &Bench, kind: &str, more: &str) -> Desk {
    Desk::with(|options| {
        fs::write(options.folder.join("sabir.toml"), bench.config(kind, more)).unwrap();
        options.variable("HOME", bench.path("home").to_str().unwrap())
    })
}

fn work_refs(work: &Path) -> Vec<String> {
    let refs = git(work, &["for-each-ref", "--format=%(refname)", "refs/sabir"]);
    refs.lines().filter(|name| name.ends_with("/work")).map(str::to_owned).collect()
}

#[test]
fn a_cancel_is_answered_when_the_program_has_ended_and_the_work_is_kept_after_that() {
    let bench = Bench::shell("echo changed > made.txt\necho $$ > \"$OLDPWD/../self\" || :\necho ready\nsleep 300\n");
    slow_repository(&bench, 8);
    let desk = serve_with_home(&bench, "command", "isolation = \"worktree\"\n");
    let (id, mut events) = desk.working("go");
    while !events.next_frame().unwrap().expect("it says something").data.contains("ready") {}
    let start = Instant::now();
    let task = desk.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}))["result"].take();
    assert_eq!(task["status"]["state"], "canceled", "{task}");
    assert!(start.elapsed() < Duration::from_secs(5), "it took {:?}", start.elapsed());
    let work = bench.workspace();
    assert_eq!(work_refs(&work), Vec::<String>::new(), "git is slow");
    wait_for("the work", Duration::from_secs(60), || !work_refs(&work).is_empty());
    let kept = work_refs(&work).pop().unwrap();
    assert_eq!(git(&work, &["show", &format!("{kept}:made.txt")]), "changed\n");
    wait_for("the tree is gone", Duration::from_secs(30), || git(&work, &["worktree", "list"]).lines().count() == 1);
}

#[test]
fn a_cancel_hands_over_the_diff_where_git_is_quick() {
    let bench = Bench::shell("echo changed > made.txt\necho ready\nsleep 300\n");
    slow_repository(&bench, 0);
    let desk = serve_with_home(&bench, "command", "isolation = \"worktree\"\n");
    let (id, mut events) = desk.working("go");
    while !events.next_frame().unwrap().expect("it says something").data.contains("ready") {}
    let task = desk.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}))["result"].take();
    assert_eq!(task["status"]["state"], "canceled", "{task}");
    let diff = artifact(&task, "changes")["parts"][0]["text"].as_str().unwrap_or_default();
    assert!(diff.contains("+changed"), "{task}");
}

#[test]
fn work_that_a_stopping_server_cannot_keep_is_kept_by_the_next_one() {
    let bench = Bench::shell("echo changed > made.txt\necho $$ > \"$HOME/self\"\nsleep 300\n");
    slow_repository(&bench, 6);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), bench.config("command", "isolation = \"worktree\"\n")).unwrap();
    let options = Options::new(SABIR, folder.path())
        .variable("HOME", bench.path("home").to_str().unwrap())
        .variable("SABIR_SERVER_GRACE", "3s");
    let work = bench.workspace();
    for how in ["TERM", "KILL"] {
        let _ = fs::remove_file(bench.path("home/self"));
        let mut server = options.start();
        begin(&server);
        pid_in(&bench.path("home/self"));
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

/// What a caller sees of programs that misbehave: never a hang, always a reason.
#[test]
fn programs_that_misbehave_fail_with_a_reason() {
    for (name, program, more, expected) in [
        ("floods", "yes 'a long line of nothing in particular'\n", "max_output = \"1MiB\"\n", "printed more than"),
        ("closes its output and lives on", "exec >&-\nsleep 60\n", "", "closed its output"),
        ("is killed", "kill -9 $$\n", "", "signal 9"),
        ("exits without an end", "echo '{\"type\":\"system/init\"}'\n", "", "without saying that it was done"),
    ] {
        let kind = if name == "floods" { "command" } else { "generic" };
        let bench = Bench::shell(program);
        let desk = bench.serve(kind, more);
        let start = Instant::now();
        let task = send(&desk, message("x"));
        assert_eq!(state(&task), "TASK_STATE_FAILED", "{name}: {task}");
        assert!(reason(&task).contains(expected), "{name}: {}", reason(&task));
        assert!(start.elapsed() < Duration::from_secs(15), "{name}: {:?}", start.elapsed());
    }
}

#[test]
fn one_endless_line_and_broken_text_do_no_harm() {
    let bench = Bench::shell(
        "head -c 104857600 /dev/zero | tr '\\0' x\nprintf '\\n\\377\\376{\"type\":\"assistant\"}\\n'\n\
         echo '{\"type\":\"result\",\"summary\":\"still here\"}'\n",
    );
    let config = bench.config("generic", "max_output = \"256MiB\"\n");
    let desk = Desk::configured(&config);
    let task = send(&desk, message("x"));
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    let status = fs::read_to_string(format!("/proc/{}/status", desk.server.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let peak: u64 = peak.trim_end_matches(" kB").trim().parse().unwrap();
    assert!(peak < 200 << 10, "the server held {peak} kB");
}

/// A program with a child in its group and a daemon that left it.
const FAMILY: &str = "trap '' TERM\necho $$ > self\nsleep 300 & echo $! > child\n\
    setsid sh -c 'sleep 300 & echo $! > daemon' &\necho '{\"type\":\"system/init\"}'\nwait\nsleep 300\n";

fn family(bench: &Bench) -> Vec<String> {
    ["self", "child", "daemon"].iter().map(|name| pid_in(&bench.workspace().join(name))).collect()
}

#[test]
fn a_cancel_ends_the_whole_family_also_when_it_ignores_sigterm() {
    let bench = Bench::shell(FAMILY);
    let desk = bench.serve("generic", "");
    let (id, _events) = desk.working("go");
    let family = family(&bench);
    let task = desk.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}))["result"].take();
    assert_eq!(task["status"]["state"], "canceled", "{task}");
    for pid in family {
        wait_for("its end", Duration::from_secs(5), || !is_alive(&pid));
    }
}

#[test]
fn nothing_lives_on_after_the_server() {
    for how in ["KILL", "TERM"] {
        let bench = Bench::shell(FAMILY);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sabir.toml"), bench.config("generic", "")).unwrap();
        let server: Sabir = Options::new(SABIR, folder.path()).start();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
            "params": {"message": message("go")["message"], "configuration": {"returnImmediately": true}}});
        let reply = server.http().exchange("POST", RPC, &[], body.to_string().as_bytes()).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        let family = family(&bench);
        let mut server = server;
        match how {
            "KILL" => server.kill(),
            _ => {
                server.terminate();
                server.wait(Duration::from_secs(20));
            }
        }
        for pid in family {
            wait_for(how, Duration::from_secs(8), || !is_alive(&pid));
        }
    }
}

/// Starts a run whose caller does not wait.
fn begin(server: &Sabir) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": {"message": message("go")["message"], "configuration": {"returnImmediately": true}}});
    let reply = server.http().exchange("POST", RPC, &[], body.to_string().as_bytes()).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// A daemon that is found by its mark, one that has cleared its environment, and a child.
const DAEMONS: &str = "trap '' TERM\nsleep 300 & echo $! > child\n(setsid sh -c 'echo $$ > marked; exec sleep 300' &)\n\
    (env -i PATH=\"$PATH\" setsid sh -c 'echo $$ > unmarked; exec sleep 300' &)\n\
    until [ -s marked ] && [ -s unmarked ]; do sleep 0.01; done\n";

#[test]
fn a_program_that_kills_its_guard_leaves_no_process() {
    let bench = Bench::shell(&format!("{DAEMONS}kill -KILL $PPID\nexec sleep 300\n"));
    let desk = bench.serve("command", "");
    let task = send(&desk, message("x"));
    assert_eq!(state(&task), "TASK_STATE_FAILED", "{task}");
    for name in ["child", "marked", "unmarked"] {
        assert!(!is_alive(&pid_in(&bench.workspace().join(name))), "{name}");
    }
    let children = format!("/proc/{0}/task/{0}/children", desk.server.pid());
    assert_eq!(fs::read_to_string(children).unwrap_or_default().trim(), "", "they are reaped");
    // What a run leaves behind costs no other run its guard.
    assert_eq!(state(&send(&desk, message("y"))), "TASK_STATE_FAILED");
}

#[test]
fn the_next_server_ends_what_outlived_server_and_guard() {
    let bench = Bench::shell(&format!(
        "{DAEMONS}kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat) $PPID\necho $$ > self\nexec sleep 300\n"
    ));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), bench.config("command", "")).unwrap();
    let mut killed = Options::new(SABIR, folder.path()).start();
    begin(&killed);
    killed.wait(Duration::from_secs(30));
    let left: Vec<String> =
        ["self", "child", "marked"].iter().map(|name| pid_in(&bench.workspace().join(name))).collect();
    // A server of another test may be quicker.
    let _next = Options::new(SABIR, folder.path()).start();
    for pid in left {
        wait_for("its end", Duration::from_secs(30), || !is_alive(&pid));
    }
    // Nobody can tell whose this one is.
    let unmarked = pid_in(&bench.workspace().join("unmarked"));
    assert!(Command::new("kill").args(["-KILL", &unmarked]).status().unwrap().success());
}

/// A program that stops its guard when it is told to end.
const STOPPER: &str =
    "echo $PPID > guard\ntrap 'kill -STOP $PPID' TERM\necho $$ > self\nwhile :; do sleep 0.05; done\n";

/// The processes of such a program, also one that has no mark.
fn stoppers(bench: &Bench) -> Vec<String> {
    ["guard", "self", "child", "marked", "unmarked"].iter().map(|name| pid_in(&bench.workspace().join(name))).collect()
}

fn alive(pids: &[String]) -> Vec<&String> {
    pids.iter().filter(|pid| is_alive(pid)).collect()
}

#[test]
fn a_program_that_stops_its_guard_is_ended() {
    for stop in ["kill -STOP $PPID\n", "sleep 0.3; kill -STOP $PPID\n"] {
        let bench = Bench::shell(&format!("echo $PPID > guard\n{DAEMONS}echo $$ > self\n{stop}exec sleep 300\n"));
        let task = send(&bench.serve("command", ""), message("x"));
        assert_eq!(state(&task), "TASK_STATE_FAILED", "{task}");
        assert!(alive(&stoppers(&bench)).is_empty(), "{stop}: {:?}", alive(&stoppers(&bench)));
    }
    // Before its guard can say that it runs.
    let bench = Bench::shell("kill -STOP $PPID\necho $PPID > guard\nexec sleep 300\n");
    let task = send(&bench.serve("command", ""), message("x"));
    assert_eq!(state(&task), "TASK_STATE_FAILED", "{task}");
    assert!(!is_alive(&pid_in(&bench.workspace().join("guard"))));
}

#[test]
fn a_program_that_stops_its_guard_does_not_outlive_a_cancel() {
    let bench = Bench::shell(&format!("{DAEMONS}{STOPPER}"));
    let desk = bench.serve("command", "");
    let (id, _events) = desk.working("go");
    let left = stoppers(&bench);
    let task = desk.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}))["result"].take();
    assert_eq!(task["status"]["state"], "canceled", "{task}");
    assert!(alive(&left).is_empty(), "{:?} of {left:?}", alive(&left));
}

#[test]
fn a_program_that_stops_its_guard_does_not_outlive_the_server() {
    for grace in ["10s", "0s"] {
        let bench = Bench::shell(&format!("{DAEMONS}{STOPPER}"));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sabir.toml"), bench.config("command", "")).unwrap();
        let mut server = Options::new(SABIR, folder.path()).variable("SABIR_SERVER_GRACE", grace).start();
        begin(&server);
        let left = stoppers(&bench);
        server.terminate();
        assert_eq!(server.wait(Duration::from_secs(30)).code(), Some(0));
        // Nobody is there any more who could end them.
        assert!(alive(&left).is_empty(), "{grace}: {:?} of {left:?}", alive(&left));
    }
}

#[test]
fn the_next_server_ends_a_program_that_stopped_its_guard() {
    let bench = Bench::shell(&format!("{DAEMONS}{STOPPER}"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), bench.config("command", "")).unwrap();
    let server = Options::new(SABIR, folder.path()).start();
    begin(&server);
    let left = stoppers(&bench);
    server.kill();
    // A server of another test may be quicker.
    let _next = Options::new(SABIR, folder.path()).start();
    wait_for("their end", Duration::from_secs(30), || alive(&left).is_empty());
}

#[test]
fn a_stop_does_not_wait_for_the_end_of_a_program_that_has_closed_its_output() {
    // It needs a moment to end, which it does not have if it is told late.
    let bench = Bench::shell(
        "trap 'sleep 1.6; echo told > told; exit 0' TERM\nexec >&- 2>&-\necho $$ > self\nwhile :; do sleep 0.05; done\n",
    );
    for how in ["cancel", "timeout"] {
        let limit = if how == "timeout" { "timeout = '1s'" } else { "" };
        let desk = bench.serve("command", limit);
        let (id, mut events) = desk.working("go");
        pid_in(&bench.workspace().join("self"));
        let expected = match how {
            "cancel" => {
                desk.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}));
                ("canceled", "")
            }
            _ => {
                drop(events.rest());
                ("failed", "timed out: the turn took longer than 1s")
            }
        };
        let task = desk.task(&id);
        assert_eq!((task["status"]["state"].as_str().unwrap(), reason(&task)), expected, "{task}");
        assert!(bench.workspace().join("told").exists(), "{how}");
        fs::remove_file(bench.workspace().join("self")).unwrap();
        fs::remove_file(bench.workspace().join("told")).unwrap();
    }
}

#[test]
fn programs_do_not_have_the_terminal_of_the_server() {
    let bench = Bench::shell("if (: < /dev/tty) 2>&1; then echo 'it has a terminal'; else echo 'it has none'; fi\n");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), bench.config("command", "")).unwrap();
    // `script` gives the server a terminal; its one line goes around that.
    let starter = bench.path("in-a-terminal");
    let line = format!("#!/bin/sh\nexec 3>&1\nexec script -qec \"exec '{SABIR}' $* >&3\" /dev/null > /dev/null\n");
    fs::write(&starter, line).unwrap();
    fs::set_permissions(&starter, fs::Permissions::from_mode(0o755)).unwrap();
    let server = Options::new(starter.to_str().unwrap(), folder.path()).start();
    let pid = server.ready["pid"].as_u64().unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let terminal = stat[stat.rfind(')').unwrap()..].split(' ').nth(5).unwrap();
    assert_ne!(terminal, "0", "the server has a terminal");
    let task = server.rpc("SendMessage", message("x"))["result"]["task"].take();
    assert!(answer(&task).trim_end().ends_with("it has none"), "{task}");
    assert!(Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap().success());
    wait_for("the end", Duration::from_secs(30), || !is_alive(&pid.to_string()));
}

#[test]
fn a_question_that_nobody_answers_in_time_is_a_no() {
    let bench = Bench::shell(
        "echo 'Go on? [Y/n]'\nread answer\necho \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"$answer\\\"}\"\n",
    );
    let desk = bench.serve("generic", "approve = \"ask\"\napproval_timeout = \"300ms\"\n");
    let task = send(&desk, message("x"));
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
    let question = task["status"]["message"]["parts"][1]["data"].clone();
    assert_eq!(question["choices"].as_array().map(Vec::len), Some(2), "{task}");
    let id = task["id"].as_str().unwrap();
    wait_for("the end", Duration::from_secs(10), || desk.task(id)["status"]["state"] == "completed");
    let task = desk.task(id);
    let result = task["artifacts"].as_array().unwrap().iter().find(|one| one["name"] == "result").unwrap();
    assert_eq!(result["parts"][0]["data"]["summary"], "n", "{task}");
}

#[test]
fn policies_answer_for_the_caller() {
    for (approve, expected) in [("all", "y"), ("none", "n")] {
        let bench = Bench::shell(
            "echo 'Go on? [Y/n]'\nread answer || answer=closed\necho \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"$answer\\\"}\"\n",
        );
        let task = send(&bench.serve("generic", &format!("approve = \"{approve}\"\n")), message("x"));
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
        let summary = artifact(&task, "result")["parts"][0]["data"]["summary"].as_str().unwrap_or_default();
        assert!([expected, "closed"].contains(&summary), "{approve}: {task}");
    }
}

/// A session that was canceled early may never have been written down by its program.
#[test]
fn a_context_survives_the_loss_of_its_session() {
    let bench = Bench::shell(
        r#"case "$*" in *--resume*)
    echo '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: s1"]}'
    exit 1 ;;
esac
read -r prompt
echo '{"type":"system","subtype":"init","session_id":"s1"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"new"}'
"#,
    );
    let desk = bench.serve("claude-code", "");
    let first = send(&desk, message("one"));
    assert_eq!(state(&first), "TASK_STATE_COMPLETED", "{first}");
    let mut states = Vec::new();
    for words in ["two", "three"] {
        let mut again = message(words);
        again["message"]["contextId"] = first["contextId"].clone();
        states.push(state(&send(&desk, again)).to_owned());
    }
    assert_eq!(states, ["TASK_STATE_FAILED", "TASK_STATE_COMPLETED"]);
}

#[test]
fn many_short_lines_are_few_pieces() {
    let bench = Bench::shell("yes | head -n 100000\n");
    let frames = bench.serve("command", "").stream_rpc(RPC, "SendStreamingMessage", message("x"));
    let pieces: Vec<&str> =
        frames.iter().filter_map(|frame| frame["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str()).collect();
    assert_eq!(pieces.concat().trim_end(), "y\n".repeat(100_000).trim_end());
    assert!(pieces.len() < 2000, "{}", pieces.len());
}

#[test]
fn a_message_that_no_command_line_holds_is_told_as_that() {
    let bench = Bench::shell("echo '{\"type\":\"result\",\"subtype\":\"success\"}'\n");
    let mut long = message("x");
    long["message"]["parts"][0]["text"] = json!("x".repeat(200_000));
    let task = send(&bench.serve("generic", ""), long);
    assert_eq!(state(&task), "TASK_STATE_FAILED");
    assert!(reason(&task).contains("longer than the program"), "{task}");
}

#[test]
fn who_is_left_behind_does_not_cost_the_answer() {
    let bench = Bench::shell("sh -c 'trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 &\necho done\n");
    let task = send(&bench.serve("command", ""), message("x"));
    assert_eq!((state(&task), answer(&task)), ("TASK_STATE_COMPLETED", "done"), "{task}");
}

/// Speaks the Agent Client Protocol, asks, and ends its turn without waiting for the answer.
const IMPATIENT: &str = r#"say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
while read -r line; do
    case $line in
    *'"initialize"'*) say '"id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) say '"id":2,"result":{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
        say '"id":99,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"rm"},
            "options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}' | tr -d '\n'
        echo
        say '"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"never mind"}}}'
        say '"id":3,"result":{"stopReason":"end_turn"}' ;;
    esac
done
"#;

#[test]
fn a_program_that_does_not_wait_for_the_answer_is_not_waited_for() {
    let bench = Bench::shell(IMPATIENT);
    let desk = bench.serve("acp", "");
    let task = send(&desk, message("x"));
    let id = task["id"].as_str().unwrap();
    wait_for("the end", Duration::from_secs(10), || desk.task(id)["status"]["state"] == "completed");
    let task = desk.task(id);
    assert_eq!(task["artifacts"][0]["parts"][0]["data"]["sessionId"], "s", "{task}");
    assert_eq!(task["artifacts"][1]["parts"][0]["text"], "never mind", "{task}");
}

#[test]
fn a_question_without_a_line_end_is_a_question() {
    let bench = Bench::shell(
        "printf 'Delete build? [y/N] '\nread answer\nprintf 'Sure? (y/n) '\nread again\n\
         echo \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"$answer $again\\\"}\"\n",
    );
    let desk = bench.serve("generic", "approve = \"ask\"\n");
    let mut task = send(&desk, message("x"));
    for (question, words) in [("Delete build? [y/N]", "yes"), ("Sure? (y/n)", "no")] {
        assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
        assert!(reason(&task).starts_with(question), "{task}");
        let mut answer = message(words);
        answer["message"]["taskId"] = task["id"].clone();
        task = send(&desk, answer);
    }
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    assert_eq!(artifact(&task, "result")["parts"][0]["data"]["summary"], "y n", "{task}");
}

#[test]
fn a_context_whose_session_is_gone_begins_a_new_one() {
    // Like gemini, codex exec and opencode: an unknown session is a word on stderr and an exit code.
    let bench = Bench::shell(
        "case \"$*\" in *gone*) echo 'no such session' >&2; exit 42;; esac\n\
         echo '{\"type\":\"init\",\"session_id\":\"gone\"}'\necho '{\"type\":\"result\",\"status\":\"success\"}'\n",
    );
    let desk = bench.serve("gemini", "mode = \"oneshot\"\napprove = \"none\"\n");
    let first = send(&desk, message("one"));
    let within = |text: &str| {
        let mut params = message(text);
        params["message"]["contextId"] = first["contextId"].clone();
        send(&desk, params)
    };
    assert_eq!(state(&first), "TASK_STATE_COMPLETED", "{first}");
    let lost = within("two");
    assert_eq!(state(&lost), "TASK_STATE_FAILED", "{lost}");
    assert!(reason(&lost).contains("no such session") && reason(&lost).contains("new session"), "{lost}");
    assert_eq!(state(&within("three")), "TASK_STATE_COMPLETED");
}

/// Notes what it was started with and told, and is done.
const NOTING: &str = r#"printf '%s\n' "$@" > ../arguments; env > ../environment
cat > ../prompt
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
"#;

#[test]
fn what_a_caller_writes_is_no_command_of_the_program() {
    for (trust, expected) in [
        ("", "`/cost` of @ ../secret, @Override, a@b.c"),
        ("trust_prompts = true\n", "/cost of @../secret, @Override, a@b.c"),
    ] {
        let bench = Bench::shell(NOTING);
        fs::write(bench.path("secret"), "s").unwrap();
        let desk = bench.serve("claude-code", &format!("mode = \"oneshot\"\n{trust}"));
        let task = send(&desk, message("/cost of @../secret, @Override, a@b.c"));
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
        assert_eq!(fs::read_to_string(bench.path("prompt")).unwrap().trim_end(), expected);
        let environment = fs::read_to_string(bench.path("environment")).unwrap();
        assert_eq!(environment.contains("CLAUDE_CODE_DISABLE_FILE_MENTIONS=1"), trust.is_empty());
    }
}

#[test]
fn the_settings_of_a_workspace_count_if_it_is_trusted() {
    for (trust, is_confined) in [("", true), ("trust_workspace = true\n", false)] {
        let bench = Bench::shell(NOTING);
        fs::create_dir(bench.workspace().join(".claude")).unwrap();
        let settings = r#"{"permissions":{"allow":["Bash"],"deny":["Read(./.env)"]},"hooks":{}}"#;
        fs::write(bench.workspace().join(".claude/settings.json"), settings).unwrap();
        let task = send(&bench.serve("claude-code", &format!("mode = \"oneshot\"\n{trust}")), message("x"));
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
        let arguments = fs::read_to_string(bench.path("arguments")).unwrap();
        let lines: Vec<&str> = arguments.lines().collect();
        let rules = r#"--settings={"permissions":{"ask":[],"deny":["Read(./.env)"]}}"#;
        for argument in ["--setting-sources=user", "--strict-mcp-config", rules] {
            assert_eq!(lines.contains(&argument), is_confined, "{argument} in {lines:?}");
        }
    }
}

/// Asks for this tool with these suggestions, and notes the answer.
fn asking(tool: &str, input: &str) -> String {
    let suggestion =
        r#"{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"localSettings"}"#;
    let request = format!(
        r#"{{"type":"control_request","request_id":"r","request":{{"subtype":"can_use_tool","tool_name":"{tool}","input":{input},"permission_suggestions":[{suggestion}]}}}}"#
    );
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
    format!("read -r prompt\necho '{request}'\nread -r answer\nprintf '%s' \"$answer\" > ../answer\necho '{done}'\n")
}

fn noted_answer(bench: &Bench) -> Value {
    serde_json::from_str(&fs::read_to_string(bench.path("answer")).unwrap()).unwrap()
}

#[test]
fn what_a_caller_always_allows_ends_with_the_session() {
    let bench = Bench::shell(&asking("Bash", r#"{"command":"ls"}"#));
    let desk = bench.serve("claude-code", "");
    let task = send(&desk, message("go"));
    assert_eq!(state(&task), "TASK_STATE_INPUT_REQUIRED", "{task}");
    let mut always = message("always");
    always["message"]["taskId"] = task["id"].clone();
    assert_eq!(state(&send(&desk, always)), "TASK_STATE_COMPLETED");
    let answer = noted_answer(&bench);
    let permissions = &answer["response"]["response"]["updatedPermissions"];
    assert_eq!(permissions[0]["destination"], "session", "{answer}");
    assert!(!answer.to_string().contains("localSettings"), "{answer}");
}

#[test]
fn an_agent_that_may_do_all_never_asks() {
    let question = r#"{"questions":[{"question":"Colour?","options":[{"label":"red"}]}]}"#;
    let bench = Bench::shell(&asking("AskUserQuestion", question));
    let task = send(&bench.serve("claude-code", "approve = \"all\"\n"), message("go"));
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    let answer = noted_answer(&bench);
    assert_eq!(answer["response"]["response"]["behavior"], "deny", "{answer}");
    let words = answer["response"]["response"]["message"].as_str().unwrap();
    assert!(words.starts_with("Nobody can answer"), "{answer}");
}

/// Like Claude Code: asks for permission, and asks again when its turn is resumed.
const ASKING_CLAUDE: &str = r#"case "$*" in *--resume*) ;; *) read -r prompt ;; esac
echo '{"type":"system","subtype":"init","session_id":"s1"}'
echo '{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}'
read -r answer
echo '{"type":"result","subtype":"success","is_error":false,"result":"went on"}'
"#;

#[test]
fn a_run_that_is_resumed_after_a_kill_goes_on_with_its_worktree() {
    let bench = Bench::shell(&format!("echo work >> made.txt\n{ASKING_CLAUDE}"));
    slow_repository(&bench, 0);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sabir.toml"), bench.config("claude-code", "isolation = \"worktree\"\n")).unwrap();
    let options = Options::new(SABIR, folder.path()).variable("HOME", bench.path("home").to_str().unwrap());
    let server = options.start();
    let parked = server.rpc("SendMessage", message("go"))["result"]["task"].take();
    assert_eq!(state(&parked), "TASK_STATE_INPUT_REQUIRED", "{parked}");
    server.kill();

    let server = options.start();
    let mut answer = message("yes");
    answer["message"]["taskId"] = parked["id"].clone();
    let task = server.rpc("SendMessage", answer)["result"]["task"].take();
    assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
    let diff = artifact(&task, "changes")["parts"][0]["text"].as_str().unwrap_or_default();
    assert!(diff.contains("+work\n+work\n"), "the work of both runs: {task}");
    assert_eq!(git(&bench.workspace(), &["worktree", "list"]).lines().count(), 1);
    server.kill();
}
