//! How much a host may cost us.

use std::time::Duration;

/// The bounds of a client. The time for a whole request is said with each request.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Look-up, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Bytes of a response's head.
    pub head: usize,
    /// Headers of a response.
    pub headers: usize,
    /// Bytes of a response's body.
    pub body: usize,
    /// How long a pooled connection stays open without use.
    pub idle: Duration,
    /// Unused connections that are kept per scheme, host and port.
    pub idle_per_host: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connect_timeout: Duration::from_secs(10),
            head: 32 * 1024,
            headers: 100,
            body: 64 * 1024,
            idle: Duration::from_secs(30),
            idle_per_host: 16,
        }
    }
}
