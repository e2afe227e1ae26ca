//! Where a page of a list begins.
//!
//! A list is ordered by status time, newest first, by id where times are equal, by agent where two have a task of the
//! same name, and by the store's number where two owners have. A cursor names the last entry of the page before, so it
//! stays good when that task changes or goes.

use crate::{AgentId, TaskId, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub time: Timestamp,
    pub task: TaskId,
    pub agent: AgentId,
    /// The store's number of the task, in lists with tasks of several owners: these may have the same id at one agent.
    pub number: Option<u64>,
}

impl Cursor {
    /// An opaque token for the caller.
    pub fn to_token(&self) -> String {
        let number = self.number.map_or_else(String::new, |number| format!(".{number:x}"));
        format!("{:x}.{}.{}{number}", self.time.as_millis(), hex(self.task.as_str()), hex(self.agent.as_str()))
    }

    pub fn parse(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let (time, task, agent) = (parts.next()?, parts.next()?, parts.next()?);
        let number = match parts.next() {
            Some(number) => Some(u64::from_str_radix(number, 16).ok()?),
            None => None,
        };
        if parts.next().is_some() {
            return None;
        }
        // Written as its bits, so that a moment before 1970 comes back too.
        let time = Timestamp::from_millis(u64::from_str_radix(time, 16).ok()?.cast_signed());
        let (task, agent) = (TaskId::parse(text(task)?).ok()?, AgentId::parse(text(agent)?).ok()?);
        Some(Self { time, task, agent, number })
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn text(hex: &str) -> Option<String> {
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let bytes = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).ok());
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_leads_back_to_its_place(millis in -1_000_000_000i64..4_000_000_000_000, id in "[^\\x00-\\x1f\\x7f-\\x9f]{1,40}", number: Option<u64>) {
            let (task, agent) = (TaskId::parse(id).unwrap(), AgentId::parse("a.b").unwrap());
            let cursor = Cursor { time: Timestamp::from_millis(millis), task, agent, number };
            prop_assert_eq!(Cursor::parse(&cursor.to_token()), Some(cursor));
        }

        #[test]
        fn any_other_text_is_refused_quietly(token: String) {
            Cursor::parse(&token);
        }
    }
}
