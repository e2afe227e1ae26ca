//! The store: whether it can be used, and for how long.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use rustix::fs::{Access, StatVfs, StatVfsMountFlags, access, statfs, statvfs};
use rustix::process::geteuid;
use sabir_engine::{Clock, SystemClock};
use sabir_model::Timestamp;
use sabir_store::{PostgresExamination, SqliteExamination, SqliteStore};

use crate::config::{Config, PostgresUrl, StoreUrl};
use crate::store_check::kind_of_no_file;

use super::Subject;
use super::finding::{Area, Finding, Level};

const AREA: Area = Area::Store;

/// With less free space than this, the next commits may fail.
const TOO_LITTLE: u64 = 128 << 20;
const LITTLE: u64 = 1 << 30;
/// A database of this size that nothing is ever deleted from.
const LARGE: u64 = 10 << 30;
/// File systems over a network, on which SQLite's shared memory does not work or locks are not kept: NFS, SMB, CIFS, AFS, Ceph.
const NETWORK_FILE_SYSTEMS: [u64; 6] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x00c3_6400];
/// Clocks that differ by more make times of tasks hard to compare.
const CLOCK_DIFFERENCE: f64 = 1.0;
/// Clocks that differ by more are wrong.
const LARGE_CLOCK_DIFFERENCE: f64 = 60.0;
const OLDEST_POSTGRES: i64 = 130_000;
const SLOW_ROUND_TRIP: Duration = Duration::from_millis(20);

pub fn check(subject: &Subject) -> Vec<Finding> {
    let config = &subject.loaded.config;
    match &config.store.url {
        StoreUrl::Memory => vec![Finding::warning(
            AREA,
            "tasks are in memory (memory:), and gone when the server stops",
            "keep them with store.url = \"sqlite:sabir.db\"",
        )],
        StoreUrl::Sqlite(path) => sqlite(config, path),
        StoreUrl::Postgres(url) if subject.options.offline => {
            vec![Finding::ok(AREA, format!("{url} was not checked (--offline)"))]
        }
        StoreUrl::Postgres(url) => postgres(config, url),
    }
}

fn sqlite(config: &Config, path: &Path) -> Vec<Finding> {
    let shown = path.display();
    let mut findings = folder(path);
    if !path.exists() {
        findings.insert(0, Finding::ok(AREA, format!("{shown} is not there yet; `sabir serve` makes it")));
        return findings;
    }
    if let Some(kind) = kind_of_no_file(path) {
        findings.insert(0, Finding::problem(AREA, format!("{shown} {kind}"), "name a file in store.url"));
        return findings;
    }
    if let Some(what) = read_only(path) {
        findings.push(Finding::problem(
            AREA,
            what,
            "give the user of the server write permission, or name another file",
        ));
    }
    findings.extend(other_owner(path));
    match SqliteExamination::of(path) {
        Ok(found) => findings.splice(0..0, examined(config, path, &found)).for_each(drop),
        Err(error) => findings.push(Finding::of_words(AREA, Level::Problem, &error.to_string())),
    }
    findings
}

fn examined(config: &Config, path: &Path, found: &SqliteExamination) -> Vec<Finding> {
    let SqliteExamination { format, known_format, bytes, wal_bytes, damage, newest_task } = found;
    let shown = path.display();
    let mut findings = Vec::new();
    match damage {
        Some(reason) => findings.push(Finding::problem(
            AREA,
            format!("{shown} is damaged: {reason}"),
            "stop the server, and restore a backup with `sabir store restore --force FILE`",
        )),
        None => {
            let holder = if SqliteStore::is_open_elsewhere(path) { "; a server has it open" } else { "" };
            let size = ByteSize(bytes + wal_bytes);
            findings.push(Finding::ok(AREA, format!("{shown} can be read ({size}, format {format}){holder}")));
        }
    }
    if *format > 0 && format < known_format {
        findings.push(Finding::warning(
            AREA,
            format!("{shown} has format {format}, and this version writes format {known_format}"),
            "back it up with the version that wrote it; the next `sabir serve` brings it up to date, and there is no way back",
        ));
    }
    let is_trimmed = config.retention.max_age.is_some() || config.retention.max_tasks.is_some();
    if *bytes > LARGE && !is_trimmed {
        findings.push(Finding::warning(
            AREA,
            format!("{shown} has {}, and nothing is ever deleted", ByteSize(*bytes)),
            "set retention.max_age or retention.max_tasks",
        ));
    }
    let now = SystemClock.now().as_millis();
    if let Some(newest) = newest_task.filter(|newest| *newest > now + 5000) {
        findings.push(Finding::warning(
            Area::Clock,
            format!("the newest task was made at {}, which is in the future", Timestamp::from_millis(newest)),
            "the clock of this machine was set back; see that it is synchronized",
        ));
    }
    findings
}

/// A file that root made in the folder of another user, as a restore of an earlier version did. Root can open it, and so sees
/// no fault, but the server of that user cannot.
fn other_owner(path: &Path) -> Option<Finding> {
    let path = path.canonicalize().ok()?;
    let folder = path.parent()?.metadata().ok()?;
    let has_other_owner =
        |path: &PathBuf| path.metadata().is_ok_and(|file| is_other_owner(file.uid(), folder.uid(), geteuid().as_raw()));
    let with_suffix = |suffix| PathBuf::from(format!("{}{suffix}", path.display()));
    let file = ["", "-wal", "-shm"].map(with_suffix).into_iter().find(has_other_owner)?;
    let (shown, user, group) = (file.display(), folder.uid(), folder.gid());
    Some(Finding::warning(
        AREA,
        format!(
            "{shown} belongs to another user than its folder, so a server of user {user} may not be able to open it"
        ),
        format!("if the server runs as that user: chown {user}:{group} {shown}"),
    ))
}

/// The owner of the file says nothing if he is the one who asks, and the folder says nothing if it is one of the system's.
fn is_other_owner(file: u32, folder: u32, asking: u32) -> bool {
    file != folder && folder != 0 && (asking == 0 || asking != file)
}

/// The folder of the database, or the nearest one above it that is there.
fn folder(path: &Path) -> Vec<Finding> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = path.canonicalize().unwrap_or(path);
    let Some(folder) = path.ancestors().skip(1).find(|folder| folder.is_dir()).map(PathBuf::from) else {
        return vec![Finding::problem(AREA, format!("{} has no folder", path.display()), "make it")];
    };
    let mut findings = Vec::new();
    if let Some(what) = read_only(&folder) {
        findings.push(Finding::problem(
            AREA,
            what,
            "give the user of the server write permission, or choose another folder",
        ));
    }
    if let Ok(found) = statfs(&folder)
        && NETWORK_FILE_SYSTEMS.contains(&(found.f_type as u64 & 0xffff_ffff))
    {
        findings.push(Finding::warning(
            AREA,
            format!("{} is on a network file system, which does not keep SQLite's promises", folder.display()),
            "put the database on a disk of this machine, or use Postgres",
        ));
    }
    match statvfs(&folder) {
        Ok(found) => findings.extend(space(&folder, &found)),
        Err(error) => findings.push(Finding::warning(
            AREA,
            format!("how much space is left in {} cannot be determined: {error}", folder.display()),
            "look with `df`",
        )),
    }
    findings
}

fn space(folder: &Path, found: &StatVfs) -> Option<Finding> {
    let shown = folder.display();
    if found.f_flag.contains(StatVfsMountFlags::RDONLY) {
        let what = format!("the file system of {shown} is mounted read-only");
        return Some(Finding::problem(AREA, what, "see in the kernel's log why, and mount it for writing"));
    }
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let what = format!("{} are free in {shown}", ByteSize(free));
    let next = "make room: delete what is not needed, or set retention.max_age and restart";
    match free {
        free if free < TOO_LITTLE => Some(Finding::problem(AREA, what, next)),
        free if free < LITTLE => Some(Finding::warning(AREA, what, next)),
        _ if found.f_files > 0 && found.f_favail == 0 => {
            let what = format!("the file system of {shown} can hold no more files");
            Some(Finding::problem(AREA, what, "delete files that are not needed"))
        }
        _ => Some(Finding::ok(AREA, what)),
    }
}

/// As a server sees it: without any write permission it is meant to stay unchanged, even if root could write it.
fn read_only(path: &Path) -> Option<String> {
    let is_read_only =
        fs::metadata(path).is_ok_and(|meta| meta.permissions().readonly()) || access(path, Access::WRITE_OK).is_err();
    is_read_only.then(|| format!("{} cannot be written", path.display()))
}

fn postgres(config: &Config, url: &PostgresUrl) -> Vec<Finding> {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return vec![Finding::problem(AREA, format!("no thread: {error}"), "see limits")],
    };
    let found = match runtime.block_on(PostgresExamination::of(url.with_password())) {
        Ok(found) => found,
        Err(error) => return vec![Finding::of_words(AREA, Level::Problem, &error.to_string())],
    };
    let mut findings = settings(&found);
    findings.extend(database(&found));
    let folder = config.store.folder.clone().unwrap_or_default();
    if folder.exists()
        && let Some(what) = read_only(&folder)
    {
        findings.push(Finding::problem(
            AREA,
            what,
            "give the user of the server write permission, or set store.folder",
        ));
    }
    findings.extend(clock(&found));
    findings
}

fn database(found: &PostgresExamination) -> Vec<Finding> {
    let server = &found.server;
    let mut findings = Vec::new();
    match (found.format, found.is_too_new) {
        (None, _) => {
            findings.push(Finding::ok(AREA, format!("{server} can be reached; `sabir serve` makes the tables")));
        }
        (Some(format), true) => findings.push(Finding::problem(
            AREA,
            format!("the database at {server} was written by a newer Sabir (format {format})"),
            "run that version",
        )),
        (Some(format), false) => {
            let size = ByteSize(found.bytes);
            findings.push(Finding::ok(AREA, format!("{server} can be read ({size}, format {format})")));
        }
    }
    if found.has_unfinished_transfer {
        findings.push(Finding::problem(
            AREA,
            format!("a migration or a restore into {server} was interrupted"),
            "run the same `sabir store migrate` or `sabir store restore` again, which goes on where it ended",
        ));
    }
    if let Some((first, others)) = found.missing_rights.split_first() {
        let others = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        findings.push(Finding::problem(
            AREA,
            format!("the user of {server} may not do what a server does: {first}{others} is missing"),
            found.remedy_for_rights(),
        ));
    }
    if found.max_connections > 0 && found.connections * 10 > found.max_connections * 9 {
        findings.push(Finding::warning(
            AREA,
            format!("{} of {} connections of {server} are in use", found.connections, found.max_connections),
            "raise max_connections of Postgres, or put a pooler in front",
        ));
    }
    if found.round_trip > SLOW_ROUND_TRIP {
        findings.push(Finding::warning(
            AREA,
            format!("a round trip to {server} takes {:?}, and each commit needs some", found.round_trip),
            "run the servers near their database",
        ));
    }
    if found.is_pooled {
        findings.push(Finding::warning(
            AREA,
            format!("a pooler in transaction mode is between here and {server}: nodes look for changes instead of hearing of them"),
            "connect without a pooler, or in session mode, if answers of other nodes should arrive at once",
        ));
    }
    findings
}

fn settings(found: &PostgresExamination) -> Vec<Finding> {
    let PostgresExamination { version, version_number, synchronous_commit, isolation, server, .. } = found;
    let mut findings = Vec::new();
    match *version_number < OLDEST_POSTGRES {
        true => findings.push(Finding::problem(
            AREA,
            format!("{server} is Postgres {version}"),
            "upgrade it to 13 or newer",
        )),
        false => findings.push(Finding::ok(
            AREA,
            format!("{server} is Postgres {version}, synchronous_commit = {synchronous_commit}"),
        )),
    }
    if found.is_read_only {
        findings.push(Finding::problem(
            AREA,
            format!("{server} is read-only, as a standby is"),
            "name the primary in store.url",
        ));
    }
    if !found.fsync {
        findings.push(Finding::problem(
            AREA,
            format!("fsync is off at {server}: everything can be lost or damaged when its machine fails"),
            "set fsync = on in postgresql.conf",
        ));
    }
    if !found.full_page_writes {
        findings.push(Finding::warning(
            AREA,
            format!("full_page_writes is off at {server}: a power cut can damage the database"),
            "set full_page_writes = on, unless the file system prevents torn pages",
        ));
    }
    if synchronous_commit == "off" {
        findings.push(Finding::warning(
            AREA,
            format!("synchronous_commit is off at {server}; Sabir switches it on for its own commits"),
            "set synchronous_commit = on for the database, so that nobody has to know this",
        ));
    }
    if isolation != "read committed" {
        findings.push(Finding::problem(
            AREA,
            format!("default_transaction_isolation is {isolation:?} at {server}, and Sabir needs \"read committed\""),
            "run ALTER DATABASE ... SET default_transaction_isolation = 'read committed'",
        ));
    }
    findings
}

fn clock(found: &PostgresExamination) -> Option<Finding> {
    let PostgresExamination { clock_ahead, server, .. } = found;
    let direction = if *clock_ahead > 0.0 { "ahead of" } else { "behind" };
    let what = format!("the clock of {server} is {:.1} s {direction} the one of this machine", clock_ahead.abs());
    let next = "see that both machines synchronize their clocks";
    match clock_ahead.abs() {
        difference if difference > LARGE_CLOCK_DIFFERENCE => Some(Finding::problem(Area::Clock, what, next)),
        difference if difference > CLOCK_DIFFERENCE => Some(Finding::warning(Area::Clock, what, next)),
        _ => Some(Finding::ok(Area::Clock, format!("it agrees with the clock of {server}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy() -> PostgresExamination {
        PostgresExamination {
            server: "db/sabir".into(),
            version: "17.5".into(),
            version_number: 170_005,
            fsync: true,
            full_page_writes: true,
            synchronous_commit: "on".into(),
            isolation: "read committed".into(),
            is_read_only: false,
            format: Some(1),
            known_format: 1,
            is_too_new: false,
            has_unfinished_transfer: false,
            missing_rights: Vec::new(),
            bytes: 1 << 20,
            connections: 10,
            max_connections: 100,
            is_pooled: false,
            clock_ahead: 0.01,
            round_trip: Duration::from_millis(1),
        }
    }

    #[test]
    fn a_file_of_another_user_than_its_folder_is_told_to_those_who_cannot_notice() {
        for (file, folder, asking, expected) in [
            (0, 1000, 0, true),
            (0, 1000, 1000, true),
            (1001, 1000, 1002, true),
            (1000, 1000, 0, false),
            (1000, 0, 0, false),
            (1001, 1000, 1001, false),
            (0, 0, 0, false),
        ] {
            assert_eq!(is_other_owner(file, folder, asking), expected, "{file} in {folder}, asked by {asking}");
        }
    }

    #[test]
    fn what_is_no_file_is_a_problem_and_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for (path, words) in [(folder.path(), "is a folder"), (fifo.as_path(), "is no regular file")] {
            let findings = sqlite(&Config::default(), path);
            let found = &findings[0];
            assert!(found.level == Level::Problem && found.what.ends_with(words), "{findings:?}");
        }
    }

    #[test]
    fn a_disk_that_is_full_or_read_only_is_a_problem() {
        const MIB: u64 = 1 << 20;
        for (free, files, flags, expected) in [
            (50_000 * MIB, 1000, StatVfsMountFlags::empty(), Level::Ok),
            (500 * MIB, 1000, StatVfsMountFlags::empty(), Level::Warning),
            (100 * MIB, 1000, StatVfsMountFlags::empty(), Level::Problem),
            (0, 1000, StatVfsMountFlags::empty(), Level::Problem),
            (50_000 * MIB, 0, StatVfsMountFlags::empty(), Level::Problem),
            (50_000 * MIB, 1000, StatVfsMountFlags::RDONLY, Level::Problem),
        ] {
            // That of a folder of this machine, changed.
            let mut found = statvfs("/").unwrap();
            (found.f_frsize, found.f_bavail, found.f_flag) = (MIB, free / MIB, flags);
            (found.f_files, found.f_favail) = (1000, files);
            let told = space(Path::new("/data"), &found).unwrap();
            assert_eq!(told.level, expected, "{free} {files} {flags:?}: {told:?}");
        }
    }

    #[test]
    fn each_setting_of_a_postgres_that_is_not_right_is_told_of() {
        type Change = fn(&mut PostgresExamination);
        let rows: [(Change, Level, &str); 15] = [
            (|_| {}, Level::Ok, "can be read"),
            (|found| found.version_number = 120_000, Level::Problem, "is Postgres"),
            (|found| found.fsync = false, Level::Problem, "fsync is off"),
            (|found| found.full_page_writes = false, Level::Warning, "full_page_writes is off"),
            (|found| found.synchronous_commit = "off".into(), Level::Warning, "synchronous_commit is off"),
            (|found| found.isolation = "serializable".into(), Level::Problem, "default_transaction_isolation"),
            (|found| found.is_read_only = true, Level::Problem, "is read-only"),
            (|found| found.format = None, Level::Ok, "makes the tables"),
            (|found| found.is_too_new = true, Level::Problem, "newer Sabir"),
            (|found| found.has_unfinished_transfer = true, Level::Problem, "was interrupted"),
            (|found| found.missing_rights.push("INSERT on tasks".into()), Level::Problem, "on tasks is missing"),
            (|found| found.connections = 95, Level::Warning, "95 of 100 connections"),
            (|found| found.is_pooled = true, Level::Warning, "a pooler"),
            (|found| found.clock_ahead = -2.5, Level::Warning, "is 2.5 s behind"),
            (|found| found.clock_ahead = 3600.0, Level::Problem, "is 3600.0 s ahead of"),
        ];
        for (change, level, words) in rows {
            let mut found = healthy();
            change(&mut found);
            let findings = [settings(&found), database(&found), clock(&found).into_iter().collect()].concat();
            let of_level = |finding: &&Finding| finding.level == level && finding.what.contains(words);
            assert!(findings.iter().any(|finding| of_level(&finding)), "{words}: {findings:?}");
            let worse = findings.iter().filter(|finding| finding.level != Level::Ok && !finding.what.contains(words));
            assert_eq!(worse.count(), 0, "{words}: {findings:?}");
        }
    }
}
