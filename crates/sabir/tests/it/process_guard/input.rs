//! The input of a program under the guard: what it reads, and what happens when it does not read.

use std::io::ErrorKind;
use std::time::Instant;

use sabir_agents::adapter::Exit;
use sabir_agents::process::Output;

use super::fixture::{PATIENCE, line, memory, start};

#[tokio::test]
async fn lines_go_in_and_come_out() {
    let mut child = start("while read -r word; do echo \"heard $word\"; done; echo end").await;
    for word in ["one", "two", "€"] {
        child.write_line(word).await.unwrap();
        assert_eq!(line(&mut child).await, format!("heard {word}"));
    }
    child.write_line("last").await.unwrap();
    child.close_input();
    assert_eq!(child.write_line("late").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(line(&mut child).await, "heard last");
    assert_eq!(line(&mut child).await, "end");
    assert_eq!(child.next().await, Output::Closed);
    assert_eq!(child.next().await, Output::Closed);
    assert_eq!(child.exit().await, Exit::Code(0));
}

#[tokio::test]
async fn large_input_arrives_whole_and_in_order() {
    let mut child = start("cat").await;
    let long = "x".repeat(1000);
    for number in 0..10_000 {
        child.write_line(&format!("{number} {long}")).await.unwrap();
    }
    child.write_line(&"y".repeat(1024 * 1024)).await.unwrap();
    child.close_input();
    for number in 0..10_000 {
        assert_eq!(line(&mut child).await, format!("{number} {long}"));
    }
    assert_eq!(line(&mut child).await, "y".repeat(1024 * 1024));
    assert_eq!(child.next().await, Output::Closed);
}

#[tokio::test]
async fn a_program_that_does_not_read_blocks_nobody() {
    let mut child = start("echo ready; sleep 1000").await;
    assert_eq!(line(&mut child).await, "ready");
    let megabyte = "x".repeat(1024 * 1024 - 1);
    let begin = Instant::now();
    for _ in 0..10 {
        child.write_line(&megabyte).await.unwrap();
    }
    assert!(begin.elapsed() < PATIENCE / 3);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let resident = memory(child.pid(), "RssAnon:");
    assert!(resident < 4 * 1024 * 1024, "what is not read is in the guard: {resident} bytes");
    for _ in 10..64 {
        child.write_line(&megabyte).await.unwrap();
    }
    let refused = child.write_line(&megabyte).await.unwrap_err();
    assert_eq!(refused.to_string(), "the program does not read its input");
    let begin = Instant::now();
    assert_eq!(child.stop().await, Exit::Signal(15));
    assert!(begin.elapsed() < PATIENCE / 3, "signals do not wait for input");
}

#[tokio::test]
async fn a_program_that_reads_late_reads_all() {
    let mut child = start("sleep 0.3; wc -c").await;
    for _ in 0..10 {
        child.write_line(&"x".repeat(1024 * 1024 - 1)).await.unwrap();
    }
    child.close_input();
    assert_eq!(line(&mut child).await.trim(), (10 * 1024 * 1024).to_string());
}

#[tokio::test]
async fn a_program_that_will_not_read_again_is_not_written_to() {
    for script in ["exec <&-; echo ready; sleep 1000", "echo ready; exit 0"] {
        let mut child = start(script).await;
        assert_eq!(line(&mut child).await, "ready");
        let begin = Instant::now();
        loop {
            match child.write_line("anybody?").await {
                Err(error) => break assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{script}"),
                Ok(()) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
            assert!(begin.elapsed() < PATIENCE, "{script}");
        }
        child.stop().await;
    }
}
