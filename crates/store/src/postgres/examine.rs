//! Looks at a database without changing anything, for `sabir doctor`.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::link::Dialer;
use super::migrate::{self, open_error};
use super::notices::Notices;
use super::settings::Target;
use crate::OpenError;

/// What is known of a database and its server.
#[derive(Debug, Clone, PartialEq)]
pub struct PostgresExamination {
    /// The server and the database, without user and password.
    pub server: String,
    /// As the server says it, such as `17.5`.
    pub version: String,
    /// The same as a number, such as 170005.
    pub version_number: i64,
    pub fsync: bool,
    pub full_page_writes: bool,
    pub synchronous_commit: String,
    pub isolation: String,
    /// It is a standby, or set to be read-only.
    pub is_read_only: bool,
    /// `None`: there are no tables of Sabir yet.
    pub format: Option<i64>,
    pub known_format: i64,
    /// A server of this version cannot work with it.
    pub is_too_new: bool,
    /// A migration or a restore into it was interrupted.
    pub has_unfinished_transfer: bool,
    /// What the user may not do and a server must, such as `INSERT, UPDATE on tasks`.
    pub missing_rights: Vec<String>,
    pub bytes: u64,
    pub connections: i64,
    pub max_connections: i64,
    /// Notices do not arrive, as behind a pooler in transaction mode.
    pub is_pooled: bool,
    /// How far the clock of the server is ahead of ours, in seconds.
    pub clock_ahead: f64,
    /// How long a statement takes.
    pub round_trip: Duration,
}

impl PostgresExamination {
    /// How the user gets the rights that are missing.
    #[must_use]
    pub fn remedy_for_rights(&self) -> &'static str {
        if self.format.is_some() { migrate::GRANT_ON_TABLES } else { migrate::GRANT_ON_SCHEMA }
    }

    /// # Errors
    /// The database cannot be reached or read.
    pub async fn of(url: &str) -> Result<Self, OpenError> {
        let target = Target::parse(url).map_err(OpenError::BadUrl)?;
        let server = target.shown();
        let failed = |error| open_error(&server, &error);
        let dialer = Arc::new(Dialer::new(target));
        let link = dialer.dial().await.map_err(failed)?;
        let rows = link.texts(FIGURES).await.map_err(failed)?;
        let row = rows.into_iter().next().unwrap_or_default();
        let text = |column: usize| row.get(column).cloned().flatten().unwrap_or_default();
        let number = |column: usize| text(column).parse::<i64>().unwrap_or_default();
        let start = Instant::now();
        let now = link.texts("SELECT extract(epoch FROM clock_timestamp())").await.map_err(failed)?;
        let (round_trip, ours) = (start.elapsed(), SystemTime::now());
        let theirs = now.first().and_then(|row| row.first()?.as_ref()?.parse::<f64>().ok()).unwrap_or_default();
        let ours = ours.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() - round_trip / 2;
        let has_tables = text(8) == "t";
        let (format, is_too_new) = match has_tables {
            true => {
                let rows = link.texts("SELECT format, readable_by FROM sabir_format").await.map_err(failed)?;
                let row = rows.into_iter().next().unwrap_or_default();
                let number =
                    |column: usize| row.get(column).cloned().flatten().and_then(|text| text.parse::<i64>().ok());
                let (format, readable_by) = (number(0), number(1).unwrap_or_default());
                (format, format.is_some_and(|format| format > migrate::KNOWN && readable_by > migrate::KNOWN))
            }
            false => (None, false),
        };
        let has_unfinished_transfer = migrate::has_unfinished_transfer(&link, &server).await?;
        let rights = if has_tables { rights_on_tables() } else { RIGHTS_ON_SCHEMA.to_owned() };
        let missing_rights = link.texts(&rights).await.map_err(failed)?.into_iter().flatten().flatten().collect();
        let (listens, listening) = Arc::new(Notices::new()).listen(&dialer, Arc::new(|| 0)).await.map_err(failed)?;
        listening.abort();
        Ok(Self {
            version: text(0),
            version_number: number(1),
            fsync: text(2) != "off",
            full_page_writes: text(3) != "off",
            synchronous_commit: text(4),
            isolation: text(5),
            is_read_only: text(6) == "t" || text(7) == "on",
            format,
            known_format: migrate::KNOWN,
            is_too_new,
            has_unfinished_transfer,
            missing_rights,
            bytes: number(9).unsigned_abs(),
            connections: number(10),
            max_connections: number(11),
            is_pooled: !listens,
            clock_ahead: theirs - ours.as_secs_f64(),
            round_trip,
            server,
        })
    }
}

/// A query for what is missing to write the tables. It takes no notice of tables that are not there.
fn rights_on_tables() -> String {
    let tables = migrate::tables().collect::<Vec<_>>().join(",");
    format!(
        "SELECT string_agg(privilege, ', ' ORDER BY privilege_place) || ' on ' || name
            FROM unnest(string_to_array('{tables}', ',')) WITH ORDINALITY AS tables(name, place),
                unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) WITH ORDINALITY AS privileges(privilege, privilege_place)
            WHERE NOT has_table_privilege(to_regclass(name), privilege) GROUP BY name, place
        UNION ALL SELECT 'USAGE on task_numbers' WHERE NOT has_sequence_privilege(to_regclass('task_numbers'), 'USAGE, UPDATE')"
    )
}

/// What is missing to make the tables. There is no current schema if the user may use none.
const RIGHTS_ON_SCHEMA: &str = "SELECT 'CREATE on schema ' || coalesce(current_schema(), 'public')
    WHERE NOT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)";

const FIGURES: &str = "SELECT current_setting('server_version'), current_setting('server_version_num'),
    current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
    current_setting('default_transaction_isolation'), pg_is_in_recovery(), current_setting('default_transaction_read_only'),
    to_regclass('sabir_format') IS NOT NULL, pg_database_size(current_database()),
    (SELECT sum(numbackends) FROM pg_stat_database), current_setting('max_connections')";
