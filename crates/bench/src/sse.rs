//! Server-sent events, taken from a buffer that grows at its end.
//!
//! A frame is handed out where it lies. Only `id` and the one `data` line that A2A has are looked at; comments and
//! other fields are skipped.

use memchr::memchr;

use crate::http::number;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame<'a> {
    pub id: Option<u64>,
    pub data: &'a [u8],
}

/// The first frame of the buffer that has data, and where the next one begins; none when it is not complete yet.
/// Complete frames without data (keep-alive comments) are passed over.
pub fn frame(buffer: &[u8], from: usize) -> Option<(Frame<'_>, usize)> {
    let mut id = None;
    let mut data: Option<&[u8]> = None;
    let mut at = from;
    loop {
        let end = at + memchr(b'\n', &buffer[at..])?;
        let line = buffer[at..end].strip_suffix(b"\r").unwrap_or(&buffer[at..end]);
        at = end + 1;
        if line.is_empty() {
            match data {
                Some(data) => return Some((Frame { id, data }, at)),
                None => id = None,
            }
        } else if let Some(value) = field(line, b"data:") {
            data = Some(value);
        } else if let Some(value) = field(line, b"id:") {
            id = number(value);
        }
    }
}

fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    line.strip_prefix(name).map(|value| value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_when_complete() {
        for (text, expected) in [
            ("id: 1\ndata: {}\n\n", "1 {};"),
            ("id: 1\r\ndata: {}\r\n\r\ndata:x\n\n", "1 {};none x;"),
            (": quiet\n\nid:7\ndata: a\n\n: quiet\n\n", "7 a;"),
            ("event: x\nid: 2\ndata: a: b\n\nid: 3\ndata: half\n", "2 a: b;"),
        ] {
            for cut in 0..=text.len() {
                let mut buffer = text.as_bytes()[..cut].to_vec();
                let mut at = 0;
                let mut said = take(&buffer, &mut at);
                buffer.extend_from_slice(&text.as_bytes()[cut..]);
                said += &take(&buffer, &mut at);
                assert_eq!(said, expected, "{text:?} cut at {cut}");
            }
        }
    }

    fn take(buffer: &[u8], at: &mut usize) -> String {
        let mut said = String::new();
        while let Some((frame, next)) = frame(buffer, *at) {
            let id = frame.id.map_or("none".to_owned(), |id| id.to_string());
            said += &format!("{id} {};", String::from_utf8_lossy(frame.data));
            *at = next;
        }
        said
    }
}
