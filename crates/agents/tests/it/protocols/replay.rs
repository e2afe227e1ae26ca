//! Replays every recording: Sabir's protocol must write what the recorded client wrote, and report what
//! `expected/duplex-<program>.txt` has. `UPDATE_GOLDEN=1` rewrites those files; the difference is reviewed.
//!
//! A recording of several turns in one process is replayed as one process, as long as its turns are completed. After one
//! that was not, it continues as another process, with the greeting; sums over a session are those of the recorded process
//! then.
//!
//! Sabir differs from the recorded client on purpose:
//! - the client set modes (`session/set_mode`, `set_permission_mode`, `set_model`) or sent `initialize` where Sabir does
//!   not;
//! - the client let programs read and write files through it, which Sabir refuses;
//! - the client sent prompts without ids to Claude Code, which then did not report when it began with them; the test adds
//!   these reports;
//! - the client resumed a session that can also be loaded; the test makes the program say that it cannot load.

use std::collections::{HashMap, VecDeque};
use std::env;
use std::fmt::Write as _;
use std::fs;

use sabir_agents::adapter::{Adapter, Step};
use sabir_agents::update::{Question, Reply, Update};
use serde_json::{Value, json};

use super::recording::{self, Line, Recording, Turn};

#[test]
fn every_recording_is_led_as_it_was_and_told_as_expected() {
    let mut expected_files = Vec::new();
    for (program, recordings) in recording::all() {
        let told: String = recordings.iter().map(lead).collect();
        let name = format!("duplex-{program}.txt");
        let path = recording::folder().join("expected").join(&name);
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &told).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_else(|_| panic!("{name} is missing"));
        for (line, (told, expected)) in told.lines().zip(expected.lines()).enumerate() {
            assert_eq!(told, expected, "{name}, line {}", line + 1);
        }
        assert_eq!(told.lines().count(), expected.lines().count(), "the length of {name}");
        expected_files.push(name);
    }
    for file in fs::read_dir(recording::folder().join("expected")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let is_known = !name.starts_with("duplex-") || expected_files.contains(&name);
        assert!(is_known, "{name} expects something of recordings that do not exist");
    }
}

fn lead(recording: &Recording) -> String {
    let mut text = String::new();
    let mut before: Option<Stage> = None;
    for (number, turn) in recording.turns().enumerate() {
        writeln!(text, "=== {}, turn {}: {}", recording.name, number + 1, turn.prompt.text).unwrap();
        let mut stage = match before.take().filter(|stage| stage.machine.awaits_next_turn()) {
            Some(stage) => stage.with_next(turn),
            None => Stage::new(turn, recording.name == "acp-resume"),
        };
        stage.play();
        text.push_str(&stage.told);
        text.push('\n');
        before = Some(stage);
    }
    text
}

struct Stage {
    machine: Box<dyn Adapter>,
    begun: Vec<Step>,
    /// Lines of the program after the end of its turn.
    between: Vec<String>,
    lines: Vec<Line>,
    can_only_resume: bool,
    /// Lines that Sabir wrote and that the recording has not reached yet.
    written: VecDeque<Value>,
    asked: Vec<Question>,
    /// The recorded ids of the client's requests, and Sabir's ids for them. `None`: Sabir does not send that request.
    ids: HashMap<String, Option<Value>>,
    /// Methods of the program's requests, by their ids.
    requested: HashMap<String, String>,
    told: String,
    last: Option<&'static str>,
    is_over: bool,
}

impl Stage {
    fn new(mut turn: Turn, can_only_resume: bool) -> Self {
        Self {
            begun: turn.machine.begin(),
            machine: turn.machine,
            lines: turn.lines,
            can_only_resume,
            between: Vec::new(),
            written: VecDeque::new(),
            asked: Vec::new(),
            ids: HashMap::new(),
            requested: HashMap::new(),
            told: String::new(),
            last: None,
            is_over: false,
        }
    }

    /// The next turn of the same process. Lines after the last turn came between the two.
    fn with_next(mut self, turn: Turn) -> Self {
        let between = std::mem::take(&mut self.between);
        for line in between {
            let answers = self.machine.on_line_between_turns(&line);
            assert!(answers.is_empty(), "{answers:?}");
        }
        self.begun = self.machine.next_turn(&turn.prompt, &[]).expect("it awaits one");
        (self.lines, self.told, self.is_over) = (turn.lines_alone, String::new(), false);
        self
    }

    fn play(&mut self) {
        let begun = std::mem::take(&mut self.begun);
        self.take(begun);
        for line in std::mem::take(&mut self.lines) {
            match line {
                Line::Sent(message) => self.sent(&message),
                Line::Received(message) => self.received(message),
            }
        }
        assert!(self.written.is_empty(), "the recorded client did not write {:?}", self.written);
        self.end_piece();
        if !self.is_over {
            self.told.push_str("(the recording ends before the turn)\n");
        }
    }

    /// A line of the recorded client: ours must be the same.
    fn sent(&mut self, recorded: &Value) {
        let subject = subject(recorded);
        if self.is_over
            || ["session/set_mode", "set_permission_mode", "set_model", "control initialize"].contains(&&*subject)
        {
            self.ids.insert(recorded["id"].to_string(), None);
            return;
        }
        if self.written.is_empty() {
            let steps = match &*subject {
                "session/cancel" | "turn/interrupt" | "interrupt" => self.machine.interrupt(),
                "answer" => self.answer(recorded),
                _ => panic!("the machine does not write {recorded}"),
            };
            self.take(steps);
        }
        let ours = self.written.pop_front().unwrap_or_else(|| panic!("the machine does not write {recorded}"));
        assert_eq!(self::subject(&ours), subject, "{ours}");
        if subject == "answer" {
            let id = recorded["id"].to_string();
            let method = self.requested.get(&id).map(String::as_str);
            if method.is_some_and(|method| method.starts_with("fs/")) {
                assert_eq!((&ours["id"], &ours["error"]["code"]), (&recorded["id"], &(-32601).into()));
            } else {
                assert_eq!(ours, *recorded);
            }
        } else {
            self.ids.insert(recorded["id"].to_string(), Some(ours["id"].clone()));
        }
        self.end_piece();
        writeln!(self.told, "> {}", summary(&ours)).unwrap();
        if ours["uuid"].is_string() {
            let begun = json!({"type": "command_lifecycle", "command_uuid": ours["uuid"], "state": "started"});
            assert_eq!(self.machine.on_line(&begun.to_string()), []);
        }
    }

    fn answer(&mut self, recorded: &Value) -> Vec<Step> {
        let id = answered_id(recorded);
        let Some(index) = self.asked.iter().position(|question| question.id == id) else { return Vec::new() };
        let question = self.asked.remove(index);
        self.machine.answer(&question, &reply(&question, recorded))
    }

    fn received(&mut self, mut message: Value) {
        let id = message["id"].to_string();
        match message["method"].as_str() {
            Some(method) => {
                self.requested.insert(id, method.to_owned());
            }
            None if !message["id"].is_null() => match self.ids.get(&id) {
                Some(Some(ours)) => message["id"] = ours.clone(),
                Some(None) => return,
                None => panic!("the answer to nothing: {message}"),
            },
            None => {}
        }
        if self.can_only_resume && message["result"]["agentCapabilities"].is_object() {
            message["result"]["agentCapabilities"]["loadSession"] = false.into();
        }
        let was_over = self.is_over;
        if was_over {
            self.between.push(message.to_string());
        }
        let steps = self.machine.on_line(&message.to_string());
        assert!(!was_over || steps.is_empty(), "after its turn the machine wants {steps:?}");
        self.take(steps);
    }

    fn take(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Write(line) => {
                    assert!(!self.is_over, "written after the end: {line}");
                    self.written.push_back(serde_json::from_str(&line).unwrap());
                }
                Step::Ask(question) => {
                    let choices: Vec<String> =
                        question.choices.iter().map(|choice| format!("{}={:?}", choice.id, choice.kind)).collect();
                    self.tell(None, &format!("ask {} [{}]", question.text, choices.join(" ")));
                    self.asked.push(question);
                }
                Step::Withdraw(id) => {
                    self.asked.retain(|question| question.id != id);
                    self.tell(None, &format!("withdraw {id}"));
                }
                Step::Report(update) => self.update(update),
                Step::CloseInput => {
                    self.is_over = true;
                    self.tell(None, "close");
                }
            }
        }
    }

    fn update(&mut self, update: Update) {
        let line = match update {
            Update::Text(text) => return self.tell(Some("text"), &text),
            Update::Thought(text) => return self.tell(Some("thought"), &text),
            Update::Init { session, model } => format!("init {} {}", session.unwrap(), model.unwrap_or("-".into())),
            Update::ToolUse { id, name, input } => {
                format!("tool {name} ({id}) {}", input.map_or("-".into(), |input| input.as_str().to_owned()))
            }
            Update::ToolResult { id, name, output, is_error } => {
                let word = if is_error { "error" } else { "result" };
                format!("{word} of {} ({id}): {output}", name.unwrap_or("-".into()))
            }
            Update::Progress(words) => format!("progress {words}"),
            Update::Usage(spent) => {
                let cost = spent.cost.map_or("-".into(), |cost| format!("${cost:.6}"));
                format!("spent {} in, {} out, {cost}", spent.input_tokens, spent.output_tokens)
            }
            Update::File(path) => format!("file {path}"),
            Update::Done { summary } => format!("done {}", summary.unwrap_or("-".into())),
            Update::Failed(words) => format!("failed {words}"),
            Update::SessionGone => "session gone".into(),
            Update::NotUnderstood(line) => format!("not understood {line:?}"),
            Update::Interrupted => "interrupted".into(),
        };
        self.tell(None, &line);
    }

    /// Pieces of one kind are joined; everything else is a line.
    fn tell(&mut self, piece: Option<&'static str>, text: &str) {
        let text = text.replace('\n', "\\n");
        if piece.is_none() || piece != self.last {
            self.end_piece();
        }
        match piece {
            None => writeln!(self.told, "{text}").unwrap(),
            Some(kind) if self.last.is_none() => write!(self.told, "{kind} {text}").unwrap(),
            Some(_) => write!(self.told, "|{text}").unwrap(),
        }
        self.last = piece;
    }

    fn end_piece(&mut self) {
        if self.last.take().is_some() {
            self.told.push('\n');
        }
    }
}

/// What a line of the client is about.
fn subject(message: &Value) -> String {
    let control = message["request"]["subtype"].as_str();
    match (message["method"].as_str(), message["type"].as_str()) {
        (Some(method), _) => method.to_owned(),
        (None, Some("control_request")) if control == Some("initialize") => "control initialize".into(),
        (None, Some("control_request")) => control.unwrap().to_owned(),
        (None, Some("user")) => "prompt".into(),
        (None, _) => "answer".into(),
    }
}

fn summary(message: &Value) -> String {
    let subject = subject(message);
    let result = &message["result"];
    match &*subject {
        "answer" if message["error"].is_object() => format!("answer {}", message["error"]["message"]),
        "answer" if result["decision"].is_string() => format!("answer {}", result["decision"]),
        "answer" if result.is_object() => format!("answer {}", result["outcome"]),
        "answer" => format!("answer {}", message["response"]["response"]),
        _ => subject,
    }
}

fn answered_id(recorded: &Value) -> String {
    let id = if recorded["id"].is_null() { &recorded["response"]["request_id"] } else { &recorded["id"] };
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// The reply of a caller that makes the recorded client write this answer.
fn reply(question: &Question, recorded: &Value) -> Reply {
    let chosen =
        |choice: &str, said: Option<&str>| Reply::Chosen { choice: choice.into(), comment: said.map(str::to_owned) };
    let control = &recorded["response"]["response"];
    let result = &recorded["result"];
    if let Some(option) = result["outcome"]["optionId"].as_str().or(result["decision"].as_str()) {
        return chosen(option, None);
    }
    if let Some(answer) = control["updatedInput"]["answers"][&question.text.lines().next().unwrap()].as_str() {
        return chosen(answer, None);
    }
    match control["behavior"].as_str() {
        Some("allow") => chosen("allow", None),
        Some("deny") => chosen("reject", control["message"].as_str()),
        _ => Reply::Unanswered,
    }
}
