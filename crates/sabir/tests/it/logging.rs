//! What an operator reads in the log: that a task was accepted, asks, and how it ended; never what was said.

use std::fs::File;
use std::time::Duration;

use sabir_testkit::process::SabirOptions;
use serde_json::{Value, json};

use crate::SABIR;

fn message(text: &str, task: Option<&str>) -> Value {
    let mut message = json!({"messageId": uuid(), "role": "ROLE_USER", "parts": [{"text": text}]});
    if let Some(task) = task {
        message["taskId"] = json!(task);
    }
    json!({"message": message})
}

fn uuid() -> String {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    format!("log-{}", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

#[test]
fn the_log_has_events_and_no_message_texts() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let options = SabirOptions::new(SABIR, folder.path()).variable("SABIR_LOG_FORMAT", "json");
    let mut server = options.start_with(File::create(&log).unwrap().into());
    let secret = "sesame";
    let id = |answer: &Value| answer["result"]["task"]["id"].as_str().unwrap_or_default().to_owned();
    let sent = |text: &str| id(&server.rpc("SendMessage", message(text, None)));
    let (asked, failed) = (sent(&format!("ask {secret}?")), sent(&format!("fail {secret}")));
    let rejected = sent(&format!("reject {secret}"));
    server.rpc("CancelTask", json!({"id": asked}));
    let refused = server.rpc("SendMessage", message(secret, Some(&failed)));
    assert_eq!(refused["error"]["code"], -32004, "{refused}");
    server.terminate();
    server.wait(Duration::from_secs(20));
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains(secret), "{text}");
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let shown = |task: &str| -> Vec<String> {
        let of_task = lines.iter().map(|line| &line["fields"]).filter(|fields| fields["task"] == task);
        of_task.map(|fields| fields["message"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(shown(&asked), ["task accepted", "task asks its caller", "task canceled"], "{text}");
    assert_eq!(shown(&failed), ["task accepted", "task failed", "message refused"], "{text}");
    assert_eq!(shown(&rejected), ["task accepted", "task rejected"], "{text}");
    let ended = lines.iter().find(|line| line["fields"]["message"] == "task failed").unwrap();
    for field in ["task", "agent", "context", "caller", "millis"] {
        assert!(!ended["fields"][field].is_null(), "{field} is missing: {ended}");
    }
}
