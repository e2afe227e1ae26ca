//! A program that is resumed for an answer: a cancel works while it is being started. The engine is in this process, where
//! the guard can be held up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sabir_agents::ProgramAgent;
use sabir_agents::program::{Host, Kind, Mode, Settings};
use sabir_engine::{About, Agent, AgentFuture, Answer, Turn};
use sabir_model::{Call, Caller, Cancel, Delivery, OnFinishedCancel, State};

use crate::{SABIR, in_process};

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

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_cancel_works_while_the_program_is_being_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("work")).unwrap();
    executable(&path("program"), PROGRAM);
    // It works in the workspace, as its program does.
    let guard = format!(
        "#!/bin/sh\nif [ -e ../hold ]; then touch ../held; while [ -e ../hold ]; do sleep 0.05; done; fi\nexec {SABIR} \"$@\"\n"
    );
    executable(&path("guard"), &guard);
    let host = Host { guard: path("guard"), ..in_process::host(path("trees")) };
    let ended = Arc::new(AtomicUsize::new(0));
    let about = sabir_agents::coding_program(Kind::ClaudeCode);
    let settings = Settings {
        hibernate_after: Some(Duration::from_millis(100)),
        ..in_process::settings(Kind::ClaudeCode, Mode::Duplex, &path("program"), &path("work"))
    };
    let agent = ProgramAgent::new("prog", settings, about, host);
    let engine = in_process::engine(Counted(agent, Arc::clone(&ended))).await;

    let task = in_process::send(&engine, "go", None, Delivery::WhenSettled).await;
    assert_eq!(task.status.state, State::InputRequired);
    let pid = fs::read_to_string(path("work/pids")).unwrap().trim().to_owned();
    until("it is put to sleep", || !Path::new(&format!("/proc/{pid}")).exists()).await;
    fs::write(path("hold"), "").unwrap();
    in_process::send(&engine, "yes", Some(&task), Delivery::Immediately).await;
    until("it is being resumed", || path("held").exists()).await;

    let cancel = Cancel { agent: None, task: task.id.clone(), metadata: None, on_finished: OnFinishedCancel::Refuse };
    let canceled = engine.call(&Caller::anonymous(), Call::Cancel(cancel)).await.unwrap();
    let Answer::Task(canceled) = canceled else { panic!("a task is expected") };
    assert_eq!(canceled.status.state, State::Canceled);
    assert_eq!(ended.load(Ordering::Relaxed), 1, "the run has ended by itself and was not dropped");
    fs::remove_file(path("hold")).unwrap();
    assert_eq!(fs::read_to_string(path("work/pids")).unwrap().lines().count(), 1, "nothing was resumed");
}
