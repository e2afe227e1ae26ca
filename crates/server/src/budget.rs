//! Memory that requests and replies may take together.
//!
//! Each of them is bounded, but there can be thousands. What is large is reserved here while it exists; a caller for whom
//! nothing is left is told to try again later. Small things are not counted, so that small calls work at all times, and
//! one large thing alone always fits, so that nothing is refused for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sabir_model::Error;

/// Requests and replies up to this size are not counted: their number is bounded by that of connections.
pub(crate) const SMALL: usize = 64 * 1024;

pub(crate) struct Budget {
    limit: usize,
    reserved: AtomicUsize,
}

/// Bytes that are reserved until this is dropped.
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, reserved: AtomicUsize::new(0) })
    }

    pub(crate) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    /// To be grown as what it is for grows.
    pub(crate) fn nothing(self: &Arc<Self>) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }
}

impl Reservation {
    /// Reserves for so many bytes in all.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), Error> {
        let bytes = if bytes <= SMALL { 0 } else { bytes };
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let (limit, own) = (self.budget.limit, self.bytes);
        let fits = |reserved: usize, all: usize| all <= limit || reserved == own;
        let reserve = |reserved: usize| reserved.checked_add(more).filter(|all| fits(reserved, *all));
        match self.budget.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve) {
            Ok(_) => {
                self.bytes = bytes;
                Ok(())
            }
            Err(_) => Err(Error::Overloaded),
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_is_reserved_while_it_exists() {
        let budget = Budget::new(3 * SMALL);
        let mut one = budget.nothing();
        let mut other = budget.nothing();
        for (size, reserved) in [(SMALL, 0), (SMALL + 1, SMALL + 1), (2 * SMALL, 2 * SMALL), (10, 2 * SMALL)] {
            one.grow_to(size).unwrap();
            assert_eq!(budget.reserved(), reserved, "{size}");
        }
        other.grow_to(SMALL).unwrap();
        assert!(matches!(other.grow_to(SMALL + 1), Err(Error::Overloaded)));
        assert_eq!(budget.reserved(), 2 * SMALL);
        drop(one);
        assert_eq!(budget.reserved(), 0);
        assert!(other.grow_to(3 * SMALL).is_ok());
        assert!(other.grow_to(30 * SMALL).is_ok(), "it is alone");
        assert!(budget.nothing().grow_to(2 * SMALL).is_err());
        drop(other);
        assert_eq!(budget.reserved(), 0);
    }
}
