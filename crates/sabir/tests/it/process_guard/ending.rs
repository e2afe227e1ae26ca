//! How programs end, and that everything they started ends with them.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sabir_agents::adapter::Exit;
use sabir_agents::process::{self, Ending, Launch, Output};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::fixture::{GRACE, PATIENCE, ProcessMark, alone, exists, given, kill, line, script, start, stat, until};

/// What programs leave behind: each starts something and goes on.
const FAMILIES: [(&str, &str); 5] = [
    ("nobody", ":"),
    ("a child in its group", "sleep 1000 &"),
    ("a daemon", "(setsid sleep 1000 &)"),
    ("a daemon with a family", "(setsid sh -c 'sleep 1000 & setsid sleep 1000 & sleep 1000' &)"),
    ("a daemon and a child that ignore SIGTERM", "(trap '' TERM; sleep 1000 & setsid sleep 1000 &)"),
];

#[tokio::test]
async fn the_exit_status_of_a_program_is_known() {
    for (text, expected) in [
        ("exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("exit 255", Exit::Code(255)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -PIPE $$", Exit::Signal(13)),
        ("ulimit -c 0; kill -SEGV $$", Exit::Signal(11)),
        ("exec true", Exit::Code(0)),
    ] {
        let mark = ProcessMark::new();
        let mut child = script(text, &mark).start().await.unwrap();
        assert_eq!(timeout(PATIENCE, child.exit()).await.unwrap(), expected, "{text}");
        assert_eq!(child.exit().await, expected, "{text}, asked again");
        assert_eq!(child.next().await, Output::Closed, "{text}");
        assert_eq!(child.stop().await, expected, "{text}, stopped though it has ended");
        assert!(!exists(child.pid()), "{text}: the guard is reaped");
        mark.assert_none_alive();
    }
}

#[tokio::test]
async fn a_program_can_handle_sigterm() {
    for (text, expected) in [
        ("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done", Exit::Code(5)),
        // It has something to say first, more than fits in a pipe.
        ("trap 'head -c 1000000 /dev/zero; exit 6' TERM; echo ready; while :; do sleep 0.01; done", Exit::Code(6)),
        ("echo ready; sleep 1000", Exit::Signal(15)),
        // What is stopped can hear nothing; it is told to go on.
        ("echo ready; kill -STOP $$; sleep 1000", Exit::Signal(15)),
    ] {
        let mark = ProcessMark::new();
        let mut child = script(text, &mark).start().await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        let begin = Instant::now();
        assert_eq!(child.stop().await, expected, "{text}");
        assert!(begin.elapsed() < Duration::from_secs(15), "{text}: it was killed after {:?}", begin.elapsed());
        mark.assert_none_alive();
    }
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed_after_its_grace_period() {
    let mark = ProcessMark::new();
    let text = "trap '' TERM; echo ready; while :; do sleep 1; done";
    let grace = Duration::from_millis(400);
    let mut child = Launch { stop_grace: grace, ..script(text, &mark) }.start().await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let begin = Instant::now();
    assert_eq!(child.stop().await, Exit::Signal(9));
    assert!((grace..Duration::from_secs(15)).contains(&begin.elapsed()), "it took {:?}", begin.elapsed());
    assert!(!exists(child.pid()));
    mark.assert_none_alive();
}

#[tokio::test]
async fn nothing_is_left_when_a_program_ends() {
    for (what, family) in FAMILIES {
        let mark = ProcessMark::new();
        let mut child = script(&format!("{family}\necho ready; exit 3"), &mark).start().await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        assert_eq!(timeout(PATIENCE, child.exit()).await.unwrap(), Exit::Code(3), "{what}");
        assert_eq!(child.next().await, Output::Closed, "{what}");
        assert!(!exists(child.pid()), "{what}");
        mark.assert_none_alive();
    }
}

#[tokio::test]
async fn nothing_is_left_when_a_program_is_stopped() {
    for (what, family) in FAMILIES {
        let mark = ProcessMark::new();
        let mut child = script(&format!("{family}\necho ready; sleep 1000"), &mark).start().await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        assert_eq!(timeout(PATIENCE, child.stop()).await.unwrap(), Exit::Signal(15), "{what}");
        assert!(!exists(child.pid()), "{what}");
        mark.assert_none_alive();
    }
}

#[tokio::test]
async fn nothing_is_left_when_a_child_is_dropped() {
    for (what, family) in FAMILIES {
        let mark = ProcessMark::new();
        let mut child = script(&format!("{family}\necho ready; sleep 1000"), &mark).start().await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        let guard = child.pid();
        drop(child);
        until(what, || mark.alive().is_empty() && !exists(guard)).await;
    }
}

#[tokio::test]
async fn a_program_that_must_end_at_once_gets_neither_sigterm_nor_eof() {
    for (orders, notices) in [
        (&[][..], true),
        (&[Ending::Kill], false),
        (&[Ending::Kill, Ending::Graceful], true),
        (&[Ending::Kill, Ending::Graceful, Ending::Kill], false),
    ] {
        let mut seen = what_a_dropped_program_sees(orders).await;
        for _ in 0..4 {
            let may_have_missed_it = notices && seen.0.trim() == "read go" && seen.1 >= GRACE;
            if !may_have_missed_it {
                break;
            }
            seen = what_a_dropped_program_sees(orders).await;
        }
        assert_eq!(seen.0.trim() != "read go", notices, "{orders:?}: {seen:?}");
    }
}

/// What a program has written when it is gone, and how long that took.
async fn what_a_dropped_program_sees(orders: &[Ending]) -> (String, Duration) {
    let mark = ProcessMark::new();
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    // Whichever comes first.
    let text = format!(
        "trap 'echo TERM >> {seen:?}; exit' TERM; (trap '' TERM; sleep 1000 &); echo ready; read word; \
         echo read $word >> {seen:?}; echo ready; read word; echo EOF >> {seen:?}"
    );
    let mut child = script(&text, &mark).start().await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    for how in orders {
        child.end_on_sabir_exit(*how);
    }
    child.write_line("go").await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let (begin, guard) = (Instant::now(), child.pid());
    drop(child);
    until("it is gone", || mark.alive().is_empty() && !exists(guard)).await;
    (std::fs::read_to_string(seen).unwrap(), begin.elapsed())
}

#[tokio::test]
async fn a_killed_program_notices_nothing() {
    let mark = ProcessMark::new();
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let text = format!("trap 'echo TERM > {seen:?}; exit' TERM; echo ready; read word; echo EOF > {seen:?}");
    let mut child = script(&text, &mark).start().await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    assert_eq!(timeout(PATIENCE, child.kill()).await.unwrap(), Exit::Signal(9));
    assert!(!seen.exists());
    mark.assert_none_alive();
}

#[tokio::test]
async fn a_dropped_program_that_ignores_everything_is_killed() {
    let mark = ProcessMark::new();
    let text = "trap '' TERM INT HUP; echo ready; while :; do sleep 1; done";
    let mut child = script(text, &mark).start().await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    child.write_line(&"x".repeat(10 * 1024 * 1024)).await.unwrap();
    let guard = child.pid();
    let begin = Instant::now();
    drop(child);
    until("it is gone", || mark.alive().is_empty() && !exists(guard)).await;
    assert!(begin.elapsed() < Duration::from_secs(15), "it took {:?}", begin.elapsed());
}

#[tokio::test]
async fn nothing_is_left_when_sabir_is_killed() {
    if let Some(mark) = given() {
        let mark = ProcessMark::from(mark);
        let mut children = Vec::new();
        for (_, family) in FAMILIES {
            let mut child = script(&format!("{family}\necho ready; sleep 1000"), &mark).start().await.unwrap();
            assert_eq!(line(&mut child).await, "ready");
            children.push(child);
        }
        println!("\neverybody is up");
        std::future::pending::<()>().await;
    }
    let name = format!("killed-{}", std::process::id());
    let mark = ProcessMark::from(name.clone());
    let test = "process_guard::ending::nothing_is_left_when_sabir_is_killed";
    let mut holder = alone(test, &name).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "everybody is up"), "the programs were not started");
    let guards =
        mark.alive().iter().filter(|process| stat(**process).is_some_and(|found| found.1 == holder.id())).count();
    assert_eq!(guards, FAMILIES.len());
    holder.kill().unwrap();
    holder.wait().unwrap();
    until("everybody is gone", || mark.alive().is_empty()).await;
}

#[tokio::test]
async fn a_program_does_not_outlive_its_guard() {
    let mark = ProcessMark::new();
    let mut child = script("sleep 1000 & echo ready; sleep 1000", &mark).start().await.unwrap();
    assert_eq!(line(&mut child).await, "ready");
    kill(child.pid());
    assert_eq!(timeout(PATIENCE, child.exit()).await.unwrap(), Exit::Signal(9));
    until("the group is gone", || mark.alive().is_empty()).await;
}

#[tokio::test]
async fn a_program_that_kills_its_guard_leaves_nothing_behind() {
    for (what, family) in FAMILIES {
        let mark = ProcessMark::new();
        let text = format!("{family}\necho ready; read word; kill -KILL $PPID; exec sleep 1000");
        let mut child = script(&text, &mark).start().await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        child.write_line("go").await.unwrap();
        assert_eq!(timeout(PATIENCE, child.exit()).await.unwrap(), Exit::Signal(9), "{what}");
        mark.assert_none_alive();
    }
}

#[tokio::test]
async fn a_program_that_kills_its_guard_at_once_leaves_nothing_behind() {
    for _ in 0..5 {
        let mark = ProcessMark::new();
        // Whether the guard came to say that the program runs is left to chance.
        if let Ok(mut child) = script("kill -KILL $PPID; exec sleep 1000", &mark).start().await {
            assert_eq!(timeout(PATIENCE, child.exit()).await.unwrap(), Exit::Signal(9));
        }
        mark.assert_none_alive();
    }
}

#[tokio::test]
async fn a_guard_that_hangs_does_not_block_sabir() {
    let mark = ProcessMark::new();
    let mut child = Launch { stop_grace: Duration::from_millis(100), ..script("echo ready; sleep 1000", &mark) }
        .start()
        .await
        .unwrap();
    assert_eq!(line(&mut child).await, "ready");
    let status = std::process::Command::new("kill").args(["-STOP", &child.pid().to_string()]).status().unwrap();
    assert!(status.success());
    assert_eq!(timeout(PATIENCE, child.stop()).await.unwrap(), Exit::Signal(9));
    until("it is gone", || mark.alive().is_empty() && !exists(child.pid())).await;
}

/// Says who is alive when it is dropped.
struct Witness(Arc<ProcessMark>, Option<oneshot::Sender<Vec<u32>>>);

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.1.take().map(|living| living.send(self.0.alive()));
    }
}

#[tokio::test]
async fn held_resources_are_released_when_all_processes_are_gone() {
    for text in [
        "trap '' TERM; echo ready; while :; do sleep 1; done",
        "(setsid sleep 1000 &); echo ready; exit 0",
        "kill -STOP $PPID; echo ready; exec sleep 1000",
        "kill -KILL $PPID; echo ready; exec sleep 1000",
    ] {
        // Dropped when it runs, and while it is started.
        for patience in [PATIENCE, Duration::from_millis(30)] {
            let mark = Arc::new(ProcessMark::new());
            let (sender, living) = oneshot::channel();
            let held = Box::new(Witness(mark.clone(), Some(sender)));
            let starting = script(text, &mark).start_holding(Some(held));
            if patience < PATIENCE {
                let _ = timeout(patience, starting).await;
            } else if let Ok(mut child) = timeout(patience, starting).await.unwrap() {
                // A program without its guard is killed, perhaps before it says anything.
                timeout(PATIENCE, child.next()).await.expect("it says something or is gone");
            }
            let living = timeout(PATIENCE, living).await.unwrap().unwrap();
            assert_eq!(living, Vec::<u32>::new(), "{text}, after {patience:?}");
        }
    }
    let mut child = script("read word", &ProcessMark::new()).start().await.unwrap();
    let (sender, living) = oneshot::channel();
    child.hold(Some(Box::new(Witness(Arc::new(ProcessMark::new()), Some(sender)))));
    child.hold(None);
    living.await.expect("it is let go, though the program runs");
    child.stop().await;
}

#[tokio::test]
async fn orphans_that_a_server_has_adopted_are_reaped() {
    let children = || {
        let everybody = std::fs::read_dir("/proc").unwrap().flatten();
        let processes = everybody.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        processes.filter_map(stat).filter(|(_, parent, _)| *parent == std::process::id()).count()
    };
    if given().is_some() {
        process::adopt_orphans();
        tokio::spawn(process::reap_orphans());
        tokio::task::yield_now().await;
        let status = std::process::Command::new("sh").args(["-c", "(sleep 0.2 &)"]).status().unwrap();
        assert!(status.success() && children() == 1, "it is adopted");
        until("it is reaped", || children() == 0).await;
        return;
    }
    let test = "process_guard::ending::orphans_that_a_server_has_adopted_are_reaped";
    assert!(alone(test, "orphans").status().unwrap().success());
}

#[tokio::test]
async fn orphans_that_die_are_reaped_while_the_program_runs() {
    let mut child = start("for each in 1 2 3 4 5; do (setsid true &); done; echo ready; sleep 1000").await;
    assert_eq!(line(&mut child).await, "ready");
    let guard = child.pid();
    let children = || {
        let everybody = std::fs::read_dir("/proc").unwrap().flatten();
        let processes = everybody.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        processes
            .filter_map(stat)
            .filter(|(_, parent, _)| *parent == guard)
            .map(|(state, _, _)| state)
            .collect::<Vec<_>>()
    };
    until("only the program is left", || children() == ["S"]).await;
    child.stop().await;
}

#[tokio::test]
async fn many_programs_run_at_once() {
    let mark = ProcessMark::new();
    let mut running = tokio::task::JoinSet::new();
    for number in 0..24 {
        let launch = script(&format!("(setsid sleep 1000 &); read word; echo $word; exit {number}"), &mark);
        running.spawn(async move {
            let mut child = launch.start().await.unwrap();
            child.write_line(&format!("word {number}")).await.unwrap();
            assert_eq!(line(&mut child).await, format!("word {number}"));
            assert_eq!(child.exit().await, Exit::Code(number));
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    mark.assert_none_alive();
}
