//! What is remembered of a context between turns: the program's own session, and where it was held.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::settings::{Kind, Mode};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Memory {
    /// The program that held it: routing may send the next message to another.
    pub program: String,
    pub session: String,
    pub folder: PathBuf,
    /// When the session was first heard of, in seconds since 1970.
    #[serde(default)]
    pub began: u64,
}

impl Memory {
    /// A session that was just heard of.
    pub fn of(program: &str, session: &str, folder: &Path) -> Self {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { program: program.into(), session: session.into(), folder: folder.into(), began }
    }
}

/// What all programs of a context have left: routing may send each message to another one, and back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Memories(Vec<Memory>);

impl Memories {
    /// Another kind of agent, or an older version, may have left something else, which is nothing to us.
    pub fn parse(text: Option<&str>) -> Self {
        Self(text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default())
    }

    pub fn of(&self, program: &str) -> Option<&Memory> {
        self.0.iter().find(|memory| memory.program == program)
    }

    pub fn put(&mut self, memory: Memory) {
        self.forget(&memory.program);
        self.0.push(memory);
    }

    pub fn forget(&mut self, program: &str) {
        self.0.retain(|memory| memory.program != program);
    }

    /// `None`: there is nothing to remember.
    pub fn text(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| serde_json::to_string(&self.0).unwrap_or_default())
    }
}

/// How long a session must rest before it can be gone on with.
///
/// Gemini names the file of a session after its id and the minute, and opens a new one before it loads the old: within the
/// minute in which a session began, loading it overwrites it (seen with 0.61.0).
pub(super) fn rest(kind: Kind, mode: Mode, memory: &Memory, now: SystemTime) -> Option<Duration> {
    let since = now.duration_since(UNIX_EPOCH).ok()?;
    let is_same_minute = since.as_secs() / 60 == memory.began / 60;
    let is_concerned = (kind, mode) == (Kind::Gemini, Mode::Acp) && is_same_minute;
    is_concerned.then(|| Duration::from_secs((memory.began / 60 + 1) * 60 + 1).saturating_sub(since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_its_own_session() {
        let mut memories = Memories::parse(None);
        assert_eq!(memories.text(), None);
        for (program, session) in [("codex", "c1"), ("gemini", "g1"), ("codex", "c2")] {
            memories.put(Memory::of(program, session, Path::new("/srv/repo")));
        }
        let mut memories = Memories::parse(memories.text().as_deref());
        let session = |memories: &Memories, program: &str| memories.of(program).map(|memory| memory.session.clone());
        assert_eq!((session(&memories, "codex"), session(&memories, "gemini")), (Some("c2".into()), Some("g1".into())));
        assert_eq!(session(&memories, "goose"), None);
        memories.forget("codex");
        assert_eq!((session(&memories, "codex"), session(&memories, "gemini")), (None, Some("g1".into())));
        assert_eq!(Memories::parse(Some("s1")), Memories::default());
    }

    #[test]
    fn a_session_of_gemini_rests_for_its_first_minute() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let memory = Memory { program: "gemini".into(), session: "s".into(), folder: "/".into(), began: 6_010 };
        for (kind, mode, now, expected) in [
            (Kind::Gemini, Mode::Acp, 6_010, Some(51)),
            (Kind::Gemini, Mode::Acp, 6_059, Some(2)),
            (Kind::Gemini, Mode::Acp, 6_060, None),
            (Kind::Gemini, Mode::OneShot, 6_010, None),
            (Kind::Goose, Mode::Acp, 6_010, None),
        ] {
            assert_eq!(rest(kind, mode, &memory, at(now)), expected.map(Duration::from_secs), "{now}");
        }
    }
}
