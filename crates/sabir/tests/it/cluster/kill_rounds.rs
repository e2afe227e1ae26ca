//! `kill -9` of any node under load, again and again: nothing that anyone was told is lost, no event comes twice, every stream
//! that broke continues without a gap on another node, and no task stays at work with nobody at work.

use std::time::{Duration, Instant};

use super::fixture::{ClusterFixture, DEMO, LIMIT};
use crate::client_record::{Checked, Clients};

/// `TESTKIT_KILL_ROUNDS` says how many; a round takes a little longer than a takeover. On a busy machine, a round has less load, and
/// there are more of them.
#[test]
fn nothing_acknowledged_is_lost_when_nodes_die() {
    // A short grace time, so that there is time for many rounds. If a live node is taken for dead, all promises hold as well.
    let short = "beat = \"200ms\"\ngrace = \"1s\"";
    let Some(mut cluster) = ClusterFixture::with_cluster(3, DEMO, short) else { return };
    let rounds: u64 = std::env::var("TESTKIT_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100);
    let had_load = |checked: &Checked| checked.frames > 50 * rounds as usize && checked.resumed > 0;
    let (mut checked, mut round) = (Checked::default(), 0);
    while round < rounds || (round < 3 * rounds && !had_load(&checked)) {
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
        round += 1;
    }
    println!("{round} rounds, {checked:?}");
    assert!(had_load(&checked), "the load was too light to prove anything: {checked:?}");
}
