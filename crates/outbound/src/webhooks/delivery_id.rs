//! The id of a delivery: the same whenever the same event is sent to the same webhook, so that receivers can drop
//! duplicates.

use aws_lc_rs::digest::{SHA256, digest};
use sabir_model::{PushConfigId, Seq, TaskId};
use sabir_store::TaskNo;

/// The number of the task is not enough: every database begins with 1, and one receiver may have several servers.
pub(super) fn delivery_id(no: TaskNo, task: &TaskId, webhook: &PushConfigId, event: Seq) -> String {
    let name = format!("{}/{event}/{}/{task}/{webhook}", no.0, task.as_str().len());
    let hash = digest(&SHA256, name.as_bytes());
    let hex: String = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("msg_{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_event_has_the_same_id() {
        let id = |no, task: &str, webhook: &str, event| {
            delivery_id(TaskNo(no), &TaskId::parse(task).unwrap(), &PushConfigId::parse(webhook).unwrap(), event)
        };
        assert_eq!(id(1, "t", "w", 2), id(1, "t", "w", 2));
        let ids = [
            id(1, "t", "w", 2),
            id(1, "t", "w", 3),
            id(2, "t", "w", 2),
            id(1, "t", "v", 2),
            id(12, "t", "w", 3),
            id(1, "t", "2/w", 3),
            id(1, "t/2", "w", 3),
            id(1, "u", "w", 2),
        ];
        for (place, one) in ids.iter().enumerate() {
            assert_eq!(one.len(), 36);
            assert!(ids[place + 1..].iter().all(|other| other != one), "{one}");
        }
    }
}
