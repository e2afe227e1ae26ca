//! A run that is dropped while its program lives: nobody else works in its folder before the program is gone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sabir_agents::program::{
    GitLimits, Host, Isolation, Kind, Mode, ProgramAgent, PromptBy, Settings, SharedWorkspace, Warm, Workspaces,
    Worktrees,
};
use sabir_agents::protocol::Approve;
use sabir_engine::{About, Agent, AgentFuture, Answer, Builder, Hosted, Outcome, Turn, WorkingTreeFuture};
use sabir_model::{AgentId, Birth, Call, Caller, Message, MessageId, Part, Role, Send, State};
use sabir_store::MemoryStore;
use sabir_testkit::scripted::ScriptedAgent;

use crate::SABIR;

/// The first run does not end; the next one says whether the first still lives.
const PROGRAM: &str = "#!/bin/sh
if [ -s first ]; then
    if kill -0 $(cat first); then echo together; else echo alone; fi
    exit
fi
trap '' TERM
echo $$ > number
mv number first
while :; do sleep 0.1; done
";

/// Drops the run of its program as soon as that works, if it is told `drop`.
struct Dropping {
    program: ProgramAgent,
    working: PathBuf,
}

impl Agent for Dropping {
    fn about(&self) -> About {
        self.program.about()
    }

    fn run(&self, turn: Turn) -> AgentFuture<'_> {
        Box::pin(async move {
            let is_dropped = turn.message().text() == "drop";
            let working = async {
                while !is_dropped || !self.working.exists() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::select! {
                outcome = self.program.run(turn) => outcome,
                () = working => Ok(Outcome::Completed(Vec::new())),
            }
        })
    }

    fn working_tree<'a>(&'a self, turn: &'a Turn) -> WorkingTreeFuture<'a> {
        self.program.working_tree(turn)
    }
}

fn program_agent(folder: &Path) -> ProgramAgent {
    let program = folder.join("program");
    fs::write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let settings = Settings {
        kind: Kind::Command,
        mode: Mode::OneShot,
        command: Some(vec![program.to_str().unwrap().to_owned()]),
        arguments: Vec::new(),
        model: None,
        instructions: None,
        workspace: folder.to_owned(),
        roots: Vec::new(),
        isolation: Isolation::Shared,
        shared_workspace: SharedWorkspace::Queue,
        approve: Approve::All,
        asks_again_within: Duration::from_secs(60),
        approval_timeout: None,
        hibernate_after: None,
        environment: Vec::new(),
        pass: Vec::new(),
        tell_stderr: true,
        keep_files: false,
        prompt_by: PromptBy::default(),
        approval_pattern: None,
        approval_response: "y".to_owned(),
        trusts_prompts: false,
        trusts_workspace: false,
        max_line: 1024,
        max_output: 1 << 20,
        stop_grace: Duration::from_secs(2),
        keep_warm: None,
    };
    let host = Host {
        guard: SABIR.into(),
        variables: std::env::vars_os().collect(),
        open_files: None,
        database: None,
        warm: Warm::default(),
        worktrees: Worktrees::new(folder.join("worktrees")),
        git_limits: GitLimits::default(),
        workspaces: Workspaces::default(),
    };
    let about = ScriptedAgent::new(|_| async { Ok(Outcome::Completed(Vec::new())) }).about();
    ProgramAgent::new("dropping", settings, about, host)
}

#[tokio::test]
async fn the_folder_of_a_dropped_run_is_free_when_its_program_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Dropping { program: program_agent(folder.path()), working: folder.path().join("first") };
    let hosted = Hosted::new(AgentId::parse("dropping").unwrap(), Arc::new(agent));
    let engine = Builder::new(Arc::new(MemoryStore::new())).agent(hosted).start().await.unwrap();
    for (words, expected) in [("drop", ""), ("next", "alone")] {
        let message = Message::new(MessageId::parse(words).unwrap(), Role::User, vec![Part::text(words)]);
        let send = Call::Send(Box::new(Send::new(message, Birth(10))));
        let Answer::Task(task) = engine.call(&Caller::anonymous(), send).await.unwrap() else { panic!("a task") };
        let text: String =
            task.artifacts.iter().flat_map(|made| &made.parts).filter_map(|part| part.as_text()).collect();
        assert_eq!((task.status.state, text.trim_end()), (State::Completed, expected), "{words}");
    }
    engine.stop_now().await;
}
