//! `sabir store migrate`: copies everything from one store to another, and compares both at the end.
//!
//! | step    | what                                                                                   |
//! |---------|----------------------------------------------------------------------------------------|
//! | begin   | no server uses the source; the target is empty, or has a mark of this very source        |
//! | copy    | tasks by number, then contexts, then the audit log; each batch with the mark, in one transaction |
//! | finish  | numbers that were used are not used again                                               |
//! | compare | all of it is read from both stores; each task must have the same bytes, and still no server uses the source |

use anyhow::{Context, anyhow, bail};
use sabir_outbound::sha256;
use sabir_store::transfer::{ExportTasks, ImportTasks, TransferMark, TransferredTask};
use serde_json::json;

use crate::cli::MigrateOptions;
use crate::config::{self, Audience, ClusterSection, StoreUrl};
use crate::store_source::{open_export, open_import};
use crate::transfer_progress::ProgressLine;

const BATCH_BYTES: usize = 4 << 20;
const BATCH_ROWS: usize = 1000;

/// What both stores have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub tasks: u64,
    pub events: u64,
    pub contexts: u64,
    pub audit_entries: u64,
    /// Of everything in every task, in order.
    pub digest: String,
    /// An earlier run had come so far.
    pub resumed: TransferMark,
}

pub fn run(options: &MigrateOptions, mut progress: ProgressLine) -> anyhow::Result<Report> {
    let parse = |flag: &str, text: &str| config::parse_store_url(text).map_err(|words| anyhow!("{flag} {words}"));
    let (from, to) = (parse("--from", &options.from)?, parse("--to", &options.to)?);
    if from == to {
        bail!("--from and --to name the same store");
    }
    let home = options.home.clone().unwrap_or_else(|| ClusterSection::default().node());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(migrate(&from, &to, &home, &mut progress))
}

async fn migrate(from: &StoreUrl, to: &StoreUrl, home: &str, progress: &mut ProgressLine) -> anyhow::Result<Report> {
    let mut source = open_export(from).await.context("--from")?;
    refuse_live_nodes(&mut *source).await.context("--from")?;
    let mut target = open_import(to).await.context("--to")?;
    let resumed = copy(&mut *source, &mut *target, home, progress).await?;
    // The target is opened anew, so that what is compared is what was stored.
    drop(target);
    let mut target = open_export(to).await.context("--to")?;
    let report = compare(&mut *source, &mut *target, progress).await?;
    progress.clear();
    // Somebody may have started a server since.
    refuse_live_nodes(&mut *source).await.context("--from")?;
    Ok(Report { resumed, ..report })
}

/// What a server stores during the copy would be lost: servers that are started with the target do not have it.
async fn refuse_live_nodes(source: &mut dyn ExportTasks) -> anyhow::Result<()> {
    let nodes = source.live_nodes().await?;
    if nodes.is_empty() {
        return Ok(());
    }
    let (word, names) = (if nodes.len() == 1 { "node" } else { "nodes" }, nodes.join(", "));
    bail!(
        "the store is in use by {word} {names}, and the target would not have what they store meanwhile; stop all servers, and run \
         this command again"
    )
}

/// Returns how far an earlier run had come.
async fn copy(
    source: &mut dyn ExportTasks,
    target: &mut dyn ImportTasks,
    home: &str,
    progress: &mut ProgressLine,
) -> anyhow::Result<TransferMark> {
    let (identity, size) = (source.identity().await?, source.size().await?);
    let resumed = target.begin(&identity).await?;
    if resumed.is_finished {
        return Ok(resumed);
    }
    let (mut last, mut copied) = (resumed.task, 0);
    loop {
        let batch = source.tasks(last, BATCH_BYTES).await?;
        let Some(newest) = batch.last() else { break };
        last = newest.no;
        copied += batch.len() as u64;
        target.put_tasks(batch).await.context("cannot write to the target; the next run continues here")?;
        progress.show("copying", copied, size.tasks);
    }
    let mut after = resumed.context.clone();
    loop {
        let batch = source.agent_states(after, BATCH_ROWS).await?;
        let Some(newest) = batch.last() else { break };
        after = Some(newest.key.clone());
        target.put_agent_states(batch, home.to_owned()).await?;
    }
    let mut after = resumed.audit;
    loop {
        let batch = source.audit(after, BATCH_ROWS).await?;
        let Some(newest) = batch.last() else { break };
        after = newest.number;
        target.put_audit(batch).await?;
    }
    target.finish(size).await?;
    Ok(resumed)
}

async fn compare(
    source: &mut dyn ExportTasks,
    target: &mut dyn ExportTasks,
    progress: &mut ProgressLine,
) -> anyhow::Result<Report> {
    let size = source.size().await?;
    let mut report = Report::default();
    let mut digests = Vec::new();
    let (mut ours, mut theirs) = (Tasks::default(), Tasks::default());
    loop {
        match (ours.next(source).await?, theirs.next(target).await?) {
            (None, None) => break,
            (Some(task), Some(copy)) if task == copy => {
                report.tasks += 1;
                report.events += task.last_event();
                digests.extend_from_slice(&sha256(&task.canonical()));
            }
            (Some(task), copy) => {
                let what = match copy {
                    Some(copy) if copy.no == task.no => "is not the same in both stores",
                    _ => "is not in the target",
                };
                bail!("task {} {what}: {CHANGED}", task.id);
            }
            (None, Some(copy)) => bail!("task {} is in the target alone: {CHANGED}", copy.id),
        }
        progress.show("comparing", report.tasks, size.tasks);
    }
    let mut after = None;
    loop {
        let batch = source.agent_states(after.clone(), BATCH_ROWS).await?;
        if batch != target.agent_states(after, BATCH_ROWS).await? {
            bail!("what agents remember of contexts is not the same in both stores: {CHANGED}");
        }
        report.contexts += batch.len() as u64;
        let Some(newest) = batch.last() else { break };
        after = Some(newest.key.clone());
    }
    let mut after = 0;
    loop {
        let batch = source.audit(after, BATCH_ROWS).await?;
        if batch != target.audit(after, BATCH_ROWS).await? {
            bail!("the audit log is not the same in both stores: {CHANGED}");
        }
        report.audit_entries += batch.len() as u64;
        let Some(newest) = batch.last() else { break };
        after = newest.number;
    }
    let (mut ours, mut theirs) = (source.tallies().await?, target.tallies().await?);
    ours.sort();
    theirs.sort();
    if ours != theirs {
        bail!("the totals of tasks are not the same in both stores: {CHANGED}");
    }
    report.digest = sha256(&digests).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(report)
}

const CHANGED: &str =
    "a server has used one of them since it was copied; empty the target, stop all servers and begin again";

/// The tasks of a store, one by one.
#[derive(Default)]
struct Tasks {
    batch: std::vec::IntoIter<TransferredTask>,
    last: u64,
}

impl Tasks {
    async fn next(&mut self, store: &mut dyn ExportTasks) -> anyhow::Result<Option<TransferredTask>> {
        if self.batch.len() == 0 {
            self.batch = store.tasks(self.last, BATCH_BYTES).await?.into_iter();
        }
        let next = self.batch.next();
        self.last = next.as_ref().map_or(self.last, |task| task.no);
        Ok(next)
    }
}

impl Report {
    pub fn show(&self, audience: Audience) -> String {
        let Report { tasks, events, contexts, audit_entries, digest, resumed } = self;
        if audience == Audience::Program {
            let report = json!({"tasks": tasks, "events": events, "contexts": contexts, "audit_entries": audit_entries,
                "digest": format!("sha256:{digest}"), "resumed_after": resumed.task, "was_finished": resumed.is_finished});
            return format!("{report}\n");
        }
        let before = match resumed {
            TransferMark { is_finished: true, .. } => "An earlier run had copied everything.\n".to_owned(),
            TransferMark { task: 0, .. } => String::new(),
            TransferMark { task, .. } => format!("An earlier run had copied the tasks up to number {task}.\n"),
        };
        format!(
            "{before}{tasks} tasks with {events} events, {contexts} contexts and {audit_entries} audit entries are the same in \
             both stores.\nsha256 of all tasks: {digest}\nNow start the servers with the new store; the old one was not changed.\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sabir_model::{
        AgentId, Birth, ContextId, Created, Event, Message, MessageId, Owner, Part, Role, TaskId, Timestamp,
    };
    use sabir_store::backup::BackupStream;
    use sabir_store::{
        Append, AppendTarget, ClaimingAgent, Cluster, Durability, NewTask, Ownership, PostgresSettings, PostgresStore,
        SideRow, SqliteStore, Store,
    };

    use super::*;

    fn message(text: &str) -> Message {
        Message {
            id: MessageId::parse("m").unwrap(),
            role: Role::User,
            parts: vec![Part::text(text)],
            task: None,
            context: None,
            references: Vec::new(),
            extensions: Vec::new(),
            metadata: None,
            request_metadata: None,
            request: None,
            answers: None,
        }
    }

    /// Tasks with these numbers, each with a long log if it is odd.
    async fn fill(path: &Path, tasks: std::ops::RangeInclusive<u64>) {
        let store = SqliteStore::open(path, Durability::Process).unwrap();
        for number in tasks {
            let text = if number % 2 == 0 { "short".to_owned() } else { "x".repeat(5000) };
            let created = Created {
                message: message(&text).into(),
                metadata: None,
                note: None,
                time: Timestamp::from_millis(1_770_000_000_000 + number as i64),
            };
            let created = Event::Created(created);
            let new = NewTask {
                owner: &Owner::new("acme", "token:alice"),
                agent: &AgentId::parse("demo").unwrap(),
                task: &TaskId::parse(format!("t{number}")).unwrap(),
                context: &ContextId::parse(format!("c{number}")).unwrap(),
                born: Birth(1),
                key: None,
                send_digest: None,
            };
            let rows = [
                SideRow::InboxAdd(message("later").into()),
                SideRow::AgentState(Some(format!("session {number}"))),
                SideRow::TaskState(Some("remembered".into())),
                SideRow::Attempts(2),
            ];
            let append = Append {
                target: AppendTarget::New(new),
                events: &[&created],
                after: 0,
                snapshot: None,
                side_rows: &rows,
                ownership: Ownership::default(),
            };
            store.append(append).await.unwrap();
        }
        store.close();
    }

    async fn migrate_file(from: &Path, to: &Path) -> anyhow::Result<Report> {
        let (from, to) = (StoreUrl::Sqlite(from.to_owned()), StoreUrl::Sqlite(to.to_owned()));
        migrate(&from, &to, "here", &mut ProgressLine::nowhere()).await
    }

    #[tokio::test]
    async fn everything_is_copied_and_a_second_run_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from.db"), folder.path().join("to.db"));
        fill(&from, 1..=30).await;
        let before = std::fs::read(&from).unwrap();
        let first = migrate_file(&from, &to).await.unwrap();
        assert_eq!((first.tasks, first.events, first.contexts), (30, 30, 30));
        assert_eq!(first.resumed, TransferMark::default());
        let again = migrate_file(&from, &to).await.unwrap();
        assert!(again.resumed.is_finished && again.digest == first.digest);
        assert!(std::fs::read(&from).unwrap() == before, "the source was changed");

        let mut copy = open_export(&StoreUrl::Sqlite(to.clone())).await.unwrap();
        let checked = crate::store_check::check(&mut *copy, &mut ProgressLine::nowhere()).await.unwrap();
        assert!(checked.is_well() && checked.tasks == 30 && checked.events == 30, "{checked:?}");
        drop(copy);
        let store = SqliteStore::open(&to, Durability::Process).unwrap();
        assert_eq!(store.unfinished().await.unwrap().len(), 30);
        assert_eq!(store.highest_no().0, 30);
        store.close();
    }

    #[tokio::test]
    async fn a_run_that_broke_off_is_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from.db"), folder.path().join("to.db"));
        fill(&from, 1..=10).await;
        {
            let mut source = sabir_store::SqliteExport::open(&from).unwrap();
            let mut target = sabir_store::SqliteImport::open(&to).unwrap();
            target.begin(&source.identity().await.unwrap()).await.unwrap();
            let some = source.tasks(0, 6000).await.unwrap();
            assert!(some.len() < 10);
            target.put_tasks(some).await.unwrap();
        }
        let report = migrate_file(&from, &to).await.unwrap();
        assert!(report.resumed.task > 0 && !report.resumed.is_finished && report.tasks == 10, "{report:?}");
    }

    #[tokio::test]
    async fn a_target_with_other_tasks_and_a_file_in_use_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to, other] = ["from.db", "to.db", "other.db"].map(|name| folder.path().join(name));
        fill(&from, 1..=3).await;
        fill(&to, 7..=8).await;
        let refusal = format!("{:#}", migrate_file(&from, &to).await.unwrap_err());
        assert!(refusal.contains("has tasks already"), "{refusal}");
        fill(&other, 5..=6).await;
        let target = folder.path().join("target.db");
        migrate_file(&from, &target).await.unwrap();
        let refusal = format!("{:#}", migrate_file(&other, &target).await.unwrap_err());
        assert!(refusal.contains("has the tasks of another store"), "{refusal}");
        let absent = format!("{:#}", migrate_file(&folder.path().join("none.db"), &other).await.unwrap_err());
        assert!(absent.contains("there is no such file"), "{absent}");

        let server = SqliteStore::open(&from, Durability::Process).unwrap();
        let refusal = format!("{:#}", migrate_file(&from, &other).await.unwrap_err());
        assert!(refusal.contains("is in use by a server; stop it first"), "{refusal}");
        server.close();
    }

    #[tokio::test]
    async fn a_source_that_has_changed_since_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from.db"), folder.path().join("to.db"));
        fill(&from, 1..=3).await;
        migrate_file(&from, &to).await.unwrap();
        fill(&from, 4..=4).await;
        let refusal = format!("{:#}", migrate_file(&from, &to).await.unwrap_err());
        assert!(refusal.contains("task t4 is not in the target"), "{refusal}");
    }

    #[tokio::test]
    async fn servers_that_use_a_postgres_keep_it_from_being_copied() {
        let Some(postgres) = sabir_testkit::postgres::Postgres::shared() else {
            return sabir_testkit::postgres::report_skipped(1);
        };
        let url = postgres.fresh_database();
        let store = config::parse_store_url(&url).unwrap();
        let open = async |name| PostgresStore::open(PostgresSettings::new(&*url, name, "0")).await.unwrap();
        let (one, other) = (open("one").await, open("other").await);
        let mut source = open_export(&store).await.unwrap();
        let refusal = refuse_live_nodes(&mut *source).await.unwrap_err().to_string();
        assert!(refusal.contains("in use by nodes one, other"), "{refusal}");
        // A backup is of one moment, and servers go on.
        let mut backup = BackupStream::new(source, "0", Timestamp::from_millis(0));
        let mut bytes = 0;
        while let Some(piece) = backup.next_piece().await.unwrap() {
            bytes += piece.len();
        }
        assert!(bytes > 0);
        for node in [&one, &other] {
            node.leave().await.unwrap();
        }
        drop((one, other));

        let mut source = open_export(&store).await.unwrap();
        refuse_live_nodes(&mut *source).await.unwrap();
        // One comes and goes while the copy is made.
        let brief = open("brief").await;
        brief.leave().await.unwrap();
        drop(brief);
        let refusal = refuse_live_nodes(&mut *source).await.unwrap_err().to_string();
        assert!(refusal.contains("in use by node brief"), "{refusal}");
        refuse_live_nodes(&mut *open_export(&store).await.unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn a_store_goes_to_postgres_and_back() {
        let Some(postgres) = sabir_testkit::postgres::Postgres::shared() else {
            return sabir_testkit::postgres::report_skipped(1);
        };
        let folder = tempfile::tempdir().unwrap();
        let (from, back) = (folder.path().join("from.db"), folder.path().join("back.db"));
        fill(&from, 1..=30).await;
        let there = config::parse_store_url(&postgres.fresh_database()).unwrap();
        let third_path = folder.path().join("third.db");
        let [from, back, third] = [from, back, third_path.clone()].map(StoreUrl::Sqlite);
        let first = migrate(&from, &there, "here", &mut ProgressLine::nowhere()).await.unwrap();
        assert_eq!((first.tasks, first.events, first.contexts), (30, 30, 30));
        let again = migrate(&from, &there, "here", &mut ProgressLine::nowhere()).await.unwrap();
        assert!(again.resumed.is_finished && again.digest == first.digest);
        let mut copy = open_export(&there).await.unwrap();
        let checked = crate::store_check::check(&mut *copy, &mut ProgressLine::nowhere()).await.unwrap();
        assert!(checked.is_well() && checked.tasks == 30, "{checked:?}");
        drop(copy);
        let returned = migrate(&there, &back, "here", &mut ProgressLine::nowhere()).await.unwrap();
        assert_eq!(returned.digest, first.digest);
        assert_eq!((returned.contexts, returned.audit_entries), (first.contexts, first.audit_entries));
        let other = migrate(&back, &there, "here", &mut ProgressLine::nowhere()).await.unwrap();
        assert!(other.resumed.is_finished, "the copy of a store is that store");

        // A server takes up what is not finished, and goes on with the numbers.
        let StoreUrl::Postgres(url) = &there else { unreachable!("it is one") };
        let server = PostgresStore::open(PostgresSettings::new(url.with_password(), "here", "0")).await.unwrap();
        let demo = ClaimingAgent { id: AgentId::parse("demo").unwrap(), most_runs: None, free_slots: 0 };
        let claimed = server.claim(vec![demo], 100).await.unwrap();
        assert_eq!(claimed.len(), 30);
        assert!(claimed.iter().all(|task| task.lost_node.as_deref() == Some("migration")));
        assert!(claimed.iter().all(|task| task.unfinished.inbox.len() == 1 && task.unfinished.attempts == 2));
        // What it stores from now on would be lost.
        let live = migrate(&there, &third, "here", &mut ProgressLine::nowhere()).await.unwrap_err();
        let live = format!("{live:#}");
        assert!(
            live.contains("--from: the store is in use by node here, and the target")
                && live.contains("stop all servers"),
            "{live}"
        );
        assert!(!third_path.exists(), "the target was made");
        let in_use = migrate(&back, &there, "here", &mut ProgressLine::nowhere()).await.unwrap_err();
        assert!(format!("{in_use:#}").contains("is in use by node here; stop all servers first"), "{in_use:#}");
    }
}
