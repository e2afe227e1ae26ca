//! Counters of tasks by owner, agent and state, for the totals of lists. They are in the table `tallies`.
//!
//! Counting a million rows for each list would take long, so the counters are updated with every commit. The changes of
//! a transaction are summed first, so that each counter is written once.

use std::collections::HashMap;

use rusqlite::{Connection, Result, Statement};
use sabir_model::{AgentId, Owner, State};

use super::rows::state_code;

pub(super) struct TaskCounts<'c> {
    changes: HashMap<(Owner, AgentId), [i64; State::ALL.len()]>,
    add: Statement<'c>,
}

impl<'c> TaskCounts<'c> {
    pub fn new(conn: &'c Connection) -> Result<Self> {
        let add = conn.prepare(
            "INSERT INTO tallies (owner, agent, state, n) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET n = n + excluded.n",
        )?;
        Ok(Self { changes: HashMap::new(), add })
    }

    pub fn change(&mut self, owner: Owner, agent: AgentId, state: State, by: i64) {
        self.changes.entry((owner, agent)).or_default()[state_code(state) as usize] += by;
    }

    /// Writes the changes of this transaction.
    pub fn write(&mut self) -> Result<()> {
        for ((owner, agent), by_state) in self.changes.drain() {
            for (state, by) in (0i64..).zip(by_state) {
                if by != 0 {
                    self.add.execute((owner.as_key(), agent.as_str(), state, by))?;
                }
            }
        }
        Ok(())
    }

    /// The transaction is rolled back.
    pub fn discard(&mut self) {
        self.changes.clear();
    }
}
