//! Writes one append as rows of the open transaction.
//!
//! All conditions are checked before the first row is written, so that a refused append leaves nothing behind in a
//! transaction that it shares with others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{Connection, Error, OptionalExtension, Result, Statement, params};
use sabir_model::{AgentId, Owner, Seq, State, TaskId};

use crate::encode::{Encoded, EncodedNewTask, EncodedSideRow, EncodedSnapshot, EncodedTarget, LatestStatus};
use crate::head::{HeadChange, Placement, RowLog};
use crate::{AppendResult, Epoch, MAX_EVENTS_WITHOUT_SNAPSHOT, SentKey, StoreError, TaskNo};

use super::audit::AuditWriter;
use super::failure::{ReadError, is_duplicate};
use super::key::{MAX_NO, MAX_SEQ, key, keys, seq};
use super::rows::{self, last_key, state_code};
use super::task_counts::TaskCounts;
use super::webhooks::Watched;

pub(super) struct Appender<'c> {
    conn: &'c Connection,
    pub task_counts: TaskCounts<'c>,
    pub watched: Watched,
    pub audit: AuditWriter,
    last_no: Arc<AtomicU64>,
    insert_events: Statement<'c>,
    insert_task: Statement<'c>,
    select_row: Statement<'c>,
    set_status: Statement<'c>,
    set_log: Statement<'c>,
}

/// Events with more bytes than this get a new snapshot, however few they are.
const LARGE_APPEND: usize = 64 << 10;

/// The row of a task before the append.
struct RowBefore {
    /// The owner, the agent and the state, if they are needed.
    status: Option<(Owner, AgentId, State)>,
    log: RowLog,
}

fn place(log: RowLog, append: &Encoded) -> Placement {
    log.place(append.events.as_bytes(), append.events.len() as Seq, &append.head)
}

/// Why an append is not stored.
pub(super) enum AppendError {
    /// Nothing of it was written; the others of its group can be committed.
    Refused(StoreError),
    /// Some of it may be written already.
    Partial(Error),
}

impl From<Error> for AppendError {
    fn from(error: Error) -> Self {
        AppendError::Partial(error)
    }
}

impl From<ReadError> for AppendError {
    fn from(unread: ReadError) -> Self {
        AppendError::Refused(match unread {
            ReadError::Store(error) => error,
            ReadError::Damaged(damage) => StoreError::Failed(damage.0.into()),
        })
    }
}

impl<'c> Appender<'c> {
    pub fn new(conn: &'c Connection, last_no: Arc<AtomicU64>, watched: Watched) -> Result<Self> {
        Ok(Self {
            conn,
            task_counts: TaskCounts::new(conn)?,
            watched,
            audit: AuditWriter::load(conn)?,
            last_no,
            insert_events: conn.prepare("INSERT INTO events (key, body) VALUES (?1, ?2)")?,
            insert_task: conn.prepare(
                "INSERT INTO tasks (no, owner, agent, id, context, born, state, time, turn_over, created, in_row, head)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?,
            select_row: conn.prepare(concat!(
                "SELECT in_row, ",
                last_key!(),
                ", head, state, owner, agent FROM tasks WHERE no = ?1"
            ))?,
            set_status: conn.prepare(
                "UPDATE tasks SET state = ?2, time = ?3, turn_over = ?4, in_row = ?5, head = ?6 WHERE no = ?1",
            )?,
            set_log: conn.prepare("UPDATE tasks SET in_row = ?2, head = ?3 WHERE no = ?1")?,
        })
    }

    pub fn append(&mut self, append: &Encoded) -> Result<AppendResult, AppendError> {
        let no = match &append.target {
            EncodedTarget::New(new) => self.create(new, append)?,
            EncodedTarget::Known(no, latest) => {
                self.change(*no, *latest, append)?;
                *no
            }
        };
        if let Some(snapshot) = &append.snapshot {
            self.write_snapshot(no, append, snapshot)?;
        }
        let mut bytes = append.added_bytes();
        for row in &append.side_rows {
            bytes -= self.write_side_row(no, append, row)?;
        }
        self.watched.note_append(self.conn, no, append)?;
        // A new task that settles at once has no controls, unless they come with it.
        if append.settles() && (append.after > 0 || append.has_controls()) {
            self.conn.prepare_cached("DELETE FROM controls WHERE no = ?1")?.execute((no,))?;
        }
        Ok(AppendResult { task: no, last: append.last(), bytes, epoch: Epoch::default() })
    }

    fn create(&mut self, new: &EncodedNewTask, append: &Encoded) -> Result<TaskNo, AppendError> {
        if let Some(made) = self.task_of_key(new)? {
            return Err(AppendError::Refused(StoreError::Exists(made)));
        }
        let no = TaskNo(self.last_no.load(Ordering::Relaxed) + 1);
        if no.0 >= MAX_NO {
            return Err(AppendError::Refused(StoreError::Failed("the task numbers are used up".into())));
        }
        let LatestStatus { state, time, turn_over } = new.latest;
        let (owner, agent) = (new.owner.as_key(), new.agent.as_str());
        let (task, context, born) = (new.task.as_str(), new.context.as_str(), new.born.0);
        let (time, created) = (time.as_millis(), new.created.as_millis());
        let placement = place(RowLog::empty(), append);
        let (in_row, head) = match &placement {
            Placement::Row(row) | Placement::Log { row: Some(row), .. } => (row.all.map(|all| all as i64), &row.head),
            Placement::Log { row: None, .. } => (None, &None),
        };
        let row = (no, owner, agent, task, context, born, state_code(state), time, turn_over, created);
        let row = params![row.0, row.1, row.2, row.3, row.4, row.5, row.6, row.7, row.8, row.9, in_row, head];
        match self.insert_task.execute(row) {
            Ok(_) => {}
            Err(error) if is_duplicate(&error) => {
                return Err(AppendError::Refused(StoreError::Exists(new.task.clone())));
            }
            Err(error) => return Err(error.into()),
        }
        self.last_no.store(no.0, Ordering::Relaxed);
        if let Some(key) = &new.key {
            let mut insert =
                self.conn.prepare_cached("INSERT INTO keys (owner, agent, key, no) VALUES (?1, ?2, ?3, ?4)")?;
            insert.execute((owner, agent, key.as_str(), no))?;
        }
        self.task_counts.change(new.owner.clone(), new.agent.clone(), state, 1);
        self.write_events(no, append, &placement)?;
        Ok(no)
    }

    /// The task that was created with the same key before.
    fn task_of_key(&self, new: &EncodedNewTask) -> Result<Option<TaskId>, AppendError> {
        let Some(key) = &new.key else { return Ok(None) };
        let mut find = self.conn.prepare_cached(
            "SELECT id FROM keys JOIN tasks USING (no) WHERE keys.owner = ?1 AND keys.agent = ?2 AND key = ?3",
        )?;
        let mut rows = find.query((new.owner.as_key(), new.agent.as_str(), key.as_str()))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(rows::id(row, 0, |text| TaskId::parse(text))?))
    }

    fn change(&mut self, no: TaskNo, latest: Option<LatestStatus>, append: &Encoded) -> Result<(), AppendError> {
        let before = self.row_before(no, append, latest.is_some())?;
        self.check_keys(no, append)?;
        let placement = place(before.log, append);
        let row = match &placement {
            Placement::Row(row) => Some(row),
            Placement::Log { row, .. } => row.as_ref(),
        };
        let unknown = RowLog::default();
        match (latest.zip(before.status), row) {
            (Some((latest, (owner, agent, state))), row) => {
                if state != latest.state {
                    self.task_counts.change(owner.clone(), agent.clone(), state, -1);
                    self.task_counts.change(owner, agent, latest.state, 1);
                }
                let RowLog { head, all } = row.unwrap_or(&unknown);
                let (state, time) = (state_code(latest.state), latest.time.as_millis());
                self.set_status.execute((no, state, time, latest.turn_over, all.map(|all| all as i64), head))?;
            }
            (None, Some(RowLog { head, all })) => {
                self.set_log.execute((no, all.map(|all| all as i64), head))?;
            }
            (None, None) => {}
        }
        self.write_events(no, append, &placement)?;
        Ok(())
    }

    /// Refuses an append with a key that is known already.
    fn check_keys(&self, no: TaskNo, append: &Encoded) -> Result<(), AppendError> {
        for SentKey { key, sender } in append.sent_keys() {
            let mut find = self.conn.prepare_cached(
                "SELECT made.id FROM tasks JOIN keys ON keys.owner = coalesce(?2, tasks.owner) AND keys.agent = tasks.agent
                 JOIN tasks AS made ON made.no = keys.no WHERE tasks.no = ?1 AND key = ?3",
            )?;
            let mut rows = find.query((no, sender.as_ref().map(Owner::as_key), key.as_str()))?;
            if let Some(row) = rows.next()? {
                let made = rows::id(row, 0, |text| TaskId::parse(text))?;
                return Err(AppendError::Refused(StoreError::Exists(made)));
            }
        }
        Ok(())
    }

    /// Reads the row, and checks that the append begins where the log ends and that there are numbers left. A damaged
    /// log accepts appends too, so that its task can be settled.
    fn row_before(&mut self, no: TaskNo, append: &Encoded, with_status: bool) -> Result<RowBefore, AppendError> {
        let mut rows = self.select_row.query((no,))?;
        let row = rows.next()?.ok_or(AppendError::Refused(StoreError::Conflict))?;
        let all = row.get::<_, Option<i64>>(0)?.map(|all| all as Seq);
        let last = row.get::<_, Option<i64>>(1)?.map_or(0, seq);
        if all.unwrap_or(last) != append.after {
            return Err(AppendError::Refused(StoreError::Conflict));
        }
        if append.last() > MAX_SEQ {
            return Err(AppendError::Refused(StoreError::Failed(
                format!("a task has at most {MAX_SEQ} events").into(),
            )));
        }
        // Most appends to a long log do not need the head. A head that cannot be read is replaced.
        let is_needed = all.is_some() || append.head != HeadChange::Keep;
        let head = if is_needed { row.get_ref(2)?.as_blob_or_null().unwrap_or(None) } else { None };
        let status = match with_status {
            true => Some((rows::owner(row, 4)?, rows::agent(row, 5)?, rows::state(row.get(3)?)?)),
            false => None,
        };
        Ok(RowBefore { status, log: RowLog { head: head.map(<[u8]>::to_vec), all } })
    }

    fn write_events(&mut self, no: TaskNo, append: &Encoded, placement: &Placement) -> Result<()> {
        let Placement::Log { moved, .. } = placement else { return Ok(()) };
        if let Some((last, pack)) = moved {
            self.insert_events.execute((key(no, *last), pack))?;
        }
        for (count, pack) in append.events.packs() {
            self.insert_events.execute((key(no, append.after + count as Seq), pack))?;
        }
        Ok(())
    }

    /// Writes a snapshot, unless the last one is nearly as good for readers.
    fn write_snapshot(&self, no: TaskNo, append: &Encoded, snapshot: &EncodedSnapshot) -> Result<()> {
        let mut put = self.conn.prepare_cached(
            "INSERT INTO snapshots (no, seq, body, artifacts) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET seq = excluded.seq, body = excluded.body, artifacts = excluded.artifacts
             WHERE excluded.seq - seq > ?5 OR ?6",
        )?;
        let (last, is_large) = (append.last() as i64, append.events.as_bytes().len() > LARGE_APPEND);
        put.execute((no, last, &snapshot.rest, &snapshot.artifacts, MAX_EVENTS_WITHOUT_SNAPSHOT as i64, is_large))?;
        Ok(())
    }

    /// Returns how many bytes of messages were taken from the inbox.
    fn write_side_row(&mut self, no: TaskNo, append: &Encoded, row: &EncodedSideRow) -> Result<i64> {
        match row {
            EncodedSideRow::InboxTake(count) => return self.take_from_inbox(no, 0, *count),
            EncodedSideRow::InboxTakeAt(place) => return self.take_from_inbox(no, *place, 1),
            EncodedSideRow::InboxAdd(message) => self.add_to_inbox(no, message),
            EncodedSideRow::Key(SentKey { key, sender }) => {
                let mut put = self.conn.prepare_cached(
                    "INSERT INTO keys (owner, agent, key, no) SELECT coalesce(?3, owner), agent, ?2, no FROM tasks WHERE no = ?1
                     ON CONFLICT DO NOTHING",
                )?;
                put.execute((no, key.as_str(), sender.as_ref().map(Owner::as_key))).map(drop)
            }
            EncodedSideRow::ForwardDone(_) | EncodedSideRow::SendInFlight(_) => Ok(()),
            EncodedSideRow::Audit(entry) => self.audit.insert(self.conn, entry, Some(no)),
            EncodedSideRow::Webhook(webhook) => self.watched.add(self.conn, no, webhook, append),
            EncodedSideRow::AgentState(Some(state)) => {
                let mut put = self.conn.prepare_cached(
                    "INSERT INTO agent_state (owner, agent, context, state)
                     SELECT owner, agent, context, ?2 FROM tasks WHERE no = ?1
                     ON CONFLICT DO UPDATE SET state = excluded.state",
                )?;
                put.execute((no, state)).map(drop)
            }
            EncodedSideRow::AgentState(None) => {
                let mut forget = self.conn.prepare_cached(
                    "DELETE FROM agent_state
                     WHERE (owner, agent, context) = (SELECT owner, agent, context FROM tasks WHERE no = ?1)",
                )?;
                forget.execute((no,)).map(drop)
            }
            EncodedSideRow::TaskState(Some(state)) => {
                let mut put = self.conn.prepare_cached(
                    "INSERT INTO task_state (no, state) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET state = excluded.state",
                )?;
                put.execute((no, state)).map(drop)
            }
            EncodedSideRow::TaskState(None) => {
                self.conn.prepare_cached("DELETE FROM task_state WHERE no = ?1")?.execute((no,)).map(drop)
            }
            EncodedSideRow::CancelRequested => {
                let mut put = self.conn.prepare_cached(
                    "INSERT INTO controls (no, cancel_requested) VALUES (?1, 1)
                     ON CONFLICT DO UPDATE SET cancel_requested = 1",
                )?;
                put.execute((no,)).map(drop)
            }
            EncodedSideRow::Attempts(0) => {
                let mut reset = self.conn.prepare_cached("UPDATE controls SET attempts = 0 WHERE no = ?1")?;
                reset.execute((no,))?;
                let mut tidy =
                    self.conn.prepare_cached("DELETE FROM controls WHERE no = ?1 AND cancel_requested = 0")?;
                tidy.execute((no,)).map(drop)
            }
            EncodedSideRow::Attempts(count) => {
                let mut put = self.conn.prepare_cached(
                    "INSERT INTO controls (no, attempts) VALUES (?1, ?2)
                     ON CONFLICT DO UPDATE SET attempts = excluded.attempts",
                )?;
                put.execute((no, count)).map(drop)
            }
        }?;
        Ok(0)
    }

    fn add_to_inbox(&self, no: TaskNo, message: &[u8]) -> Result<()> {
        let (first, last) = keys(no).into_inner();
        let mut newest =
            self.conn.prepare_cached("SELECT key FROM inbox WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT 1")?;
        let newest: i64 = newest.query_row((first, last), |row| row.get(0)).optional()?.unwrap_or(first);
        if newest == last {
            return Err(Error::IntegralValueOutOfRange(0, newest));
        }
        self.conn.prepare_cached("INSERT INTO inbox (key, body) VALUES (?1, ?2)")?.execute((newest + 1, message))?;
        Ok(())
    }

    fn take_from_inbox(&self, no: TaskNo, from: usize, count: usize) -> Result<i64> {
        let (first, last) = keys(no).into_inner();
        let mut take = self.conn.prepare_cached(
            "DELETE FROM inbox WHERE key IN (SELECT key FROM inbox WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3 OFFSET ?4)
             RETURNING length(body)",
        )?;
        let bound = |number| i64::try_from(number).unwrap_or(i64::MAX);
        let sizes = take.query_map((first, last, bound(count), bound(from)), |row| row.get::<_, i64>(0))?;
        sizes.sum()
    }
}
