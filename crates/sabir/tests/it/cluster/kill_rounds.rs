//! `kill -9` of any node under load, again and again: nothing that anyone was told is lost, no event comes twice, every stream
//! that broke continues without a gap on another node, and no task stays at work with nobody at work.

use std::time::{Duration, Instant};

use super::fixture::{ClusterFixture, DEMO};
use crate::client_record::{Checked, Clients};

/// For a takeover and all checks of a round.
const ROUND_LIMIT: Duration = Duration::from_secs(15);

/// `TESTKIT_KILL_ROUNDS` says how many; a round takes a little longer than a takeover.
#[test]
fn nothing_acknowledged_is_lost_when_nodes_die() {
    // A short grace time, so that there is time for many rounds.
    let short = "beat = \"200ms\"\ngrace = \"1s\"";
    let Some(mut cluster) = ClusterFixture::with_cluster(3, DEMO, short) else { return };
    let rounds = std::env::var("TESTKIT_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100);
    let mut checked = Checked::default();
    for round in 0..rounds {
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
        assert!(began.elapsed() < ROUND_LIMIT, "round {round} took {:?}", began.elapsed());
    }
    println!("{rounds} rounds, {checked:?}");
    assert!(
        checked.frames > 50 * rounds as usize && checked.resumed > 0,
        "the load was too light to prove anything: {checked:?}"
    );
}
