//! Artifacts of 0.1 are identified by their index in the task, and `append` and `lastChunk` are members of the artifact.
//! Our own id is written too, for clients that read the same task in another version.

use std::sync::Arc;

use sabir_model as model;
use sabir_model::{ArtifactId, Chunk};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::part::Part;
use crate::wire_types::{Int32, PartList, RawJson, Text, Violations, non_empty, non_empty_text, object};

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Artifact<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<Int32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    append: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_chunk: Option<bool>,
    #[serde(default)]
    parts: PartList<'a, Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<RawJson<'a>>,
}

object! { both Artifact<'a> }

impl<'a> Artifact<'a> {
    pub(super) fn of(chunk: &'a Chunk) -> Self {
        Artifact {
            append: chunk.append.then_some(true),
            last_chunk: chunk.last.then_some(true),
            ..Artifact::at(chunk.index, &chunk.artifact)
        }
    }

    fn at(index: u32, artifact: &'a model::Artifact) -> Self {
        Artifact {
            id: Some((&artifact.id).into()),
            name: non_empty_text(&artifact.name),
            description: non_empty_text(&artifact.description),
            index: Some(Int32(i32::try_from(index).unwrap_or(i32::MAX))),
            append: None,
            last_chunk: None,
            parts: (&artifact.parts).into(),
            metadata: artifact.metadata.as_ref().map(RawJson::from),
        }
    }

    /// `place` is its index if it has none.
    pub(super) fn read(self, place: u32) -> Result<Chunk, Violations> {
        let mut violations = Violations::default();
        let index = violations.count("index", self.index).unwrap_or(place);
        let id = self.id.filter(|id| !id.as_str().is_empty()).unwrap_or_else(|| format!("artifact-{index}").into());
        let id = violations.id("id", Some(id), ArtifactId::parse);
        let parts = self.parts.read("parts", &mut violations);
        let metadata = violations.object("metadata", self.metadata);
        let (append, last) = (self.append.unwrap_or(false), self.last_chunk.unwrap_or(false));
        violations.finish(id.map(|id| {
            let artifact = model::Artifact {
                id,
                name: non_empty(self.name),
                description: non_empty(self.description),
                parts,
                extensions: Vec::new(),
                metadata,
            };
            Chunk { index, artifact: artifact.into(), append, last, metadata: None }
        }))
    }
}

/// The artifacts of a task.
#[derive(Debug)]
pub(super) enum ArtifactList<'a> {
    Wire(Vec<Artifact<'a>>),
    Model(&'a [Arc<model::Artifact>]),
}

impl ArtifactList<'_> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            ArtifactList::Wire(list) => list.is_empty(),
            ArtifactList::Model(list) => list.is_empty(),
        }
    }

    pub(super) fn read_each(self, member: &str, violations: &mut Violations) -> Vec<model::Artifact> {
        let ArtifactList::Wire(list) = self else { return Vec::new() };
        let mut each = Vec::with_capacity(list.len());
        for (place, artifact) in (0..).zip(list) {
            match artifact.read(place) {
                Ok(chunk) => each.push(Arc::unwrap_or_clone(chunk.artifact)),
                Err(_) if violations.is_full() => break,
                Err(inner) => violations.add_nested(&format!("{member}[{place}]"), inner),
            }
        }
        each
    }
}

impl Default for ArtifactList<'_> {
    fn default() -> Self {
        ArtifactList::Model(&[])
    }
}

impl Serialize for ArtifactList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ArtifactList::Wire(list) => serializer.collect_seq(list),
            ArtifactList::Model(list) => {
                serializer.collect_seq((0..).zip(*list).map(|(index, artifact)| Artifact::at(index, artifact)))
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ArtifactList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<Vec<Artifact<'a>>>::deserialize(deserializer).map(|list| ArtifactList::Wire(list.unwrap_or_default()))
    }
}
