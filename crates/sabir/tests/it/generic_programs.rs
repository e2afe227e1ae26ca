//! Programs of kinds `generic` and `command`, written by whoever read the documentation.

use std::fs;

use serde_json::{Value, json};

use crate::program_fixture::{ProgramFixture, answer, artifact, message, reason, send, state};

const DOCUMENT: &str = include_str!("../../../../docs/guides/your-own-program.md");

/// The first block of this language that contains the words.
fn example(language: &str, words: &str) -> &'static str {
    // What stands behind the language, such as the name of a file, belongs to the first line.
    let start = format!("\n```{language}");
    let blocks = DOCUMENT.split(&start).skip(1).map(|rest| rest.split_once('\n').unwrap().1);
    let mut blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    blocks.find(|block| block.contains(words)).unwrap_or_else(|| panic!("no {language} block with {words}"))
}

#[test]
fn the_example_of_the_documentation_works() {
    let script = ProgramFixture::new("");
    fs::write(script.program(), example("sh", "\"type\":\"assistant\"")).unwrap();
    let toml = example("toml", "kind = \"generic\"");
    let toml = toml.replace("./count-words", script.program().to_str().unwrap());
    let toml = format!("{toml}workspace = {:?}\n", script.workspace());
    assert!(toml.contains(script.program().to_str().unwrap()), "{toml}");
    let server = script.options(&toml).start();
    let task = send(&server, message("one two three"));
    assert_eq!(state(&task), "COMPLETED", "{task}");
    assert_eq!(answer(&task), "3 words", "{task}");
    assert!(task.to_string().contains("\"summary\":\"counted\""), "{task}");
    assert!(!task.to_string().contains("not understood"), "{task}");
    server.kill();
}

/// Every line of the documentation's table is understood.
#[test]
fn the_documented_lines_are_understood() {
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `{\"type\""));
    let lines: Vec<&str> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    assert!(lines.len() >= 6, "{lines:?}");
    for line in lines {
        let script = ProgramFixture::new(&format!("cat <<'END'\n{line}\nEND\necho '{{\"type\":\"result\"}}'\n"));
        let server = script.serve("generic", "");
        let task = send(&server, message("x"));
        assert!(["COMPLETED", "FAILED"].contains(&state(&task)), "{line}: {task}");
        assert!(!task.to_string().contains("not understood"), "{line}: {task}");
        server.kill();
    }
}

#[test]
fn a_program_may_read_its_input_to_the_end() {
    for (more, expected) in [("", ""), ("prompt = 'stdin'", "hello"), ("approve = 'none'", ""), ("approve = 'all'", "")]
    {
        let script = ProgramFixture::new(
            "input=$(cat)\nprintf '{\"type\":\"assistant\",\"message\":{\"content\":\"<%s|%s>\"}}\\n' \"$input\" \"$*\"\n\
             echo '{\"type\":\"result\"}'\n",
        );
        let server = script.serve("generic", more);
        let task = send(&server, message("hello"));
        assert_eq!(state(&task), "COMPLETED", "{more}: {task}");
        let argument = if expected.is_empty() { "hello" } else { "" };
        assert_eq!(answer(&task), format!("<{expected}|{argument}>"), "{more}: {task}");
        server.kill();
    }
}

#[test]
fn lines_that_are_not_understood_are_named_in_the_task() {
    let lines = "echo starting; echo '{\"type\":\"weather\"}'; i=0; while [ $i -lt 100 ]; do echo \"line $i\"; i=$((i+1)); done\n";
    for (end, expected) in [("echo '{\"type\":\"result\"}'\n", "COMPLETED"), ("exit 2\n", "FAILED")] {
        let script = ProgramFixture::new(&format!("{lines}{end}"));
        let server = script.serve("generic", "");
        let task = send(&server, message("x"));
        assert_eq!(state(&task), expected, "{task}");
        let told = match expected {
            "COMPLETED" => artifact(&task, "result")["parts"][0]["data"]["notes"].to_string(),
            _ => reason(&task).to_owned(),
        };
        assert!(told.contains("starting") && told.contains("weather"), "{told}");
        assert!(told.contains("97 more") && !told.contains("line 50") && told.len() < 1000, "{told}");
        server.kill();
    }
}

#[test]
fn secrets_are_masked_in_notes() {
    for (end, expected) in [("echo '{\"type\":\"result\"}'\n", "COMPLETED"), ("exit 2\n", "FAILED")] {
        let script = ProgramFixture::new(&format!("echo \"using key $SECRET_KEY\"\n{end}"));
        let server = script.serve("generic", "env = { SECRET_KEY = 'sk-0123456789' }");
        let task = send(&server, message("x"));
        assert_eq!(state(&task), expected, "{task}");
        let note = "A line of the program is not understood: using key ***";
        let told = match expected {
            "COMPLETED" => artifact(&task, "result")["parts"][0]["data"]["notes"].to_string(),
            _ => reason(&task).to_owned(),
        };
        assert!(told.contains(note), "{told}");
        assert!(!task.to_string().contains("sk-0123456789"), "{task}");
        server.kill();
    }
}

#[test]
fn a_turn_without_an_answer_says_so() {
    for (kind, program, is_silent) in [
        ("generic", "echo '{\"type\":\"result\"}'\n", true),
        ("generic", "echo '{\"type\":\"result\",\"summary\":\"all fine\"}'\n", false),
        (
            "generic",
            "echo '{\"type\":\"assistant\",\"message\":{\"content\":\"hi\"}}'\necho '{\"type\":\"result\"}'\n",
            false,
        ),
        ("command", "true\n", true),
        ("command", "echo hi\n", false),
    ] {
        let script = ProgramFixture::new(program);
        let server = script.serve(kind, "");
        let task = send(&server, message("x"));
        assert_eq!(state(&task), "COMPLETED", "{task}");
        assert_eq!(reason(&task) == "The program ended without an answer", is_silent, "{kind} {program}: {task}");
        server.kill();
    }
}

#[test]
fn files_beyond_the_limits_stay_in_the_workspace_and_are_named() {
    let script = ProgramFixture::new(
        "i=100\nwhile [ $i -lt 130 ]; do\necho x > file$i\n\
         printf '{\"type\":\"user\",\"message\":{\"content\":[]},\"tool_use_result\":{\"filePath\":\"file%s\"}}\\n' $i\n\
         i=$((i+1))\ndone\necho '{\"type\":\"result\"}'\n",
    );
    let server = script.serve("generic", "");
    let task = send(&server, message("x"));
    let artifacts = task["artifacts"].as_array().unwrap();
    let files = artifacts.iter().filter(|artifact| artifact["name"].as_str().unwrap().starts_with("file")).count();
    assert_eq!(files, 20, "{task}");
    let notes = artifact(&task, "result")["parts"][0]["data"]["notes"].to_string();
    assert!(notes.contains("file120 stays in the workspace") && notes.contains("5 more"), "{notes}");
    server.kill();
}

#[test]
fn the_card_says_what_is_known_and_no_more() {
    for kind in ["generic", "command"] {
        let script = ProgramFixture::new("true\n");
        let server = script.serve(kind, "");
        let card = server.get("/.well-known/agent-card.json").json();
        assert!(!card.to_string().contains("oding"), "{card}");
        assert!(card["description"].as_str().unwrap().contains("program"), "{card}");
        assert_eq!(names_of(&card["skills"]), ["program"], "{card}");
        server.kill();

        let described =
            "description = 'Counts words'\n[[agent.skill]]\nid = 'count'\nname = 'Count'\ndescription = 'Counts'";
        let server = script.serve(kind, described);
        let card = server.get("/.well-known/agent-card.json").json();
        assert_eq!(card["description"], "Counts words", "{card}");
        assert_eq!(names_of(&card["skills"]), ["Count"], "{card}");
        server.kill();
    }
}

fn names_of(skills: &Value) -> Vec<&str> {
    skills.as_array().unwrap().iter().map(|skill| skill["name"].as_str().unwrap()).collect()
}

#[test]
fn a_policy_answers_questions_whose_form_is_configured() {
    let asking = "echo 'May I?'\nread answer || answer=closed\n\
        echo \"{\\\"type\\\":\\\"result\\\",\\\"summary\\\":\\\"$answer\\\"}\"\n";
    for (approve, pattern, expected) in [
        ("all", "approval_pattern = '^May I'", "sure"),
        ("none", "approval_pattern = '^May I'", "n"),
        ("all", "", "closed"),
        ("none", "", "closed"),
    ] {
        let script = ProgramFixture::new(asking);
        let server = script.serve("generic", &format!("approve = '{approve}'\napproval_response = 'sure'\n{pattern}"));
        let task = send(&server, message("x"));
        assert_eq!(artifact(&task, "result")["parts"][0]["data"]["summary"], json!(expected), "{approve}: {task}");
        server.kill();
    }
}
