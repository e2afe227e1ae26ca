//! What the system lets the server have: open files, memory, processes.
//!
//! A service has other limits than the shell of its operator. So where a server runs, its own are looked at.

use std::fs;
use std::path::{Path, PathBuf};

use bytesize::ByteSize;

use super::Subject;
use super::finding::{Area, Finding};

const AREA: Area = Area::Limits;

/// With fewer connections, a few clients with open streams fill the server.
const FEW_CONNECTIONS: usize = 1000;
const TOO_FEW_CONNECTIONS: usize = 50;
/// What a run of a program takes: its guard, itself, and some that it starts.
const PROCESSES_PER_RUN: u64 = 20;
/// What the server takes beside the memory for requests.
const OWN_MEMORY: u64 = 64 << 20;

pub fn check(subject: &Subject) -> Vec<Finding> {
    let mut findings = vec![open_files(subject)];
    let groups = control_groups(subject.pid);
    let whose = whose(subject);
    findings.push(memory(subject.loaded.config.server.memory as u64, memory_limit(&groups), whose));
    findings.extend(processes(subject.loaded.config.program_runs() as u64, smallest(&groups, "pids.max"), whose));
    findings
}

fn whose(subject: &Subject) -> &'static str {
    if subject.pid.is_some() { "the running server" } else { "this shell" }
}

fn open_files(subject: &Subject) -> Finding {
    // A server raises its limit as far as it goes, as this process has done.
    let limit = subject.pid.and_then(open_files_of).unwrap_or(subject.surroundings.descriptors.limit);
    let mut descriptors = subject.surroundings.descriptors;
    descriptors.limit = limit;
    let connections = descriptors.connections(subject.loaded.config.program_runs());
    let what = format!("{} may open {limit} files, which is enough for {connections} connections", whose(subject));
    let next = "raise it: LimitNOFILE=65536 in the systemd unit, or `ulimit -Hn` in the shell that starts the server";
    match connections {
        0..TOO_FEW_CONNECTIONS => Finding::problem(AREA, what, next),
        TOO_FEW_CONNECTIONS..FEW_CONNECTIONS => Finding::warning(AREA, what, next),
        _ => Finding::ok(AREA, what),
    }
}

/// The limit of another process.
fn open_files_of(pid: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn memory(reserved: u64, limit: Option<u64>, whose: &str) -> Finding {
    let Some(limit) = limit else {
        return Finding::ok(AREA, format!("{whose} has no limit of memory that can be read"));
    };
    let what = format!("{whose} may use {} of memory, and server.memory is {}", ByteSize(limit), ByteSize(reserved));
    let next =
        "lower server.memory, or give the server more (MemoryMax= in the systemd unit, or the container's limit)";
    if limit < reserved + OWN_MEMORY {
        return Finding::problem(AREA, what, next);
    }
    if limit / 2 < reserved {
        return Finding::warning(AREA, what, next);
    }
    Finding::ok(AREA, what)
}

fn processes(runs: u64, limit: Option<u64>, whose: &str) -> Option<Finding> {
    let limit = limit.filter(|_| runs > 0)?;
    let needed = runs.saturating_mul(PROCESSES_PER_RUN);
    let what = format!("{whose} may have {limit} processes and threads, and {runs} programs can run at the same time");
    let next = "raise TasksMax= in the systemd unit (or the container's limit), or lower max_concurrent of the agents";
    Some(match limit < needed {
        true => Finding::warning(AREA, what, next),
        false => Finding::ok(AREA, what),
    })
}

/// The folder of the control group of a process, and those above it: each limits what is below.
fn control_groups(pid: Option<u32>) -> Vec<PathBuf> {
    let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let Ok(groups) = fs::read_to_string(format!("/proc/{process}/cgroup")) else { return Vec::new() };
    let Some(path) = groups.lines().find_map(|line| line.strip_prefix("0::")) else { return Vec::new() };
    let root = Path::new("/sys/fs/cgroup");
    let group = root.join(path.trim_start_matches('/'));
    group.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned).collect()
}

fn smallest(groups: &[PathBuf], file: &str) -> Option<u64> {
    let limit = |folder: &PathBuf| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
    groups.iter().filter_map(limit).min()
}

/// Of the control groups, or of the machine.
fn memory_limit(groups: &[PathBuf]) -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let kilobytes: u64 =
            text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()?;
        Some(kilobytes * 1024)
    });
    smallest(groups, "memory.max").into_iter().chain(machine).min()
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn memory_and_processes_must_be_enough() {
        const MIB: u64 = 1 << 20;
        for (reserved, limit, expected) in [
            (256 * MIB, None, Level::Ok),
            (256 * MIB, Some(4096 * MIB), Level::Ok),
            (256 * MIB, Some(400 * MIB), Level::Warning),
            (256 * MIB, Some(300 * MIB), Level::Problem),
        ] {
            assert_eq!(memory(reserved, limit, "it").level, expected, "{limit:?}");
        }
        assert_eq!(processes(0, Some(10), "it"), None);
        assert_eq!(processes(4, Some(79), "it").unwrap().level, Level::Warning);
        assert_eq!(processes(4, Some(80), "it").unwrap().level, Level::Ok);
    }
}
