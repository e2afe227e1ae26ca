//! Guards with a deadline: they pause their programs when Sabir does not renew it, whatever has become of Sabir.
//!
//! The deadline is one per process, so each test runs in a process of its own.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use sabir_agents::adapter::Exit;
use sabir_agents::process::{Child, Ending, Launch, lease_is_over, set_run_until};
use tokio::time::{sleep, timeout};

use super::fixture::{GRACE, PATIENCE, ProcessMark, alone, exists, given, kill, line, script, signal, stat, until};

/// How late a guard may pause its program. Far more than it takes.
const LATE: Duration = Duration::from_millis(200);
/// A busy machine may be late, but not so many times.
const MOST_ROUNDS: usize = 20;
/// Long enough for every counter to count, if it runs.
const WHILE: Duration = Duration::from_millis(300);

fn after(milliseconds: u64) -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(milliseconds))
}

fn hour() -> Option<Instant> {
    after(3_600_000)
}

/// Runs a test in a process of its own.
async fn in_own_process(name: &str, test: impl Future<Output = ()>) {
    if given().is_some() {
        return test.await;
    }
    let inner = alone(&format!("process_guard::lease::{name}"), name).output().unwrap();
    let said = [inner.stdout, inner.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(inner.status.success(), "{}", said.concat());
}

/// A file to which a program writes 1, 2, 3 and so on.
struct Counter(PathBuf);

impl Counter {
    fn new(folder: &Path, name: &str) -> Self {
        Self(folder.join(name))
    }

    /// The loop that counts.
    fn text(&self) -> String {
        format!("i=0; while :; do i=$((i+1)); echo $i >> {:?}; sleep 0.01; done", self.0)
    }

    fn count(&self) -> usize {
        std::fs::read_to_string(&self.0).unwrap_or_default().lines().count()
    }

    async fn assert_runs(&self, what: &str) {
        let before = self.count();
        until(what, || self.count() > before + 2).await;
    }

    /// The line that is being written at the beginning still comes.
    async fn assert_stands(&self, what: &str) {
        let before = self.count();
        sleep(WHILE).await;
        assert!(self.count() <= before + 1, "{what}");
    }

    /// It neither began anew nor missed a number.
    fn assert_complete(&self) {
        let text = std::fs::read_to_string(&self.0).unwrap();
        let expected: String = (1..=text.lines().count()).map(|number| format!("{number}\n")).collect();
        assert_eq!(text, expected);
    }
}

/// Processes without their guards.
fn processes(mark: &ProcessMark, guards: &[u32]) -> Vec<u32> {
    mark.alive().into_iter().filter(|process| !guards.contains(process)).collect()
}

/// The states of the processes of a program, without its guard.
fn states(mark: &ProcessMark, guard: u32) -> Vec<String> {
    processes(mark, &[guard]).into_iter().filter_map(|process| Some(stat(process)?.0)).collect()
}

/// Stopped, or in the kernel with the signal pending: a shell waits there until the child that it forked has executed.
fn is_stopped(process: u32) -> bool {
    match stat(process) {
        Some((state, ..)) => state == "T" || (state == "D" && is_stop_pending(process)),
        None => false,
    }
}

/// Whether the process was sent SIGSTOP and has not stopped yet.
fn is_stop_pending(process: u32) -> bool {
    const SIGSTOP: u32 = 19;
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap_or_default();
    u64::from_str_radix(pending.trim(), 16).is_ok_and(|signals| signals & (1 << (SIGSTOP - 1)) != 0)
}

fn are_stopped(processes: &[u32]) -> bool {
    !processes.is_empty() && processes.iter().all(|process| is_stopped(*process))
}

fn all_stopped(mark: &ProcessMark, child: &Child) -> bool {
    are_stopped(&processes(mark, &[child.pid()]))
}

#[tokio::test]
async fn a_program_is_paused_at_the_deadline_and_loses_nothing() {
    in_own_process("a_program_is_paused_at_the_deadline_and_loses_nothing", async {
        let (folder, mark) = (tempfile::tempdir().unwrap(), ProcessMark::new());
        let counters = ["own", "child", "session", "daemon"].map(|name| Counter::new(folder.path(), name));
        let [own, in_group, in_session, daemon] = &counters;
        let text = format!(
            "({}) & setsid sh -c '{}' & (setsid sh -c '{}' &); echo ready; ({}) & read word; echo $word; sleep 1000",
            in_group.text(),
            in_session.text(),
            daemon.text(),
            own.text(),
        );
        set_run_until(hour());
        let mut child = script(&text, &mark).start().await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        let mut lateness: Vec<Duration> = Vec::new();
        while lateness.len() < 3 || lateness.iter().all(|late| *late >= LATE) {
            assert!(lateness.len() < MOST_ROUNDS, "it is late each time: {lateness:?}");
            for counter in &counters {
                counter.assert_runs("it counts before the deadline").await;
            }
            until("all run", || !states(&mark, child.pid()).contains(&"T".to_owned())).await;
            let deadline = Instant::now() + Duration::from_millis(300);
            set_run_until(Some(deadline));
            let (early, is_early) = (states(&mark, child.pid()), Instant::now() < deadline);
            assert!(!is_early || !early.contains(&"T".to_owned()), "it is stopped before the deadline");
            until("it is paused", || all_stopped(&mark, &child)).await;
            lateness.push(deadline.elapsed());
            assert!(lease_is_over());
            own.assert_stands("it stands after the deadline").await;
            set_run_until(hour());
            assert!(!lease_is_over());
        }
        for counter in &counters {
            counter.assert_runs("it goes on after all").await;
            counter.assert_complete();
        }
        // Input is taken while it is paused, more than fits anywhere.
        set_run_until(after(0));
        until("it is paused", || all_stopped(&mark, &child)).await;
        child.write_line("hello").await.unwrap();
        child.write_line(&"x".repeat(5_000_000)).await.unwrap();
        own.assert_stands("input changes nothing").await;
        set_run_until(hour());
        assert_eq!(line(&mut child).await, "hello");
        // The rest of the input is never read, and does not hold up deadlines.
        set_run_until(after(0));
        until("it is paused again", || all_stopped(&mark, &child)).await;
        set_run_until(None);
        own.assert_runs("without deadlines it runs").await;
        child.stop().await;
        mark.assert_none_alive();
    })
    .await;
}

#[tokio::test]
async fn a_process_that_somebody_else_stopped_stays_stopped() {
    in_own_process("a_process_that_somebody_else_stopped_stays_stopped", async {
        let (folder, mark) = (tempfile::tempdir().unwrap(), ProcessMark::new());
        let counter = Counter::new(folder.path(), "count");
        let text = format!("sleep 1000 & echo $!; setsid sleep 1001 & echo $!; read word; {}", counter.text());
        set_run_until(hour());
        let mut child = script(&text, &mark).start().await.unwrap();
        let stopped: [u32; 2] = [line(&mut child).await.parse().unwrap(), line(&mut child).await.parse().unwrap()];
        // `setsid` may not have changed its session yet.
        until("it is in a session", || stat(stopped[1]).is_some_and(|found| found.2 == stopped[1])).await;
        for process in stopped {
            signal("-STOP", process);
            until("it is stopped", || stat(process).is_some_and(|found| found.0 == "T")).await;
        }
        child.write_line("go").await.unwrap();
        for _ in 0..3 {
            counter.assert_runs("it counts").await;
            set_run_until(after(0));
            until("it is paused", || all_stopped(&mark, &child)).await;
            // The guard searches once more.
            counter.assert_stands("it stands").await;
            set_run_until(hour());
        }
        counter.assert_runs("it counts").await;
        assert_eq!(stopped.map(|process| stat(process).unwrap().0), ["T", "T"]);
        child.stop().await;
        mark.assert_none_alive();
    })
    .await;
}

#[tokio::test]
async fn processes_that_fork_all_the_time_are_paused() {
    in_own_process("processes_that_fork_all_the_time_are_paused", async {
        let (folder, mark) = (tempfile::tempdir().unwrap(), ProcessMark::new());
        // Each starts its successor in a new session and exits.
        let hop = folder.path().join("hop");
        std::fs::write(&hop, format!("echo >> {:?}; setsid sh $0 &\n", folder.path().join("hops"))).unwrap();
        let counter = Counter::new(folder.path(), "hops");
        set_run_until(hour());
        let text = format!("for each in 1 2 3; do sh {hop:?} & done; echo ready; sleep 1000");
        let mut child = script(&text, &mark).start().await.unwrap();
        assert_eq!(line(&mut child).await, "ready");
        for _ in 0..3 {
            counter.assert_runs("they hop").await;
            set_run_until(after(0));
            let begin = Instant::now();
            loop {
                let count = counter.count();
                sleep(WHILE).await;
                if counter.count() == count && all_stopped(&mark, &child) {
                    break;
                }
                assert!(begin.elapsed() < PATIENCE, "some still run");
            }
            counter.assert_stands("nobody was missed").await;
            set_run_until(hour());
        }
        counter.assert_runs("they hop again").await;
        child.kill().await;
        mark.assert_none_alive();
    })
    .await;
}

#[tokio::test]
async fn a_paused_program_can_be_ended() {
    in_own_process("a_paused_program_can_be_ended", async {
        #[derive(Debug, Clone, Copy)]
        enum How {
            Stop,
            Kill,
            Drop,
        }
        let plain = "setsid sleep 1000 & echo ready; sleep 1000";
        let traps = "trap 'echo TERM >> $0; exit 5' TERM; (trap '' TERM; setsid sleep 1000 &); echo ready; \
                     while :; do sleep 0.01; done";
        let ignores = "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 0.01; done";
        for (text, how, expected, seen) in [
            (plain, How::Stop, Exit::Signal(9), ""),
            (plain, How::Kill, Exit::Signal(9), ""),
            (plain, How::Drop, Exit::Signal(9), ""),
            // It may not clean up: another server may run the task by then.
            (traps, How::Stop, Exit::Signal(9), ""),
            (traps, How::Kill, Exit::Signal(9), ""),
            (traps, How::Drop, Exit::Signal(9), ""),
            (ignores, How::Stop, Exit::Signal(9), ""),
        ] {
            let (folder, mark) = (tempfile::tempdir().unwrap(), ProcessMark::new());
            let file = folder.path().join("seen");
            set_run_until(hour());
            let mut launch = script(text, &mark);
            launch.arguments.push(file.clone().into());
            // Far longer than this test waits: the guard kills, not Sabir.
            launch.stop_grace = 100 * PATIENCE;
            let mut child = launch.start().await.unwrap();
            assert_eq!(line(&mut child).await, "ready");
            set_run_until(after(0));
            until("it is paused", || all_stopped(&mark, &child)).await;
            let mut ended = child.ended();
            match how {
                How::Stop => assert_eq!(timeout(PATIENCE, child.stop()).await.unwrap(), expected, "{text}"),
                How::Kill => assert_eq!(timeout(PATIENCE, child.kill()).await.unwrap(), expected, "{text}"),
                How::Drop => drop(child),
            }
            let exit = *timeout(PATIENCE, ended.wait_for(Option::is_some)).await.unwrap().unwrap();
            assert_eq!(exit, Some(expected), "{text}, {how:?}");
            assert_eq!(std::fs::read_to_string(file).unwrap_or_default(), seen, "{text}, {how:?}");
            mark.assert_none_alive();
        }
    })
    .await;
}

#[tokio::test]
async fn a_program_that_ends_is_killed_at_the_deadline() {
    in_own_process("a_program_that_ends_is_killed_at_the_deadline", async {
        let text = "trap '' TERM; echo ready; while :; do sleep 0.01; done";
        let mut times: Vec<Duration> = Vec::new();
        while times.iter().all(|time| *time >= GRACE) {
            assert!(times.len() < MOST_ROUNDS, "it has its whole grace each time: {times:?}");
            let mark = ProcessMark::new();
            set_run_until(hour());
            let mut child = script(text, &mark).start().await.unwrap();
            assert_eq!(line(&mut child).await, "ready");
            set_run_until(after(700));
            // Meanwhile the guard is told.
            sleep(Duration::from_millis(50)).await;
            let (begin, guard) = (Instant::now(), child.pid());
            drop(child);
            until("it is gone", || mark.alive().is_empty() && !exists(guard)).await;
            times.push(begin.elapsed());
        }
    })
    .await;
}

#[tokio::test]
async fn a_program_that_is_started_after_the_deadline_waits_for_the_next() {
    in_own_process("a_program_that_is_started_after_the_deadline_waits_for_the_next", async {
        let (folder, mark) = (tempfile::tempdir().unwrap(), ProcessMark::new());
        let counter = Counter::new(folder.path(), "count");
        set_run_until(after(0));
        let starting = tokio::spawn(script(&counter.text(), &mark).start());
        until("the guard is there", || !mark.alive().is_empty()).await;
        sleep(WHILE).await;
        // Not even for a moment.
        assert_eq!((counter.count(), mark.alive().len(), starting.is_finished()), (0, 1, false));
        // A deadline that is over as well changes nothing.
        set_run_until(after(0));
        sleep(WHILE).await;
        assert_eq!((counter.count(), starting.is_finished()), (0, false));
        set_run_until(hour());
        let mut child = timeout(PATIENCE, starting).await.unwrap().unwrap().unwrap();
        counter.assert_runs("it has begun").await;
        set_run_until(after(0));
        until("it is paused like any other", || all_stopped(&mark, &child)).await;
        set_run_until(None);
        counter.assert_runs("it goes on").await;
        child.stop().await;
        mark.assert_none_alive();
        // Nobody waits for it any more.
        let unwanted = Counter::new(folder.path(), "unwanted");
        set_run_until(after(0));
        assert!(timeout(WHILE, script(&unwanted.text(), &mark).start()).await.is_err(), "it was started");
        until("the guard is gone", || mark.alive().is_empty()).await;
        set_run_until(hour());
        unwanted.assert_stands("it is never started").await;
        assert_eq!(unwanted.count(), 0);
        // What cannot be started is still named.
        let missing = Launch { program: "/no/such".into(), ..script("", &mark) };
        assert!(missing.start().await.is_err());
    })
    .await;
}

#[tokio::test]
async fn without_deadlines_nothing_is_paused() {
    let (folder, mark) = (tempfile::tempdir().unwrap(), ProcessMark::new());
    let counter = Counter::new(folder.path(), "count");
    let mut child = script(&counter.text(), &mark).start().await.unwrap();
    counter.assert_runs("it counts").await;
    let command = std::fs::read(format!("/proc/{}/cmdline", child.pid())).unwrap();
    assert!(!String::from_utf8_lossy(&command).contains("--run-until"));
    // The guard sleeps: its threads do not run at all.
    let switches = |child: &Child| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.pid())).unwrap().flatten();
        let statuses = tasks.map(|task| std::fs::read_to_string(task.path().join("status")).unwrap());
        statuses
            .map(|status| status.lines().filter(|line| line.contains("ctxt_switches")).collect::<String>())
            .collect()
    };
    let begin = Instant::now();
    loop {
        // At first its threads may still be on their way to sleep.
        let before: Vec<String> = switches(&child);
        sleep(WHILE).await;
        if switches(&child) == before {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "the guard does not sleep: {before:?}");
    }
    assert!(!lease_is_over());
    until("it runs", || !all_stopped(&mark, &child)).await;
    child.stop().await;
    counter.assert_complete();
}

/// How long the programs of a Sabir that is frozen run on.
const LEASE: Duration = Duration::from_millis(500);

async fn renew_the_lease() {
    loop {
        set_run_until(Some(Instant::now() + LEASE));
        sleep(Duration::from_millis(50)).await;
    }
}

/// The programs count in a folder whose path is given. The inner process renews the deadline until it is stopped.
#[tokio::test]
async fn a_frozen_sabir_leaves_no_program_running() {
    if let Some(folder) = given() {
        let mark = ProcessMark::from(folder.clone());
        let mut children = Vec::new();
        set_run_until(Some(Instant::now() + LEASE));
        // Already now: a program that is started after the deadline waits for the next one.
        tokio::spawn(renew_the_lease());
        for name in ["first", "second"] {
            let counter = Counter::new(Path::new(&folder), name);
            children.push(
                script(&format!("(setsid sh -c '{}' &); sleep 1000", counter.text()), &mark).start().await.unwrap(),
            );
        }
        children[0].end_on_sabir_exit(Ending::Kill);
        println!("\neverybody is up");
        std::future::pending::<()>().await;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().to_str().unwrap().to_owned();
    let mark = ProcessMark::from(name.clone());
    let counters = ["first", "second"].map(|name| Counter::new(folder.path(), name));
    let mut sabir = alone("process_guard::lease::a_frozen_sabir_leaves_no_program_running", &name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(sabir.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "everybody is up"), "the programs were not started");
    sleep(2 * LEASE).await;
    let id = sabir.id();
    let all_paused = || {
        let is_guard = |process: &u32| stat(*process).is_some_and(|found| found.1 == id);
        let guards: Vec<u32> = mark.alive().into_iter().filter(is_guard).collect();
        are_stopped(&processes(&mark, &guards))
    };
    let mut counted: Vec<usize> = Vec::new();
    while counted.len() < 2 || counted.iter().all(|count| *count <= 2) {
        assert!(counted.len() < MOST_ROUNDS, "it does not count until the deadline: {counted:?}");
        for counter in &counters {
            counter.assert_runs("it counts while Sabir renews").await;
        }
        signal("-STOP", id);
        let (frozen, before) = (Instant::now(), counters[0].count());
        // Sabir has set no later deadline.
        tokio::time::sleep_until((frozen + LEASE).into()).await;
        until("their guards have paused them", &all_paused).await;
        counted.push(counters[0].count() - before);
        for counter in &counters {
            counter.assert_stands("its guard has paused it").await;
        }
        signal("-CONT", id);
    }
    for counter in &counters {
        counter.assert_runs("it counts again").await;
        counter.assert_complete();
    }
    signal("-STOP", id);
    sleep(LEASE).await;
    until("their guards have paused them", &all_paused).await;
    for counter in &counters {
        counter.assert_stands("its guard has paused it").await;
    }
    let count = counters.each_ref().map(Counter::count);
    kill(id);
    sabir.wait().unwrap();
    until("everybody is gone", || mark.alive().is_empty()).await;
    assert_eq!(counters.each_ref().map(Counter::count), count, "nobody ran again");
}
