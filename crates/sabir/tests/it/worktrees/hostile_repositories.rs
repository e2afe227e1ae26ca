//! A repository is content, not configuration: none of it makes Sabir run a command.

use super::*;

#[tokio::test]
async fn a_hostile_repository_cannot_run_commands() {
    type Prepare = fn(&RepositoryFixture, &str);
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
        let fixture = RepositoryFixture::new();
        let trace = fixture.path("trace");
        let script = fixture.path("evil");
        fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", trace.display())).unwrap();
        make_executable(&script);
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
fn obey(fixture: &RepositoryFixture) {
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

fn filter(fixture: &RepositoryFixture, scope: &str, command: &str) {
    for which in ["clean", "smudge"] {
        fixture.git(&["config", scope, &format!("filter.evil.{which}"), command]);
    }
    fixture.write(".gitattributes", "* filter=evil\n");
}

fn hooks(fixture: &RepositoryFixture, folder: &str, command: &str) {
    for name in ["post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit"] {
        let path = fixture.repository().join(folder).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(command, &path).unwrap();
        make_executable(&path);
    }
}

#[tokio::test]
async fn filters_of_the_operator_are_run_and_see_no_secrets() {
    let fixture = RepositoryFixture::new();
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
