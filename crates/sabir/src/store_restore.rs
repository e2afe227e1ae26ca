//! `sabir store restore`: fills a store with what a backup has.
//!
//! | step    | what                                                                                      |
//! |---------|-------------------------------------------------------------------------------------------|
//! | read    | the whole file: it is a backup, and has every byte that was written                         |
//! | restore | SQLite: into a new file beside the database. Postgres: into the empty database, with marks  |
//! | check   | every task is read back                                                                     |
//! | replace | SQLite: the new file takes the place of the old one, which gets another name                 |

use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use sabir_model::Timestamp;
use sabir_store::backup::{BackupHeader, BackupReader, BackupRow, BackupScanner};
use sabir_store::transfer::{ImportTasks, TransferredAgentState, TransferredAudit, TransferredTask};
use sabir_store::{OpenError, SqlitePlace, SqliteStore};
use serde_json::json;

use crate::cli::{CliOptions, RestoreOptions};
use crate::config::{Audience, ClusterSection, StoreUrl};
use crate::local_server::Load;
use crate::store_check;
use crate::store_source::{open_export, open_import};
use crate::terminal_text::visible;
use crate::transfer_progress::ProgressLine;

const BATCH_BYTES: usize = 4 << 20;
const BATCH_ROWS: usize = 1000;
const READ_BYTES: usize = 1 << 20;

/// What was restored.
#[derive(Debug)]
pub struct Report {
    checked: store_check::Report,
    header: BackupHeader,
    /// Where the database is that was there before.
    kept: Option<PathBuf>,
}

pub fn run(options: &RestoreOptions, load: Load, mut progress: ProgressLine) -> anyhow::Result<Report> {
    let cli = CliOptions { config: options.config.clone(), store: options.store.clone(), ..CliOptions::default() };
    let store = load(&cli)?.config.store.url;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let home = options.home.clone().unwrap_or_else(|| ClusterSection::default().node());
    let report = runtime.block_on(async {
        match &store {
            StoreUrl::Sqlite(path) => restore_file(options, path, &home, &mut progress).await,
            StoreUrl::Postgres(_) => restore_database(options, &store, &home, &mut progress).await,
            StoreUrl::Memory => bail!("memory: cannot be filled, since it ends with this command"),
        }
    });
    progress.clear();
    report
}

async fn restore_file(
    options: &RestoreOptions,
    path: &Path,
    home: &str,
    progress: &mut ProgressLine,
) -> anyhow::Result<Report> {
    let backup = ScannedFile::read(&options.file, progress)?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        make_folder(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    // Held until the new database is in its place, so that no server starts with the old one.
    let place = SqlitePlace::take(path).map_err(|error| match error {
        OpenError::InUse(path) => anyhow!("{} is in use by a server; stop it first", path.display()),
        OpenError::Other { path, reason } => anyhow!("no backup can be restored into {}: {reason}", path.display()),
        error => error.into(),
    })?;
    if place.is_taken() && !options.force {
        bail!(
            "{} is there already; with --force it is replaced, and kept with the ending .before-restore",
            path.display()
        );
    }
    // Removed before the place is free again: the next restore makes a file of the same name.
    let new = NewDatabase::beside(place.path())?;
    let url = StoreUrl::Sqlite(new.path.clone());
    fill(&backup, &mut *open_import(&url).await?, home, progress).await?;
    let checked = check(&backup, &url, progress).await?;
    let kept = place.put(&new.path).with_context(|| format!("cannot replace {}", path.display()))?;
    Ok(Report { checked, header: backup.header, kept })
}

/// What root makes in a folder of another user is for that user, as the database in it will be.
fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(folder)?;
    for folder in missing.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
        let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (made, above) = (fs::symlink_metadata(folder)?, fs::metadata(above)?);
        if made.uid() == 0 && above.uid() != 0 {
            let (user, group) = (above.uid(), above.gid());
            lchown(folder, Some(user), Some(group)).with_context(|| {
                format!(
                    "{} cannot be given to user {user} and group {group}; run the command as that user",
                    folder.display()
                )
            })?;
        }
    }
    Ok(())
}

async fn restore_database(
    options: &RestoreOptions,
    store: &StoreUrl,
    home: &str,
    progress: &mut ProgressLine,
) -> anyhow::Result<Report> {
    let backup = ScannedFile::read(&options.file, progress)?;
    fill(&backup, &mut *open_import(store).await?, home, progress).await?;
    let checked = check(&backup, store, progress).await?;
    Ok(Report { checked, header: backup.header, kept: None })
}

/// A backup that is whole.
struct ScannedFile {
    path: PathBuf,
    header: BackupHeader,
    /// Tells it from other backups.
    identity: String,
}

impl ScannedFile {
    fn read(path: &Path, progress: &mut ProgressLine) -> anyhow::Result<Self> {
        let mut file = open(path)?;
        let unusable = |error| anyhow!("{} cannot be restored: {error}", path.display());
        let (mut scanner, mut piece) = (BackupScanner::default(), vec![0; READ_BYTES]);
        loop {
            let length = match file.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            };
            scanner.feed(&piece[..length]).map_err(unusable)?;
            let (tasks, all) = scanner.progress();
            progress.show("reading", tasks, all);
        }
        let (header, digest) = scanner.finish().map_err(unusable)?;
        let identity: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { path: path.to_owned(), header, identity: format!("backup {identity}") })
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The file in which the new database is made. Removed when this is dropped, unless it has another name by then.
struct NewDatabase {
    path: PathBuf,
}

impl NewDatabase {
    fn beside(place: &Path) -> anyhow::Result<Self> {
        let path = with_suffix(place, ".restoring");
        // A FIFO would never open.
        let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        if is_file && SqliteStore::is_open_elsewhere(&path) {
            bail!("another restore is making {}; wait until it is over", path.display());
        }
        // Only now is the file ours, and removed when this is dropped: what a restore that was killed has left.
        let new = Self { path };
        new.remove();
        Ok(new)
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(with_suffix(&self.path, suffix));
        }
    }
}

impl Drop for NewDatabase {
    fn drop(&mut self) {
        self.remove();
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

async fn fill(
    backup: &ScannedFile,
    target: &mut dyn ImportTasks,
    home: &str,
    progress: &mut ProgressLine,
) -> anyhow::Result<()> {
    let mark = target.begin(&backup.identity).await?;
    if mark.is_finished {
        return Ok(());
    }
    let damaged = |error| anyhow!("{} cannot be restored: {error}", backup.path.display());
    let mut reader = BackupReader::new(BufReader::new(open(&backup.path)?)).map_err(damaged)?;
    let mut rows = Rows { target, home, tasks: Vec::new(), bytes: 0, states: Vec::new(), entries: Vec::new() };
    // An earlier run has come so far. Contexts have an order of their store, so those are skipped until the last one is met.
    let mut last_context = mark.context;
    let mut restored = 0;
    while let Some(row) = reader.next_row().map_err(damaged)? {
        match row {
            BackupRow::Task(task) => {
                restored += 1;
                if task.no > mark.task {
                    rows.add_task(*task).await?;
                }
                progress.show("restoring", restored, backup.header.size.tasks);
            }
            BackupRow::AgentState(state) => match &last_context {
                Some(last) if *last == state.key => last_context = None,
                Some(_) => {}
                None => rows.add_state(state).await?,
            },
            BackupRow::Audit(entry) if entry.number > mark.audit => rows.add_entry(entry).await?,
            BackupRow::Audit(_) => {}
        }
    }
    rows.put().await?;
    target.finish(backup.header.size).await?;
    Ok(())
}

/// Rows that are written together.
struct Rows<'a> {
    target: &'a mut dyn ImportTasks,
    home: &'a str,
    tasks: Vec<TransferredTask>,
    bytes: usize,
    states: Vec<TransferredAgentState>,
    entries: Vec<TransferredAudit>,
}

impl Rows<'_> {
    async fn add_task(&mut self, task: TransferredTask) -> anyhow::Result<()> {
        self.bytes += task.bytes();
        self.tasks.push(task);
        if self.bytes >= BATCH_BYTES || self.tasks.len() >= BATCH_ROWS { self.put().await } else { Ok(()) }
    }

    async fn add_state(&mut self, state: TransferredAgentState) -> anyhow::Result<()> {
        self.states.push(state);
        if self.states.len() >= BATCH_ROWS { self.put().await } else { Ok(()) }
    }

    async fn add_entry(&mut self, entry: TransferredAudit) -> anyhow::Result<()> {
        self.entries.push(entry);
        if self.entries.len() >= BATCH_ROWS { self.put().await } else { Ok(()) }
    }

    /// In the order of the backup, so that the marks of the target say how far it has come.
    async fn put(&mut self) -> anyhow::Result<()> {
        self.bytes = 0;
        let (tasks, states, entries) =
            (std::mem::take(&mut self.tasks), std::mem::take(&mut self.states), std::mem::take(&mut self.entries));
        if !tasks.is_empty() {
            self.target.put_tasks(tasks).await.context("cannot write to the store")?;
        }
        if !states.is_empty() {
            self.target.put_agent_states(states, self.home.to_owned()).await.context("cannot write to the store")?;
        }
        if !entries.is_empty() {
            self.target.put_audit(entries).await.context("cannot write to the store")?;
        }
        Ok(())
    }
}

/// Reads all that was stored. A task that was damaged before it was backed up is as damaged as before, and is told of.
async fn check(
    backup: &ScannedFile,
    store: &StoreUrl,
    progress: &mut ProgressLine,
) -> anyhow::Result<store_check::Report> {
    let checked = store_check::check(&mut *open_export(store).await?, progress).await?;
    if let Some(problem) = checked.problems.iter().find(|problem| problem.task.is_none()) {
        bail!("what was restored is not well: {}", visible(&problem.reason));
    }
    let size = backup.header.size;
    if (checked.tasks, checked.contexts, checked.audit_entries) != (size.tasks, size.contexts, size.audit_entries) {
        bail!("the store has not as many tasks, contexts and audit entries as the backup");
    }
    Ok(checked)
}

impl Report {
    pub fn show(&self, audience: Audience) -> String {
        let Report { checked, header, kept } = self;
        let time = Timestamp::from_millis(header.time).to_string();
        let kept = kept.as_ref().map(|kept| kept.display().to_string());
        if audience == Audience::Program {
            let problem = |problem: &store_check::Problem| json!({"task": problem.task, "problem": problem.reason});
            let damaged: Vec<_> = checked.problems.iter().map(problem).collect();
            let report = json!({"tasks": checked.tasks, "events": checked.events, "contexts": checked.contexts,
                "audit_entries": checked.audit_entries, "made": time, "version": header.version, "kept": kept,
                "damaged": damaged});
            return format!("{report}\n");
        }
        let mut text = String::new();
        for store_check::Problem { task, reason } in &checked.problems {
            let task = task.as_deref().unwrap_or_default();
            text += &format!("task {} was damaged before: {}\n", visible(task), visible(reason));
        }
        text += &format!(
            "{} tasks with {} events, {} contexts and {} audit entries are restored, as of {time}.\n",
            checked.tasks, checked.events, checked.contexts, checked.audit_entries
        );
        if let Some(kept) = kept {
            text += &format!("The database that was there before is {kept}; delete it when you need it no more.\n");
        }
        text + "Now start the server.\n"
    }
}
