//! Keys of rows that belong to a task: the task's number and a sequence number, packed into one integer.
//!
//! So the rows of a task are neighbours in the file, and a key needs few bytes. Compared with a table without rowids
//! and the key `(task, seq)`, the file was measured to have a quarter of the size.

use std::ops::RangeInclusive;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Result, ToSql};
use sabir_model::Seq;

use crate::TaskNo;

const BITS: u32 = 28;

/// The highest sequence number in a task.
pub(super) const MAX_SEQ: Seq = (1 << BITS) - 1;

/// Never assigned, so a larger number from outside finds nothing.
pub(super) const MAX_NO: u64 = (1 << (63 - BITS)) - 1;

pub(super) fn key(no: TaskNo, seq: Seq) -> i64 {
    ((no.0.min(MAX_NO) << BITS) | seq.min(MAX_SEQ)) as i64
}

/// The range of all keys of a task.
pub(super) fn keys(no: TaskNo) -> RangeInclusive<i64> {
    key(no, 0)..=key(no, MAX_SEQ)
}

pub(super) fn seq(key: i64) -> Seq {
    key as Seq & MAX_SEQ
}

pub(super) fn task_no(key: i64) -> TaskNo {
    TaskNo(key as u64 >> BITS)
}

impl ToSql for TaskNo {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok((self.0.min(MAX_NO) as i64).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_and_out() {
        for (no, number) in [(1, 1), (1, MAX_SEQ), (7, 28), (MAX_NO, MAX_SEQ)] {
            let packed = key(TaskNo(no), number);
            assert_eq!((task_no(packed), seq(packed)), (TaskNo(no), number));
            assert!(keys(TaskNo(no)).contains(&packed));
            assert!(!keys(TaskNo(no - 1)).contains(&packed));
        }
        assert_eq!(key(TaskNo(u64::MAX), u64::MAX), i64::MAX);
    }
}
