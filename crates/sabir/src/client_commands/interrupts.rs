//! Ctrl-C, as something to wait for.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Failure;

pub struct Interrupts(Signal);

impl Interrupts {
    /// From now on, Ctrl-C ends the program only if somebody waits for it and says so.
    pub fn new() -> Result<Self, Failure> {
        let signal = signal(SignalKind::interrupt());
        signal.map(Interrupts).map_err(|error| Failure::local(format!("cannot listen for Ctrl-C: {error}")))
    }

    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}
