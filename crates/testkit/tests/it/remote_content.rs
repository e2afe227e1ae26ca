//! Events and answers that are not what they should be.

use sabir_testkit::remote::{At, FAULT_NAMES, Faults, Malformation, Malformed, Operation, RemoteAgent, RemoteProtocol};
use serde_json::Value;

use crate::calls::{Caller, digest};

/// A malformation, where to look in a frame with an artifact of JSON-RPC 0.3, and what is there: nothing if it is empty.
fn malformations() -> Vec<(Malformation, &'static str, &'static str)> {
    vec![
        (Malformation::WrongRpcId, "/id", "\"another-id\""),
        (Malformation::NoResult, "/result", ""),
        (Malformation::ErrorNull, "/error", "null"),
        (Malformation::MissingIds, "/result/taskId", ""),
        (Malformation::MissingIds, "/result/artifact/artifactId", ""),
        (Malformation::NullMembers, "/result/metadata", "null"),
        (Malformation::EmptyParts, "/result/artifact/parts", "[]"),
        (Malformation::UnknownPart, "/result/artifact/parts/0/kind", "\"hologram\""),
        (Malformation::UnknownPart, "/result/artifact/parts/1/text", "\"echo: hi\""),
        (Malformation::UnknownEvent, "/result/kind", "\"progress-update\""),
        (Malformation::ForeignTask("other".to_owned()), "/result/taskId", "\"other\""),
    ]
}

#[test]
fn a_frame_is_malformed_in_every_way() {
    let protocol = RemoteProtocol::V03JsonRpc;
    for (how, pointer, expected) in malformations() {
        let malformed = vec![Malformed::at(At::Frame(2), how.clone())];
        let agent = RemoteAgent::builder(protocol).with_faults(Faults { malformed, ..Faults::default() }).start();
        let caller = Caller::of(&agent, protocol);
        let frames = caller.stream(Operation::Stream, &caller.message("hi")).rest().unwrap();
        let found = frames[2].json().pointer(pointer).map(Value::to_string).unwrap_or_default();
        assert_eq!(found, expected, "{how:?}");
        let others: Vec<String> = [0, 1, 3].map(|number: usize| digest(&frames[number].payload())).into();
        assert_eq!(others, ["task submitted", "status working", "status completed"], "{how:?}");
    }
}

#[test]
fn statuses_are_malformed_in_every_way() {
    for (how, pointer, expected) in [
        (Malformation::State("unknown".to_owned()), "/result/task/status/state", "\"unknown\""),
        (Malformation::StatusIsText, "/result/task/status", "\"working\""),
        (Malformation::NullMembers, "/result/task/status/message", "null"),
        (Malformation::ForeignTask("other".to_owned()), "/result/task/id", "\"other\""),
        (Malformation::UnknownEvent, "/result/progressUpdate/progress", "50"),
        (Malformation::MissingIds, "/result/task/id", ""),
    ] {
        let malformed = vec![Malformed::at(At::Answers, how.clone())];
        let agent = RemoteAgent::start(RemoteProtocol::V1JsonRpc);
        agent.set_faults(Faults { malformed, ..Faults::default() });
        let caller = Caller::of(&agent, RemoteProtocol::V1JsonRpc);
        let sent = caller.call(Operation::Send, &caller.message("hi")).json();
        assert_eq!(sent.pointer(pointer).map(Value::to_string).unwrap_or_default(), expected, "{how:?}");
        assert_eq!(caller.frames(Operation::Stream, &caller.message("hi")).len(), 4, "streams are left alone");
    }
}

#[test]
fn a_task_changes_its_id_in_mid_stream() {
    for protocol in RemoteProtocol::ALL {
        let foreign = Malformation::ForeignTask("other".to_owned());
        let malformed = vec![Malformed::at(At::FramesFrom(2), foreign)];
        let agent = RemoteAgent::builder(protocol).with_faults(Faults { malformed, ..Faults::default() }).start();
        let caller = Caller::of(&agent, protocol);
        let frames = caller.stream(Operation::Stream, &caller.message("hi")).rest().unwrap();
        let own = format!("\"{}\"", agent.tasks().all()[0].id);
        let named: Vec<bool> = frames.iter().map(|frame| frame.data.contains(&own)).collect();
        assert_eq!(named, [true, true, false, false], "{protocol:?}");
        assert!(frames[3].data.contains("\"other\""), "{protocol:?}");
    }
}

#[test]
fn times_have_no_zone_and_json_breaks_off() {
    for protocol in RemoteProtocol::ALL {
        let agent = RemoteAgent::start(protocol);
        let caller = Caller::of(&agent, protocol);
        let send = || caller.call(Operation::Send, &caller.message("ask why?")).text();
        let time = |text: &str| {
            let (_, rest) = text.split_once("\"timestamp\":\"").expect("there is a time");
            rest.split('"').next().unwrap_or_default().to_owned()
        };
        assert!(time(&send()).ends_with('Z'), "{protocol:?}");
        let everything = |how| Faults { malformed: vec![Malformed::at(At::Everything, how)], ..Faults::default() };
        agent.set_faults(everything(Malformation::TimesWithoutZone));
        assert!(!time(&send()).contains('Z'), "{protocol:?}");
        agent.set_faults(everything(Malformation::NotJson));
        let broken: Result<Value, _> = serde_json::from_str(&send());
        assert!(broken.is_err_and(|error| error.is_eof()), "{protocol:?}");
    }
}

#[test]
fn every_fault_has_a_name() {
    for (name, values, _) in FAULT_NAMES {
        let value = match *values {
            "" => None,
            "FRAMES" | "TIMES" | "BYTES" | "MS" | "CODE" => Some("3"),
            "KIND" => Some("not-json"),
            choice => choice.split('|').next(),
        };
        let value = if *name == "swap-frames" { Some("all") } else { value };
        let text = value.map_or((*name).to_owned(), |value| format!("{name}={value}"));
        let mut faults = Faults::default();
        assert_eq!(faults.add_named(&text), Ok(()), "{text}");
        // What is the default, changes nothing.
        let is_default = ["event-ids=absent", "line-end=lf"].contains(&text.as_str());
        assert_eq!(faults == Faults::default(), is_default, "{text}");
    }
    assert!(Faults::default().add_named("nonsense").unwrap_err().contains("no fault"));
    assert!(Faults::default().add_named("drop-how=gently").unwrap_err().contains("complete|close|reset"));
}

#[test]
fn odd_ids_are_whole_in_every_protocol() {
    for protocol in RemoteProtocol::ALL {
        let agent = RemoteAgent::builder(protocol).with_faults(Faults { odd_ids: true, ..Faults::default() }).start();
        Caller::of(&agent, protocol).result(Operation::Send, &Caller::of(&agent, protocol).message("hi"));
        let task = agent.tasks().all().remove(0);
        // In 0.1 the client names its tasks, and artifacts have no ids on the wire.
        let is_client_named = protocol == RemoteProtocol::V01JsonRpc;
        for (id, is_odd) in
            [(&task.id, !is_client_named), (&task.context_id, !is_client_named), (&task.artifacts[0].id, true)]
        {
            assert_eq!(id.contains("?d #1%2F"), is_odd, "{protocol:?}: {id}");
        }
    }
}
