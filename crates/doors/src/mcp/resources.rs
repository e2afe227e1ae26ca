//! Artifacts as resources: `sabir://tasks/TASK/artifacts/ARTIFACT`, whose names are percent-encoded.

use sabir_engine::Engine;
use sabir_model::{ArtifactId, Caller, Content, TaskId};
use serde::{Deserialize, Serialize};

use super::message::{Refusal, Request};
use super::result::ResourceContents;
use crate::follow;
use crate::words::told_of;

/// What resources/templates/list shows.
pub(crate) const TEMPLATE: &str = "sabir://tasks/{task}/artifacts/{artifact}";
const START: &str = "sabir://tasks/";
const MIDDLE: &str = "/artifacts/";

#[derive(Deserialize)]
struct ReadParams {
    uri: String,
}

/// What `resources/read` is answered.
#[derive(Serialize)]
pub(crate) struct ReadResult {
    pub(crate) contents: Vec<ResourceContents>,
}

/// Reads an artifact of a task that the caller may see.
pub(crate) async fn read(engine: &Engine, caller: &Caller, request: &Request) -> Result<ReadResult, Refusal> {
    let params: ReadParams = serde_json::from_str(request.params.as_str())
        .map_err(|error| Refusal::invalid_params(format!("Invalid params: {error}")))?;
    let missing = || Refusal::invalid_params("Resource not found");
    let (task, artifact) = named(&params.uri).ok_or_else(missing)?;
    let task = follow::read(engine, caller, None, task).await.map_err(|error| match error {
        sabir_model::Error::TaskNotFound(_) => missing(),
        error => Refusal::new(Refusal::INTERNAL, told_of(&error)),
    })?;
    let found = task.artifacts.iter().find(|one| one.id == artifact).ok_or_else(missing)?;
    let contents = found.parts.iter().map(|part| {
        let (uri, media_type) = (params.uri.clone(), part.media_type.clone());
        let of = |text, blob, kind: Option<&str>| {
            let media_type = media_type.clone().or_else(|| kind.map(str::to_owned));
            ResourceContents { uri: uri.clone(), media_type, text, blob }
        };
        match &part.content {
            Content::Text(text) => of(Some(text.clone()), None, Some("text/plain")),
            Content::Data(json) => of(Some(json.as_str().to_owned()), None, Some("application/json")),
            Content::Url(url) => of(Some(url.clone()), None, Some("text/uri-list")),
            Content::Bytes(bytes) => of(None, Some(bytes.as_str().to_owned()), Some("application/octet-stream")),
        }
    });
    Ok(ReadResult { contents: contents.collect() })
}

pub(crate) fn artifact_uri(task: &TaskId, artifact: &ArtifactId) -> String {
    format!("{START}{}{MIDDLE}{}", encoded(task.as_str()), encoded(artifact.as_str()))
}

fn named(uri: &str) -> Option<(TaskId, ArtifactId)> {
    let (task, artifact) = uri.strip_prefix(START)?.split_once(MIDDLE)?;
    Some((TaskId::parse(decoded(task)?).ok()?, ArtifactId::parse(decoded(artifact)?).ok()?))
}

fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(&digits).ok().filter(|_| is_hex)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_uri_names_what_it_was_made_of(task in "[^\\p{Cc}]{1,40}", artifact in "[^\\p{Cc}]{1,40}") {
            let (task, artifact) = (TaskId::parse(task).unwrap(), ArtifactId::parse(artifact).unwrap());
            prop_assert_eq!(named(&artifact_uri(&task, &artifact)), Some((task, artifact)));
        }

        #[test]
        fn any_uri_is_read_or_refused(uri in "(sabir://tasks/)?[a-z%/0-9F]{0,30}(/artifacts/)?[a-z%0-9F]{0,10}") {
            let _ = named(&uri);
        }
    }
}
