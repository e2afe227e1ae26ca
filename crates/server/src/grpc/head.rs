//! What the headers of a gRPC request say: whether it is gRPC-Web, how messages are compressed, how long the call may take.

use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Version, header};
use sabir_model::Error;
use sabir_wire::excerpt;
use tokio::time::Instant;

/// A clock cannot be set later than this on every platform. Longer deadlines are none.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GrpcHead {
    pub(crate) format: GrpcFormat,
    /// Of messages whose prefix says that they are compressed.
    pub(crate) compression: Compression,
    /// Of ours to this client.
    pub(crate) answers: Compression,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrpcFormat {
    Http2,
    /// The trailers are the last part of the body.
    Web,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    /// One that this server does not have.
    Unknown,
}

impl GrpcHead {
    /// `None`: the client does not speak gRPC.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        const GRPC: &[u8] = b"application/grpc";
        let content_type = parts.headers.get(header::CONTENT_TYPE)?.as_bytes();
        let is_grpc = content_type.get(..GRPC.len()).is_some_and(|start| start.eq_ignore_ascii_case(GRPC));
        is_grpc.then(|| Self::read(parts).ok()).flatten()
    }

    /// An error: this is no gRPC, and its client reads none.
    pub(crate) fn read(parts: &Parts) -> Result<Self, Error> {
        let content_type = text(&parts.headers, header::CONTENT_TYPE.as_str()).unwrap_or_default().to_ascii_lowercase();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let format = match essence {
            "application/grpc" | "application/grpc+proto" if parts.version >= Version::HTTP_2 => GrpcFormat::Http2,
            "application/grpc-web" | "application/grpc-web+proto" => GrpcFormat::Web,
            "application/grpc" | "application/grpc+proto" => {
                return Err(Error::UnsupportedMediaType("gRPC needs HTTP/2; over HTTP/1.1 send gRPC-Web".to_owned()));
            }
            _ => {
                let why = format!("send application/grpc, not {}", excerpt(essence));
                return Err(Error::UnsupportedMediaType(why));
            }
        };
        let compression = match text(&parts.headers, "grpc-encoding").unwrap_or("identity") {
            "identity" => Compression::None,
            "gzip" => Compression::Gzip,
            _ => Compression::Unknown,
        };
        // A client that compresses wants the same, unless it says otherwise.
        let takes_gzip = text(&parts.headers, "grpc-accept-encoding")
            .is_none_or(|list| list.split(',').any(|name| name.trim() == "gzip"));
        let is_gzip = compression == Compression::Gzip && takes_gzip;
        let answers = if is_gzip { Compression::Gzip } else { Compression::None };
        Ok(Self { format, compression, answers })
    }
}

/// Until when the caller wants an answer.
pub(crate) fn deadline(headers: &HeaderMap) -> Result<Option<Instant>, Error> {
    let timeout = text(headers, "grpc-timeout").map(timeout).transpose()?;
    Ok(timeout.filter(|time| *time < LONGEST).map(|time| Instant::now() + time))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// At most eight digits and a unit: `30S`, `250m`.
fn timeout(text: &str) -> Result<Duration, Error> {
    let invalid = || Error::invalid("grpc-timeout", "must be at most eight digits and one of H, M, S, m, u and n");
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(invalid)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_number).ok_or_else(invalid)?;
    Ok(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return Err(invalid()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_digits_and_a_unit() {
        let millis = |text| timeout(text).ok().map(|time| time.as_millis());
        for (text, expected) in [
            ("1H", Some(3_600_000)),
            ("2M", Some(120_000)),
            ("30S", Some(30_000)),
            ("250m", Some(250)),
            ("99999999H", Some(359_999_996_400_000)),
            ("1000u", Some(1)),
            ("1000000n", Some(1)),
            ("0m", Some(0)),
            ("", None),
            ("S", None),
            ("30", None),
            ("-1S", None),
            ("1.5S", None),
            ("123456789S", None),
            ("1é", None),
            ("1 S", None),
        ] {
            assert_eq!(millis(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_type_says_whether_it_is_grpc() {
        for (version, content_type, expected) in [
            (Version::HTTP_2, "application/grpc", "Http2"),
            (Version::HTTP_2, "application/grpc+proto; x=y", "Http2"),
            (Version::HTTP_11, "application/grpc-web+proto", "Web"),
            (Version::HTTP_2, "Application/gRPC-Web", "Web"),
            (Version::HTTP_11, "application/grpc", "gRPC needs HTTP/2; over HTTP/1.1 send gRPC-Web"),
            (Version::HTTP_2, "application/grpc+json", "send application/grpc, not application/grpc+json"),
            (Version::HTTP_2, "application/grpc-web-text", "send application/grpc, not application/grpc-web-text"),
            (Version::HTTP_2, "", "send application/grpc, not "),
        ] {
            let request =
                http::Request::builder().version(version).header("content-type", content_type).body(()).unwrap();
            let said = match GrpcHead::read(&request.into_parts().0) {
                Ok(head) => format!("{:?}", head.format),
                Err(error) => error.to_string(),
            };
            assert_eq!(said, expected, "{content_type}");
        }
    }
}
