//! Server-sent events, read as the servers out there write them.
//!
//! Lines end in LF, CRLF or CR, comments and unknown fields are passed over, an event may be several `data` lines, and
//! bytes arrive cut at any place, in the middle of a character too. What is pending when the stream ends is an event as
//! well; whether it is complete is for its reader to say. An event that is larger than the limit is an error, so no server can
//! make us keep without end.

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerEvent {
    /// The last id that the stream has named, with this event or before it. An empty one counts as none.
    pub id: Option<String>,
    /// `event`, if it is there.
    pub name: Option<String>,
    /// The `data` lines, with LF between them.
    pub data: Vec<u8>,
}

/// The event is larger than the reader may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct EventTooLarge {
    pub limit: usize,
}

/// Turns bytes into events, however the bytes are cut.
#[derive(Debug)]
pub struct EventParser {
    limit: usize,
    line: Vec<u8>,
    /// The last byte was CR, so an LF that comes next belongs to it.
    after_cr: bool,
    is_first_line: bool,
    has_data: bool,
    data: Vec<u8>,
    name: Option<String>,
    id: Option<String>,
    /// `retry`, in milliseconds.
    retry: Option<u64>,
}

/// Longer ids are not worth repeating to the server.
const LONGEST_ID: usize = 1024;

impl EventParser {
    /// `limit` is the most bytes of one event.
    pub fn new(limit: usize) -> Self {
        EventParser {
            limit,
            line: Vec::new(),
            after_cr: false,
            is_first_line: true,
            has_data: false,
            data: Vec::new(),
            name: None,
            id: None,
            retry: None,
        }
    }

    /// How long the server wants its clients to wait before they come back.
    pub fn retry_millis(&self) -> Option<u64> {
        self.retry
    }

    /// Whether the bytes so far end in the middle of an event, or of a comment.
    pub fn is_in_event(&self) -> bool {
        !self.line.is_empty() || self.has_data
    }

    /// Takes the next bytes; complete events go to `events`.
    pub fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<ServerEvent>) -> Result<(), EventTooLarge> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.keep(&bytes[..end])?;
            let is_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_cr {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            self.end_line(events);
        }
        self.keep(bytes)
    }

    /// The stream has ended: what is pending is the last event.
    pub fn finish(&mut self, events: &mut Vec<ServerEvent>) {
        if !self.line.is_empty() {
            self.end_line(events);
        }
        self.end_event(events);
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + self.data.len() + bytes.len() > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<ServerEvent>) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if self.is_first_line {
            self.is_first_line = false;
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            self.end_event(events);
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..])),
            None => (line, &b""[..]),
        };
        let text = || std::str::from_utf8(value).ok().map(str::to_owned);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => self.name = text().filter(|name| !name.is_empty()),
            b"id" if value.len() <= LONGEST_ID && value.iter().all(|byte| (0x20..0x7f).contains(byte)) => {
                self.id = text().filter(|id| !id.is_empty());
            }
            b"retry" => self.retry = text().and_then(|text| text.parse().ok()).or(self.retry),
            // Comments have an empty name; nobody knows the rest.
            _ => {}
        }
    }

    fn end_event(&mut self, events: &mut Vec<ServerEvent>) {
        let name = self.name.take();
        if std::mem::take(&mut self.has_data) {
            events.push(ServerEvent { id: self.id.clone(), name, data: std::mem::take(&mut self.data) });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(stream: &[u8], cut: usize, limit: usize) -> Result<Vec<ServerEvent>, EventTooLarge> {
        let mut parser = EventParser::new(limit);
        let mut events = Vec::new();
        for piece in stream.chunks(cut.max(1)) {
            parser.feed(piece, &mut events)?;
        }
        parser.finish(&mut events);
        Ok(events)
    }

    fn say(events: &[ServerEvent]) -> String {
        let each = events.iter().map(|event| {
            let id = event.id.as_deref().unwrap_or("-");
            let name = event.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
            format!("{id}{name} {:?}", String::from_utf8_lossy(&event.data))
        });
        each.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn streams_of_every_server_are_read_wherever_they_are_cut() {
        for (stream, expected) in [
            ("data: a\n\ndata: b\n\n", r#"- "a", - "b""#),
            ("data: a\r\n\r\ndata: b\r\n\r\n", r#"- "a", - "b""#),
            ("data: a\r\rdata: b\r\r", r#"- "a", - "b""#),
            ("data:a\n\n", r#"- "a""#),
            ("data:  a\n\n", r#"- " a""#),
            ("id: 1\ndata: a\n\ndata: b\n\nid: 3\ndata: c\n\n", r#"1 "a", 1 "b", 3 "c""#),
            ("id: 1\ndata: a\n\nid\ndata: b\n\n", r#"1 "a", - "b""#),
            (": ping\n\ndata: a\n: comment\ndata: b\n\n", r#"- "a\nb""#),
            ("event: error\ndata: x\n\ndata: y\n\n", r#"- error "x", - "y""#),
            ("data: {\ndata:   \"k\": 1\ndata: }\n\n", r#"- "{\n  \"k\": 1\n}""#),
            ("\u{feff}data: a\n\n", r#"- "a""#),
            ("data: a\n\ndata: cut off", r#"- "a", - "cut off""#),
            ("data: é€😀\n\n", r#"- "é€😀""#),
            ("data\n\n", r#"- """#),
            ("retry: 500\n\nunknown: x\nnothing\n\n", ""),
            ("", ""),
        ] {
            for cut in [1, 2, 3, 5, 1000] {
                assert_eq!(say(&parse(stream.as_bytes(), cut, 1000).unwrap()), expected, "{stream:?} by {cut}");
            }
        }
    }

    #[test]
    fn what_is_kept_of_one_event_is_bounded() {
        for stream in ["data: 0123456789\n\n", "data: 01234\ndata: 56789\n\n", "01234567890123456789"] {
            assert_eq!(parse(stream.as_bytes(), 3, 10), Err(EventTooLarge { limit: 10 }), "{stream:?}");
        }
        let many = "data: 0123\n\n".repeat(1000);
        assert_eq!(parse(many.as_bytes(), 7, 12).unwrap().len(), 1000);
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_changes_nothing(stream in "(data: ?[a-z{}\\n]{0,8}|id: ?[0-9]{0,3}|: ?x|event: e|\r|\n|\r\n|é){0,30}", cut in 1usize..20) {
            let whole = parse(stream.as_bytes(), usize::MAX, 10_000);
            prop_assert_eq!(parse(stream.as_bytes(), cut, 10_000), whole);
        }

        #[test]
        fn any_bytes_are_read_or_refused(stream: Vec<u8>, cut in 1usize..20) {
            let _ = parse(&stream, cut, 64);
        }
    }
}
