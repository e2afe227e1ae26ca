//! Messages to tasks that are at work: further turns, and answers to questions in the middle of one.

use crate::agents::{APPROVAL_TIMEOUT_MS, Agent, PROGRAM};
use crate::client::{Called, Client, First, Manner, Watched};
use crate::habits::TRIES;
use crate::ledger::Asked;
use crate::lives;
use crate::tongue::{
    Content, Delivery, Operation, REFERENCE, TONGUES, Told, Tongue, Verdict, WATCHING, Wish, is_terminal,
};

/// What became of a message to a task.
enum Sent {
    /// It was taken; the task as it was then.
    Taken(Told),
    Refused,
    /// Nobody knows.
    Lost,
}

impl Client<'_> {
    /// A task that takes a while, and messages to it while it works.
    pub fn follow_up(&mut self) {
        let agent = self.demo();
        let began = lives::now();
        let name = self.new_name();
        let text = match self.random.between(0, 2) {
            0 => format!("slow {} {name}", self.random.between(50, 900) as f64 / 1000.0),
            1 => format!("stream {} {} {name}", self.random.between(5, 60), self.random.between(1, 20)),
            _ => format!("slow 0.1 stream {} 0 {name}", self.random.between(100, 2000)),
        };
        let Some(task) = self.begin(agent, &name, &text) else { return };
        let mut last = None;
        for _ in 0..self.random.between(1, 4) {
            self.pause(0, 150);
            let (name, text) = self.words();
            let wish = Wish { task: Some(&task), ..Wish::new(&name, &text, agent) };
            match self.deliver(wish, began) {
                Sent::Taken(told) => last = Some((told, text)),
                Sent::Refused => break,
                Sent::Lost => return,
            }
        }
        if let Some((told, text)) = last {
            let told = self.poll(told);
            // A question between two turns is none that waits.
            if is_terminal(&told.state) || self.has_begun(&task, &text) {
                self.keep(&told, &text);
            }
        }
    }

    /// Whether the turn of this message has begun, as far as the history tells.
    fn has_begun(&mut self, task: &str, text: &str) -> bool {
        match self.call(REFERENCE, &Operation::Get(task), &[], &[]) {
            Called::Answer(answer) => Tongue::caller_messages(&answer).iter().any(|message| message.text == text),
            Called::Refused(_) | Called::Gone => false,
        }
    }

    /// A question of the program, answered in time or too late, clearly or not, once or twice.
    pub fn approve(&mut self) {
        let began = lives::now();
        let name = self.new_name();
        let text = format!("approve {name}");
        let Some(task) = self.begin(PROGRAM, &name, &text) else { return };
        for _ in 0..200 {
            let tongue = self.random.one_of(&TONGUES);
            match self.get(tongue, &task) {
                Some(told) if is_terminal(&told.state) => return,
                Some(told) if told.state == "input-required" => break,
                Some(_) => self.pause(10, 40),
                None => return,
            }
        }
        // About one in four comes too late.
        self.pause(0, APPROVAL_TIMEOUT_MS * 4 / 3);
        for _ in 0..self.random.between(1, 2) {
            let name = self.new_name();
            let text = format!("go on with {name}");
            let content = self.random.weighted(&[
                (4, Content::WordsAndYes),
                (2, Content::Words),
                (3, Content::OnlyApproval(Verdict::Yes)),
                (1, Content::OnlyApproval(Verdict::No)),
            ]);
            let wish = Wish { task: Some(&task), content, ..Wish::new(&name, &text, PROGRAM) };
            if let Sent::Lost = self.deliver(wish, began) {
                break;
            }
        }
        self.pools.recent.put(task, &mut self.random);
    }

    /// A new task that nobody else knows of.
    fn begin(&mut self, agent: &'static Agent, name: &str, text: &str) -> Option<String> {
        let tongue = self.random.one_of(&TONGUES);
        let wish = Wish::new(name, text, agent);
        self.ledger.asks(text, Asked::of(agent));
        if tongue.deliveries().contains(&Delivery::Immediately) {
            return self.send(tongue, wish, Delivery::Immediately, None).map(|told| told.id);
        }
        let manner = Manner { leaves_after: Some(self.random.between(1, 2)), sleeps: None };
        let operation = Operation::Send(wish, Delivery::Stream);
        match self.watch(tongue, &operation, &[], First::After(0), manner) {
            Watched::Saw { task, .. } => Some(task),
            Watched::Nothing | Watched::Refused(_) => None,
        }
    }

    /// Sends a message to a task that was made since `began`: once, or again and again under a key.
    fn deliver(&mut self, wish: Wish<'_>, began: i64) -> Sent {
        let is_keyed = self.random.percent(60);
        let key = format!("key-{}", wish.name);
        let continues = wish.task.map(str::to_owned);
        self.ledger.asks(wish.text, Asked { is_keyed, continues, ..Asked::of(wish.agent) });
        for _ in 0..if is_keyed { TRIES } else { 1 } {
            // A task that is gone would be made anew in 0.1.
            if !self.wait_for_server() || self.lives.has_swept_since(began) {
                return Sent::Lost;
            }
            // The gateway makes a new task of a message to a finished one.
            let tongue = self.random.one_of(WATCHING);
            let delivery = *self.random.one_of(tongue.deliveries());
            let expected = [tongue.finished(), tongue.not_asked()];
            if delivery == Delivery::Stream {
                let mut headers = vec![("Last-Event-ID", "0")];
                headers.extend(is_keyed.then_some(("Idempotency-Key", key.as_str())));
                let manner = Manner { leaves_after: Some(self.random.between(1, 60)), sleeps: None };
                let operation = Operation::Send(wish, delivery);
                match self.try_watch(tongue, &operation, &headers, First::After(0), manner, &expected) {
                    Watched::Saw { task, state, .. } => return Sent::Taken(Told { id: task, state, made: None }),
                    Watched::Refused(_) => return Sent::Refused,
                    Watched::Nothing => {}
                }
            } else {
                match self.try_send(tongue, wish, delivery, is_keyed.then_some(&key), &expected) {
                    Ok(Some(told)) => return Sent::Taken(told),
                    Err(_) => return Sent::Refused,
                    Ok(None) => {}
                }
            }
        }
        Sent::Lost
    }
}
