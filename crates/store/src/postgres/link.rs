//! One connection to the database, and how statements are sent on it.
//!
//! On a direct connection a statement is prepared once, under a name. Behind a pooler in transaction mode names do not work: the
//! next statement may run on another server connection. There, a statement goes out with the types of its parameters, which are
//! learned once, in a transaction, which keeps its server connection.
//!
//! Every dial and every statement has a time limit. A connection that does not answer within it is closed, so that whoever needs one
//! next dials anew: a proxy may keep a connection open long after the server behind it is gone.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::config::LoadBalanceHosts;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Connection, Error, Row, SimpleQueryMessage, Socket, Statement};

use super::UNBROKEN;
use super::nodes::random;
use super::settings::Target;
use super::tls::{Encrypted, Tls};

/// A connection keeps at most so many prepared statements.
const MAX_STATEMENTS: usize = 200;

/// How long TLS, the startup and the login may take, beside the `connect_timeout`. Where there are several hosts, the
/// `connect_timeout` is for all of it, as in libpq, so that the next host has its turn soon.
const LOGIN_LIMIT: Duration = Duration::from_secs(5);

/// How long a statement may take.
pub(super) const STATEMENT_LIMIT: Duration = Duration::from_secs(15);

/// How long a statement may take whose work grows with the database, on a connection that nobody else waits for.
pub(super) const LONG_LIMIT: Duration = Duration::from_secs(600);

/// An abandoned statement has at least this long to finish.
const LEAST_LIMIT: Duration = Duration::from_secs(1);

/// Opens connections, and knows what they have in common.
pub(super) struct Dialer {
    hosts: Vec<Config>,
    tls: Tls,
    /// The host that has answered last is tried first: a lease would be over before a silent one has had its time again.
    last_host: AtomicUsize,
    /// A pooler is between, or nobody knows yet, so nothing may depend on the session.
    is_pooled: AtomicBool,
    /// Some connections may have been opened when nobody knew that there is no pooler.
    was_pooled: AtomicBool,
    /// The database commits without waiting for the disk, unless a connection or a transaction asks for it.
    is_commit_unsafe: AtomicBool,
    parameter_types: Mutex<HashMap<String, Arc<[Type]>>>,
}

impl Dialer {
    pub fn new(target: Target) -> Self {
        let hosts = target.hosts();
        let is_random = target.config.get_load_balance_hosts() == LoadBalanceHosts::Random;
        let first = if is_random { (random() * hosts.len() as f64) as usize % hosts.len() } else { 0 };
        Self {
            hosts,
            tls: target.tls,
            last_host: AtomicUsize::new(first),
            is_pooled: AtomicBool::new(true),
            was_pooled: AtomicBool::new(false),
            is_commit_unsafe: AtomicBool::new(false),
            parameter_types: Mutex::default(),
        }
    }

    pub fn is_pooled(&self) -> bool {
        self.is_pooled.load(Ordering::Relaxed)
    }

    pub fn set_pooled(&self, is_pooled: bool) {
        self.was_pooled.fetch_or(is_pooled, Ordering::Relaxed);
        self.is_pooled.store(is_pooled, Ordering::Relaxed);
    }

    pub fn set_commit_unsafe(&self) {
        self.is_commit_unsafe.store(true, Ordering::Relaxed);
    }

    /// Whether each transaction has to ask for a commit that waits for the disk. Connections ask for it themselves if they were
    /// opened without a pooler.
    pub fn must_ask_for_safe_commit(&self) -> bool {
        self.was_pooled.load(Ordering::Relaxed) && self.is_commit_unsafe.load(Ordering::Relaxed)
    }

    pub async fn dial(self: &Arc<Self>) -> Result<Link, Error> {
        let (client, connection) = self.dial_raw().await?;
        let connection = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(reason = super::failure::describe(&error), "a database connection has ended");
            }
        });
        let session = Arc::new(Session { client, connection: connection.abort_handle() });
        Ok(Link { session, limit: STATEMENT_LIMIT, dialer: self.clone(), statements: Mutex::default() })
    }

    /// The client works while somebody polls the connection.
    pub async fn dial_raw(&self) -> Result<(Client, Connection<Socket, Encrypted>), Error> {
        let count = self.hosts.len();
        let login_limit = if count == 1 { LOGIN_LIMIT } else { Duration::ZERO };
        let first = self.last_host.load(Ordering::Relaxed);
        let mut failed = None;
        for place in (first..first + count).map(|place| place % count) {
            let host = &self.hosts[place];
            let limit = host.get_connect_timeout().map_or(LOGIN_LIMIT, |limit| *limit + login_limit);
            match timeout(limit, self.connect(host)).await.unwrap_or_else(|_| Err(timeout_error())) {
                Ok(connected) => {
                    self.last_host.store(place, Ordering::Relaxed);
                    return Ok(connected);
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.expect("there is a host"))
    }

    async fn connect(&self, config: &Config) -> Result<(Client, Connection<Socket, Encrypted>), Error> {
        // A pooler refuses options that it does not know.
        if !self.is_commit_unsafe.load(Ordering::Relaxed) || self.is_pooled() {
            return config.connect(self.tls.clone()).await;
        }
        let mut config = config.clone();
        let options = config.get_options().map(|options| format!("{options} ")).unwrap_or_default();
        config.options(format!("{options}-c synchronous_commit=on"));
        config.connect(self.tls.clone()).await
    }
}

/// The error of a server that does not answer in time. The driver makes it for its own time limits.
pub(super) fn timeout_error() -> Error {
    Error::__private_api_timeout()
}

pub(super) struct Link {
    session: Arc<Session>,
    /// How long a statement may take.
    limit: Duration,
    dialer: Arc<Dialer>,
    statements: Mutex<HashMap<String, Statement>>,
}

struct Session {
    client: Client,
    connection: AbortHandle,
}

impl Session {
    /// Waits for an answer. After the limit it closes the connection, which ends this statement and all others on it.
    async fn limited<T>(
        self: &Arc<Self>,
        limit: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut work = pin!(work);
        let mut under_way = UnderWay { session: Some(self), limit, since: Instant::now() };
        let done = timeout(limit, &mut work).await;
        under_way.session = None;
        match done {
            Ok(done) => done,
            Err(_) => {
                self.connection.abort();
                work.await.map_err(|_| timeout_error())
            }
        }
    }
}

/// A statement that waits for its answer. If its caller goes away, somebody still has to notice a connection without answers.
struct UnderWay<'s> {
    session: Option<&'s Arc<Session>>,
    limit: Duration,
    since: Instant,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let (Some(session), Ok(runtime)) = (self.session, tokio::runtime::Handle::try_current()) else { return };
        if session.client.is_closed() {
            return;
        }
        let (session, limit) = (session.clone(), self.limit.saturating_sub(self.since.elapsed()).max(LEAST_LIMIT));
        runtime.spawn(async move {
            // It is answered after the abandoned statement.
            if timeout(limit, session.client.batch_execute("")).await.is_err() {
                session.connection.abort();
            }
        });
    }
}

impl Link {
    pub fn is_closed(&self) -> bool {
        self.session.client.is_closed()
    }

    /// Closes the connection. Statements that wait for their answers fail.
    pub fn close(&self) {
        self.session.connection.abort();
    }

    pub fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    fn client(&self) -> &Client {
        &self.session.client
    }

    pub async fn query(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let work = async {
            if self.dialer.is_pooled() {
                let types = self.types(sql).await?;
                return self.client().query_typed(sql, &typed(params, &types)).await;
            }
            match self.client().query(&self.statement(sql).await?, params).await {
                Err(error) if self.is_outdated(&error) => {
                    self.client().query(&self.statement(sql).await?, params).await
                }
                done => done,
            }
        };
        self.session.limited(self.limit, work).await
    }

    pub async fn execute(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<u64, Error> {
        let work = async {
            if self.dialer.is_pooled() {
                let types = self.types(sql).await?;
                return self.client().execute_typed(sql, &typed(params, &types)).await;
            }
            match self.client().execute(&self.statement(sql).await?, params).await {
                Err(error) if self.is_outdated(&error) => {
                    self.client().execute(&self.statement(sql).await?, params).await
                }
                done => done,
            }
        };
        self.session.limited(self.limit, work).await
    }

    /// Statements without parameters.
    pub async fn batch(&self, sql: &str) -> Result<(), Error> {
        self.session.limited(self.limit, self.client().batch_execute(sql)).await
    }

    /// The rows of a statement without parameters, as texts. It needs no prepared statement.
    pub async fn texts(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        let messages = self.session.limited(self.limit, self.client().simple_query(sql)).await?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    async fn statement(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(known) = self.lock().get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client().prepare(sql).await?;
        let mut statements = self.lock();
        if statements.len() >= MAX_STATEMENTS {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Whether the statements have to be prepared again, because a newer server has changed a table. Nothing was executed then.
    fn is_outdated(&self, error: &Error) -> bool {
        let is_outdated = error.code().is_some_and(|code| {
            *code == SqlState::FEATURE_NOT_SUPPORTED || *code == SqlState::INVALID_SQL_STATEMENT_NAME
        });
        if is_outdated {
            self.lock().clear();
        }
        is_outdated
    }

    /// The types of the parameters. They are learned on a connection of their own, since others use this one meanwhile.
    async fn types(&self, sql: &str) -> Result<Arc<[Type]>, Error> {
        let known = self.dialer.parameter_types.lock().expect(UNBROKEN).get(sql).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let link = self.dialer.dial().await?;
        link.batch("BEGIN").await?;
        let statement = link.session.limited(link.limit, link.client().prepare(sql)).await?;
        let types: Arc<[Type]> = statement.params().into();
        // This sends the removal of its name, within the transaction.
        drop(statement);
        link.batch("COMMIT").await?;
        let mut all = self.dialer.parameter_types.lock().expect(UNBROKEN);
        if all.len() >= 10 * MAX_STATEMENTS {
            all.clear();
        }
        all.insert(sql.to_owned(), types.clone());
        Ok(types)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Statement>> {
        self.statements.lock().expect(UNBROKEN)
    }
}

fn typed<'p>(params: &[&'p (dyn ToSql + Sync)], types: &[Type]) -> Vec<(&'p (dyn ToSql + Sync), Type)> {
    params.iter().copied().zip(types.iter().cloned()).collect()
}
