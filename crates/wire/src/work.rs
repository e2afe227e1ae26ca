//! How many bytes of what callers and agents wrote are looked at.
//!
//! Whatever reads, compares or writes text of unknown length tells here how much of it. Outside of tests that costs
//! nothing; the tests ask whether the work grows no faster than the input, which a clock could not tell for sure.

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

    /// The bytes that are visited meanwhile, by this thread.
    pub(crate) fn count(job: impl FnOnce()) -> u64 {
        let before = VISITED.get();
        job();
        VISITED.get() - before
    }
}

#[cfg(test)]
mod tests;
