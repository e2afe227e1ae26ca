//! An event on its way to its readers, spelled at most once per dialect.

use std::sync::Mutex;

use bytes::Bytes;
use sabir_model::{Content, Event, Message, Part, Seq};

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
        256 + match &self.event {
            Event::Created(created) => weight_of(&created.message),
            Event::Status(change) => {
                let messages = change.status.message.iter().chain(&change.input);
                messages.map(|message| weight_of(message)).sum()
            }
            Event::Artifact(chunk) => {
                parts_weight(&chunk.artifact.parts)
                    + chunk.artifact.metadata.as_ref().map_or(0, |json| json.as_str().len())
            }
        }
    }
}

fn weight_of(message: &Message) -> usize {
    parts_weight(&message.parts) + message.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
}

fn parts_weight(parts: &[Part]) -> usize {
    let content = |part: &Part| match &part.content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Bytes(bytes) => bytes.as_str().len(),
        Content::Data(data) => data.as_str().len(),
    };
    parts.iter().map(|part| content(part) + part.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())).sum()
}
