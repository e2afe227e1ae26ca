//! What the system knows of this process, by the names that Prometheus gives these figures everywhere. They come from
//! `/proc`, so other systems than Linux have none.

use std::fs;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// In which `/proc` counts time, per second: a constant for programs, whatever the kernel uses itself.
const TICKS: f64 = 100.0;

pub(super) fn register(registry: &mut Registry) {
    let Some(figures) = Figures::read() else { return };
    let cpu = Counter::<f64, AtomicU64>::default();
    cpu.inc_by(figures.cpu_seconds);
    registry.register_with_unit("process_cpu", "Processor time that the process has used", Unit::Seconds, cpu);
    let gauge = |value: f64| {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        gauge
    };
    let (resident, virtual_size) = (gauge(figures.resident_bytes), gauge(figures.virtual_bytes));
    registry.register_with_unit("process_resident_memory", "Memory that the process has in use", Unit::Bytes, resident);
    registry.register_with_unit("process_virtual_memory", "Address space of the process", Unit::Bytes, virtual_size);
    let start = gauge(figures.start_seconds);
    registry.register_with_unit("process_start_time", "When the process began, since 1970", Unit::Seconds, start);
    registry.register("process_threads", "Threads of the process", gauge(figures.threads));
    if let Ok(folder) = fs::read_dir("/proc/self/fd") {
        registry.register("process_open_fds", "Files and sockets that are open", gauge(folder.count() as f64));
    }
    if let Some(most) = most_files() {
        registry.register("process_max_fds", "Files and sockets that may be open", gauge(most));
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Figures {
    cpu_seconds: f64,
    threads: f64,
    start_seconds: f64,
    virtual_bytes: f64,
    resident_bytes: f64,
}

impl Figures {
    fn read() -> Option<Self> {
        let (stat, status) =
            (fs::read_to_string("/proc/self/stat").ok()?, fs::read_to_string("/proc/self/status").ok()?);
        let boot = fs::read_to_string("/proc/stat").ok()?;
        Self::parse(&stat, &status, &boot)
    }

    fn parse(stat: &str, status: &str, boot: &str) -> Option<Self> {
        // The name of the program may have spaces and parentheses; what follows its last one are numbers.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // By the numbers of proc(5), of which the first two are before the parenthesis.
        let number = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<f64>().ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let resident = resident.split_whitespace().next()?.parse::<f64>().ok()?;
        Some(Self {
            cpu_seconds: (number(14)? + number(15)?) / TICKS,
            threads: number(20)?,
            start_seconds: boot + number(22)? / TICKS,
            virtual_bytes: number(23)?,
            resident_bytes: resident * 1024.0,
        })
    }
}

fn most_files() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_process() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 9 0 1000 4096000 250 184 1 1 0 0 0";
        let status = "Name:\tx\nVmRSS:\t    1000 kB\n";
        let figures = Figures::parse(stat, status, "cpu 1 2\nbtime 1700000000\nprocesses 5\n");
        let expected = Figures {
            cpu_seconds: 2.0,
            threads: 9.0,
            start_seconds: 1_700_000_010.0,
            virtual_bytes: 4_096_000.0,
            resident_bytes: 1_024_000.0,
        };
        assert_eq!(figures, Some(expected));
        for (stat, status, boot) in [("", status, "btime 1\n"), (stat, "", "btime 1\n"), (stat, status, "")] {
            assert_eq!(Figures::parse(stat, status, boot), None);
        }
    }
}
