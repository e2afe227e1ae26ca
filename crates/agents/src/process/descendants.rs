//! The processes of a program, seen from outside: itself and all that it has started.
//!
//! A guard adopts orphans, so on Linux every living process that a program has started is a descendant of its guard. Other
//! systems do not show this.

use std::collections::HashSet;

use super::child::Child;
use super::process_table;

/// Whether this system shows what a program has started.
pub const SHOWS_DESCENDANTS: bool = cfg!(target_os = "linux");

/// The living descendants of a guard at one moment. Each has its id and its start time, since ids are reused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descendants(HashSet<(i32, u64)>);

impl Child {
    /// The program and all living processes that it has started.
    pub async fn descendants(&self) -> Descendants {
        let guard = i32::try_from(self.pid()).unwrap_or_default();
        let look = move || {
            let processes = process_table::all_processes();
            let living =
                process_table::descendants_of(guard, &processes).into_iter().filter(|process| !process.is_dead);
            Descendants(living.map(|process| (process.id, process.start)).collect())
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }
}

impl Descendants {
    /// The processes that were not there before, each as id and name.
    pub fn since(&self, before: &Descendants) -> Vec<String> {
        let new = self.0.difference(&before.0);
        let mut named: Vec<String> = new.map(|(id, _)| format!("{id} {}", name(*id))).collect();
        named.sort_unstable();
        named
    }
}

fn name(process: i32) -> String {
    std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default().trim_end().to_owned()
}
