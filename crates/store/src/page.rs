//! Where a page ends: of events by their bytes, of a list by its places.

/// A page of events stops when its bodies are about this large.
pub(crate) const EVENT_BYTES: usize = 1 << 20;

/// Shortens a list to its first `limit` entries; says whether more follow.
pub(crate) fn cut<T>(list: &mut Vec<T>, limit: usize) -> bool {
    let more = list.len() > limit;
    list.truncate(limit);
    more
}
