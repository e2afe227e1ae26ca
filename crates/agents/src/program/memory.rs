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
    /// What this program left. Another kind of agent, or an older version, may have left something else.
    pub fn parse(text: &str, program: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|memory: &Memory| memory.program == program)
    }

    pub fn text(program: &str, session: &str, folder: &Path) -> String {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let memory = Memory { program: program.into(), session: session.into(), folder: folder.into(), began };
        serde_json::to_string(&memory).unwrap_or_default()
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
    fn only_its_own_session_is_gone_on_with() {
        let text = Memory::text("codex", "s1", Path::new("/srv/repo"));
        let memory = Memory::parse(&text, "codex").unwrap();
        assert_eq!((memory.session.as_str(), memory.folder.to_str()), ("s1", Some("/srv/repo")));
        assert_eq!(Memory::parse(&text, "gemini"), None);
        assert_eq!(Memory::parse("s1", "codex"), None);
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
