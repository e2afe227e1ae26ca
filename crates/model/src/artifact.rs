//! What is made: artifacts, whole or growing by chunks.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{ArtifactId, Content, Json, Part};

/// Something that an agent has made: an answer, or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The same for all pieces of it.
    pub id: ArtifactId,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it consists of.
    pub parts: Vec<Part>,
    /// Extensions that say something in its metadata.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl Artifact {
    /// An artifact without a name.
    pub fn new(id: ArtifactId, parts: Vec<Part>) -> Self {
        Self { id, name: None, description: None, parts, extensions: Vec::new(), metadata: None }
    }

    /// Takes in a later chunk. Neighbouring plain text becomes one part, so that an answer which was
    /// streamed by the word is stored as one text; an empty text that only closes is not kept.
    pub(crate) fn extend(&mut self, chunk: &Artifact) {
        for part in &chunk.parts {
            let joins = part.is_plain_text() && self.parts.last().is_some_and(Part::is_plain_text);
            match (&part.content, self.parts.last_mut().map(|last| &mut last.content)) {
                (Content::Text(more), Some(Content::Text(text))) if joins => text.push_str(more),
                (Content::Text(more), _) if more.is_empty() && part.is_plain_text() => {}
                _ => self.parts.push(part.clone()),
            }
        }
        if chunk.name.is_some() {
            self.name.clone_from(&chunk.name);
        }
        if chunk.description.is_some() {
            self.description.clone_from(&chunk.description);
        }
        if chunk.metadata.is_some() {
            self.metadata.clone_from(&chunk.metadata);
        }
        if !chunk.extensions.is_empty() {
            // Nothing limits how many an agent names, so they are not compared each with each.
            let mut known: HashSet<&str> = self.extensions.iter().map(String::as_str).collect();
            let new: Vec<String> = chunk.extensions.iter().filter(|uri| known.insert(uri)).cloned().collect();
            self.extensions.extend(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_of_later_chunks_are_named_once_and_in_order() {
        let artifact = |extensions: Vec<String>| Artifact {
            extensions,
            ..Artifact::new(ArtifactId::parse("a").unwrap(), Vec::new())
        };
        let numbered = |range: std::ops::Range<u32>| range.map(|number| format!("urn:{number:05}")).collect::<Vec<_>>();
        let mut whole = artifact(numbered(0..20_000));
        whole.extend(&artifact([numbered(10_000..40_000), numbered(0..20_000)].concat()));
        assert_eq!(whole.extensions, numbered(0..40_000));
    }
}
