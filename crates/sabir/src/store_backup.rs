//! `sabir store backup`: everything in a store as one file, from the server that has it or from the store itself.
//!
//! The bytes are looked over as they come, so a backup that breaks off never gets the name of the file.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use sabir_engine::{Clock, SystemClock};
use sabir_outbound::OpenResponse;
use sabir_store::backup::{BackupHeader, BackupScanner, BackupStream, is_backup};
use serde_json::json;

use crate::address_file;
use crate::admin_client::AdminClient;
use crate::cli::{BackupOptions, CliOptions};
use crate::config::Audience;
use crate::local_server::{self, Load};
use crate::process_environment::Terminals;
use crate::store_source::open_export;
use crate::transfer_progress::ProgressLine;

/// A server that sends nothing for so long has broken off.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the backup has.
#[derive(Debug)]
pub struct Report {
    header: BackupHeader,
    digest: [u8; 32],
    bytes: u64,
    /// `None`: the standard output.
    file: Option<PathBuf>,
}

pub fn run(
    options: &BackupOptions,
    terminals: &Terminals,
    load: Load,
    mut progress: ProgressLine,
) -> anyhow::Result<Report> {
    let mut sink = match options.file.as_os_str() == "-" {
        true if terminals.stdout => bail!("a backup is not for a terminal; name a file, or write it into a pipe"),
        true => Sink::Stdout(io::stdout()),
        false => Sink::File(PartialFile::create(&options.file)?),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let mut copied = Copied::default();
    let done = runtime.block_on(async {
        let mut source = Source::open(options, load).await?;
        while let Some(piece) = source.next().await? {
            copied.scanner.feed(&piece).map_err(|error| anyhow!("the backup cannot be used: {error}"))?;
            sink.write(&piece)?;
            copied.bytes += piece.len() as u64;
            let (tasks, all) = copied.scanner.progress();
            progress.show("backing up", tasks, all);
        }
        anyhow::Ok(())
    });
    progress.clear();
    done?;
    let (header, digest) = copied.scanner.finish().map_err(|error| anyhow!("the backup cannot be used: {error}"))?;
    Ok(Report { header, digest, bytes: copied.bytes, file: sink.finish()? })
}

#[derive(Default)]
struct Copied {
    scanner: BackupScanner,
    bytes: u64,
}

/// Where the bytes come from.
enum Source {
    Server(Box<OpenResponse>),
    Store(Box<BackupStream>),
}

impl Source {
    async fn open(options: &BackupOptions, load: Load) -> anyhow::Result<Self> {
        if options.server.url.is_some() {
            return Self::of_server(&AdminClient::new(&options.server, load)?).await;
        }
        let config = options.server.config.clone();
        let cli = CliOptions { config, store: options.store.clone(), ..CliOptions::default() };
        let store = load(&cli)?.config.store;
        if store.local_file().as_deref().and_then(address_file::read).is_some() {
            let local = local_server::find(&cli, load)?;
            return Self::of_server(&AdminClient::of(local, options.server.token.as_deref())?).await;
        }
        let source = open_export(&store.url).await?;
        let stream = BackupStream::new(source, env!("CARGO_PKG_VERSION"), SystemClock.now());
        Ok(Self::Store(Box::new(stream)))
    }

    async fn of_server(server: &AdminClient) -> anyhow::Result<Self> {
        Ok(Self::Server(Box::new(server.open("store/backup").await?)))
    }

    async fn next(&mut self) -> anyhow::Result<Option<Vec<u8>>> {
        match self {
            Self::Server(response) => {
                let chunk = response.chunk(PATIENCE).await;
                Ok(chunk.map_err(|error| anyhow!("the server broke off: {error}"))?.map(Vec::from))
            }
            Self::Store(stream) => Ok(stream.next_piece().await?),
        }
    }
}

enum Sink {
    Stdout(io::Stdout),
    File(PartialFile),
}

impl Sink {
    fn write(&mut self, piece: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Stdout(out) => out.write_all(piece).context("cannot write to the standard output"),
            Self::File(file) => file.write(piece),
        }
    }

    fn finish(self) -> anyhow::Result<Option<PathBuf>> {
        match self {
            Self::Stdout(mut out) => out.flush().map(|()| None).context("cannot write to the standard output"),
            Self::File(file) => file.finish().map(Some),
        }
    }
}

/// A file that has its name only when it is complete. Whatever was begun is removed when this is dropped; one that was killed
/// leaves it behind, and the next one takes it over.
struct PartialFile {
    target: PathBuf,
    partial: PathBuf,
    file: File,
    is_finished: bool,
}

impl PartialFile {
    fn create(target: &Path) -> anyhow::Result<Self> {
        let shown = target.display();
        let name = target.file_name().with_context(|| format!("{shown} is no file name"))?;
        check_replaceable(target)?;
        let mut partial = name.to_owned();
        partial.push(".partial");
        let partial = target.with_file_name(partial);
        let mut file = loop {
            let file = open_partial(&partial)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => bail!("another backup is being written to {shown}"),
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("{} cannot be locked", partial.display()));
                }
            }
            // The backup that had the lock until now has given the file its final name, or has removed it.
            if is_at(&file, &partial) {
                break file;
            }
        };
        check_left_behind(&mut file, &partial)?;
        let prepared = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.set_permissions(fs::Permissions::from_mode(0o600)));
        prepared.with_context(|| format!("cannot write {}", partial.display()))?;
        Ok(Self { target: target.to_owned(), partial, file, is_finished: false })
    }

    fn write(&mut self, piece: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(piece).with_context(|| format!("cannot write {}", self.partial.display()))
    }

    fn finish(mut self) -> anyhow::Result<PathBuf> {
        if !is_at(&self.file, &self.partial) {
            bail!("{} was deleted or replaced while the backup was written; try again", self.partial.display());
        }
        let finished = self.file.sync_all().and_then(|()| fs::rename(&self.partial, &self.target)).and_then(|()| {
            let folder = self.target.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        });
        finished.with_context(|| format!("cannot write {}", self.target.display()))?;
        self.is_finished = true;
        Ok(self.target.clone())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.is_finished && is_at(&self.file, &self.partial) {
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Opens or makes it, without changing what is in it.
fn open_partial(partial: &Path) -> anyhow::Result<File> {
    let shown = partial.display();
    let mut options = OpenOptions::new();
    options.create(true).read(true).write(true).truncate(false).mode(0o600);
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    let is_link = || partial.symlink_metadata().is_ok_and(|found| found.is_symlink());
    match options.open(partial) {
        Err(_) if is_link() => {
            bail!("{shown} is a symbolic link, so it is not written; delete it, or choose another name")
        }
        opened => opened.with_context(|| format!("cannot write {shown}")),
    }
}

/// Whether this path leads to the file that is open.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |found: Metadata| (found.dev(), found.ino());
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(open), Ok(named)) => identity(open) == identity(named),
        _ => false,
    }
}

/// Only what a backup of the same user has left behind is overwritten.
fn check_left_behind(file: &mut File, partial: &Path) -> anyhow::Result<()> {
    let shown = partial.display();
    let found = file.metadata().with_context(|| format!("cannot read {shown}"))?;
    if !found.is_file() || found.nlink() != 1 || found.uid() != geteuid().as_raw() {
        bail!("{shown} is no file of this user alone, so it is not overwritten; delete it, or choose another name");
    }
    let mut start = Vec::new();
    file.take(32).read_to_end(&mut start).with_context(|| format!("cannot read {shown}"))?;
    if !start.is_empty() && !is_backup(&start) {
        bail!("{shown} is there already and is no backup, so it is not overwritten; delete it, or choose another name");
    }
    Ok(())
}

/// Somebody may have named the database itself.
fn check_replaceable(target: &Path) -> anyhow::Result<()> {
    let shown = target.display();
    let Ok(found) = fs::metadata(target) else { return Ok(()) };
    let mut start = [0; 32];
    let read = if found.is_file() { File::open(target).and_then(|mut file| file.read(&mut start)) } else { Ok(0) };
    match read {
        Ok(length) if is_backup(&start[..length]) => Ok(()),
        Ok(_) => bail!("{shown} is there already and is no backup, so it is not replaced; choose another name"),
        Err(error) => Err(error).with_context(|| format!("cannot read {shown}")),
    }
}

impl Report {
    pub fn is_on_stdout(&self) -> bool {
        self.file.is_none()
    }

    pub fn show(&self, audience: Audience) -> String {
        let Report { header, bytes, .. } = self;
        let digest: String = self.digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let file = self.file.as_ref().map(|file| file.display().to_string());
        let size = header.size;
        match audience {
            Audience::Program => {
                let report = json!({"file": file, "bytes": bytes, "tasks": size.tasks, "contexts": size.contexts,
                    "audit_entries": size.audit_entries, "version": header.version, "sha256": digest});
                format!("{report}\n")
            }
            Audience::Person => format!(
                "{}: {} tasks, {} contexts and {} audit entries in {} bytes\n",
                file.as_deref().unwrap_or("standard output"),
                size.tasks,
                size.contexts,
                size.audit_entries,
                bytes
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_finished_backup_is_not_touched_by_one_that_opened_it_before() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("b");
        let content = b"Sabir backup 1\nB";
        let mut first = PartialFile::create(&target).unwrap();
        let late = open_partial(&first.partial).unwrap();
        assert!(is_at(&late, &first.partial) && late.try_lock().is_err());
        first.write(content).unwrap();
        let partial = first.partial.clone();
        first.finish().unwrap();
        // A process that another test starts has the file, and its lock, for a moment.
        while late.try_lock().is_err() {
            thread::yield_now();
        }
        assert!(!is_at(&late, &partial), "the lock alone does not tell");
        drop(late);

        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let rounds = (0..60).filter_map(|_| PartialFile::create(&target).ok());
                        rounds.for_each(|mut file| {
                            file.write(content).unwrap();
                            file.finish().unwrap();
                        });
                    })
                })
                .collect();
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(fs::read(&target).unwrap(), content);
                }
            });
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            is_over.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok));
        });
        assert!(!partial.exists());
    }
}
