//! Counts how many bytes of what callers and agents wrote are visited.
//!
//! Code that reads, compares or writes text of unknown length reports the length here. Outside of tests that costs
//! nothing. The tests check that the work grows no faster than the input, which a clock could not show reliably.

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn visit(_bytes: usize) {}

#[cfg(test)]
pub(crate) use counter::{count, visit};

#[cfg(test)]
mod counter {
    use std::cell::Cell;

    thread_local! {
        static VISITED: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn visit(bytes: usize) {
        VISITED.with(|visited| visited.set(visited.get() + bytes as u64));
    }

    /// The bytes that this thread visits during the job.
    pub(crate) fn count(job: impl FnOnce()) -> u64 {
        let before = VISITED.get();
        job();
        VISITED.get() - before
    }
}

#[cfg(test)]
mod tests;
