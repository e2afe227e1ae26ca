//! A client: sends requests, reads streams, and records every answer in the ledger.

use std::io;
use std::thread;
use std::time::Duration;

use sabir_testkit::http::Http;
use sabir_testkit::sse::{self, SseFrame};
use serde_json::Value;

use crate::agents::DEFAULT;
use crate::dialect_client::{
    ClientMessage, Delivery, DialectClient, Event, Mount, Operation, Request, TaskView, is_at_rest, is_terminal,
};
use crate::ledger::{Ledger, Moment};
use crate::pools::Pools;
use crate::promise;
use crate::random::Random;
use crate::server_processes::{Recovery, ServerProcesses};
use crate::webhook_receiver::WebhookReceivers;

pub struct Client<'a> {
    pub processes: &'a ServerProcesses,
    pub ledger: &'a Ledger,
    pub pools: &'a Pools,
    pub receivers: &'a WebhookReceivers,
    pub random: Random,
    /// The prefix of all names that it gives.
    pub name: String,
    pub count: u64,
    /// A connection that can be used again, and its epoch.
    pub connection: Option<(u64, Http)>,
}

pub enum CallResult {
    Answer(Value),
    Refused(i64),
    /// No answer, since the server went away.
    Gone,
}

/// How the server says that the disk is full.
const STORE_FULL: &str = "the store cannot take anything now";

/// How long the longest task takes at most on a busy machine, with its time in the queue.
const LONGEST_TASK: Duration = Duration::from_secs(30);

/// When a client or the checker gives up: the run must end also when a task never comes to rest.
pub const GIVE_UP: Duration = LONGEST_TASK.saturating_add(Duration::from_secs(60));

/// How long a task waits at most until it tries again to store something.
const STORE_RETRY_MS: i64 = 5000;

/// What the first frame of a stream must be.
#[derive(Clone, Copy)]
pub enum FirstFrame {
    /// The event after this one.
    After(u64),
    /// The task as it is now.
    Snapshot,
}

/// How a client reads a stream.
#[derive(Clone, Copy, Default)]
pub struct StreamReading {
    /// The client disconnects after so many frames.
    pub disconnects_after: Option<u64>,
    /// The client pauses for so long after so many frames.
    pub pauses: Option<(u64, Duration)>,
}

/// The outcome of a stream.
pub enum StreamResult {
    /// It was read to its end, or left, or it broke: the task, the last number and the last state that was seen.
    Saw {
        task: String,
        last: u64,
        state: String,
        is_ended: bool,
    },
    Nothing,
    Refused(i64),
}

impl Client<'_> {
    /// One request and its answer. A refusal that is not expected is a broken promise, unless the server was stopping.
    pub fn call(
        &mut self,
        dialect: &DialectClient,
        operation: &Operation<'_>,
        headers: &[(&str, &str)],
        expected: &[i64],
    ) -> CallResult {
        let Some((address, epoch)) = self.processes.server() else { return CallResult::Gone };
        let asked_at = self.ledger.now();
        let request = self.request(dialect, operation);
        let kept = self.connection.take().filter(|(of, _)| *of == epoch && self.random.percent(50));
        let connected = kept.map_or_else(|| Http::connect(address), |(_, http)| Ok(http));
        let exchanged = connected.and_then(|mut http| {
            let headers = dialect.headers(headers);
            http.give_up_after(GIVE_UP);
            let reply = http.exchange(request.method, &request.path, &headers, request.body.as_bytes())?;
            Ok((http, reply))
        });
        let (http, reply) = match exchanged {
            Ok(exchanged) => exchanged,
            Err(error) => {
                self.gone(dialect, epoch, &error, &request);
                return CallResult::Gone;
            }
        };
        if reply.header("connection") != Some("close") {
            self.connection = Some((epoch, http));
        }
        match dialect.read(&reply) {
            Ok(answer) => {
                promise::ANSWERED.check(true, String::new);
                CallResult::Answer(answer)
            }
            Err(code) => {
                self.refused(dialect, operation, (asked_at, epoch), (code, &reply.text()), expected);
                CallResult::Refused(code)
            }
        }
    }

    /// A request may go to any mount that serves the agent.
    fn request(&mut self, dialect: &DialectClient, operation: &Operation<'_>) -> Request {
        let (agent, is_new) = match (operation, operation.task()) {
            (_, Some(task)) => (self.ledger.agent_of(task), false),
            (Operation::Send(message, _), None) => (message.agent, true),
            (_, None) => return dialect.request(operation, Mount::Root),
        };
        let needs_agent = !dialect.can_stream() || (is_new && agent != DEFAULT);
        let mount = if needs_agent || self.random.percent(30) { Mount::Agent(agent) } else { Mount::Root };
        dialect.request(operation, mount)
    }

    /// The server refused a request. It must have a reason: one that the caller expects, a restart, a full disk, or a task
    /// that retention has deleted.
    fn refused(
        &self,
        dialect: &DialectClient,
        operation: &Operation<'_>,
        (asked_at, epoch): (Moment, u64),
        (code, reply): (i64, &str),
        expected: &[i64],
    ) {
        let is_up = self.processes.is_still(epoch);
        // A task with something to store tries again after a while, and until then refuses for itself.
        let since = if operation.task().is_some() { asked_at.time - STORE_RETRY_MS } else { asked_at.time };
        let is_full = reply.contains(STORE_FULL) && self.processes.was_full_since(since);
        let is_gone = dialect.is_not_found(code)
            && operation.task().is_some_and(|task| self.ledger.record_missing(task, &self.processes.so_far()));
        if is_up && let Operation::Send(message, _) = operation {
            self.ledger.record_refusal(message.text);
        }
        let is_fine = !is_up || is_full || is_gone || expected.contains(&code);
        if is_full {
            promise::FULL.check(is_fine, String::new);
        }
        promise::ANSWERED.check(is_fine, || {
            let request = dialect.request(operation, Mount::Root);
            format!("{} {} {} in {}: {reply}", request.method, request.path, request.body, dialect.name)
        });
    }

    /// Sends without a stream, and returns the task of the answer.
    pub fn send(
        &mut self,
        dialect: &DialectClient,
        message: ClientMessage<'_>,
        delivery: Delivery,
        key: Option<&str>,
    ) -> Option<TaskView> {
        self.try_send(dialect, message, delivery, key, &[]).ok().flatten()
    }

    /// The same, where a refusal may be expected: the error is its code.
    pub fn try_send(
        &mut self,
        dialect: &DialectClient,
        message: ClientMessage<'_>,
        delivery: Delivery,
        key: Option<&str>,
        expected: &[i64],
    ) -> Result<Option<TaskView>, i64> {
        let Some((_, epoch)) = self.processes.server() else { return Ok(None) };
        let headers: Vec<(&str, &str)> = key.map(|key| ("Idempotency-Key", key)).into_iter().collect();
        let asked_at = self.ledger.now();
        let answer = match self.call(dialect, &Operation::Send(message, delivery), &headers, expected) {
            CallResult::Answer(answer) => answer,
            CallResult::Refused(code) if self.processes.is_still(epoch) => return Err(code),
            CallResult::Refused(_) | CallResult::Gone => return Ok(None),
        };
        let view = dialect.read_task(&answer);
        promise::ANSWERED.check(view.is_some(), || format!("a send in {}: {answer}", dialect.name));
        let Some(view) = view else { return Ok(None) };
        self.ledger.record_task(message.text, &view.id);
        // The gateway says that it was submitted, whatever it found.
        if dialect.can_stream() {
            self.ledger.record_answer(dialect, asked_at, &view);
        }
        if delivery == Delivery::WhenSettled {
            let is_settled = is_at_rest(&view.state) || !self.processes.is_still(epoch);
            promise::ANSWERED.check(is_settled, || format!("a blocking send in {} returns {view:?}", dialect.name));
        }
        Ok(Some(view))
    }

    /// Reads a task.
    pub fn get(&mut self, dialect: &DialectClient, id: &str) -> Option<TaskView> {
        let asked_at = self.ledger.now();
        match self.call(dialect, &Operation::Get(id), &[], &[]) {
            CallResult::Answer(answer) => {
                let view = dialect.read_task(&answer);
                promise::ANSWERED.check(view.is_some(), || format!("a get in {}: {answer}", dialect.name));
                self.ledger.record_answer(dialect, asked_at, view.as_ref()?);
                view
            }
            CallResult::Refused(_) | CallResult::Gone => None,
        }
    }

    /// Opens a stream and reads it.
    pub fn watch(
        &mut self,
        dialect: &DialectClient,
        operation: &Operation<'_>,
        headers: &[(&str, &str)],
        first: FirstFrame,
        reading: StreamReading,
    ) -> StreamResult {
        self.try_watch(dialect, operation, headers, first, reading, &[])
    }

    /// The same, where a refusal may be expected.
    pub fn try_watch(
        &mut self,
        dialect: &DialectClient,
        operation: &Operation<'_>,
        headers: &[(&str, &str)],
        first: FirstFrame,
        reading: StreamReading,
        expected: &[i64],
    ) -> StreamResult {
        let Some((address, epoch)) = self.processes.server() else { return StreamResult::Nothing };
        let (asked_at, settings) = (self.ledger.now(), self.processes.settings());
        let request = self.request(dialect, operation);
        let headers = dialect.headers(headers);
        let opened = sse::open(address, request.method, &request.path, &headers, request.body.as_bytes());
        let no_stream = |client: &Self, code: i64, reply: &str| {
            client.refused(dialect, operation, (asked_at, epoch), (code, reply), expected);
            if client.processes.is_still(epoch) { StreamResult::Refused(code) } else { StreamResult::Nothing }
        };
        let mut events = match opened {
            Ok(Ok(events)) => events,
            Ok(Err(reply)) => {
                // Where a stream was asked for, an error may come as its only frame.
                let framed = sse::frames(&reply.text()).first().map(|frame| error_code(&frame.data));
                let code = framed.or(dialect.read(&reply).err()).unwrap_or_default();
                return no_stream(self, code, &reply.text());
            }
            Err(error) => {
                self.gone(dialect, epoch, &error, &request);
                return StreamResult::Nothing;
            }
        };
        events.give_up_after(GIVE_UP);
        let mut seen = StreamProgress::default();
        let (mut is_ended, mut is_given_up) = (false, false);
        loop {
            if reading.disconnects_after.is_some_and(|most| seen.frames >= most) {
                break;
            }
            if let Some((_, nap)) = reading.pauses.filter(|(after, _)| *after == seen.frames) {
                thread::sleep(nap);
            }
            match events.next_frame() {
                Ok(Some(frame)) => {
                    let Some(event) = dialect.read_frame(&frame) else {
                        return no_stream(self, error_code(&frame.data), &frame.data);
                    };
                    if let Operation::Send(message, _) = operation {
                        self.ledger.record_task(message.text, event.task());
                    }
                    self.take(dialect, &mut seen, first, &frame, event);
                }
                Ok(None) => {
                    is_ended = true;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut && seen.frames > 0 => {
                    is_given_up = true;
                    break;
                }
                Err(error) => {
                    self.gone(dialect, epoch, &error, &request);
                    break;
                }
            }
        }
        if seen.frames == 0 {
            return StreamResult::Nothing;
        }
        promise::ORDER.check(seen.disorder.is_none(), || {
            let StreamProgress { task, disorder, .. } = &seen;
            format!("{task} in {}: {}", dialect.name, disorder.clone().unwrap_or_default())
        });
        if is_given_up {
            // The stream of a task that waits for an answer stays open.
            promise::SETTLED.check(is_at_rest(&seen.state), || {
                format!("{} in {} is still {} after {GIVE_UP:?}", seen.task, dialect.name, seen.state)
            });
        } else if is_ended {
            // A task that is queued when the server stops stays queued, and its stream cannot go on; nor can that of
            // a task that the next process runs again.
            let stays = seen.state == "submitted"
                || settings.recovery == Recovery::Requeue
                || self.ledger.agent_of(&seen.task).kind.is_front();
            let is_over = is_at_rest(&seen.state) || (stays && !self.processes.is_still(epoch));
            promise::ENDS.check(is_over, || {
                format!("{} in {} ends after {} while {}", seen.task, dialect.name, seen.last, seen.state)
            });
        } else if reading.disconnects_after.is_none() {
            let is_down = !self.processes.is_still(epoch);
            promise::ENDS.check(is_down, || format!("{} in {} broke after {}", seen.task, dialect.name, seen.last));
        }
        StreamResult::Saw { task: seen.task, last: seen.last, state: seen.state, is_ended }
    }

    fn take(
        &mut self,
        dialect: &DialectClient,
        seen: &mut StreamProgress,
        first: FirstFrame,
        frame: &SseFrame,
        event: Event,
    ) {
        let Some(number) = frame.id else {
            seen.disorder.get_or_insert(format!("a frame without a number: {}", frame.data));
            return;
        };
        let expected = match first {
            FirstFrame::After(after) if seen.frames == 0 => Some(after + 1),
            FirstFrame::Snapshot if seen.frames == 0 => None,
            // A task that was finished already: in 0.x its last event is repeated.
            FirstFrame::Snapshot if seen.frames == 1 && number == seen.last && is_terminal(&seen.state) => Some(number),
            _ => Some(seen.last + 1),
        };
        if expected.is_some_and(|expected| expected != number) {
            seen.disorder.get_or_insert(format!("{number} comes after {}", expected.unwrap_or_default() - 1));
        }
        if expected.is_some() {
            self.ledger.record_frame(dialect, event.task(), number, &frame.data);
        } else {
            self.ledger.record_snapshot(dialect, number, &event);
        }
        seen.frames += 1;
        seen.last = number;
        seen.task = event.task().to_owned();
        if let Some(state) = event.state() {
            seen.state = state.to_owned();
        } else if seen.state.is_empty() {
            seen.state = "working".to_owned();
        }
    }

    fn gone(&self, dialect: &DialectClient, epoch: u64, error: &io::Error, request: &Request) {
        let is_down = !self.processes.is_still(epoch);
        promise::ANSWERED.check(is_down, || {
            format!("{error} at {} {} in {}, with the server up", request.path, request.body, dialect.name)
        });
    }

    /// Waits until there is a server; `false` when there will be none.
    pub fn wait_for_server(&self) -> bool {
        while self.processes.server().is_none() {
            if self.processes.is_over() {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }

    pub fn pause(&mut self, low: u64, high: u64) {
        let pause = self.random.between(low, high);
        thread::sleep(Duration::from_millis(pause));
    }

    pub fn new_name(&mut self) -> String {
        self.count += 1;
        format!("{}-{}", self.name, self.count)
    }
}

/// How far a stream was read.
#[derive(Default)]
struct StreamProgress {
    frames: u64,
    task: String,
    last: u64,
    state: String,
    disorder: Option<String>,
}

fn error_code(frame: &str) -> i64 {
    let json: Value = serde_json::from_str(frame).unwrap_or_default();
    [&json["error"]["code"], &json["code"], &json["a2a_code"]].iter().find_map(|code| code.as_i64()).unwrap_or_default()
}
