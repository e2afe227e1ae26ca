//! Times as `google.protobuf.Timestamp`. A time that nobody named is not written.

use sabir_model::Timestamp;
use sabir_proto::prost_types;

pub(crate) fn write_time(time: Timestamp) -> Option<prost_types::Timestamp> {
    (time != Timestamp::default()).then(|| write_known_time(time))
}

/// A time that somebody named, be it the first moment of 1970.
pub(crate) fn write_known_time(time: Timestamp) -> prost_types::Timestamp {
    let (millis, second) = (time.as_millis(), 1000);
    let nanos = i32::try_from(millis.rem_euclid(second)).expect("less than a thousand") * 1_000_000;
    prost_types::Timestamp { seconds: millis.div_euclid(second), nanos }
}

/// Times beyond the years 1 to 9999 become the nearest that there is.
pub(crate) fn read_time(time: prost_types::Timestamp) -> Timestamp {
    let millis = i64::from(time.nanos.clamp(0, 999_999_999)) / 1_000_000;
    Timestamp::from_millis(time.seconds.saturating_mul(1000).saturating_add(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_milliseconds() {
        for millis in [1, 999, 1000, 1_700_000_000_123, -1, -1001] {
            let time = Timestamp::from_millis(millis);
            assert_eq!(write_time(time).map(read_time), Some(time), "{millis}");
        }
        assert_eq!(write_time(Timestamp::default()), None);
        for (seconds, nanos) in [(i64::MAX, i32::MAX), (i64::MIN, i32::MIN), (0, -1)] {
            read_time(prost_types::Timestamp { seconds, nanos });
        }
    }
}
