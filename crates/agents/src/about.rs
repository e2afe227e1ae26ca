//! The default card of a program; the configuration can change it.
//!
//! The card of a coding program follows from its kind. Of a `command` or `generic` program only its name is known, so its
//! card has no more than that.

use std::path::Path;

use sabir_engine::{About, Inputs};
use sabir_model::{Skill, cost_extension, tool_call_extension};

use crate::program::settings::Kind;

/// The card of a program. `command` is its configured command line, if any.
pub fn about(kind: Kind, command: &[String]) -> About {
    match kind {
        Kind::Generic | Kind::Command => any_program(kind, called(command)),
        _ => coding_program(kind),
    }
}

/// The card of a coding program.
pub fn coding_program(kind: Kind) -> About {
    let name = kind.info().name;
    let does = format!("Delegates coding tasks to the {name} agent and streams its results back over the A2A protocol");
    let mut about = About::new(format!("Sabir ({name})"), does)
        .version(env!("CARGO_PKG_VERSION"))
        .modes(["text/plain"], ["text/plain", "application/json"])
        .skill(code_task())
        .extension(cost_extension())
        .extension(tool_call_extension());
    about.takes = Inputs::Listed;
    about
}

fn any_program(kind: Kind, name: String) -> About {
    let does = match kind {
        Kind::Command => "Gives each message to the program NAME and answers with what it prints",
        _ => "Gives each message to the program NAME and tells what it reports",
    };
    let does = does.replace("NAME", &name);
    let (output_modes, extensions) = match kind {
        // The output of such a program is plain text.
        Kind::Command => (words(&["text/plain"]), Vec::new()),
        _ => (words(&["text/plain", "application/json"]), vec![cost_extension(), tool_call_extension()]),
    };
    let skill = Skill {
        id: name.clone(),
        name: name.clone(),
        description: does.clone(),
        tags: vec![name.clone()],
        input_modes: taken(),
        output_modes: output_modes.clone(),
        ..Skill::default()
    };
    let mut about = About::new(name, does).version(env!("CARGO_PKG_VERSION")).skill(skill);
    about.output_modes = output_modes;
    about.extensions = extensions;
    about.takes = Inputs::Listed;
    about
}

/// Programs that run the script in their arguments.
const INTERPRETERS: [&str; 10] = ["sh", "bash", "zsh", "env", "node", "npx", "uv", "uvx", "ruby", "perl"];

/// The program's display name: the name of its file, or of the script that it runs.
fn called(command: &[String]) -> String {
    let name = |word: &String| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
    let is_interpreter = |name: &str| INTERPRETERS.contains(&name) || name.starts_with("python");
    let mut called = "program".to_owned();
    for word in command {
        match word.as_str() {
            // The next argument is the script itself, which must not be public.
            "-c" | "-e" => break,
            flag if flag.starts_with('-') => {}
            _ => {
                called = name(word).unwrap_or(called);
                if !is_interpreter(&called) {
                    break;
                }
            }
        }
    }
    called
}

fn code_task() -> Skill {
    Skill {
        id: "code-task".into(),
        name: "Execute coding task".into(),
        description: "Runs a coding task (edit, refactor, analyse, explain, test) in its workspace".into(),
        tags: words(&["coding", "refactor", "edit", "test"]),
        examples: words(&[
            "Refactor the auth module to use JWT",
            "Add unit tests for src/utils/date.ts",
            "Explain how the rate limiter works",
        ]),
        input_modes: taken(),
        output_modes: words(&["text/plain", "application/json"]),
        security: Vec::new(),
    }
}

/// Data goes into the prompt, and files of any type go into the workspace. The two usual types are listed for clients that
/// compare types literally.
fn taken() -> Vec<String> {
    words(&["text/plain", "application/json", "*/*"])
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::PROGRAMS;

    #[test]
    fn the_card_of_a_coding_program_names_its_kind_and_has_one_skill() {
        for known in PROGRAMS.iter().filter(|known| !matches!(known.kind, Kind::Generic | Kind::Command)) {
            let about = about(known.kind, &[]);
            assert_eq!(about.name, format!("Sabir ({})", known.name));
            assert!(about.description.contains(known.name), "{}", about.description);
            assert_eq!(about.input_modes, ["text/plain"]);
            assert_eq!(about.output_modes, ["text/plain", "application/json"]);
            let [skill] = about.skills.as_slice() else {
                panic!("one skill: {:?}", about.skills);
            };
            assert_eq!((skill.id.as_str(), skill.examples.len()), ("code-task", 3));
            assert_eq!(skill.tags, ["coding", "refactor", "edit", "test"]);
        }
    }

    #[test]
    fn any_other_program_is_called_by_its_name() {
        for (command, expected) in [
            (&["/opt/bin/summarise", "--short"][..], "summarise"),
            (&["summarise"], "summarise"),
            (&["python3", "-u", "agents/weather.py"], "weather.py"),
            (&["/usr/bin/env", "python3", "weather.py"], "weather.py"),
            (&["sh", "-c", "curl -H token"], "sh"),
            (&["bash"], "bash"),
            (&[], "program"),
        ] {
            let command = words(command);
            for kind in [Kind::Generic, Kind::Command] {
                let about = about(kind, &command);
                assert_eq!(about.name, expected);
                let text = format!("{about:?}");
                assert!(about.description.contains(expected) && !text.contains("oding"), "{text}");
                assert_eq!(about.skills.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), [expected]);
                assert_eq!(about.skills[0].examples, Vec::<String>::new());
            }
        }
    }

    #[test]
    fn programs_that_speak_only_text_declare_no_extension() {
        assert_eq!(about(Kind::Command, &[]).extensions.len(), 0);
        assert_eq!(about(Kind::Generic, &[]).extensions.len(), 2);
        assert_eq!(about(Kind::Cursor, &[]).extensions.len(), 2);
    }
}
