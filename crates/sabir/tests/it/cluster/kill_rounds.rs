//! `kill -9` of any node under load, again and again: nothing that anyone was told is lost, no event comes twice, every stream
//! that broke continues without a gap on another node, and no task stays at work with nobody at work.

use std::time::{Duration, Instant};

use super::fixture::{ClusterFixture, DEMO, LIMIT};
use crate::client_record::{Checked, Clients};

#[test]
fn nothing_acknowledged_is_lost_when_nodes_die() {
    kill_in_rounds(0);
}

/// The other half of the rounds, beside the first: most of a round is waiting.
#[test]
fn nothing_acknowledged_is_lost_when_nodes_die_in_two_clusters() {
    kill_in_rounds(1);
}

/// For how long there are more rounds than planned: on a busy machine, a round has less load.
const MORE: Duration = Duration::from_secs(600);

/// `TESTKIT_KILL_ROUNDS` says how many there are in both halves; a round takes a little longer than a takeover.
fn kill_in_rounds(half: u64) {
    // A short grace time, so that there is time for many rounds. If a live node is taken for dead, all promises hold as well.
    let short = "beat = \"200ms\"\ngrace = \"1s\"";
    let Some(mut cluster) = ClusterFixture::with_cluster(3, DEMO, short) else { return };
    let rounds: u64 = std::env::var("TESTKIT_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100);
    // Of an odd number, one half has more.
    let rounds = (rounds + half) / 2;
    let had_load = |checked: &Checked| checked.frames > 50 * rounds as usize && checked.resumed > 0;
    let (mut checked, mut done) = (Checked::default(), 0);
    let mut planned_end = Instant::now();
    while done < rounds || (planned_end.elapsed() < MORE && !had_load(&checked)) {
        // Even ones and odd ones.
        let round = 2 * done + half;
        let victim = (round % 3) as usize;
        let clients = Clients::start(&[0, 1, 2].map(|node| cluster.node(node).address), round);
        std::thread::sleep(Duration::from_millis(50 + 37 * (round % 11)));
        cluster.kill(victim);
        let began = Instant::now();
        // The other nodes have work meanwhile.
        std::thread::sleep(Duration::from_millis(100));
        let record = clients.stop();
        cluster.start(victim);
        checked += record.check(cluster.node((victim + 1) % 3), round);
        assert!(began.elapsed() < LIMIT, "round {round} took {:?}", began.elapsed());
        done += 1;
        if done == rounds {
            planned_end = Instant::now();
        }
    }
    println!("{done} rounds, {checked:?}");
    assert!(had_load(&checked), "the load was too light to prove anything: {checked:?}");
}
