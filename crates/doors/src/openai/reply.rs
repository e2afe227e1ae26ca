//! What the agent says, as one text that only grows.
//!
//! A task has artifacts that come in chunks, may be replaced, and hold files and data; this API has one text. Here each piece is turned
//! into text once, in the order in which it comes. Of what was shown, only its length and a check are kept.

use std::collections::HashMap;

use sabir_model::{Artifact, ArtifactId, Chunk, Content, Part, QuestionType, Task};

use crate::question::Question;
use crate::words::one_line;

/// Texts that do not belong together are apart by an empty line.
const APART: &str = "\n\n";
/// Larger files and data are named, not shown.
const LONGEST_IMAGE: usize = 1024 * 1024;
const LONGEST_DATA: usize = 64 * 1024;
const LONGEST_NAME: usize = 100;

/// The text so far.
#[derive(Debug, Default)]
pub(crate) struct ReplyText {
    artifacts: HashMap<ArtifactId, Shown>,
    /// The artifact at the end of the text.
    last: Option<ArtifactId>,
    has_text: bool,
    /// Some of it is the agent's.
    has_words_of_agent: bool,
    pending: String,
}

/// What was shown of one artifact.
#[derive(Debug, Clone, Copy, Default)]
struct Shown {
    length: usize,
    check: Check,
    /// It ends with plain text, which more plain text continues.
    is_open: bool,
}

/// FNV-1a over all bytes: tells whether a replaced artifact begins with what was shown of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Check(u64);

impl Default for Check {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Check {
    fn over(self, bytes: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }
}

impl ReplyText {
    /// A reply to a message that continues this task: what it has made so far was shown before.
    pub(crate) fn after(task: &Task) -> Self {
        let mut text = Self::default();
        text.catch_up(task);
        Self { artifacts: text.artifacts, ..Self::default() }
    }

    /// A chunk of an artifact.
    pub(crate) fn chunk(&mut self, chunk: &Chunk) {
        if chunk.append {
            self.append(&chunk.artifact.id, &chunk.artifact.parts);
        } else {
            self.whole(&chunk.artifact);
        }
    }

    /// Whatever of the task was not shown yet.
    pub(crate) fn catch_up(&mut self, task: &Task) {
        for artifact in &task.artifacts {
            self.whole(artifact);
        }
    }

    /// Something that Sabir says.
    pub(crate) fn note(&mut self, words: &str) {
        self.show(None, words);
    }

    /// What is to be sent now; `None`: nothing new.
    pub(crate) fn take(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.pending)).filter(|text| !text.is_empty())
    }

    /// Whether the agent has made anything that was shown.
    pub(crate) fn has_words_of_agent(&self) -> bool {
        self.has_words_of_agent
    }

    fn append(&mut self, id: &ArtifactId, parts: &[Part]) {
        let mut shown = self.artifacts.get(id).copied().unwrap_or_default();
        let before = shown.length;
        let mut text = String::new();
        for part in parts {
            let words = text_of(part);
            if words.is_empty() {
                continue;
            }
            let is_plain = is_plain_text(part);
            let gap = if shown.length + text.len() == 0 || (shown.is_open && is_plain) { "" } else { APART };
            text.push_str(gap);
            text.push_str(&words);
            shown.is_open = is_plain;
        }
        if text.is_empty() {
            return;
        }
        shown = Shown { length: before + text.len(), check: shown.check.over(text.as_bytes()), ..shown };
        self.artifacts.insert(id.clone(), shown);
        self.show(Some(id), &text);
    }

    /// The whole artifact: shows what is new in it, or all of it where it was replaced.
    fn whole(&mut self, artifact: &Artifact) {
        let Some(shown) = self.artifacts.get(&artifact.id).copied() else {
            return self.append(&artifact.id, &artifact.parts);
        };
        let mut all = ReplyText::default();
        all.append(&artifact.id, &artifact.parts);
        let text = all.pending;
        let now = all.artifacts.get(&artifact.id).copied().unwrap_or_default();
        let begins_as_shown = text.len() >= shown.length
            && Check::default().over(&text.as_bytes()[..shown.length]) == shown.check
            && text.is_char_boundary(shown.length);
        self.artifacts.insert(artifact.id.clone(), now);
        if !begins_as_shown {
            self.last = None;
            self.show(Some(&artifact.id), &text);
        } else if text.len() > shown.length {
            self.show(Some(&artifact.id), &text[shown.length..]);
        }
    }

    fn show(&mut self, id: Option<&ArtifactId>, text: &str) {
        if text.is_empty() {
            return;
        }
        let continues = id.is_some() && self.last.as_ref() == id;
        if self.has_text && !continues {
            self.pending.push_str(APART);
        }
        self.pending.push_str(text);
        self.last = id.cloned();
        self.has_text = true;
        self.has_words_of_agent |= id.is_some();
    }
}

/// Text with nothing beside it: a task joins neighbours of this kind.
fn is_plain_text(part: &Part) -> bool {
    let has_nothing_else = part.filename.is_none() && part.media_type.is_none() && part.metadata.is_none();
    matches!(part.content, Content::Text(_)) && has_nothing_else
}

/// A part in words: small images and data are shown, other files are named.
fn text_of(part: &Part) -> String {
    let media_type = part.media_type.as_deref().unwrap_or_default();
    let name = part.filename.as_deref().map(|name| one_line(name, LONGEST_NAME)).filter(|name| !name.is_empty());
    let label = || name.clone().unwrap_or_else(|| "file".to_owned()).replace(['[', ']'], " ");
    match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(json) if json.as_str().len() <= LONGEST_DATA => format!("```json\n{}\n```", json.as_str()),
        Content::Data(json) => format!("[data of {} bytes]", json.as_str().len()),
        Content::Url(url) if is_link(url) => format!("[{}]({url})", label()),
        Content::Url(url) => format!("[{}: {}]", label(), one_line(url, 1000)),
        Content::Bytes(bytes) if is_image(media_type) && bytes.as_str().len() <= LONGEST_IMAGE => {
            format!("![{}](data:{media_type};base64,{})", label(), bytes.as_str())
        }
        Content::Bytes(bytes) => {
            let kind = if media_type.is_empty() { String::new() } else { format!(", {}", one_line(media_type, 100)) };
            format!("[{}{kind}, {} bytes]", label(), bytes.as_str().len() / 4 * 3)
        }
    }
}

/// Nothing in it ends a link of Markdown.
fn is_link(url: &str) -> bool {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    is_web && url.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'"'))
}

fn is_image(media_type: &str) -> bool {
    let name = media_type.strip_prefix("image/");
    name.is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".+-".contains(&byte))
    })
}

/// How a program answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContextSource {
    /// It names the context, so its next message is the answer.
    Header,
    /// It does not, so each of its messages begins a new task.
    None,
}

/// An open question, and how it is answered.
pub(crate) fn asking(task: &Task, question: &Question, source: ContextSource) -> String {
    let mut text = question.words.clone();
    for choice in &question.choices {
        text.push_str(&format!("\n- {} (`{}`)", one_line(&choice.name, 200), one_line(&choice.id, 100)));
    }
    let answer = match question.question_type {
        QuestionType::Permission => "Answer yes or no",
        QuestionType::Input => "Answer it",
    };
    let id = question.id;
    let how = match source {
        ContextSource::Header => format!("{answer} in the next message. Question `{id}`"),
        ContextSource::None => {
            format!("Question `{id}`: to answer it, send the answer with the header X-Sabir-Context: {}", task.context)
        }
    };
    format!("{text}\n\n[{how}]")
}

/// What is said of a permission that nobody could have given.
pub(crate) fn refused_permission(task: &Task, question: &Question) -> String {
    format!(
        "[Refused, since this request names no context: {}. To be asked, send the header X-Sabir-Context with an id of your \
         choice, the same for all messages of a conversation; the context of this answer is {}.]",
        one_line(&question.words, 300),
        task.context
    )
}

/// What is said while somebody else has to answer.
pub(crate) fn pending_approval(question: &Question) -> String {
    let who = match &question.approver {
        Some(scope) => format!("only callers with the scope {scope} may answer"),
        None => "this caller may not answer".to_owned(),
    };
    format!("[The agent waits for an answer; {who}: {}]", one_line(&question.words, 300))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sabir_model::Json;

    use super::*;

    fn artifact(id: &str, parts: Vec<Part>) -> Arc<Artifact> {
        Arc::new(Artifact::new(ArtifactId::parse(id).unwrap(), parts))
    }

    fn chunk(id: &str, append: bool, parts: Vec<Part>) -> Chunk {
        Chunk { index: 0, artifact: artifact(id, parts), append, last: false, metadata: None }
    }

    fn text(words: &str) -> Vec<Part> {
        vec![Part::text(words)]
    }

    #[test]
    fn chunks_become_one_text() {
        let data = Part::data(Json::parse("{\"a\":1}").unwrap());
        let markdown = Part { media_type: Some("text/markdown".into()), ..Part::text("# M") };
        for (chunks, expected) in [
            (vec![chunk("a", false, text("he")), chunk("a", true, text("llo"))], "hello"),
            (vec![chunk("a", true, text("he")), chunk("a", true, text("")), chunk("a", true, text("llo"))], "hello"),
            (vec![chunk("a", false, text("one")), chunk("b", false, text("two"))], "one\n\ntwo"),
            (
                vec![chunk("a", false, text("1")), chunk("b", false, text("2")), chunk("a", true, text("3"))],
                "1\n\n2\n\n3",
            ),
            (vec![chunk("a", false, text("he")), chunk("a", false, text("hello"))], "hello"),
            (vec![chunk("a", false, text("hello")), chunk("a", false, text("bye"))], "hello\n\nbye"),
            (vec![chunk("a", false, text("hello")), chunk("a", false, text("hello"))], "hello"),
            (vec![chunk("a", false, text("é")), chunk("a", false, text("è"))], "é\n\nè"),
            (
                vec![chunk("a", false, vec![Part::text("x"), data, Part::text("y")])],
                "x\n\n```json\n{\"a\":1}\n```\n\ny",
            ),
            (vec![chunk("a", false, vec![Part::text("x"), markdown])], "x\n\n# M"),
        ] {
            let mut reply = ReplyText::default();
            let mut said = String::new();
            for chunk in &chunks {
                reply.chunk(chunk);
                said.push_str(&reply.take().unwrap_or_default());
            }
            assert_eq!(said, expected, "{chunks:?}");
        }
    }

    #[test]
    fn files_are_shown_or_named() {
        let named = |part: Part, name: &str| Part { filename: Some(name.into()), ..part };
        let large = vec![0_u8; LONGEST_IMAGE];
        for (part, expected) in [
            (Part::file("a.png", "image/png", b"PNG"), "![a.png](data:image/png;base64,UE5H)"),
            (Part::file("a.zip", "application/zip", b"ZIP"), "[a.zip, application/zip, 3 bytes]"),
            (Part::file("a.png", "image/png", &large), "[a.png, image/png, 1048578 bytes]"),
            (Part::file("a", "image/png,x", b"PNG"), "[a, image/png,x, 3 bytes]"),
            (named(Part::url("https://a.example/x"), "]x\n["), "[ x  ](https://a.example/x)"),
            (Part::url("javascript:alert(1)"), "[file: javascript:alert(1)]"),
            (Part::url("https://a.example/x) ![y](z"), "[file: https://a.example/x) ![y](z]"),
        ] {
            assert_eq!(text_of(&part), expected);
        }
    }
}
