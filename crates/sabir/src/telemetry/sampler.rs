//! Which traces are recorded: `OTEL_TRACES_SAMPLER`.

use sabir_model::TraceContext;

/// The flag of a trace that is recorded.
pub(super) const SAMPLED: u8 = 1;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sampler {
    root: Share,
    parents: Parents,
}

/// How many of the traces are recorded that nobody has decided about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Share {
    All,
    None,
    /// Those whose ids are below this, of 2^63.
    Below(u64),
}

/// Whether the caller's decision counts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Parents {
    Decide,
    Ignored,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { root: Share::All, parents: Parents::Decide }
    }
}

impl Sampler {
    /// Reads the name and the argument. The error names the variable.
    pub(super) fn parse(name: &str, argument: Option<&str>) -> Result<Self, String> {
        let (kind, parents) = match name.strip_prefix("parentbased_") {
            Some(kind) => (kind, Parents::Decide),
            None => (name, Parents::Ignored),
        };
        let root = match kind {
            "always_on" => Share::All,
            "always_off" => Share::None,
            "traceidratio" => share(argument)?,
            _ => {
                return Err(format!(
                    "OTEL_TRACES_SAMPLER={name} is not known: write always_on, always_off or traceidratio, or one of \
                     them behind parentbased_"
                ));
            }
        };
        Ok(Self { root, parents })
    }

    /// Whether a span with this parent is recorded.
    pub(super) fn samples(&self, parent: Option<&TraceContext>, trace: u128) -> bool {
        match (self.parents, parent, self.root) {
            (Parents::Decide, Some(parent), _) => parent.flags() & SAMPLED != 0,
            (_, _, Share::All) => true,
            (_, _, Share::None) => false,
            // By the lower half of the id, like other SDKs, so that all services of a trace decide alike.
            (_, _, Share::Below(limit)) => (trace as u64) >> 1 < limit,
        }
    }
}

fn share(argument: Option<&str>) -> Result<Share, String> {
    let Some(text) = argument else { return Ok(Share::All) };
    match text.trim().parse::<f64>() {
        Ok(1.0) => Ok(Share::All),
        Ok(ratio) if (0.0..1.0).contains(&ratio) => Ok(Share::Below((ratio * (1u64 << 63) as f64) as u64)),
        _ => Err(format!("OTEL_TRACES_SAMPLER_ARG={text} must be a number from 0 to 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_decides_what_is_recorded() {
        let (low, high) = (1u128, u128::MAX);
        let parent = |flags: &str| {
            TraceContext::parse(&format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}"), None)
        };
        for (name, argument, parent, trace, expected) in [
            ("parentbased_always_on", None, None, high, true),
            ("parentbased_always_on", None, parent("00"), high, false),
            ("parentbased_always_on", None, parent("01"), high, true),
            ("parentbased_always_off", None, None, high, false),
            ("parentbased_always_off", None, parent("03"), high, true),
            ("always_on", None, parent("00"), high, true),
            ("always_off", None, parent("01"), high, false),
            ("traceidratio", Some("0.5"), None, low, true),
            ("traceidratio", Some("0.5"), parent("01"), high, false),
            ("traceidratio", Some("0"), None, low, false),
            ("traceidratio", Some("1"), None, high, true),
            ("traceidratio", None, None, high, true),
            ("parentbased_traceidratio", Some("0.25"), parent("01"), high, true),
            ("parentbased_traceidratio", Some("0.25"), None, high, false),
        ] {
            let sampler = Sampler::parse(name, argument).unwrap();
            assert_eq!(sampler.samples(parent.as_ref(), trace), expected, "{name} {argument:?} {parent:?} {trace:x}");
        }
    }

    #[test]
    fn a_sampler_that_is_not_known_is_named() {
        for (name, argument, expected) in [
            ("xray", None, "OTEL_TRACES_SAMPLER=xray is not known"),
            ("traceidratio", Some("2"), "OTEL_TRACES_SAMPLER_ARG=2 must be a number from 0 to 1"),
            ("traceidratio", Some("many"), "OTEL_TRACES_SAMPLER_ARG=many must be a number from 0 to 1"),
            ("traceidratio", Some("NaN"), "OTEL_TRACES_SAMPLER_ARG=NaN must be a number from 0 to 1"),
        ] {
            let error = Sampler::parse(name, argument).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
