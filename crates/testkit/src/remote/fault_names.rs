//! Faults by name, for command lines: `drop-after=3`.

use std::time::Duration;

use super::faults::*;
use super::protocol::RemoteProtocol;

/// Names, the values that they take, and what they mean.
pub const FAULT_NAMES: &[(&str, &str, &str)] = &[
    ("drop-after", "FRAMES", "each stream is closed after so many frames"),
    ("drop-once-after", "FRAMES", "the same, once"),
    ("drop-how", "complete|close|reset", "how it is dropped"),
    ("drop-cut", "between-frames|in-frame|in-character", "where it is dropped"),
    ("silent-after", "FRAMES", "each stream goes silent after so many frames"),
    ("repeat-frames", "TIMES", "each frame is sent so many times more"),
    ("swap-frames", "FRAME|all", "this frame (from 0) and the next change places, or every two"),
    ("huge-frame", "BYTES", "the second frame is that large"),
    ("error-frame", "FRAMES", "an error ends the stream after so many frames"),
    ("event-ids", "absent|numbers|resumable|opaque", "the SSE ids of frames"),
    ("line-end", "lf|crlf|cr", "the line ends of streams"),
    ("comments", "", "a comment before each frame"),
    ("event-lines", "", "frames have an event line"),
    ("multi-line-data", "", "frames have several data lines"),
    ("byte-order-mark", "", "streams begin with one"),
    ("split", "BYTES", "frames arrive in pieces of that size"),
    ("delay", "MS", "each answer is that late"),
    ("drip", "MS", "bodies arrive byte by byte, with pauses"),
    ("status", "CODE", "calls are answered with this HTTP status"),
    ("busy", "TIMES", "the next so many calls are 503 with Retry-After: 1"),
    ("redirect", "itself|URL", "calls are redirected with 307"),
    ("hang-up", "before-reading|before-processing|while-processing|after-processing", "calls get no answer"),
    ("submitted-first", "", "a blocking send is answered with the submitted task"),
    ("ignore-cancel", "", "a cancel changes nothing"),
    ("no-streaming", "", "no streams, and the card says so"),
    ("no-subscribe", "", "no subscriptions"),
    (
        "malformed",
        "KIND",
        "not-json, wrong-id, no-result, error-null, missing-ids, unknown-state, no-zone, nulls, empty-parts, unknown-part, unknown-event, foreign-task or status-is-text in everything",
    ),
    (
        "card",
        "KIND",
        "no-version, old-path, nulls, wrong-types, broken-security, claims-streaming, claims-VERSION, missing, not-json, or a URL",
    ),
];

impl Faults {
    /// Adds the fault `NAME` or `NAME=VALUE` of `FAULT_NAMES`.
    pub fn add_named(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        self.add(name, value).ok_or_else(|| {
            let known = FAULT_NAMES.iter().find(|(known, ..)| *known == name);
            known.map_or(format!("there is no fault {name:?}"), |(name, values, _)| format!("{name} takes {values}"))
        })
    }

    fn add(&mut self, name: &str, value: &str) -> Option<()> {
        let number = || value.parse::<usize>().ok();
        let millis = || value.parse().ok().map(Duration::from_millis);
        let drop = StreamDrop { times: Times::Always, ..StreamDrop::after(1, Ending::Close) };
        match name {
            "drop-after" => self.drop_stream.get_or_insert(drop).after = number()?,
            "drop-once-after" => {
                *self.drop_stream.get_or_insert(drop) = StreamDrop { after: number()?, times: Times::ONCE, ..drop };
            }
            "drop-how" => self.drop_stream.get_or_insert(drop).how = ending(value)?,
            "drop-cut" => {
                self.drop_stream.get_or_insert(drop).cut = match value {
                    "between-frames" => Cut::BetweenFrames,
                    "in-frame" => Cut::InFrame,
                    "in-character" => Cut::InCharacter,
                    _ => return None,
                }
            }
            "silent-after" => self.silence = Some(Silence { after: number()?, times: Times::Always }),
            "repeat-frames" => self.repeat_frames = number()?,
            "swap-frames" if value == "all" => self.swap_frames = Some(Swap::EveryPair),
            "swap-frames" => self.swap_frames = Some(Swap::At(number()?)),
            "huge-frame" => self.huge_frame = Some(HugeFrame { at: 1, bytes: number()? }),
            "error-frame" => {
                self.error_frame = Some(ErrorFrame { after: number()?, code: -32603, times: Times::Always });
            }
            "event-ids" => {
                self.event_ids = match value {
                    "absent" => EventIds::Absent,
                    "numbers" => EventIds::Numbers,
                    "resumable" => EventIds::Resumable,
                    "opaque" => EventIds::Opaque,
                    _ => return None,
                }
            }
            "line-end" => {
                self.sse.line_end = match value {
                    "lf" => LineEnd::Lf,
                    "crlf" => LineEnd::CrLf,
                    "cr" => LineEnd::Cr,
                    _ => return None,
                }
            }
            "comments" => self.sse.comments = true,
            "event-lines" => self.sse.event_lines = true,
            "multi-line-data" => self.sse.multi_line_data = true,
            "byte-order-mark" => self.sse.byte_order_mark = true,
            "split" => self.sse.split = Some(number()?),
            "delay" => self.delay = Some(Delay { on: On::Everything, before_head: millis()? }),
            "drip" => self.drip = Some(Drip { bytes: 1, pause: millis()? }),
            "status" => self.http_error = Some(HttpError::status(value.parse().ok()?)),
            "busy" => self.http_error = Some(HttpError::retry_after(503, 1, Times::First(value.parse().ok()?))),
            "redirect" => {
                let to = if value == "itself" { RedirectTo::Itself } else { RedirectTo::Url(value.to_owned()) };
                self.redirect = Some(Redirect { on: On::Calls, times: Times::Always, status: 307, to });
            }
            "hang-up" => {
                let when = match value {
                    "before-reading" => HangUpWhen::BeforeReading,
                    "before-processing" => HangUpWhen::BeforeProcessing,
                    "while-processing" => HangUpWhen::WhileProcessing,
                    "after-processing" => HangUpWhen::AfterProcessing,
                    _ => return None,
                };
                self.hang_up = Some(HangUp { on: On::Calls, when, how: Ending::Close, times: Times::Always });
            }
            "submitted-first" => self.submitted_first = true,
            "ignore-cancel" => self.ignore_cancel = true,
            "no-streaming" => self.no_streaming = Some(Refusal::UnsupportedOperation),
            "no-subscribe" => self.no_subscribe = Some(Refusal::UnsupportedOperation),
            "malformed" => self.malformed.push(Malformed::at(At::Everything, malformation(value)?)),
            "card" => self.card.push(card(value)?),
            _ => return None,
        }
        Some(())
    }
}

fn ending(name: &str) -> Option<Ending> {
    match name {
        "complete" => Some(Ending::Complete),
        "close" => Some(Ending::Close),
        "reset" => Some(Ending::Reset),
        _ => None,
    }
}

fn malformation(name: &str) -> Option<Malformation> {
    Some(match name {
        "not-json" => Malformation::NotJson,
        "wrong-id" => Malformation::WrongRpcId,
        "no-result" => Malformation::NoResult,
        "error-null" => Malformation::ErrorNull,
        "missing-ids" => Malformation::MissingIds,
        "unknown-state" => Malformation::State("unknown".to_owned()),
        "no-zone" => Malformation::TimesWithoutZone,
        "nulls" => Malformation::NullMembers,
        "empty-parts" => Malformation::EmptyParts,
        "unknown-part" => Malformation::UnknownPart,
        "unknown-event" => Malformation::UnknownEvent,
        "foreign-task" => Malformation::ForeignTask("foreign-task".to_owned()),
        "status-is-text" => Malformation::StatusIsText,
        _ => return None,
    })
}

fn card(name: &str) -> Option<CardFault> {
    Some(match name {
        "no-version" => CardFault::NoProtocolVersion,
        "old-path" => CardFault::OnlyAtOldPath,
        "nulls" => CardFault::NullMembers,
        "wrong-types" => CardFault::WrongTypes,
        "broken-security" => CardFault::BrokenSecurity,
        "claims-streaming" => CardFault::ClaimsStreaming,
        "missing" => CardFault::Missing,
        "not-json" => CardFault::NotJson,
        url if url.starts_with("http") => CardFault::Url(url.to_owned()),
        other => CardFault::Claims(RemoteProtocol::named(other.strip_prefix("claims-")?, "jsonrpc")?),
    })
}
