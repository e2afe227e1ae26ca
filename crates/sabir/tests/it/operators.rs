//! What operators see and do through the real program: `/admin/v1` and `sabir tasks`.

use std::process::Command;

use sabir_testkit::process::{SabirOptions, SabirProcess};
use sabir_testkit::terminal::Terminal;
use serde_json::{Value, json};

use crate::SABIR;
use crate::cluster::fixture::ClusterFixture;
use crate::server_fixture::{ServerFixture, v03_message};
use crate::webhook_receiver::WebhookReceiver;

fn admin(fixture: &ServerFixture, verb: &str, below: &str) -> (u16, Value) {
    let reply = fixture.ask(verb, &format!("/admin/v1/{below}"), &[], &Value::Null);
    (reply.status, reply.json())
}

fn shown(fixture: &ServerFixture, below: &str) -> Value {
    let (status, body) = admin(fixture, "GET", below);
    assert_eq!(status, 200, "{below}: {body}");
    body
}

fn refused(fixture: &ServerFixture, verb: &str, below: &str) -> (u16, String) {
    let (status, body) = admin(fixture, verb, below);
    (status, body["detail"].as_str().unwrap_or_else(|| panic!("{below}: {body}")).to_owned())
}

/// The messages of the tasks on a page, in its order.
fn messages(page: &Value) -> Vec<&str> {
    page["tasks"].as_array().unwrap().iter().map(|task| task["message"].as_str().unwrap()).collect()
}

fn send(fixture: &ServerFixture, text: &str) -> String {
    fixture.send(text)["id"].as_str().unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn tasks_are_listed_by_every_filter_page_by_page() {
    let fixture = ServerFixture::with_agents(&["one", "two"]);
    let first = send(&fixture, "hello");
    send(&fixture, "fail on purpose");
    let asked = send(&fixture, "ask which?");
    let of_two = fixture.rpc("/agents/two/a2a/jsonrpc", "message/send", v03_message("other"))["result"].take();
    let (working, _stream) = fixture.working("slow 600 never");

    let page = shown(&fixture, "tasks");
    assert_eq!(messages(&page), ["slow 600 never", "other", "ask which?", "fail on purpose", "hello"]);
    assert!(page.get("after").is_none(), "{page}");
    let expected = json!({"total": 5, "submitted": 0, "working": 1, "input-required": 1, "auth-required": 0, "completed": 2,
        "failed": 1, "canceled": 0, "rejected": 0});
    assert_eq!(page["counts"], expected);
    let task = &page["tasks"][2];
    assert_eq!(
        (&task["id"], &task["agent"], &task["owner"], &task["state"], &task["dialect"], &task["number"]),
        (&json!(asked), &json!("one"), &json!("anonymous"), &json!("input-required"), &json!("0.3"), &json!(3))
    );
    assert_eq!((&task["question"]["type"], &task["question"]["text"]), (&json!("input"), &json!("which?")), "{task}");
    assert!(task["question"]["id"].as_str().unwrap().starts_with('q') && task["events"].as_u64() >= Some(3), "{task}");
    for time in ["created", "statusTime"] {
        assert!(task[time].as_str().unwrap().ends_with('Z'), "{task}");
    }

    for (query, expected) in [
        ("state=working", &["slow 600 never"][..]),
        ("state=open", &["slow 600 never", "ask which?"]),
        ("state=waiting", &["ask which?"]),
        ("state=completed&state=failed", &["other", "fail on purpose", "hello"]),
        ("state=stuck", &[]),
        ("agent=two", &["other"]),
        ("agent=three", &[]),
        ("owner=anonymous&state=failed", &["fail on purpose"]),
        ("owner=token:bob", &[]),
        (&format!("context={}", of_two["contextId"].as_str().unwrap()), &["other"]),
        (&format!("id={first}"), &["hello"]),
        (&format!("id={}&state=working", &working[..8]), &["slow 600 never"]),
        ("id=nothing", &[]),
        ("number=3", &["ask which?"]),
        (&format!("number=3&id={}", &asked[..8]), &["ask which?"]),
        ("number=3&state=working", &[]),
        ("number=77", &[]),
        ("since=2999-01-01T00:00:00Z", &[]),
        ("since=2000-01-01T00:00:00Z&agent=two", &["other"]),
    ] {
        assert_eq!(messages(&shown(&fixture, &format!("tasks?{query}"))), expected, "{query}");
    }
    assert_eq!(shown(&fixture, "tasks?agent=two")["counts"]["total"], 1);
    for query in ["id=a", "id=019&state=open"] {
        let expected = "id must have at least 4 characters, or be the whole id of a task";
        assert_eq!(refused(&fixture, "GET", &format!("tasks?{query}")), (400, expected.to_owned()), "{query}");
    }

    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = shown(&fixture, &format!("tasks?limit=2{after}"));
        seen.extend(messages(&page).into_iter().map(str::to_owned));
        match page["after"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["slow 600 never", "other", "ask which?", "fail on purpose", "hello"]);
}

#[test]
fn a_task_is_shown_by_its_id_and_its_number() {
    let fixture = ServerFixture::configured("[[agent]]\nid = 'demo'\nkind = 'demo'\nmax_concurrent = 1\n");
    let (working, _stream) = fixture.working("slow 600 never");
    let body = json!({"configuration": {"returnImmediately": true}, "message": {"messageId": "m", "role": "ROLE_USER",
        "parts": [{"text": "x".repeat(300)}]}});
    let queued = fixture.ask("POST", "/message:send", &[("A2A-Version", "1.0")], &body).json();
    let queued = queued["task"]["id"].as_str().unwrap_or_else(|| panic!("{queued}")).to_owned();

    let task = shown(&fixture, &format!("tasks/{working}?number=1"));
    assert_eq!((&task["id"], &task["state"], &task["webhooks"]), (&json!(working), &json!("working"), &json!(0)));
    assert!(task["bytes"].as_u64().unwrap() > 512, "{task}");
    assert_eq!(shown(&fixture, &format!("tasks/{working}")), task);
    let waiting = shown(&fixture, &format!("tasks/{queued}"));
    assert_eq!(waiting["waitsFor"], "waiting for the agent, which runs one task at a time", "{waiting}");
    let message = waiting["message"].as_str().unwrap();
    assert_eq!((message.chars().count(), message.ends_with("x…"), &waiting["dialect"]), (200, true, &json!("1.0")));

    let agents = shown(&fixture, "agents");
    let agent = &agents["agents"][0];
    assert_eq!((&agent["id"], &agent["kind"], &agent["default"]), (&json!("demo"), &json!("demo"), &json!(true)));
    assert_eq!(
        (&agent["running"], &agent["parked"], &agent["queued"], &agent["limit"]),
        (&json!(1), &json!(0), &json!(1), &json!(1))
    );
    assert!(agent["oldestQueued"].as_f64().unwrap() >= 0.0, "{agent}");

    // A number alone names no task: an id can be the same digits.
    for name in ["1", "17", &working[..8]] {
        assert_eq!(refused(&fixture, "GET", &format!("tasks/{name}")), (404, format!("there is no task {name}")));
    }
    let of_another = (404, format!("there is no task {working} with the number 2"));
    assert_eq!(refused(&fixture, "GET", &format!("tasks/{working}?number=2")), of_another);
    assert_eq!(refused(&fixture, "GET", "tasks/1?number=1").0, 404);
    assert_eq!(refused(&fixture, "GET", "tasks/1?no=1"), (400, "there is no parameter no; known: number".to_owned()));
    assert_eq!(refused(&fixture, "GET", "tasks/%zz").0, 400);
    assert_eq!(admin(&fixture, "POST", "tasks/1").0, 405);
}

#[test]
fn the_system_and_its_configuration_are_shown() {
    let key = Command::new(SABIR).args(["key", "new", "--plain"]).output().unwrap();
    let key = String::from_utf8(key.stdout).unwrap().trim().to_owned();
    let fixture = ServerFixture::with(|options| {
        let toml = format!(
            "[server]\nkeep_alive = '200ms'\n[store]\nkey = '{key}'\n[push]\nhmac_secret = 'very-secret-word'\n"
        );
        std::fs::write(options.folder.join("sabir.toml"), toml).unwrap();
        options
    });
    send(&fixture, "hello");
    let (_, stream) = fixture.working("slow 600 never");
    let system = shown(&fixture, "system");
    assert_eq!(system["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (&system["auth"], &system["clustered"], &system["health"]),
        (&json!(false), &json!(false), &json!("ready"))
    );
    assert_eq!((&system["store"]["kind"], &system["store"]["durability"]), (&json!("sqlite"), &json!("full")));
    assert!(
        system["store"]["bytes"].as_u64().unwrap() > 4096
            && system["store"]["place"].as_str().unwrap().ends_with("sabir.db")
    );
    assert_eq!((&system["tasks"]["completed"], &system["tasks"]["total"]), (&json!(1), &json!(2)));
    assert_eq!((&system["streams"], &system["deliveries"]), (&json!(1), &json!({"pending": 0, "givenUp": 0})));
    assert!(system["connections"].as_u64() >= Some(2) && system["uptime"].as_f64() > Some(0.0), "{system}");
    assert_eq!(system["urls"], json!([format!("http://{}", fixture.server.address)]));
    assert_eq!(system["limits"][0]["used"], system["connections"]);
    drop(stream);
    fixture.server.until("the stream is gone", |_| (shown(&fixture, "system")["streams"] == 0).then_some(()));

    let config = shown(&fixture, "config");
    let settings = config["settings"].as_array().unwrap();
    let of = |name: &str| settings.iter().find(|setting| setting["name"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(of("server.listen")["origin"], "--listen");
    assert_eq!((&of("server.grace")["value"], &of("server.grace")["origin"]), (&json!("10s"), &json!("default")));
    assert!(of("push.hmac_secret")["origin"].as_str().unwrap().ends_with("sabir.toml:6"), "{config}");
    assert!(!config.to_string().contains("very-secret-word") && !config.to_string().contains(&key), "{config}");
}

#[test]
fn a_cancel_by_filter_cancels_what_matches_and_nothing_else() {
    let fixture = ServerFixture::with_agents(&["one", "two"]);
    let (working, _stream) = fixture.working("slow 600 never");
    let asked = send(&fixture, "ask which?");
    let of_two = fixture.rpc("/agents/two/a2a/jsonrpc", "message/send", v03_message("ask two?"))["result"]["id"].take();
    let done = send(&fixture, "hello");
    let state = |id: &str| fixture.task(id)["status"]["state"].as_str().unwrap_or_default().to_owned();

    for (query, expected) in [
        ("", "a filter is required"),
        ("?all=yes", "all must be true"),
        ("?state=completed", "state=completed is final"),
        ("?limit=3", "there is no parameter limit"),
    ] {
        let (status, detail) = refused(&fixture, "POST", &format!("tasks/cancel{query}"));
        assert!(status == 400 && detail.starts_with(expected), "{query}: {detail}");
    }
    assert_eq!(admin(&fixture, "GET", "tasks/cancel").0, 405);

    assert_eq!(admin(&fixture, "POST", "tasks/cancel?agent=three").1, json!({"canceled": 0, "failed": []}));
    assert_eq!(admin(&fixture, "POST", "tasks/cancel?agent=two").1, json!({"canceled": 1, "failed": []}));
    assert_eq!((state(&asked), state(&working)), ("input-required".to_owned(), "working".to_owned()));
    assert_eq!(
        fixture.rpc("/agents/two/a2a/jsonrpc", "tasks/get", json!({"id": of_two}))["result"]["status"]["state"],
        "canceled"
    );
    assert_eq!(admin(&fixture, "POST", "tasks/cancel?all=true").1, json!({"canceled": 2, "failed": []}));
    assert_eq!(
        (state(&asked), state(&working), state(&done)),
        ("canceled".into(), "canceled".into(), "completed".into())
    );
}

#[test]
fn only_operators_are_answered() {
    let (alice, operator) = (token("alice"), token("ops --scope admin"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sabir.toml"), format!("{}\n{}", alice.toml, operator.toml)).unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    let paths = [
        ("GET", "system"),
        ("GET", "config"),
        ("GET", "agents"),
        ("GET", "tasks"),
        ("GET", "tasks/1"),
        ("POST", "tasks/cancel?number=1"),
        ("POST", "tasks/cancel?all=true"),
        ("POST", "deliveries/retry"),
    ];
    let message = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "ask which?"}]}});
    let sent = exchange(&server, Some(&alice), "POST", "/message:send", &message);
    assert_eq!(sent.0, 200, "{}", sent.1);
    for (verb, below) in paths {
        let path = format!("/admin/v1/{below}");
        assert_eq!(exchange(&server, None, verb, &path, &Value::Null).0, 401, "{below}");
        let (status, body) = exchange(&server, Some(&alice), verb, &path, &Value::Null);
        assert_eq!((status, body["detail"].as_str()), (403, Some("the credential lacks the scope admin")), "{below}");
    }
    let listed = exchange(&server, Some(&operator), "GET", "/admin/v1/tasks", &Value::Null).1;
    assert_eq!(
        (&listed["tasks"][0]["owner"], &listed["tasks"][0]["state"]),
        (&json!("token:alice"), &json!("input-required"))
    );
    assert_eq!(exchange(&server, Some(&operator), "GET", "/admin/v1/system", &Value::Null).1["auth"], json!(true));
    let one = format!("/admin/v1/tasks/{}", listed["tasks"][0]["id"].as_str().unwrap());
    assert_eq!(exchange(&server, Some(&operator), "GET", &one, &Value::Null).0, 200);

    let canceled = exchange(&server, Some(&operator), "POST", "/admin/v1/tasks/cancel?owner=token:alice", &Value::Null);
    assert_eq!(canceled.1, json!({"canceled": 1, "failed": []}));
    let entries = exchange(&server, Some(&operator), "GET", "/admin/v1/audit?subject=token:ops", &Value::Null).1;
    let told: Vec<String> = entries["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{} {} {}", entry["action"], entry["owner"], entry["outcome"]).replace('"', ""))
        .collect();
    // What an operator sees of others is recorded as well as what it does.
    assert_eq!(told, ["list null ok", "read token:alice ok", "cancel token:alice ok"]);
}

#[test]
fn an_id_of_several_owners_is_told_apart_by_its_number() {
    let (alice, bob, operator) = (token("alice"), token("bob"), token("ops --scope admin"));
    let folder = tempfile::tempdir().unwrap();
    let toml = [&alice, &bob, &operator].map(|token| token.toml.as_str()).join("\n");
    std::fs::write(folder.path().join("sabir.toml"), toml).unwrap();
    let server = SabirOptions::new(SABIR, folder.path()).start();
    for caller in [&alice, &bob] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": {"id": "same/id",
            "message": {"role": "user", "parts": [{"type": "text", "text": "ask which?"}]}}});
        let (status, answer) = exchange_plain(&server, caller, "/", &body);
        assert_eq!((status, &answer["result"]["id"]), (200, &json!("same/id")), "{answer}");
    }
    let (status, problem) = exchange(&server, Some(&operator), "GET", "/admin/v1/tasks/same%2Fid", &Value::Null);
    let expected =
        "several tasks have this id; name one with ?number=, of: 2 (token:bob at demo), 1 (token:alice at demo)";
    assert_eq!((status, problem["detail"].as_str()), (409, Some(expected)));
    let one = exchange(&server, Some(&operator), "GET", "/admin/v1/tasks/same%2Fid?number=1", &Value::Null).1;
    assert_eq!((&one["owner"], &one["dialect"]), (&json!("token:alice"), &json!("0.1")));
    // A cancel is for the very task that was found, and not for one of the same id.
    for (query, expected) in
        [("number=1&id=same", 0), ("number=1&owner=token:bob", 0), ("number=1", 1), ("number=1", 0)]
    {
        let path = format!("/admin/v1/tasks/cancel?{query}");
        let canceled = exchange(&server, Some(&operator), "POST", &path, &Value::Null);
        assert_eq!(canceled.1, json!({"canceled": expected, "failed": []}), "{query}");
    }
    let states = exchange(&server, Some(&operator), "GET", "/admin/v1/tasks?id=same", &Value::Null).1;
    let told: Vec<(&Value, &Value)> =
        states["tasks"].as_array().unwrap().iter().map(|task| (&task["owner"], &task["state"])).collect();
    assert_eq!(told, [(&json!("token:alice"), &json!("canceled")), (&json!("token:bob"), &json!("input-required"))]);
}

/// A 0.1 client chooses ids that look like numbers, and ids of which one begins with the other.
#[test]
fn chosen_ids_are_taken_whole() {
    let fixture = ServerFixture::new();
    for id in ["2", "t1", "t10", "task-1", "task-10"] {
        let params = json!({"id": id, "message": {"role": "user", "parts": [{"type": "text", "text": "ask which?"}]}});
        assert_eq!(fixture.rpc("/", "tasks/send", params)["result"]["id"], id);
    }
    let listed = |query: &str| {
        let page = shown(&fixture, &format!("tasks?state=open&{query}"));
        page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // The task of the id 2 has the number 1, and another one the number 2.
    assert_eq!(shown(&fixture, "tasks/2")["number"], 1);
    assert_eq!(refused(&fixture, "GET", "tasks/2?number=2").0, 404);
    assert_eq!(shown(&fixture, "tasks/t1?number=2")["id"], "t1");
    assert_eq!((listed("id=t1"), listed("id=2")), (vec!["t1".to_owned()], vec!["2".to_owned()]));
    assert_eq!(listed("id=task-1"), ["task-10", "task-1"]);
    let cancel = |query: &str| admin(&fixture, "POST", &format!("tasks/cancel?{query}")).1["canceled"].clone();
    assert_eq!((cancel("id=task"), cancel("id=task-1"), cancel("number=3")), (json!(0), json!(1), json!(1)));
    assert_eq!(
        (listed("id=task-1"), listed("id=t10"), listed("id=t1")),
        (vec!["task-10".into()], vec![], vec!["t1".into()])
    );
    assert_eq!(cancel("number=1&number=2&number=77"), 2);
    assert_eq!(listed(""), ["task-10"]);
}

#[test]
fn silent_tasks_are_stuck_until_they_store_something() {
    // A machine that stands still for so many seconds makes the busy task silent too; then they are told apart by a longer time.
    for idle in [1, 4, 16] {
        let fixture = ServerFixture::new();
        let (silent, _silent) = fixture.working("slow 600 never");
        let (_, mut busy) = fixture.working("stream 100000 100");
        let stuck = format!("state=stuck&idle={idle}");
        fixture.server.until("so much time has passed since its last status", |_| {
            let page = shown(&fixture, &format!("tasks?{stuck}"));
            (messages(&page) == ["slow 600 never"]).then_some(())
        });
        assert!(busy.next_frame().unwrap().is_some(), "the other one stores artifacts, and no status");
        let (status, body) = admin(&fixture, "POST", &format!("tasks/cancel?{stuck}"));
        if idle < 16 && body == json!({"canceled": 2, "failed": []}) {
            continue;
        }
        assert_eq!((status, body), (200, json!({"canceled": 1, "failed": []})));
        assert_eq!(fixture.task(&silent)["status"]["state"], "canceled");
        assert_eq!(shown(&fixture, "tasks?state=working")["tasks"].as_array().unwrap().len(), 1);
        return;
    }
}

#[test]
fn deliveries_are_retried_together() {
    let receiver = WebhookReceiver::start();
    receiver.answer(410);
    let allowed = ("PUSH_NOTIFICATION_ALLOWED_CIDRS", "127.0.0.0/8");
    let fixture = ServerFixture::with(|options| options.variable(allowed.0, allowed.1));
    for (text, path) in [("one", "/a"), ("two", "/b"), ("three", "/b2")] {
        let mut params = v03_message(text);
        params["configuration"] = json!({"pushNotificationConfig": {"url": receiver.url(path)}});
        fixture.rpc("/a2a/jsonrpc", "message/send", params);
    }
    fixture.server.until("all is given up", |_| {
        (shown(&fixture, "system")["deliveries"] == json!({"pending": 0, "givenUp": 6})).then_some(())
    });
    for (query, status, expected) in
        [("?url=http://elsewhere/", 202, json!({"retried": 0})), ("?state=pending", 202, json!({"retried": 0}))]
    {
        assert_eq!(admin(&fixture, "POST", &format!("deliveries/retry{query}")), (status, expected), "{query}");
    }
    assert_eq!(refused(&fixture, "POST", "deliveries/retry?state=dead").0, 400);
    assert_eq!(admin(&fixture, "GET", "deliveries/retry").0, 405);
    receiver.answer(200);
    // The whole URL names a receiver, and not the beginning of one.
    for (path, expected) in [("/", 0), ("/b", 2)] {
        let url = receiver.url(path).replace(':', "%3A");
        let told = admin(&fixture, "POST", &format!("deliveries/retry?url={url}"));
        assert_eq!(told, (202, json!({"retried": expected})), "{path}");
    }
    fixture.server.until("those of one receiver are delivered", |_| {
        (shown(&fixture, "system")["deliveries"]["givenUp"] == 4).then_some(())
    });
    assert_eq!(admin(&fixture, "POST", "deliveries/retry"), (202, json!({"retried": 4})));
    fixture
        .server
        .until("all are delivered", |_| (shown(&fixture, "system")["deliveries"]["givenUp"] == 0).then_some(()));
}

#[test]
fn nodes_list_and_cancel_the_tasks_of_all() {
    let Some(cluster) = ClusterFixture::demo(2) else { return };
    let ask = |node: usize, verb: &str, below: &str| {
        let reply = cluster.node(node).http().exchange(verb, &format!("/admin/v1/{below}"), &[], b"").unwrap();
        assert_eq!(reply.status, 200, "{below}: {}", reply.text());
        reply.json()
    };
    let id = cluster.working(0, "slow 600 never", Value::Null);
    cluster.send(1, "hello", Value::Null);
    for node in 0..2 {
        let page = ask(node, "GET", "tasks?limit=10");
        let told: Vec<_> =
            page["tasks"].as_array().unwrap().iter().map(|task| (&task["state"], &task["node"])).collect();
        assert_eq!(told, [(&json!("completed"), &Value::Null), (&json!("working"), &json!("n0"))], "{page}");
        assert_eq!(page["counts"]["total"], 2);
        assert_eq!(ask(node, "GET", &format!("tasks?id={}", &id[..20]))["tasks"][0]["id"], json!(id));
        assert_eq!(ask(node, "GET", &format!("tasks/{id}"))["node"], "n0");
        let system = ask(node, "GET", "system");
        assert_eq!((&system["node"], &system["clustered"]), (&json!(format!("n{node}")), &json!(true)));
        let place = system["store"]["place"].as_str().unwrap();
        assert!(system["store"]["kind"] == "postgres" && place.contains('/'), "{system}");
        assert!(system["store"]["bytes"].as_u64() > Some(1_000_000), "{system}");
    }
    assert_eq!(ask(1, "POST", "tasks/cancel?state=working"), json!({"canceled": 1, "failed": []}));
    assert_eq!(cluster.state(0, &id), "TASK_STATE_CANCELED");
}

#[test]
fn sabir_tasks_lists_and_cancels() {
    let fixture = ServerFixture::with_agents(&["one", "two"]);
    let (working, _stream) = fixture.working("slow 600 never");
    let asked = send(&fixture, "ask which?");
    send(&fixture, "hello");
    let url = format!("http://{}", fixture.server.address);
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &str| {
        let mut command = Command::new(SABIR);
        command.arg("tasks").args(words.split_whitespace()).args(["--url", &url]);
        let output = command.current_dir(folder.path()).env_clear().output().unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code().unwrap(), printed, String::from_utf8(output.stderr).unwrap())
    };
    let ids = |words: &str| {
        let (code, printed, errors) = run(words);
        assert_eq!((code, errors.as_str()), (0, ""), "{words}");
        printed.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(""), [asked.clone(), working.clone()]);
    assert_eq!(ids("--state all").len(), 3);
    // Whoever reads the JSON hears on the standard error that it is not all.
    let (code, printed, errors) = run("--state all --limit 1");
    assert_eq!((code, printed.as_array().unwrap().len()), (0, 1));
    assert_eq!(errors, "More tasks match than the 1 shown; --limit shows more, and filters show fewer.\n");
    assert_eq!((ids("--number 2"), ids("--number 2 --agent two")), (vec![asked.clone()], vec![]));
    assert_eq!(ids(&format!("--id {working} --agent one --owner anonymous --since 1h")), [working.as_str()]);
    assert_eq!(ids("--state stuck --idle 1h"), [""; 0]);
    for (words, code, expected) in [
        ("--state done", 2, "possible values"),
        ("--idle 5m", 1, "idle is for state=stuck"),
        ("--since yesterday", 2, "expected a duration"),
        ("cancel --agent one", 1, "--yes cancels without asking"),
        ("cancel --yes", 1, "a filter is required"),
        ("cancel --all --agent one --yes", 1, "--all cannot be combined with a filter"),
        ("--id 01", 1, "id must have at least 4 characters"),
    ] {
        let (told_code, _, errors) = run(words);
        assert!(told_code == code && errors.contains(expected), "{words}: {told_code} {errors}");
    }
    assert_eq!(run("cancel --agent two --yes").1, json!({"canceled": 0, "failed": []}));

    // A person is shown what it is about, and asked.
    let words = ["tasks", "cancel", "--state", "waiting", "--url", &url];
    let mut terminal = Terminal::run(SABIR, &words, folder.path(), &[]);
    terminal.wait_for("Cancel this task? [y/N] ");
    terminal.type_keys("n\n");
    terminal.wait_for("Nothing was canceled.");
    assert_eq!(terminal.finish().0, 0);
    assert_eq!(fixture.task(&asked)["status"]["state"], "input-required");
    let mut terminal = Terminal::run(SABIR, &words, folder.path(), &[]);
    terminal.wait_for("which?");
    terminal.wait_for("[y/N] ");
    terminal.type_keys("y\n");
    terminal.wait_for("1 task is canceled.");
    assert_eq!(terminal.finish().0, 0);
    assert_eq!(fixture.task(&asked)["status"]["state"], "canceled");
    assert_eq!(run(&format!("cancel --id {} --yes", &working[..20])).1["canceled"], 0);
    assert_eq!(run(&format!("cancel --id {working} --yes")).1["canceled"], 1);

    let terminal = Terminal::run(SABIR, &["tasks", "--url", &url], folder.path(), &[]);
    terminal.wait_for("Nothing is open. --state all shows finished tasks too.");
    assert_eq!(terminal.finish().0, 0);
}

#[test]
fn sabir_tasks_cancels_what_it_has_shown_and_nothing_else() {
    let fixture = ServerFixture::new();
    let chosen = |id: &str| {
        let params = json!({"id": id, "message": {"role": "user", "parts": [{"type": "text", "text": "ask which?"}]}});
        assert_eq!(fixture.rpc("/", "tasks/send", params)["result"]["id"], id);
    };
    let state = |id: &str| shown(&fixture, &format!("tasks/{id}"))["state"].as_str().unwrap().to_owned();
    let url = format!("http://{}", fixture.server.address);
    let folder = tempfile::tempdir().unwrap();
    for id in ["task-1", "task-10", "task-2", "task-3"] {
        chosen(id);
    }
    for (words, question, canceled, left) in [
        (&["--id", "task-1"][..], "Cancel this task? [y/N] ", "1 task is canceled.", "task-10"),
        (&["--number", "3"], "Cancel this task? [y/N] ", "1 task is canceled.", "task-3"),
        (&["--agent", "demo"], "Cancel these 2 tasks? [y/N] ", "2 tasks are canceled.", "late"),
    ] {
        let words = [&["tasks", "cancel", "--url", &url][..], words].concat();
        let mut terminal = Terminal::run(SABIR, &words, folder.path(), &[]);
        terminal.wait_for(question);
        if left == "late" {
            chosen("late");
        }
        terminal.type_keys("y\n");
        terminal.wait_for(canceled);
        assert_eq!(terminal.finish().0, 0, "{words:?}");
        assert_eq!(state(left), "input-required", "{words:?}");
    }
    for id in ["task-1", "task-10", "task-2", "task-3"] {
        assert_eq!(state(id), "canceled", "{id}");
    }
}

#[test]
fn sabir_tasks_follows_the_pages_up_to_its_limit() {
    let fixture = ServerFixture::with(|options| options.argument("--log-level").argument("warn"));
    let url = format!("http://{}", fixture.server.address);
    // More than a page may have.
    for _ in 0..1003 {
        send(&fixture, "hello");
    }
    let run = |limit: &str| {
        let words = ["tasks", "--state", "all", "--limit", limit, "--url", &url];
        let output = Command::new(SABIR).args(words).env_clear().output().unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut numbers: Vec<u64> =
            printed.as_array().unwrap().iter().map(|task| task["number"].as_u64().unwrap()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        (numbers.len(), String::from_utf8(output.stderr).unwrap())
    };
    let more = "More tasks match than the 1001 shown; --limit shows more, and filters show fewer.\n";
    assert_eq!(run("1001"), (1001, more.to_owned()));
    assert_eq!(run("5000"), (1003, String::new()));
}

struct Token {
    header: String,
    toml: String,
}

fn token(words: &str) -> Token {
    let output = Command::new(SABIR).args(["token", "new"]).args(words.split_whitespace()).output().unwrap();
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    Token {
        header: format!("Bearer {}", made["token"].as_str().unwrap()),
        toml: made["toml"].as_str().unwrap().to_owned(),
    }
}

fn exchange(server: &SabirProcess, who: Option<&Token>, verb: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut headers = vec![("A2A-Version", "1.0")];
    headers.extend(who.map(|token| ("Authorization", token.header.as_str())));
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let reply = server.http().exchange(verb, path, &headers, body.as_bytes()).unwrap();
    (reply.status, serde_json::from_slice(&reply.body).unwrap_or_default())
}

/// Without a version.
fn exchange_plain(server: &SabirProcess, who: &Token, path: &str, body: &Value) -> (u16, Value) {
    let headers = [("Authorization", who.header.as_str())];
    let reply = server.http().exchange("POST", path, &headers, body.to_string().as_bytes()).unwrap();
    (reply.status, serde_json::from_slice(&reply.body).unwrap_or_default())
}
