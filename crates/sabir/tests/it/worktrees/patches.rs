//! The patch of a worktree: whatever a program did to its files.

use super::*;

/// What programs do to a tree, and what is found in the diff all the same.
#[tokio::test]
async fn files_that_git_cannot_take_do_not_spoil_the_patch() {
    type Prepare = fn(&RepositoryFixture, &Path);
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
        let fixture = RepositoryFixture::new();
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
    let fixture = RepositoryFixture::new();
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
async fn git_settings_of_the_operator_do_not_change_the_patch() {
    let fixture = RepositoryFixture::new();
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
    let fixture = RepositoryFixture::new();
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
