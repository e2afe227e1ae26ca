//! Recovery after a start: every unfinished task is run, settled or left waiting.
//!
//! Queued tasks run. A task whose turn ended by asking keeps waiting; one whose run had asked and is gone waits on if its
//! agent can use the answer (`Survives`), and fails otherwise. A task that was running when the last process died fails with
//! a reason or runs again, as `Recovery` says. The row of a task is enough to decide; only tasks that need work are read.

use std::sync::Arc;

use sabir_model::{Error, Event, Message, RunState, Seq, Standing, State};
use sabir_store::{StoreError, TaskNo, TaskRow, UnfinishedTask};
use tokio::sync::mpsc;

use crate::cluster::Loaded;
use crate::drive::{self, Assignment, Control, DriverOwnership, DriverStart, QUESTION_LOST, TurnMessage, failure};
use crate::engine::{Engine, Recovery};
use crate::executor::RunRequest;
use crate::feed::Lease;
use crate::schedule::SlotUse;
use crate::topic::TopicKey;
use crate::turn::Outcome;
use crate::{InterruptedRun, Survives};

/// How many events are read at once.
const PAGE: usize = 256;
/// How often a turn is run in all. After that, the turn is taken to be the cause of the crashes.
const MAX_RUNS: u32 = 3;
const DAMAGED: &str = "the task's log is damaged";

/// What recovery does with an unfinished task.
pub(crate) enum Plan {
    KeepWaiting,
    /// Runs its turn, for the first time or again.
    Run {
        attempts: u32,
    },
    Settle(Outcome),
}

impl Engine {
    pub(crate) async fn recover(&self) -> Result<(), Error> {
        let unfinished = self.core.store.unfinished().await?;
        let (mut settled, mut queued, mut waiting) = (0, 0, 0);
        for unfinished in unfinished {
            let (task, agent) = (unfinished.row.task.clone(), unfinished.row.agent.clone());
            let taken_up = async {
                let plan = self.plan(&unfinished, None).await?;
                match &plan {
                    Plan::KeepWaiting => waiting += 1,
                    Plan::Run { .. } => queued += 1,
                    Plan::Settle(_) => settled += 1,
                }
                match self.recovery_of(plan, unfinished).await? {
                    Some((key, start)) => self.recover_task(key, start, DriverOwnership::default()).await.map(drop),
                    None => Ok(()),
                }
            };
            if let Err(error) = taken_up.await {
                // A task that cannot be read must not keep the server from starting.
                tracing::error!(%task, %agent, error = causes(&error), "cannot take up a task of an earlier run");
            }
        }
        if settled + queued + waiting > 0 {
            tracing::info!(settled, queued, waiting, "took up the tasks of an earlier run");
        }
        Ok(())
    }

    /// Plans for a task whose driver crashed, as recovery does after a restart. `None`: the task is at rest.
    pub(crate) async fn start_after_crash(
        &self,
        lease: &Lease,
        attempts: u32,
        cancel_requested: bool,
    ) -> Result<Option<DriverStart>, Error> {
        let key = &lease.key;
        let row = self.core.store.find(&key.owner, Some(&key.agent), &key.task).await?;
        let Some(row) = row else { return Ok(None) };
        lease.reload(&*self.core.store, row.no).await?;
        if row.state.is_terminal() {
            return Ok(None);
        }
        let inbox = self.core.store.inbox(row.no).await?;
        let unfinished = UnfinishedTask { row, inbox, cancel_requested, attempts, damage: None };
        let runs = attempts.max(1);
        let plan = match self.plan(&unfinished, None).await? {
            // The limit holds for tasks that had not begun too: whatever crashes their driver must not do so for ever.
            Plan::Run { .. } if runs < MAX_RUNS => Plan::Run { attempts: runs + 1 },
            Plan::Run { .. } | Plan::Settle(Outcome::Failed(_)) => {
                Plan::Settle(failure("interrupted: the server had an internal error"))
            }
            plan => plan,
        };
        Ok(self.start_for(plan, unfinished).await?)
    }

    /// `lost_node`: the node that died with the task, if it was not this server.
    pub(crate) async fn plan(&self, unfinished: &UnfinishedTask, lost_node: Option<&str>) -> Result<Plan, Error> {
        let UnfinishedTask { row, inbox, cancel_requested, attempts, .. } = unfinished;
        if *cancel_requested {
            return Ok(Plan::Settle(Outcome::Canceled(Vec::new())));
        }
        if self.registered_agent(Some(&row.agent)).is_none() {
            // A waiting task may wait for its agent to be configured again.
            let keeps_waiting = row.state.is_waiting() && inbox.is_empty();
            let reason = format!("interrupted: agent {} is no longer configured", row.agent);
            return Ok(if keeps_waiting { Plan::KeepWaiting } else { Plan::Settle(failure(reason)) });
        }
        Ok(match RunState::of(row.state, row.turn_over) {
            RunState::Queued => Plan::Run { attempts: *attempts },
            RunState::Active => match self.core.settings.recovery {
                Recovery::Fail if self.survives(row, None).await? < Survives::Runs => {
                    Plan::Settle(failure(match lost_node {
                        Some(node) => format!("interrupted: node {node} was lost while it ran the task"),
                        None => "interrupted: the server was restarted while the task was running".to_owned(),
                    }))
                }
                Recovery::Fail | Recovery::Requeue if (*attempts).max(1) >= MAX_RUNS => Plan::Settle(failure(format!(
                    "interrupted: the task was run {MAX_RUNS} times, and the server stopped each time"
                ))),
                Recovery::Fail | Recovery::Requeue => Plan::Run { attempts: (*attempts).max(1) + 1 },
            },
            RunState::Parked => match self.resumable_question(row).await? {
                None => Plan::Settle(failure(QUESTION_LOST)),
                // Messages from before the question stay in the store (`Engine::stored_inbox`).
                Some(open) if !inbox.iter().any(|unread| open.is_none() || unread.answers == open) => Plan::KeepWaiting,
                Some(_) => Plan::Run { attempts: *attempts },
            },
            RunState::None if inbox.is_empty() => Plan::KeepWaiting,
            RunState::None => Plan::Run { attempts: *attempts },
        })
    }

    /// The event that asked the open question, if the executing agent can resume from it, judged by what it remembers
    /// of the context. `Some(None)`: the question has no id, so any message may be its answer.
    async fn resumable_question(&self, row: &TaskRow) -> Result<Option<Option<Seq>>, StoreError> {
        let Some(task) = self.core.store.load(row.no).await? else { return Ok(None) };
        let open = task.open_question().map(|question| question.event);
        let Some(question) = task.status.message.as_deref() else { return Ok(None) };
        Ok((self.survives(row, Some(question)).await? >= Survives::Questions).then_some(open))
    }

    /// What the agent that executes the task can use of a run that has ended with its server.
    async fn survives(&self, row: &TaskRow, question: Option<&Message>) -> Result<Survives, StoreError> {
        let Some(registered) = self.registered_agent(Some(&row.agent)) else { return Ok(Survives::Nothing) };
        let executor = self.executor_of_row(registered, row).await?;
        let memory = self.core.store.agent_state(&row.owner, &row.agent, &row.context).await?;
        let task_memory = self.core.store.task_state(row.no).await?;
        let run = InterruptedRun { memory: memory.as_deref(), task_memory: task_memory.as_deref(), question };
        Ok(executor.agent.hosted.agent.survives_restart(&run))
    }

    /// The stored inbox of a task whose run was lost while its question was open. Whoever claims such a task must read
    /// the inbox before the claim, since a future that holds a claim must not be dropped at an await.
    pub(crate) async fn stored_inbox(&self, lease: &Lease) -> Result<Vec<Arc<Message>>, StoreError> {
        let is_left =
            lease.driver().is_none() && lease.with_task(|task| task.run_state() == RunState::Parked) == Some(true);
        match lease.no().filter(|_| is_left) {
            Some(no) => Ok(self.core.store.inbox(no).await?.into_iter().map(Arc::new).collect()),
            None => Ok(Vec::new()),
        }
    }

    /// The task that a driver must take up, and how. `None`: nothing needs to be done.
    pub(crate) async fn recovery_of(
        &self,
        plan: Plan,
        unfinished: UnfinishedTask,
    ) -> Result<Option<(TopicKey, DriverStart)>, Error> {
        let row = &unfinished.row;
        let key = TopicKey { owner: row.owner.clone(), agent: row.agent.clone(), task: row.task.clone() };
        Ok(self.start_for(plan, unfinished).await?.map(|start| (key, start)))
    }

    /// What a driver needs to execute this plan. `None`: nothing needs to be done.
    async fn start_for(&self, plan: Plan, unfinished: UnfinishedTask) -> Result<Option<DriverStart>, StoreError> {
        let UnfinishedTask { row, inbox, .. } = unfinished;
        let inbox: Vec<Arc<Message>> = inbox.into_iter().map(Arc::new).collect();
        Ok(Some(match plan {
            Plan::KeepWaiting => return Ok(None),
            Plan::Settle(outcome) => DriverStart::Settle { outcome, inbox },
            Plan::Run { attempts } if row.state.is_waiting() => {
                let plain_question = self.plain_question(&row).await?;
                DriverStart::Recover { first: None, inbox, attempts, plain_question }
            }
            Plan::Run { attempts } => match self.turn_message(&row).await {
                Ok(first) => DriverStart::Recover { first, inbox, attempts, plain_question: None },
                Err(StoreError::Damaged { .. }) => DriverStart::Settle { outcome: failure(DAMAGED), inbox },
                Err(error) => return Err(error),
            },
        }))
    }

    /// The question of a parked run, without the note that it may be shown with.
    async fn plain_question(&self, row: &TaskRow) -> Result<Option<Arc<Message>>, StoreError> {
        let task = self.core.store.load(row.no).await?;
        let Some(open) = task.and_then(|task| task.open_question()) else { return Ok(None) };
        let asked = self.core.store.events(row.no, open.event - 1, 1).await?.pop();
        Ok(asked.and_then(|recorded| match recorded.event {
            Event::Status(change) => change.status.message,
            Event::Created(_) | Event::Artifact(_) => None,
        }))
    }

    /// The message that began the current turn. An answer during the turn is not its beginning: the run that asked for
    /// it is gone.
    async fn turn_message(&self, row: &TaskRow) -> Result<Option<TurnMessage>, StoreError> {
        let first = match row.state {
            State::Working => self.first_message_of_turn(row.no).await?,
            _ => self.core.store.load(row.no).await?.and_then(|task| task.history.last().cloned()),
        };
        Ok(first.map(TurnMessage::beginning))
    }

    async fn first_message_of_turn(&self, no: TaskNo) -> Result<Option<Arc<Message>>, StoreError> {
        let Some(task) = self.core.store.load(no).await?.map(|task| task.id) else { return Ok(None) };
        let (mut first, mut standing, mut cursor) = (None, Standing::new(task), 0);
        loop {
            let events = self.core.store.events(no, cursor, PAGE).await?;
            let Some(last) = events.last() else { return Ok(first) };
            cursor = last.seq;
            for recorded in events {
                match &recorded.event {
                    Event::Created(created) => first = Some(created.message.clone()),
                    Event::Status(change) => {
                        // When a run was lost with its question open, the answer resumes the same turn. A message that
                        // waited while a turn ended by asking answers nothing, although the question stood in between.
                        let is_answer = |message: &Message| {
                            let answers_open = message.answers.is_some() && message.answers == standing.open_question();
                            standing.is_parked() && (!change.begins_turn || answers_open)
                        };
                        if let Some(message) = change.input.last().filter(|message| !is_answer(message)) {
                            first = Some(message.clone());
                        }
                    }
                    Event::Artifact(_) => {}
                }
                standing.follow(&recorded.event);
            }
        }
    }

    /// `false`: it has a driver already.
    pub(crate) async fn recover_task(
        &self,
        key: TopicKey,
        start: DriverStart,
        ownership: DriverOwnership,
    ) -> Result<bool, Error> {
        let lease = self.core.feed.open(key);
        if self.load(&lease).await? == Loaded::Missing {
            return Err(Error::TaskNotFound(lease.key.task.clone()));
        }
        match lease.claim() {
            Ok(control) => self.start_recovered(lease, control, start, ownership).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Replaces a crashed driver by a new one; no caller can claim the task in between.
    pub(crate) fn replace_driver(&self, lease: &Lease, start: DriverStart, ownership: DriverOwnership) {
        let control = lease.replace_driver();
        if let Err(error) = self.start_recovered(self.core.feed.open(lease.key.clone()), control, start, ownership) {
            tracing::error!(task = %lease.key.task, error = causes(&error), "cannot settle a task whose driver crashed");
        }
    }

    fn start_recovered(
        &self,
        lease: Lease,
        control: mpsc::UnboundedReceiver<Control>,
        start: DriverStart,
        ownership: DriverOwnership,
    ) -> Result<(), Error> {
        let start = match start {
            // The row is not settled, so a settled task here means that the store could not read its log.
            DriverStart::Recover { inbox, .. }
                if lease.with_task(|task| task.status.state.is_terminal()) == Some(true) =>
            {
                DriverStart::Settle { outcome: failure(DAMAGED), inbox }
            }
            start => start,
        };
        lease.expect_more();
        self.watch_parent_of(&lease);
        // If the agent is no longer configured, the task only ends, and any agent will do.
        let registered = match self.registered_agent(Some(&lease.key.agent)).or_else(|| self.registered_agent(None)) {
            Some(registered) => registered,
            None => {
                lease.release(None);
                return Err(Error::internal("there is no agent"));
            }
        };
        let context = lease.with_task(|task| task.context.clone());
        let executor = self.executor_of(registered, &lease);
        let scheduled = match (&start, context) {
            (DriverStart::Settle { .. } | DriverStart::Cancel { .. }, _) | (_, None) => None,
            (DriverStart::Create { .. } | DriverStart::Deliver { .. } | DriverStart::Recover { .. }, Some(context)) => {
                let (owner, task) = (&lease.key.owner, &lease.key.task);
                Some(self.enter_recovered(RunRequest {
                    addressed: registered,
                    executor: &executor,
                    owner,
                    context,
                    task,
                    slot_use: lease.with_task(|task| SlotUse::of(task.delegated())).unwrap_or(SlotUse::Counted),
                }))
            }
        };
        drive::start(
            &self.core,
            executor,
            Assignment { lease, control, start, scheduled, send_guards: Vec::new(), done: None, ownership },
        );
        Ok(())
    }
}

pub(crate) fn causes(error: &Error) -> String {
    let chain = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
