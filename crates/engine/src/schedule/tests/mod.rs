//! Tests of the schedule: single steps, and any order of steps.

mod any_order;
mod fairness;
mod parking;
mod queueing;

use super::*;

fn schedule(limits: &[(usize, usize, usize)]) -> Arc<Schedule> {
    let limits = limits.iter().map(|(concurrent, queue, max_parked)| {
        Limits::default().concurrent(*concurrent).queue(*queue).max_parked(*max_parked)
    });
    Schedule::new(&limits.collect::<Vec<_>>())
}

/// A schedule for one agent.
fn alone(concurrent: usize, queue: usize) -> Arc<Schedule> {
    schedule(&[(concurrent, queue, 100)])
}

/// A task of this context at the first agent, named after the context.
fn task(context: &str) -> SlotRequest {
    executed_by(0, context)
}

fn executed_by(executor: AgentNo, context: &str) -> SlotRequest {
    let key = ContextKey { agent: 0, owner: Owner::anonymous(), context: ContextId::parse(context).unwrap() };
    let task = TaskId::parse(format!("task of {context}")).unwrap();
    SlotRequest { context: key, task, executor, slot_use: SlotUse::Counted }
}

fn say(scheduled: &Scheduled) -> &'static str {
    match scheduled {
        Scheduled::Now(_) => "now",
        Scheduled::Later(_) => "later",
        Scheduled::QueueFull => "full",
    }
}

fn now(scheduled: Scheduled) -> Permit {
    match scheduled {
        Scheduled::Now(permit) => permit,
        _ => panic!("there is a slot"),
    }
}

fn started(scheduled: &mut Scheduled) -> Option<Permit> {
    match scheduled {
        Scheduled::Later(queued) => queued.granted.try_recv().ok(),
        _ => None,
    }
}

fn waits_for(scheduled: &Scheduled) -> String {
    match scheduled {
        Scheduled::Later(queued) => match queued.wait_reason() {
            WaitReason::Task { task, needs_answer: false } => task.to_string(),
            WaitReason::Task { task, needs_answer: true } => format!("{task}, which asks"),
            WaitReason::Folder { .. } => "a folder".to_owned(),
            WaitReason::Slots { limit } => format!("{limit} slots"),
            WaitReason::TotalRuns | WaitReason::Node(_) => "other nodes".to_owned(),
        },
        other => say(other).to_owned(),
    }
}

fn counts(schedule: &Schedule) -> (usize, usize, usize) {
    let state = lock(&schedule.state);
    (state.agents[0].running, state.agents[0].parked, state.agents[0].waiting.total())
}
