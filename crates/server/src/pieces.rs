//! Bytes on their way to one reader, handed to the connection piece by piece.
//!
//! What is large is copied out a piece at a time. A connection that does not flush then pins that piece only, and what it
//! was copied from can go when its last reader has taken the rest.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use sabir_model::Error;
use sabir_wire::Wrapper;

use crate::budget::Reservation;
use crate::encoded_tasks::{HeldEvent, ReleasableBytes, SharedBytes};

/// The largest piece that is handed to the connection at once, but for a few bytes at the end.
pub(crate) const PIECE: usize = 32 * 1024;

pub(crate) struct Pieces {
    before: Bytes,
    large: Option<Large>,
    /// So many bytes of the large part have been handed out.
    taken: usize,
    after: Bytes,
}

/// Bytes that are counted against the budget of the server while they are here.
pub(crate) enum Large {
    /// Nobody else's.
    Own(Bytes, #[allow(dead_code, reason = "it is there to be dropped")] Reservation),
    Task(SharedBytes),
    ReleasableBytes(Arc<ReleasableBytes>),
    Event(Bytes, #[allow(dead_code, reason = "it is there to be dropped")] Arc<HeldEvent>),
}

impl Large {
    fn len(&self) -> usize {
        match self {
            Large::Own(bytes, _) | Large::Event(bytes, _) => bytes.len(),
            Large::Task(shared) => shared.bytes().len(),
            Large::ReleasableBytes(loan) => loan.length(),
        }
    }

    fn bytes(&self) -> Result<Bytes, Error> {
        match self {
            Large::Own(bytes, _) | Large::Event(bytes, _) => Ok(bytes.clone()),
            Large::Task(shared) => Ok(shared.bytes().clone()),
            Large::ReleasableBytes(loan) => loan.bytes(),
        }
    }
}

impl Pieces {
    pub(crate) fn small(bytes: Vec<u8>) -> Self {
        Self { before: Bytes::from(bytes), large: None, taken: 0, after: Bytes::new() }
    }

    pub(crate) fn large(large: Large) -> Self {
        Self { before: Bytes::new(), large: Some(large), taken: 0, after: Bytes::new() }
    }

    pub(crate) fn wrapped(large: Large, Wrapper { before, after }: Wrapper) -> Self {
        Self { before: Bytes::from(before), after: Bytes::from(after), ..Self::large(large) }
    }

    /// With more behind it.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.after = [&self.after, bytes].concat().into();
    }

    /// With other bytes, if it is small.
    pub(crate) fn map_small(self, map: impl FnOnce(Bytes) -> Bytes) -> Self {
        match self.large {
            None => Self { before: map(self.before), ..self },
            Some(_) => self,
        }
    }

    /// How much is still to come.
    pub(crate) fn len(&self) -> usize {
        let large = self.large.as_ref().map_or(0, |large| large.len() - self.taken);
        self.before.len() + large + self.after.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether something of it has been handed out.
    pub(crate) fn has_begun(&self) -> bool {
        self.taken > 0
    }

    /// The next piece. An error says that there is no memory now for what was taken back; nothing is lost.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(large) = &self.large else {
            let next = std::mem::take(if self.before.is_empty() { &mut self.after } else { &mut self.before });
            return Ok((!next.is_empty()).then_some(next));
        };
        let bytes = large.bytes()?;
        let mut out = Vec::with_capacity(self.len().min(PIECE));
        let before = self.before.split_to(self.before.len().min(PIECE));
        out.extend_from_slice(&before);
        let end = bytes.len().min(self.taken + (PIECE - out.len()));
        out.extend_from_slice(&bytes[self.taken..end]);
        self.taken = end;
        if end == bytes.len() {
            self.large = None;
            self.taken = 0;
            out.extend_from_slice(&self.after);
            self.after.advance(self.after.len());
        }
        Ok(Some(Bytes::from(out)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;

    #[test]
    fn nothing_is_lost_between_the_pieces() {
        let budget = Budget::new(usize::MAX);
        for size in [1, 100, PIECE - 3, PIECE - 2, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 5] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let mut reserved = budget.nothing();
            reserved.grow_to(size).unwrap();
            let wrapper = Wrapper { before: b"<<".to_vec(), after: b">".to_vec() };
            let mut pieces = Pieces::wrapped(Large::Own(Bytes::from(bytes.clone()), reserved), wrapper);
            let mut whole = Vec::new();
            while !pieces.is_empty() {
                let left = pieces.len();
                let piece = pieces.next().unwrap().expect("it is not empty");
                assert!(piece.len() <= PIECE + 1, "{}", piece.len());
                assert_eq!(left - piece.len(), pieces.len());
                whole.extend_from_slice(&piece);
            }
            assert!(pieces.next().unwrap().is_none());
            assert_eq!(whole, [b"<<".as_slice(), &bytes, b">"].concat(), "{size}");
            assert_eq!(budget.reserved(), 0, "it is given back with the last piece");
        }
        let mut small = Pieces::small(b"small".to_vec());
        assert_eq!(small.next().unwrap().as_deref(), Some(b"small".as_slice()));
        assert!(small.is_empty() && small.next().unwrap().is_none());
    }
}
