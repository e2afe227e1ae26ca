//! An engine with one agent, and the frames of a message in one line.

use std::sync::Arc;

use sabir_engine::{Agent, Answer, Batch, Builder, Engine, Hosted};
use sabir_model::{
    AgentId, Birth, Call, Caller, Content, ContextId, Delivery, Event, Message, MessageId, Part, Role, Send, TaskId,
};
use sabir_store::MemoryStore;

pub async fn engine(agent: impl Agent) -> Engine {
    let id = AgentId::parse("demo").unwrap();
    let hosted = Hosted::new(id, Arc::new(agent));
    Builder::new(Arc::new(MemoryStore::new())).agent(hosted).start().await.unwrap()
}

pub fn message(id: &str, parts: Vec<Part>) -> Message {
    Message::new(MessageId::parse(id).unwrap(), Role::User, parts)
}

/// Sends a message and reads its stream to the end. Frames are shown as `Working`, `Failed(boom)`, `result[text "a"]`; `+`
/// is appended and `.` is the last chunk. A direct reply is `reply(...)`.
pub async fn play(engine: &Engine, message: Message) -> (Option<TaskId>, String) {
    let send = Send { delivery: Delivery::Stream, ..Send::new(message, Birth(10)) };
    let mut stream = match engine.call(&Caller::anonymous(), Call::Send(Box::new(send))).await.unwrap() {
        Answer::Stream(stream) => stream,
        Answer::Message(message) => {
            assert_eq!(message.role, Role::Agent);
            assert!(message.context.is_some(), "a reply belongs to a context");
            return (None, format!("reply({})", message.text()));
        }
        _ => panic!("a stream or a reply is expected"),
    };
    let mut said = Vec::new();
    while let Some(batch) = stream.next().await {
        match batch.unwrap() {
            Batch::Snapshot(task) => said.push(format!("snapshot {:?}", task.status.state)),
            Batch::Events(entries) => said.extend(entries.iter().map(|entry| say(&entry.event))),
        }
    }
    (Some(stream.task().clone()), said.join(" "))
}

fn say(event: &Event) -> String {
    match event {
        Event::Created(_) => "Submitted".into(),
        Event::Status(change) => {
            let usage =
                change.usage.map_or(String::new(), |u| format!(" usage {}/{}", u.input_tokens, u.output_tokens));
            let text = change.status.message.as_ref().map_or(String::new(), |message| format!("({})", message.text()));
            format!("{:?}{text}{usage}", change.status.state)
        }
        Event::Artifact(chunk) => {
            let parts: Vec<String> = chunk.artifact.parts.iter().map(say_part).collect();
            let append = if chunk.append { "+" } else { "" };
            let last = if chunk.last { "." } else { "" };
            let name = chunk.artifact.name.as_deref().unwrap_or_default();
            let about = chunk.artifact.description.as_ref().map_or(String::new(), |text| format!(" ({text})"));
            format!("{append}{name}{about}[{}]{last}", parts.join(", "))
        }
    }
}

fn say_part(part: &Part) -> String {
    let content = match &part.content {
        Content::Text(text) => format!("text {text:?}"),
        Content::Bytes(bytes) => format!("bytes {:?}", String::from_utf8_lossy(&bytes.decode())),
        Content::Url(url) => format!("url {url}"),
        Content::Data(data) => format!("data {}", data.as_str()),
    };
    let file = match (&part.filename, &part.media_type) {
        (Some(name), Some(media_type)) => format!(" {name} {media_type}"),
        _ => String::new(),
    };
    format!("{content}{file}")
}

pub fn within(context: &str, message: Message) -> Message {
    Message { context: Some(ContextId::parse(context).unwrap()), ..message }
}
