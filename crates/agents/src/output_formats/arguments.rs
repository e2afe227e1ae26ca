//! How a prompt is put when the program has no better place for it.

use crate::prompt::Prompt;

/// The operator's instructions before the caller's words, for programs that have no place for instructions. A session
/// that is resumed has heard them already.
pub(super) fn with_instructions(prompt: &Prompt) -> String {
    match &prompt.instructions {
        Some(instructions) if prompt.session.is_none() => format!("{instructions}\n\n{}", prompt.text),
        _ => prompt.text.clone(),
    }
}

/// A text as the last argument. One that begins with a dash would be read as a flag.
pub(super) fn last_argument(text: String) -> Vec<String> {
    let text = argument(&text);
    if text.starts_with('-') { vec!["--".to_owned(), text] } else { vec![text] }
}

/// `--name=value`: a value that begins with a dash stays a value.
pub(super) fn flag(name: &str, value: Option<&String>) -> Option<String> {
    value.map(|value| argument(&format!("--{name}={value}")))
}

/// No argument can hold a zero byte: the system takes it for the end.
fn argument(text: &str) -> String {
    text.replace('\0', "")
}

pub(super) fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
