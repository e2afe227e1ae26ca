//! `--output`: the files of artifacts, whatever strangers call them.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::fixture::{ClientFixture, run};
use crate::program_fixture::names;

#[test]
fn files_are_saved_by_every_command_that_shows_a_task() {
    let client = ClientFixture::new();
    let task = client.sent("file");
    let id = task["id"].as_str().unwrap();
    let (out, url) = (client.folder.path().join("out"), client.url());
    for (words, expected) in [
        (&["send", &url, "file"][..], "output.txt"),
        (&["get", &url, id], "output-2.txt"),
        (&["watch", &url, id, "--format", "text"], "output-3.txt"),
        (&["send", &url, "file", "--a2a-version", "0.1"], "output-4.txt"),
    ] {
        let outcome = run(&client.folder, &[words, &["-o", "out"]].concat(), &[], "");
        assert_eq!(outcome.code, 0, "{words:?}: {}", outcome.errors);
        assert!(outcome.errors.contains(&format!("saved out/{expected}\n")), "{words:?}: {}", outcome.errors);
        assert_eq!(fs::read_to_string(out.join(expected)).unwrap(), "Hello file", "{words:?}");
    }
    assert_eq!(names(&out), ["output-2.txt", "output-3.txt", "output-4.txt", "output.txt"]);
    let shown = client.run_text("send", &["file", "--output", "more"]);
    assert!(shown.errors.contains("saved more/output.txt\n"), "{}", shown.errors);
    // What has no files makes no folder.
    assert_eq!(client.run("send", &["hello", "--output", "none"]).code, 0);
    assert!(!client.folder.path().join("none").exists());
    fs::write(client.folder.path().join("taken"), "").unwrap();
    let refused = client.run("send", &["file", "--output", "taken"]);
    assert_eq!((refused.code, &refused.last()["error"]["code"]), (1, &json!("A2ACLI_ERR_INTERNAL")));
}

#[test]
fn no_name_of_a_stranger_leads_out_of_the_folder() {
    let client = ClientFixture::new();
    let folder = client.folder.path();
    fs::create_dir(folder.join("out")).unwrap();
    fs::write(folder.join("out/mine.txt"), "mine").unwrap();
    symlink(folder.join("target"), folder.join("out/link.txt")).unwrap();
    let hostile =
        ["../up.txt", "/etc/absolute", "..", ".hidden", "mine.txt", "link.txt", "a\u{1b}[2J/..\\b.txt", "-rf", ""];
    let parts: Vec<_> =
        hostile.iter().map(|name| json!({"raw": "eA==", "filename": name, "mediaType": "text/plain"})).collect();
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": parts});
    let task = client.fixture.post("/message:send", json!({"message": message})).json()["task"]["id"].take();
    let outcome = client.run_text("get", &[task.as_str().unwrap(), "--output", "out"]);
    assert_eq!(outcome.code, 0, "{}", outcome.errors);
    assert!(!outcome.text.contains('\u{1b}') && !outcome.errors.contains('\u{1b}'));
    assert_eq!(
        names(&folder.join("out")),
        [
            "_hidden",
            "_rf",
            "absolute",
            "artifact-2.txt",
            "artifact.txt",
            "b.txt",
            "link-2.txt",
            "link.txt",
            "mine-2.txt",
            "mine.txt",
            "up.txt",
        ]
    );
    assert_eq!(fs::read_to_string(folder.join("out/mine.txt")).unwrap(), "mine");
    assert_eq!(names(folder), ["out"], "nothing lies beside the folder");
}
