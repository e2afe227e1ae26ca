//! Follows a task to its end, with a person or a program who watches: shows what comes, passes questions on, and hears
//! Ctrl-C and the clock.
//!
//! ```text
//!           ┌────────────────── the answer is sent ◀─────────────────┐
//!           ▼                                                        │
//!   a turn is followed ──▶ it waits ──▶ somebody is at the prompt ───┤
//!           │                  │                                     └──▶ Ctrl-D: exit 6
//!           │                  └──▶ nobody is: exit 6
//!           ├──▶ it ends: exit 0, 1, 7 or 8
//!           └──▶ Ctrl-C ──▶ cancel, and the turn is followed on; or detach: exit 0
//! ```

use std::pin::pin;
use std::time::Duration;

use sabir_model::{Call, Cancel, Get, OnFinishedCancel, Part, Send, State, Status, Task, TaskId, Wanted};
use sabir_outbound::remote::{Following, Mirror, RemoteError, Step};
use sabir_wire::PeerResponse;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::connection::Connection;
use super::failure::Failure;
use super::files;
use super::interrupts::Interrupts;
use super::message;
use super::part_text::parts_text;
use super::prompts::{Prompts, Typed, Wish, question_text};
use super::received_task::ReceivedTask;
use super::view::View;
use crate::cli::{ShowOptions, WaitOptions};
use crate::exit::Exit;
use crate::terminal_text::visible;

/// How often the progress line is drawn.
const TICK: Duration = Duration::from_millis(200);

pub struct Interaction<'a> {
    connection: &'a Connection,
    view: &'a mut dyn View,
    /// `None`: nobody can be asked.
    prompts: Option<Prompts>,
    interrupts: Interrupts,
    wait: &'a WaitOptions,
    show: &'a ShowOptions,
    received: ReceivedTask,
}

/// How the following of a turn ended.
enum TurnEnd {
    Replied(Vec<Part>),
    Over(Status),
    Detached,
}

/// What became of a question.
enum Reply {
    Answer(String),
    /// The task was canceled instead.
    Canceled,
    /// The task is left as it is.
    Left(Exit),
}

impl<'a> Interaction<'a> {
    pub fn new(
        connection: &'a Connection,
        view: &'a mut dyn View,
        prompts: Option<Prompts>,
        wait: &'a WaitOptions,
        show: &'a ShowOptions,
    ) -> Result<Self, Failure> {
        let interrupts = Interrupts::new()?;
        Ok(Interaction { connection, view, prompts, interrupts, wait, show, received: ReceivedTask::default() })
    }

    /// Sends a message, and follows what becomes of it.
    pub async fn send(self, send: Send) -> Result<Exit, Failure> {
        let following = Following::send(self.connection.remote.clone(), send, Mirror::default());
        self.follow(following).await
    }

    /// Sends the answer to a question. What the task had made before is not shown again.
    pub async fn answer(mut self, send: Send, task: &Task) -> Result<Exit, Failure> {
        self.received = ReceivedTask::of(task);
        let following = self.following_of(send);
        self.follow(following).await
    }

    /// Follows a task that exists.
    pub async fn watch(self, task: TaskId) -> Result<Exit, Failure> {
        let following = Following::task(self.connection.remote.clone(), task, Mirror::default());
        self.follow(following).await
    }

    /// Asks the person for the answer to the question of this task, and follows the task then.
    pub async fn ask(mut self, task: &Task) -> Result<Exit, Failure> {
        self.received = ReceivedTask::of(task);
        match self.next_turn(&task.status).await? {
            Ok(following) => self.follow(following).await,
            Err(exit) => Ok(exit),
        }
    }

    async fn follow(mut self, mut following: Following) -> Result<Exit, Failure> {
        loop {
            match self.turn(following).await? {
                TurnEnd::Replied(parts) => {
                    self.save(&parts)?;
                    return Ok(Exit::Done);
                }
                TurnEnd::Detached => {
                    let command = self.command("watch", "");
                    self.view.remark(&format!("Detached; the task continues. To watch it: {command}"));
                    return Ok(Exit::Done);
                }
                TurnEnd::Over(status) if status.state.is_waiting() => match self.next_turn(&status).await? {
                    Ok(next) => following = next,
                    Err(exit) => return Ok(exit),
                },
                TurnEnd::Over(status) => return self.conclude(&status).await,
            }
        }
    }

    async fn turn(&mut self, mut following: Following) -> Result<TurnEnd, Failure> {
        let deadline = self.wait.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        while let Some(step) = self.next_step(&mut following, deadline).await? {
            match step {
                Step::Known { task, context } => self.received.ids = Some((task, context)),
                Step::Update(update) => {
                    let taken = self.received.take(&update);
                    written(self.view.update(&self.received, &update))?;
                    taken.map_err(|error| self.failure(&error))?;
                }
                Step::Replied(message) => {
                    written(self.view.replied(&message))?;
                    return Ok(TurnEnd::Replied(message.parts));
                }
                Step::Over { status, last_words } => {
                    self.received.status = Some(status.clone());
                    written(self.view.over(&self.received, &status, last_words.as_deref()))?;
                    return Ok(TurnEnd::Over(status));
                }
                Step::Trouble(why) => self.view.trouble(&why),
            }
        }
        Ok(TurnEnd::Detached)
    }

    /// `None`: the person has detached. The future of a step is never dropped before it is there: that could send a message
    /// twice.
    async fn next_step(
        &mut self,
        following: &mut Following,
        deadline: Option<Instant>,
    ) -> Result<Option<Step>, Failure> {
        let mut next = pin!(following.next());
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                step = &mut next => return match step {
                    Ok(Some(step)) => Ok(Some(step)),
                    Ok(None) => Err(Failure::strange("the server said no more of the task")),
                    Err(error) => Err(self.failure(&error)),
                },
                () = self.interrupts.next() => match self.wish().await? {
                    Wish::Cancel => self.cancel().await,
                    Wish::Detach => return Ok(None),
                    Wish::Continue => {}
                },
                _ = ticks.tick() => self.view.tick(),
                () = at(deadline) => return Err(self.out_of_time()),
            }
        }
    }

    /// What Ctrl-C means, while a turn is followed.
    async fn wish(&mut self) -> Result<Wish, Failure> {
        if self.received.ids.is_none() {
            return Err(Failure::interrupted(
                "interrupted before the server had answered; the message may have arrived",
            ));
        }
        let Some(prompts) = &mut self.prompts else {
            let hint = format!("to watch it: {}", self.command("watch", ""));
            return Err(Failure::interrupted("interrupted; the task continues").with_hint(hint));
        };
        self.view.pause();
        // The terminal has written ^C into the current line.
        eprintln!();
        Ok(prompts.wish(&mut self.interrupts).await)
    }

    /// The end of the task is then told by the stream, or by the next look at it.
    async fn cancel(&mut self) {
        let Some(task) = self.received.id().cloned() else { return };
        let call = Cancel { agent: None, task, metadata: None, on_finished: OnFinishedCancel::Leave };
        if let Err(error) = self.connection.remote.call(&Call::Cancel(call)).await {
            let failure = self.connection.failure(&error);
            self.view.warn(&format!("the task is not canceled: {}", failure.line()));
        }
    }

    fn failure(&self, error: &RemoteError) -> Failure {
        let failure = self.connection.failure(error);
        match error {
            RemoteError::TaskTooLarge(_) => failure.with_hint(format!(
                "no more of a task is kept here, and it continues; to stop it: {}; to fetch it when it has ended: {}",
                self.command("cancel", ""),
                self.command("get", ""),
            )),
            _ => failure,
        }
    }

    fn out_of_time(&self) -> Failure {
        let time = self.wait.timeout.unwrap_or_default();
        match self.received.ids.is_some() {
            true => Failure::timeout(format!("the task has not ended within {time:?}; it continues"))
                .with_hint(format!("to watch it: {}", self.command("watch", ""))),
            false => Failure::timeout(format!("no answer within {time:?}; the message may have arrived")),
        }
    }

    /// The task waits: the turn that the answer begins, or the code to exit with.
    async fn next_turn(&mut self, status: &Status) -> Result<Result<Following, Exit>, Failure> {
        match self.reply_to(status).await? {
            Reply::Answer(text) => {
                let known = self.connection.discovered().await?;
                let (task, context) = self.ids()?;
                let send = message::answer(vec![Part::text(text)], task, Some(context), status, &known);
                Ok(Ok(self.following_of(send)))
            }
            Reply::Canceled => {
                let (task, _) = self.ids()?;
                let mirror = Mirror::new(&self.received.artifacts);
                Ok(Ok(Following::task(self.connection.remote.clone(), task, mirror)))
            }
            Reply::Left(exit) => Ok(Err(exit)),
        }
    }

    async fn reply_to(&mut self, status: &Status) -> Result<Reply, Failure> {
        let answer = self.command("answer", "'...'");
        if self.prompts.is_none() {
            self.view.remark(&question_text(status));
            self.show_end(status).await?;
            self.view.warn(&format!("the task waits for an answer; to give it: {answer}"));
            return Ok(Reply::Left(Exit::InputNeeded));
        }
        self.view.pause();
        self.view.remark(&question_text(status));
        while let Some(prompts) = &mut self.prompts {
            match prompts.ask("answer> ", &mut self.interrupts).await {
                Typed::Line(line) if line.is_empty() => {}
                Typed::Line(line) => return Ok(Reply::Answer(line)),
                Typed::End => {
                    self.view.remark(&format!("The task waits. To answer: {answer}"));
                    break;
                }
                Typed::Interrupt => match prompts.wish(&mut self.interrupts).await {
                    Wish::Cancel => {
                        self.cancel().await;
                        return Ok(Reply::Canceled);
                    }
                    Wish::Detach => {
                        self.view.remark(&format!("Detached; the task waits. To answer: {answer}"));
                        return Ok(Reply::Left(Exit::Done));
                    }
                    Wish::Continue => {}
                },
            }
        }
        self.save(&[])?;
        Ok(Reply::Left(Exit::InputNeeded))
    }

    fn following_of(&self, send: Send) -> Following {
        Following::send(self.connection.remote.clone(), send, Mirror::new(&self.received.artifacts))
    }

    fn ids(&self) -> Result<(TaskId, sabir_model::ContextId), Failure> {
        self.received.ids.clone().ok_or_else(|| Failure::strange("the server has not said which task waits"))
    }

    /// The task has ended.
    async fn conclude(&mut self, status: &Status) -> Result<Exit, Failure> {
        self.show_end(status).await?;
        let reason = status.message.as_ref().map(|message| parts_text(&message.parts)).filter(|text| !text.is_empty());
        let reason = reason.map(|text| format!(": {}", visible(&text.replace('\n', " ")))).unwrap_or_default();
        Ok(match status.state {
            State::Failed => {
                self.view.warn(&format!("the task failed{reason}"));
                Exit::Failed
            }
            State::Rejected => {
                self.view.warn(&format!("the agent rejected the task{reason}"));
                Exit::Refused
            }
            State::Canceled => {
                self.view.warn(&format!("the task was canceled{reason}"));
                Exit::Canceled
            }
            _ => Exit::Done,
        })
    }

    /// What comes last: the files, the whole task for programs, and how to find it again for people.
    async fn show_end(&mut self, status: &Status) -> Result<(), Failure> {
        self.save(&[])?;
        if self.view.wants_task()
            && let Some(task) = self.whole_task().await
        {
            written(self.view.task(&task))?;
        }
        if let Some((task, context)) = &self.received.ids {
            let (task, context) = (visible(task.as_str()), visible(context.as_str()));
            self.view.remark(&format!("{}: task {task} in context {context}", status.state.name()));
        }
        Ok(())
    }

    /// As the server has it; else as it was received.
    async fn whole_task(&self) -> Option<Task> {
        let task = self.received.id()?.clone();
        let call = Call::Get(Get { agent: None, task, history: self.show.history, earlier: Wanted::No });
        match self.connection.remote.call(&call).await.map(|received| received.response) {
            Ok(PeerResponse::Task(task)) => Some(*task),
            _ => self.received.task(),
        }
    }

    /// Saves the files of the artifacts, and of the message that came instead of a task.
    fn save(&mut self, message: &[Part]) -> Result<(), Failure> {
        let Some(folder) = &self.show.output else { return Ok(()) };
        let artifacts = self.received.artifacts.iter().flat_map(|artifact| &artifact.parts);
        for path in files::save(folder, artifacts.chain(message))? {
            self.view.saved(&path);
        }
        Ok(())
    }

    fn command(&self, verb: &str, more: &str) -> String {
        let task = self.received.id().map(TaskId::as_str).unwrap_or_default();
        self.connection.invocation.command(verb, task, more)
    }
}

fn written(outcome: std::io::Result<()>) -> Result<(), Failure> {
    outcome.map_err(|error| Failure::of_output(&error))
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
