//! A cache of parsed heads, for lists.
//!
//! Dashboards ask for the same page again and again, and parsing its heads is a third of the cost. A cached head is
//! used only for a row with exactly the same bytes, so it can never be out of date.
//!
//! A head is cached when it is read for the second time in a while: a client that pages once through a million tasks
//! would only evict what others need. There are two generations. Heads that are used go into the young one. When it is
//! full, it becomes the old one, and the previous old one is dropped. That bounds the memory without a list in order of
//! use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use sabir_model::{Birth, Task};

use crate::TaskNo;
use crate::head::Head;

/// The maximum size of a generation: about 700 short tasks.
const GENERATION_BYTES: usize = 256 << 10;

/// How many tasks are remembered as read. The newest tasks have consecutive numbers, so they do not displace each
/// other.
const READ_PLACES: usize = 1024;

/// No task has this number: task numbers are SQLite's signed row ids.
const NO_TASK: u64 = u64::MAX;

pub(super) struct RecentHeads {
    /// The tasks that were read, each at the index of its number modulo the length. A task that is not here is not
    /// cached, which saves taking the lock.
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

/// The values of a row that tell whether a cached head belongs to it.
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
    /// Whether the head of this task may be in the cache.
    pub fn was_read(&self, no: TaskNo) -> bool {
        self.place(no).load(Ordering::Relaxed) == no.0
    }

    /// The task as the head of this row shows it, with at most this many messages; `None`: not cached, or not enough
    /// messages.
    pub fn task(&self, row: &HeadRow<'_>, history: Option<u32>) -> Option<Task> {
        let mut generations = self.generations();
        if !generations.young.contains_key(&row.no) {
            let cached = generations.old.remove(&row.no)?;
            generations.insert(row.no, cached);
        }
        let cached = generations.young.get(&row.no).filter(|cached| cached.is_of(row))?;
        cached.head.clone().with_history(history)
    }

    /// Caches a head that was just read, if it was read before.
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
            // Another task has this number.
            (1, "u", 7, WORKING, false),
            (1, "t", 8, WORKING, false),
            // The task has changed.
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
