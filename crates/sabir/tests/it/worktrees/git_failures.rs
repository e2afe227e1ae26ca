//! When git hangs, is interrupted or does not know the folder: nothing is lost, and nobody waits.

use super::*;

#[tokio::test]
async fn a_git_command_that_hangs_is_ended_and_blocks_nobody() {
    let fixture = RepositoryFixture::new();
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
async fn an_abandoned_worktree_request_leaves_nothing() {
    let fixture = RepositoryFixture::new();
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
    make_executable(&fixture.path("bin/git"));
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
async fn a_worktree_without_its_record_is_kept() {
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
            let fixture = RepositoryFixture::new();
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
async fn a_folder_that_is_no_worktree_is_set_aside() {
    let fixture = RepositoryFixture::new();
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
