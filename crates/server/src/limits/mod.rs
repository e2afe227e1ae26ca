//! How many requests one caller may make. It is asked when the caller is known, before the body is read.
//!
//! Callers with a credential have one bucket each (`buckets.rs`), callers without one share the bucket of their address.
//! Credentials and addresses are in different tables: a flood of addresses does not touch callers with a credential.

mod buckets;

use std::time::Instant;

use sabir_model::{Caller, CallerKey, Error};

use buckets::{Buckets, Rate};

/// `None`: any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestLimits {
    /// What a caller may make in the long run.
    pub requests_per_second: Option<u32>,
    /// What a caller may make at once after a pause; `None`: as many as in a second.
    pub burst: Option<u32>,
}

pub(crate) struct Limits {
    /// `None`: nothing is counted.
    requests: Option<RequestBuckets>,
    started: Instant,
}

struct RequestBuckets {
    per_second: u32,
    owners: Buckets,
    peers: Buckets,
}

impl Limits {
    pub(crate) fn new(limits: RequestLimits) -> Self {
        let requests = limits.requests_per_second.map(|per_second| {
            let rate = Rate::new(per_second, limits.burst.unwrap_or(per_second));
            RequestBuckets { per_second, owners: Buckets::new(rate), peers: Buckets::new(rate) }
        });
        Self { requests, started: Instant::now() }
    }

    /// Counts a request of this caller, or refuses it.
    pub(crate) fn admit_request(&self, caller: &Caller) -> Result<(), Error> {
        let Some(requests) = &self.requests else { return Ok(()) };
        requests.admit(caller, self.started.elapsed().as_nanos() as u64)
    }
}

impl RequestBuckets {
    fn admit(&self, caller: &Caller, now: u64) -> Result<(), Error> {
        let key = CallerKey::from(caller);
        let table = match key {
            CallerKey::Owner(_) => &self.owners,
            CallerKey::Peer(_) => &self.peers,
        };
        table.admit(key, now).map_err(|wait| {
            let sentence = format!("at most {} for you; wait, then try again", a_second(self.per_second));
            Error::LimitReached { sentence, retry_after: wait.div_ceil(1_000_000_000).clamp(1, 3600) as u32 }
        })
    }
}

fn a_second(count: u32) -> String {
    format!("{count} request{} a second", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(requests_per_second: u32, burst: Option<u32>) -> RequestBuckets {
        let limits = RequestLimits { requests_per_second: Some(requests_per_second), burst };
        Limits::new(limits).requests.unwrap()
    }

    fn admitted(limits: &RequestBuckets, caller: &Caller, now: u64) -> usize {
        (0..1000).take_while(|_| limits.admit(caller, now).is_ok()).count()
    }

    #[test]
    fn each_caller_has_its_own_rate() {
        let peer = |address: &str| Caller::anonymous().from_peer(address.parse().ok());
        let limits = limits(5, Some(8));
        let alice = Caller::new("acme", "alice");
        for caller in [&alice, &Caller::new("acme", "bob"), &peer("192.0.2.1"), &peer("2001:db8::1")] {
            assert_eq!(admitted(&limits, caller, 0), 8, "{caller:?}");
        }
        // Another address of the same network, or another address of the same owner, is the same caller.
        for caller in [peer("2001:db8::2"), alice.clone().from_peer("192.0.2.9".parse().ok())] {
            assert_eq!(admitted(&limits, &caller, 0), 0, "{caller:?}");
        }
        assert_eq!(admitted(&limits, &peer("2001:db8:0:1::1"), 0), 8);
        assert_eq!(admitted(&limits, &alice, 1_000_000_000), 5, "after a second");
        assert_eq!(admitted(&limits, &alice, 60_000_000_000), 8, "after a pause no more than the burst");
    }

    #[test]
    fn the_refusal_says_how_many_and_when_to_try_again() {
        for (per_second, burst, now, expected) in [
            (1, None, 0, ("at most 1 request a second for you; wait, then try again", 1)),
            (5, Some(20), 0, ("at most 5 requests a second for you; wait, then try again", 1)),
            (1, Some(30), 0, ("at most 1 request a second for you; wait, then try again", 1)),
        ] {
            let limits = limits(per_second, burst);
            let alice = Caller::new("acme", "alice");
            admitted(&limits, &alice, now);
            let Err(Error::LimitReached { sentence, retry_after }) = limits.admit(&alice, now) else {
                panic!("it is refused")
            };
            assert_eq!((sentence.as_str(), retry_after), expected);
            assert!(limits.admit(&alice, now + u64::from(retry_after) * 1_000_000_000).is_ok(), "the advice is right");
        }
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let limits = Limits::new(RequestLimits { requests_per_second: None, burst: Some(1) });
        assert!((0..1000).all(|_| limits.admit_request(&Caller::anonymous()).is_ok()));
    }
}
