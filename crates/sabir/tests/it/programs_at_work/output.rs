//! What programs print: failures, endless lines, broken text, a great many short lines.

use std::fs;
use std::time::{Duration, Instant};

use super::{ProgramFixture, RPC, answer, message, reason, send, state};
use crate::server_fixture::ServerFixture;

/// What a caller sees of programs that misbehave: never a hang, always a reason.
#[test]
fn programs_that_misbehave_fail_with_a_reason() {
    for (name, program, more, expected) in [
        ("floods", "yes 'a long line of nothing in particular'\n", "max_output = \"1MiB\"\n", "printed more than"),
        ("closes its output and lives on", "exec >&-\nsleep 60\n", "", "closed its output"),
        ("is killed", "kill -9 $$\n", "", "signal 9"),
        ("exits without an end", "echo '{\"type\":\"system/init\"}'\n", "", "without saying that it was done"),
    ] {
        let kind = if name == "floods" { "command" } else { "generic" };
        let program = ProgramFixture::new(program);
        let fixture = program.serve_apart(kind, more);
        let start = Instant::now();
        let task = send(&fixture, message("x"));
        assert_eq!(state(&task), "FAILED", "{name}: {task}");
        assert!(reason(&task).contains(expected), "{name}: {}", reason(&task));
        assert!(start.elapsed() < Duration::from_secs(15), "{name}: {:?}", start.elapsed());
    }
}

#[test]
fn an_endless_line_and_invalid_utf8_do_no_harm() {
    let program = ProgramFixture::new(
        "head -c 104857600 /dev/zero | tr '\\0' x\nprintf '\\n\\377\\376{\"type\":\"assistant\"}\\n'\n\
         echo '{\"type\":\"result\",\"summary\":\"still here\"}'\n",
    );
    let config = program.agent("prog", "generic", "max_output = \"256MiB\"\n");
    let fixture = ServerFixture::configured(&config);
    let task = send(&fixture, message("x"));
    assert_eq!(state(&task), "COMPLETED", "{task}");
    let status = fs::read_to_string(format!("/proc/{}/status", fixture.server.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim();
    let peak: u64 = peak.trim_end_matches(" kB").trim().parse().unwrap();
    assert!(peak < 200 << 10, "the server held {peak} kB");
}

#[test]
fn many_short_lines_become_few_chunks() {
    let program = ProgramFixture::new("yes | head -n 100000\n");
    let frames = program.serve_apart("command", "").stream_rpc(RPC, "SendStreamingMessage", message("x"));
    let pieces: Vec<&str> =
        frames.iter().filter_map(|frame| frame["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str()).collect();
    assert_eq!(pieces.concat().trim_end(), "y\n".repeat(100_000).trim_end());
    assert!(pieces.len() < 2000, "{}", pieces.len());
}

#[test]
fn a_leftover_process_does_not_lose_the_answer() {
    let program =
        ProgramFixture::new("sh -c 'trap \"\" TERM; while :; do sleep 1; done' >/dev/null 2>&1 &\necho done\n");
    let task = send(&program.serve_apart("command", ""), message("x"));
    assert_eq!((state(&task), answer(&task)), ("COMPLETED", "done"), "{task}");
}
