//! What is stored for a context between turns: the program's own session, its folder, and whether it can be resumed.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sabir_model::TaskId;
use serde::{Deserialize, Serialize};

use crate::kinds::ResumeDelay;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Memory {
    /// The agent whose session it is. `None`: an older version wrote it and kept one session per kind.
    #[serde(default)]
    pub agent: Option<String>,
    /// The kind of the agent at that time: the operator may change it.
    pub program: String,
    pub session: String,
    pub folder: PathBuf,
    /// When the session began, in seconds since 1970.
    #[serde(default)]
    pub began: u64,
    /// Whether another process of the program can resume it, as the program said. Older versions of Sabir did not store
    /// this; then trying shows it.
    #[serde(default = "unknown")]
    pub resumable: bool,
    /// The task that asked last, if no other has had a turn since: a resumed session continues with its question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_in: Option<TaskId>,
}

fn unknown() -> bool {
    true
}

/// Whose session it is: each agent of a context has its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryKey<'a> {
    pub agent: &'a str,
    /// The name of its kind.
    pub program: &'a str,
}

impl Memory {
    /// A new session.
    pub fn of(memory_key: MemoryKey<'_>, session: &str, folder: &Path) -> Self {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            agent: Some(memory_key.agent.into()),
            program: memory_key.program.into(),
            session: session.into(),
            folder: folder.into(),
            began,
            resumable: true,
            asked_in: None,
        }
    }

    fn is_of(&self, memory_key: MemoryKey<'_>) -> bool {
        self.program == memory_key.program && self.agent.as_deref().is_none_or(|agent| agent == memory_key.agent)
    }
}

/// The sessions of all agents of a context: routing may send each message to another agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Memories(Vec<Memory>);

impl Memories {
    /// Text of another kind of agent, or of an older version, is ignored.
    pub fn parse(text: Option<&str>) -> Self {
        Self(text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default())
    }

    pub fn of(&self, memory_key: MemoryKey<'_>) -> Option<&Memory> {
        self.0.iter().find(|memory| memory.is_of(memory_key))
    }

    /// Keeps the session of this key instead of the one before.
    pub fn put(&mut self, memory_key: MemoryKey<'_>, memory: Memory) {
        self.0.retain(|memory| !memory.is_of(memory_key) && memory.agent.as_deref() != Some(memory_key.agent));
        self.0.push(memory);
    }

    pub fn forget(&mut self, memory_key: MemoryKey<'_>) {
        self.0.retain(|memory| !memory.is_of(memory_key));
    }

    /// `None`: there is nothing to store.
    pub fn text(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| serde_json::to_string(&self.0).unwrap_or_default())
    }
}

/// How long to wait before a session can be resumed.
pub(super) fn rest(resume_delay: ResumeDelay, memory: &Memory, now: SystemTime) -> Option<Duration> {
    let since = now.duration_since(UNIX_EPOCH).ok()?;
    let is_same_minute = since.as_secs() / 60 == memory.began / 60;
    let must_rest = resume_delay == ResumeDelay::UntilNextMinute && is_same_minute;
    must_rest.then(|| Duration::from_secs((memory.began / 60 + 1) * 60 + 1).saturating_sub(since))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory_key<'a>(agent: &'a str, program: &'a str) -> MemoryKey<'a> {
        MemoryKey { agent, program }
    }

    fn session<'a>(memories: &'a Memories, agent: &str, program: &str) -> Option<&'a str> {
        memories.of(memory_key(agent, program)).map(|memory| memory.session.as_str())
    }

    #[test]
    fn each_agent_has_its_own_session() {
        let mut memories = Memories::parse(None);
        assert_eq!(memories.text(), None);
        for (agent, program, name) in
            [("one", "acp", "a1"), ("two", "acp", "a2"), ("coder", "codex", "c1"), ("coder", "codex", "c2")]
        {
            let memory_key = memory_key(agent, program);
            let memory = Memory::of(memory_key, name, Path::new("/srv/repo"));
            memories.put(memory_key, Memory { resumable: agent == "one", ..memory });
        }
        let mut memories = Memories::parse(memories.text().as_deref());
        for (agent, program, expected) in [
            ("one", "acp", Some("a1")),
            ("two", "acp", Some("a2")),
            ("three", "acp", None),
            ("coder", "codex", Some("c2")),
            // The agent was given another program.
            ("coder", "gemini", None),
        ] {
            assert_eq!(session(&memories, agent, program), expected, "{agent} {program}");
        }
        let is_resumable = |agent: &str| memories.of(memory_key(agent, "acp")).map(|memory| memory.resumable);
        assert_eq!((is_resumable("one"), is_resumable("two")), (Some(true), Some(false)));
        memories.forget(memory_key("one", "acp"));
        assert_eq!((session(&memories, "one", "acp"), session(&memories, "two", "acp")), (None, Some("a2")));
        let gemini = memory_key("coder", "gemini");
        memories.put(gemini, Memory::of(gemini, "g1", Path::new("/srv/repo")));
        assert_eq!((session(&memories, "coder", "codex"), session(&memories, "coder", "gemini")), (None, Some("g1")));
    }

    #[test]
    fn memories_of_older_versions_are_read() {
        assert_eq!(Memories::parse(Some("s1")), Memories::default());
        let text = r#"[{"program":"codex","session":"c1","folder":"/srv","began":6010}]"#;
        let mut memories = Memories::parse(Some(text));
        let coder = memory_key("coder", "codex");
        assert_eq!(memories.of(coder).map(|memory| (memory.session.as_str(), memory.resumable)), Some(("c1", true)));
        memories.put(coder, Memory::of(coder, "c2", Path::new("/srv")));
        assert_eq!(session(&memories, "coder", "codex"), Some("c2"));
        assert_eq!(session(&memories, "other", "codex"), None, "it was the other's");
    }

    #[test]
    fn a_session_may_have_to_rest_for_its_first_minute() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let memory = Memory { began: 6_010, ..Memory::of(memory_key("g", "gemini"), "s", Path::new("/")) };
        for (resume_delay, now, expected) in [
            (ResumeDelay::UntilNextMinute, 6_010, Some(51)),
            (ResumeDelay::UntilNextMinute, 6_059, Some(2)),
            (ResumeDelay::UntilNextMinute, 6_060, None),
            (ResumeDelay::None, 6_010, None),
        ] {
            assert_eq!(rest(resume_delay, &memory, at(now)), expected.map(Duration::from_secs), "{now}");
        }
    }
}
