//! What a command has received of a task: its ids, its status, and its artifacts as far as they have come.

use std::sync::Arc;

use sabir_model::{AgentId, Artifact, ContextId, Owner, Status, Task, TaskId};
use sabir_outbound::remote::Update;
use sabir_wire::NEWEST_BIRTH;

#[derive(Debug, Default)]
pub struct ReceivedTask {
    pub ids: Option<(TaskId, ContextId)>,
    pub status: Option<Status>,
    pub artifacts: Vec<Arc<Artifact>>,
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
        }
    }

    pub fn take(&mut self, update: &Update) {
        match update {
            Update::Progress(change) => self.status = Some(change.status.clone()),
            Update::Artifact { artifact, append, .. } => {
                match self.artifacts.iter_mut().find(|known| known.id == artifact.id) {
                    Some(known) if *append => Arc::make_mut(known).parts.extend(artifact.parts.iter().cloned()),
                    Some(known) => *known = Arc::new(artifact.clone()),
                    None => self.artifacts.push(Arc::new(artifact.clone())),
                }
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

#[cfg(test)]
mod tests {
    use sabir_model::{ArtifactId, Part};

    use super::*;

    #[test]
    fn pieces_are_put_together() {
        let mut received = ReceivedTask::default();
        for (id, text, append) in [("a", "1", false), ("b", "2", false), ("a", "3", true), ("b", "4", false)] {
            let artifact = Artifact::new(ArtifactId::parse(id).unwrap(), vec![Part::text(text)]);
            received.take(&Update::Artifact { artifact, append, last: false, metadata: None });
        }
        let text = |artifact: &Arc<Artifact>| {
            let texts = artifact.parts.iter().filter_map(Part::as_text).collect::<Vec<_>>();
            format!("{}: {}", artifact.id, texts.join(" "))
        };
        assert_eq!(received.artifacts.iter().map(text).collect::<Vec<_>>(), ["a: 1 3", "b: 4"]);
    }
}
