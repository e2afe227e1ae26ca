//! Lists of tasks: the params of the request, and the page of the answer.

use sabir_model as model;
use sabir_model::{AgentId, ContextId, Cursor, Wanted};
use serde::{Deserialize, Serialize};

use super::dialect::{BIRTH, Task};
use super::read_state;
use crate::peer_response::PeerResponse;
use crate::wire_types::{EnumValue, Int32, Rfc3339, Text, Violations, WireList, non_empty, object};

const DEFAULT_PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 100;

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct ListParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(alias = "context_id")]
    pub(super) context_id: Option<Text<'a>>,
    pub(super) status: Option<EnumValue<'a>>,
    #[serde(alias = "page_size")]
    pub(super) page_size: Option<Int32>,
    #[serde(alias = "page_token")]
    pub(super) page_token: Option<Text<'a>>,
    #[serde(alias = "history_length")]
    pub(super) history_length: Option<Int32>,
    #[serde(alias = "status_timestamp_after")]
    pub(super) status_timestamp_after: Option<Rfc3339>,
    #[serde(alias = "include_artifacts")]
    pub(super) include_artifacts: Option<bool>,
}

/// All four members are always written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Page<'a> {
    #[serde(borrow, default)]
    tasks: WireList<'a, Task<'a>, model::Task>,
    #[serde(default, alias = "next_page_token")]
    next_page_token: Option<Text<'a>>,
    #[serde(alias = "page_size")]
    page_size: Option<Int32>,
    #[serde(alias = "total_size")]
    total_size: Option<Int32>,
}

object! { read ListParams<'a>; both Page<'a> }

impl TryFrom<ListParams<'_>> for model::List {
    type Error = Violations;

    fn try_from(params: ListParams<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let agent = violations.id("tenant", params.tenant, AgentId::parse);
        let context = violations.id("contextId", params.context_id, ContextId::parse);
        let state = violations.check("status", read_state(params.status)).flatten();
        let page_size = match params.page_size.map(|size| u32::try_from(size.0)) {
            None => DEFAULT_PAGE,
            Some(Ok(size @ 1..=LARGEST_PAGE)) => size,
            Some(_) => {
                violations.add("pageSize", "must be between 1 and 100");
                DEFAULT_PAGE
            }
        };
        let from = non_empty(params.page_token).and_then(|token| {
            let cursor = Cursor::parse(&token);
            if cursor.is_none() {
                violations.add("pageToken", "is not a token of this server");
            }
            cursor
        });
        let history = violations.count("historyLength", params.history_length);
        let artifacts = if params.include_artifacts == Some(true) { Wanted::Yes } else { Wanted::No };
        let since = params.status_timestamp_after.map(|moment| moment.0);
        violations.finish(Some(model::List { agent, context, state, since, page_size, from, history, artifacts }))
    }
}

impl<'a> From<&'a model::Page> for Page<'a> {
    fn from(page: &'a model::Page) -> Self {
        let tasks = page.tasks.iter().map(|task| Task::listed(task, page.artifacts)).collect();
        // The protocol counts in int32; a larger number becomes the largest int32.
        let count = |number: u64| Int32(i32::try_from(number).unwrap_or(i32::MAX));
        Page {
            tasks: WireList::Wire(tasks),
            next_page_token: Some(page.next.as_ref().map(Cursor::to_token).unwrap_or_default().into()),
            page_size: Some(count(page.page_size.into())),
            total_size: Some(count(page.total)),
        }
    }
}

impl TryFrom<Page<'_>> for PeerResponse {
    type Error = Violations;

    fn try_from(page: Page<'_>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        let tasks = page.tasks.into_wire();
        let artifacts = if tasks.iter().any(Task::has_artifacts) { Wanted::Yes } else { Wanted::No };
        let tasks = WireList::<_, ()>::Wire(tasks).read_each("tasks", &mut violations, |task| task.read(BIRTH));
        let page_size = violations.count("pageSize", page.page_size).unwrap_or_default();
        let total = violations.count("totalSize", page.total_size).unwrap_or_default().into();
        let next = non_empty(page.next_page_token);
        let cursor = next.as_deref().and_then(Cursor::parse);
        let page = Box::new(model::Page { tasks, artifacts, next: cursor, page_size, total });
        violations.finish(Some(PeerResponse::Page { page, next }))
    }
}
