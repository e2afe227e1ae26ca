use std::time::Duration;

use sabir_agents::ConformanceAgent;
use sabir_model::Part;

use crate::engine_fixture::{engine, message, play};

#[tokio::test(start_paused = true)]
async fn every_message_id_does_what_the_table_says() {
    let engine = engine(ConformanceAgent::new(Duration::from_secs(2))).await;
    let text = |text: &str| format!("Submitted Working result[text {text:?}]. Completed");
    let file = r#"Submitted Working result[bytes "Hello file" output.txt text/plain]. Completed"#;
    for (id, expected) in [
        ("tck-artifact-text-1", text("Generated text content")),
        (
            "tck-artifact-file-url-1",
            "Submitted Working result[url https://example.com/output.txt output.txt text/plain]. Completed".into(),
        ),
        ("tck-artifact-file-1", file.into()),
        ("tck-artifact-data-1", r#"Submitted Working result[data {"key":"value","count":42}]. Completed"#.into()),
        ("tck-message-response-1", "reply(Direct message response)".into()),
        ("tck-input-required-1", "Submitted Working InputRequired(input required)".into()),
        ("tck-reject-task-1", "Submitted Working Rejected(rejected)".into()),
        ("tck-stream-001-1", text("Stream hello from TCK")),
        ("tck-stream-002-1", "Submitted Working Completed".into()),
        ("tck-stream-003-1", text("Stream task lifecycle")),
        ("tck-stream-ordering-001-1", text("Ordered output")),
        ("tck-stream-artifact-text-1", text("Streamed text content")),
        ("tck-stream-artifact-file-1", file.into()),
        (
            "tck-stream-artifact-chunked-1",
            r#"Submitted Working result[text "chunk-1 "] +result[text "chunk-2"]. Completed"#.into(),
        ),
        ("tck-anything-else", "Submitted Working Completed(Hello from TCK)".into()),
        // 2 x 2 s + 1 s, with a sign of life every half second.
        ("test-resubscribe-message-id-1", format!("Submitted Working{} Completed", " Working".repeat(10))),
        ("test-1", r#"Submitted Working result[text "echo: hi"]. InputRequired(input required)"#.into()),
        ("my-message-id-7", r#"Submitted Working result[text "echo: hi"]. InputRequired(input required)"#.into()),
        ("m1", text("echo: hi")),
    ] {
        assert_eq!(play(&engine, message(id, vec![Part::text("hi")])).await.1, expected, "{id}");
    }
}
