//! The promises of tirea, a gateway.

use sabir_testkit::http::HttpReply;
use serde_json::{Value, json};

use crate::gateway::error_text;
use crate::server_fixture::ServerFixture;

const CARD: &str = "/.well-known/agent-card.json";
const AGENTS: &str = "/v1/a2a/agents";
const CACHING: &str = "public, max-age=30, must-revalidate";

/// The root card of demo agents in this order, at an address that does not change from start to start.
fn card_of(ids: &[&str], description: &str) -> HttpReply {
    let head = format!("[server]\npublic_url = \"http://gateway.example\"\n[card]\ndescription = \"{description}\"\n");
    let agents = ids.iter().map(|id| format!("[[agent]]\nid = \"{id}\"\nkind = \"demo\"\n"));
    ServerFixture::configured(&(head + &agents.collect::<String>())).get(CARD)
}

/// The root card of demo agents behind a server that calls itself a gateway.
fn gateway(ids: &[&str]) -> (ServerFixture, Value) {
    let agents = ids.iter().map(|id| format!("[[agent]]\nid = \"{id}\"\nkind = \"demo\"\n"));
    let fixture = ServerFixture::configured(&format!("[card]\nprofile = \"gateway\"\n{}", agents.collect::<String>()));
    let card = fixture.get(CARD).json();
    (fixture, card)
}

fn etag(reply: &HttpReply) -> String {
    reply.header("etag").expect("a card has a tag").to_owned()
}

fn if_none_match(fixture: &ServerFixture, tags: &str) -> HttpReply {
    fixture.ask("GET", CARD, &[("If-None-Match", tags)], &Value::Null)
}

fn decision(id: &str, action: &str, result: &Value) -> Value {
    json!({
        "target_id": "fc_perm_1", "decision_id": id, "action": action, "result": result, "updated_at": 1_760_000_000_000_i64,
    })
}

fn lines(history: &Value) -> Vec<String> {
    let line = |line: &Value| format!("{}: {}", line["role"].as_str().unwrap(), line["content"].as_str().unwrap());
    history.as_array().unwrap().iter().map(line).collect()
}

/// The card has the capability flags `taskManagement`, `streaming` and `agentDiscovery`
#[test]
fn s1_01_the_card_has_the_flags_of_a_gateway() {
    for fixture in [ServerFixture::new(), ServerFixture::with_agents(&["alpha", "beta"])] {
        let card = fixture.get(CARD).json();
        for flag in ["taskManagement", "streaming", "agentDiscovery"] {
            assert_eq!(card["capabilities"][flag], true, "{flag} in {card}");
        }
    }
}

/// The card may be kept for 30 seconds: `cache-control: public, max-age=30, must-revalidate`
#[test]
fn s1_02_the_card_says_how_long_it_may_be_kept() {
    assert_eq!(ServerFixture::new().get(CARD).header("cache-control"), Some(CACHING));
}

/// The card's `etag` is `W/"a2a-agents-HEX"`; it does not change with the order of the agents in the file, and it does with
/// everything that the card says
#[test]
fn s1_03_the_tag_stands_for_the_agents_and_not_for_their_order() {
    let tag = etag(&card_of(&["alpha", "beta"], "one"));
    let hex = tag.strip_prefix("W/\"a2a-agents-").and_then(|tag| tag.strip_suffix('"')).expect(&tag);
    assert!(!hex.is_empty() && hex.bytes().all(|digit| digit.is_ascii_hexdigit()), "{tag}");
    assert_eq!(etag(&card_of(&["beta", "alpha"], "one")), tag);
    assert_ne!(etag(&card_of(&["alpha", "beta", "gamma"], "one")), tag);
    assert_ne!(etag(&card_of(&["alpha", "beta"], "two")), tag);
}

/// `If-None-Match` with the card's tag is answered with 304, no body, and both caching headers
#[test]
fn s1_04_a_card_that_is_known_is_not_sent_again() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let tag = etag(&fixture.get(CARD));
    let reply = if_none_match(&fixture, &tag);
    assert_eq!((reply.status, reply.text().as_str()), (304, ""));
    assert_eq!((reply.header("etag"), reply.header("cache-control")), (Some(tag.as_str()), Some(CACHING)));
}

/// `If-None-Match: *` is answered with 304
#[test]
fn s1_05_a_star_matches_every_card() {
    let reply = if_none_match(&ServerFixture::new(), "*");
    assert_eq!((reply.status, reply.text().as_str()), (304, ""));
}

/// `If-None-Match` takes a list of tags: 304 when the card's is among them, else 200 with the card
#[test]
fn s1_06_a_list_of_tags_is_searched() {
    let fixture = ServerFixture::new();
    let card = fixture.get(CARD);
    let tag = etag(&card);
    for tags in [format!("\"other\", {tag}"), format!("{tag},\"other\""), format!("\"a\",{tag} , \"b\"")] {
        assert_eq!(if_none_match(&fixture, &tags).status, 304, "{tags}");
    }
    for tags in ["\"other\", W/\"a2a-agents-0\"", "\"other\"", ""] {
        let reply = if_none_match(&fixture, tags);
        assert_eq!((reply.status, reply.body == card.body), (200, true), "{tags}");
    }
}

/// With `card.profile = "gateway"` and one agent, the card's `url` is where messages for that agent go
#[test]
fn s1_07_the_gateways_card_leads_to_its_only_agent() {
    let (fixture, card) = gateway(&["solo"]);
    assert_eq!(card["url"], "/v1/a2a/agents/solo/message:send", "{card}");
    assert_eq!(fixture.post(card["url"].as_str().unwrap(), json!({"input": "hello"})).status, 202);
}

/// With `card.profile = "gateway"` and several agents, the card's `url` is the list of them
#[test]
fn s1_08_the_gateways_card_leads_to_the_list_of_its_agents() {
    let (fixture, card) = gateway(&["alpha", "beta"]);
    assert_eq!(card["url"], "/v1/a2a/agents", "{card}");
    assert!(fixture.get(card["url"].as_str().unwrap()).json().is_array());
}

/// `GET /v1/a2a/agents` is an array with one entry for each agent, sorted by `agentId`, with the addresses of its card and
/// of its messages
#[test]
fn s1_09_the_agents_are_listed() {
    let fixture = ServerFixture::with_agents(&["beta", "alpha"]);
    let reply = fixture.get(AGENTS);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    let agents = reply.json();
    let ids: Vec<&Value> = agents.as_array().expect("an array").iter().map(|entry| &entry["agentId"]).collect();
    assert_eq!(ids, ["alpha", "beta"]);
    for entry in agents.as_array().unwrap() {
        assert_eq!(fixture.get(entry["agentCardUrl"].as_str().unwrap()).status, 200, "{entry}");
        let sent = fixture.post(entry["messageSendUrl"].as_str().unwrap(), json!({"input": "hello"}));
        assert_eq!(sent.status, 202, "{entry}");
    }
}

/// `GET /v1/a2a/agents/ID/agent-card` is the card of that agent, and its `url` is where messages for it go
#[test]
fn s1_10_every_agent_has_a_card() {
    let fixture = ServerFixture::configured(
        "[[agent]]\nid = \"alpha\"\nkind = \"demo\"\nname = \"Alpha\"\n\n[[agent]]\nid = \"beta\"\nkind = \"demo\"\n",
    );
    let reply = fixture.get("/v1/a2a/agents/alpha/agent-card");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    let card = reply.json();
    assert_eq!(card["url"], "/v1/a2a/agents/alpha/message:send", "{card}");
    assert_eq!(card["name"], "Alpha");
    assert_eq!(card["capabilities"]["agents"], json!(["alpha"]));
}

/// The card of an agent that does not exist is 404, with a text under `error` and nothing else
#[test]
fn s1_11_an_unknown_agent_has_no_card() {
    let reply = ServerFixture::with_agents(&["alpha", "beta"]).get("/v1/a2a/agents/ghost/agent-card");
    assert_eq!((reply.status, error_text(&reply).as_str()), (404, "agent not found: ghost; known: alpha, beta"));
}

/// `message:send` is answered with 202, `contextId`, `taskId` and `"status":"submitted"`, without waiting for the agent
#[test]
fn s1_12_a_submission_is_answered_at_once() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let reply = fixture.submit("alpha", json!({"input": "slow 3 hello"}));
    assert_eq!((reply.status, reply.header("content-type")), (202, Some("application/json")));
    let body = reply.json();
    let (context, task) = (body["contextId"].as_str().unwrap(), body["taskId"].as_str().unwrap());
    assert!(!context.is_empty() && !task.is_empty(), "{body}");
    assert_eq!(body, json!({"contextId": context, "taskId": task, "status": "submitted"}));
    assert_ne!(fixture.run("alpha", task)["status"], "done", "the answer came before the agent's");
}

/// A submission may be a `message` with `role` and `content`; who leaves the role out is the user
#[test]
fn s1_13_a_message_may_leave_its_role_out() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    for message in [json!({"role": "user", "content": "hi"}), json!({"content": "hi"})] {
        let reply = fixture.submit("alpha", json!({"message": message}));
        assert_eq!((reply.status, &reply.json()["status"]), (202, &json!("submitted")), "{message}");
        let run = fixture.run_when("alpha", reply.json()["taskId"].as_str().unwrap(), "done");
        assert_eq!(lines(&run["history"]), ["user: hi", "assistant: echo: hi"]);
    }
}

/// The context may be spelled `contextId` or `context_id`, and comes back as it was named
#[test]
fn s1_14_the_context_has_two_spellings() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    for body in [json!({"context_id": "c1", "input": "x"}), json!({"contextId": "c1", "input": "x"})] {
        let reply = fixture.submit("alpha", body.clone());
        assert_eq!((reply.status, &reply.json()["contextId"]), (202, &json!("c1")), "{body}");
    }
}

/// A message to a task that is done, named as `taskId` or `task_id`, starts a new task in the same context, which refers to
/// the first
#[test]
fn s1_15_a_finished_task_is_continued_by_a_new_one() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let first = fixture.finished("alpha", json!({"input": "hello"}));
    let task = first["taskId"].as_str().unwrap();
    for name in ["taskId", "task_id"] {
        let reply = fixture.submit("alpha", json!({name: task, "input": "continue"}));
        let body = reply.json();
        assert_eq!((reply.status, &body["status"]), (202, &json!("submitted")), "{name}");
        assert_eq!(body["contextId"], first["contextId"]);
        assert_ne!(body["taskId"], task);
        let next = fixture.run_when("alpha", body["taskId"].as_str().unwrap(), "done");
        assert_eq!(next["message"]["content"], "echo: continue");
        let shown = fixture.rpc("/a2a", "tasks/get", json!({"id": next["taskId"]}));
        assert_eq!(shown["result"]["history"][0]["referenceTaskIds"], json!([task]), "{shown}");
    }
    assert_eq!(fixture.run("alpha", task), first, "the first one is as it was");
}

/// A decision with `"action":"resume"` for a task that waits is answered with 202 and `"status":"decision_forwarded"`, and
/// the task goes on; the same `decision_id` once more gets the same answer and does nothing
#[test]
fn s1_16_a_decision_lets_a_waiting_task_go_on() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    for (words, name) in [("ask May I?", "taskId"), ("auth Who are you?", "task_id")] {
        let task = fixture.submitted("alpha", json!({"input": words}));
        let context = fixture.run_when("alpha", &task, "waiting")["contextId"].clone();
        let decision = decision("d1", "resume", &json!({"approved": true}));
        let forwarded = json!({"contextId": context, "taskId": task, "status": "decision_forwarded"});
        let body = json!({name: task, "decisions": [decision]});
        let reply = fixture.submit("alpha", body.clone());
        assert_eq!((reply.status, reply.json()), (202, forwarded.clone()));
        let run = fixture.run_when("alpha", &task, "done");
        let (_, question) = words.split_once(' ').unwrap();
        let said = [format!("user: {words}"), format!("assistant: {question}")];
        assert_eq!(lines(&run["history"])[..2], said);
        assert_eq!(lines(&run["history"])[2..], ["user: yes", "assistant: echo: yes"]);
        let shown = fixture.rpc("/a2a", "tasks/get", json!({"id": task}));
        assert_eq!(shown["result"]["history"][2]["parts"][1]["data"], decision, "the agent is told all of it: {shown}");

        let reply = fixture.submit("alpha", body);
        assert_eq!((reply.status, reply.json()), (202, forwarded));
        assert_eq!(fixture.run("alpha", &task), run, "a decision that is repeated is no second one");
    }
}

/// A decision with `"action":"cancel"`, or with `"approved":false`, is forwarded as a refusal
#[test]
fn s1_17_a_decision_can_refuse() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    for (action, result) in [("cancel", Value::Null), ("resume", json!({"approved": false})), ("resume", json!(false))]
    {
        let task = fixture.submitted("alpha", json!({"input": "ask May I?"}));
        fixture.run_when("alpha", &task, "waiting");
        let decision = decision("d1", action, &result);
        let reply = fixture.submit("alpha", json!({"taskId": task, "decisions": [decision]}));
        assert_eq!((reply.status, &reply.json()["status"]), (202, &json!("decision_forwarded")));
        assert_eq!(reply.json()["taskId"], task);
        let run = fixture.run_when("alpha", &task, "done");
        assert_eq!(run["message"]["content"], "echo: no");
    }
}

/// Decisions without the task that they are for are 400
#[test]
fn s1_18_decisions_need_a_task() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let reply = fixture.submit("alpha", json!({"decisions": [decision("d1", "resume", &json!({"approved": true}))]}));
    assert_eq!(reply.status, 400);
    assert!(error_text(&reply).starts_with("bad request: decisions need the taskId"), "{}", reply.text());
}

/// Decisions for a task that does not wait are 400, `task is not active`
#[test]
fn s1_19_decisions_for_a_task_that_does_not_wait_are_refused() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let done = fixture.finished("alpha", json!({"input": "hello"}));
    let running = fixture.submitted("alpha", json!({"input": "slow 60"}));
    for task in [done["taskId"].as_str().unwrap(), &running] {
        let before = fixture.run("alpha", task);
        let body = json!({"taskId": task, "decisions": [decision("d1", "resume", &json!({"approved": true}))]});
        let reply = fixture.submit("alpha", body);
        assert_eq!(reply.status, 400);
        assert!(error_text(&reply).contains("task is not active"), "{}", reply.text());
        assert_eq!(fixture.run("alpha", task)["history"], before["history"]);
    }
}

/// Decisions or input for a task that does not exist are 404
#[test]
fn s1_20_an_unknown_task_takes_no_message() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    for body in [
        json!({"taskId": "ghost", "input": "x"}),
        json!({"task_id": "ghost", "message": {"content": "x"}}),
        json!({"taskId": "ghost"}),
        json!({"taskId": "ghost", "decisions": [decision("d1", "resume", &json!({"approved": true}))]}),
    ] {
        let reply = fixture.submit("alpha", body.clone());
        assert_eq!((reply.status, error_text(&reply).as_str()), (404, "run not found: ghost"), "{body}");
    }
}

/// An empty submission is 400
#[test]
fn s1_21_an_empty_submission_is_refused() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let reply = fixture.submit("alpha", json!({}));
    assert_eq!(reply.status, 400);
    assert!(error_text(&reply).starts_with("bad request: "), "{}", reply.text());
}

/// One of `input`, `message`, `decisions`, `contextId` and `taskId` is enough for a submission
#[test]
fn s1_22_a_place_alone_is_enough() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let reply = fixture.submit("alpha", json!({"contextId": "c1"}));
    assert_eq!((reply.status, &reply.json()["contextId"]), (202, &json!("c1")));
    let task = reply.json()["taskId"].as_str().unwrap().to_owned();
    let run = fixture.run_when("alpha", &task, "done");
    assert_eq!((&run["message"], &run["history"]), (&Value::Null, &json!([])), "{run}");
    let reply = fixture.submit("alpha", json!({"taskId": task}));
    assert_eq!((reply.status, &reply.json()["contextId"]), (202, &json!("c1")));
    assert_eq!(fixture.submit("alpha", json!({"input": ""})).status, 202);
    assert_eq!(fixture.submit("alpha", json!({"message": {"content": ""}})).status, 202);
}

/// A submission to an agent that does not exist is 404
#[test]
fn s1_23_an_unknown_agent_takes_no_message() {
    let reply = ServerFixture::with_agents(&["alpha", "beta"]).submit("ghost", json!({"input": "x"}));
    assert_eq!((reply.status, error_text(&reply).as_str()), (404, "agent not found: ghost; known: alpha, beta"));
}

/// Any other action than `message:send` is 400, `bad request: unsupported A2A action; expected 'message:send'`
#[test]
fn s1_24_any_other_action_is_refused() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    for path in ["alpha/message:foo", "alpha/message", "alpha/message:send:now", "ghost/message:foo"] {
        let reply = fixture.post(&format!("{AGENTS}/{path}"), json!({"input": "x"}));
        let expected = r#"{"error":"bad request: unsupported A2A action; expected 'message:send'"}"#;
        assert_eq!((reply.status, reply.text().as_str()), (400, expected), "{path}");
    }
}

/// A task that is done has `taskId`, `contextId`, `"status":"done"`, `"origin":"a2a"`, the times in milliseconds, and null
/// as `terminationCode` and `terminationDetail`; where it failed, these say `error` and why
#[test]
fn s1_25_a_task_tells_how_it_stands() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    for (words, code, detail) in [
        ("slow 0.05 hello", Value::Null, Value::Null),
        ("fail No network", json!("error"), json!("No network")),
        ("reject Not my job", json!("rejected"), json!("Not my job")),
    ] {
        let sent = fixture.submit("alpha", json!({"input": words, "contextId": words})).json();
        let task = sent["taskId"].as_str().unwrap();
        let run = fixture.run_when("alpha", task, "done");
        assert_eq!((&run["taskId"], &run["contextId"]), (&sent["taskId"], &json!(words)));
        assert_eq!((&run["status"], &run["origin"]), (&json!("done"), &json!("a2a")));
        assert_eq!((run.get("terminationCode"), run.get("terminationDetail")), (Some(&code), Some(&detail)), "{run}");
        let (created, updated) = (run["createdAt"].as_i64().unwrap(), run["updatedAt"].as_i64().unwrap());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
        assert!((now - 60_000..=now).contains(&created) && (created..=now).contains(&updated), "{run}");
        if words.starts_with("slow") {
            assert!(updated >= created + 50, "{run}");
        }
    }
}

/// The answer of an agent is the task's `message`, its `artifacts`, and the last line of its `history`
#[test]
fn s1_26_the_answer_is_message_artifact_and_history() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    for (words, answer) in [("hello", "echo: hello"), ("message final", "final"), ("stream 2 0", "chunk 1\nchunk 2\n")]
    {
        let run = fixture.finished("alpha", json!({"input": words}));
        assert_eq!(run["message"], json!({"role": "assistant", "content": answer}));
        assert_eq!(run["artifacts"], json!([{"content": answer}]));
        let user = json!({"role": "user", "content": words});
        assert_eq!(run["history"], json!([user, {"role": "assistant", "content": answer}]));
    }
}

/// As long as there is no answer, `message` is null and `artifacts` is empty; the history has what was asked
#[test]
fn s1_27_a_task_without_an_answer_says_so() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let task = fixture.submitted("alpha", json!({"input": "slow 60 x"}));
    let run = fixture.run_when("alpha", &task, "running");
    assert_eq!((run.get("message"), &run["artifacts"]), (Some(&Value::Null), &json!([])), "{run}");
    assert_eq!(run["history"], json!([{"role": "user", "content": "slow 60 x"}]));
    let keys = ["terminationCode", "terminationDetail", "origin", "createdAt", "updatedAt"];
    assert!(keys.iter().all(|key| run.get(key).is_some()), "the same members as of a task that is done: {run}");
}

/// The history has what users, assistants and systems said; tools and progress are not in it
#[test]
fn s1_28_tools_are_not_part_of_the_history() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let run = fixture.finished("alpha", json!({"input": "tool grep"}));
    assert_eq!(lines(&run["history"]), ["user: tool grep", "assistant: echo: tool grep"]);
    let replay = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": run["taskId"]}});
    let events = fixture.stream("/a2a", &[("Last-Event-ID", "0")], &replay);
    assert!(events.iter().any(|event| event.data.contains("Using tool: grep")), "the task used a tool: {events:?}");
    let run = fixture.finished("alpha", json!({"message": {"role": "system", "content": "be brief"}}));
    assert_eq!(lines(&run["history"]), ["system: be brief", "assistant: echo: be brief"]);
    let run = fixture.finished("alpha", json!({"message": {"role": "assistant", "content": "I said"}}));
    assert_eq!(lines(&run["history"]), ["assistant: I said", "assistant: echo: I said"]);
}

/// A task that does not exist is 404
#[test]
fn s1_29_an_unknown_task_is_not_found() {
    let reply = ServerFixture::with_agents(&["alpha", "beta"]).get("/v1/a2a/agents/alpha/tasks/ghost");
    assert_eq!((reply.status, error_text(&reply).as_str()), (404, "run not found: ghost"));
}

/// `POST .../tasks/ID:cancel` of a task that runs, waits or is queued is answered with 202 and `"status":"cancel_requested"`;
/// the task is then `cancelled`, and so is its `terminationCode`
#[test]
fn s1_30_a_task_is_cancelled() {
    let fixture = ServerFixture::configured("[[agent]]\nid = \"alpha\"\nkind = \"demo\"\nmax_concurrent = 1\n");
    let waiting = fixture.submitted("alpha", json!({"input": "ask May I?"}));
    fixture.run_when("alpha", &waiting, "waiting");
    let running = fixture.submitted("alpha", json!({"input": "slow 60"}));
    fixture.run_when("alpha", &running, "running");
    let queued = fixture.submitted("alpha", json!({"input": "slow 60"}));
    assert_eq!(fixture.run("alpha", &queued)["status"], "queued");
    for task in [queued, running, waiting] {
        let reply = fixture.cancel_run("alpha", &task);
        assert_eq!((reply.status, reply.json()), (202, json!({"taskId": task, "status": "cancel_requested"})));
        let run = fixture.run_when("alpha", &task, "cancelled");
        assert_eq!((&run["terminationCode"], &run["terminationDetail"]), (&json!("cancelled"), &Value::Null));
    }
}

/// A cancel of a task that is done is 400, `task is not active`
#[test]
fn s1_31_a_finished_task_cannot_be_cancelled() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let cancelled = fixture.submitted("alpha", json!({"input": "slow 60"}));
    fixture.cancel_run("alpha", &cancelled);
    let before = fixture.run_when("alpha", &cancelled, "cancelled");
    for run in
        [before, fixture.finished("alpha", json!({"input": "hi"})), fixture.finished("alpha", json!({"input": "fail"}))]
    {
        let task = run["taskId"].as_str().unwrap();
        let reply = fixture.cancel_run("alpha", task);
        assert_eq!(reply.status, 400, "{run}");
        assert!(error_text(&reply).contains("task is not active"), "{}", reply.text());
        assert_eq!(fixture.run("alpha", task), run);
    }
}

/// A cancel of a task that does not exist is 404
#[test]
fn s1_32_an_unknown_task_cannot_be_cancelled() {
    let reply = ServerFixture::with_agents(&["alpha", "beta"]).cancel_run("alpha", "ghost");
    assert_eq!((reply.status, error_text(&reply).as_str()), (404, "run not found: ghost"));
}

/// A cancel by GET is 400, and cancels nothing
#[test]
fn s1_33_a_cancel_must_be_posted() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let task = fixture.submitted("alpha", json!({"input": "slow 60"}));
    let reply = fixture.get(&format!("{AGENTS}/alpha/tasks/{task}:cancel"));
    assert_eq!(reply.status, 400);
    assert!(error_text(&reply).starts_with("bad request: "), "{}", reply.text());
    fixture.run_when("alpha", &task, "running");
}

/// A POST to a task without `:cancel` is 400
#[test]
fn s1_34_a_task_takes_no_other_action() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let task = fixture.submitted("alpha", json!({"input": "slow 60"}));
    for action in ["", ":pause", "cancel"] {
        let reply = fixture.post(&format!("{AGENTS}/alpha/tasks/{task}{action}"), Value::Null);
        assert_eq!(reply.status, 400, "{action}");
        assert!(error_text(&reply).starts_with("bad request: "), "{}", reply.text());
    }
    fixture.run_when("alpha", &task, "running");
}

/// Every error is a JSON object with the one member `error`, a text that begins with its class, such as `bad request: `,
/// `agent not found: ` or `run not found: `
#[test]
fn s1_35_every_error_is_one_text_with_its_class() {
    let fixture = ServerFixture::with_agents(&["alpha", "beta"]);
    let nothing = Value::Null;
    for (verb, path, body, status, class) in [
        ("GET", "/ghost/agent-card", &nothing, 404, "agent not found: ghost"),
        ("GET", "/ghost/tasks/t", &nothing, 404, "agent not found: ghost"),
        ("POST", "/ghost/tasks/t:cancel", &nothing, 404, "agent not found: ghost"),
        ("POST", "/ghost/message:send", &json!({"input": "x"}), 404, "agent not found: ghost"),
        ("GET", "/alpha/tasks/t", &nothing, 404, "run not found: t"),
        ("POST", "/alpha/tasks/t:cancel", &nothing, 404, "run not found: t"),
        ("POST", "/alpha/message:send", &json!({"taskId": "t"}), 404, "run not found: t"),
        ("POST", "/alpha/message:send", &json!({}), 400, "bad request: "),
        ("POST", "/alpha/message:send", &json!([]), 400, "bad request: "),
        ("POST", "/alpha/message:send", &nothing, 400, "bad request: "),
        ("POST", "/alpha/tasks/t", &nothing, 400, "bad request: "),
        ("GET", "/alpha/tasks/t:cancel", &nothing, 400, "bad request: "),
        ("GET", "/alpha/tasks", &nothing, 400, "bad request: "),
        ("GET", "/alpha/message:send", &nothing, 405, "bad request: "),
        ("DELETE", "/alpha/tasks/t", &nothing, 405, "bad request: "),
        ("POST", "", &json!({"input": "x"}), 405, "bad request: "),
        ("GET", "/alpha", &nothing, 404, "not found: "),
        ("GET", "/alpha/tasks/t/more", &nothing, 404, "not found: "),
    ] {
        let reply = fixture.ask(verb, &format!("{AGENTS}{path}"), &[], body);
        assert_eq!(reply.status, status, "{verb} {path}: {}", reply.text());
        assert!(error_text(&reply).starts_with(class), "{verb} {path}: {}", reply.text());
    }
}
