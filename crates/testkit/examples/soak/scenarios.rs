//! What happens to the server while its clients work: it is killed often, or its disk is full now and then.

use std::thread;
use std::time::{Duration, Instant};

use crate::agents::DEFAULT;
use crate::dialect_client::{ClientMessage, Delivery, REFERENCE};
use crate::ledger::SentMessage;
use crate::phase::{LastProcess, Traffic};
use crate::promise;
use crate::random::Random;
use crate::sampler;
use crate::server_processes::{How, Recovery, Retention, Settings};
use crate::small_disk::SmallDisk;

/// The part of the time in which the server is restarted often; then comes a long process, which shows what grows.
const RESTARTS_SHARE: f64 = 0.7;
/// The part of the restarts in which some processes delete settled tasks, which cannot be checked at the end.
const SWEEPING_SHARE: f64 = 0.5;
/// How long the disk stays full for somebody to be refused.
const LONGEST_FULL: Duration = Duration::from_secs(4);
/// What the server may take to work again when there is room.
const PATIENCE: Duration = Duration::from_secs(5);

/// Server processes of random lengths, most of which end by `kill -9`, and a long one.
pub fn restart_often(traffic: &Traffic<'_>, time: Duration, seed: u64) -> LastProcess {
    let processes = traffic.processes;
    let mut random = Random::new(seed);
    let began = Instant::now();
    let until = began + time.mul_f64(RESTARTS_SHARE);
    let sweep_until = began + time.mul_f64(RESTARTS_SHARE * SWEEPING_SHARE);
    for number in 0_u64.. {
        if Instant::now() >= until {
            break;
        }
        let server = processes.start(settings(number, Instant::now() < sweep_until));
        let time = random.weighted(&[(3, (20, 500)), (4, (500, 3000)), (2, (3000, 8000))]);
        let length = Duration::from_millis(random.between(time.0, time.1));
        thread::sleep(length.min(until.saturating_duration_since(Instant::now())));
        let how = if random.percent(75) { How::Killed } else { How::Stopped };
        processes.end(server, how);
        thread::sleep(Duration::from_millis(random.between(0, 100)));
    }
    let server = processes.start(Settings::PLAIN);
    let at_start = sampler::sample(server.pid().into());
    thread::sleep((began + time).saturating_duration_since(Instant::now()));
    LastProcess { servers: vec![server], at_start }
}

/// One node after the other ends, most of them by `kill -9`, and comes back at once or after the others have taken over.
pub fn restart_nodes_often(traffic: &Traffic<'_>, time: Duration, seed: u64) -> LastProcess {
    let processes = traffic.processes;
    let mut random = Random::new(seed);
    let until = Instant::now() + time;
    let mut servers = processes.start_all(Settings::PLAIN);
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(random.between(200, 2500)));
        let node = random.between(0, servers.len() as u64 - 1) as usize;
        let how = if random.percent(70) { How::Killed } else { How::Stopped };
        processes.end(servers.remove(node), how);
        let (low, high) = random.weighted(&[(1, (0, 100)), (1, (6000, 9000))]);
        thread::sleep(Duration::from_millis(random.between(low, high)));
        servers.insert(node, processes.start_node(node, Settings::PLAIN));
    }
    LastProcess { servers, at_start: None }
}

/// Every other process runs interrupted tasks again, and two of three delete settled ones where `may_sweep`.
fn settings(number: u64, may_sweep: bool) -> Settings {
    let recovery = if number % 2 == 1 { Recovery::Requeue } else { Recovery::Fail };
    let retention = if may_sweep && !number.is_multiple_of(3) { Retention::Sweep } else { Retention::KeepAll };
    Settings { recovery, retention }
}

/// A server whose disk is full now and then, and which is killed sometimes while it is.
pub fn fill_disk_often(traffic: &Traffic<'_>, disk: &SmallDisk, time: Duration, seed: u64) -> LastProcess {
    let processes = traffic.processes;
    let mut random = Random::new(!seed);
    let until = Instant::now() + time;
    let mut server = processes.start(Settings::PLAIN);
    let mut number = 0;
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(random.between(200, 800)));
        processes.disk_is_full(true);
        let (began, refused) = (Instant::now(), promise::FULL.kept());
        let least = Duration::from_millis(random.between(200, 1000));
        // What the store has written before it can write over, so it takes a while until the disk is felt.
        while began.elapsed() < least || (promise::FULL.kept() == refused && began.elapsed() < LONGEST_FULL) {
            disk.fill();
            thread::sleep(Duration::from_millis(20));
        }
        if random.percent(30) {
            processes.end(server, How::Killed);
            disk.free();
            server = processes.start(Settings::PLAIN);
        } else {
            disk.free();
        }
        number += 1;
        check_it_works_again(traffic, number);
        processes.disk_is_full(false);
    }
    LastProcess { servers: vec![server], at_start: None }
}

/// A send is taken soon, without any help.
fn check_it_works_again(traffic: &Traffic<'_>, number: u64) {
    let mut client = traffic.client(format!("room-{number}"), number);
    let began = Instant::now();
    loop {
        let name = client.new_name();
        let text = format!("hello {name}");
        traffic.ledger.record_send(&text, SentMessage::of(DEFAULT));
        if client.send(REFERENCE, ClientMessage::new(&name, &text, DEFAULT), Delivery::WhenSettled, None).is_some() {
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
