//! Whether an interruption or a second run has its reason in how the server's lives ended.

use crate::lives::{How, Life, Recovery, WORK_GRACE};
use crate::tongue::Event;

/// What a clock may be off between two processes.
const TICK: i64 = 50;
/// What the settling after a start may take.
const SETTLING: i64 = 1000;

/// Whether an end of the server between the last event and the one before it explains this reason.
pub fn is_interrupted(lives: &[Life], reason: &str, events: &[Event]) -> bool {
    let Some((before, at)) = last_two(events, events.len()) else { return false };
    ends(lives).any(|(life, next)| {
        let Some(end) = life.end else { return false };
        // The next start settles what it finds, before or just after it is ready.
        let is_found = before <= end.gone + TICK
            && at + TICK >= end.from
            && next.is_some_and(|next| at <= next.ready.saturating_add(SETTLING));
        let is_left = left_behind(life);
        let recovery = next.map(|next| next.settings.recovery);
        match reason {
            "interrupted: the server was restarted while the task was running" => {
                is_found && is_left && recovery == Some(Recovery::Fail)
            }
            "interrupted: the question was lost when the server ended, since the agent cannot resume what asked it; send \
             the request again" => {
                // Settled by the next start, or at once by a server that stops.
                let is_stopped = end.how == How::Stopped && at + TICK >= end.from && at <= end.gone + TICK;
                is_found && is_left || is_stopped
            }
            "interrupted: the task was run 3 times, and the server stopped each time" => {
                is_found && is_left && recovery == Some(Recovery::Requeue)
            }
            // Settled by itself: when its time to finish was over, or at once if it waited for an answer until then.
            "interrupted: the server was stopped" => {
                let grace = if was_asking(events, end.from) { 0 } else { WORK_GRACE.as_millis() as i64 };
                let is_stopped = end.how == How::Stopped && life.settings.recovery == Recovery::Fail;
                is_stopped && at + TICK >= end.from + grace && at <= end.gone + TICK
            }
            _ => false,
        }
    })
}

/// Whether an end of the server explains that a turn begins again with this event.
pub fn is_rerun(lives: &[Life], events: &[Event], place: usize) -> bool {
    let Some((before, at)) = last_two(events, place + 1) else { return false };
    ends(lives).any(|(life, next)| {
        let Some((end, next)) = life.end.zip(next) else { return false };
        let is_between = before <= end.gone + TICK && at + TICK >= next.began;
        is_between && left_behind(life) && next.settings.recovery == Recovery::Requeue
    })
}

/// The lives around the last of these events, to be told with an offender.
pub fn around<'a>(lives: &'a [Life], events: &[Event]) -> Vec<&'a Life> {
    let Some(time) = events.iter().rev().find_map(time_of) else { return Vec::new() };
    let is_near = |life: &&Life| life.began <= time + 1000 && life.end.is_none_or(|end| end.gone + 1000 >= time);
    lives.iter().filter(is_near).collect()
}

/// Each life, and the one after it.
fn ends(lives: &[Life]) -> impl Iterator<Item = (&Life, Option<&Life>)> {
    lives.iter().enumerate().map(|(place, life)| (life, lives.get(place + 1)))
}

/// Whether a life may have left tasks behind that were at work.
fn left_behind(life: &Life) -> bool {
    life.end.is_some_and(|end| end.how == How::Killed) || life.settings.recovery == Recovery::Requeue
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
