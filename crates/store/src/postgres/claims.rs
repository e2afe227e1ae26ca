//! Who owns which task: takes over what nobody drives, gives back, and tells how far tasks have come.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sabir_model::{AgentId, ContextId, Owner, Seq};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::UNBROKEN;
use super::connections::Connections;
use super::nodes::Node;
use super::notices::Notices;
use super::parties::Parties;
use super::reader;
use super::rows::{self, last_seq, readable, task_columns, task_row, task_tables};
use crate::damage::DamageLog;
use crate::{
    AfterAppend, ClaimedTask, ClaimingAgent, Epoch, GivenBack, Home, SendDigest, StoreError, TaskNo, TaskOwner,
    TaskProgress,
};

/// Nodes that have ended, or whose rows are gone, and still own something: 0 tasks, 1 webhooks, 2 events that were given up.
/// Each index is looked at once for each owner in it, not for each row. Something to send without an owner has the number 0.
const ENDED_OWNERS: &str = "WITH RECURSIVE
    of_tasks (node) AS (
        SELECT min(node) FROM tasks WHERE node IS NOT NULL
        UNION ALL SELECT (SELECT min(tasks.node) FROM tasks WHERE tasks.node > of_tasks.node) FROM of_tasks WHERE node IS NOT NULL),
    of_webhooks (node) AS (
        SELECT min(node) FROM webhooks WHERE due IS NOT NULL
        UNION ALL SELECT (SELECT min(webhooks.node) FROM webhooks WHERE due IS NOT NULL AND webhooks.node > of_webhooks.node)
            FROM of_webhooks WHERE node IS NOT NULL),
    of_given_up (node) AS (
        SELECT min(node) FROM given_up WHERE due IS NOT NULL
        UNION ALL SELECT (SELECT min(given_up.node) FROM given_up WHERE due IS NOT NULL AND given_up.node > of_given_up.node)
            FROM of_given_up WHERE node IS NOT NULL),
    owners (kind, node) AS (
        SELECT 0, node FROM of_tasks UNION ALL SELECT 1, node FROM of_webhooks UNION ALL SELECT 2, node FROM of_given_up)
    SELECT owners.kind, owners.node, nodes.name FROM owners LEFT JOIN nodes ON nodes.no = owners.node
        WHERE owners.node IS NOT NULL AND (nodes.no IS NULL OR nodes.ended IS NOT NULL)
    UNION ALL SELECT 1, 0, NULL WHERE EXISTS (SELECT FROM webhooks WHERE due IS NOT NULL AND node IS NULL)
    UNION ALL SELECT 2, 0, NULL WHERE EXISTS (SELECT FROM given_up WHERE due IS NOT NULL AND node IS NULL)";

const CLAIM_OF_ENDED: &str = "WITH lost AS (
        SELECT no, node FROM tasks WHERE node = ANY($1) AND state < 4 AND no <> ALL($4)
        ORDER BY no LIMIT $3 FOR UPDATE SKIP LOCKED)
    UPDATE tasks SET node = $2, epoch = tasks.epoch + 1, is_left = false, left_at = NULL, home = NULL
    FROM lost WHERE tasks.no = lost.no RETURNING tasks.no, tasks.epoch, lost.node";

/// Tasks of agents that this node does not have are left to others. Only if no node has had the agent for ten minutes, and the task
/// was left for so long, any node takes it, and settles it.
///
/// The oldest of each context, if no other task of the context has a run, and if it waits for no other node. It has the context
/// from then on, so that no younger task overtakes it. A node that is there without the agent of the task, after a change of its
/// configuration, is waited for no longer than one that is gone; one that has just begun may not have published its agents yet.
///
/// Of an agent with a limit over all nodes, no more than may begin a run now; what others have claimed for it counts as begun.
const CLAIM_LEFT: &str = "WITH limited AS MATERIALIZED (
        SELECT wanted.agent, least(wanted.slots, wanted.most - (SELECT count(*) FROM busy_contexts AS busy
            JOIN tasks ON tasks.no = busy.no JOIN parties ON parties.no = busy.party
            WHERE parties.agent = wanted.agent AND (tasks.state IN (0, 1) OR NOT busy.has_begun))) AS free
        FROM unnest($1::text[], $6::int[], $7::int[]) AS wanted(agent, most, slots)
        WHERE wanted.most IS NOT NULL AND EXISTS (SELECT FROM tasks WHERE tasks.is_left)),
    locked AS (
        SELECT tasks.no, tasks.home, tasks.party, tasks.context, parties.agent
        FROM tasks JOIN parties ON parties.no = tasks.party
        WHERE tasks.is_left AND tasks.no <> ALL($8)
            AND NOT EXISTS (SELECT FROM limited WHERE limited.agent = parties.agent AND limited.free <= 0)
            AND (parties.agent = ANY($1) OR (tasks.left_at < now() - interval '10 minutes'
                AND NOT EXISTS (SELECT FROM nodes WHERE parties.agent = ANY(nodes.agents)
                    AND (nodes.ended IS NULL OR nodes.beat > now() - interval '10 minutes'))))
            AND NOT EXISTS (SELECT FROM busy_contexts AS busy
                WHERE busy.party = tasks.party AND busy.context = tasks.context AND busy.no <> tasks.no)
            AND NOT EXISTS (SELECT FROM tasks AS older
                WHERE older.is_left AND older.context = tasks.context AND older.party = tasks.party AND older.no < tasks.no)
            AND (tasks.home IS NULL OR tasks.home = $3 OR NOT EXISTS (SELECT FROM nodes
                WHERE nodes.name = tasks.home AND (nodes.ended IS NULL OR nodes.beat > now() - make_interval(secs => $4))
                    AND (parties.agent = ANY(nodes.agents) OR nodes.started > now() - make_interval(secs => $4))))
        ORDER BY tasks.no LIMIT $5 FOR UPDATE OF tasks SKIP LOCKED),
    ready AS (
        SELECT placed.* FROM (SELECT locked.*, row_number() OVER (PARTITION BY agent ORDER BY no) AS place FROM locked) AS placed
        LEFT JOIN limited ON limited.agent = placed.agent WHERE limited.free IS NULL OR placed.place <= limited.free),
    busy AS (
        INSERT INTO busy_contexts (party, context, no, has_begun) SELECT party, context, no, false FROM ready ORDER BY party, context
        ON CONFLICT (party, context) DO UPDATE SET no = excluded.no WHERE busy_contexts.no = excluded.no RETURNING no)
    UPDATE tasks SET node = $2, epoch = tasks.epoch + 1, is_left = false, left_at = NULL, home = NULL
    FROM ready JOIN busy ON busy.no = ready.no WHERE tasks.no = ready.no RETURNING tasks.no, tasks.epoch, nullif(ready.home, $3)";

/// Settled tasks need no owner.
const RELEASE_SETTLED: &str = "WITH settled AS (
        SELECT no FROM tasks WHERE node = ANY($1) AND state >= 4 ORDER BY no LIMIT 1000 FOR UPDATE SKIP LOCKED),
    contexts AS (DELETE FROM busy_contexts USING settled WHERE busy_contexts.no = settled.no),
    sends AS (DELETE FROM sends_in_flight USING settled WHERE sends_in_flight.no = settled.no)
    UPDATE tasks SET node = NULL, is_left = false, home = NULL FROM settled WHERE tasks.no = settled.no";

/// What has not been tried yet is due at once: its time is by the clock of the node that had it.
const TAKE_WEBHOOKS: &str =
    "UPDATE webhooks SET node = $2, due = CASE WHEN attempts = 0 THEN least(due, $3) ELSE due END
    WHERE number IN (
    SELECT number FROM webhooks WHERE due IS NOT NULL AND (node = ANY($1) OR node IS NULL)
    ORDER BY number LIMIT 1000 FOR UPDATE SKIP LOCKED)";

const TAKE_GIVEN_UP: &str = "UPDATE given_up SET node = $2, due = least(due, $3) WHERE number IN (
    SELECT number FROM given_up WHERE due IS NOT NULL AND (node = ANY($1) OR node IS NULL)
    ORDER BY number LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/// What damaged tasks of this node would keep others from.
const FREE_CONTEXTS: &str = "DELETE FROM busy_contexts USING tasks
    WHERE busy_contexts.no = ANY($1) AND tasks.no = busy_contexts.no AND tasks.node = $2";

/// Calls that nobody waits for any more.
const FORGET_FORWARDED: &str = "DELETE FROM forwarded WHERE expires < now() - interval '1 minute'";

const CLAIMED: &str = concat!("SELECT ", task_columns!(), " FROM ", task_tables!(), " WHERE tasks.no = ANY($1)");

const SENDS: &str = "SELECT no, digest FROM sends_in_flight WHERE no = ANY($1)";

const PROGRESS: &str = concat!(
    "SELECT tasks.no, ",
    last_seq!(),
    ", tasks.node, nodes.name, tasks.is_left, EXISTS (SELECT FROM inbox WHERE inbox.no = tasks.no),
        EXISTS (SELECT FROM inbox WHERE inbox.no = tasks.no AND inbox.answers), parties.owner
    FROM tasks JOIN parties ON parties.no = tasks.party LEFT JOIN nodes ON nodes.no = tasks.node WHERE tasks.no = ANY($1)"
);

/// It frees its context, as an append that rests or leaves a task does, and at rest its send too.
const GIVE_BACK: &str = "WITH given AS (
        UPDATE tasks SET node = NULL, is_left = back.is_left, left_at = CASE WHEN back.is_left THEN now() END, home = back.home
        FROM unnest($2::bigint[], $3::bigint[], $4::boolean[], $5::text[]) AS back(no, epoch, is_left, home)
        WHERE tasks.no = back.no AND tasks.epoch = back.epoch AND tasks.node = $1
        RETURNING tasks.no, tasks.is_left),
    contexts AS (DELETE FROM busy_contexts USING given WHERE busy_contexts.no = given.no),
    sends AS (DELETE FROM sends_in_flight USING given WHERE sends_in_flight.no = given.no AND NOT given.is_left)
    SELECT no FROM given";

const OWNED: &str = "SELECT no, epoch FROM tasks WHERE node = $1";

const LEFT_TASKS: &str = "SELECT count(*) FROM tasks JOIN parties ON parties.no = tasks.party
    WHERE tasks.is_left AND parties.agent = $1";

/// As for a task that was left: a node that has lost the agent is gone, too.
const HOME: &str = "SELECT agent_state.home, NOT EXISTS (SELECT FROM nodes JOIN parties ON parties.no = $1
        WHERE nodes.name = agent_state.home AND (nodes.ended IS NULL OR nodes.beat > now() - make_interval(secs => $4))
            AND (parties.agent = ANY(nodes.agents) OR nodes.started > now() - make_interval(secs => $4)))
    FROM agent_state WHERE party = $1 AND context = $2 AND home <> $3";

/// What all of this needs.
#[derive(Clone, Copy)]
pub(super) struct Claimer<'s> {
    pub db: &'s Connections,
    pub parties: &'s Parties,
    pub damages: &'s DamageLog,
    pub node: &'s Node,
    pub notices: &'s Notices,
    pub due: &'s Notify,
    pub home_timeout: Duration,
    pub unread: &'s Mutex<UnreadClaims>,
    pub unreadable: &'s Mutex<UnreadableTasks>,
}

/// Tasks that this node has claimed and could not read then, so that the next claim returns them, and the number of the node.
pub(super) type UnreadClaims = (i64, HashMap<i64, Origin>);

/// Damaged tasks that this node has claimed. It keeps each of them without its context, since a task that is left lets no younger
/// task of its context begin. After longer and longer pauses it is given back and claimed again: somebody may have repaired it.
#[derive(Default)]
pub(super) struct UnreadableTasks(HashMap<i64, Retry>);

struct Retry {
    at: Instant,
    pause: Duration,
}

/// So many damaged tasks are remembered. Beyond that, all are forgotten and tried again.
const MAX_UNREADABLE: usize = 10_000;
const FIRST_PAUSE: Duration = Duration::from_secs(60);
const LAST_PAUSE: Duration = Duration::from_secs(3600);

impl UnreadableTasks {
    /// Those that are not to be tried now.
    fn at(&self, now: Instant) -> Vec<i64> {
        self.0.iter().filter(|(_, retry)| retry.at > now).map(|(no, _)| *no).collect()
    }

    fn add(&mut self, no: i64, now: Instant) {
        if self.0.len() >= MAX_UNREADABLE && !self.0.contains_key(&no) {
            self.0.clear();
        }
        let retry = match self.0.get(&no) {
            Some(Retry { pause, .. }) => Retry { at: now + *pause, pause: (*pause * 2).min(LAST_PAUSE) },
            None => {
                tracing::error!(
                    number = no,
                    "a task without an owner cannot be read, so no server runs it: `sabir store check` says what is damaged; \
                     restore the database from a backup, or repair or delete its row in the table tasks"
                );
                Retry { at: now + FIRST_PAUSE, pause: 2 * FIRST_PAUSE }
            }
        };
        self.0.insert(no, retry);
    }
}

/// How a task came to this node.
#[derive(Default)]
pub(super) struct Origin {
    epoch: Epoch,
    lost_node: Option<Arc<str>>,
    lost_home: Option<Arc<str>>,
}

impl Claimer<'_> {
    pub async fn claim(self, agents: &[ClaimingAgent], limit: usize) -> Result<Vec<ClaimedTask>, StoreError> {
        self.node.publish_agents(self.db, agents).await?;
        let own = self.node.number();
        let (owner, unread) = std::mem::take(&mut *self.unread.lock().expect(UNBROKEN));
        // What this process has claimed as another node belongs to others.
        let mut claimed = if owner == own { unread } else { HashMap::new() };
        let done = self.claim_and_read(own, agents, limit, &mut claimed).await;
        if done.is_err() {
            *self.unread.lock().expect(UNBROKEN) = (own, claimed);
        }
        done
    }

    /// Adds what it claims to `claimed`, with which it is this node's, and takes out what it returns.
    async fn claim_and_read(
        self,
        own: i64,
        agents: &[ClaimingAgent],
        limit: usize,
        claimed: &mut HashMap<i64, Origin>,
    ) -> Result<Vec<ClaimedTask>, StoreError> {
        let unreadable = self.unreadable.lock().expect(UNBROKEN).at(Instant::now());
        self.claim_of_ended(own, limit, &unreadable, claimed).await?;
        let rest = limit - claimed.len().min(limit);
        if rest > 0 && !agents.is_empty() {
            self.claim_left(own, agents, rest, &unreadable, claimed).await?;
        }
        self.db.execute(FORGET_FORWARDED, &[]).await?;
        if claimed.is_empty() {
            return Ok(Vec::new());
        }
        let numbers: Vec<i64> = claimed.keys().copied().collect();
        self.notices.tell_tasks(numbers.iter().map(|no| TaskNo(*no as u64)));
        let rows = self.db.query(CLAIMED, &[&numbers]).await?;
        let rows = readable(&rows, self.damages, task_row);
        let unfinished = reader::unfinished_of(self.db, self.damages, rows).await?;
        let mut sends: HashMap<i64, Vec<SendDigest>> = HashMap::new();
        for row in &self.db.query(SENDS, &[&numbers]).await? {
            if let Ok(digest) = row.get::<_, &[u8]>(1).try_into() {
                sends.entry(row.get(0)).or_default().push(digest);
            }
        }
        let readable_numbers: HashSet<i64> = unfinished.iter().map(|task| task.row.no.0 as i64).collect();
        let damaged: Vec<i64> = numbers.into_iter().filter(|no| !readable_numbers.contains(no)).collect();
        if !damaged.is_empty() {
            self.db.execute(FREE_CONTEXTS, &[&damaged, &own]).await?;
        }
        let readable_tasks = unfinished.into_iter().map(|unfinished| {
            let no = unfinished.row.no.0 as i64;
            let Origin { epoch, lost_node, lost_home } = claimed.remove(&no).unwrap_or_default();
            ClaimedTask { unfinished, sends: sends.remove(&no).unwrap_or_default(), epoch, lost_node, lost_home }
        });
        let readable_tasks: Vec<ClaimedTask> = readable_tasks.collect();
        let mut unreadable = self.unreadable.lock().expect(UNBROKEN);
        for task in &readable_tasks {
            unreadable.0.remove(&(task.unfinished.row.no.0 as i64));
        }
        for no in damaged {
            claimed.remove(&no);
            unreadable.add(no, Instant::now());
            // Younger tasks of its context may begin now.
            self.notices.tell_left();
        }
        Ok(readable_tasks)
    }

    async fn claim_of_ended(
        self,
        own: i64,
        limit: usize,
        unreadable: &[i64],
        claimed: &mut HashMap<i64, Origin>,
    ) -> Result<(), StoreError> {
        let owners = self.db.query(ENDED_OWNERS, &[]).await?;
        let (mut names, mut ended) = (HashMap::new(), [Vec::new(), Vec::new(), Vec::new()]);
        for row in &owners {
            let (kind, node): (i32, i64) = (row.get(0), row.get(1));
            ended[kind as usize].push(node);
            // A node that this process was before is lost too, so it has a name like others.
            names.insert(node, row.get::<_, Option<&str>>(2).unwrap_or("unknown").into());
        }
        let [of_tasks, of_webhooks, of_given_up] = ended;
        if !of_tasks.is_empty() {
            self.db.execute(RELEASE_SETTLED, &[&of_tasks]).await?;
            let rows = self.db.query(CLAIM_OF_ENDED, &[&of_tasks, &own, &rows::limit(limit), &unreadable]).await?;
            for row in &rows {
                let lost_node = names.get(&row.get::<_, i64>(2)).cloned();
                let epoch = Epoch(row.get::<_, i64>(1) as u64);
                claimed.insert(row.get(0), Origin { epoch, lost_node, lost_home: None });
            }
        }
        let mut taken = 0;
        if !of_webhooks.is_empty() {
            taken += self.db.execute(TAKE_WEBHOOKS, &[&of_webhooks, &own, &rows::now()]).await?;
        }
        if !of_given_up.is_empty() {
            taken += self.db.execute(TAKE_GIVEN_UP, &[&of_given_up, &own, &rows::now()]).await?;
        }
        if taken > 0 {
            self.due.notify_one();
        }
        Ok(())
    }

    async fn claim_left(
        self,
        own: i64,
        agents: &[ClaimingAgent],
        limit: usize,
        unreadable: &[i64],
        claimed: &mut HashMap<i64, Origin>,
    ) -> Result<(), StoreError> {
        let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        let ids: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
        let most: Vec<Option<i32>> = agents.iter().map(|agent| agent.most_runs.map(number)).collect();
        let slots: Vec<i32> = agents.iter().map(|agent| number(agent.free_slots)).collect();
        let (name, timeout) = (&*self.node.name, self.home_timeout.as_secs_f64());
        let values: [&(dyn ToSql + Sync); 8] =
            [&ids, &own, &name, &timeout, &rows::limit(limit), &most, &slots, &unreadable];
        let rows = self.db.query(CLAIM_LEFT, &values).await?;
        for row in &rows {
            let epoch = Epoch(row.get::<_, i64>(1) as u64);
            let lost_home = row.get::<_, Option<&str>>(2).map(Into::into);
            claimed.insert(row.get(0), Origin { epoch, lost_node: None, lost_home });
        }
        Ok(())
    }

    pub async fn give_back(self, tasks: Vec<GivenBack>) -> Result<(), StoreError> {
        let (mut numbers, mut epochs, mut left, mut homes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for GivenBack { task, epoch, then } in &tasks {
            let (is_left, home) = match then {
                AfterAppend::Keep => continue,
                AfterAppend::Rest => (false, None),
                AfterAppend::Leave { home } => (true, home.as_deref()),
            };
            numbers.push(rows::number(task.0).unwrap_or(-1));
            epochs.push(rows::number(epoch.0).unwrap_or(-1));
            left.push(is_left);
            homes.push(home);
        }
        if numbers.is_empty() {
            return Ok(());
        }
        let own = self.node.number();
        let rows = self.db.query(GIVE_BACK, &[&own, &numbers, &epochs, &left, &homes]).await?;
        if !rows.is_empty() {
            self.notices.tell_tasks(rows.iter().map(|row| TaskNo(row.get::<_, i64>(0) as u64)));
            self.notices.tell_left();
        }
        Ok(())
    }

    /// Without damaged tasks, until they are to be tried again. Then whoever finds that nobody drives them gives them back.
    pub async fn owned(self) -> Result<Vec<(TaskNo, Epoch)>, StoreError> {
        let rows = self.db.query(OWNED, &[&self.node.number()]).await?;
        let unreadable: HashSet<i64> = self.unreadable.lock().expect(UNBROKEN).at(Instant::now()).into_iter().collect();
        let tried = rows.iter().filter(|row| !unreadable.contains(&row.get(0)));
        let owned = |row: &Row| (TaskNo(row.get::<_, i64>(0) as u64), Epoch(row.get::<_, i64>(1) as u64));
        Ok(tried.map(owned).collect())
    }

    pub async fn left_tasks(self, agent: &AgentId) -> Result<u64, StoreError> {
        let row = self.db.query_opt(LEFT_TASKS, &[&agent.as_str()]).await?;
        Ok(row.map_or(0, |row| row.get::<_, i64>(0) as u64))
    }

    pub async fn home(self, owner: &Owner, agent: &AgentId, context: &ContextId) -> Result<Option<Home>, StoreError> {
        let Some(party) = self.parties.find(self.db, owner, agent).await? else { return Ok(None) };
        let (name, timeout) = (&*self.node.name, self.home_timeout.as_secs_f64());
        let row = self.db.query_opt(HOME, &[&party, &context.as_str(), &name, &timeout]).await?;
        Ok(row.map(|row| Home { node: row.get::<_, &str>(0).into(), is_gone: row.get(1) }))
    }

    pub async fn progress(self, tasks: &[TaskNo]) -> Result<Vec<TaskProgress>, StoreError> {
        let numbers: Vec<i64> = tasks.iter().filter_map(|task| rows::number(task.0)).collect();
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let own = self.node.number();
        let rows = self.db.query(PROGRESS, &[&numbers]).await?;
        let progress = rows.iter().filter_map(|row| {
            Some(TaskProgress {
                task: TaskNo(row.get::<_, i64>(0) as u64),
                belongs_to: rows::owner(row.get(7)).ok()?,
                seq: row.get::<_, i64>(1) as Seq,
                owner: match (row.get::<_, Option<i64>>(2), row.get(4)) {
                    (Some(node), _) if node == own => TaskOwner::ThisNode,
                    (Some(_), _) => TaskOwner::Other(row.get::<_, Option<&str>>(3).unwrap_or("unknown").into()),
                    (None, true) => TaskOwner::Left,
                    (None, false) => TaskOwner::Nobody,
                },
                has_message: row.get(5),
                has_answer: row.get(6),
            })
        });
        Ok(progress.collect())
    }
}
