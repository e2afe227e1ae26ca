//! What a command has received of a task: its ids, its status, and its artifacts as far as they have come.
//!
//! Artifacts are kept for the end: for `--output`, for the last line of JSON, and to know after a question what was shown before
//! it. A server may send them for ever, so they are counted with all that belongs to them, and there is a limit.

use std::collections::HashMap;
use std::sync::Arc;

use sabir_model::{AgentId, Artifact, ArtifactId, Content, ContextId, Json, Owner, Part, Status, Task, TaskId};
use sabir_outbound::remote::{RemoteError, Update};
use sabir_wire::NEWEST_BIRTH;

/// About how many bytes of artifacts are kept.
pub const LARGEST_TASK: usize = 64 << 20;

#[derive(Debug, Default)]
pub struct ReceivedTask {
    pub ids: Option<(TaskId, ContextId)>,
    pub status: Option<Status>,
    pub artifacts: Vec<Arc<Artifact>>,
    /// Where in `artifacts` each of them is: there may be many.
    places: HashMap<ArtifactId, usize>,
    /// About how many bytes of memory the artifacts take.
    weight: usize,
}

impl ReceivedTask {
    pub fn id(&self) -> Option<&TaskId> {
        self.ids.as_ref().map(|(task, _)| task)
    }

    pub fn of(task: &Task) -> Self {
        ReceivedTask {
            ids: Some((task.id.clone(), task.context.clone())),
            status: Some(task.status.clone()),
            artifacts: task.artifacts.clone(),
            places: task.artifacts.iter().enumerate().map(|(place, artifact)| (artifact.id.clone(), place)).collect(),
            weight: task.artifacts.iter().map(|artifact| weight_of(artifact)).sum(),
        }
    }

    /// An error: the task has become larger than what is kept of one.
    pub fn take(&mut self, update: &Update) -> Result<(), RemoteError> {
        match update {
            Update::Progress(change) => self.status = Some(change.status.clone()),
            Update::Artifact { artifact, append, .. } => self.take_artifact(artifact, *append),
        }
        if self.weight > LARGEST_TASK { Err(RemoteError::TaskTooLarge(LARGEST_TASK)) } else { Ok(()) }
    }

    fn take_artifact(&mut self, artifact: &Artifact, append: bool) {
        let known = self.places.get(&artifact.id).map(|place| &mut self.artifacts[*place]);
        match known {
            Some(known) if append => self.weight += extend(&mut Arc::make_mut(known).parts, &artifact.parts),
            Some(known) => {
                self.weight = self.weight + weight_of(artifact) - weight_of(known);
                *known = Arc::new(artifact.clone());
            }
            None => {
                self.weight += weight_of(artifact);
                self.places.insert(artifact.id.clone(), self.artifacts.len());
                self.artifacts.push(Arc::new(artifact.clone()));
            }
        }
    }

    /// The task, as far as it is known without asking for it. It has no history.
    pub fn task(&self) -> Option<Task> {
        let ((id, context), status) = self.ids.clone().zip(self.status.clone())?;
        Some(Task {
            id,
            context,
            agent: AgentId::parse("remote").expect("a short word is an id"),
            owner: Owner::anonymous(),
            born: NEWEST_BIRTH,
            created: status.time,
            turn_over: status.state.is_terminal(),
            status,
            artifacts: self.artifacts.clone(),
            open: Vec::new(),
            history: Vec::new(),
            metadata: None,
            usage: None,
            seq: 0,
        })
    }
}

/// Adds parts, and says how much more memory they take. Neighbouring plain texts become one, as everywhere: a text that comes
/// letter by letter must not take a part for each.
fn extend(parts: &mut Vec<Part>, more: &[Part]) -> usize {
    let mut added = 0;
    for part in more {
        match (parts.last_mut().and_then(plain_text), &part.content) {
            (Some(text), Content::Text(more)) if is_plain(part) => {
                text.push_str(more);
                added += more.len();
            }
            _ => {
                added += weight_of_part(part);
                parts.push(part.clone());
            }
        }
    }
    added
}

fn plain_text(part: &mut Part) -> Option<&mut String> {
    let is_plain = is_plain(part);
    match &mut part.content {
        Content::Text(text) if is_plain => Some(text),
        _ => None,
    }
}

fn is_plain(part: &Part) -> bool {
    part.filename.is_none() && part.media_type.is_none() && part.metadata.is_none()
}

fn weight_of(artifact: &Artifact) -> usize {
    let Artifact { id, name, description, parts, extensions, metadata } = artifact;
    let extensions: usize = extensions.iter().map(|uri| size_of::<String>() + uri.len()).sum();
    let parts: usize = parts.iter().map(weight_of_part).sum();
    let own = size_of::<Artifact>() + 2 * size_of::<(ArtifactId, usize)>() + id.as_str().len();
    own + length(name) + length(description) + json_length(metadata) + extensions + parts
}

fn weight_of_part(part: &Part) -> usize {
    let Part { content, filename, media_type, metadata } = part;
    let content = match content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Bytes(bytes) => bytes.as_str().len(),
        Content::Data(data) => data.as_str().len(),
    };
    size_of::<Part>() + content + length(filename) + length(media_type) + json_length(metadata)
}

fn length(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

fn json_length(json: &Option<Json>) -> usize {
    json.as_ref().map_or(0, |json| json.as_str().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(artifact: Artifact, append: bool) -> Update {
        Update::Artifact { artifact, append, last: false, metadata: None }
    }

    fn artifact(id: &str, parts: Vec<Part>) -> Artifact {
        Artifact::new(ArtifactId::parse(id).unwrap(), parts)
    }

    #[test]
    fn pieces_are_put_together() {
        let mut received = ReceivedTask::default();
        for (id, text, append) in [("a", "1", false), ("b", "2", false), ("a", "3", true), ("b", "4", false)] {
            received.take(&update(artifact(id, vec![Part::text(text)]), append)).unwrap();
        }
        let text = |artifact: &Arc<Artifact>| {
            let texts = artifact.parts.iter().filter_map(Part::as_text).collect::<Vec<_>>();
            format!("{}: {}", artifact.id, texts.join(" "))
        };
        assert_eq!(received.artifacts.iter().map(text).collect::<Vec<_>>(), ["a: 13", "b: 4"]);
    }

    #[test]
    fn whatever_a_server_sends_for_ever_comes_to_the_limit() {
        let large = || "x".repeat(1 << 20);
        let json = || Json::parse(format!("\"{}\"", large())).unwrap();
        let text = |text: String| vec![Part::text(text)];
        let rows: [(&str, &dyn Fn(usize) -> Update); 7] = [
            ("text", &|_| update(artifact("a", text(large())), true)),
            ("metadata of a part", &|_| {
                update(artifact("a", vec![Part { metadata: Some(json()), ..Part::text("") }]), true)
            }),
            ("a media type", &|_| {
                update(artifact("a", vec![Part { media_type: Some(large()), ..Part::text("") }]), true)
            }),
            ("a file name", &|_| update(artifact("a", vec![Part { filename: Some(large()), ..Part::text("") }]), true)),
            ("artifacts with metadata", &|number| {
                let artifact = artifact(&number.to_string(), Vec::new());
                update(Artifact { metadata: Some(json()), ..artifact }, false)
            }),
            ("artifacts with a description", &|number| {
                let artifact = artifact(&number.to_string(), Vec::new());
                update(Artifact { description: Some(large()), ..artifact }, false)
            }),
            ("extensions", &|number| {
                let artifact = artifact(&number.to_string(), Vec::new());
                update(Artifact { extensions: vec![large()], ..artifact }, false)
            }),
        ];
        for (name, next) in rows {
            let mut received = ReceivedTask::default();
            let taken = (1..=65).map(|number| received.take(&next(number)).is_ok());
            let taken = taken.take_while(|is_ok| *is_ok).count();
            assert!((62..=64).contains(&taken), "{name}: {taken} MiB");
        }
    }

    #[test]
    fn what_takes_no_memory_may_go_on_for_ever() {
        let mut received = ReceivedTask::default();
        for number in 0..1000 {
            let parts = (0..100).map(|_| Part::text("")).collect();
            received.take(&update(artifact("a", parts), number > 0)).unwrap();
            received.take(&update(artifact("b", vec![Part::text("x".repeat(1 << 20))]), false)).unwrap();
        }
        assert!(received.artifacts[0].parts.len() <= 100, "{}", received.artifacts[0].parts.len());
    }
}
