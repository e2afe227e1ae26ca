//! A few connections for reads and small writes, which many tasks use at once.
//!
//! The driver pipelines: a statement need not wait for the answers of those before it. A statement goes to the connection with
//! the fewest under way. Lost connections are opened again by whoever needs them next; a read that is lost with its
//! connection is repeated, a write is not, since nobody knows whether it was done.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::UNBROKEN;
use super::failure::{is_lost, to_store_error};
use super::link::{Dialer, LONG_LIMIT, Link, STATEMENT_LIMIT};
use crate::StoreError;

/// Connections that tasks share.
const SHARED: usize = 4;

/// How many callers of a kind have a connection of their own at once. Others wait in line: the server accepts few connections, and
/// all nodes share them.
const MAX_OWN: usize = 8;

/// Idle connections that are kept for transactions.
const MAX_IDLE: usize = 2;

/// How a transaction of several statements begins. If this node freezes or loses its network, the server ends the transaction and
/// gives back its locks; a lock is waited for a little longer than that, so the locks of a frozen node are waited for to their end.
macro_rules! begin {
    () => {
        "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL lock_timeout = '8s'"
    };
}
pub(super) const BEGIN: &str = begin!();

/// For a database that does not wait for the disk unless it is asked to.
const BEGIN_SAFELY: &str = concat!(begin!(), "; SET LOCAL synchronous_commit = on");

/// How long a statement waits for a database that cannot be reached.
const PATIENCE: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Connections {
    dialer: Arc<Dialer>,
    shared: [Shared; SHARED],
    /// For connections of their own. A caller that has one never waits for another one, so both lines always move. Whoever may wait
    /// for a lock has a line apart, so that others do not wait behind it.
    transactions: Semaphore,
    lock_waiters: Semaphore,
    idle: Mutex<Vec<Link>>,
    /// When the last dial of an own connection failed, and why.
    own_failed: Mutex<Option<(Instant, String)>>,
}

/// A connection that nobody else uses.
struct OwnLink<'c> {
    link: Link,
    _permit: SemaphorePermit<'c>,
}

#[derive(Default)]
struct Shared {
    place: tokio::sync::Mutex<Place>,
    under_way: AtomicUsize,
}

#[derive(Default)]
struct Place {
    link: Option<Arc<Link>>,
    /// When the last dial failed, and why.
    failed: Option<(Instant, String)>,
}

impl Connections {
    pub fn new(dialer: Arc<Dialer>) -> Self {
        Self {
            dialer,
            shared: Default::default(),
            transactions: Semaphore::new(MAX_OWN),
            lock_waiters: Semaphore::new(MAX_OWN),
            idle: Mutex::default(),
            own_failed: Mutex::default(),
        }
    }

    pub async fn query(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        self.query_built(sql, params).await
    }

    /// The first row, if there is one.
    pub async fn query_opt(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.query_built(sql, params).await?.into_iter().next())
    }

    /// For statements that are built at run time.
    pub async fn query_built(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        if !is_read(sql) && self.dialer.must_ask_for_safe_commit() {
            let tx = self.begin().await?;
            let rows = tx.query(sql, params).await?;
            tx.commit().await?;
            return Ok(rows);
        }
        let mut patience = Patience::new();
        loop {
            let (shared, link) = self.link().await?;
            let done = {
                let _under_way = UnderWay::begin(&shared.under_way);
                link.query(sql, params).await
            };
            match done {
                Err(error) if is_read(sql) && is_lost(&error) => patience.pause(&error).await?,
                done => return Ok(done?),
            }
        }
    }

    /// Returns how many rows were changed.
    pub async fn execute(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<u64, StoreError> {
        if self.dialer.must_ask_for_safe_commit() {
            let tx = self.begin().await?;
            let changed = tx.execute(sql, params).await?;
            tx.commit().await?;
            return Ok(changed);
        }
        let (shared, link) = self.link().await?;
        let _under_way = UnderWay::begin(&shared.under_way);
        Ok(link.execute(sql, params).await?)
    }

    /// A statement on a connection of its own, since it may wait for a lock, and others would wait behind it.
    pub async fn query_alone(&self, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        if self.dialer.must_ask_for_safe_commit() {
            let tx = self.begin_in(&self.lock_waiters).await?;
            let rows = tx.query(sql, params).await?;
            tx.commit().await?;
            return Ok(rows);
        }
        let own = self.own_link(&self.lock_waiters, "").await?;
        let rows = own.link.query(sql, params).await?;
        self.keep(own);
        Ok(rows)
    }

    /// A transaction on a connection of its own.
    pub async fn begin(&self) -> Result<OwnTransaction<'_>, StoreError> {
        self.begin_in(&self.transactions).await
    }

    async fn begin_in<'c>(&'c self, line: &'c Semaphore) -> Result<OwnTransaction<'c>, StoreError> {
        let begin = if self.dialer.must_ask_for_safe_commit() { BEGIN_SAFELY } else { BEGIN };
        let mut own = self.own_link(line, begin).await?;
        own.link.set_limit(LONG_LIMIT);
        Ok(OwnTransaction { connections: self, own })
    }

    /// A connection that nobody else uses, on which these statements were executed, if there are any.
    async fn own_link<'c>(&'c self, line: &'c Semaphore, first: &str) -> Result<OwnLink<'c>, StoreError> {
        let since = Instant::now();
        let permit = line.acquire().await.expect("nobody closes it");
        // Whoever waited in line while a dial failed does not try another one, or the last in line would wait for very long.
        let failed = self.own_failed.lock().expect(UNBROKEN).clone();
        if let Some((_, reason)) = failed.filter(|(failed, _)| *failed >= since) {
            return Err(StoreError::Failed(reason.into()));
        }
        let link = self.idle_or_new_link(first).await?;
        Ok(OwnLink { link, _permit: permit })
    }

    async fn idle_or_new_link(&self, first: &str) -> Result<Link, StoreError> {
        loop {
            let idle = self.idle.lock().expect(UNBROKEN).pop();
            let Some(mut link) = idle else { break };
            link.set_limit(STATEMENT_LIMIT);
            // One that was lost while it was idle cannot begin.
            if !link.is_closed() && link.batch(first).await.is_ok() {
                return Ok(link);
            }
        }
        let link = self.dial().await.inspect_err(|error| {
            *self.own_failed.lock().expect(UNBROKEN) = Some((Instant::now(), error.to_string()));
        })?;
        if !first.is_empty() {
            link.batch(first).await?;
        }
        Ok(link)
    }

    /// Keeps a connection for the next one who needs it alone.
    fn keep(&self, own: OwnLink<'_>) {
        let mut idle = self.idle.lock().expect(UNBROKEN);
        if idle.len() < MAX_IDLE {
            idle.push(own.link);
        }
    }

    /// The connection with the fewest statements under way.
    async fn link(&self) -> Result<(&Shared, Arc<Link>), StoreError> {
        let least = self.shared.iter().min_by_key(|shared| shared.under_way.load(Ordering::Relaxed));
        let shared = least.expect("there is a connection");
        // While it waits for a connection, others should choose another place.
        let _under_way = UnderWay::begin(&shared.under_way);
        let since = Instant::now();
        let mut place = shared.place.lock().await;
        if let Some(link) = place.link.as_ref().filter(|link| !link.is_closed()) {
            return Ok((shared, link.clone()));
        }
        // Whoever waited for a dial that failed does not wait for another one, or the last in line would wait for very long.
        if let Some((_, reason)) = place.failed.as_ref().filter(|(failed, _)| *failed >= since) {
            return Err(StoreError::Failed(reason.clone().into()));
        }
        match self.dial().await {
            Ok(link) => {
                let link = Arc::new(link);
                *place = Place { link: Some(link.clone()), failed: None };
                Ok((shared, link))
            }
            Err(error) => {
                *place = Place { link: None, failed: Some((Instant::now(), error.to_string())) };
                Err(error)
            }
        }
    }

    async fn dial(&self) -> Result<Link, StoreError> {
        let mut patience = Patience::new();
        loop {
            match self.dialer.dial().await {
                Ok(link) => return Ok(link),
                Err(error) => patience.pause(&error).await?,
            }
        }
    }
}

/// Waits longer and longer for a database that cannot be reached, but not for ever.
struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    fn new() -> Self {
        Self { until: Instant::now() + PATIENCE, pause: FIRST_PAUSE }
    }

    async fn pause(&mut self, error: &Error) -> Result<(), StoreError> {
        if Instant::now() + self.pause > self.until {
            return Err(to_store_error(error));
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        Ok(())
    }
}

/// Counts a statement while it is under way.
struct UnderWay<'c>(&'c AtomicUsize);

impl<'c> UnderWay<'c> {
    fn begin(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_read(sql: &str) -> bool {
    sql.trim_start().get(..6).is_some_and(|verb| verb.eq_ignore_ascii_case("select"))
}

/// A transaction. When it is dropped without a commit, its connection is closed, which rolls it back.
pub(super) struct OwnTransaction<'c> {
    connections: &'c Connections,
    own: OwnLink<'c>,
}

impl OwnTransaction<'_> {
    pub async fn query(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        Ok(self.own.link.query(sql, params).await?)
    }

    pub async fn query_opt(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Option<Row>, StoreError> {
        Ok(self.own.link.query(sql, params).await?.into_iter().next())
    }

    pub async fn execute(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<u64, StoreError> {
        Ok(self.own.link.execute(sql, params).await?)
    }

    pub async fn commit(self) -> Result<(), StoreError> {
        self.own.link.batch("COMMIT").await?;
        self.connections.keep(self.own);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::super::settings::Target;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_in_line_for_a_lost_database_fails_with_the_first() {
        let target = Target::parse("host=/nowhere user=u dbname=d").unwrap();
        let connections = Arc::new(Connections::new(Arc::new(Dialer::new(target))));
        let began = Instant::now();
        let mut callers = JoinSet::new();
        for _ in 0..20 * MAX_OWN {
            let connections = connections.clone();
            callers.spawn(async move { connections.query_alone("SELECT 1", &[]).await.map(drop) });
        }
        let answers = callers.join_all().await;
        assert!(answers.iter().all(|answer| matches!(answer, Err(StoreError::Failed(_)))), "{answers:?}");
        // The time is that of the test.
        assert!(began.elapsed() <= PATIENCE, "{:?}", began.elapsed());
    }
}
