//! Whatever comes in, something comes out.

use proptest::prelude::*;
use sabir_doors::mcp::{McpHeaders, McpReply};
use sabir_model::Caller;
use serde_json::{Value, json};

use crate::mcp_fixture::DoorFixture;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zé\\\\\"/ ]{0,12}".prop_map(Value::from),
    ];
    let known = prop::sample::select(vec![
        "name",
        "arguments",
        "message",
        "task",
        "answer",
        "_meta",
        "progressToken",
        "uri",
        "taskId",
        "inputResponses",
        "requestState",
        "jobId",
        "io.modelcontextprotocol/protocolVersion",
        "protocolVersion",
        "capabilities",
    ]);
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(known.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_request_is_answered(
        method in prop::sample::select(vec!["initialize", "ping", "tools/list", "tools/call", "resources/read", "tasks/get", "tasks/update", "x"]),
        params in any_json(),
        tool in prop::sample::select(vec!["get_task", "wait_task", "answer_task", "coding_agent_poll", "list_agents"]),
        header in prop::option::of(prop::sample::select(vec!["2026-07-28", "2025-11-25", "x"])),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fixture = DoorFixture::new().await;
            let mut params = params;
            if method == "tools/call" && params.is_object() {
                params["name"] = json!(tool);
            }
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
            let headers = McpHeaders { protocol_version: header, ..McpHeaders::default() };
            let answer = match fixture.door.receive_http(&Caller::anonymous(), headers, body.as_bytes()).await {
                McpReply::Accepted => panic!("a request has an answer: {body}"),
                McpReply::Whole { body, .. } => body,
                McpReply::Call(call) => call.response.await,
            };
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert!(answer["result"].is_object() || answer["error"]["code"].is_i64(), "{body}: {answer}");
        });
    }
}
