//! The dialects, seen from outside: requests in, answers out.

mod cards;
mod carried;
mod golden;
mod lenient;
mod refusals;
mod roundtrip;
mod say;

use sabir_model::{Call, Error};
use sabir_wire::{Dialect, Heard, Operation, Reading, Shown, V01, V1, V03, V03Proto};

pub(crate) const OPERATIONS: [Operation; 11] = [
    Operation::Send,
    Operation::Stream,
    Operation::Get,
    Operation::List,
    Operation::Cancel,
    Operation::Subscribe,
    Operation::PushSet,
    Operation::PushGet,
    Operation::PushList,
    Operation::PushDelete,
    Operation::ExtendedCard,
];

pub(crate) const READINGS: [Reading; 3] = [Reading::Strict, Reading::Complete, Reading::Lenient];

/// A dialect in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tongue {
    V1,
    V03,
    V03Proto,
    V01,
}

impl Tongue {
    pub(crate) const ALL: [Tongue; 4] = [Tongue::V1, Tongue::V03, Tongue::V03Proto, Tongue::V01];

    fn dialect(self) -> &'static dyn Dialect {
        match self {
            Tongue::V1 => &V1,
            Tongue::V03 => &V03,
            Tongue::V03Proto => &V03Proto,
            Tongue::V01 => &V01,
        }
    }

    pub(crate) fn decode(self, operation: Operation, params: &str, reading: Reading) -> Result<Call, Error> {
        self.dialect().decode(operation, params, reading)
    }

    pub(crate) fn encode(self, shown: Shown<'_>) -> String {
        let mut out = Vec::new();
        self.dialect().encode(shown, &mut out);
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    pub(crate) fn hear(self, operation: Operation, result: &str) -> Result<Heard, Error> {
        match self {
            Tongue::V1 => V1.hear(operation, result),
            Tongue::V03 => V03.hear(operation, result),
            Tongue::V03Proto => V03Proto.hear(operation, result),
            Tongue::V01 => V01.hear(operation, result),
        }
    }
}
