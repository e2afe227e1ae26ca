//! The writers: each sends the appends that are queued for it as one statement, and answers all of them.
//!
//! While a statement is under way, the next group gathers. A task always uses the same writer, so its appends keep their order.
//! A group never has two appends of one task: then at most the last append of a task has an unknown outcome.
//!
//! | the statement                              | then                                                                     |
//! |--------------------------------------------|--------------------------------------------------------------------------|
//! | is answered                                | every caller gets its result, but those whose tasks are locked           |
//! | says that a task is locked                 | the others are stored; this append is sent again, alone, for 20 s        |
//! | fails because of one append, such as a deadlock | each append is sent alone                                           |
//! | waits too long for another lock            | each append is sent alone, and those that must wait are sent again as above |
//! | is lost with its connection                | the same group is sent again until it is answered; `append_1` recognises what was stored |
//! | cannot be sent                             | it is tried for 20 s, then every caller gets the error                   |
//! | fails for another reason                   | every caller gets the error                                              |
//!
//! While a group is sent again and again, appends arrive behind it. They were not sent yet, so after 20 s they fail.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sabir_model::{AgentId, Owner};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_postgres::Error;

use super::append::{self, Appended, Appender, Outcome, PartyNumbers, Queued};
use super::failure::{Trouble, describe, to_store_error, trouble};
use super::link::Link;
use super::parties::Parties;
use super::rows;
use super::store::Inner;
use crate::encode::{Encoded, EncodedSideRow, EncodedTarget};
use crate::{Append, AppendResult, SideRow, StoreError, TaskNo};

/// The size of a group, unless a single append is larger.
const MAX_GROUP: usize = 256;
const MAX_BYTES: usize = 4 << 20;

/// How long an append is sent again that is not stored for certain, or whose store is closed.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_millis(500);

/// The first pause of an append whose task is locked: mostly by another append, or the outcome of a delivery.
const FIRST_LOCK_PAUSE: Duration = Duration::from_millis(4);

/// How often an append that was chosen to resolve a deadlock is sent again.
const MAX_DEADLOCKS: u32 = 5;

/// The bits of an id that count; those above have the number of the node as which the process began.
const COUNTER_BITS: u32 = 40;

/// The first of the ids that only the process gives which began as this node.
pub(super) fn first_id(first_node: i64) -> i64 {
    (first_node & ((1 << (63 - COUNTER_BITS)) - 1)) << COUNTER_BITS
}

pub(super) const MAX_WRITERS: usize = 4;

pub(super) struct Writers {
    queues: Vec<mpsc::UnboundedSender<Job>>,
    next_id: AtomicI64,
}

type Reply = oneshot::Sender<Result<AppendResult, StoreError>>;
type Answer = oneshot::Receiver<Result<AppendResult, StoreError>>;

struct Job {
    queued: Queued,
    reply: Reply,
    since: Instant,
    /// The node as which it was sent, if nobody knows whether it was stored then.
    unknown_as: Option<i64>,
    lock_wait: Option<LockWait>,
}

/// Since when an append waits for a lock, and the pause before the next attempt.
#[derive(Clone, Copy)]
struct LockWait {
    since: Instant,
    pause: Duration,
}

impl Job {
    fn fail(self, error: StoreError) {
        // The caller may be gone; then the result is not needed.
        let _ = self.reply.send(Err(error));
    }

    /// How long it waits for a database that was lost at this time.
    fn end(&self, lost: Instant) -> Instant {
        self.since.max(lost) + GIVE_UP_AFTER
    }
}

/// The receiving ends of the queues.
pub(super) struct Queues(Vec<mpsc::UnboundedReceiver<Job>>);

impl Writers {
    /// `first_id`: the id of its first append.
    pub fn new(count: usize, first_id: i64) -> (Self, Queues) {
        let (queues, receivers) = (0..count.clamp(1, MAX_WRITERS)).map(|_| mpsc::unbounded_channel()).unzip();
        (Self { queues, next_id: AtomicI64::new(first_id) }, Queues(receivers))
    }

    /// Queues an append at once, so that appends are stored in the order of the calls.
    pub fn append(&self, append: &Append<'_>) -> Result<Answer, StoreError> {
        let encoded = Encoded::new(append)?;
        let is_answer = |row: &SideRow| matches!(row, SideRow::InboxAdd(message) if message.answers.is_some());
        let answers = append.side_rows.iter().map(is_answer).collect();
        let queued = Queued { id: self.next_id.fetch_add(1, Ordering::Relaxed), encoded, answers };
        queued.check()?;
        let place = match &queued.encoded.target {
            EncodedTarget::New(new) => BuildHasherDefault::<DefaultHasher>::default().hash_one(new.task.as_str()),
            EncodedTarget::Known(no, _) => no.0,
        };
        let queue = &self.queues[(place % self.queues.len() as u64) as usize];
        let (reply, answer) = oneshot::channel();
        let job = Job { queued, reply, since: Instant::now(), unknown_as: None, lock_wait: None };
        queue.send(job).map_err(|_| StoreError::Closed)?;
        Ok(answer)
    }
}

impl Queues {
    pub fn spawn(self, inner: &Arc<Inner>) -> Vec<JoinHandle<()>> {
        let spawn = |(number, queue)| {
            let connection = WriterConnection { inner: inner.clone(), number: number as i16, link: None };
            let backlog = Backlog { queue, is_open: true, waiting: VecDeque::new(), blocked: Vec::new() };
            tokio::spawn(Writer { connection, backlog, lost_since: None }.run())
        };
        self.0.into_iter().enumerate().map(spawn).collect()
    }
}

struct Writer {
    connection: WriterConnection,
    backlog: Backlog,
    /// The database has answered nothing since then.
    lost_since: Option<Instant>,
}

struct WriterConnection {
    inner: Arc<Inner>,
    number: i16,
    link: Option<Link>,
}

/// Appends that are sent as one statement.
struct Group {
    jobs: Vec<Job>,
    /// A repetition must come from the same node as the first attempt: what a node takes that was declared dead since, others claim.
    node: i64,
    /// It was sent before, and nobody knows whether it was stored.
    is_retry: bool,
    /// Others may have locked what it needs.
    waits_briefly: bool,
}

impl Group {
    fn of_one(job: Job, node: i64) -> Self {
        let (node, is_retry) = (job.unknown_as.unwrap_or(node), job.unknown_as.is_some());
        Self { jobs: vec![job], node, is_retry, waits_briefly: true }
    }
}

/// Why a group was not answered.
enum Failure {
    Postgres(tokio_postgres::Error),
    /// There was no connection, so nothing was sent.
    Unsent(StoreError),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure::Postgres(error)
    }
}

impl Failure {
    fn trouble(&self) -> Trouble {
        match self {
            Failure::Postgres(error) => trouble(error),
            Failure::Unsent(_) => Trouble::Lost,
        }
    }

    fn to_store_error(&self) -> StoreError {
        match self {
            Failure::Postgres(error) => to_store_error(error),
            Failure::Unsent(error) => StoreError::Failed(error.to_string().into()),
        }
    }

    fn is_deadlock(&self) -> bool {
        matches!(self, Failure::Postgres(error) if error.code().is_some_and(|code| code.code().starts_with("40")))
    }
}

impl Writer {
    async fn run(mut self) {
        while self.backlog.wait().await {
            if let Some(job) = self.backlog.next_blocked() {
                self.store(Group::of_one(job, self.connection.inner.node.number())).await;
            }
            let jobs = self.backlog.next_group();
            if !jobs.is_empty() {
                let node = self.connection.inner.node.number();
                self.store(Group { jobs, node, is_retry: false, waits_briefly: false }).await;
            }
        }
    }

    /// Stores a group. All of its callers are answered, but for appends that wait for a lock.
    async fn store(&mut self, group: Group) {
        let Some((group, failure)) = self.try_to_store(group).await else { return };
        let is_about_one = matches!(failure.trouble(), Trouble::Refused | Trouble::Locked);
        if !is_about_one || group.jobs.len() <= 1 {
            return self.fail(group, &failure);
        }
        let Group { jobs, node, is_retry, .. } = group;
        for mut job in jobs {
            job.unknown_as = is_retry.then_some(node);
            if let Some((alone, failure)) = self.try_to_store(Group::of_one(job, node)).await {
                self.fail(alone, &failure);
            }
        }
    }

    /// What it returns was not stored, and is not answered yet.
    async fn try_to_store(&mut self, mut group: Group) -> Option<(Group, Failure)> {
        let began = Instant::now();
        match self.send_until_known(&mut group).await {
            Ok(appended) => {
                let is_answered = |outcome: &&Outcome| matches!(outcome, Outcome::Answered(_));
                let answered = appended.results.iter().filter(is_answered).count();
                if let Some(metrics) = self.connection.inner.metrics.get().filter(|_| answered > 0) {
                    metrics.committed(began.elapsed(), answered);
                }
                self.answer(group, appended);
                None
            }
            Err(failure) => Some((group, failure)),
        }
    }

    /// Tells the callers, unless the appends are worth another attempt.
    fn fail(&mut self, group: Group, failure: &Failure) {
        let is_locked = failure.trouble() == Trouble::Locked;
        for mut job in group.jobs {
            if is_locked {
                job.unknown_as = group.is_retry.then_some(group.node);
                self.backlog.block(job);
            } else {
                job.fail(failure.to_store_error());
            }
        }
    }

    /// Sends a group until its outcome is known. Appends that are not stored for certain leave it when they are too old.
    async fn send_until_known(&mut self, group: &mut Group) -> Result<Appended, Failure> {
        let mut pause = FIRST_PAUSE;
        let mut deadlocks = 0;
        let mut was_lost = false;
        loop {
            let began = Instant::now();
            let attempt = self.connection.attempt(group);
            let failure = match self.backlog.receive_during(attempt, self.lost_since).await {
                Ok(results) => {
                    self.lost_since = None;
                    return Ok(results);
                }
                Err(failure) => failure,
            };
            if failure.trouble() != Trouble::Lost {
                self.lost_since = None;
                if failure.is_deadlock() && group.jobs.len() == 1 && deadlocks < MAX_DEADLOCKS {
                    deadlocks += 1;
                    continue;
                }
                return Err(failure);
            }
            if !was_lost {
                tracing::warn!(reason = %failure.to_store_error(), "appends are sent again: the database is not reached");
                was_lost = true;
            }
            self.connection.link = None;
            let lost = *self.lost_since.get_or_insert(began);
            if !group.is_retry {
                fail_old(&mut group.jobs, lost, pause, &failure.to_store_error().to_string());
                if group.jobs.is_empty() {
                    return Err(failure);
                }
            } else if self.backlog.queue.is_closed() && lost.elapsed() + pause > GIVE_UP_AFTER {
                // Until the store is closed, no answer is right while an append may be stored: a caller that repeated it would lose
                // its own run to it.
                return Err(failure);
            }
            self.backlog.receive_during(sleep(pause), Some(lost)).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    fn answer(&mut self, group: Group, appended: Appended) {
        let Appended { results, is_due, wakes_left } = appended;
        let inner = self.connection.inner.clone();
        let (mut changed, mut answers_call) = (Vec::new(), false);
        let mut results = results.into_iter();
        for mut job in group.jobs {
            let result = match results.next() {
                Some(Outcome::Answered(result)) => result,
                Some(Outcome::Locked) => {
                    job.unknown_as = group.is_retry.then_some(group.node);
                    self.backlog.block(job);
                    continue;
                }
                None => Err(StoreError::Failed("the database returned too few results".into())),
            };
            if let Ok(stored) = &result {
                changed.push(stored.task);
                let rows = &job.queued.encoded.side_rows;
                answers_call |= rows.iter().any(|row| matches!(row, EncodedSideRow::ForwardDone(_)));
                inner.node.note_task(stored.task);
            }
            // The caller may be gone; then the result is not needed.
            let _ = job.reply.send(result);
        }
        if is_due {
            inner.due.notify_one();
        }
        let notices = &inner.notices;
        notices.tell_tasks(changed);
        if answers_call {
            notices.tell_answered();
        }
        if wakes_left {
            notices.tell_left();
        }
    }
}

impl WriterConnection {
    /// Sends a group once.
    async fn attempt(&mut self, group: &mut Group) -> Result<Appended, Failure> {
        let inner = self.inner.clone();
        if self.link.as_ref().is_none_or(Link::is_closed) {
            let dialed = inner.dialer.dial().await;
            self.link = Some(dialed.map_err(|error| Failure::Unsent(StoreError::Failed(describe(&error).into())))?);
        }
        let link = self.link.as_ref().expect("it was just opened");
        let appender = Appender {
            node: group.node,
            name: &inner.node.name,
            writer: self.number,
            time: rows::now(),
            is_retry: group.is_retry,
            waits_briefly: group.waits_briefly,
            must_ask_for_safe_commit: inner.dialer.must_ask_for_safe_commit(),
        };
        let queued: Vec<&Queued> = group.jobs.iter().map(|job| &job.queued).collect();
        // If an owner cannot be stored, the group is refused, and each append is tried alone.
        let parties = party_numbers(&inner.parties, link, &queued).await?;
        let sent = append::send(link, &appender, &queued, &parties).await;
        sent.map_err(|error| {
            group.is_retry |= trouble(&error) == Trouble::Lost;
            error.into()
        })
    }
}

/// What waits for the writer.
struct Backlog {
    queue: mpsc::UnboundedReceiver<Job>,
    /// The queue is closed when the store is.
    is_open: bool,
    waiting: VecDeque<Job>,
    blocked: Vec<Blocked>,
}

/// An append that waits for a lock.
struct Blocked {
    job: Job,
    next_attempt: Instant,
    /// Later appends of its task.
    followers: Vec<Job>,
}

impl Backlog {
    /// Waits for something to send. `false`: there will be nothing more.
    async fn wait(&mut self) -> bool {
        loop {
            while let Ok(job) = self.queue.try_recv() {
                self.waiting.push_back(job);
            }
            let next_attempt = self.blocked.iter().map(|blocked| blocked.next_attempt).min();
            if !self.waiting.is_empty() || next_attempt.is_some_and(|next| next <= Instant::now()) {
                return true;
            }
            if !self.is_open && next_attempt.is_none() {
                return false;
            }
            tokio::select! {
                job = self.queue.recv(), if self.is_open => self.received(job),
                () = sleep_until(next_attempt.unwrap_or_else(Instant::now)), if next_attempt.is_some() => {}
            }
        }
    }

    fn received(&mut self, job: Option<Job>) {
        self.is_open = job.is_some();
        self.waiting.extend(job);
    }

    /// Waits until some work is done. While the database is lost, appends arrive meanwhile, and old ones fail.
    async fn receive_during<T>(&mut self, work: impl Future<Output = T>, lost_since: Option<Instant>) -> T {
        let Some(lost) = lost_since else { return work.await };
        let mut work = pin!(work);
        let mut next_end = self.fail_old(lost);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = sleep_until(next_end) => next_end = self.fail_old(lost),
                job = self.queue.recv(), if self.is_open => self.received(job),
            }
        }
    }

    /// Fails appends that have waited for too long for a database that was lost then. Returns when to look again.
    fn fail_old(&mut self, lost: Instant) -> Instant {
        let reason = "the database is not reached, and this was not stored";
        let mut next = Instant::now() + GIVE_UP_AFTER;
        for place in (0..self.blocked.len()).rev() {
            let job = &self.blocked[place].job;
            let end = job.end(lost);
            if job.unknown_as.is_none() && end <= Instant::now() {
                let Blocked { job, followers, .. } = self.blocked.remove(place);
                job.fail(StoreError::Failed(reason.into()));
                self.put_back(followers);
            } else if job.unknown_as.is_none() {
                next = next.min(end);
            }
        }
        let lists = self.blocked.iter_mut().map(|blocked| &mut blocked.followers);
        for followers in lists {
            next = next.min(fail_old(followers, lost, Duration::ZERO, reason));
        }
        next.min(fail_old(&mut self.waiting, lost, Duration::ZERO, reason))
    }

    /// Puts appends in front of all others.
    fn put_back(&mut self, jobs: Vec<Job>) {
        for job in jobs.into_iter().rev() {
            self.waiting.push_front(job);
        }
    }

    /// Takes the next group, in order. A later append of a task that is in it has to wait, and so have all that follow it.
    /// Appends of a task that waits for a lock wait with it.
    fn next_group(&mut self) -> Vec<Job> {
        let (mut group, mut bytes, mut tasks) = (Vec::new(), 0, HashSet::new());
        while let Some(job) = self.waiting.front() {
            let task = job.queued.known_task();
            let blocked = self.blocked.iter_mut().find(|blocked| task.is_some() && blocked.task() == task);
            if let Some(blocked) = blocked {
                blocked.followers.extend(self.waiting.pop_front());
                continue;
            }
            bytes += job.queued.bytes();
            let is_full = group.len() >= MAX_GROUP || (bytes > MAX_BYTES && !group.is_empty());
            if is_full || task.is_some_and(|task| !tasks.insert(task)) {
                break;
            }
            group.extend(self.waiting.pop_front());
        }
        group
    }

    /// Takes an append whose next attempt is due. Its followers wait in front of all others until its outcome is known.
    fn next_blocked(&mut self) -> Option<Job> {
        let now = Instant::now();
        let place = self.blocked.iter().position(|blocked| blocked.next_attempt <= now)?;
        let Blocked { job, followers, .. } = self.blocked.remove(place);
        self.put_back(followers);
        Some(job)
    }

    /// Keeps an append until its next attempt, unless it has waited for too long.
    fn block(&mut self, mut job: Job) {
        let now = Instant::now();
        let wait = job.lock_wait.get_or_insert(LockWait { since: now, pause: FIRST_LOCK_PAUSE });
        let (pause, waited) = (wait.pause, now.duration_since(wait.since));
        wait.pause = (pause * 2).min(LAST_PAUSE);
        let may_give_up = job.unknown_as.is_none() || self.queue.is_closed();
        if may_give_up && waited + pause > GIVE_UP_AFTER {
            let reason = "another connection of the database has kept the task locked; pg_stat_activity shows which";
            return job.fail(StoreError::Failed(reason.into()));
        }
        if pause < LAST_PAUSE && pause * 2 >= LAST_PAUSE {
            let task = job.queued.known_task().map(|task| task.0);
            tracing::warn!(task, "an append waits: another connection of the database has locked what it needs");
        }
        self.blocked.push(Blocked { job, next_attempt: now + pause, followers: Vec::new() });
    }
}

impl Blocked {
    fn task(&self) -> Option<TaskNo> {
        self.job.queued.known_task()
    }
}

/// Fails jobs that will have waited for too long after this pause for a database that was lost then. All of them are known
/// not to be stored. Returns when to look again.
fn fail_old<J>(jobs: &mut J, lost: Instant, pause: Duration, reason: &str) -> Instant
where
    J: Default + Extend<Job> + IntoIterator<Item = Job>,
{
    let now = Instant::now();
    let mut next = now + GIVE_UP_AFTER;
    let mut left = J::default();
    for job in std::mem::take(jobs) {
        let end = job.end(lost);
        if end <= now + pause {
            job.fail(StoreError::Failed(reason.into()));
        } else {
            next = next.min(end);
            left.extend([job]);
        }
    }
    *jobs = left;
    next
}

/// Finds the parties of each append, or makes them.
async fn party_numbers(parties: &Parties, link: &Link, group: &[&Queued]) -> Result<Vec<PartyNumbers>, Error> {
    let agents = agents_of(link, group).await?;
    let agent = |queued: &'_ Queued| match &queued.encoded.target {
        EncodedTarget::New(new) => Some(new.agent.clone()),
        // If there is no such task, the append will find that too.
        EncodedTarget::Known(no, _) => agents.get(&(no.0 as i64)).cloned(),
    };
    let agents: Vec<Option<AgentId>> = group.iter().map(|queued| agent(queued)).collect();
    let mut wanted = Vec::new();
    for (queued, agent) in group.iter().zip(&agents) {
        if let EncodedTarget::New(new) = &queued.encoded.target {
            wanted.push((&new.owner, &new.agent));
        }
        let senders = queued.encoded.sent_keys().filter_map(|key| key.sender.as_ref());
        wanted.extend(senders.filter_map(|sender| Some((sender, agent.as_ref()?))));
    }
    let numbers = parties.numbers(link, wanted).await?;
    let number = |owner: &Owner, agent: &AgentId| numbers.get(&(owner.clone(), agent.clone())).copied();
    let of_append = |(queued, agent): (&&Queued, &Option<AgentId>)| {
        let sender = |row: &EncodedSideRow| match (row, agent) {
            (EncodedSideRow::Key(key), Some(agent)) => number(key.sender.as_ref()?, agent),
            _ => None,
        };
        let task = match &queued.encoded.target {
            EncodedTarget::New(new) => number(&new.owner, &new.agent),
            EncodedTarget::Known(..) => None,
        };
        PartyNumbers { task, senders: queued.encoded.side_rows.iter().map(sender).collect() }
    };
    Ok(group.iter().zip(&agents).map(of_append).collect())
}

/// The agents of the tasks that get keys of other senders than their owners.
async fn agents_of(link: &Link, group: &[&Queued]) -> Result<HashMap<i64, AgentId>, Error> {
    let has_sender = |queued: &&&Queued| queued.encoded.sent_keys().any(|key| key.sender.is_some());
    let tasks = group.iter().filter(has_sender).filter_map(|queued| Some(queued.known_task()?.0 as i64));
    let tasks: Vec<i64> = tasks.collect();
    if tasks.is_empty() {
        return Ok(HashMap::new());
    }
    let sql =
        "SELECT tasks.no, parties.agent FROM tasks JOIN parties ON parties.no = tasks.party WHERE tasks.no = ANY($1)";
    let rows = link.query(sql, &[&tasks]).await?;
    let agents = rows.iter().filter_map(|row| Some((row.get(0), AgentId::parse(row.get::<_, &str>(1)).ok()?)));
    Ok(agents.collect())
}
