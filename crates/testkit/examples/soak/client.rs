//! How a client asks: one request, one stream, and whatever it is told goes into the ledger.

use std::io;
use std::thread;
use std::time::Duration;

use sabir_testkit::http::Http;
use sabir_testkit::sse::{self, Frame};
use serde_json::Value;

use crate::agents::DEFAULT;
use crate::ledger::{Ledger, Moment};
use crate::lives::{Lives, Recovery};
use crate::pools::Pools;
use crate::promise;
use crate::random::Random;
use crate::tongue::{Delivery, Event, Mount, Operation, Request, Told, Tongue, Wish, is_at_rest, is_terminal};

pub struct Client<'a> {
    pub lives: &'a Lives,
    pub ledger: &'a Ledger,
    pub pools: &'a Pools,
    pub random: Random,
    /// Begins all names that it gives.
    pub name: String,
    pub count: u64,
    /// A connection that can be used again, and the epoch that it is of.
    pub connection: Option<(u64, Http)>,
}

pub enum Called {
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
pub enum First {
    /// The event after this one.
    After(u64),
    /// The task as it is now.
    Snapshot,
}

/// How it reads a stream.
#[derive(Clone, Copy, Default)]
pub struct Manner {
    /// It vanishes after so many frames.
    pub leaves_after: Option<u64>,
    /// It sleeps for so long after so many frames.
    pub sleeps: Option<(u64, Duration)>,
}

/// What came of a stream.
pub enum Watched {
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
        tongue: &Tongue,
        operation: &Operation<'_>,
        headers: &[(&str, &str)],
        expected: &[i64],
    ) -> Called {
        let Some((address, epoch)) = self.lives.server() else { return Called::Gone };
        let asked = self.ledger.now();
        let request = self.request(tongue, operation);
        let kept = self.connection.take().filter(|(of, _)| *of == epoch && self.random.percent(50));
        let connected = kept.map_or_else(|| Http::connect(address), |(_, http)| Ok(http));
        let exchanged = connected.and_then(|mut http| {
            let headers = tongue.headers(headers);
            http.give_up_after(GIVE_UP);
            let reply = http.exchange(request.method, &request.path, &headers, request.body.as_bytes())?;
            Ok((http, reply))
        });
        let (http, reply) = match exchanged {
            Ok(exchanged) => exchanged,
            Err(error) => {
                self.gone(tongue, epoch, &error, &request);
                return Called::Gone;
            }
        };
        if reply.header("connection") != Some("close") {
            self.connection = Some((epoch, http));
        }
        match tongue.read(&reply) {
            Ok(answer) => {
                promise::ANSWERED.check(true, String::new);
                Called::Answer(answer)
            }
            Err(code) => {
                self.refused(tongue, operation, (asked, epoch), (code, &reply.text()), expected);
                Called::Refused(code)
            }
        }
    }

    /// Where it is asked does not matter, as long as the agent is there.
    fn request(&mut self, tongue: &Tongue, operation: &Operation<'_>) -> Request {
        let (agent, is_new) = match (operation, operation.task()) {
            (_, Some(task)) => (self.ledger.agent_of(task), false),
            (Operation::Send(wish, _), None) => (wish.agent, true),
            (_, None) => return tongue.request(operation, Mount::Root),
        };
        let needs_agent = !tongue.can_watch() || (is_new && agent != DEFAULT);
        let mount = if needs_agent || self.random.percent(30) { Mount::Agent(agent) } else { Mount::Root };
        tongue.request(operation, mount)
    }

    /// The server said no. It must have a reason: one that the caller expects, an end, a full disk, or a task that
    /// retention has deleted.
    fn refused(
        &self,
        tongue: &Tongue,
        operation: &Operation<'_>,
        (asked, epoch): (Moment, u64),
        (code, reply): (i64, &str),
        expected: &[i64],
    ) {
        let is_up = self.lives.is_still(epoch);
        // A task with something to store tries again after a while, and until then refuses for itself.
        let since = if operation.task().is_some() { asked.time - STORE_RETRY_MS } else { asked.time };
        let is_full = reply.contains(STORE_FULL) && self.lives.was_full_since(since);
        let is_gone = tongue.is_not_found(code)
            && operation.task().is_some_and(|task| self.ledger.misses(task, &self.lives.so_far()));
        if is_up && let Operation::Send(wish, _) = operation {
            self.ledger.refuses(wish.text);
        }
        let is_fine = !is_up || is_full || is_gone || expected.contains(&code);
        if is_full {
            promise::FULL.check(is_fine, String::new);
        }
        promise::ANSWERED.check(is_fine, || {
            let request = tongue.request(operation, Mount::Root);
            format!("{} {} {} in {}: {reply}", request.method, request.path, request.body, tongue.name)
        });
    }

    /// Sends without a stream, and hears which task it is.
    pub fn send(&mut self, tongue: &Tongue, wish: Wish<'_>, delivery: Delivery, key: Option<&str>) -> Option<Told> {
        self.try_send(tongue, wish, delivery, key, &[]).ok().flatten()
    }

    /// The same, where a refusal may be expected: the error is its code.
    pub fn try_send(
        &mut self,
        tongue: &Tongue,
        wish: Wish<'_>,
        delivery: Delivery,
        key: Option<&str>,
        expected: &[i64],
    ) -> Result<Option<Told>, i64> {
        let Some((_, epoch)) = self.lives.server() else { return Ok(None) };
        let headers: Vec<(&str, &str)> = key.map(|key| ("Idempotency-Key", key)).into_iter().collect();
        let asked = self.ledger.now();
        let answer = match self.call(tongue, &Operation::Send(wish, delivery), &headers, expected) {
            Called::Answer(answer) => answer,
            Called::Refused(code) if self.lives.is_still(epoch) => return Err(code),
            Called::Refused(_) | Called::Gone => return Ok(None),
        };
        let told = tongue.read_task(&answer);
        promise::ANSWERED.check(told.is_some(), || format!("a send in {}: {answer}", tongue.name));
        let Some(told) = told else { return Ok(None) };
        self.ledger.hears(wish.text, &told.id);
        // The gateway says that it was submitted, whatever it found.
        if tongue.can_watch() {
            self.ledger.answer(tongue, asked, &told);
        }
        if delivery == Delivery::WhenSettled {
            let is_settled = is_at_rest(&told.state) || !self.lives.is_still(epoch);
            promise::ANSWERED.check(is_settled, || format!("who waits in {} is told {told:?}", tongue.name));
        }
        Ok(Some(told))
    }

    /// Asks how a task is.
    pub fn get(&mut self, tongue: &Tongue, id: &str) -> Option<Told> {
        let asked = self.ledger.now();
        match self.call(tongue, &Operation::Get(id), &[], &[]) {
            Called::Answer(answer) => {
                let told = tongue.read_task(&answer);
                promise::ANSWERED.check(told.is_some(), || format!("a get in {}: {answer}", tongue.name));
                self.ledger.answer(tongue, asked, told.as_ref()?);
                told
            }
            Called::Refused(_) | Called::Gone => None,
        }
    }

    /// Opens a stream and reads it in this manner.
    pub fn watch(
        &mut self,
        tongue: &Tongue,
        operation: &Operation<'_>,
        headers: &[(&str, &str)],
        first: First,
        manner: Manner,
    ) -> Watched {
        self.try_watch(tongue, operation, headers, first, manner, &[])
    }

    /// The same, where a refusal may be expected.
    pub fn try_watch(
        &mut self,
        tongue: &Tongue,
        operation: &Operation<'_>,
        headers: &[(&str, &str)],
        first: First,
        manner: Manner,
        expected: &[i64],
    ) -> Watched {
        let Some((address, epoch)) = self.lives.server() else { return Watched::Nothing };
        let (asked, settings) = (self.ledger.now(), self.lives.settings());
        let request = self.request(tongue, operation);
        let headers = tongue.headers(headers);
        let opened = sse::open(address, request.method, &request.path, &headers, request.body.as_bytes());
        let no_stream = |client: &Self, code: i64, reply: &str| {
            client.refused(tongue, operation, (asked, epoch), (code, reply), expected);
            if client.lives.is_still(epoch) { Watched::Refused(code) } else { Watched::Nothing }
        };
        let mut events = match opened {
            Ok(Ok(events)) => events,
            Ok(Err(reply)) => {
                // Where a stream was asked for, an error may come as its only frame.
                let framed = sse::frames(&reply.text()).first().map(|frame| error_code(&frame.data));
                let code = framed.or(tongue.read(&reply).err()).unwrap_or_default();
                return no_stream(self, code, &reply.text());
            }
            Err(error) => {
                self.gone(tongue, epoch, &error, &request);
                return Watched::Nothing;
            }
        };
        events.give_up_after(GIVE_UP);
        let mut seen = Seen::default();
        let (mut is_ended, mut is_given_up) = (false, false);
        loop {
            if manner.leaves_after.is_some_and(|most| seen.frames >= most) {
                break;
            }
            if let Some((_, nap)) = manner.sleeps.filter(|(after, _)| *after == seen.frames) {
                thread::sleep(nap);
            }
            match events.next_frame() {
                Ok(Some(frame)) => {
                    let Some(event) = tongue.read_frame(&frame) else {
                        return no_stream(self, error_code(&frame.data), &frame.data);
                    };
                    if let Operation::Send(wish, _) = operation {
                        self.ledger.hears(wish.text, event.task());
                    }
                    self.take(tongue, &mut seen, first, &frame, event);
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
                    self.gone(tongue, epoch, &error, &request);
                    break;
                }
            }
        }
        if seen.frames == 0 {
            return Watched::Nothing;
        }
        promise::ORDER.check(seen.disorder.is_none(), || {
            let Seen { task, disorder, .. } = &seen;
            format!("{task} in {}: {}", tongue.name, disorder.clone().unwrap_or_default())
        });
        if is_given_up {
            // The stream of a task that waits for an answer stays open.
            promise::SETTLED.check(is_at_rest(&seen.state), || {
                format!("{} in {} is still {} after {GIVE_UP:?}", seen.task, tongue.name, seen.state)
            });
        } else if is_ended {
            // A task that is queued when the server stops stays queued, and its stream cannot go on; nor can that of
            // a task that the next life runs again.
            let stays = seen.state == "submitted" || settings.recovery == Recovery::Requeue;
            let is_over = is_at_rest(&seen.state) || (stays && !self.lives.is_still(epoch));
            promise::ENDS.check(is_over, || {
                format!("{} in {} ends after {} while {}", seen.task, tongue.name, seen.last, seen.state)
            });
        } else if manner.leaves_after.is_none() {
            let is_down = !self.lives.is_still(epoch);
            promise::ENDS.check(is_down, || format!("{} in {} broke after {}", seen.task, tongue.name, seen.last));
        }
        Watched::Saw { task: seen.task, last: seen.last, state: seen.state, is_ended }
    }

    fn take(&mut self, tongue: &Tongue, seen: &mut Seen, first: First, frame: &Frame, event: Event) {
        let Some(number) = frame.id else {
            seen.disorder.get_or_insert(format!("a frame without a number: {}", frame.data));
            return;
        };
        let expected = match first {
            First::After(after) if seen.frames == 0 => Some(after + 1),
            First::Snapshot if seen.frames == 0 => None,
            // A task that was at its end already: in 0.x its last event is told once more.
            First::Snapshot if seen.frames == 1 && number == seen.last && is_terminal(&seen.state) => Some(number),
            _ => Some(seen.last + 1),
        };
        if expected.is_some_and(|expected| expected != number) {
            seen.disorder.get_or_insert(format!("{number} comes after {}", expected.unwrap_or_default() - 1));
        }
        if expected.is_some() {
            self.ledger.frame(tongue, event.task(), number, &frame.data);
        } else {
            self.ledger.snapshot(tongue, number, &event);
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

    fn gone(&self, tongue: &Tongue, epoch: u64, error: &io::Error, request: &Request) {
        let is_down = !self.lives.is_still(epoch);
        promise::ANSWERED.check(is_down, || {
            format!("{error} at {} {} in {}, with the server up", request.path, request.body, tongue.name)
        });
    }

    /// Waits until there is a server; `false` when there will be none.
    pub fn wait_for_server(&self) -> bool {
        while self.lives.server().is_none() {
            if self.lives.is_over() {
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

/// What was seen of a stream so far.
#[derive(Default)]
struct Seen {
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
