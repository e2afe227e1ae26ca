//! Requests of both eras, and what is wrong with them.

use sabir_doors::mcp::{McpHeaders, McpReply};
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
    let expected = json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
    assert_eq!(result["supportedVersions"], expected);
    assert!(result["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object(), "{answer}");
    let (_, list) = fixture.ask_modern(json!({}), "tools/list", json!({})).await;
    assert_eq!((&list["result"]["resultType"], &list["result"]["cacheScope"]), (&json!("complete"), &json!("private")));
}

#[tokio::test]
async fn a_legacy_client_gets_the_version_that_it_asks_for() {
    let fixture = DoorFixture::new().await;
    for (asked, expected) in [
        ("2024-11-05", "2024-11-05"),
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
        assert!(sabir_doors::mcp::McpDoor::knows_session(&session));
        assert!(answer["result"].get("resultType").is_none());
    }
    let (status, _) = fixture
        .post(&Caller::anonymous(), McpHeaders::default(), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    assert_eq!(status, 202);
}
