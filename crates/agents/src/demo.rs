//! The demo agent: it echoes the text, unless the text is a demo command.

use sabir_engine::{About, Admission, Agent, AgentError, AgentFuture, ArtifactUpdate, Effects, Inputs, Outcome, Turn};
use sabir_model::{
    Artifact, Base64, Content, Json, Message, Part, QuestionForm, Skill, Task, ToolCall, ToolPhase, Usage,
    cost_extension, tool_call_extension,
};

use crate::demo_command::DemoCommand;

#[derive(Debug, Clone)]
pub struct DemoAgent {
    takes: Inputs,
    effects: Effects,
}

impl DemoAgent {
    pub fn new(takes: Inputs) -> Self {
        Self { takes, effects: Effects::ThroughTurn }
    }

    /// Starts only after its message is stored, as agents with side effects do. For measuring what that costs.
    pub fn stored_first(self) -> Self {
        Self { effects: Effects::Anywhere, ..self }
    }
}

impl Agent for DemoAgent {
    fn about(&self) -> About {
        let modes = || vec!["text/plain".to_owned(), "application/json".to_owned()];
        let mut about = About::new(
            "Sabir demo agent",
            "Echoes what it is told; its first words (slow, stream, ask, fail, ...) show what a task can do",
        );
        about.version = env!("CARGO_PKG_VERSION").into();
        about.skills = vec![Skill {
            id: "echo".into(),
            name: "Echo".into(),
            description: "Sends back what it gets, at once, slowly, in pieces, or as a question".into(),
            tags: ["demo", "echo", "test"].map(String::from).to_vec(),
            examples: ["hello", "slow 2 hello", "stream 5", "ask Which day?"].map(String::from).to_vec(),
            input_modes: modes(),
            output_modes: modes(),
            security: Vec::new(),
        }];
        about.input_modes = modes();
        about.output_modes = modes();
        about.extensions = vec![cost_extension(), tool_call_extension()];
        about.takes = self.takes;
        about
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(async move { respond(&turn).await })
    }

    fn effects(&self) -> Effects {
        self.effects
    }

    fn question_form(&self) -> QuestionForm {
        QuestionForm::WordsOnly
    }

    fn admit(&self, message: &Message) -> Admission {
        match DemoCommand::parse(message.text().trim()) {
            DemoCommand::Message(text) => Admission::Reply(vec![Part::text(or(text, "hello"))]),
            _ => Admission::Task,
        }
    }
}

/// One turn: executes the demo command of the message.
pub(crate) async fn respond(turn: &Turn) -> Result<Outcome, AgentError> {
    let text = turn.message().text();
    let text = text.trim();
    let mut words = text;
    while let DemoCommand::Slow { pause, rest } = DemoCommand::parse(words) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
        }
        words = rest;
    }
    match DemoCommand::parse(words) {
        DemoCommand::Plain | DemoCommand::Slow { .. } => echo(turn, text, None).await,
        DemoCommand::Stream { chunks, pause } => {
            let id = turn.new_artifact_id();
            for i in 1..=chunks {
                if i > 1 && !pause.is_zero() {
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
                    }
                }
                if turn.is_cancelled() {
                    return Ok(Outcome::Canceled(Vec::new()));
                }
                let mut artifact = Artifact::new(id.clone(), vec![Part::text(format!("chunk {i}\n"))]);
                artifact.name = Some("result".into());
                turn.artifact_update(ArtifactUpdate::new(artifact).append(i > 1).last(i == chunks)).await;
            }
        }
        DemoCommand::Fail(reason) => return Ok(Outcome::Failed(vec![Part::text(or(reason, "failed"))])),
        DemoCommand::Reject(reason) => return Ok(Outcome::Rejected(vec![Part::text(or(reason, "rejected"))])),
        DemoCommand::Ask(question) => {
            return Ok(Outcome::InputRequired(vec![Part::text(or(question, "input required"))]));
        }
        DemoCommand::Auth(wish) => return Ok(Outcome::AuthRequired(vec![Part::text(or(wish, "auth required"))])),
        // If the message continues a task, the direct reply completes the task.
        DemoCommand::Message(reply) => return Ok(Outcome::Completed(vec![Part::text(or(reply, "hello"))])),
        DemoCommand::File => result(turn, vec![file_part()]).await,
        DemoCommand::Url => result(turn, vec![url_part()]).await,
        DemoCommand::Data => result(turn, vec![data_part()?]).await,
        DemoCommand::Tool(name) => {
            let id = turn.new_artifact_id().to_string();
            let call = ToolCall {
                id,
                name: name.to_owned(),
                phase: ToolPhase::Started,
                args: None,
                result: None,
                error: None,
            };
            turn.tool(call.clone()).await;
            let result = Some(format!("{name} is done"));
            turn.tool(ToolCall { phase: ToolPhase::Completed, result, ..call }).await;
            echo(turn, text, None).await;
        }
        DemoCommand::Usage(usage) => {
            turn.usage(usage).await;
            echo(turn, text, Some(usage)).await;
        }
        DemoCommand::History => {
            let lines: Vec<String> = turn.conversation().await?.iter().flat_map(exchange).collect();
            if !lines.is_empty() {
                result(turn, vec![Part::text(lines.join("\n"))]).await;
            }
        }
    }
    Ok(Outcome::Completed(Vec::new()))
}

async fn echo(turn: &Turn, text: &str, usage: Option<Usage>) {
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(Part::text(format!("echo: {text}")));
    }
    parts.extend(turn.message().parts.iter().filter(|part| part.as_text().is_none()).cloned());
    if parts.is_empty() {
        return;
    }
    let mut artifact = named_result(turn, parts);
    if let Some(usage) = usage {
        artifact.description = Some("What was said, and what it cost".into());
        turn.cost(usage).note_on(&mut artifact);
    }
    turn.artifact(artifact).await;
}

pub(crate) async fn result(turn: &Turn, parts: Vec<Part>) {
    turn.artifact(named_result(turn, parts)).await;
}

fn named_result(turn: &Turn, parts: Vec<Part>) -> Artifact {
    let mut artifact = Artifact::new(turn.new_artifact_id(), parts);
    artifact.name = Some("result".into());
    artifact
}

pub(crate) fn file_part() -> Part {
    let content = Content::Bytes(Base64::encode(b"Hello file"));
    Part { filename: Some("output.txt".into()), media_type: Some("text/plain".into()), ..content.into() }
}

pub(crate) fn url_part() -> Part {
    let content = Content::Url("https://example.com/output.txt".into());
    Part { filename: Some("output.txt".into()), media_type: Some("text/plain".into()), ..content.into() }
}

pub(crate) fn data_part() -> Result<Part, AgentError> {
    Ok(Content::Data(Json::parse(r#"{"key":"value","count":42}"#)?).into())
}

/// The texts of an earlier task: the caller's, then the answer's.
fn exchange(task: &Task) -> Vec<String> {
    let texts = task.history.iter().map(|message| message.text());
    let made = task.artifacts.iter().flat_map(|artifact| &artifact.parts).filter_map(Part::as_text).map(String::from);
    texts.chain(made).map(|text| text.trim_end().to_owned()).filter(|text| !text.is_empty()).collect()
}

fn or<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text }
}
