//! Whatever a caller wants of a task, any node does it.

use sabir_testkit::sse;
use serde_json::{Value, json};

use super::fixture::{ClusterFixture, LIMIT, id_of, message, numbered, request};

#[test]
fn a_task_is_read_and_listed_everywhere() {
    let Some(cluster) = ClusterFixture::demo(3) else { return };
    let ids: Vec<String> =
        (0..9).map(|number| id_of(&cluster.send(number % 3, &format!("hello {number}"), Value::Null))).collect();
    for node in 0..3 {
        for id in &ids {
            assert_eq!(cluster.state(node, id), "TASK_STATE_COMPLETED");
        }
        let page = cluster.rpc(node, "ListTasks", json!({"pageSize": 5}));
        assert_eq!(
            (page["result"]["totalSize"].as_u64(), page["result"]["tasks"].as_array().unwrap().len()),
            (Some(9), 5)
        );
    }
}

#[test]
fn a_stream_is_followed_live_on_another_node() {
    let Some(cluster) = ClusterFixture::demo(2) else { return };
    // It ends when it is canceled.
    let id = cluster.working(0, "stream 10000 20", Value::Null);
    let mut live = cluster.subscribe(1, &id, Some(0));
    let mut seen = Vec::new();
    while seen.len() < 60 {
        seen.push(numbered(live.next_frame().unwrap().expect("it goes on")));
    }
    assert_eq!(cluster.state(0, &id), "TASK_STATE_WORKING", "the reader on the other node reads while it runs");
    cluster.cancel(0, &id);
    seen.extend(live.rest().unwrap().into_iter().map(numbered));
    assert_eq!(seen, cluster.events(0, &id, 0), "the same frames, byte for byte");
    assert_eq!(seen, cluster.events(1, &id, 0));
    assert_eq!(seen.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (1..=seen.len() as u64).collect::<Vec<_>>());
    assert_eq!(cluster.events(1, &id, 30), seen[30..]);
}

/// The stream was opened by the owner of that time.
#[test]
fn who_still_watches_a_task_that_was_given_away_on_another_node_hears_no_more() {
    let Some(cluster) = ClusterFixture::with(2, "[[agent]]\nid = \"tck\"\nkind = \"conformance\"\n") else { return };
    let asks = json!({"message": {"messageId": "tck-input-required-1"}});
    let id = id_of(&cluster.send(0, "ask", asks));
    let mut watched = cluster.subscribe(1, &id, None);
    watched.give_up_after(LIMIT);
    let snapshot = watched.next_frame().unwrap().expect("it waits");
    assert!(snapshot.data.contains("TASK_STATE_INPUT_REQUIRED"), "{}", snapshot.data);
    let path = "/admin/v1/tasks/assign?from=anonymous&to=token:alice";
    let given = cluster.http(0).exchange("POST", path, &[], b"").unwrap();
    assert_eq!((given.status, &given.json()["moved"]), (200, &json!(1)), "{}", given.text());
    assert_eq!(watched.rest().unwrap().len(), 0);
    // Nor does it begin again.
    let body = request("SubscribeToTask", json!({"id": id}));
    let again = sse::open(cluster.node(1).address, "POST", "/", &[("A2A-Version", "1.0")], body.as_bytes()).unwrap();
    assert!(again.err().is_some_and(|refused| refused.text().contains("-32001")));
}

#[test]
fn a_cancel_reaches_the_node_that_runs_the_task() {
    let Some(cluster) = ClusterFixture::demo(2) else { return };
    let id = cluster.working(0, "slow 600 never", Value::Null);
    cluster.cancel(1, &id);
    let again = cluster.rpc(1, "CancelTask", json!({"id": id}));
    assert_eq!(again["error"]["code"], -32002, "{again}");
}

/// The database stores the cancel after its caller has heard of the failure.
#[test]
fn a_cancel_that_has_failed_does_nothing_later() {
    let Some(cluster) = ClusterFixture::demo(2) else { return };
    let id = cluster.working(0, "slow 600 never", Value::Null);
    let other = cluster.working(0, "slow 600 never", Value::Null);
    let slow = "CREATE TABLE released (since timestamptz);
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN WHILE NOT EXISTS (SELECT FROM released) LOOP PERFORM pg_sleep(0.05); END LOOP; RETURN NEW; END';
        CREATE TRIGGER slow BEFORE INSERT ON forwarded FOR EACH ROW EXECUTE FUNCTION wait()";
    cluster.execute(slow);
    let failed = cluster.rpc(1, "CancelTask", json!({"id": id}));
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    assert_eq!(cluster.execute("SELECT count(*) FROM forwarded"), "0");
    cluster.execute("INSERT INTO released VALUES (now())");
    cluster.until_row("it is stored late", "SELECT count(*) FROM forwarded", "1");
    // When the owner has done this, it has also looked at the older call.
    cluster.cancel(1, &other);
    assert_eq!(cluster.state(1, &id), "TASK_STATE_WORKING");
    cluster.cancel(1, &id);
}

#[test]
fn a_question_is_answered_through_another_node() {
    let Some(cluster) = ClusterFixture::demo(3) else { return };
    let asked = cluster.send(0, "ask which?", Value::Null);
    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let id = id_of(&asked);
    let answered = cluster.send(1, "this one", json!({"message": {"taskId": id}}));
    assert_eq!((id_of(&answered), answered["status"]["state"].as_str()), (id.clone(), Some("TASK_STATE_COMPLETED")));
    let refused = cluster.rpc(2, "SendMessage", message("late", json!({"message": {"taskId": id}})));
    assert_eq!(refused["error"]["code"], -32004, "{refused}");
}

#[test]
fn a_message_to_a_working_task_is_its_next_turn() {
    let Some(cluster) = ClusterFixture::demo(2) else { return };
    // The message comes while that works. On a busy machine, the task may be over by then.
    let next_turn = |words: &str| {
        let id = cluster.working(0, words, Value::Null);
        let answer = cluster.rpc(1, "SendMessage", message("second", json!({"message": {"taskId": id}})));
        if answer["error"]["code"] == -32004 {
            return None;
        }
        let done = answer["result"]["task"].clone();
        assert_eq!((done["id"].as_str(), done["status"]["state"].as_str()), (Some(&*id), Some("TASK_STATE_COMPLETED")));
        assert_eq!(texts(&done), [words, "second"]);
        Some(done)
    };
    let done = ["slow 5 first", "slow 30 first"].into_iter().find_map(next_turn).expect("it came in time");
    let artifacts = done["artifacts"].to_string();
    assert!(artifacts.contains("first") && artifacts.contains("echo: second"), "{artifacts}");
}

#[test]
fn a_stream_that_continues_a_task_elsewhere_shows_its_turn() {
    let Some(cluster) = ClusterFixture::demo(2) else { return };
    let id = id_of(&cluster.send(0, "ask which?", Value::Null));
    let body = request("SendStreamingMessage", message("stream 5 10", json!({"message": {"taskId": id}})));
    let address = cluster.node(1).address;
    let opened = sabir_testkit::sse::open(address, "POST", "/", &[("A2A-Version", "1.0")], body.as_bytes()).unwrap();
    let frames = opened.unwrap_or_else(|reply| panic!("{}", reply.text())).rest().unwrap();
    assert!(frames.last().unwrap().data.contains("TASK_STATE_COMPLETED"), "{:?}", frames.last());
    assert_eq!(frames.iter().filter(|frame| frame.data.contains("artifactUpdate")).count(), 5);
}

#[test]
fn one_key_makes_one_task_on_all_nodes() {
    let Some(cluster) = ClusterFixture::demo(3) else { return };
    let body = request("SendMessage", message("slow 0.3 once", Value::Null));
    let send = |node: usize| {
        let headers = [("A2A-Version", "1.0"), ("Idempotency-Key", "k1")];
        cluster.http(node).exchange("POST", "/", &headers, body.as_bytes()).unwrap().json()
    };
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let sends: Vec<_> = (0..9).map(|number| scope.spawn(move || send(number % 3))).collect();
        sends.into_iter().map(|send| send.join().unwrap()).collect()
    });
    let ids: std::collections::HashSet<String> =
        answers.iter().map(|answer| id_of(&answer["result"]["task"])).collect();
    assert_eq!(ids.len(), 1, "{answers:?}");
    assert_eq!(cluster.rpc(0, "ListTasks", json!({}))["result"]["totalSize"], 1);
    assert_eq!(id_of(&send(1)["result"]["task"]), *ids.iter().next().unwrap(), "also when it is finished");
}

#[test]
fn one_message_in_flight_makes_one_task_on_all_nodes() {
    let Some(cluster) = ClusterFixture::demo(3) else { return };
    let at_once = json!({"configuration": {"returnImmediately": true}});
    let body = request("SendMessage", message("slow 600 once", at_once));
    let send = |node: usize| {
        cluster.http(node).exchange("POST", "/", &[("A2A-Version", "1.0")], body.as_bytes()).unwrap().json()
    };
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let sends: Vec<_> = (0..6).map(|number| scope.spawn(move || send(number % 3))).collect();
        sends.into_iter().map(|send| send.join().unwrap()).collect()
    });
    let ids: std::collections::HashSet<String> =
        answers.iter().map(|answer| id_of(&answer["result"]["task"])).collect();
    assert_eq!(ids.len(), 1, "{answers:?}");
}

/// The texts of a task's history.
fn texts(task: &Value) -> Vec<String> {
    let messages = task["history"].as_array().unwrap().iter();
    messages.map(|message| message["parts"][0]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn one_message_to_a_task_is_delivered_once_through_several_nodes() {
    let Some(cluster) = ClusterFixture::demo(3) else { return };
    for names_context in [false, true] {
        let asked = cluster.send(0, "ask which?", Value::Null);
        let id = id_of(&asked);
        let mut to = json!({"taskId": id});
        if names_context {
            to["contextId"] = asked["contextId"].clone();
        }
        let more = json!({"message": to, "configuration": {"returnImmediately": true}});
        let body = request("SendMessage", message("slow 600 ask again?", more));
        std::thread::scope(|scope| {
            for node in [0, 1, 2, 1] {
                let (cluster, body) = (&cluster, &body);
                scope.spawn(move || {
                    let headers = [("A2A-Version", "1.0")];
                    let answer = cluster.http(node).exchange("POST", "/", &headers, body.as_bytes()).unwrap().json();
                    assert!(answer["result"]["task"].is_object(), "{answer}");
                });
            }
        });
        // The history of a canceled task also has the messages that still waited for their turn.
        cluster.cancel(0, &id);
        let task = cluster.rpc(2, "GetTask", json!({"id": id}))["result"].clone();
        let copies = texts(&task).iter().filter(|text| *text == "slow 600 ask again?").count();
        assert_eq!(copies, 1, "names its context: {names_context}: {task}");
    }
}

#[test]
fn one_message_to_a_task_that_waits_for_its_context_is_delivered_once() {
    let Some(cluster) = ClusterFixture::demo(2) else { return };
    let first = cluster.working(0, "slow 600 first", json!({"message": {"contextId": "c1"}}));
    let later = json!({"message": {"contextId": "c1"}, "configuration": {"returnImmediately": true}});
    let second = id_of(&cluster.send(1, "second", later));
    let more = json!({"message": {"taskId": second}, "configuration": {"returnImmediately": true}});
    let body = request("SendMessage", message("more", more));
    for node in [0, 1, 0] {
        let answer =
            cluster.http(node).exchange("POST", "/", &[("A2A-Version", "1.0")], body.as_bytes()).unwrap().json();
        assert_eq!(id_of(&answer["result"]["task"]), second, "{answer}");
    }
    cluster.cancel(1, &first);
    cluster.until_state(0, &second, "TASK_STATE_COMPLETED");
    let task = cluster.rpc(0, "GetTask", json!({"id": second}))["result"].clone();
    assert_eq!(texts(&task), ["second", "more"]);
}

#[test]
fn one_key_delivers_one_answer() {
    let Some(cluster) = ClusterFixture::demo(3) else { return };
    for round in 0..5 {
        let id = id_of(&cluster.send(0, "ask which?", Value::Null));
        let body = request("SendMessage", message("slow 0.2 ask again?", json!({"message": {"taskId": id}})));
        let key = format!("answer {round}");
        std::thread::scope(|scope| {
            for node in 0..3 {
                let (cluster, body, key) = (&cluster, &body, &key);
                scope.spawn(move || {
                    let headers = [("A2A-Version", "1.0"), ("Idempotency-Key", key.as_str())];
                    let answer = cluster.http(node).exchange("POST", "/", &headers, body.as_bytes()).unwrap().json();
                    assert!(answer["result"]["task"].is_object(), "{answer}");
                });
            }
        });
        let task = cluster.rpc(1, "GetTask", json!({"id": id}))["result"].clone();
        let answers =
            task["history"].as_array().unwrap().iter().filter(|m| m["parts"][0]["text"] == "slow 0.2 ask again?");
        assert_eq!(answers.count(), 1, "round {round}: {task}");
    }
}

#[test]
fn a_webhook_is_delivered_once_and_in_order() {
    let toml = "[push]\nallow_hosts = [\"127.0.0.1\"]\n[[agent]]\nid = \"demo\"\nkind = \"demo\"\n";
    let Some(cluster) = ClusterFixture::with(3, toml) else { return };
    let receiver = crate::webhook_receiver::WebhookReceiver::start();
    let mut deliveries = Vec::new();
    for number in 0..6 {
        let config = json!({"taskPushNotificationConfig": {"url": receiver.url("/hook")}, "returnImmediately": true});
        let id = id_of(&cluster.send(number % 3, "slow 0.2 hello", json!({"configuration": config})));
        deliveries.extend(receiver.until(|request| request.body.contains("TASK_STATE_COMPLETED")));
        assert!(deliveries.last().unwrap().body.contains(&id));
    }
    cluster.until_row("nothing is due any more", "SELECT count(*) FROM webhooks WHERE due IS NOT NULL", "0");
    deliveries.extend(receiver.rest());
    let states: Vec<&str> = deliveries
        .iter()
        .map(|request| if request.body.contains("COMPLETED") { "completed" } else { "working" })
        .collect();
    assert_eq!(states, ["working", "completed"].repeat(6));
}
