//! One turn: the conversation so far and the new message go to the model, until it answers without calling tools.

use std::path::PathBuf;

use sabir_engine::{AgentError, Outcome, Turn};
use sabir_model::{ArtifactId, ChoiceKind, Json, Part, Required};

use super::chat::{CalledFunction, ChatMessage, ChatRole, ChatToolCall, Function};
use super::completion::{self, Prompt, Quirks};
use super::completion_reader::{Completion, RequestedCall, TokenCounts};
use super::failure::Failure;
use super::history::History;
use super::input;
use super::settings::OpenAiSettings;
use super::toolbox::Toolbox;
use crate::mcp_client::ToolResult;
use crate::program::publisher::{ANSWER, Publisher};
use crate::program::{Host, approval};
use crate::update::{Choice, Question, Reply, TurnUsage, Update};

/// Remembered of a task from its first call of a tool on.
pub(super) const CALLED_TOOLS: &str = "called-tools";

pub(super) async fn work(
    settings: &OpenAiSettings,
    quirks: &Quirks,
    host: &Host,
    turn: &Turn,
) -> Result<Outcome, AgentError> {
    let message = match input::content(turn.message()) {
        Ok(content) => ChatMessage::user(content),
        Err(why) => return Ok(Outcome::Rejected(vec![Part::text(why)])),
    };
    let mut history = History::read(turn.memory().await?.as_deref());
    history.limit(settings.history);
    let (mut toolbox, notes) = tokio::select! {
        biased;
        () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
        opened = Toolbox::open(&settings.tool_servers, host) => opened,
    };
    for note in notes {
        turn.progress(note).await;
    }
    let replaced = if turn.is_resumed() { earlier_answer(turn).await? } else { None };
    let conversation = Conversation {
        settings,
        quirks,
        turn,
        // Such an agent makes no files.
        publisher: Publisher::new(turn, PathBuf::new()).replacing(replaced),
        toolbox: &mut toolbox,
        spent: TokenCounts::default(),
    };
    // Dropping the conversation closes the connection to the model.
    let ended = tokio::select! {
        biased;
        () = turn.cancelled() => Ok(Outcome::Canceled(Vec::new())),
        ended = conversation.hold(history, message) => ended,
    };
    toolbox.close().await;
    ended
}

/// The artifact of a run that has ended with its server.
async fn earlier_answer(turn: &Turn) -> Result<Option<ArtifactId>, AgentError> {
    let artifacts = turn.artifacts().await?;
    let answer = artifacts.iter().rev().find(|artifact| artifact.name.as_deref() == Some(ANSWER));
    Ok(answer.map(|answer| answer.id.clone()))
}

struct Conversation<'a> {
    settings: &'a OpenAiSettings,
    quirks: &'a Quirks,
    turn: &'a Turn,
    publisher: Publisher<'a>,
    toolbox: &'a mut Toolbox,
    /// In all rounds.
    spent: TokenCounts,
}

impl Conversation<'_> {
    async fn hold(mut self, mut history: History, message: ChatMessage) -> Result<Outcome, AgentError> {
        let (settings, turn) = (self.settings, self.turn);
        let system = settings.system_prompt.as_deref().map(|text| ChatMessage::text(ChatRole::System, text));
        let mut said = vec![message];
        let mut rounds = 0;
        loop {
            let is_last = rounds >= settings.max_tool_rounds;
            let prompt = Prompt {
                model: turn.model().unwrap_or(&settings.model),
                messages: system.iter().chain(history.messages()).chain(&said).collect(),
                tools: self.toolbox.specs(),
                forbids_tools: is_last,
            };
            let completed = completion::complete(settings, self.quirks, &prompt, turn, &mut self.publisher).await;
            let completion = match completed {
                Ok(completion) => completion,
                Err(failure) => return Ok(failed(turn, &failure)),
            };
            self.count(&completion).await;
            if completion.calls.is_empty() {
                let outcome = outcome_of(&completion);
                if matches!(outcome, Outcome::Completed(_)) {
                    said.push(ChatMessage::text(ChatRole::Assistant, completion.text));
                    history.add(said, settings.history);
                    turn.remember(history.write()).await;
                }
                return Ok(outcome);
            }
            if is_last {
                return Ok(failed(turn, &Failure::TooManyRounds(settings.max_tool_rounds)));
            }
            rounds += 1;
            if !self.note_tools().await {
                return Ok(Outcome::Canceled(Vec::new()));
            }
            let calls: Vec<ChatToolCall> = numbered(completion.calls, rounds);
            let answer = ChatMessage::text(ChatRole::Assistant, completion.text);
            said.push(ChatMessage { tool_calls: calls.clone(), ..answer });
            for call in calls {
                let result = self.call(&call).await?;
                said.push(ChatMessage::tool_result(&call.id, result.text));
            }
        }
    }

    /// Whoever finds the task after a crash must know that tools may have done something. `false`: the turn is about to be
    /// stopped.
    async fn note_tools(&self) -> bool {
        self.turn.remember_in_task(Some(CALLED_TOOLS.to_owned())).await;
        self.turn.stored().await
    }

    async fn count(&mut self, completion: &Completion) {
        let Some(spent) = completion.usage else { return };
        self.spent.input = self.spent.input.saturating_add(spent.input);
        self.spent.output = self.spent.output.saturating_add(spent.output);
        let TokenCounts { input: input_tokens, output: output_tokens } = self.spent;
        self.publisher.publish(Update::Usage(TurnUsage { input_tokens, output_tokens, cost: None })).await;
    }

    async fn call(&mut self, call: &ChatToolCall) -> Result<ToolResult, AgentError> {
        let ChatToolCall { id, function: CalledFunction { name, arguments }, .. } = call;
        let text = if arguments.trim().is_empty() { "{}" } else { arguments.trim() };
        // What is nested too deep cannot be shown, and is no call that anybody means.
        let parsed = Json::parse(text).ok().filter(Json::is_object);
        let (id, name) = (id.clone(), name.clone());
        self.publisher.publish(Update::ToolUse { id: id.clone(), name: name.clone(), input: parsed.clone() }).await;
        let result = match parsed {
            None => ToolResult::error("the arguments are no JSON object; call the tool again with valid arguments"),
            Some(input) => match self.permitted(&id, &name, &input).await? {
                Ok(()) => self.toolbox.call(&name, input.as_raw()).await,
                Err(refusal) => ToolResult::error(refusal),
            },
        };
        let ToolResult { text: output, is_error } = result.clone();
        self.publisher.publish(Update::ToolResult { id, name: Some(name), output, is_error }).await;
        Ok(result)
    }

    /// Asks the caller, if that is wanted. The inner error is what the model reads.
    async fn permitted(&self, id: &str, name: &str, input: &Json) -> Result<Result<(), String>, AgentError> {
        let Some(server) = self.toolbox.server_of(name).filter(|_| self.settings.asks_before_tools) else {
            return Ok(Ok(()));
        };
        let choice = |id: &str, name: &str, kind| Choice { id: id.into(), name: name.into(), kind };
        let question = Question {
            id: id.to_owned(),
            text: format!("May the model call the tool {name} of {server} with {}?", cut(input.as_str())),
            tool: Some(name.to_owned()),
            input: Some(input.clone()),
            choices: vec![
                choice("allow", "Allow", ChoiceKind::AllowOnce),
                choice("reject", "Reject", ChoiceKind::RejectOnce),
            ],
        };
        let parts = approval::parts(&question);
        let answer = self.turn.ask_within(self.settings.approval_timeout, Required::Input, parts).await?;
        let refused = |why: Option<String>| match why {
            Some(why) => format!("the user did not permit this call: {why}"),
            None => "the user did not permit this call".to_owned(),
        };
        let Some(answer) = answer else {
            self.turn.progress("Nobody answered in time, which means no").await;
            return Ok(Err(refused(Some("nobody answered in time".to_owned()))));
        };
        Ok(match approval::understand(&question, &answer) {
            Reply::Chosen { choice, .. } if choice == "allow" => Ok(()),
            Reply::Chosen { comment, .. } => Err(refused(comment)),
            Reply::Text(words) => Err(refused(Some(words))),
            Reply::Unanswered => Err(refused(None)),
        })
    }
}

/// Ids are needed to tell results apart, and not every server gives them.
fn numbered(calls: Vec<RequestedCall>, round: usize) -> Vec<ChatToolCall> {
    let mut known: Vec<ChatToolCall> = Vec::new();
    for RequestedCall { id, name, arguments } in calls {
        let is_free = |id: &String| !id.is_empty() && known.iter().all(|call| call.id != *id);
        let mut others = (known.len() + 1..).map(|number| format!("call_{round}_{number}"));
        let own = Some(id).filter(is_free).or_else(|| others.find(is_free));
        let id = own.expect("numbers do not end");
        known.push(ChatToolCall { id, kind: Function::Function, function: CalledFunction { name, arguments } });
    }
    known
}

fn outcome_of(completion: &Completion) -> Outcome {
    let told = |text: &str| vec![Part::text(text)];
    match completion.finish.as_deref() {
        Some("length") => Outcome::Completed(told(
            "the answer is cut off: the model reached the most tokens that it may use (max_tokens, or its own limit)",
        )),
        Some("content_filter") if completion.text.is_empty() => {
            Outcome::Failed(told("the content filter of the model server refused to answer; say it in other words"))
        }
        Some("content_filter") => {
            Outcome::Completed(told("the answer is cut off by the content filter of the model server"))
        }
        _ if completion.text.is_empty() => Outcome::Completed(told("the model gave an empty answer")),
        _ => Outcome::Completed(Vec::new()),
    }
}

fn failed(turn: &Turn, failure: &Failure) -> Outcome {
    tracing::warn!(task = %turn.task(), ?failure, "a model gave no answer");
    Outcome::Failed(vec![Part::text(failure.to_string())])
}

/// What of a tool's input stands in a question; its data has all of it.
fn cut(text: &str) -> String {
    const LONGEST: usize = 500;
    let mut cut: String = text.chars().take(LONGEST).collect();
    if cut.len() < text.len() {
        cut.push_str(" ...");
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_an_id_of_its_own() {
        let call = |id: &str| RequestedCall { id: id.into(), name: "x".into(), arguments: "{}".into() };
        let ids: Vec<String> =
            numbered(vec![call("a"), call(""), call("a"), call("b")], 2).into_iter().map(|call| call.id).collect();
        assert_eq!(ids, ["a", "call_2_2", "call_2_3", "b"]);
        let calls = vec![call("call_2_2"), call(""), call("call_2_3")];
        let ids: Vec<String> = numbered(calls, 2).into_iter().map(|call| call.id).collect();
        assert_eq!(ids, ["call_2_2", "call_2_3", "call_2_4"]);
    }

    #[test]
    fn why_the_model_stopped_is_told() {
        for (finish, text, expected) in [
            (Some("stop"), "a", "Completed "),
            (None, "a", "Completed "),
            (Some("length"), "a", "Completed the answer is cut off: the model reached"),
            (Some("content_filter"), "a", "Completed the answer is cut off by the content filter"),
            (Some("content_filter"), "", "Failed the content filter"),
            (Some("stop"), "", "Completed the model gave an empty answer"),
        ] {
            let completion =
                Completion { text: text.into(), finish: finish.map(str::to_owned), ..Completion::default() };
            let said = match outcome_of(&completion) {
                Outcome::Completed(parts) => format!("Completed {}", words(&parts)),
                Outcome::Failed(parts) => format!("Failed {}", words(&parts)),
                other => panic!("{other:?}"),
            };
            assert!(said.starts_with(expected), "{finish:?} {text:?}: {said}");
        }
    }

    fn words(parts: &[Part]) -> &str {
        parts.first().and_then(Part::as_text).unwrap_or_default()
    }
}
