//! 1.0 as gRPC carries it: the messages we send, what we look at in those that come, and the status behind them.
//!
//! Numbers of fields are those of `lf.a2a.v1`. A reply of `SendMessage`, an event of a stream and a plain task are told
//! apart by what their fields hold, so that one function reads all three.

use http::HeaderMap;

use crate::check::{Chunk, Wrong};
use crate::protobuf::{self, Message};

pub const SERVICE: &str = "/lf.a2a.v1.A2AService";
pub const CONTENT_TYPE: &str = "application/grpc";
pub const COMPLETED: u64 = 3;
pub const CANCELED: u64 = 5;
const ROLE_USER: u64 = 1;
/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// `SendMessageRequest`
pub fn send(tenant: &str, message_id: &str, text: &str) -> Message {
    let part = Message::default().text(1, text);
    let message = Message::default().text(1, message_id).number(4, ROLE_USER).message(5, part);
    Message::default().text(1, tenant).message(2, message)
}

/// `GetTaskRequest`, `CancelTaskRequest` and `SubscribeToTaskRequest`
pub fn by_id(tenant: &str, task: &str) -> Message {
    Message::default().text(1, tenant).text(2, task)
}

pub fn with_prefix(message: Message) -> Vec<u8> {
    let message = message.into_bytes();
    let length = u32::try_from(message.len()).expect("our requests are short");
    [&[0][..], &length.to_be_bytes(), &message].concat()
}

/// The message that begins here and where the next one begins; none when it is not complete yet.
pub fn message(buffer: &[u8], from: usize) -> Result<Option<(&[u8], usize)>, Wrong> {
    let Some((prefix, rest)) = buffer[from..].split_first_chunk::<PREFIX>() else { return Ok(None) };
    let [flag, length @ ..] = *prefix;
    if flag != 0 {
        return Err(Wrong::event("a message is compressed, or has no prefix", &buffer[from..]));
    }
    let length = u32::from_be_bytes(length) as usize;
    Ok(rest.get(..length).map(|message| (message, from + PREFIX + length)))
}

/// Whether these headers or trailers say that the call went well; none where they have no status.
pub fn status(headers: &HeaderMap) -> Option<Result<(), Wrong>> {
    let text = |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let status = text("grpc-status")?;
    let message = text("grpc-message").unwrap_or_default();
    Some(if status == "0" { Ok(()) } else { Err(Wrong::Reply(format!("gRPC status {status}: {message}"))) })
}

/// The state of the task that a reply shows, or to which an event changes it.
pub fn state(message: &[u8]) -> Option<u64> {
    // A task by itself, a `TaskStatusUpdateEvent`, a task in a reply.
    let paths: [&[u64]; 3] = [&[3, 1], &[3, 3, 1], &[1, 3, 1]];
    paths.into_iter().find_map(|path| protobuf::number(message, path))
}

/// The task of a reply or of an event.
pub fn task_id(message: &[u8]) -> Option<&str> {
    let paths: [&[u64]; 3] = [&[1, 1], &[3, 1], &[4, 1]];
    let id = paths.into_iter().find_map(|path| protobuf::bytes(message, path))?;
    std::str::from_utf8(id).ok()
}

/// The chunk that an event brings.
pub fn chunk(message: &[u8]) -> Option<Chunk> {
    let text = protobuf::bytes(message, &[4, 3, 4, 1])?.strip_prefix(b"chunk ")?;
    Some(Chunk {
        number: text.strip_suffix(b"\n").and_then(crate::http::number),
        is_appended: protobuf::number(message, &[4, 4]) == Some(1),
        is_last: protobuf::number(message, &[4, 5]) == Some(1),
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_send_in_bytes() {
        for (tenant, expected) in [
            ("", &b"\0\0\0\0\x0d\x12\x0b\x0a\x01m\x20\x01\x2a\x04\x0a\x02hi"[..]),
            ("t", b"\0\0\0\0\x10\x0a\x01t\x12\x0b\x0a\x01m\x20\x01\x2a\x04\x0a\x02hi"),
        ] {
            assert_eq!(with_prefix(send(tenant, "m", "hi")), expected);
        }
        assert_eq!(by_id("", "abc").into_bytes(), b"\x12\x03abc");
    }

    #[test]
    fn messages_are_taken_when_complete() {
        let text = b"\0\0\0\0\x02hi\0\0\0\0\0\0\0\0\0\x01x";
        for cut in 0..=text.len() {
            let (mut at, mut seen) = (0, vec![]);
            for buffer in [&text[..cut], text] {
                while let Some((message, next)) = message(buffer, at).unwrap() {
                    seen.push(message.to_vec());
                    at = next;
                }
            }
            assert_eq!(seen, [b"hi".to_vec(), vec![], b"x".to_vec()], "cut at {cut}");
        }
        assert!(message(b"\x01\0\0\0\0", 0).is_err());
        assert!(message(b"{\"error\":1}", 0).is_err());
    }

    #[test]
    fn what_replies_and_events_say() {
        let status = |state| Message::default().number(1, state).message(3, Message::default().number(1, 3));
        let task = |state| Message::default().text(1, "t").text(2, "c").message(3, status(state));
        let update = |state| Message::default().text(1, "t").text(2, "c").message(3, status(state));
        let inside = |field, message| Message::default().message(field, message);
        let artifact = |text| Message::default().text(1, "a").message(4, Message::default().text(1, text));
        let piece = |text| Message::default().text(1, "t").message(3, artifact(text));
        for (message, expected) in [
            (task(COMPLETED), "none 3 none"),
            (inside(1, task(COMPLETED)), "t 3 none"),
            (inside(1, task(1)), "t 1 none"),
            (inside(3, update(CANCELED)), "t 5 none"),
            (inside(4, piece("chunk 1\n")), "t none 1"),
            (inside(4, piece("chunk 12\n").number(4, 1)), "t none 12 appended"),
            (inside(4, piece("chunk 12\n").number(4, 1).number(5, 1)), "t none 12 appended last"),
            (inside(4, piece("chunk 12").number(4, 0)), "t none ?"),
            (inside(4, piece("echo")), "t none none"),
            (Message::default(), "none none none"),
        ] {
            let bytes = message.into_bytes();
            let chunk = chunk(&bytes).map_or("none".to_owned(), |chunk| {
                let number = chunk.number.map_or("?".to_owned(), |number| number.to_string());
                let [appended, last] = [(chunk.is_appended, " appended"), (chunk.is_last, " last")]
                    .map(|(is_so, word)| if is_so { word } else { "" });
                format!("{number}{appended}{last}")
            });
            // A task by itself has a text where the others have a message; its id is not asked for.
            let id = if state(&bytes).is_some() && protobuf::number(&bytes, &[3, 1]).is_some() {
                None
            } else {
                task_id(&bytes)
            };
            let state = state(&bytes).map_or("none".to_owned(), |state| state.to_string());
            assert_eq!(format!("{} {state} {chunk}", id.unwrap_or("none")), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_status_in_headers_or_trailers() {
        for (code, expected) in [(None, "none"), (Some("0"), "fine"), (Some("5"), "gRPC status 5: no such task")] {
            let mut headers = HeaderMap::new();
            if let Some(code) = code {
                headers.insert("grpc-status", HeaderValue::from_static(code));
                headers.insert("grpc-message", HeaderValue::from_static("no such task"));
            }
            let said = match status(&headers) {
                None => "none".to_owned(),
                Some(Ok(())) => "fine".to_owned(),
                Some(Err(wrong)) => wrong.to_string(),
            };
            assert_eq!(said, expected);
        }
    }
}
