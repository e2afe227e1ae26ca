//! Compares what the program did with what the server has stored.

use std::collections::{BTreeMap, HashMap};

use crate::checker::{CheckedTask, Checker};
use crate::dialect_client::{Content, Verdict};
use crate::ledger::was_swept;
use crate::promise;
use crate::server_processes::{self, Recovery, ServerProcess};

/// How often a turn is run at most.
const MOST_RUNS: usize = 3;
/// What a clock may be off between two processes, and what a program may take to be ended after its server.
const TICK: i64 = 200;

impl Checker<'_> {
    /// The program ran only for messages that are stored, and read the answers that are stored.
    pub fn check_program(&self, found: &[CheckedTask]) {
        let mut task_of: HashMap<&str, &CheckedTask> = HashMap::new();
        for task in found {
            for message in &task.messages {
                task_of.insert(&message.text, task);
            }
        }
        let now = server_processes::now();
        let is_stored = |text: &str, time: i64| task_of.contains_key(text) || was_swept(self.processes, time, now);

        let mut runs: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
        for (time, text) in &self.records.runs {
            runs.entry(text).or_default().push(*time);
        }
        for (text, times) in &runs {
            let stored = is_stored(text, times[0]);
            let is_so = stored && times.len() <= MOST_RUNS && times.len() <= 1 + self.restarts_between(times);
            promise::ACTED.check(is_so, || {
                format!(
                    "{text:?} is stored: {stored}; the program ran at {times:?}, the server lived {:?}",
                    self.processes
                )
            });
        }

        for (time, asked, answer) in self.records.answers.iter().filter(|(_, _, answer)| answer == "y") {
            let task = task_of.get(format!("approve {asked}").as_str());
            let grants =
                |content: Content| matches!(content, Content::WordsAndYes | Content::OnlyApproval(Verdict::Yes));
            let is_granted = task.is_some_and(|task| task.messages.iter().any(|message| grants(message.content)));
            promise::ASKED.check(is_granted || (task.is_none() && was_swept(self.processes, *time, now)), || {
                format!("{asked} was answered {answer:?} at {time}, but the history has no such answer")
            });
        }
        for task in found {
            for (asked, answer) in task.log.iter().flat_map(|log| &log.answered) {
                let Some(name) = task.messages[*asked].text.strip_prefix("approve ") else { continue };
                let expected = match answer.map(|place| task.messages[place].content) {
                    Some(Content::WordsAndYes | Content::OnlyApproval(Verdict::Yes)) => "y",
                    // Words that are no clear yes deny, and so does nobody.
                    Some(Content::Words | Content::OnlyApproval(Verdict::No)) | None => "n",
                };
                let is_read = self.records.answers.iter().any(|(_, of, read)| of == name && read == expected);
                let was_ended = task.log.as_ref().is_some_and(|log| log.is_cut_off());
                promise::ASKED.check(is_read || was_ended, || {
                    format!("{} tells that {name} was answered {expected:?}, which the program did not read", task.id)
                });
            }
        }
    }

    /// How many processes that run tasks again started between the first and the last of these times.
    fn restarts_between(&self, times: &[i64]) -> usize {
        let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else { return 0 };
        let is_between = |process: &&ServerProcess| process.began + TICK >= *first && process.began <= *last + TICK;
        let runs_again = |process: &&ServerProcess| process.settings.recovery == Recovery::Requeue;
        self.processes.iter().filter(is_between).filter(runs_again).count()
    }
}
