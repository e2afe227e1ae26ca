//! What a person sees and types, in a real pseudo-terminal.

use sabir_testkit::terminal::{CTRL_C, CTRL_D, Terminal};
use serde_json::json;

use super::fixture::{ClientFixture, run};
use super::peer_server::{Answer, PeerServer};
use crate::SABIR;
use crate::program_fixture::{ProgramFixture, names};

/// What Ctrl-C asks.
const DIALOGUE: &str = "Cancel the task (c), detach from it (d), or continue (Enter)? ";

fn terminal(client: &ClientFixture, words: &[&str]) -> Terminal {
    terminal_with(client, words, &[])
}

/// `sabir VERB URL MORE...`
fn terminal_with(client: &ClientFixture, words: &[&str], variables: &[(&str, &str)]) -> Terminal {
    let url = client.url();
    let words = [&[words[0], &url], &words[1..]].concat();
    Terminal::run(SABIR, &words, client.folder.path(), variables)
}

/// The lines of a screen, with ids left out.
fn lines(screen: &str) -> Vec<String> {
    let is_id = |word: &&str| word.len() == 36 && word.matches('-').count() == 4;
    let line =
        |line: &str| line.split(' ').map(|word| if is_id(&word) { "ID" } else { word }).collect::<Vec<_>>().join(" ");
    screen.lines().map(line).collect()
}

/// The id of the only task.
fn only_task(client: &ClientFixture) -> String {
    client.run("list", &[]).lines[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn the_answer_appears_as_it_comes() {
    let client = ClientFixture::new();
    let mut terminal = terminal(&client, &["send", "stream 2 600000"]);
    let written = terminal.wait_for("chunk 1");
    assert!(!written.contains("chunk 2"), "{written:?}");
    terminal.type_keys(CTRL_C);
    terminal.wait_for(DIALOGUE);
    terminal.type_keys("c\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 8, "{screen}");
    let expected =
        ["chunk 1", "^C", &format!("{DIALOGUE}c"), "canceled: task ID in context ID", "sabir: the task was canceled"];
    assert_eq!(lines(&screen), expected);
    assert_eq!(client.state(&only_task(&client)), "TASK_STATE_CANCELED");
}

#[test]
fn the_progress_line_is_drawn_in_place_and_gone_in_the_end() {
    let client = ClientFixture::new();
    let terminal = terminal(&client, &["send", "slow 3.5 x"]);
    let written = terminal.wait_for("2 s  working");
    assert!(written.contains("\r\u{1b}[K1 s  working"), "{written:?}");
    assert!(!written.contains('\n'), "it stays in its line: {written:?}");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(lines(&screen), ["echo: slow 3.5 x", "completed: task ID in context ID"]);
}

#[test]
fn a_terminal_that_cannot_redraw_gets_no_progress_line() {
    let client = ClientFixture::new();
    let (code, screen) = terminal_with(&client, &["send", "slow 0.8 x"], &[("TERM", "dumb")]).finish();
    assert_eq!((code, lines(&screen)), (0, vec!["echo: slow 0.8 x".into(), "completed: task ID in context ID".into()]));
}

#[test]
fn strangers_cannot_steer_the_terminal() {
    let client = ClientFixture::new();
    let hostile = "a\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\rb\u{202e}";
    // `finish` takes no sequence but the one that clears a line.
    let (code, screen) = terminal(&client, &["send", hostile]).finish();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(lines(&screen)[0], "echo: a\u{fffd}[2J\u{fffd}]0;title\u{fffd}\u{fffd}31mb\u{fffd}");
    let (code, screen) = terminal(&client, &["send", &format!("fail {hostile}")]).finish();
    assert_eq!(code, 1, "{screen}");
    assert!(screen.contains("sabir: the task failed: a\u{fffd}[2J"), "{screen}");
}

#[test]
fn a_question_is_answered_at_the_prompt() {
    let client = ClientFixture::new();
    let mut asking = terminal(&client, &["send", "ask Which day?"]);
    asking.wait_for("answer> ");
    // Nothing is no answer.
    asking.type_keys("\n");
    asking.wait_until("the prompt again", |written| written.matches("answer> ").count() == 2);
    asking.type_keys("ask And when?\n");
    asking.wait_for("And when?\r\nanswer> ");
    asking.type_keys("at noon\n");
    let (code, screen) = asking.finish();
    assert_eq!(code, 0, "{screen}");
    let expected = [
        "Which day?",
        "answer> ",
        "answer> ask And when?",
        "And when?",
        "answer> at noon",
        "echo: at noon",
        "completed: task ID in context ID",
    ];
    assert_eq!(lines(&screen), expected);

    let mut leaving = terminal(&client, &["send", "ask Which day?"]);
    leaving.wait_for("answer> ");
    leaving.type_keys(CTRL_D);
    let (code, screen) = leaving.finish();
    assert_eq!(code, 6, "{screen}");
    let task = only_task(&client);
    assert!(
        screen.ends_with(&format!("The task waits. To answer: sabir answer {} {task} '...'", client.url())),
        "{screen}"
    );

    // `answer` without words shows the question.
    let mut answering = terminal(&client, &["answer", &task]);
    answering.wait_for("Which day?\r\nanswer> ");
    answering.type_keys("Friday\n");
    let (code, screen) = answering.finish();
    assert_eq!((code, lines(&screen)[2].as_str()), (0, "echo: Friday"), "{screen}");
}

#[test]
fn choices_are_shown_and_taken_by_their_number() {
    let script =
        r#"echo 'Run rm -rf build? [Y/n]'; read -r answer; echo "{\"type\":\"result\",\"summary\":\"$answer\"}""#;
    let program = ProgramFixture::new(script);
    let client = ClientFixture::of(program.serve_apart("generic", "approve = \"ask\"\n"));
    for (keys, expected) in [("1\n", "\"summary\": \"y\""), ("no\n", "\"summary\": \"n\"")] {
        let mut asking = terminal(&client, &["send", "go"]);
        let written = asking.wait_for("answer> ");
        assert!(written.contains("\r\n  1  ") && written.contains("\r\n  2  "), "{written:?}");
        asking.type_keys(keys);
        let (code, screen) = asking.finish();
        assert_eq!(code, 0, "{screen}");
        assert!(screen.contains(expected), "{screen}");
    }
}

#[test]
fn ctrl_c_asks_and_detaching_leaves_the_task_alone() {
    let client = ClientFixture::new();
    for keys in ["d\n", CTRL_C, CTRL_D, "what?\nd\n"] {
        let mut terminal = terminal(&client, &["send", "slow 600 x"]);
        terminal.wait_for("working");
        terminal.type_keys(CTRL_C);
        terminal.wait_for(DIALOGUE);
        terminal.type_keys(keys);
        let (code, screen) = terminal.finish();
        let task = only_task(&client);
        let command = format!("sabir watch {} {task}", client.url());
        assert_eq!(code, 0, "{screen}");
        assert!(screen.ends_with(&format!("Detached; the task continues. To watch it: {command}")), "{screen}");
        assert_eq!(client.state(&task), "TASK_STATE_WORKING", "{keys:?}");
    }
}

#[test]
fn after_ctrl_c_the_task_can_be_continued_and_canceled() {
    let client = ClientFixture::new();
    let mut watching = terminal(&client, &["watch", &client.working()]);
    watching.wait_for("working");
    for count in 1..=2 {
        watching.type_keys(CTRL_C);
        watching.wait_until("the dialogue", |written| written.matches(DIALOGUE).count() == count);
        watching.type_keys("\n");
        let before = watching.written().matches(" s  working").count();
        watching.wait_until("progress", |written| written.matches(" s  working").count() > before);
    }
    watching.type_keys(CTRL_C);
    watching.wait_until("the dialogue", |written| written.matches(DIALOGUE).count() == 3);
    watching.type_keys("cancel\n");
    let (code, screen) = watching.finish();
    assert_eq!((code, lines(&screen).last().map(String::as_str)), (8, Some("sabir: the task was canceled")));
}

#[test]
fn ctrl_c_at_a_question_can_cancel_the_task_too() {
    let client = ClientFixture::new();
    let mut asking = terminal(&client, &["send", "ask Which day?"]);
    asking.wait_for("answer> ");
    asking.type_keys("Fri");
    asking.type_keys(CTRL_C);
    asking.wait_for(DIALOGUE);
    asking.type_keys("\n");
    asking.wait_until("the prompt again", |written| written.matches("answer> ").count() == 2);
    asking.type_keys(CTRL_C);
    asking.wait_until("the dialogue", |written| written.matches(DIALOGUE).count() == 2);
    asking.type_keys("c\n");
    let (code, screen) = asking.finish();
    assert_eq!(code, 8, "{screen}");
    assert_eq!(client.state(&only_task(&client)), "TASK_STATE_CANCELED");
}

#[test]
fn files_and_tools_are_listed_and_files_saved() {
    let client = ClientFixture::new();
    let (code, screen) = terminal(&client, &["send", "file", "--output", "out"]).finish();
    assert_eq!(code, 0, "{screen}");
    let expected =
        ["file output.txt (text/plain, 10 bytes)", "saved out/output.txt", "completed: task ID in context ID"];
    assert_eq!(lines(&screen), expected);
    assert_eq!(names(&client.folder.path().join("out")), ["output.txt"]);
    let (code, screen) = terminal(&client, &["send", "tool Bash"]).finish();
    assert_eq!((code, lines(&screen)[..2].to_vec()), (0, vec!["tool Bash".to_owned(), "echo: tool Bash".to_owned()]));
}

#[test]
fn a_terminal_gets_json_if_it_wants_it() {
    let client = ClientFixture::new();
    let (code, screen) = terminal(&client, &["send", "hello", "--format", "json"]).finish();
    assert_eq!(code, 0, "{screen}");
    let lines: Vec<serde_json::Value> = screen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn json_cannot_steer_the_terminal_and_means_the_same() {
    let client = ClientFixture::new();
    let hostile = "a\u{9b}2J\u{7f}\u{85}\u{202e}\u{1b}[2Jé";
    let is_hostile = |screen: &str| screen.contains(['\u{9b}', '\u{7f}', '\u{85}', '\u{202e}', '\u{1b}']);
    // In a pipe it comes as it was said.
    let piped = client.run("send", &[hostile]);
    assert_eq!(piped.answer(), format!("echo: {hostile}"));
    assert!(piped.text.contains("a\u{9b}2J\u{7f}\u{85}\u{202e}"), "{}", piped.text);
    let task = piped.last()["task"]["id"].as_str().unwrap().to_owned();
    for words in [&["send", hostile][..], &["watch", &task], &["get", &task], &["list", "--artifacts", "--limit", "1"]]
    {
        let (code, screen) = terminal(&client, &[words, &["--format", "json"]].concat()).finish();
        assert_eq!(code, 0, "{screen}");
        assert!(!is_hostile(&screen), "{words:?}: {screen:?}");
        assert!(screen.contains(r"a\u009b2J\u007f\u0085\u202e\u001b[2Jé"), "{words:?}: {screen}");
        let last: serde_json::Value = serde_json::from_str(screen.lines().last().unwrap()).unwrap();
        let task = last.get("task").unwrap_or(&last);
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], format!("echo: {hostile}"), "{words:?}");
    }
}

#[test]
fn cards_and_reports_as_json_cannot_steer_the_terminal() {
    let name = "a\u{9b}2J\u{7f}\u{202e}";
    let peer = PeerServer::start(move |url, request| match request.body.is_empty() {
        true => Answer::Json(json!({"name": name, "url": url, "protocolVersion": "0.3.0"}).to_string()),
        false => Answer::HangUp,
    });
    let folder = tempfile::tempdir().unwrap();
    for words in [&["card", &peer.url, "--json"][..], &["check", &peer.url, "--json", "--only", "card.found"]] {
        let (code, screen) = Terminal::run(SABIR, words, folder.path(), &[]).finish();
        assert_eq!(code, 0, "{screen}");
        assert!(screen.contains(r#""a\u009b2J\u007f\u202e""#), "{words:?}: {screen:?}");
        assert!(!screen.contains(['\u{9b}', '\u{7f}', '\u{202e}']), "{words:?}: {screen:?}");
        // In a pipe they come as they are.
        let piped = run(&folder, words, &[], "");
        assert!(piped.text.contains(name), "{words:?}: {}", piped.text);
    }
}

#[test]
fn a_lost_connection_is_shown_while_it_lasts() {
    let client = ClientFixture::new();
    let mut watching = terminal(&client, &["send", "slow 600 x"]);
    watching.wait_for("working");
    client.fixture.server.signal("KILL");
    let written = watching.wait_for("the connection is lost, it is opened again (");
    assert!(!written.contains('\n'), "it stays in its line: {written:?}");
    watching.type_keys(CTRL_C);
    watching.wait_for(DIALOGUE);
    watching.type_keys("d\n");
    let (code, screen) = watching.finish();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("Detached; the task continues."), "{screen}");
}
