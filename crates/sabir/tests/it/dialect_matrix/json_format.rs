//! How messages are written, and tasks and events read, in the JSON of each dialect.

use super::exact_json::{ExactJson, list, object, quoted};
use super::neutral_task::{Artifact, Content, Event, Message, Part, Status, Task};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonFormat {
    V1,
    /// 0.2 and 0.3 as JSON-RPC has them.
    Kind,
    /// 0.3 as HTTP+JSON has it.
    Proto,
    /// 0.1.
    Type,
    /// Text alone.
    Gateway,
}

const FLAG: &str = r#""data_part_compat":true"#;

impl JsonFormat {
    /// The params of a send. A task that is new has a name only in 0.1.
    pub fn send(self, message: &Message, task: Option<&str>, metadata: Option<&str>) -> String {
        let metadata = metadata.map(str::to_owned);
        match self {
            JsonFormat::V1 | JsonFormat::Kind | JsonFormat::Proto => {
                object(&[("message", Some(self.message(message, task))), ("metadata", metadata)])
            }
            JsonFormat::Type => object(&[
                ("id", task.map(quoted)),
                ("message", Some(self.message(message, None))),
                ("metadata", metadata),
            ]),
            JsonFormat::Gateway => object(&[("taskId", task.map(quoted)), ("input", Some(quoted(&message.text())))]),
        }
    }

    fn message(self, message: &Message, task: Option<&str>) -> String {
        let parts = list(message.parts.iter().map(|part| self.part(part)));
        let role = match self {
            JsonFormat::V1 | JsonFormat::Proto => format!("ROLE_{}", message.role.to_uppercase()),
            _ => message.role.clone(),
        };
        let id = message.id.as_deref().map(quoted);
        let strings = |texts: &[String]| list(texts.iter().map(|text| quoted(text)));
        object(&[
            ("kind", (self == JsonFormat::Kind).then(|| quoted("message"))),
            ("messageId", id.filter(|_| self != JsonFormat::Type)),
            ("role", Some(quoted(&role))),
            (self.parts(), parts),
            ("taskId", task.map(quoted)),
            ("extensions", strings(&message.extensions).filter(|_| self != JsonFormat::Type)),
            ("referenceTaskIds", strings(&message.references).filter(|_| self.knows_references())),
            ("metadata", message.metadata.clone()),
        ])
    }

    fn knows_references(self) -> bool {
        matches!(self, JsonFormat::V1 | JsonFormat::Kind)
    }

    fn parts(self) -> &'static str {
        if self == JsonFormat::Proto { "content" } else { "parts" }
    }

    fn part(self, part: &Part) -> String {
        let (name, media_type) = (part.name.as_deref().map(quoted), part.media_type.as_deref().map(quoted));
        let (mut member, mut value) = match &part.content {
            Content::Text(text) => ("text", quoted(text)),
            Content::Data(data) => ("data", data.clone()),
            Content::Bytes(bytes) => ("raw", quoted(bytes)),
            Content::Url(url) => ("url", quoted(url)),
        };
        let mut metadata = part.metadata.clone();
        if self == JsonFormat::V1 {
            let members =
                [(member, Some(value)), ("filename", name), ("mediaType", media_type), ("metadata", metadata)];
            return object(&members);
        }
        // Row `Part data non-object`: before 1.0 it travels in an object, with a flag; 0.1 also has arrays.
        let bare = if self == JsonFormat::Type { &['{', '['][..] } else { &['{'] };
        if let Content::Data(data) = &part.content
            && !data.starts_with(bare)
        {
            value = object(&[("value", Some(data.clone()))]);
            let others = metadata.map_or("}".to_owned(), |json| format!(",{}", &json[1..]));
            metadata = Some(format!("{{{FLAG}{others}"));
        }
        if let Content::Bytes(_) | Content::Url(_) = part.content {
            let inner = match (self, member) {
                (JsonFormat::Proto, "raw") => "fileWithBytes",
                (JsonFormat::Proto, _) => "fileWithUri",
                (_, "raw") => "bytes",
                _ => "uri",
            };
            value = object(&[(inner, Some(value)), ("name", name), ("mimeType", media_type)]);
            member = "file";
        } else if self == JsonFormat::Proto && member == "data" {
            value = object(&[("data", Some(value))]);
        }
        let kind = Some(quoted(member));
        object(&[
            ("kind", kind.clone().filter(|_| self == JsonFormat::Kind)),
            ("type", kind.filter(|_| self == JsonFormat::Type)),
            (member, Some(value)),
            ("metadata", metadata),
        ])
    }

    pub fn read_task(self, json: ExactJson<'_>) -> Task {
        if self == JsonFormat::Gateway {
            return read_run(json);
        }
        self.check_kind(json, "task");
        Task {
            id: json.at("id").string(),
            context: json.at(if self == JsonFormat::Type { "sessionId" } else { "contextId" }).string(),
            status: self.read_status(json.at("status")),
            history: json.each("history").into_iter().map(|message| self.read_message(message)).collect(),
            artifacts: self.read_artifacts(json),
            metadata: json.get("metadata").map(ExactJson::raw),
        }
    }

    fn check_kind(self, json: ExactJson<'_>, kind: &str) {
        let kind_member = json.get("kind").map(ExactJson::string);
        assert_eq!(kind_member.as_deref(), (self == JsonFormat::Kind).then_some(kind), "{}", json.raw());
    }

    fn read_status(self, json: ExactJson<'_>) -> Status {
        let state = json.at("state").string();
        let state = match (self, state.strip_prefix("TASK_STATE_")) {
            (JsonFormat::Proto, Some("CANCELLED")) => "canceled".to_owned(),
            (JsonFormat::V1 | JsonFormat::Proto, Some(name)) => name.to_lowercase().replace('_', "-"),
            (JsonFormat::Kind | JsonFormat::Type, None) => state,
            _ => panic!("{state} is no state of {self:?}"),
        };
        Status {
            state,
            message: json.get("message").map(|message| self.read_message(message)),
            time: Some(json.at("timestamp").string()),
        }
    }

    fn read_message(self, json: ExactJson<'_>) -> Message {
        self.check_kind(json, "message");
        let role = json.at("role").string();
        let role = match (self, role.strip_prefix("ROLE_")) {
            (JsonFormat::V1 | JsonFormat::Proto, Some(name)) => name.to_lowercase(),
            (JsonFormat::Kind | JsonFormat::Type, None) => role,
            _ => panic!("{role} is no role of {self:?}"),
        };
        Message {
            id: json.get("messageId").map(ExactJson::string),
            role,
            parts: json.each(self.parts()).into_iter().map(|part| self.read_part(part)).collect(),
            task: json.get("taskId").map(ExactJson::string),
            context: json.get("contextId").map(ExactJson::string),
            references: json.strings("referenceTaskIds"),
            extensions: json.strings("extensions"),
            metadata: json.get("metadata").map(ExactJson::raw),
        }
    }

    /// What is told beside the id by 0.1, the index, must be the place of the artifact.
    fn read_artifacts(self, json: ExactJson<'_>) -> Vec<Artifact> {
        let artifacts = json.each("artifacts");
        for (place, artifact) in artifacts.iter().enumerate() {
            let index = artifact.get("index").map(ExactJson::raw);
            assert_eq!(index, (self == JsonFormat::Type).then(|| place.to_string()), "{}", artifact.raw());
        }
        artifacts.into_iter().map(|artifact| self.read_artifact(artifact)).collect()
    }

    fn read_artifact(self, json: ExactJson<'_>) -> Artifact {
        Artifact {
            id: Some(json.at(if self == JsonFormat::Type { "id" } else { "artifactId" }).string()),
            name: json.get("name").map(ExactJson::string),
            description: json.get("description").map(ExactJson::string),
            parts: json.each("parts").into_iter().map(|part| self.read_part(part)).collect(),
            extensions: json.strings("extensions"),
            metadata: json.get("metadata").map(ExactJson::raw),
        }
    }

    fn read_part(self, json: ExactJson<'_>) -> Part {
        let mut metadata = json.get("metadata").map(ExactJson::raw);
        let file = if self == JsonFormat::V1 { Some(json) } else { json.get("file") };
        let member = |names: [&str; 3]| {
            let name = match self {
                JsonFormat::V1 => names[0],
                JsonFormat::Proto => names[1],
                _ => names[2],
            };
            file.and_then(|file| file.get(name)).map(ExactJson::string)
        };
        let bytes = member(["raw", "fileWithBytes", "bytes"]);
        let url = member(["url", "fileWithUri", "uri"]);
        let data = json.get("data").map(|data| if self == JsonFormat::Proto { data.at("data") } else { data });
        let (kind, content) = match (json.get("text"), data, bytes, url) {
            (Some(text), None, None, None) => ("text", Content::Text(text.string())),
            (None, Some(data), None, None) => ("data", Content::Data(self.read_data(data, &mut metadata))),
            (None, None, Some(bytes), None) => ("file", Content::Bytes(bytes)),
            (None, None, None, Some(url)) => ("file", Content::Url(url)),
            _ => panic!("no part of {self:?}: {}", json.raw()),
        };
        for (name, speaks) in [("kind", JsonFormat::Kind), ("type", JsonFormat::Type)] {
            let kind_member = json.get(name).map(ExactJson::string);
            assert_eq!(kind_member.as_deref(), (self == speaks).then_some(kind), "{}", json.raw());
        }
        let (name, media_type) = (member(["filename", "name", "name"]), member(["mediaType", "mimeType", "mimeType"]));
        Part { content, name, media_type, metadata }
    }

    /// Row `Part data non-object`, on the way back.
    fn read_data(self, data: ExactJson<'_>, metadata: &mut Option<String>) -> String {
        let Some(rest) = metadata.as_ref().and_then(|metadata| metadata.strip_prefix(&format!("{{{FLAG}"))) else {
            return data.raw();
        };
        assert_ne!(self, JsonFormat::V1, "{}", data.raw());
        *metadata = rest.strip_prefix(',').map(|others| format!("{{{others}"));
        data.at("value").raw()
    }

    /// What a frame holds, without the envelope.
    pub fn read_event(self, json: ExactJson<'_>) -> Event {
        let kind = match self {
            JsonFormat::Kind => json.at("kind").string(),
            JsonFormat::Type if json.get("artifact").is_some() => "artifact-update".to_owned(),
            JsonFormat::Type => "status-update".to_owned(),
            _ if json.get("task").is_some() => "task".to_owned(),
            _ if json.get("statusUpdate").is_some() => "status-update".to_owned(),
            _ => "artifact-update".to_owned(),
        };
        let json = match (self, kind.as_str()) {
            (JsonFormat::Kind | JsonFormat::Type, _) => json,
            (_, "task") => json.at("task"),
            (_, "status-update") => json.at("statusUpdate"),
            _ => json.at("artifactUpdate"),
        };
        let task = || json.at(if self == JsonFormat::Type { "id" } else { "taskId" }).string();
        let context = json.get("contextId").map(ExactJson::string);
        match kind.as_str() {
            "task" => Event::Task(self.read_task(json)),
            "status-update" => Event::Status {
                task: task(),
                context,
                status: self.read_status(json.at("status")),
                is_final: (self != JsonFormat::V1).then(|| json.is_true("final")),
                artifacts: self.read_artifacts(json),
            },
            _ => {
                let artifact = json.at("artifact");
                // Row `ArtifactUpdate.append/lastChunk`: 0.1 has them inside of the artifact.
                let about = if self == JsonFormat::Type { artifact } else { json };
                let (append, last) = (about.is_true("append"), about.is_true("lastChunk"));
                Event::Artifact { task: task(), context, artifact: self.read_artifact(artifact), append, last }
            }
        }
    }
}

/// The gateway's view. What was made is repeated as the last lines of the conversation; where nothing was made, the
/// agent's last words are told in its place.
fn read_run(json: ExactJson<'_>) -> Task {
    let line = |line: ExactJson<'_>| {
        let role = if line.at("role").string() == "assistant" { "agent" } else { "user" };
        Message::new(role, vec![Part::text(line.at("content").string())])
    };
    let mut history: Vec<Message> = json.each("history").into_iter().map(line).collect();
    let made: Vec<Part> =
        json.each("artifacts").into_iter().map(|made| Part::text(made.at("content").string())).collect();
    let repeated = history.split_off(history.len() - made.len());
    assert!(repeated.iter().map(|line| &line.parts[0]).eq(&made), "{}", json.raw());
    let reason = json.get("terminationDetail").map(|text| Message::new("agent", vec![Part::text(text.string())]));
    let code = json.get("terminationCode").map(ExactJson::string);
    let (state, message, made) = match (json.at("status").string().as_str(), code.as_deref()) {
        ("queued", None) => ("submitted", None, made),
        ("running", None) => ("working", None, made),
        ("waiting", None) => ("input-required", json.get("message").map(line), Vec::new()),
        ("done", None) => ("completed", None, made),
        ("done", Some("error")) => ("failed", reason, made),
        ("done", Some("rejected")) => ("rejected", reason, made),
        ("cancelled", Some("cancelled")) => ("canceled", reason, made),
        _ => panic!("no state of the gateway: {}", json.raw()),
    };
    let artifact = |part| Artifact {
        id: None,
        name: None,
        description: None,
        parts: vec![part],
        extensions: Vec::new(),
        metadata: None,
    };
    Task {
        id: json.at("taskId").string(),
        context: json.at("contextId").string(),
        status: Status { state: state.to_owned(), message, time: None },
        history,
        artifacts: made.into_iter().map(artifact).collect(),
        metadata: None,
    }
}
