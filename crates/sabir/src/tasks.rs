//! `sabir tasks`: shows the tasks of a running server, cancels some of them, or has them given to another owner.

use std::io::Write;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use sabir_model::Timestamp;
use serde_json::{Value, json};

use crate::admin_client::{AdminClient, encoded};
use crate::agents::table;
use crate::cli::{AssignOptions, CancelTasksOptions, Since, TaskFilterOptions, TasksOptions};
use crate::config::Audience;
use crate::local_server::Load;
use crate::nodes::spell_seconds;
use crate::terminal_text::visible;

/// Runs may need some time to stop.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(600);
/// So many tasks are shown before they are canceled.
const SHOWN_BEFORE_CANCEL: usize = 10;
/// Of a text in a table.
const WIDEST: usize = 48;
/// What one page has at most.
const PAGE: usize = 1000;
/// So many tasks are found before they are canceled. Whoever has more cancels again.
const MOST_CANCELED: usize = 10_000;
/// So many tasks are named by their numbers in one call: the server takes no more.
const CANCELED_AT_ONCE: usize = 200;

/// Tasks that match, and what the server says of all.
struct Found {
    tasks: Vec<Value>,
    counts: Value,
    /// Whether more tasks match.
    more: bool,
}

/// Lists tasks.
pub fn list(options: &TasksOptions, audience: Audience, load: Load) -> anyhow::Result<String> {
    let now = SystemTime::now();
    let mut filter = options.filter.clone();
    if filter.states.is_empty() {
        filter.states.push("open".to_owned());
    }
    let server = AdminClient::new(&options.server, load)?;
    let runtime = runtime()?;
    let limit = usize::try_from(options.limit).unwrap_or(usize::MAX);
    let found = runtime.block_on(tasks(&server, &query(&filter, now), limit))?;
    if audience == Audience::Program {
        if found.more {
            eprintln!("{}", more_follow(found.tasks.len()));
        }
        return Ok(array(&found.tasks));
    }
    // Who is stuck is known by the server alone: it knows when the last event was stored.
    let is_working = found.tasks.iter().any(|task| task["state"] == "working");
    let stuck = match is_working && filter.idle.is_none() {
        true => {
            let filter = TaskFilterOptions { states: vec!["stuck".to_owned()], ..filter.clone() };
            runtime.block_on(tasks(&server, &query(&filter, now), limit))?.tasks
        }
        false => Vec::new(),
    };
    Ok(show(&found, &stuck, &filter, now))
}

fn more_follow(shown: usize) -> String {
    format!("More tasks match than the {shown} shown; --limit shows more, and filters show fewer.")
}

/// Cancels tasks. `ask` says whether a person at a terminal can be asked.
pub fn cancel(
    options: &CancelTasksOptions,
    ask: Asking,
    audience: Audience,
    load: Load,
) -> anyhow::Result<(String, Vec<String>)> {
    let now = SystemTime::now();
    let filter = query(&options.filter, now);
    match (filter.is_empty(), options.all) {
        (true, false) => bail!("a filter is required, such as --id or --agent; --all cancels every open task"),
        (false, true) => bail!("--all cannot be combined with a filter"),
        _ => {}
    }
    let server = AdminClient::new(&options.server, load)?;
    let runtime = runtime()?;
    let calls = match ask {
        _ if options.yes => vec![if options.all { "&all=true".to_owned() } else { filter }],
        Asking::Impossible => bail!("there is nobody to ask; --yes cancels without asking"),
        Asking::Possible => {
            let states = if options.filter.states.is_empty() { "&state=open" } else { "" };
            let mut found = runtime.block_on(tasks(&server, &format!("{filter}{states}"), MOST_CANCELED))?;
            // A list takes the beginning of an id, and a cancel the whole.
            found.tasks.retain(|task| options.filter.id.as_ref().is_none_or(|id| task["id"] == id.as_str()));
            if found.tasks.is_empty() {
                return Ok(("No open task matches.\n".to_owned(), Vec::new()));
            }
            if !confirmed(&found, now)? {
                return Ok(("Nothing was canceled.\n".to_owned(), Vec::new()));
            }
            found.tasks.chunks(CANCELED_AT_ONCE).map(|tasks| filter.clone() + &numbers(tasks)).collect()
        }
    };
    let (mut canceled, mut failed) = (0, Vec::new());
    for call in calls {
        let below = format!("tasks/cancel?{}", call.trim_start_matches('&'));
        let done = runtime.block_on(server.call_within("POST", &below, CANCEL_TIMEOUT));
        let mut done = done.map_err(|error| match canceled {
            0 => error,
            _ => error.context(format!("{canceled} tasks are canceled, and the others may not be")),
        })?;
        canceled += done["canceled"].as_u64().unwrap_or(0);
        if let Value::Array(tasks) = done["failed"].take() {
            failed.extend(tasks);
        }
    }
    let failures = failed.iter().map(|task| format!("{}: {}", text(&task["id"]), text(&task["reason"]))).collect();
    let told = match audience {
        Audience::Program => format!("{}\n", json!({"canceled": canceled, "failed": failed})),
        Audience::Person if canceled == 1 => "1 task is canceled.\n".to_owned(),
        Audience::Person => format!("{canceled} tasks are canceled.\n"),
    };
    Ok((told, failures))
}

/// The numbers of tasks as parameters of a query, each with `&` in front.
fn numbers(tasks: &[Value]) -> String {
    // One that is no number is refused by the server. Left out, the call would cancel whatever matches the filter.
    tasks.iter().map(|task| format!("&number={}", encoded(&task["number"].to_string()))).collect()
}

/// Whether somebody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    Possible,
    Impossible,
}

pub fn assign(options: &AssignOptions, audience: Audience, load: Load) -> anyhow::Result<String> {
    let mut query = format!("tasks/assign?from={}&to={}", encoded(&options.from), encoded(&options.to));
    for (name, tenant) in [("from_tenant", &options.from_tenant), ("to_tenant", &options.to_tenant)] {
        if let Some(tenant) = tenant {
            query += &format!("&{name}={}", encoded(tenant));
        }
    }
    let server = AdminClient::new(&options.server, load)?;
    let done = runtime()?.block_on(server.call("POST", &query))?;
    Ok(match audience {
        Audience::Program => format!("{done}\n"),
        Audience::Person => {
            let left = match done["left"].as_u64() {
                Some(0) | None => String::new(),
                Some(left) => {
                    format!("; {left} stay: they are at work, or the new owner has one of the same id. Try again later")
                }
            };
            format!("{} tasks belong to {} now{left}\n", visible(&done["moved"].to_string()), options.to)
        }
    })
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")
}

/// The first tasks that match, page by page.
async fn tasks(server: &AdminClient, query: &str, limit: usize) -> anyhow::Result<Found> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let wanted = PAGE.min(limit - found.len());
        let mut page = server.call("GET", &format!("tasks?limit={wanted}{query}{after}")).await?;
        let Value::Array(tasks) = page["tasks"].take() else { bail!(server.strange("no list")) };
        let is_empty = tasks.is_empty();
        found.extend(tasks);
        match page["after"].as_str() {
            Some(next) if !is_empty && found.len() < limit => after = format!("&after={}", encoded(next)),
            next => return Ok(Found { more: next.is_some(), tasks: found, counts: page["counts"].take() }),
        }
    }
}

/// The filters as parameters of a query, each with `&` in front.
fn query(filter: &TaskFilterOptions, now: SystemTime) -> String {
    let states = filter.states.iter().filter(|state| *state != "all").map(|state| ("state", state.clone()));
    let since = match filter.since {
        None | Some(Since::Begin) => None,
        Some(Since::Time(time)) => Some(time.to_string()),
        Some(Since::Ago(age)) => {
            Some(Timestamp::from_millis(millis(now).saturating_sub(whole_millis(age))).to_string())
        }
    };
    let given = [
        ("idle", filter.idle.map(|idle| idle.to_string())),
        ("agent", filter.agent.clone()),
        ("context", filter.context.clone()),
        ("owner", filter.owner.clone()),
        ("tenant", filter.tenant.clone()),
        ("since", since),
        ("id", filter.id.clone()),
        ("number", filter.number.map(|number| number.to_string())),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
    states.chain(given).map(|(name, value)| format!("&{name}={}", encoded(&value))).collect()
}

fn millis(now: SystemTime) -> i64 {
    whole_millis(now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn whole_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn show(found: &Found, stuck: &[Value], filter: &TaskFilterOptions, now: SystemTime) -> String {
    let mut out = counts(&found.counts);
    if found.tasks.is_empty() {
        out += match filter.states.as_slice() {
            [only] if only == "open" => "Nothing is open. --state all shows finished tasks too.\n",
            _ => "No task matches.\n",
        };
        return out;
    }
    out += &tasks_table(&found.tasks, stuck, now);
    if found.more {
        out += &format!("{}\n", more_follow(found.tasks.len()));
    }
    out
}

/// One line on all tasks, whatever the filters say of states.
fn counts(counts: &Value) -> String {
    let known =
        ["working", "submitted", "input-required", "auth-required", "failed", "completed", "canceled", "rejected"];
    let counted = known.iter().filter_map(|state| Some((counts[*state].as_u64().filter(|count| *count > 0)?, state)));
    let words: Vec<String> = counted.map(|(count, state)| format!("{count} {state}")).collect();
    if words.is_empty() { String::new() } else { format!("{}\n", words.join(", ")) }
}

fn tasks_table(tasks: &[Value], stuck: &[Value], now: SystemTime) -> String {
    let is_stuck = |task: &Value| stuck.iter().any(|other| other["number"] == task["number"]);
    let row = |task: &Value| {
        let state = text(&task["state"]) + if is_stuck(task) { ", stuck" } else { "" };
        let texts = [&task["question"]["text"], &task["status"], &task["message"]];
        let latest = texts.into_iter().find_map(|value| value.as_str().filter(|text| !text.is_empty()));
        vec![
            text(&task["id"]),
            state,
            age(&task["statusTime"], now),
            text(&task["agent"]),
            text(&task["owner"]),
            text(&task["events"]),
            shortened(&visible(latest.unwrap_or("-"))),
        ]
    };
    table(&["id", "state", "since", "agent", "owner", "events", "message"], tasks.iter().map(row))
}

fn age(time: &Value, now: SystemTime) -> String {
    let since = time.as_str().and_then(Timestamp::parse);
    since.map_or_else(
        || "-".to_owned(),
        |since| spell_seconds(millis(now).saturating_sub(since.as_millis()) as f64 / 1000.0),
    )
}

/// Shows what would be canceled, and asks. Only a clear yes cancels.
fn confirmed(found: &Found, now: SystemTime) -> anyhow::Result<bool> {
    let tasks = &found.tasks;
    let shown = &tasks[..tasks.len().min(SHOWN_BEFORE_CANCEL)];
    let mut more = match tasks.len() - shown.len() {
        0 => String::new(),
        rest => format!("  and {rest} more\n"),
    };
    if found.more {
        more += "Others match too, and are left alone; cancel again for those.\n";
    }
    let these = if tasks.len() == 1 { "this task".to_owned() } else { format!("these {} tasks", tasks.len()) };
    eprint!("{}{more}Cancel {these}? [y/N] ", tasks_table(shown, &[], now));
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("cannot read the answer")?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// One JSON array, an object per line.
fn array(objects: &[Value]) -> String {
    let lines: Vec<String> = objects.iter().map(Value::to_string).collect();
    if lines.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", lines.join(",\n")) }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => visible(text),
        value => visible(&value.to_string()),
    }
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > WIDEST {
        true => line.chars().take(WIDEST - 3).chain("...".chars()).collect(),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn filters_become_a_query() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let filter = TaskFilterOptions {
            states: words(&["stuck"]),
            idle: Some(60),
            agent: Some("a b".to_owned()),
            owner: Some("token:bob".to_owned()),
            since: Some(Since::Ago(Duration::from_secs(3600))),
            number: Some(17),
            ..TaskFilterOptions::default()
        };
        assert_eq!(
            query(&filter, at(7200)),
            "&state=stuck&idle=60&agent=a%20b&owner=token%3Abob&since=1970-01-01T01%3A00%3A00.000Z&number=17"
        );
        let all = TaskFilterOptions { states: words(&["all"]), ..TaskFilterOptions::default() };
        assert_eq!(query(&all, at(0)), "");
    }

    #[test]
    fn people_see_a_table_without_control_characters() {
        let tasks = json!([
            {"number": 7, "id": "t-1", "state": "working", "statusTime": "1970-01-01T00:00:10.000Z", "agent": "demo",
             "owner": "anonymous", "events": 3, "message": format!("say \u{1b}[2J\nhello {}", "x".repeat(100))},
            {"number": 8, "id": "t-2", "state": "input-required", "statusTime": "1970-01-01T00:01:10.000Z", "agent": "demo",
             "owner": "token:bob", "events": 4, "message": "begin", "status": "May I?", "question": {"text": "May I write?"}},
        ]);
        let Value::Array(tasks) = tasks else { unreachable!() };
        let found = Found { tasks, counts: json!({"total": 2, "working": 2}), more: true };
        let shown = show(&found, &[json!({"number": 7})], &TaskFilterOptions::default(), at(100));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "2 working");
        assert!(
            lines[2].contains("working, stuck") && lines[2].contains("1m30s") && lines[2].ends_with("..."),
            "{shown}"
        );
        assert!(lines[3].contains("May I write?") && !lines[3].contains("stuck"), "{shown}");
        assert!(lines[4].starts_with("More tasks match than the 2 shown;"), "{shown}");
        assert_eq!(numbers(&found.tasks), "&number=7&number=8");
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let none = Found { tasks: Vec::new(), counts: json!({}), more: false };
        let open = TaskFilterOptions { states: vec!["open".to_owned()], ..TaskFilterOptions::default() };
        assert!(show(&none, &[], &open, at(0)).starts_with("Nothing is open."));
    }
}
