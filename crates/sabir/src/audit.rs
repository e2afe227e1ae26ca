//! `sabir audit`: asks a running server who did what to which task.

use std::io::{self, ErrorKind, Write};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use sabir_model::Timestamp;
use serde_json::Value;

use crate::admin_client::{AdminClient, encoded};
use crate::agents::table;
use crate::cli::{AuditOptions, Since};
use crate::config::Audience;
use crate::local_server::Load;
use crate::terminal_text::visible;

const PAGE: usize = 1000;
/// How often a server is asked for what is new.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// Of a cell in the table.
const WIDEST: usize = 60;

/// Prints page by page: a log may have a million entries. Ends when nobody reads any more.
pub fn run(options: &AuditOptions, audience: Audience, load: Load, out: &mut impl Write) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    match runtime.block_on(print_entries(options, audience, load, out)) {
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) => {
            Ok(())
        }
        printed => printed,
    }
}

async fn print_entries(
    options: &AuditOptions,
    audience: Audience,
    load: Load,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let server = AdminClient::new(&options.server, load)?;
    let filters = filters(options, SystemTime::now());
    let (mut after, mut has_printed) = (0, false);
    loop {
        let mut page = server.call("GET", &format!("audit?limit={PAGE}&after={after}{filters}")).await?;
        let Value::Array(entries) = page["entries"].take() else { bail!(server.strange("no list")) };
        if !entries.is_empty() {
            out.write_all(show(&entries, audience, has_printed).as_bytes())?;
            out.flush()?;
            has_printed = true;
        }
        let newest = entries.last().and_then(|entry| entry["number"].as_u64());
        match page["after"].as_u64() {
            Some(next) if next > after => after = next,
            _ if options.follow => {
                after = newest.unwrap_or(after);
                tokio::time::sleep(FOLLOW_INTERVAL).await;
            }
            _ => {
                warn_of_lost(&page);
                break;
            }
        }
    }
    if !has_printed && matches!(audience, Audience::Person) {
        out.write_all(b"Nothing of this kind was recorded. --since says how far to look back.\n")?;
    }
    Ok(())
}

fn warn_of_lost(page: &Value) {
    if let Some(lost) = page["lost"].as_u64() {
        eprintln!("sabir: warning: {lost} refused calls were not recorded, since there were too many at once");
    }
}

/// The filters as parameters of a query, each with `&` in front.
fn filters(options: &AuditOptions, now: SystemTime) -> String {
    let since = match options.since {
        Since::Begin => None,
        Since::Time(time) => Some(time),
        Since::Ago(age) => {
            let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let millis = i64::try_from(now.saturating_sub(age).as_millis()).unwrap_or(i64::MAX);
            Some(Timestamp::from_millis(millis))
        }
    };
    let given = [
        ("subject", options.subject.clone()),
        ("task", options.task.clone()),
        ("action", options.action.clone()),
        ("since", since.map(|time| time.to_string())),
    ];
    given.into_iter().filter_map(|(name, value)| Some(format!("&{name}={}", encoded(&value?)))).collect()
}

fn show(entries: &[Value], audience: Audience, is_continued: bool) -> String {
    match audience {
        Audience::Program => entries.iter().map(|entry| format!("{entry}\n")).collect(),
        Audience::Person => {
            let titles = ["number", "time", "who", "from", "action", "outcome", "agent", "task", "owner", "detail"];
            let lines = table(&titles, entries.iter().map(row));
            match is_continued {
                true => lines.split_inclusive('\n').skip(1).collect(),
                false => lines,
            }
        }
    }
}

fn row(entry: &Value) -> Vec<String> {
    let text = |key: &str| match &entry[key] {
        Value::Null => None,
        Value::String(text) => Some(visible(text)),
        value => Some(visible(&value.to_string())),
    };
    let who = match (text("subject"), text("tenant")) {
        (Some(subject), Some(tenant)) => format!("{subject}@{tenant}"),
        (Some(subject), None) => subject,
        (None, _) => "anonymous".to_owned(),
    };
    let cell = |key: &str| text(key).unwrap_or_else(|| "-".to_owned());
    let mut cells = vec![cell("number"), cell("time"), who];
    cells.extend(["peer", "action", "outcome", "agent", "task", "owner", "detail"].map(cell));
    cells.iter().map(|cell| shortened(cell)).collect()
}

fn shortened(text: &str) -> String {
    match text.chars().count() > WIDEST {
        true => text.chars().take(WIDEST - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::RunningServer;

    #[test]
    fn people_see_a_table_that_no_text_breaks() {
        let attack = "x\u{1b}[2J\n  9  now  root  \u{202e}";
        let entry = json!({"number": 7, "time": "2026-05-01T12:00:00.000Z", "subject": attack, "tenant": "acme\tb",
            "action": "cancel", "outcome": ["\u{9b}2J"], "task": format!("t\r\n{}", "y".repeat(100)), "detail": attack});
        let text = show(&[entry.clone(), entry.clone()], Audience::Person, false);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\t', '\r']), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 300), "{text}");
        assert_eq!(show(std::slice::from_ref(&entry), Audience::Person, true).lines().count(), 1);
        // Programs get everything as it is, each entry on one line.
        let lines = show(&[entry.clone(), entry.clone()], Audience::Program, false);
        let read: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, [entry.clone(), entry]);
    }

    #[test]
    fn filters_are_encoded() {
        let options = AuditOptions {
            subject: Some("https://idp.example/#al&ce".into()),
            task: Some("ü".into()),
            action: Some("webhook-set".into()),
            since: Since::Ago(Duration::from_secs(3600)),
            follow: false,
            server: RunningServer { url: None, token: None, config: None },
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(7200);
        assert_eq!(
            filters(&options, now),
            "&subject=https%3A%2F%2Fidp.example%2F%23al%26ce&task=%C3%BC&action=webhook-set\
             &since=1970-01-01T01%3A00%3A00.000Z"
        );
        let options = AuditOptions { subject: None, task: None, action: None, since: Since::Begin, ..options };
        assert_eq!(filters(&options, now), "");
    }
}
