//! The conformance agent: what the A2A project's own compatibility kits expect of a system under test.
//!
//! The kits choose a behaviour by the message id, which comes before the demo commands. The longest prefix wins.

use std::time::Duration;

use sabir_engine::{About, Admission, Agent, AgentError, AgentFuture, ArtifactUpdate, Effects, Inputs, Outcome, Turn};
use sabir_model::{Artifact, Message, Part, QuestionForm};

use crate::DemoAgent;
use crate::demo::{data_part, file_part, respond, result, url_part};

#[derive(Debug, Clone)]
pub struct ConformanceAgent {
    demo: DemoAgent,
    /// How long the kit waits for a stream, `TCK_STREAMING_TIMEOUT`.
    streaming_timeout: Duration,
}

/// What a message id asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Text(&'static str),
    File,
    Url,
    Data,
    Reply,
    InputRequired,
    Reject,
    /// The engine reports `working` first; the text follows.
    Complete,
    Chunked,
    Hello,
    Linger,
    AskAgain,
    Words,
}

/// Longest prefix first, so that the first match is the right one.
const SCRIPTS: [(&str, Script); 16] = [
    ("test-resubscribe-message-id", Script::Linger),
    ("tck-stream-artifact-chunked", Script::Chunked),
    ("tck-stream-artifact-text", Script::Text("Streamed text content")),
    ("tck-stream-artifact-file", Script::File),
    ("tck-stream-ordering-001", Script::Text("Ordered output")),
    ("tck-artifact-file-url", Script::Url),
    ("tck-message-response", Script::Reply),
    ("tck-input-required", Script::InputRequired),
    ("tck-artifact-text", Script::Text("Generated text content")),
    ("tck-artifact-file", Script::File),
    ("tck-artifact-data", Script::Data),
    ("tck-reject-task", Script::Reject),
    ("tck-stream-001", Script::Text("Stream hello from TCK")),
    ("tck-stream-002", Script::Complete),
    ("tck-stream-003", Script::Text("Stream task lifecycle")),
    ("tck-", Script::Hello),
];

impl Script {
    fn of(message: &Message) -> Self {
        let id = message.id.as_str();
        match SCRIPTS.iter().find(|(prefix, _)| id.starts_with(prefix)) {
            Some((_, script)) => *script,
            None if id.starts_with("test-") || id.contains("-message-id-") => Script::AskAgain,
            None => Script::Words,
        }
    }
}

impl ConformanceAgent {
    pub fn new(streaming_timeout: Duration) -> Self {
        Self { demo: DemoAgent::new(Inputs::Anything), streaming_timeout }
    }
}

impl Agent for ConformanceAgent {
    fn about(&self) -> About {
        self.demo.about()
    }

    fn effects(&self) -> Effects {
        Effects::ThroughTurn
    }

    fn question_form(&self) -> QuestionForm {
        self.demo.question_form()
    }

    fn admit(&self, message: &Message) -> Admission {
        match Script::of(message) {
            Script::Reply => Admission::Reply(vec![Part::text("Direct message response")]),
            Script::Words => self.demo.admit(message),
            _ => Admission::Task,
        }
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(async move { self.play(&turn).await })
    }
}

impl ConformanceAgent {
    async fn play(&self, turn: &Turn) -> Result<Outcome, AgentError> {
        match Script::of(turn.message()) {
            Script::Words => return respond(turn).await,
            Script::Text(text) => result(turn, vec![Part::text(text)]).await,
            Script::File => result(turn, vec![file_part()]).await,
            Script::Url => result(turn, vec![url_part()]).await,
            Script::Data => result(turn, vec![data_part()?]).await,
            Script::Complete => {}
            Script::Reply => return Ok(Outcome::Completed(vec![Part::text("Direct message response")])),
            Script::InputRequired => return Ok(Outcome::InputRequired(vec![Part::text("input required")])),
            Script::Reject => return Ok(Outcome::Rejected(vec![Part::text("rejected")])),
            Script::Hello => return Ok(Outcome::Completed(vec![Part::text("Hello from TCK")])),
            Script::Chunked => {
                let id = turn.new_artifact_id();
                for (text, is_last) in [("chunk-1 ", false), ("chunk-2", true)] {
                    let mut artifact = Artifact::new(id.clone(), vec![Part::text(text)]);
                    artifact.name = Some("result".into());
                    turn.artifact_update(ArtifactUpdate::new(artifact).append(is_last).last(is_last)).await;
                }
            }
            Script::Linger => {
                let until = tokio::time::Instant::now() + self.streaming_timeout * 2 + Duration::from_secs(1);
                while tokio::time::Instant::now() < until {
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(500)) => turn.still_working().await,
                        () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
                    }
                }
            }
            Script::AskAgain => {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(200)) => {}
                    () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
                }
                result(turn, vec![Part::text(format!("echo: {}", turn.message().text().trim()))]).await;
                return Ok(Outcome::InputRequired(vec![Part::text("input required")]));
            }
        }
        Ok(Outcome::Completed(Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use sabir_model::{MessageId, Role};

    use super::*;

    #[test]
    fn ids_choose_the_script_by_their_longest_prefix() {
        for (id, expected) in [
            ("tck-artifact-file-url-7", Script::Url),
            ("tck-artifact-file-7", Script::File),
            ("tck-artifact-text", Script::Text("Generated text content")),
            ("tck-stream-artifact-file-1", Script::File),
            ("tck-stream-artifact-chunked-1", Script::Chunked),
            ("tck-stream-002-x", Script::Complete),
            ("tck-anything", Script::Hello),
            ("test-resubscribe-message-id-1", Script::Linger),
            ("test-1", Script::AskAgain),
            ("my-message-id-9", Script::AskAgain),
            ("m1", Script::Words),
        ] {
            let message = Message::new(MessageId::parse(id).unwrap(), Role::User, vec![Part::text("x")]);
            assert_eq!(Script::of(&message), expected, "{id}");
        }
    }

    #[test]
    fn no_prefix_is_hidden_by_a_shorter_one() {
        for (at, (prefix, _)) in SCRIPTS.iter().enumerate() {
            let hidden_by = SCRIPTS[..at].iter().find(|(earlier, _)| prefix.starts_with(earlier));
            assert_eq!(hidden_by, None, "{prefix}");
        }
    }
}
