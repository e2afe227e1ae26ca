//! Heads that lists have read lately, parsed.
//!
//! Whoever watches a server asks for the same page again and again, and parsing its heads is a third of what that costs.
//! A cached head counts only for a row that has the very same bytes, so it can never be out of date.
//!
//! A head is cached when it is read for the second time in a while: somebody who walks once through a million tasks would
//! only drive out what others need. There are two generations. What is used goes into the young one; when that is full
//! it becomes the old one, and what the old one still held is forgotten. That bounds the memory without a list in order
//! of use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use sabir_model::{Birth, Task};

use crate::TaskNo;
use crate::head::Head;

/// The heads of one generation are not longer than this together: some 700 short tasks.
const GENERATION_BYTES: usize = 256 << 10;

/// So many tasks are remembered as read. The newest tasks have successive numbers, so they do not displace each other.
const READ_PLACES: usize = 1024;

/// Numbers of tasks are those of SQLite's rows, which are signed.
const NO_TASK: u64 = u64::MAX;

pub(super) struct RecentHeads {
    /// Tasks that were read, each in the place of its number. What is not here is not cached either, and that is seen here
    /// at once.
    read: Box<[AtomicU64]>,
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<TaskNo, CachedHead>,
    old: HashMap<TaskNo, CachedHead>,
    young_bytes: usize,
}

struct CachedHead {
    bytes: Box<[u8]>,
    head: Head,
}

/// What of a row says whether a cached head is its own.
pub(super) struct HeadRow<'r> {
    pub no: TaskNo,
    pub id: &'r str,
    pub born: Birth,
    pub head: &'r [u8],
}

impl Default for RecentHeads {
    fn default() -> Self {
        let read = (0..READ_PLACES).map(|_| AtomicU64::new(NO_TASK)).collect();
        Self { read, generations: Mutex::default() }
    }
}

impl RecentHeads {
    /// Whether the head of this task may be cached.
    pub fn was_read(&self, no: TaskNo) -> bool {
        self.place(no).load(Ordering::Relaxed) == no.0
    }

    /// The task as the head of this row shows it, with at most so many messages, if it is cached and has them.
    pub fn task(&self, row: &HeadRow<'_>, history: Option<u32>) -> Option<Task> {
        let mut generations = self.generations();
        if !generations.young.contains_key(&row.no) {
            let cached = generations.old.remove(&row.no)?;
            generations.insert(row.no, cached);
        }
        let cached = generations.young.get(&row.no).filter(|cached| cached.is_of(row))?;
        cached.head.clone().with_history(history)
    }

    /// Keeps what was just read, if it was read before.
    pub fn offer(&self, no: TaskNo, bytes: &[u8], head: &Head) {
        if self.place(no).swap(no.0, Ordering::Relaxed) == no.0 {
            self.generations().insert(no, CachedHead { bytes: bytes.into(), head: head.clone() });
        }
    }

    fn place(&self, no: TaskNo) -> &AtomicU64 {
        &self.read[(no.0 % READ_PLACES as u64) as usize]
    }

    fn generations(&self) -> MutexGuard<'_, Generations> {
        self.generations.lock().expect("nobody panics with the heads in hand")
    }
}

impl Generations {
    fn insert(&mut self, no: TaskNo, cached: CachedHead) {
        self.young_bytes += cached.bytes.len();
        if let Some(before) = self.young.insert(no, cached) {
            self.young_bytes -= before.bytes.len();
        }
        if self.young_bytes > GENERATION_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }
}

impl CachedHead {
    fn is_of(&self, row: &HeadRow<'_>) -> bool {
        let task = &self.head.task;
        *self.bytes == *row.head && task.id.as_str() == row.id && task.born == row.born
    }
}

#[cfg(test)]
mod tests {
    use sabir_model::{AgentId, ContextId, Owner, TaskBirth, TaskId};

    use super::*;

    const WORKING: &str = r#"{"summary":{"created":1,"status":{"state":"working","time":1}}}"#;
    const DONE: &str = r#"{"summary":{"created":1,"status":{"state":"completed","time":2}}}"#;

    fn head(id: &str, bytes: &[u8]) -> Head {
        let birth = TaskBirth {
            context: ContextId::parse("c").unwrap(),
            agent: AgentId::parse("a").unwrap(),
            owner: Owner::from_key(""),
            born: Birth(7),
        };
        Head::read(TaskId::parse(id).unwrap(), birth, bytes).unwrap()
    }

    #[test]
    fn a_kept_head_counts_for_the_same_row_only() {
        let heads = RecentHeads::default();
        for _ in 0..2 {
            heads.offer(TaskNo(1), WORKING.as_bytes(), &head("t", WORKING.as_bytes()));
        }
        for (no, id, born, bytes, expected) in [
            (1, "t", 7, WORKING, true),
            (2, "t", 7, WORKING, false),
            // The number was given to another task.
            (1, "u", 7, WORKING, false),
            (1, "t", 8, WORKING, false),
            // The task went on.
            (1, "t", 7, DONE, false),
        ] {
            let row = HeadRow { no: TaskNo(no), id, born: Birth(born), head: bytes.as_bytes() };
            assert_eq!(heads.task(&row, None).is_some(), expected, "{no} {id} {born} {bytes}");
        }
    }

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let heads = RecentHeads::default();
        let bytes = format!("{WORKING}{}", " ".repeat(1000));
        let task = |no| heads.task(&HeadRow { no: TaskNo(no), id: "t", born: Birth(7), head: bytes.as_bytes() }, None);
        let offer = |no| heads.offer(TaskNo(no), bytes.as_bytes(), &head("t", WORKING.as_bytes()));
        for no in 0..1_000 {
            offer(no);
            assert!(task(no).is_none(), "{no} is cached though it was read once");
            offer(no);
            assert!(task(0).is_some(), "after {no}");
        }
        let cached = (0..1_000).filter(|no| task(*no).is_some()).count();
        assert!((200..750).contains(&cached), "{cached}");
    }
}
