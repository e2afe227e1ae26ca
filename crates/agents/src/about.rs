//! What the card of a program says, unless the configuration says otherwise.

use sabir_engine::{About, Inputs, Streaming};
use sabir_model::{Skill, cost_extension, tool_call_extension};

use crate::program::settings::Kind;

pub fn about(kind: Kind) -> About {
    let name = kind.known().name;
    About {
        name: format!("Sabir ({name})"),
        description: format!(
            "Delegates coding tasks to the {name} agent and streams its results back over the A2A protocol"
        ),
        version: env!("CARGO_PKG_VERSION").into(),
        skills: vec![code_task()],
        input_modes: words(&["text/plain"]),
        output_modes: words(&["text/plain", "application/json"]),
        extensions: match kind {
            // All that such a program says is text.
            Kind::Command => Vec::new(),
            _ => vec![cost_extension(), tool_call_extension()],
        },
        takes: Inputs::Listed,
        streaming: Streaming::Offered,
    }
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
        // Data goes into the prompt, and files of any type go into the workspace. A client that looks for its own type
        // word by word finds the usual two.
        input_modes: words(&["text/plain", "application/json", "*/*"]),
        output_modes: words(&["text/plain", "application/json"]),
        security: Vec::new(),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::KNOWN;

    #[test]
    fn the_card_of_a_program_names_its_kind_and_has_one_skill() {
        for known in &KNOWN {
            let about = about(known.kind);
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
    fn programs_that_speak_only_text_declare_no_extension() {
        assert_eq!(about(Kind::Command).extensions.len(), 0);
        assert_eq!(about(Kind::Cursor).extensions.len(), 2);
    }
}
