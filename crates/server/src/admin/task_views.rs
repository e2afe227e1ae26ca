//! Tasks as operators see them: a page, one task, and what a cancel by filter did.

use http::StatusCode;
use sabir_engine::{Canceled, Engine, SummaryPage, TaskDetails, TaskSummary};
use sabir_model::{Caller, Message, QuestionId, State, TaskId};
use sabir_wire::{birth_name, excerpt};
use serde::Serialize;

use super::system::StateCounts;
use super::task_query::{Purpose, TaskQuery, number_alone};
use super::{AdminRefusal, AdminReply};

/// So much of a text is shown.
const MAX_CHARS: usize = 200;

#[derive(Serialize)]
struct PageView<'a> {
    tasks: Vec<TaskView<'a>>,
    /// What `after` is for the next page; left out where nothing follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    counts: StateCounts,
}

#[derive(Serialize)]
struct TaskView<'a> {
    number: u64,
    id: &'a str,
    context: &'a str,
    agent: &'a str,
    owner: String,
    state: &'static str,
    #[serde(rename = "statusTime")]
    status_time: String,
    created: String,
    /// The number of the last event.
    events: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<QuestionView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dialect: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
}

#[derive(Serialize)]
struct QuestionView {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    r#type: sabir_model::QuestionType,
    text: String,
    /// The scope without which nobody may answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    approver: Option<String>,
}

#[derive(Serialize)]
struct DetailsView<'a> {
    #[serde(flatten)]
    task: TaskView<'a>,
    webhooks: usize,
    bytes: u64,
    /// Why it is queued.
    #[serde(rename = "waitsFor", skip_serializing_if = "Option::is_none")]
    waits_for: Option<String>,
}

#[derive(Serialize)]
struct CanceledView<'a> {
    canceled: u64,
    failed: Vec<FailureView<'a>>,
}

#[derive(Serialize)]
struct FailureView<'a> {
    number: u64,
    id: &'a str,
    reason: &'a str,
}

pub(super) async fn list(engine: &Engine, caller: &Caller, query: Option<&str>) -> Result<AdminReply, AdminRefusal> {
    let TaskQuery { filter, from, limit } = TaskQuery::parse(query, Purpose::List)?;
    let SummaryPage { tasks, more, .. } = engine.summaries(caller, &filter, from, limit).await?;
    let counts = engine.task_counts(filter.owner.as_ref()).await?;
    let counted = counts.iter().filter(|count| filter.agent.as_ref().is_none_or(|agent| count.agent == *agent));
    let page = PageView {
        after: tasks.last().filter(|_| more).map(|task| task.cursor().to_token()),
        tasks: tasks.iter().map(TaskView::of).collect(),
        counts: StateCounts::of(counted),
    };
    Ok(AdminReply::new(StatusCode::OK, &page))
}

pub(super) async fn show(
    engine: &Engine,
    caller: &Caller,
    id: &str,
    query: Option<&str>,
) -> Result<AdminReply, AdminRefusal> {
    let id = sabir_wire::path_segment(id).ok_or_else(|| AdminRefusal::invalid("the id is not encoded well"))?;
    let number = number_alone(query)?;
    let found = match TaskId::parse(&*id) {
        Ok(id) => engine.task_details(caller, &id, number).await?,
        Err(_) => Vec::new(),
    };
    match found.as_slice() {
        [] => {
            let with_number = number.map_or_else(String::new, |no| format!(" with the number {}", no.0));
            Err(AdminRefusal::not_found(format!("there is no task {}{with_number}", excerpt(&id))))
        }
        [one] => Ok(AdminReply::new(StatusCode::OK, &DetailsView::of(one))),
        several => {
            let spell = |details: &TaskDetails| {
                let row = &details.summary.row;
                format!("{} ({} at {})", row.no.0, row.owner, row.agent)
            };
            let numbers: Vec<String> = several.iter().map(spell).collect();
            let detail = format!("several tasks have this id; name one with ?number=, of: {}", numbers.join(", "));
            Err(AdminRefusal::Problem { status: StatusCode::CONFLICT, detail })
        }
    }
}

pub(super) async fn cancel(engine: &Engine, caller: &Caller, query: Option<&str>) -> Result<AdminReply, AdminRefusal> {
    let TaskQuery { filter, .. } = TaskQuery::parse(query, Purpose::Cancel)?;
    let Canceled { canceled, failed } = engine.cancel_matching(caller, &filter).await?;
    tracing::info!(canceled, failed = failed.len(), "an operator canceled tasks");
    let failed = failed.iter().map(|(no, id, reason)| FailureView { number: no.0, id: id.as_str(), reason });
    Ok(AdminReply::new(StatusCode::OK, &CanceledView { canceled, failed: failed.collect() }))
}

impl<'a> TaskView<'a> {
    fn of(task: &'a TaskSummary) -> Self {
        let TaskSummary { row, status, first_message, node } = task;
        let question = status.message.as_deref().filter(|_| row.state.is_waiting());
        Self {
            number: row.no.0,
            id: row.task.as_str(),
            context: row.context.as_str(),
            agent: row.agent.as_str(),
            owner: row.owner.to_string(),
            state: row.state.name(),
            status_time: row.time.to_string(),
            created: row.created.to_string(),
            events: row.seq,
            message: first_message.as_deref().map(shortened_text),
            status: status.message.as_deref().map(shortened_text).filter(|text| !text.is_empty()),
            question: question.map(|message| QuestionView::of(task, message)),
            dialect: birth_name(row.born),
            node: node.as_deref(),
        }
    }
}

impl QuestionView {
    fn of(task: &TaskSummary, message: &Message) -> Self {
        let TaskSummary { row, status, .. } = task;
        // After a turn that ended by asking, nothing happens until the answer comes.
        let by_turn = || row.turn_over.then(|| QuestionId::issue(&row.task, row.seq));
        let id = status.question_id(&row.task).or_else(by_turn);
        Self {
            id: id.map(|id| id.to_string()),
            r#type: message.question_type(),
            text: shortened(&message.question_text()),
            approver: message.approver(),
        }
    }
}

impl<'a> DetailsView<'a> {
    fn of(details: &'a TaskDetails) -> Self {
        let TaskDetails { summary, webhooks, bytes } = details;
        let waits = summary.status.message.as_deref().filter(|_| summary.row.state == State::Submitted);
        Self { task: TaskView::of(summary), webhooks: *webhooks, bytes: *bytes, waits_for: waits.map(shortened_text) }
    }
}

fn shortened_text(message: &Message) -> String {
    shortened(&message.text())
}

/// One line, and not longer than a row shows.
fn shortened(text: &str) -> String {
    let text = text.trim();
    let mut letters = text.chars();
    let first: String = letters.by_ref().take(MAX_CHARS).collect();
    if letters.next().is_none() { first } else { first.chars().take(MAX_CHARS - 1).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        let long = "é".repeat(MAX_CHARS + 1);
        for (text, expected) in [("  a b\n", "a b"), (&*"x".repeat(MAX_CHARS), &*"x".repeat(MAX_CHARS))] {
            assert_eq!(shortened(text), expected);
        }
        let cut = shortened(&long);
        assert_eq!(cut.chars().count(), MAX_CHARS);
        assert!(cut.ends_with("é…"), "{cut}");
    }
}
