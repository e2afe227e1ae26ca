//! One answer of the model: the request, its repetitions, and the stream.
//!
//! A request is repeated only before the first piece of its answer, when the server is busy or cannot be reached. What
//! follows later is told: another answer would not continue the one that the caller has seen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sabir_engine::Turn;
use sabir_outbound::remote::EventParser;
use sabir_outbound::{BackOff, DialError, OpenResponse};

use super::chat::{ChatMessage, Request, StreamOptions, ToolSpec};
use super::completion_reader::{Completion, CompletionReader, LARGEST_ANSWER, Piece};
use super::failure::Failure;
use super::settings::OpenAiSettings;
use crate::program::publisher::Publisher;
use crate::update::Update;

/// So often a request is made before the turn fails.
const TRIES: usize = 5;
/// A server that wants to be left alone for longer is not waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long the rest of an error may take.
const ERROR_BODY: Duration = Duration::from_secs(10);

/// What this server does not understand, as its refusals have shown.
#[derive(Debug, Default)]
pub(super) struct Quirks {
    /// `max_tokens` has a new name there.
    wants_max_completion_tokens: AtomicBool,
    /// It does not know `stream_options`.
    lacks_stream_options: AtomicBool,
}

impl Quirks {
    /// Whether the refusal is about something that can be left out or said otherwise.
    fn learn(&self, failure: &Failure) -> bool {
        if failure.names("max_completion_tokens") {
            return !self.wants_max_completion_tokens.swap(true, Ordering::Relaxed);
        }
        failure.names("stream_options") && !self.lacks_stream_options.swap(true, Ordering::Relaxed)
    }
}

/// What the model is asked.
pub(super) struct Prompt<'a> {
    pub(super) model: &'a str,
    pub(super) messages: Vec<&'a ChatMessage>,
    pub(super) tools: &'a [ToolSpec],
    /// The model must answer now.
    pub(super) forbids_tools: bool,
}

pub(super) async fn complete(
    settings: &OpenAiSettings,
    quirks: &Quirks,
    prompt: &Prompt<'_>,
    turn: &Turn,
    publisher: &mut Publisher<'_>,
) -> Result<Completion, Failure> {
    let mut back_off = BackOff::after_failures();
    let mut tries = 0;
    let mut is_told = false;
    loop {
        let failure = match open(settings, quirks, prompt).await {
            Ok(response) => match read(settings, response, publisher).await {
                Ok(completion) => return Ok(completion),
                Err(Broken { failure, has_begun: true }) => return Err(failure),
                Err(Broken { failure, has_begun: false }) => failure,
            },
            Err(failure) if quirks.learn(&failure) => continue,
            Err(failure) => failure,
        };
        tries += 1;
        let may_work = failure.is_transient() || failure == Failure::Broken;
        let wait = back_off.next(failure.retry_after());
        if !may_work || tries >= TRIES || wait > LONGEST_WAIT {
            return Err(failure);
        }
        tracing::info!(task = %turn.task(), ?failure, ?wait, "a model server gave no answer; it is asked again");
        if !std::mem::replace(&mut is_told, true) {
            turn.progress("the model server gives no answer now; it is asked again").await;
        }
        turn.wait(wait).await;
    }
}

struct Broken {
    failure: Failure,
    /// A part of the answer has come.
    has_begun: bool,
}

async fn open(settings: &OpenAiSettings, quirks: &Quirks, prompt: &Prompt<'_>) -> Result<OpenResponse, Failure> {
    let is_new_name = quirks.wants_max_completion_tokens.load(Ordering::Relaxed);
    let has_options = !quirks.lacks_stream_options.load(Ordering::Relaxed);
    let request = Request {
        model: prompt.model,
        messages: prompt.messages.clone(),
        stream: true,
        stream_options: has_options.then_some(StreamOptions { include_usage: true }),
        temperature: settings.temperature,
        max_tokens: settings.max_tokens.filter(|_| !is_new_name),
        max_completion_tokens: settings.max_tokens.filter(|_| is_new_name),
        tools: prompt.tools,
        tool_choice: (prompt.forbids_tools && !prompt.tools.is_empty()).then_some("none"),
    };
    let body = serde_json::to_vec(&request).expect("texts and JSON are always JSON");
    let headers = [("content-type", "application/json"), ("accept", "text/event-stream")];
    let limit = settings.answer_timeout;
    let response = settings.service.post("/chat/completions", &headers, body, limit).await.map_err(|error| {
        tracing::warn!(%error, url = settings.service.url(), "a model server cannot be asked");
        Failure::of_service(&error, limit)
    })?;
    if response.status.is_success() {
        return Ok(response);
    }
    let (status, retry_after) = (response.status.as_u16(), response.retry_after());
    let body = response.complete(ERROR_BODY).await.map(|response| response.body).unwrap_or_default();
    let body = settings.service.mask(&String::from_utf8_lossy(&body));
    let text: String = body.chars().take(1000).collect();
    tracing::warn!(status, text, url = settings.service.url(), "a model server refused a request");
    Err(Failure::of_response(status, &body, retry_after))
}

async fn read(
    settings: &OpenAiSettings,
    mut response: OpenResponse,
    publisher: &mut Publisher<'_>,
) -> Result<Completion, Broken> {
    let mut reader = CompletionReader::default();
    if !response.is_event_stream() {
        // The server does not stream.
        let broken = |failure| Broken { failure, has_begun: true };
        let body = response.complete(settings.answer_timeout).await.map_err(|error| match error {
            DialError::BodyTooLarge { .. } => broken(Failure::TooLarge),
            DialError::BodyTimeout { .. } => broken(Failure::NoAnswer(settings.answer_timeout)),
            _ => broken(Failure::Broken),
        })?;
        return match reader.feed(&String::from_utf8_lossy(&body.body)) {
            Piece::Error(reason) => Err(broken(Failure::InAnswer(settings.service.mask(&reason)))),
            Piece::TooLarge => Err(broken(Failure::TooLarge)),
            _ if !reader.is_complete() => Err(broken(Failure::NotChat)),
            Piece::Text(text) => {
                publisher.publish(Update::Text(text)).await;
                Ok(reader.finish())
            }
            Piece::Life | Piece::Nothing | Piece::End => Ok(reader.finish()),
        };
    }
    let mut parser = EventParser::new(LARGEST_ANSWER);
    let mut has_begun = false;
    loop {
        let patience = if has_begun { settings.silence } else { settings.answer_timeout };
        let chunk = match response.chunk(patience).await {
            Ok(chunk) => chunk,
            Err(DialError::BodyTimeout { .. }) if has_begun => {
                return Err(Broken { failure: Failure::Silent(patience), has_begun });
            }
            Err(DialError::BodyTimeout { .. }) => {
                return Err(Broken { failure: Failure::NoAnswer(patience), has_begun });
            }
            // Some servers hang up right behind the last piece.
            Err(_) if reader.is_complete() => return Ok(reader.finish()),
            Err(_) => return Err(Broken { failure: Failure::Broken, has_begun }),
        };
        let mut events = Vec::new();
        match &chunk {
            Some(bytes) if parser.feed(bytes, &mut events).is_err() => {
                return Err(Broken { failure: Failure::TooLarge, has_begun: true });
            }
            Some(_) => {}
            None => parser.finish(&mut events),
        }
        // What came together is passed on together.
        let mut text = String::new();
        let mut end = None;
        for event in events {
            match reader.feed(&String::from_utf8_lossy(&event.data)) {
                Piece::Text(piece) => text.push_str(&piece),
                Piece::Life => {
                    has_begun = true;
                    publisher.publish(Update::Thought(String::new())).await;
                }
                Piece::Error(reason) => end = Some(Err(Failure::InAnswer(settings.service.mask(&reason)))),
                Piece::TooLarge => end = Some(Err(Failure::TooLarge)),
                Piece::End => end = Some(Ok(())),
                Piece::Nothing => {}
            }
            if end.is_some() {
                break;
            }
        }
        if !text.is_empty() {
            has_begun = true;
            publisher.publish(Update::Text(text)).await;
        }
        match end {
            Some(Ok(())) => return Ok(reader.finish()),
            Some(Err(failure)) => return Err(Broken { failure, has_begun: true }),
            None if chunk.is_some() => {}
            None if reader.is_complete() => return Ok(reader.finish()),
            None => return Err(Broken { failure: Failure::Broken, has_begun }),
        }
    }
}
