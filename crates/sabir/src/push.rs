//! `sabir push`: asks a running server for its deliveries of webhooks, and has them tried again or dropped.

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::admin_client::AdminClient;
use crate::agents::table;
use crate::cli::{DeliveryIds, PushCommand};
use crate::config::Audience;
use crate::local_server::Load;
use crate::terminal_text::visible;

const PAGE: usize = 1000;
const STATES: [&str; 2] = ["pending", "given-up"];
/// Of a URL or a reason in a table.
const WIDEST: usize = 60;

/// What is printed, and what went wrong with single deliveries.
pub fn run(command: &PushCommand, audience: Audience, load: Load) -> anyhow::Result<(String, Vec<String>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(ask(command, audience, load))
}

async fn ask(command: &PushCommand, audience: Audience, load: Load) -> anyhow::Result<(String, Vec<String>)> {
    match command {
        PushCommand::List { state, server } => {
            let server = AdminClient::new(server, load)?;
            let states = STATES.into_iter().filter(|known| state.as_deref().is_none_or(|state| state == *known));
            let mut deliveries = Vec::new();
            for state in states {
                deliveries.extend(list(&server, state).await?);
            }
            Ok((show_list(&deliveries, audience), Vec::new()))
        }
        PushCommand::Show { id, server } => {
            let delivery = AdminClient::new(server, load)?.call("GET", &format!("deliveries/{id}")).await?;
            Ok((show_one(&delivery, audience), Vec::new()))
        }
        PushCommand::Retry(ids) => change(ids, load, audience, "POST", "/retry", "is tried again now").await,
        PushCommand::Drop(ids) => change(ids, load, audience, "DELETE", "", "is dropped").await,
    }
}

/// Does the same to each delivery; one that fails does not keep the others from it.
async fn change(
    DeliveryIds { ids, server }: &DeliveryIds,
    load: Load,
    audience: Audience,
    method: &str,
    below: &str,
    done: &str,
) -> anyhow::Result<(String, Vec<String>)> {
    let server = AdminClient::new(server, load)?;
    let (mut changed, mut failures) = (Vec::new(), Vec::new());
    for id in ids {
        match server.call(method, &format!("deliveries/{id}{below}")).await {
            Ok(_) => changed.push(id),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    let text = match audience {
        Audience::Person => changed.iter().map(|id| format!("{id} {done}\n")).collect(),
        Audience::Program => array(changed.iter().map(|id| json!({"id": id}))),
    };
    Ok((text, failures))
}

/// All deliveries of a state, page by page.
async fn list(server: &AdminClient, state: &str) -> anyhow::Result<Vec<Value>> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let mut page = server.call("GET", &format!("deliveries?state={state}&limit={PAGE}&after={after}")).await?;
        let Value::Array(deliveries) = page["deliveries"].take() else { bail!(server.strange("no list")) };
        all.extend(deliveries);
        match page["after"].as_u64() {
            Some(next) if next > after => after = next,
            _ => return Ok(all),
        }
    }
}

fn show_list(deliveries: &[Value], audience: Audience) -> String {
    match audience {
        Audience::Program => array(deliveries.iter().cloned()),
        Audience::Person if deliveries.is_empty() => {
            "Nothing waits to be delivered, and nothing was given up.\n".into()
        }
        Audience::Person => {
            let titles = ["id", "state", "task", "url", "attempts", "next attempt", "last failure"];
            let row = |delivery: &Value| {
                let keys = ["id", "state", "task", "url", "attempts", "next", "reason"];
                keys.iter().map(|key| shortened(&spell(&delivery[*key]))).collect()
            };
            table(&titles, deliveries.iter().map(row))
        }
    }
}

fn show_one(delivery: &Value, audience: Audience) -> String {
    match (audience, delivery.as_object()) {
        (Audience::Person, Some(members)) => {
            let known = [
                "id", "state", "task", "agent", "config", "url", "sent", "event", "attempts", "reason", "since", "next",
            ];
            let shown = known.iter().filter_map(|key| Some((key, members.get(*key)?)));
            shown.map(|(key, value)| format!("{key:9}{}\n", spell(value))).collect()
        }
        _ => format!("{delivery}\n"),
    }
}

/// One JSON array, an object per line.
fn array(objects: impl Iterator<Item = Value>) -> String {
    let lines: Vec<String> = objects.map(|object| object.to_string()).collect();
    if lines.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", lines.join(",\n")) }
}

fn spell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => visible(text),
        value => visible(&value.to_string()),
    }
}

fn shortened(text: &str) -> String {
    match text.chars().count() > WIDEST {
        true => text.chars().take(WIDEST - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery() -> Value {
        json!({"id": "p12", "state": "pending", "task": "t-1", "agent": "demo", "config": "c", "sent": 2, "attempts": 3, "next": ["\u{9b}"],
            "url": format!("http://hook/\u{1b}[2J{}", "x".repeat(100)), "reason": "the receiver answered 503"})
    }

    #[test]
    fn people_see_tables_and_programs_json() {
        assert_eq!(show_list(&[], Audience::Program), "[]\n");
        assert!(show_list(&[], Audience::Person).starts_with("Nothing waits"));
        let one: Value = serde_json::from_str(&show_list(&[delivery()], Audience::Program)).unwrap();
        assert_eq!(one, json!([delivery()]));
        let one: Value = serde_json::from_str(&show_one(&delivery(), Audience::Program)).unwrap();
        assert_eq!(one, delivery());
        let text = show_one(&delivery(), Audience::Person);
        assert!(text.contains("reason   the receiver answered 503\n") && text.contains(&"x".repeat(100)), "{text}");
        let lines = show_list(&[delivery()], Audience::Person);
        assert_eq!(lines.lines().count(), 2);
        for text in [text, lines] {
            assert!(!text.contains(['\u{1b}', '\u{9b}']), "{text}");
        }
    }
}
