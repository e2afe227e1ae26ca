//! Pages of tasks.

use sabir_model as model;
use sabir_model::{Cursor, Wanted};
use sabir_proto::v1 as proto;

use super::task::{read_task, write_listed_task};
use crate::peer_response::PeerResponse;
use crate::protobuf::write_message;
use crate::wire_types::{Int32, Violations, WireList, non_empty};

/// Appends a page, one task after the other: repeated members may be spread over several messages that are read as one,
/// so a page of large tasks is never in memory a second time.
pub(super) fn write_page(page: &model::Page, out: &mut Vec<u8>) {
    for task in &page.tasks {
        let tasks = vec![write_listed_task(task, page.artifacts)];
        write_message(&proto::ListTasksResponse { tasks, ..proto::ListTasksResponse::default() }, out);
    }
    // The protocol counts in int32; a larger number becomes the largest int32.
    let count = |number: u64| i32::try_from(number).unwrap_or(i32::MAX);
    let rest = proto::ListTasksResponse {
        tasks: Vec::new(),
        next_page_token: page.next.as_ref().map(Cursor::to_token).unwrap_or_default(),
        page_size: count(page.page_size.into()),
        total_size: count(page.total),
    };
    write_message(&rest, out);
}

/// Protobuf does not tell an empty list of artifacts from none.
pub(super) fn read_page(page: proto::ListTasksResponse) -> Result<PeerResponse, Violations> {
    let mut violations = Violations::default();
    let has_artifacts = page.tasks.iter().any(|task| !task.artifacts.is_empty());
    let artifacts = if has_artifacts { Wanted::Yes } else { Wanted::No };
    let tasks = WireList::<_, ()>::Wire(page.tasks).read_each("tasks", &mut violations, read_task);
    let page_size = violations.count("pageSize", Some(Int32(page.page_size))).unwrap_or_default();
    let total = violations.count("totalSize", Some(Int32(page.total_size))).unwrap_or_default().into();
    let next = non_empty(Some(page.next_page_token.into()));
    let cursor = next.as_deref().and_then(Cursor::parse);
    let page = Box::new(model::Page { tasks, artifacts, next: cursor, page_size, total });
    violations.finish(Some(PeerResponse::Page { page, next }))
}
