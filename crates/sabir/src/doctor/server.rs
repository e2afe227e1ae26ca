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
/// As many deliveries as the server shows at once.
const PAGE: usize = 1000;
/// How many deliveries of a state are looked at.
const MOST_DELIVERIES: usize = 10 * PAGE;

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
    let Some(given_up) = Deliveries::read(client, "given-up", |_| true).await else { return findings };
    for (receiver, number) in given_up.numbers() {
        findings.push(Finding::warning(
            area,
            format!("{number} deliveries to {receiver} were given up"),
            "see why with `sabir push list --state given-up`; send them again with `sabir push retry ID`",
        ));
    }
    let has_failed_again = |delivery: &Value| delivery["attempts"].as_u64() > Some(1);
    let Some(pending) = Deliveries::read(client, "pending", has_failed_again).await else { return findings };
    for (receiver, number) in pending.numbers() {
        findings.push(Finding::warning(
            area,
            format!("{number} deliveries to {receiver} have failed more than once, and are tried again"),
            "see why with `sabir push list`, and whether the receiver runs",
        ));
    }
    if findings.is_empty() {
        let what = match pending.is_complete {
            true => "no delivery fails or was given up".to_owned(),
            false => format!("none was given up, and none of the first {MOST_DELIVERIES} that are pending fails"),
        };
        findings.push(Finding::ok(area, what));
    }
    findings
}

/// How many deliveries go to each receiver: scheme, host and port. Paths and queries may hold secrets.
#[derive(Default)]
struct Deliveries {
    by_receiver: BTreeMap<String, usize>,
    /// Whether all were read: there may be millions.
    is_complete: bool,
}

impl Deliveries {
    /// Reads those of a state, page by page. `None`: the server does not show them.
    async fn read(client: &AdminClient, state: &str, is_counted: impl Fn(&Value) -> bool) -> Option<Self> {
        let mut deliveries = Self::default();
        let mut after = 0;
        for _ in 0..MOST_DELIVERIES / PAGE {
            let below = format!("deliveries?state={state}&limit={PAGE}&after={after}");
            let page = client.call("GET", &below).await.ok()?;
            deliveries.count(&page, &is_counted);
            match page["after"].as_u64() {
                Some(last) => after = last,
                None => {
                    deliveries.is_complete = true;
                    break;
                }
            }
        }
        Some(deliveries)
    }

    fn count(&mut self, page: &Value, is_counted: impl Fn(&Value) -> bool) {
        let deliveries = page["deliveries"].as_array().map(Vec::as_slice).unwrap_or_default();
        for delivery in deliveries.iter().filter(|delivery| is_counted(delivery)) {
            let url = delivery["url"].as_str().unwrap_or_default();
            *self.by_receiver.entry(origin(url)).or_default() += 1;
        }
    }

    /// Each receiver, and how many as a person is told.
    fn numbers(&self) -> impl Iterator<Item = (&str, String)> {
        self.by_receiver.iter().map(|(receiver, number)| match self.is_complete {
            true => (receiver.as_str(), number.to_string()),
            false => (receiver.as_str(), format!("{number} or more")),
        })
    }
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
        let mut found = Deliveries::default();
        found.count(&page, |delivery| delivery["attempts"].as_u64() > Some(1));
        let expected = [("http://b.example:8080".to_owned(), 1), ("https://a.example".to_owned(), 1)];
        assert_eq!(found.by_receiver, BTreeMap::from(expected));
    }

    /// A server that has so many deliveries of each state, which have failed so often.
    async fn server_with(given_up: usize, pending: usize, attempts: u64) -> AdminClient {
        let answer = move |uri: axum::http::Uri| async move {
            let query = uri.query().unwrap_or_default();
            let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)).unwrap_or_default();
            let all = if value("state=") == "given-up" { given_up } else { pending };
            let (after, limit): (usize, usize) = (value("after=").parse().unwrap(), value("limit=").parse().unwrap());
            let shown = limit.min(all - after);
            let delivery = json!({"url": "http://hook.example/x", "attempts": attempts});
            let mut page = json!({"deliveries": vec![delivery; shown]});
            if shown == limit {
                page["after"] = (after + shown).into();
            }
            page.to_string()
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = axum::Router::new().route("/admin/v1/deliveries", axum::routing::get(answer));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        AdminClient::of(LocalServer { url, roots: sabir_outbound::Roots::default() }, None).unwrap()
    }

    #[tokio::test]
    async fn deliveries_are_counted_beyond_one_page() {
        for (given_up, pending, attempts, expected) in [
            (0, 0, 5, vec!["no delivery fails or was given up"]),
            (0, 2500, 1, vec!["no delivery fails or was given up"]),
            (0, 20_000, 1, vec!["none was given up, and none of the first 10000 that are pending fails"]),
            (1000, 0, 5, vec!["1000 deliveries to http://hook.example were given up"]),
            (
                2345,
                1001,
                2,
                vec![
                    "2345 deliveries to http://hook.example were given up",
                    "1001 deliveries to http://hook.example have failed more than once, and are tried again",
                ],
            ),
            (25_000, 0, 2, vec!["10000 or more deliveries to http://hook.example were given up"]),
        ] {
            let client = server_with(given_up, pending, attempts).await;
            let found: Vec<String> = webhooks(&client).await.into_iter().map(|finding| finding.what).collect();
            assert_eq!(found, expected, "{given_up} and {pending}");
        }
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
