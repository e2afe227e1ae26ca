//! The tasks extension.

use serde_json::{Value, json};

use crate::mcp_fixture::DoorFixture;

fn capable() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

async fn created(fixture: &DoorFixture, message: &str) -> Value {
    let call = json!({"name": "ask_agent", "arguments": {"message": message}});
    let (_, answer) = fixture.ask_modern(capable(), "tools/call", call).await;
    assert_eq!((&answer["result"]["resultType"], &answer["result"]["status"]), (&json!("task"), &json!("working")));
    answer["result"]["taskId"].clone()
}

async fn until(fixture: &DoorFixture, task: &Value, status: &str) -> Value {
    loop {
        let (_, answer) = fixture.ask_modern(capable(), "tasks/get", json!({"taskId": task})).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        if answer["result"]["status"] == status {
            return answer["result"].clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_task_is_created_polled_and_done() {
    let fixture = DoorFixture::new().await;
    let done = until(&fixture, &created(&fixture, "hi").await, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "echo: hi");
    let failed = until(&fixture, &created(&fixture, "fail no paper").await, "completed").await;
    assert_eq!(failed["result"]["isError"], true);
}

#[tokio::test]
async fn a_question_is_an_input_request() {
    let fixture = DoorFixture::new().await;
    let task = created(&fixture, "ask which day?").await;
    let asked = until(&fixture, &task, "input_required").await;
    let name = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let response = json!({"action": "accept", "content": {"answer": "Monday"}});
    // What was never asked, and what another task asks, is left alone.
    let other = created(&fixture, "ask which month?").await;
    let update = json!({"taskId": other, "inputResponses": {name: response, "x": response}});
    assert_eq!(fixture.ask_modern(capable(), "tasks/update", update).await.1["result"]["resultType"], "complete");
    until(&fixture, &other, "input_required").await;
    let update = json!({"taskId": task, "inputResponses": {name: response}});
    assert_eq!(fixture.ask_modern(capable(), "tasks/update", update).await.1["result"]["resultType"], "complete");
    let done = until(&fixture, &task, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "answered: Monday");
}

#[tokio::test]
async fn a_task_is_canceled() {
    let fixture = DoorFixture::new().await;
    let task = created(&fixture, "wait x").await;
    let (_, answer) = fixture.ask_modern(capable(), "tasks/cancel", json!({"taskId": task})).await;
    assert_eq!(answer["result"]["resultType"], "complete");
    until(&fixture, &task, "cancelled").await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let (_, answer) = fixture.ask_modern(capable(), method, json!({"taskId": "none", "inputResponses": {}})).await;
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
    }
}
