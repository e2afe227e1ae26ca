//! One turn of a program: its folder, its prompt and files, and what it leaves behind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sabir_engine::{AgentError, Outcome, ProgramCredential, Turn};
use sabir_model::{Artifact, Base64, Content, Part, TraceContext};
use tokio::time::Instant;

use super::Host;
use super::blocking::{self, NoAnswer, blocking, blocking_in};
use super::files::{self, Taken};
use super::invocation::{Invocation, invocation};
use super::lost_question::{ANSWER_UNUSED, SavedAnswer};
use super::memory::{self, Memories, Memory, MemoryKey};
use super::project;
use super::publisher::Publisher;
use super::reuse_key::ReuseKey;
use super::run::{KeepWarm, ProgramOrigin, Run, RunEnd, RunState};
use super::sanitize_prompt::sanitize_prompt;
use super::secrets::{Masking, Secrets};
use super::settings::{Isolation, Settings, SharedWorkspace};
use super::uploads::{self, Uploads};
use super::warm::{RunningProgram, WarmKey};
use super::workspace;
use super::worktree::{TaskName, Worktree};
use crate::adapter::Adapter;
use crate::kinds::{ProjectSettings, ResumeDelay, UNKNOWN_SYNTAX};
use crate::process::{self, Child, Descendants, Launch, SHOWS_DESCENDANTS, environment};
use crate::prompt::{AgentsDoor, CREDENTIAL_VARIABLE, ProjectRules, Prompt, Workspace};

pub(super) async fn work(
    memory_key: MemoryKey<'_>,
    settings: &Settings,
    host: &Host,
    turn: &Turn,
    model: Option<String>,
) -> Result<Outcome, AgentError> {
    tokio::select! {
        biased;
        () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
        () = process::until_leftovers_are_gone() => {}
    }
    let memories = Memories::parse(turn.memory().await?.as_deref());
    let base = match base(memory_key, settings, turn, &memories).await {
        Ok(Ok(folder)) => folder,
        Ok(Err(refusal)) => return Ok(Outcome::Rejected(vec![Part::text(refusal)])),
        Err(error) => return Err(no_answer(turn, error)),
    };
    host.workspaces.note(&base, settings.isolation);
    let worktree = match settings.isolation {
        Isolation::Shared => None,
        Isolation::Worktree => {
            let whose = TaskName {
                owner: turn.owner(),
                agent: turn.agent().as_str(),
                task: turn.task().as_str(),
                number: turn.number(),
            };
            let opening = Worktree::open(host, &base, whose);
            let opened = tokio::select! {
                opened = opening => opened,
                () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
            };
            Some(opened.map_err(|error| {
                tracing::error!(%error, task = %turn.task(), "no worktree can be made for a task");
                let why = error.for_caller().unwrap_or_else(|| "the server's log says why".into());
                AgentError::for_caller(format!("no worktree can be made for the task; {why}"))
            })?)
        }
    };
    let folder = worktree.as_ref().map_or_else(|| base.clone(), |tree| tree.folder.clone());
    let mut folders = TurnFolders { folder, base, worktree };
    let ended = run_in_folder(memory_key, settings, host, turn, model, &mut folders, memories).await;
    if let Some(worktree) = folders.worktree {
        // A stopped task may have changed something, too.
        hand_over_work(turn, worktree).await;
    }
    ended
}

/// The folder that the turn must have for itself, if it does not share its folder with others.
pub(super) async fn working_tree(memory_key: MemoryKey<'_>, settings: &Settings, turn: &Turn) -> Option<PathBuf> {
    match (settings.shared_workspace, settings.isolation) {
        (SharedWorkspace::Parallel, _) | (_, Isolation::Worktree) => None,
        (SharedWorkspace::Queue, Isolation::Shared) => {
            let memory = turn.memory().await.ok()?;
            // A turn without a valid folder does not wait; it is refused when it runs.
            base(memory_key, settings, turn, &Memories::parse(memory.as_deref())).await.ok()?.ok()
        }
    }
}

/// Publishes what the turn has changed. The work itself is kept whatever happens here.
async fn hand_over_work(turn: &Turn, worktree: Worktree) {
    let place = worktree.work_ref();
    let kept = worktree.keep();
    let too_late = async {
        turn.cancelled().await;
        tokio::time::sleep(stop_budget(turn).saturating_sub(LAST_UPDATES).min(DIFF_LIMIT)).await;
    };
    tokio::select! {
        biased;
        kept = kept => match kept {
            Ok(Ok(diff)) => hand_over_diff(turn, diff).await,
            kept => {
                let why = kept.ok().and_then(|kept| kept.err()?.for_caller());
                let why = why.unwrap_or_else(|| "the server's log says why".into());
                turn.progress(format!("The changes cannot be told; {why}")).await;
            }
        },
        () = too_late => {
            turn.progress(format!("Git is not done with the changes yet; they will be found in {place}")).await;
        }
    }
}

/// The folder of the conversation, or why there is none.
async fn base(
    memory_key: MemoryKey<'_>,
    settings: &Settings,
    turn: &Turn,
    memories: &Memories,
) -> Result<Result<PathBuf, String>, NoAnswer> {
    let begun = memories.of(memory_key).map(|memory| memory.folder.clone());
    let wish = workspace::chosen([turn.message().metadata.as_ref(), turn.metadata()]);
    let (workspace, roots) = (settings.workspace.clone(), settings.roots.clone());
    let find = move || {
        let folder = workspace::folder(&workspace, &roots, wish.as_deref())?;
        if wish.is_some() {
            return Ok(folder);
        }
        // A conversation stays where it was begun, as long as that is still allowed.
        let begun = begun.and_then(|begun| workspace::folder(&workspace, &roots, begun.to_str()).ok());
        Ok(begun.unwrap_or(folder))
    };
    blocking_in(&settings.workspace, blocking::SHORT, find).await
}

/// The workspace may be on a mount that does not respond.
fn no_answer(turn: &Turn, error: NoAnswer) -> AgentError {
    tracing::error!(%error, task = %turn.task(), "the workspace of a task does not answer");
    AgentError::for_caller("the agent's workspace does not answer; the server's log says more")
}

/// How long a cancel waits for the diff after the program has ended.
const DIFF_LIMIT: Duration = Duration::from_secs(1);
/// How long a stopped agent needs for its last updates.
const LAST_UPDATES: Duration = Duration::from_millis(250);

/// The time that is left until a turn must have stopped; all steps of the stop share it.
pub(super) fn stop_budget(turn: &Turn) -> Duration {
    let deadline = turn.stop_deadline();
    deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()))
}

/// The folders of a turn.
struct TurnFolders {
    /// The folder of the conversation.
    base: PathBuf,
    /// Where the program works: the same folder, or a worktree of it.
    folder: PathBuf,
    worktree: Option<Worktree>,
}

async fn hand_over_diff(turn: &Turn, diff: Vec<u8>) {
    if diff.is_empty() {
        return;
    }
    // Git treats some invalid UTF-8 as text.
    let mut part = match String::from_utf8(diff) {
        Ok(diff) => Part::text(diff),
        Err(bytes) => Content::Bytes(Base64::encode(bytes.as_bytes())).into(),
    };
    part.filename = Some("changes.diff".into());
    part.media_type = Some("text/x-diff".into());
    let mut artifact = Artifact::new(turn.new_artifact_id(), vec![part]);
    artifact.name = Some("changes".into());
    artifact.description = Some("What the task changed, as a patch for `git apply`".into());
    turn.artifact(artifact).await;
}

async fn run_in_folder(
    memory_key: MemoryKey<'_>,
    settings: &Settings,
    host: &Host,
    turn: &Turn,
    model: Option<String>,
    folders: &mut TurnFolders,
    memories: Memories,
) -> Result<Outcome, AgentError> {
    let folder = folders.folder.clone();
    let folder = &folder;
    let memory = memories.of(memory_key);
    let saved_answer = match turn.interrupted_question() {
        None => None,
        Some(question) => match SavedAnswer::of(settings, memory, question, turn.message()) {
            Some(kept) => Some(kept),
            None => return Ok(Outcome::Failed(vec![Part::text(ANSWER_UNUSED)])),
        },
    };
    let prompt = Prompt {
        folder: folder.clone(),
        session: memory.map(|memory| memory.session.clone()),
        model,
        instructions: settings.instructions.clone(),
        approve: settings.approve,
        as_root: rustix::process::geteuid().is_root(),
        trusts_prompts: settings.trusts_prompts,
        workspace: workspace_of(settings, turn, folder).await?,
        agents_door: settings.delegate.as_ref().and(host.agents_url.get()).map(|url| AgentsDoor {
            url: url.clone(),
            bridge: host.bridge.clone(),
            // Not known before it is known which program works.
            credential: String::new(),
        }),
        ..Prompt::default()
    };
    let reuse_key = ReuseKey::new(settings, host, &prompt);
    let warm_key = warm_key(memory_key, turn);
    let keep = || KeepWarm {
        warm: host.warm.clone(),
        key: warm_key.clone(),
        reuse_key: reuse_key.clone(),
        limit: settings.keep_warm.unwrap_or_default(),
    };
    // A worktree is removed after its turn, so its program cannot stay. Neither can one on a system that does not show which
    // processes a program has left running.
    let keeps = settings.keep_warm.is_some() && settings.isolation == Isolation::Shared && SHOWS_DESCENDANTS;
    let waiting = match keeps {
        true => tokio::select! {
            biased;
            () = turn.cancelled() => return Ok(Outcome::Canceled(Vec::new())),
            waiting = host.warm.take(&warm_key, &reuse_key) => waiting,
        },
        false => None,
    };
    let waiting = match waiting {
        // A saved answer belongs to a turn that was interrupted, and only a newly resumed program continues that turn.
        Some(program) if saved_answer.is_some() => {
            program.end().await;
            None
        }
        waiting => waiting,
    };
    if waiting.is_none() && !wait_for_session(settings, turn, memory).await {
        return Ok(Outcome::Canceled(Vec::new()));
    }
    let may_ask = settings.delegate.as_ref().filter(|_| prompt.agents_door.is_some());
    let credential = may_ask.map(|_| {
        let own = waiting.as_ref().and_then(|program| program.credential.clone());
        own.unwrap_or_else(|| Arc::new(turn.program_credential()))
    });
    // It is worth something until the turn is over.
    let _lent = may_ask
        .zip(credential.as_ref())
        .map(|(delegate, credential)| credential.lend(turn.delegate(delegate.agents())));
    let agents_door = prompt.agents_door.clone().zip(credential.as_ref());
    let agents_door =
        agents_door.map(|(door, credential)| AgentsDoor { credential: credential.text().to_owned(), ..door });
    let Taken { text, files } = take_in_files(settings, host, turn, folder).await?;
    let new_id = || Some(turn.new_artifact_id().as_str().to_owned());
    let prompt = Prompt {
        id: new_id(),
        text: if settings.trusts_prompts { text } else { sanitized_text(settings, turn, folder, text).await? },
        files: files.iter().map(|file| file.path.clone()).collect(),
        agents_door,
        ..prompt
    };
    // If the program is killed while a question is open, the resumed turn continues without the message.
    let resumed = Prompt { text: String::new(), files: Vec::new(), resumes_turn: true, ..prompt.clone() };
    let starter = || Starter {
        settings,
        host,
        turn,
        folder: folder.clone(),
        resumed: resumed.clone(),
        credential: credential.clone(),
    };
    let invocation = match saved_answer {
        None => invocation(settings, prompt.clone(), files.clone()),
        Some(_) => invocation(settings, resumed.clone(), Vec::new()),
    };
    let shown = [invocation.environment.clone(), credential_variable(credential.as_deref())].concat();
    let secrets = Secrets::of(&environment_of(settings, host, shown));
    let mut saved_answer = saved_answer;
    let mut run =
        |RunningProgram { child, adapter, own_processes, credential }, first, origin, publisher, memories| Run {
            memory_key,
            settings,
            turn,
            base: folders.base.clone(),
            starter: starter(),
            adapter,
            child,
            own_processes,
            credential,
            origin,
            publisher,
            memories,
            masking: Masking::new(secrets.clone()),
            keep: keeps.then(keep),
            state: RunState::new(first, saved_answer.take()),
        };
    let (mut publisher, mut memories) = (Publisher::new(turn, folder.clone()), memories);
    if let Some(mut program) = waiting {
        program.child.hold(Some(Box::new(turn.hold())));
        let awaits_it = program.catch_up().await;
        match awaits_it.then(|| program.adapter.next_turn(&Prompt { id: new_id(), ..prompt.clone() }, &files)).flatten()
        {
            Some(first) => {
                program.child.reset_output_limit();
                match run(program, first, ProgramOrigin::Warm, publisher, memories).finish().await {
                    RunEnd::Turn(outcome) => return outcome,
                    RunEnd::BeforeItsTurn { publisher: same, memories: known } => {
                        (publisher, memories) = (*same, known)
                    }
                }
            }
            None => program.end().await,
        }
        if !wait_for_session(settings, turn, memories.of(memory_key)).await {
            return Ok(Outcome::Canceled(Vec::new()));
        }
    }
    let Some((child, mut adapter)) = starter().start(invocation).await? else {
        return Ok(Outcome::Canceled(Vec::new()));
    };
    if let Some(worktree) = &mut folders.worktree {
        worktree.is_used_until(child.ended());
    }
    let own_processes = if keeps { child.descendants().await } else { Descendants::default() };
    let first = adapter.begin();
    let program = RunningProgram { child, adapter, own_processes, credential: credential.clone() };
    match run(program, first, ProgramOrigin::Started, publisher, memories).finish().await {
        RunEnd::Turn(outcome) => outcome,
        RunEnd::BeforeItsTurn { .. } => Err("the program ended before its turn".into()),
    }
}

/// Waits until the session can be resumed. `false`: the turn was canceled meanwhile.
async fn wait_for_session(settings: &Settings, turn: &Turn, memory: Option<&Memory>) -> bool {
    let resume_delay = settings.mode_info().map_or(ResumeDelay::None, |mode| mode.resume_delay);
    let rest = memory.and_then(|memory| memory::rest(resume_delay, memory, SystemTime::now()));
    let Some(rest) = rest else { return true };
    turn.progress(format!("The session began a moment ago; it can be resumed in {} s", rest.as_secs())).await;
    turn.wait(rest).await;
    !turn.is_cancelled()
}

fn warm_key(memory_key: MemoryKey<'_>, turn: &Turn) -> WarmKey {
    WarmKey { agent: memory_key.agent.to_owned(), owner: turn.owner().clone(), context: turn.context().clone() }
}

/// Starts the program of a turn, and starts it again when it was put to sleep.
pub(super) struct Starter<'t> {
    settings: &'t Settings,
    host: &'t Host,
    turn: &'t Turn,
    folder: PathBuf,
    /// The prompt of a resumed turn, without its session.
    resumed: Prompt,
    /// With which the program asks other agents, if it may.
    credential: Option<Arc<ProgramCredential>>,
}

impl Starter<'_> {
    /// `None`: the turn was canceled meanwhile. A program that was started by then is ended.
    async fn start(&self, invocation: Invocation) -> Result<Option<(Child, Box<dyn Adapter>)>, AgentError> {
        let Invocation { command, environment: own, adapter } = invocation;
        let (program, first) = command.split_first().ok_or("no program is configured")?;
        let own = [own, turn_variables(self.turn), credential_variable(self.credential.as_deref())].concat();
        let mut environment = environment_of(self.settings, self.host, own);
        if self.credential.is_some() {
            reach_loopback_directly(&mut environment);
        }
        let launch = Launch {
            guard: self.host.guard.clone(),
            program: program.into(),
            arguments: first.iter().map(OsString::from).collect(),
            folder: self.folder.clone(),
            environment,
            max_line: self.settings.max_line,
            max_output: self.settings.max_output,
            stop_grace: self.settings.stop_grace,
            open_files: self.host.open_files,
        };
        // The folder stays reserved until the program is gone, even if the turn is dropped.
        let hold = Box::new(self.turn.hold());
        let started = tokio::select! {
            biased;
            () = self.turn.cancelled() => return Ok(None),
            started = launch.start_holding(Some(hold)) => started,
        };
        let child = started.map_err(|error| {
            // Callers must not learn where programs are installed.
            tracing::error!(%error, task = %self.turn.task(), "a program cannot be started");
            let name = Path::new(program).file_name().unwrap_or_default().display();
            match error.is_too_long() {
                true => AgentError::for_caller(format!("the message is longer than the program {name} can be told")),
                false => {
                    AgentError::for_caller(format!("the program {name} cannot be started; the server's log says why"))
                }
            }
        })?;
        Ok(Some((child, adapter)))
    }

    /// Resumes the turn that this session was in. `None`: the turn was canceled meanwhile.
    pub async fn resume(&self, session: String) -> Result<Option<(Child, Box<dyn Adapter>)>, AgentError> {
        let prompt = Prompt { session: Some(session), ..self.resumed.clone() };
        self.start(invocation(self.settings, prompt, Vec::new())).await
    }
}

/// The most files in one message. No person sends more.
const MOST_FILES: usize = 1_000;

/// Writes the files of the message into the workspace, where they stay until the task is over.
async fn take_in_files(settings: &Settings, host: &Host, turn: &Turn, folder: &Path) -> Result<Taken, AgentError> {
    let is_file = |part: &&Part| matches!(part.content, Content::Bytes(_));
    if turn.message().parts.iter().filter(is_file).count() > MOST_FILES {
        return Err(AgentError::for_caller(format!("a message may have at most {MOST_FILES} files")));
    }
    let database = host.database.as_deref();
    uploads::sweep(folder, database, turn.number(), &turn.task_lookup()).await;
    let mut uploads = match turn.number() {
        Some(number) if !settings.keep_files => Uploads::new(folder, database, number),
        _ => Uploads::kept(folder, turn.task().as_str()),
    };
    let (message, place) = (turn.message().clone(), folder.to_owned());
    let taking = blocking(blocking::SHORT, move || {
        let taken = files::take_in(&message, &place, &mut uploads);
        (taken, uploads)
    });
    let (taken, uploads) = taking.await.map_err(|error| no_answer(turn, error))?;
    // Also after a turn without files: an earlier turn may have left some.
    let end = turn.task_end().await;
    tokio::spawn(async move {
        if end.await {
            let _ = blocking(blocking::LONG, move || uploads.remove()).await;
        }
    });
    taken.map_err(|error| {
        tracing::error!(%error, task = %turn.task(), "a file of a message cannot be put into the workspace");
        AgentError::for_caller("a file of the message cannot be put into the workspace; the server's log says why")
    })
}

/// The caller's text, sanitized.
async fn sanitized_text(settings: &Settings, turn: &Turn, folder: &Path, text: String) -> Result<String, AgentError> {
    let syntax = settings.kind.info().mode_info(settings.mode).map_or(UNKNOWN_SYNTAX, |mode| mode.prompts);
    let folder = folder.to_owned();
    let made = blocking(blocking::SHORT, move || sanitize_prompt(&text, syntax, &folder).into_owned());
    made.await.map_err(|error| no_answer(turn, error))
}

async fn workspace_of(settings: &Settings, turn: &Turn, folder: &Path) -> Result<Workspace, AgentError> {
    let (project, folder) = (settings.kind.info().project, folder.to_owned());
    if settings.trusts_workspace {
        return Ok(Workspace::Trusted);
    }
    let read = blocking(blocking::SHORT, move || match project {
        ProjectSettings::ClaudeCode => {
            Workspace::Untrusted { rules: project::claude_rules(&folder), instructions: None }
        }
        ProjectSettings::Codex => {
            Workspace::Untrusted { rules: ProjectRules::default(), instructions: project::instructions(&folder) }
        }
        ProjectSettings::AsTheyAre => Workspace::default(),
    });
    read.await.map_err(|error| no_answer(turn, error))
}

/// What a program is told of the turn that starts it: the ids of the task and its conversation, and the trace. One that is
/// kept for later turns keeps the values of its first.
fn turn_variables(turn: &Turn) -> Vec<(String, String)> {
    let trace = turn.trace();
    let variables = [
        ("SABIR_TASK_ID", Some(turn.task().as_str())),
        ("SABIR_CONTEXT_ID", Some(turn.context().as_str())),
        ("TRACEPARENT", trace.map(TraceContext::traceparent)),
        ("TRACESTATE", trace.and_then(TraceContext::tracestate)),
    ];
    // The operating system takes no zero byte there.
    let usable =
        variables.into_iter().filter_map(|(name, value)| Some((name, value.filter(|text| !text.contains('\0'))?)));
    usable.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn credential_variable(credential: Option<&ProgramCredential>) -> Vec<(String, String)> {
    credential.map(|credential| (CREDENTIAL_VARIABLE.to_owned(), credential.text().to_owned())).into_iter().collect()
}

/// The server is on this machine, whatever proxy the program uses for the rest.
fn reach_loopback_directly(environment: &mut Vec<(OsString, OsString)>) {
    const LOOPBACK: &str = "127.0.0.1,localhost,::1";
    let is_proxy = |name: &OsString| name.to_str().is_some_and(|name| name.to_ascii_lowercase().ends_with("_proxy"));
    if !environment.iter().any(|(name, _)| is_proxy(name)) {
        return;
    }
    for name in ["NO_PROXY", "no_proxy"] {
        match environment.iter_mut().rfind(|(known, _)| known == name) {
            Some((_, hosts)) if hosts.is_empty() => *hosts = LOOPBACK.into(),
            Some((_, hosts)) => hosts.push(format!(",{LOOPBACK}")),
            None => environment.push((name.into(), LOOPBACK.into())),
        }
    }
}

pub(super) fn environment_of(
    settings: &Settings,
    host: &Host,
    own: Vec<(String, String)>,
) -> Vec<(OsString, OsString)> {
    let known = settings.info().pass.iter().map(|name| (*name).to_owned());
    let pass: Vec<String> = known.chain(settings.pass.iter().cloned()).collect();
    // The operator's variables come last and win.
    let fixed = [own, settings.environment.clone()].concat();
    environment(host.variables.iter().cloned(), &pass, &fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_reached_past_every_proxy() {
        let loopback = "127.0.0.1,localhost,::1";
        for (before, expected) in [
            ("PATH=/bin", "PATH=/bin".to_owned()),
            ("https_proxy=http://p", format!("https_proxy=http://p NO_PROXY={loopback} no_proxy={loopback}")),
            (
                "HTTP_PROXY=http://p NO_PROXY=a.example no_proxy=",
                format!("HTTP_PROXY=http://p NO_PROXY=a.example,{loopback} no_proxy={loopback}"),
            ),
        ] {
            let mut environment: Vec<(OsString, OsString)> =
                before.split(' ').filter_map(|each| each.split_once('=')).map(|(a, b)| (a.into(), b.into())).collect();
            reach_loopback_directly(&mut environment);
            let after: Vec<String> =
                environment.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
            assert_eq!(after.join(" "), expected);
        }
    }
}
