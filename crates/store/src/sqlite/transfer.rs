//! Everything that is in an SQLite file, for another store; and everything of another store, into a file.
//!
//! The calls block while they read or write: whoever transfers a store does nothing else meanwhile.

use std::future::ready;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Result, Row, Transaction, params};
use sabir_model::Seq;

use crate::transfer::{
    ContextKey, ExportTasks, FIRST_SETTLED, ImportTasks, TransferMark, TransferSize, TransferredAgentState,
    TransferredAudit, TransferredGivenUp, TransferredSnapshot, TransferredTally, TransferredTask, TransferredWebhook,
    without_nul,
};
use crate::{OpenError, StoreError, StoreFuture, TaskNo};

use super::key::{key, keys, seq};
use super::lock::Lock;
use super::{SqliteSettings, connect, open, schema};

/// A file that is read. No server can open it meanwhile, unless it is the server that reads it.
pub struct SqliteExport {
    // Before the lock: closing a descriptor of the file drops the locks of SQLite.
    conn: Connection,
    _lock: Option<Lock>,
    /// The write-ahead log of a server that goes on writing.
    wal: Option<PathBuf>,
}

/// As long as one state of the file is read, what is written meanwhile cannot leave the write-ahead log. A reader that is too slow
/// must end before the log has filled the disk.
const LARGEST_WAL: u64 = 2 << 30;

impl SqliteExport {
    /// Opens the file without changing it. Refused while a server has it, and for files of an older format, which only a server
    /// brings forward.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let other = |reason: String| OpenError::Other { path: path.to_owned(), reason };
        if !path.is_file() {
            return Err(other("there is no such file".into()));
        }
        let lock = Lock::take(path)?;
        let failed = |error| open::open_error(path, error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags).map_err(failed)?;
        let format = open::format_of(&conn, path)?;
        if format < schema::FORMAT {
            let words = format!(
                "it has format {format}, and this version reads format {}; start this version of `sabir serve` with it once, \
                 and stop it again",
                schema::FORMAT
            );
            return Err(other(words));
        }
        // One state of the file for all reads.
        conn.execute_batch("BEGIN").map_err(failed)?;
        Ok(Self { conn, _lock: Some(lock), wal: None })
    }

    /// Reads the file of a server on a connection of its own, as it is now. The server goes on.
    pub(super) fn of_server(path: &Path) -> Result<Self, StoreError> {
        let conn = connect::reader(path)?;
        conn.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        Ok(Self { conn, _lock: None, wal: Some(wal.into()) })
    }

    fn check_wal(&self) -> Result<(), StoreError> {
        let length = self.wal.as_ref().and_then(|wal| wal.metadata().ok()).map_or(0, |wal| wal.len());
        if length <= LARGEST_WAL {
            return Ok(());
        }
        let words = format!(
            "so much was written meanwhile that the write-ahead log has {} MiB; read faster, or when less is written",
            length >> 20
        );
        Err(StoreError::Failed(words.into()))
    }
}

/// A file that is written.
pub struct SqliteImport {
    conn: Connection,
    _lock: Lock,
    path: PathBuf,
}

impl SqliteImport {
    /// Opens the file or makes it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let open::Opened { path, lock, conn, .. } = open::open(path, &SqliteSettings::default())?;
        let made = conn.execute_batch(
            "CREATE TABLE IF NOT EXISTS transfer (
                identity TEXT NOT NULL, task INTEGER NOT NULL, owner TEXT, agent TEXT, context TEXT,
                audit INTEGER NOT NULL, is_finished INTEGER NOT NULL)",
        );
        made.map_err(|error| open::open_error(&path, error))?;
        Ok(Self { conn, _lock: lock, path })
    }
}

const TASKS: &str =
    "SELECT tasks.no, owner, agent, id, context, born, tasks.state, time, turn_over, created, in_row, head,
        seq, body, artifacts, task_state.state, coalesce(cancel_requested, 0), coalesce(attempts, 0)
    FROM tasks LEFT JOIN snapshots USING (no) LEFT JOIN task_state USING (no) LEFT JOIN controls USING (no)
    WHERE tasks.no > ?1 ORDER BY tasks.no";

impl SqliteExport {
    fn read_task_parts(&self, after: u64, max_bytes: usize) -> Result<Vec<TransferredTask>> {
        let mut select = self.conn.prepare_cached(TASKS)?;
        let mut rows = select.query((TaskNo(after),))?;
        let (mut tasks, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let task = self.read_rows_of(task(row)?, max_bytes)?;
            bytes += task.bytes();
            tasks.push(task);
            if bytes >= max_bytes {
                break;
            }
        }
        Ok(tasks)
    }

    fn read_rows_of(&self, mut task: TransferredTask, max_bytes: usize) -> Result<TransferredTask> {
        task.packs = self.read_packs(task.no, 0, max_bytes)?;
        let (first, last) = keys(TaskNo(task.no)).into_inner();
        let mut inbox =
            self.conn.prepare_cached("SELECT key, body FROM inbox WHERE key BETWEEN ?1 AND ?2 ORDER BY key")?;
        let messages = inbox.query_map((first, last), |row| Ok((seq(row.get(0)?), row.get(1)?)))?;
        task.inbox = messages.collect::<Result<_>>()?;
        let no = TaskNo(task.no);
        let mut sent = self.conn.prepare_cached("SELECT owner, key FROM keys WHERE no = ?1 ORDER BY owner, key")?;
        task.keys = sent.query_map((no,), |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_>>()?;
        let mut webhooks = self.conn.prepare_cached(
            "SELECT id, url, receiver, secrets, dialect, all_events, sent, due, attempts, failing_since, reason
             FROM webhooks WHERE at_rest IN (0, 1) AND no = ?1 ORDER BY number",
        )?;
        task.webhooks = webhooks.query_map((no,), webhook)?.collect::<Result<_>>()?;
        let mut given_up = self.conn.prepare_cached(
            "SELECT id, event, attempts, reason, time, due FROM given_up WHERE no = ?1 ORDER BY number",
        )?;
        task.given_up = given_up.query_map((no,), event_given_up)?.collect::<Result<_>>()?;
        Ok(task)
    }

    fn read_packs(&self, task: u64, after: Seq, max_bytes: usize) -> Result<Vec<(Seq, Vec<u8>)>> {
        let (_, last) = keys(TaskNo(task)).into_inner();
        let mut select =
            self.conn.prepare_cached("SELECT key, body FROM events WHERE key > ?1 AND key <= ?2 ORDER BY key")?;
        let mut rows = select.query((key(TaskNo(task), after), last))?;
        let (mut packs, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let body: Vec<u8> = row.get(1)?;
            bytes += body.len();
            packs.push((seq(row.get(0)?), body));
            if bytes >= max_bytes {
                break;
            }
        }
        Ok(packs)
    }

    fn read_size(&self) -> Result<TransferSize> {
        let number = |sql: &str| self.conn.query_row(sql, (), |row| row.get::<_, Option<i64>>(0));
        let number = |sql: &str| number(sql).map(|number| number.unwrap_or(0) as u64);
        Ok(TransferSize {
            tasks: number("SELECT count(*) FROM tasks")?,
            contexts: number("SELECT count(*) FROM agent_state")?,
            audit_entries: number("SELECT count(*) FROM audit")?,
            highest_task: open::last_no(&self.conn)?.0,
            highest_audit: number(
                "SELECT max((SELECT coalesce(max(number), 0) FROM audit), (SELECT max(deleted) FROM audit_numbers))",
            )?,
        })
    }

    fn read_agent_states(&self, after: Option<ContextKey>, limit: usize) -> Result<Vec<TransferredAgentState>> {
        let mut select = self.conn.prepare_cached(
            "SELECT owner, agent, context, state FROM agent_state WHERE (owner, agent, context) > (?1, ?2, ?3)
             ORDER BY owner, agent, context LIMIT ?4",
        )?;
        let ContextKey { owner, agent, context } = after.unwrap_or(BEFORE_ALL);
        let rows = select.query_map((owner, agent, context, limit as i64), |row| {
            let key = ContextKey { owner: row.get(0)?, agent: row.get(1)?, context: row.get(2)? };
            Ok(TransferredAgentState { key, state: row.get(3)? })
        })?;
        rows.collect()
    }

    fn read_audit(&self, after: u64, limit: usize) -> Result<Vec<TransferredAudit>> {
        let mut select = self.conn.prepare_cached(
            "SELECT number, time, caller, peer, action, agent, task, no, owner, refusal, detail FROM audit
             WHERE number > ?1 ORDER BY number LIMIT ?2",
        )?;
        let rows = select.query_map((after as i64, limit as i64), |row| {
            Ok(TransferredAudit {
                number: row.get::<_, i64>(0)? as u64,
                time: row.get(1)?,
                caller: row.get(2)?,
                peer: row.get(3)?,
                action: row.get(4)?,
                agent: row.get(5)?,
                task: row.get(6)?,
                no: row.get::<_, Option<i64>>(7)?.map(|no| no as u64),
                owner: row.get(8)?,
                refusal: row.get::<_, Option<String>>(9)?.map(without_nul),
                detail: without_nul(row.get(10)?),
            })
        })?;
        rows.collect()
    }
}

/// No context has an empty id.
const BEFORE_ALL: ContextKey = ContextKey { owner: String::new(), agent: String::new(), context: String::new() };

fn task(row: &Row<'_>) -> Result<TransferredTask> {
    let snapshot = match row.get::<_, Option<i64>>(12)? {
        Some(last) => Some(TransferredSnapshot { seq: last as Seq, body: row.get(13)?, artifacts: row.get(14)? }),
        None => None,
    };
    Ok(TransferredTask {
        no: row.get::<_, i64>(0)? as u64,
        owner: row.get(1)?,
        agent: row.get(2)?,
        id: row.get(3)?,
        context: row.get(4)?,
        born: row.get(5)?,
        state: row.get(6)?,
        time: row.get(7)?,
        turn_over: row.get(8)?,
        created: row.get(9)?,
        in_row: row.get::<_, Option<i64>>(10)?.map(|all| all as Seq),
        head: row.get(11)?,
        snapshot,
        task_state: row.get(15)?,
        cancel_requested: row.get(16)?,
        attempts: row.get(17)?,
        ..TransferredTask::default()
    })
}

fn webhook(row: &Row<'_>) -> Result<TransferredWebhook> {
    Ok(TransferredWebhook {
        id: row.get(0)?,
        url: row.get(1)?,
        receiver: row.get(2)?,
        secrets: row.get(3)?,
        dialect: row.get(4)?,
        all_events: row.get(5)?,
        sent: row.get::<_, i64>(6)? as Seq,
        due: row.get(7)?,
        attempts: row.get(8)?,
        failing_since: row.get(9)?,
        reason: row.get::<_, Option<String>>(10)?.map(without_nul),
    })
}

fn event_given_up(row: &Row<'_>) -> Result<TransferredGivenUp> {
    Ok(TransferredGivenUp {
        id: row.get(0)?,
        event: row.get::<_, i64>(1)? as Seq,
        attempts: row.get(2)?,
        reason: without_nul(row.get(3)?),
        time: row.get(4)?,
        due: row.get(5)?,
    })
}

impl ExportTasks for SqliteExport {
    fn identity(&mut self) -> StoreFuture<'_, String> {
        answer(
            self.conn
                .query_row("SELECT no, id, created FROM tasks ORDER BY no LIMIT 1", (), |row| {
                    let (no, id, created): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    Ok(format!("{no} {created} {id}"))
                })
                .optional()
                .map(|first| first.unwrap_or_else(|| "empty".to_owned())),
        )
    }

    fn check_database(&mut self) -> StoreFuture<'_, Vec<String>> {
        let check = || -> Result<Vec<String>> {
            if let Some(name) = schema::missing(&self.conn)? {
                return Ok(vec![format!("{name} is missing or changed")]);
            }
            let mut check = self.conn.prepare("PRAGMA integrity_check(20)")?;
            let lines = check.query_map((), |row| row.get::<_, String>(0))?;
            lines.filter(|line| !matches!(line, Ok(line) if line == "ok")).collect()
        };
        answer(check())
    }

    fn size(&mut self) -> StoreFuture<'_, TransferSize> {
        answer(self.read_size())
    }

    fn task_parts(&mut self, after: u64, max_bytes: usize) -> StoreFuture<'_, Vec<TransferredTask>> {
        answer(self.check_wal().and_then(|()| Ok(self.read_task_parts(after, max_bytes)?)))
    }

    fn packs(&mut self, task: u64, after: Seq, max_bytes: usize) -> StoreFuture<'_, Vec<(Seq, Vec<u8>)>> {
        answer(self.check_wal().and_then(|()| Ok(self.read_packs(task, after, max_bytes)?)))
    }

    fn agent_states(&mut self, after: Option<ContextKey>, limit: usize) -> StoreFuture<'_, Vec<TransferredAgentState>> {
        answer(self.read_agent_states(after, limit))
    }

    fn audit(&mut self, after: u64, limit: usize) -> StoreFuture<'_, Vec<TransferredAudit>> {
        answer(self.read_audit(after, limit))
    }

    fn tallies(&mut self) -> StoreFuture<'_, Vec<TransferredTally>> {
        let read = || -> Result<Vec<TransferredTally>> {
            let mut select = self.conn.prepare("SELECT owner, agent, state, n FROM tallies WHERE n <> 0")?;
            let rows = select.query_map((), |row| {
                Ok(TransferredTally { owner: row.get(0)?, agent: row.get(1)?, state: row.get(2)?, tasks: row.get(3)? })
            })?;
            rows.collect()
        };
        answer(read())
    }
}

impl SqliteImport {
    fn start(&mut self, identity: &str) -> Result<TransferMark, StoreError> {
        let tx = self.conn.transaction()?;
        let known =
            tx.query_row("SELECT identity, task, owner, agent, context, audit, is_finished FROM transfer", (), |row| {
                let key = match (row.get(2)?, row.get(3)?, row.get(4)?) {
                    (Some(owner), Some(agent), Some(context)) => Some(ContextKey { owner, agent, context }),
                    _ => None,
                };
                let (task, audit): (i64, i64) = (row.get(1)?, row.get(5)?);
                let mark =
                    TransferMark { task: task as u64, context: key, audit: audit as u64, is_finished: row.get(6)? };
                Ok((row.get::<_, String>(0)?, mark))
            });
        let refused = |why: &str| {
            let path = self.path.display();
            Err(StoreError::Failed(format!("{path} {why}; choose a file that is not there yet").into()))
        };
        match known.optional()? {
            Some((of, mark)) if of == identity => return Ok(mark),
            Some(_) => return refused("has the tasks of another store"),
            None => {}
        }
        let has_rows = "SELECT EXISTS (SELECT 1 FROM tasks) OR EXISTS (SELECT 1 FROM audit)";
        if tx.query_row(has_rows, (), |row| row.get::<_, bool>(0))? {
            return refused("has tasks already");
        }
        tx.execute("INSERT INTO transfer (identity, task, audit, is_finished) VALUES (?1, 0, 0, 0)", (identity,))?;
        tx.commit()?;
        Ok(TransferMark::default())
    }

    fn write_tasks(&mut self, tasks: &[TransferredTask]) -> Result<()> {
        let tx = self.conn.transaction()?;
        for task in tasks {
            write_task(&tx, task)?;
        }
        if let Some(last) = tasks.last() {
            tx.execute("UPDATE transfer SET task = ?1", (last.no as i64,))?;
        }
        tx.commit()
    }

    fn write_agent_states(&mut self, states: &[TransferredAgentState]) -> Result<()> {
        let tx = self.conn.transaction()?;
        for TransferredAgentState { key: ContextKey { owner, agent, context }, state } in states {
            tx.prepare_cached("INSERT INTO agent_state (owner, agent, context, state) VALUES (?1, ?2, ?3, ?4)")?
                .execute((owner, agent, context, state))?;
        }
        if let Some(ContextKey { owner, agent, context }) = states.last().map(|state| &state.key) {
            tx.execute("UPDATE transfer SET owner = ?1, agent = ?2, context = ?3", (owner, agent, context))?;
        }
        tx.commit()
    }

    fn write_audit(&mut self, entries: &[TransferredAudit]) -> Result<()> {
        let tx = self.conn.transaction()?;
        for entry in entries {
            let mut insert = tx.prepare_cached(
                "INSERT INTO audit (number, time, caller, peer, action, agent, task, no, owner, refusal, detail)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?;
            insert.execute(params![
                entry.number as i64,
                entry.time,
                entry.caller,
                entry.peer,
                entry.action,
                entry.agent,
                entry.task,
                entry.no.map(|no| no as i64),
                entry.owner,
                entry.refusal,
                entry.detail,
            ])?;
        }
        if let Some(last) = entries.last() {
            tx.execute("UPDATE transfer SET audit = ?1", (last.number as i64,))?;
        }
        tx.commit()
    }

    fn end(&mut self, size: TransferSize) -> Result<()> {
        let tx = self.conn.transaction()?;
        tx.execute("UPDATE swept SET no = max(no, ?1)", (size.highest_task as i64,))?;
        tx.execute("UPDATE audit_numbers SET deleted = max(deleted, ?1)", (size.highest_audit as i64,))?;
        tx.execute(
            "UPDATE webhook_numbers SET highest = max(highest, (SELECT coalesce(max(number), 0) FROM webhooks))",
            (),
        )?;
        tx.execute("UPDATE transfer SET is_finished = 1", ())?;
        tx.commit()
    }
}

fn write_task(tx: &Transaction<'_>, task: &TransferredTask) -> Result<()> {
    let no = TaskNo(task.no);
    tx.prepare_cached(
        "INSERT INTO tasks (no, owner, agent, id, context, born, state, time, turn_over, created, in_row, head)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?
    .execute(params![
        no,
        task.owner,
        task.agent,
        task.id,
        task.context,
        task.born,
        task.state,
        task.time,
        task.turn_over,
        task.created,
        task.in_row.map(|all| all as i64),
        task.head,
    ])?;
    tx.prepare_cached(
        "INSERT INTO tallies (owner, agent, state, n) VALUES (?1, ?2, ?3, 1) ON CONFLICT DO UPDATE SET n = n + 1",
    )?
    .execute((&task.owner, &task.agent, task.state))?;
    for (last, body) in &task.packs {
        tx.prepare_cached("INSERT INTO events (key, body) VALUES (?1, ?2)")?.execute((key(no, *last), body))?;
    }
    for (place, body) in &task.inbox {
        tx.prepare_cached("INSERT INTO inbox (key, body) VALUES (?1, ?2)")?.execute((key(no, *place), body))?;
    }
    if let Some(TransferredSnapshot { seq, body, artifacts }) = &task.snapshot {
        tx.prepare_cached("INSERT INTO snapshots (no, seq, body, artifacts) VALUES (?1, ?2, ?3, ?4)")?.execute((
            no,
            *seq as i64,
            body,
            artifacts,
        ))?;
    }
    for (sender, sent) in &task.keys {
        tx.prepare_cached("INSERT INTO keys (owner, agent, key, no) VALUES (?1, ?2, ?3, ?4)")?.execute((
            sender,
            &task.agent,
            sent,
            no,
        ))?;
    }
    if let Some(state) = &task.task_state {
        tx.prepare_cached("INSERT INTO task_state (no, state) VALUES (?1, ?2)")?.execute((no, state))?;
    }
    if task.cancel_requested || task.attempts > 0 {
        tx.prepare_cached("INSERT INTO controls (no, cancel_requested, attempts) VALUES (?1, ?2, ?3)")?.execute((
            no,
            task.cancel_requested,
            task.attempts,
        ))?;
    }
    for webhook in &task.webhooks {
        let at_rest = webhook.due.is_none() && task.state >= FIRST_SETTLED;
        tx.prepare_cached(
            "INSERT INTO webhooks (at_rest, no, number, id, url, receiver, secrets, dialect, all_events, sent, due, attempts,
                 failing_since, reason)
             VALUES (?1, ?2, (SELECT coalesce(max(highest), 0) + 1 FROM webhook_numbers), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
                 ?12, ?13)",
        )?
        .execute(params![
            at_rest,
            no,
            webhook.id,
            webhook.url,
            webhook.receiver,
            webhook.secrets,
            webhook.dialect,
            webhook.all_events,
            webhook.sent as i64,
            webhook.due,
            webhook.attempts,
            webhook.failing_since,
            webhook.reason,
        ])?;
        tx.prepare_cached("UPDATE webhook_numbers SET highest = highest + 1")?.execute(())?;
    }
    for TransferredGivenUp { id, event, attempts, reason, time, due } in &task.given_up {
        tx.prepare_cached(
            "INSERT INTO given_up (no, id, event, attempts, reason, time, due) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((no, id, *event as i64, attempts, reason, time, due))?;
    }
    Ok(())
}

impl ImportTasks for SqliteImport {
    fn begin(&mut self, identity: &str) -> StoreFuture<'_, TransferMark> {
        answer(self.start(identity))
    }

    fn put_tasks(&mut self, tasks: Vec<TransferredTask>) -> StoreFuture<'_, ()> {
        answer(self.write_tasks(&tasks))
    }

    /// A store of one server has no homes.
    fn put_agent_states(&mut self, states: Vec<TransferredAgentState>, _home: String) -> StoreFuture<'_, ()> {
        answer(self.write_agent_states(&states))
    }

    fn put_audit(&mut self, entries: Vec<TransferredAudit>) -> StoreFuture<'_, ()> {
        answer(self.write_audit(&entries))
    }

    fn finish(&mut self, size: TransferSize) -> StoreFuture<'_, ()> {
        answer(self.end(size))
    }
}

fn answer<'a, T: Send + 'a, E: Into<StoreError>>(done: Result<T, E>) -> StoreFuture<'a, T> {
    Box::pin(ready(done.map_err(Into::into)))
}
