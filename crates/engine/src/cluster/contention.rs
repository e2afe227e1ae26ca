//! The pauses of a caller whose task others change at the same time.

use std::time::Duration;

use sabir_model::Error;

/// Nobody is overtaken so often by chance.
const MOST_TRIES: u32 = 500;
const LONGEST_PAUSE: u32 = 50;

/// Counts how often a caller had to look again.
#[derive(Debug, Default)]
pub(crate) struct Contention {
    tries: u32,
}

impl Contention {
    /// Waits a little longer each time, at first not at all.
    pub(crate) async fn pause(&mut self) -> Result<(), Error> {
        self.tries += 1;
        match self.tries {
            1 => tokio::task::yield_now().await,
            tries if tries > MOST_TRIES => {
                return Err(Error::internal("the task could not be had, however often it was tried"));
            }
            tries => tokio::time::sleep(Duration::from_millis(u64::from(tries.min(LONGEST_PAUSE)))).await,
        }
        Ok(())
    }
}
