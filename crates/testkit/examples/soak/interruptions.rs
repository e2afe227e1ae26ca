//! Whether the end of a server process explains an interruption or a second run.

use crate::agents::Kind;
use crate::dialect_client::Event;
use crate::nodes::{self, TAKEOVER_MS};
use crate::server_processes::{How, Recovery, ServerProcess, WORK_GRACE};

/// What a clock may be off between two processes.
const TICK: i64 = 50;
/// What the settling after a start may take.
const SETTLING: i64 = 1000;

/// Whether an end of the server between the last event and the one before it explains this reason.
pub fn is_interrupted(processes: &[ServerProcess], kind: Kind, reason: &str, events: &[Event]) -> bool {
    let Some((before, at)) = last_two(events, events.len()) else { return false };
    ends(processes).any(|(process, next)| {
        let Some(end) = process.end else { return false };
        // The next start settles what it finds, before or just after it is ready.
        let is_settled = next.is_some_and(|next| at <= next.ready.saturating_add(SETTLING));
        // So do other nodes, after a while.
        let is_taken_over = process.is_node && at <= end.gone + TAKEOVER_MS;
        let is_found = before <= end.gone + TICK && at + TICK >= end.from && (is_settled || is_taken_over);
        let is_left = left_behind(process);
        let recovery = next.map(|next| next.settings.recovery);
        let lost = format!("interrupted: node {} was lost while it ran the task", nodes::name(process.node));
        if process.is_node && reason == lost {
            return is_found && is_left && !kind.is_front();
        }
        match reason {
            "interrupted: the server was restarted while the task was running" => {
                is_found && is_left && recovery == Some(Recovery::Fail) && !kind.is_front()
            }
            "interrupted: the question was lost when the server ended, since the agent cannot resume what asked it; send \
             the request again" => {
                // Settled by the next start, or at once by a server that stops.
                let is_stopped = end.how == How::Stopped && at + TICK >= end.from && at <= end.gone + TICK;
                is_found && is_left || is_stopped
            }
            "interrupted: the task was run 3 times, and the server stopped each time" => {
                is_found && is_left && (recovery == Some(Recovery::Requeue) || kind.is_front())
            }
            // Settled by itself: when its time to finish was over, or at once if it waited for an answer until then.
            "interrupted: the server was stopped" => {
                let grace = if was_asking(events, end.from) { 0 } else { WORK_GRACE.as_millis() as i64 };
                let is_stopped = end.how == How::Stopped && process.settings.recovery == Recovery::Fail;
                is_stopped && at + TICK >= end.from + grace && at <= end.gone + TICK
            }
            _ => false,
        }
    })
}

/// Whether an end of the server explains that a turn begins again with this event. A front resumes its turns whatever the
/// settings say.
pub fn is_rerun(processes: &[ServerProcess], kind: Kind, events: &[Event], place: usize) -> bool {
    let Some((before, at)) = last_two(events, place + 1) else { return false };
    ends(processes).any(|(process, next)| {
        let Some(end) = process.end else { return false };
        // Other nodes do not wait until it is back.
        let from = if process.is_node { Some(end.from) } else { next.map(|next| next.began) };
        let is_between = before <= end.gone + TICK && from.is_some_and(|from| at + TICK >= from);
        let is_run_again = left_behind(process) && next.is_some_and(|next| next.settings.recovery == Recovery::Requeue);
        is_between && (is_run_again || kind.is_front())
    })
}

/// The processes around the last of these events, for the report.
pub fn around<'a>(processes: &'a [ServerProcess], events: &[Event]) -> Vec<&'a ServerProcess> {
    let Some(time) = events.iter().rev().find_map(time_of) else { return Vec::new() };
    let is_near = |process: &&ServerProcess| {
        process.began <= time + 1000 && process.end.is_none_or(|end| end.gone + 1000 >= time)
    };
    processes.iter().filter(is_near).collect()
}

/// Each process, and the one after it, of the same node.
fn ends(processes: &[ServerProcess]) -> impl Iterator<Item = (&ServerProcess, Option<&ServerProcess>)> {
    let next = |place: usize, node: usize| processes.iter().skip(place + 1).find(move |next| next.node == node);
    processes.iter().enumerate().map(move |(place, process)| (process, next(place, process.node)))
}

/// Whether a process may have left running tasks behind.
fn left_behind(process: &ServerProcess) -> bool {
    process.end.is_some_and(|end| end.how == How::Killed) || process.settings.recovery == Recovery::Requeue
}

/// When the last two statuses came, of so many events.
fn last_two(events: &[Event], count: usize) -> Option<(i64, i64)> {
    let mut times = events.get(..count)?.iter().rev().filter_map(time_of);
    let at = times.next()?;
    Some((times.next()?, at))
}

/// Whether a task waited for an answer at about this time.
fn was_asking(events: &[Event], time: i64) -> bool {
    let statuses: Vec<(&str, i64)> = events.iter().filter_map(|event| event.state().zip(time_of(event))).collect();
    statuses.windows(2).any(|pair| {
        let ((state, from), (_, until)) = (pair[0], pair[1]);
        state == "input-required" && from <= time + TICK && until + TICK >= time
    })
}

/// When a status came, in milliseconds since 1970.
pub fn time_of(event: &Event) -> Option<i64> {
    let Event::Status { time, .. } = event else { return None };
    let number = |from: usize, to: usize| time.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    // Days since 1970, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = (days * 24 + number(11, 13)?) * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    Some(seconds * 1000 + number(20, 23).unwrap_or(0))
}
