//! The cost of retention for concurrent appends: `cargo bench -p sabir-store --bench sweep`.
//!
//! Fills a file with settled tasks, sweeps all of them, and stores small tasks at the same time. Prints how long these
//! waited and how long the write-ahead log became.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sabir_model::Timestamp;
use sabir_store::{Durability, Retention, SqliteStore, Store};
use sabir_testkit::store_contract::fixture::{chunk, start, status, sweep_all};

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    println!(
        "{:>24} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "tasks", "file MB", "seconds", "log MB", "p50 us", "p99 us", "max us"
    );
    for (name, tasks, chunks, bytes) in
        [("100000 short", 100_000, 1, 200), ("20000 of 20 chunks", 20_000, 20, 200), ("40 of 5 MB", 40, 50, 100_000)]
    {
        runtime.block_on(measure(name, tasks, chunks, bytes));
    }
}

async fn measure(name: &str, tasks: usize, chunks: usize, bytes: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bench.db");
    let store = Arc::new(SqliteStore::open(&path, Durability::PowerCut).expect("a store"));
    let mut events = vec![chunk(&"x".repeat(bytes)); chunks];
    events.push(status(sabir_model::State::Completed, 0));
    for number in 0..tasks {
        let appended = start(&*store, ["ann", "echo", &format!("t{number}"), &format!("c{number}")], None, 0, &events);
        if number % 500 == 499 || bytes > 10_000 {
            appended.await.expect("it is stored");
        }
    }
    store.check().await.expect("all are stored");
    let file = fs::metadata(&path).expect("the file").len();

    let is_over = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let (store, is_over) = (store.clone(), is_over.clone());
            tokio::spawn(async move {
                let mut waits = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    let id = format!("s{sender} {}", waits.len());
                    start(&*store, ["bob", "echo", &id, &id], None, 9_000_000, &[]).await.expect("it is stored");
                    waits.push(began.elapsed());
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                waits
            })
        })
        .collect();
    let began = Instant::now();
    let before = Timestamp::from_millis(i64::MAX / 2);
    let gone = sweep_all(&*store, Retention { settled_before: Some(before), keep: None, pending_after: None }).await;
    assert_eq!(gone, tasks as u64);
    let took = began.elapsed();
    let log = fs::metadata(folder.path().join("bench.db-wal")).expect("the log").len();
    is_over.store(true, Ordering::Relaxed);
    let mut waits: Vec<Duration> = Vec::new();
    for sender in senders {
        waits.extend(sender.await.expect("a sender"));
    }
    waits.sort();
    let part = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_micros();
    println!(
        "{name:>24} {:>9} {:>9.1} {:>9} {:>9} {:>9} {:>9}",
        file >> 20,
        took.as_secs_f64(),
        log >> 20,
        part(0.5),
        part(0.99),
        part(1.0)
    );
}
