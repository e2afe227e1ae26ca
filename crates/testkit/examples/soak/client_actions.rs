//! What clients do: one action after the other, chosen at random.

use std::thread;
use std::time::Duration;

use sabir_testkit::http::Http;
use sabir_testkit::sse;

use crate::agents::{AGENTS, Agent, DEFAULT, FRONTS, Kind, PROGRAM};
use crate::client::{CallResult, Client, FirstFrame, StreamReading, StreamResult};
use crate::dialect_client::{
    ClientMessage, DIALECTS, Delivery, DialectClient, JsonFormat, LISTING_DIALECTS, Mount, Operation,
    STREAMING_DIALECTS, TaskView, is_at_rest, is_terminal,
};
use crate::ledger::{Cancel, SentMessage};
use crate::promise;
use crate::random::Random;
use crate::server_processes;

const SHARED_CONTEXTS: u64 = 6;
pub const TRIES: usize = 6;

#[derive(Clone, Copy)]
enum ClientAction {
    Send,
    SendRepeatedly,
    ReadSlowly,
    Resume,
    Answer,
    FollowUp,
    Approve,
    Cancel,
    Read,
    List,
    Disconnect,
    SetWebhook,
}

const ACTIONS: [(u64, ClientAction); 12] = [
    (34, ClientAction::Send),
    (10, ClientAction::SendRepeatedly),
    (2, ClientAction::ReadSlowly),
    (16, ClientAction::Resume),
    (10, ClientAction::Answer),
    (9, ClientAction::FollowUp),
    (5, ClientAction::Approve),
    (8, ClientAction::Cancel),
    (10, ClientAction::Read),
    (5, ClientAction::List),
    (5, ClientAction::Disconnect),
    (6, ClientAction::SetWebhook),
];

impl Client<'_> {
    pub fn run_until_over(&mut self) {
        while !self.processes.is_over() && self.wait_for_server() {
            match self.random.weighted(&ACTIONS) {
                ClientAction::Send => self.send_something(),
                ClientAction::SendRepeatedly => self.send_repeatedly(),
                ClientAction::ReadSlowly => self.read_slowly(),
                ClientAction::Resume => self.resume_stream(),
                ClientAction::Answer => self.answer(),
                ClientAction::FollowUp => self.follow_up(),
                ClientAction::Approve => self.approve(),
                ClientAction::Cancel => self.cancel_something(),
                ClientAction::Read => self.read_something(),
                ClientAction::List => self.list(),
                ClientAction::Disconnect => self.disconnect(),
                ClientAction::SetWebhook => self.set_webhook(),
            }
            self.pause(0, 30);
        }
    }

    /// A new task, sent in any way; then it is polled, streamed or left.
    fn send_something(&mut self) {
        let dialect = self.random.one_of(&DIALECTS);
        let delivery = *self.random.one_of(dialect.deliveries());
        let (name, text, agent) = self.work_text();
        let context = self.context(&text, agent);
        let webhook = self.webhook_of_message(dialect, &text);
        let (context_name, webhook) = (context.as_deref(), webhook.as_ref());
        let message = ClientMessage { context: context_name, webhook, ..ClientMessage::new(&name, &text, agent) };
        self.ledger.record_send(&text, SentMessage { context: context.clone(), ..SentMessage::of(agent) });
        if delivery == Delivery::Stream {
            let reading = self.reading();
            let watched = self.watch(dialect, &Operation::Send(message, delivery), &[], FirstFrame::After(0), reading);
            self.remember(dialect, &text, watched);
        } else if let Some(view) = self.send(dialect, message, delivery, None) {
            let view = if delivery == Delivery::Immediately { self.poll(view) } else { view };
            self.keep(&view, &text);
        }
    }

    /// The same send repeated under one key, in several dialects, also at the same time.
    fn send_repeatedly(&mut self) {
        let (name, text, agent) = self.work_text();
        let key = format!("key-{name}");
        self.ledger.record_send(&text, SentMessage { is_keyed: true, ..SentMessage::of(agent) });
        let message = ClientMessage::new(&name, &text, agent);
        let seed = self.random.between(0, u64::MAX - 1);
        let (processes, ledger, pools, receivers) = (self.processes, self.ledger, self.pools, self.receivers);
        let twin = || {
            let random = Random::new(seed);
            let mut twin =
                Client { processes, ledger, pools, receivers, random, name: String::new(), count: 0, connection: None };
            twin.repeat(message, &key)
        };
        let view = if self.random.percent(50) {
            thread::scope(|scope| {
                let twin = scope.spawn(twin);
                let view = self.repeat(message, &key);
                let other = twin.join().expect("the twin does not panic");
                view.or(other)
            })
        } else {
            self.repeat(message, &key)
        };
        if let Some(view) = view {
            self.keep(&view, &text);
        }
    }

    fn repeat(&mut self, message: ClientMessage<'_>, key: &str) -> Option<TaskView> {
        let mut seen = None;
        let more = self.random.between(0, 2);
        let began = server_processes::now();
        for _ in 0..TRIES {
            // A key lives as long as its task.
            if !self.wait_for_server() || self.processes.has_swept_since(began) {
                return seen;
            }
            let dialect = self.random.one_of(&DIALECTS);
            let delivery = *self.random.one_of(dialect.deliveries());
            if delivery == Delivery::Stream {
                let headers = [("Idempotency-Key", key)];
                let reading = self.reading();
                let watched =
                    self.watch(dialect, &Operation::Send(message, delivery), &headers, FirstFrame::After(0), reading);
                if let StreamResult::Saw { task, state, .. } = watched {
                    seen = Some(TaskView { id: task, state, made: None });
                }
            } else if let Some(view) = self.send(dialect, message, delivery, Some(key)) {
                seen = Some(view);
            }
            if seen.is_some() && self.random.percent(40 * more) {
                break;
            }
        }
        seen
    }

    /// A stream that is longer than all buffers on the way, and a reader that pauses.
    fn read_slowly(&mut self) {
        let dialect = self.random.one_of(STREAMING_DIALECTS);
        let name = self.new_name();
        let text = format!("stream {} 0 {name}", self.random.between(3000, 6000));
        let message = ClientMessage::new(&name, &text, DEFAULT);
        self.ledger.record_send(&text, SentMessage::of(DEFAULT));
        let nap = Duration::from_millis(self.random.between(300, 2500));
        let reading = StreamReading { pauses: Some((self.random.between(1, 20), nap)), disconnects_after: None };
        let watched =
            self.watch(dialect, &Operation::Send(message, Delivery::Stream), &[], FirstFrame::After(0), reading);
        self.remember(dialect, &text, watched);
    }

    /// Resumes a broken stream where it broke, in its own dialect or in another.
    fn resume_stream(&mut self) {
        let Some((task, place, last)) = self.pools.broken.take(&mut self.random) else { return };
        let dialect = if self.random.percent(50) { &DIALECTS[place] } else { self.random.one_of(STREAMING_DIALECTS) };
        let after = last.to_string();
        let headers = [("Last-Event-ID", after.as_str())];
        let reading = self.reading();
        match self.watch(dialect, &Operation::Subscribe(&task), &headers, FirstFrame::After(last), reading) {
            StreamResult::Saw { last, state, .. } => {
                promise::PICKED_UP.check(true, String::new);
                if !is_at_rest(&state) {
                    self.pools.broken.put((task, dialect.index(), last), &mut self.random);
                }
            }
            StreamResult::Nothing => self.pools.broken.put((task, place, last), &mut self.random),
            StreamResult::Refused(code) if dialect.is_not_found(code) => {}
            StreamResult::Refused(code) => {
                promise::PICKED_UP.check(false, || format!("{task} after {last} in {}: {code}", dialect.name));
            }
        }
    }

    /// The answer to a question, sent under a key until the server acknowledges it.
    fn answer(&mut self) {
        let Some(task) = self.pools.asking.take(&mut self.random) else { return };
        let agent = self.ledger.agent_of(&task);
        let (name, text) = self.next_text(agent);
        let key = format!("key-{name}");
        self.ledger.record_send(
            &text,
            SentMessage { is_keyed: true, continues: Some(task.clone()), ..SentMessage::of(agent) },
        );
        let began = server_processes::now();
        // Some watch from before the answer; the stream stays open for it.
        // 1.0 refuses a late subscriber without a Last-Event-ID.
        let watcher = self.random.percent(30).then(|| self.random.one_of(&STREAMING_DIALECTS[3..]));
        thread::scope(|scope| {
            if let Some(dialect) = watcher {
                let seed = self.random.between(0, u64::MAX - 1);
                let (processes, ledger, pools, task) = (self.processes, self.ledger, self.pools, task.as_str());
                let receivers = self.receivers;
                scope.spawn(move || {
                    let random = Random::new(seed);
                    let mut twin = Client {
                        processes,
                        ledger,
                        pools,
                        receivers,
                        random,
                        name: String::new(),
                        count: 0,
                        connection: None,
                    };
                    let reading = twin.reading();
                    twin.watch(dialect, &Operation::Subscribe(task), &[], FirstFrame::Snapshot, reading);
                });
                self.pause(0, 50);
            }
            let message = ClientMessage { task: Some(&task), ..ClientMessage::new(&name, &text, agent) };
            for _ in 0..TRIES * 20 {
                // A task that is gone would be made anew in 0.1.
                if !self.wait_for_server() || self.processes.has_swept_since(began) {
                    return;
                }
                let dialect = self.random.one_of(&DIALECTS);
                let delivery = *self.random.one_of(dialect.deliveries());
                if delivery == Delivery::Stream {
                    let headers = [("Idempotency-Key", key.as_str()), ("Last-Event-ID", "0")];
                    let operation = Operation::Send(message, delivery);
                    let watched =
                        self.watch(dialect, &operation, &headers, FirstFrame::After(0), StreamReading::default());
                    if let StreamResult::Saw { state, is_ended, .. } = watched {
                        // What was replayed may be no more than the first turn.
                        if is_ended && matches!(state.as_str(), "input-required" | "auth-required") {
                            break;
                        }
                        if is_ended {
                            return;
                        }
                    }
                } else if let Some(view) = self.send(dialect, message, delivery, Some(&key)) {
                    let view = if delivery == Delivery::Immediately { self.poll(view) } else { view };
                    self.keep(&view, &text);
                    return;
                }
                // The server was not there, or its disk is full.
                self.pause(5, 40);
            }
        });
    }

    /// A slow task, canceled at a random moment, or a task of another client.
    fn cancel_something(&mut self) {
        let name = self.new_name();
        let other = if self.random.percent(30) { self.pools.recent.look(&mut self.random) } else { None };
        let (id, text) = match other {
            Some(id) => (id, String::new()),
            None => {
                let dialect = self.random.one_of(&DIALECTS);
                let agent = if self.random.percent(30) { self.front() } else { self.demo() };
                let text = match (agent.kind.is_front(), self.random.between(0, 2)) {
                    (_, 0) => format!("slow 3 {name}"),
                    (false, 1) => format!("stream 3000 1 {name}"),
                    (false, _) => format!("slow 0.2 stream 20000 0 {name}"),
                    (true, 1) => format!("stream 150 20 {name}"),
                    (true, _) => format!("slow 0.2 stream 100 30 {name}"),
                };
                let webhook = self.webhook_of_message(dialect, &text);
                let message = ClientMessage { webhook: webhook.as_ref(), ..ClientMessage::new(&name, &text, agent) };
                self.ledger.record_send(&text, SentMessage::of(agent));
                let made = if dialect.can_stream() {
                    let reading = StreamReading { disconnects_after: Some(self.random.between(1, 3)), pauses: None };
                    let operation = Operation::Send(message, Delivery::Stream);
                    match self.watch(dialect, &operation, &[], FirstFrame::After(0), reading) {
                        StreamResult::Saw { task, .. } => Some(task),
                        StreamResult::Nothing | StreamResult::Refused(_) => None,
                    }
                } else {
                    self.send(dialect, message, Delivery::Immediately, None).map(|view| view.id)
                };
                let Some(id) = made else { return };
                self.pause(0, 300);
                (id, text)
            }
        };
        self.cancel(&id);
        if !text.is_empty() && self.random.percent(50) {
            self.pools.recent.put(id, &mut self.random);
        }
    }

    fn cancel(&mut self, id: &str) {
        let dialect = self.random.one_of(&DIALECTS);
        self.ledger.record_cancel(id, Cancel::Tried);
        let asked_at = self.ledger.now();
        match self.call(dialect, &Operation::Cancel(id), &[], &[dialect.not_cancelable]) {
            CallResult::Answer(answer) => {
                self.ledger.record_cancel(id, Cancel::Acknowledged);
                if dialect.can_stream() {
                    let view = dialect.read_task(&answer);
                    let is_so = view.as_ref().is_some_and(|view| view.state == "canceled");
                    promise::STOPPED.check(is_so, || format!("{id} in {}: {answer}", dialect.name));
                    view.iter().for_each(|view| self.ledger.record_answer(dialect, asked_at, view));
                }
            }
            CallResult::Refused(code) => {
                let is_refused = code == dialect.not_cancelable;
                let dialect = self.random.one_of(&DIALECTS);
                if is_refused && let Some(view) = self.get(dialect, id) {
                    promise::STOPPED.check(is_terminal(&view.state), || format!("{id} is not cancelable: {view:?}"));
                }
            }
            CallResult::Gone => {}
        }
    }

    /// A task of another client, read or subscribed to.
    fn read_something(&mut self) {
        let Some(id) = self.pools.recent.look(&mut self.random) else { return };
        let dialect = self.random.one_of(&DIALECTS);
        let Some(view) = self.get(dialect, &id) else { return };
        if !is_at_rest(&view.state) && self.random.percent(60) {
            let dialect = self.random.one_of(STREAMING_DIALECTS);
            let operation = Operation::Subscribe(&id);
            // It may be over by now; then 1.0 refuses a subscriber without a Last-Event-ID.
            let (headers, first) = match dialect.format {
                JsonFormat::V1 => (&[("Last-Event-ID", "0")][..], FirstFrame::After(0)),
                _ => (&[][..], FirstFrame::Snapshot),
            };
            let reading = self.reading();
            let watched = self.watch(dialect, &operation, headers, first, reading);
            self.remember(dialect, "", watched);
        }
    }

    /// A page of the list. Every task in it exists.
    fn list(&mut self) {
        let dialect = self.random.one_of(LISTING_DIALECTS);
        let size = self.random.between(1, 100).to_string();
        let states = ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED", "TASK_STATE_CANCELED", "TASK_STATE_INPUT_REQUIRED"];
        let mut filters = vec![("pageSize", size.as_str())];
        if self.random.percent(50) {
            let state = *self.random.one_of(&states);
            filters.push(("status", state));
        }
        let asked_at = self.ledger.now();
        let CallResult::Answer(page) = self.call(dialect, &Operation::List(&filters), &[], &[]) else { return };
        let tasks = page["tasks"].as_array().cloned().unwrap_or_default();
        let total = page["totalSize"].as_u64();
        promise::TOTALS.check(total.is_some_and(|total| total >= tasks.len() as u64), || page.to_string());
        for task in &tasks {
            if let Some(view) = dialect.read_task(task) {
                // Lists do not show artifacts unless asked.
                self.ledger.record_answer(dialect, asked_at, &TaskView { made: None, ..view });
            }
        }
    }

    /// A request that is not finished, or whose answer nobody reads.
    fn disconnect(&mut self) {
        let Some((address, _)) = self.processes.server() else { return };
        let dialect = self.random.one_of(&DIALECTS);
        let (name, text, agent) = self.work_text();
        let webhook = self.webhook_of_message(dialect, &text);
        let message = ClientMessage { webhook: webhook.as_ref(), ..ClientMessage::new(&name, &text, agent) };
        let delivery = *self.random.one_of(dialect.deliveries());
        let request = dialect.request(&Operation::Send(message, delivery), Mount::Agent(agent));
        self.ledger.record_send(&text, SentMessage::of(agent));
        let headers = dialect.headers(&[]);
        let body = request.body.as_bytes();
        // It does not matter how far it comes.
        if self.random.percent(50) {
            let Ok(mut http) = Http::connect(address) else { return };
            let part = self.random.between(0, body.len() as u64 - 1) as usize;
            let length = body.len().to_string();
            let head = format!(
                "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
                request.method, request.path
            );
            let head = headers.iter().fold(head, |head, (name, value)| format!("{head}{name}: {value}\r\n"));
            let whole = [format!("{head}Content-Length: {length}\r\n\r\n").as_bytes(), &body[..part]].concat();
            let _ = http.write_raw(&whole);
            self.pause(0, 20);
        } else if delivery == Delivery::Stream {
            let opened = sse::open(address, request.method, &request.path, &headers, body);
            self.pause(0, 20);
            drop(opened);
        } else {
            let Ok(mut http) = Http::connect(address) else { return };
            let _ = http.send(request.method, &request.path, &headers, body);
            self.pause(0, 20);
        }
    }

    /// Polls in other dialects until the task is at rest, but not for ever.
    pub fn poll(&mut self, view: TaskView) -> TaskView {
        let mut last = view;
        for _ in 0..30 {
            if is_at_rest(&last.state) {
                break;
            }
            self.pause(1, 60);
            let dialect = self.random.one_of(&DIALECTS);
            match self.get(dialect, &last.id) {
                Some(view) => last = view,
                None => break,
            }
        }
        last
    }

    fn remember(&mut self, dialect: &DialectClient, text: &str, watched: StreamResult) {
        let StreamResult::Saw { task, last, state, .. } = watched else { return };
        if !is_at_rest(&state) {
            self.pools.broken.put((task.clone(), dialect.index(), last), &mut self.random);
        }
        self.keep(&TaskView { id: task, state, made: None }, text);
    }

    /// Leaves a task for other clients, which must not touch one that waits for an answer. The text is the last message to
    /// the task; without it a client cannot know whether a question or another message waits.
    pub fn keep(&mut self, view: &TaskView, text: &str) {
        let asks = asks(text) && self.ledger.agent_of(&view.id).kind.waits_for_answers();
        let waits = matches!(view.state.as_str(), "input-required" | "auth-required");
        if asks && waits {
            self.pools.asking.put(view.id.clone(), &mut self.random);
        } else if !asks && !text.is_empty() {
            self.pools.recent.put(view.id.clone(), &mut self.random);
        }
    }

    pub fn reading(&mut self) -> StreamReading {
        let disconnects_after = self.random.percent(30).then(|| self.random.between(1, 40));
        let nap = Duration::from_millis(self.random.between(1, 400));
        let pauses = self.random.percent(15).then(|| (self.random.between(0, 10), nap));
        StreamReading { disconnects_after, pauses }
    }

    /// One of the demo agents.
    pub fn demo(&mut self) -> &'static Agent {
        if self.random.percent(70) { DEFAULT } else { &AGENTS[1] }
    }

    /// One of the agents that stand for remote ones.
    pub fn front(&mut self) -> &'static Agent {
        self.random.one_of(FRONTS)
    }

    /// A text for some agent.
    fn work_text(&mut self) -> (String, String, &'static Agent) {
        if self.random.percent(25) {
            let agent = self.front();
            let (name, text) = self.front_text();
            return (name, text, agent);
        }
        if self.random.percent(6) {
            let name = self.new_name();
            let text = format!("do {name}");
            return (name, text, PROGRAM);
        }
        let (name, text) = self.demo_text();
        (name, text, self.demo())
    }

    /// A text for the next turn of a task of this agent.
    pub fn next_text(&mut self, agent: &Agent) -> (String, String) {
        if agent.kind.is_front() { self.front_text() } else { self.demo_text() }
    }

    /// A text for a remote agent, with a name that makes it unique.
    fn front_text(&mut self) -> (String, String) {
        let name = self.new_name();
        let random = &mut self.random;
        let text = match random.weighted(&[(28, 0), (12, 1), (30, 2), (3, 3), (5, 4), (5, 5), (14, 6), (3, 7)]) {
            0 => format!("hello \u{2615} {name}"),
            1 => format!("slow {} {name}", random.between(0, 1500) as f64 / 1000.0),
            2 => format!("stream {} {} \u{2615} {name}", random.between(0, 60), random.between(0, 20)),
            3 => format!("stream {} 0 {name}", random.between(100, 300)),
            4 => format!("fail because of {name}"),
            5 => format!("reject {name}"),
            6 => format!("ask which {name}?"),
            _ => format!("auth for {name}"),
        };
        (name, text)
    }

    /// A text for the demo agent, with a name that makes it unique.
    pub fn demo_text(&mut self) -> (String, String) {
        let name = self.new_name();
        let random = &mut self.random;
        let text = match random.weighted(&[(30, 0), (14, 1), (22, 2), (4, 3), (5, 4), (5, 5), (14, 6), (3, 7), (3, 8)])
        {
            0 => format!("hello \u{2615} {name}"),
            1 => format!("slow {} {name}", random.between(0, 1500) as f64 / 1000.0),
            2 => format!("stream {} {} {name}", random.between(0, 60), random.between(0, 20)),
            3 => format!("stream {} 0 {name}", random.between(100, 2000)),
            4 => format!("fail because of {name}"),
            5 => format!("reject {name}"),
            6 => format!("ask which {name}?"),
            7 => format!("auth for {name}"),
            _ => format!("slow {} stream {} 1 {name}", random.between(0, 500) as f64 / 1000.0, random.between(1, 30)),
        };
        (name, text)
    }

    /// Some tasks share a context and wait for each other. Not those that ask: in 0.3 the next message would be the answer.
    fn context(&mut self, text: &str, agent: &Agent) -> Option<String> {
        let is_shared = !asks(text) && agent.kind != Kind::Program && self.random.percent(25);
        is_shared.then(|| format!("shared-{}-{}", agent.id, self.random.between(1, SHARED_CONTEXTS)))
    }
}

/// Whether this text makes the demo agent, or a remote one, ask a question.
fn asks(text: &str) -> bool {
    text.contains("ask ") || text.contains("auth ")
}
