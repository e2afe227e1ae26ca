//! The tools `coding_agent_*`, as hosts of coding-agent-a2a know them. Their results are JSON in one text.
//!
//! A job is a task of the default agent. Nothing is forgotten when its result was read, and a job outlives its host.

use sabir_engine::{Answer, Batch};
use sabir_model::{
    Call, Caller, Cancel, Delivery, Error, Event, IncomingMessage, Json, OnFinishedCancel, OnFinishedSubscribe, Part,
    Role, Seq, State, Subscribe, Task, TaskId,
};
use serde::Serialize;

use super::arguments::{Arguments, WrongArgument};
use super::client::Client;
use super::door::McpDoor;
use super::message::json_of;
use super::result::ToolResult;
use super::tools::CodingTool;
use crate::follow;
use crate::words::{all_text, answer_text};

/// How many events one poll returns.
const MOST_EVENTS: usize = 1000;
const MOST_BYTES: usize = 512 * 1024;

/// A call of one of these tools.
pub(crate) enum CodingCall {
    Run { text: String, metadata: Option<Json> },
    Poll { job: String, since: Seq },
    Result { job: String },
    Cancel { job: String },
    Info,
}

#[derive(Serialize)]
struct JobStarted<'a> {
    job_id: &'a str,
}

#[derive(Serialize)]
struct Polled {
    events: Vec<JobEvent>,
    done: bool,
}

#[derive(Serialize)]
struct JobEvent {
    line: Seq,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
}

#[derive(Serialize)]
struct JobResult {
    summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<JobStats>,
    done: bool,
}

#[derive(Serialize)]
struct JobStats {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Serialize)]
struct JobCancelled {
    cancelled: bool,
}

#[derive(Serialize)]
struct AgentInfo<'a> {
    adapter: &'a str,
    capabilities: AgentCapabilities,
    version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentCapabilities {
    streaming: bool,
    session_resume: bool,
    shell_approval: bool,
}

/// What of the arguments goes with the message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
}

impl CodingCall {
    pub(crate) fn read(tool: CodingTool, arguments: &Arguments) -> Result<Self, WrongArgument> {
        let job = || arguments.required_text("jobId");
        Ok(match tool {
            CodingTool::Run => {
                let metadata = RunMetadata {
                    repo_path: arguments.text("repoPath")?,
                    model: arguments.text("model")?,
                    profile: arguments.text("profile")?,
                };
                let metadata = Some(json_of(&metadata)).filter(|json| json.as_str() != "{}");
                Self::Run { text: arguments.required_text("task")?, metadata }
            }
            CodingTool::Poll => Self::Poll { job: job()?, since: arguments.whole_number("sinceLine")?.unwrap_or(0) },
            CodingTool::Result => Self::Result { job: job()? },
            CodingTool::Cancel => Self::Cancel { job: job()? },
            CodingTool::Info => Self::Info,
        })
    }
}

pub(crate) async fn run(
    door: &McpDoor,
    caller: &Caller,
    client: Client,
    call: CodingCall,
) -> Result<ToolResult, Error> {
    let engine = &door.engine;
    let job = match call {
        CodingCall::Run { text, metadata } => {
            let mut message = IncomingMessage::new(None, Role::User, vec![Part::text(text)]);
            message.metadata = metadata;
            let mut send = door.send(message);
            send.delivery = Delivery::Immediately;
            send.direct = sabir_model::Direct::StoredTask;
            return match engine.call(caller, Call::Send(Box::new(send))).await? {
                Answer::Task(task) => Ok(ToolResult::data(client, &JobStarted { job_id: task.id.as_str() })),
                _ => Err(Error::internal("a message is answered with something else than its task".to_owned())),
            };
        }
        CodingCall::Info => return Ok(info(door, caller, client)),
        CodingCall::Poll { ref job, .. } | CodingCall::Result { ref job } | CodingCall::Cancel { ref job } => {
            job.clone()
        }
    };
    let unknown = || ToolResult::error(client, format!("Unknown job: {}", job.chars().take(200).collect::<String>()));
    let Ok(id) = TaskId::parse(job.as_str()) else { return Ok(unknown()) };
    let task = match follow::read(engine, caller, None, id).await {
        Ok(task) => task,
        Err(Error::TaskNotFound(_)) => return Ok(unknown()),
        Err(error) => return Err(error),
    };
    Ok(match call {
        CodingCall::Poll { since, .. } => {
            let events = events(door, caller, &task, since).await?;
            let is_all = events.last().map_or(since, |event| event.line) >= task.seq;
            ToolResult::data(client, &Polled { events, done: task.status.state.is_terminal() && is_all })
        }
        CodingCall::Cancel { .. } => {
            let cancel = Cancel {
                agent: Some(task.agent.clone()),
                task: task.id.clone(),
                metadata: None,
                on_finished: OnFinishedCancel::Leave,
            };
            let cancelled = match engine.call(caller, Call::Cancel(cancel)).await? {
                Answer::Task(task) => task.status.state == State::Canceled,
                _ => false,
            };
            ToolResult::data(client, &JobCancelled { cancelled })
        }
        _ => {
            let done = task.status.state.is_terminal();
            let stats = task
                .usage
                .map(|usage| JobStats { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens });
            ToolResult::data(client, &JobResult { summary: answer_text(&task), stats, done })
        }
    })
}

/// The events after a number, up to the one that the task shows.
async fn events(door: &McpDoor, caller: &Caller, task: &Task, since: Seq) -> Result<Vec<JobEvent>, Error> {
    let (mut events, mut bytes) = (Vec::new(), 0);
    if since >= task.seq {
        return Ok(events);
    }
    let subscribe = Subscribe {
        agent: Some(task.agent.clone()),
        task: task.id.clone(),
        after: Some(since),
        on_finished: OnFinishedSubscribe::ShowEnd,
    };
    let Answer::Stream(mut stream) = door.engine.call(caller, Call::Subscribe(subscribe)).await? else {
        return Err(Error::internal("a subscription is answered with something else".to_owned()));
    };
    while let Some(batch) = stream.next().await {
        let Batch::Events(entries) = batch? else { continue };
        for entry in entries {
            let event = job_event(entry.seq, &entry.event);
            bytes += event.text.len();
            events.push(event);
            if entry.seq >= task.seq || events.len() >= MOST_EVENTS || bytes >= MOST_BYTES {
                return Ok(events);
            }
        }
    }
    Ok(events)
}

fn job_event(line: Seq, event: &Event) -> JobEvent {
    match event {
        Event::Created(_) => JobEvent { line, kind: "status", state: Some("submitted"), text: String::new() },
        Event::Status(change) => JobEvent {
            line,
            kind: "status",
            state: Some(change.status.state.name()),
            text: change.status.message.as_deref().map_or_else(String::new, all_text),
        },
        Event::Artifact(chunk) => {
            let texts: Vec<&str> = chunk.artifact.parts.iter().filter_map(Part::as_text).collect();
            JobEvent { line, kind: "text", state: None, text: texts.concat() }
        }
    }
}

fn info(door: &McpDoor, caller: &Caller, client: Client) -> ToolResult {
    let engine = &door.engine;
    let default = engine.default_agent().filter(|id| engine.agents_for(caller).any(|hosted| hosted.id == **id));
    let Some(id) = default else { return ToolResult::error(client, "there is no default agent") };
    let version = engine.agent(id.as_str()).map(|hosted| hosted.about().version.clone()).unwrap_or_default();
    let capabilities = AgentCapabilities { streaming: true, session_resume: true, shell_approval: true };
    ToolResult::data(client, &AgentInfo { adapter: id.as_str(), capabilities, version: &version })
}
