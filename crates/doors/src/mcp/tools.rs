//! The tools: what each is called, what it takes, and what a model is told of it.

use std::time::Duration;

use sabir_engine::{Engine, Hosted};
use sabir_model::{AgentId, Caller, Json};
use serde::Serialize;

use super::client::Client;
use super::message::json_of;
use crate::words::one_line;

/// With more agents than this, there is no tool for each: lists of tools are read by models, and cost them.
const MOST_AGENT_TOOLS: usize = 8;
/// What a tool shows of what an agent says of itself: models read it, and a remote agent writes what it likes.
const LONGEST_DESCRIPTION: usize = 500;
const MOST_SKILLS: usize = 10;
const LONGEST_SKILL: usize = 60;
/// What is in front of an agent's id in the name of its tool.
const AGENT_PREFIX: &str = "ask_";

/// A tool that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tool {
    ListAgents,
    /// `ask_agent`, or the tool of this agent.
    Ask(Option<AgentId>),
    WaitTask,
    AnswerTask,
    CancelTask,
    GetTask,
    Coding(CodingTool),
}

/// The tools of coding-agent-a2a. They reach the default agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodingTool {
    Run,
    Poll,
    Result,
    Cancel,
    Info,
}

/// A tool as `tools/list` shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolDefinition {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    description: String,
    input_schema: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Annotations>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    read_only_hint: bool,
    destructive_hint: bool,
    idempotent_hint: bool,
    open_world_hint: bool,
}

const LOOKS: Annotations =
    Annotations { read_only_hint: true, destructive_hint: false, idempotent_hint: true, open_world_hint: false };
const ACTS: Annotations =
    Annotations { read_only_hint: false, destructive_hint: true, idempotent_hint: false, open_world_hint: true };
const STOPS: Annotations =
    Annotations { read_only_hint: false, destructive_hint: true, idempotent_hint: true, open_world_hint: false };

/// An argument: its name, and its schema as JSON.
type Property = (&'static str, String);

impl Tool {
    /// The tool of this name, for a caller who may know of these agents.
    pub(crate) fn named(name: &str, engine: &Engine, caller: &Caller) -> Option<Self> {
        Some(match name {
            "list_agents" => Self::ListAgents,
            "ask_agent" => Self::Ask(None),
            "wait_task" => Self::WaitTask,
            "answer_task" => Self::AnswerTask,
            "cancel_task" => Self::CancelTask,
            "get_task" => Self::GetTask,
            "coding_agent_run" => Self::Coding(CodingTool::Run),
            "coding_agent_poll" => Self::Coding(CodingTool::Poll),
            "coding_agent_result" => Self::Coding(CodingTool::Result),
            "coding_agent_cancel" => Self::Coding(CodingTool::Cancel),
            "coding_agent_info" => Self::Coding(CodingTool::Info),
            name => {
                let tools = agent_tools(engine, caller);
                let (_, hosted) = tools.into_iter().find(|(tool, _)| tool == name)?;
                Self::Ask(Some(hosted.id.clone()))
            }
        })
    }

    pub(crate) fn arguments(&self) -> &'static [&'static str] {
        match self {
            Self::ListAgents | Self::Coding(CodingTool::Info) => &[],
            Self::Ask(None) => &["agent", "message", "context", "task", "wait_seconds", "idempotency_key"],
            Self::Ask(Some(_)) => &["message", "context", "task", "wait_seconds", "idempotency_key"],
            Self::WaitTask => &["task", "wait_seconds"],
            Self::AnswerTask => &["task", "answer", "question", "wait_seconds"],
            Self::CancelTask | Self::GetTask => &["task"],
            Self::Coding(CodingTool::Run) => &["task", "repoPath", "model", "force", "profile"],
            Self::Coding(CodingTool::Poll) => &["jobId", "sinceLine"],
            Self::Coding(CodingTool::Result | CodingTool::Cancel) => &["jobId"],
        }
    }

    fn property(argument: &'static str, longest_wait: Duration) -> Property {
        let text =
            |description: &str| format!(r#"{{"type":"string","description":{}}}"#, json_of(description).as_str());
        let seconds = longest_wait.as_secs();
        let schema = match argument {
            "agent" => text("The id of the agent, as list_agents shows it. Left out: the default agent."),
            "message" => text("What the agent is to do or to know, in words. It knows nothing of this conversation."),
            "context" => text(
                "The context of an earlier task: the agent remembers what was said there. Left out: a new conversation.",
            ),
            "task" => text("The id of a task, as ask_agent returned it."),
            "answer" => {
                text("The answer: yes or no where the agent asks for permission, the name of a choice, or any words.")
            }
            "question" => text("The id of the question that is answered, so that no other one is answered by mistake."),
            "idempotency_key" => text(
                "Any unique text. A call that is repeated with the same key joins the first one and starts nothing.",
            ),
            "jobId" => text("The job_id that coding_agent_run returned."),
            "repoPath" => text("The folder to work in."),
            "model" => text("The model to use."),
            "profile" => text("The routing profile: COMPLEX, MID or ROUTINE."),
            "force" => r#"{"type":"boolean","description":"Has no effect: the server decides what needs approval."}"#
                .to_owned(),
            "sinceLine" => {
                r#"{"type":"integer","minimum":0,"description":"Only events after this line. 0: all."}"#.to_owned()
            }
            _ => format!(
                r#"{{"type":"integer","minimum":0,"maximum":{seconds},"description":"How long to wait for the agent before the task's id is returned instead. Left out: {seconds}."}}"#
            ),
        };
        (argument, schema)
    }

    fn schema(&self, longest_wait: Duration) -> Json {
        let required: &[&str] = match self {
            Self::ListAgents | Self::Coding(CodingTool::Info) => &[],
            Self::Ask(_) => &["message"],
            Self::AnswerTask => &["task", "answer"],
            Self::WaitTask | Self::CancelTask | Self::GetTask | Self::Coding(CodingTool::Run) => &["task"],
            Self::Coding(_) => &["jobId"],
        };
        let mut properties: Vec<Property> =
            self.arguments().iter().map(|argument| Self::property(argument, longest_wait)).collect();
        for (name, schema) in &mut properties {
            match (self, *name) {
                (Self::Ask(_), "task") => {
                    *schema = r#"{"type":"string","description":"A task that works or waits: the message is for it. Left out: a new task."}"#.into();
                }
                (Self::Coding(_), "task") => {
                    *schema = r#"{"type":"string","description":"What to do, in words."}"#.into()
                }
                _ => {}
            }
        }
        let properties: Vec<String> =
            properties.into_iter().map(|(name, schema)| format!(r#""{name}":{schema}"#)).collect();
        let required =
            if required.is_empty() { String::new() } else { format!(r#","required":{}"#, json_of(required).as_str()) };
        let text = format!(
            r#"{{"type":"object","properties":{{{}}}{required},"additionalProperties":false}}"#,
            properties.join(",")
        );
        Json::parse(text).expect("names and schemas make an object")
    }

    fn definition(&self, name: &str, client: Client, longest_wait: Duration) -> ToolDefinition {
        let (title, description, annotations) = match self {
            Self::ListAgents => {
                ("List agents", "Lists the agents of this server: what each can do, and its id for ask_agent.", LOOKS)
            }
            Self::Ask(_) => ("Ask an agent", ASK, ACTS),
            Self::WaitTask => (
                "Wait for a task",
                "Waits for a task that ask_agent left working. Returns what ask_agent would have returned.",
                LOOKS,
            ),
            Self::AnswerTask => {
                ("Answer a question", "Answers the question that a task waits for, then waits for the task.", ACTS)
            }
            Self::CancelTask => ("Cancel a task", "Stops a task, and every program that works on it.", STOPS),
            Self::GetTask => ("Look at a task", "Shows a task as it is now, without waiting.", LOOKS),
            Self::Coding(CodingTool::Run) => {
                ("Run a coding task", "Starts a task of the default agent, and returns its job_id at once.", ACTS)
            }
            Self::Coding(CodingTool::Poll) => {
                ("Poll a coding task", "Returns the events of a job after a line.", LOOKS)
            }
            Self::Coding(CodingTool::Result) => ("Result of a coding task", "Returns the summary of a job.", LOOKS),
            Self::Coding(CodingTool::Cancel) => ("Cancel a coding task", "Stops a job.", STOPS),
            Self::Coding(CodingTool::Info) => {
                ("About the coding agent", "Says what the default agent is and can do.", LOOKS)
            }
        };
        ToolDefinition {
            name: name.to_owned(),
            title: client.knows_titles().then(|| title.to_owned()),
            description: description.to_owned(),
            input_schema: self.schema(longest_wait),
            annotations: client.knows_annotations().then_some(annotations),
        }
    }
}

const ASK: &str = "Sends a message to an agent and waits for its answer. If the agent needs longer than the wait, \
    the task's id is returned: it goes on working; call wait_task. If the agent asks something, the question is returned: call answer_task.";

/// What a host's model is told of the server as a whole.
pub(crate) const INSTRUCTIONS: &str = "The tools of this server reach other agents. list_agents shows them; ask_agent sends one a message \
    and waits. A task outlives this connection: its id works in wait_task, get_task, answer_task and cancel_task at any later time.";

/// Every tool that this caller has.
pub(crate) fn definitions(
    engine: &Engine,
    caller: &Caller,
    client: Client,
    longest_wait: Duration,
) -> Vec<ToolDefinition> {
    let define = |(name, tool): (&str, Tool)| tool.definition(name, client, longest_wait);
    let mut tools: Vec<ToolDefinition> = [
        ("list_agents", Tool::ListAgents),
        ("ask_agent", Tool::Ask(None)),
        ("wait_task", Tool::WaitTask),
        ("answer_task", Tool::AnswerTask),
        ("cancel_task", Tool::CancelTask),
        ("get_task", Tool::GetTask),
    ]
    .map(define)
    .into();
    for (name, hosted) in agent_tools(engine, caller) {
        let about = hosted.about();
        let skills: Vec<String> =
            about.skills.iter().take(MOST_SKILLS).map(|skill| one_line(&skill.name, LONGEST_SKILL)).collect();
        let mut tool = Tool::Ask(Some(hosted.id.clone())).definition(&name, client, longest_wait);
        tool.title = tool.title.map(|_| format!("Ask {}", hosted.id));
        let skills = if skills.is_empty() { String::new() } else { format!(" Skills: {}.", skills.join(", ")) };
        let description = one_line(&about.description, LONGEST_DESCRIPTION);
        tool.description = format!("Asks the agent {}. It says of itself: \"{description}\".{skills} {ASK}", hosted.id);
        tools.push(tool);
    }
    let coding = [
        ("coding_agent_run", Tool::Coding(CodingTool::Run)),
        ("coding_agent_poll", Tool::Coding(CodingTool::Poll)),
        ("coding_agent_result", Tool::Coding(CodingTool::Result)),
        ("coding_agent_cancel", Tool::Coding(CodingTool::Cancel)),
        ("coding_agent_info", Tool::Coding(CodingTool::Info)),
    ];
    tools.extend(coding.map(define));
    tools
}

/// The agents with a tool of their own, and its name.
fn agent_tools<'a>(engine: &'a Engine, caller: &'a Caller) -> Vec<(String, &'a Hosted)> {
    let agents: Vec<&Hosted> = engine.agents_for(caller).filter(|hosted| caller.may_run(&hosted.id)).collect();
    if agents.len() > MOST_AGENT_TOOLS {
        return Vec::new();
    }
    let mut named = Vec::<(String, &Hosted)>::new();
    for hosted in agents {
        let name = tool_name(&hosted.id);
        // Two ids may look the same in a name of a tool, and `agent` would look like `ask_agent`.
        if name != "ask_agent" && !named.iter().any(|(other, _)| *other == name) {
            named.push((name, hosted));
        }
    }
    named
}

/// Hosts take letters, digits, `_` and `-` in names of tools, and 64 of them at most.
fn tool_name(agent: &AgentId) -> String {
    let safe = |character: char| {
        if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' }
    };
    AGENT_PREFIX.chars().chain(agent.as_str().chars().map(safe)).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_are_safe() {
        for (id, expected) in [("coder", "ask_coder"), ("a.b/c", "ask_a_b_c"), ("é", "ask__"), ("agent", "ask_agent")]
        {
            assert_eq!(tool_name(&AgentId::parse(id).unwrap()), expected);
        }
        assert_eq!(tool_name(&AgentId::parse("x".repeat(200)).unwrap()).len(), 64);
    }

    #[test]
    fn every_schema_lists_what_its_tool_takes() {
        let coding = [CodingTool::Run, CodingTool::Poll, CodingTool::Result, CodingTool::Cancel, CodingTool::Info];
        let plain =
            [Tool::ListAgents, Tool::Ask(None), Tool::WaitTask, Tool::AnswerTask, Tool::CancelTask, Tool::GetTask];
        for tool in plain.into_iter().chain(coding.map(Tool::Coding)) {
            let schema: serde_json::Value =
                serde_json::from_str(tool.schema(Duration::from_secs(50)).as_str()).unwrap();
            let properties = schema["properties"].as_object().unwrap();
            assert_eq!(properties.len(), tool.arguments().len(), "{tool:?}");
            for argument in tool.arguments() {
                assert!(
                    properties[*argument]["description"].as_str().is_some_and(|words| words.len() > 10),
                    "{argument}"
                );
            }
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(tool.arguments().contains(&required.as_str().unwrap()), "{tool:?}");
            }
        }
    }
}
