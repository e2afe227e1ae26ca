//! Worktrees from turn to turn: what is continued, kept and swept after a stop, a kill or a retention.

use super::*;

#[tokio::test]
async fn the_next_turn_continues_in_the_worktree_of_the_last_one() {
    let fixture = RepositoryFixture::new();
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
async fn a_worktree_of_a_killed_server_is_continued() {
    let fixture = RepositoryFixture::new();
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
async fn worktrees_of_a_killed_server_are_swept() {
    let fixture = RepositoryFixture::new();
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
async fn a_dropped_turn_loses_no_work() {
    let fixture = RepositoryFixture::new();
    let host = fixture.server();
    let mut tree = fixture.open(&host, "t").await;
    let (ended, receiver) = tokio::sync::watch::channel(None);
    tree.is_used_until(receiver);
    let folder = tree.folder.clone();
    drop(tree);
    // The program ends later than the turn, and still writes.
    tokio::task::yield_now().await;
    fs::write(folder.join("made"), "late\n").unwrap();
    ended.send_replace(Some(sabir_agents::adapter::Exit::Code(0)));
    host.worktrees.until_unused().await;
    assert_eq!(fixture.git(&["show", &format!("{}:made", fixture.work())]), "late");
    fixture.assert_tidy();
}

#[tokio::test]
async fn worktrees_of_earlier_versions_are_kept_and_their_folder_is_cleaned() {
    let fixture = RepositoryFixture::new();
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

/// Ids repeat across owners, and a task may get another owner: its number in the store is what it is known by.
#[tokio::test]
async fn a_task_continues_from_the_work_of_its_number() {
    let fixture = RepositoryFixture::new();
    let host = fixture.server();
    let (ann, bob) = (Owner::new("acme", "ann"), Owner::new("acme", "bob"));
    let open = async |owner: &Owner, number: Option<u64>| {
        let whose = TaskName { number, ..task_of(owner, "a", "t") };
        Worktree::open(&host, &fixture.repository(), whose).await.unwrap()
    };
    let made = |tree: &Worktree| fs::read_to_string(tree.folder.join("made")).unwrap_or_default();
    // As earlier versions named it, by its owner; two others have the same id.
    let tree = open(&ann, None).await;
    fs::write(tree.folder.join("made"), "of ann\n").unwrap();
    kept(tree).await;
    let tree = open(&bob, Some(8)).await;
    assert_eq!(made(&tree), "", "a task of somebody else begins anew");
    fs::write(tree.folder.join("made"), "of bob\n").unwrap();
    kept(tree).await;
    let before = fixture.refs();
    let tree = open(&ann, Some(7)).await;
    assert_eq!(made(&tree), "of ann\n", "work under the old name is found");
    fs::write(tree.folder.join("made"), "more of ann\n").unwrap();
    kept(tree).await;
    let after = fixture.refs();
    assert_eq!((before.len(), after.len()), (4, 4), "the old name goes: {before:?} {after:?}");
    // The task of the number 7 is given to bob.
    let tree = open(&bob, Some(7)).await;
    assert_eq!(made(&tree), "more of ann\n");
    kept(tree).await;
    let tree = open(&bob, Some(8)).await;
    assert_eq!(made(&tree), "of bob\n");
    kept(tree).await;
    fixture.assert_tidy();
}

#[tokio::test]
async fn a_worktree_that_cannot_be_made_names_the_reason() {
    let fixture = RepositoryFixture::empty();
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
fn retention_deletes_the_work_of_its_tasks() {
    let fixture = RepositoryFixture::new();
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
async fn undone_changes_stay_undone() {
    let fixture = RepositoryFixture::new();
    let host = fixture.server();
    for (text, expected) in [("two\n", "-one\n+two\n"), ("one\n", "")] {
        let tree = fixture.open(&host, "t").await;
        fs::write(tree.folder.join("sub/file"), text).unwrap();
        assert!(kept(tree).await.ends_with(expected));
    }
    let tree = fixture.open(&host, "t").await;
    assert_eq!(fs::read_to_string(tree.folder.join("sub/file")).unwrap(), "one\n");
}
