//! The tables, and how older files come to have them.
//!
//! The format of a file is its `user_version`: how many of the migrations it has been through. Each is
//! done in one transaction, so a file is always at one format or the next. States are stored as in
//! `rows`: 0 to 3 are open, 4 is completed, 5 to 7 are the other ends.
//!
//! A row of `events` holds what one append brought, one event behind the other, under the number of the last: most
//! tasks are one row, and a reader finds the end of a task in the highest key.

use rusqlite::Connection;

/// "SABR": tells our files from everybody else's.
pub(super) const APPLICATION_ID: i64 = 0x5341_4252;

/// The newest format that we know.
pub(super) const FORMAT: i64 = MIGRATIONS.len() as i64;

const MIGRATIONS: [&str; 4] = [FORMAT_1, FORMAT_2, FORMAT_3, FORMAT_4];

/// An index must earn its cost on every append:
/// - `tasks_time` and `tasks_context` give lists in their order;
/// - `tasks_state` has no completed tasks, which are nearly all of them and are found by time;
/// - `tasks_open` finds what waits in a context, and what a start must look at;
/// - `tasks_settled` gives retention the oldest first.
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

/// Rows of `events` had one event each; as packs of one they are read as before. Who knows only these must not read on.
const FORMAT_2: &str = "";

/// - `head` is what a task's row holds of its log, see `crate::head`: all of it, while there are `in_row` events. Tasks
///   of older formats have none until they change;
/// - `artifacts` of a snapshot are apart from the rest, which had them in it before;
/// - `tasks_waiting` gives the tasks that wait for an answer, the longest first;
/// - `leftovers` has the numbers of tasks that are gone, but for events, messages and snapshots that a sweep has still
///   to delete;
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

/// Webhooks, see `crate::outbox`:
/// - the `number` of a webhook is never used again, so what is told of a deleted or replaced one finds nothing;
/// - `webhooks_due` gives what is due at one receiver, and the receivers one by one;
/// - `undelivered` has the events that were given up. One that is tried once more has a time in `due`.
const FORMAT_4: &str = "
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

/// Brings a file of format `from` to the newest one.
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

/// The first table or index that the file should have and has not, or has in another shape.
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
