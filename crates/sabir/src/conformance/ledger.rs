//! What was found out about each rule.
//!
//! A rule may be judged many times, on every answer. The first failure is kept with its evidence, and counts from then on;
//! further ones are counted. A rule that was not judged at all was not needed for what the server offers.

use std::cell::RefCell;

use sabir_wire::PeerProtocol;

use super::evidence::Evidence;
use super::known_deviations;
use super::rule::{Level, Rule};

#[derive(Debug, Clone)]
pub enum Verdict {
    Passed,
    Failed(Finding),
    /// With the reason.
    Skipped(String),
}

/// A rule that is broken.
#[derive(Debug, Clone)]
pub struct Finding {
    pub level: Level,
    /// What is wrong, in one sentence.
    pub fault: String,
    pub evidence: Evidence,
    /// How often it was seen.
    pub times: usize,
    /// Servers of which official SDK do the same.
    pub known: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub rule: &'static Rule,
    pub verdict: Verdict,
}

/// The verdicts about one interface, or about the card.
#[derive(Debug, Default)]
pub struct Ledger {
    /// `None`: the server as a whole.
    protocol: Option<PeerProtocol>,
    entries: RefCell<Vec<Entry>>,
}

impl Ledger {
    pub fn of_interface(protocol: PeerProtocol) -> Self {
        Ledger { protocol: Some(protocol), entries: RefCell::default() }
    }

    pub fn pass(&self, rule: &'static Rule) {
        self.put(rule, Verdict::Passed);
    }

    pub fn skip(&self, rule: &'static Rule, why: impl Into<String>) {
        self.put(rule, Verdict::Skipped(why.into()));
    }

    /// Skips all of them for one reason.
    pub fn skip_all(&self, rules: &[&'static Rule], why: &str) {
        rules.iter().for_each(|rule| self.skip(rule, why));
    }

    pub fn fail(&self, rule: &'static Rule, fault: impl Into<String>, evidence: &Evidence) {
        self.fail_as(rule.level, rule, fault, evidence);
    }

    /// A failure that is known to be less than the rule's own level.
    pub fn fail_as(&self, level: Level, rule: &'static Rule, fault: impl Into<String>, evidence: &Evidence) {
        let known = self.protocol.and_then(|protocol| known_deviations::whose(rule.id, protocol));
        let level = if known.is_some() { level.max(Level::Warning) } else { level };
        let finding = Finding { level, fault: fault.into(), evidence: evidence.clone(), times: 1, known };
        self.put(rule, Verdict::Failed(finding));
    }

    /// Passes or fails.
    pub fn judge(&self, rule: &'static Rule, fault: Option<String>, evidence: &Evidence) {
        match fault {
            None => self.pass(rule),
            Some(fault) => self.fail(rule, fault, evidence),
        }
    }

    pub fn has_failed(&self, rule: &'static Rule) -> bool {
        let is_failed = |entry: &Entry| entry.rule.id == rule.id && matches!(entry.verdict, Verdict::Failed(_));
        self.entries.borrow().iter().any(is_failed)
    }

    pub fn has_passed(&self, rule: &'static Rule) -> bool {
        let is_passed = |entry: &Entry| entry.rule.id == rule.id && matches!(entry.verdict, Verdict::Passed);
        self.entries.borrow().iter().any(is_passed)
    }

    pub fn is_judged(&self, rule: &'static Rule) -> bool {
        self.entries.borrow().iter().any(|entry| entry.rule.id == rule.id)
    }

    /// In the order of `rules`.
    pub fn into_entries(self, rules: impl Iterator<Item = &'static Rule>) -> Vec<Entry> {
        let mut entries = self.entries.into_inner();
        let take = |rule: &'static Rule| {
            let place = entries.iter().position(|entry| entry.rule.id == rule.id)?;
            Some(entries.swap_remove(place))
        };
        rules.filter_map(take).collect()
    }

    fn put(&self, rule: &'static Rule, verdict: Verdict) {
        let mut entries = self.entries.borrow_mut();
        let Some(known) = entries.iter_mut().find(|entry| entry.rule.id == rule.id) else {
            entries.push(Entry { rule, verdict });
            return;
        };
        match (&mut known.verdict, verdict) {
            (Verdict::Failed(first), Verdict::Failed(next)) => {
                let times = first.times + 1;
                // The worst is told.
                if next.level < first.level {
                    *first = next;
                }
                first.times = times;
            }
            (Verdict::Failed(_), _) | (Verdict::Passed, Verdict::Skipped(_) | Verdict::Passed) => {}
            (known, verdict) => *known = verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules_card::MEMBERS as RULE;
    use super::*;

    fn say(ledger: Ledger) -> String {
        let entries = ledger.into_entries([&RULE].into_iter());
        match entries.first().map(|entry| &entry.verdict) {
            None => "nothing".to_owned(),
            Some(Verdict::Passed) => "passed".to_owned(),
            Some(Verdict::Skipped(why)) => format!("skipped: {why}"),
            Some(Verdict::Failed(found)) => format!("{} {} x{}", found.level.name(), found.fault, found.times),
        }
    }

    #[test]
    fn the_worst_verdict_counts() {
        type Step = fn(&Ledger);
        let pass: Step = |ledger| ledger.pass(&RULE);
        let skip: Step = |ledger| ledger.skip(&RULE, "why");
        let fail: Step = |ledger| ledger.fail(&RULE, "broken", &Evidence::new("", ""));
        let warn: Step = |ledger| ledger.fail_as(Level::Warning, &RULE, "odd", &Evidence::new("", ""));
        for (steps, expected) in [
            (&[][..], "nothing"),
            (&[pass, skip], "passed"),
            (&[skip, pass], "passed"),
            (&[skip], "skipped: why"),
            (&[pass, fail, pass, skip], "error broken x1"),
            (&[fail, fail], "error broken x2"),
            (&[warn, fail, warn], "error broken x3"),
            (&[fail, warn], "error broken x2"),
        ] {
            let ledger = Ledger::default();
            steps.iter().for_each(|step| step(&ledger));
            assert_eq!(say(ledger), expected);
        }
    }
}
