//! A program agent in an engine of this process, for tests that need what no configuration offers: a shorter patience, a
//! slow guard, an agent around the program.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sabir_agents::program::{
    GitLimits, Host, Isolation, Kind, Mode, PromptBy, Settings, SharedWorkspace, WarmPrograms, Workspaces, Worktrees,
};
use sabir_agents::prompt::Approve;
use sabir_engine::{Agent, Answer, Builder, Engine, Hosted};
use sabir_model::{AgentId, Birth, Call, Caller, Delivery, Message, MessageId, Part, Role, Send, Task};
use sabir_store::MemoryStore;

use crate::SABIR;

/// A program of this kind that asks for permission, in one shared workspace.
pub fn settings(kind: Kind, mode: Mode, program: &Path, workspace: &Path) -> Settings {
    Settings {
        kind,
        mode,
        command: Some(vec![program.to_str().unwrap().to_owned()]),
        arguments: Vec::new(),
        model: None,
        instructions: None,
        workspace: workspace.to_owned(),
        roots: Vec::new(),
        isolation: Isolation::Shared,
        shared_workspace: SharedWorkspace::Queue,
        approve: Approve::Ask,
        asks_again_within: Duration::from_secs(60),
        approval_timeout: None,
        hibernate_after: None,
        environment: Vec::new(),
        pass: Vec::new(),
        tell_stderr: false,
        keep_files: false,
        prompt_by: PromptBy::default(),
        approval_pattern: None,
        approval_response: "y".to_owned(),
        trusts_prompts: false,
        trusts_workspace: false,
        max_line: 1 << 20,
        max_output: 1 << 30,
        stop_grace: Duration::from_secs(2),
        keep_warm: None,
        portable: false,
        delegate: None,
    }
}

/// A host with the real guard and the environment of the test, whose worktrees are in this folder.
pub fn host(worktrees: PathBuf) -> Host {
    Host {
        guard: SABIR.into(),
        variables: std::env::vars_os().collect(),
        open_files: None,
        database: None,
        warm: WarmPrograms::default(),
        worktrees: Worktrees::new(worktrees),
        git_limits: GitLimits::default(),
        workspaces: Workspaces::default(),
        agents_url: Arc::default(),
        bridge: SABIR.into(),
    }
}

/// An engine with this agent and a store in memory.
pub async fn engine(agent: impl Agent + 'static) -> Engine {
    let hosted = Hosted::new(AgentId::parse("prog").unwrap(), Arc::new(agent));
    Builder::new(Arc::new(MemoryStore::new())).agent(hosted).start().await.unwrap()
}

/// Sends a text, to this task or to a new one.
pub async fn send(engine: &Engine, text: &str, task: Option<&Task>, delivery: Delivery) -> Arc<Task> {
    let mut message = Message::new(MessageId::parse(text).unwrap(), Role::User, vec![Part::text(text)]);
    message.task = task.map(|task| task.id.clone());
    let send = Send { delivery, ..Send::new(message, Birth(10)) };
    match engine.call(&Caller::anonymous(), Call::Send(Box::new(send))).await.unwrap() {
        Answer::Task(task) => task,
        _ => panic!("a task is expected"),
    }
}
