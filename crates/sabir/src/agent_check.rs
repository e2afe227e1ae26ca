//! `sabir agents --check`: asks each configured program for a word, and says why it does not answer.
//!
//! The word is asked for as a caller would ask: of an engine, through the same agent that `serve` hosts. What differs keeps
//! the check harmless and short: the program may use no tool, it has a time limit, and coding programs work in an empty
//! folder.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use sabir_agents::kinds::Questions;
use sabir_agents::process;
use sabir_agents::program::settings::{Isolation, Kind};
use sabir_agents::prompt::Approve;
use sabir_engine::{Answer, Batch, Builder, Engine};
use sabir_model::{Call, Caller, Delivery, Event, Message, MessageId, Part, Role, Send, State};
use sabir_store::MemoryStore;
use serde_json::json;

use crate::agents::{object, table};
use crate::config::{AgentConfig, AgentKind, Audience, Config, LoadedConfig, Problems};
use crate::diagnosis::Diagnosis;
use crate::hosting::{self, Surroundings};

/// The longest that a program may take for a word. Some need a quarter of a minute to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The same for one that has said what its trouble is, and only tries again.
const PATIENCE_WITH_PROBLEM: Duration = Duration::from_secs(15);

const QUESTION: &str = "This is a check whether you can be reached. Use no tools. Answer with the one word: ready";

/// What a program may take to end when its time is up.
const STOPPING: Duration = Duration::from_secs(10);

/// What killing the programs that are left may take.
const LAST_KILL: Duration = Duration::from_secs(1);

/// What of a program's words is shown.
const LONGEST: usize = 300;

/// How the check of one agent came out.
pub struct Checked {
    id: String,
    kind: &'static str,
    mode: &'static str,
    program: String,
    /// Whether callers are asked before the program acts.
    asks: Asks,
    seconds: f64,
    outcome: Result<String, CheckFailure>,
}

struct CheckFailure {
    diagnosis: Diagnosis,
    said: String,
    remedy: String,
}

enum Asks {
    Yes,
    /// The configuration has decided for the callers.
    Decided(&'static str),
    /// The mode cannot ask.
    Cannot,
}

/// Checks every configured program, or the one of this id; different ones at the same time.
pub fn check(loaded: &LoadedConfig, surroundings: &Surroundings, only: Option<&str>) -> anyhow::Result<Vec<Checked>> {
    let all: Vec<&AgentConfig> = loaded.config.all_agents().collect();
    if let Some(id) = only.filter(|id| !all.iter().any(|agent| agent.id == *id)) {
        let known: Vec<&str> = all.iter().map(|agent| agent.id.as_str()).collect();
        return Err(Problems(vec![format!("there is no agent {id:?} to check; there are {}", known.join(", "))]).into());
    }
    let mut surroundings = surroundings.clone();
    // Tasks of the check are in memory; those of the database are a server's, and so are their files.
    surroundings.host.database = None;
    let mut by_kind: Vec<(Kind, Vec<Check>)> = Vec::new();
    for (place, agent) in all.into_iter().enumerate().filter(|(_, agent)| only.is_none_or(|id| agent.id == id)) {
        let AgentKind::Program(kind) = agent.kind else { continue };
        let check = Check { place, agent: agent.clone(), missing: loaded.first_missing(agent, &surroundings.machine) };
        match by_kind.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, checks)) => checks.push(check),
            None => by_kind.push((kind, vec![check])),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let (config, surroundings) = (Arc::new(loaded.config.clone()), Arc::new(surroundings));
    let checking: Vec<_> = by_kind
        .into_iter()
        .map(|(kind, checks)| {
            let (config, surroundings) = (config.clone(), surroundings.clone());
            runtime.spawn(async move {
                let mut checked = Vec::new();
                // One after the other: some programs prepare their home when they first run, and cannot do so twice at once.
                for Check { place, agent, missing } in checks {
                    checked.push((place, check_one(&agent, kind, missing, &config, &surroundings).await?));
                }
                anyhow::Ok(checked)
            })
        })
        .collect();
    let checked = runtime.block_on(async {
        let mut checked = Vec::new();
        for kind in checking {
            checked.extend(kind.await.context("a check broke off")??);
        }
        checked.sort_by_key(|(place, _)| *place);
        Ok(checked.into_iter().map(|(_, checked)| checked).collect())
    });
    drop(runtime);
    process::end_programs(LAST_KILL);
    checked
}

/// An agent to be checked, and its place in the configuration.
struct Check {
    place: usize,
    agent: AgentConfig,
    missing: Option<String>,
}

pub fn show(checked: &[Checked], audience: Audience) -> String {
    match audience {
        Audience::Person if checked.is_empty() => {
            "No program is configured, so there is nothing to check.\n".to_owned()
        }
        Audience::Person => {
            let mut out = table(&["id", "kind", "asks", "seconds", "outcome"], checked.iter().map(Checked::row));
            for checked in checked {
                if let Err(failure) = &checked.outcome {
                    let CheckFailure { diagnosis, said, remedy } = failure;
                    out += &format!("\n{}: {}\n  remedy:  {remedy}\n", checked.id, diagnosis.words());
                    if !said.is_empty() {
                        out += &format!("  it said: {said}\n");
                    }
                }
            }
            out
        }
        Audience::Program => {
            format!("[\n{}\n]\n", checked.iter().map(Checked::object).collect::<Vec<_>>().join(",\n"))
        }
    }
}

impl Checked {
    pub fn is_well(&self) -> bool {
        self.outcome.is_ok()
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The answer of the program; or what is wrong with it, and the remedy.
    pub fn verdict(&self) -> Result<&str, (&'static str, &str)> {
        match &self.outcome {
            Ok(answer) => Ok(answer),
            Err(failure) => Err((failure.diagnosis.words(), &failure.remedy)),
        }
    }

    fn row(&self) -> Vec<String> {
        let asks = match self.asks {
            Asks::Yes => "yes".to_owned(),
            Asks::Decided(approve) => format!("no, approve = \"{approve}\""),
            Asks::Cannot => format!("cannot in mode {}", self.mode),
        };
        let outcome = match &self.outcome {
            Ok(answer) => format!("answers: {answer}"),
            Err(failure) => failure.diagnosis.words().to_owned(),
        };
        vec![self.id.clone(), self.kind.to_owned(), asks, format!("{:.1}", self.seconds), outcome]
    }

    fn object(&self) -> String {
        let failure = self.outcome.as_ref().err();
        object(&[
            ("id", json!(self.id)),
            ("kind", json!(self.kind)),
            ("mode", json!(self.mode)),
            ("program", json!(self.program)),
            ("asks", json!(matches!(self.asks, Asks::Yes))),
            ("ok", json!(self.is_well())),
            ("seconds", json!((self.seconds * 10.0).round() / 10.0)),
            ("answer", json!(self.outcome.as_ref().ok())),
            ("trouble", json!(failure.map(|failure| failure.diagnosis.words()))),
            ("said", json!(failure.map(|failure| &failure.said))),
            ("remedy", json!(failure.map(|failure| &failure.remedy))),
        ])
    }
}

async fn check_one(
    agent: &AgentConfig,
    kind: Kind,
    missing: Option<String>,
    config: &Config,
    surroundings: &Surroundings,
) -> anyhow::Result<Checked> {
    let known = kind.info();
    let way = known.mode_info(agent.program.mode);
    let own = way.and_then(|way| way.program).unwrap_or_default();
    let program = agent.program.command.first().map_or(own, String::as_str).to_owned();
    let start = Instant::now();
    let outcome = match missing {
        Some(words) => Err((Diagnosis::NotInstalled, words)),
        None => ask_for_a_word(agent, kind, config, surroundings).await?,
    };
    let outcome = outcome.map_err(|(diagnosis, said)| {
        let remedy = match diagnosis {
            // It says what to do itself.
            Diagnosis::NotInstalled => said.clone(),
            _ => diagnosis.remedy(known, &program, agent.program.model.is_some()),
        };
        let said = if diagnosis == Diagnosis::NotInstalled { String::new() } else { one_line(&said) };
        CheckFailure { diagnosis, said, remedy }
    });
    let asks = match agent.program.approve {
        _ if way.is_none_or(|way| way.questions == Questions::Never) => Asks::Cannot,
        Approve::Ask => Asks::Yes,
        Approve::All => Asks::Decided("all"),
        Approve::None => Asks::Decided("none"),
    };
    Ok(Checked {
        id: agent.id.clone(),
        kind: known.name,
        mode: agent.program.mode.name(),
        program,
        asks,
        seconds: start.elapsed().as_secs_f64(),
        outcome: outcome.map(|answer| one_line(&answer)),
    })
}

/// The answer of the program; or the diagnosis and what the program printed.
type CheckOutcome = Result<String, (Diagnosis, String)>;

async fn ask_for_a_word(
    agent: &AgentConfig,
    kind: Kind,
    config: &Config,
    surroundings: &Surroundings,
) -> anyhow::Result<CheckOutcome> {
    let empty = EmptyFolder::new(&agent.id)?;
    let harmless = harmless(agent, kind, empty.path());
    let hosted = hosting::host_one(&harmless, config, surroundings)?;
    let engine = Builder::new(Arc::new(MemoryStore::new())).agent(hosted).start().await?;
    let outcome = read_answer(&engine).await;
    // Whatever the program still does ends here.
    engine.stop_now().await;
    drop(empty);
    outcome
}

/// The same agent with no permissions, no time to waste, and nothing to break.
fn harmless(agent: &AgentConfig, kind: Kind, folder: &Path) -> AgentConfig {
    let mut agent = agent.clone();
    agent.timeout = Some(PATIENCE);
    agent.idle_timeout = None;
    agent.program.approve = Approve::None;
    agent.program.isolation = Isolation::Shared;
    agent.program.tell_stderr = Some(true);
    // It is gone when the check is over.
    agent.program.keep_warm = Duration::ZERO;
    agent.program.hibernate_after = None;
    // A program of the operator's own may find what it needs only where it works.
    if !matches!(kind, Kind::Generic | Kind::Command | Kind::Acp) {
        agent.program.workspace = folder.to_owned();
    }
    // It tries again for minutes otherwise.
    if kind == Kind::ClaudeCode {
        agent.program.environment.insert(0, ("CLAUDE_CODE_MAX_RETRIES".to_owned(), "1".to_owned()));
    }
    agent
}

async fn read_answer(engine: &Engine) -> anyhow::Result<CheckOutcome> {
    let id = MessageId::parse("check").map_err(|why| anyhow!("the id of the message {why}"))?;
    let message = Message::new(id, Role::User, vec![Part::text(QUESTION)]);
    let send = Send { delivery: Delivery::Stream, ..Send::new(message, sabir_wire::NEWEST_BIRTH) };
    let answer = engine.call(&Caller::anonymous(), Call::Send(Box::new(send))).await?;
    let Answer::Stream(mut stream) = answer else { return Err(anyhow!("a program answers with a task")) };
    let start = tokio::time::Instant::now();
    let mut output = TaskOutput::default();
    loop {
        let patience = if output.has_known_problem() { PATIENCE_WITH_PROBLEM } else { PATIENCE + STOPPING };
        match tokio::time::timeout_at(start + patience, stream.next()).await {
            Ok(Some(batch)) => {
                if let Batch::Events(entries) = batch? {
                    entries.iter().for_each(|entry| output.take(&entry.event));
                }
            }
            Ok(None) | Err(_) => return Ok(output.judge()),
        }
    }
}

/// The output of a task, as its events show it.
#[derive(Default)]
struct TaskOutput {
    answer: String,
    progress: Vec<String>,
    last: String,
    state: Option<State>,
}

impl TaskOutput {
    fn has_known_problem(&self) -> bool {
        self.progress.iter().any(|words| Diagnosis::of(words) != Diagnosis::Unknown)
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Created(_) => {}
            Event::Status(change) => {
                self.state = Some(change.status.state);
                let text = change.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
                if change.is_final {
                    self.last = text;
                } else if !text.is_empty() {
                    self.progress.push(text);
                }
            }
            Event::Artifact(chunk) => match chunk.artifact.name.as_deref() {
                Some("session") => {}
                Some("result") => self.take_summary(&chunk.artifact.parts),
                _ => self.answer.extend(chunk.artifact.parts.iter().filter_map(Part::as_text)),
            },
        }
    }

    /// Some programs answer only so.
    fn take_summary(&mut self, parts: &[Part]) {
        for part in parts {
            if let sabir_model::Content::Data(data) = &part.content
                && let Some(summary) = data.text_of("summary").filter(|_| self.answer.is_empty())
            {
                self.answer = summary;
            }
        }
    }

    fn judge(self) -> CheckOutcome {
        let is_answered = !self.answer.trim().is_empty();
        match self.state {
            Some(State::Completed) if is_answered => Ok(self.answer),
            Some(State::Completed) => Err((Diagnosis::Silent, self.progress.join("\n"))),
            _ => {
                // A time limit says nothing about its cause; what the program told before may.
                let is_slow = self.last.is_empty() || self.last.starts_with("timed out");
                let said =
                    std::iter::once(self.last).chain(self.progress.into_iter().rev()).collect::<Vec<_>>().join("\n");
                let diagnosis = match Diagnosis::of(&said) {
                    Diagnosis::Unknown if is_slow => Diagnosis::TooSlow,
                    diagnosis => diagnosis,
                };
                Err((diagnosis, said))
            }
        }
    }
}

/// The beginning of a text, without line ends and without lines that come again.
fn one_line(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let line = lines.join(" / ");
    match line.char_indices().nth(LONGEST) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// A folder for nobody else, which goes with its value.
struct EmptyFolder(PathBuf);

impl EmptyFolder {
    fn new(id: &str) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("sabir-check-{}-{id}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make the folder {} to check a program in", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for EmptyFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(id: &str, outcome: Result<&str, (Diagnosis, &str)>) -> Checked {
        let failure = |(diagnosis, said): (Diagnosis, &str)| CheckFailure {
            diagnosis,
            said: said.to_owned(),
            remedy: "do this".to_owned(),
        };
        Checked {
            id: id.to_owned(),
            kind: "codex",
            mode: "duplex",
            program: "codex".to_owned(),
            asks: Asks::Yes,
            seconds: 1.26,
            outcome: outcome.map(str::to_owned).map_err(failure),
        }
    }

    #[test]
    fn a_person_reads_a_table_and_the_remedies() {
        let checked = [checked("a", Ok("ready")), checked("b", Err((Diagnosis::NotLoggedIn, "401")))];
        let expected = "  ID  KIND   ASKS  SECONDS  OUTCOME
  a   codex  yes   1.3      answers: ready
  b   codex  yes   1.3      not logged in

b: not logged in
  remedy:  do this
  it said: 401
";
        assert_eq!(show(&checked, Audience::Person), expected);
        assert!(show(&[], Audience::Person).starts_with("No program is configured"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&show(&[], Audience::Program)).unwrap(), json!([]));
    }

    #[test]
    fn words_are_judged_together() {
        let output = |state, answer: &str, progress: &[&str], last: &str| TaskOutput {
            answer: answer.to_owned(),
            progress: progress.iter().map(|words| (*words).to_owned()).collect(),
            last: last.to_owned(),
            state: Some(state),
        };
        for (output, expected) in [
            (output(State::Completed, "ready", &[], ""), None),
            (output(State::Completed, " ", &[], ""), Some(Diagnosis::Silent)),
            (output(State::Failed, "half", &[], "exit code 3"), Some(Diagnosis::Unknown)),
            (output(State::Failed, "", &[], "timed out: the turn took longer"), Some(Diagnosis::TooSlow)),
            (
                output(State::Failed, "", &["Reconnecting... waiting for network"], "timed out"),
                Some(Diagnosis::NoNetwork),
            ),
            (output(State::Working, "", &["Reconnecting... waiting for network"], ""), Some(Diagnosis::NoNetwork)),
            (output(State::Working, "", &[], ""), Some(Diagnosis::TooSlow)),
        ] {
            assert_eq!(output.judge().err().map(|(diagnosis, _)| diagnosis), expected);
        }
    }
}
