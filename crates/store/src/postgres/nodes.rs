//! The lease of this node, and the end of others.
//!
//! Each process has a row in `nodes`. It beats on a connection of its own: `beat` becomes the time of the database. Its lease lasts
//! for 0.8 of its grace time since the moment before the last successful beat was sent, by its own clock, so it is over
//! before anybody else may declare the node dead.
//!
//! | the row       | by                                              | then                                               |
//! |---------------|-------------------------------------------------|----------------------------------------------------|
//! | alive         | every beat                                      | the lease is extended                              |
//! | dead          | a node that has itself beaten without a gap for a whole grace time | others claim its tasks; it begins again as another node, with the next incarnation |
//! | stopped       | `leave`                                         | others claim its tasks                              |
//! | removed       | any node, an hour after the end                 | its tallies are added to those of node 0            |

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use super::UNBROKEN;
use super::connections::Connections;
use super::failure::describe;
use super::link::{Dialer, Link, silence};
use super::notices::Notices;
use super::settings::PostgresSettings;
use crate::{ClaimingAgent, Member, MemberState, NodeLease, StoreError, TaskNo};

/// The part of the grace time that a lease lasts for.
const LEASE: f64 = 0.8;

/// How often rows of nodes that ended long ago are removed.
const TIDY: Duration = Duration::from_secs(600);

const REGISTER: &str = "INSERT INTO nodes (name, version, grace, listens, agents)
    VALUES ($1, $2, make_interval(secs => $3), $4, $5) RETURNING no, now()";

/// Another node of this name that has beaten since this one began. The row that a killed server left behind beats no more.
const HAS_NAMESAKE: &str = "SELECT FROM nodes AS other JOIN nodes AS own ON own.no = $1
    WHERE other.name = own.name AND other.no <> own.no AND other.ended IS NULL AND other.beat > own.started LIMIT 1";

/// Also tells whether another node listens to notices, the number of the newest task, and the time of the database.
const BEAT: &str = "UPDATE nodes SET beat = now(), listens = $2 WHERE no = $1 AND ended IS NULL
    RETURNING EXISTS (SELECT FROM nodes AS other WHERE other.no <> $1 AND other.ended IS NULL AND other.listens),
        (SELECT coalesce(max(tasks.no), 0) FROM tasks), now()";

const BURY: &str = "UPDATE nodes SET ended = now(), is_dead = true
    WHERE no <> $1 AND ended IS NULL AND beat < now() - grace AND grace <= make_interval(secs => $2) RETURNING name";

const TIDY_UP: &str = "WITH old AS (
        SELECT nodes.no FROM nodes WHERE nodes.ended < now() - interval '1 hour'
            AND NOT EXISTS (SELECT FROM tasks WHERE tasks.node = nodes.no)
        ORDER BY nodes.no LIMIT 100 FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM tallies USING old WHERE tallies.node = old.no RETURNING tallies.party, tallies.state, tallies.n),
    folded AS (
        INSERT INTO tallies (party, state, node, writer, n)
            SELECT party, state, 0, 0, sum(n) FROM gone GROUP BY party, state HAVING sum(n) <> 0 ORDER BY party, state
        ON CONFLICT (party, state, node, writer) DO UPDATE SET n = tallies.n + excluded.n)
    DELETE FROM nodes USING old WHERE nodes.no = old.no";

const MEMBERS: &str = "SELECT nodes.name, nodes.version, extract(epoch FROM now() - nodes.started)::float8,
        extract(epoch FROM now() - nodes.beat)::float8, extract(epoch FROM nodes.grace)::float8,
        nodes.ended IS NOT NULL, nodes.is_dead, nodes.beat < now() - nodes.grace, nodes.listens, nodes.no = $1,
        count(*) FILTER (WHERE tasks.state = 1), count(*) FILTER (WHERE tasks.state IN (2, 3)),
        count(*) FILTER (WHERE tasks.state = 0)
    FROM nodes LEFT JOIN tasks ON tasks.node = nodes.no
    WHERE nodes.ended IS NULL OR (nodes.ended > now() - interval '10 minutes'
        AND NOT EXISTS (SELECT FROM nodes AS newer WHERE newer.name = nodes.name AND newer.no > nodes.no))
    GROUP BY nodes.no ORDER BY nodes.name, nodes.no";

/// This node.
pub(super) struct Node {
    pub name: Arc<str>,
    version: String,
    beat: Duration,
    grace: Duration,
    number: AtomicI64,
    has_left: AtomicBool,
    /// The number of the row, and the ids of the agents that are in it.
    published: Mutex<(i64, Vec<String>)>,
    /// The time of the database, and when this node heard it.
    database_clock: Mutex<(SystemTime, Instant)>,
    /// The number of the newest task that is known here.
    highest_no: AtomicU64,
    lease: watch::Sender<NodeLease>,
}

impl Node {
    /// A node without a row.
    pub fn new(settings: &PostgresSettings) -> Self {
        let PostgresSettings { node_name, version, beat, grace, .. } = settings;
        let lease = NodeLease { until: Instant::now(), incarnation: 1 };
        Self {
            name: node_name.clone(),
            version: version.clone(),
            beat: *beat,
            grace: *grace,
            number: AtomicI64::new(0),
            has_left: AtomicBool::new(false),
            published: Mutex::default(),
            database_clock: Mutex::new((SystemTime::UNIX_EPOCH, Instant::now())),
            highest_no: AtomicU64::new(0),
            lease: watch::Sender::new(lease),
        }
    }

    /// The number of the row. It changes when the node was declared dead.
    pub fn number(&self) -> i64 {
        self.number.load(Ordering::Acquire)
    }

    pub fn highest_no(&self) -> TaskNo {
        TaskNo(self.highest_no.load(Ordering::Relaxed))
    }

    /// A task of this number exists.
    pub fn note_task(&self, task: TaskNo) {
        self.highest_no.fetch_max(task.0, Ordering::Relaxed);
    }

    pub fn lease(&self) -> watch::Receiver<NodeLease> {
        self.lease.subscribe()
    }

    /// Makes the row.
    pub async fn register(&self, link: &Link, listens: bool) -> Result<(), Error> {
        let sent = Instant::now();
        let agents = self.published().1.clone();
        let values: [&(dyn ToSql + Sync); 5] =
            [&&*self.name, &self.version, &self.grace.as_secs_f64(), &listens, &agents];
        let rows = link.query(REGISTER, &values).await?;
        let number: i64 = rows.first().expect("an insert returns its row").get(0);
        *self.published() = (number, agents);
        self.set_database_clock(rows[0].get(1));
        let is_first = self.number.swap(number, Ordering::AcqRel) == 0;
        self.lease.send_modify(|lease| {
            lease.until = self.lease_end(sent);
            lease.incarnation += u64::from(!is_first);
        });
        Ok(())
    }

    /// A time of this node's monotonic clock, by the clock of the database. Rather too early than too late, by the time that the
    /// database needed to tell its time.
    pub fn database_time(&self, at: Instant) -> SystemTime {
        let (time, heard) = *self.database_clock.lock().expect(UNBROKEN);
        match at.checked_duration_since(heard) {
            Some(later) => time + later,
            None => time - heard.duration_since(at),
        }
    }

    fn set_database_clock(&self, time: SystemTime) {
        *self.database_clock.lock().expect(UNBROKEN) = (time, Instant::now());
    }

    /// Tells other nodes which agents this one has, if that has changed.
    pub async fn publish_agents(&self, db: &Connections, agents: &[ClaimingAgent]) -> Result<(), StoreError> {
        let agents = agents.iter().map(|agent| agent.id.as_str().to_owned()).collect();
        let wanted: (i64, Vec<String>) = (self.number(), agents);
        if *self.published() == wanted {
            return Ok(());
        }
        db.execute("UPDATE nodes SET agents = $2 WHERE no = $1", &[&wanted.0, &wanted.1]).await?;
        *self.published() = wanted;
        Ok(())
    }

    fn published(&self) -> MutexGuard<'_, (i64, Vec<String>)> {
        self.published.lock().expect(UNBROKEN)
    }

    async fn has_namesake(&self, link: &Link) -> Result<bool, Error> {
        Ok(!link.query(HAS_NAMESAKE, &[&self.number()]).await?.is_empty())
    }

    fn lease_end(&self, sent: Instant) -> Instant {
        sent + self.grace.mul_f64(LEASE)
    }

    /// Beats until the node leaves. Declares others dead and removes old rows.
    pub async fn run(&self, dialer: &Arc<Dialer>, notices: &Notices) {
        let mut link: Option<Link> = None;
        let mut dialing: Option<JoinHandle<Result<Link, Error>>> = None;
        let mut rhythm = Rhythm::new(self.beat, self.grace);
        let mut next_burial = Instant::now() + self.beat;
        let mut next_tidying = Instant::now() + TIDY.mul_f64(random());
        // A namesake that is alive beats within its grace time. Those that start later find this node.
        let mut namesakes_until = Some(Instant::now() + 2 * self.grace);
        while !self.has_left.load(Ordering::Acquire) {
            let sent = Instant::now();
            let done = match self.connect(&mut link, &mut dialing, dialer).await {
                Ok(link) => {
                    let beat = timeout(self.beat, self.beat(link, notices, &mut rhythm)).await;
                    beat.unwrap_or_else(|_| Err(silence()))
                }
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                tracing::warn!(reason = describe(&error), "the lease of this node cannot be renewed");
                if let Some(link) = link.take() {
                    link.close();
                }
            }
            let is_well = link.is_some();
            if let Some(link) = &link {
                let upkeep = async {
                    if let Some(unbroken) = rhythm.may_bury(Instant::now()).filter(|_| Instant::now() >= next_burial) {
                        // Not all nodes at the same moment.
                        next_burial = Instant::now() + self.beat.mul_f64(0.5 + random());
                        self.bury(link, notices, unbroken).await?;
                    }
                    if namesakes_until.is_some_and(|end| Instant::now() < end) && self.has_namesake(link).await? {
                        namesakes_until = None;
                        tracing::error!(
                            node = &*self.name,
                            "another node has this name and renews its lease: give each server its own cluster.node_name"
                        );
                    }
                    if Instant::now() >= next_tidying {
                        next_tidying = Instant::now() + TIDY.mul_f64(0.5 + random());
                        link.execute(TIDY_UP, &[]).await?;
                    }
                    Ok::<_, Error>(())
                };
                if let Ok(Err(error)) = timeout(self.beat, upkeep).await {
                    tracing::debug!(reason = describe(&error), "other nodes cannot be looked at");
                }
            }
            let pause = if is_well { self.beat } else { self.beat / 4 };
            sleep(pause.saturating_sub(sent.elapsed()).max(pause / 8)).await;
        }
    }

    /// A dial may take longer than a beat, such as when the first of several hosts is silent. Then it continues with the next beat.
    async fn connect<'l>(
        &self,
        link: &'l mut Option<Link>,
        dialing: &mut Option<JoinHandle<Result<Link, Error>>>,
        dialer: &Arc<Dialer>,
    ) -> Result<&'l Link, Error> {
        if link.as_ref().is_none_or(Link::is_closed) {
            let dial = dialing.get_or_insert_with(|| {
                let dialer = dialer.clone();
                tokio::spawn(async move { dialer.dial().await })
            });
            let dialed = timeout(self.beat, dial).await.map_err(|_| silence())?;
            *dialing = None;
            *link = Some(dialed.unwrap_or_else(|_| Err(silence()))?);
        }
        Ok(link.as_ref().expect("it is open"))
    }

    async fn beat(&self, link: &Link, notices: &Notices, rhythm: &mut Rhythm) -> Result<(), Error> {
        let sent = Instant::now();
        let rows = link.query(BEAT, &[&self.number(), &notices.listens()]).await?;
        if let Some(row) = rows.first() {
            notices.set_listeners(row.get(0));
            self.note_task(TaskNo(row.get::<_, i64>(1) as u64));
            self.set_database_clock(row.get(2));
            self.lease.send_modify(|lease| lease.until = self.lease_end(sent));
            rhythm.note_beat(sent);
        } else if !self.has_left.load(Ordering::Acquire) {
            tracing::warn!(
                node = &*self.name,
                "this node was declared dead, since it had not renewed its lease; others have its tasks, and it begins again"
            );
            self.register(link, notices.listens()).await?;
            notices.tell_hello();
        }
        Ok(())
    }

    async fn bury(&self, link: &Link, notices: &Notices, unbroken: Duration) -> Result<(), Error> {
        let dead = link.query(BURY, &[&self.number(), &unbroken.as_secs_f64()]).await?;
        for row in &dead {
            let name: &str = row.get(0);
            tracing::warn!(
                node = name,
                "a node has not renewed its lease for its grace time; its tasks are taken over"
            );
        }
        if !dead.is_empty() {
            notices.tell_left();
        }
        Ok(())
    }

    /// Ends the row, so that others may take its tasks and deliveries at once.
    pub async fn leave(&self, db: &Connections, notices: &Notices) -> Result<(), StoreError> {
        self.has_left.store(true, Ordering::Release);
        let number = self.number();
        db.execute(
            "WITH ended AS (UPDATE nodes SET ended = now() WHERE no = $1 AND ended IS NULL),
                released AS (UPDATE webhooks SET node = NULL WHERE node = $1 AND due IS NOT NULL)
             UPDATE given_up SET node = NULL WHERE node = $1 AND due IS NOT NULL",
            &[&number],
        )
        .await?;
        notices.tell_left();
        Ok(())
    }

    pub async fn members(&self, db: &Connections) -> Result<Vec<Member>, StoreError> {
        let rows = db.query(MEMBERS, &[&self.number()]).await?;
        let seconds = |seconds: f64| Duration::from_secs_f64(seconds.max(0.0));
        let members = rows.iter().map(|row| Member {
            name: row.get::<_, &str>(0).into(),
            version: row.get(1),
            up: seconds(row.get(2)),
            beat_age: seconds(row.get(3)),
            grace: seconds(row.get(4)),
            state: match (row.get(5), row.get(6), row.get(7)) {
                (true, false, _) => MemberState::Stopped,
                (true, true, _) | (false, _, true) => MemberState::Dead,
                (false, _, false) => MemberState::Alive,
            },
            receives_hints: row.get(8),
            is_this: row.get(9),
            working: row.get::<_, i64>(10) as u64,
            parked: row.get::<_, i64>(11) as u64,
            queued: row.get::<_, i64>(12) as u64,
        });
        Ok(members.collect())
    }
}

/// Since when this node has beaten without a gap. After an outage of the database everybody's beats are old, and whoever comes
/// back first must not bury the others.
struct Rhythm {
    /// A longer time between two beats is a gap.
    longest_pause: Duration,
    grace: Duration,
    since: Instant,
    last: Instant,
}

impl Rhythm {
    fn new(beat: Duration, grace: Duration) -> Self {
        let now = Instant::now();
        Self { longest_pause: beat.mul_f64(2.5).min(grace), grace, since: now, last: now }
    }

    fn note_beat(&mut self, now: Instant) {
        if now.duration_since(self.last) > self.longest_pause {
            self.since = now;
        }
        self.last = now;
    }

    /// How long this node has beaten without a gap, if that is long enough to declare others dead. It buries only nodes whose
    /// grace time is not longer than that.
    fn may_bury(&self, now: Instant) -> Option<Duration> {
        let is_well = now.duration_since(self.last) <= self.longest_pause;
        Some(now.duration_since(self.since)).filter(|unbroken| is_well && *unbroken >= self.grace)
    }
}

/// A number from 0 to 1.
pub(super) fn random() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_away_does_not_bury_others() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut rhythm =
            Rhythm { since: start, last: start, ..Rhythm::new(Duration::from_secs(2), Duration::from_secs(6)) };
        for (beat, expected) in [
            (2, false),
            (4, false),
            (6, true),
            (11, true),
            // An outage that is shorter than the grace time is a gap too.
            (17, false),
            (20, false),
            (22, false),
            (24, true),
        ] {
            rhythm.note_beat(at(beat));
            assert_eq!(rhythm.may_bury(at(beat)).is_some(), expected, "{beat}");
        }
        assert_eq!(rhythm.may_bury(at(30)), None, "its own last beat is too old");
    }
}
