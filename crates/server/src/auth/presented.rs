//! The credential that a request shows.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use sabir_model::Error;

use super::refused;

/// A longer one is nobody's: tokens of identity providers have a few kilobytes.
const LONGEST: usize = 16 * 1024;

#[derive(Debug, PartialEq)]
pub(super) enum Presented<'a> {
    Nothing,
    Bearer(&'a [u8]),
    /// `Authorization` with another scheme.
    OtherScheme,
    ApiKey {
        header: &'a str,
        key: &'a [u8],
    },
}

impl<'a> Presented<'a> {
    /// `Authorization` counts before `key_headers`. A header that stands there twice is refused, since a proxy may have
    /// looked at the other one.
    pub(super) fn find(headers: &'a HeaderMap, key_headers: impl Iterator<Item = &'a str>) -> Result<Self, Error> {
        if let Some(value) = single(headers, AUTHORIZATION.as_str())? {
            let value = value.as_bytes();
            let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
            let (scheme, rest) = value.split_at(end);
            let token = rest.trim_ascii();
            return Ok(match scheme.eq_ignore_ascii_case(b"bearer") {
                true if token.is_empty() || token.contains(&b' ') => {
                    return Err(refused("the bearer token is malformed"));
                }
                true => Presented::Bearer(token),
                false => Presented::OtherScheme,
            });
        }
        for header in key_headers {
            if let Some(value) = single(headers, header)? {
                return Ok(Presented::ApiKey { header, key: value.as_bytes().trim_ascii() });
            }
        }
        Ok(Presented::Nothing)
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a HeaderValue>, Error> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (_, Some(_)) => Err(refused(format!("the header {name} stands there twice"))),
        (Some(value), None) if value.len() > LONGEST => Err(refused(format!("the header {name} is too long"))),
        (value, None) => Ok(value),
    }
}
