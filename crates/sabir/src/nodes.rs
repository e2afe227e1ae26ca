//! `sabir nodes`: asks a running server for the servers that share its store.

use anyhow::{Context, bail};
use serde_json::Value;

use crate::admin_client::AdminClient;
use crate::agents::table;
use crate::cli::{NodesOptions, RunningServer};
use crate::config::Audience;
use crate::local_server::Load;
use crate::terminal_text::visible;

pub fn run(options: &NodesOptions, audience: Audience, load: Load) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let named = options.server_url.clone().or_else(|| options.server.url.clone());
    let server = AdminClient::new(&RunningServer { url: named, ..options.server.clone() }, load)?;
    let answer = runtime.block_on(server.call("GET", "nodes"))?;
    if !answer["nodes"].is_array() {
        bail!(server.strange("no list"));
    }
    Ok(show(&answer, audience))
}

fn show(answer: &Value, audience: Audience) -> String {
    let nodes = answer["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    match audience {
        Audience::Program => format!("{answer}\n"),
        Audience::Person if nodes.is_empty() => {
            "This server has its store for itself. Servers share one with store.url = \"postgres://...\".\n".to_owned()
        }
        Audience::Person => {
            let titles =
                ["name", "state", "up", "last beat", "working", "parked", "queued", "notifications", "version", ""];
            table(&titles, nodes.iter().map(row))
        }
    }
}

fn row(node: &Value) -> Vec<String> {
    let text = |key: &str| node[key].as_str().map_or_else(|| "-".to_owned(), visible);
    let number = |key: &str| node[key].as_u64().map_or_else(|| "-".to_owned(), |number| number.to_string());
    let time = |key: &str| node[key].as_f64().map_or_else(|| "-".to_owned(), spell_seconds);
    let last_beat = match (node["last_beat"].as_f64(), node["grace"].as_f64()) {
        (Some(age), Some(grace)) => format!("{} ago (grace {})", spell_seconds(age), spell_seconds(grace)),
        _ => "-".to_owned(),
    };
    let this = if node["this"] == true { "this one" } else { "" };
    vec![
        text("name"),
        text("state"),
        time("up"),
        last_beat,
        number("working"),
        number("parked"),
        number("queued"),
        text("notifications"),
        text("version"),
        this.to_owned(),
    ]
}

/// As people say it, with its two largest units.
pub fn spell_seconds(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..10 => format!("{:.1}s", seconds.max(0.0)),
        10..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        3600..86_400 => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
        _ => format!("{}d{:02}h", whole / 86_400, whole % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_see_a_table_and_programs_json() {
        let node = json!({"name": "a\u{1b}", "this": true, "state": "alive", "version": "0.1.0", "up": 3725.0, "last_beat": 0.4,
            "grace": 6.0, "notifications": "polling", "working": 3, "parked": 1, "queued": 2});
        let answer = json!({"shared": true, "nodes": [node]});
        let shown = show(&answer, Audience::Person);
        let words: Vec<&str> = shown.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(
            words[1..],
            "alive 1h02m 0.4s ago (grace 6.0s) 3 1 2 polling 0.1.0 this one".split(' ').collect::<Vec<_>>()
        );
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&show(&answer, Audience::Program)).unwrap(), answer);
        let alone = show(&json!({"shared": false, "nodes": []}), Audience::Person);
        assert!(alone.starts_with("This server has its store for itself."), "{alone}");
    }

    #[test]
    fn times_have_two_units() {
        for (seconds, expected) in
            [(0.0, "0.0s"), (9.94, "9.9s"), (59.9, "59s"), (61.0, "1m01s"), (3600.0, "1h00m"), (90_000.0, "1d01h")]
        {
            assert_eq!(spell_seconds(seconds), expected);
        }
    }
}
