//! `kill -9` at random moments under load: nothing that anyone was told is lost when the program starts again on the same file.

use std::time::Duration;

use sabir_testkit::process::SabirOptions;

use crate::SABIR;
use crate::client_record::{Checked, Clients};

/// On a busy machine, a round has less load, and there are more of them.
const ROUNDS: u64 = 50;
const MOST_ROUNDS: u64 = 5 * ROUNDS;

#[test]
fn nothing_acknowledged_is_lost_after_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let options = SabirOptions::new(SABIR, folder.path());
    let mut random = Random(0x5eed);
    let mut server = options.start();
    let mut checked = Checked::default();
    let mut round = 0;
    while round < ROUNDS || (round < MOST_ROUNDS && !proves_something(&checked)) {
        let clients = Clients::start(&[server.address], round);
        std::thread::sleep(Duration::from_millis(random.between(20, 250)));
        server.kill();
        let record = clients.stop();
        server = options.start();
        checked += record.check(&server, round);
        round += 1;
    }
    println!("{round} rounds, {checked:?}");
    assert!(proves_something(&checked), "the load was too light, or too few streams broke in the middle: {checked:?}");
}

fn proves_something(checked: &Checked) -> bool {
    checked.frames > 1000 && checked.tasks > 500 && checked.resumed > 20
}

/// The same moments in every run of the test, as far as a clock allows.
struct Random(u64);

impl Random {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) % (high - low)
    }
}
