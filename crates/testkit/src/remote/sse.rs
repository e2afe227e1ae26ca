//! The bytes of one server-sent event, in every form that the format allows.

use serde_json::Value;

use super::faults::SseQuirks;

pub(super) const BYTE_ORDER_MARK: &[u8] = &[0xEF, 0xBB, 0xBF];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Result,
    Error,
}

pub(super) fn frame(quirks: &SseQuirks, id: Option<&str>, content: Content, data: &str) -> Vec<u8> {
    let (end, space) = (quirks.line_end.text(), if quirks.no_space { "" } else { " " });
    let mut text = String::new();
    let mut field = |name: &str, value: &str| text.push_str(&format!("{name}:{space}{value}{end}"));
    if quirks.comments {
        field("", "a comment");
    }
    if let Some(id) = id {
        field("id", id);
    }
    match content {
        Content::Result if quirks.event_lines => field("event", "message"),
        Content::Error if quirks.event_lines => field("event", "error"),
        Content::Result | Content::Error => {}
    }
    if quirks.retry_lines {
        field("retry", "100");
    }
    let spread = if quirks.multi_line_data { spread(data) } else { data.to_owned() };
    spread.lines().for_each(|line| field("data", line));
    text.push_str(end);
    text.into_bytes()
}

/// The same JSON over several lines.
fn spread(data: &str) -> String {
    let json: Result<Value, _> = serde_json::from_str(data);
    json.map_or_else(|_| data.to_owned(), |json| format!("{json:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::faults::LineEnd;

    #[test]
    fn a_frame_in_every_form() {
        let plain = SseQuirks::default();
        for (quirks, expected) in [
            (plain, "id: 7\ndata: {\"a\":1}\n\n"),
            (SseQuirks { line_end: LineEnd::CrLf, ..plain }, "id: 7\r\ndata: {\"a\":1}\r\n\r\n"),
            (SseQuirks { line_end: LineEnd::Cr, ..plain }, "id: 7\rdata: {\"a\":1}\r\r"),
            (SseQuirks { comments: true, ..plain }, ": a comment\nid: 7\ndata: {\"a\":1}\n\n"),
            (SseQuirks { event_lines: true, ..plain }, "id: 7\nevent: message\ndata: {\"a\":1}\n\n"),
            (SseQuirks { retry_lines: true, ..plain }, "id: 7\nretry: 100\ndata: {\"a\":1}\n\n"),
            (SseQuirks { no_space: true, ..plain }, "id:7\ndata:{\"a\":1}\n\n"),
            (SseQuirks { multi_line_data: true, ..plain }, "id: 7\ndata: {\ndata:   \"a\": 1\ndata: }\n\n"),
        ] {
            let bytes = frame(&quirks, Some("7"), Content::Result, "{\"a\":1}");
            assert_eq!(String::from_utf8(bytes).unwrap(), expected, "{quirks:?}");
        }
    }
}
