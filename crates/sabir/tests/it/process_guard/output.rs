//! The output of a program under the guard: lines, floods, endless lines, closed pipes.

use std::process::Stdio;
use std::time::Duration;

use sabir_agents::adapter::Exit;
use sabir_agents::process::{Launch, Output};
use tokio::time::timeout;

use super::fixture::{PATIENCE, ProcessMark, alone, exists, given, kill, line, memory, script, start, until};

#[tokio::test]
async fn any_bytes_become_lines() {
    let mut child = start(r"printf 'one\r\n\n\377\376ok\nno end'").await;
    for expected in ["one", "", "\u{fffd}\u{fffd}ok", "no end"] {
        assert_eq!(line(&mut child).await, expected);
    }
    assert_eq!(child.next().await, Output::Closed);
}

#[tokio::test]
async fn a_canceled_wait_loses_nothing() {
    let mut child = start("for each in 1 2 3; do printf a; sleep 0.1; printf 'b\\n'; sleep 0.1; done").await;
    let mut heard = Vec::new();
    let all = async {
        loop {
            match timeout(Duration::from_millis(7), child.next()).await {
                Ok(Output::Closed) => break,
                Ok(output) => heard.push(output),
                Err(_) => {
                    let _ = timeout(Duration::from_millis(1), child.exit()).await;
                }
            }
        }
    };
    timeout(PATIENCE, all).await.unwrap();
    assert_eq!(heard, vec![Output::Line("ab".to_owned()); 3]);
    assert_eq!(timeout(PATIENCE, child.exit()).await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn arrived_lines_are_told_apart_from_later_ones() {
    let mut child = start("printf 'a\\nb\\nc'; read go; printf 'd\\n'; read go; echo e").await;
    until("it speaks", || !child.has_no_output()).await;
    let mut arrived = Vec::new();
    while arrived.len() < 2 {
        arrived.extend(child.next_available().await);
    }
    assert_eq!(arrived, ["a", "b"].map(|line| Output::Line(line.into())));
    // A line that has begun is waited for.
    assert!(timeout(Duration::from_millis(50), child.next_available()).await.is_err());
    child.write_line("go").await.unwrap();
    assert_eq!(child.next_available().await, Some(Output::Line("cd".into())));
    assert!(child.has_no_output());
    assert_eq!(child.next_available().await, None);
    child.write_line("go").await.unwrap();
    assert_eq!(line(&mut child).await, "e");
}

#[tokio::test]
async fn a_flood_of_output_waits_for_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let count = || std::fs::read_to_string(folder.path().join("count")).unwrap_or_default().trim().parse().unwrap_or(0);
    let text = "each=0; while :; do printf '%1000s\\n' x; each=$((each + 1)); echo $each > count; done";
    let mut child =
        Launch { folder: folder.path().to_owned(), ..script(text, &ProcessMark::new()) }.start().await.unwrap();
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now: u32 = count();
        if now > 0 && now == before {
            break;
        }
        before = now;
    }
    assert!(before < 200, "{before} lines were taken though nobody wanted them");
    for _ in 0..1000 {
        assert_eq!(line(&mut child).await.len(), 1000);
    }
    until("the flood goes on", || count() >= 1000).await;
    child.stop().await;
}

#[tokio::test]
async fn output_is_cut_at_its_limit() {
    let mark = ProcessMark::new();
    let mut child = Launch { max_output: 100_000, ..script("exec yes", &mark) }.start().await.unwrap();
    let mut lines = 0;
    let last = loop {
        match child.next().await {
            Output::Line(line) if line == "y" => lines += 1,
            other => break other,
        }
    };
    assert_eq!((lines, last), (50_000, Output::LimitReached));
    assert_eq!(child.next().await, Output::Closed);
    assert_eq!(child.stop().await, Exit::Signal(15));
    mark.assert_none_alive();
}

#[tokio::test]
async fn a_line_without_end_is_dropped_and_never_held() {
    if given().is_some() {
        let length = 100 * 1024 * 1024;
        let text = format!("head -c {length} /dev/zero | tr '\\0' x; echo; echo short");
        let mut child = start(&text).await;
        assert_eq!(child.next().await, Output::LineTooLong(length));
        assert_eq!(line(&mut child).await, "short");
        let most = memory(std::process::id(), "VmHWM:");
        assert!(most < 64 * 1024 * 1024, "the reader had {most} bytes");
        return;
    }
    let test = "process_guard::output::a_line_without_end_is_dropped_and_never_held";
    let output = alone(test, "yes").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn a_program_may_close_its_output_and_live_on() {
    let mut child = start("echo one; exec >&-; sleep 1000").await;
    assert_eq!(line(&mut child).await, "one");
    assert_eq!(timeout(PATIENCE, child.next()).await.unwrap(), Output::Closed);
    assert!(timeout(Duration::from_millis(200), child.exit()).await.is_err(), "it lives");
    assert_eq!(child.stop().await, Exit::Signal(15));
}

#[tokio::test]
async fn stderr_is_always_read_and_its_end_is_kept() {
    let mut child = start("head -c 20000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo why >&2; echo done").await;
    assert_eq!(line(&mut child).await, "done");
    assert_eq!(child.exit().await, Exit::Code(0));
    assert_eq!(child.stderr_tail(), "why");
    let mut child = start("echo first >&2; echo second >&2; exit 3").await;
    assert_eq!(child.exit().await, Exit::Code(3));
    assert_eq!(child.stderr_tail(), "first\nsecond");
}

/// On Linux nobody escapes a guard that lives.
#[tokio::test]
async fn an_escaped_process_does_not_keep_the_output_open() {
    let mark = ProcessMark::new();
    let mut child = script("(setsid sleep 1000 &) ; echo ready; sleep 1000", &mark).start().await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    kill(child.pid());
    assert_eq!(timeout(PATIENCE, child.next()).await.unwrap(), Output::Closed);
    assert_eq!(timeout(PATIENCE, child.exit()).await.unwrap(), Exit::Signal(9));
    assert!(!exists(child.pid()));
    for escaped in mark.alive() {
        kill(escaped);
    }
    until("the escaped process is gone", || mark.alive().is_empty()).await;
}

#[test]
fn a_guard_without_a_socket_runs_its_program_too() {
    let mut guard = std::process::Command::new(crate::SABIR);
    guard.args(["__guard", "sh", "-c", "echo hello; exit 4"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut guard = guard.spawn().unwrap();
    let stdin = guard.stdin.take();
    let output = guard.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(4), &b"hello\n"[..]));
}
