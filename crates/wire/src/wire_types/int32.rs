//! An int32 of ProtoJSON: a number, a number in a string, or one that ends in `.0`.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Int32(pub(crate) i32);

impl Int32 {
    fn of<E: Error>(number: f64) -> Result<Self, E> {
        if number.fract() != 0.0 {
            return Err(E::custom("must be a whole number"));
        }
        if number < f64::from(i32::MIN) || number > f64::from(i32::MAX) {
            return Err(E::custom("must be between -2147483648 and 2147483647"));
        }
        // Whole and in range, so nothing is cut off.
        Ok(Self(number as i32))
    }
}

impl<'de> Deserialize<'de> for Int32 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Int32Visitor)
    }
}

struct Int32Visitor;

impl Visitor<'_> for Int32Visitor {
    type Value = Int32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Int32, E> {
        Int32::of(number as f64)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Int32, E> {
        Int32::of(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Int32, E> {
        Int32::of(number)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Int32, E> {
        // `f64` also reads words such as "inf"; a number begins with a digit or a sign and ends in a digit.
        let is_number = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        match text.parse::<f64>() {
            Ok(number) if is_number => Int32::of(number),
            _ => Err(E::custom("must be a whole number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_numeric_strings_are_int32() {
        for (json, expected) in [
            ("5", Some(5)),
            ("-5", Some(-5)),
            ("5.0", Some(5)),
            ("1e2", Some(100)),
            (r#""5""#, Some(5)),
            (r#""5.0""#, Some(5)),
            ("2147483647", Some(i32::MAX)),
            ("-2147483648", Some(i32::MIN)),
            ("2147483648", None),
            ("18446744073709551615", None),
            ("123456789012345678901234567890", None),
            ("5.5", None),
            (r#""5.5""#, None),
            (r#""five""#, None),
            (r#""inf""#, None),
            (r#""NaN""#, None),
            (r#""""#, None),
            ("true", None),
            ("[]", None),
        ] {
            assert_eq!(serde_json::from_str::<Int32>(json).ok().map(|int| int.0), expected, "{json}");
        }
    }
}
