//! The end of a page: pages of events end by bytes, pages of lists by number of tasks and by bytes.

use sabir_model::{Artifact, Content, Json, Message, Part, Task, Wanted};

use crate::Query;

/// A page of events ends when it has about this many bytes.
pub(crate) const EVENT_BYTES: usize = 1 << 20;

/// Cuts a list to `limit` entries. Returns whether there were more.
pub(crate) fn cut<T>(list: &mut Vec<T>, limit: usize) -> bool {
    let more = list.len() > limit;
    list.truncate(limit);
    more
}

/// Removes the parts of a task that the query does not want.
pub(crate) fn trim(task: &mut Task, query: &Query) {
    task.trim_history(query.history);
    if query.artifacts == Wanted::No {
        task.artifacts.clear();
        task.open.clear();
        task.seq = 0;
    }
}

/// The bytes that a page has left for tasks.
pub(crate) struct PageBudget {
    left: usize,
    is_empty: bool,
}

impl PageBudget {
    pub fn new(max_bytes: usize) -> Self {
        Self { left: max_bytes, is_empty: true }
    }

    /// Whether this task fits into the page. The first task always does.
    pub fn takes(&mut self, task: &Task) -> bool {
        let left = self.left.checked_sub(weight(task));
        let takes = left.is_some() || self.is_empty;
        (self.left, self.is_empty) = (left.unwrap_or(0), false);
        takes
    }
}

/// Approximate bytes of a task when it is encoded. All stores count the same way, so that their pages end at the same
/// task.
fn weight(task: &Task) -> usize {
    let status = task.status.message.as_deref().map_or(0, of_message);
    let history: usize = task.history.iter().map(|message| of_message(message)).sum();
    let artifacts: usize = task.artifacts.iter().map(|artifact| of_artifact(artifact)).sum();
    FRAME + status + history + artifacts + of_json(&task.metadata)
}

/// Names, ids and punctuation: of a task, a message or an artifact, and of a part.
const FRAME: usize = 200;
const PART_FRAME: usize = 30;

pub(crate) fn of_message(message: &Message) -> usize {
    FRAME
        + of_parts(&message.parts)
        + of_json(&message.metadata)
        + of_json(&message.request_metadata)
        + message.request.as_ref().map_or(0, |request| request.weight())
}

fn of_artifact(artifact: &Artifact) -> usize {
    let words = [&artifact.name, &artifact.description].into_iter().flatten().map(String::len).sum::<usize>();
    FRAME + words + of_parts(&artifact.parts) + of_json(&artifact.metadata)
}

fn of_parts(parts: &[Part]) -> usize {
    let of_part = |part: &Part| {
        let content = match &part.content {
            Content::Text(text) | Content::Url(text) => text.len(),
            Content::Bytes(bytes) => bytes.as_str().len(),
            Content::Data(data) => data.as_str().len(),
        };
        PART_FRAME + content + part.filename.as_ref().map_or(0, String::len) + of_json(&part.metadata)
    };
    parts.iter().map(of_part).sum()
}

fn of_json(json: &Option<Json>) -> usize {
    json.as_ref().map_or(0, |json| json.as_str().len())
}
