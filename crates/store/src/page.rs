//! Where a page ends: of events by their bytes, of a list by its places.

use sabir_model::{TaskId, Timestamp};

/// A page of events stops when its bodies are about this large.
pub(crate) const EVENT_BYTES: usize = 1 << 20;

/// Shortens a list to its first `limit` entries; says whether more follow.
///
/// A cursor names a time and an id. Two agents may have a task of one id and one time, and a page that
/// ended between the two would make the next one skip the second, so it ends before both.
pub(crate) fn cut<T>(list: &mut Vec<T>, limit: usize, place: impl Fn(&T) -> (Timestamp, &TaskId)) -> bool {
    if list.len() <= limit {
        return false;
    }
    let first_of_next = place(&list[limit]);
    let end = list[..limit].iter().rposition(|entry| place(entry) != first_of_next);
    let end = end.map_or(limit, |last| last + 1);
    list.truncate(end);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_list_is_cut() {
        for (list, limit, expected) in [
            ("", 3, ("", false)),
            ("cba", 3, ("cba", false)),
            ("dcba", 3, ("dcb", true)),
            ("dcbb", 3, ("dc", true)),
            ("dbbb", 3, ("d", true)),
            // More equals than fit on a page: better some than none.
            ("bbbb", 3, ("bbb", true)),
            ("a", 0, ("", true)),
        ] {
            let mut ids: Vec<TaskId> = list.chars().map(|id| TaskId::parse(id.to_string()).unwrap()).collect();
            let more = cut(&mut ids, limit, |id| (Timestamp::from_millis(0), id));
            let left: String = ids.iter().map(TaskId::as_str).collect();
            assert_eq!((left.as_str(), more), expected, "{list} cut at {limit}");
        }
    }
}
