//! A program that is resumed after it slept, in an engine of our own: its guard can be held up here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sabir_agents::ProgramAgent;
use sabir_agents::program::{
    GitLimits, Host, Isolation, Kind, Mode, PromptBy, Settings, SharedWorkspace, Warm, Workspaces, Worktrees,
};
use sabir_agents::protocol::Approve;
use sabir_engine::{About, Agent, AgentFuture, Answer, Builder, Engine, Hosted, Turn};
use sabir_model::{
    AgentId, Birth, Call, Caller, Cancel, Delivery, Message, MessageId, OnFinishedCancel, Part, Role, Send, State, Task,
};
use sabir_store::MemoryStore;

use crate::SABIR;

/// Asks for the same whenever it runs.
const PROGRAM: &str = r#"#!/bin/sh
echo $$ >> pids
echo '{"type":"system","subtype":"init","session_id":"s1","model":"m"}'
echo '{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"build"}}}'
while read -r line; do :; done
"#;

/// Counts the runs that came to their end by themselves.
struct Counted(ProgramAgent, Arc<AtomicUsize>);

impl Agent for Counted {
    fn about(&self) -> About {
        self.0.about()
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(async move {
            let outcome = self.0.run(turn).await;
            self.1.fetch_add(1, Ordering::Relaxed);
            outcome
        })
    }
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn settings(program: &Path, workspace: &Path) -> Settings {
    Settings {
        kind: Kind::ClaudeCode,
        mode: Mode::Duplex,
        command: Some(vec![program.to_str().unwrap().into()]),
        arguments: Vec::new(),
        model: None,
        instructions: None,
        workspace: workspace.into(),
        roots: Vec::new(),
        isolation: Isolation::Shared,
        shared_workspace: SharedWorkspace::Queue,
        approve: Approve::Ask,
        asks_again_within: Duration::from_secs(60),
        approval_timeout: None,
        hibernate_after: Some(Duration::from_millis(100)),
        environment: Vec::new(),
        pass: Vec::new(),
        tell_stderr: false,
        keep_files: false,
        prompt_by: PromptBy::default(),
        approval_pattern: None,
        approval_response: "y".into(),
        trusts_prompts: false,
        trusts_workspace: false,
        max_line: 1024 * 1024,
        max_output: 1024 * 1024,
        stop_grace: Duration::from_secs(2),
        keep_warm: None,
    }
}

async fn send(engine: &Engine, text: &str, task: Option<&Task>, delivery: Delivery) -> Arc<Task> {
    let mut message = Message::new(MessageId::parse(text).unwrap(), Role::User, vec![Part::text(text)]);
    message.task = task.map(|task| task.id.clone());
    let send = Send { delivery, ..Send::new(message, Birth(10)) };
    match engine.call(&Caller::anonymous(), Call::Send(Box::new(send))).await.unwrap() {
        Answer::Task(task) => task,
        _ => panic!("a task is expected"),
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_cancel_is_obeyed_while_the_program_is_being_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("work")).unwrap();
    executable(&path("program"), PROGRAM);
    // It works in the workspace, as its program does.
    let guard = format!(
        "#!/bin/sh\nif [ -e ../hold ]; then touch ../held; while [ -e ../hold ]; do sleep 0.05; done; fi\nexec {SABIR} \"$@\"\n"
    );
    executable(&path("guard"), &guard);
    let host = Host {
        guard: path("guard"),
        variables: std::env::vars_os().collect(),
        open_files: None,
        database: None,
        warm: Warm::default(),
        worktrees: Worktrees::new(path("trees")),
        git_limits: GitLimits::default(),
        workspaces: Workspaces::default(),
    };
    let ended = Arc::new(AtomicUsize::new(0));
    let about = sabir_agents::coding_program(Kind::ClaudeCode);
    let agent = ProgramAgent::new("claude", settings(&path("program"), &path("work")), about, host);
    let hosted = Hosted::new(AgentId::parse("claude").unwrap(), Arc::new(Counted(agent, Arc::clone(&ended))));
    let engine = Builder::new(Arc::new(MemoryStore::new())).agent(hosted).start().await.unwrap();

    let task = send(&engine, "go", None, Delivery::WhenSettled).await;
    assert_eq!(task.status.state, State::InputRequired);
    let pid = fs::read_to_string(path("work/pids")).unwrap().trim().to_owned();
    until("it is put to sleep", || !Path::new(&format!("/proc/{pid}")).exists()).await;
    fs::write(path("hold"), "").unwrap();
    send(&engine, "yes", Some(&task), Delivery::Immediately).await;
    until("it is being resumed", || path("held").exists()).await;

    let cancel = Cancel { agent: None, task: task.id.clone(), metadata: None, on_finished: OnFinishedCancel::Refuse };
    let canceled = engine.call(&Caller::anonymous(), Call::Cancel(cancel)).await.unwrap();
    let Answer::Task(canceled) = canceled else { panic!("a task is expected") };
    assert_eq!(canceled.status.state, State::Canceled);
    assert_eq!(ended.load(Ordering::Relaxed), 1, "the run has ended by itself and was not dropped");
    fs::remove_file(path("hold")).unwrap();
    assert_eq!(fs::read_to_string(path("work/pids")).unwrap().lines().count(), 1, "nothing was resumed");
}
