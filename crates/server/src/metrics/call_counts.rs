//! Calls by operation, protocol and outcome, and responses by status.
//!
//! All labels are known in advance, so the counters are an array and counting is one addition. Only what has happened is
//! shown, but for the sum of all internal errors: an alert can see the first one only in a counter that was shown as 0.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;
use sabir_wire::{Binding, Operation, ProtocolVersion, Responder};

/// Each operation, and one for requests of which it is not known.
const OPERATIONS: usize = Operation::ALL.len() + 1;
const VERSIONS: usize = ProtocolVersion::ALL.len();
/// Each binding, and the gateway.
const BINDINGS: [Option<Binding>; 4] = [Some(Binding::JsonRpc), Some(Binding::HttpJson), Some(Binding::Grpc), None];
const CALLS: usize = OPERATIONS * VERSIONS * BINDINGS.len() * CallOutcome::ALL.len();

const FIRST_STATUS: usize = 100;
const STATUSES: usize = 500;

/// What a call was and how it came here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallOrigin {
    operation: usize,
    version: usize,
    binding: usize,
}

impl CallOrigin {
    pub(crate) fn of(responder: &Responder<'_>) -> Self {
        Self {
            operation: responder.operation().map_or(OPERATIONS - 1, |operation| operation as usize),
            // The gateway speaks as 1.0 does.
            version: responder.version().unwrap_or(ProtocolVersion::V1_0) as usize,
            binding: responder.binding().map_or(BINDINGS.len() - 1, |binding| binding as usize),
        }
    }

    fn labels(self) -> [(&'static str, &'static str); 3] {
        let operation = Operation::ALL.get(self.operation).map_or("unknown", |operation| operation.name());
        let binding = BINDINGS[self.binding].map_or("GATEWAY", Binding::name);
        [("operation", operation), ("version", ProtocolVersion::ALL[self.version].number()), ("binding", binding)]
    }
}

/// How a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Done,
    /// For a reason that is the caller's, or that passes.
    Refused,
    /// By a fault of this server.
    Failed,
}

impl CallOutcome {
    const ALL: [CallOutcome; 3] = [CallOutcome::Done, CallOutcome::Refused, CallOutcome::Failed];

    fn name(self) -> &'static str {
        match self {
            CallOutcome::Done => "done",
            CallOutcome::Refused => "refused",
            CallOutcome::Failed => "failed",
        }
    }
}

/// All clones are the same counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallCounts(Arc<Counts>);

struct Counts {
    calls: [AtomicU64; CALLS],
    responses: [AtomicU64; STATUSES],
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            calls: std::array::from_fn(|_| AtomicU64::new(0)),
            responses: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Counts {
    fn internal_errors(&self) -> u64 {
        all_origins().map(|origin| self.calls[place(origin, CallOutcome::Failed)].load(Ordering::Relaxed)).sum()
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counts").finish_non_exhaustive()
    }
}

impl CallCounts {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    pub(crate) fn count_call(&self, origin: CallOrigin, outcome: CallOutcome) {
        self.0.calls[place(origin, outcome)].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_response(&self, status: StatusCode) {
        if let Some(count) = self.0.responses.get(usize::from(status.as_u16()) - FIRST_STATUS) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn place(CallOrigin { operation, version, binding }: CallOrigin, outcome: CallOutcome) -> usize {
    ((operation * VERSIONS + version) * BINDINGS.len() + binding) * CallOutcome::ALL.len() + outcome as usize
}

fn all_origins() -> impl Iterator<Item = CallOrigin> {
    let of_operation = |operation| {
        (0..VERSIONS)
            .flat_map(move |version| (0..BINDINGS.len()).map(move |binding| CallOrigin { operation, version, binding }))
    };
    (0..OPERATIONS).flat_map(of_operation)
}

impl Collector for CallCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help =
            "Calls of the protocol by the 1.0 name of their operation; an unknown one was refused before it was read.";
        let mut calls = encoder.encode_descriptor("calls", help, None, MetricType::Counter)?;
        for origin in all_origins() {
            for outcome in CallOutcome::ALL {
                let count = self.0.calls[place(origin, outcome)].load(Ordering::Relaxed);
                if count > 0 {
                    let [operation, version, binding] = origin.labels();
                    let labels = [operation, version, binding, ("outcome", outcome.name())];
                    ConstCounter::new(count).encode(calls.encode_family(&labels)?)?;
                }
            }
        }
        let help = "Calls of the protocol that were answered with an internal error.";
        let errors = encoder.encode_descriptor("internal_errors", help, None, MetricType::Counter)?;
        ConstCounter::new(self.0.internal_errors()).encode(errors)?;
        let help = "HTTP responses by status.";
        let mut responses = encoder.encode_descriptor("http_responses", help, None, MetricType::Counter)?;
        for (status, count) in (FIRST_STATUS..).zip(&self.0.responses) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                ConstCounter::new(count).encode(responses.encode_family(&[("code", status.to_string())])?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use prometheus_client::encoding::text::encode_registry;

    use super::*;

    #[test]
    fn internal_errors_are_shown_before_there_is_one() {
        let (counts, mut registry) = (CallCounts::default(), Registry::default());
        counts.register(&mut registry);
        let origins: Vec<_> = all_origins().collect();
        for (outcome, expected) in [
            (None, 0),
            (Some(CallOutcome::Done), 0),
            (Some(CallOutcome::Refused), 0),
            (Some(CallOutcome::Failed), origins.len()),
        ] {
            for origin in &origins {
                outcome.into_iter().for_each(|outcome| counts.count_call(*origin, outcome));
            }
            let mut page = String::new();
            encode_registry(&mut page, &registry).unwrap();
            assert!(page.contains(&format!("\ninternal_errors_total {expected}\n")), "{outcome:?}: {page}");
        }
    }

    #[test]
    fn every_call_has_a_counter_and_labels_of_its_own() {
        let all: Vec<_> = all_origins().flat_map(|origin| CallOutcome::ALL.map(|outcome| (origin, outcome))).collect();
        let places: HashSet<usize> = all.iter().map(|(origin, outcome)| place(*origin, *outcome)).collect();
        assert_eq!((places.len(), places.into_iter().max()), (CALLS, Some(CALLS - 1)));
        let labels: HashSet<_> = all.iter().map(|(origin, outcome)| (origin.labels(), outcome.name())).collect();
        assert_eq!(labels.len(), CALLS);
        for (place, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, place);
        }
        for (place, binding) in BINDINGS.into_iter().flatten().enumerate() {
            assert_eq!(binding as usize, place);
        }
        for (place, version) in ProtocolVersion::ALL.into_iter().enumerate() {
            assert_eq!(version as usize, place);
        }
    }
}
