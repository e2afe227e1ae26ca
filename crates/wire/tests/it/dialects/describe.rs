//! Calls and errors in one readable line.

use sabir_model::{
    AgentId, Call, Content, ContextAlone, Delivery, Direct, Error, IncomingMessage, Json, MessageId, OnFinished,
    OnFinishedCancel, OnFinishedSubscribe, OnUnknown, Part, PushCall, PushConfig, Role, Wanted,
};

pub(crate) fn describe(outcome: &Result<Call, Error>) -> String {
    match outcome {
        Ok(call) => describe_call(call),
        Err(error) => format!("refused: {error}"),
    }
}

fn describe_call(call: &Call) -> String {
    let mut words = Words::default();
    match call {
        Call::Send(send) => {
            words.add(match send.delivery {
                Delivery::Stream => "stream",
                Delivery::WhenSettled => "send",
                Delivery::Immediately => "send and return",
            });
            words.agent(&send.agent);
            words.message(&send.message);
            if send.message.id.is_none() {
                words.add("unnamed by its sender");
            }
            words.number("history", send.history);
            if !send.accepted_output.is_empty() {
                words.add(format!("accepts {}", send.accepted_output.join(" ")));
            }
            if let Some(config) = &send.push {
                words.push(config);
            }
            words.metadata(&send.metadata);
            words.add(format!("born {}", send.born));
            if send.context_alone == ContextAlone::AnswersWaiting {
                words.add("context alone answers");
            }
            if send.on_unknown == OnUnknown::Create {
                words.add("makes the task it names");
            }
            if send.direct == Direct::StoredTask {
                words.add("wants a task");
            }
            assert_eq!(send.on_finished, OnFinished::Refuse);
            assert!(send.idempotency.is_none() && send.last_event_id.is_none());
        }
        Call::Get(get) => {
            words.add(format!("get {}", get.task));
            words.agent(&get.agent);
            words.number("history", get.history);
        }
        Call::List(list) => {
            words.add(format!("list {}", list.page_size));
            words.agent(&list.agent);
            words.option("in", &list.context);
            if let Some(state) = list.state {
                words.add(format!("{state:?}"));
            }
            words.option("since", &list.since);
            words.option("from", &list.from.as_ref().map(|cursor| format!("{} {}", cursor.time, cursor.task)));
            words.number("history", list.history);
            if list.artifacts == Wanted::Yes {
                words.add("with artifacts");
            }
        }
        Call::Cancel(cancel) => {
            words.add(format!("cancel {}", cancel.task));
            words.agent(&cancel.agent);
            words.metadata(&cancel.metadata);
            assert_eq!(cancel.on_finished, OnFinishedCancel::Refuse);
        }
        Call::Subscribe(subscribe) => {
            words.add(format!("subscribe {}", subscribe.task));
            words.agent(&subscribe.agent);
            words.add(match subscribe.on_finished {
                OnFinishedSubscribe::Refuse => "unless finished",
                OnFinishedSubscribe::ShowEnd => "show the end",
            });
            assert!(subscribe.after.is_none());
        }
        Call::Push(PushCall::Set { agent, config, .. }) => {
            words.add("set");
            words.agent(agent);
            words.push(config);
        }
        Call::Push(PushCall::Get { agent, task, config }) => {
            words.add(format!("get push of {task}"));
            words.agent(agent);
            words.option("config", config);
        }
        Call::Push(PushCall::List { agent, task, page_size, page_token }) => {
            words.add(format!("list push of {task}"));
            words.agent(agent);
            words.number("page", *page_size);
            words.option("from", page_token);
        }
        Call::Push(PushCall::Delete { agent, task, config }) => {
            words.add(format!("delete push of {task}"));
            words.agent(agent);
            words.option("config", config);
        }
        Call::ExtendedCard { agent } => {
            words.add("extended card");
            words.agent(agent);
        }
    }
    words.0.join(", ")
}

#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn add(&mut self, word: impl Into<String>) {
        self.0.push(word.into());
    }

    fn option(&mut self, label: &str, value: &Option<impl ToString>) {
        if let Some(value) = value {
            self.add(format!("{label} {}", value.to_string()));
        }
    }

    fn number(&mut self, label: &str, number: Option<u32>) {
        self.option(label, &number);
    }

    fn agent(&mut self, agent: &Option<AgentId>) {
        self.option("to", agent);
    }

    fn metadata(&mut self, metadata: &Option<Json>) {
        self.option("metadata", &metadata.as_ref().map(Json::as_str));
    }

    fn push(&mut self, config: &PushConfig) {
        self.add(format!("push to {}", config.url));
        self.option("config", &config.id);
        self.option("of", &config.task);
        self.option("token", &config.token);
        if let Some(authentication) = &config.authentication {
            let credentials = authentication.credentials.as_deref().unwrap_or("-");
            self.add(format!("as {} {credentials}", authentication.schemes.join("|")));
        }
    }

    fn message(&mut self, message: &IncomingMessage) {
        let role = match message.role {
            Role::User => "user",
            Role::Agent => "agent",
        };
        let parts: Vec<String> = message.parts.iter().map(part).collect();
        let id = message.id.as_ref().map_or("unnamed", MessageId::as_str);
        self.add(format!("{id} {role} [{}]", parts.join("; ")));
        self.option("task", &message.task);
        self.option("in", &message.context);
        let references: Vec<&str> = message.references.iter().map(|id| id.as_str()).collect();
        self.option("about", &Some(references.join(" ")).filter(|text| !text.is_empty()));
        self.option("extensions", &Some(message.extensions.join(" ")).filter(|text| !text.is_empty()));
        self.option("message metadata", &message.metadata.as_ref().map(Json::as_str));
    }
}

fn part(part: &Part) -> String {
    let mut actual = match &part.content {
        Content::Text(text) => format!("{text:?}"),
        Content::Bytes(bytes) => format!("bytes {}", bytes.as_str()),
        Content::Url(url) => format!("url {url}"),
        Content::Data(data) => format!("data {}", data.as_str()),
    };
    for (label, value) in [("named", &part.filename), ("type", &part.media_type)] {
        if let Some(value) = value {
            actual.push_str(&format!(" {label} {value}"));
        }
    }
    if let Some(metadata) = &part.metadata {
        actual.push_str(&format!(" metadata {}", metadata.as_str()));
    }
    actual
}
