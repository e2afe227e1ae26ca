//! A run that is dropped while its program lives: nobody else works in its folder before the program is gone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sabir_agents::program::{Kind, Mode, ProgramAgent, Settings};
use sabir_agents::prompt::Approve;
use sabir_engine::{About, Agent, AgentFuture, Outcome, Turn, WorkingTreeFuture};
use sabir_model::{Delivery, State};
use sabir_testkit::scripted::ScriptedAgent;

use crate::in_process;

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
        approve: Approve::All,
        tell_stderr: true,
        ..in_process::settings(Kind::Command, Mode::OneShot, &program, folder)
    };
    let about = ScriptedAgent::new(|_| async { Ok(Outcome::Completed(Vec::new())) }).about();
    ProgramAgent::new("prog", settings, about, in_process::host(folder.join("worktrees")))
}

#[tokio::test]
async fn the_folder_of_a_dropped_run_is_free_when_its_program_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Dropping { program: program_agent(folder.path()), working: folder.path().join("first") };
    let engine = in_process::engine(agent).await;
    for (words, expected) in [("drop", ""), ("next", "alone")] {
        let task = in_process::send(&engine, words, None, Delivery::WhenSettled).await;
        let text: String =
            task.artifacts.iter().flat_map(|made| &made.parts).filter_map(|part| part.as_text()).collect();
        assert_eq!((task.status.state, text.trim_end()), (State::Completed, expected), "{words}");
    }
    engine.stop_now().await;
}
