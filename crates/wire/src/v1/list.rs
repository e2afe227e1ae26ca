//! Lists of tasks: what is asked, and the page that is answered.

use sabir_model as model;
use sabir_model::{AgentId, ContextId, Cursor, Wanted};
use serde::{Deserialize, Serialize};

use super::dialect::{BIRTH, Task};
use super::read_state;
use crate::heard::Heard;
use crate::spelling::{Int, Moment, Name, Problems, Several, Text, given, object};

const DEFAULT_PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 100;

#[derive(Debug, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct ListParams<'a> {
    #[serde(borrow)]
    tenant: Option<Text<'a>>,
    #[serde(alias = "context_id")]
    context_id: Option<Text<'a>>,
    status: Option<Name<'a>>,
    #[serde(alias = "page_size")]
    page_size: Option<Int>,
    #[serde(alias = "page_token")]
    page_token: Option<Text<'a>>,
    #[serde(alias = "history_length")]
    history_length: Option<Int>,
    #[serde(alias = "status_timestamp_after")]
    status_timestamp_after: Option<Moment>,
    #[serde(alias = "include_artifacts")]
    include_artifacts: Option<bool>,
}

/// All four members are always there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub(super) struct Page<'a> {
    #[serde(borrow, default)]
    tasks: Several<'a, Task<'a>, model::Task>,
    #[serde(default, alias = "next_page_token")]
    next_page_token: Option<Text<'a>>,
    #[serde(alias = "page_size")]
    page_size: Option<Int>,
    #[serde(alias = "total_size")]
    total_size: Option<Int>,
}

object! { read ListParams<'a>; both Page<'a> }

impl TryFrom<ListParams<'_>> for model::List {
    type Error = Problems;

    fn try_from(params: ListParams<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let agent = problems.id("tenant", params.tenant, AgentId::parse);
        let context = problems.id("contextId", params.context_id, ContextId::parse);
        let state = problems.keep("status", read_state(params.status)).flatten();
        let page_size = match params.page_size.map(|size| u32::try_from(size.0)) {
            None => DEFAULT_PAGE,
            Some(Ok(size @ 1..=LARGEST_PAGE)) => size,
            Some(_) => {
                problems.add("pageSize", "must be between 1 and 100");
                DEFAULT_PAGE
            }
        };
        let from = given(params.page_token).and_then(|token| {
            let cursor = Cursor::parse(&token);
            if cursor.is_none() {
                problems.add("pageToken", "is not a token of this server");
            }
            cursor
        });
        let history = problems.count("historyLength", params.history_length);
        let artifacts = if params.include_artifacts == Some(true) { Wanted::Yes } else { Wanted::No };
        let since = params.status_timestamp_after.map(|moment| moment.0);
        problems.or(Some(model::List { agent, context, state, since, page_size, from, history, artifacts }))
    }
}

impl<'a> From<&'a model::Page> for Page<'a> {
    fn from(page: &'a model::Page) -> Self {
        let tasks = page.tasks.iter().map(|task| Task::listed(task, page.artifacts)).collect();
        // The protocol counts in int32; more than that is as good as the largest.
        let count = |number: u64| Int(i32::try_from(number).unwrap_or(i32::MAX));
        Page {
            tasks: Several::Made(tasks),
            next_page_token: Some(page.next.as_ref().map(Cursor::to_token).unwrap_or_default().into()),
            page_size: Some(count(page.page_size.into())),
            total_size: Some(count(page.total)),
        }
    }
}

impl TryFrom<Page<'_>> for Heard {
    type Error = Problems;

    fn try_from(page: Page<'_>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let tasks = page.tasks.into_read();
        let artifacts = if tasks.iter().any(Task::has_artifacts) { Wanted::Yes } else { Wanted::No };
        let tasks = Several::<_, ()>::Made(tasks).read_each("tasks", &mut problems, |task| task.read(BIRTH));
        let page_size = problems.count("pageSize", page.page_size).unwrap_or_default();
        let total = problems.count("totalSize", page.total_size).unwrap_or_default().into();
        let next = given(page.next_page_token);
        let cursor = next.as_deref().and_then(Cursor::parse);
        let page = Box::new(model::Page { tasks, artifacts, next: cursor, page_size, total });
        problems.or(Some(Heard::Page { page, next }))
    }
}
