//! Everything that is in a Postgres database, for another store; and everything of another store, into a database.
//!
//! An export is one read-only transaction, so it sees one state of the database while servers go on. An import writes each batch
//! in one transaction, with rows as arrays, so that a batch costs a dozen round trips however many tasks it has.
//!
//! Tasks that a server must take up belong to a node of the import, which is dead from the beginning: the first server that
//! starts takes them over and does with them what it does after a restart.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sabir_model::{Message, Seq};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::link::{Dialer, Link};
use super::migrate::{self, open_error};
use super::settings::Target;
use crate::transfer::{
    ContextKey, ExportTasks, ImportTasks, TransferMark, TransferSize, TransferredAgentState, TransferredAudit,
    TransferredGivenUp, TransferredSnapshot, TransferredTally, TransferredTask, TransferredWebhook, without_nul,
};
use crate::{OpenError, StoreError, StoreFuture};

/// A database that is read.
pub struct PostgresExport {
    link: Link,
    dialer: Arc<Dialer>,
}

impl PostgresExport {
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        let (link, dialer, server) = dial(url).await?;
        let failed = |error| open_error(&server, &error);
        if link.texts("SELECT to_regclass('sabir_format') IS NOT NULL").await.map_err(failed)?
            != [[Some("t".to_owned())]]
        {
            return Err(OpenError::ForeignDatabase { server, reason: "it has no tables of Sabir".to_owned() });
        }
        link.batch(ONE_STATE).await.map_err(failed)?;
        migrate::known_format(&link, &server).await?;
        Ok(Self { link, dialer })
    }

    /// Reads the database of a server, on a connection of its own.
    pub(super) async fn of_server(dialer: &Arc<Dialer>) -> Result<Self, StoreError> {
        let mut link = dialer.dial().await?;
        link.set_limit(STATEMENT_LIMIT);
        link.batch(ONE_STATE).await?;
        Ok(Self { link, dialer: dialer.clone() })
    }
}

/// A database that is written.
pub struct PostgresImport {
    link: Link,
    server: String,
    /// The dead node that the unfinished tasks belong to.
    node: i64,
    parties: HashMap<(String, String), i32>,
}

impl PostgresImport {
    /// Makes the tables if they are not there.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        let (link, _, server) = dial(url).await?;
        migrate::migrate(&link, &server).await?;
        let made = link.batch(
            "CREATE TABLE IF NOT EXISTS sabir_transfer (
                identity bytea NOT NULL, node bigint NOT NULL, task bigint NOT NULL, owner bytea, agent text, context text,
                audit bigint NOT NULL, is_finished boolean NOT NULL)",
        );
        made.await.map_err(|error| open_error(&server, &error))?;
        Ok(Self { link, server, node: 0, parties: HashMap::new() })
    }
}

const ONE_STATE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A copy may wait for its turn, and reads whole tables.
const STATEMENT_LIMIT: Duration = Duration::from_secs(6 * 3600);

async fn dial(url: &str) -> Result<(Link, Arc<Dialer>, String), OpenError> {
    let target = Target::parse(url).map_err(OpenError::BadUrl)?;
    let server = target.shown();
    let dialer = Arc::new(Dialer::new(target));
    // Unnamed statements work with a pooler and without one.
    dialer.set_pooled(true);
    let mut link = dialer.dial().await.map_err(|error| open_error(&server, &error))?;
    link.set_limit(STATEMENT_LIMIT);
    Ok((link, dialer, server))
}

/// How many tasks are looked at for a batch.
const BATCH_TASKS: i64 = 1000;

const SIZES: &str = "SELECT tasks.no,
        512 + coalesce(length(tasks.head), 0)
        + coalesce((SELECT sum(length(events.body)) FROM events WHERE events.no = tasks.no), 0)::bigint
        + coalesce((SELECT sum(length(inbox.body)) FROM inbox WHERE inbox.no = tasks.no), 0)::bigint
        + coalesce((SELECT length(body) + coalesce(length(artifacts), 0) FROM snapshots WHERE snapshots.no = tasks.no), 0)::bigint
    FROM tasks WHERE tasks.no > $1 ORDER BY tasks.no LIMIT $2";

const TASKS: &str =
    "SELECT tasks.no, parties.owner, parties.agent, tasks.id, tasks.context, tasks.born, tasks.state, tasks.time,
        tasks.turn_over, tasks.created, tasks.in_row, tasks.head, snapshots.seq, snapshots.body, snapshots.artifacts,
        task_state.state, coalesce(controls.cancel_requested, false), coalesce(controls.attempts, 0)
    FROM tasks JOIN parties ON parties.no = tasks.party LEFT JOIN snapshots ON snapshots.no = tasks.no
        LEFT JOIN task_state ON task_state.no = tasks.no LEFT JOIN controls ON controls.no = tasks.no
    WHERE tasks.no BETWEEN $1 AND $2 ORDER BY tasks.no";

impl PostgresExport {
    async fn read_task_parts(&self, after: u64, max_bytes: usize) -> Result<Vec<TransferredTask>, StoreError> {
        let sizes = self.link.query(SIZES, &[&(after as i64), &BATCH_TASKS]).await?;
        let (mut first, mut last, mut bytes) = (None, 0, 0);
        // Logs of tasks up to this one are read.
        let mut last_with_log = 0;
        for row in &sizes {
            first.get_or_insert(row.get::<_, i64>(0));
            last = row.get::<_, i64>(0);
            let of_task = row.get::<_, i64>(1) as usize;
            bytes += of_task;
            if of_task < max_bytes {
                last_with_log = last;
            }
            if bytes >= max_bytes {
                break;
            }
        }
        let Some(first) = first else { return Ok(Vec::new()) };
        let rows = self.link.query(TASKS, &[&first, &last]).await?;
        let mut tasks = rows.iter().map(task).collect::<Result<Vec<_>, _>>()?;
        let places: HashMap<i64, usize> =
            tasks.iter().enumerate().map(|(place, task)| (task.no as i64, place)).collect();
        let place = |row: &Row| places.get(&row.get::<_, i64>(0)).copied();
        let range: [&(dyn ToSql + Sync); 2] = [&first, &last];

        let sql = "SELECT no, seq, body FROM events WHERE no BETWEEN $1 AND $2 ORDER BY no, seq";
        for row in self.link.query(sql, &[&first, &last_with_log]).await? {
            if let Some(place) = place(&row) {
                tasks[place].packs.push((number(&row, 1)?, row.try_get(2)?));
            }
        }
        let sql = "SELECT no, place, body FROM inbox WHERE no BETWEEN $1 AND $2 ORDER BY no, place";
        for row in self.link.query(sql, &range).await? {
            if let Some(place) = place(&row) {
                tasks[place].inbox.push((number(&row, 1)?, row.try_get(2)?));
            }
        }
        let sql = "SELECT keys.no, parties.owner, keys.key FROM keys JOIN parties ON parties.no = keys.party
            WHERE keys.no BETWEEN $1 AND $2 ORDER BY keys.no, parties.owner, keys.key";
        for row in self.link.query(sql, &range).await? {
            if let Some(place) = place(&row) {
                tasks[place].keys.push((text(&row, 1)?, row.try_get(2)?));
            }
        }
        let sql =
            "SELECT no, id, url, receiver, secrets, dialect, all_events, sent, due, attempts, failing_since, reason
            FROM webhooks WHERE no BETWEEN $1 AND $2 ORDER BY number";
        for row in self.link.query(sql, &range).await? {
            if let Some(place) = place(&row) {
                tasks[place].webhooks.push(webhook(&row)?);
            }
        }
        let sql = "SELECT no, id, event, attempts, reason, time, due FROM given_up WHERE no BETWEEN $1 AND $2 ORDER BY number";
        for row in self.link.query(sql, &range).await? {
            if let Some(place) = place(&row) {
                tasks[place].given_up.push(event_given_up(&row)?);
            }
        }
        Ok(tasks)
    }

    async fn read_packs(&self, task: u64, after: Seq, max_bytes: usize) -> Result<Vec<(Seq, Vec<u8>)>, StoreError> {
        let sql = "SELECT seq, body FROM (
                SELECT seq, body, sum(length(body)) OVER (ORDER BY seq) - length(body) AS before
                FROM events WHERE no = $1 AND seq > $2 ORDER BY seq LIMIT 1000) AS next
            WHERE before < $3 ORDER BY seq";
        let rows = self.link.query(sql, &[&(task as i64), &(after as i64), &(max_bytes as i64)]).await?;
        rows.iter().map(|row| Ok((number(row, 0)?, row.try_get(1)?))).collect()
    }

    async fn read_size(&self) -> Result<TransferSize, StoreError> {
        let sql =
            "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM agent_state), (SELECT count(*) FROM audit),
            greatest((SELECT coalesce(max(no), 0) FROM tasks),
                (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM task_numbers)),
            (SELECT coalesce(max(number), 0) FROM audit)";
        let rows = self.link.query(sql, &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Failed("the database returned no sizes".into()))?;
        Ok(TransferSize {
            tasks: number(row, 0)?,
            contexts: number(row, 1)?,
            audit_entries: number(row, 2)?,
            highest_task: number(row, 3)?,
            highest_audit: number(row, 4)?,
        })
    }

    async fn read_agent_states(
        &self,
        after: Option<ContextKey>,
        limit: usize,
    ) -> Result<Vec<TransferredAgentState>, StoreError> {
        let sql = "SELECT parties.owner, parties.agent, agent_state.context, agent_state.state
            FROM agent_state JOIN parties ON parties.no = agent_state.party
            WHERE (parties.owner, parties.agent, agent_state.context) > ($1::bytea, $2::text, $3::text)
            ORDER BY parties.owner, parties.agent, agent_state.context LIMIT $4";
        let (owner, agent, context) =
            after.map_or_else(Default::default, |key| (key.owner.into_bytes(), key.agent, key.context));
        let rows = self.link.query(sql, &[&owner, &agent, &context, &(limit as i64)]).await?;
        let state = |row: &Row| {
            let key = ContextKey { owner: text(row, 0)?, agent: row.try_get(1)?, context: row.try_get(2)? };
            Ok(TransferredAgentState { key, state: text(row, 3)? })
        };
        rows.iter().map(state).collect()
    }

    async fn read_audit(&self, after: u64, limit: usize) -> Result<Vec<TransferredAudit>, StoreError> {
        let sql = "SELECT number, time, caller, peer, action, agent, task, no, owner, refusal, detail FROM audit
            WHERE number > $1 ORDER BY number LIMIT $2";
        let rows = self.link.query(sql, &[&(after as i64), &(limit as i64)]).await?;
        let entry = |row: &Row| {
            Ok(TransferredAudit {
                number: number(row, 0)?,
                time: row.try_get(1)?,
                caller: text(row, 2)?,
                peer: row.try_get(3)?,
                action: row.try_get(4)?,
                agent: row.try_get(5)?,
                task: row.try_get(6)?,
                no: row.try_get::<_, Option<i64>>(7)?.map(i64::unsigned_abs),
                owner: row.try_get::<_, Option<Vec<u8>>>(8)?.map(utf8).transpose()?,
                refusal: row.try_get(9)?,
                detail: row.try_get(10)?,
            })
        };
        rows.iter().map(entry).collect()
    }

    async fn read_tallies(&self) -> Result<Vec<TransferredTally>, StoreError> {
        let sql = "SELECT parties.owner, parties.agent, tallies.state::bigint, sum(tallies.n)::bigint
            FROM tallies JOIN parties ON parties.no = tallies.party
            GROUP BY 1, 2, 3 HAVING sum(tallies.n) <> 0";
        let tally = |row: &Row| {
            let (agent, state, tasks) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
            Ok(TransferredTally { owner: text(row, 0)?, agent, state, tasks })
        };
        self.link.query(sql, &[]).await?.iter().map(tally).collect()
    }

    /// On another connection, since the export itself sees the past. A server may have come and gone since.
    async fn read_live_nodes(&self) -> Result<Vec<String>, StoreError> {
        let began = "SELECT extract(epoch FROM now())::float8";
        let rows = self.link.query(began, &[]).await?;
        let began: f64 =
            rows.first().ok_or_else(|| StoreError::Failed("the database returned no time".into()))?.try_get(0)?;
        let live = "SELECT DISTINCT name FROM nodes
            WHERE greatest(beat, ended) >= to_timestamp($1) OR (ended IS NULL AND beat > now() - grace) ORDER BY name";
        let rows = self.dialer.dial().await?.query(live, &[&began]).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    async fn read_identity(&self) -> Result<String, StoreError> {
        let rows = self.link.query("SELECT no, id, created FROM tasks ORDER BY no LIMIT 1", &[]).await?;
        let Some(row) = rows.first() else { return Ok("empty".to_owned()) };
        let (no, id, created): (i64, String, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(format!("{no} {created} {id}"))
    }
}

fn task(row: &Row) -> Result<TransferredTask, StoreError> {
    let snapshot = match row.try_get::<_, Option<i64>>(12)? {
        Some(seq) => Some(TransferredSnapshot { seq: seq as Seq, body: row.try_get(13)?, artifacts: row.try_get(14)? }),
        None => None,
    };
    Ok(TransferredTask {
        no: number(row, 0)?,
        owner: text(row, 1)?,
        agent: row.try_get(2)?,
        id: row.try_get(3)?,
        context: row.try_get(4)?,
        born: row.try_get::<_, i16>(5)?.into(),
        state: row.try_get::<_, i16>(6)?.into(),
        time: row.try_get(7)?,
        turn_over: row.try_get(8)?,
        created: row.try_get(9)?,
        in_row: row.try_get::<_, Option<i32>>(10)?.map(|all| all as Seq),
        head: row.try_get(11)?,
        snapshot,
        task_state: row.try_get::<_, Option<Vec<u8>>>(15)?.map(utf8).transpose()?,
        cancel_requested: row.try_get(16)?,
        attempts: row.try_get::<_, i32>(17)?.unsigned_abs(),
        ..TransferredTask::default()
    })
}

fn webhook(row: &Row) -> Result<TransferredWebhook, StoreError> {
    Ok(TransferredWebhook {
        id: row.try_get(1)?,
        url: row.try_get(2)?,
        receiver: row.try_get(3)?,
        secrets: row.try_get(4)?,
        dialect: row.try_get::<_, i16>(5)?.into(),
        all_events: row.try_get(6)?,
        sent: number(row, 7)?,
        due: row.try_get(8)?,
        attempts: row.try_get::<_, i32>(9)?.unsigned_abs(),
        failing_since: row.try_get(10)?,
        reason: row.try_get(11)?,
    })
}

fn event_given_up(row: &Row) -> Result<TransferredGivenUp, StoreError> {
    Ok(TransferredGivenUp {
        id: row.try_get(1)?,
        event: number(row, 2)?,
        attempts: row.try_get::<_, i32>(3)?.unsigned_abs(),
        reason: row.try_get(4)?,
        time: row.try_get(5)?,
        due: row.try_get(6)?,
    })
}

fn number(row: &Row, column: usize) -> Result<u64, StoreError> {
    Ok(row.try_get::<_, i64>(column)?.unsigned_abs())
}

/// Texts that may hold a NUL are bytes in the database.
fn text(row: &Row, column: usize) -> Result<String, StoreError> {
    utf8(row.try_get(column)?)
}

fn utf8(bytes: Vec<u8>) -> Result<String, StoreError> {
    String::from_utf8(bytes).map_err(|error| StoreError::Failed(error.into()))
}

impl ExportTasks for PostgresExport {
    fn identity(&mut self) -> StoreFuture<'_, String> {
        Box::pin(self.read_identity())
    }

    /// What Postgres would find, `pg_amcheck` finds.
    fn check_database(&mut self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn size(&mut self) -> StoreFuture<'_, TransferSize> {
        Box::pin(self.read_size())
    }

    fn live_nodes(&mut self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(self.read_live_nodes())
    }

    fn task_parts(&mut self, after: u64, max_bytes: usize) -> StoreFuture<'_, Vec<TransferredTask>> {
        Box::pin(self.read_task_parts(after, max_bytes))
    }

    fn packs(&mut self, task: u64, after: Seq, max_bytes: usize) -> StoreFuture<'_, Vec<(Seq, Vec<u8>)>> {
        Box::pin(self.read_packs(task, after, max_bytes))
    }

    fn agent_states(&mut self, after: Option<ContextKey>, limit: usize) -> StoreFuture<'_, Vec<TransferredAgentState>> {
        Box::pin(self.read_agent_states(after, limit))
    }

    fn audit(&mut self, after: u64, limit: usize) -> StoreFuture<'_, Vec<TransferredAudit>> {
        Box::pin(self.read_audit(after, limit))
    }

    fn tallies(&mut self) -> StoreFuture<'_, Vec<TransferredTally>> {
        Box::pin(self.read_tallies())
    }
}

impl PostgresImport {
    async fn start(&mut self, identity: &str) -> Result<TransferMark, StoreError> {
        // Two imports at the same time: the second waits, and then finds the mark. Not a lock on a table, since the types of
        // parameters are learned on another connection, which would wait for it.
        self.link.batch("SELECT pg_advisory_xact_lock(x'73616269727472'::bigint)").await?;
        let refused =
            |server: &str, why: String| Err(StoreError::Failed(format!("the database at {server} {why}").into()));
        let live = "SELECT name FROM nodes WHERE ended IS NULL AND beat > now() - grace LIMIT 1";
        if let Some(row) = self.link.query(live, &[]).await?.first() {
            let name: String = row.try_get(0)?;
            return refused(&self.server, format!("is in use by node {name}; stop all servers first"));
        }
        let sql = "SELECT identity, node, task, owner, agent, context, audit, is_finished FROM sabir_transfer";
        if let Some(row) = self.link.query(sql, &[]).await?.first() {
            if text(row, 0)? != identity {
                return refused(&self.server, "has the tasks of another store; choose an empty database".to_owned());
            }
            self.node = row.try_get(1)?;
            let owner = row.try_get::<_, Option<Vec<u8>>>(3)?.map(utf8).transpose()?;
            let context = match (owner, row.try_get(4)?, row.try_get(5)?) {
                (Some(owner), Some(agent), Some(context)) => Some(ContextKey { owner, agent, context }),
                _ => None,
            };
            let is_finished = row.try_get(7)?;
            return Ok(TransferMark { task: number(row, 2)?, context, audit: number(row, 6)?, is_finished });
        }
        let has_rows = "SELECT EXISTS (SELECT FROM tasks) OR EXISTS (SELECT FROM audit)";
        if self.link.query(has_rows, &[]).await?.first().is_some_and(|row| row.get(0)) {
            return refused(&self.server, "has tasks already; choose an empty database".to_owned());
        }
        let node = "INSERT INTO nodes (name, version, grace, ended, is_dead)
            VALUES ('migration', $1, interval '1 second', now(), true) RETURNING no";
        let rows = self.link.query(node, &[&env!("CARGO_PKG_VERSION")]).await?;
        self.node = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        let mark = "INSERT INTO sabir_transfer (identity, node, task, audit, is_finished) VALUES ($1, $2, 0, 0, false)";
        self.link.execute(mark, &[&identity.as_bytes(), &self.node]).await?;
        Ok(TransferMark::default())
    }

    /// The numbers of these owners and agents, which are made if they are not there.
    async fn intern(&mut self, mut missing: Vec<(&str, &str)>) -> Result<(), StoreError> {
        missing.sort_unstable();
        missing.dedup();
        missing.retain(|(owner, agent)| !self.parties.contains_key(&((*owner).to_owned(), (*agent).to_owned())));
        if missing.is_empty() {
            return Ok(());
        }
        let owners: Vec<&[u8]> = missing.iter().map(|(owner, _)| owner.as_bytes()).collect();
        let agents: Vec<&str> = missing.iter().map(|(_, agent)| *agent).collect();
        let make =
            "INSERT INTO parties (owner, agent) SELECT * FROM unnest($1::bytea[], $2::text[]) ON CONFLICT DO NOTHING";
        self.link.execute(make, &[&owners, &agents]).await?;
        let find = "SELECT parties.owner, parties.agent, parties.no FROM parties
            JOIN unnest($1::bytea[], $2::text[]) AS wanted(owner, agent) ON sha256(parties.owner) = sha256(wanted.owner)
                AND parties.owner = wanted.owner AND parties.agent = wanted.agent";
        for row in self.link.query(find, &[&owners, &agents]).await? {
            self.parties.insert((text(&row, 0)?, row.try_get(1)?), row.try_get(2)?);
        }
        Ok(())
    }

    fn party(&self, owner: &str, agent: &str) -> i32 {
        self.parties.get(&(owner.to_owned(), agent.to_owned())).copied().unwrap_or_default()
    }

    async fn write_tasks(&mut self, tasks: &[TransferredTask]) -> Result<(), StoreError> {
        let mut parties = Vec::new();
        for task in tasks {
            parties.push((task.owner.as_str(), task.agent.as_str()));
            parties.extend(task.keys.iter().map(|(sender, _)| (sender.as_str(), task.agent.as_str())));
        }
        self.intern(parties).await?;
        self.insert_tasks(tasks).await?;
        self.insert_logs(tasks).await?;
        self.insert_side_rows(tasks).await?;
        self.insert_webhooks(tasks).await?;
        if let Some(last) = tasks.last() {
            self.link.execute("UPDATE sabir_transfer SET task = $1", &[&(last.no as i64)]).await?;
        }
        Ok(())
    }

    async fn insert_tasks(&self, tasks: &[TransferredTask]) -> Result<(), StoreError> {
        let numbers: Vec<i64> = tasks.iter().map(|task| task.no as i64).collect();
        let parties: Vec<i32> = tasks.iter().map(|task| self.party(&task.owner, &task.agent)).collect();
        let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
        let contexts: Vec<&str> = tasks.iter().map(|task| task.context.as_str()).collect();
        let borns: Vec<i16> = tasks.iter().map(|task| task.born as i16).collect();
        let states: Vec<i16> = tasks.iter().map(|task| task.state as i16).collect();
        let times: Vec<i64> = tasks.iter().map(|task| task.time).collect();
        let turn_overs: Vec<bool> = tasks.iter().map(|task| task.turn_over).collect();
        let createds: Vec<i64> = tasks.iter().map(|task| task.created).collect();
        let in_rows: Vec<Option<i32>> = tasks.iter().map(|task| task.in_row.map(|all| all as i32)).collect();
        let heads: Vec<Option<&[u8]>> = tasks.iter().map(|task| task.head.as_deref()).collect();
        let nodes: Vec<Option<i64>> = tasks.iter().map(|task| task.needs_recovery().then_some(self.node)).collect();
        let sql = "INSERT INTO tasks (no, party, id, context, born, state, time, turn_over, created, in_row, head, node, epoch,
                is_left, home, last_append)
            SELECT no, party, id, context, born, state, time, turn_over, created, in_row, head, node, 1, false, NULL, 0
            FROM unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::smallint[], $6::smallint[], $7::bigint[],
                $8::boolean[], $9::bigint[], $10::int[], $11::bytea[], $12::bigint[])
                AS t(no, party, id, context, born, state, time, turn_over, created, in_row, head, node)";
        let values: [&(dyn ToSql + Sync); 12] = [
            &numbers,
            &parties,
            &ids,
            &contexts,
            &borns,
            &states,
            &times,
            &turn_overs,
            &createds,
            &in_rows,
            &heads,
            &nodes,
        ];
        self.link.execute(sql, &values).await?;
        let tally = "INSERT INTO tallies (party, state, node, writer, n)
            SELECT t.party, t.state, $3, 0, count(*) FROM unnest($1::int[], $2::smallint[]) AS t(party, state) GROUP BY 1, 2
            ON CONFLICT (party, state, node, writer) DO UPDATE SET n = tallies.n + excluded.n";
        self.link.execute(tally, &[&parties, &states, &self.node]).await?;
        let running: Vec<i64> = tasks.iter().filter(|task| task.has_run()).map(|task| task.no as i64).collect();
        if !running.is_empty() {
            let busy = "INSERT INTO busy_contexts (party, context, no, has_begun)
                SELECT party, context, no, true FROM tasks WHERE no = ANY($1::bigint[]) ORDER BY no ON CONFLICT DO NOTHING";
            self.link.execute(busy, &[&running]).await?;
        }
        Ok(())
    }

    async fn insert_logs(&self, tasks: &[TransferredTask]) -> Result<(), StoreError> {
        let (mut numbers, mut lasts, mut bodies): (Vec<i64>, Vec<i64>, Vec<&[u8]>) = Default::default();
        for task in tasks {
            for (last, body) in &task.packs {
                numbers.push(task.no as i64);
                lasts.push(*last as i64);
                bodies.push(body);
            }
        }
        if !numbers.is_empty() {
            let sql =
                "INSERT INTO events (no, seq, body) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])";
            self.link.execute(sql, &[&numbers, &lasts, &bodies]).await?;
        }
        let with_snapshot = || tasks.iter().filter_map(|task| Some((task.no as i64, task.snapshot.as_ref()?)));
        let numbers: Vec<i64> = with_snapshot().map(|(no, _)| no).collect();
        if !numbers.is_empty() {
            let seqs: Vec<i64> = with_snapshot().map(|(_, snapshot)| snapshot.seq as i64).collect();
            let bodies: Vec<&[u8]> = with_snapshot().map(|(_, snapshot)| snapshot.body.as_slice()).collect();
            let artifacts: Vec<Option<&[u8]>> =
                with_snapshot().map(|(_, snapshot)| snapshot.artifacts.as_deref()).collect();
            let sql = "INSERT INTO snapshots (no, seq, body, artifacts)
                SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[])";
            self.link.execute(sql, &[&numbers, &seqs, &bodies, &artifacts]).await?;
        }
        Ok(())
    }

    async fn insert_side_rows(&self, tasks: &[TransferredTask]) -> Result<(), StoreError> {
        let (mut numbers, mut places, mut bodies): (Vec<i64>, Vec<i64>, Vec<&[u8]>) = Default::default();
        for task in tasks {
            for (place, body) in &task.inbox {
                numbers.push(task.no as i64);
                places.push(*place as i64);
                bodies.push(body);
            }
        }
        if !numbers.is_empty() {
            let answers: Vec<bool> = bodies.iter().map(|body| is_answer(body)).collect();
            let sql = "INSERT INTO inbox (no, place, body, answers)
                SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::boolean[])";
            self.link.execute(sql, &[&numbers, &places, &bodies, &answers]).await?;
        }
        let (mut parties, mut keys, mut numbers): (Vec<i32>, Vec<&str>, Vec<i64>) = Default::default();
        for task in tasks {
            for (sender, key) in &task.keys {
                parties.push(self.party(sender, &task.agent));
                keys.push(key);
                numbers.push(task.no as i64);
            }
        }
        if !numbers.is_empty() {
            let sql = "INSERT INTO keys (party, key, no) SELECT * FROM unnest($1::int[], $2::text[], $3::bigint[])";
            self.link.execute(sql, &[&parties, &keys, &numbers]).await?;
        }
        let with_state =
            || tasks.iter().filter_map(|task| Some((task.no as i64, task.task_state.as_ref()?.as_bytes())));
        let (numbers, states): (Vec<i64>, Vec<&[u8]>) = with_state().unzip();
        if !numbers.is_empty() {
            let sql = "INSERT INTO task_state (no, state) SELECT * FROM unnest($1::bigint[], $2::bytea[])";
            self.link.execute(sql, &[&numbers, &states]).await?;
        }
        let controlled = || tasks.iter().filter(|task| task.cancel_requested || task.attempts > 0);
        let numbers: Vec<i64> = controlled().map(|task| task.no as i64).collect();
        if !numbers.is_empty() {
            let cancels: Vec<bool> = controlled().map(|task| task.cancel_requested).collect();
            let attempts: Vec<i32> = controlled().map(|task| task.attempts as i32).collect();
            let sql = "INSERT INTO controls (no, cancel_requested, attempts)
                SELECT * FROM unnest($1::bigint[], $2::boolean[], $3::int[])";
            self.link.execute(sql, &[&numbers, &cancels, &attempts]).await?;
        }
        Ok(())
    }

    /// Few tasks have some, so these go one by one, which also keeps their order.
    async fn insert_webhooks(&self, tasks: &[TransferredTask]) -> Result<(), StoreError> {
        for task in tasks {
            let no = task.no as i64;
            for webhook in &task.webhooks {
                let sql =
                    "INSERT INTO webhooks (no, id, url, receiver, secrets, dialect, all_events, sent, due, attempts,
                        failing_since, reason)
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
                let values: [&(dyn ToSql + Sync); 12] = [
                    &no,
                    &webhook.id,
                    &webhook.url,
                    &webhook.receiver,
                    &webhook.secrets,
                    &(webhook.dialect as i16),
                    &webhook.all_events,
                    &(webhook.sent as i64),
                    &webhook.due,
                    &(webhook.attempts as i32),
                    &webhook.failing_since,
                    &webhook.reason,
                ];
                self.link.execute(sql, &values).await?;
            }
            for TransferredGivenUp { id, event, attempts, reason, time, due } in &task.given_up {
                let sql = "INSERT INTO given_up (no, id, event, attempts, reason, time, due) VALUES ($1, $2, $3, $4, $5, $6, $7)";
                self.link.execute(sql, &[&no, id, &(*event as i64), &(*attempts as i32), reason, time, due]).await?;
            }
        }
        Ok(())
    }

    async fn write_agent_states(&mut self, states: &[TransferredAgentState], home: &str) -> Result<(), StoreError> {
        let parties = states.iter().map(|state| (state.key.owner.as_str(), state.key.agent.as_str())).collect();
        self.intern(parties).await?;
        let parties: Vec<i32> = states.iter().map(|state| self.party(&state.key.owner, &state.key.agent)).collect();
        let contexts: Vec<&str> = states.iter().map(|state| state.key.context.as_str()).collect();
        let bodies: Vec<&[u8]> = states.iter().map(|state| state.state.as_bytes()).collect();
        let sql = "INSERT INTO agent_state (party, context, state, home)
            SELECT party, context, state, $4::text FROM unnest($1::int[], $2::text[], $3::bytea[]) AS t(party, context, state)";
        self.link.execute(sql, &[&parties, &contexts, &bodies, &home]).await?;
        if let Some(ContextKey { owner, agent, context }) = states.last().map(|state| &state.key) {
            let sql = "UPDATE sabir_transfer SET owner = $1, agent = $2, context = $3";
            self.link.execute(sql, &[&owner.as_bytes(), agent, context]).await?;
        }
        Ok(())
    }

    async fn write_audit(&self, entries: &[TransferredAudit]) -> Result<(), StoreError> {
        let numbers: Vec<i64> = entries.iter().map(|entry| entry.number as i64).collect();
        let times: Vec<i64> = entries.iter().map(|entry| entry.time).collect();
        let callers: Vec<&[u8]> = entries.iter().map(|entry| entry.caller.as_bytes()).collect();
        let peers: Vec<Option<&str>> = entries.iter().map(|entry| entry.peer.as_deref()).collect();
        let actions: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
        let agents: Vec<Option<&str>> = entries.iter().map(|entry| entry.agent.as_deref()).collect();
        let tasks: Vec<Option<&str>> = entries.iter().map(|entry| entry.task.as_deref()).collect();
        let task_numbers: Vec<Option<i64>> = entries.iter().map(|entry| entry.no.map(|no| no as i64)).collect();
        let owners: Vec<Option<&[u8]>> =
            entries.iter().map(|entry| entry.owner.as_deref().map(str::as_bytes)).collect();
        let refusals: Vec<Option<&str>> = entries.iter().map(|entry| entry.refusal.as_deref()).collect();
        let details: Vec<String> = entries.iter().map(|entry| without_nul(entry.detail.clone())).collect();
        let sql = "INSERT INTO audit (number, time, caller, peer, action, agent, task, no, owner, refusal, detail)
            OVERRIDING SYSTEM VALUE SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::text[], $5::text[],
                $6::text[], $7::text[], $8::bigint[], $9::bytea[], $10::text[], $11::text[])";
        let values: [&(dyn ToSql + Sync); 11] = [
            &numbers,
            &times,
            &callers,
            &peers,
            &actions,
            &agents,
            &tasks,
            &task_numbers,
            &owners,
            &refusals,
            &details,
        ];
        self.link.execute(sql, &values).await?;
        if let Some(last) = numbers.last() {
            self.link.execute("UPDATE sabir_transfer SET audit = $1", &[last]).await?;
        }
        Ok(())
    }

    async fn end(&self, size: TransferSize) -> Result<(), StoreError> {
        for (sequence, highest) in
            [("'task_numbers'", size.highest_task), ("pg_get_serial_sequence('audit', 'number')", size.highest_audit)]
        {
            if highest > 0 {
                let sql = format!("SELECT setval({sequence}, $1)");
                self.link.query(&sql, &[&(highest as i64)]).await?;
            }
        }
        self.link.execute("UPDATE sabir_transfer SET is_finished = true", &[]).await?;
        Ok(())
    }

    /// Commits what was done if it was done well.
    async fn end_transaction<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        match done {
            Ok(value) => {
                self.link.batch("COMMIT").await?;
                Ok(value)
            }
            Err(error) => {
                // The first error says more than a failure to roll back, and an open transaction ends with its connection.
                let _ = self.link.batch("ROLLBACK").await;
                Err(error)
            }
        }
    }
}

/// As the writer of the store decides it.
fn is_answer(message: &[u8]) -> bool {
    serde_json::from_slice::<Message>(message).is_ok_and(|message| message.answers.is_some())
}

impl ImportTasks for PostgresImport {
    fn begin(&mut self, identity: &str) -> StoreFuture<'_, TransferMark> {
        let identity = identity.to_owned();
        Box::pin(async move {
            self.link.batch("BEGIN").await?;
            let done = self.start(&identity).await;
            self.end_transaction(done).await
        })
    }

    fn put_tasks(&mut self, tasks: Vec<TransferredTask>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.link.batch("BEGIN").await?;
            let done = self.write_tasks(&tasks).await;
            if done.is_err() {
                // Owners that were made in this transaction are gone with it.
                self.parties.clear();
            }
            self.end_transaction(done).await
        })
    }

    fn put_agent_states(&mut self, states: Vec<TransferredAgentState>, home: String) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.link.batch("BEGIN").await?;
            let done = self.write_agent_states(&states, &home).await;
            self.end_transaction(done).await
        })
    }

    fn put_audit(&mut self, entries: Vec<TransferredAudit>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.link.batch("BEGIN").await?;
            let done = self.write_audit(&entries).await;
            self.end_transaction(done).await
        })
    }

    fn finish(&mut self, size: TransferSize) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.link.batch("BEGIN").await?;
            let done = self.end(size).await;
            self.end_transaction(done).await
        })
    }
}
