//! `--raw`: what goes over the wire, on stderr. The observer never sees credentials.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use sabir_model::Base64;
use sabir_outbound::remote::{Observer, WireEvent};

use crate::terminal_text::visible_lines;

pub fn observer() -> Observer {
    let is_terminal = io::stderr().is_terminal();
    Arc::new(move |event| {
        let text = text_of(&event);
        let text = if is_terminal { visible_lines(&text) } else { text };
        // Whoever closes stderr has seen enough.
        let _ = io::stderr().write_all(text.as_bytes());
    })
}

/// `>` goes out, `<` comes in.
fn text_of(event: &WireEvent<'_>) -> String {
    let body = |mark: &str, bytes: &[u8]| {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => text.to_owned(),
            // Messages of gRPC are protobuf.
            _ => format!("({} bytes) {}", bytes.len(), Base64::encode(bytes).as_str()),
        };
        text.lines().map(|line| format!("{mark} {line}\n")).collect::<String>()
    };
    match event {
        WireEvent::Request { verb, url, headers, body: bytes } => {
            let headers: String = headers.iter().map(|(name, value)| format!("> {name}: {value}\n")).collect();
            format!("> {verb} {url}\n{headers}{}", body(">", bytes))
        }
        WireEvent::Response { status, body: bytes } => format!("< {status}\n{}", body("<", bytes)),
        WireEvent::Frame { id, data } => {
            let id = id.map(|id| format!("< id: {id}\n")).unwrap_or_default();
            format!("{id}{}", body("< data:", data))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_says_which_way_it_goes() {
        let headers = [("a2a-version", "1.0".to_owned())];
        for (event, expected) in [
            (
                WireEvent::Request { verb: "POST", url: "http://a/", headers: &headers, body: b"{}" },
                "> POST http://a/\n> a2a-version: 1.0\n> {}\n",
            ),
            (WireEvent::Response { status: 200, body: b"a\nb" }, "< 200\n< a\n< b\n"),
            (WireEvent::Frame { id: Some("3"), data: b"{}" }, "< id: 3\n< data: {}\n"),
            (WireEvent::Frame { id: None, data: b"" }, ""),
            (WireEvent::Response { status: 200, body: b"\0\0\0\0\x01a" }, "< 200\n< (6 bytes) AAAAAAFh\n"),
        ] {
            assert_eq!(text_of(&event), expected);
        }
    }
}
