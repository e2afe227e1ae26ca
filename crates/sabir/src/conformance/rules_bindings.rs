//! The bindings of one version against each other: the same tasks, and the same errors for the same faults.

use super::calls;
use super::evidence::Evidence;
use super::ledger::Ledger;
use super::probe::Probe;
use super::rule::{Level, Rule, Sections, Subject};

pub const RULES: &[&Rule] = &[&SAME_TASKS, &SAME_ERRORS];

pub static SAME_TASKS: Rule = Rule {
    id: "bindings.same-tasks",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::since_v02("§5.1", "§3.4.1"),
    says: "a task that was made over one binding can be read over the others",
    remedy: "serve all bindings from the same store of tasks",
};
pub static SAME_ERRORS: Rule = Rule {
    id: "bindings.same-errors",
    level: Level::Error,
    subject: Subject::Server,
    sections: Sections::since_v02("§5.1", "§3.4.1"),
    says: "the same fault is the same error over all bindings",
    remedy: "decide which error it is before the binding writes it",
};

/// Compares the interfaces that have the same version.
pub async fn check(ledger: &Ledger, probes: &[Probe<'_>]) {
    for (place, one) in probes.iter().enumerate() {
        for other in &probes[place + 1..] {
            let is_pair = one.version() == other.version() && one.protocol() != other.protocol();
            if is_pair && one.tenant() == other.tenant() {
                check_tasks(ledger, one, other).await;
                check_errors(ledger, one, other);
            }
        }
    }
    for rule in RULES.iter().filter(|rule| !ledger.is_judged(rule)) {
        ledger.skip(rule, "no version is offered over two bindings that can be checked");
    }
}

async fn check_tasks(ledger: &Ledger, one: &Probe<'_>, other: &Probe<'_>) {
    let Some(task) = one.scene.finished() else { return };
    let Some(got) = other.ask(&calls::get(other.tenant(), &task.id, None)).await else { return };
    // A server that cannot read its tasks at all has another fault.
    if other.ledger.has_failed(&super::rules_tasks::GET) || one.ledger.has_failed(&super::rules_tasks::GET) {
        return;
    }
    let is_there = got.task().is_some_and(|read| read.id == task.id);
    let fault = (!is_there).then(|| {
        format!("a task of {} is read as {} in {}", one.protocol(), got.words(other.protocol()), other.protocol())
    });
    ledger.judge(&SAME_TASKS, fault, &got.evidence());
}

fn check_errors(ledger: &Ledger, one: &Probe<'_>, other: &Probe<'_>) {
    // Without the reason of 1.0, a status is too vague to be compared.
    if !one.is_v1() || [one, other].iter().any(|probe| probe.ledger.has_failed(&super::rules_envelope::ERROR_INFO)) {
        return;
    }
    for (fault, kind) in one.scene.refusals.borrow().iter() {
        let refusals = other.scene.refusals.borrow();
        let Some((_, other_kind)) = refusals.iter().find(|(known, _)| known == fault) else { continue };
        let words = (kind != other_kind).then(|| {
            let (first, second) = (one.protocol(), other.protocol());
            format!("{fault} is {} in {first} and {} in {second}", kind.name(), other_kind.name())
        });
        let tried = format!("{fault}, over {} and over {}", one.protocol(), other.protocol());
        ledger.judge(&SAME_ERRORS, words, &Evidence::new(tried, format!("{} and {}", kind.name(), other_kind.name())));
    }
}
