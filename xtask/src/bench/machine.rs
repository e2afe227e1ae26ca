//! What the measurement runs on, and how its parts are kept apart.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::command;

pub struct BenchMachine {
    processor: String,
    cores: usize,
    kernel: String,
    /// How busy it was before we began.
    load: String,
    is_pinned: bool,
}

/// Which core a program runs on, if they are pinned.
#[derive(Clone, Copy)]
pub enum Core {
    Server,
    Generator,
}

impl BenchMachine {
    pub fn look() -> BenchMachine {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        BenchMachine {
            processor: model.map_or("unknown processor", |(_, name)| name).to_owned(),
            cores,
            kernel: read("/proc/sys/kernel/osrelease"),
            load: read("/proc/loadavg").split(' ').next().unwrap_or("unknown").to_owned(),
            is_pinned: cores > 1 && command::works(Command::new("taskset").arg("--version")),
        }
    }

    /// The program, on its core.
    pub fn command(&self, core: Core, program: &Path) -> Command {
        if !self.is_pinned {
            return Command::new(program);
        }
        let mut command = Command::new("taskset");
        command.args(["-c", if matches!(core, Core::Server) { "0" } else { "1" }]).arg(program);
        command
    }
}

impl fmt::Display for BenchMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BenchMachine { processor, cores, kernel, load, is_pinned } = self;
        let pinned = match (is_pinned, cores) {
            (true, _) => "server on core 0, generator on core 1",
            (false, 1) => "one core for server and generator",
            (false, _) => "not pinned, since there is no `taskset`",
        };
        write!(f, "{processor}, {cores} cores, Linux {kernel}; {pinned}; load {load} before the run")
    }
}
