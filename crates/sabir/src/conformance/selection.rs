//! Which rules the operator wants to know about.

use anyhow::bail;

use super::ledger::{Entry, Ledger};
use super::rule::{self, Rule, Subject};
use super::rules_card_interfaces::ANSWERS;
use super::{rules_bindings, rules_envelope, rules_grpc, rules_objects};

/// The rules that the operator wants to see.
pub struct Selection<'o>(&'o [String]);

impl<'o> Selection<'o> {
    pub fn of(only: &'o [String]) -> anyhow::Result<Self> {
        let selection = Selection(only);
        for name in only {
            if !rule::all().any(|rule| rule.id == name || rule.group() == name) {
                bail!("there is no rule {name:?}; sabir check --list prints all of them");
            }
        }
        Ok(selection)
    }

    pub fn has(&self, rule: &Rule) -> bool {
        self.0.is_empty() || self.0.iter().any(|name| rule.id == name || rule.group() == name)
    }

    /// The verdicts on the selected rules of one subject.
    pub fn entries(&self, ledger: Ledger, is_wanted: impl Fn(&Rule) -> bool) -> Vec<Entry> {
        ledger.into_entries(rule::all().filter(|rule| self.has(rule) && is_wanted(rule)))
    }

    /// Whether any of these rules is wanted, or one that is judged by every answer.
    pub fn wants(&self, rules: &[&[&Rule]]) -> bool {
        let observed = [rules_envelope::RULES, rules_grpc::RULES, rules_objects::RULES, rules_bindings::RULES];
        rules.iter().chain(&observed).copied().flatten().any(|rule| self.has(rule))
    }

    /// Whether the server has to be asked for more than its card.
    pub fn needs_interfaces(&self) -> bool {
        let is_about_card = |rule: &Rule| rule.subject == Subject::Server && rule.id != ANSWERS.id;
        rule::all().any(|rule| self.has(rule) && (!is_about_card(rule) || rule.group() == "bindings"))
    }
}
