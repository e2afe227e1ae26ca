//! `/metrics` of the real program: each figure is moved and seen to move; who may read it, and the switch.
//!
//! The page is read by `MetricsPage`, which refuses what no Prometheus would take. `tests/observability` has it read by real
//! parsers.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sabir_testkit::http::{Http, HttpReply};
use sabir_testkit::postgres::{Postgres, StopMode, report_skipped};
use sabir_testkit::process::{SabirOptions, SabirProcess};
use serde_json::{Value, json};

use crate::SABIR;
use crate::cluster::fixture::{ClusterFixture, DEMO};
use crate::program_fixture::ProgramFixture;
use crate::server_fixture::{ServerFixture, v1_message, v03_message};
use crate::webhook_receiver::WebhookReceiver;

const OPEN_METRICS: (&str, &str) = ("Accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
const LIMIT: Duration = Duration::from_secs(60);

/// Samples by name and labels, as the page writes them.
struct MetricsPage {
    samples: BTreeMap<String, f64>,
    families: Vec<String>,
}

impl MetricsPage {
    fn parse(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("the page has no end: {text}"));
        let (mut samples, mut families) = (BTreeMap::new(), Vec::new());
        for line in body.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                families.push(family.split(' ').next().unwrap().to_owned());
            } else if !line.starts_with("# ") {
                let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
                let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
                assert!(families.iter().any(|family| name.starts_with(family.as_str())), "{name} has no type");
                assert!(samples.insert(name.to_owned(), value).is_none(), "{name} is there twice");
            }
        }
        Self { samples, families }
    }

    fn of(server: &SabirProcess) -> Self {
        let reply = server.http().exchange("GET", "/metrics", &[OPEN_METRICS], b"").unwrap();
        assert_eq!(reply.status, 200, "{}", reply.text());
        Self::parse(&reply.text())
    }

    /// 0 for one that is not there yet.
    fn value(&self, name: &str) -> f64 {
        self.samples.get(name).copied().unwrap_or(0.0)
    }
}

/// Waits until a figure has moved: what is read of it before and after fits.
#[track_caller]
fn until_moved(server: &SabirProcess, before: &MetricsPage, name: &str, fits: impl Fn(f64, f64) -> bool) {
    let (began, first) = (Instant::now(), before.value(name));
    loop {
        let now = MetricsPage::of(server);
        if fits(first, now.value(name)) {
            return;
        }
        assert!(began.elapsed() < LIMIT, "{name} was {first} and is {}", now.value(name));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The first page on which a figure has this value.
#[track_caller]
fn page_when(server: &SabirProcess, name: &str, expected: f64) -> MetricsPage {
    let began = Instant::now();
    loop {
        let page = MetricsPage::of(server);
        if page.value(name) == expected {
            return page;
        }
        assert!(began.elapsed() < LIMIT, "{name} is {}", page.value(name));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn until_grown_by(server: &SabirProcess, before: &MetricsPage, name: &str, by: f64) {
    until_moved(server, before, name, |first, now| now - first == by);
}

#[test]
fn runs_and_tasks_are_counted_by_agent_and_outcome() {
    let fixture = ServerFixture::with_agents(&["demo", "other"]);
    let server = &fixture.server;
    for (text, outcome) in [
        ("hello", "completed"),
        ("fail on purpose", "failed"),
        ("reject this", "rejected"),
        ("ask which one", "input-required"),
        ("auth please", "auth-required"),
    ] {
        let before = MetricsPage::of(server);
        fixture.send(text);
        until_grown_by(server, &before, &format!("sabir_tasks{{agent=\"demo\",state=\"{outcome}\"}}"), 1.0);
        until_grown_by(server, &before, "sabir_runs_started_total{agent=\"demo\"}", 1.0);
        let ended = format!("sabir_runs_ended_total{{agent=\"demo\",outcome=\"{outcome}\"}}");
        until_grown_by(server, &before, &ended, 1.0);
        for histogram in ["sabir_queue_wait_seconds", "sabir_first_event_seconds"] {
            until_grown_by(server, &before, &format!("{histogram}_count{{agent=\"demo\"}}"), 1.0);
            until_grown_by(server, &before, &format!("{histogram}_bucket{{le=\"+Inf\",agent=\"demo\"}}"), 1.0);
            until_moved(server, &before, &format!("{histogram}_sum{{agent=\"demo\"}}"), |first, now| now > first);
        }
    }
    let page = MetricsPage::of(server);
    let of_other: f64 =
        page.samples
            .iter()
            .filter(|(name, _)| name.contains("\"other\""))
            .map(|(name, value)| {
                if name.starts_with("sabir_run_slots") || name.starts_with("sabir_queue_limit") { 0.0 } else { *value }
            })
            .sum();
    assert_eq!(of_other, 0.0, "the other agent has done nothing");
    assert!(page.samples.contains_key("sabir_runs_started_total{agent=\"other\"}"), "and is shown all the same");
}

#[test]
fn what_runs_and_what_waits_is_shown_as_it_is_now() {
    let one_at_a_time = "[[agent]]\nid = \"demo\"\nkind = \"demo\"\nmax_concurrent = 1\nqueue = 7\n";
    let fixture = ServerFixture::configured(one_at_a_time);
    let server = &fixture.server;
    let before = MetricsPage::of(server);
    assert_eq!(before.value("sabir_run_slots{agent=\"demo\"}"), 1.0);
    assert_eq!(before.value("sabir_queue_limit{agent=\"demo\"}"), 7.0);
    let (id, stream) = fixture.working("slow 600");
    for name in
        ["sabir_running_runs{agent=\"demo\"}", "sabir_open_streams", "sabir_tasks{agent=\"demo\",state=\"working\"}"]
    {
        until_grown_by(server, &before, name, 1.0);
    }
    let mut later = v1_message("later");
    later["configuration"] = json!({"returnImmediately": true});
    fixture.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &later);
    for name in ["sabir_queued_tasks{agent=\"demo\"}", "sabir_tasks{agent=\"demo\",state=\"submitted\"}"] {
        until_grown_by(server, &before, name, 1.0);
    }
    // So that the wait in the queue is longer than that.
    let waited = Instant::now();
    while waited.elapsed() < Duration::from_millis(50) {
        std::thread::yield_now();
    }
    fixture.rpc("/a2a/jsonrpc", "tasks/cancel", json!({"id": id}));
    until_grown_by(server, &before, "sabir_runs_ended_total{agent=\"demo\",outcome=\"canceled\"}", 1.0);
    until_grown_by(server, &before, "sabir_tasks{agent=\"demo\",state=\"completed\"}", 1.0);
    until_moved(server, &before, "sabir_queue_wait_seconds_sum{agent=\"demo\"}", |first, now| now - first > 0.05);
    drop(stream);
    for name in ["sabir_running_runs{agent=\"demo\"}", "sabir_queued_tasks{agent=\"demo\"}", "sabir_open_streams"] {
        until_grown_by(server, &before, name, 0.0);
    }
}

#[test]
fn a_run_that_waits_for_an_answer_is_parked() {
    let program =
        ProgramFixture::new("echo 'Go on? [Y/n]'\nread -r answer\necho '{\"type\":\"result\",\"summary\":\"ok\"}'\n");
    let server = program.serve("generic", "approve = \"ask\"\n");
    let before = MetricsPage::of(&server);
    let asked = server
        .rpc("SendMessage", json!({"message": {"messageId": "q", "role": "ROLE_USER", "parts": [{"text": "go"}]}}));
    let task = asked["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{asked}"));
    until_grown_by(&server, &before, "sabir_parked_runs{agent=\"prog\"}", 1.0);
    until_grown_by(&server, &before, "sabir_tasks{agent=\"prog\",state=\"input-required\"}", 1.0);
    let answer = json!({"messageId": "a", "role": "ROLE_USER", "taskId": task, "parts": [{"text": "yes"}]});
    server.rpc("SendMessage", json!({"message": answer}));
    until_grown_by(&server, &before, "sabir_parked_runs{agent=\"prog\"}", 0.0);
    until_grown_by(&server, &before, "sabir_runs_ended_total{agent=\"prog\",outcome=\"completed\"}", 1.0);
}

#[test]
fn a_run_that_ends_with_its_server_is_interrupted() {
    let fixture =
        ServerFixture::configured("[server]\ngrace = \"1s\"\ndrain = \"20s\"\n[recovery]\nrunning = \"requeue\"\n");
    let server = &fixture.server;
    let before = MetricsPage::of(server);
    let (_, _stream) = fixture.working("slow 600");
    server.terminate();
    // While it stops, it is still asked.
    until_grown_by(server, &before, "sabir_runs_ended_total{agent=\"demo\",outcome=\"interrupted\"}", 1.0);
}

#[test]
fn streams_count_what_they_replay() {
    let fixture = ServerFixture::new();
    let server = &fixture.server;
    let before = MetricsPage::of(server);
    let frames = fixture.stream_rpc("/a2a/jsonrpc", "message/stream", v03_message("stream 200 0"));
    assert_eq!(MetricsPage::of(server).value("sabir_replayed_events_total"), 0.0, "it was read as it happened");
    let id = frames[0]["id"].as_str().unwrap();
    let body = json!({"jsonrpc": "2.0", "id": "r", "method": "tasks/resubscribe", "params": {"id": id}});
    let replayed = fixture.stream("/a2a/jsonrpc", &[("Last-Event-ID", "3")], &body);
    assert_eq!(replayed.len(), frames.len() - 3);
    until_grown_by(server, &before, "sabir_replayed_events_total", replayed.len() as f64);
    // A client that joins a task at work, from its first event on.
    let (id, _live) = fixture.working("slow 600");
    let body = json!({"jsonrpc": "2.0", "id": "r", "method": "tasks/resubscribe", "params": {"id": id}});
    let mut again = fixture.open("/a2a/jsonrpc", &[("Last-Event-ID", "0")], &body);
    assert_eq!(again.next_frame().unwrap().unwrap().id, Some(1));
    until_grown_by(server, &before, "sabir_replayed_events_total", replayed.len() as f64 + 2.0);
    until_grown_by(server, &before, "sabir_open_streams", 2.0);
}

#[test]
fn a_stream_that_has_fallen_behind_counts_what_it_reads_from_the_store() {
    // More than the buffers of a connection take, so the server cannot send it all to a client that does not read.
    const EVENTS: usize = 40_000;
    let fixture = ServerFixture::new();
    let server = &fixture.server;
    let text = format!("stream {EVENTS} 0");
    let body = json!({"jsonrpc": "2.0", "id": "r", "method": "message/stream", "params": v03_message(&text)});
    let mut slow = fixture.open("/a2a/jsonrpc", &[], &body);
    slow.next_frame().unwrap().expect("the task comes first");
    until_moved(server, &MetricsPage::of(server), "sabir_tasks{agent=\"demo\",state=\"completed\"}", |_, now| {
        now == 1.0
    });
    assert!(slow.rest().unwrap().len() > EVENTS);
    let replayed = MetricsPage::of(server).value("sabir_replayed_events_total");
    println!("{replayed} of {EVENTS} events came from the store");
    assert!(replayed > 0.0 && replayed <= EVENTS as f64, "{replayed}");
}

#[test]
fn commits_calls_connections_and_memory_move() {
    let fixture = ServerFixture::new();
    let server = &fixture.server;
    let before = MetricsPage::of(server);
    fixture.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &v1_message("hello"));
    fixture.send("hello");
    fixture.rpc("/a2a/jsonrpc", "tasks/get", json!({"id": "no-such-task"}));
    fixture.post_text("/a2a/jsonrpc", "{");
    assert_eq!(fixture.get("/no/such/path").status, 404);
    for (name, by) in [
        ("sabir_calls_total{operation=\"SendMessage\",version=\"1.0\",binding=\"HTTP+JSON\",outcome=\"done\"}", 1.0),
        ("sabir_calls_total{operation=\"SendMessage\",version=\"0.3\",binding=\"JSONRPC\",outcome=\"done\"}", 1.0),
        ("sabir_calls_total{operation=\"GetTask\",version=\"0.3\",binding=\"JSONRPC\",outcome=\"refused\"}", 1.0),
        ("sabir_http_responses_total{code=\"404\"}", 1.0),
    ] {
        until_grown_by(server, &before, name, by);
    }
    let page = MetricsPage::of(server);
    let unread =
        page.samples.iter().filter(|(name, _)| name.contains("operation=\"unknown\",") && name.contains("refused"));
    assert!(unread.map(|(_, count)| count).sum::<f64>() >= 1.0, "what cannot be read is refused");
    for name in ["sabir_store_commit_seconds", "sabir_store_commit_group"] {
        until_moved(server, &before, &format!("{name}_count"), |first, now| now >= first + 2.0);
        until_moved(server, &before, &format!("{name}_sum"), |first, now| now > first);
    }
    let commits = MetricsPage::of(server);
    assert!(commits.value("sabir_store_commit_group_sum") >= commits.value("sabir_store_commit_group_count"));

    // Those of earlier requests are closed, and only that of the scrape is left.
    let before = page_when(server, "sabir_connections", 1.0);
    let connections: Vec<Http> = (0..3).map(|_| server.http()).collect();
    until_grown_by(server, &before, "sabir_connections", 3.0);
    until_moved(server, &before, "process_open_fds", |first, now| now >= first + 3.0);
    drop(connections);
    until_grown_by(server, &before, "sabir_connections", 0.0);
    assert!(before.value("sabir_connections_limit") > 3.0);

    // Half of a large body keeps its memory reserved.
    let large = vec![b' '; 1 << 20];
    let mut slow = server.http();
    let head = format!(
        "POST /a2a/jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        2 * large.len()
    );
    slow.write_raw(head.as_bytes()).unwrap();
    slow.write_raw(&large).unwrap();
    until_moved(server, &before, "sabir_reserved_memory_bytes", |_, now| now >= 1e6);
    drop(slow);
    until_moved(server, &before, "sabir_reserved_memory_bytes", |_, now| now == 0.0);
    assert_eq!(before.value("sabir_reserved_memory_limit_bytes"), 268_435_456.0);

    let mut large = v1_message("large");
    large["message"]["parts"][0]["text"] = "x".repeat(500_000).into();
    assert_eq!(fixture.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &large).status, 200);
    until_moved(server, &before, "sabir_store_bytes", |first, now| now >= first + 500_000.0);
    assert_eq!(before.value("sabir_store_up"), 1.0);
    assert_eq!(before.value(&format!("sabir_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"))), 1.0);
}

#[test]
fn the_process_is_shown_as_the_system_knows_it() {
    let fixture = ServerFixture::new();
    let server = &fixture.server;
    let before = MetricsPage::of(server);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let started = before.value("process_start_time_seconds");
    assert!(started <= now + 2.0 && started > now - 300.0, "{started} and {now}");
    let resident = before.value("process_resident_memory_bytes");
    assert!((resident / server.resident() as f64 - 1.0).abs() < 0.5, "{resident} and {}", server.resident());
    assert!(before.value("process_virtual_memory_bytes") > resident);
    assert!(before.value("process_threads") >= 2.0 && before.value("process_open_fds") >= 10.0);
    assert!(before.value("process_max_fds") > before.value("process_open_fds"));
    until_moved(server, &before, "process_cpu_seconds_total", |first, now| {
        fixture.send("hello");
        now > first
    });
}

#[test]
fn webhooks_are_counted_by_outcome_and_their_wait_is_shown() {
    let fixture = ServerFixture::with(|options| options.variable("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8"));
    let server = &fixture.server;
    let receiver = WebhookReceiver::start();
    let before = MetricsPage::of(server);
    let send = |text: &str| {
        let mut message = v1_message(text);
        message["configuration"] = json!({"taskPushNotificationConfig": {"url": receiver.url("/")}});
        fixture.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &message);
    };
    send("delivered");
    until_grown_by(server, &before, "sabir_webhook_deliveries_total{outcome=\"delivered\"}", 2.0);
    until_grown_by(server, &before, "sabir_webhooks_pending", 0.0);
    assert_eq!(MetricsPage::of(server).value("sabir_webhook_oldest_seconds"), 0.0);
    receiver.answer(500);
    send("failed");
    until_moved(server, &before, "sabir_webhook_deliveries_total{outcome=\"failed\"}", |first, now| now > first);
    until_grown_by(server, &before, "sabir_webhooks_pending", 1.0);
    until_moved(server, &before, "sabir_webhook_oldest_seconds", |_, now| now > 0.5);
    receiver.answer(410);
    send("given up");
    until_moved(server, &before, "sabir_webhook_deliveries_total{outcome=\"given-up\"}", |first, now| now > first);
    until_moved(server, &before, "sabir_webhooks_given_up", |first, now| now > first);
}

#[test]
fn nodes_show_the_beats_of_each_other() {
    let Some(mut cluster) = ClusterFixture::demo(2) else { return };
    let beat = |node: &str| format!("sabir_node_beat_age_seconds{{node=\"{node}\"}}");
    let alive = |node: &str| format!("sabir_node_alive{{node=\"{node}\"}}");
    let before = MetricsPage::of(cluster.node(0));
    for node in ["n0", "n1"] {
        assert!(before.samples.contains_key(&beat(node)), "{node}");
        // A beat may be late on a busy machine, but the next one comes.
        until_moved(cluster.node(0), &before, &beat(node), |_, now| now < 6.0);
        until_moved(cluster.node(0), &before, &alive(node), |_, now| now == 1.0);
    }
    cluster.send(1, "hello", Value::Null);
    // Tasks are those of all nodes, runs and commits each node's own.
    until_grown_by(cluster.node(0), &before, "sabir_tasks{agent=\"demo\",state=\"completed\"}", 1.0);
    assert_eq!(MetricsPage::of(cluster.node(0)).value("sabir_runs_started_total{agent=\"demo\"}"), 0.0);
    let other = MetricsPage::of(cluster.node(1));
    assert_eq!(other.value("sabir_runs_started_total{agent=\"demo\"}"), 1.0);
    for name in ["sabir_store_commit_seconds_count", "sabir_store_commit_group_sum", "sabir_store_bytes"] {
        assert!(other.value(name) >= 1.0, "{name}");
    }
    cluster.kill(1);
    until_moved(cluster.node(0), &before, &beat("n1"), |_, now| now > 6.0);
    until_moved(cluster.node(0), &before, &alive("n1"), |_, now| now == 0.0);
    until_moved(cluster.node(0), &before, &beat("n0"), |_, now| now < 6.0);
}

/// A token, as `Authorization` and as a table of the file.
fn token(name: &str, scope: &str) -> (String, String) {
    let output = Command::new(SABIR).args(["token", "new", name, "--scope", scope]).output().unwrap();
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    (format!("Bearer {}", made["token"].as_str().unwrap()), made["toml"].as_str().unwrap().to_owned())
}

fn metrics_of(server: &SabirProcess, headers: &[(&str, &str)]) -> HttpReply {
    server.http().exchange("GET", "/metrics", headers, b"").unwrap()
}

#[test]
fn with_credentials_only_the_right_scopes_read_it() {
    let ((admin, first), (scraper, second), (alice, third)) =
        (token("ops", "admin"), token("prometheus", "metrics"), token("alice", "run"));
    let fixture = ServerFixture::configured(&format!("{first}\n{second}\n{third}"));
    let server = &fixture.server;
    for (who, expected) in [(None, 401), (Some(&admin), 200), (Some(&scraper), 200), (Some(&alice), 403)] {
        let headers: Vec<(&str, &str)> = who.iter().map(|who| ("Authorization", who.as_str())).collect();
        let reply = metrics_of(server, &headers);
        assert_eq!(reply.status, expected, "{who:?}: {}", reply.text());
    }
    let refused = metrics_of(server, &[("Authorization", &alice)]);
    assert_eq!(refused.json()["detail"], "the credential lacks the scope metrics");
    // The scope allows nothing else.
    let as_scraper = [("Authorization", scraper.as_str()), ("A2A-Version", "1.0")];
    assert_eq!(fixture.ask("POST", "/message:send", &as_scraper, &v1_message("hello")).status, 403);
    assert_eq!(fixture.ask("GET", "/admin/v1/nodes", &as_scraper, &Value::Null).status, 403);
    let posted = fixture.ask("POST", "/metrics", &as_scraper, &Value::Null);
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn without_credentials_programs_of_this_machine_read_it() {
    let fixture = ServerFixture::new();
    let server = &fixture.server;
    for (headers, expected) in [
        (&[][..], 200),
        (&[("Host", "127.0.0.1")], 200),
        (&[("X-Forwarded-For", "192.0.2.1")], 403),
        (&[("Host", "evil.example")], 421),
        (&[("Origin", "https://evil.example")], 403),
    ] {
        assert_eq!(metrics_of(server, headers).status, expected, "{headers:?}");
    }
    let public = ServerFixture::configured("[server]\npublic_url = \"https://agents.example.com\"\n");
    assert_eq!(metrics_of(&public.server, &[]).status, 403);
}

#[test]
fn another_listener_has_figures_and_health_and_nothing_else() {
    let (_, table) = token("alice", "run");
    let fixture = ServerFixture::configured(&format!("{table}\n[metrics]\nlisten = \"127.0.0.1:0\"\n"));
    let url = fixture.server.ready["metrics"][0].as_str().expect("the start line has the address");
    let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics")).unwrap().parse().unwrap();
    let ask = |verb: &str, path: &str, headers: &[(&str, &str)]| {
        Http::connect(address).unwrap().exchange(verb, path, headers, b"").unwrap()
    };
    for (verb, path, expected) in [
        ("GET", "/metrics", 200),
        ("HEAD", "/metrics", 200),
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("POST", "/metrics", 405),
        ("GET", "/", 404),
        ("GET", "/.well-known/agent-card.json", 404),
        ("POST", "/message:send", 404),
        ("GET", "/admin/v1/nodes", 404),
    ] {
        assert_eq!(ask(verb, path, &[]).status, expected, "{verb} {path}");
    }
    assert_eq!(ask("GET", "/metrics", &[("Host", "evil.example")]).status, 421, "no page of another name reads it");
    let page = MetricsPage::parse(&ask("GET", "/metrics", &[OPEN_METRICS]).text());
    assert_eq!(page.value("sabir_connections"), 0.0, "those of scrapers do not count");
    assert_eq!(metrics_of(&fixture.server, &[]).status, 401, "the port of the callers still asks");
}

#[test]
fn a_listener_that_others_reach_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sabir.toml"), "[metrics]\nlisten = \"0.0.0.0:0\"\n").unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start_with(log.into());
    assert!(server.ready["metrics"][0].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")));
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("metrics.listen: whoever reaches this address can read the metrics"), "{log}");
}

#[test]
fn switched_off_there_is_no_such_path() {
    let fixture = ServerFixture::configured("[metrics]\nenabled = false\n");
    assert_eq!(metrics_of(&fixture.server, &[]).status, 404);
    fixture.send("hello");
    let folder = tempfile::tempdir().unwrap();
    let toml = "[metrics]\nenabled = false\nlisten = 9464\n";
    std::fs::write(folder.path().join("sabir.toml"), toml).unwrap();
    let output = Command::new(SABIR).args(["serve", "--store", "memory:"]).current_dir(folder.path()).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("metrics.listen is set, but metrics.enabled is false; leave one of them out"), "{words}");
}

#[test]
fn clients_get_the_format_that_they_know() {
    let fixture = ServerFixture::new();
    let reply = metrics_of(&fixture.server, &[OPEN_METRICS]);
    assert_eq!(reply.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(reply.text().contains("# TYPE sabir_runs_started counter\n") && reply.text().ends_with("# EOF\n"));
    for headers in [&[][..], &[("Accept", "*/*")], &[("Accept", "text/html")]] {
        let reply = metrics_of(&fixture.server, headers);
        assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"), "{headers:?}");
        assert!(reply.text().contains("# TYPE sabir_runs_started_total counter\n") && !reply.text().contains("# EOF"));
    }
    assert_eq!(reply.header("cache-control"), Some("no-store"));
}

/// Figures that only a server with other nodes has.
const OF_NODES: [&str; 2] = ["sabir_node_alive", "sabir_node_beat_age_seconds"];

#[test]
fn the_guide_explains_every_figure_and_no_other() {
    let guide = include_str!("../../../../docs/guides/observability.md");
    let fixture = ServerFixture::new();
    fixture.send("hello");
    let page = MetricsPage::of(&fixture.server);
    let row = |name: &str| guide.lines().any(|line| line.starts_with(&format!("| `{name}")));
    let suffixes = ["", "_total", "_info"];
    for family in page.families.iter().map(String::as_str).chain(OF_NODES) {
        assert!(
            suffixes.iter().any(|suffix| row(&format!("{family}{suffix}`")) || row(&format!("{family}{suffix}{{"))),
            "{family}"
        );
    }
    let known = |name: &str| {
        let is_it = |family: &str| suffixes.iter().any(|suffix| name == format!("{family}{suffix}"));
        page.families.iter().map(String::as_str).chain(OF_NODES).any(is_it)
    };
    for line in guide.lines().filter(|line| line.starts_with("| `sabir_") || line.starts_with("| `process_")) {
        let name = line[3..].split(['`', '{']).next().unwrap();
        assert!(known(name), "{name} is explained, and not on the page");
    }
}

#[test]
fn the_first_internal_error_moves_a_counter_that_was_there_before() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let internal = "sabir_internal_errors_total";
    let failed = "sabir_calls_total{operation=\"SendMessage\",version=\"1.0\",binding=\"JSONRPC\",outcome=\"failed\"}";
    server.rpc("SendMessage", v1_message("hello"));
    server.rpc("GetTask", json!({"id": "no-such-task"}));
    let before = MetricsPage::of(&server);
    // `increase()` sees the step from 0 to 1 only in a series that was there at 0.
    assert_eq!(before.samples.get(internal), Some(&0.0));
    assert_eq!((before.samples.get(failed), before.value("sabir_store_up")), (None, 1.0));
    let database = ["sabir.db", "sabir.db-wal", "sabir.db-shm"].map(|name| folder.path().join(name));
    for file in &database {
        std::fs::remove_file(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    for count in [1.0, 2.0] {
        let answer = server.rpc("SendMessage", v1_message("hello"));
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        until_grown_by(&server, &before, failed, count);
        until_grown_by(&server, &before, internal, count);
    }
    // It can still be read, and takes nothing.
    assert_eq!(MetricsPage::of(&server).value("sabir_store_up"), 1.0);
    assert_eq!(server.http().exchange("GET", "/readyz", &[], b"").unwrap().status, 503);
}

/// Figures that are read from the store.
const OF_STORE: [&str; 3] = ["sabir_store_bytes", "sabir_webhooks_pending", "sabir_webhook_oldest_seconds"];

#[test]
fn a_store_that_cannot_be_read_is_down_and_its_figures_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    server.rpc("SendMessage", v1_message("hello"));
    page_when(&server, "sabir_store_up", 1.0);
    for name in ["sabir.db", "sabir.db-wal"] {
        let file = folder.path().join(name);
        let length = std::fs::metadata(&file).unwrap().len() as usize;
        // The same file, since the server has it open.
        std::fs::OpenOptions::new().write(true).open(&file).unwrap().write_all(&vec![0xee; length]).unwrap();
    }
    // Reads come from memory until something is written.
    server.rpc("SendMessage", v1_message("hello"));
    check_store_is_missing(&page_when(&server, "sabir_store_up", 0.0));
}

#[test]
fn a_postgres_that_is_away_is_down_until_it_is_back() {
    let Some(mut postgres) = Postgres::start() else { return report_skipped(1) };
    let mut cluster = ClusterFixture::on(&postgres.fresh_database(), 1, DEMO);
    let server = cluster.nodes[0].take().unwrap();
    let page = page_when(&server, "sabir_store_up", 1.0);
    assert!(OF_STORE.iter().chain(&OF_NODES).all(|name| page.families.iter().any(|family| family == name)));
    postgres.stop(StopMode::Immediate);
    check_store_is_missing(&page_when(&server, "sabir_store_up", 0.0));
    postgres.start_again();
    let page = page_when(&server, "sabir_store_up", 1.0);
    assert!(OF_STORE.iter().all(|name| page.samples.contains_key(*name)));
    server.kill();
    postgres.stop(StopMode::Fast);
}

/// The figure itself is there, as the alert on it needs, and so are those of the server.
#[track_caller]
fn check_store_is_missing(page: &MetricsPage) {
    assert_eq!(page.samples.get("sabir_store_up"), Some(&0.0));
    let of_store = OF_STORE.iter().chain(&OF_NODES).filter(|name| page.families.iter().any(|family| family == *name));
    assert_eq!(of_store.copied().collect::<Vec<_>>(), [""; 0]);
    assert!(page.samples.contains_key("sabir_run_slots{agent=\"demo\"}"), "{:?}", page.samples);
}
