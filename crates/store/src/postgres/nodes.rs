//! The lease of this node, and the end of others.
//!
//! Each process has a row in `nodes`. It beats on a connection of its own: `beat` becomes the time of the database. Its lease lasts
//! for 0.8 of its grace time since the moment before the last successful beat was sent, by its own clock, so it is over
//! before anybody else may declare the node dead.
//!
//! | the row       | by                                              | then                                               |
//! |---------------|-------------------------------------------------|----------------------------------------------------|
//! | alive         | every beat                                      | the lease is extended                              |
//! | dead          | a node that has itself beaten without a gap for a whole grace time, and has seen the same `beat` of it for that long by its own clock | others claim its tasks; it begins again as another node, with the next incarnation |
//! | stopped       | `leave`                                         | others claim its tasks                              |
//! | removed       | any node, an hour after the end                 | its tallies are added to those of node 0            |

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::UNBROKEN;
use super::connections::Connections;
use super::failure::describe;
use super::link::{Dialer, Link, timeout_error};
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
const HAS_SAME_NAME_NODE: &str = "SELECT FROM nodes AS other JOIN nodes AS own ON own.no = $1
    WHERE other.name = own.name AND other.no <> own.no AND other.ended IS NULL AND other.beat > own.started LIMIT 1";

/// Also tells whether another node listens to notices, the number of the newest task, and the time of the database.
const BEAT: &str = "UPDATE nodes SET beat = now(), listens = $2 WHERE no = $1 AND ended IS NULL
    RETURNING EXISTS (SELECT FROM nodes AS other WHERE other.no <> $1 AND other.ended IS NULL AND other.listens),
        (SELECT coalesce(max(tasks.no), 0) FROM tasks), now()";

const BEATS: &str = "SELECT no, beat, extract(epoch FROM grace)::float8 FROM nodes WHERE no <> $1 AND ended IS NULL";

/// $3 and $4 are nodes and their beats. A node that has beaten since is alive, whatever the clock of the database has done.
const DECLARE_DEAD: &str = "UPDATE nodes SET ended = now(), is_dead = true
    FROM unnest($3::bigint[], $4::timestamptz[]) AS silent(no, beat)
    WHERE nodes.no = silent.no AND nodes.beat = silent.beat AND nodes.no <> $1 AND nodes.ended IS NULL
        AND nodes.beat < now() - nodes.grace AND nodes.grace <= make_interval(secs => $2) RETURNING nodes.name";

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

    async fn has_same_name_node(&self, link: &Link) -> Result<bool, Error> {
        Ok(!link.query(HAS_SAME_NAME_NODE, &[&self.number()]).await?.is_empty())
    }

    fn lease_end(&self, sent: Instant) -> Instant {
        sent + self.grace.mul_f64(LEASE)
    }

    /// Beats until the node leaves. Declares others dead and removes old rows.
    pub async fn run(&self, dialer: &Arc<Dialer>, notices: &Notices) {
        let mut link: Option<Link> = None;
        let mut dialing: Option<JoinHandle<Result<Link, Error>>> = None;
        let mut beat_gaps = BeatGaps::new(self.beat, self.grace);
        let mut beats_of_others = BeatsOfOthers::default();
        let mut next_tidying = Instant::now() + TIDY.mul_f64(random());
        // Another node of this name that is alive beats within its grace time. Those that start later find this node.
        let mut same_name_checks_until = Some(Instant::now() + 2 * self.grace);
        while !self.has_left.load(Ordering::Acquire) {
            let sent = Instant::now();
            let done = match self.connect(&mut link, &mut dialing, dialer).await {
                Ok(link) => {
                    let beat = timeout(self.beat, self.beat(link, notices, &mut beat_gaps)).await;
                    beat.unwrap_or_else(|_| Err(timeout_error()))
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
                    self.look_for_dead(link, notices, &beat_gaps, &mut beats_of_others).await?;
                    if same_name_checks_until.is_some_and(|end| Instant::now() < end)
                        && self.has_same_name_node(link).await?
                    {
                        same_name_checks_until = None;
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
            if let Some(link) = &link {
                // Between two beats, so that a silent node is found sooner: what it did waits for that.
                sleep((pause / 2).saturating_sub(sent.elapsed())).await;
                let looking = self.look_for_dead(link, notices, &beat_gaps, &mut beats_of_others);
                if let Ok(Err(error)) = timeout(self.beat / 4, looking).await {
                    tracing::debug!(reason = describe(&error), "other nodes cannot be looked at");
                }
            }
            sleep(pause.saturating_sub(sent.elapsed()).max(pause / 8)).await;
        }
    }

    /// Looks at the beats of others, and declares those dead that have been silent for their grace time.
    async fn look_for_dead(
        &self,
        link: &Link,
        notices: &Notices,
        beat_gaps: &BeatGaps,
        beats_of_others: &mut BeatsOfOthers,
    ) -> Result<(), Error> {
        let looked = Instant::now();
        let beats = link.query(BEATS, &[&self.number()]).await?;
        beats_of_others.note(beats.iter().map(BeatOfOther::read), looked, Instant::now());
        let silent = beats_of_others.silent();
        match beat_gaps.may_declare_dead(Instant::now()).filter(|_| !silent.0.is_empty()) {
            Some(unbroken) => self.declare_dead(link, notices, unbroken, silent).await,
            None => Ok(()),
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
            let dialed = timeout(self.beat, dial).await.map_err(|_| timeout_error())?;
            *dialing = None;
            *link = Some(dialed.unwrap_or_else(|_| Err(timeout_error()))?);
        }
        Ok(link.as_ref().expect("it is open"))
    }

    async fn beat(&self, link: &Link, notices: &Notices, beat_gaps: &mut BeatGaps) -> Result<(), Error> {
        let sent = Instant::now();
        let rows = link.query(BEAT, &[&self.number(), &notices.listens()]).await?;
        if let Some(row) = rows.first() {
            notices.set_listeners(row.get(0));
            self.note_task(TaskNo(row.get::<_, i64>(1) as u64));
            self.set_database_clock(row.get(2));
            self.lease.send_modify(|lease| lease.until = self.lease_end(sent));
            beat_gaps.note_beat(sent);
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

    async fn declare_dead(
        &self,
        link: &Link,
        notices: &Notices,
        unbroken: Duration,
        silent: (Vec<i64>, Vec<SystemTime>),
    ) -> Result<(), Error> {
        let (nodes, beats) = silent;
        if nodes.is_empty() {
            return Ok(());
        }
        let values: [&(dyn ToSql + Sync); 4] = [&self.number(), &unbroken.as_secs_f64(), &nodes, &beats];
        let dead = link.query(DECLARE_DEAD, &values).await?;
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
        // A webhook that an append has locked is not waited for: two that lock several could wait for each other. Others find it at
        // a node that has ended.
        db.execute(
            "WITH ended AS (UPDATE nodes SET ended = now() WHERE no = $1 AND ended IS NULL),
                released AS (UPDATE webhooks SET node = NULL WHERE number IN (
                    SELECT number FROM webhooks WHERE node = $1 AND due IS NOT NULL ORDER BY number FOR UPDATE SKIP LOCKED))
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
/// back first must not declare the others dead.
struct BeatGaps {
    /// A longer time between two beats is a gap.
    longest_pause: Duration,
    grace: Duration,
    since: Instant,
    last: Instant,
}

impl BeatGaps {
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

    /// How long this node has beaten without a gap, if that is long enough to declare others dead. It does so only with nodes
    /// whose grace time is not longer than that.
    fn may_declare_dead(&self, now: Instant) -> Option<Duration> {
        let is_well = now.duration_since(self.last) <= self.longest_pause;
        Some(now.duration_since(self.since)).filter(|unbroken| is_well && *unbroken >= self.grace)
    }
}

/// What this node has seen of others, by its own clock. If the clock of the database is set forward, all beats look old, but
/// those of nodes that are alive change.
#[derive(Default)]
struct BeatsOfOthers(HashMap<i64, SeenBeat>);

struct SeenBeat {
    beat: SystemTime,
    /// From when to when this node has seen this beat.
    since: Instant,
    until: Instant,
    grace: Duration,
}

struct BeatOfOther {
    node: i64,
    beat: SystemTime,
    grace: Duration,
}

impl BeatOfOther {
    fn read(row: &Row) -> Self {
        let grace = Duration::try_from_secs_f64(row.get(2)).unwrap_or(Duration::MAX);
        Self { node: row.get(0), beat: row.get(1), grace }
    }
}

impl BeatsOfOthers {
    /// The beats of all nodes that have not ended, which were read between two times.
    fn note(&mut self, beats: impl Iterator<Item = BeatOfOther>, from: Instant, to: Instant) {
        let mut before = std::mem::take(&mut self.0);
        for BeatOfOther { node, beat, grace } in beats {
            let same = before.remove(&node).filter(|seen| seen.beat == beat);
            let since = same.map_or(to, |seen| seen.since);
            self.0.insert(node, SeenBeat { beat, since, until: from, grace });
        }
    }

    /// The nodes that have not beaten for their whole grace time, and their last beats.
    fn silent(&self) -> (Vec<i64>, Vec<SystemTime>) {
        let is_silent = |seen: &SeenBeat| seen.until.saturating_duration_since(seen.since) >= seen.grace;
        self.0.iter().filter(|(_, seen)| is_silent(seen)).map(|(node, seen)| (*node, seen.beat)).unzip()
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
    fn only_a_node_whose_beat_stays_the_same_is_silent() {
        let (start, clock) = (Instant::now(), SystemTime::UNIX_EPOCH);
        let mut seen = BeatsOfOthers::default();
        // Node 1 beats all the time, by a clock that is set forward by an hour; node 2 has stopped; node 3 began late.
        for (second, of_1, of_3, expected) in [
            (0, 0, None, vec![]),
            (2, 2, None, vec![]),
            (4, 3_604, Some(1), vec![]),
            (6, 3_606, Some(1), vec![]),
            (8, 3_608, Some(1), vec![2]),
            (10, 3_610, Some(1), vec![2]),
            (12, 3_612, Some(2), vec![2]),
        ] {
            let beat = |node, beat| BeatOfOther {
                node,
                beat: clock + Duration::from_secs(beat),
                grace: Duration::from_secs(6),
            };
            let beats = [Some(beat(1, of_1)), Some(beat(2, 0)), of_3.map(|of_3| beat(3, of_3))];
            let from = start + Duration::from_secs(second);
            seen.note(beats.into_iter().flatten(), from, from + Duration::from_millis(10));
            assert_eq!(seen.silent().0, expected, "{second}");
        }
    }

    #[test]
    fn who_was_away_declares_nobody_dead() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut gaps =
            BeatGaps { since: start, last: start, ..BeatGaps::new(Duration::from_secs(2), Duration::from_secs(6)) };
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
            gaps.note_beat(at(beat));
            assert_eq!(gaps.may_declare_dead(at(beat)).is_some(), expected, "{beat}");
        }
        assert_eq!(gaps.may_declare_dead(at(30)), None, "its own last beat is too old");
    }
}
