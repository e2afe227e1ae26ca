//! Streams that break, stop, repeat, swap and are spelled oddly.

use std::io::ErrorKind;
use std::time::Duration;

use sabir_testkit::remote::{
    Cut, Death, DeathWhen, Ending, ErrorFrame, EventIds, Faults, HugeFrame, LineEnd, Operation, Refusal, RemoteAgent,
    RemoteProtocol, RemoteState, Silence, SseQuirks, StreamDrop, StreamErrors, Swap, TasksAfterDeath, Times,
};
use sabir_testkit::sse;
use serde_json::json;

use crate::calls::{Caller, LIMIT, code, digest};

const V1: RemoteProtocol = RemoteProtocol::V1JsonRpc;

fn agent_with(faults: Faults) -> (RemoteAgent, Caller) {
    let agent = RemoteAgent::builder(V1).with_faults(faults).start();
    let caller = Caller::of(&agent, V1);
    (agent, caller)
}

/// The whole frames of a stream, and the error with which it ends.
fn read(caller: &Caller, text: &str) -> (Vec<String>, Option<ErrorKind>) {
    let mut events = caller.stream(Operation::Stream, &caller.message(text));
    let mut frames = Vec::new();
    loop {
        match events.next_frame() {
            Ok(Some(frame)) => frames.push(digest(&frame.payload())),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error.kind())),
        }
    }
}

#[test]
fn a_stream_breaks_off_in_every_way() {
    let plain = StreamDrop::after(2, Ending::Complete);
    for (drop, expected) in [
        (plain, None),
        (StreamDrop { how: Ending::Close, ..plain }, Some(ErrorKind::UnexpectedEof)),
        (StreamDrop { how: Ending::Reset, ..plain }, Some(ErrorKind::ConnectionReset)),
        (StreamDrop { cut: Cut::InFrame, ..plain }, None),
        (StreamDrop { cut: Cut::InFrame, how: Ending::Close, ..plain }, Some(ErrorKind::UnexpectedEof)),
        (StreamDrop { cut: Cut::InFrame, how: Ending::Reset, ..plain }, Some(ErrorKind::ConnectionReset)),
        (StreamDrop { cut: Cut::InCharacter, how: Ending::Close, ..plain }, Some(ErrorKind::UnexpectedEof)),
    ] {
        let (agent, caller) = agent_with(Faults { drop_stream: Some(drop), ..Faults::default() });
        let (frames, ending) = read(&caller, "stream 3 0 Grüße");
        assert_eq!(
            (frames, ending),
            (vec!["task submitted".to_owned(), "status working".to_owned()], expected),
            "{drop:?}"
        );
        let id = agent.tasks().all()[0].id.clone();
        assert!(agent.wait_for_task(&id, LIMIT, |task| task.state == RemoteState::Completed), "the work goes on");
        assert_eq!(read(&caller, "stream 1 0").1, None, "it happens once");
    }
}

#[test]
fn a_stream_is_cut_in_the_middle_of_a_character() {
    let drop = StreamDrop { cut: Cut::InCharacter, ..StreamDrop::after(0, Ending::Complete) };
    let (_agent, caller) = agent_with(Faults { drop_stream: Some(drop), ..Faults::default() });
    let body = caller.raw_stream("stream 1 0 Grüße").unwrap();
    let error = std::str::from_utf8(&body).unwrap_err();
    assert_eq!((error.valid_up_to(), error.error_len()), (body.len() - 1, None), "one byte of two is there");
}

#[test]
fn a_stream_can_break_off_every_time() {
    let drop = StreamDrop { times: Times::Always, ..StreamDrop::after(1, Ending::Close) };
    let (_agent, caller) = agent_with(Faults { drop_stream: Some(drop), ..Faults::default() });
    for _ in 0..3 {
        assert_eq!(read(&caller, "hi").0.len(), 1);
    }
}

#[test]
fn a_stream_goes_silent_and_stays_open() {
    let (agent, caller) =
        agent_with(Faults { silence: Some(Silence { after: 1, times: Times::ONCE }), ..Faults::default() });
    let mut events = caller.stream(Operation::Stream, &caller.message("hi"));
    assert!(events.next_frame().unwrap().is_some());
    let id = agent.tasks().all()[0].id.clone();
    assert!(agent.wait_for_task(&id, LIMIT, |task| task.state == RemoteState::Completed));
    events.give_up_after(Duration::from_millis(100));
    assert_eq!(events.next_frame().unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(agent.open_connections(), 1);
}

#[test]
fn frames_are_repeated_swapped_padded_and_replaced_by_errors() {
    let plain = Faults::default();
    for (faults, expected) in [
        (Faults { repeat_frames: 1, ..plain.clone() }, "tt ss aa ss"),
        (Faults { swap_frames: Some(Swap::At(1)), ..plain.clone() }, "t a s s"),
        (Faults { swap_frames: Some(Swap::EveryPair), ..plain.clone() }, "s t s a"),
        // A frame that nothing follows is sent all the same.
        (Faults { swap_frames: Some(Swap::At(3)), ..plain.clone() }, "t s a s"),
        (
            Faults { error_frame: Some(ErrorFrame { after: 2, code: -32000, times: Times::Always }), ..plain.clone() },
            "t s e",
        ),
        (Faults { huge_frame: Some(HugeFrame { at: 1, bytes: 300_000 }), ..plain.clone() }, "t s a s"),
    ] {
        let (_agent, caller) = agent_with(faults.clone());
        let frames = caller.stream(Operation::Stream, &caller.message("hi")).rest().unwrap();
        let letters: String = frames.iter().map(|frame| digest(&frame.payload()).chars().next().unwrap()).collect();
        assert_eq!(letters, expected.replace(' ', ""), "{faults:?}");
        assert_eq!(frames.iter().any(|frame| frame.data.len() >= 300_000), faults.huge_frame.is_some());
        if faults.error_frame.is_some() {
            assert_eq!(frames[2].json()["error"]["code"], -32000);
        }
    }
}

#[test]
fn frames_are_spelled_in_every_form_of_the_format() {
    let plain = SseQuirks::default();
    for (quirks, end, start) in [
        (plain, "\n\n", "data: {"),
        (SseQuirks { line_end: LineEnd::CrLf, ..plain }, "\r\n\r\n", "data: {"),
        (SseQuirks { line_end: LineEnd::Cr, ..plain }, "\r\r", "data: {"),
        (SseQuirks { comments: true, ..plain }, "\n\n", ": a comment\ndata: {"),
        (SseQuirks { event_lines: true, ..plain }, "\n\n", "event: message\ndata: {"),
        (SseQuirks { retry_lines: true, ..plain }, "\n\n", "retry: 100\ndata: {"),
        (SseQuirks { no_space: true, ..plain }, "\n\n", "data:{"),
        (SseQuirks { multi_line_data: true, ..plain }, "\n\n", "data: {\ndata: "),
        (SseQuirks { byte_order_mark: true, ..plain }, "\n\n", "\u{feff}data: {"),
        (SseQuirks { split: Some(3), ..plain }, "\n\n", "data: {"),
    ] {
        let (_agent, caller) = agent_with(Faults { sse: quirks, ..Faults::default() });
        let body = String::from_utf8(caller.raw_stream("hi").unwrap()).unwrap();
        assert!(body.starts_with(start), "{quirks:?}: {body:?}");
        assert!(body.ends_with(end), "{quirks:?}: {body:?}");
        assert_eq!(body.matches(end).count(), 4, "{quirks:?}: {body:?}");
    }
}

#[test]
fn pieces_of_frames_arrive_by_themselves() {
    let sse = SseQuirks { split: Some(5), ..SseQuirks::default() };
    let (_agent, caller) = agent_with(Faults { sse, ..Faults::default() });
    let (method, path, body) = caller.request(Operation::Stream, &caller.message("hi"));
    let mut http = sabir_testkit::http::Http::connect(caller.address).unwrap();
    http.send(&method, &path, &caller.headers(), body.as_bytes()).unwrap();
    http.receive_head().unwrap();
    let sizes: Vec<usize> = (0..4).map(|_| http.receive_chunk().unwrap().unwrap().len()).collect();
    assert_eq!(sizes, [5, 5, 5, 5]);
}

#[test]
fn frames_have_ids_and_streams_resume_after_them_if_that_is_offered() {
    for (ids, shown, after_2) in [
        (EventIds::Absent, "", "task working"),
        (EventIds::Numbers, "1 2 3", "task working"),
        (EventIds::Resumable, "1 2 3", "artifact chunk 1"),
    ] {
        let (agent, caller) = agent_with(Faults { event_ids: ids, ..Faults::default() });
        let mut events = caller.stream(Operation::Stream, &caller.message("steps 2"));
        let mut numbers = Vec::new();
        for _ in 0..2 {
            numbers.push(events.next_frame().unwrap().unwrap().id);
        }
        let id = agent.tasks().all()[0].id.clone();
        agent.release(&id);
        numbers.push(events.next_frame().unwrap().unwrap().id);
        let spelled: Vec<String> = numbers.into_iter().flatten().map(|number| number.to_string()).collect();
        assert_eq!(spelled.join(" "), shown, "{ids:?}");

        let (method, path, body) = caller.request(Operation::Subscribe, &json!({ "id": id }));
        let headers = [("A2A-Version", "1.0"), ("Last-Event-ID", "2")];
        let mut resumed = sse::open(caller.address, &method, &path, &headers, body.as_bytes()).unwrap().unwrap();
        let first = digest(&resumed.next_frame().unwrap().unwrap().payload());
        assert!(first.starts_with(after_2), "{ids:?}: {first}");
    }
    let (_agent, caller) = agent_with(Faults { event_ids: EventIds::Opaque, ..Faults::default() });
    let body = String::from_utf8(caller.raw_stream("hi").unwrap()).unwrap();
    assert!(body.starts_with("id: event-"), "{body}");
}

#[test]
fn streams_and_subscriptions_can_be_missing() {
    for (protocol, refusal, as_error, expected) in [
        (V1, Refusal::UnsupportedOperation, StreamErrors::AsVersion, "response -32004"),
        (V1, Refusal::MethodNotFound, StreamErrors::AsVersion, "response -32601"),
        (V1, Refusal::UnsupportedOperation, StreamErrors::Frame, "frame -32004"),
        (RemoteProtocol::V03JsonRpc, Refusal::UnsupportedOperation, StreamErrors::AsVersion, "frame -32004"),
        (RemoteProtocol::V03JsonRpc, Refusal::MethodNotFound, StreamErrors::Response, "response -32601"),
        (RemoteProtocol::V1HttpJson, Refusal::UnsupportedOperation, StreamErrors::AsVersion, "response 400"),
    ] {
        let agent = RemoteAgent::start(protocol);
        let caller = Caller::of(&agent, protocol);
        let id = caller.begin("ask why?");
        for is_whole in [true, false] {
            agent.set_faults(Faults {
                no_streaming: is_whole.then_some(refusal),
                no_subscribe: Some(refusal),
                stream_errors: as_error,
                ..Faults::default()
            });
            let (operation, params) = if is_whole {
                (Operation::Stream, caller.message("hi"))
            } else {
                (Operation::Subscribe, json!({ "id": id }))
            };
            let told = match caller.try_stream(operation, &params).unwrap() {
                Ok(mut events) => format!("frame {}", events.next_frame().unwrap().unwrap().json()["error"]["code"]),
                Err(reply) => format!("response {}", code(&reply)),
            };
            assert_eq!(told, expected, "{protocol:?} {operation:?}");
        }
    }
}

#[test]
fn a_server_dies_in_the_middle_of_a_stream_and_comes_back() {
    for tasks in [TasksAfterDeath::Kept, TasksAfterDeath::Lost] {
        let death = Death { when: DeathWhen::AfterFrames(2), back_after: Some(Duration::from_millis(20)), tasks };
        let (agent, caller) = agent_with(Faults { death: Some(death), ..Faults::default() });
        let (frames, ending) = read(&caller, "hold bye");
        assert_eq!((frames.len(), ending), (2, Some(ErrorKind::ConnectionReset)), "{tasks:?}");
        let reply = caller.call_when_it_is_back(Operation::List, &json!({}));
        let expected = if tasks == TasksAfterDeath::Kept { 1 } else { 0 };
        assert_eq!(reply.json()["result"]["totalSize"], expected, "{tasks:?}");
        assert_eq!(agent.tasks().all().len(), expected);
    }
}
