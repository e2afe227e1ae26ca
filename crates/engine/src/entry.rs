//! An event on its way to its readers, spelled at most once per dialect.

use std::sync::Mutex;

use bytes::Bytes;
use sabir_model::{Event, Seq};

use crate::sharded::lock;

pub struct Entry {
    pub seq: Seq,
    pub event: Event,
    /// What readers have made of it, by their slot. The engine never looks inside.
    spelled: Mutex<Vec<(usize, Bytes)>>,
}

impl Entry {
    pub(crate) fn new(seq: Seq, event: Event) -> Self {
        Self { seq, event, spelled: Mutex::default() }
    }

    /// The spelling of this slot, made by the first reader who asks.
    pub fn spelled(&self, slot: usize, spell: impl FnOnce(&Event) -> Vec<u8>) -> Bytes {
        let mut spelled = lock(&self.spelled);
        if let Some((_, bytes)) = spelled.iter().find(|(known, _)| *known == slot) {
            return bytes.clone();
        }
        let bytes = Bytes::from(spell(&self.event));
        spelled.push((slot, bytes.clone()));
        bytes
    }

    /// About how much memory it holds.
    pub(crate) fn weight(&self) -> usize {
        let parts = |parts: &[sabir_model::Part]| -> usize {
            parts
                .iter()
                .map(|part| match &part.content {
                    sabir_model::Content::Text(text) | sabir_model::Content::Url(text) => text.len(),
                    sabir_model::Content::Bytes(bytes) => bytes.as_str().len(),
                    sabir_model::Content::Data(data) => data.as_str().len(),
                })
                .sum()
        };
        256 + match &self.event {
            Event::Created(created) => parts(&created.message.parts),
            Event::Status(change) => change.status.message.as_ref().map_or(0, |message| parts(&message.parts)),
            Event::Artifact(chunk) => parts(&chunk.artifact.parts),
        }
    }
}
