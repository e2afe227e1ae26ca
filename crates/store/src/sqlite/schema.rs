//! The tables and indexes, and the migrations of older files.
//!
//! The format of a file is its `user_version`: the number of migrations that it has been through. Each migration is one
//! transaction, so a file always has a complete format. The codes of states are in `rows`: 0 to 3 are open, 4 is
//! completed, 5 to 7 are the other terminal states.
//!
//! A row of `events` holds a pack: the events of one append, concatenated, under the number of the last. The highest
//! key of a task is the end of its log.

use rusqlite::Connection;

/// "SABR": identifies the files of this program.
pub(super) const APPLICATION_ID: i64 = 0x5341_4252;

/// The newest format that this version knows.
pub(super) const FORMAT: i64 = MIGRATIONS.len() as i64;

const MIGRATIONS: [&str; 6] = [FORMAT_1, FORMAT_2, FORMAT_3, FORMAT_4, FORMAT_5, FORMAT_6];

/// The first format. Each index costs something on every append, so each has a reason:
/// - `tasks_time` and `tasks_context` give lists in their order;
/// - `tasks_state` leaves out completed tasks, which are nearly all tasks and are found by time;
/// - `tasks_open` finds the waiting tasks of a context, and all unfinished tasks for recovery;
/// - `tasks_settled` gives retention the oldest tasks first.
const FORMAT_1: &str = "
CREATE TABLE tasks (
    no        INTEGER PRIMARY KEY,
    owner     TEXT NOT NULL,
    agent     TEXT NOT NULL,
    id        TEXT NOT NULL,
    context   TEXT NOT NULL,
    born      INTEGER NOT NULL,
    state     INTEGER NOT NULL,
    time      INTEGER NOT NULL,
    turn_over INTEGER NOT NULL,
    created   INTEGER NOT NULL
);
CREATE UNIQUE INDEX tasks_id ON tasks (owner, id, agent);
CREATE INDEX tasks_time ON tasks (owner, agent, time, id);
CREATE INDEX tasks_context ON tasks (owner, context, time);
CREATE INDEX tasks_state ON tasks (owner, agent, state, time, id) WHERE state <> 4;
CREATE INDEX tasks_open ON tasks (owner, context) WHERE state < 4;
CREATE INDEX tasks_settled ON tasks (time) WHERE state >= 4;

CREATE TABLE events (key INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE snapshots (no INTEGER PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE inbox (key INTEGER PRIMARY KEY, body BLOB NOT NULL);

CREATE TABLE keys (
    owner TEXT NOT NULL,
    agent TEXT NOT NULL,
    key   TEXT NOT NULL,
    no    INTEGER NOT NULL,
    PRIMARY KEY (owner, agent, key)
) WITHOUT ROWID;
CREATE INDEX keys_no ON keys (no);

CREATE TABLE agent_state (
    owner   TEXT NOT NULL,
    agent   TEXT NOT NULL,
    context TEXT NOT NULL,
    state   TEXT NOT NULL,
    PRIMARY KEY (owner, agent, context)
) WITHOUT ROWID;

CREATE TABLE tallies (
    owner TEXT NOT NULL,
    agent TEXT NOT NULL,
    state INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    PRIMARY KEY (owner, agent, state)
) WITHOUT ROWID;

-- The highest task number that a sweep has removed: no number is given twice.
CREATE TABLE swept (no INTEGER NOT NULL);
INSERT INTO swept VALUES (0);

CREATE TABLE probe (body BLOB NOT NULL);
";

/// Before, each row of `events` had one event, which reads as a pack of one. The number changes so that older versions
/// refuse files with larger packs.
const FORMAT_2: &str = "";

/// - `head` is the part of the log that is in the task's row (`crate::head`): the whole log, while `in_row` has the
///   number of its events. Tasks of older formats have no head until they change;
/// - `artifacts` of a snapshot have their own column; before, they were in `body`;
/// - `tasks_waiting` gives the tasks that wait for an answer, the longest wait first;
/// - `leftovers` has the numbers of deleted tasks whose events, messages and snapshots a sweep has still to delete;
/// - `controls` has a row for a task that a caller asked to cancel, or whose turn recovery has started again.
const FORMAT_3: &str = "
ALTER TABLE tasks ADD COLUMN in_row INTEGER;
ALTER TABLE tasks ADD COLUMN head BLOB;
ALTER TABLE snapshots ADD COLUMN artifacts BLOB;
CREATE INDEX tasks_waiting ON tasks (time) WHERE state IN (2, 3);

CREATE TABLE controls (
    no               INTEGER PRIMARY KEY,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    attempts         INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE leftovers (no INTEGER PRIMARY KEY);
";

/// `task_state` is what an agent remembers of one task. Webhooks, see `crate::outbox`:
/// - the `number` of a webhook is never used again, so what is told of a deleted or replaced one finds nothing;
/// - `webhooks_due` gives what is due at one receiver, and the receivers one by one;
/// - `undelivered` has the events that were given up. One that is tried once more has a time in `due`.
const FORMAT_4: &str = "
CREATE TABLE task_state (no INTEGER PRIMARY KEY, state TEXT NOT NULL);

CREATE TABLE webhooks (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    no            INTEGER NOT NULL,
    id            TEXT NOT NULL,
    url           TEXT NOT NULL,
    receiver      TEXT NOT NULL,
    secrets       BLOB NOT NULL,
    dialect       INTEGER NOT NULL,
    all_events    INTEGER NOT NULL,
    sent          INTEGER NOT NULL,
    due           INTEGER,
    attempts      INTEGER NOT NULL DEFAULT 0,
    failing_since INTEGER,
    reason        TEXT
);
CREATE UNIQUE INDEX webhooks_id ON webhooks (no, id);
CREATE INDEX webhooks_due ON webhooks (receiver, due) WHERE due IS NOT NULL;

CREATE TABLE undelivered (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    no       INTEGER NOT NULL,
    id       TEXT NOT NULL,
    receiver TEXT NOT NULL,
    event    INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    time     INTEGER NOT NULL,
    due      INTEGER
);
CREATE INDEX undelivered_id ON undelivered (no, id);
CREATE INDEX undelivered_due ON undelivered (receiver, due) WHERE due IS NOT NULL;
";

/// A send with a webhook writes one page for it, instead of four:
/// - rows of `webhooks` are in the order of their tasks, without an index. Those that may be sent to again come first
///   (`at_rest` is 0 until the task is settled and everything is sent), so that a start reads only these;
/// - what is due when is in memory (`due_index`);
/// - numbers are given out from memory. `webhook_numbers` has one that is at least as high as any that was used.
///
/// `given_up` was `undelivered`. The receiver of such an event is that of its webhook.
const FORMAT_5: &str = "
ALTER TABLE webhooks RENAME TO webhooks_before;
CREATE TABLE webhooks (
    at_rest       INTEGER NOT NULL,
    no            INTEGER NOT NULL,
    number        INTEGER NOT NULL,
    id            TEXT NOT NULL,
    url           TEXT NOT NULL,
    receiver      TEXT NOT NULL,
    secrets       BLOB NOT NULL,
    dialect       INTEGER NOT NULL,
    all_events    INTEGER NOT NULL,
    sent          INTEGER NOT NULL,
    due           INTEGER,
    attempts      INTEGER NOT NULL DEFAULT 0,
    failing_since INTEGER,
    reason        TEXT,
    PRIMARY KEY (at_rest, no, number)
) WITHOUT ROWID;
INSERT INTO webhooks
    SELECT due IS NULL AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.no = webhooks_before.no AND state < 4),
           no, number, id, url, receiver, secrets, dialect, all_events, sent, due, attempts, failing_since, reason
    FROM webhooks_before;
CREATE TABLE webhook_numbers (highest INTEGER NOT NULL);
INSERT INTO webhook_numbers SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'webhooks_before';
DROP TABLE webhooks_before;

CREATE TABLE given_up (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    no       INTEGER NOT NULL,
    id       TEXT NOT NULL,
    event    INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    time     INTEGER NOT NULL,
    due      INTEGER
);
INSERT INTO given_up SELECT number, no, id, event, attempts, reason, time, due FROM undelivered;
UPDATE sqlite_sequence SET seq = (SELECT seq FROM sqlite_sequence WHERE name = 'undelivered')
    WHERE name = 'given_up' AND EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'undelivered');
INSERT INTO sqlite_sequence (name, seq) SELECT 'given_up', seq FROM sqlite_sequence
    WHERE name = 'undelivered' AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'given_up');
DROP TABLE undelivered;
CREATE INDEX given_up_id ON given_up (no, id);
CREATE INDEX given_up_due ON given_up (due) WHERE due IS NOT NULL;
";

/// `audit` is the audit log (`crate::audit`). It has no index, since every entry would have to write it, and readers go through
/// the entries in their order anyway. `caller` and `owner` are keys of owners. `audit_numbers` has the highest number that was deleted, since
/// no number is used twice.
const FORMAT_6: &str = "
CREATE TABLE audit (
    number  INTEGER PRIMARY KEY,
    time    INTEGER NOT NULL,
    caller  TEXT NOT NULL,
    peer    TEXT,
    action  TEXT NOT NULL,
    agent   TEXT,
    task    TEXT,
    no      INTEGER,
    owner   TEXT,
    refusal TEXT,
    detail  TEXT NOT NULL
);
CREATE TABLE audit_numbers (deleted INTEGER NOT NULL);
INSERT INTO audit_numbers VALUES (0);
";

/// Migrates a file from format `from` to the newest one.
pub(super) fn migrate(conn: &mut Connection, from: i64) -> rusqlite::Result<()> {
    for (format, sql) in (1..).zip(MIGRATIONS) {
        if format <= from {
            continue;
        }
        let tx = conn.transaction()?;
        tx.execute_batch(sql)?;
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", format)?;
        tx.commit()?;
    }
    Ok(())
}

/// The first table or index that is missing in the file, or differs.
pub(super) fn missing(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let mut model = Connection::open_in_memory()?;
    migrate(&mut model, 0)?;
    let mut ours = model.prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")?;
    let mut theirs = conn.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1 AND sql = ?2")?;
    let mut rows = ours.query(())?;
    while let Some(row) = rows.next()? {
        let (name, sql): (String, String) = (row.get(0)?, row.get(1)?);
        if !theirs.exists((&name, &sql))? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
