//! The ids of artifacts, there and here.
//!
//! One task here may be several there, one after the other, and agents often give the first artifact of each task the same
//! id. So the artifacts of later remote tasks are named with their task.

use std::sync::Arc;

use sabir_model::{Artifact, ArtifactId, TaskId};

/// Of one remote task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArtifactNames {
    /// `None`: it is the first one, whose ids are kept.
    prefix: Option<String>,
}

impl ArtifactNames {
    /// `earlier` is how many remote tasks our task has had before.
    pub(super) fn of_task(task: &TaskId, earlier: u32) -> Self {
        ArtifactNames { prefix: (earlier > 0).then(|| format!("{task}/")) }
    }

    /// A name that would be too long is kept as it is.
    pub(super) fn here(&self, there: ArtifactId) -> ArtifactId {
        let named = self.prefix.as_ref().and_then(|prefix| ArtifactId::parse(format!("{prefix}{there}")).ok());
        named.unwrap_or(there)
    }

    /// Those of our artifacts that are from this remote task, as that names them.
    pub(super) fn there(&self, here: &[Arc<Artifact>]) -> Vec<Arc<Artifact>> {
        let Some(prefix) = &self.prefix else { return here.to_vec() };
        let original = |artifact: &Arc<Artifact>| {
            let id = ArtifactId::parse(artifact.id.as_str().strip_prefix(prefix.as_str())?).ok()?;
            Some(Arc::new(Artifact { id, ..(**artifact).clone() }))
        };
        here.iter().filter_map(original).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_tasks_have_names_of_their_own_and_get_back_what_is_theirs() {
        let id = |text: &str| ArtifactId::parse(text).unwrap();
        let task = TaskId::parse("t2").unwrap();
        let (first, second) = (ArtifactNames::of_task(&task, 0), ArtifactNames::of_task(&task, 1));
        assert_eq!((first.here(id("a")), second.here(id("a"))), (id("a"), id("t2/a")));
        let here: Vec<Arc<Artifact>> =
            ["a", "t2/a", "t3/a"].map(|name| Arc::new(Artifact::new(id(name), Vec::new()))).to_vec();
        let names = |artifacts: Vec<Arc<Artifact>>| -> Vec<String> {
            artifacts.iter().map(|artifact| artifact.id.to_string()).collect()
        };
        assert_eq!(names(first.there(&here)), ["a", "t2/a", "t3/a"]);
        assert_eq!(names(second.there(&here)), ["a"]);
    }
}
