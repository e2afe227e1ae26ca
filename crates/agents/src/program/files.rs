//! Writes the files of a message to where the program can read them, and puts its data into the prompt.

use std::io;
use std::iter;
use std::path::Path;

use sabir_model::{Content, Message};

use super::uploads::Uploads;
use crate::protocols::Attachment;

/// A message in the form that a program gets.
pub(super) struct Taken {
    /// The text of the message, with its data and the names of its files.
    pub text: String,
    pub files: Vec<Attachment>,
}

/// Writes the message's files into the workspace and names them in the text.
pub(super) fn take_in(message: &Message, folder: &Path, uploads: &mut Uploads) -> io::Result<Taken> {
    let (mut text, mut notes, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for part in &message.parts {
        match &part.content {
            Content::Text(words) => text.push(words.as_str()),
            Content::Bytes(bytes) => {
                let name = own_name(file_name(part.filename.as_deref(), files.len()), &files);
                let bytes = bytes.decode();
                let path = uploads.put(&name, &bytes)?;
                notes.push(format!("- {}", path.strip_prefix(folder).unwrap_or(&path).display()));
                let is_image = part.media_type.as_ref().is_some_and(|media_type| media_type.starts_with("image/"));
                let bytes = is_image.then_some(bytes);
                files.push(Attachment { media_type: part.media_type.clone(), bytes, ..Attachment::named(path) });
            }
            Content::Url(url) => notes.push(format!("- {url}")),
            Content::Data(data) => notes.push(format!("```json\n{}\n```", data.as_str())),
        }
    }
    let mut text = text.join("\n");
    if !notes.is_empty() {
        text.push_str("\n\nAttached:\n");
        text.push_str(&notes.join("\n"));
    }
    Ok(Taken { text, files })
}

/// Makes names unique: two files may have the same name.
fn own_name(name: String, others: &[Attachment]) -> String {
    let is_taken = |name: &str| others.iter().any(|other| other.path.file_name().is_some_and(|taken| taken == name));
    let numbered = (others.len() + 1..).map(|number| format!("{number}-{name}"));
    iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
}

/// The longest name in bytes. A number before it must still fit into the limit of file systems.
const LONGEST_NAME: usize = 200;

/// The name without its path: a caller must not write outside of the folder.
fn file_name(given: Option<&str>, number: usize) -> String {
    let name = given.and_then(|given| given.rsplit(['/', '\\']).next()).unwrap_or_default();
    // The name is part of the prompt, where an `@` after a space makes some programs read a file.
    let mut previous = 'x';
    let harmless = |letter: char| {
        let is_mention = letter == '@' && previous.is_whitespace();
        previous = letter;
        if is_mention { '_' } else { letter }
    };
    let letters = name.chars().filter(|c| !c.is_control()).map(harmless);
    let mut name: String = letters.take(LONGEST_NAME).collect();
    while name.len() > LONGEST_NAME {
        name.pop();
    }
    match name.trim_start_matches('.').is_empty() {
        true => format!("file-{}", number + 1),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use sabir_model::{Base64, Json, MessageId, Part, Role};

    fn message(parts: Vec<Part>) -> Message {
        Message::new(MessageId::parse("m").unwrap(), Role::User, parts)
    }

    fn file(name: Option<&str>, text: &str) -> Part {
        let mut part = Part::from(Content::Bytes(Base64::encode(text.as_bytes())));
        part.filename = name.map(str::to_owned);
        part
    }

    fn take(folder: &Path, parts: Vec<Part>) -> Taken {
        take_in(&message(parts), folder, &mut Uploads::new(folder, None, 1)).unwrap()
    }

    fn texts(taken: &Taken) -> Vec<String> {
        taken.files.iter().map(|file| fs::read_to_string(&file.path).unwrap()).collect()
    }

    #[test]
    fn files_lie_in_the_workspace_and_are_named_in_the_text() {
        let folder = tempfile::tempdir().unwrap();
        let data = Part::from(Content::Data(Json::parse(r#"{"a":1}"#).unwrap()));
        let link = Part::from(Content::Url("https://example.com/x".into()));
        let parts = vec![
            Part::text("look"),
            Part::text("here"),
            file(Some("../../etc/passwd"), "one"),
            file(Some("passwd"), "two"),
            file(None, "three"),
            file(Some(".."), "four"),
            data,
            link,
        ];
        let taken = take(folder.path(), parts);
        let place = taken.files[0].path.parent().unwrap().strip_prefix(folder.path()).unwrap().display().to_string();
        assert!(place.starts_with(".sabir/"), "{place}");
        let expected = "look\nhere\n\nAttached:\n- PLACE/passwd\n- PLACE/2-passwd\n- PLACE/file-3\n\
            - PLACE/file-4\n```json\n{\"a\":1}\n```\n- https://example.com/x";
        assert_eq!(taken.text, expected.replace("PLACE", &place));
        assert_eq!(texts(&taken), ["one", "two", "three", "four"]);
        assert!(taken.files.iter().all(|file| file.path.starts_with(folder.path())));
        assert_eq!(fs::read_to_string(folder.path().join(".sabir/.gitignore")).unwrap(), "*\n");
    }

    #[test]
    fn a_name_in_the_prompt_names_no_other_file() {
        for (given, expected) in
            [("x @~", "x _~"), ("@x", "@x"), ("logo@2x.png", "logo@2x.png"), ("a \u{2003}@@b", "a \u{2003}_@b")]
        {
            assert_eq!(file_name(Some(given), 0), expected);
        }
    }

    #[test]
    fn words_alone_leave_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(take(folder.path(), vec![Part::text("hi")]).text, "hi");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn no_name_costs_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let wide = "\u{1f600}".repeat(120);
        let parts =
            || vec![file(Some("a"), "one"), file(Some("3-a"), "two"), file(Some("a"), "three"), file(Some(&wide), "4")];
        // Two turns of one task, or two tasks: each has a folder of its own.
        for _ in 0..2 {
            assert_eq!(texts(&take(folder.path(), parts())), ["one", "two", "three", "4"]);
        }
        assert_eq!(fs::read_dir(folder.path().join(".sabir")).unwrap().count(), 3);
    }
}
