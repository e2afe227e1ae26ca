//! Publishes the updates of a program on its task: one artifact for the answer, a status for each tool, a result.

use std::path::PathBuf;
use std::time::Duration;

use sabir_engine::{ArtifactUpdate, Turn};
use sabir_model::{Artifact, ArtifactId, Content, Json, Part, ToolCall, ToolPhase, Usage};
use serde::Serialize;
use tokio::time::Instant;

use super::blocking::{self, blocking};
use super::notes::{self, Notes};
use super::produced::Collection;
use crate::update::{TurnUsage, Update};

/// How often the task shows a sign of life while the program only thinks.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// The name of the artifact with the answer.
pub(crate) const ANSWER: &str = "assistant-response";

/// What an update means for the turn.
pub(crate) enum Published {
    /// The turn continues.
    Continue,
    Done,
    Failed(String),
    Interrupted,
}

pub(crate) struct Publisher<'t> {
    turn: &'t Turn,
    answer: Option<ArtifactId>,
    /// The answer of a run that has ended with its server, which this one replaces.
    replaced: Option<ArtifactId>,
    /// The last character of the answer, so that texts before and after a tool call are separated.
    last: Option<char>,
    used_tool: bool,
    /// Running tools: the program's id and the name.
    tools: Vec<(String, String)>,
    usage: Option<TurnUsage>,
    /// The usage of earlier processes of this turn, which were ended before its end.
    earlier_usage: Option<TurnUsage>,
    has_session: bool,
    last_sign: Instant,
    /// Files that the program reported. They are read at the end of the turn.
    files: Collection,
    /// What did not reach the caller, shown at the end of the turn.
    notes: Notes,
    has_result: bool,
}

impl<'t> Publisher<'t> {
    pub fn new(turn: &'t Turn, folder: PathBuf) -> Self {
        Self {
            turn,
            answer: None,
            replaced: None,
            last: None,
            used_tool: false,
            tools: Vec::new(),
            usage: None,
            earlier_usage: None,
            has_session: false,
            last_sign: Instant::now(),
            files: Collection::new(folder),
            notes: Notes::default(),
            has_result: false,
        }
    }

    /// The answer of this run takes the place of an earlier one.
    pub fn replacing(self, answer: Option<ArtifactId>) -> Self {
        Self { replaced: answer, ..self }
    }

    /// Whether the caller got anything from the program: text, a summary or a file.
    pub fn has_answered(&self) -> bool {
        self.answer.is_some() || self.has_result
    }

    pub async fn publish(&mut self, update: Update) -> Published {
        match update {
            Update::Init { session, model } => self.publish_session(session, model).await,
            Update::Text(text) => self.append_answer(text).await,
            Update::Thought(_) => self.show_life().await,
            Update::ToolUse { id, name, input } => self.use_tool(id, name, input).await,
            Update::ToolResult { id, name, output, is_error } => self.end_tool(id, name, output, is_error).await,
            Update::Progress(text) => self.turn.progress(text).await,
            Update::Usage(spent) => self.count(spent).await,
            Update::File(path) => self.files.add(path),
            Update::NotUnderstood(line) => self.not_understood(&line).await,
            Update::SessionGone => {
                self.turn.progress("The earlier session is gone; the next message begins a new one").await
            }
            Update::Done { summary } => {
                self.publish_files().await;
                self.result(summary).await;
                return Published::Done;
            }
            Update::Failed(reason) => return Published::Failed(self.notes.behind(reason)),
            Update::Interrupted => return Published::Interrupted,
        }
        Published::Continue
    }

    /// The reason of a failure with the notes.
    pub fn with_notes(&mut self, reason: String) -> String {
        self.notes.behind(reason)
    }

    async fn publish_session(&mut self, session: Option<String>, model: Option<String>) {
        if std::mem::replace(&mut self.has_session, true) {
            return;
        }
        self.turn.still_working().await;
        if session.is_none() && model.is_none() {
            return;
        }
        if let Ok(data) = Json::of(&SessionData { model, session_id: session }) {
            self.turn.artifact(self.data("session", data)).await;
        }
    }

    async fn append_answer(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        let is_new = self.answer.is_none();
        let id = self.answer.get_or_insert_with(|| self.replaced.take().unwrap_or_else(|| self.turn.new_artifact_id()));
        let id = id.clone();
        // Text before and after a tool call are separate paragraphs.
        let breaks = std::mem::take(&mut self.used_tool) && self.last.is_some_and(|last| last != '\n');
        self.last = text.chars().last().or(self.last);
        let text = if breaks { format!("\n\n{text}") } else { text };
        let mut artifact = Artifact::new(id, vec![Part::text(text)]);
        artifact.name = Some(ANSWER.into());
        self.turn.artifact_update(ArtifactUpdate::new(artifact).append(!is_new)).await;
    }

    async fn show_life(&mut self) {
        if self.last_sign.elapsed() >= SIGN_OF_LIFE {
            self.last_sign = Instant::now();
            self.turn.still_working().await;
        }
    }

    async fn use_tool(&mut self, id: String, name: String, input: Option<Json>) {
        self.used_tool = true;
        match self.tools.iter_mut().find(|(known, _)| *known == id) {
            // Some programs report a tool again when they know more about it.
            Some(_) => return,
            None => self.tools.push((id.clone(), name.clone())),
        }
        let call = ToolCall { id, name, phase: ToolPhase::Started, args: input, result: None, error: None };
        self.turn.tool(call).await;
    }

    async fn end_tool(&mut self, id: String, name: Option<String>, output: String, is_error: bool) {
        self.used_tool = true;
        let known = self.tools.iter().position(|(known, _)| *known == id).map(|at| self.tools.swap_remove(at).1);
        let name = name.or(known).unwrap_or_else(|| "tool".into());
        let (phase, result, error) = match is_error {
            false => (ToolPhase::Completed, Some(output), None),
            true => (ToolPhase::Failed, None, Some(output)),
        };
        self.turn.tool(ToolCall { id, name, phase, args: None, result, error }).await;
    }

    /// The program is ended in the middle of the turn and another process will continue: the usage of that one is added to
    /// the usage so far. `unreported` is what the ended process had used and not reported.
    pub async fn start_usage_of_next_process(&mut self, unreported: Option<TurnUsage>) {
        let so_far = [self.usage.take(), unreported].into_iter().flatten().reduce(|one, other| sum(&one, &other));
        if so_far.is_some() {
            self.earlier_usage = so_far;
            self.count(TurnUsage::default()).await;
        }
    }

    async fn count(&mut self, spent: TurnUsage) {
        let spent = self.earlier_usage.as_ref().map_or(spent.clone(), |before| sum(before, &spent));
        self.turn.usage(Usage { input_tokens: spent.input_tokens, output_tokens: spent.output_tokens }).await;
        self.usage = Some(spent);
    }

    /// Shows the line in the task, so that the author of the program sees what is wrong.
    async fn not_understood(&mut self, line: &str) {
        let (task, agent, line) = (self.turn.task(), self.turn.agent(), notes::cut(line));
        match self.notes.add(format!("A line of the program is not understood: {line}")) {
            Some(note) => {
                tracing::warn!(%task, %agent, line, "a line of a program is not understood");
                self.turn.progress(note).await;
            }
            // A program with another format must not fill the log.
            None => tracing::debug!(%task, %agent, line, "a line of a program is not understood"),
        }
    }

    /// Comes before the last status, since clients may stop reading there.
    async fn result(&mut self, summary: Option<String>) {
        let summary = summary.filter(|text| !text.is_empty());
        self.has_result |= summary.is_some();
        let notes = self.notes.take();
        let Some(spent) = &self.usage else {
            if summary.is_none() && notes.is_empty() {
                return;
            }
            return self.publish_result(ResultData { summary, stats: None, notes }, None).await;
        };
        let usage = Usage { input_tokens: spent.input_tokens, output_tokens: spent.output_tokens };
        let cost = self.turn.cost(usage);
        let stats = Stats {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cost_usd: spent.cost,
            duration_ms: cost.duration_ms,
        };
        self.publish_result(ResultData { summary, stats: Some(stats), notes }, Some(cost)).await;
    }

    async fn publish_result(&self, result: ResultData, cost: Option<sabir_model::Cost>) {
        let Ok(data) = Json::of(&result) else { return };
        let mut artifact = self.data("result", data);
        if let Some(cost) = cost {
            cost.note_on(&mut artifact);
        }
        self.turn.artifact(artifact).await;
    }

    /// Publishes each file as an artifact. Files beyond the limits stay in the workspace, with a note.
    async fn publish_files(&mut self) {
        let folder = self.files.folder().to_owned();
        let files = std::mem::replace(&mut self.files, Collection::new(folder));
        if files.is_empty() {
            return;
        }
        let collected = blocking(blocking::SHORT, move || files.collect()).await;
        for file in collected.unwrap_or_else(|error| vec![Err(format!("Files stay in the workspace: {error}"))]) {
            match file {
                Ok((name, part)) => {
                    self.has_result = true;
                    let mut artifact = Artifact::new(self.turn.new_artifact_id(), vec![part]);
                    artifact.name = Some(name);
                    self.turn.artifact(artifact).await;
                }
                Err(left_out) => {
                    if let Some(note) = self.notes.add(left_out) {
                        self.turn.progress(note).await;
                    }
                }
            }
        }
    }

    fn data(&self, name: &str, data: Json) -> Artifact {
        let mut artifact = Artifact::new(self.turn.new_artifact_id(), vec![Part::from(Content::Data(data))]);
        artifact.name = Some(name.into());
        artifact
    }
}

/// The cost is known only if both are.
fn sum(one: &TurnUsage, other: &TurnUsage) -> TurnUsage {
    TurnUsage {
        input_tokens: one.input_tokens.saturating_add(other.input_tokens),
        output_tokens: one.output_tokens.saturating_add(other.output_tokens),
        cost: one.cost.zip(other.cost).map(|(one, other)| one + other),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionData {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
}

#[derive(Serialize)]
struct ResultData {
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
    /// What did not reach the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    duration_ms: u64,
}
