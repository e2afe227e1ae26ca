//! Requests of both eras, and what is wrong with them.

use sabir_doors::mcp::{McpCall, McpDoor, McpHeaders, McpReply, McpTransport};
use sabir_model::Caller;
use serde_json::{Value, json};

use crate::mcp_fixture::DoorFixture;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[tokio::test]
async fn what_is_wrong_is_said_with_its_code_and_status() {
    let fixture = DoorFixture::new().await;
    let modern = |method: &'static str| McpHeaders {
        protocol_version: Some("2026-07-28"),
        method: Some(method),
        ..McpHeaders::default()
    };
    let named = |method, name| McpHeaders { name: Some(name), ..modern(method) };
    let request =
        |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
    let call = |name: &str| request("tools/call", &format!(r#"{META},"name":"{name}","arguments":{{}}"#));
    for (headers, body, status, code) in [
        (McpHeaders::default(), "{".to_owned(), 400, -32700),
        (McpHeaders::default(), "[]".to_owned(), 400, -32600),
        (McpHeaders::default(), request("nope", ""), 200, -32601),
        (McpHeaders::default(), request("initialize", ""), 200, -32602),
        (McpHeaders::default(), request("server/discover", ""), 200, -32601),
        (
            McpHeaders { protocol_version: Some("1900-01-01"), ..McpHeaders::default() },
            request("ping", ""),
            400,
            -32022,
        ),
        (
            McpHeaders { protocol_version: Some("2024-11-05"), ..McpHeaders::default() },
            request("ping", ""),
            400,
            -32022,
        ),
        (modern("tools/list"), request("tools/list", ""), 400, -32602),
        (modern("nope"), request("nope", META), 404, -32601),
        (modern("ping"), request("ping", META), 404, -32601),
        (modern("initialize"), request("initialize", META), 404, -32601),
        (McpHeaders::default(), request("tools/list", META), 400, -32020),
        (modern("tools/call"), request("tools/list", META), 400, -32020),
        (modern("tools/call"), call("get_task"), 400, -32020),
        (named("tools/call", "wait_task"), call("get_task"), 400, -32020),
        (
            named("tools/call", "get_task"),
            request("tools/call", &format!(r#"{META},"name":"list_agents","uri":5"#)),
            400,
            -32020,
        ),
        (
            named("tools/call", "get_task"),
            request("tools/call", &format!(r#"{META},"name":"get_task","name":"x""#)),
            400,
            -32020,
        ),
        (named("tools/call", "get_task"), request("tools/call", &format!(r#"{META},"name":7"#)), 400, -32020),
        (named("tools/call", "nope"), call("nope"), 200, -32602),
        (named("tools/call", "=?base64?bm9wZQ==?="), call("nope"), 200, -32602),
        (named("tasks/get", "t"), request("tasks/get", &format!(r#"{META},"taskId":"t""#)), 400, -32021),
    ] {
        let (answered, answer) = fixture.post(&Caller::anonymous(), headers, &body).await;
        assert_eq!((answered, &answer["error"]["code"]), (status, &json!(code)), "{body}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|words| words.len() > 5), "{answer}");
    }
}

#[tokio::test]
async fn a_modern_client_discovers_the_server() {
    let fixture = DoorFixture::new().await;
    let (status, answer) = fixture.ask_modern(json!({}), "server/discover", json!({})).await;
    let result = &answer["result"];
    assert_eq!((status, &result["resultType"]), (200, &json!("complete")));
    let expected = json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]);
    assert_eq!(result["supportedVersions"], expected);
    assert!(result["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object(), "{answer}");
    let (_, list) = fixture.ask_modern(json!({}), "tools/list", json!({})).await;
    assert_eq!((&list["result"]["resultType"], &list["result"]["cacheScope"]), (&json!("complete"), &json!("private")));
}

#[tokio::test]
async fn a_legacy_client_gets_the_version_that_it_asks_for() {
    let fixture = DoorFixture::new().await;
    for (asked, expected) in [
        ("2024-11-05", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2030-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
        let reply = fixture.door.receive_http(&Caller::anonymous(), McpHeaders::default(), body.as_bytes()).await;
        let McpReply::Whole { body, session: Some(session), .. } = reply else { panic!("a session begins") };
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(answer["result"]["protocolVersion"], expected);
        assert!(McpDoor::knows_session(&session, McpTransport::Http));
        assert!(answer["result"].get("resultType").is_none());
    }
    let (status, _) = fixture
        .post(&Caller::anonymous(), McpHeaders::default(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    assert_eq!(status, 202);
}

/// A client of the oldest version on standard input and output, and what it sends.
const OLDEST: McpHeaders<'static> = McpHeaders {
    protocol_version: Some("2024-11-05"),
    method: None,
    name: None,
    session: Some("2024-11-05.plain.0000000000000001"),
    transport: McpTransport::Stdio,
};

async fn ask_oldest(fixture: &DoorFixture, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let (status, answer) = fixture.post(&Caller::anonymous(), OLDEST, &body).await;
    assert_eq!(status, 200, "{answer}");
    answer["result"].clone()
}

#[tokio::test]
async fn a_client_of_the_oldest_version_gets_what_that_version_has() {
    let fixture = DoorFixture::new().await;
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {"elicitation": {}}, "clientInfo": {}});
    let begun = ask_oldest(&fixture, "initialize", params).await;
    assert_eq!((&begun["protocolVersion"], begun["serverInfo"].get("title")), (&json!("2024-11-05"), None));
    let tools = ask_oldest(&fixture, "tools/list", json!({})).await;
    for tool in tools["tools"].as_array().unwrap() {
        let names: Vec<&String> = tool.as_object().unwrap().keys().collect();
        assert_eq!(names, ["description", "inputSchema", "name"], "{tool}");
    }
    let call = |words: &str| json!({"name": "ask_agent", "arguments": {"agent": "echo", "message": words}});
    for (words, expected) in [
        ("artifact", &["text", "image", "resource", "text"][..]),
        ("long", &["text", "text"]),
        ("hello", &["text", "text"]),
        ("ask which day?", &["text", "text"]),
    ] {
        let result = ask_oldest(&fixture, "tools/call", call(words)).await;
        assert!(result.get("structuredContent").is_none(), "{words}");
        let content = result["content"].as_array().unwrap();
        let kinds: Vec<&str> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, expected, "{words}");
        // What has a place of its own later is the last text.
        let data: Value = serde_json::from_str(content.last().unwrap()["text"].as_str().unwrap()).unwrap();
        assert_eq!(data["agent"], "echo", "{words}: {data}");
        assert!(data["context"].is_string() && data["task"].is_string() && data.get("answer").is_none(), "{data}");
    }
    let agents = ask_oldest(&fixture, "tools/call", json!({"name": "list_agents"})).await;
    let agents: Value = serde_json::from_str(agents["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(agents["agents"][0]["id"], "echo");
}

#[tokio::test]
async fn a_client_of_the_oldest_version_gets_progress_without_words() {
    let fixture = DoorFixture::new().await;
    let params = json!({
        "name": "ask_agent", "arguments": {"agent": "echo", "message": "wait a while"}, "_meta": {"progressToken": 5},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let reply = fixture.door.receive_http(&Caller::anonymous(), OLDEST, body.as_bytes()).await;
    let McpReply::Call(McpCall { mut messages, response, .. }) = reply else { panic!("a call takes its time") };
    let response = tokio::spawn(response);
    let shown: Value = serde_json::from_slice(&messages.recv().await.unwrap()).unwrap();
    assert_eq!(shown["params"], json!({"progressToken": 5, "progress": 1}));
    fixture.go.notify_one();
    let answer: Value = serde_json::from_slice(&response.await.unwrap()).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "waited");
}

#[tokio::test]
async fn ids_of_every_type_come_back_or_are_refused() {
    let fixture = DoorFixture::new().await;
    let long = format!("\"{}\"", "x".repeat(1022));
    for id in ["1", "0", "-7", "123456789012345678901234567890", "\"a\"", "\"\"", "\"\\u00e9 \\\"\"", &long] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let reply = fixture.door.receive_http(&Caller::anonymous(), McpHeaders::default(), body.as_bytes()).await;
        let McpReply::Whole { status: 200, body, .. } = reply else { panic!("{id}") };
        assert_eq!(String::from_utf8(body).unwrap(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
    let too_long = format!("\"{}\"", "x".repeat(1023));
    let digits = "9".repeat(2000);
    for id in ["null", "1.0", "1e3", "true", "false", "{}", "{\"a\":1}", "[]", "[1]", &too_long, &digits] {
        let arguments = r#""params":{"name":"ask_agent","arguments":{"agent":"echo","message":"hello"}}"#;
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call",{arguments}}}"#);
        let (status, answer) = fixture.post(&Caller::anonymous(), McpHeaders::default(), &body).await;
        assert_eq!((status, &answer["error"]["code"], answer.get("id")), (400, &json!(-32600), None), "{id}: {answer}");
    }
    assert_eq!(fixture.stored_tasks().await, 0, "nothing was started");
}

#[tokio::test]
async fn a_call_that_is_wrong_starts_nothing() {
    let fixture = DoorFixture::new().await;
    let huge = "x".repeat(1 << 20);
    let refused = |params: Value| async {
        let answer = fixture.ask("tools/call", params).await;
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"))
    };
    for params in [
        json!({}),
        json!({"name": null}),
        json!({"name": "nope"}),
        json!({"name": huge}),
        json!({"name": "ASK_AGENT"}),
        json!({"name": "ask_hidden_not"}),
        json!({"name": "ask_agent", "arguments": "hello"}),
        json!({"name": "ask_agent", "arguments": ["hello"]}),
        json!({"name": "ask_agent", "arguments": {"message": "x"}, "_meta": {"progressToken": {}}}),
        json!({"name": "ask_agent", "arguments": {"message": "x"}, "_meta": {"progressToken": huge}}),
        json!({"name": "ask_agent", "arguments": {"message": "x"}, "_meta": "x"}),
    ] {
        assert_eq!(refused(params).await, -32602);
    }
    // What a model can mend is the result of the tool, and short whatever came.
    for arguments in [
        json!({}),
        json!({"message": ""}),
        json!({"message": {}}),
        json!({"message": "x", "agnet": "echo"}),
        json!({"message": "x", huge.as_str(): 1}),
        json!({"message": "x", "agent": "nobody"}),
        json!({"message": "x", "agent": huge}),
        json!({"message": "x", "task": "none"}),
        json!({"message": "x", "task": huge}),
        json!({"message": "x", "context": huge}),
        json!({"message": "x", "idempotency_key": huge}),
        json!({"message": "x", "wait_seconds": -1}),
        json!({"message": "x", "wait_seconds": 1e300}),
        json!({"message": "x", "wait_seconds": "1"}),
    ] {
        let result = fixture.tool("ask_agent", arguments.clone()).await;
        assert_eq!(result["isError"], true, "{result}");
        let words = result["content"][0]["text"].as_str().unwrap();
        assert!(!words.is_empty() && words.len() < 2000, "{} bytes", words.len());
    }
    for (tool, argument) in
        [("get_task", "task"), ("wait_task", "task"), ("cancel_task", "task"), ("coding_agent_poll", "jobId")]
    {
        for id in ["none", huge.as_str()] {
            let result = fixture.tool(tool, json!({argument: id})).await;
            assert_eq!(result["isError"], true, "{tool}: {result}");
        }
    }
    assert_eq!(fixture.stored_tasks().await, 0, "nothing was started");
}

#[tokio::test]
async fn a_list_takes_no_cursor_that_it_has_not_given() {
    let fixture = DoorFixture::new().await;
    for method in ["tools/list", "resources/list", "resources/templates/list"] {
        for cursor in [json!("x"), json!(""), json!(7), json!({})] {
            let answer = fixture.ask(method, json!({"cursor": cursor})).await;
            assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
        }
        let answer = fixture.ask(method, json!({"cursor": null})).await;
        assert!(answer["result"].is_object(), "{method}: {answer}");
    }
}

#[tokio::test]
async fn a_cancel_of_what_nobody_asked_changes_nothing() {
    let fixture = DoorFixture::new().await;
    let call = fixture.begin("ask_agent", json!({"agent": "echo", "message": "wait a while"})).await;
    let McpCall { mut messages, response, .. } = call;
    let response = tokio::spawn(response);
    messages.recv().await.expect("the agent works");
    for params in [
        json!({"requestId": 7}),
        json!({"requestId": "unknown", "reason": "x"}),
        json!({"requestId": null}),
        json!({"requestId": {"a": [1]}}),
        json!({}),
    ] {
        let body = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string();
        assert_eq!(fixture.post(&Caller::anonymous(), McpHeaders::default(), &body).await.0, 202, "{body}");
    }
    fixture.go.notify_one();
    let answer: Value = serde_json::from_slice(&response.await.unwrap()).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "waited", "only `cancel_task` stops an agent");
}

#[tokio::test]
async fn many_who_wait_for_one_task_get_its_answer() {
    const MANY: usize = 300;
    let fixture = DoorFixture::new().await;
    let begun = fixture.tool("ask_agent", json!({"agent": "echo", "message": "wait a while", "wait_seconds": 0})).await;
    let task = begun["structuredContent"]["task"].clone();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..MANY {
        let McpCall { mut messages, response, .. } = fixture.begin("wait_task", json!({"task": task})).await;
        // Nobody reads what most of them are told.
        waiting.spawn(async move {
            let _first = messages.try_recv();
            response.await
        });
    }
    tokio::task::yield_now().await;
    fixture.go.notify_one();
    let mut answered = 0;
    while let Some(answer) = waiting.join_next().await {
        let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "waited", "{answer}");
        answered += 1;
    }
    assert_eq!((answered, fixture.stored_tasks().await), (MANY, 1));
}

#[tokio::test]
async fn a_server_with_many_agents_shows_so_many_and_says_how_many_are_left() {
    let ids: Vec<String> = (0..230).map(|number| format!("agent{number:03}")).collect();
    let fixture = DoorFixture::with_agents(&ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let list = fixture.tool("list_agents", json!({})).await["structuredContent"].clone();
    assert_eq!((list["agents"].as_array().unwrap().len(), &list["more"]), (200, &json!(30)));
    let reached = fixture.tool("ask_agent", json!({"agent": "agent229", "message": "hello"})).await;
    assert_eq!(reached["content"][0]["text"], "echo: hello");
    // None of them has a tool of its own.
    let tools = fixture.ask("tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 11);
}
