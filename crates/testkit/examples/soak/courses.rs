//! What becomes of the server while its clients go on: it dies often, or its disk is full now and then.

use std::thread;
use std::time::{Duration, Instant};

use crate::agents::DEFAULT;
use crate::ledger::Asked;
use crate::lives::{How, Recovery, Retention, Settings};
use crate::phase::{LastLife, Traffic};
use crate::promise;
use crate::random::Random;
use crate::sampler;
use crate::small_disk::SmallDisk;
use crate::tongue::{Delivery, REFERENCE, Wish};

/// The part of the time in which the server dies often; then comes a long life, which shows what grows.
const DYING_SHARE: f64 = 0.7;
/// The part of the dying in which some lives delete what is settled. What is deleted cannot be checked at the end.
const SWEEPING_SHARE: f64 = 0.5;
/// How long the disk stays full for somebody to be refused.
const LONGEST_FULL: Duration = Duration::from_secs(4);
/// What the server may take to work again when there is room.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lives of random lengths, most of which end by `kill -9`, and a long one.
pub fn die_often(traffic: &Traffic<'_>, time: Duration, seed: u64) -> LastLife {
    let lives = traffic.lives;
    let mut random = Random::new(seed);
    let began = Instant::now();
    let until = began + time.mul_f64(DYING_SHARE);
    let sweep_until = began + time.mul_f64(DYING_SHARE * SWEEPING_SHARE);
    for number in 0_u64.. {
        if Instant::now() >= until {
            break;
        }
        let server = lives.start(settings(number, Instant::now() < sweep_until));
        let time = random.weighted(&[(3, (20, 500)), (4, (500, 3000)), (2, (3000, 8000))]);
        let length = Duration::from_millis(random.between(time.0, time.1));
        thread::sleep(length.min(until.saturating_duration_since(Instant::now())));
        let how = if random.percent(75) { How::Killed } else { How::Stopped };
        lives.end(server, how);
        thread::sleep(Duration::from_millis(random.between(0, 100)));
    }
    let server = lives.start(Settings::PLAIN);
    let at_start = sampler::sample(server.pid().into());
    thread::sleep((began + time).saturating_duration_since(Instant::now()));
    LastLife { server, at_start }
}

/// Every other life runs tasks again that were at work, and two of three sweep as long as that is wanted.
fn settings(number: u64, may_sweep: bool) -> Settings {
    let recovery = if number % 2 == 1 { Recovery::Requeue } else { Recovery::Fail };
    let retention = if may_sweep && !number.is_multiple_of(3) { Retention::Sweep } else { Retention::KeepAll };
    Settings { recovery, retention }
}

/// A server whose disk is full now and then, and which is killed sometimes while it is.
pub fn fill_up_often(traffic: &Traffic<'_>, disk: &SmallDisk, time: Duration, seed: u64) -> LastLife {
    let lives = traffic.lives;
    let mut random = Random::new(!seed);
    let until = Instant::now() + time;
    let mut server = lives.start(Settings::PLAIN);
    let mut number = 0;
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(random.between(200, 800)));
        lives.disk_is_full(true);
        let (began, refused) = (Instant::now(), promise::FULL.kept());
        let least = Duration::from_millis(random.between(200, 1000));
        // What the store has written before it can write over, so it takes a while until the disk is felt.
        while began.elapsed() < least || (promise::FULL.kept() == refused && began.elapsed() < LONGEST_FULL) {
            disk.fill();
            thread::sleep(Duration::from_millis(20));
        }
        if random.percent(30) {
            lives.end(server, How::Killed);
            disk.free();
            server = lives.start(Settings::PLAIN);
        } else {
            disk.free();
        }
        number += 1;
        works_again(traffic, number);
        lives.disk_is_full(false);
    }
    LastLife { server, at_start: None }
}

/// A send is taken soon, without any help.
fn works_again(traffic: &Traffic<'_>, number: u64) {
    let mut client = traffic.client(format!("room-{number}"), number);
    let began = Instant::now();
    loop {
        let name = client.new_name();
        let text = format!("hello {name}");
        traffic.ledger.asks(&text, Asked::of(DEFAULT));
        if client.send(REFERENCE, Wish::new(&name, &text, DEFAULT), Delivery::WhenSettled, None).is_some() {
            promise::ROOM.check(true, String::new);
            return;
        }
        if began.elapsed() > PATIENCE {
            promise::ROOM.check(false, || format!("nothing is taken {PATIENCE:?} after the disk had room again"));
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
