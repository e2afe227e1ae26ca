//! `--max-time`: how long the whole check may take. A server that is slow with every answer would otherwise be asked for hours.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

pub struct Deadline {
    time: Duration,
    /// `None`: so far away that no clock has it.
    end: Option<Instant>,
}

impl Deadline {
    /// From now on.
    pub fn new(time: Duration) -> Self {
        Deadline { time, end: Instant::now().checked_add(time) }
    }

    pub fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Does something as long as there is time. `None`: it was not begun, or dropped before its end.
    pub async fn within<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match self.end {
            Some(_) if self.is_over() => None,
            Some(end) => timeout_at(end, work).await.ok(),
            None => Some(work.await),
        }
    }

    /// Why something was not tried.
    pub fn reason(&self) -> String {
        format!("the time of the check was over (--max-time {})", humantime::format_duration(self.time))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn nothing_begins_or_goes_on_behind_the_end() {
        for time in [Duration::from_secs(90), Duration::MAX] {
            let deadline = Deadline::new(time);
            assert_eq!((deadline.within(ready(1)).await, deadline.is_over()), (Some(1), false));
        }
        let deadline = Deadline::new(Duration::from_millis(1));
        assert_eq!((deadline.within(pending::<u8>()).await, deadline.is_over()), (None, true));
        assert_eq!(deadline.within(ready(1)).await, None);
        assert_eq!(deadline.reason(), "the time of the check was over (--max-time 1ms)");
    }
}
