//! The id of a delivery: the same whenever the same event is sent to the same webhook, so that receivers can drop
//! duplicates.

use aws_lc_rs::digest::{SHA256, digest};
use sabir_model::{PushConfigId, Seq};
use sabir_store::TaskNo;

pub(super) fn delivery_id(task: TaskNo, webhook: &PushConfigId, event: Seq) -> String {
    let name = format!("{}/{event}/{webhook}", task.0);
    let hash = digest(&SHA256, name.as_bytes());
    let hex: String = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("msg_{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_event_has_the_same_id() {
        let id = |task, webhook: &str, event| delivery_id(TaskNo(task), &PushConfigId::parse(webhook).unwrap(), event);
        assert_eq!(id(1, "w", 2), id(1, "w", 2));
        let ids = [id(1, "w", 2), id(1, "w", 3), id(2, "w", 2), id(1, "v", 2), id(12, "w", 3), id(1, "2/w", 3)];
        for (place, one) in ids.iter().enumerate() {
            assert_eq!(one.len(), 36);
            assert!(ids[place + 1..].iter().all(|other| other != one), "{one}");
        }
    }
}
