//! The dialects, seen from outside: requests in, answers out.

mod cards;
mod describe;
mod golden;
mod lenient;
mod protobuf_v1;
mod raw_json;
mod refusals;
mod roundtrip;
mod v03_protobuf;

use sabir_model::{Call, Error};
use sabir_wire::{JsonDialect, Operation, Payload, PeerResponse, Strictness, V01, V1, V03, V03Proto};

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

pub(crate) const STRICTNESSES: [Strictness; 3] = [Strictness::Strict, Strictness::Complete, Strictness::Lenient];

/// A dialect in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestDialect {
    V1,
    V03,
    V03Proto,
    V01,
}

impl TestDialect {
    pub(crate) const ALL: [TestDialect; 4] =
        [TestDialect::V1, TestDialect::V03, TestDialect::V03Proto, TestDialect::V01];

    fn dialect(self) -> &'static dyn JsonDialect {
        match self {
            TestDialect::V1 => &V1,
            TestDialect::V03 => &V03,
            TestDialect::V03Proto => &V03Proto,
            TestDialect::V01 => &V01,
        }
    }

    pub(crate) fn decode(self, operation: Operation, params: &str, strictness: Strictness) -> Result<Call, Error> {
        self.dialect().decode(operation, params, strictness)
    }

    pub(crate) fn encode(self, shown: Payload<'_>) -> String {
        let mut out = Vec::new();
        self.dialect().encode(shown, &mut out);
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    pub(crate) fn decode_response(self, operation: Operation, result: &str) -> Result<PeerResponse, Error> {
        match self {
            TestDialect::V1 => V1.decode_response(operation, result),
            TestDialect::V03 => V03.decode_response(operation, result),
            TestDialect::V03Proto => V03Proto.decode_response(operation, result),
            TestDialect::V01 => V01.decode_response(operation, result),
        }
    }
}
