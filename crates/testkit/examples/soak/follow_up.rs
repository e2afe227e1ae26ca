//! Messages to tasks that are at work: further turns, and answers to questions in the middle of one.

use crate::agents::{APPROVAL_TIMEOUT_MS, Agent, PROGRAM};
use crate::client::{CallResult, Client, FirstFrame, StreamReading, StreamResult};
use crate::client_actions::TRIES;
use crate::dialect_client::{
    ClientMessage, Content, DIALECTS, Delivery, DialectClient, Operation, REFERENCE, STREAMING_DIALECTS, TaskView,
    Verdict, is_terminal,
};
use crate::ledger::SentMessage;
use crate::server_processes;

/// The outcome of a message to a task.
enum SendResult {
    /// The server took it; the task as it was then.
    Taken(TaskView),
    Refused,
    /// There was no answer.
    Lost,
}

impl Client<'_> {
    /// A task that takes a while, and messages to it while it works.
    pub fn follow_up(&mut self) {
        let agent = if self.random.percent(20) { self.front() } else { self.demo() };
        let began = server_processes::now();
        let name = self.new_name();
        let text = match self.random.between(0, 2) {
            0 => format!("slow {} {name}", self.random.between(50, 900) as f64 / 1000.0),
            1 => format!("stream {} {} {name}", self.random.between(5, 60), self.random.between(1, 20)),
            _ if agent.kind.is_front() => format!("slow 0.1 stream {} 0 {name}", self.random.between(10, 200)),
            _ => format!("slow 0.1 stream {} 0 {name}", self.random.between(100, 2000)),
        };
        let Some(task) = self.begin(agent, &name, &text) else { return };
        let mut last = None;
        for _ in 0..self.random.between(1, 4) {
            self.pause(0, 150);
            let (name, text) = self.next_text(agent);
            let message = ClientMessage { task: Some(&task), ..ClientMessage::new(&name, &text, agent) };
            match self.deliver(message, began) {
                SendResult::Taken(view) => last = Some((view, text)),
                SendResult::Refused => break,
                SendResult::Lost => return,
            }
        }
        if let Some((view, text)) = last {
            let view = self.poll(view);
            // A question is open only if no further message waits.
            if is_terminal(&view.state) || self.has_begun(&task, &text) {
                self.keep(&view, &text);
            }
        }
    }

    /// Whether the turn of this message has begun, as far as the history shows.
    fn has_begun(&mut self, task: &str, text: &str) -> bool {
        match self.call(REFERENCE, &Operation::Get(task), &[], &[]) {
            CallResult::Answer(answer) => {
                DialectClient::caller_messages(&answer).iter().any(|message| message.text == text)
            }
            CallResult::Refused(_) | CallResult::Gone => false,
        }
    }

    /// Answers a question of the program: in time or too late, clearly or not, once or twice.
    pub fn approve(&mut self) {
        let began = server_processes::now();
        let name = self.new_name();
        let text = format!("approve {name}");
        let Some(task) = self.begin(PROGRAM, &name, &text) else { return };
        for _ in 0..200 {
            let dialect = self.random.one_of(&DIALECTS);
            match self.get(dialect, &task) {
                Some(view) if is_terminal(&view.state) => return,
                Some(view) if view.state == "input-required" => break,
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
            let message = ClientMessage { task: Some(&task), content, ..ClientMessage::new(&name, &text, PROGRAM) };
            if let SendResult::Lost = self.deliver(message, began) {
                break;
            }
        }
        self.pools.recent.put(task, &mut self.random);
    }

    /// A new task that no other client knows of.
    fn begin(&mut self, agent: &'static Agent, name: &str, text: &str) -> Option<String> {
        let dialect = self.random.one_of(&DIALECTS);
        let message = ClientMessage::new(name, text, agent);
        self.ledger.record_send(text, SentMessage::of(agent));
        if dialect.deliveries().contains(&Delivery::Immediately) {
            return self.send(dialect, message, Delivery::Immediately, None).map(|view| view.id);
        }
        let reading = StreamReading { disconnects_after: Some(self.random.between(1, 2)), pauses: None };
        let operation = Operation::Send(message, Delivery::Stream);
        match self.watch(dialect, &operation, &[], FirstFrame::After(0), reading) {
            StreamResult::Saw { task, .. } => Some(task),
            StreamResult::Nothing | StreamResult::Refused(_) => None,
        }
    }

    /// Sends a message to a task that was made since `began`: once, or again and again under a key.
    fn deliver(&mut self, message: ClientMessage<'_>, began: i64) -> SendResult {
        let is_keyed = self.random.percent(60);
        let key = format!("key-{}", message.name);
        let continues = message.task.map(str::to_owned);
        self.ledger.record_send(message.text, SentMessage { is_keyed, continues, ..SentMessage::of(message.agent) });
        for _ in 0..if is_keyed { TRIES } else { 1 } {
            // A task that is gone would be made anew in 0.1.
            if !self.wait_for_server() || self.processes.has_swept_since(began) {
                return SendResult::Lost;
            }
            // The gateway makes a new task of a message to a finished one.
            let dialect = self.random.one_of(STREAMING_DIALECTS);
            let delivery = *self.random.one_of(dialect.deliveries());
            let expected = [dialect.finished_code(), dialect.not_asked_code()];
            if delivery == Delivery::Stream {
                let mut headers = vec![("Last-Event-ID", "0")];
                headers.extend(is_keyed.then_some(("Idempotency-Key", key.as_str())));
                let reading = StreamReading { disconnects_after: Some(self.random.between(1, 60)), pauses: None };
                let operation = Operation::Send(message, delivery);
                match self.try_watch(dialect, &operation, &headers, FirstFrame::After(0), reading, &expected) {
                    StreamResult::Saw { task, state, .. } => {
                        return SendResult::Taken(TaskView { id: task, state, made: None });
                    }
                    StreamResult::Refused(_) => return SendResult::Refused,
                    StreamResult::Nothing => {}
                }
            } else {
                match self.try_send(dialect, message, delivery, is_keyed.then_some(&key), &expected) {
                    Ok(Some(view)) => return SendResult::Taken(view),
                    Err(_) => return SendResult::Refused,
                    Ok(None) => {}
                }
            }
        }
        SendResult::Lost
    }
}
