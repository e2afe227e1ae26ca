//! Prompts and flags as arguments of a command line.

use crate::prompt::Prompt;

/// The prompt with the operator's instructions before it, for programs without a flag for instructions. A resumed session
/// has them already.
pub(super) fn with_instructions(prompt: &Prompt) -> String {
    match &prompt.instructions {
        Some(instructions) if prompt.session.is_none() => format!("{instructions}\n\n{}", prompt.text),
        _ => prompt.text.clone(),
    }
}

/// The text as the last argument, after `--` if it begins with a dash: a program would read it as a flag.
pub(super) fn last_argument(text: String) -> Vec<String> {
    let text = argument(&text);
    if text.starts_with('-') { vec!["--".to_owned(), text] } else { vec![text] }
}

/// `--name=value`: a value that begins with a dash stays a value.
pub(super) fn flag(name: &str, value: Option<&String>) -> Option<String> {
    value.map(|value| argument(&format!("--{name}={value}")))
}

/// Removes zero bytes, which no argument can hold.
fn argument(text: &str) -> String {
    text.replace('\0', "")
}

pub(super) fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
