//! A log entry: a stored event that all its readers share, encoded at most once per dialect. Also the approximate sizes
//! of events, tasks and messages in memory.

use std::sync::Mutex;

use bytes::Bytes;
use sabir_model::{Artifact, Content, Event, Json, Message, Part, Seq, Task};

use crate::sharded::lock;

/// An event that is stored.
pub struct LogEntry {
    /// Its number in the task's log.
    pub seq: Seq,
    /// What happened.
    pub event: Event,
    weight: usize,
    /// Encoded forms, by the slot of the dialect. The engine never reads them.
    encoded: Mutex<Vec<(usize, Bytes)>>,
}

impl LogEntry {
    pub(crate) fn new(seq: Seq, event: Event) -> Self {
        Self { seq, weight: event_weight(&event), event, encoded: Mutex::default() }
    }

    /// Passes the encoded form of this slot to `take`; the first reader encodes it.
    pub fn encoded<T>(&self, slot: usize, encode: impl FnOnce(&Event) -> Vec<u8>, take: impl FnOnce(&Bytes) -> T) -> T {
        let mut encoded = lock(&self.encoded);
        if let Some((_, bytes)) = encoded.iter().find(|(known, _)| *known == slot) {
            return take(bytes);
        }
        let mut bytes = encode(&self.event);
        bytes.shrink_to_fit();
        // Nearly always there is only one.
        encoded.reserve_exact(1);
        encoded.push((slot, Bytes::from(bytes)));
        take(&encoded[encoded.len() - 1].1)
    }

    /// Approximate bytes in memory.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

fn event_weight(event: &Event) -> usize {
    let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.as_str().len());
    256 + match event {
        Event::Created(created) => message_weight(&created.message) + json(&created.metadata),
        Event::Status(change) => {
            let messages = change.status.message.iter().chain(&change.input);
            messages.map(|message| message_weight(message)).sum::<usize>() + json(&change.metadata)
        }
        Event::Artifact(chunk) => artifact_weight(&chunk.artifact) + json(&chunk.metadata),
    }
}

/// Approximate bytes of a whole task in memory.
pub(crate) fn task_weight(task: &Task) -> usize {
    let messages = task.history.iter().chain(&task.status.message).map(|message| message_weight(message));
    let artifacts = task.artifacts.iter().map(|artifact| artifact_weight(artifact));
    512 + messages.sum::<usize>() + artifacts.sum::<usize>()
}

pub(crate) fn artifact_weight(artifact: &Artifact) -> usize {
    parts_weight(&artifact.parts) + artifact.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
}

pub(crate) fn message_weight(message: &Message) -> usize {
    let metadata = [&message.metadata, &message.request_metadata];
    let metadata = metadata.into_iter().flatten().map(|metadata| metadata.as_str().len());
    let request = message.request.as_ref().map_or(0, |request| request.weight());
    parts_weight(&message.parts) + metadata.sum::<usize>() + request
}

pub(crate) fn parts_weight(parts: &[Part]) -> usize {
    let content = |part: &Part| match &part.content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Bytes(bytes) => bytes.as_str().len(),
        Content::Data(data) => data.as_str().len(),
    };
    let metadata = |part: &Part| part.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len());
    parts.iter().map(|part| 64 + content(part) + metadata(part)).sum()
}
