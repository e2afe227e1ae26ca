//! The server that runs with the store: whether it is well, as it says itself, and what its webhooks do.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::admin_client::AdminClient;
use crate::local_server::LocalServer;
use crate::{dev_tls, terminal_text};

use super::Subject;
use super::finding::{Area, Finding};

const AREA: Area = Area::Server;
/// A limit that is used to this share is told of.
const NEARLY: f64 = 0.9;

pub fn check(subject: &Subject) -> Vec<Finding> {
    let store = &subject.loaded.config.store;
    let Some(running) = &subject.running else {
        let is_held = store.local_file().is_some_and(|file| sabir_store::SqliteStore::is_open_elsewhere(&file));
        return vec![match is_held {
            true => Finding::warning(
                AREA,
                "a process has the store open, and does not say where it can be reached",
                "wait if a server is just starting; else see which process it is with `fuser` or `lsof`",
            ),
            false => Finding::ok(AREA, "none runs with this store"),
        }];
    };
    let mut roots = sabir_outbound::Roots::default();
    if let Some(file) = &running.authority
        && let Ok(authority) = dev_tls::read_authority(file)
    {
        let _ = roots.add(authority.into());
    }
    let local = LocalServer { url: running.url.clone(), roots };
    let client = match AdminClient::of(local, subject.options.token.as_deref()) {
        Ok(client) => client,
        Err(error) => return vec![Finding::problem(AREA, format!("{error:#}"), "give another token as SABIR_TOKEN")],
    };
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(ask(&running.url, &client)),
        Err(error) => vec![Finding::problem(AREA, format!("no thread: {error}"), "see limits")],
    }
}

async fn ask(url: &str, client: &AdminClient) -> Vec<Finding> {
    let mut findings = vec![match client.readiness().await {
        Ok((200, _)) => Finding::ok(AREA, format!("{url} is ready")),
        Ok((status, why)) => Finding::problem(
            AREA,
            format!("{url} takes no work: /readyz answers {status} {}", terminal_text::visible(&why)),
            "see its log; one that stops is ready again after its restart",
        ),
        Err(error) => {
            let next = "see its log; restart it if it hangs";
            return vec![Finding::problem(AREA, format!("{url} runs, and does not answer: {error:#}"), next)];
        }
    }];
    match client.call("GET", "nodes").await {
        Ok(nodes) => findings.extend(dead_nodes(&nodes)),
        Err(error) => {
            let what = format!("it refuses admin calls: {error:#}");
            let next =
                "give a token with the scope admin as SABIR_TOKEN, so that nodes, limits and webhooks can be looked at";
            findings.push(Finding::warning(AREA, what, next));
            return findings;
        }
    }
    if let Ok(system) = client.call("GET", "system").await {
        findings.extend(limits(&system));
    }
    findings.extend(webhooks(client).await);
    findings
}

fn dead_nodes(answer: &Value) -> Vec<Finding> {
    let nodes = answer["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let dead = nodes.iter().filter(|node| node["state"] == "dead");
    let finding = |node: &Value| {
        let name = node["name"].as_str().unwrap_or("?");
        let what =
            format!("node {name} is dead: its last beat is {:.0} s ago", node["last_beat"].as_f64().unwrap_or(0.0));
        Finding::warning(AREA, what, "see what became of it; the others have taken over its tasks")
    };
    dead.map(finding).collect()
}

/// What `/admin/v1/system` says of limits that are nearly used up.
fn limits(system: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let limits = system["limits"].as_array().map(Vec::as_slice).unwrap_or_default();
    for limit in limits {
        let name = limit["name"].as_str().unwrap_or("?");
        let (used, limit) = (limit["used"].as_f64(), limit["limit"].as_f64().filter(|limit| *limit > 0.0));
        let (Some(used), Some(limit)) = (used, limit) else { continue };
        if used / limit >= NEARLY {
            let what = format!("{name} is used to {:.0}% ({used:.0} of {limit:.0})", 100.0 * used / limit);
            findings.push(Finding::warning(AREA, what, "raise the limit, or see who uses so much"));
        }
    }
    findings
}

async fn webhooks(client: &AdminClient) -> Vec<Finding> {
    let area = Area::Webhooks;
    let mut findings = Vec::new();
    let Ok(given_up) = client.call("GET", "deliveries?state=given-up&limit=1000").await else { return findings };
    for (receiver, number) in by_receiver(&given_up, |_| true) {
        findings.push(Finding::warning(
            area,
            format!("{number} deliveries to {receiver} were given up"),
            "see why with `sabir push list --state given-up`; send them again with `sabir push retry ID`",
        ));
    }
    let Ok(pending) = client.call("GET", "deliveries?state=pending&limit=1000").await else { return findings };
    for (receiver, number) in by_receiver(&pending, |delivery| delivery["attempts"].as_u64() > Some(1)) {
        findings.push(Finding::warning(
            area,
            format!("{number} deliveries to {receiver} have failed more than once, and are tried again"),
            "see why with `sabir push list`, and whether the receiver runs",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(area, "no delivery fails or was given up"));
    }
    findings
}

/// How many of these deliveries go to each receiver: scheme, host and port. Paths and queries may hold secrets.
fn by_receiver(page: &Value, is_counted: impl Fn(&Value) -> bool) -> BTreeMap<String, usize> {
    let deliveries = page["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut receivers = BTreeMap::new();
    for delivery in deliveries.iter().filter(|delivery| is_counted(delivery)) {
        let url = delivery["url"].as_str().unwrap_or_default();
        *receivers.entry(origin(url)).or_default() += 1;
    }
    receivers
}

fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "?".to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn receivers_are_told_apart_and_their_secrets_left_out() {
        let page = json!({"deliveries": [
            {"url": "https://user:geheim@a.example/hook?key=geheim", "attempts": 3},
            {"url": "https://a.example/other", "attempts": 1},
            {"url": "http://b.example:8080/", "attempts": 9},
        ]});
        let found = by_receiver(&page, |delivery| delivery["attempts"].as_u64() > Some(1));
        let expected = [("http://b.example:8080".to_owned(), 1), ("https://a.example".to_owned(), 1)];
        assert_eq!(found, BTreeMap::from(expected));
    }

    #[test]
    fn limits_that_are_nearly_used_up_are_told_of() {
        let system = json!({"limits": [
            {"name": "connections", "used": 10, "limit": 100},
            {"name": "server.memory", "used": 90, "limit": 100},
            {"name": "none", "used": 90, "limit": 0},
        ]});
        let found: Vec<String> = limits(&system).into_iter().map(|finding| finding.what).collect();
        assert_eq!(found, ["server.memory is used to 90% (90 of 100)"]);
        assert!(limits(&json!({})).is_empty());
    }
}
