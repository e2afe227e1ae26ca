//! Where a page of a list begins.
//!
//! A list is ordered by status time, newest first, and by id where times are equal. A cursor names the
//! last entry of the page before, so it stays good when that task changes or goes.

use crate::{TaskId, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub time: Timestamp,
    pub task: TaskId,
}

impl Cursor {
    /// An opaque token for the caller.
    pub fn to_token(&self) -> String {
        let mut token = format!("{:x}.", self.time.as_millis());
        for byte in self.task.as_str().bytes() {
            token.push_str(&format!("{byte:02x}"));
        }
        token
    }

    pub fn parse(token: &str) -> Option<Self> {
        let (time, task) = token.split_once('.')?;
        // Written as its bits, so that a moment before 1970 comes back too.
        let time = Timestamp::from_millis(u64::from_str_radix(time, 16).ok()?.cast_signed());
        if task.len() % 2 != 0 || !task.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let bytes = (0..task.len() / 2).map(|at| u8::from_str_radix(&task[at * 2..at * 2 + 2], 16).ok());
        let task = String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()?;
        Some(Self { time, task: TaskId::parse(task).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_leads_back_to_its_place(millis in -1_000_000_000i64..4_000_000_000_000, id in "[^\\x00-\\x1f\\x7f-\\x9f]{1,40}") {
            let cursor = Cursor { time: Timestamp::from_millis(millis), task: TaskId::parse(id).unwrap() };
            prop_assert_eq!(Cursor::parse(&cursor.to_token()), Some(cursor));
        }

        #[test]
        fn any_other_text_is_refused_quietly(token: String) {
            Cursor::parse(&token);
        }
    }
}
