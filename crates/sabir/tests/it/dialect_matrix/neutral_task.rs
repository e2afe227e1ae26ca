//! Tasks, messages and events in no dialect at all, so that what two dialects say can be compared.
//!
//! Carried JSON is kept as the text that it is. States and roles have their names of 0.3.

#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: String,
    pub context: String,
    pub status: Status,
    pub history: Vec<Message>,
    pub artifacts: Vec<Artifact>,
    pub metadata: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    pub state: String,
    pub message: Option<Message>,
    pub time: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub id: Option<String>,
    pub role: String,
    pub parts: Vec<Part>,
    pub task: Option<String>,
    pub context: Option<String>,
    pub references: Vec<String>,
    pub extensions: Vec<String>,
    pub metadata: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    pub id: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub parts: Vec<Part>,
    pub extensions: Vec<String>,
    pub metadata: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub content: Content,
    pub name: Option<String>,
    pub media_type: Option<String>,
    pub metadata: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    Data(String),
    Bytes(String),
    Url(String),
}

/// What one frame of a stream says.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Task(Task),
    Status {
        task: String,
        context: Option<String>,
        status: Status,
        /// None where a dialect does not say it.
        is_final: Option<bool>,
        /// All that was made, where a dialect repeats it.
        artifacts: Vec<Artifact>,
    },
    Artifact {
        task: String,
        context: Option<String>,
        artifact: Artifact,
        append: bool,
        last: bool,
    },
}

impl Status {
    pub fn is_terminal(&self) -> bool {
        matches!(self.state.as_str(), "completed" | "failed" | "rejected" | "canceled")
    }

    pub fn is_at_rest(&self) -> bool {
        self.is_terminal() || matches!(self.state.as_str(), "input-required" | "auth-required")
    }
}

impl Message {
    pub fn new(role: &str, parts: Vec<Part>) -> Self {
        Self {
            id: None,
            role: role.to_owned(),
            parts,
            task: None,
            context: None,
            references: Vec::new(),
            extensions: Vec::new(),
            metadata: None,
        }
    }

    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join(" ")
    }
}

impl Part {
    pub fn of(content: Content) -> Self {
        Self { content, name: None, media_type: None, metadata: None }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Content::Text(text.into()))
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Task {
    /// The task as its events show it. The messages of callers are no events, but for the first: they are taken from here.
    pub fn folded(events: &[Event], messages: &[Message]) -> Self {
        let Some(Event::Task(created)) = events.first() else { panic!("the first event shows the task: {events:?}") };
        let mut task = created.clone();
        for event in &events[1..] {
            match event {
                Event::Task(_) => panic!("a second task: {event:?}"),
                Event::Status { status, .. } => {
                    if task.status.is_at_rest() {
                        // With the next turn come the question and its answer.
                        let known = task.history.len();
                        task.history.extend_from_slice(&messages[known..known + 2]);
                    }
                    task.status = status.clone();
                }
                Event::Artifact { artifact, append: false, .. } => task.artifacts.push(artifact.clone()),
                Event::Artifact { artifact, .. } => {
                    let known = task.artifacts.iter_mut().find(|known| known.id == artifact.id);
                    let known = known.expect("what is appended to has begun");
                    artifact.parts.iter().for_each(|part| known.add(part));
                }
            }
        }
        task
    }
}

impl Artifact {
    /// Plain texts that are neighbours become one.
    fn add(&mut self, part: &Part) {
        if let (Some(Part { content: Content::Text(known), metadata: None, .. }), Content::Text(text), None) =
            (self.parts.last_mut(), &part.content, &part.metadata)
        {
            known.push_str(text);
        } else {
            self.parts.push(part.clone());
        }
    }
}

/// Members of maps have no order in protobuf; they come sorted.
fn sorted(json: String) -> String {
    let value: serde_json::Value = serde_json::from_str(&json).expect("what is carried is JSON");
    value.to_string()
}

impl Part {
    fn with_sorted_json(self) -> Self {
        let content = match self.content {
            Content::Data(data) => Content::Data(sorted(data)),
            other => other,
        };
        Self { content, metadata: self.metadata.map(sorted), ..self }
    }
}

impl Message {
    fn with_sorted_json(self) -> Self {
        let parts = self.parts.into_iter().map(Part::with_sorted_json).collect();
        Self { parts, metadata: self.metadata.map(sorted), ..self }
    }
}

impl Artifact {
    fn with_sorted_json(self) -> Self {
        let parts = self.parts.into_iter().map(Part::with_sorted_json).collect();
        Self { parts, metadata: self.metadata.map(sorted), ..self }
    }
}

impl Status {
    fn with_sorted_json(self) -> Self {
        Self { message: self.message.map(Message::with_sorted_json), ..self }
    }
}

impl Task {
    /// As protobuf carries it.
    pub fn with_sorted_json(self) -> Self {
        Self {
            status: self.status.with_sorted_json(),
            history: self.history.into_iter().map(Message::with_sorted_json).collect(),
            artifacts: self.artifacts.into_iter().map(Artifact::with_sorted_json).collect(),
            metadata: self.metadata.map(sorted),
            ..self
        }
    }
}

impl Event {
    /// As protobuf carries it.
    pub fn with_sorted_json(self) -> Self {
        match self {
            Event::Task(task) => Event::Task(task.with_sorted_json()),
            Event::Status { task, context, status, is_final, artifacts } => Event::Status {
                task,
                context,
                status: status.with_sorted_json(),
                is_final,
                artifacts: artifacts.into_iter().map(Artifact::with_sorted_json).collect(),
            },
            Event::Artifact { task, context, artifact, append, last } => {
                Event::Artifact { task, context, artifact: artifact.with_sorted_json(), append, last }
            }
        }
    }
}
