//! Worktrees of tasks: what is kept of them, by whom, and that no repository gets a command run by it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use sabir_agents::program::worktree::{TaskName, Worktree};
use sabir_agents::program::worktrees::sweep;
use sabir_agents::program::{GitLimits, Host, Warm, Workspaces, Worktrees};
use sabir_model::Owner;

use crate::SABIR;
use crate::program_fixture::{ProgramFixture, message, send, state, wait_for};

/// A repository with one commit, a home with settings of the operator, and a data directory.
struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn empty() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["repository", "home", "data"] {
            fs::create_dir(fixture.path(name)).unwrap();
        }
        fixture
    }

    fn new() -> Self {
        let fixture = Self::empty();
        fixture.git(&["init", "--quiet"]);
        fixture.write("sub/file", "one\n");
        fixture.commit();
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn repository(&self) -> PathBuf {
        self.path("repository")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.repository().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self) {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", "first"]);
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.repository(), arguments)
    }

    /// Git as people use it.
    fn git_in(&self, folder: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]);
        command.env("HOME", self.path("home")).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// A server on the data directory. A second one knows nothing of the first.
    fn server(&self) -> Host {
        let home = [("HOME", self.path("home").into_os_string()), ("ANTHROPIC_API_KEY", "secret".into())];
        let home = home.map(|(name, value)| (OsString::from(name), value));
        let others = std::env::vars_os().filter(|(name, _)| name != "HOME" && name != "XDG_CONFIG_HOME");
        Host {
            guard: SABIR.into(),
            variables: others.chain(home).collect(),
            open_files: None,
            database: Some(self.path("data").join("sabir.db")),
            warm: Warm::default(),
            worktrees: Worktrees::new(self.path("data").join("sabir.db-worktrees")),
            git_limits: GitLimits::default(),
            workspaces: Workspaces::default(),
        }
    }

    /// The folder of worktrees.
    fn trees(&self) -> PathBuf {
        self.path("data").join("sabir.db-worktrees")
    }

    /// A pipe that nobody writes to, in the place of a file that the repository's settings include.
    fn include_a_pipe(&self) {
        make_pipe(&self.path("pipe"));
        self.git(&["config", "include.path", self.path("pipe").to_str().unwrap()]);
    }

    /// The settings of the repository, without git.
    fn exclude_the_pipe(&self) {
        let config = self.repository().join(".git/config");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(config, text.split("[include]").next().unwrap()).unwrap();
    }

    /// Git commands of this fixture that run.
    fn running(&self) -> usize {
        let place = self.folder.path().to_str().unwrap();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        let is_ours = |line: &Vec<u8>| {
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            words.iter().take(2).any(|word| word.ends_with(b"git"))
                && words.iter().any(|word| String::from_utf8_lossy(word).contains(place))
        };
        lines.filter(is_ours).count()
    }

    async fn open(&self, host: &Host, task: &str) -> Worktree {
        Worktree::open(host, &self.repository(), task_of(&Owner::anonymous(), "a", task)).await.unwrap()
    }

    fn refs(&self) -> Vec<String> {
        let list = self.git(&["for-each-ref", "--format=%(refname)", "refs/sabir"]);
        list.lines().map(str::to_owned).collect()
    }

    /// The one ref under which work is kept.
    fn work(&self) -> String {
        let refs = self.refs();
        let work: Vec<&String> = refs.iter().filter(|name| name.ends_with("/work")).collect();
        assert_eq!(work.len(), 1, "{refs:?}");
        work[0].clone()
    }

    /// Nothing is left but refs: no tree, no file beside the database, nothing that git knows of.
    fn assert_tidy(&self) {
        assert_eq!(fs::read_dir(self.path("data")).unwrap().count(), 0, "files are left");
        assert_eq!(self.git(&["worktree", "list"]).lines().count(), 1, "git knows of a tree");
        assert!(!self.repository().join(".git/sabir-worktrees").exists());
        assert!(self.repository().join(".git/worktrees").read_dir().map_or(0, Iterator::count) == 0);
    }
}

fn task_of<'a>(owner: &'a Owner, agent: &'a str, task: &'a str) -> TaskName<'a> {
    TaskName { owner, agent, task, number: None }
}

async fn kept(tree: Worktree) -> String {
    String::from_utf8(tree.keep().await.unwrap().unwrap()).unwrap()
}

#[tokio::test]
async fn the_next_turn_goes_on_where_the_last_one_ended() {
    let fixture = Fixture::new();
    let host = fixture.server();
    let workspace = fixture.repository().join("sub");
    let owner = Owner::anonymous();
    let open = || Worktree::open(&host, &workspace, task_of(&owner, "a", "t/1"));
    let tree = open().await.unwrap();
    assert_eq!(fixture.git_in(&tree.folder, &["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(tree.folder.join("file")).unwrap(), "one\n");
    fs::write(tree.folder.join("file"), "two\n").unwrap();
    fs::write(tree.folder.join("made"), "new\n").unwrap();
    let diff = kept(tree).await;
    assert!(diff.contains("-one\n+two\n") && diff.contains("sub/made"), "{diff}");
    fixture.assert_tidy();

    let tree = open().await.unwrap();
    assert_eq!(fs::read_to_string(tree.folder.join("made")).unwrap(), "new\n");
    fs::write(tree.folder.join("file"), "three\n").unwrap();
    let diff = kept(tree).await;
    assert!(diff.contains("-one\n+three\n") && diff.contains("sub/made"), "{diff}");
    assert_eq!(fs::read_to_string(workspace.join("file")).unwrap(), "one\n");
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
    fixture.assert_tidy();
}

#[tokio::test]
async fn what_a_killed_server_left_is_gone_on_with() {
    let fixture = Fixture::new();
    let tree = fixture.open(&fixture.server(), "t").await;
    fs::write(tree.folder.join("made"), "before\n").unwrap();
    std::mem::forget(tree);
    let tree = fixture.open(&fixture.server(), "t").await;
    assert_eq!(fs::read_to_string(tree.folder.join("made")).unwrap(), "before\n");
    fs::write(tree.folder.join("more"), "after\n").unwrap();
    let diff = kept(tree).await;
    assert!(diff.contains("+before") && diff.contains("+after"), "{diff}");
    fixture.assert_tidy();
}

#[tokio::test]
async fn what_a_killed_server_left_is_swept() {
    let fixture = Fixture::new();
    let host = fixture.server();
    let (left, unchanged) = (fixture.open(&host, "t").await, fixture.open(&host, "u").await);
    fs::write(left.folder.join("made"), "kept\n").unwrap();
    // A module cache, for example, is write-protected.
    fs::create_dir(left.folder.join("cache")).unwrap();
    fs::write(left.folder.join("cache/file"), "").unwrap();
    let mut mode = fs::metadata(left.folder.join("cache")).unwrap().permissions();
    mode.set_readonly(true);
    fs::set_permissions(left.folder.join("cache"), mode).unwrap();
    // A tree that was not whole when the server was killed.
    let folder = host.worktrees.clone();
    let half = fixture.path("data").join("sabir.db-worktrees/half.json");
    let record = r#"{"common":"/nowhere","refs":"refs/sabir/a/half","base":"x","continues":false,"old_refs":null,"tree_data":null}"#;
    fs::write(half, record).unwrap();
    std::mem::forget((left, unchanged, folder));

    let next = fixture.server();
    let in_use = fixture.open(&next, "v").await;
    sweep(&next).await;
    assert!(in_use.folder.join("sub/file").exists(), "a tree that is in use stays");
    assert_eq!(fixture.git(&["show", &format!("{}:made", fixture.work())]), "kept");
    assert_eq!(kept(in_use).await, "");
    assert_eq!(fixture.refs().len(), 2, "who changed nothing leaves nothing");
    fixture.assert_tidy();
}

#[tokio::test]
async fn a_turn_that_is_dropped_loses_nothing() {
    let fixture = Fixture::new();
    let host = fixture.server();
    let mut tree = fixture.open(&host, "t").await;
    let (ended, receiver) = tokio::sync::watch::channel(None);
    tree.is_used_until(receiver);
    let folder = tree.folder.clone();
    drop(tree);
    // The program ends later than the turn, and still writes.
    tokio::task::yield_now().await;
    fs::write(folder.join("made"), "late\n").unwrap();
    ended.send_replace(Some(sabir_agents::protocol::Exit::Code(0)));
    host.worktrees.until_unused().await;
    assert_eq!(fixture.git(&["show", &format!("{}:made", fixture.work())]), "late");
    fixture.assert_tidy();
}

#[tokio::test]
async fn trees_of_earlier_versions_are_kept_and_their_place_is_cleaned() {
    let fixture = Fixture::new();
    for task in ["t", "u"] {
        let old = fixture.repository().join(".git/sabir-worktrees/a").join(task);
        fixture.git(&["worktree", "add", "--quiet", "--detach", old.to_str().unwrap()]);
        fs::write(old.join("made"), format!("of {task}\n")).unwrap();
    }
    let tree = fixture.open(&fixture.server(), "t").await;
    assert_eq!(fs::read_to_string(tree.folder.join("made")).unwrap(), "of t\n");
    let diff = kept(tree).await;
    assert!(diff.contains("+of t"), "{diff}");
    let refs = fixture.refs();
    assert_eq!(refs.len(), 4, "{refs:?}");
    assert!(!refs.contains(&"refs/sabir/a/t/work".to_owned()), "{refs:?}");
    assert_eq!(fixture.git(&["show", "refs/sabir/a/u/work:made"]), "of u");
    fixture.assert_tidy();
}

#[tokio::test]
async fn what_cannot_be_done_is_said() {
    let fixture = Fixture::empty();
    let host = fixture.server();
    let repository = fixture.repository();
    let owner = Owner::anonymous();
    let open = || Worktree::open(&host, &repository, task_of(&owner, "a", "t"));
    assert!(open().await.err().unwrap().to_string().contains("git"));
    fixture.git(&["init", "--quiet"]);
    assert!(open().await.err().unwrap().to_string().contains("no commit yet"));
    fixture.git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
    assert_eq!(kept(open().await.unwrap()).await, "");
    assert_eq!(fixture.refs(), Vec::<String>::new());
    fixture.assert_tidy();
}

#[test]
fn work_goes_with_tasks_that_retention_deletes() {
    let fixture = Fixture::new();
    let script = ProgramFixture::new("echo \"$*\" > made; echo done\n");
    let agent = |more: &str| {
        let (program, repository) = (script.program(), fixture.repository());
        format!(
            "[[agent]]\nid = 'a'\nkind = 'command'\ncommand = [{program:?}]\nworkspace = {repository:?}\n\
             isolation = 'worktree'\n{more}"
        )
    };
    // Of people, of another server, and of an earlier version.
    let head = fixture.git(&["rev-parse", "HEAD"]);
    let foreign = "x\n\nSabir-Task: 0123456789abcdef-1\n";
    let foreign = fixture.git(&["commit-tree", "-m", foreign, "HEAD^{tree}"]);
    let others = ["refs/sabir/a/foreign/work", "refs/sabir/a/mine", "refs/sabir/a/old/work"];
    for (name, commit) in others.iter().zip([&foreign, &head, &head]) {
        fixture.git(&["update-ref", name, commit]);
    }
    let tasks_refs = || fixture.refs().into_iter().filter(|name| !others.contains(&name.as_str())).collect::<Vec<_>>();
    let server = script.options(&agent("")).start();
    let ids = ["one", "two"].map(|text| {
        let task = send(&server, message(text));
        assert_eq!(state(&task), "COMPLETED", "{task}");
        task["id"].as_str().unwrap().to_owned()
    });
    assert_eq!(tasks_refs().len(), 4);
    server.kill();
    let server = script.options(&agent("[retention]\nmax_tasks = 1\n")).start();
    wait_for("the refs of the first task to go", || tasks_refs().len() == 2);
    assert!(tasks_refs().iter().all(|name| name.contains(&ids[1])), "{:?}", tasks_refs());
    assert_eq!(fixture.refs().len(), 2 + others.len());
    server.kill();
}

#[tokio::test]
async fn what_is_undone_stays_undone() {
    let fixture = Fixture::new();
    let host = fixture.server();
    for (text, expected) in [("two\n", "-one\n+two\n"), ("one\n", "")] {
        let tree = fixture.open(&host, "t").await;
        fs::write(tree.folder.join("sub/file"), text).unwrap();
        assert!(kept(tree).await.ends_with(expected));
    }
    let tree = fixture.open(&host, "t").await;
    assert_eq!(fs::read_to_string(tree.folder.join("sub/file")).unwrap(), "one\n");
}

#[tokio::test]
async fn git_that_does_not_end_is_ended_and_keeps_nobody_waiting() {
    let fixture = Fixture::new();
    let patient = fixture.server();
    let impatient =
        Host { git_limits: GitLimits { short: Duration::from_millis(300), ..GitLimits::default() }, ..patient.clone() };
    let (repository, owner) = (fixture.repository(), Owner::anonymous());
    let tree = fixture.open(&patient, "kept").await;
    fs::write(tree.folder.join("made"), "kept\n").unwrap();
    std::mem::forget(tree);
    fixture.include_a_pipe();
    let refused = Worktree::open(&impatient, &repository, task_of(&owner, "a", "t")).await.err().unwrap().to_string();
    assert_eq!(refused, "git rev-parse did not end within 0.3 s and was ended");
    assert_eq!(fixture.running(), 0);
    // Another server finds what was left, and cannot keep it yet.
    let next = Host { git_limits: impatient.git_limits, ..fixture.server() };
    sweep(&next).await;
    assert_eq!(fixture.running(), 0);
    fixture.exclude_the_pipe();
    assert_eq!(fixture.refs(), Vec::<String>::new());
    // Nothing is held any more, and nothing is lost.
    kept(fixture.open(&patient, "t").await).await;
    let tree = fixture.open(&Host { git_limits: GitLimits::default(), ..next }, "kept").await;
    assert_eq!(fs::read_to_string(tree.folder.join("made")).unwrap(), "kept\n");
    assert!(kept(tree).await.contains("+kept"));
    fixture.assert_tidy();
}

/// Whoever waits for a worktree may go away while git makes it, at any point.
#[tokio::test]
async fn a_worktree_that_is_not_wanted_any_more_leaves_nothing() {
    let fixture = Fixture::new();
    let (repository, owner) = (fixture.repository(), Owner::anonymous());
    // A git that cannot be interrupted while it makes the tree, and is slower than whoever clears away behind it.
    let (trace, trees) = (fixture.path("trace"), fixture.trees());
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'worktree add'*)\ntrap '' TERM\ntouch '{}'\nfor round in $(seq 40); do\n\
         ls '{}'/*.json > /dev/null 2>&1 || break\nsleep 0.02\ndone\nesac\nPATH=${{PATH#*:}}\nexec git \"$@\"\n",
        trace.display(),
        trees.display()
    );
    fs::create_dir(fixture.path("bin")).unwrap();
    fs::write(fixture.path("bin/git"), script).unwrap();
    allow_running(&fixture.path("bin/git"));
    let mut host = fixture.server();
    let add_place = |(name, value): &(OsString, OsString)| match name == "PATH" {
        true => (name.clone(), OsString::from_iter([fixture.path("bin").as_os_str(), ":".as_ref(), value])),
        false => (name.clone(), value.clone()),
    };
    host.variables = host.variables.iter().map(add_place).collect();
    let until_made = async {
        while !trace.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = Worktree::open(&host, &repository, task_of(&owner, "a", "t")) => panic!("it is held up"),
        () = until_made => {}
    }
    host.worktrees.until_unused().await;
    while fixture.running() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    fixture.assert_tidy();
    // Other points, as they come.
    let host = fixture.server();
    for steps in 0..200 {
        let mut opening = Box::pin(Worktree::open(&host, &repository, task_of(&owner, "a", "t")));
        for _ in 0..steps {
            tokio::select! {
                biased;
                opened = &mut opening => {
                    kept(opened.unwrap()).await;
                    fixture.assert_tidy();
                    return;
                }
                () = tokio::time::sleep(Duration::from_millis(15)) => {}
            }
        }
        drop(opening);
        host.worktrees.until_unused().await;
        fixture.assert_tidy();
    }
}

#[tokio::test]
async fn without_its_record_a_tree_is_kept_too() {
    type Damage = fn(&Path, &str);
    let rows: [(&str, Damage, &[&str]); 4] = [
        ("empty", |trees, name| fs::write(trees.join(format!("{name}.json")), "").unwrap(), &["unreadable"]),
        (
            "of another version",
            |trees, name| fs::write(trees.join(format!("{name}.json")), r#"{"version":9}"#).unwrap(),
            &["unreadable"],
        ),
        (
            "a folder",
            |trees, name| {
                fs::remove_file(trees.join(format!("{name}.json"))).unwrap();
                fs::create_dir(trees.join(format!("{name}.json"))).unwrap();
            },
            &["unreadable"],
        ),
        ("gone", |trees, name| fs::remove_file(trees.join(format!("{name}.json"))).unwrap(), &[]),
    ];
    for (what, damage, aside) in rows {
        for (is_swept, has_turn_before) in [(false, false), (true, false), (false, true), (true, true)] {
            let fixture = Fixture::new();
            if has_turn_before {
                let tree = fixture.open(&fixture.server(), "t").await;
                fs::write(tree.folder.join("first"), "first\n").unwrap();
                kept(tree).await;
            }
            let tree = fixture.open(&fixture.server(), "t").await;
            fs::write(tree.folder.join("made"), "before\n").unwrap();
            damage(&fixture.trees(), tree.folder.file_name().unwrap().to_str().unwrap());
            std::mem::forget(tree);
            let next = fixture.server();
            if is_swept {
                sweep(&next).await;
                assert_eq!(fixture.git(&["show", &format!("{}:made", fixture.work())]), "before", "{what}");
            }
            let tree = fixture.open(&next, "t").await;
            assert_eq!(fs::read_to_string(tree.folder.join("made")).unwrap(), "before\n", "{what}");
            assert_eq!(tree.folder.join("first").exists(), has_turn_before, "{what}");
            let diff = kept(tree).await;
            assert!(diff.contains("+before") && diff.contains("+first") == has_turn_before, "{what}: {diff}");
            assert!(fixture.work().starts_with("refs/sabir/a/t-"), "{what}: {}", fixture.work());
            let left = fs::read_dir(fixture.trees()).into_iter().flatten().flatten();
            let endings: Vec<String> =
                left.map(|entry| entry.path().extension().unwrap_or_default().to_str().unwrap().to_owned()).collect();
            assert_eq!(endings, aside, "{what}");
        }
    }
}

#[tokio::test]
async fn a_folder_that_git_knows_nothing_of_is_set_aside() {
    let fixture = Fixture::new();
    let tree = fixture.open(&fixture.server(), "t").await;
    let name = tree.folder.file_name().unwrap().to_str().unwrap().to_owned();
    kept(tree).await;
    for round in 1..=2 {
        fs::create_dir_all(fixture.trees().join(&name)).unwrap();
        fs::write(fixture.trees().join(&name).join("whose"), "").unwrap();
        assert_eq!(kept(fixture.open(&fixture.server(), "t").await).await, "");
        let lost = ["lost", "2.lost"].map(|ending| fixture.trees().join(format!("{name}.{ending}/whose")).exists());
        assert_eq!(lost, [true, round == 2]);
    }
}

/// What programs do to a tree, and what is found in the diff all the same.
#[tokio::test]
async fn what_git_cannot_take_does_not_cost_the_rest() {
    type Prepare = fn(&Fixture, &Path);
    let rows: [(&str, Prepare); 10] = [
        ("pipes that git would read", |_, tree| {
            for name in [".gitignore", ".gitattributes", ".gitmodules", "sub/.gitignore", "sub/pipe"] {
                make_pipe(&tree.join(name));
            }
        }),
        ("pipes in a nested repository", |fixture, tree| {
            fixture.git_in(tree, &["init", "--quiet", "nested"]);
            fs::remove_file(tree.join("nested/.git/HEAD")).unwrap();
            make_pipe(&tree.join("nested/.git/HEAD"));
        }),
        ("a socket and a link to nowhere", |_, tree| {
            drop(std::os::unix::net::UnixListener::bind(tree.join("socket")).unwrap());
            std::os::unix::fs::symlink("/dev/zero", tree.join("zero")).unwrap();
        }),
        ("an empty repository", |fixture, tree| drop(fixture.git_in(tree, &["init", "--quiet", "empty"]))),
        ("a lock", |fixture, tree| {
            let lock = fixture.git_in(tree, &["rev-parse", "--path-format=absolute", "--git-path", "index.lock"]);
            fs::write(lock, "").unwrap();
        }),
        ("a damaged index", |fixture, tree| {
            let index = fixture.git_in(tree, &["rev-parse", "--path-format=absolute", "--git-path", "index"]);
            fs::write(index, "nonsense").unwrap();
        }),
        ("a split index", |fixture, tree| drop(fixture.git_in(tree, &["update-index", "--split-index"]))),
        ("no link to the repository", |_, tree| fs::remove_file(tree.join(".git")).unwrap()),
        ("an encoding that does not fit", |_, tree| {
            fs::write(tree.join(".gitattributes"), "w working-tree-encoding=UTF-16\n").unwrap();
            fs::write(tree.join("w"), "no byte order mark").unwrap();
        }),
        ("no commit checked out", |fixture, tree| {
            drop(fixture.git_in(tree, &["checkout", "--quiet", "--orphan", "x"]))
        }),
    ];
    for (what, prepare) in rows {
        let fixture = Fixture::new();
        // Of the operator, who is in the midst of something.
        fixture.write("secret", "staged\n");
        fixture.git(&["add", "."]);
        fs::write(fixture.repository().join(".git/index.lock"), "").unwrap();
        let tree = fixture.open(&fixture.server(), "t").await;
        fs::write(tree.folder.join("made"), b"caf\xe9\n").unwrap();
        prepare(&fixture, &tree.folder);
        let diff = tree.keep().await.unwrap().unwrap();
        let shown = String::from_utf8_lossy(&diff);
        assert!(diff.windows(6).any(|window| window == b"+caf\xe9\n"), "{what}: {shown}");
        assert!(!shown.contains("staged") && !shown.contains("sub/file"), "{what}: {shown}");
        assert!(fixture.repository().join(".git/index.lock").exists(), "{what}");
        fixture.assert_tidy();
    }
}

#[tokio::test]
async fn a_tree_may_hold_any_number_of_files_and_repositories() {
    let fixture = Fixture::new();
    let tree = fixture.open(&fixture.server(), "t").await;
    let text = "a line of a file that a program has generated\n".repeat(8);
    for number in 0..20_000 {
        fs::write(tree.folder.join(format!("file-{number:05}")), format!("{number}\n{text}")).unwrap();
    }
    // More than have room on a command line, and far more than are looked at.
    let head = fixture.git(&["rev-parse", "HEAD"]);
    let name = "x".repeat(200);
    let mut list = String::new();
    for number in 0..12_000 {
        fs::create_dir_all(tree.folder.join(format!("nested/{name}-{number:05}/.git"))).unwrap();
        list += &format!("160000 {head}\tnested/{name}-{number:05}\n");
    }
    let mut command = Command::new("git");
    command.arg("-C").arg(&tree.folder).args(["update-index", "--index-info"]).stdin(Stdio::piped());
    let mut indexing = command.spawn().unwrap();
    std::io::Write::write_all(&mut indexing.stdin.take().unwrap(), list.as_bytes()).unwrap();
    assert!(indexing.wait().unwrap().success());
    let diff = kept(tree).await;
    assert!(diff.contains("\n[cut here; the rest: git diff refs/sabir/a/"), "{}", diff.len());
    let list = fixture.git(&["ls-tree", "-r", "--name-only", &fixture.work()]);
    assert_eq!(list.lines().count(), 1 + 20_000 + 12_000);
    fixture.assert_tidy();
}

#[tokio::test]
async fn the_settings_of_people_do_not_change_the_patch() {
    let fixture = Fixture::new();
    for (name, value) in [("diff.external", "false"), ("diff.noprefix", "true"), ("color.ui", "always")] {
        fixture.git(&["config", "--global", name, value]);
    }
    let tree = fixture.open(&fixture.server(), "t").await;
    fs::write(tree.folder.join("sub/file"), "two\n").unwrap();
    let diff = kept(tree).await;
    assert!(diff.starts_with("diff --git a/sub/file b/sub/file\n") && diff.ends_with("-one\n+two\n"), "{diff}");
}

#[tokio::test]
async fn one_id_at_two_agents_or_of_two_owners_is_two_tasks() {
    let fixture = Fixture::new();
    let (host, repository) = (fixture.server(), fixture.repository());
    let (nobody, alice) = (Owner::anonymous(), Owner::new("acme", "alice"));
    let mut trees = Vec::new();
    for (owner, agent, text) in [(&nobody, "a", "one"), (&nobody, "b", "two"), (&alice, "a", "three")] {
        let tree = Worktree::open(&host, &repository, task_of(owner, agent, "t")).await.unwrap();
        assert!(!tree.folder.join("made").exists());
        fs::write(tree.folder.join("made"), text).unwrap();
        trees.push((tree, text));
    }
    for (tree, text) in trees {
        assert!(kept(tree).await.contains(&format!("+{text}")));
    }
    assert_eq!(fixture.refs().len(), 6);
    fixture.assert_tidy();
}

#[tokio::test]
async fn a_repository_cannot_have_commands_run() {
    type Prepare = fn(&Fixture, &str);
    // Each gets a command that leaves a trace.
    let rows: [(&str, Prepare); 14] = [
        ("a filter", |fixture, command| filter(fixture, "--local", command)),
        ("a filter with a strange name", |fixture, command| {
            for which in ["clean", "smudge"] {
                fixture.git(&["config", &format!("filter.a.b=c]d.{which}"), command]);
            }
            fixture.write(".gitattributes", "* filter=a.b=c]d\n");
        }),
        ("a filter process", |fixture, command| {
            fixture.git(&["config", "filter.evil.process", command]);
            fixture.git(&["config", "filter.evil.required", "true"]);
            fixture.write(".gitattributes", "* filter=evil\n");
        }),
        ("a filter in an included file", |fixture, command| {
            let file = fixture.path("included");
            fs::write(&file, format!("[filter \"evil\"]\n\tclean = {command:?}\n\tsmudge = {command:?}\n")).unwrap();
            fixture.git(&["config", "include.path", file.to_str().unwrap()]);
            fixture.write(".gitattributes", "* filter=evil\n");
        }),
        ("a filter of the worktree's settings", |fixture, command| {
            fixture.git(&["config", "extensions.worktreeConfig", "true"]);
            filter(fixture, "--worktree", command);
        }),
        ("a file system monitor", |fixture, command| drop(fixture.git(&["config", "core.fsmonitor", command]))),
        ("hooks", |fixture, command| hooks(fixture, ".git/hooks", command)),
        ("hooks elsewhere", |fixture, command| {
            hooks(fixture, ".git/more", command);
            fixture.git(&["config", "core.hooksPath", fixture.repository().join(".git/more").to_str().unwrap()]);
        }),
        ("diff drivers", |fixture, command| {
            for name in ["diff.external", "diff.evil.command", "diff.evil.textconv", "merge.evil.driver"] {
                fixture.git(&["config", name, command]);
            }
            fixture.write(".gitattributes", "* diff=evil merge=evil\n");
        }),
        ("a pager, an editor and helpers", |fixture, command| {
            for name in
                ["core.pager", "pager.diff-tree", "core.editor", "core.sshCommand", "core.gitProxy", "core.askPass"]
            {
                fixture.git(&["config", name, command]);
            }
            fixture.git(&["config", "credential.helper", &format!("!{command}")]);
            fixture.git(&["config", "core.alternateRefsCommand", command]);
        }),
        ("signing", |fixture, command| {
            fixture.git(&["config", "commit.gpgSign", "true"]);
            fixture.git(&["config", "gpg.program", command]);
        }),
        ("a remote that is asked for missing objects", |fixture, command| {
            // A file that nobody has checked out, so that its content is not there.
            fixture.write("absent", "gone\n");
            fixture.git(&["add", "."]);
            let blob = fixture.git(&["rev-parse", ":absent"]);
            fs::remove_file(fixture.repository().join(format!(".git/objects/{}/{}", &blob[..2], &blob[2..]))).unwrap();
            fs::remove_file(fixture.repository().join("absent")).unwrap();
            fixture.git(&["update-index", "--skip-worktree", "absent"]);
            for (name, value) in [
                ("core.repositoryformatversion", "1"),
                ("core.sparseCheckout", "true"),
                ("extensions.partialClone", "evil"),
                ("remote.evil.promisor", "true"),
                ("remote.evil.url", &format!("ext::{command}")),
                ("protocol.ext.allow", "always"),
            ] {
                fixture.git(&["config", name, value]);
            }
            fixture.write(".git/info/sparse-checkout", "/*\n!/absent\n");
        }),
        ("a nested repository", |fixture, command| {
            fixture.git(&["init", "--quiet", "nested"]);
            let nested = fixture.repository().join("nested");
            fixture.write("nested/file", "one\n");
            fixture.git_in(&nested, &["add", "."]);
            fixture.git_in(&nested, &["commit", "--quiet", "-m", "nested"]);
            fixture.git_in(&nested, &["config", "core.fsmonitor", command]);
            fixture.git_in(&nested, &["config", "filter.evil.clean", command]);
            fs::write(nested.join(".git/info/attributes"), "* filter=evil\n").unwrap();
        }),
        ("aliases", |fixture, command| {
            for name in ["add", "diff-tree", "rev-parse", "worktree"] {
                fixture.git(&["config", &format!("alias.{name}"), &format!("!{command}")]);
            }
        }),
    ];
    for (what, prepare) in rows {
        let fixture = Fixture::new();
        let trace = fixture.path("trace");
        let script = fixture.path("evil");
        fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", trace.display())).unwrap();
        allow_running(&script);
        prepare(&fixture, script.to_str().unwrap());
        // The operator's own git runs all this, but not here.
        let no_attributes = "--attr-source=4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        fixture.git(&[no_attributes, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "add", "."]);
        let tree = fixture.git(&[no_attributes, "-c", "core.fsmonitor=false", "write-tree", "--missing-ok"]);
        let commit = fixture.git(&["commit-tree", "--no-gpg-sign", &tree, "-p", "HEAD", "-m", "second"]);
        fixture.git(&["-c", "core.hooksPath=/dev/null", "update-ref", "HEAD", &commit]);
        let _ = fs::remove_file(&trace);

        let tree = fixture.open(&fixture.server(), "t").await;
        fs::write(tree.folder.join("sub/file"), "two\n").unwrap();
        let nested = fixture.repository().join("nested");
        if nested.exists() {
            // As a program would that initialises a submodule and changes it.
            let copied = Command::new("cp").arg("-r").arg(&nested).arg(&tree.folder).status().unwrap();
            assert!(copied.success());
            fs::write(tree.folder.join("nested/file"), "changed\n").unwrap();
        }
        let diff = kept(tree).await;
        assert!(diff.contains("-one\n+two\n"), "{what}: {diff}");
        assert_eq!(fs::read_to_string(&trace).unwrap_or_default(), "", "{what} was run");
        // These are run only by commands that need a network or a person.
        let is_rare = ["a pager, an editor and helpers", "a remote that is asked for missing objects", "aliases"];
        if !is_rare.contains(&what) {
            obey(&fixture);
            assert_ne!(fs::read_to_string(&trace).unwrap_or_default(), "", "{what} shows nothing");
        }
    }
}

/// Does the same with a git that obeys the repository.
fn obey(fixture: &Fixture) {
    let tree = fixture.path("obeying");
    let place = tree.to_str().unwrap();
    for (folder, line) in [
        (fixture.repository(), vec!["worktree", "add", place]),
        (fixture.repository(), vec!["status"]),
        (tree.clone(), vec!["add", "--all"]),
        (
            tree.clone(),
            vec!["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-m", "third", "--allow-empty"],
        ),
        (tree.clone(), vec!["diff", "HEAD~2", "HEAD~1"]),
    ] {
        // Some of it fails by what it runs.
        let _ = Command::new("git")
            .args(line)
            .current_dir(folder)
            .env("HOME", fixture.path("home"))
            .stdin(Stdio::null())
            .output();
    }
}

fn filter(fixture: &Fixture, scope: &str, command: &str) {
    for which in ["clean", "smudge"] {
        fixture.git(&["config", scope, &format!("filter.evil.{which}"), command]);
    }
    fixture.write(".gitattributes", "* filter=evil\n");
}

fn hooks(fixture: &Fixture, folder: &str, command: &str) {
    for name in ["post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit"] {
        let path = fixture.repository().join(folder).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(command, &path).unwrap();
        allow_running(&path);
    }
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn allow_running(path: &Path) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn filters_of_the_operator_are_run_and_see_no_secrets() {
    let fixture = Fixture::new();
    let seen = fixture.path("seen");
    let clean = format!("env >> '{}'; tr a-z A-Z", seen.display());
    fixture.git(&["config", "--global", "filter.loud.clean", &clean]);
    fixture.git(&["config", "--global", "filter.loud.smudge", "sed s/^/smudged:/"]);
    // The repository cannot replace it.
    fixture.git(&["config", "filter.loud.smudge", "false"]);
    fixture.write(".git/info/attributes", "made filter=loud\nloud filter=loud\n");
    fixture.write("loud", "abc\n");
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "loud"]);
    fs::remove_file(&seen).unwrap();
    let tree = fixture.open(&fixture.server(), "t").await;
    assert_eq!(fs::read_to_string(tree.folder.join("loud")).unwrap(), "smudged:ABC\n");
    fs::write(tree.folder.join("made"), "quiet\n").unwrap();
    let diff = kept(tree).await;
    assert!(diff.contains("+QUIET") && !diff.contains("smudged"), "{diff}");
    let seen = fs::read_to_string(seen).unwrap();
    assert!(seen.contains("HOME=") && !seen.contains("secret"), "{seen}");
}
