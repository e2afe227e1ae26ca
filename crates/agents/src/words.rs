//! The words that the demo agent understands.
//!
//! The first word of the text decides, in its exact case. Where a number is missing or is none, the text
//! is plain text.

use std::time::Duration;

use sabir_model::Usage;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word<'a> {
    /// Anything else.
    Plain,
    Slow {
        pause: Duration,
        rest: &'a str,
    },
    Stream {
        chunks: u64,
        pause: Duration,
    },
    Fail(&'a str),
    Reject(&'a str),
    Ask(&'a str),
    Auth(&'a str),
    Message(&'a str),
    File,
    Url,
    Data,
    Tool(&'a str),
    Usage(Usage),
    History,
}

/// Longer pauses would not fit a clock; nobody means them.
const LONGEST_PAUSE_SECONDS: f64 = 1e9;
const DEFAULT_CHUNK_PAUSE: Duration = Duration::from_millis(50);

impl<'a> Word<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let (word, rest) = split_word(text);
        match word {
            "slow" => {
                let (seconds, rest) = split_word(rest);
                seconds_of(seconds).map_or(Word::Plain, |pause| Word::Slow { pause, rest })
            }
            "stream" => stream(rest).unwrap_or(Word::Plain),
            "fail" => Word::Fail(rest),
            "reject" => Word::Reject(rest),
            "ask" => Word::Ask(rest),
            "auth" => Word::Auth(rest),
            "message" => Word::Message(rest),
            "file" => Word::File,
            "url" => Word::Url,
            "data" => Word::Data,
            "tool" if !rest.is_empty() => Word::Tool(split_word(rest).0),
            "usage" => usage(rest).unwrap_or(Word::Plain),
            "history" => Word::History,
            _ => Word::Plain,
        }
    }
}

fn stream<'a>(rest: &str) -> Option<Word<'a>> {
    let (chunks, pause) = split_word(rest);
    let chunks = chunks.parse().ok()?;
    let pause = match split_word(pause).0 {
        "" => DEFAULT_CHUNK_PAUSE,
        millis => Duration::from_millis(millis.parse().ok()?),
    };
    Some(Word::Stream { chunks, pause })
}

fn usage<'a>(rest: &str) -> Option<Word<'a>> {
    let (input, output) = split_word(rest);
    let (output, _) = split_word(output);
    Some(Word::Usage(Usage { input_tokens: input.parse().ok()?, output_tokens: output.parse().ok()? }))
}

fn seconds_of(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (0.0..=LONGEST_PAUSE_SECONDS).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_decides() {
        let millis = Duration::from_millis;
        for (text, expected) in [
            ("hello", Word::Plain),
            ("Fail now", Word::Plain),
            ("failure", Word::Plain),
            ("fail", Word::Fail("")),
            ("  fail big  boom ", Word::Fail("big  boom")),
            ("slow 0.5 stream 3", Word::Slow { pause: millis(500), rest: "stream 3" }),
            ("slow 2", Word::Slow { pause: millis(2000), rest: "" }),
            ("slow down", Word::Plain),
            ("slow", Word::Plain),
            ("slow -1", Word::Plain),
            ("slow inf", Word::Plain),
            ("slow nan x", Word::Plain),
            ("stream 3", Word::Stream { chunks: 3, pause: millis(50) }),
            ("stream 3 0", Word::Stream { chunks: 3, pause: millis(0) }),
            ("stream 3 soon", Word::Plain),
            ("stream of thought", Word::Plain),
            ("ask Which day?", Word::Ask("Which day?")),
            ("auth", Word::Auth("")),
            ("message hi", Word::Message("hi")),
            ("file", Word::File),
            ("url", Word::Url),
            ("data", Word::Data),
            ("tool read_file now", Word::Tool("read_file")),
            ("tool", Word::Plain),
            ("usage 12 7", Word::Usage(Usage { input_tokens: 12, output_tokens: 7 })),
            ("usage 12", Word::Plain),
            ("history", Word::History),
            ("", Word::Plain),
        ] {
            assert_eq!(Word::of(text), expected, "{text:?}");
        }
    }
}
