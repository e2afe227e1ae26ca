//! A store in memory, for tests and trials. It gives the same answers as the SQLite store.
//!
//! It keeps the encoded bytes, so that tests exercise the format of the log too. A list looks at every task: it is the
//! simple reference for the other stores.

mod audit;
mod contents;
mod summaries;
mod webhooks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard};

use sabir_model::{
    AgentId, ContextId, IdempotencyKey, Message, Owner, PushConfigId, Recorded, RunState, Seq, State, Task, TaskBirth,
    TaskId, Timestamp,
};
use tokio::sync::Notify;

use self::audit::AuditEntries;
use self::webhooks::Webhooks;
use crate::damage::{Damage, DamageLog, damaged_task, unreadable_message};
use crate::encode::{Encoded, EncodedNewTask, EncodedSideRow, EncodedTarget, LatestStatus};
use crate::fold::{Fold, decode, decode_event};
use crate::page::{EVENT_BYTES, PageBudget, cut, trim};
use crate::transfer::ExportTasks;
use crate::{
    Append, AppendResult, AuditEntry, Epoch, Listing, Others, Query, Retention, SentKey, Store, StoreError, StoreFacts,
    StoreFuture, SummaryPage, SummaryQuery, SweepResult, TASK_ROW_BYTES, TaskCount, TaskNo, TaskRow, TaskSummary,
    UnfinishedTask, Webhook, WebhookSet,
};

/// A sweep deletes at most this many tasks.
const SWEEP_TASKS: usize = 256;

#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<MemoryState>,
    damages: DamageLog,
    due: Arc<Notify>,
}

#[derive(Default)]
struct MemoryState {
    last_no: u64,
    tasks: BTreeMap<TaskNo, MemoryTask>,
    /// The tasks with the same owner and id, one per agent, in order of creation.
    ids: HashMap<(Owner, TaskId), Vec<TaskNo>>,
    keys: HashMap<(Owner, AgentId, IdempotencyKey), TaskNo>,
    agent_state: HashMap<(Owner, AgentId, ContextId), String>,
    webhooks: Webhooks,
    audit: AuditEntries,
}

struct MemoryTask {
    row: TaskRow,
    events: Vec<Box<[u8]>>,
    inbox: VecDeque<Vec<u8>>,
    cancel_requested: bool,
    attempts: u32,
    state: Option<String>,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().expect("nobody panics while it holds the lock")
    }

    /// Corrupts a stored event, for tests of damaged logs.
    pub fn corrupt_event(&self, task: TaskNo, seq: Seq) {
        let mut state = self.lock();
        let entry = state.tasks.get_mut(&task);
        if let Some(body) = entry.and_then(|entry| entry.events.get_mut(seq.checked_sub(1)? as usize)) {
            *body = Box::from(&b"{"[..]);
        }
    }

    /// Corrupts every message in the inbox of a task, for the same tests.
    pub fn corrupt_inbox(&self, task: TaskNo) {
        if let Some(entry) = self.lock().tasks.get_mut(&task) {
            entry.inbox.iter_mut().for_each(Vec::clear);
        }
    }
}

impl Store for MemoryStore {
    fn append(&self, append: Append<'_>) -> StoreFuture<'static, AppendResult> {
        let appended = Encoded::new(&append).and_then(|encoded| self.lock().append(encoded));
        answer(appended.map(|(appended, is_due)| {
            if is_due {
                self.due.notify_one();
            }
            appended
        }))
    }

    fn find(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<TaskRow>> {
        answer(Ok(self.lock().find(owner, agent, task).map(|entry| entry.row.clone())))
    }

    fn find_of_all(&self, agent: Option<&AgentId>, task: &TaskId, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        let state = self.lock();
        let newest_first = state.tasks.values().rev().map(|entry| &entry.row);
        let found = newest_first.filter(|row| row.task == *task && agent.is_none_or(|agent| row.agent == *agent));
        answer(Ok(found.take(limit).cloned().collect()))
    }

    fn load(&self, task: TaskNo) -> StoreFuture<'_, Option<Task>> {
        let state = self.lock();
        answer(Ok(state.tasks.get(&task).map(|entry| entry.fold(&self.damages))))
    }

    fn get(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> StoreFuture<'_, Option<Task>> {
        let state = self.lock();
        let entry = state.find(owner, agent, task);
        answer(Ok(entry.map(|entry| entry.fold(&self.damages))))
    }

    fn load_at(&self, task: TaskNo, event: Seq) -> StoreFuture<'_, Option<Task>> {
        let state = self.lock();
        let entry = state.tasks.get(&task).filter(|entry| (1..=entry.row.seq).contains(&event));
        let read = entry.map(|entry| {
            let damaged = |damage: Damage| StoreError::Damaged { task: entry.row.task.clone(), reason: damage.0 };
            entry.fold_events(event).map_err(damaged)
        });
        answer(read.transpose())
    }

    fn events(&self, task: TaskNo, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Recorded>> {
        let state = self.lock();
        answer(state.tasks.get(&task).map_or(Ok(Vec::new()), |entry| entry.events(&self.damages, after, limit)))
    }

    fn list(&self, query: Query) -> StoreFuture<'_, Listing> {
        answer(Ok(self.lock().list(&self.damages, &query)))
    }

    fn waiting(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Vec<TaskRow>> {
        let state = self.lock();
        let entries = state.tasks.values().filter(|entry| entry.is_of(owner, agent, context));
        answer(Ok(entries.map(|entry| &entry.row).filter(|row| row.state.is_waiting()).cloned().collect()))
    }

    fn waiting_since(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        let state = self.lock();
        let rows = state.tasks.values().map(|entry| &entry.row);
        let mut waiting: Vec<&TaskRow> = rows.filter(|row| row.state.is_waiting() && row.time < before).collect();
        waiting.sort_by_key(|row| (row.time, row.no));
        answer(Ok(waiting.into_iter().take(limit).cloned().collect()))
    }

    fn conversation(
        &self,
        owner: &Owner,
        agent: &AgentId,
        context: &ContextId,
        limit: usize,
        max_bytes: usize,
    ) -> StoreFuture<'_, Vec<Task>> {
        let state = self.lock();
        let mut entries: Vec<&MemoryTask> =
            state.tasks.values().filter(|entry| entry.is_of(owner, agent, context)).collect();
        entries.sort_by_key(|entry| Reverse((entry.row.time, entry.row.no)));
        let mut budget = PageBudget::new(max_bytes);
        let newest = entries.into_iter().take(limit).map(|entry| (entry.row.no, entry.fold(&self.damages)));
        let mut tasks: Vec<(TaskNo, Task)> = newest.take_while(|(_, task)| budget.takes(task)).collect();
        tasks.sort_by_key(|(no, _)| *no);
        answer(Ok(tasks.into_iter().map(|(_, task)| task).collect()))
    }

    fn find_by_key(&self, owner: &Owner, agent: &AgentId, key: &IdempotencyKey) -> StoreFuture<'_, Option<TaskRow>> {
        let state = self.lock();
        let no = state.keys.get(&(owner.clone(), agent.clone(), key.clone()));
        answer(Ok(no.and_then(|no| state.tasks.get(no)).map(|entry| entry.row.clone())))
    }

    fn agent_state(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> StoreFuture<'_, Option<String>> {
        answer(Ok(self.lock().agent_state.get(&(owner.clone(), agent.clone(), context.clone())).cloned()))
    }

    fn task_state(&self, task: TaskNo) -> StoreFuture<'_, Option<String>> {
        answer(Ok(self.lock().tasks.get(&task).and_then(|entry| entry.state.clone())))
    }

    fn inbox(&self, task: TaskNo) -> StoreFuture<'_, Vec<Message>> {
        let state = self.lock();
        let messages = state.tasks.get(&task).map_or(Ok(Vec::new()), MemoryTask::messages);
        answer(messages.map_err(|damage| StoreError::Failed(damage.0.into())))
    }

    fn unfinished(&self) -> StoreFuture<'_, Vec<UnfinishedTask>> {
        let state = self.lock();
        let unsettled = state.tasks.values().filter(|entry| !entry.row.state.is_terminal());
        answer(Ok(unsettled.map(|entry| entry.pending(&self.damages)).collect()))
    }

    fn sweep(&self, retention: Retention) -> StoreFuture<'_, SweepResult> {
        answer(Ok(self.lock().sweep(retention)))
    }

    fn set_webhook(&self, task: TaskNo, webhook: Webhook, now: Timestamp) -> StoreFuture<'static, WebhookSet> {
        let mut state = self.lock();
        let MemoryState { tasks, webhooks, .. } = &mut *state;
        let set = tasks.get(&task).map_or(WebhookSet::NoTask, |entry| webhooks.set(entry, webhook, now));
        self.due.notify_one();
        answer(Ok(set))
    }

    fn webhooks(&self, task: TaskNo) -> StoreFuture<'_, Vec<Webhook>> {
        answer(Ok(self.lock().webhooks.of(task)))
    }

    fn remove_webhooks(&self, task: TaskNo, id: Option<&PushConfigId>) -> StoreFuture<'static, ()> {
        self.lock().webhooks.remove(task, id);
        answer(Ok(()))
    }

    fn tasks_of(&self, owner: &Owner, after: Option<(TaskId, AgentId)>, limit: usize) -> StoreFuture<'_, Vec<TaskRow>> {
        let state = self.lock();
        let mut rows: Vec<&TaskRow> = state.tasks.values().map(|entry| &entry.row).collect();
        rows.retain(|row| row.owner == *owner);
        rows.retain(|row| after.as_ref().is_none_or(|(task, agent)| (&row.task, &row.agent) > (task, agent)));
        rows.sort_by_key(|row| (&row.task, &row.agent));
        answer(Ok(rows.into_iter().take(limit).cloned().collect()))
    }

    fn assign(&self, tasks: Vec<TaskNo>, from: &Owner, to: &Owner) -> StoreFuture<'static, Vec<TaskNo>> {
        let mut state = self.lock();
        answer(Ok(tasks.into_iter().filter(|no| state.assign(*no, from, to)).collect()))
    }

    fn summaries(&self, query: SummaryQuery) -> StoreFuture<'_, SummaryPage> {
        answer(Ok(self.lock().summaries(&self.damages, &query)))
    }

    fn summary(&self, task: TaskNo) -> StoreFuture<'_, Option<TaskSummary>> {
        answer(Ok(self.lock().tasks.get(&task).map(|entry| entry.summary(&self.damages))))
    }

    fn bytes_of(&self, task: TaskNo) -> StoreFuture<'_, u64> {
        let bytes = |entry: &MemoryTask| TASK_ROW_BYTES + entry.bytes() as u64;
        answer(Ok(self.lock().tasks.get(&task).map_or(0, bytes)))
    }

    fn task_counts(&self, owner: Option<&Owner>) -> StoreFuture<'_, Vec<TaskCount>> {
        answer(Ok(self.lock().task_counts(owner)))
    }

    fn facts(&self) -> StoreFuture<'_, StoreFacts> {
        let bytes = self.lock().tasks.values().map(|entry| TASK_ROW_BYTES + entry.bytes() as u64).sum();
        answer(Ok(StoreFacts { bytes, format: None }))
    }

    fn highest_no(&self) -> TaskNo {
        TaskNo(self.lock().last_no)
    }

    fn stored_bytes(&self) -> StoreFuture<'_, Vec<(Owner, u64)>> {
        let mut of_owners = HashMap::<Owner, u64>::new();
        for entry in self.lock().tasks.values() {
            *of_owners.entry(entry.row.owner.clone()).or_default() += TASK_ROW_BYTES + entry.bytes() as u64;
        }
        answer(Ok(of_owners.into_iter().collect()))
    }

    fn check(&self) -> StoreFuture<'_, ()> {
        answer(Ok(()))
    }

    fn export(&self) -> StoreFuture<'_, Option<Box<dyn ExportTasks>>> {
        answer(Ok(None))
    }
}

fn answer<T: Send + 'static>(answer: Result<T, StoreError>) -> StoreFuture<'static, T> {
    Box::pin(ready(answer))
}

impl MemoryState {
    /// Says as well whether something became due.
    fn append(&mut self, append: Encoded) -> Result<(AppendResult, bool), StoreError> {
        let no = match &append.target {
            EncodedTarget::New(new) => self.create(new)?,
            EncodedTarget::Known(no, latest) => {
                self.check_keys(*no, &append)?;
                self.change(*no, append.after, *latest)?
            }
        };
        let (last, settles, mut bytes) = (append.last(), append.settles(), append.added_bytes());
        let entry = self.tasks.get_mut(&no).ok_or(StoreError::Conflict)?;
        entry.events.extend(append.events.iter().map(Box::from));
        entry.row.seq = last;
        for row in append.side_rows {
            match row {
                EncodedSideRow::InboxAdd(message) => entry.inbox.push_back(message),
                EncodedSideRow::InboxTake(count) => {
                    let taken = entry.inbox.drain(..count.min(entry.inbox.len()));
                    bytes -= taken.map(|message| message.len() as i64).sum::<i64>();
                }
                EncodedSideRow::InboxTakeAt(place) => {
                    bytes -= entry.inbox.remove(place).map_or(0, |message| message.len() as i64);
                }
                EncodedSideRow::CancelRequested => entry.cancel_requested = true,
                EncodedSideRow::Attempts(count) => entry.attempts = count,
                EncodedSideRow::Webhook(webhook) => self.webhooks.insert(no, *webhook, append.after, None),
                EncodedSideRow::Key(SentKey { key, sender }) => {
                    let sender = sender.unwrap_or_else(|| entry.row.owner.clone());
                    let place = (sender, entry.row.agent.clone(), key);
                    self.keys.entry(place).or_insert(no);
                }
                EncodedSideRow::ForwardDone(_) | EncodedSideRow::SendInFlight(_) => {}
                EncodedSideRow::Audit(entry) => self.audit.push(AuditEntry { no: Some(no), ..*entry }),
                EncodedSideRow::TaskState(state) => entry.state = state,
                EncodedSideRow::AgentState(state) => {
                    let place = (entry.row.owner.clone(), entry.row.agent.clone(), entry.row.context.clone());
                    match state {
                        Some(state) => self.agent_state.insert(place, state),
                        None => self.agent_state.remove(&place),
                    };
                }
            }
        }
        if settles {
            (entry.cancel_requested, entry.attempts) = (false, 0);
        }
        let time = entry.row.time;
        let is_due = append.has_later_events && self.webhooks.appended(no, append.has_status, time);
        Ok((AppendResult { task: no, last, bytes, epoch: Epoch::default() }, is_due))
    }

    fn create(&mut self, new: &EncodedNewTask) -> Result<TaskNo, StoreError> {
        let key = new.key.as_ref().map(|key| (new.owner.clone(), new.agent.clone(), key.clone()));
        if let Some(entry) = key.as_ref().and_then(|key| self.keys.get(key)).and_then(|no| self.tasks.get(no)) {
            return Err(StoreError::Exists(entry.row.task.clone()));
        }
        if self.find(&new.owner, Some(&new.agent), &new.task).is_some() {
            return Err(StoreError::Exists(new.task.clone()));
        }
        self.last_no += 1;
        let no = TaskNo(self.last_no);
        let row = TaskRow {
            no,
            owner: new.owner.clone(),
            agent: new.agent.clone(),
            task: new.task.clone(),
            context: new.context.clone(),
            born: new.born,
            state: new.latest.state,
            time: new.latest.time,
            turn_over: new.latest.turn_over,
            created: new.created,
            seq: 0,
        };
        let (events, inbox) = (Vec::new(), VecDeque::new());
        self.tasks.insert(no, MemoryTask { row, events, inbox, cancel_requested: false, attempts: 0, state: None });
        self.ids.entry((new.owner.clone(), new.task.clone())).or_default().push(no);
        self.keys.extend(key.map(|key| (key, no)));
        Ok(no)
    }

    /// Refuses an append with a key that is known already.
    fn check_keys(&self, no: TaskNo, append: &Encoded) -> Result<(), StoreError> {
        let entry = self.tasks.get(&no).filter(|entry| entry.row.seq == append.after).ok_or(StoreError::Conflict)?;
        for SentKey { key, sender } in append.sent_keys() {
            let sender = sender.as_ref().unwrap_or(&entry.row.owner);
            let known = self.keys.get(&(sender.clone(), entry.row.agent.clone(), key.clone()));
            if let Some(known) = known.and_then(|known| self.tasks.get(known)) {
                return Err(StoreError::Exists(known.row.task.clone()));
            }
        }
        Ok(())
    }

    fn change(&mut self, no: TaskNo, after: Seq, latest: Option<LatestStatus>) -> Result<TaskNo, StoreError> {
        let entry = self.tasks.get_mut(&no).ok_or(StoreError::Conflict)?;
        if entry.row.seq != after {
            return Err(StoreError::Conflict);
        }
        if let Some(latest) = latest {
            entry.row.state = latest.state;
            entry.row.time = latest.time;
            entry.row.turn_over = latest.turn_over;
        }
        Ok(no)
    }

    fn find(&self, owner: &Owner, agent: Option<&AgentId>, task: &TaskId) -> Option<&MemoryTask> {
        let numbers = self.ids.get(&(owner.clone(), task.clone()))?;
        let mut newest_first = numbers.iter().rev().filter_map(|no| self.tasks.get(no));
        newest_first.find(|entry| agent.is_none_or(|agent| entry.row.agent == *agent))
    }

    fn list(&self, damages: &DamageLog, query: &Query) -> Listing {
        let mut matching: Vec<&MemoryTask> =
            self.tasks.values().filter(|entry| entry.matches(damages, query)).collect();
        let total = matching.len() as u64;
        if let Some(from) = &query.from {
            // Only the tasks of one owner can be told apart without numbers.
            let number = from.number.map_or(TaskNo(0), TaskNo);
            matching.retain(|entry| entry.order() < (from.time, &from.task, &from.agent, number));
        }
        matching.sort_by(|a, b| b.order().cmp(&a.order()));
        let mut more = cut(&mut matching, query.limit);
        let (mut tasks, mut budget) = (Vec::new(), PageBudget::new(query.max_bytes));
        let mut last = None;
        for entry in matching {
            let mut task = entry.fold(damages);
            trim(&mut task, query);
            if !budget.takes(&task) {
                more = true;
                break;
            }
            tasks.push(task);
            last = (query.others != Others::None).then_some(entry.row.no);
        }
        Listing { tasks, more, total, last }
    }

    fn sweep(&mut self, retention: Retention) -> SweepResult {
        let mut settled: Vec<&TaskRow> =
            self.tasks.values().map(|entry| &entry.row).filter(|row| row.state.is_terminal()).collect();
        let surplus = retention.keep.map_or(0, |keep| settled.len().saturating_sub(keep as usize));
        let is_spared = |row: &TaskRow| {
            retention.pending_after.is_some_and(|after| row.time > after) && self.webhooks.has_due(row.no)
        };
        settled.retain(|row| !is_spared(row));
        settled.sort_by_key(|row| (row.time, row.no));
        let aged = |row: &TaskRow| retention.settled_before.is_some_and(|before| row.time < before);
        let goes = settled.iter().enumerate().take_while(|(at, row)| *at < surplus || aged(row));
        let mut numbers: Vec<TaskNo> = goes.map(|(_, row)| row.no).collect();
        let more = cut(&mut numbers, SWEEP_TASKS);
        for no in &numbers {
            self.remove(*no);
        }
        SweepResult { tasks: numbers.len() as u64, more }
    }

    /// Returns whether the task was moved.
    fn assign(&mut self, no: TaskNo, from: &Owner, to: &Owner) -> bool {
        let Some(entry) = self.tasks.get(&no) else { return false };
        let row = entry.row.clone();
        let is_free = row.owner == *from && RunState::of(row.state, row.turn_over) == RunState::None;
        if !is_free || self.find(to, Some(&row.agent), &row.task).is_some() {
            return false;
        }
        if let Some(numbers) = self.ids.get_mut(&(from.clone(), row.task.clone())) {
            numbers.retain(|other| *other != no);
        }
        let numbers = self.ids.entry((to.clone(), row.task.clone())).or_default();
        numbers.push(no);
        numbers.sort();
        let is_moved = |key: &(Owner, AgentId, IdempotencyKey), other: TaskNo| other == no && key.0 == *from;
        let moved: Vec<_> = self.keys.iter().filter(|(key, other)| is_moved(key, **other)).collect();
        let moved: Vec<_> = moved.into_iter().map(|(key, _)| (key.1.clone(), key.2.clone())).collect();
        self.keys.retain(|key, other| !is_moved(key, *other));
        for (agent, key) in moved {
            self.keys.entry((to.clone(), agent, key)).or_insert(no);
        }
        if let Some(entry) = self.tasks.get_mut(&no) {
            entry.row.owner = to.clone();
        }
        let place = (from.clone(), row.agent.clone(), row.context.clone());
        if let Some(memory) = self.agent_state.get(&place).cloned() {
            self.agent_state.entry((to.clone(), row.agent.clone(), row.context.clone())).or_insert(memory);
        }
        if !self.tasks.values().any(|entry| entry.is_of(from, &row.agent, &row.context)) {
            self.agent_state.remove(&place);
        }
        true
    }

    fn remove(&mut self, no: TaskNo) {
        let Some(MemoryTask { row, .. }) = self.tasks.remove(&no) else { return };
        if let Some(numbers) = self.ids.get_mut(&(row.owner.clone(), row.task.clone())) {
            numbers.retain(|other| *other != no);
        }
        self.keys.retain(|_, other| *other != no);
        self.webhooks.remove(no, None);
        if !self.tasks.values().any(|entry| entry.is_of(&row.owner, &row.agent, &row.context)) {
            self.agent_state.remove(&(row.owner, row.agent, row.context));
        }
    }
}

impl MemoryTask {
    /// The size of its log and its waiting messages.
    fn bytes(&self) -> usize {
        self.events.iter().map(|event| event.len()).sum::<usize>() + self.inbox.iter().map(Vec::len).sum::<usize>()
    }

    fn fold(&self, damages: &DamageLog) -> Task {
        self.fold_events(self.row.seq).unwrap_or_else(|damage| {
            damages.report(self.row.no, self.row.task.as_str(), &damage);
            damaged_task(self.row.clone(), &damage)
        })
    }

    /// Folds the events up to this one.
    fn fold_events(&self, until: Seq) -> Result<Task, Damage> {
        let row = self.row.clone();
        let birth = TaskBirth { context: row.context, agent: row.agent, owner: row.owner, born: row.born };
        let mut fold = Fold::new(row.task, birth);
        for body in self.events.iter().take(usize::try_from(until).unwrap_or(usize::MAX)) {
            fold.take_body(body)?;
        }
        fold.finish()
    }

    fn events(&self, damages: &DamageLog, after: Seq, limit: usize) -> Result<Vec<Recorded>, StoreError> {
        let mut page = Vec::new();
        let mut bytes = 0;
        let skipped = usize::try_from(after).unwrap_or(usize::MAX);
        for (seq, body) in (1..).zip(&self.events).skip(skipped).take(limit) {
            match decode_event(seq, body) {
                Ok(event) => page.push(event),
                Err(damage) => {
                    let task = self.row.task.clone();
                    damages.report(self.row.no, task.as_str(), &damage);
                    let refusal = StoreError::Damaged { task, reason: damage.0 };
                    return if page.is_empty() { Err(refusal) } else { Ok(page) };
                }
            }
            bytes += body.len();
            if bytes >= EVENT_BYTES {
                break;
            }
        }
        Ok(page)
    }

    fn messages(&self) -> Result<Vec<Message>, Damage> {
        self.inbox.iter().map(|body| decode(body).map_err(unreadable_message)).collect()
    }

    fn pending(&self, damages: &DamageLog) -> UnfinishedTask {
        let inbox = self.inbox.iter().filter_map(|body| decode(body).ok()).collect();
        let damage = self.messages().err();
        if let Some(damage) = &damage {
            damages.report(self.row.no, self.row.task.as_str(), damage);
        }
        let (cancel_requested, attempts) = (self.cancel_requested, self.attempts);
        UnfinishedTask {
            row: self.row.clone(),
            inbox,
            cancel_requested,
            attempts,
            damage: damage.map(|damage| damage.0),
        }
    }

    fn is_of(&self, owner: &Owner, agent: &AgentId, context: &ContextId) -> bool {
        self.row.owner == *owner && self.row.agent == *agent && self.row.context == *context
    }

    fn matches(&self, damages: &DamageLog, query: &Query) -> bool {
        let row = &self.row;
        let is_own = row.owner == query.owner && query.lists_own(&row.agent);
        let is_listed = is_own
            || match query.others {
                Others::None => false,
                Others::All => true,
                Others::ForApproval(_) => row.state.is_waiting() && query.awaits_approval(&self.fold(damages)),
            };
        is_listed
            && query.agent.as_ref().is_none_or(|agent| row.agent == *agent)
            && query.context.as_ref().is_none_or(|context| row.context == *context)
            && query.state.is_none_or(|state: State| row.state == state)
            && query.since.is_none_or(|since| row.time >= since)
    }

    fn order(&self) -> (Timestamp, &TaskId, &AgentId, TaskNo) {
        (self.row.time, &self.row.task, &self.row.agent, self.row.no)
    }
}
