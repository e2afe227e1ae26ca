//! The commands that the demo agent understands.
//!
//! The first word of the text is the command, case-sensitive. If a number is missing or invalid, the text is plain text.

use std::time::Duration;

use sabir_model::Usage;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DemoCommand<'a> {
    /// No command.
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

/// Longer pauses would overflow a clock.
const LONGEST_PAUSE_SECONDS: f64 = 1e9;
const DEFAULT_CHUNK_PAUSE: Duration = Duration::from_millis(50);

impl<'a> DemoCommand<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        let (word, rest) = split_word(text);
        match word {
            "slow" => {
                let (seconds, rest) = split_word(rest);
                seconds_of(seconds).map_or(DemoCommand::Plain, |pause| DemoCommand::Slow { pause, rest })
            }
            "stream" => stream(rest).unwrap_or(DemoCommand::Plain),
            "fail" => DemoCommand::Fail(rest),
            "reject" => DemoCommand::Reject(rest),
            "ask" => DemoCommand::Ask(rest),
            "auth" => DemoCommand::Auth(rest),
            "message" => DemoCommand::Message(rest),
            "file" => DemoCommand::File,
            "url" => DemoCommand::Url,
            "data" => DemoCommand::Data,
            "tool" if !rest.is_empty() => DemoCommand::Tool(split_word(rest).0),
            "usage" => usage(rest).unwrap_or(DemoCommand::Plain),
            "history" => DemoCommand::History,
            _ => DemoCommand::Plain,
        }
    }
}

fn stream<'a>(rest: &str) -> Option<DemoCommand<'a>> {
    let (chunks, pause) = split_word(rest);
    let chunks = chunks.parse().ok()?;
    let pause = match split_word(pause).0 {
        "" => DEFAULT_CHUNK_PAUSE,
        millis => Duration::from_millis(millis.parse().ok()?),
    };
    Some(DemoCommand::Stream { chunks, pause })
}

fn usage<'a>(rest: &str) -> Option<DemoCommand<'a>> {
    let (input, output) = split_word(rest);
    let (output, _) = split_word(output);
    Some(DemoCommand::Usage(Usage { input_tokens: input.parse().ok()?, output_tokens: output.parse().ok()? }))
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
            ("hello", DemoCommand::Plain),
            ("Fail now", DemoCommand::Plain),
            ("failure", DemoCommand::Plain),
            ("fail", DemoCommand::Fail("")),
            ("  fail big  boom ", DemoCommand::Fail("big  boom")),
            ("slow 0.5 stream 3", DemoCommand::Slow { pause: millis(500), rest: "stream 3" }),
            ("slow 2", DemoCommand::Slow { pause: millis(2000), rest: "" }),
            ("slow down", DemoCommand::Plain),
            ("slow", DemoCommand::Plain),
            ("slow -1", DemoCommand::Plain),
            ("slow inf", DemoCommand::Plain),
            ("slow nan x", DemoCommand::Plain),
            ("stream 3", DemoCommand::Stream { chunks: 3, pause: millis(50) }),
            ("stream 3 0", DemoCommand::Stream { chunks: 3, pause: millis(0) }),
            ("stream 3 soon", DemoCommand::Plain),
            ("stream of thought", DemoCommand::Plain),
            ("ask Which day?", DemoCommand::Ask("Which day?")),
            ("auth", DemoCommand::Auth("")),
            ("message hi", DemoCommand::Message("hi")),
            ("file", DemoCommand::File),
            ("url", DemoCommand::Url),
            ("data", DemoCommand::Data),
            ("tool read_file now", DemoCommand::Tool("read_file")),
            ("tool", DemoCommand::Plain),
            ("usage 12 7", DemoCommand::Usage(Usage { input_tokens: 12, output_tokens: 7 })),
            ("usage 12", DemoCommand::Plain),
            ("history", DemoCommand::History),
            ("", DemoCommand::Plain),
        ] {
            assert_eq!(DemoCommand::parse(text), expected, "{text:?}");
        }
    }
}
