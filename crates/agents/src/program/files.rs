//! Files of a message, put where the program can read them, and data in its prompt.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::iter;
use std::path::{Path, PathBuf};

use sabir_model::{Content, Message};

use super::folder_name::folder_name;
use crate::duplex::Attachment;

/// The folder in the workspace that holds what callers sent. It hides itself from git.
const INBOX: &str = ".sabir";

/// A message, as a program can take it.
pub(super) struct Taken {
    /// The words, and what goes with them.
    pub text: String,
    pub files: Vec<Attachment>,
}

/// Writes the message's files into the workspace and names them in the text.
pub(super) fn take_in(message: &Message, folder: &Path, task: &str) -> Result<Taken, String> {
    let (mut text, mut notes, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for part in &message.parts {
        match &part.content {
            Content::Text(words) => text.push(words.as_str()),
            Content::Bytes(bytes) => {
                let name = own_name(file_name(part.filename.as_deref(), files.len()), &files);
                let path = put(folder, task, &name, &bytes.decode())?;
                notes.push(format!("- {}", path.strip_prefix(folder).unwrap_or(&path).display()));
                let is_image = part.media_type.as_ref().is_some_and(|media_type| media_type.starts_with("image/"));
                let bytes = is_image.then(|| bytes.decode());
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

fn put(folder: &Path, task: &str, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    let inbox = folder.join(INBOX);
    let place = inbox.join(folder_name(task));
    let file = place.join(name);
    let written = own_folder(&inbox)
        .and_then(|()| hide_from_git(&inbox))
        .and_then(|()| own_folder(&place))
        .and_then(|()| write_anew(&file, bytes));
    written.map_err(|error| format!("a file of the message cannot be put into the workspace: {error}"))?;
    Ok(file)
}

/// A real folder: a link in its place, which a repository may bring along, would lead out of the workspace.
fn own_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && fs::symlink_metadata(path)?.is_dir() => Ok(()),
        made => made,
    }
}

fn hide_from_git(inbox: &Path) -> io::Result<()> {
    match write_new(&inbox.join(".gitignore"), b"*\n") {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        written => written,
    }
}

/// In the place of an earlier file of that name, never through it.
fn write_anew(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => write_new(path, bytes),
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::OpenOptions::new().write(true).create_new(true).open(path)?.write_all(bytes)
}

/// Two files of one name are two files.
fn own_name(name: String, others: &[Attachment]) -> String {
    let is_taken = |name: &str| others.iter().any(|other| other.path.file_name().is_some_and(|taken| taken == name));
    let numbered = (others.len() + 1..).map(|number| format!("{number}-{name}"));
    iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
}

/// The longest name, in bytes, so that a number before it still fits into what file systems take.
const LONGEST_NAME: usize = 200;

/// A name without a path: what callers write must not lead out of the folder.
fn file_name(said: Option<&str>, number: usize) -> String {
    let name = said.and_then(|said| said.rsplit(['/', '\\']).next()).unwrap_or_default();
    let mut name: String = name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
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
        let taken = take_in(&message(parts), folder.path(), "task-1").unwrap();
        let expected = "look\nhere\n\nAttached:\n- .sabir/task-1/passwd\n- .sabir/task-1/2-passwd\n- .sabir/task-1/file-3\n\
            - .sabir/task-1/file-4\n```json\n{\"a\":1}\n```\n- https://example.com/x";
        assert_eq!(taken.text, expected);
        let read: Vec<String> = taken.files.iter().map(|file| fs::read_to_string(&file.path).unwrap()).collect();
        assert_eq!(read, ["one", "two", "three", "four"]);
        assert!(taken.files.iter().all(|file| file.path.starts_with(folder.path())));
        assert_eq!(fs::read_to_string(folder.path().join(".sabir/.gitignore")).unwrap(), "*\n");
    }

    #[test]
    fn words_alone_leave_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(take_in(&message(vec![Part::text("hi")]), folder.path(), "t").unwrap().text, "hi");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn no_name_costs_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let wide = "\u{1f600}".repeat(120);
        let parts =
            vec![file(Some("a"), "one"), file(Some("3-a"), "two"), file(Some("a"), "three"), file(Some(&wide), "4")];
        // A caller may choose the id of a task.
        let taken = take_in(&message(parts), folder.path(), ".gitignore").unwrap();
        let read: Vec<String> = taken.files.iter().map(|file| fs::read_to_string(&file.path).unwrap()).collect();
        assert_eq!(read, ["one", "two", "three", "4"]);
        assert!(fs::metadata(folder.path().join(".sabir/.gitignore")).unwrap().is_file());
        let again = take_in(&message(vec![file(Some("a"), "new")]), folder.path(), ".gitignore").unwrap();
        assert_eq!(fs::read_to_string(&again.files[0].path).unwrap(), "new");
    }

    #[test]
    fn links_do_not_lead_out_of_the_workspace() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = |to: &Path, at: &str| std::os::unix::fs::symlink(to, folder.path().join(at)).unwrap();
        let take = || take_in(&message(vec![file(Some("a"), "text")]), folder.path(), "t");
        link(outside.path(), ".sabir");
        assert!(take().is_err());
        fs::remove_file(folder.path().join(".sabir")).unwrap();
        fs::create_dir(folder.path().join(".sabir")).unwrap();
        link(outside.path(), ".sabir/t");
        assert!(take().is_err());
        fs::remove_file(folder.path().join(".sabir/t")).unwrap();
        fs::create_dir(folder.path().join(".sabir/t")).unwrap();
        link(&outside.path().join("made"), ".sabir/t/a");
        take().unwrap();
        assert_eq!(fs::read_to_string(folder.path().join(".sabir/t/a")).unwrap(), "text");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
