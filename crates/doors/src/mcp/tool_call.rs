//! One `tools/call`: its arguments are read before anything is done, then it runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sabir_engine::{Answer, Engine, Hosted};
use sabir_model::{
    AgentId, Call, Caller, Cancel, ContextId, Error, IdempotencyKey, IncomingMessage, Json, OnFinishedCancel, Owner,
    Part, QuestionId, Role, TaskId,
};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::arguments::{Arguments, WrongArgument};
use super::client::Client;
use super::coding_agent::{self, CodingCall};
use super::door::{ClosedQuestion, FormOutcome, McpDoor, Outlet, ProgressParams};
use super::elicitation::{Elicitation, InputRequest, QuestionName, UserAction};
use super::message::{self, Refusal, Request, json_of};
use super::result::ToolResult;
use super::tasks_extension::DetailedTask;
use super::tools::Tool;
use crate::follow::{self, Following, WaitEnd};
use crate::question::{GivenAnswer, Question};
use crate::words::{one_line, told_of};

/// How many agents `list_agents` shows: a model reads all of it.
const MOST_AGENTS: usize = 200;
/// What `list_agents` shows of what an agent says of itself.
const LONGEST_NAME: usize = 100;
const LONGEST_DESCRIPTION: usize = 1000;
const MOST_SKILLS: usize = 30;
const MOST_EXAMPLES: usize = 5;
/// How long a call shows nothing.
const HEARTBEAT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Params {
    name: String,
    arguments: Option<Json>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
    #[serde(rename = "inputResponses")]
    input_responses: Option<BTreeMap<String, Json>>,
    #[serde(rename = "requestState")]
    request_state: Option<String>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "progressToken")]
    progress_token: Option<Json>,
}

/// A call that has been read.
pub(crate) struct ToolCall {
    client: Client,
    action: Result<Action, WrongArgument>,
    progress_token: Option<Json>,
}

/// What a call does.
enum Action {
    ListAgents,
    Ask(Box<Ask>),
    Wait {
        task: TaskId,
        wait: Option<u64>,
    },
    Answer {
        task: TaskId,
        question: Option<String>,
        answer: String,
        wait: Option<u64>,
    },
    Cancel(TaskId),
    Get(TaskId),
    /// The client comes back with what its user has answered.
    Resume {
        name: QuestionName,
        response: Option<UserAction>,
        wait: Option<u64>,
    },
    Coding(CodingCall),
}

/// A message for an agent.
struct Ask {
    agent: Option<AgentId>,
    message: String,
    context: Option<ContextId>,
    task: Option<TaskId>,
    key: Option<IdempotencyKey>,
    wait: Option<u64>,
}

/// What `tools/call` is answered.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum CallAnswer {
    Result(ToolResult),
    Task(DetailedTask),
    InputRequired(InputRequired),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputRequired {
    result_type: &'static str,
    input_requests: BTreeMap<String, InputRequest>,
    request_state: String,
}

impl ToolCall {
    /// Reads a call; nothing is done yet.
    ///
    /// # Errors
    /// There is no such tool, or the call is malformed. Wrong arguments are for the model to mend, so they are no error here.
    pub(crate) fn read(door: &McpDoor, caller: &Caller, client: Client, request: &Request) -> Result<Self, Refusal> {
        let params: Params = serde_json::from_str(request.params.as_str())
            .map_err(|error| Refusal::invalid_params(format!("Invalid params: {error}")))?;
        let Some(tool) = Tool::named(&params.name, &door.engine, caller) else {
            let name: String = params.name.chars().take(200).collect();
            return Err(Refusal::invalid_params(format!("Unknown tool: {name}")));
        };
        if params.arguments.as_ref().is_some_and(|arguments| !arguments.is_object() && arguments.as_str() != "null") {
            return Err(Refusal::invalid_params("Invalid params: arguments must be an object"));
        }
        let progress_token = params.meta.and_then(|meta| meta.progress_token);
        if progress_token.as_ref().is_some_and(|token| !message::is_id(token.as_str())) {
            return Err(Refusal::invalid_params(
                "Invalid params: progressToken must be a string or a whole number, and short",
            ));
        }
        let action = Arguments::read(params.arguments.as_ref(), tool.arguments()).and_then(|arguments| {
            let resumed = params.request_state.as_deref().filter(|_| client.is_modern());
            match resumed {
                Some(state) => resume(&tool, state, params.input_responses.unwrap_or_default(), &arguments),
                None => Action::read(tool, &arguments),
            }
        });
        Ok(Self { client, action, progress_token })
    }

    /// Does what the call says.
    ///
    /// # Errors
    /// What is the server's own fault.
    pub(crate) async fn run(self, door: &McpDoor, caller: &Caller, outlet: &Outlet) -> Result<CallAnswer, Refusal> {
        let client = self.client;
        let action = match self.action {
            Ok(action) => action,
            Err(WrongArgument(why)) => return Ok(CallAnswer::Result(ToolResult::error(client, why))),
        };
        let wait = Wait {
            door,
            caller,
            client,
            outlet,
            progress_token: self.progress_token.as_ref(),
            shown: AtomicU64::new(0),
        };
        match wait.run(action).await {
            Ok(answer) => Ok(answer),
            Err(Error::Internal(source)) => {
                tracing::error!(%source, "a tool call failed");
                Err(Refusal::new(Refusal::INTERNAL, "Internal error"))
            }
            Err(error) => Ok(CallAnswer::Result(ToolResult::error(client, told_of(&error)))),
        }
    }
}

impl Action {
    fn read(tool: Tool, arguments: &Arguments) -> Result<Self, WrongArgument> {
        let wait = || arguments.whole_number("wait_seconds");
        let task = || arguments.required_id("task", TaskId::parse);
        Ok(match tool {
            Tool::ListAgents => Self::ListAgents,
            Tool::Ask(agent) => Self::Ask(Box::new(Ask {
                agent: match agent {
                    Some(agent) => Some(agent),
                    None => arguments.id("agent", AgentId::parse)?,
                },
                message: arguments.required_text("message")?,
                context: arguments.id("context", ContextId::parse)?,
                task: arguments.id("task", TaskId::parse)?,
                key: arguments.id("idempotency_key", IdempotencyKey::parse)?,
                wait: wait()?,
            })),
            Tool::WaitTask => Self::Wait { task: task()?, wait: wait()? },
            Tool::AnswerTask => Self::Answer {
                task: task()?,
                question: arguments.id("question", question_id)?,
                answer: arguments.required_text("answer")?,
                wait: wait()?,
            },
            Tool::CancelTask => Self::Cancel(task()?),
            Tool::GetTask => Self::Get(task()?),
            Tool::Coding(tool) => Self::Coding(CodingCall::read(tool, arguments)?),
        })
    }
}

/// A name that is no id must not count as none: the answer would be taken for another question.
fn question_id(text: String) -> Result<String, &'static str> {
    match QuestionId::parse(&text) {
        Some(id) => Ok(id.to_string()),
        None => Err("is not the id of a question; get_task shows the one that is open"),
    }
}

/// A retry after `input_required`. The state is as the client pleases to send it: it names a question, and gives no rights. A tool
/// resumes only what it can have begun, since hosts allow some tools and not others.
fn resume(
    tool: &Tool,
    state: &str,
    mut responses: BTreeMap<String, Json>,
    arguments: &Arguments,
) -> Result<Action, WrongArgument> {
    let wrong = |why: &str| WrongArgument(format!("requestState is not one that {why}"));
    let name = QuestionName::parse(state).ok_or_else(|| wrong("this server has given"))?;
    let is_of_tool = match tool {
        Tool::Ask(None) => true,
        Tool::Ask(Some(agent)) => *agent == name.agent,
        Tool::WaitTask | Tool::AnswerTask => arguments.required_id("task", TaskId::parse)? == name.task,
        Tool::ListAgents | Tool::CancelTask | Tool::GetTask | Tool::Coding(_) => false,
    };
    if !is_of_tool {
        return Err(wrong("this call was given"));
    }
    let response = responses.remove(&name.text()).map(|response| UserAction::read(Some(&response)));
    Ok(Action::Resume { name, response, wait: arguments.whole_number("wait_seconds")? })
}

/// What a call needs while it waits.
struct Wait<'a> {
    door: &'a McpDoor,
    caller: &'a Caller,
    client: Client,
    outlet: &'a Outlet,
    progress_token: Option<&'a Json>,
    /// How often progress was shown.
    shown: AtomicU64,
}

impl Wait<'_> {
    async fn run(&self, action: Action) -> Result<CallAnswer, Error> {
        let (door, caller, client) = (self.door, self.caller, self.client);
        let engine = &door.engine;
        match action {
            Action::ListAgents => Ok(CallAnswer::Result(list_agents(engine, caller, client))),
            Action::Ask(ask) => {
                let until = door.deadline(ask.wait);
                let following = Following::send(engine, caller, self.message(*ask)).await?;
                if client.knows_tasks {
                    return Ok(CallAnswer::Task(DetailedTask::created(following.as_seen())));
                }
                self.follow(following, until).await
            }
            Action::Wait { task, wait } => {
                let following = Following::task(engine, caller, None, task).await?;
                self.follow(following, door.deadline(wait)).await
            }
            Action::Answer { task, question, answer, wait } => {
                let until = door.deadline(wait);
                let task = follow::read(engine, caller, None, task).await?;
                let send = door.answer_send(&task, question.as_deref(), &GivenAnswer::Words(answer));
                let following = Following::send(engine, caller, send).await?;
                match self.follow(following, until).await {
                    // An approver sees the task no longer than its question is open.
                    Err(Error::TaskNotFound(_)) => {
                        let words = "The answer was taken. The task is not yours to see any more.";
                        Ok(CallAnswer::Result(ToolResult::words(client, words)))
                    }
                    followed => followed,
                }
            }
            Action::Cancel(task) => {
                let cancel = Cancel { agent: None, task, metadata: None, on_finished: OnFinishedCancel::Leave };
                match engine.call(caller, Call::Cancel(cancel)).await? {
                    Answer::Task(task) => Ok(CallAnswer::Result(ToolResult::task(client, caller, &task, None))),
                    _ => Err(Error::internal("a cancel is answered with something else".to_owned())),
                }
            }
            Action::Get(task) => {
                let task = follow::read(engine, caller, None, task).await?;
                Ok(CallAnswer::Result(ToolResult::task(client, caller, &task, None)))
            }
            Action::Resume { name, response, wait } => {
                let until = door.deadline(wait);
                let (agent, task) = (Some(name.agent.clone()), name.task.clone());
                let outcome = match response {
                    // Nothing was answered, so it is asked again.
                    None => None,
                    Some(action) => Some(door.take_form(caller, &name, action).await),
                };
                if let Some(FormOutcome::Closed | FormOutcome::Refused(_)) = &outcome {
                    let task = follow::read(engine, caller, agent, task).await?;
                    let reason = match &outcome {
                        Some(FormOutcome::Refused(reason)) => Some(reason.as_str()),
                        _ => None,
                    };
                    return Ok(CallAnswer::Result(ToolResult::closed(client, caller, &task, reason)));
                }
                let mut following = Following::task(engine, caller, agent, task).await?;
                if let Some(FormOutcome::Sent) = outcome {
                    following.waits_for_answer(name.question);
                }
                self.follow(following, until).await
            }
            Action::Coding(call) => coding_agent::run(door, caller, client, call).await.map(CallAnswer::Result),
        }
    }

    fn message(&self, ask: Ask) -> sabir_model::Send {
        let Ask { agent, message, context, task, key, .. } = ask;
        let mut message = IncomingMessage::new(None, Role::User, vec![Part::text(message)]);
        (message.context, message.task) = (context, task);
        let mut send = self.door.send(message);
        (send.agent, send.idempotency) = (agent, key);
        send
    }

    /// Waits for the task, shows progress, and asks the user where the client can.
    async fn follow(&self, mut following: Following, until: Instant) -> Result<CallAnswer, Error> {
        let (client, caller) = (self.client, self.caller);
        // The question that the user was asked last, and where it is told that the user has closed it.
        let mut asked: Option<(QuestionName, broadcast::Receiver<ClosedQuestion>)> = None;
        loop {
            let waiting = self.wait(&mut following, until);
            let end = match &mut asked {
                None => waiting.await?,
                Some((name, closed_questions)) => tokio::select! {
                    end = waiting => end?,
                    closed = closed(&caller.owner, name, closed_questions) => {
                        let (agent, task) = (Some(name.agent.clone()), name.task.clone());
                        let task = follow::read(&self.door.engine, caller, agent, task).await?;
                        let reason = closed.reason.as_deref();
                        return Ok(CallAnswer::Result(ToolResult::closed(client, caller, &task, reason)));
                    }
                },
            };
            let task = following.as_seen();
            let shown = || Ok(CallAnswer::Result(ToolResult::task(client, caller, task, Some(end))));
            let question = Question::of(task).filter(|question| {
                let is_new = asked.as_ref().is_none_or(|(name, _)| name.question != question.id);
                is_new && end == WaitEnd::Asks && client.asks_users && question.may_be_answered_by(caller, task)
            });
            let Some(question) = question else { return shown() };
            let name = QuestionName::of(task, &question);
            if client.is_modern() {
                let input_requests = [(name.text(), InputRequest::of(client, &question))].into();
                let (result_type, request_state) = ("input_required", name.text());
                return Ok(CallAnswer::InputRequired(InputRequired { result_type, input_requests, request_state }));
            }
            let closed_questions = self.door.closed_questions();
            let id = json_of(&name.request_id());
            let request = message::request(&id, "elicitation/create", Elicitation::of(client, &question));
            if !self.outlet.tell(request).await {
                return shown();
            }
            asked = Some((name, closed_questions));
            following.waits_for_answer(question.id);
        }
    }

    /// Waits, and shows now and then that it does: hosts end a call that shows nothing.
    async fn wait(&self, following: &mut Following, until: Instant) -> Result<WaitEnd, Error> {
        loop {
            let next = until.min(Instant::now() + HEARTBEAT);
            match following.wait(next, |words| self.show(words)).await? {
                WaitEnd::TimeIsOver if Instant::now() < until && !following.server_stops() => self.show("working"),
                end => return Ok(end),
            }
        }
    }

    fn show(&self, words: &str) {
        let Some(progress_token) = self.progress_token else { return };
        let progress = self.shown.fetch_add(1, Ordering::Relaxed) + 1;
        let message = self.client.knows_annotations().then_some(words);
        let progress = ProgressParams { progress_token, progress, message };
        self.outlet.hint(progress.notification());
    }
}

/// Resolves when a form of this owner that shows this question is closed.
async fn closed(
    owner: &Owner,
    name: &QuestionName,
    closed_questions: &mut broadcast::Receiver<ClosedQuestion>,
) -> ClosedQuestion {
    loop {
        match closed_questions.recv().await {
            Ok(closed) if closed.owner == *owner && closed.name == *name => return closed,
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

#[derive(Serialize)]
struct AgentList<'a> {
    agents: Vec<AgentData<'a>>,
    /// How many are not shown. Whoever knows their ids reaches them.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<usize>,
}

#[derive(Serialize)]
struct AgentData<'a> {
    id: &'a str,
    name: String,
    description: String,
    #[serde(rename = "default")]
    is_default: bool,
    skills: Vec<SkillData>,
}

#[derive(Serialize)]
struct SkillData {
    name: String,
    description: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    examples: Vec<String>,
}

fn list_agents(engine: &Engine, caller: &Caller, client: Client) -> ToolResult {
    let default = engine.default_agent();
    let mut agents = engine.agents_for(caller).map(|hosted: &Hosted| {
        let about = hosted.about();
        let skills = about.skills.iter().take(MOST_SKILLS).map(|skill| SkillData {
            name: one_line(&skill.name, LONGEST_NAME),
            description: one_line(&skill.description, LONGEST_DESCRIPTION),
            examples: skill
                .examples
                .iter()
                .take(MOST_EXAMPLES)
                .map(|words| one_line(words, LONGEST_DESCRIPTION))
                .collect(),
        });
        AgentData {
            id: hosted.id.as_str(),
            name: if about.name.is_empty() { hosted.id.to_string() } else { one_line(&about.name, LONGEST_NAME) },
            description: one_line(&about.description, LONGEST_DESCRIPTION),
            is_default: default == Some(&hosted.id),
            skills: skills.collect(),
        }
    });
    let shown = agents.by_ref().take(MOST_AGENTS).collect();
    let more = Some(agents.count()).filter(|more| *more > 0);
    ToolResult::data(client, &AgentList { agents: shown, more })
}
