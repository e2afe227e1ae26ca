//! The writers: each sends the appends that are queued for it as one statement, and answers all of them.
//!
//! While a statement is under way, the next group gathers. A task always uses the same writer, so its appends keep their order.
//! A group never has two appends of one task: then at most the last append of a task has an unknown outcome.
//!
//! | the statement                              | then                                                                     |
//! |--------------------------------------------|--------------------------------------------------------------------------|
//! | is answered                                | every caller gets its result                                             |
//! | fails because of one append, such as a deadlock | each append is sent alone                                           |
//! | is lost with its connection                | the same group is sent again until it is answered; `append_1` recognises what was stored |
//! | cannot be sent                             | it is tried for 20 s, then every caller gets the error                   |
//! | fails for another reason                   | every caller gets the error                                              |

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use sabir_model::{AgentId, Owner};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_postgres::Error;

use super::append::{self, Appended, Appender, PartyNumbers, Queued};
use super::failure::{Trouble, describe, to_store_error, trouble};
use super::link::Link;
use super::parties::Parties;
use super::rows;
use super::store::Inner;
use crate::encode::{Encoded, EncodedSideRow, EncodedTarget};
use crate::{Append, AppendResult, SideRow, StoreError};

/// The size of a group, unless a single append is larger.
const MAX_GROUP: usize = 256;
const MAX_BYTES: usize = 4 << 20;

/// How long a group is sent again of which nothing is stored, or whose store is closed.
const GIVE_UP_AFTER: Duration = Duration::from_secs(20);

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_millis(500);

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
        queue.send(Job { queued, reply }).map_err(|_| StoreError::Closed)?;
        Ok(answer)
    }
}

impl Queues {
    pub fn spawn(self, inner: &Arc<Inner>) -> Vec<JoinHandle<()>> {
        let spawn = |(number, queue)| {
            tokio::spawn(Writer { inner: inner.clone(), number: number as i16, queue, link: None }.run())
        };
        self.0.into_iter().enumerate().map(spawn).collect()
    }
}

struct Writer {
    inner: Arc<Inner>,
    number: i16,
    /// It is closed when the store is.
    queue: mpsc::UnboundedReceiver<Job>,
    link: Option<Link>,
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
        let mut waiting = VecDeque::new();
        loop {
            if waiting.is_empty() {
                match self.queue.recv().await {
                    Some(job) => waiting.push_back(job),
                    None => return,
                }
            }
            while let Ok(job) = self.queue.try_recv() {
                waiting.push_back(job);
            }
            let group = next_group(&mut waiting);
            self.store(group).await;
        }
    }

    /// Stores a group and answers all of its callers.
    async fn store(&mut self, group: Vec<Job>) {
        // A repetition must come from the same node as the first attempt: what a node takes that was declared dead since, others
        // claim.
        let node = self.inner.node.number();
        let mut is_retry = false;
        let began = Instant::now();
        let failed = match self.store_together(&group, node, &mut is_retry).await {
            Ok(results) => {
                self.observe(began, group.len());
                return self.answer(group, results);
            }
            Err(failure) => failure,
        };
        if failed.trouble() != Trouble::Refused || group.len() == 1 {
            for job in group {
                let _ = job.reply.send(Err(failed.to_store_error()));
            }
            return;
        }
        for job in group {
            let alone = std::slice::from_ref(&job);
            let began = Instant::now();
            match self.store_together(alone, node, &mut is_retry).await {
                Ok(results) => {
                    self.observe(began, 1);
                    self.answer(vec![job], results);
                }
                Err(failure) => drop(job.reply.send(Err(failure.to_store_error()))),
            }
        }
    }

    fn observe(&self, began: Instant, group: usize) {
        if let Some(metrics) = self.inner.metrics.get() {
            metrics.committed(began.elapsed(), group);
        }
    }

    /// Sends a group until its outcome is known.
    async fn store_together(&mut self, group: &[Job], node: i64, is_retry: &mut bool) -> Result<Appended, Failure> {
        let mut lost_since = None;
        let mut pause = FIRST_PAUSE;
        let mut deadlocks = 0;
        loop {
            let failure = match self.attempt(group, node, is_retry).await {
                Ok(results) => return Ok(results),
                Err(failure) => failure,
            };
            if failure.is_deadlock() && group.len() == 1 && deadlocks < MAX_DEADLOCKS {
                deadlocks += 1;
                continue;
            }
            if failure.trouble() != Trouble::Lost {
                return Err(failure);
            }
            if lost_since.is_none() {
                tracing::warn!(reason = %failure.to_store_error(), "appends are sent again: the database is not reached");
            }
            self.link = None;
            let lost_since = *lost_since.get_or_insert_with(Instant::now);
            // While an append may be stored, no answer is right: a caller that repeated it would lose its own run to it.
            let may_give_up = !*is_retry || self.queue.is_closed();
            if may_give_up && lost_since.elapsed() + pause > GIVE_UP_AFTER {
                return Err(failure);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn attempt(&mut self, group: &[Job], node: i64, is_retry: &mut bool) -> Result<Appended, Failure> {
        let inner = self.inner.clone();
        if self.link.as_ref().is_none_or(Link::is_closed) {
            let dialed = inner.dialer.dial().await;
            self.link = Some(dialed.map_err(|error| Failure::Unsent(StoreError::Failed(describe(&error).into())))?);
        }
        let link = self.link.as_ref().expect("it was just opened");
        let appender = Appender {
            node,
            name: &inner.node.name,
            writer: self.number,
            time: rows::now(),
            is_retry: *is_retry,
            must_ask_for_safe_commit: inner.dialer.must_ask_for_safe_commit(),
        };
        let queued: Vec<&Queued> = group.iter().map(|job| &job.queued).collect();
        // If an owner cannot be stored, the group is refused, and each append is tried alone.
        let parties = party_numbers(&inner.parties, link, &queued).await?;
        let sent = append::send(link, &appender, &queued, &parties).await;
        sent.map_err(|error| {
            *is_retry |= trouble(&error) == Trouble::Lost;
            error.into()
        })
    }

    fn answer(&self, group: Vec<Job>, appended: Appended) {
        let Appended { results, is_due, wakes_left } = appended;
        let (mut changed, mut answers_call) = (Vec::new(), false);
        for (job, result) in group.iter().zip(&results) {
            let Ok(stored) = result else { continue };
            changed.push(stored.task);
            let rows = &job.queued.encoded.side_rows;
            answers_call |= rows.iter().any(|row| matches!(row, EncodedSideRow::ForwardDone(_)));
        }
        if let Some(highest) = changed.iter().max() {
            self.inner.node.note_task(*highest);
        }
        // The caller may be gone; then the result is not needed.
        let mut results = results.into_iter();
        for job in group {
            let missing = || StoreError::Failed("the database returned too few results".into());
            let _ = job.reply.send(results.next().unwrap_or_else(|| Err(missing())));
        }
        if is_due {
            self.inner.due.notify_one();
        }
        let notices = &self.inner.notices;
        notices.tell_tasks(changed);
        if answers_call {
            notices.tell_answered();
        }
        if wakes_left {
            notices.tell_left();
        }
    }
}

/// Takes the next group, in order. A later append of a task that is in it has to wait, and so have all that follow it.
fn next_group(waiting: &mut VecDeque<Job>) -> Vec<Job> {
    let (mut group, mut bytes, mut tasks) = (Vec::new(), 0, HashSet::new());
    while let Some(job) = waiting.front() {
        bytes += job.queued.bytes();
        let is_full = group.len() >= MAX_GROUP || (bytes > MAX_BYTES && !group.is_empty());
        let is_second = job.queued.known_task().is_some_and(|task| !tasks.insert(task));
        if is_full || is_second {
            break;
        }
        group.extend(waiting.pop_front());
    }
    group
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
