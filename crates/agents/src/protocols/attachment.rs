//! Files that come with a prompt.
//!
//! An adapter does no input or output, so its creator reads the files that are sent inline (pictures). All other files are
//! named to the program, which reads them itself.

use std::path::{Path, PathBuf};

use sabir_model::Base64;

use crate::prompt::Prompt;

/// Larger pictures are named instead of sent, in bytes.
const MAX_IMAGE: usize = 5 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    pub path: PathBuf,
    pub name: String,
    pub media_type: Option<String>,
    pub bytes: Option<Vec<u8>>,
}

impl Attachment {
    /// A file that is only named.
    pub fn named(path: PathBuf) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { path, name, media_type: None, bytes: None }
    }

    /// Its media type and its bytes in base64, if it is a picture that can be sent.
    pub(super) fn image(&self) -> Option<(&str, String)> {
        let media_type = self.media_type.as_deref().filter(|media_type| media_type.starts_with("image/"))?;
        let bytes = self.bytes.as_deref().filter(|bytes| bytes.len() < MAX_IMAGE)?;
        Some((media_type, Base64::encode(bytes).as_str().to_owned()))
    }

    pub(super) fn uri(&self, folder: &Path) -> String {
        let mut uri = String::from("file://");
        for byte in folder.join(&self.path).to_string_lossy().bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(byte.into()),
                _ => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri
    }
}

/// All files of a prompt: those that were prepared, and the others by name.
pub(crate) fn all_of(prompt: &Prompt, mut prepared: Vec<Attachment>) -> Vec<Attachment> {
    for path in &prompt.files {
        if !prepared.iter().any(|attachment| attachment.path == *path) {
            prepared.push(Attachment::named(path.clone()));
        }
    }
    prepared
}

/// The prompt's text with the paths of the files that the program has to open, for protocols without links to files.
pub(super) fn text_naming<'a>(prompt: &Prompt, files: impl Iterator<Item = &'a Attachment>) -> String {
    let paths: Vec<String> = files.map(|file| format!("- {}", prompt.folder.join(&file.path).display())).collect();
    if paths.is_empty() {
        return prompt.text.clone();
    }
    format!("{}\n\nAttached files:\n{}", prompt.text, paths.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_as_an_address() {
        let file = Attachment::named("my notes/ä.txt".into());
        assert_eq!(file.uri(Path::new("/w")), "file:///w/my%20notes/%C3%A4.txt");
        assert_eq!(file.name, "ä.txt");
    }

    #[test]
    fn only_small_pictures_are_sent() {
        let file = |media_type: &str, size: usize| Attachment {
            media_type: Some(media_type.into()),
            bytes: Some(vec![0; size]),
            ..Attachment::named("a".into())
        };
        assert_eq!(file("image/png", 3).image(), Some(("image/png", "AAAA".into())));
        assert_eq!(file("image/png", MAX_IMAGE).image(), None);
        assert_eq!(file("text/plain", 3).image(), None);
        assert_eq!(Attachment::named("a.png".into()).image(), None);
    }

    #[test]
    fn a_file_that_was_not_prepared_is_named() {
        let prompt = Prompt {
            text: "look".into(),
            folder: "/w".into(),
            files: vec!["a".into(), "b".into()],
            ..Prompt::default()
        };
        let prepared = vec![Attachment { name: "first".into(), ..Attachment::named("a".into()) }];
        let all = all_of(&prompt, prepared);
        assert_eq!(all.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["first", "b"]);
        assert_eq!(text_naming(&prompt, all.iter()), "look\n\nAttached files:\n- /w/a\n- /w/b");
    }
}
