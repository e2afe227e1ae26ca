//! Protocols on random input: nothing panics, every written line is JSON, and nothing follows the end of a turn.

use proptest::prelude::*;
use sabir_agents::adapter::{Adapter, Step};
use sabir_agents::prompt::{Approve, Prompt};
use sabir_agents::protocols::{Acp, ClaudeControl, CodexServer};
use sabir_agents::update::{Question, Reply, Update};
use serde_json::{Value, json};

use super::recording::{self, Line, Speaks};

/// An event for a state machine.
#[derive(Debug, Clone)]
enum Event {
    Heard(String),
    Answered(Answer),
    Interrupted,
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    First,
    Words,
    Nobody,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_breaks_a_machine(
        speaks in prop_oneof![Just(Speaks::Acp), Just(Speaks::Claude), Just(Speaks::Codex)],
        approve in prop_oneof![Just(Approve::Ask), Just(Approve::All), Just(Approve::None)],
        session in proptest::option::of(Just("s".to_owned())),
        events in proptest::collection::vec(event(), 0..24),
    ) {
        let prompt = Prompt { text: "go".into(), folder: "/w".into(), model: Some("m".into()), session, approve, ..Prompt::default() };
        check(machine(speaks, prompt), &events);
    }
}

/// Real lines with one replaced member reach deeper than invented ones.
#[test]
fn no_damaged_recording_breaks_a_machine() {
    let damages = [json!(null), json!(7), json!(""), json!([]), json!({}), json!([{}]), json!(true)];
    for (_, recordings) in recording::all() {
        for recording in recordings.iter().take(3) {
            let Some(turn) = recording.turns().next() else { continue };
            let lines: Vec<Value> = turn.lines.into_iter().filter_map(received).collect();
            for (number, damage) in damages.iter().enumerate() {
                let events: Vec<Event> = lines
                    .iter()
                    .enumerate()
                    .flat_map(|(index, line)| {
                        let mut damaged = line.clone();
                        damage_one(&mut damaged, index + number, damage);
                        [damaged.to_string(), line.to_string()]
                            .map(Event::Heard)
                            .into_iter()
                            .chain([Event::Answered(Answer::First)])
                    })
                    .collect();
                check(machine(recording.speaks, Prompt { session: Some("s".into()), ..Prompt::default() }), &events);
            }
        }
    }
}

#[test]
fn a_program_that_cannot_be_greeted_has_failed() {
    for speaks in [Speaks::Acp, Speaks::Codex] {
        let mut machine = machine(speaks, Prompt::default());
        machine.begin();
        let steps = machine.on_line(r#"{"id":1,"error":{"code":-32603,"message":"no home"}}"#);
        let failed = Update::Failed("the program does not start: no home".into());
        assert_eq!(steps, [Step::Report(failed), Step::CloseInput]);
    }
}

fn check(mut machine: Box<dyn Adapter>, events: &[Event]) {
    let mut questions: Vec<Question> = Vec::new();
    let mut is_over = false;
    let begun = machine.begin();
    assert!(matches!(&begun[..], [Step::Write(_)]));
    for event in events {
        let steps = match event {
            Event::Heard(line) => machine.on_line(line),
            Event::Interrupted => machine.interrupt(),
            Event::Answered(answer) => match questions.pop() {
                Some(question) => machine.answer(&question, &reply(*answer, &question)),
                None => continue,
            },
        };
        assert!(!is_over || steps.is_empty(), "after its turn the machine wants {steps:?}");
        for step in steps {
            match step {
                Step::Write(line) => {
                    assert!(!line.contains('\n'));
                    serde_json::from_str::<Value>(&line).unwrap();
                }
                Step::Ask(question) => questions.push(question),
                Step::CloseInput => is_over = true,
                Step::Withdraw(id) => questions.retain(|question| question.id != id),
                Step::Report(_) => {}
            }
        }
    }
}

fn reply(answer: Answer, question: &Question) -> Reply {
    match (answer, question.choices.first()) {
        (Answer::First, Some(choice)) => Reply::Chosen { choice: choice.id.clone(), comment: None },
        (Answer::First | Answer::Words, _) => Reply::Text("words".into()),
        (Answer::Nobody, _) => Reply::Unanswered,
    }
}

fn machine(speaks: Speaks, prompt: Prompt) -> Box<dyn Adapter> {
    match speaks {
        Speaks::Acp => Box::new(Acp::new(prompt, Vec::new())),
        Speaks::Claude => Box::new(ClaudeControl::new(prompt, Vec::new())),
        Speaks::Codex => Box::new(CodexServer::new(prompt, Vec::new())),
    }
}

fn received(line: Line) -> Option<Value> {
    match line {
        Line::Received(message) => Some(message),
        Line::Sent(_) => None,
    }
}

/// Replaces one of the values inside, chosen by a number.
fn damage_one(value: &mut Value, number: usize, damage: &Value) {
    let members: Vec<&mut Value> = match value {
        Value::Object(members) => members.values_mut().collect(),
        Value::Array(members) => members.iter_mut().collect(),
        _ => Vec::new(),
    };
    let count = members.len();
    let Some(member) = members.into_iter().nth(number.checked_rem(count).unwrap_or_default()) else {
        *value = damage.clone();
        return;
    };
    if number.is_multiple_of(3) { *member = damage.clone() } else { damage_one(member, number / 2, damage) }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => any::<String>().prop_map(Event::Heard),
        3 => opening().prop_map(Event::Heard),
        8 => envelope().prop_map(|line| Event::Heard(line.to_string())),
        2 => prop_oneof![Just(Answer::First), Just(Answer::Words), Just(Answer::Nobody)].prop_map(Event::Answered),
        1 => Just(Event::Interrupted),
    ]
}

/// Responses that bring a state machine to its turn.
fn opening() -> impl Strategy<Value = String> {
    (1..6_u64).prop_map(|id| {
        let result = json!({"protocolVersion": 1, "sessionId": "s", "models": {}, "thread": {"id": "s"}, "turn": {"id": "t"},
            "agentCapabilities": {"loadSession": true}, "agentInfo": {"name": "gemini-cli"}});
        json!({"id": id, "result": result}).to_string()
    })
}

/// Lines of known shapes with anything inside.
fn envelope() -> impl Strategy<Value = Value> {
    let methods = prop::sample::select(vec![
        "session/request_permission",
        "fs/read_text_file",
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/permissions/requestApproval",
        "item/tool/requestUserInput",
        "item/started",
        "item/completed",
        "item/agentMessage/delta",
        "thread/tokenUsage/updated",
        "turn/completed",
        "error",
        "turn/plan/updated",
    ]);
    let updates = prop::sample::select(vec![
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "usage_update",
        "session_info_update",
        "available_commands_update",
        "user_message_chunk",
    ]);
    let types =
        prop::sample::select(vec!["system", "assistant", "user", "stream_event", "result", "control_cancel_request"]);
    prop_oneof![
        (methods, value(), value())
            .prop_map(|(method, id, params)| json!({"id": id, "method": method, "params": params})),
        (updates, object()).prop_map(|(kind, mut update)| {
            update["sessionUpdate"] = json!(kind);
            json!({"method": "session/update", "params": {"update": update}})
        }),
        (0..6_u64, value()).prop_map(|(id, result)| json!({"id": id, "result": result})),
        (0..6_u64, value()).prop_map(|(id, error)| json!({"id": id, "error": error})),
        (types, object()).prop_map(|(kind, mut line)| {
            line["type"] = json!(kind);
            line
        }),
        (value(), prop::sample::select(vec!["Bash", "AskUserQuestion"]), value()).prop_map(|(id, tool, input)| {
            json!({"type": "control_request", "request_id": id, "request":
                {"subtype": "can_use_tool", "tool_name": tool, "input": input, "permission_suggestions": [input]}})
        }),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    proptest::collection::vec((name(), value()), 0..6).prop_map(|members| members.into_iter().collect())
}

/// JSON with member names that the protocols use.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
        prop::sample::select(vec!["completed", "failed", "text", "tool_use", "commandExecution", "s", "t", "end_turn"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name(), inner), 0..5).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "id",
        "type",
        "status",
        "content",
        "text",
        "toolCallId",
        "toolCall",
        "rawInput",
        "rawOutput",
        "options",
        "optionId",
        "kind",
        "questions",
        "question",
        "label",
        "item",
        "itemId",
        "turn",
        "tokenUsage",
        "total",
        "last",
        "inputTokens",
        "outputTokens",
        "usage",
        "message",
        "error",
        "data",
        "_meta",
        "entries",
        "availableDecisions",
        "permissions",
        "changes",
        "path",
        "delta",
        "event",
        "subtype",
        "stopReason",
        "cost",
        "amount",
        "threadId",
        "turnId",
        "sessionId",
    ])
    .prop_map(str::to_owned)
}
