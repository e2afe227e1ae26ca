//! What clients do, one habit after the other, chosen by chance.

use std::thread;
use std::time::Duration;

use sabir_testkit::http::Http;
use sabir_testkit::sse;

use crate::agents::{AGENTS, Agent, DEFAULT, Kind, PROGRAM};
use crate::client::{Called, Client, First, Manner, Watched};
use crate::ledger::{Asked, Cancel};
use crate::lives;
use crate::promise;
use crate::random::Random;
use crate::tongue::{
    Delivery, LISTING, Mount, Operation, Spelling, TONGUES, Told, Tongue, WATCHING, Wish, is_at_rest, is_terminal,
};

const SHARED_CONTEXTS: u64 = 6;
pub const TRIES: usize = 6;

#[derive(Clone, Copy)]
enum Habit {
    Send,
    SendOften,
    SleepOverStream,
    PickUp,
    Answer,
    FollowUp,
    Approve,
    Cancel,
    Read,
    List,
    Vanish,
}

const HABITS: [(u64, Habit); 11] = [
    (34, Habit::Send),
    (10, Habit::SendOften),
    (2, Habit::SleepOverStream),
    (16, Habit::PickUp),
    (10, Habit::Answer),
    (9, Habit::FollowUp),
    (5, Habit::Approve),
    (8, Habit::Cancel),
    (10, Habit::Read),
    (5, Habit::List),
    (5, Habit::Vanish),
];

impl Client<'_> {
    pub fn live(&mut self) {
        while !self.lives.is_over() && self.wait_for_server() {
            match self.random.weighted(&HABITS) {
                Habit::Send => self.send_something(),
                Habit::SendOften => self.send_often(),
                Habit::SleepOverStream => self.sleep_over_stream(),
                Habit::PickUp => self.pick_up(),
                Habit::Answer => self.answer(),
                Habit::FollowUp => self.follow_up(),
                Habit::Approve => self.approve(),
                Habit::Cancel => self.cancel_something(),
                Habit::Read => self.read_something(),
                Habit::List => self.list(),
                Habit::Vanish => self.vanish(),
            }
            self.pause(0, 30);
        }
    }

    /// A new task, sent in any way; then it is read, watched or left.
    fn send_something(&mut self) {
        let tongue = self.random.one_of(&TONGUES);
        let delivery = *self.random.one_of(tongue.deliveries());
        let (name, text, agent) = self.work();
        let context = self.context(&text, agent);
        let wish = Wish { context: context.as_deref(), ..Wish::new(&name, &text, agent) };
        self.ledger.asks(&text, Asked { context: context.clone(), ..Asked::of(agent) });
        if delivery == Delivery::Stream {
            let manner = self.manner();
            let watched = self.watch(tongue, &Operation::Send(wish, delivery), &[], First::After(0), manner);
            self.remember(tongue, &text, watched);
        } else if let Some(told) = self.send(tongue, wish, delivery, None) {
            let told = if delivery == Delivery::Immediately { self.poll(told) } else { told };
            self.keep(&told, &text);
        }
    }

    /// The same send again and again under one key, in several dialects, also at the same time.
    fn send_often(&mut self) {
        let (name, text, agent) = self.work();
        let key = format!("key-{name}");
        self.ledger.asks(&text, Asked { is_keyed: true, ..Asked::of(agent) });
        let wish = Wish::new(&name, &text, agent);
        let seed = self.random.between(0, u64::MAX - 1);
        let (lives, ledger, pools) = (self.lives, self.ledger, self.pools);
        let twin = || {
            let random = Random::new(seed);
            let mut twin = Client { lives, ledger, pools, random, name: String::new(), count: 0, connection: None };
            twin.repeat(wish, &key)
        };
        let told = if self.random.percent(50) {
            thread::scope(|scope| {
                let twin = scope.spawn(twin);
                let told = self.repeat(wish, &key);
                let other = twin.join().expect("the twin does not panic");
                told.or(other)
            })
        } else {
            self.repeat(wish, &key)
        };
        if let Some(told) = told {
            self.keep(&told, &text);
        }
    }

    fn repeat(&mut self, wish: Wish<'_>, key: &str) -> Option<Told> {
        let mut heard = None;
        let more = self.random.between(0, 2);
        let began = lives::now();
        for _ in 0..TRIES {
            // A key lives as long as its task.
            if !self.wait_for_server() || self.lives.has_swept_since(began) {
                return heard;
            }
            let tongue = self.random.one_of(&TONGUES);
            let delivery = *self.random.one_of(tongue.deliveries());
            if delivery == Delivery::Stream {
                let headers = [("Idempotency-Key", key)];
                let manner = self.manner();
                let watched = self.watch(tongue, &Operation::Send(wish, delivery), &headers, First::After(0), manner);
                if let Watched::Saw { task, state, .. } = watched {
                    heard = Some(Told { id: task, state, made: None });
                }
            } else if let Some(told) = self.send(tongue, wish, delivery, Some(key)) {
                heard = Some(told);
            }
            if heard.is_some() && self.random.percent(40 * more) {
                break;
            }
        }
        heard
    }

    /// A stream that is longer than all buffers on the way, and a reader that sleeps.
    fn sleep_over_stream(&mut self) {
        let tongue = self.random.one_of(WATCHING);
        let name = self.new_name();
        let text = format!("stream {} 0 {name}", self.random.between(3000, 6000));
        let wish = Wish::new(&name, &text, DEFAULT);
        self.ledger.asks(&text, Asked::of(DEFAULT));
        let nap = Duration::from_millis(self.random.between(300, 2500));
        let manner = Manner { sleeps: Some((self.random.between(1, 20), nap)), leaves_after: None };
        let watched = self.watch(tongue, &Operation::Send(wish, Delivery::Stream), &[], First::After(0), manner);
        self.remember(tongue, &text, watched);
    }

    /// A stream that broke goes on where it broke, in its own dialect or in another.
    fn pick_up(&mut self) {
        let Some((task, place, last)) = self.pools.broken.take(&mut self.random) else { return };
        let tongue = if self.random.percent(50) { &TONGUES[place] } else { self.random.one_of(WATCHING) };
        let after = last.to_string();
        let headers = [("Last-Event-ID", after.as_str())];
        let manner = self.manner();
        match self.watch(tongue, &Operation::Subscribe(&task), &headers, First::After(last), manner) {
            Watched::Saw { last, state, .. } => {
                promise::PICKED_UP.check(true, String::new);
                if !is_at_rest(&state) {
                    self.pools.broken.put((task, tongue.place(), last), &mut self.random);
                }
            }
            Watched::Nothing => self.pools.broken.put((task, place, last), &mut self.random),
            Watched::Refused(code) if tongue.is_not_found(code) => {}
            Watched::Refused(code) => {
                promise::PICKED_UP.check(false, || format!("{task} after {last} in {}: {code}", tongue.name));
            }
        }
    }

    /// The answer to a question, under a key, until it is heard.
    fn answer(&mut self) {
        let Some(task) = self.pools.asking.take(&mut self.random) else { return };
        let (name, text) = self.words();
        let key = format!("key-{name}");
        let agent = self.ledger.agent_of(&task);
        self.ledger.asks(&text, Asked { is_keyed: true, continues: Some(task.clone()), ..Asked::of(agent) });
        let began = lives::now();
        // Some watch from before the answer; the stream stays open for it.
        // 1.0 refuses who comes too late without a number to go on from.
        let watcher = self.random.percent(30).then(|| self.random.one_of(&WATCHING[3..]));
        thread::scope(|scope| {
            if let Some(tongue) = watcher {
                let seed = self.random.between(0, u64::MAX - 1);
                let (lives, ledger, pools, task) = (self.lives, self.ledger, self.pools, task.as_str());
                scope.spawn(move || {
                    let random = Random::new(seed);
                    let mut twin =
                        Client { lives, ledger, pools, random, name: String::new(), count: 0, connection: None };
                    let manner = twin.manner();
                    twin.watch(tongue, &Operation::Subscribe(task), &[], First::Snapshot, manner);
                });
                self.pause(0, 50);
            }
            let wish = Wish { task: Some(&task), ..Wish::new(&name, &text, agent) };
            for _ in 0..TRIES * 20 {
                // A task that is gone would be made anew in 0.1.
                if !self.wait_for_server() || self.lives.has_swept_since(began) {
                    return;
                }
                let tongue = self.random.one_of(&TONGUES);
                let delivery = *self.random.one_of(tongue.deliveries());
                if delivery == Delivery::Stream {
                    let headers = [("Idempotency-Key", key.as_str()), ("Last-Event-ID", "0")];
                    let operation = Operation::Send(wish, delivery);
                    let watched = self.watch(tongue, &operation, &headers, First::After(0), Manner::default());
                    if let Watched::Saw { state, is_ended, .. } = watched {
                        // What was replayed may be no more than the first turn.
                        if is_ended && matches!(state.as_str(), "input-required" | "auth-required") {
                            break;
                        }
                        if is_ended {
                            return;
                        }
                    }
                } else if let Some(told) = self.send(tongue, wish, delivery, Some(&key)) {
                    let told = if delivery == Delivery::Immediately { self.poll(told) } else { told };
                    self.keep(&told, &text);
                    return;
                }
                // The server was not there, or its disk is full.
                self.pause(5, 40);
            }
        });
    }

    /// Something that takes its time, canceled at a random moment, or what another client made.
    fn cancel_something(&mut self) {
        let name = self.new_name();
        let other = if self.random.percent(30) { self.pools.recent.look(&mut self.random) } else { None };
        let (id, text) = match other {
            Some(id) => (id, String::new()),
            None => {
                let tongue = self.random.one_of(&TONGUES);
                let text = match self.random.between(0, 2) {
                    0 => format!("slow 3 {name}"),
                    1 => format!("stream 3000 1 {name}"),
                    _ => format!("slow 0.2 stream 20000 0 {name}"),
                };
                let agent = self.demo();
                let wish = Wish::new(&name, &text, agent);
                self.ledger.asks(&text, Asked::of(agent));
                let made = if tongue.can_watch() {
                    let manner = Manner { leaves_after: Some(self.random.between(1, 3)), sleeps: None };
                    let operation = Operation::Send(wish, Delivery::Stream);
                    match self.watch(tongue, &operation, &[], First::After(0), manner) {
                        Watched::Saw { task, .. } => Some(task),
                        Watched::Nothing | Watched::Refused(_) => None,
                    }
                } else {
                    self.send(tongue, wish, Delivery::Immediately, None).map(|told| told.id)
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
        let tongue = self.random.one_of(&TONGUES);
        self.ledger.cancel(id, Cancel::Tried);
        let asked = self.ledger.now();
        match self.call(tongue, &Operation::Cancel(id), &[], &[tongue.not_cancelable]) {
            Called::Answer(answer) => {
                self.ledger.cancel(id, Cancel::Acknowledged);
                if tongue.can_watch() {
                    let told = tongue.read_task(&answer);
                    let is_so = told.as_ref().is_some_and(|told| told.state == "canceled");
                    promise::STOPPED.check(is_so, || format!("{id} in {}: {answer}", tongue.name));
                    told.iter().for_each(|told| self.ledger.answer(tongue, asked, told));
                }
            }
            Called::Refused(code) => {
                let is_told_so = code == tongue.not_cancelable;
                let tongue = self.random.one_of(&TONGUES);
                if is_told_so && let Some(told) = self.get(tongue, id) {
                    promise::STOPPED.check(is_terminal(&told.state), || format!("{id} is not cancelable: {told:?}"));
                }
            }
            Called::Gone => {}
        }
    }

    /// What another client made, read or watched from now on.
    fn read_something(&mut self) {
        let Some(id) = self.pools.recent.look(&mut self.random) else { return };
        let tongue = self.random.one_of(&TONGUES);
        let Some(told) = self.get(tongue, &id) else { return };
        if !is_at_rest(&told.state) && self.random.percent(60) {
            let tongue = self.random.one_of(WATCHING);
            let operation = Operation::Subscribe(&id);
            // It may be over by now, which 1.0 does not show without a number to go on from.
            let (headers, first) = match tongue.spelling {
                Spelling::V1 => (&[("Last-Event-ID", "0")][..], First::After(0)),
                _ => (&[][..], First::Snapshot),
            };
            let manner = self.manner();
            let watched = self.watch(tongue, &operation, headers, first, manner);
            self.remember(tongue, "", watched);
        }
    }

    /// A page of the list. Whoever stands in it exists.
    fn list(&mut self) {
        let tongue = self.random.one_of(LISTING);
        let size = self.random.between(1, 100).to_string();
        let states = ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED", "TASK_STATE_CANCELED", "TASK_STATE_INPUT_REQUIRED"];
        let mut filters = vec![("pageSize", size.as_str())];
        if self.random.percent(50) {
            let state = *self.random.one_of(&states);
            filters.push(("status", state));
        }
        let asked = self.ledger.now();
        let Called::Answer(page) = self.call(tongue, &Operation::List(&filters), &[], &[]) else { return };
        let tasks = page["tasks"].as_array().cloned().unwrap_or_default();
        let total = page["totalSize"].as_u64();
        promise::TOTALS.check(total.is_some_and(|total| total >= tasks.len() as u64), || page.to_string());
        for task in &tasks {
            if let Some(told) = tongue.read_task(task) {
                // Lists do not show artifacts unless asked.
                self.ledger.answer(tongue, asked, &Told { made: None, ..told });
            }
        }
    }

    /// A request that is not finished, or whose answer nobody hears.
    fn vanish(&mut self) {
        let Some((address, _)) = self.lives.server() else { return };
        let tongue = self.random.one_of(&TONGUES);
        let (name, text, agent) = self.work();
        let wish = Wish::new(&name, &text, agent);
        let delivery = *self.random.one_of(tongue.deliveries());
        let request = tongue.request(&Operation::Send(wish, delivery), Mount::Agent(agent));
        self.ledger.asks(&text, Asked::of(agent));
        let headers = tongue.headers(&[]);
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

    /// Asks again in other dialects until the task is at rest, or patience ends.
    pub fn poll(&mut self, told: Told) -> Told {
        let mut last = told;
        for _ in 0..30 {
            if is_at_rest(&last.state) {
                break;
            }
            self.pause(1, 60);
            let tongue = self.random.one_of(&TONGUES);
            match self.get(tongue, &last.id) {
                Some(told) => last = told,
                None => break,
            }
        }
        last
    }

    fn remember(&mut self, tongue: &Tongue, text: &str, watched: Watched) {
        let Watched::Saw { task, last, state, .. } = watched else { return };
        if !is_at_rest(&state) {
            self.pools.broken.put((task.clone(), tongue.place(), last), &mut self.random);
        }
        self.keep(&Told { id: task, state, made: None }, text);
    }

    /// Leaves a task for others, who must not meddle with one that asks. The text is what it was told last; who does not
    /// know that cannot know either whether a question waits, or another message.
    pub fn keep(&mut self, told: &Told, text: &str) {
        let asks = asks(text) && self.ledger.agent_of(&told.id).kind == Kind::Demo;
        let waits = matches!(told.state.as_str(), "input-required" | "auth-required");
        if asks && waits {
            self.pools.asking.put(told.id.clone(), &mut self.random);
        } else if !asks && !text.is_empty() {
            self.pools.recent.put(told.id.clone(), &mut self.random);
        }
    }

    pub fn manner(&mut self) -> Manner {
        let leaves_after = self.random.percent(30).then(|| self.random.between(1, 40));
        let nap = Duration::from_millis(self.random.between(1, 400));
        let sleeps = self.random.percent(15).then(|| (self.random.between(0, 10), nap));
        Manner { leaves_after, sleeps }
    }

    /// One of the demo agents.
    pub fn demo(&mut self) -> &'static Agent {
        if self.random.percent(70) { DEFAULT } else { &AGENTS[1] }
    }

    /// Words for some agent.
    fn work(&mut self) -> (String, String, &'static Agent) {
        if self.random.percent(6) {
            let name = self.new_name();
            let text = format!("do {name}");
            return (name, text, PROGRAM);
        }
        let (name, text) = self.words();
        (name, text, self.demo())
    }

    /// Words for the demo agent, with a name that makes them unique.
    pub fn words(&mut self) -> (String, String) {
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

    /// Some tasks share a context, and wait for each other. In one that asks, 0.3 would answer instead.
    fn context(&mut self, text: &str, agent: &Agent) -> Option<String> {
        let is_shared = !asks(text) && agent.kind == Kind::Demo && self.random.percent(25);
        is_shared.then(|| format!("shared-{}-{}", agent.id, self.random.between(1, SHARED_CONTEXTS)))
    }
}

/// Whether the demo agent asks when it is told this.
fn asks(text: &str) -> bool {
    text.contains("ask ") || text.contains("auth ")
}
