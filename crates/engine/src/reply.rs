//! Replies: what most agents say, in one call or piece by piece.
//!
//! A reply is one artifact, and then the task is completed. Clients that know only the last message of a task find it
//! there all the same, since every dialect shows artifacts.

use std::sync::Arc;

use sabir_model::{Artifact, ArtifactId, Message, Part, Required};

use crate::{AgentError, ArtifactUpdate, Outcome, Turn};

impl Turn {
    /// Answers with this text and completes the task: `return turn.reply("done").await`.
    pub async fn reply(&self, text: impl Into<String>) -> Result<Outcome, AgentError> {
        self.reply_with(vec![Part::text(text)]).await
    }

    /// The same with parts of any kind.
    pub async fn reply_with(&self, parts: Vec<Part>) -> Result<Outcome, AgentError> {
        self.artifact(Artifact::new(self.new_artifact_id(), parts)).await;
        Ok(Outcome::Completed(Vec::new()))
    }

    /// Begins an answer that is written piece by piece; clients that stream see each piece at once.
    pub fn reply_stream(&self) -> ReplyStream<'_> {
        ReplyStream { turn: self, id: self.new_artifact_id(), has_begun: false }
    }

    /// Hands over a file.
    pub async fn file(&self, name: impl Into<String>, media_type: impl Into<String>, bytes: &[u8]) {
        let name = name.into();
        let file = Part::file(name.as_str(), media_type, bytes);
        let mut artifact = Artifact::new(self.new_artifact_id(), vec![file]);
        artifact.name = Some(name);
        self.artifact(artifact).await;
    }

    /// Asks the caller for something in words. See [`Turn::ask`].
    pub async fn ask_text(&self, question: impl Into<String>) -> Result<Arc<Message>, AgentError> {
        self.ask(Required::Input, vec![Part::text(question)]).await
    }
}

/// An answer that is being written.
pub struct ReplyStream<'t> {
    turn: &'t Turn,
    id: ArtifactId,
    has_begun: bool,
}

impl ReplyStream<'_> {
    /// Writes the next piece. It waits while the server has more to store than it can.
    pub async fn write(&mut self, text: impl Into<String>) {
        self.update(text.into(), false).await;
    }

    /// Ends the answer and completes the task.
    pub async fn finish(mut self) -> Result<Outcome, AgentError> {
        self.update(String::new(), true).await;
        Ok(Outcome::Completed(Vec::new()))
    }

    async fn update(&mut self, text: String, last: bool) {
        let artifact = Artifact::new(self.id.clone(), vec![Part::text(text)]);
        let append = std::mem::replace(&mut self.has_begun, true);
        self.turn.artifact_update(ArtifactUpdate::new(artifact).append(append).last(last)).await;
    }
}
