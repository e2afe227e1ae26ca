//! A node that cannot reach the database while its program runs, or that is killed: its program stands still or is gone before
//! another node runs the task again, and nothing that the node sends too late is stored.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sabir_testkit::postgres::Postgres;
use serde_json::{Value, json};

use super::fixture::{ClusterFixture, LIMIT, numbered, until};
use super::programs::ProgramRuns;

/// How long the successor runs before a test looks: a program that still ran beside it would have recorded that.
const OVERLAP: Duration = Duration::from_secs(1);

#[test]
fn the_program_of_a_node_that_is_cut_off_does_not_run_beside_its_successor() {
    let Some(fixture) = CutOffFixture::start() else { return };
    let CutOffFixture { cluster, runs, proxy, task, first } = &fixture;
    let mut live = cluster.subscribe(1, task, Some(0));
    until("what the program wrote is stored", || {
        let read = cluster.rpc(1, "GetTask", json!({"id": task}));
        read["result"]["artifacts"].to_string().contains(&format!("by-{first}."))
    });
    proxy.cut();
    let second = fixture.until_second_run();
    until("it says that it takes no work", || cluster.node(0).get("/readyz").status == 503);
    runs.assert_none_overlap();

    // What is on its way arrives now, and is too late.
    proxy.mend();
    until("the first program is gone", || !is_alive(*first));
    until("the node takes work again", || cluster.node(0).get("/readyz").status == 200);
    runs.assert_none_overlap();
    runs.end();
    cluster.until_state(1, task, "TASK_STATE_COMPLETED");
    assert_eq!(runs.programs(), [*first, second]);
    live.give_up_after(LIMIT);
    let frames: Vec<(u64, String)> = live.rest().unwrap().into_iter().map(numbered).collect();
    let numbers: Vec<u64> = frames.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let is_of = |program: u32| move |(_, data): &(u64, String)| data.contains(&format!("by-{program}."));
    let (last, next) = (frames.iter().rposition(is_of(*first)), frames.iter().position(is_of(second)));
    assert!(last.is_some() && last < next, "the first node wrote event {last:?}, the second {next:?}");
    for node in 0..2 {
        assert_eq!(cluster.events(node, task, 0), frames, "node {node}");
    }
    assert_eq!(cluster.send(0, "again", Value::Null)["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn the_stop_of_a_node_that_is_cut_off_lets_no_program_clean_up() {
    let Some(mut fixture) = CutOffFixture::start() else { return };
    fixture.proxy.cut();
    fixture.until_second_run();
    let mut node = fixture.cluster.nodes[0].take().unwrap();
    node.terminate();
    node.wait(LIMIT);
    until("the first program is gone", || !is_alive(fixture.first));
    fixture.runs.assert_none_overlap();
    fixture.end();
}

#[test]
fn the_program_of_a_killed_node_is_gone_before_its_successor_runs() {
    let Some(mut fixture) = CutOffFixture::start() else { return };
    fixture.cluster.kill(0);
    fixture.until_second_run();
    assert!(!is_alive(fixture.first), "its guard has ended it");
    fixture.runs.assert_none_overlap();
    fixture.end();
}

/// Two nodes, of which the first reaches the database through a proxy and runs a program.
struct CutOffFixture {
    cluster: ClusterFixture,
    runs: ProgramRuns,
    proxy: Proxy,
    task: String,
    /// The process id of its program.
    first: u32,
}

impl CutOffFixture {
    /// The program does not end when it is asked to.
    fn start() -> Option<Self> {
        let runs = ProgramRuns::new("record");
        let toml = format!("[server]\ngrace = \"3s\"\n{}", runs.toml());
        let mut cluster = ClusterFixture::with(0, &toml)?;
        let proxy = Proxy::start(Postgres::shared()?.address());
        let mut options = cluster.options("n0");
        let database = cluster.url.rsplit('/').next().unwrap();
        options.store = format!("postgres://postgres@{}/{database}", proxy.address);
        cluster.nodes.push(Some(options.start()));
        let cluster = cluster.with_node("n1");
        let task = cluster.working(0, "go", Value::Null);
        let first = runs.until_runs(1);
        Some(Self { cluster, runs, proxy, task, first })
    }

    /// Waits until the other node runs the program, and a while longer. Its process id.
    fn until_second_run(&self) -> u32 {
        let second = self.runs.until_runs(2);
        thread::sleep(OVERLAP);
        second
    }

    fn end(&self) {
        self.runs.end();
        self.cluster.until_state(1, &self.task, "TASK_STATE_COMPLETED");
        self.runs.assert_none_overlap();
    }
}

fn is_alive(process: u32) -> bool {
    fs::exists(format!("/proc/{process}")).unwrap()
}

/// Passes bytes on until it is cut. It closes nothing then, and passes everything on when it is mended.
struct Proxy {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
}

impl Proxy {
    fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, is_cut) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let cut = is_cut.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(server) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to, cut) = (from.try_clone().unwrap(), to.try_clone().unwrap(), cut.clone());
                    thread::spawn(move || pass_on(from, to, &cut));
                }
            }
        });
        Self { address, is_cut }
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut buffer).unwrap_or_default();
        while is_cut.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}
